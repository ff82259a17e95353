/* Conditions as questions to Z3 about values of labels: whether two iterations can name one
 * element, or one can leave its tensor's memory. Questions that differ in names alone are asked
 * once. */
#include "mugraph/prove.h"

#include "mugraph/check.h"

enum { MOST_CLAIMS = 2 * PO_MU_MAX_RANK * (PO_MU_MAX_INPUTS + 1) };

/* Values of labels: by label an expression, PO_NONE where there is none yet. */
typedef struct values {
    uint32_t *of;
} values;

static values no_values(const po_mu *mu, po_arena *arena) {
    values v = {PO_NEW_N(arena, uint32_t, mu->n_labels + 1)};
    for (uint32_t l = 0; l < mu->n_labels; l++)
        v.of[l] = PO_NONE;
    return v;
}

static void add_values(const po_mu *mu, po_smt *smt, values *v, const po_mu_access *access) {
    for (uint32_t x = 0; x < mu->tensors[access->tensor].rank; x++)
        for (uint32_t k = 0; k < access->axes[x].n; k++) {
            uint32_t l = access->axes[x].terms[k].label;
            if (v->of[l] == PO_NONE)
                v->of[l] = po_smt_variable(smt, 0, mu->labels[l].extent - 1);
        }
}

static uint32_t index_at(po_smt *smt, const values *v, const po_mu_index *index) {
    enum { AT_ONCE = 64 };
    po_smt_term terms[AT_ONCE];
    int64_t offset = index->offset;
    uint32_t n = 0;
    for (uint32_t k = 0; k < index->n; k++) {
        if (n == AT_ONCE) {
            terms[0] = (po_smt_term){po_smt_sum(smt, offset, n, terms), 1};
            offset = 0;
            n = 1;
        }
        terms[n++] = (po_smt_term){v->of[index->terms[k].label], index->terms[k].coef};
    }
    return po_smt_sum(smt, offset, n, terms);
}

static uint32_t whole(po_smt *smt, int64_t v) {
    return po_smt_sum(smt, v, 0, NULL);
}

/* The number of the chunk. */
static uint32_t chunk_at(const po_mu *mu, po_smt *smt, uint32_t loop, uint32_t value) {
    bool lanes = mu->nodes[loop].loop == PO_MU_LANES; /* each lane is a chunk */
    return lanes ? value : po_smt_quotient(smt, value, po_mu_chunk(mu, loop));
}

/* Expressions first: requirements begin with the question. */
typedef struct question {
    po_smt_claim all[MOST_CLAIMS], any[MOST_CLAIMS];
    uint32_t n_all, n_any;
} question;

static void both(question *q, po_smt_relation relation, uint32_t a, uint32_t b) {
    if (q->n_all < MOST_CLAIMS)
        q->all[q->n_all++] = (po_smt_claim){relation, a, b};
}

static void either(question *q, po_smt_relation relation, uint32_t a, uint32_t b) {
    if (q->n_any < MOST_CLAIMS)
        q->any[q->n_any++] = (po_smt_claim){relation, a, b};
}

static po_smt_answer ask(po_smt *smt, const question *q) {
    if (q->n_all == MOST_CLAIMS || q->n_any == MOST_CLAIMS)
        return PO_SMT_UNKNOWN;
    for (uint32_t i = 0; i < q->n_all; i++)
        po_smt_require(smt, q->all[i]);
    po_smt_require_any(smt, q->n_any, q->any);
    return po_smt_ask(smt);
}

