/* Scopes, reads before writes, parallel chunks that meet, accumulators, fused chains and registers.
 * Chunks are apart by the coefficients of their indices, or else by Z3. */
#include "mugraph/check.h"

#include "mugraph/prove.h"

static bool is_scoped(const po_mu_tensor *t) {
    return t->place == PO_MU_SHARED || t->place == PO_MU_REGISTER;
}

/* Whether each run of the loop's body has a copy of the tensor of its own. */
static bool is_own(const po_mu *mu, uint32_t tensor, uint32_t loop) {
    const po_mu_tensor *t = &mu->tensors[tensor];
    return is_scoped(t) && t->scope != PO_NONE && po_mu_inside(mu, t->scope, loop);
}

/* --- scopes --- */

/* first: the first statement that names the tensor, PO_NONE: this one. */
static po_status within_scope(po_mu_checker *c, const po_mu_access *access, uint32_t first) {
    const po_mu *mu = c->mu;
    const po_mu_tensor *t = &mu->tensors[access->tensor];
    if (!is_scoped(t))
        return PO_OK;
    if (t->scope != PO_NONE && !po_mu_inside(mu, c->node, t->scope))
        return po_mu_bad(c, "'%s' is used outside the loop in which it lives", t->name);
    if (po_mu_step_of(mu, first) != po_mu_step_of(mu, c->node))
        return po_mu_bad(c, "'%s' is used in two steps", t->name);
    /* All accesses move alike along what is local, or they would not find the same place. */
    const po_mu_statement *s = &mu->nodes[first].statement;
    const po_mu_access *other = &s->out;
    for (uint32_t k = 0; k < s->n_in && other->tensor != access->tensor; k++)
        other = &s->in[k];
    for (uint32_t loop = t->scope; loop != PO_NONE; loop = mu->nodes[loop].parent)
        for (uint32_t x = 0; x < t->rank && mu->nodes[loop].kind == PO_MU_LOOP; x++) {
            uint32_t l = mu->nodes[loop].label;
            int64_t a = po_mu_coef(&access->axes[x], l), b = po_mu_coef(&other->axes[x], l);
            if (a != b)
                return po_mu_bad(c,
                                 "'%s' holds a chunk along '%s', and is used by %lld*%s and by "
                                 "%lld*%s on axis %u",
                                 t->name, mu->labels[l].name, (long long)a, mu->labels[l].name,
                                 (long long)b, mu->labels[l].name, x);
        }
    return PO_OK;
}

po_status po_mu_check_scopes(po_mu_checker *c) {
    const po_mu *mu = c->mu;
    uint32_t *first = PO_NEW_N(c->arena, uint32_t, mu->n_tensors + 1);
    for (uint32_t i = 0; i < mu->n_tensors; i++)
        first[i] = PO_NONE;
    for (uint32_t n = mu->first; n != PO_NONE; n = po_mu_next(mu, n)) {
        const po_mu_statement *s = &mu->nodes[n].statement;
        if (mu->nodes[n].kind != PO_MU_STATEMENT)
            continue;
        c->node = n;
        for (uint32_t k = 0; k <= s->n_in; k++) {
            const po_mu_access *access = k < s->n_in ? &s->in[k] : &s->out;
            if (first[access->tensor] == PO_NONE)
                first[access->tensor] = n;
            PO_TRY(within_scope(c, access, first[access->tensor]));
        }
    }
    return PO_OK;
}

/* --- reads before writes --- */

static po_status reads(po_mu_checker *c) {
    const po_mu *mu = c->mu;
    bool *written = PO_NEW_N(c->arena, bool, mu->n_tensors + 1);
    for (uint32_t i = 0; i < mu->n_tensors; i++)
        written[i] = mu->tensors[i].place == PO_MU_INPUT || mu->tensors[i].place == PO_MU_WEIGHT ||
                     mu->tensors[i].place == PO_MU_TABLE;
    for (uint32_t n = mu->first; n != PO_NONE; n = po_mu_next(mu, n)) {
        const po_mu_statement *s = &mu->nodes[n].statement;
        if (mu->nodes[n].kind != PO_MU_STATEMENT)
            continue;
        c->node = n;
        bool goes_on = s->combine != PO_MU_SET && !s->fresh;
        for (uint32_t k = 0; k < s->n_in + goes_on; k++) {
            uint32_t tensor = po_mu_touched(s, k);
            if (!written[tensor])
                return po_mu_bad(c, "'%s' is read, and no statement before writes it",
                                 mu->tensors[tensor].name);
        }
        written[s->out.tensor] = true;
    }
    return PO_OK;
}

