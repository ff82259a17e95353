/* Composition of linear operators where it saves multiplications: a pointwise convolution followed
 * by any, means and average pools before pointwise convolutions. */
#include "base/num.h"
#include "ops/window.h"
#include "rewrite/conv/conv.h"
#include "rewrite/deriving.h"
#include "rewrite/pattern.h"
#include "rewrite/spelling/match.h"

/* Bounds the time spent on one product of weights (about a second). */
#define MOST_PRODUCTS 1e9

/* --- one after the other --- */

/* K2 b1 + b2: a sum over what the first makes and the taps of the second. */
static po_value_id bias_of(po_deriving *d, po_value_id w2, po_value_id b1, po_value_id b2,
                           int64_t between, int64_t taps) {
    double *ones = PO_NEW_N(d->arena, double, taps);
    for (int64_t i = 0; i < taps; i++)
        ones[i] = 1;
    b1 = po_mk_reshape(d, b1, 2, (const int64_t[]){between, 1});
    if (taps > 1)
        b1 = po_mk_binary(d, PO_OP_Mul, b1, po_mk_table(d, 2, (const int64_t[]){1, taps}, ones));
    b1 = po_mk_einsum(d, "omt,mt->o", 2, (const po_value_id[]){w2, b1});
    return b2 == PO_NONE ? b1 : po_mk_binary(d, PO_OP_Add, b2, b1);
}

/* K2 (K1 x + b1) + b2 = (K2 K1) x + (K2 b1 + b2) where one of them is pointwise. With padding the
 * inner bias would be seen by border windows too, so it must be absent there. Saves where the
 * composed weights are no larger than what goes away. */
po_status po_compose_convs(po_deriving *d, po_node_id id) {
    po_conv outer, inner;
    if (!po_conv_at(d, id, &outer) || !po_conv_making(d, outer.x, &inner) || outer.group != 1 ||
        inner.group != 1 || inner.dtype != outer.dtype || !po_conv_ready(d, &outer) ||
        !po_conv_ready(d, &inner))
        return PO_OK;
    const bool before = po_conv_is_pointwise(&inner), behind = po_conv_is_pointwise(&outer);
    const bool shifted = inner.b != PO_NONE && !(inner.bias && po_all_equal(inner.bias, 0));
    if ((!before && !behind) || (shifted && po_conv_padded(&outer)))
        return PO_OK;
    /* For each position between them (the outer's strides make its own rarer). */
    const int64_t taps = po_conv_taps(&outer), first = po_conv_taps(&inner);
    double rate = (double)taps;
    for (uint32_t i = 0; i < outer.n; i++)
        rate /= (double)outer.stride[i];
    const double apart =
        (double)(outer.out * outer.in) * rate +
        (po_read_once(d->from, inner.y) ? (double)(inner.out * inner.in * first) : 0);
    const double together = (double)(outer.out * inner.in * first) * rate;
    if (together > apart ||
        (double)(outer.out * outer.in) * (double)(inner.in * taps * first) > MOST_PRODUCTS)
        return PO_OK;
    po_derive_begin(d, id);
    const po_conv *window = before ? &outer : &inner;
    int64_t dims[PO_MOST_DIMS] = {outer.out, inner.in};
    memcpy(&dims[2], window->kernel, window->n * sizeof *dims);
    po_value_id w2 = po_mk_reshape(d, outer.w, 3, (const int64_t[]){outer.out, outer.in, taps});
    po_value_id w = po_mk_reshape(d, inner.w, 3, (const int64_t[]){inner.out, inner.in, first});
    w = po_mk_einsum(d, "omt,mis->oits", 2, (const po_value_id[]){w2, w});
    w = po_mk_reshape(d, w, window->n + 2, dims);
    po_value_id b = shifted ? bias_of(d, w2, inner.b, outer.b, inner.out, taps) : outer.b;
    return po_derive_done(d, po_mk_conv(d, inner.x, w, b, window),
                          before ? "pointwise before" : "pointwise behind");
}

/* --- means --- */

/* Runtimes add up a pooled map in one long sum: of more elements that is not exact enough. */
enum { SHORT_SUM = 64 * 64 };

/* Of a map. K magnifies what the mean is off by, where its rows cancel: that of a large map, or of
 * one that may be large, is taken by rows, and so on for each axis. */
static po_value_id mean_of_map(po_graph *graph, po_node_id id, po_value_id x, uint32_t maps) {
    const po_type *t = &graph->values[x].type;
    const po_type narrow = po_type_unranked(t->dtype);
    int64_t count = 1;
    for (uint32_t i = 0; i < maps && count > 0; i++) {
        const int64_t each = po_dim_of(graph, x, (int)i + 2);
        count = each < 0 || !po_mul_i64(count, each, &count) ? -1 : count;
    }
    if (count >= 0 && count <= SHORT_SUM)
        return po_add_op(graph, id, PO_OP_GlobalAveragePool, 1, &x, &narrow);
    po_match m = {0};
    po_match_value(&m, 'x', x);
    for (uint32_t axis = maps + 1; axis >= 2; axis--) {
        po_match_number(&m, 'k', axis);
        po_match_value(&m, 'x', po_write(graph, id, &m, "ReduceMean[k](x)"));
    }
    return po_matched(&m, 'x');
}