po_smt_answer po_mu_never_twice(const po_mu *mu, uint32_t node, const po_mu_access *access,
                                po_smt *smt) {
    po_arena *arena = po_arena_child(mu->arena);
    values v = no_values(mu, arena), w = no_values(mu, arena);
    question q = {.n_all = 0};
    add_values(mu, smt, &v, access);
    add_values(mu, smt, &w, access);
    for (uint32_t l = 0; l < mu->n_labels; l++) {
        if (v.of[l] == PO_NONE)
            continue;
        either(&q, PO_SMT_DIFFERENT, v.of[l], w.of[l]);
        /* Storage of one chunk holds no other. */
        uint32_t loop = po_mu_local(mu, access->tensor, l) ? po_mu_binder(mu, node, l) : PO_NONE;
        if (loop != PO_NONE)
            both(&q, PO_SMT_EQUAL, po_smt_quotient(smt, v.of[l], po_mu_chunk(mu, loop)),
                 po_smt_quotient(smt, w.of[l], po_mu_chunk(mu, loop)));
    }
    for (uint32_t x = 0; x < mu->tensors[access->tensor].rank; x++)
        both(&q, PO_SMT_EQUAL, index_at(smt, &v, &access->axes[x]),
             index_at(smt, &w, &access->axes[x]));
    po_arena_free(arena);
    return ask(smt, &q);
}

po_smt_answer po_mu_never_meet(const po_mu *mu, uint32_t loop, const po_mu_access *a,
                               const po_mu_access *b, po_smt *smt) {
    po_arena *arena = po_arena_child(mu->arena);
    values v = no_values(mu, arena), w = no_values(mu, arena);
    uint32_t label = mu->nodes[loop].label;
    question q = {.n_all = 0};
    v.of[label] = po_smt_variable(smt, 0, mu->labels[label].extent - 1);
    w.of[label] = po_smt_variable(smt, 0, mu->labels[label].extent - 1);
    add_values(mu, smt, &v, a);
    add_values(mu, smt, &w, b);
    either(&q, PO_SMT_DIFFERENT, chunk_at(mu, smt, loop, v.of[label]),
           chunk_at(mu, smt, loop, w.of[label]));
    for (uint32_t l = 0; l < mu->n_labels; l++) {
        uint32_t around = l == label ? PO_NONE : po_mu_binder(mu, loop, l);
        if (around != PO_NONE && v.of[l] != PO_NONE && w.of[l] != PO_NONE)
            both(&q, PO_SMT_EQUAL, chunk_at(mu, smt, around, v.of[l]),
                 chunk_at(mu, smt, around, w.of[l]));
    }
    for (uint32_t x = 0; x < mu->tensors[a->tensor].rank; x++) {
        uint32_t at = index_at(smt, &v, &a->axes[x]);
        both(&q, PO_SMT_EQUAL, at, index_at(smt, &w, &b->axes[x]));
        both(&q, PO_SMT_LESS, at, whole(smt, mu->tensors[a->tensor].dims[x]));
        both(&q, PO_SMT_LESS, whole(smt, -1), at);
    }
    po_arena_free(arena);
    return ask(smt, &q);
}

po_smt_answer po_mu_never_overlap(uint32_t rank, const int64_t *stride, const int64_t *extent,
                                  po_smt *smt) {
    question q = {.n_all = 0};
    po_smt_term at[2][PO_MU_MAX_RANK];
    for (uint32_t x = 0; x < rank; x++) {
        for (int side = 0; side < 2; side++)
            at[side][x] = (po_smt_term){po_smt_variable(smt, 0, extent[x] - 1), stride[x]};
        either(&q, PO_SMT_DIFFERENT, at[0][x].of, at[1][x].of);
    }
    both(&q, PO_SMT_EQUAL, po_smt_sum(smt, 0, rank, at[0]), po_smt_sum(smt, 0, rank, at[1]));
    return ask(smt, &q);
}

