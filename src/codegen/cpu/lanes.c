/* LANES loops as straight-line code on vectors: labels inside are unrolled. Where that would take
 * more than 4096 evaluations of a statement, those that no register's name depends on run in
 * loops. */
#include "codegen/cpu/lanes.h"

#include "codegen/cpu/tile.h"

enum { MOST_UNROLLED = 4096 /* evaluations of one statement */ };

/* --- values of unrolled labels --- */

static void set_label(cg *g, uint32_t label, int64_t i) {
    const cg_span *span = &g->span[label];
    int64_t extent = g->mu->labels[label].extent;
    g->value[label] = (cg_value){span->start, i, i, extent - span->full + i, false};
}

void cg_first(cg *g, uint32_t n, const uint32_t *labels) {
    for (uint32_t i = 0; i < n; i++)
        set_label(g, labels[i], 0);
}

bool cg_next(cg *g, uint32_t n, const uint32_t *labels) {
    while (n-- > 0) {
        int64_t at = g->value[labels[n]].add + 1;
        if (at < g->span[labels[n]].full) {
            set_label(g, labels[n], at);
            return true;
        }
        set_label(g, labels[n], 0);
    }
    return false;
}

bool cg_starts(cg *g, const po_mu_statement *s, const char **condition) {
    uint32_t n_kept, *kept, n, *all;
    po_text text;
    po_text_init(&text, g->arena);
    *condition = NULL;
    if (!s->fresh)
        return false;
    po_mu_labels_of(g->mu, s, g->arena, &n_kept, &kept, &n, &all);
    for (uint32_t i = 0; i < n; i++) {
        const char *start = g->span[all[i]].start;
        if (start == NULL || g->span[all[i]].grid)
            continue;
        po_text_printf(&text, "%s%s == 0", text.size ? " && " : "", start);
        *condition = text.data;
    }
    return true;
}

/* --- elements --- */

/* The variable of an element of a REGISTER tensor. */
static po_status element(cg_unrolled *u, const po_mu_access *access, const char **name) {
    cg *g = u->g;
    const po_mu_tensor *t = &g->mu->tensors[access->tensor];
    po_text text;
    po_text_init(&text, g->arena);
    po_text_printf(&text, "r%u", g->tensor[access->tensor].number);
    for (uint32_t a = 0; a < t->rank; a++) {
        int64_t least, at = access->axes[a].offset;
        po_dim held;
        (void)po_mu_open_held(g->open, access->tensor, a, &least, &held);
        for (uint32_t i = 0; i < access->axes[a].n; i++) {
            po_mu_term term = access->axes[a].terms[i];
            const cg_value *v = &g->value[term.label];
            const char *start = g->span[term.label].start;
            if (term.label == u->lane || g->span[term.label].at != NULL)
                continue;
            bool local = po_mu_local(g->mu, access->tensor, term.label);
            if (v->name != NULL && !(local && start != NULL && strcmp(v->name, start) == 0))
                return po_fail(g->ctx, PO_UNSUPPORTED,
                               "step '%s': register '%s' is indexed by label '%s', which is not "
                               "unrolled",
                               g->step, t->name, g->mu->labels[term.label].name);
            at += term.coef * v->add;
        }
        if (at - least < 0 || (held.value >= 0 && at - least >= held.value))
            return po_fail(g->ctx, PO_UNSUPPORTED, "step '%s': register '%s' is used outside",
                           g->step, t->name);
        po_text_printf(&text, "_%lld", (long long)(at - least));
    }
    *name = text.data;
    for (uint32_t i = 0; i < u->n_names; i++)
        if (strcmp(u->names[i], *name) == 0)
            return PO_OK;
    PO_PUSH(g->arena, u->names, u->n_names, u->cap_names, *name);
    return PO_OK;
}

/* The condition that an access lies inside, NULL where it always does. */
static const char *inside(cg_unrolled *u, uint32_t operand) {
    cg *g = u->g;
    const po_mu_access *access = operand == PO_NONE ? &u->s->out : &u->s->in[operand];
    po_text text;
    po_text_init(&text, g->arena);
    if (po_mu_open_edge(g->open, u->node, operand) != PO_MU_GUARD)
        return NULL;
    for (uint32_t a = 0; a < g->mu->tensors[access->tensor].rank; a++)
        if (cg_leaves(g, access, a))
            po_text_printf(&text, "%s%s", text.size ? " && " : "", cg_inside(g, access, a));
    return text.size ? text.data : NULL;
}

