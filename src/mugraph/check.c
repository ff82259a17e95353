/* What a muGraph must be to have a meaning: its parts, and the order that the others are asked in.
 */
#include "mugraph/check.h"

#include "mugraph/prove.h"

#include <math.h>
#include <stdio.h>

/* Greatest size, extent, stride and index: sums and products of a few of them fit. */
static const int64_t greatest = (int64_t)1 << 40;

po_status po_mu_bad(po_mu_checker *c, const char *format, ...) {
    char message[PO_MESSAGE_MAX];
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    const po_mu *mu = c->mu;
    if (c->node == PO_NONE)
        return po_fail(c->ctx, PO_BAD_INPUT, "muGraph '%s': %s", mu->name, message);
    const po_mu_node *n = &mu->nodes[c->node];
    const char *step = mu->nodes[po_mu_step_of(mu, c->node)].name;
    if (n->kind == PO_MU_STATEMENT && n->statement.out.tensor < mu->n_tensors)
        return po_fail(c->ctx, PO_BAD_INPUT, "muGraph '%s', step '%s', statement of '%s': %s",
                       mu->name, step ? step : "", mu->tensors[n->statement.out.tensor].name,
                       message);
    return po_fail(c->ctx, PO_BAD_INPUT, "muGraph '%s', step '%s': %s", mu->name, step ? step : "",
                   message);
}

po_smt *po_mu_checker_smt(po_mu_checker *c) {
    if (!c->smt)
        c->smt = po_smt_create(c->arena, 0);
    return c->smt;
}

/* --- labels --- */

static po_status labels(po_mu_checker *c) {
    po_map *names = po_map_create(c->arena);
    for (uint32_t i = 0; i < c->mu->n_labels; i++) {
        const po_mu_label *l = &c->mu->labels[i];
        const char *p = l->name ? l->name : "";
        bool plain = *p >= 'a' && *p <= 'z';
        for (; *p; p++)
            plain = plain && ((*p >= 'a' && *p <= 'z') || (*p >= '0' && *p <= '9'));
        if (!plain || po_mu_is_reserved(l->name))
            return po_mu_bad(c, "a label cannot be called '%s'", l->name ? l->name : "");
        if (po_map_put(names, l->name, i) != PO_NONE)
            return po_mu_bad(c, "there are two labels '%s'", l->name);
        if (l->extent < 1 || l->extent > greatest)
            return po_mu_bad(c, "label '%s' has extent %lld", l->name, (long long)l->extent);
    }
    return PO_OK;
}

/* --- tensors --- */

static bool is_scoped(const po_mu_tensor *t) {
    return t->place == PO_MU_SHARED || t->place == PO_MU_REGISTER;
}

/* Strides under which no two elements, those of the ring included, share a place. */
static po_status strides(po_mu_checker *c, uint32_t tensor, const int64_t *extent, bool dense) {
    const po_mu_tensor *t = &c->mu->tensors[tensor];
    int64_t row_major = 1, reach = 0;
    for (uint32_t x = t->rank; x-- > 0;) {
        if (t->stride[x] < 0 || t->stride[x] > greatest)
            return po_mu_bad(c, "tensor '%s' has stride %lld on axis %u", t->name,
                             (long long)t->stride[x], x);
        if (dense && t->stride[x] != row_major)
            return po_mu_bad(c, "tensor '%s' must be dense: stride %lld on axis %u, not %lld",
                             t->name, (long long)t->stride[x], x, (long long)row_major);
        row_major = dense ? row_major * extent[x] : 1;
    }
    /* By ascending stride each must pass all that the smaller ones reach. */
    bool done[PO_MU_MAX_RANK] = {false};
    for (uint32_t k = 0; k < t->rank; k++) {
        uint32_t least = PO_NONE;
        for (uint32_t x = 0; x < t->rank; x++)
            if (!done[x] && (least == PO_NONE || t->stride[x] < t->stride[least]))
                least = x;
        done[least] = true;
        if (extent[least] == 1)
            continue;
        if (t->stride[least] <= reach &&
            po_mu_never_overlap(t->rank, t->stride, extent, po_mu_checker_smt(c)) != PO_SMT_NEVER)
            return po_mu_bad(c, "elements of tensor '%s' overlap: stride %lld on axis %u", t->name,
                             (long long)t->stride[least], least);
        if (__builtin_mul_overflow(t->stride[least], extent[least] - 1, &row_major) ||
            __builtin_add_overflow(reach, row_major, &reach) || reach > greatest)
            return po_mu_bad(c, "tensor '%s' is too large", t->name);
    }
    int64_t origin = 0;
    for (uint32_t x = 0; x < t->rank; x++)
        origin += t->before[x] * t->stride[x];
    if (t->floats != reach + 1 || t->origin != origin)
        return po_mu_bad(
            c, "tensor '%s' was not laid out: %lld floats from %lld, not %lld from %lld", t->name,
            (long long)t->floats, (long long)t->origin, (long long)(reach + 1), (long long)origin);
    return PO_OK;
}

