/* Chains of Transpose, and of the operators that only change the shape: of any type and of open
 * shapes, exactly, node by node, so that it also serves --accuracy exact and the passes beside it
 * meet no such chains. postopt's cancel_moves.c works on R/T, which needs static shapes: it covers
 * pads, slices and moves through element-wise nodes, and would find what this pass does of static
 * shapes; it does not replace it. */
#include "ir/size.h"
#include "rewrite/passes.h"

/* Transpose(Transpose(x)): one permutation, or none. */
static void compose_transposes(po_graph *graph, po_node_id id, po_rewriting *state) {
    const po_node *outer = &graph->nodes[id];
    const po_node *inner = po_made_by(graph, outer->in[0], PO_OP_Transpose);
    uint32_t p_rank, q_rank;
    if (!inner)
        return;
    const int64_t *p = po_node_ints(inner, "perm", &p_rank);
    const int64_t *q = po_node_ints(outer, "perm", &q_rank);
    int rank = po_rank_of(graph, outer->in[0]);
    if (rank < 0 || rank > PO_MAX_RANK || (p && (int)p_rank != rank) || (q && (int)q_rank != rank))
        return;
    int64_t composed[PO_MAX_RANK];
    bool identity = true;
    for (int i = 0; i < rank; i++) {
        int64_t middle = q ? q[i] : rank - 1 - i;
        if (middle < 0 || middle >= rank)
            return;
        composed[i] = p ? p[middle] : rank - 1 - middle;
        identity &= composed[i] == i;
    }
    po_value_id x = inner->in[0];
    po_law_fired(state, identity ? PO_LAW_CANCEL_TRANSPOSES : PO_LAW_COMPOSE_TRANSPOSES, true);
    if (identity) {
        po_substitute(graph, outer->out[0], x);
        return;
    }
    po_graph_set_input(graph, id, 0, x);
    po_node_set_ints(graph, id, "perm", (uint32_t)rank, composed);
}

static bool only_reshapes(po_op_id op) {
    return op == PO_OP_Reshape || op == PO_OP_Flatten || op == PO_OP_Squeeze ||
           op == PO_OP_Unsqueeze;
}

/* The Reshape's target with every 0 resolved: its own output's dims where static and not empty.
 * Other targets are used only where they hold no 0 (which copies a dim of the input). */
static bool reshape_anew(po_graph *graph, po_node_id id, po_value_id x) {
    const po_node *n = &graph->nodes[id];
    if (n->n_in < 2)
        return false; /* before opset 5: the target is an attribute */
    const po_tensor *shape = po_graph_constant(graph, n->in[1]);
    const po_type *y = &graph->values[n->out[0]].type;
    if (!shape || po_node_int(n, "allowzero", 0))
        return false;
    bool zero = false;
    for (int64_t i = 0; i < shape->count; i++)
        zero |= po_tensor_int(shape, i) == 0;
    if (zero) {
        int64_t dims[PO_MAX_RANK];
        if (!po_type_static(y) || po_type_count(y) <= 0 || y->rank > PO_MAX_RANK)
            return false;
        for (uint32_t i = 0; i < y->rank; i++)
            dims[i] = y->dims[i].value;
        po_graph_set_input(graph, id, 1, po_add_i64s(graph, NULL, y->rank, dims));
    }
    po_graph_set_input(graph, id, 0, x);
    return true;
}

/* Which axes of x, side by side, each axis of `merged` is made of: those from first[k] to
 * first[k + 1]. False: it is no merging of axes, or not seen to be one. */
static bool merges(const po_graph *graph, po_arena *arena, po_value_id x, po_value_id merged,
                   uint32_t first[PO_MAX_RANK + 1]) {
    const po_type *from = &graph->values[x].type, *to = &graph->values[merged].type;
    if (!from->has_rank || !to->has_rank || from->rank > PO_MAX_RANK || to->rank > PO_MAX_RANK)
        return false;
    uint32_t at = 0;
    for (uint32_t k = 0; k < to->rank; k++) {
        po_dim all = PO_DIM(1);
        first[k] = at;
        /* An axis of length 1 is made of none, or of one that is as short. */
        bool taken = po_dim_same(to->dims[k], PO_DIM(1)) &&
                     (at == from->rank || !po_dim_same(from->dims[at], PO_DIM(1)));
        for (; !taken && at < from->rank; at++) {
            all = po_size_mul(arena, all, from->dims[at]);
            taken = po_dim_same(all, to->dims[k]);
        }
        if (!taken)
            return false;
    }
    for (; at < from->rank; at++)
        if (!po_dim_same(from->dims[at], PO_DIM(1)))
            return false;
    first[to->rank] = from->rank;
    return true;
}