/* --- parallel chunks --- */

/* What two indices of one axis differ by in different chunks of a loop: step * (1 to reach, or less
 * than 0) + something in [low, high] + a multiple of `unit` (0: none). */
typedef struct difference {
    __int128 step, reach, low, high, unit;
} difference;

static __int128 size_of(__int128 v) {
    return v < 0 ? -v : v;
}

static void add_term(difference *d, int64_t coef, int64_t steps, bool both_ways) {
    __int128 reach = (__int128)coef * steps;
    if (!reach)
        return;
    if (size_of(coef) > size_of(d->step) * d->reach) { /* a digit above that of the loop */
        __int128 a = size_of(coef);
        while (a) {
            __int128 rest = d->unit % a;
            d->unit = a;
            a = rest;
        }
        return;
    }
    d->low += both_ways || reach < 0 ? -size_of(reach) : 0;
    d->high += both_ways || reach > 0 ? size_of(reach) : 0;
}

/* Whether all that one access names lies before all that the other does, along some axis. */
static bool in_other_parts(const po_mu *mu, const po_mu_access *a, const po_mu_access *b) {
    for (uint32_t x = 0; x < mu->tensors[a->tensor].rank; x++) {
        int64_t least[2], most[2];
        po_mu_range(mu, a, x, &least[0], &most[0]);
        po_mu_range(mu, b, x, &least[1], &most[1]);
        if (most[0] < least[1] || most[1] < least[0])
            return true;
    }
    return false;
}

/* Whether two accesses, in different chunks of the loop, never meet: on some axis both move by the
 * loop's label alike, by more than smaller terms can make up for, and larger ones are multiples of
 * more than all these can reach. */
static bool is_apart(const po_mu *mu, uint32_t loop, const po_mu_access *a, const po_mu_access *b) {
    uint32_t label = mu->nodes[loop].label;
    int64_t extent = mu->labels[label].extent;
    bool lanes = mu->nodes[loop].loop == PO_MU_LANES; /* each lane is a chunk */
    if (extent <= (lanes ? 1 : po_mu_chunk(mu, loop)) || in_other_parts(mu, a, b))
        return true;
    for (uint32_t x = 0; x < mu->tensors[a->tensor].rank; x++) {
        const po_mu_index *i = &a->axes[x], *j = &b->axes[x];
        difference d = {.step = po_mu_coef(i, label), .reach = extent - 1};
        if (!d.step || d.step != po_mu_coef(j, label))
            continue;
        d.low = d.high = (__int128)i->offset - j->offset;
        for (int side = 0; side < 2; side++) {
            const po_mu_index *index = side ? j : i;
            for (uint32_t k = 0; k < index->n; k++) {
                po_mu_term t = index->terms[k];
                /* Bound around the loop: both are in the same chunk of it. */
                uint32_t binder = po_mu_binder(mu, loop, t.label);
                bool together =
                    binder != PO_NONE && po_mu_coef(i, t.label) == po_mu_coef(j, t.label);
                if (t.label == label || (together && side))
                    continue;
                int64_t steps =
                    (together ? po_mu_chunk(mu, binder) : mu->labels[t.label].extent) - 1;
                add_term(&d, side ? -t.coef : t.coef, steps, together);
            }
        }
        __int128 most = size_of(d.low) > size_of(d.high) ? size_of(d.low) : size_of(d.high);
        d.step = size_of(d.step);
        if (most < d.step && (!d.unit || d.step * d.reach + most < d.unit))
            return true;
    }
    return false;
}

static po_status apart(po_mu_checker *c, uint32_t loop, const po_mu_access *write,
                       uint32_t statement, uint32_t operand) {
    const po_mu *mu = c->mu;
    const po_mu_statement *s = &mu->nodes[statement].statement;
    const po_mu_access *other = operand == PO_NONE ? &s->out : &s->in[operand];
    if (other->tensor != write->tensor || is_apart(mu, loop, write, other) ||
        po_mu_never_meet(mu, loop, write, other, po_mu_checker_smt(c)) == PO_SMT_NEVER)
        return PO_OK;
    const char *label = mu->labels[mu->nodes[loop].label].name;
    const char *name = mu->tensors[write->tensor].name;
    if (operand == PO_NONE)
        return po_mu_bad(c, "parallel chunks of '%s' write the same elements of '%s'", label, name);
    return po_mu_bad(c, "a chunk of '%s' may read elements of '%s' that another writes", label,
                     name);
}