static const char *pointer(cg_unrolled *u, const po_mu_access *access, const char *base) {
    return po_arena_printf(u->g->arena, "%s%s", base, cg_rest(u->g, access));
}

static const char *lanes_or(const cg_unrolled *u) {
    return u->tail ? u->tail : po_arena_printf(u->g->arena, "%lld", (long long)u->g->isa->lanes);
}

po_status cg_load(cg_unrolled *u, uint32_t operand, bool zero, const char **name, bool *vector) {
    cg *g = u->g;
    const po_mu_access *access = &u->s->in[operand];
    const po_mu_tensor *t = &g->mu->tensors[access->tensor];
    if (t->place == PO_MU_REGISTER) {
        *vector = true;
        return element(u, access, name);
    }
    *vector = po_mu_has(g->mu, access, u->lane);
    const char *p = pointer(u, access, u->base[operand]);
    for (uint32_t i = 0; i < u->n_cache; i++)
        if (strcmp(u->cache[i].key, p) == 0) {
            *name = u->cache[i].name;
            return PO_OK;
        }
    const char *condition = zero ? inside(u, operand) : NULL, *from;
    int64_t step = cg_step_of(g, access, u->lane);
    if (!*vector)
        from = po_arena_printf(g->arena, "*(%s)", p);
    else if (step == 1 && u->tail == NULL)
        from = po_arena_printf(g->arena, "pk_load(%s)", p);
    else if (step == 1)
        from = po_arena_printf(g->arena, "pk_load_n(%s, %s)", p, u->tail);
    else
        from = po_arena_printf(g->arena, "pk_gather(%s, %s, %s)", p,
                               cg_step_text(g, access, u->lane), lanes_or(u));
    *name = po_arena_printf(g->arena, "x%u", u->fresh_name++);
    const char *type = *vector ? "pk_v" : "float";
    if (condition == NULL) {
        cg_line(g, "const %s %s = %s;", type, *name, from);
    } else {
        cg_line(g, "%s %s = %s;", type, *name, *vector ? "pk_set(0.0f)" : "0.0f");
        cg_line(g, "if (%s)", condition);
        cg_line(g, "    %s = %s;", *name, from);
    }
    if (u->fetches && u->s->ahead_of == operand)
        cg_line(g, "pk_ahead(%s + %lld);", p, (long long)u->s->ahead);
    cg_cached c = {p, *name};
    PO_PUSH(g->arena, u->cache, u->n_cache, u->cap_cache, c);
    return PO_OK;
}

po_status cg_write(cg_unrolled *u, const char *value, bool vector, bool fresh,
                   const char *condition) {
    cg *g = u->g;
    const po_mu_access *access = &u->s->out;
    const po_mu_tensor *t = &g->mu->tensors[access->tensor];
    bool max = u->s->combine == PO_MU_MAXIMUM;
    bool replaces = u->s->combine == PO_MU_SET || (fresh && condition == NULL);
    bool lanes = t->place == PO_MU_REGISTER || po_mu_has(g->mu, access, u->lane);
    const char *where = NULL, *old = NULL, *guard = NULL, *p = NULL;
    int64_t step = cg_step_of(g, access, u->lane);
    if (lanes && !vector)
        value = po_arena_printf(g->arena, "pk_set(%s)", value);
    if (t->place == PO_MU_REGISTER) {
        PO_TRY(element(u, access, &where));
        old = where;
    } else {
        guard = inside(u, PO_NONE);
        p = pointer(u, access, u->base[PO_MU_MAX_INPUTS]);
        const char *n = lanes_or(u);
        old = !lanes      ? po_arena_printf(g->arena, "*(%s)", p)
              : step != 1 ? po_arena_printf(g->arena, "pk_gather(%s, %s, %s)", p,
                                            cg_step_text(g, access, u->lane), n)
              : u->tail   ? po_arena_printf(g->arena, "pk_load_n(%s, %s)", p, n)
                          : po_arena_printf(g->arena, "pk_load(%s)", p);
    }
    if (guard != NULL)
        cg_open(g, "if (%s)", guard);
    if (!replaces) {
        const char *start = max ? "-__builtin_inff()" : "0.0f";
        if (lanes)
            start = po_arena_printf(g->arena, "pk_set(%s)", start);
        if (fresh)
            old = po_arena_printf(g->arena, "(%s ? %s : %s)", condition, start, old);
        value = po_arena_printf(g->arena, max ? "pk_max%s(%s, %s)" : "%s(%s) + (%s)",
                                max && !lanes ? "1" : "", old, value);
    }
    if (where != NULL)
        cg_line(g, "%s = %s;", where, value);
    else if (!lanes)
        cg_line(g, "*(%s) = %s;", p, value);
    else if (step != 1)
        cg_line(g, "pk_scatter(%s, %s, %s, %s);", p, cg_step_text(g, access, u->lane), value,
                lanes_or(u));
    else if (u->tail)
        cg_line(g, "pk_store_n(%s, %s, %s);", p, value, u->tail);
    else
        cg_line(g, "pk_store(%s, %s);", p, value);
    if (guard != NULL)
        cg_close(g);
    return PO_OK;
}

