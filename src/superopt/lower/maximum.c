/* Maxima over axes. */
#include "superopt/lower/internal.h"

static bool reduced_axes(const po_graph *graph, const po_node *node, bool *axes) {
    uint32_t rank = graph->values[node->in[0]].type.rank, n = 0;
    const int64_t *list = NULL;
    if (rank > PO_MU_MAX_RANK)
        return false;
    if (node->op == PO_OP_GlobalMaxPool) {
        for (uint32_t i = 0; i < rank; i++)
            axes[i] = i >= 2;
        return rank > 2;
    }
    if (node->n_in > 1 && node->in[1] != PO_NONE) {
        const po_tensor *t = po_graph_constant(graph, node->in[1]);
        if (!t)
            return false;
        for (int64_t i = 0; i < t->count; i++) {
            int64_t axis = po_tensor_int(t, i);
            axis += axis < 0 ? rank : 0;
            if (axis < 0 || axis >= rank)
                return false;
            axes[axis] = true;
        }
        return t->count > 0;
    }
    list = po_node_ints(node, "axes", &n);
    for (uint32_t i = 0; i < rank && !list; i++)
        axes[i] = true;
    for (uint32_t i = 0; i < n; i++) {
        int64_t axis = list[i] + (list[i] < 0 ? rank : 0);
        if (axis < 0 || axis >= rank)
            return false;
        axes[axis] = true;
    }
    return po_node_int(node, "noop_with_empty_axes", 0) == 0;
}

bool po_lower_maximum_fits(const po_graph *graph, const po_node *node) {
    bool axes[PO_MU_MAX_RANK] = {false};
    return node->n_out == 1 && reduced_axes(graph, node, axes);
}

/* The indices of a value whose axes in the list are gone (keepdims 0) or of length 1. */
static void kept_at(const po_lower_index *in, uint32_t rank, const bool *axes, bool keep,
                    po_lower_index *out) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < rank; i++) {
        if (!axes[i])
            out[n++] = in[i];
        else if (keep)
            out[n++] = (po_lower_index){0};
    }
}

po_status po_lower_reduce_max(po_lowering *l, const po_node *node) {
    bool axes[PO_MU_MAX_RANK] = {false};
    po_lower_index in[PO_MU_MAX_RANK] = {{0}}, out[PO_MU_MAX_RANK] = {{0}};
    uint32_t rank;
    po_lower_dims(l, node->in[0], &rank);
    if (!reduced_axes(l->graph, node, axes))
        return PO_UNSUPPORTED;
    bool keep = node->op == PO_OP_GlobalMaxPool || po_node_int(node, "keepdims", 1) != 0;
    po_lower_labels(l, node->in[0], in);
    kept_at(in, rank, axes, keep, out);
    uint32_t step = po_mu_add_step(l->mu, node->op_type);
    uint32_t s = po_mu_add_statement(l->mu, step, PO_MU_MAXIMUM);
    l->mu->nodes[s].statement.fresh = true;
    if (po_lower_operand(l, s, node->in[0], in) == PO_NONE)
        return PO_UNSUPPORTED;
    po_lower_end end = {.step = step,
                        .statement = s,
                        .node = (po_node_id)(node - l->graph->nodes),
                        .value = node->out[0],
                        .at = out,
                        .scale = 1};
    return po_lower_finish(l, &end);
}