/* Whether any index of the accesses of a statement leaves the memory that may be touched. */
static po_smt_answer never_outside(const po_mu *mu, uint32_t node, bool strict, po_smt *smt) {
    const po_mu_statement *s = &mu->nodes[node].statement;
    po_arena *arena = po_arena_child(mu->arena);
    values v = no_values(mu, arena);
    question q = {.n_all = 0};
    for (uint32_t k = 0; k <= s->n_in; k++) {
        const po_mu_access *access = k < s->n_in ? &s->in[k] : &s->out;
        const po_mu_tensor *t = &mu->tensors[access->tensor];
        po_mu_edge edge = po_mu_edge_of(mu, node, k < s->n_in ? k : PO_NONE);
        if (edge == PO_MU_GUARD && !strict)
            continue; /* tested */
        if (strict && k < s->n_in && s->combine != PO_MU_SET)
            continue; /* what is left out of a sum is no matter */
        add_values(mu, smt, &v, access);
        for (uint32_t x = 0; x < t->rank; x++) {
            bool ring = edge == PO_MU_RING && !strict;
            uint32_t at = index_at(smt, &v, &access->axes[x]);
            either(&q, PO_SMT_LESS, at, whole(smt, ring ? -t->before[x] : 0));
            either(&q, PO_SMT_LESS, whole(smt, t->dims[x] - 1 + (ring ? t->after[x] : 0)), at);
        }
    }
    po_arena_free(arena);
    return q.n_any ? ask(smt, &q) : PO_SMT_NEVER;
}

/* Two statements never write one element. */
static po_smt_answer never_both(const po_mu *mu, const po_mu_access *a, const po_mu_access *b,
                                po_smt *smt) {
    po_arena *arena = po_arena_child(mu->arena);
    values v = no_values(mu, arena), w = no_values(mu, arena);
    question q = {.n_all = 0};
    add_values(mu, smt, &v, a);
    add_values(mu, smt, &w, b);
    uint32_t zero = whole(smt, 0);
    either(&q, PO_SMT_EQUAL, zero, zero);
    for (uint32_t x = 0; x < mu->tensors[a->tensor].rank; x++)
        both(&q, PO_SMT_EQUAL, index_at(smt, &v, &a->axes[x]), index_at(smt, &w, &b->axes[x]));
    po_arena_free(arena);
    return ask(smt, &q);
}

/* Elements that a statement writes, if none twice. */
static int64_t written_by(const po_mu *mu, const po_mu_statement *s, po_arena *arena) {
    uint32_t n_kept, n_reduced, *kept, *reduced;
    int64_t n = 1;
    po_mu_labels_of(mu, s, arena, &n_kept, &kept, &n_reduced, &reduced);
    for (uint32_t i = 0; i < n_kept; i++)
        if (__builtin_mul_overflow(n, mu->labels[kept[i]].extent, &n))
            return -1;
    return n;
}

po_smt_answer po_mu_never_missed(const po_mu *mu, uint32_t tensor, po_smt *smt) {
    po_arena *arena = po_arena_child(mu->arena);
    int64_t all = 1, written = 0;
    po_smt_answer answer = PO_SMT_NEVER;
    for (uint32_t x = 0; x < mu->tensors[tensor].rank; x++)
        all *= mu->tensors[tensor].dims[x];
    for (uint32_t n = mu->first; n != PO_NONE && answer == PO_SMT_NEVER; n = po_mu_next(mu, n)) {
        const po_mu_statement *s = &mu->nodes[n].statement;
        if (mu->nodes[n].kind != PO_MU_STATEMENT || s->out.tensor != tensor ||
            (s->combine != PO_MU_SET && !s->fresh))
            continue;
        answer = never_outside(mu, n, true, smt);
        if (answer == PO_SMT_NEVER)
            answer = po_mu_never_twice(mu, n, &s->out, smt);
        for (uint32_t m = mu->first; m != n && answer == PO_SMT_NEVER; m = po_mu_next(mu, m)) {
            const po_mu_statement *o = &mu->nodes[m].statement;
            if (mu->nodes[m].kind == PO_MU_STATEMENT && o->out.tensor == tensor &&
                (o->combine == PO_MU_SET || o->fresh))
                answer = never_both(mu, &s->out, &o->out, smt);
        }
        int64_t more = written_by(mu, s, arena);
        if (more < 0 || __builtin_add_overflow(written, more, &written))
            answer = PO_SMT_UNKNOWN;
    }
    po_arena_free(arena);
    return answer == PO_SMT_NEVER && written != all ? PO_SMT_SOME : answer;
}

/* --- the second look --- */

typedef struct proving {
    po_mu_checker c;
    po_smt *smt;
    uint32_t limit;
    po_mu_proved *proved;
    po_hash_map *known; /* questions that were answered */
} proving;

