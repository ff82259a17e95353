/* Padding in words (auto_pad) as numbers: SAME where the sizes of the map or strides of one say how
 * much it is, VALID always. Whoever reads windows behind it reads one spelling. */
#include "ops/window.h"
#include "simplify/passes.h"

/* Which input holds the weights whose dims are the kernel; 0: none, kernel_shape says it.
 * Transposed convolutions stay: the runtime's SAME is not the standard's (window.h). */
static bool has_window(po_op_id op, uint32_t *weights) {
    switch ((po_op)op) {
    case PO_OP_Conv:
    case PO_OP_ConvInteger:
        *weights = 1;
        return true;
    case PO_OP_QLinearConv:
        *weights = 3;
        return true;
    case PO_OP_MaxPool:
    case PO_OP_AveragePool:
    case PO_OP_LpPool:
        *weights = 0;
        return true;
    default:
        return false;
    }
}

static bool state_pads(po_graph *graph, po_node_id id) {
    const po_node *n = &graph->nodes[id];
    uint32_t weights;
    if (n->removed || !has_window(n->op, &weights) || !po_node_attr(n, "auto_pad") ||
        po_op_int(graph, n, "ceil_mode"))
        return false;
    const int rank = n->in[0] == PO_NONE ? -1 : po_rank_of(graph, n->in[0]);
    if (rank < 3 || rank > PO_MAX_RANK)
        return false;
    const uint32_t maps = (uint32_t)rank - 2;
    int64_t kernel[PO_MAX_RANK];
    if (weights) {
        if (po_rank_of(graph, n->in[weights]) != rank)
            return false;
        for (uint32_t i = 0; i < maps; i++)
            if ((kernel[i] = po_dim_of(graph, n->in[weights], (int)i + 2)) < 1)
                return false;
    }
    po_window w;
    if (!po_window_of(graph, n, maps, weights ? kernel : NULL, &w))
        return false;
    int64_t pads[2 * PO_MAX_RANK];
    for (uint32_t i = 0; i < maps; i++) {
        pads[i] = w.begin[i];
        pads[maps + i] = w.end[i];
    }
    po_node_remove_attr(graph, id, "auto_pad");
    po_node_set_ints(graph, id, "pads", 2 * maps, pads);
    return true;
}

po_status po_state_pads(po_ctx *ctx, po_graph *graph, po_simplify_state *state) {
    (void)ctx;
    for (po_node_id id = 0; id < graph->n_nodes; id++)
        po_simplify_fired(state, PO_SIMPLIFY_STATE_PADS, state_pads(graph, id));
    return PO_OK;
}
