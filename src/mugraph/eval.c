/* Evaluation in float64, and beside each value its magnitude S, by which rounding errors are
 * bounded. Products of operands run as multiply-adds, any other expression 128 iterations at a
 * time. */
#include "mugraph/eval.h"
#include "mugraph/eval_product.h"

#include <math.h>

enum { BLOCK = 128 /* iterations that a general expression is evaluated for at a time */ };

typedef struct floats {
    const double *const *inputs, *const *weights;
    double *const *outputs, *const *outer_magnitude;
    bool magnitudes;
    bool single;                 /* each operation rounds as f32 does */
    double **value, **magnitude; /* by tensor */
    double *block;               /* by item: BLOCK values, then BLOCK magnitudes */
} floats;

/* A product of operands and a number. */
typedef struct product {
    bool is;
    uint32_t n_seen; /* items on the way, each as often as it is used */
    uint32_t n, factor[PO_MU_MAX_INPUTS];
    double scale;
} product;

/* --- storage --- */

/* What is infinite is exact: no rounding error comes from it. */
static double size_of(double v) {
    return isinf(v) ? 0 : fabs(v);
}

static void store(po_mu_run *run, uint32_t tensor) {
    floats *f = run->user;
    const po_mu_tensor *t = &run->mu->tensors[tensor];
    int64_t count = run->stores[tensor].count;
    bool held = t->place == PO_MU_INPUT || t->place == PO_MU_WEIGHT;
    double *value;
    if (held) /* only read */
        value = (double *)(uintptr_t)(t->place == PO_MU_INPUT ? f->inputs : f->weights)[t->number];
    else if (t->place == PO_MU_OUTPUT)
        value = f->outputs[t->number];
    else
        value = PO_NEW_N(run->arena, double, count);
    for (int64_t i = 0; i < count && !held; i++)
        value[i] = t->place == PO_MU_TABLE ? po_rational_f64(t->table[i]) : t->fill;
    f->value[tensor] = value;
    if (!f->magnitudes)
        return;
    double *magnitude = t->place == PO_MU_OUTPUT ? f->outer_magnitude[t->number]
                                                 : PO_NEW_N(run->arena, double, count);
    for (int64_t i = 0; i < count; i++)
        magnitude[i] = size_of(value[i]);
    f->magnitude[tensor] = magnitude;
}

static void begin(po_mu_run *run, const po_mu_plan *plan, int64_t at, int64_t step, int64_t n) {
    floats *f = run->user;
    double zero = plan->s->combine == PO_MU_ADD ? 0 : -(double)INFINITY;
    for (int64_t i = 0; i < n; i++) {
        f->value[plan->s->out.tensor][at + i * step] = zero;
        if (f->magnitudes)
            f->magnitude[plan->s->out.tensor][at + i * step] = 0;
    }
}

/* --- products --- */

/* Whether the value is a product of operands and numbers; collects them. */
static bool is_product(const po_mu_statement *s, uint32_t item, product *p) {
    const po_mu_item *m = &s->items[item];
    if (++p->n_seen > PO_MU_MAX_ITEMS)
        return false;
    if (m->function == PO_MU_CONST)
        p->scale *= m->value;
    else if (m->function == PO_MU_NEGATE) {
        p->scale = -p->scale;
        return is_product(s, m->a, p);
    } else if (m->function == PO_MU_TIMES)
        return is_product(s, m->a, p) && is_product(s, m->b, p);
    else if (m->function == PO_MU_OPERAND && p->n < PO_MU_MAX_INPUTS &&
             s->in[m->a].tensor != s->out.tensor)
        p->factor[p->n++] = m->a;
    else
        return false;
    return true;
}

/* out[i * so] += scale * a[i * sa] * b[i * sb]; a and b may be NULL for 1. */
static void add_products(double *restrict out, int64_t so, double scale, const double *restrict a,
                         int64_t sa, const double *restrict b, int64_t sb, int64_t n) {
    if (!a) {
        for (int64_t i = 0; i < n; i++)
            out[i * so] += scale;
    } else if (!b && so == 1 && sa == 1) {
        for (int64_t i = 0; i < n; i++)
            out[i] += scale * a[i];
    } else if (!b && so) {
        for (int64_t i = 0; i < n; i++)
            out[i * so] += scale * a[i * sa];
    } else if (!b) {
        double sum = 0;
        for (int64_t i = 0; i < n; i++)
            sum += a[i * sa];
        *out += scale * sum;
    } else if (so == 1 && sa == 1 && sb == 1) {
        for (int64_t i = 0; i < n; i++)
            out[i] += scale * a[i] * b[i];
    } else if (so) {
        for (int64_t i = 0; i < n; i++)
            out[i * so] += scale * a[i * sa] * b[i * sb];
    } else {
        double sum = 0;
        for (int64_t i = 0; i < n; i++)
            sum += a[i * sa] * b[i * sb];
        *out += scale * sum;
    }
}