/* Variables of all questions are kept: now and then they are forgotten. */
static po_smt *fresh(proving *p) {
    enum { QUESTIONS = 24 };
    if (!p->smt)
        p->smt = po_smt_create(p->c.arena, p->limit);
    else if (p->proved->asked % QUESTIONS == 0)
        po_smt_restart(p->smt);
    return p->smt;
}

static po_status demand(proving *p, po_smt_answer answer, const char *what) {
    p->proved->asked++;
    p->proved->unknown += answer == PO_SMT_UNKNOWN;
    if (answer == PO_SMT_NEVER)
        return PO_OK;
    return po_mu_bad(&p->c, "%s: %s", what,
                     answer == PO_SMT_SOME ? "Z3 finds a case" : "Z3 cannot decide it");
}

/* A question by all that its answer hangs on, labels by first use: layers of one shape ask alike.
 */
typedef struct asking {
    po_hash key;
    uint32_t *order, n;
} asking;

static asking start(const proving *p, uint64_t what) {
    const po_mu *mu = p->c.mu;
    asking a = {{what, what}, PO_NEW_N(p->c.arena, uint32_t, mu->n_labels + 1), 0};
    return a;
}

static void put(asking *a, int64_t v) {
    a->key = po_hash_u64(a->key, (uint64_t)v);
}

static void put_label(const po_mu *mu, uint32_t node, uint32_t l, asking *a) {
    if (!a->order[l])
        a->order[l] = ++a->n;
    put(a, a->order[l]);
    put(a, mu->labels[l].extent);
    uint32_t at = po_mu_binder(mu, node, l);
    put(a, at == PO_NONE ? 0 : po_mu_chunk(mu, at));
    put(a, at == PO_NONE ? -1 : (int64_t)mu->nodes[at].loop);
}

static void put_access(const po_mu *mu, uint32_t node, const po_mu_access *access, int64_t edge,
                       asking *a) {
    const po_mu_tensor *t = &mu->tensors[access->tensor];
    put(a, t->rank);
    put(a, edge);
    for (uint32_t x = 0; x < t->rank; x++) {
        const po_mu_index *index = &access->axes[x];
        put(a, t->dims[x]);
        put(a, t->before[x]);
        put(a, t->after[x]);
        put(a, index->offset);
        put(a, index->n);
        for (uint32_t k = 0; k < index->n; k++) {
            put(a, index->terms[k].coef);
            put_label(mu, node, index->terms[k].label, a);
            put(a, po_mu_local(mu, access->tensor, index->terms[k].label));
        }
    }
}

/* Whether it was asked before. */
static bool is_known(proving *p, const asking *a) {
    if (po_hash_map_get(p->known, a->key) != PO_NONE)
        return true;
    po_hash_map_put(p->known, a->key, 1);
    return false;
}

static po_status apart(proving *p, uint32_t loop, const po_mu_access *write,
                       const po_mu_access *other) {
    asking a = start(p, 1);
    put_label(p->c.mu, loop, p->c.mu->nodes[loop].label, &a);
    put(&a, po_mu_chunk(p->c.mu, loop));
    put_access(p->c.mu, loop, write, 0, &a);
    put_access(p->c.mu, loop, other, 0, &a);
    if (is_known(p, &a))
        return PO_OK;
    return demand(p, po_mu_never_meet(p->c.mu, loop, write, other, fresh(p)),
                  "parallel chunks meet");
}

static po_status statement(proving *p, uint32_t n) {
    const po_mu *mu = p->c.mu;
    const po_mu_statement *s = &mu->nodes[n].statement;
    asking a = start(p, 2);
    put(&a, s->combine);
    for (uint32_t k = 0; k <= s->n_in; k++)
        put_access(mu, n, k < s->n_in ? &s->in[k] : &s->out,
                   po_mu_edge_of(mu, n, k < s->n_in ? k : PO_NONE), &a);
    if (is_known(p, &a))
        return PO_OK;
    PO_TRY(
        demand(p, never_outside(mu, n, false, fresh(p)), "an access leaves its tensor's memory"));
    return s->combine != PO_MU_SET ? PO_OK
                                   : demand(p, po_mu_never_twice(mu, n, &s->out, fresh(p)),
                                            "'=' writes an element twice");
}

