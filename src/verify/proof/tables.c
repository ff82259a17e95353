/* Tables that drawn integers pick rows of. A trial sees the rows that are picked; the others must
 * be seen to agree in another way: then the table counts as a whole. */
#include "verify/proof/internal.h"

/* Rows that the node picks from, and the input that picks. */
static int64_t rows_of(const po_pnode *n, const po_ptensor **index) {
    const po_ptensor *first = po_pn_in(n, 0), *second = po_pn_in(n, 1);
    *index = NULL;
    if (!first || !second)
        return 0;
    if (n->node->op == PO_OP_OneHot) {
        *index = first;
        return second->known && second->known->i && second->count == 1 ? second->known->i[0] : 0;
    }
    int64_t axis = po_node_int(n->node, "axis", 0);
    axis += axis < 0 ? first->rank : 0;
    *index = second;
    return n->node->op == PO_OP_Gather && axis >= 0 && axis < first->rank ? first->dims[axis] : 0;
}

bool po_pn_picks_all(const po_pnode *n) {
    const po_ptensor *index;
    int64_t rows = rows_of(n, &index), picked = 0;
    if (!index || !index->known || !index->known->i || rows < 1 || rows > index->count)
        return false;
    bool *seen = PO_NEW_N(n->arena, bool, rows);
    for (int64_t i = 0; i < index->count; i++) {
        int64_t at = index->known->i[i];
        at += at < 0 ? rows : 0;
        if (at >= 0 && at < rows && !seen[at]) {
            seen[at] = true;
            picked++;
        }
    }
    return picked == rows;
}

void po_pn_note_table(po_pnode *n) {
    po_prun *run = n->run;
    po_op_id op = n->node->op;
    bool picks = op == PO_OP_Gather || op == PO_OP_GatherElements || op == PO_OP_GatherND;
    if (!picks || !po_pn_in(n, 1) || !n->in[1]->drawn || !n->in[0]->constant ||
        (!n->graph->parent && po_pn_picks_all(n) && po_pn_all_observable(n, n->node->out[0])))
        return;
    po_hash print = po_pt_print(n->in[0]);
    if (po_hash_map_put(run->tables, print, 1) != PO_NONE)
        return;
    run->table_sum.lo += po_mix(print.lo);
    run->table_sum.hi += po_mix(print.hi);
}
