/* One-dimensional convolutions as two-dimensional ones of height 1: the runtime's blocked layout is
 * made for maps of rank 4. Values [N, C, L] have twins [N, C, 1, L]; what lies between the
 * convolutions (activations, sums, pools, padding, batch normalisation, concatenation) goes along,
 * so that a network is turned over once. Nothing is computed differently. */
#include "ops/conv_view.h"
#include "ops/recipe/recipe.h"
#include "rewrite/layout/relayout.h"
#include "rewrite/passes.h"

enum { RANK = 3 };

static po_value_id add_axis(po_relayout *r, po_node_id at, po_value_id x, po_op_id op, int64_t axis,
                            const po_type *type) {
    return po_relayout_axes(r, at, x, op, 1, &axis, type);
}

static po_value_id turned(po_relayout *r, po_node_id at, po_value_id x, const int64_t perm[4]) {
    return po_add_transpose(r->graph, at, x, 4, perm, NULL);
}

/* Transpose of [N, L, C] to [N, C, L] or back. */
static bool is_turn(const po_node *n) {
    uint32_t count;
    const int64_t *perm = n && n->op == PO_OP_Transpose ? po_node_ints(n, "perm", &count) : NULL;
    return perm && count == RANK && perm[0] == 0 && perm[1] == 2 && perm[2] == 1;
}

/* [N, L, C] as [N, 1, L, C]. By Reshape where dims are known: runtimes move Transposes past
 * Unsqueeze, and then find no turn to join. */
static po_value_id to_rows(po_relayout *r, po_node_id at, po_value_id x) {
    const po_type *t = &r->graph->values[x].type;
    po_type unknown = po_type_unranked(t->dtype);
    if (!po_type_static(t) || t->rank != RANK)
        return add_axis(r, at, x, PO_OP_Unsqueeze, 1, &unknown);
    return po_add_reshape(
        r->graph, at, x, 4,
        (const int64_t[]){t->dims[0].value, 1, t->dims[1].value, t->dims[2].value});
}

static po_value_id to_plane(po_relayout *r, po_node_id at, po_value_id x) {
    const po_type *t = &r->graph->values[x].type;
    po_type type = po_type_unranked(t->dtype);
    /* Channels last: the runtime joins a turn of rank 4 with its own change of layout. */
    const po_node *made = po_graph_producer(r->graph, x);
    if (is_turn(made)) {
        po_value_id rows = to_rows(r, at, made->in[0]);
        return turned(r, at, rows, (const int64_t[]){0, 3, 1, 2});
    }
    if (t->has_rank && t->rank == RANK)
        type = po_type_tensor(r->graph->arena, t->dtype, 4,
                              (po_dim[]){t->dims[0], t->dims[1], PO_DIM(1), t->dims[2]});
    return add_axis(r, at, x, PO_OP_Unsqueeze, 2, &type);
}

static po_value_id from_plane(po_relayout *r, po_node_id at, po_value_id old, const po_type *type) {
    return add_axis(r, at, r->twin[old], PO_OP_Squeeze, 2, type);
}

/* A list over the one map axis becomes one over two; `pairs` is 2 for pads (begins, then ends). */
static void widen(po_relayout *r, po_node_id node, const char *name, uint32_t pairs, int64_t fill) {
    uint32_t n;
    const int64_t *v = po_node_ints(&r->graph->nodes[node], name, &n);
    if (!v || n != pairs)
        return;
    int64_t wide[4];
    for (uint32_t i = 0; i < pairs; i++) {
        wide[2 * (size_t)i] = fill;
        wide[2 * i + 1] = v[i];
    }
    po_node_set_ints(r->graph, node, name, 2 * pairs, wide);
}