static po_status tensor(po_mu_checker *c, uint32_t i) {
    const po_mu_tensor *t = &c->mu->tensors[i];
    bool ports = t->place == PO_MU_INPUT || t->place == PO_MU_OUTPUT || t->place == PO_MU_WEIGHT ||
                 t->place == PO_MU_TABLE;
    int64_t extent[PO_MU_MAX_RANK], count = 1, least;
    if ((unsigned)t->place > PO_MU_REGISTER)
        return po_mu_bad(c, "tensor '%s' is at no place", t->name);
    if (!is_scoped(t) && t->scope != PO_NONE)
        return po_mu_bad(c, "tensor '%s' has a scope and is neither shared nor register", t->name);
    if (is_scoped(t) && t->scope != PO_NONE &&
        (t->scope >= c->mu->n_nodes || c->mu->nodes[t->scope].kind == PO_MU_STATEMENT))
        return po_mu_bad(c, "the scope of tensor '%s' is no loop", t->name);
    if (t->fill != 0 && t->fill != -(double)INFINITY)
        return po_mu_bad(c, "the ring of tensor '%s' holds %g, neither 0 nor -infinity", t->name,
                         t->fill);
    for (uint32_t x = 0; x < t->rank; x++) {
        if (t->dims[x] < 1 || __builtin_mul_overflow(count, t->dims[x], &count) || count > greatest)
            return po_mu_bad(c, "tensor '%s' has dim %lld on axis %u", t->name,
                             (long long)t->dims[x], x);
        if (t->before[x] < 0 || t->before[x] > greatest || t->after[x] < 0 ||
            t->after[x] > greatest)
            return po_mu_bad(c, "tensor '%s' has a ring of %lld and %lld on axis %u", t->name,
                             (long long)t->before[x], (long long)t->after[x], x);
        if (ports && (t->before[x] || t->after[x]))
            return po_mu_bad(c, "tensor '%s' is dense, as the runtime holds it, and has a ring",
                             t->name);
    }
    if (t->place == PO_MU_TABLE && !t->table)
        return po_mu_bad(c, "table '%s' has no fractions", t->name);
    if (t->place != PO_MU_TABLE && t->table)
        return po_mu_bad(c, "tensor '%s' has fractions and is no table", t->name);
    for (int64_t k = 0; t->table && k < count; k++)
        if (t->table[k].den < 1)
            return po_mu_bad(c, "table '%s' holds %lld/%lld", t->name, (long long)t->table[k].num,
                             (long long)t->table[k].den);
    for (uint32_t x = 0; x < t->rank; x++) {
        bool cut = po_mu_held(c->mu, i, x, &least, &extent[x]);
        if (cut && (t->before[x] || t->after[x]))
            return po_mu_bad(c, "tensor '%s' has a ring on axis %u, of which a chunk is held",
                             t->name, x);
        extent[x] += t->before[x] + t->after[x];
    }
    return strides(c, i, extent, ports);
}

static po_status tensors(po_mu_checker *c) {
    const po_mu *mu = c->mu;
    po_map *names = po_map_create(c->arena);
    uint32_t count[PO_MU_WEIGHT + 1] = {0};
    unsigned char *seen = po_arena_calloc(c->arena, mu->n_tensors + 1, 1);
    for (uint32_t i = 0; i < mu->n_tensors; i++) {
        const po_mu_tensor *t = &mu->tensors[i];
        if (!t->name || po_map_put(names, t->name, i) != PO_NONE)
            return po_mu_bad(c, "there are two tensors '%s'", t->name ? t->name : "");
        if (t->rank > PO_MU_MAX_RANK)
            return po_mu_bad(c, "tensor '%s' has %u axes, more than %d", t->name, t->rank,
                             PO_MU_MAX_RANK);
        if (t->place <= PO_MU_WEIGHT)
            count[t->place]++;
    }
    for (uint32_t i = 0; i < mu->n_tensors; i++) {
        const po_mu_tensor *t = &mu->tensors[i];
        if (t->place > PO_MU_WEIGHT)
            continue;
        unsigned char bit = (unsigned char)(1u << t->place);
        if (t->number >= count[t->place])
            return po_mu_bad(c, "tensor '%s' is number %u of %u", t->name, t->number,
                             count[t->place]);
        if (seen[t->number] & bit)
            return po_mu_bad(c, "tensor '%s' has the number %u of another", t->name, t->number);
        seen[t->number] |= bit;
    }
    return PO_OK;
}

