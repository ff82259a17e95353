/* Whether every element of an output is written: by one statement whose indices take every value,
 * else by marking up to 2^24 iterations, else by Z3. */
#include "mugraph/check.h"

#include "mugraph/prove.h"

/* Greatest number of iterations that are looked at one by one. */
static const int64_t most_looked_at = (int64_t)1 << 24;

/* Whether a sum of terms takes every value of [0, dim): by ascending size, no coefficient passes
 * what the smaller ones reach by more than one. */
static bool covers_axis(const po_mu *mu, const po_mu_index *index, int64_t dim) {
    enum { MOST = 64 };
    bool done[MOST] = {false};
    if (index->n > MOST)
        return false;
    __int128 reach = 0, least = index->offset, most = index->offset;
    for (uint32_t k = 0; k < index->n; k++) {
        uint32_t next = PO_NONE;
        __int128 size = 0;
        for (uint32_t i = 0; i < index->n; i++) {
            __int128 coef =
                index->terms[i].coef < 0 ? -(__int128)index->terms[i].coef : index->terms[i].coef;
            if (!done[i] && (next == PO_NONE || coef < size)) {
                next = i;
                size = coef;
            }
        }
        done[next] = true;
        int64_t steps = mu->labels[index->terms[next].label].extent - 1;
        if (steps && size > reach + 1)
            return false;
        reach += size * steps;
        *(index->terms[next].coef < 0 ? &least : &most) +=
            index->terms[next].coef * (__int128)steps;
    }
    return least <= 0 && most >= dim - 1;
}

/* Whether the statement alone writes all of what it writes to. */
static bool covers(const po_mu *mu, uint32_t node) {
    const po_mu_statement *s = &mu->nodes[node].statement;
    const po_mu_tensor *t = &mu->tensors[s->out.tensor];
    if (s->combine == PO_MU_SET)
        for (uint32_t k = 0; k < s->n_in; k++)
            if (po_mu_edge_of(mu, node, k) == PO_MU_GUARD)
                return false;
    for (uint32_t x = 0; x < t->rank; x++) {
        if (!covers_axis(mu, &s->out.axes[x], t->dims[x]))
            return false;
        for (uint32_t y = 0; y < x; y++)
            for (uint32_t i = 0; i < s->out.axes[x].n; i++)
                if (po_mu_coef(&s->out.axes[y], s->out.axes[x].terms[i].label))
                    return false;
    }
    return true;
}

/* The element that an access names, row-major; -1 outside. */
static int64_t element(const po_mu *mu, const po_mu_access *access, const int64_t *value) {
    const po_mu_tensor *t = &mu->tensors[access->tensor];
    int64_t at = 0;
    for (uint32_t x = 0; x < t->rank; x++) {
        const po_mu_index *index = &access->axes[x];
        int64_t i = index->offset;
        for (uint32_t k = 0; k < index->n; k++)
            i += index->terms[k].coef * value[index->terms[k].label];
        if (i < 0 || i >= t->dims[x])
            return -1;
        at = at * t->dims[x] + i;
    }
    return at;
}

/* Marks what a statement writes, one iteration after the other; false where they are too many. */
static bool mark(po_mu_checker *c, uint32_t node, unsigned char *written) {
    const po_mu *mu = c->mu;
    const po_mu_statement *s = &mu->nodes[node].statement;
    uint32_t n_kept, n_reduced, *kept, *reduced;
    po_mu_labels_of(mu, s, c->arena, &n_kept, &kept, &n_reduced, &reduced);
    int64_t count = 1;
    for (uint32_t i = 0; i < n_kept; i++)
        if (__builtin_mul_overflow(count, mu->labels[kept[i]].extent, &count) ||
            count > most_looked_at)
            return false;
    int64_t *value = PO_NEW_N(c->arena, int64_t, mu->n_labels + 1);
    for (int64_t n = 0; n < count; n++) {
        int64_t rest = n, at;
        for (uint32_t i = n_kept; i-- > 0; rest /= mu->labels[kept[i]].extent)
            value[kept[i]] = rest % mu->labels[kept[i]].extent;
        at = element(mu, &s->out, value);
        bool inside = at >= 0;
        for (uint32_t k = 0; k < s->n_in && s->combine == PO_MU_SET; k++)
            inside = inside && element(mu, &s->in[k], value) >= 0;
        if (inside)
            written[at] = 1;
    }
    return true;
}

/* Beyond what is looked at one by one. */
static po_status large(po_mu_checker *c, uint32_t tensor) {
    if (po_mu_never_missed(c->mu, tensor, po_mu_checker_smt(c)) == PO_SMT_NEVER)
        return PO_OK;
    c->node = PO_NONE;
    return po_mu_bad(c, "it cannot be shown that output '%s' is written fully",
                     c->mu->tensors[tensor].name);
}

static po_status output(po_mu_checker *c, uint32_t tensor) {
    const po_mu *mu = c->mu;
    const po_mu_tensor *t = &mu->tensors[tensor];
    int64_t count = po_mu_elements(t);
    c->node = PO_NONE;
    unsigned char *written = NULL;
    for (int pass = 0; pass < 2; pass++) {
        for (uint32_t n = mu->first; n != PO_NONE; n = po_mu_next(mu, n)) {
            const po_mu_statement *s = &mu->nodes[n].statement;
            if (mu->nodes[n].kind != PO_MU_STATEMENT || s->out.tensor != tensor ||
                (s->combine != PO_MU_SET && !s->fresh))
                continue;
            if (pass == 0 && covers(mu, n))
                return PO_OK;
            if (pass == 1 && !mark(c, n, written))
                return large(c, tensor);
        }
        if (pass == 0 && count > most_looked_at)
            return large(c, tensor);
        if (pass == 0)
            written = po_arena_calloc(c->arena, (size_t)count, 1);
    }
    for (int64_t i = 0; i < count; i++)
        if (!written[i])
            return po_mu_bad(c, "element %lld of output '%s' is never written", (long long)i,
                             t->name);
    return PO_OK;
}

po_status po_mu_check_cover(po_mu_checker *c) {
    for (uint32_t i = 0; i < c->mu->n_tensors; i++)
        if (c->mu->tensors[i].place == PO_MU_OUTPUT)
            PO_TRY(output(c, i));
    return PO_OK;
}
