/* Reads a window's attributes, none above 2^31 - 1, and finds the lengths and SAME pads of
 * convolutions, pools and transposed convolutions. A length that would be negative stays
 * unknown. */
#include "ops/window.h"

#include "ir/size.h"
#include "ops/rewrite.h"
#include "ops/work.h"

/* Larger numbers mean nothing in a window; below it products of two fit 64 bits. */
#define LIMIT ((int64_t)INT32_MAX)

static po_status read_list(po_ctx *ctx, const po_node *node, const char *name, uint32_t n,
                           int64_t least, int64_t otherwise, int64_t *values) {
    uint32_t count;
    const int64_t *given = po_node_ints(node, name, &count);
    if (given && count != n)
        return po_rule_bad(ctx, node, "%s has %u items (want %u)", name, count, n);
    for (uint32_t i = 0; i < n; i++) {
        values[i] = given ? given[i] : otherwise;
        if (values[i] < least || values[i] > LIMIT)
            return po_rule_bad(ctx, node, "%s is out of range (found %lld)", name,
                               (long long)values[i]);
    }
    return PO_OK;
}

static po_status read_auto_pad(po_ctx *ctx, const po_graph *graph, const po_node *node,
                               po_window *w) {
    po_bytes s = po_op_string(graph, node, "auto_pad");
    w->same_upper = po_rule_mode(graph, node, "auto_pad", "SAME_UPPER");
    w->same = w->same_upper || po_rule_mode(graph, node, "auto_pad", "SAME_LOWER");
    w->valid = po_rule_mode(graph, node, "auto_pad", "VALID");
    if (s.size && !w->same && !w->valid && !po_rule_mode(graph, node, "auto_pad", "NOTSET"))
        return po_rule_bad(ctx, node, "unknown auto_pad");
    return PO_OK;
}

static po_status read_kernel(po_ctx *ctx, const po_node *node, uint32_t n, const int64_t *kernel,
                             po_window *w) {
    const po_attr *given = po_node_attr(node, "kernel_shape");
    if (!kernel && (!given || given->kind != PO_ATTR_INTS))
        return po_rule_bad(ctx, node, "kernel_shape is missing");
    PO_TRY(read_list(ctx, node, "kernel_shape", n, 1, 1, w->kernel));
    for (uint32_t i = 0; kernel && i < n; i++) {
        if (kernel[i] < 0)
            continue;
        if (kernel[i] == 0 || kernel[i] > LIMIT)
            return po_rule_bad(ctx, node, "the kernel's dim %u is out of range (found %lld)", i,
                               (long long)kernel[i]);
        if (given && kernel[i] != w->kernel[i])
            return po_rule_bad(ctx, node, "kernel_shape and weights differ (%lld and %lld)",
                               (long long)w->kernel[i], (long long)kernel[i]);
        w->kernel[i] = kernel[i];
    }
    return PO_OK;
}

bool po_window_clips(const po_graph *graph, const po_node *node) {
    return po_op_int(graph, node, "ceil_mode") == 0 &&
           (node->op == PO_OP_MaxPool ||
            (node->op == PO_OP_AveragePool && po_op_int(graph, node, "count_include_pad") == 0));
}

po_status po_window_read(po_ctx *ctx, const po_graph *graph, const po_node *node, uint32_t n,
                         const int64_t *kernel, po_window *w) {
    int64_t pads[2 * PO_MAX_RANK];
    if (n > PO_MAX_RANK - 2)
        return po_rule_bad(ctx, node, "too many spatial axes (found %u)", n);
    memset(w, 0, sizeof *w);
    w->n = n;
    PO_TRY(read_kernel(ctx, node, n, kernel, w));
    PO_TRY(read_list(ctx, node, "strides", n, 1, 1, w->stride));
    PO_TRY(read_list(ctx, node, "dilations", n, 1, 1, w->dilation));
    PO_TRY(read_list(ctx, node, "pads", 2 * n, -LIMIT, 0, pads));
    PO_TRY(read_list(ctx, node, "output_padding", n, 0, 0, w->extra));
    uint32_t count;
    const int64_t *output = po_node_ints(node, "output_shape", &count);
    w->output_given = output && count > 0;
    if (w->output_given) {
        /* Some exporters give batch and channels as well. */
        if (count != n && count != n + 2)
            return po_rule_bad(ctx, node, "output_shape has %u items (want %u)", count, n);
        for (uint32_t i = 0; i < n; i++) {
            w->output[i] = output[count - n + i];
            if (w->output[i] < 0 || w->output[i] > LIMIT)
                return po_rule_bad(ctx, node, "output_shape is out of range (found %lld)",
                                   (long long)w->output[i]);
        }
    }
    PO_TRY(read_auto_pad(ctx, graph, node, w));
    w->ceil = po_op_int(graph, node, "ceil_mode") != 0;
    w->clips = po_window_clips(graph, node);
    for (uint32_t i = 0; i < n && !w->same && !w->valid; i++) {
        w->begin[i] = pads[i];
        w->end[i] = pads[n + i];
    }
    return PO_OK;
}

/* SAME of the sizes that are known; with strides of one it is as much for every size. */
static bool find_same(const po_graph *graph, const po_node *node, po_window *w) {
    for (uint32_t i = 0; i < w->n; i++) {
        int64_t size = po_dim_of(graph, node->in[0], (int)i + 2);
        if (size < 1 && w->stride[i] != 1)
            return false;
        if (po_window_out(w, i, PO_DIM(size < 1 ? LIMIT : size)).value < 0)
            return false;
    }
    return !w->skips;
}