static po_value_id copy_window(po_relayout *r, po_node_id node, const po_value_id *in,
                               uint32_t n_in) {
    po_value_id y = po_relayout_copy(r, node, in, n_in);
    po_node_id made = r->graph->values[y].producer;
    widen(r, made, "kernel_shape", 1, 1);
    widen(r, made, "strides", 1, 1);
    widen(r, made, "dilations", 1, 1);
    widen(r, made, "pads", 2, 0);
    widen(r, made, "output_padding", 1, 0);
    return y;
}

/* [A, B, k] as [A, B, 1, k]: the same bytes. */
static po_value_id wide_weights(po_relayout *r, po_value_id weights) {
    const po_tensor *t = po_graph_constant(r->graph, weights);
    return po_add_reshaped(r->graph, weights, 4,
                           (const int64_t[]){t->dims[0], t->dims[1], 1, t->dims[2]});
}

static bool is_conv(const po_graph *graph, const po_node *n) {
    const po_tensor *w =
        (po_conv_is_either(n)) && n->n_in > 1 ? po_graph_constant(graph, n->in[1]) : NULL;
    /* An explicit output shape lists the map axes as well: left alone. */
    return w && w->rank == RANK && w->dtype == PO_F32 && !po_node_attr(n, "output_shape");
}

/* A norm over the map between a convolution of few channels and whatever comes: the norm has no
 * blocked form, and turning the wide result back costs more than such a convolution gains. */
static bool stays(const po_relayout *r, const po_node *n) {
    const po_value *y = &r->graph->values[n->out[0]];
    const po_tensor *w = po_graph_constant(r->graph, n->in[1]);
    if (po_relayout_has(r, n->in[0]) || w->dims[1] >= PO_CHANNEL_BLOCK || !po_conv_is(n))
        return false;
    for (uint32_t i = 0; i < y->n_uses; i++)
        if (r->graph->nodes[y->uses[i].node].op != PO_OP_InstanceNormalization)
            return false;
    return y->n_uses > 0;
}

static bool convert_conv(po_relayout *r, po_node_id id) {
    const po_node *n = &r->graph->nodes[id];
    if (!is_conv(r->graph, n) || stays(r, n))
        return false;
    uint32_t n_in = n->n_in;
    po_value_id in[3] = {n->in[0], n->in[1], n_in > 2 ? n->in[2] : PO_NONE};
    in[0] = po_relayout_twin(r, id, in[0]);
    in[1] = wide_weights(r, in[1]);
    po_relayout_set(r, id, copy_window(r, id, in, n_in));
    return true;
}

static bool convert_pool(po_relayout *r, po_node_id id) {
    const po_node *n = &r->graph->nodes[id];
    switch ((po_op)n->op) {
    case PO_OP_MaxPool:
    case PO_OP_AveragePool:
    case PO_OP_GlobalAveragePool:
    case PO_OP_GlobalMaxPool:
    case PO_OP_BatchNormalization:
        break;
    default:
        return false;
    }
    if (!po_relayout_has(r, n->in[0]) || n->n_in > 5)
        return false;
    po_value_id in[5];
    memcpy(in, n->in, n->n_in * sizeof *in);
    in[0] = r->twin[n->in[0]];
    po_relayout_set(r, id, copy_window(r, id, in, n->n_in));
    return true;
}

/* Padding by constants: two more zeros for the new axis. */
static bool convert_pad(po_relayout *r, po_node_id id) {
    const po_node *n = &r->graph->nodes[id];
    const po_tensor *t =
        n->op == PO_OP_Pad && n->n_in >= 2 ? po_graph_constant(r->graph, n->in[1]) : NULL;
    if (!t || t->count != INT64_C(2) * RANK || !po_relayout_has(r, n->in[0]) ||
        (n->n_in > 3 && n->in[3] != PO_NONE))
        return false;
    int64_t wide[8] = {0};
    for (int i = 0; i < RANK; i++) {
        int to = i < 2 ? i : i + 1;
        wide[to] = po_tensor_int(t, i);
        wide[4 + to] = po_tensor_int(t, RANK + i);
    }
    uint32_t n_in = n->n_in > 3 ? 3 : n->n_in;
    po_value_id in[3] = {r->twin[n->in[0]], PO_NONE, n_in > 2 ? n->in[2] : PO_NONE};
    in[1] = po_add_i64s(r->graph, NULL, 8, wide);
    po_relayout_set(r, id, po_relayout_copy(r, id, in, n_in));
    return true;
}

