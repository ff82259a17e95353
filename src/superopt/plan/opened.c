/* Which schedules have a program for all sizes. What a schedule counts for itself, blocks and their
 * places, may be the number of one of the model's lengths at the size at hand, and would be taken
 * for it: that shows where what is written and what is read are no longer the same. */
#include "superopt/plan/internal.h"

/* The program at lengths that are as even as can be, whatever those at hand are. */
static const po_mu *at_even_lengths(po_arena *scratch, const po_mu_open *open) {
    enum { FIRST = 992, STEP = 32 };
    int64_t *lengths = PO_NEW_N(scratch, int64_t, open->n_names + 1);
    for (uint32_t i = 0; i < open->n_names; i++)
        lengths[i] = FIRST + STEP * (int64_t)i;
    return po_mu_open_at(scratch, open, lengths);
}

/* At multiples of those at hand that are the larger the later a name is, or the earlier. */
static const po_mu *at_uneven_lengths(po_arena *scratch, const po_mu_open *open, bool rising) {
    enum { TIMES = 3, MOST = 729 };
    const uint32_t n = open->n_names;
    int64_t *lengths = PO_NEW_N(scratch, int64_t, n + 1), times = 1;
    for (uint32_t i = 0; i < n; i++, times = times < MOST ? times * TIMES : 1) {
        const uint32_t k = rising ? i : n - 1 - i;
        lengths[k] = times * open->here[k];
    }
    return po_mu_open_at(scratch, open, lengths);
}

/* --- what is written and read --- */

/* Of each axis: the places from the first to the last that are written, within the dims or not, and
 * the last that is read within them. */
typedef struct extents {
    bool written;
    int64_t first[PO_MU_MAX_RANK], last[PO_MU_MAX_RANK], read[PO_MU_MAX_RANK];
} extents;

static void add_access(const po_mu *mu, const po_mu_access *access, bool written, extents *all) {
    const po_mu_tensor *t = &mu->tensors[access->tensor];
    extents *e = &all[access->tensor];
    for (uint32_t a = 0; a < t->rank; a++) {
        int64_t least, most;
        po_mu_range(mu, access, a, &least, &most);
        if (!written) {
            most = most < t->dims[a] ? most : t->dims[a] - 1;
            e->read[a] = most > e->read[a] ? most : e->read[a];
            continue;
        }
        e->first[a] = !e->written || least < e->first[a] ? least : e->first[a];
        e->last[a] = !e->written || most > e->last[a] ? most : e->last[a];
    }
    e->written |= written;
}

static const extents *extents_of(po_arena *arena, const po_mu *mu) {
    extents *all = PO_NEW_N(arena, extents, mu->n_tensors + 1);
    for (uint32_t n = mu->first; n != PO_NONE; n = po_mu_next(mu, n)) {
        const po_mu_statement *s = &mu->nodes[n].statement;
        for (uint32_t i = 0; mu->nodes[n].kind == PO_MU_STATEMENT && i <= s->n_in; i++)
            add_access(mu, i < s->n_in ? &s->in[i] : &s->out, i == s->n_in, all);
    }
    return all;
}

bool po_plan_is_naive(const po_standalone_step *lone, uint32_t tensor) {
    for (uint32_t i = 0; i < lone->naive->n_tensors; i++)
        if (lone->tensor[i] == tensor)
            return true;
    return false;
}

/* Whether an axis is written from end to end, or, of what the schedule has for itself, as far as it
 * is read. */
static bool is_covered(const po_mu *mu, const extents *e, uint32_t tensor, uint32_t axis,
                       bool of_naive) {
    const int64_t end = mu->tensors[tensor].dims[axis] - 1;
    const int64_t last = e->last[axis] < end ? e->last[axis] : end;
    return of_naive ? e->first[axis] <= 0 && last == end : last >= e->read[axis];
}

/* Whether all axes that are covered at hand are so in the program at another size. */
static bool is_covered_there(po_arena *scratch, const po_standalone_step *lone, const po_mu *here,
                             const extents *at_hand, const po_mu *there) {
    if (!there || !po_mu_open_is_there(there))
        return true;
    const extents *all = extents_of(scratch, there);
    for (uint32_t i = 0; i < there->n_tensors; i++) {
        const bool of_naive = po_plan_is_naive(lone, i);
        for (uint32_t a = 0; a < there->tensors[i].rank && all[i].written; a++)
            if (is_covered(here, &at_hand[i], i, a, of_naive) &&
                !is_covered(there, &all[i], i, a, of_naive))
                return false;
    }
    return true;
}

/* Whether what a schedule makes for itself has room for all that is written to it, at all sizes. It
 * has not where 4 rows of 14 are as many places as 8 rows of 7. */
static bool has_room(const po_mu_open *open, const po_standalone_step *lone) {
    const po_mu *mu = open->mu;
    for (uint32_t n = mu->first; n != PO_NONE; n = po_mu_next(mu, n)) {
        const po_mu_access *out = &mu->nodes[n].statement.out;
        if (mu->nodes[n].kind != PO_MU_STATEMENT || po_plan_is_naive(lone, out->tensor))
            continue;
        for (uint32_t a = 0; a < mu->tensors[out->tensor].rank; a++)
            if (po_mu_open_leaves(open, out, a))
                return false;
    }
    return true;
}

/* --- programs --- */

/* NULL, or why a step's program is none at other sizes. even: the program at such a size, or NULL.
 */
static const char *look(po_arena *scratch, const po_mu_open *open, const po_standalone_step *lone,
                        const po_mu *even) {
    if (!has_room(open, lone))
        return "what it keeps has no room at other sizes";
    const extents *at_hand = extents_of(scratch, open->mu);
    const po_mu *others[] = {even, at_uneven_lengths(scratch, open, true),
                             at_uneven_lengths(scratch, open, false)};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        if (!is_covered_there(scratch, lone, open->mu, at_hand, others[i]))
            return "it leaves places out at other sizes";
    return NULL;
}

po_status po_plan_is_open(const planning *p, po_arena *scratch, po_mu *mu,
                          const po_standalone_step *lone, const char *name, bool *is,
                          po_hash *wide) {
    const po_mu_open *open;
    po_status status = po_mu_open_by(p->ctx, scratch, mu, &p->options->open->naming, &open);
    const po_mu *even = status == PO_OK ? at_even_lengths(scratch, open) : NULL;
    const char *why = status == PO_OK && lone ? look(scratch, open, lone, even) : NULL;
    *is = status == PO_OK && !why;
    /* What it is called, whatever the size that it is made at: as it is at such a size. */
    *wide = even ? po_mu_hash(even) : (po_hash){0, 0};
    if (why)
        po_log(p->ctx, "%s: %s", name, why);
    if (status != PO_UNSUPPORTED)
        return status;
    po_log(p->ctx, "%s: %s", name, p->ctx->error.message);
    po_ctx_clear(p->ctx);
    return PO_OK;
}