static bool moves_by(const po_mu *mu, const po_mu_access *access, uint32_t label) {
    for (uint32_t x = 0; x < mu->tensors[access->tensor].rank; x++)
        if (po_mu_coef(&access->axes[x], label))
            return true;
    return false;
}

/* Blocks have copies of their own of what lives in them. Lanes share one: in it, too, each has its
 * place, or all do the same. */
static po_status by_lanes(po_mu_checker *c, uint32_t loop, const po_mu_statement *s, bool *same) {
    const po_mu *mu = c->mu;
    uint32_t label = mu->nodes[loop].label;
    *same = !moves_by(mu, &s->out, label);
    for (uint32_t k = 0; k < s->n_in && *same; k++)
        if (moves_by(mu, &s->in[k], label))
            return po_mu_bad(c, "what differs from lane to lane of '%s' comes together in '%s'",
                             mu->labels[label].name, mu->tensors[s->out.tensor].name);
    return PO_OK;
}

static po_status parallel(po_mu_checker *c, uint32_t loop) {
    const po_mu *mu = c->mu;
    for (uint32_t n = loop; n != PO_NONE && po_mu_inside(mu, n, loop); n = po_mu_next(mu, n)) {
        const po_mu_statement *s = &mu->nodes[n].statement;
        if (mu->nodes[n].kind != PO_MU_STATEMENT)
            continue;
        bool skip = is_own(mu, s->out.tensor, loop);
        c->node = n;
        if (skip && mu->nodes[loop].loop == PO_MU_LANES)
            PO_TRY(by_lanes(c, loop, s, &skip));
        if (skip)
            continue;
        for (uint32_t m = loop; m != PO_NONE && po_mu_inside(mu, m, loop); m = po_mu_next(mu, m)) {
            const po_mu_statement *other = &mu->nodes[m].statement;
            if (mu->nodes[m].kind != PO_MU_STATEMENT)
                continue;
            c->node = m;
            PO_TRY(apart(c, loop, &s->out, m, PO_NONE));
            for (uint32_t k = 0; k < other->n_in; k++)
                PO_TRY(apart(c, loop, &s->out, m, k));
        }
    }
    return PO_OK;
}

/* --- accumulators --- */

/* Where a statement starts afresh: what it adds up must outlive the loops that it reduces, and the
 * start of one chunk must leave the others alone. */
static po_status fresh(po_mu_checker *c, const po_mu_statement *s) {
    const po_mu *mu = c->mu;
    for (uint32_t loop = mu->nodes[c->node].parent; loop != PO_NONE;
         loop = mu->nodes[loop].parent) {
        const po_mu_node *n = &mu->nodes[loop];
        if (n->kind != PO_MU_LOOP || n->loop != PO_MU_FOR ||
            mu->labels[n->label].extent <= po_mu_chunk(mu, loop))
            continue;
        bool kept = false, read = false;
        for (uint32_t k = 0; k <= s->n_in; k++) {
            const po_mu_access *access = k < s->n_in ? &s->in[k] : &s->out;
            *(k < s->n_in ? &read : &kept) |= po_mu_has(mu, access, n->label);
        }
        if (!kept && read && is_own(mu, s->out.tensor, loop))
            return po_mu_bad(c, "'%s' does not outlive the loop over '%s', which is added up",
                             mu->tensors[s->out.tensor].name, mu->labels[n->label].name);
        if (kept && !is_own(mu, s->out.tensor, loop) && !is_apart(mu, loop, &s->out, &s->out))
            return po_mu_bad(c, "the start of one chunk of '%s' undoes another's",
                             mu->labels[n->label].name);
    }
    return PO_OK;
}

/* --- register tensors, fused statements --- */

static bool in_lanes(const po_mu *mu, uint32_t node) {
    for (; node != PO_NONE; node = mu->nodes[node].parent)
        if (mu->nodes[node].kind == PO_MU_LOOP && mu->nodes[node].loop == PO_MU_LANES)
            return true;
    return false;
}

static uint32_t before(const po_mu *mu, uint32_t node) {
    uint32_t at = mu->nodes[mu->nodes[node].parent].first, last = PO_NONE;
    for (; at != node; at = mu->nodes[at].next)
        last = at;
    return last;
}