/* The input whose dims are the kernel; 0: none, kernel_shape says it. */
static uint32_t weights_of(const po_node *node) {
    po_node plain;
    uint32_t second;
    if (!po_op_has_all(node->op, PO_OPF_WINDOW | PO_OPF_PRODUCTS))
        return 0;
    return po_float_product(node, &plain, &second) ? second : 1;
}

bool po_window_of(const po_graph *graph, const po_node *node, uint32_t n, po_window *w) {
    const uint32_t weights = weights_of(node);
    int64_t kernel[PO_MAX_RANK];
    if (n > PO_MAX_RANK - 2 || (weights && (node->n_in <= weights || node->in[weights] == PO_NONE ||
                                            po_rank_of(graph, node->in[weights]) != (int)n + 2)))
        return false;
    for (uint32_t i = 0; weights && i < n; i++)
        if ((kernel[i] = po_dim_of(graph, node->in[weights], (int)i + 2)) < 1)
            return false;
    if (po_window_read(NULL, graph, node, n, weights ? kernel : NULL, w) != PO_OK)
        return false;
    if (w->same && (node->op == PO_OP_ConvTranspose || !find_same(graph, node, w)))
        return false;
    for (uint32_t i = 0; i < n; i++)
        if (w->begin[i] < 0 || w->end[i] < 0)
            return false;
    return true;
}

static int64_t window_extent(const po_window *w, uint32_t axis) {
    return (w->kernel[axis] - 1) * w->dilation[axis] + 1;
}

static void share_pads(po_window *w, uint32_t k, int64_t total) {
    int64_t less = total / 2;
    w->begin[k] = w->same_upper ? less : total - less;
    w->end[k] = total - w->begin[k];
}

void po_rule_demand_window(const po_infer *infer, const po_window *w, uint32_t axis, po_dim in,
                           po_dim out) {
    po_rule_demand(infer, PO_DEMAND_AT_LEAST, out, PO_DIM(1));
    if (w->kernel[axis] > 1)
        po_rule_demand(infer, PO_DEMAND_SEQUENCE, in, PO_DIM(1));
}

po_dim po_window_out(po_window *w, uint32_t k, po_dim in) {
    int64_t extent = window_extent(w, k), stride = w->stride[k];
    if (in.value < 0) {
        bool whole = w->same || w->begin[k] + w->end[k] == extent - 1;
        if (stride == 1 && whole)
            return in;
        if (w->same && w->arena)
            return po_size_floor(w->arena, in, stride - 1, stride);
        if (w->ceil || !w->arena)
            return PO_DIM_UNKNOWN;
        const int64_t missing = extent - w->begin[k] - w->end[k]; /* of a map of nothing */
        po_dim steps = po_size_plus(w->arena, po_size_floor(w->arena, in, -missing, stride), 1);
        /* The runtime rounds towards zero: one window that the least map does not fill. */
        return w->clips && missing > 1 && missing - 1 < stride
                   ? po_size_max(w->arena, steps, PO_DIM(1))
                   : steps;
    }
    if (in.value > INT64_MAX / 4)
        return PO_DIM_UNKNOWN;
    if (w->same) {
        int64_t out = po_ceil_div(in.value, stride);
        int64_t total = out ? (out - 1) * stride + extent - in.value : 0;
        share_pads(w, k, total > 0 ? total : 0);
        w->skips = w->skips || total < 0;
        return PO_DIM(out);
    }
    int64_t room = in.value + w->begin[k] + w->end[k] - extent;
    if (room < 0)
        return w->clips && in.value > 0 && room > -stride ? PO_DIM(1) : PO_DIM_UNKNOWN;
    int64_t out = (w->ceil ? po_ceil_div(room, stride) : room / stride) + 1;
    /* A window that would start in the padding at the end is left out. */
    if (w->ceil && (out - 1) * stride >= in.value + w->begin[k])
        out--;
    return out >= 0 ? PO_DIM(out) : PO_DIM_UNKNOWN;
}

po_dim po_window_transposed(po_window *w, uint32_t k, po_dim in) {
    int64_t extent = window_extent(w, k), stride = w->stride[k];
    if (in.value < 0 && w->output_given)
        return PO_DIM(w->output[k]);
    if (in.value < 0) {
        const int64_t more = extent - stride + w->extra[k] - w->begin[k] - w->end[k];
        if (stride == 1 && (w->same || more == 0))
            return in;
        if (!w->arena || (w->same && extent + w->extra[k] < stride))
            return PO_DIM_UNKNOWN;
        return po_size_plus(w->arena, po_size_times(w->arena, in, stride), w->same ? 0 : more);
    }
    if (in.value > INT32_MAX)
        return PO_DIM_UNKNOWN;
    int64_t full = (in.value - 1) * stride;
    if (!po_add_i64(full, extent, &full) || full > INT64_MAX / 2)
        return PO_DIM_UNKNOWN;
    full += w->extra[k];
    if (w->output_given || w->same) {
        int64_t out = w->output_given ? w->output[k] : in.value * stride;
        /* SAME that would have to grow is shorter in the runtime than in the standard. */
        if (!w->output_given && full < out)
            return PO_DIM_UNKNOWN;
        share_pads(w, k, full > out ? full - out : 0);
        return PO_DIM(out);
    }
    /* Of nothing no runtime makes nothing. */
    int64_t out = full - w->begin[k] - w->end[k];
    return out >= (in.value == 0) ? PO_DIM(out) : PO_DIM_UNKNOWN;
}

void po_window_clip(int64_t n, int64_t step, int64_t offset, int64_t length, int64_t *from,
                    int64_t *to) {
    int64_t low = offset >= 0 ? 0 : po_ceil_div(-offset, step);
    int64_t high = offset >= length ? 0 : po_ceil_div(length - offset, step);
    *from = low < n ? low : n;
    *to = high < n ? high : n;
    if (*to < *from)
        *to = *from;
}