static bool convert_concat(po_relayout *r, po_node_id id) {
    const po_node *n = &r->graph->nodes[id];
    if (n->op != PO_OP_Concat || po_node_int(n, "axis", 0) != 1)
        return false;
    uint32_t n_in = n->n_in, known = 0;
    po_value_id *in = po_arena_memdup(r->arena, n->in, n_in * sizeof *in);
    for (uint32_t i = 0; i < n_in; i++)
        known += po_relayout_has(r, in[i]);
    if (known != n_in)
        return false;
    for (uint32_t i = 0; i < n_in; i++)
        in[i] = r->twin[in[i]];
    po_relayout_set(r, id, po_relayout_copy(r, id, in, n_in));
    return true;
}

/* A constant [C, 1] or [1, C, 1] beside a map. */
static int behind_channels(const po_relayout *r, po_value_id constant, po_value_id x) {
    const po_tensor *t = po_graph_constant(r->graph, constant);
    bool channels = t->rank >= 2 && t->rank <= RANK && t->dims[t->rank - 1] == 1 &&
                    (t->rank < RANK || t->dims[0] == 1) &&
                    t->dims[t->rank - 2] == po_dim_of(r->graph, x, 1);
    return channels ? 2 : -1;
}

/* Back to channels last, in rank 4 for the same reason. */
static bool convert_turn(po_relayout *r, po_node_id id) {
    const po_node *n = &r->graph->nodes[id];
    if (!is_turn(n) || !po_relayout_has(r, n->in[0]))
        return false;
    po_value_id y = n->out[0];
    po_type type = r->graph->values[y].type;
    po_value_id rows = turned(r, id, r->twin[n->in[0]], (const int64_t[]){0, 2, 3, 1});
    if (po_type_static(&type) && type.rank == RANK)
        rows = po_add_reshape(
            r->graph, id, rows, RANK,
            (const int64_t[]){type.dims[0].value, type.dims[1].value, type.dims[2].value});
    else
        rows = add_axis(r, id, rows, PO_OP_Squeeze, 1, &type);
    po_substitute(r->graph, y, rows);
    return true;
}

/* Two convolutions that read one another, or one wide enough to gain by itself. */
static bool worth_turning(const po_graph *graph) {
    for (po_node_id i = 0; i < graph->n_nodes; i++) {
        const po_node *n = &graph->nodes[i];
        if (n->removed || !is_conv(graph, n))
            continue;
        const po_tensor *w = po_graph_constant(graph, n->in[1]);
        if (w->dims[0] >= PO_CHANNEL_BLOCK)
            return true;
    }
    return false;
}

po_status po_use_planes(po_ctx *ctx, po_graph *graph, po_rewriting *state) {
    (void)ctx;
    if (po_model_opset(graph->model, "") < 7 || !worth_turning(graph))
        return PO_OK;
    static const po_relayout_law laws[] = {
        {PO_LAW_PLANES, convert_conv},      {PO_LAW_PLANES_POOL, convert_pool},
        {PO_LAW_PLANES_PAD, convert_pad},   {PO_LAW_PLANES_CONCAT, convert_concat},
        {PO_LAW_PLANES_TURN, convert_turn}, {PO_LAWS, po_relayout_elementwise}};
    po_relayout r = {.enter = to_plane, .leave = from_plane, .behind_channels = behind_channels};
    po_relayout_graph(&r, graph, state, RANK, laws, sizeof laws / sizeof *laws);
    return PO_OK;
}
