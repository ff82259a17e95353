/* Reads convolutions through their window (window.h), and writes its lists. */
#include "ops/conv_view.h"

#include "base/num.h"
#include "ops/window.h"

bool po_conv_is(const po_node *node) {
    return node && node->op == PO_OP_Conv;
}

bool po_conv_is_transposed(const po_node *node) {
    return node && node->op == PO_OP_ConvTranspose;
}

bool po_conv_is_either(const po_node *node) {
    return po_conv_is(node) || po_conv_is_transposed(node);
}

const po_node *po_made_by_conv(const po_graph *graph, po_value_id value) {
    return po_made_by(graph, value, PO_OP_Conv);
}

const po_node *po_made_alone_by_conv(const po_graph *graph, po_value_id value) {
    return po_made_alone_by(graph, value, PO_OP_Conv);
}

bool po_read_by_conv(const po_graph *graph, const po_use *use) {
    return use->input == 0 && po_conv_is(&graph->nodes[use->node]);
}

bool po_conv_window(const po_graph *graph, const po_node *node, po_conv *c) {
    po_window w;
    if (!po_window_of(graph, node, c->n, &w) || w.output_given || w.ceil)
        return false;
    for (uint32_t i = 0; i < c->n; i++) {
        c->kernel[i] = w.kernel[i];
        c->extra[i] = w.extra[i];
        c->stride[i] = w.stride[i];
        c->dilation[i] = w.dilation[i];
        c->before[i] = w.begin[i];
        c->after[i] = w.end[i];
    }
    return true;
}

static int64_t dim(const po_graph *graph, po_value_id value, int axis, int rank) {
    return po_rank_of(graph, value) == rank ? po_dim_of(graph, value, axis) : -1;
}

bool po_conv_view(const po_graph *graph, po_node_id id, po_conv *conv) {
    const po_node *n = &graph->nodes[id];
    const bool transposed = po_conv_is_transposed(n);
    if (n->removed || !po_conv_is_either(n) || n->n_in < 2 || n->in[0] == PO_NONE ||
        n->in[1] == PO_NONE)
        return false;
    const int rank = po_rank_of(graph, n->in[1]);
    if (rank < 3 || rank > 2 + PO_MAP_AXES)
        return false;
    po_conv c = {.node = id,
                 .x = n->in[0],
                 .w = n->in[1],
                 .b = n->n_in > 2 ? n->in[2] : PO_NONE,
                 .y = n->out[0],
                 .n = (uint32_t)rank - 2,
                 .group = po_node_int(n, "group", 1),
                 .weights = po_graph_constant(graph, n->in[1])};
    c.dtype = graph->values[c.w].type.dtype;
    c.bias = c.b == PO_NONE ? NULL : po_graph_constant(graph, c.b);
    const int64_t first = po_dim_of(graph, c.w, 0), second = po_dim_of(graph, c.w, 1);
    if (c.group < 1 || first < 1 || second < 1 || first % c.group ||
        !po_mul_i64(second, c.group, &c.in))
        return false;
    c.out = first;
    if (transposed) {
        c.out = c.in;
        c.in = first;
    }
    c.batch = dim(graph, c.x, 0, rank);
    const int64_t channels = dim(graph, c.x, 1, rank), made = dim(graph, c.y, 1, rank);
    if ((channels >= 0 && channels != c.in) || (made >= 0 && made != c.out))
        return false;
    for (uint32_t i = 0; i < c.n; i++) {
        c.size[i] = dim(graph, c.x, (int)i + 2, rank);
        c.to[i] = dim(graph, c.y, (int)i + 2, rank);
    }
    if (!po_conv_window(graph, n, &c))
        return false;
    *conv = c;
    return true;
}

bool po_conv_fits(const po_conv *c) {
    if (c->batch < 1)
        return false;
    for (uint32_t i = 0; i < c->n; i++) {
        const int64_t span = c->dilation[i] * (c->kernel[i] - 1) + 1;
        const int64_t room = c->size[i] + c->before[i] + c->after[i] - span;
        if (c->size[i] < 1 || c->extra[i] || room < 0 || room / c->stride[i] + 1 != c->to[i])
            return false;
    }
    return true;
}

static bool ones(const po_conv *c, const int64_t *list) {
    for (uint32_t i = 0; i < c->n; i++)
        if (list[i] != 1)
            return false;
    return true;
}

bool po_conv_stride_one(const po_conv *c) {
    return ones(c, c->stride);
}

