/* Conv and ConvTranspose, any number of spatial axes. */
#include "ir/size.h"
#include "ops/kernels.h"
#include "ops/window.h"

/* --- shapes --- */

static po_status group_of(const po_infer *infer, int64_t *group) {
    *group = po_op_int(infer->graph, infer->node, "group");
    if (*group < 1 || *group > INT32_MAX)
        return po_rule_bad(infer->ctx, infer->node, "group is out of range (found %lld)",
                           (long long)*group);
    return PO_OK;
}

/* Ranks, and the window from attributes and weights. *ready false: too little is known. */
static po_status read_conv(po_infer *infer, po_window *w, int64_t *group, bool *ready) {
    const po_type *x = po_rule_ranked(infer, 0), *weights = po_rule_ranked(infer, 1);
    const po_type *bias = po_rule_ranked(infer, 2);
    int64_t kernel[PO_MAX_RANK];
    *ready = false;
    PO_TRY(group_of(infer, group));
    if (!x && !weights)
        return PO_OK;
    uint32_t rank = x ? x->rank : weights->rank;
    if (rank < 2 || rank > PO_MAX_RANK || (weights && weights->rank != rank))
        return po_rule_bad(infer->ctx, infer->node, "ranks do not fit (%u and %u)", rank,
                           weights ? weights->rank : rank);
    if (bias && bias->rank != 1)
        return po_rule_bad(infer->ctx, infer->node, "the bias must have rank 1 (found %u)",
                           bias->rank);
    for (uint32_t i = 2; weights && i < rank; i++)
        kernel[i - 2] = weights->dims[i].value;
    bool have = weights != NULL;
    if (!have && !po_node_attr(infer->node, "kernel_shape"))
        return PO_OK;
    PO_TRY(
        po_window_read(infer->ctx, infer->graph, infer->node, rank - 2, have ? kernel : NULL, w));
    *ready = true;
    for (uint32_t i = 0; have && i < rank - 2; i++)
        if (kernel[i] < 0 && !po_node_attr(infer->node, "kernel_shape"))
            *ready = false;
    return PO_OK;
}

static po_status fit(const po_infer *infer, const char *what, po_dim found, po_dim want) {
    po_dim both;
    return po_rule_same_dim(infer, found, want, what, &both);
}

static po_status divisible(const po_infer *infer, po_dim d, int64_t group) {
    if (d.value >= 0 && d.value % group != 0)
        return po_rule_bad(infer->ctx, infer->node, "%lld channels do not divide into %lld groups",
                           (long long)d.value, (long long)group);
    return PO_OK;
}

static po_status infer_conv(po_infer *infer, bool transposed) {
    const po_type *x = po_rule_ranked(infer, 0), *weights = po_rule_ranked(infer, 1);
    const po_type *bias = po_rule_ranked(infer, 2);
    po_window w;
    int64_t group;
    bool ready;
    po_infer_set_unranked(infer, 0, po_infer_dtype(infer, 0));
    PO_TRY(read_conv(infer, &w, &group, &ready));
    if (!x && !weights)
        return PO_OK;
    uint32_t rank = x ? x->rank : weights->rank;
    po_dim *dims = po_rule_out(infer, 0, po_infer_dtype(infer, 0), rank);
    if (x)
        dims[0] = x->dims[0];
    if (weights && transposed) {
        dims[1] = po_size_times(infer->arena, weights->dims[1], group);
        PO_TRY(divisible(infer, weights->dims[0], group));
        if (x)
            PO_TRY(fit(infer, "channels of input and weights", x->dims[1], weights->dims[0]));
    } else if (weights) {
        dims[1] = weights->dims[0];
        PO_TRY(divisible(infer, weights->dims[0], group));
        if (x)
            PO_TRY(divisible(infer, x->dims[1], group));
        if (x && weights->dims[1].value >= 0)
            PO_TRY(fit(infer, "channels of input and weights", x->dims[1],
                       po_size_times(infer->arena, weights->dims[1], group)));
    }
    if (bias)
        PO_TRY(fit(infer, "channels of weights and bias", bias->dims[0], dims[1]));
    if (!x || !ready)
        return PO_OK;
    w.arena = infer->arena;
    for (uint32_t i = 0; i < w.n; i++) {
        dims[2 + i] = transposed ? po_window_transposed(&w, i, x->dims[2 + i])
                                 : po_window_out(&w, i, x->dims[2 + i]);
        po_rule_demand_window(infer, &w, i, x->dims[2 + i], dims[2 + i]);
    }
    return PO_OK;
}

po_status po_infer_conv(po_infer *infer) {
    return infer_conv(infer, false);
}

po_status po_infer_conv_transpose(po_infer *infer) {
    return infer_conv(infer, true);
}

/* --- references --- */

