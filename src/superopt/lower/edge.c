/* A tensor that sums and maxima read past its ends: sums want zeros there, maxima nothing at all.
 */
#include "superopt/lower/internal.h"

/* Puts a step that copies the tensor before the given one; the copy. */
static uint32_t copy_before(po_mu *mu, uint32_t tensor, uint32_t before) {
    int64_t dims[PO_MU_MAX_RANK];
    uint32_t rank = mu->tensors[tensor].rank, last = mu->first, prior = PO_NONE;
    memcpy(dims, mu->tensors[tensor].dims, sizeof dims);
    uint32_t to = po_mu_add_tensor(mu, mu->tensors[tensor].name, PO_MU_DEVICE, rank, dims);
    uint32_t step = po_mu_add_step(mu, "a copy for maxima");
    uint32_t id = po_mu_add_statement(mu, step, PO_MU_SET);
    po_mu_access out = po_mu_access_of(mu, to), in = po_mu_access_of(mu, tensor);
    for (uint32_t x = 0; x < rank; x++) {
        uint32_t label = dims[x] > 1 ? po_mu_add_label(mu, "i", dims[x]) : PO_NONE;
        if (label != PO_NONE) {
            po_mu_at(mu, &out, x, 1, label);
            po_mu_at(mu, &in, x, 1, label);
        }
    }
    mu->nodes[id].statement.out = out;
    po_mu_item_of(mu, id, PO_MU_OPERAND, po_mu_operand(mu, id, in), 0, 0);
    for (; mu->nodes[last].next != step; last = mu->nodes[last].next)
        if (mu->nodes[last].next == before)
            prior = last;
    mu->nodes[last].next = PO_NONE;
    mu->nodes[step].next = before;
    if (prior == PO_NONE && mu->first == before)
        mu->first = step;
    else
        mu->nodes[prior == PO_NONE ? last : prior].next = step;
    return to;
}

void po_lower_part_edges(po_mu *mu) {
    uint32_t tensors = mu->n_tensors;
    for (uint32_t t = 0; t < tensors; t++) {
        bool sums = false, maxima = false;
        uint32_t copy = PO_NONE;
        for (uint32_t pass = 0; pass < 2; pass++)
            for (uint32_t n = mu->first; n != PO_NONE; n = mu->nodes[n].next)
                for (uint32_t k = mu->nodes[n].first; k != PO_NONE; k = mu->nodes[k].next) {
                    po_mu_statement *s = &mu->nodes[k].statement;
                    for (uint32_t i = 0; i < s->n_in; i++) {
                        if (s->in[i].tensor != t || s->combine == PO_MU_SET ||
                            po_mu_is_inside(mu, &s->in[i]))
                            continue;
                        sums |= s->combine == PO_MU_ADD;
                        maxima |= s->combine == PO_MU_MAXIMUM;
                        if (pass == 0 || !sums || !maxima || s->combine != PO_MU_MAXIMUM)
                            continue;
                        if (copy == PO_NONE)
                            copy = copy_before(mu, t, n);
                        s = &mu->nodes[k].statement;
                        s->in[i].tensor = copy;
                    }
                }
    }
}
