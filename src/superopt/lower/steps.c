/* Steps of one statement each, item by item. */
#include "superopt/lower/internal.h"

void po_steps_start(po_steps *b, const char *name, po_mu_combine combine) {
    po_mu *mu = b->l->mu;
    po_lower_labels(b->l, b->value, b->at);
    b->step = po_mu_add_step(mu, name);
    b->statement = po_mu_add_statement(mu, b->step, combine);
    mu->nodes[b->statement].statement.fresh = combine != PO_MU_SET;
}

void po_steps_output(po_steps *b, const po_view *to) {
    b->l->mu->nodes[b->statement].statement.out = po_lower_access(b->l, to, b->at);
}

uint32_t po_steps_read(po_steps *b, const po_view *from) {
    uint32_t operand = po_mu_operand(b->l->mu, b->statement, po_lower_access(b->l, from, b->at));
    return po_mu_item_of(b->l->mu, b->statement, PO_MU_OPERAND, operand, 0, 0);
}

uint32_t po_steps_item(po_steps *b, po_mu_function f, uint32_t x, uint32_t y) {
    return po_mu_item_of(b->l->mu, b->statement, f, x, y, 0);
}

uint32_t po_steps_number(po_steps *b, double value) {
    return po_mu_constant(b->l->mu, b->statement, value);
}

po_status po_steps_finish(po_steps *b, const po_node *node) {
    po_lower_end end = {.step = b->step,
                        .statement = b->statement,
                        .node = (po_node_id)(node - b->l->graph->nodes),
                        .value = node->out[0],
                        .at = b->at,
                        .scale = 1};
    return po_lower_finish(b->l, &end);
}
