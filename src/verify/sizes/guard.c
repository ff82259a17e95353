/* Lengths as expressions of the solver, and the two questions. */
#include "verify/sizes/guard.h"

#include "ir/size.h"
#include "mugraph/smt.h"

#include "base/str.h"

/* Names, and places along an axis. */
static const int64_t longest = (int64_t)1 << 31, largest = (int64_t)1 << 62;

struct po_oracle {
    po_arena *arena;
    po_smt *smt;      /* NULL: nothing was asked yet */
    po_map *answered; /* by the question's text: 1 where it holds */
};

/* One question. */
typedef struct asking {
    po_arena *arena;
    po_smt *smt;
    po_map *names;
} asking;

po_oracle *po_oracle_create(po_arena *arena) {
    po_oracle *g = PO_NEW(arena, po_oracle);
    *g = (po_oracle){arena, NULL, po_map_create(arena)};
    return g;
}

/* "A::1*B::1": a product of names, all of them at least 1. */
static bool is_positive_product(po_arena *arena, const char *name) {
    const size_t size = strlen(name), skip = name[0] == '(';
    char *text = po_arena_memdup(arena, name, size + 1);
    bool positive = strchr(name, '*') != NULL && size > 2;
    if (skip && text[size - 1] == ')')
        text[size - 1] = '\0';
    for (char *part = text + skip; part && positive;) {
        char *next = strchr(part, '*');
        if (next)
            *next++ = '\0';
        positive = !strpbrk(part, "()+-/, ") && po_size_positive(part);
        part = next;
    }
    return positive;
}

static uint32_t name_of(void *user, const char *name) {
    asking *a = user;
    uint32_t v = po_map_get(a->names, name);
    if (v == PO_NONE) {
        /* Products, and what min and max are of, are any number; of positive names they are that.
         */
        const bool made = strpbrk(name, "(*") != NULL;
        const bool positive = made ? is_positive_product(a->arena, name) : po_size_positive(name);
        v = po_smt_variable(a->smt,
                            positive            ? 1
                            : strchr(name, '(') ? -longest
                                                : 0,
                            made ? largest : longest);
        po_map_put(a->names, name, v);
    }
    return v;
}

static uint32_t sum_of(void *user, int64_t offset, uint32_t n, const int64_t *coefs,
                       const uint32_t *parts) {
    asking *a = user;
    po_smt_term terms[PO_SIZE_TERMS];
    for (uint32_t i = 0; i < n; i++)
        terms[i] = (po_smt_term){parts[i], coefs[i]};
    return po_smt_sum(a->smt, offset, n, terms);
}

static uint32_t quotient_of(void *user, uint32_t of, int64_t by) {
    return po_smt_quotient(((asking *)user)->smt, of, by);
}

static asking start(po_oracle *g, po_arena *scratch) {
    if (g->smt)
        po_smt_restart(g->smt);
    else
        g->smt = po_smt_create(g->arena, 0);
    return (asking){scratch, g->smt, po_map_create(scratch)};
}

static bool length_of(po_arena *arena, asking *a, po_dim d, uint32_t *out) {
    const po_size_builder build = {a, name_of, sum_of, quotient_of};
    return po_size_build(arena, d, &build, out);
}

static uint32_t line(asking *a, uint32_t q, int64_t times, int64_t plus) {
    return po_smt_sum(a->smt, plus, 1, &(po_smt_term){q, times});
}

/* low <= x < high. */
static void within(asking *a, uint32_t x, uint32_t below_low, uint32_t high) {
    po_smt_require(a->smt, (po_smt_claim){PO_SMT_LESS, below_low, x});
    po_smt_require(a->smt, (po_smt_claim){PO_SMT_LESS, x, high});
}