/* False where more than two factors vary. */
static bool multiply_add(po_mu_run *run, const po_mu_plan *plan, double *const *value, double scale,
                         const int64_t *at, const int64_t *step, int64_t n) {
    const product *p = plan->own;
    const double *varying[2] = {NULL, NULL};
    int64_t steps[2] = {0, 0};
    uint32_t n_varying = 0, out = plan->n_accesses - 1;
    (void)run;
    for (uint32_t i = 0; i < p->n; i++) {
        uint32_t k = p->factor[i];
        const double *from = value[plan->s->in[k].tensor] + at[k];
        if (step[k] == 0 || n == 1) {
            scale *= *from;
        } else if (n_varying < 2) {
            varying[n_varying] = from;
            steps[n_varying++] = step[k];
        } else {
            return false;
        }
    }
    add_products(value[plan->s->out.tensor] + at[out], step[out], scale, varying[0], steps[0],
                 varying[1], steps[1], n);
    return true;
}

/* --- any expression --- */

/* What kernels have of exp and sigmoid below the least normal float is 0 (codegen/cpu/prelude.c):
 * that is 8 u of this. */
static const double flushed = 0x1p-105;

/* S(v) of a function's value v: how far its arguments' errors, by S(a) and so on, move it, and its
 * own rounding. */
static double magnitude_of(po_mu_function function, const double x[3], const double s[3],
                           double v) {
    double slope = 0, least = 0;
    switch (function) {
    case PO_MU_PLUS:
    case PO_MU_MINUS:
        return s[0] + s[1];
    case PO_MU_TIMES:
        return s[0] * s[1];
    case PO_MU_OVER:
        return s[0] / fabs(x[1]) + fabs(v / x[1]) * s[1];
    case PO_MU_MAX:
    case PO_MU_MIN:
        return fmax(s[0], s[1]);
    case PO_MU_NEGATE:
    case PO_MU_ABS:
        return s[0];
    case PO_MU_CHOOSE:
        return x[0] != 0 ? s[1] : s[2];
    case PO_MU_POW:
        slope = x[0] != 0 ? fabs(x[1] * v / x[0]) : 0;
        return size_of(v) + slope * s[0] +
               (v != 0 && x[0] != 0 ? fabs(v * log(fabs(x[0]))) * s[1] : 0);
    case PO_MU_EXP:
        least = isinf(x[0]) ? 0 : flushed; /* exactly 0 there */
        slope = v;
        break;
    case PO_MU_LOG:
        slope = x[0] != 0 ? 1 / fabs(x[0]) : 0;
        break;
    case PO_MU_SQRT:
        if (v == 0)
            return sqrt(s[0]);
        slope = 0.5 / v;
        break;
    case PO_MU_TANH:
        slope = 1 - v * v;
        break;
    case PO_MU_ERF:
        slope = 2 / sqrt(3.14159265358979323846) * exp(-x[0] * x[0]);
        break;
    case PO_MU_SIGMOID:
        least = isinf(x[0]) ? 0 : flushed;
        slope = v * (1 - v);
        break;
    case PO_MU_FLOOR:
    case PO_MU_LESS:
    case PO_MU_CONST:
    case PO_MU_OPERAND:
    case PO_MU_FUNCTIONS:
        break;
    }
    return fmax(size_of(v), least) + (slope != 0 ? slope * s[0] : 0);
}

static void gather(double *restrict to, const double *restrict from, int64_t step, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        to[i] = from[i * step];
}

static void apply(const po_mu_item *m, double *block, uint32_t item, int64_t n, bool magnitudes) {
    uint32_t arity = po_mu_arity(m->function), argument[3] = {m->a, m->b, m->c};
    for (uint32_t k = arity; k < 3; k++)
        argument[k] = m->a;
    const double *x[3], *s[3];
    for (uint32_t k = 0; k < 3; k++) {
        x[k] = block + (size_t)argument[k] * 2 * BLOCK;
        s[k] = x[k] + BLOCK;
    }
    double *restrict v = block + (size_t)item * 2 * BLOCK, *restrict sv = v + BLOCK;
    switch (m->function) {
    case PO_MU_PLUS:
        for (int64_t i = 0; i < n; i++)
            v[i] = x[0][i] + x[1][i];
        break;
    case PO_MU_MINUS:
        for (int64_t i = 0; i < n; i++)
            v[i] = x[0][i] - x[1][i];
        break;
    case PO_MU_TIMES:
        for (int64_t i = 0; i < n; i++)
            v[i] = x[0][i] * x[1][i];
        break;
    default:
        for (int64_t i = 0; i < n; i++)
            v[i] = po_mu_apply(m->function, x[0][i], x[1][i], x[2][i]);
    }
    for (int64_t i = 0; i < n && magnitudes; i++)
        sv[i] = magnitude_of(m->function, (const double[3]){x[0][i], x[1][i], x[2][i]},
                             (const double[3]){s[0][i], s[1][i], s[2][i]}, v[i]);
}

static void round_all(double *v, int64_t step, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        v[i * step] = (double)(float)v[i * step];
}

