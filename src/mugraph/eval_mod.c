/* Evaluation modulo primes p and q, p = 2q + 1: exp raises a root of order q modulo p to the
 * residue modulo q, so that exp(a + b) = exp(a) exp(b). Functions of which no law is used are drawn
 * at random. */
#include "mugraph/field.h"
#include "mugraph/run.h"

#include <math.h>

/* The theory and what it leaves out: docs/mugraph.md. */

enum { DIGITS = 8, DIGIT = 256 /* of an exponent below 2^64 */, INVERSES = 256 };

/* Divisors come again, row by row: the last ones, by their low bits, and their inverses. */
typedef struct inverses {
    uint64_t of[INVERSES], is[INVERSES];
} inverses;

typedef struct residues {
    const po_mu_residue *const *inputs, *const *weights;
    po_mu_residue *const *outputs;
    po_mu_residue **value; /* by tensor */
    uint64_t seed;
    uint64_t power[DIGITS][DIGIT]; /* omega^(d * 256^k) */
    inverses p, q;
} residues;

static bool is_minus_infinity(po_mu_residue a) {
    return a.p == PO_MU_MINUS_INFINITY;
}

static const po_mu_residue minus_infinity = {PO_MU_MINUS_INFINITY, PO_MU_NO_Q};

static bool have_q(po_mu_residue a, po_mu_residue b) {
    return a.q != PO_MU_NO_Q && b.q != PO_MU_NO_Q;
}

/* --- residues from outside --- */

po_mu_residue po_mu_residue_random(uint64_t seed, uint64_t stream, uint64_t index) {
    return (po_mu_residue){po_random_u64(seed, 2 * stream, index) % PO_MU_P,
                           po_random_u64(seed, 2 * stream + 1, index) % PO_MU_Q};
}

static uint64_t number_in(po_mu_field f, int64_t mantissa, int exponent) {
    uint64_t m = po_mu_field_i64(f, mantissa);
    uint64_t two = exponent < 0 ? po_mu_field_inverse(f, 2) : 2;
    return po_mu_field_mul(
        f, m, po_mu_field_pow(f, two, (uint64_t)(exponent < 0 ? -exponent : exponent)));
}

po_mu_residue po_mu_residue_of(double value) {
    int exponent;
    if (value == -(double)INFINITY)
        return minus_infinity;
    int64_t mantissa = (int64_t)ldexp(frexp(value, &exponent), 53);
    return (po_mu_residue){number_in(PO_MU_FIELD_P, mantissa, exponent - 53),
                           number_in(PO_MU_FIELD_Q, mantissa, exponent - 53)};
}

bool po_mu_residue_equal(po_mu_residue a, po_mu_residue b) {
    return a.p == b.p && (!have_q(a, b) || a.q == b.q);
}

/* --- storage --- */

static void store(po_mu_run *run, uint32_t tensor) {
    residues *r = run->user;
    const po_mu_tensor *t = &run->mu->tensors[tensor];
    int64_t count = run->stores[tensor].count;
    if (t->place == PO_MU_INPUT || t->place == PO_MU_WEIGHT) {
        const po_mu_residue *const *from = t->place == PO_MU_INPUT ? r->inputs : r->weights;
        r->value[tensor] = (po_mu_residue *)(uintptr_t)from[t->number]; /* only read */
        return;
    }
    po_mu_residue *v = t->place == PO_MU_OUTPUT ? r->outputs[t->number]
                                                : PO_NEW_N(run->arena, po_mu_residue, count);
    for (int64_t i = 0; i < count; i++) {
        v[i] = t->fill != 0 ? minus_infinity : (po_mu_residue){0, 0};
        if (t->place != PO_MU_TABLE)
            continue;
        po_rational f = t->table[i];
        v[i].p = po_mu_field_mul(
            PO_MU_FIELD_P, po_mu_field_i64(PO_MU_FIELD_P, f.num),
            po_mu_field_inverse(PO_MU_FIELD_P, po_mu_field_i64(PO_MU_FIELD_P, f.den)));
        v[i].q = po_mu_field_mul(
            PO_MU_FIELD_Q, po_mu_field_i64(PO_MU_FIELD_Q, f.num),
            po_mu_field_inverse(PO_MU_FIELD_Q, po_mu_field_i64(PO_MU_FIELD_Q, f.den)));
    }
    r->value[tensor] = v;
}