/* --- accesses --- */

static po_status access_of(po_mu_checker *c, const po_mu_access *access) {
    const po_mu *mu = c->mu;
    if (access->tensor >= mu->n_tensors)
        return po_mu_bad(c, "an access of no tensor");
    const po_mu_tensor *t = &mu->tensors[access->tensor];
    for (uint32_t x = 0; x < t->rank; x++) {
        const po_mu_index *index = &access->axes[x];
        int64_t least, most;
        for (uint32_t k = 0; k < index->n; k++) {
            const po_mu_term *term = &index->terms[k];
            if (term->label >= mu->n_labels || term->coef == 0 ||
                (k && term->label <= index->terms[k - 1].label))
                return po_mu_bad(c, "a malformed index on axis %u of '%s'", x, t->name);
        }
        po_mu_range(mu, access, x, &least, &most);
        if (index->offset < -greatest || index->offset > greatest || least < -greatest ||
            most > greatest)
            return po_mu_bad(c, "axis %u of '%s' is read from %lld to %lld", x, t->name,
                             (long long)least, (long long)most);
        for (uint32_t k = 0; k < index->n; k++)
            if (index->terms[k].coef < -greatest || index->terms[k].coef > greatest)
                return po_mu_bad(c, "a coefficient of %lld on axis %u of '%s'",
                                 (long long)index->terms[k].coef, x, t->name);
    }
    return PO_OK;
}

/* --- the tree --- */

/* Every node hangs once under its parent, by kind where it may. */
static po_status tree(po_mu_checker *c) {
    const po_mu *mu = c->mu;
    unsigned char *seen = po_arena_calloc(c->arena, mu->n_nodes + 1, 1);
    uint32_t n_seen = 0;
    for (uint32_t i = 0; i <= mu->n_nodes; i++) {
        uint32_t parent = i == mu->n_nodes ? PO_NONE : i;
        uint32_t child = parent == PO_NONE ? mu->first : mu->nodes[i].first;
        for (; child != PO_NONE; child = mu->nodes[child].next, n_seen++) {
            if (child >= mu->n_nodes || seen[child] || mu->nodes[child].parent != parent ||
                (parent != PO_NONE && child <= parent))
                return po_mu_bad(c, "the tree is malformed at node %u", child);
            seen[child] = 1;
            bool right = parent == PO_NONE ? mu->nodes[child].kind == PO_MU_STEP
                                           : mu->nodes[child].kind != PO_MU_STEP &&
                                                 mu->nodes[parent].kind != PO_MU_STATEMENT;
            if (!right || (unsigned)mu->nodes[child].kind > PO_MU_STATEMENT)
                return po_mu_bad(c, "node %u stands where its kind cannot", child);
        }
    }
    if (n_seen != mu->n_nodes)
        return po_mu_bad(c, "%u of %u nodes are not in the tree", mu->n_nodes - n_seen,
                         mu->n_nodes);
    return PO_OK;
}

