/* Reshapes to shapes that are computed from lengths: where each length is a number, or one that the
 * input has at the same place, a Reshape can be told so, and nothing is left to compute. */
#include "rewrite/passes.h"

/* The shape as a Reshape is told it; false where it cannot be. */
static bool told(const po_type *x, const po_type *y, int64_t *shape) {
    uint32_t copies = 0, left = 0;
    for (uint32_t i = 0; i < y->rank; i++) {
        const bool same = i < x->rank && po_dim_same(x->dims[i], y->dims[i]);
        if (y->dims[i].value == 0)
            return false; /* as a number it would copy */
        shape[i] = y->dims[i].value > 0 ? y->dims[i].value : same ? 0 : -1;
        copies += shape[i] == 0;
        left += shape[i] < 0;
    }
    /* What is left beside a length of 0 is no number. */
    return left == 0 || (left == 1 && copies == 0);
}

bool po_copy_lengths(po_rewriting *r, po_graph *graph, po_node_id id) {
    (void)r;
    const po_node *n = &graph->nodes[id];
    int64_t shape[PO_MAX_RANK];
    if (n->op != PO_OP_Reshape || n->n_in != 2 || n->in[0] == PO_NONE || n->in[1] == PO_NONE ||
        po_graph_constant(graph, n->in[1]) || po_op_int(graph, n, "allowzero"))
        return false;
    const po_type *x = &graph->values[n->in[0]].type, *y = &graph->values[n->out[0]].type;
    if (!x->has_rank || !y->has_rank || y->rank > PO_MAX_RANK || !told(x, y, shape))
        return false;
    po_graph_set_input(graph, id, 1, po_add_i64s(graph, NULL, y->rank, shape));
    return true;
}