static void begin(po_mu_run *run, const po_mu_plan *plan, int64_t at, int64_t step, int64_t n) {
    residues *r = run->user;
    for (int64_t i = 0; i < n; i++)
        r->value[plan->s->out.tensor][at + i * step] =
            plan->s->combine == PO_MU_ADD ? (po_mu_residue){0, 0} : minus_infinity;
}

/* --- functions --- */

static po_mu_residue negated(po_mu_residue a) {
    return (po_mu_residue){po_mu_field_sub(PO_MU_FIELD_P, 0, a.p),
                           a.q == PO_MU_NO_Q ? a.q : po_mu_field_sub(PO_MU_FIELD_Q, 0, a.q)};
}

static po_mu_residue added(po_mu_residue a, po_mu_residue b) {
    if (is_minus_infinity(a) || is_minus_infinity(b))
        return minus_infinity;
    return (po_mu_residue){po_mu_field_add(PO_MU_FIELD_P, a.p, b.p),
                           have_q(a, b) ? po_mu_field_add(PO_MU_FIELD_Q, a.q, b.q) : PO_MU_NO_Q};
}

static po_mu_residue multiplied(po_mu_residue a, po_mu_residue b) {
    return (po_mu_residue){po_mu_field_mul(PO_MU_FIELD_P, a.p, b.p),
                           have_q(a, b) ? po_mu_field_mul(PO_MU_FIELD_Q, a.q, b.q) : PO_MU_NO_Q};
}

/* The greater in an order that the seed draws: commutative, associative, idempotent like the true
 * one, and nothing else. */
static po_mu_residue greater(const residues *r, po_mu_residue a, po_mu_residue b) {
    if (is_minus_infinity(a) || is_minus_infinity(b))
        return is_minus_infinity(a) ? b : a;
    if (a.p == b.p)
        return a.q < b.q ? a : b; /* one without q comes last */
    /* 0 stands in the middle, so that max(x, 0) shows half of what goes in under every seed. */
    uint64_t middle = (uint64_t)1 << 63;
    uint64_t ka = a.p ? po_random_u64(r->seed, PO_MU_MAX, a.p) : middle;
    uint64_t kb = b.p ? po_random_u64(r->seed, PO_MU_MAX, b.p) : middle;
    return ka > kb || (ka == kb && a.p > b.p) ? a : b;
}

/* A function of which nothing is known: drawn anew by seed for each value of its arguments. */
static po_mu_residue unknown(const residues *r, po_mu_function f, uint32_t n,
                             const po_mu_residue *x) {
    uint64_t h = (uint64_t)f;
    bool q = true;
    for (uint32_t i = 0; i < n; i++) {
        h = po_random_u64(r->seed, h, x[i].p);
        q = q && x[i].q != PO_MU_NO_Q;
    }
    return (po_mu_residue){po_random_u64(r->seed, h, 1) % PO_MU_P,
                           q ? po_random_u64(r->seed, h, 2) % PO_MU_Q : PO_MU_NO_Q};
}

static po_mu_residue exponential(const residues *r, po_mu_residue a) {
    if (is_minus_infinity(a))
        return (po_mu_residue){0, PO_MU_NO_Q};
    if (a.q == PO_MU_NO_Q)
        return unknown(r, PO_MU_EXP, 1, &a);
    uint64_t power = 1;
    for (uint32_t k = 0; k < DIGITS; k++)
        power = po_mu_field_mul(PO_MU_FIELD_P, power, r->power[k][a.q >> (8 * k) & (DIGIT - 1)]);
    return (po_mu_residue){power, PO_MU_NO_Q};
}

static uint64_t inverse(inverses *known, po_mu_field f, uint64_t a) {
    uint64_t at = a % INVERSES;
    if (known->of[at] != a) {
        known->of[at] = a;
        known->is[at] = po_mu_field_inverse(f, a);
    }
    return known->is[at];
}

static po_status reciprocal(po_mu_run *run, po_mu_residue a, po_mu_residue *out) {
    if (a.p == 0 || a.q == 0)
        return po_fail(
            run->ctx, PO_UNSUPPORTED,
            "muGraph '%s': a division by 0 under this seed, which therefore says nothing",
            run->mu->name);
    residues *r = run->user;
    *out = (po_mu_residue){inverse(&r->p, PO_MU_FIELD_P, a.p),
                           a.q == PO_MU_NO_Q ? a.q : inverse(&r->q, PO_MU_FIELD_Q, a.q)};
    return PO_OK;
}