static po_status loop(po_mu_checker *c, uint32_t i) {
    const po_mu *mu = c->mu;
    const po_mu_node *n = &mu->nodes[i];
    c->node = i;
    if (n->first == PO_NONE)
        return po_mu_bad(c, n->kind == PO_MU_STEP ? "the step is empty" : "a loop is empty");
    if (n->kind == PO_MU_STEP)
        return n->name ? PO_OK : po_mu_bad(c, "a step without a name");
    if ((unsigned)n->loop > PO_MU_LANES || n->label >= mu->n_labels)
        return po_mu_bad(c, "a loop over no label");
    const char *name = mu->labels[n->label].name;
    if (n->loop == PO_MU_LANES ? n->chunk != 0 : n->chunk < 1)
        return po_mu_bad(c, "the loop over '%s' has chunks of %lld", name, (long long)n->chunk);
    uint32_t depth = 0, grids = 0;
    for (uint32_t at = i; mu->nodes[at].kind == PO_MU_LOOP; at = mu->nodes[at].parent) {
        depth++;
        grids += mu->nodes[at].loop == PO_MU_GRID;
    }
    if (depth > PO_MU_MAX_DEPTH)
        return po_mu_bad(c, "loops nested deeper than %d", PO_MU_MAX_DEPTH);
    if (grids > PO_MU_MAX_GRID)
        return po_mu_bad(c, "more than %d grid loops around one another", PO_MU_MAX_GRID);
    if (po_mu_binder(mu, i, n->label) != PO_NONE)
        return po_mu_bad(c, "label '%s' is bound by two loops around one another", name);
    const po_mu_node *parent = &mu->nodes[n->parent];
    if (n->loop == PO_MU_GRID && parent->kind == PO_MU_LOOP && parent->loop != PO_MU_GRID)
        return po_mu_bad(c, "the grid loop over '%s' is inside a loop that is none", name);
    if (n->loop == PO_MU_GRID && (parent->first != i || n->next != PO_NONE))
        return po_mu_bad(c, "the grid loop over '%s' does not stand alone", name);
    return PO_OK;
}

po_status po_mu_check_parts(po_mu_checker *c) {
    const po_mu *mu = c->mu;
    PO_TRY(labels(c));
    PO_TRY(tensors(c));
    PO_TRY(tree(c));
    for (uint32_t i = 0; i < mu->n_nodes; i++)
        if (mu->nodes[i].kind != PO_MU_STATEMENT)
            PO_TRY(loop(c, i));
    for (uint32_t i = 0; i < mu->n_nodes; i++) {
        const po_mu_statement *s = &mu->nodes[i].statement;
        if (mu->nodes[i].kind != PO_MU_STATEMENT)
            continue;
        c->node = i;
        if (s->n_in > PO_MU_MAX_INPUTS)
            return po_mu_bad(c, "%u operands, more than %d", s->n_in, PO_MU_MAX_INPUTS);
        PO_TRY(access_of(c, &s->out));
        for (uint32_t k = 0; k < s->n_in; k++)
            PO_TRY(access_of(c, &s->in[k]));
    }
    c->node = PO_NONE;
    for (uint32_t i = 0; i < mu->n_tensors; i++)
        PO_TRY(tensor(c, i));
    return PO_OK;
}

/* --- all --- */

static po_status shared_bytes(po_mu_checker *c, int64_t limit) {
    const po_mu *mu = c->mu;
    for (uint32_t step = mu->first; step != PO_NONE; step = mu->nodes[step].next) {
        int64_t bytes = 0;
        unsigned char *seen = po_arena_calloc(c->arena, mu->n_tensors + 1, 1);
        for (uint32_t n = step; n != PO_NONE && po_mu_inside(mu, n, step); n = po_mu_next(mu, n)) {
            const po_mu_statement *s = &mu->nodes[n].statement;
            if (mu->nodes[n].kind != PO_MU_STATEMENT || seen[s->out.tensor])
                continue;
            seen[s->out.tensor] = 1;
            if (mu->tensors[s->out.tensor].place == PO_MU_SHARED)
                bytes += po_mu_bytes(mu->tensors[s->out.tensor].type) *
                         mu->tensors[s->out.tensor].floats;
        }
        c->node = step;
        if (bytes > limit)
            return po_mu_bad(c, "shared tensors take %lld bytes, more than %lld", (long long)bytes,
                             (long long)limit);
    }
    return PO_OK;
}

po_status po_mu_check(po_ctx *ctx, const po_mu *mu, int64_t shared_limit) {
    po_mu_checker c = {ctx, mu, po_arena_create(ctx), PO_NONE, NULL};
    po_status status = po_mu_check_parts(&c);
    if (status == PO_OK)
        status = po_mu_check_values(&c);
    if (status == PO_OK)
        status = po_mu_check_statements(&c);
    if (status == PO_OK)
        status = po_mu_check_flow(&c);
    if (status == PO_OK)
        status = shared_bytes(&c, shared_limit);
    if (status == PO_OK)
        status = po_mu_check_cover(&c);
    po_arena_free(c.arena);
    return status;
}