/* Combines n values into what is written. */
static void combine(po_mu_combine how, double *out, int64_t step, const double *v, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        double *o = out + i * step;
        *o = how == PO_MU_SET   ? v[i]
             : how == PO_MU_ADD ? *o + v[i]
                                : po_mu_apply(PO_MU_MAX, *o, v[i], 0);
    }
}

static void general(po_mu_run *run, const po_mu_plan *plan, const int64_t *at, const int64_t *step,
                    int64_t n) {
    floats *f = run->user;
    const po_mu_statement *s = plan->s;
    uint32_t out = plan->n_accesses - 1;
    for (uint32_t i = 0; i < s->n_items; i++) {
        const po_mu_item *m = &s->items[i];
        double *v = f->block + (size_t)i * 2 * BLOCK;
        if (m->function == PO_MU_CONST) {
            for (int64_t k = 0; k < n; k++) {
                v[k] = m->value;
                v[BLOCK + k] = size_of(m->value);
            }
        } else if (m->function == PO_MU_OPERAND) {
            uint32_t tensor = s->in[m->a].tensor;
            gather(v, f->value[tensor] + at[m->a], step[m->a], n);
            if (f->magnitudes)
                gather(v + BLOCK, f->magnitude[tensor] + at[m->a], step[m->a], n);
        } else {
            apply(m, f->block, i, n, f->magnitudes);
        }
        if (f->single)
            round_all(v, 1, n);
    }
    const double *v = f->block + (size_t)(s->n_items - 1) * 2 * BLOCK;
    double *to = f->value[s->out.tensor] + at[out];
    for (int64_t i = 0; f->single && i < n; i++) { /* sums round term by term */
        combine(s->combine, to + i * step[out], step[out], v + i, 1);
        round_all(to + i * step[out], step[out], 1);
    }
    if (!f->single)
        combine(s->combine, to, step[out], v, n);
    if (f->magnitudes)
        combine(s->combine, f->magnitude[s->out.tensor] + at[out], step[out], v + BLOCK, n);
}

static const product *product_of(po_mu_run *run, const po_mu_plan *plan) {
    if (plan->own)
        return plan->own;
    product *p = PO_NEW(run->arena, product);
    p->scale = 1;
    p->is = plan->s->combine == PO_MU_ADD && is_product(plan->s, plan->s->n_items - 1, p);
    run->plans[plan->node]->own = p;
    return p;
}

static bool whole(po_mu_run *run, const po_mu_plan *plan) {
    const floats *f = run->user;
    const product *p = product_of(run, plan);
    return !f->single && p->is && p->n == 2 &&
           po_mu_sum_products(run, plan, p->factor[0], p->factor[1], p->scale, f->value,
                              f->magnitudes ? f->magnitude : NULL);
}

static po_status inner(po_mu_run *run, const po_mu_plan *plan, const int64_t *at,
                       const int64_t *step, int64_t n) {
    floats *f = run->user;
    const product *p = product_of(run, plan);
    if (!f->single && p->is && multiply_add(run, plan, f->value, p->scale, at, step, n)) {
        if (f->magnitudes)
            multiply_add(run, plan, f->magnitude, fabs(p->scale), at, step, n);
        return PO_OK;
    }
    int64_t from[PO_MU_ACCESSES];
    for (int64_t done = 0; done < n; done += BLOCK) {
        for (uint32_t k = 0; k < plan->n_accesses; k++)
            from[k] = at[k] + done * step[k];
        general(run, plan, from, step, n - done < BLOCK ? n - done : BLOCK);
    }
    return PO_OK;
}

static po_status eval(po_ctx *ctx, const po_mu *mu, const double *const *inputs,
                      const double *const *weights, double *const *outputs,
                      double *const *magnitude, bool single) {
    po_arena *arena = po_arena_create(ctx);
    floats f = {.inputs = inputs, .weights = weights, .outputs = outputs, .single = single};
    f.magnitudes = magnitude != NULL;
    f.outer_magnitude = magnitude;
    f.value = PO_NEW_N(arena, double *, mu->n_tensors + 1);
    f.magnitude = PO_NEW_N(arena, double *, mu->n_tensors + 1);
    f.block = PO_NEW_N(arena, double, 2 * BLOCK * PO_MU_MAX_ITEMS);
    po_mu_run run = {.ctx = ctx, .mu = mu, .arena = arena, .user = &f};
    run.store = store;
    run.begin = begin;
    run.inner = inner;
    run.whole = whole;
    po_status status = po_mu_run_all(&run);
    po_arena_free(arena);
    return status;
}

po_status po_mu_eval(po_ctx *ctx, const po_mu *mu, const double *const *inputs,
                     const double *const *weights, double *const *outputs,
                     double *const *magnitude) {
    return eval(ctx, mu, inputs, weights, outputs, magnitude, false);
}

po_status po_mu_eval_single(po_ctx *ctx, const po_mu *mu, const double *const *inputs,
                            const double *const *weights, double *const *outputs) {
    return eval(ctx, mu, inputs, weights, outputs, NULL, true);
}