/* The pointwise convolution, of any number of axes, that makes the value. */
static bool pointwise_made(const po_graph *graph, po_value_id v, po_conv *c) {
    const int rank = po_rank_of(graph, v);
    const po_node_id made = graph->values[v].producer;
    return made != PO_NONE &&
           po_conv_read_maps(graph, made, rank < 0 ? 2 : (uint32_t)(rank - 2), c) &&
           po_conv_is_pointwise(c);
}

/* mean(K x + b) = K mean(x) + b for a pointwise convolution. Where the convolution of the whole map
 * has other readers, cheaper only if it widens. */
bool po_mean_first(po_rewriting *r, po_graph *graph, po_node_id id) {
    (void)r;
    const po_node *n = &graph->nodes[id];
    po_conv c;
    if (n->op != PO_OP_GlobalAveragePool || !pointwise_made(graph, n->in[0], &c) ||
        (c.out < c.in && !po_read_once(graph, n->in[0])))
        return false;
    po_value_id y = n->out[0];
    po_type type = graph->values[y].type;
    po_value_id mean = mean_of_map(graph, id, c.x, c.n);
    po_value_id made = po_conv_add(graph, id, mean, &c, c.w, c.b);
    graph->values[made].type = type;
    po_substitute(graph, y, made);
    return true;
}

/* A convolution made it, perhaps through element-wise nodes: it lies in the runtime's blocks. */
static bool in_blocks(const po_graph *graph, po_value_id v, int depth) {
    enum { DEEPEST = 4 };
    const po_node *n = po_graph_producer(graph, v);
    po_conv c;
    bool made = po_conv_made(graph, v, &c);
    if (!n || depth == DEEPEST || !po_op_has(n->op, PO_OPF_ELEMENTWISE))
        return made;
    for (uint32_t i = 0; i < n->n_in && !made; i++)
        made = n->in[i] != PO_NONE && in_blocks(graph, n->in[i], depth + 1);
    return made;
}

static bool over_map(const po_graph *graph, const po_node *n) {
    enum { MOST = 4 };
    uint32_t axes[MOST];
    const uint32_t count = po_reduced_axes(graph, n, MOST, axes);
    bool seen[2] = {false, false};
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t axis = axes[i];
        if (axis < 2 || axis > 3)
            return false;
        seen[axis - 2] = true;
    }
    return seen[0] && seen[1];
}

/* ReduceMean or ReduceMax over both map axes as a global pool, which keeps to the runtime's blocks;
 * other rewrites look for it. */
bool po_reduction_as_pool(po_rewriting *r, po_graph *graph, po_node_id id) {
    (void)r;
    const po_node n = graph->nodes[id];
    const bool mean = n.op == PO_OP_ReduceMean;
    if ((!mean && n.op != PO_OP_ReduceMax) || graph->values[n.in[0]].type.dtype != PO_F32 ||
        po_rank_of(graph, n.in[0]) != 4 || !over_map(graph, &n) || !in_blocks(graph, n.in[0], 0))
        return false;
    const po_type *x = &graph->values[n.in[0]].type;
    if (mean && x->dims[2].value > 0 && x->dims[2].value * x->dims[3].value > SHORT_SUM)
        return false;
    const po_type type = graph->values[n.out[0]].type;
    po_type whole = po_type_tensor(graph->arena, x->dtype, 4,
                                   (po_dim[]){x->dims[0], x->dims[1], PO_DIM(1), PO_DIM(1)});
    const po_op_id pool = mean ? PO_OP_GlobalAveragePool : PO_OP_GlobalMaxPool;
    po_value_id y = po_add_op(graph, id, pool, 1, n.in, &whole);
    if (!po_op_int(graph, &n, "keepdims"))
        y = po_add_op(graph, id, PO_OP_Flatten, 1, &y, &type);
    po_substitute(graph, n.out[0], y);
    return true;
}

/* The same for an average pool that makes the map smaller (transitions of DenseNets). Padding
 * would take a part of the bias, or the whole of it where a window sees nothing else. */
bool po_pool_first(po_rewriting *r, po_graph *graph, po_node_id id) {
    (void)r;
    const po_node n = graph->nodes[id];
    po_conv c;
    po_window w;
    if (n.op != PO_OP_AveragePool || !po_read_once(graph, n.in[0]) ||
        !pointwise_made(graph, n.in[0], &c) || !po_window_of(graph, &n, c.n, &w))
        return false;
    bool padded = w.ceil, strided = false;
    for (uint32_t i = 0; i < c.n; i++) {
        padded = padded || w.begin[i] || w.end[i];
        strided = strided || w.stride[i] > 1;
    }
    if (!strided)
        return false;
    if (padded && c.bias)
        return false;
    po_type type = graph->values[n.out[0]].type, narrow = po_type_unranked(c.dtype);
    po_value_id pooled = po_add_like(graph, id, &n, 1, &c.x, &narrow);
    po_value_id made = po_conv_add(graph, id, pooled, &c, c.w, c.b);
    graph->values[made].type = type;
    po_substitute(graph, n.out[0], made);
    return true;
}