/* a to a number: whole powers are products, those of halves roots; others are unknown. */
static po_status powered(po_mu_run *run, po_mu_residue a, const po_mu_item *exponent,
                         const po_mu_residue *x, po_mu_residue *out) {
    const residues *r = run->user;
    double e = exponent->function == PO_MU_CONST ? exponent->value : 0.25;
    double size = fabs(e);
    if (size == 0.5) {
        *out = unknown(r, PO_MU_SQRT, 1, &a);
    } else if (size <= 64 && size == floor(size)) {
        uint64_t n = (uint64_t)size;
        *out = (po_mu_residue){po_mu_field_pow(PO_MU_FIELD_P, a.p, n),
                               a.q == PO_MU_NO_Q ? a.q : po_mu_field_pow(PO_MU_FIELD_Q, a.q, n)};
    } else {
        *out = unknown(r, PO_MU_POW, 2, x);
        return PO_OK;
    }
    return e < 0 ? reciprocal(run, *out, out) : PO_OK;
}

static po_status infinite(po_mu_run *run, po_mu_function f) {
    return po_fail(run->ctx, PO_UNSUPPORTED,
                   "muGraph '%s': %s of -infinity is not told apart over finite fields",
                   run->mu->name, f == PO_MU_OPERAND ? "a number" : po_mu_function_name(f));
}

static po_status apply(po_mu_run *run, const po_mu_statement *s, const po_mu_item *m,
                       const po_mu_residue *v, po_mu_residue *out) {
    const residues *r = run->user;
    uint32_t arity = po_mu_arity(m->function);
    po_mu_residue x[3] = {v[m->a], v[arity > 1 ? m->b : m->a], v[arity > 2 ? m->c : m->a]};
    bool some_infinite = is_minus_infinity(x[0]) || is_minus_infinity(x[1]);
    switch (m->function) {
    case PO_MU_PLUS:
        *out = added(x[0], x[1]);
        return PO_OK;
    case PO_MU_MINUS:
        if (is_minus_infinity(x[1]))
            return infinite(run, m->function);
        *out = added(x[0], negated(x[1]));
        return PO_OK;
    case PO_MU_TIMES:
        if (some_infinite)
            return infinite(run, m->function);
        *out = multiplied(x[0], x[1]);
        return PO_OK;
    case PO_MU_OVER:
        if (some_infinite)
            return infinite(run, m->function);
        PO_TRY(reciprocal(run, x[1], out));
        *out = multiplied(x[0], *out);
        return PO_OK;
    case PO_MU_NEGATE:
        if (some_infinite)
            return infinite(run, m->function);
        *out = negated(x[0]);
        return PO_OK;
    case PO_MU_MAX:
        *out = greater(r, x[0], x[1]);
        return PO_OK;
    case PO_MU_MIN: /* -max(-a, -b) */
        *out = some_infinite ? minus_infinity : negated(greater(r, negated(x[0]), negated(x[1])));
        return PO_OK;
    case PO_MU_EXP:
        *out = exponential(r, x[0]);
        return PO_OK;
    case PO_MU_ABS: /* even */
        if (some_infinite)
            return infinite(run, m->function);
        if (x[0].p > PO_MU_P / 2)
            x[0] = negated(x[0]);
        *out = unknown(r, PO_MU_ABS, 1, x);
        return PO_OK;
    case PO_MU_POW:
        if (some_infinite)
            return infinite(run, m->function);
        return powered(run, x[0], &s->items[m->b], x, out);
    case PO_MU_LOG:
    case PO_MU_SQRT:
    case PO_MU_TANH:
    case PO_MU_ERF:
    case PO_MU_SIGMOID:
    case PO_MU_FLOOR:
    case PO_MU_LESS:
    case PO_MU_CHOOSE:
    case PO_MU_CONST:
    case PO_MU_OPERAND:
    case PO_MU_FUNCTIONS:
        break;
    }
    *out = unknown(r, m->function, arity, x);
    return PO_OK;
}

/* --- statements --- */

/* The products that most iterations are: the two items of operands are multiplied and added. */
static bool is_product(const po_mu_statement *s) {
    return s->combine == PO_MU_ADD && s->n_items == 3 && s->items[2].function == PO_MU_TIMES &&
           s->items[0].function == PO_MU_OPERAND && s->items[1].function == PO_MU_OPERAND &&
           s->items[2].a != s->items[2].b;
}