/* The statement at the head of a fused one's chain; PO_NONE where there is none. */
static uint32_t head_of(const po_mu *mu, uint32_t node) {
    while (node != PO_NONE && mu->nodes[node].kind == PO_MU_STATEMENT &&
           mu->nodes[node].statement.fused)
        node = before(mu, node);
    return node != PO_NONE && mu->nodes[node].kind == PO_MU_STATEMENT ? node : PO_NONE;
}

static po_status fused(po_mu_checker *c, const po_mu_statement *s) {
    const po_mu *mu = c->mu;
    uint32_t head = head_of(mu, c->node);
    if (head == PO_NONE)
        return po_mu_bad(c, "fused, and no statement stands before it");
    if (s->lane != PO_NONE || s->row != PO_NONE || s->n_order)
        return po_mu_bad(c, "fused, and with a tile of its own");
    /* What one of the chain writes must be read, by the same access. */
    bool reads = false;
    for (uint32_t at = head; at != c->node; at = mu->nodes[at].next)
        for (uint32_t k = 0; k < s->n_in; k++)
            reads |= po_mu_same_access(mu, &s->in[k], &mu->nodes[at].statement.out);
    if (!reads)
        return po_mu_bad(c, "fused, and does not read what the statements before it write");
    uint32_t n_kept, n_reduced, *kept, *reduced, n_head, *of_head;
    po_mu_labels_of(mu, s, c->arena, &n_kept, &kept, &n_reduced, &reduced);
    if (n_reduced)
        return po_mu_bad(c, "fused, and reduces '%s'", mu->labels[reduced[0]].name);
    po_mu_labels_of(mu, &mu->nodes[head].statement, c->arena, &n_head, &of_head, &n_reduced,
                    &reduced);
    if (n_head != n_kept || memcmp(kept, of_head, n_kept * sizeof *kept) != 0)
        return po_mu_bad(c, "fused, and its labels are not those that '%s' is written by",
                         mu->tensors[mu->nodes[head].statement.out.tensor].name);
    return PO_OK;
}

/* A register tensor lives in a lanes loop, or is used by one chain only. */
static po_status registers(po_mu_checker *c) {
    const po_mu *mu = c->mu;
    uint32_t *chain = PO_NEW_N(c->arena, uint32_t, mu->n_tensors + 1);
    for (uint32_t i = 0; i < mu->n_tensors; i++)
        chain[i] = PO_NONE;
    for (uint32_t n = mu->first; n != PO_NONE; n = po_mu_next(mu, n)) {
        const po_mu_statement *s = &mu->nodes[n].statement;
        if (mu->nodes[n].kind != PO_MU_STATEMENT)
            continue;
        c->node = n;
        uint32_t head = head_of(mu, n);
        for (uint32_t k = 0; k <= s->n_in; k++) {
            uint32_t tensor = po_mu_touched(s, k);
            const po_mu_tensor *t = &mu->tensors[tensor];
            if (t->place != PO_MU_REGISTER || (t->scope != PO_NONE && in_lanes(mu, t->scope)))
                continue;
            if (chain[tensor] == PO_NONE)
                chain[tensor] = head;
            if (chain[tensor] != head)
                return po_mu_bad(c,
                                 "register tensor '%s' is used outside the statements fused to "
                                 "the one that writes it",
                                 t->name);
        }
    }
    return PO_OK;
}

po_status po_mu_check_flow(po_mu_checker *c) {
    const po_mu *mu = c->mu;
    PO_TRY(po_mu_check_scopes(c));
    PO_TRY(reads(c));
    for (uint32_t i = 0; i < mu->n_nodes; i++) {
        c->node = i;
        if (mu->nodes[i].kind == PO_MU_STATEMENT && mu->nodes[i].statement.fused)
            PO_TRY(fused(c, &mu->nodes[i].statement));
    }
    for (uint32_t i = 0; i < mu->n_nodes; i++) {
        const po_mu_node *n = &mu->nodes[i];
        c->node = i;
        if (n->kind == PO_MU_LOOP && n->loop != PO_MU_FOR)
            PO_TRY(parallel(c, i));
        if (n->kind == PO_MU_STATEMENT && n->statement.fresh)
            PO_TRY(fresh(c, &n->statement));
    }
    return registers(c);
}