/* --- a statement --- */

/* The statement's expression at the labels' values. */
static po_status expression(cg_unrolled *u, const char **value, bool *vector) {
    cg *g = u->g;
    const po_mu_statement *s = u->s;
    const char **names = PO_NEW_N(g->arena, const char *, s->n_items + 1);
    bool *is = PO_NEW_N(g->arena, bool, s->n_items + 1);
    for (uint32_t i = 0; i < s->n_items; i++) {
        const po_mu_item *it = &s->items[i];
        if (it->function == PO_MU_CONST) {
            names[i] = cg_constant(g, it->value);
            continue;
        }
        if (it->function == PO_MU_OPERAND) {
            PO_TRY(cg_load(u, it->a, false, &names[i], &is[i]));
            continue;
        }
        if (cg_is_gate(s, i))
            continue;
        const uint32_t of[3] = {it->a, it->b, it->c};
        const char *argument[3] = {"", "", ""};
        bool lanes[3] = {false, false, false};
        for (uint32_t a = 0; a < po_mu_arity(it->function); a++) {
            argument[a] = names[of[a]];
            lanes[a] = is[of[a]];
            is[i] |= is[of[a]];
        }
        names[i] = po_arena_printf(g->arena, "e%u", u->fresh_name++);
        cg_line(g, "const %s %s = %s;", is[i] ? "pk_v" : "float", names[i],
                cg_item(g, s, i, argument, lanes));
    }
    *value = names[s->n_items - 1];
    *vector = is[s->n_items - 1];
    return PO_OK;
}

static po_status plain(cg_unrolled *u, uint32_t n_kept, const uint32_t *kept, uint32_t n_reduced,
                       const uint32_t *reduced, bool loops_reduce) {
    cg *g = u->g;
    const po_mu_statement *s = u->s;
    const char *condition;
    bool fresh = cg_starts(g, s, &condition);
    if (s->combine == PO_MU_SET && n_reduced > 0)
        return po_fail(g->ctx, PO_UNSUPPORTED,
                       "step '%s': '%s' is set once for each of its reduced labels", g->step,
                       g->mu->tensors[s->out.tensor].name);
    cg_first(g, n_kept, kept);
    do {
        bool start = fresh && !loops_reduce;
        cg_first(g, n_reduced, reduced);
        do {
            po_text guards;
            po_text_init(&guards, g->arena);
            for (uint32_t k = 0; k < s->n_in; k++) {
                const char *c = inside(u, k);
                if (c != NULL)
                    po_text_printf(&guards, "%s%s", guards.size ? " && " : "", c);
            }
            uint32_t cached = u->n_cache;
            if (guards.size > 0 && start && s->combine != PO_MU_SET) {
                /* It starts, whether or not there is a first term. */
                const char *zero = s->combine == PO_MU_ADD ? "0.0f" : "-__builtin_inff()";
                PO_TRY(cg_write(u, zero, false, true, condition));
                start = false;
            }
            if (guards.size > 0)
                cg_open(g, "if (%s)", guards.data);
            const char *value;
            bool vector;
            PO_TRY(expression(u, &value, &vector));
            PO_TRY(cg_write(u, value, vector, start, start ? condition : NULL));
            start = false;
            if (guards.size > 0) {
                cg_close(g);
                u->n_cache = cached;
            }
        } while (cg_next(g, n_reduced, reduced));
    } while (cg_next(g, n_kept, kept));
    return PO_OK;
}

static bool in_registers(cg *g, const po_mu_statement *s, uint32_t label) {
    for (uint32_t k = 0; k <= s->n_in; k++) {
        const po_mu_access *access = k < s->n_in ? &s->in[k] : &s->out;
        const po_mu_tensor *t = &g->mu->tensors[access->tensor];
        if ((t->place == PO_MU_REGISTER || t->place == PO_MU_TABLE) &&
            po_mu_has(g->mu, access, label))
            return true;
    }
    return false;
}

