/* Nodes whose output is one of their inputs. Each question below answers which input that is, or
 * PO_NONE. A broadcast that changes the shape is never an identity, so every answer for a binary
 * operator needs the output's shape to be known as the input's. */
#include "rewrite/passes.h"

/* The constant's shape cannot widen x: no rank above x's, each dim 1. */
static bool broadcasts_into(const po_graph *graph, po_value_id constant, po_value_id x) {
    const po_tensor *c = po_graph_constant(graph, constant);
    if (!c || po_rank_of(graph, x) < (int)c->rank)
        return false;
    for (uint32_t i = 0; i < c->rank; i++)
        if (c->dims[i] != 1 && c->dims[i] != po_dim_of(graph, x, (int)i - (int)c->rank))
            return false;
    return true;
}

/* x where the other operand is a constant of `neutral` alone. */
static po_value_id beside(const po_graph *graph, const po_node *n, double neutral) {
    const uint32_t ways = po_op_has(n->op, PO_OPF_COMMUTATIVE) ? 2 : 1;
    for (uint32_t k = 0; k < ways; k++) {
        po_value_id x = n->in[k], c = n->in[1 - k];
        const po_tensor *t = po_graph_constant(graph, c);
        if (t && po_all_equal(t, neutral) && broadcasts_into(graph, c, x))
            return x;
    }
    return PO_NONE;
}

static po_value_id factor_one(const po_graph *graph, const po_node *n) {
    return beside(graph, n, 1);
}

static po_value_id summand_zero(const po_graph *graph, const po_node *n) {
    return beside(graph, n, 0);
}

static po_value_id cast(const po_graph *graph, const po_node *n) {
    po_dtype from = graph->values[n->in[0]].type.dtype;
    return from != PO_DT_NONE && (int64_t)from == po_op_int(graph, n, "to") ? n->in[0] : PO_NONE;
}

static po_value_id transpose(const po_graph *graph, const po_node *n) {
    uint32_t rank;
    const int64_t *perm = po_node_ints(n, "perm", &rank);
    if (!perm)
        return po_rank_of(graph, n->in[0]) >= 0 && po_rank_of(graph, n->in[0]) <= 1 ? n->in[0]
                                                                                    : PO_NONE;
    for (uint32_t i = 0; i < rank; i++)
        if (perm[i] != (int64_t)i)
            return PO_NONE;
    return n->in[0];
}

/* Reshape, Expand, Tile, Slice, Flatten and their kind: the same static or symbolic shape. For
 * those that move data (Slice) equal shapes mean that nothing was left out only with step 1. */
static po_value_id keeps_shape(const po_graph *graph, const po_node *n) {
    bool same = graph->values[n->in[0]].type.dtype == graph->values[n->out[0]].type.dtype;
    return same && po_same_dims(graph, n->in[0], n->out[0]) ? n->in[0] : PO_NONE;
}

/* An input that is left out, or a constant of this number alone. */
static bool left_at(const po_graph *graph, const po_node *n, uint32_t input, double number) {
    const bool given = n->n_in > input && n->in[input] != PO_NONE;
    const po_tensor *t = given ? po_graph_constant(graph, n->in[input]) : NULL;
    return !given || (t && po_all_equal(t, number));
}

static po_value_id slice(const po_graph *graph, const po_node *n) {
    return left_at(graph, n, 4, 1) ? keeps_shape(graph, n) : PO_NONE;
}

static bool all_of(const po_node *n, const char *name, int64_t value) {
    uint32_t count;
    const int64_t *list = po_node_ints(n, name, &count);
    for (uint32_t i = 0; i < count; i++)
        if (list[i] != value)
            return false;
    return true;
}

static po_value_id pad(const po_graph *graph, const po_node *n) {
    const po_tensor *t = n->n_in > 1 ? po_graph_constant(graph, n->in[1]) : NULL;
    const bool none = po_node_attr(n, "pads") ? all_of(n, "pads", 0) : t && po_all_equal(t, 0);
    return none ? n->in[0] : PO_NONE;
}

/* In inference: training_mode absent or constant false (a single output), ratio without effect.
 * Before opset 7 is_test says so, and where it is absent this is training. */
static po_value_id dropout(const po_graph *graph, const po_node *n) {
    const bool tests = po_op_version(graph, n) >= 7 || po_op_int(graph, n, "is_test") != 0;
    bool mask = n->n_out > 1 && n->out[1] != PO_NONE &&
                (graph->values[n->out[1]].n_uses || graph->values[n->out[1]].n_outputs);
    return tests && !mask && left_at(graph, n, 2, 0) ? n->in[0] : PO_NONE;
}

static po_value_id single(const po_graph *graph, const po_node *n) {
    (void)graph;
    return n->n_in == 1 ? n->in[0] : PO_NONE;
}

/* The mean of one number, windows side by side. The runtime joins it with a Pad before it, and then
 * refuses pads that are wider than the window. */