typedef struct conv {
    po_window w;
    const po_array *x, *weights, *out;
    int64_t group, in_channels, out_channels; /* channels of one group */
    uint32_t outer;                           /* spatial axes but the last */
    int64_t in_plane, out_plane, taps;
    int64_t in_row, out_row; /* lengths of the last axis; 1 where there is none */
    int64_t in_strides[PO_MAX_RANK], out_strides[PO_MAX_RANK];
} conv;

static po_status prepare(po_ref *ref, conv *c, bool transposed) {
    PO_TRY(po_rule_outputs(ref));
    if (!po_rule_floats(ref, 0, 2))
        return PO_UNSUPPORTED;
    c->x = ref->in[0];
    c->weights = ref->in[1];
    c->out = ref->out[0];
    c->group = po_op_int(ref->graph, ref->node, "group");
    uint32_t rank = c->x->rank;
    PO_TRY(po_window_read(ref->ctx, ref->graph, ref->node, rank - 2, c->weights->dims + 2, &c->w));
    for (uint32_t i = 0; i < c->w.n; i++) {
        po_dim d = PO_DIM(c->x->dims[2 + i]);
        if (transposed)
            po_window_transposed(&c->w, i, d);
        else
            po_window_out(&c->w, i, d);
    }
    c->in_channels = c->x->dims[1] / c->group;
    c->out_channels = c->out->dims[1] / c->group;
    c->in_plane = po_product(c->x->dims, 2, rank);
    c->out_plane = po_product(c->out->dims, 2, rank);
    c->taps = po_product(c->weights->dims, 2, rank);
    c->outer = c->w.n ? c->w.n - 1 : 0;
    c->in_row = c->w.n ? c->x->dims[rank - 1] : 1;
    c->out_row = c->w.n ? c->out->dims[rank - 1] : 1;
    po_rule_strides(c->w.n, c->x->dims + 2, c->in_strides);
    po_rule_strides(c->w.n, c->out->dims + 2, c->out_strides);
    return PO_OK;
}

static void add_bias(const conv *c, const po_array *bias) {
    if (!bias)
        return;
    for (int64_t k = 0; k < c->out->dims[0] * c->out->dims[1]; k++) {
        double b = bias->f[k % c->out->dims[1]];
        for (int64_t i = 0; i < c->out_plane; i++)
            c->out->f[k * c->out_plane + i] += b;
    }
}

/* Adds what one input channel gives to up to four rows of neighbouring output channels. `w` are
 * the weights of the first; `to_step` and `w_step` lead to the next channel's. */
static void add_channel(const conv *c, const double *in, const double *w, int64_t w_step,
                        int64_t rows, double *to, const int64_t *at) {
    int64_t tap[PO_MAX_RANK] = {0};
    uint32_t n = c->w.n, last = c->outer;
    int64_t kernel = n ? c->w.kernel[last] : 1;
    for (int64_t t = 0; t < c->taps; t += kernel) {
        int64_t base = 0;
        bool inside = true;
        for (uint32_t k = 0; k < last && inside; k++) {
            int64_t p = at[k] * c->w.stride[k] + tap[k] * c->w.dilation[k] - c->w.begin[k];
            inside = p >= 0 && p < c->x->dims[2 + k];
            base += p * c->in_strides[k];
        }
        for (int64_t s = 0; inside && s < kernel; s++) {
            int64_t from = 0, until = 1, offset = 0, step = 1;
            if (n) {
                offset = s * c->w.dilation[last] - c->w.begin[last];
                step = c->w.stride[last];
                po_window_clip(c->out_row, step, offset, c->in_row, &from, &until);
            }
            if (until <= from)
                continue;
            const double *row = in + base + from * step + offset;
            const double *a = w + t + s;
            if (rows == 4) {
                double four[4] = {a[0], a[w_step], a[2 * w_step], a[3 * w_step]};
                po_axpy4(to + from, c->out_plane, row, step, four, until - from);
            } else {
                for (int64_t r = 0; r < rows; r++)
                    po_axpy(to + r * c->out_plane + from, 1, row, step, a[r * w_step],
                            until - from);
            }
        }
        po_next_index(last, c->w.kernel, tap);
    }
}

/* One image, one group. */
static void conv_group(const conv *c, const double *in, const double *w, double *out) {
    int64_t at[PO_MAX_RANK] = {0};
    int64_t w_step = c->in_channels * c->taps;
    do {
        int64_t row = 0;
        for (uint32_t k = 0; k < c->outer; k++)
            row += at[k] * c->out_strides[k];
        for (int64_t k = 0; k < c->out_channels; k += 4) {
            int64_t rows = c->out_channels - k < 4 ? c->out_channels - k : 4;
            for (int64_t ch = 0; ch < c->in_channels; ch++)
                add_channel(c, in + ch * c->in_plane, w + k * w_step + ch * c->taps, w_step, rows,
                            out + k * c->out_plane + row, at);
        }
    } while (po_next_index(c->outer, c->out->dims + 2, at));
}