static po_status statement(cg_unrolled *u, uint32_t node) {
    cg *g = u->g;
    const po_mu_statement *s = &g->mu->nodes[node].statement;
    uint32_t n_all[2], *all[2], n[2] = {0, 0}, *run[2];
    u->node = node;
    u->s = s;
    u->fetches = s->ahead != 0 && !cg_is_fetched_later(u->g, node);
    u->n_cache = 0;
    po_mu_labels_of(g->mu, s, g->arena, &n_all[0], &all[0], &n_all[1], &all[1]);
    int64_t total = 1;
    for (int r = 0; r < 2; r++)
        for (uint32_t i = 0; i < n_all[r]; i++) {
            const cg_span *span = &g->span[all[r][i]];
            if (all[r][i] == u->lane && r == 1)
                return po_fail(g->ctx, PO_UNSUPPORTED,
                               "step '%s': lanes '%s' are added up inside their loop", g->step,
                               g->mu->labels[u->lane].name);
            if (all[r][i] != u->lane && span->at == NULL && total <= MOST_UNROLLED)
                total *= span->full;
        }
    if (s->combine != PO_MU_SET && s->fresh && !cg_is_apart(g, &s->out))
        return po_fail(g->ctx, PO_UNSUPPORTED,
                       "step '%s': elements of '%s' are added to more than once inside lanes",
                       g->step, g->mu->tensors[s->out.tensor].name);
    /* Labels that no variable's name depends on may run in loops. */
    uint32_t braces = 0;
    bool loops_reduce = false;
    cg_brace(g);
    for (int r = 0; r < 2; r++) {
        run[r] = PO_NEW_N(g->arena, uint32_t, n_all[r] + 1);
        for (uint32_t i = 0; i < n_all[r]; i++) {
            uint32_t label = all[r][i];
            const cg_span *span = &g->span[label];
            if (label == u->lane)
                continue;
            if (span->at != NULL || (span->full == 1 && span->count == NULL)) {
                (void)cg_run(g, label, false);
                continue;
            }
            bool must = in_registers(g, s, label);
            if (span->count != NULL && must)
                return po_fail(g->ctx, PO_UNSUPPORTED,
                               "step '%s': the chunks of label '%s' differ inside lanes", g->step,
                               g->mu->labels[label].name);
            if (span->count == NULL && (must || total <= MOST_UNROLLED)) {
                run[r][n[r]++] = label;
                continue;
            }
            if (r == 1 && s->fresh)
                return po_fail(g->ctx, PO_UNSUPPORTED,
                               "step '%s': reduced label '%s' is too long for lanes", g->step,
                               g->mu->labels[label].name);
            loops_reduce |= r == 1;
            braces += cg_run(g, label, false);
        }
    }
    if (total > MOST_UNROLLED && braces == 0)
        return po_fail(g->ctx, PO_UNSUPPORTED, "step '%s': '%s' is too much to unroll", g->step,
                       g->mu->tensors[s->out.tensor].name);
    cg_first(g, n[0], run[0]);
    cg_first(g, n[1], run[1]);
    for (uint32_t k = 0; k <= s->n_in; k++) {
        const po_mu_access *access = k < s->n_in ? &s->in[k] : &s->out;
        uint32_t at = k < s->n_in ? k : PO_MU_MAX_INPUTS;
        po_mu_place place = g->mu->tensors[access->tensor].place;
        if (place == PO_MU_REGISTER)
            continue;
        u->base[at] = po_arena_printf(g->arena, "p%u", at);
        cg_line(g, "%sfloat *const p%u = %s;", k < s->n_in ? "const " : "", at, cg_base(g, access));
    }
    bool done = false;
    if (!loops_reduce)
        PO_TRY(cg_linear(u, n[0], run[0], n[1], run[1], &done));
    if (!done)
        PO_TRY(plain(u, n[0], run[0], n[1], run[1], loops_reduce));
    while (braces-- > 0)
        cg_close(g);
    cg_close(g);
    return PO_OK;
}

/* --- the loop --- */