/* Reshape(Transpose(Reshape(x))) where axes are merged, moved together, and taken apart again, as
 * exporters move the last two axes of what has more than three. */
static bool move_apart(po_graph *graph, po_node_id id, po_rewriting *state) {
    const po_node *outer = &graph->nodes[id];
    const po_node *move = po_made_by(graph, outer->in[0], PO_OP_Transpose);
    const po_node *inner = move ? po_graph_producer(graph, move->in[0]) : NULL;
    uint32_t first[PO_MAX_RANK + 1], p_rank, rank = 0;
    int64_t perm[PO_MAX_RANK];
    if (!inner || !only_reshapes(inner->op) || inner->in[0] == PO_NONE ||
        graph->values[outer->in[0]].n_uses > 1 || graph->values[outer->in[0]].n_outputs > 0)
        return false;
    const po_value_id x = inner->in[0], y = outer->out[0];
    const po_type *to = &graph->values[y].type;
    const int64_t *p = po_node_ints(move, "perm", &p_rank);
    if (!merges(graph, state->scratch, x, move->in[0], first) || !to->has_rank ||
        to->rank != graph->values[x].type.rank)
        return false;
    const uint32_t n = graph->values[move->in[0]].type.rank;
    if (p && p_rank != n)
        return false;
    for (uint32_t i = 0; i < n; i++) {
        int64_t k = p ? p[i] : (int64_t)(n - 1 - i);
        if (k < 0 || k >= (int64_t)n)
            return false;
        for (uint32_t a = first[k]; a < first[k + 1]; a++)
            perm[rank++] = a;
    }
    for (uint32_t i = 0; i < rank; i++)
        if (!po_dim_same(to->dims[i], graph->values[x].type.dims[perm[i]]))
            return false;
    const po_type type = *to;
    po_substitute(graph, y, po_add_transpose(graph, id, x, rank, perm, &type));
    return true;
}

static void compose_reshapes(po_graph *graph, po_node_id id, po_rewriting *state) {
    if (move_apart(graph, id, state)) {
        po_law_fired(state, PO_LAW_MOVE_APART, true);
        return;
    }
    const po_node *outer = &graph->nodes[id];
    const po_node *inner = po_graph_producer(graph, outer->in[0]);
    if (!inner || !only_reshapes(inner->op) || inner->in[0] == PO_NONE)
        return;
    po_value_id x = inner->in[0];
    if (po_same_dims(graph, x, outer->out[0])) {
        const po_value *from = &graph->values[x];
        if (graph->values[outer->out[0]].n_outputs &&
            (from->is_input || from->is_initializer || from->n_outputs || from->outer != PO_NONE))
            return;
        po_substitute(graph, outer->out[0], x);
        po_law_fired(state, PO_LAW_CANCEL_RESHAPES, true);
        return;
    }
    /* Merging into Squeeze or Unsqueeze would hide attention patterns from the runtime. */
    if (outer->op == PO_OP_Reshape)
        po_law_fired(state, PO_LAW_COMPOSE_RESHAPES, reshape_anew(graph, id, x));
}

po_status po_compose_layouts(po_ctx *ctx, po_graph *graph, po_rewriting *state) {
    (void)ctx;
    uint32_t n;
    const po_node_id *order = po_graph_order(graph, state->scratch, &n);
    for (uint32_t k = 0; k < n; k++) {
        const po_node *node = &graph->nodes[order[k]];
        if (node->removed || node->n_in == 0 || node->in[0] == PO_NONE || node->n_out == 0 ||
            node->out[0] == PO_NONE)
            continue;
        if (node->op == PO_OP_Transpose)
            compose_transposes(graph, order[k], state);
        else if (only_reshapes(node->op))
            compose_reshapes(graph, order[k], state);
    }
    return PO_OK;
}
