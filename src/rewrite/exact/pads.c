/* Padding in words (auto_pad) as numbers: SAME where the sizes of the map or strides of one say how
 * much it is, VALID always. Whoever reads windows behind it reads one spelling. */
#include "ops/window.h"
#include "rewrite/passes.h"

/* Transposed convolutions stay: the runtime's SAME is not the standard's (window.h). */
static bool has_window(po_op_id op) {
    return po_op_has(op, PO_OPF_WINDOW) && !po_op_has(op, PO_OPF_SCATTERS);
}

bool po_state_pads(po_rewriting *r, po_graph *graph, po_node_id id) {
    (void)r;
    const po_node *n = &graph->nodes[id];
    if (!has_window(n->op) || !po_node_attr(n, "auto_pad") || po_op_int(graph, n, "ceil_mode"))
        return false;
    const int rank = n->in[0] == PO_NONE ? -1 : po_rank_of(graph, n->in[0]);
    po_window w;
    if (rank < 3 || !po_window_of(graph, n, (uint32_t)rank - 2, &w))
        return false;
    int64_t pads[2 * PO_MAX_RANK];
    for (uint32_t i = 0; i < w.n; i++) {
        pads[i] = w.begin[i];
        pads[w.n + i] = w.end[i];
    }
    po_node_remove_attr(graph, id, "auto_pad");
    po_node_set_ints(graph, id, "pads", 2 * w.n, pads);
    return true;
}