static po_status inside_of(cg_unrolled *u, uint32_t node) {
    cg *g = u->g;
    const po_mu *mu = g->mu;
    for (uint32_t n = mu->nodes[node].first; n != PO_NONE; n = mu->nodes[n].next) {
        if (mu->nodes[n].kind == PO_MU_STATEMENT) {
            PO_TRY(statement(u, n));
            continue;
        }
        if (mu->nodes[n].loop == PO_MU_LANES)
            return po_fail(g->ctx, PO_UNSUPPORTED, "step '%s': lanes inside lanes", g->step);
        cg_chunks(g, n);
        PO_TRY(inside_of(u, n));
        cg_chunks_end(g, n);
    }
    return PO_OK;
}

typedef struct one_vector {
    cg *g;
    uint32_t node;
} one_vector;

static po_status vector_of(void *user, cg_steps steps) {
    const one_vector *o = user;
    cg *g = o->g;
    cg_unrolled u = {.g = g, .lane = g->mu->nodes[o->node].label, .tail = cg_tail_of(g, steps)};
    cg_value value = g->value[u.lane];
    cg_span span = g->span[u.lane];
    /* What lives inside holds one vector. */
    g->span[u.lane].start = value.name;
    /* The variables are known once everything is printed. */
    po_text *out = g->out, inner;
    po_text_init(&inner, g->arena);
    g->out = &inner;
    po_status status = inside_of(&u, o->node);
    g->out = out;
    g->span[u.lane] = span;
    PO_TRY(status);
    for (uint32_t i = 0; i < u.n_names; i++)
        cg_line(g, "pk_v %s;", u.names[i]);
    po_text_add(out, inner.data == NULL ? "" : inner.data, inner.size);
    return PO_OK;
}

/* --- loops that all statements share --- */

static bool same_along(const po_mu *mu, const po_mu_access *a, const po_mu_access *b,
                       uint32_t label) {
    for (uint32_t x = 0; x < mu->tensors[a->tensor].rank; x++) {
        const po_mu_index *i = &a->axes[x], *j = &b->axes[x];
        if (po_mu_coef(i, label) == 0 && po_mu_coef(j, label) == 0)
            continue;
        if (i->n != 1 || j->n != 1 || i->offset != j->offset ||
            po_mu_coef(i, label) != po_mu_coef(j, label))
            return false;
    }
    return true;
}

static bool keeps(const po_mu *mu, const po_mu_statement *s, uint32_t label) {
    return po_mu_has(mu, &s->out, label);
}

/* Whether the body is to run for one value of a label after the other: every statement keeps it,
 * and what one of them writes is met elsewhere at the same value only. Labels of tables are
 * unrolled instead: their entries are numbers then. */
static bool is_common(cg *g, uint32_t node, uint32_t label) {
    const po_mu *mu = g->mu;
    for (uint32_t n = mu->nodes[node].first; n != PO_NONE; n = mu->nodes[n].next) {
        const po_mu_statement *s = &mu->nodes[n].statement;
        if (mu->nodes[n].kind != PO_MU_STATEMENT || !keeps(mu, s, label))
            return false;
        for (uint32_t m = mu->nodes[node].first; m != PO_NONE; m = mu->nodes[m].next) {
            const po_mu_statement *o = &mu->nodes[m].statement;
            if (mu->nodes[m].kind != PO_MU_STATEMENT)
                return false;
            for (uint32_t k = 0; k <= o->n_in; k++) {
                const po_mu_access *access = k < o->n_in ? &o->in[k] : &o->out;
                const po_mu_tensor *t = &mu->tensors[access->tensor];
                if (t->place == PO_MU_TABLE && po_mu_has(mu, access, label))
                    return false;
                if (access->tensor == s->out.tensor && !same_along(mu, &s->out, access, label))
                    return false;
            }
        }
    }
    return true;
}

po_status cg_lanes(cg *g, uint32_t node) {
    uint32_t lane = g->mu->nodes[node].label, braces = 0;
    cg_span *saved = po_arena_memdup(g->arena, g->span, (g->mu->n_labels + 1) * sizeof *g->span);
    for (uint32_t label = 0; label < g->mu->n_labels; label++) {
        cg_span *span = &g->span[label];
        if (label == lane || span->at != NULL || (span->full == 1 && span->count == NULL) ||
            !is_common(g, node, label))
            continue;
        braces += cg_run(g, label, false);
        span->at = g->value[label].name;
    }
    one_vector o = {g, node};
    PO_TRY(cg_spread(g, lane, g->isa->lanes, g->isa->lanes, false, vector_of, &o));
    while (braces-- > 0)
        cg_close(g);
    memcpy(g->span, saved, g->mu->n_labels * sizeof *g->span);
    return PO_OK;
}