/* False, nothing done, at an infinite operand. */
static bool multiply_add(po_mu_residue *out, int64_t so, const po_mu_residue *a, int64_t sa,
                         const po_mu_residue *b, int64_t sb, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        if (is_minus_infinity(a[i * sa]) || is_minus_infinity(b[i * sb]) ||
            is_minus_infinity(out[i * so]))
            return false;
    for (int64_t i = 0; i < n; i++)
        out[i * so] = added(out[i * so], multiplied(a[i * sa], b[i * sb]));
    return true;
}

static po_status constants(po_mu_run *run, const po_mu_statement *s, po_mu_residue *v) {
    for (uint32_t k = 0; k < s->n_items; k++) {
        if (s->items[k].function != PO_MU_CONST)
            continue;
        if (s->items[k].value == (double)INFINITY)
            return po_fail(run->ctx, PO_UNSUPPORTED,
                           "muGraph '%s': infinity is not told apart over finite fields",
                           run->mu->name);
        v[k] = po_mu_residue_of(s->items[k].value);
    }
    return PO_OK;
}

static po_status inner(po_mu_run *run, const po_mu_plan *plan, const int64_t *at,
                       const int64_t *step, int64_t n) {
    residues *r = run->user;
    const po_mu_statement *s = plan->s;
    uint32_t out = plan->n_accesses - 1;
    po_mu_residue *to = r->value[s->out.tensor] + at[out], *v = plan->own;
    if (is_product(s)) {
        uint32_t a = s->items[0].a, b = s->items[1].a;
        if (multiply_add(to, step[out], r->value[s->in[a].tensor] + at[a], step[a],
                         r->value[s->in[b].tensor] + at[b], step[b], n))
            return PO_OK;
    }
    if (!v) { /* the first time: room for the items, and what never changes */
        run->plans[plan->node]->own = v = PO_NEW_N(run->arena, po_mu_residue, s->n_items);
        PO_TRY(constants(run, s, v));
    }
    for (int64_t i = 0; i < n; i++, to += step[out]) {
        for (uint32_t k = 0; k < s->n_items; k++) {
            const po_mu_item *m = &s->items[k];
            if (m->function == PO_MU_OPERAND)
                v[k] = r->value[s->in[m->a].tensor][at[m->a] + i * step[m->a]];
            else if (m->function != PO_MU_CONST)
                PO_TRY(apply(run, s, m, v, &v[k]));
        }
        po_mu_residue value = v[s->n_items - 1];
        *to = s->combine == PO_MU_SET   ? value
              : s->combine == PO_MU_ADD ? added(*to, value)
                                        : greater(r, *to, value);
    }
    return PO_OK;
}

/* A root of order q, drawn by seed, to the powers that exponents are put together from. */
static void draw_root(residues *r) {
    uint64_t h = 2 + po_random_u64(r->seed, PO_MU_EXP, 0) % (PO_MU_P - 3);
    uint64_t root = po_mu_field_mul(PO_MU_FIELD_P, h, h);
    for (uint32_t k = 0; k < DIGITS; k++) {
        r->power[k][0] = 1;
        for (uint32_t d = 1; d < DIGIT; d++)
            r->power[k][d] = po_mu_field_mul(PO_MU_FIELD_P, r->power[k][d - 1], root);
        root = po_mu_field_mul(PO_MU_FIELD_P, r->power[k][DIGIT - 1], root);
    }
}

po_status po_mu_eval_mod(po_ctx *ctx, const po_mu *mu, const po_mu_residue *const *inputs,
                         const po_mu_residue *const *weights, po_mu_residue *const *outputs,
                         uint64_t seed) {
    po_arena *arena = po_arena_create(ctx);
    residues *r = PO_NEW(arena, residues);
    r->inputs = inputs;
    r->weights = weights;
    r->outputs = outputs;
    r->value = PO_NEW_N(arena, po_mu_residue *, mu->n_tensors + 1);
    r->seed = seed;
    draw_root(r);
    po_mu_run run = {.ctx = ctx, .mu = mu, .arena = arena, .user = r};
    run.store = store;
    run.begin = begin;
    run.inner = inner;
    po_status status = po_mu_run_all(&run);
    po_arena_free(arena);
    return status;
}
