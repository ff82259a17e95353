/* Maximum pools. */
#include "ops/window.h"
#include "superopt/lower/internal.h"

po_status po_lower_max_pool(po_lowering *l, const po_node *node) {
    uint32_t rank;
    const po_dim *in = po_lower_dims(l, node->in[0], &rank);
    const po_dim *out = po_lower_dims(l, node->out[0], &rank);
    po_window w;
    if (rank < 3)
        return PO_UNSUPPORTED;
    PO_TRY(po_window_read(l->ctx, l->graph, node, rank - 2, NULL, &w));
    po_lower_index at[PO_MU_MAX_RANK] = {{0}}, from[PO_MU_MAX_RANK] = {{0}};
    po_lower_labels(l, node->out[0], at);
    from[0] = at[0];
    from[1] = at[1];
    for (uint32_t i = 0; i + 2 < rank; i++) {
        static const char *const names[] = {"q", "r", "s"};
        if (po_window_out(&w, i, in[i + 2]).value != out[i + 2].value)
            return PO_UNSUPPORTED;
        po_lower_index *a = &from[i + 2];
        a->offset = -w.begin[i];
        if (at[i + 2].n)
            a->terms[a->n++] = (po_mu_term){at[i + 2].terms[0].label, w.stride[i]};
        if (w.kernel[i] > 1)
            a->terms[a->n++] = (po_mu_term){
                po_mu_add_label(l->mu, rank - 2 - i <= 3 ? names[3 - (rank - 2 - i)] : "r",
                                w.kernel[i]),
                w.dilation[i]};
    }
    po_lower_settle(l, node->in[0], from);
    uint32_t step = po_mu_add_step(
        l->mu, po_arena_printf(l->arena, "MaxPool %s", l->graph->values[node->out[0]].name));
    uint32_t s = po_mu_add_statement(l->mu, step, PO_MU_MAXIMUM);
    l->mu->nodes[s].statement.fresh = true;
    if (po_lower_operand(l, s, node->in[0], from) == PO_NONE)
        return PO_UNSUPPORTED;
    po_lower_end end = {.step = step,
                        .statement = s,
                        .node = (po_node_id)(node - l->graph->nodes),
                        .value = node->out[0],
                        .at = at,
                        .scale = 1};
    return po_lower_finish(l, &end);
}
