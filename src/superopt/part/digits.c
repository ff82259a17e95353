/* Indices as digits: an axis of heads times elements is read as 128 * head + element here, and by
 * one label there. */
#include "superopt/part/part.h"

bool part_digits_of(const po_mu *mu, const po_mu_index *i, int64_t dim, uint32_t *n,
                    po_mu_term digits[PO_MU_MAX_RANK]) {
    *n = i->n;
    if (i->offset != 0 || i->n > PO_MU_MAX_RANK)
        return false;
    for (uint32_t k = 0; k < i->n; k++) {
        uint32_t at = k;
        for (; at > 0 && digits[at - 1].coef < i->terms[k].coef; at--)
            digits[at] = digits[at - 1];
        digits[at] = i->terms[k];
    }
    int64_t size = 1;
    for (uint32_t k = i->n; k-- > 0;) {
        if (digits[k].coef != size)
            return false;
        size *= mu->labels[digits[k].label].extent;
    }
    return size == dim;
}

/* --- the same digits everywhere --- */

typedef struct cut {
    uint32_t label;
    int64_t at; /* elements of the lower digit */
} cut;

/* Calls `see` with every access of a tensor; false where one call says so. */
typedef bool (*see_fn)(void *user, const po_mu_access *access);
static bool each_access(const po_mu *mu, uint32_t tensor, see_fn see, void *user) {
    for (uint32_t n = 0; n < mu->n_nodes; n++) {
        const po_mu_statement *s = &mu->nodes[n].statement;
        for (uint32_t k = 0; mu->nodes[n].kind == PO_MU_STATEMENT && k <= s->n_in; k++) {
            const po_mu_access *a = k < s->n_in ? &s->in[k] : &s->out;
            if ((tensor == PO_NONE || a->tensor == tensor) && !see(user, a))
                return false;
        }
    }
    return true;
}

typedef struct looking {
    const po_mu *mu;
    uint32_t axis, label;
    int64_t point[64];
    uint32_t n;
    cut found;
} looking;

/* Notes where the digits of an access begin. */
static bool note(void *user, const po_mu_access *a) {
    looking *l = user;
    uint32_t n;
    po_mu_term digits[PO_MU_MAX_RANK];
    if (!part_digits_of(l->mu, &a->axes[l->axis], l->mu->tensors[a->tensor].dims[l->axis], &n,
                        digits))
        return false;
    for (uint32_t k = 0; k < n && l->n < 64; k++)
        l->point[l->n++] = digits[k].coef;
    return true;
}

/* Finds a digit that another access has in two; false where there is one. */
static bool whole(void *user, const po_mu_access *a) {
    looking *l = user;
    uint32_t n;
    po_mu_term digits[PO_MU_MAX_RANK];
    (void)part_digits_of(l->mu, &a->axes[l->axis], l->mu->tensors[a->tensor].dims[l->axis], &n,
                         digits);
    for (uint32_t k = 0; k < n; k++)
        for (uint32_t i = 0; i < l->n; i++) {
            int64_t coef = digits[k].coef, end = coef * l->mu->labels[digits[k].label].extent;
            if (l->point[i] > coef && l->point[i] < end && l->point[i] % coef == 0 &&
                end % l->point[i] == 0) {
                l->found = (cut){digits[k].label, l->point[i] / coef};
                return false;
            }
        }
    return true;
}

/* Whether all indices with the label are digits that make up their axes. */
static bool is_digit(void *user, const po_mu_access *a) {
    looking *l = user;
    for (uint32_t x = 0; x < l->mu->tensors[a->tensor].rank; x++) {
        uint32_t n;
        po_mu_term digits[PO_MU_MAX_RANK];
        if (po_mu_coef(&a->axes[x], l->label) &&
            (!part_digits_of(l->mu, &a->axes[x], l->mu->tensors[a->tensor].dims[x], &n, digits) ||
             n == PO_MU_MAX_RANK))
            return false;
    }
    return true;
}

static bool find_cut(const po_mu *mu, const bool *fixed, cut *c) {
    for (uint32_t t = 0; t < mu->n_tensors; t++) {
        po_mu_place place = mu->tensors[t].place;
        if (fixed[t] || (place != PO_MU_DEVICE && place != PO_MU_REGISTER))
            continue;
        for (uint32_t x = 0; x < mu->tensors[t].rank; x++) {
            looking l = {.mu = mu, .axis = x};
            if (!each_access(mu, t, note, &l) || each_access(mu, t, whole, &l))
                continue;
            l.label = l.found.label;
            if (!each_access(mu, PO_NONE, is_digit, &l))
                continue;
            *c = l.found;
            return true;
        }
    }
    return false;
}

/* Writes two labels for one. */
static po_mu_access cut_access(po_mu *to, const po_mu *mu, const po_mu_access *a, const cut *c,
                               const uint32_t label[2]) {
    po_mu_access out = po_mu_access_of(to, a->tensor);
    for (uint32_t x = 0; x < mu->tensors[a->tensor].rank; x++) {
        po_mu_at(to, &out, x, a->axes[x].offset, PO_NONE);
        for (uint32_t k = 0; k < a->axes[x].n; k++) {
            po_mu_term t = a->axes[x].terms[k];
            if (t.label != c->label) {
                po_mu_at(to, &out, x, t.coef, t.label);
                continue;
            }
            po_mu_at(to, &out, x, t.coef * c->at, label[0]);
            po_mu_at(to, &out, x, t.coef, label[1]);
        }
    }
    return out;
}

static po_mu *apply(po_arena *arena, const po_mu *mu, const cut *c) {
    po_mu *to = part_same_tables(arena, mu);
    const po_mu_label *l = &mu->labels[c->label];
    uint32_t label[2] = {po_mu_add_label(to, l->name, l->extent / c->at),
                         po_mu_add_label(to, l->name, c->at)};
    for (uint32_t step = mu->first; step != PO_NONE; step = mu->nodes[step].next) {
        uint32_t id = po_mu_add_step(to, mu->nodes[step].name);
        for (uint32_t n = mu->nodes[step].first; n != PO_NONE; n = mu->nodes[n].next) {
            const po_mu_statement *s = &mu->nodes[n].statement;
            po_mu_access in[PO_MU_MAX_INPUTS];
            for (uint32_t k = 0; k < s->n_in; k++)
                in[k] = cut_access(to, mu, &s->in[k], c, label);
            part_same_statement(to, id, s, in, cut_access(to, mu, &s->out, c, label));
        }
    }
    for (uint32_t i = 0; i < to->n_tensors; i++)
        po_mu_layout(to, i, 1, 0);
    return to;
}

const po_mu *part_with_digits(po_arena *arena, const po_mu *naive) {
    enum { MOST = 64 };
    bool *fixed = PO_NEW_N(arena, bool, naive->n_tensors + 1);
    uint32_t *writers = PO_NEW_N(arena, uint32_t, naive->n_tensors + 1);
    for (uint32_t i = 0; i < naive->n_nodes; i++) {
        if (naive->nodes[i].kind == PO_MU_LOOP)
            return naive;
        if (naive->nodes[i].kind == PO_MU_STATEMENT)
            writers[naive->nodes[i].statement.out.tensor]++;
    }
    for (uint32_t i = 0; i < naive->n_tensors; i++)
        fixed[i] = writers[i] != 1;
    const po_mu *mu = naive;
    cut c;
    for (uint32_t i = 0; i < MOST && find_cut(mu, fixed, &c); i++)
        mu = apply(arena, mu, &c);
    return mu;
}
