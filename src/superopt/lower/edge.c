/* A tensor that sums and maxima read past its ends: sums want zeros there, maxima nothing at all.
 */
#include "superopt/lower/internal.h"

/* A copy of a tensor: what of it was copied. */
typedef struct copied {
    uint32_t tensor; /* PO_NONE: there is none */
    int64_t from[PO_MU_MAX_RANK], to[PO_MU_MAX_RANK];
} copied;

/* What an access reads of its tensor: the rest need not be written yet. */
static copied read_by(const po_mu *mu, const po_mu_access *a) {
    copied c = {.tensor = PO_NONE};
    for (uint32_t x = 0; x < mu->tensors[a->tensor].rank; x++) {
        const int64_t dim = mu->tensors[a->tensor].dims[x];
        po_mu_range(mu, a, x, &c.from[x], &c.to[x]);
        c.from[x] = c.from[x] < 0 ? 0 : c.from[x];
        c.to[x] = c.to[x] >= dim ? dim : c.to[x] + 1;
    }
    return c;
}

static bool has_all(const copied *c, const copied *wanted, uint32_t rank) {
    bool has = c->tensor != PO_NONE;
    for (uint32_t x = 0; x < rank && has; x++)
        has = c->from[x] <= wanted->from[x] && c->to[x] >= wanted->to[x];
    return has;
}

/* Puts a step that copies that part of the tensor before the given one; the copy. */
static uint32_t copy_before(po_mu *mu, uint32_t tensor, const copied *part, uint32_t before) {
    int64_t dims[PO_MU_MAX_RANK];
    uint32_t rank = mu->tensors[tensor].rank, last = mu->first, prior = PO_NONE;
    memcpy(dims, mu->tensors[tensor].dims, sizeof dims);
    uint32_t to = po_mu_add_tensor(mu, mu->tensors[tensor].name, PO_MU_DEVICE, rank, dims);
    uint32_t step = po_mu_add_step(mu, "a copy for maxima");
    uint32_t id = po_mu_add_statement(mu, step, PO_MU_SET);
    po_mu_access out = po_mu_access_of(mu, to), in = po_mu_access_of(mu, tensor);
    for (uint32_t x = 0; x < rank; x++) {
        const int64_t n = part->to[x] - part->from[x];
        uint32_t label = n > 1 ? po_mu_add_label(mu, "i", n) : PO_NONE;
        if (label != PO_NONE) {
            po_mu_at(mu, &out, x, 1, label);
            po_mu_at(mu, &in, x, 1, label);
        }
        po_mu_at(mu, &out, x, part->from[x], PO_NONE);
        po_mu_at(mu, &in, x, part->from[x], PO_NONE);
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

static bool is_past(const po_mu *mu, const po_mu_statement *s, uint32_t operand, uint32_t tensor) {
    return s->in[operand].tensor == tensor && s->combine != PO_MU_SET &&
           !po_mu_is_inside(mu, &s->in[operand]);
}

/* Whether both sums and maxima read the tensor past its ends. */
static bool is_read_by_both(const po_mu *mu, uint32_t tensor) {
    bool sums = false, maxima = false;
    for (uint32_t n = mu->first; n != PO_NONE; n = mu->nodes[n].next)
        for (uint32_t k = mu->nodes[n].first; k != PO_NONE; k = mu->nodes[k].next) {
            const po_mu_statement *s = &mu->nodes[k].statement;
            for (uint32_t i = 0; i < s->n_in; i++) {
                const bool past = is_past(mu, s, i, tensor);
                sums |= past && s->combine == PO_MU_ADD;
                maxima |= past && s->combine == PO_MU_MAXIMUM;
            }
        }
    return sums && maxima;
}

/* The maxima of a step read a copy, which holds until the tensor is written again. */
static void part_step(po_mu *mu, uint32_t step, uint32_t tensor, copied *copy) {
    bool written = false;
    for (uint32_t k = mu->nodes[step].first; k != PO_NONE; k = mu->nodes[k].next) {
        for (uint32_t i = 0; i < mu->nodes[k].statement.n_in; i++) {
            const po_mu_statement *s = &mu->nodes[k].statement;
            if (s->combine != PO_MU_MAXIMUM || !is_past(mu, s, i, tensor))
                continue;
            const copied wanted = read_by(mu, &s->in[i]);
            if (!has_all(copy, &wanted, mu->tensors[tensor].rank)) {
                *copy = wanted;
                copy->tensor = copy_before(mu, tensor, &wanted, step);
            }
            mu->nodes[k].statement.in[i].tensor = copy->tensor;
        }
        written |= mu->nodes[k].statement.out.tensor == tensor;
    }
    copy->tensor = written ? PO_NONE : copy->tensor;
}

void po_lower_part_edges(po_mu *mu) {
    const uint32_t tensors = mu->n_tensors;
    for (uint32_t t = 0; t < tensors; t++) {
        copied copy = {.tensor = PO_NONE};
        const bool both = is_read_by_both(mu, t);
        for (uint32_t n = mu->first; n != PO_NONE && both; n = mu->nodes[n].next)
            part_step(mu, n, t, &copy);
    }
}