bool po_conv_dilation_one(const po_conv *c) {
    return ones(c, c->dilation);
}

bool po_conv_padded(const po_conv *c) {
    for (uint32_t i = 0; i < c->n; i++)
        if (c->before[i] || c->after[i])
            return true;
    return false;
}

bool po_conv_is_pointwise(const po_conv *c) {
    return c->group == 1 && po_conv_taps(c) == 1 && po_conv_stride_one(c) && !po_conv_padded(c);
}

int64_t po_conv_taps(const po_conv *c) {
    int64_t taps = 1;
    for (uint32_t i = 0; i < c->n; i++)
        taps *= c->kernel[i];
    return taps;
}

double po_conv_work(const po_conv *c) {
    double work = (double)c->batch * (double)c->out * (double)(c->in / c->group);
    for (uint32_t i = 0; i < c->n; i++)
        work *= (double)c->to[i] * (double)c->kernel[i];
    return work;
}

void po_conv_set_lists(po_graph *graph, po_node_id id, const po_conv *c) {
    po_node_set_ints(graph, id, "kernel_shape", c->n, c->kernel);
    if (c->group != 1)
        po_node_set_int(graph, id, "group", c->group);
    if (!po_conv_stride_one(c))
        po_node_set_ints(graph, id, "strides", c->n, c->stride);
    if (!po_conv_dilation_one(c))
        po_node_set_ints(graph, id, "dilations", c->n, c->dilation);
    if (!po_conv_padded(c))
        return;
    int64_t pads[2 * PO_MAP_AXES];
    for (uint32_t i = 0; i < c->n; i++) {
        pads[i] = c->before[i];
        pads[c->n + i] = c->after[i];
    }
    po_node_set_ints(graph, id, "pads", 2 * c->n, pads);
}

po_value_id po_add_conv(po_graph *graph, po_node_id place, po_value_id x, po_value_id w,
                        po_value_id b, const po_conv *conv, const po_type *type) {
    const po_type unknown = po_type_unranked(graph->values[x].type.dtype);
    const po_value_id in[3] = {x, w, b};
    po_value_id y =
        po_add_op(graph, place, PO_OP_Conv, b == PO_NONE ? 2 : 3, in, type ? type : &unknown);
    po_conv_set_lists(graph, graph->values[y].producer, conv);
    return y;
}

po_conv po_conv_of_one_tap(po_dtype dtype, uint32_t n, int64_t in, int64_t out, int64_t group) {
    po_conv c = {.node = PO_NONE,
                 .x = PO_NONE,
                 .w = PO_NONE,
                 .b = PO_NONE,
                 .y = PO_NONE,
                 .dtype = dtype,
                 .n = n,
                 .in = in,
                 .out = out,
                 .group = group};
    for (uint32_t i = 0; i < n; i++)
        c.kernel[i] = c.stride[i] = c.dilation[i] = 1;
    return c;
}

bool po_conv_same_windows(const po_conv *a, const po_conv *b) {
    return a->n == b->n && memcmp(a->kernel, b->kernel, sizeof a->kernel) == 0 &&
           memcmp(a->stride, b->stride, sizeof a->stride) == 0 &&
           memcmp(a->dilation, b->dilation, sizeof a->dilation) == 0 &&
           memcmp(a->before, b->before, sizeof a->before) == 0 &&
           memcmp(a->after, b->after, sizeof a->after) == 0;
}

/* Padding is 0 on an axis that is put in, the others 1. */
enum { LISTS = 7, OF_ONES = 5 };
#define LISTS_OF(c)                                                                                \
    { (c).size, (c).to, (c).kernel, (c).stride, (c).dilation, (c).before, (c).after }

po_conv po_conv_without_axis(const po_conv *conv, uint32_t axis) {
    po_conv c = *conv;
    int64_t *lists[LISTS] = LISTS_OF(c);
    for (uint32_t k = 0; k < LISTS; k++)
        memmove(&lists[k][axis], &lists[k][axis + 1], (c.n - axis - 1) * sizeof(int64_t));
    c.n--;
    return c;
}

po_conv po_conv_with_axis(const po_conv *conv, uint32_t axis) {
    po_conv c = *conv;
    int64_t *lists[LISTS] = LISTS_OF(c);
    for (uint32_t k = 0; k < LISTS; k++) {
        memmove(&lists[k][axis + 1], &lists[k][axis], (c.n - axis) * sizeof(int64_t));
        lists[k][axis] = k < OF_ONES;
    }
    c.n++;
    return c;
}
