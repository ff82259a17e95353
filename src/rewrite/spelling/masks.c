/* Softmax behind a mask, with hidden elements raised to where exponentials are normal numbers.
 *
 * Masks add -10000 or an infinity to what is hidden. The runtime's exponential takes six to twelve
 * times as long where its result is no normal number (docs/forms.md). 70 below the largest element
 * of the row it is just below 2^-100 of that element's, which is where zeros count for nothing
 * (tiny.c), and later products of it are normal numbers yet. A rounding, as those of tiny.c; the
 * proof knows it (docs/proof.md). Rows that are hidden wholly by infinities stay NaN. */
#include "rewrite/pattern.h"
#include "rewrite/spelling/match.h"

/* Max and ReduceMax broadcast, in f32. */
enum { MAX_BROADCASTS_SINCE = 8 };

bool po_raise_masked(po_rewriting *r, po_graph *graph, po_node_id id) {
    const po_node *n = &graph->nodes[id];
    if (!r->options->masks || n->op != PO_OP_Softmax)
        return false;
    const po_value_id x = n->in[0];
    const int rank = po_rank_of(graph, x);
    const int64_t axis = po_op_int(graph, n, "axis");
    if (rank < 1 || (axis != -1 && axis != rank - 1) || !po_is_f32(graph, x) ||
        po_opset_of(graph) < MAX_BROADCASTS_SINCE || !po_looks_masked(graph, x) ||
        !po_only_factors(graph, n->out[0]))
        return false;
    po_match m = {0};
    po_match_value(&m, 'x', x);
    po_match_number(&m, 'k', rank - 1);
    po_graph_set_input(graph, id, 0, po_write(graph, id, &m, "Max(x, Sub(ReduceMax[k](x), 70))"));
    r->counts->used |= PO_USED_MASKS;
    return true;
}