static po_status parallel(proving *p, uint32_t loop) {
    const po_mu *mu = p->c.mu;
    for (uint32_t n = loop; n != PO_NONE && po_mu_inside(mu, n, loop); n = po_mu_next(mu, n)) {
        const po_mu_statement *s = &mu->nodes[n].statement;
        if (mu->nodes[n].kind != PO_MU_STATEMENT)
            continue;
        const po_mu_tensor *t = &mu->tensors[s->out.tensor];
        bool scoped = t->place == PO_MU_SHARED || t->place == PO_MU_REGISTER;
        if (scoped && t->scope != PO_NONE && po_mu_inside(mu, t->scope, loop))
            continue; /* each chunk has its own */
        p->c.node = n;
        for (uint32_t m = loop; m != PO_NONE && po_mu_inside(mu, m, loop); m = po_mu_next(mu, m)) {
            const po_mu_statement *o = &mu->nodes[m].statement;
            for (uint32_t k = 0; mu->nodes[m].kind == PO_MU_STATEMENT && k <= o->n_in; k++) {
                const po_mu_access *other = k < o->n_in ? &o->in[k] : &o->out;
                if (other->tensor == s->out.tensor)
                    PO_TRY(apart(p, loop, &s->out, other));
            }
        }
    }
    return PO_OK;
}

static po_status layouts(proving *p) {
    const po_mu *mu = p->c.mu;
    p->c.node = PO_NONE;
    for (uint32_t i = 0; i < mu->n_tensors; i++) {
        const po_mu_tensor *t = &mu->tensors[i];
        int64_t extent[PO_MU_MAX_RANK], least;
        bool seen = false;
        for (uint32_t x = 0; x < t->rank; x++) {
            po_mu_held(mu, i, x, &least, &extent[x]);
            extent[x] += t->before[x] + t->after[x];
        }
        for (uint32_t k = 0; k < i && !seen; k++)
            seen = mu->tensors[k].rank == t->rank && mu->tensors[k].place == t->place &&
                   memcmp(mu->tensors[k].dims, t->dims, t->rank * sizeof *t->dims) == 0 &&
                   memcmp(mu->tensors[k].stride, t->stride, t->rank * sizeof *t->stride) == 0 &&
                   memcmp(mu->tensors[k].before, t->before, t->rank * sizeof *t->before) == 0 &&
                   memcmp(mu->tensors[k].after, t->after, t->rank * sizeof *t->after) == 0 &&
                   t->place != PO_MU_SHARED && t->place != PO_MU_REGISTER;
        if (!seen)
            PO_TRY(demand(p, po_mu_never_overlap(t->rank, t->stride, extent, fresh(p)),
                          po_arena_printf(p->c.arena, "elements of '%s' overlap", t->name)));
    }
    return PO_OK;
}

po_status po_mu_prove(po_ctx *ctx, const po_mu *mu, uint32_t limit, po_mu_proved *proved) {
    *proved = (po_mu_proved){0, 0};
    proving p = {{ctx, mu, po_arena_child(mu->arena), PO_NONE, NULL}, NULL, limit, proved, NULL};
    p.known = po_hash_map_create(p.c.arena);
    po_status status = layouts(&p);
    for (uint32_t n = mu->first; n != PO_NONE && status == PO_OK; n = po_mu_next(mu, n)) {
        const po_mu_node *node = &mu->nodes[n];
        p.c.node = n;
        status = po_ctx_poll(ctx);
        if (node->kind == PO_MU_STATEMENT && status == PO_OK)
            status = statement(&p, n);
        if (node->kind == PO_MU_LOOP && node->loop == PO_MU_GRID && status == PO_OK &&
            mu->labels[node->label].extent > po_mu_chunk(mu, n))
            status = parallel(&p, n);
    }
    po_arena_free(p.c.arena);
    return status;
}