/* A kernel of one tap that moves nothing is a matrix product. */
static bool is_pointwise(const conv *c) {
    for (uint32_t k = 0; k < c->w.n; k++)
        if (c->w.stride[k] != 1 || c->w.begin[k] != 0 || c->w.end[k] != 0)
            return false;
    return c->taps == 1;
}

po_status po_ref_conv(po_ref *ref) {
    conv c;
    PO_TRY(prepare(ref, &c, false));
    if (c.out->count == 0)
        return PO_OK;
    bool pointwise = is_pointwise(&c);
    int64_t w_size = c.out_channels * c.in_channels * c.taps;
    for (int64_t n = 0; n < c.out->dims[0]; n++)
        for (int64_t g = 0; g < c.group; g++) {
            const double *in = c.x->f + (n * c.group + g) * c.in_channels * c.in_plane;
            double *out = c.out->f + (n * c.group + g) * c.out_channels * c.out_plane;
            const double *w = c.weights->f + g * w_size;
            if (pointwise)
                po_gemm(c.out_channels, c.out_plane, c.in_channels, w, c.in_channels, 1, in,
                        c.in_plane, 1, out, c.out_plane);
            else
                conv_group(&c, in, w, out);
        }
    add_bias(&c, po_ref_in(ref, 2));
    return PO_OK;
}

/* Scatters one input plane into one output plane. */
static void scatter_plane(const conv *c, const double *in, const double *w, double *out) {
    int64_t at[PO_MAX_RANK] = {0};
    uint32_t n = c->w.n, last = c->outer;
    do {
        int64_t row = 0, tap[PO_MAX_RANK] = {0};
        for (uint32_t k = 0; k < last; k++)
            row += at[k] * c->in_strides[k];
        for (int64_t t = 0; t < c->taps; t++) {
            int64_t base = 0, from = 0, until = 1, offset = 0, step = 1;
            bool inside = true;
            for (uint32_t k = 0; k < last && inside; k++) {
                int64_t p = at[k] * c->w.stride[k] + tap[k] * c->w.dilation[k] - c->w.begin[k];
                inside = p >= 0 && p < c->out->dims[2 + k];
                base += p * c->out_strides[k];
            }
            if (n) {
                offset = tap[last] * c->w.dilation[last] - c->w.begin[last];
                step = c->w.stride[last];
                po_window_clip(c->in_row, step, offset, c->out_row, &from, &until);
            }
            if (inside && until > from)
                po_axpy(out + base + from * step + offset, step, in + row + from, 1, w[t],
                        until - from);
            po_next_index(n, c->w.kernel, tap);
        }
    } while (po_next_index(last, c->x->dims + 2, at));
}

po_status po_ref_conv_transpose(po_ref *ref) {
    conv c;
    PO_TRY(prepare(ref, &c, true));
    for (int64_t n = 0; n < c.out->dims[0] && c.in_plane && c.out_plane; n++)
        for (int64_t k = 0; k < c.group * c.out_channels; k++) {
            int64_t g = k / c.out_channels;
            double *out = c.out->f + (n * c.group * c.out_channels + k) * c.out_plane;
            for (int64_t ch = g * c.in_channels; ch < (g + 1) * c.in_channels; ch++)
                scatter_plane(&c, c.x->f + (n * c.group * c.in_channels + ch) * c.in_plane,
                              c.weights->f + (ch * c.out_channels + k % c.out_channels) * c.taps,
                              out);
        }
    add_bias(&c, po_ref_in(ref, 2));
    return PO_OK;
}

/* --- attributes --- */

const po_attr_def po_attrs_conv[] = {
    {.name = "auto_pad", .kind = PO_ATTR_STRING, .since = 1, .has_default = true, .s = "NOTSET"},
    {.name = "dilations", .kind = PO_ATTR_INTS, .since = 1},
    {.name = "group", .kind = PO_ATTR_INT, .since = 1, .has_default = true, .i = 1},
    {.name = "kernel_shape", .kind = PO_ATTR_INTS, .since = 1},
    {.name = "pads", .kind = PO_ATTR_INTS, .since = 1},
    {.name = "strides", .kind = PO_ATTR_INTS, .since = 1},
    {0},
};

const po_attr_def po_attrs_conv_transpose[] = {
    {.name = "auto_pad", .kind = PO_ATTR_STRING, .since = 1, .has_default = true, .s = "NOTSET"},
    {.name = "dilations", .kind = PO_ATTR_INTS, .since = 1},
    {.name = "group", .kind = PO_ATTR_INT, .since = 1, .has_default = true, .i = 1},
    {.name = "kernel_shape", .kind = PO_ATTR_INTS, .since = 1},
    {.name = "output_padding", .kind = PO_ATTR_INTS, .since = 1},
    {.name = "output_shape", .kind = PO_ATTR_INTS, .since = 1},
    {.name = "pads", .kind = PO_ATTR_INTS, .since = 1},
    {.name = "strides", .kind = PO_ATTR_INTS, .since = 1},
    {0},
};