static po_value_id mean_of_one(const po_graph *graph, const po_node *n) {
    (void)graph;
    return po_node_attr(n, "kernel_shape") && all_of(n, "kernel_shape", 1) &&
                   all_of(n, "strides", 1) && all_of(n, "pads", 0)
               ? n->in[0]
               : PO_NONE;
}

static po_value_id first(const po_graph *graph, const po_node *n) {
    (void)graph;
    return n->in[0];
}

static po_value_id relu(const po_graph *graph, const po_node *n) {
    return po_never_negative(graph, n->in[0]) ? n->in[0] : PO_NONE;
}

/* What asks whether a node of the operator is an identity, and what dropping it counts as. */
static const struct {
    po_op op;
    po_law_id law;
    po_value_id (*input)(const po_graph *graph, const po_node *n);
} identities[] = {
    {PO_OP_Identity, PO_LAW_DROP_IDENTITY, first},
    {PO_OP_Mul, PO_LAW_DROP_TIMES_ONE, factor_one},
    {PO_OP_Div, PO_LAW_DROP_TIMES_ONE, factor_one},
    {PO_OP_Pow, PO_LAW_DROP_TIMES_ONE, factor_one},
    {PO_OP_Add, PO_LAW_DROP_PLUS_ZERO, summand_zero},
    {PO_OP_Sub, PO_LAW_DROP_PLUS_ZERO, summand_zero},
    {PO_OP_Cast, PO_LAW_DROP_CAST, cast},
    {PO_OP_Transpose, PO_LAW_DROP_TRANSPOSE, transpose},
    {PO_OP_Reshape, PO_LAW_DROP_RESHAPE, keeps_shape},
    {PO_OP_Flatten, PO_LAW_DROP_RESHAPE, keeps_shape},
    {PO_OP_Expand, PO_LAW_DROP_RESHAPE, keeps_shape},
    {PO_OP_Tile, PO_LAW_DROP_RESHAPE, keeps_shape},
    {PO_OP_Squeeze, PO_LAW_DROP_RESHAPE, keeps_shape},
    {PO_OP_Unsqueeze, PO_LAW_DROP_RESHAPE, keeps_shape},
    {PO_OP_Slice, PO_LAW_DROP_SLICE, slice},
    {PO_OP_Pad, PO_LAW_DROP_PAD, pad},
    {PO_OP_Dropout, PO_LAW_DROP_DROPOUT, dropout},
    {PO_OP_Relu, PO_LAW_DROP_RELU, relu},
    {PO_OP_AveragePool, PO_LAW_DROP_SINGLE, mean_of_one},
    {PO_OP_Concat, PO_LAW_DROP_SINGLE, single},
    {PO_OP_Sum, PO_LAW_DROP_SINGLE, single},
    {PO_OP_Mean, PO_LAW_DROP_SINGLE, single},
    {PO_OP_Max, PO_LAW_DROP_SINGLE, single},
    {PO_OP_Min, PO_LAW_DROP_SINGLE, single},
};

static po_value_id identity_of(const po_graph *graph, const po_node *n, po_law_id *law) {
    for (size_t i = 0; i < sizeof identities / sizeof *identities; i++)
        if (n->op == identities[i].op) {
            *law = identities[i].law;
            return identities[i].input(graph, n);
        }
    return PO_NONE;
}

/* Legacy binary operators (before opset 7) broadcast by attributes, which the rules above do not
 * look at. */
static bool legacy_broadcast(const po_graph *graph, const po_node *n) {
    return po_op_version(graph, n) < 7 && (po_node_attr(n, "broadcast") || po_node_attr(n, "axis"));
}

po_status po_drop_identities(po_ctx *ctx, po_graph *graph, po_rewriting *state) {
    (void)ctx;
    uint32_t n;
    const po_node_id *order = po_graph_order(graph, state->scratch, &n);
    for (uint32_t k = 0; k < n; k++) {
        const po_node *node = &graph->nodes[order[k]];
        if (node->removed || node->op == PO_OP_OPAQUE || node->n_out == 0 ||
            node->out[0] == PO_NONE || (node->n_in && node->in[0] == PO_NONE) ||
            legacy_broadcast(graph, node))
            continue;
        po_law_id rule = PO_LAW_DROP_IDENTITY;
        po_value_id x = identity_of(graph, node, &rule), y = node->out[0];
        if (x == PO_NONE || !graph->values[y].type.kind)
            continue;
        /* An output keeps its node where the value cannot take over its name. */
        const po_value *from = &graph->values[x];
        bool stuck = graph->values[y].n_outputs && (from->is_input || from->is_initializer ||
                                                    from->n_outputs || from->outer != PO_NONE);
        if (stuck && (node->op == PO_OP_Identity || graph->values[y].n_uses == 0))
            continue;
        po_substitute(graph, y, x);
        po_law_fired(state, rule, true);
    }
    return PO_OK;
}