static bool hold(po_oracle *oracle, po_arena *scratch, const po_bounds *g, int64_t times,
                 int64_t plus, po_dim of) {
    asking a = start(oracle, scratch);
    uint32_t length, leaf = 0, limit;
    if (!length_of(scratch, &a, g->length, &length) || !length_of(scratch, &a, of, &limit) ||
        (g->reads && !length_of(scratch, &a, g->leaf, &leaf)))
        return false;
    const uint32_t q = po_smt_variable(a.smt, -longest, longest);
    const uint32_t minus_one = po_smt_sum(a.smt, -1, 0, NULL);
    const uint32_t zero = po_smt_sum(a.smt, 0, 0, NULL);
    const uint32_t last = po_smt_sum(a.smt, -1, 1, &(po_smt_term){limit, 1});
    const uint32_t y = line(&a, q, g->read.m, g->read.rho);
    const uint32_t e = line(&a, q, g->read.alpha, g->read.beta);
    const uint32_t x = line(&a, q, times, plus);
    within(&a, y, minus_one, length);
    if (g->reads)
        within(&a, e, minus_one, leaf);
    const po_smt_claim outside[2] = {{PO_SMT_LESS, x, zero}, {PO_SMT_LESS, last, x}};
    po_smt_require_any(a.smt, 2, outside);
    return po_smt_ask(a.smt) == PO_SMT_NEVER;
}

static bool follow(po_oracle *oracle, po_arena *scratch, uint32_t n, const po_room *given,
                   po_room asked) {
    asking a = start(oracle, scratch);
    po_smt_claim *claims = PO_NEW_N(scratch, po_smt_claim, n);
    uint32_t x, y, n_claims = 0;
    if (!length_of(scratch, &a, asked.length, &x))
        return false;
    /* What is not said of a length that is no expression is not known. */
    for (uint32_t i = 0; i < n; i++)
        if (length_of(scratch, &a, given[i].length, &y))
            claims[n_claims++] =
                (po_smt_claim){PO_SMT_LESS, po_smt_sum(a.smt, given[i].least - 1, 0, NULL), y};
    const po_smt_claim less = {PO_SMT_LESS, x, po_smt_sum(a.smt, asked.least, 0, NULL)};
    for (uint32_t i = 0; i < n_claims; i++)
        po_smt_require(a.smt, claims[i]);
    po_smt_require(a.smt, less);
    return po_smt_ask(a.smt) == PO_SMT_NEVER;
}

/* --- what was asked before --- */

/* Names may hold any characters: how long one is tells where it ends. */
static void put_length(po_text *text, po_dim d) {
    if (d.value >= 0)
        po_text_printf(text, " %lld", (long long)d.value);
    else
        po_text_printf(text, " %zu'%s'", d.symbol ? strlen(d.symbol) : 0, d.symbol ? d.symbol : "");
}

static void remember(po_oracle *g, const po_text *question, bool holds) {
    po_map_put(g->answered, po_arena_strdup(g->arena, question->data), holds);
}

bool po_bounds_hold(po_oracle *oracle, const po_bounds *g, int64_t times, int64_t plus, po_dim of) {
    po_arena *scratch = po_arena_child(oracle->arena);
    po_text question;
    po_text_init(&question, scratch);
    po_text_printf(&question, "%lld %lld of", (long long)times, (long long)plus);
    put_length(&question, of);
    po_text_printf(&question, ", %lld %lld", (long long)g->read.m, (long long)g->read.rho);
    put_length(&question, g->length);
    if (g->reads) {
        po_text_printf(&question, ", %lld %lld", (long long)g->read.alpha, (long long)g->read.beta);
        put_length(&question, g->leaf);
    }
    const uint32_t known = po_map_get(oracle->answered, question.data);
    const bool holds = known == PO_NONE ? hold(oracle, scratch, g, times, plus, of) : known != 0;
    if (known == PO_NONE)
        remember(oracle, &question, holds);
    po_arena_free(scratch);
    return holds;
}

bool po_bounds_follow(po_oracle *oracle, uint32_t n, const po_room *given, po_room asked) {
    po_arena *scratch = po_arena_child(oracle->arena);
    po_text question;
    po_text_init(&question, scratch);
    po_text_printf(&question, "%lld", (long long)asked.least);
    put_length(&question, asked.length);
    for (uint32_t i = 0; i < n; i++) {
        po_text_printf(&question, ", %lld", (long long)given[i].least);
        put_length(&question, given[i].length);
    }
    const uint32_t known = po_map_get(oracle->answered, question.data);
    const bool holds = known == PO_NONE ? follow(oracle, scratch, n, given, asked) : known != 0;
    if (known == PO_NONE)
        remember(oracle, &question, holds);
    po_arena_free(scratch);
    return holds;
}

bool po_bounds_least(po_oracle *oracle, po_dim length, int64_t least) {
    return po_bounds_follow(oracle, 0, NULL, (po_room){length, least});
}
