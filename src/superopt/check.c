#include "superopt/check.h"

#include "superopt/compiled.h"
#include "superopt/schedule_private.h"

#include <float.h>
#include <math.h>

enum { SAMPLES = 160, MOST_LABELS = 16 };

/* A naive step with numbers for all that it reads. */
typedef struct looking {
    const po_lone_step *lone;
    const po_mu *mu;
    po_naive_step step;
    const float **data; /* by naive tensor: row-major; NULL: not read */
    int64_t *at;        /* by naive label */
    uint32_t n_kept, n_reduced, *kept, *reduced;
    double main, main_sum; /* what the first statement makes of this element, and its S */
} looking;

typedef struct valued {
    double value, sum; /* S(v) */
} valued;

static int64_t index_of(const looking *k, const po_mu_index *index) {
    int64_t i = index->offset;
    for (uint32_t t = 0; t < index->n; t++)
        i += index->terms[t].coef * k->at[index->terms[t].label];
    return i;
}

/* False where an index lies outside. */
static bool element(const looking *k, const po_mu_access *access, int64_t *at) {
    const po_mu_tensor *t = &k->mu->tensors[access->tensor];
    *at = 0;
    for (uint32_t x = 0; x < t->rank; x++) {
        int64_t i = index_of(k, &access->axes[x]);
        if (i < 0 || i >= t->dims[x])
            return false;
        *at = *at * t->dims[x] + i;
    }
    return true;
}

/* How far an error of the argument comes through. */
static double slope(po_mu_function f, double x) {
    switch (f) {
    case PO_MU_EXP:
        return exp(x);
    case PO_MU_LOG:
        return 1 / fabs(x);
    case PO_MU_SQRT:
        return 0.5 / sqrt(fabs(x) + FLT_MIN);
    default:
        return 1.2;
    }
}

static valued apply(const po_mu_item *m, const valued *v) {
    const valued *a = &v[m->a], *b = &v[m->b], *c = &v[m->c];
    uint32_t arity = po_mu_arity(m->function);
    valued r = {
        po_mu_apply(m->function, a->value, arity > 1 ? b->value : 0, arity > 2 ? c->value : 0), 0};
    switch (m->function) {
    case PO_MU_PLUS:
    case PO_MU_MINUS:
        r.sum = a->sum + b->sum;
        break;
    case PO_MU_TIMES:
        r.sum = a->sum * b->sum;
        break;
    case PO_MU_OVER:
        r.sum = a->sum / fabs(b->value) * (b->sum / fabs(b->value));
        break;
    case PO_MU_MAX:
    case PO_MU_MIN:
        r.sum = fmax(a->sum, b->sum);
        break;
    case PO_MU_CHOOSE:
        r.sum = fmax(b->sum, c->sum);
        break;
    case PO_MU_POW:
        r.sum = fabs(r.value) * (1 + a->sum + 8 * b->sum);
        break;
    default:
        r.sum = fabs(r.value) + slope(m->function, a->value) * a->sum;
    }
    return r;
}

/* The statement's expression here; false where an operand lies outside. */
static bool evaluate(const looking *k, const po_mu_statement *s, valued *result) {
    enum { MOST_ITEMS = 128 };
    valued v[MOST_ITEMS];
    if (s->n_items > MOST_ITEMS)
        return false;
    for (uint32_t i = 0; i < s->n_items; i++) {
        const po_mu_item *m = &s->items[i];
        if (m->function == PO_MU_CONST) {
            v[i] = (valued){m->value, fabs(m->value)};
        } else if (m->function == PO_MU_OPERAND) {
            const po_mu_access *in = &s->in[m->a];
            int64_t at;
            const po_mu_tensor *t = &k->mu->tensors[in->tensor];
            if (t->place == PO_MU_REGISTER) {
                v[i] = (valued){k->main, k->main_sum};
                continue;
            }
            if (!element(k, in, &at))
                return false;
            double x = t->place == PO_MU_TABLE ? po_rational_f64(t->table[at])
                                               : (double)k->data[in->tensor][at];
            v[i] = (valued){x, fabs(x)};
        } else {
            v[i] = apply(m, v);
        }
    }
    *result = v[s->n_items - 1];
    return true;
}

/* The step's value at the kept labels' indices. */
static valued value_here(looking *k) {
    const po_mu_statement *s = k->step.s;
    valued sum = {s->combine == PO_MU_MAXIMUM ? -(double)INFINITY : 0, 0};
    for (uint32_t i = 0; i < k->n_reduced; i++)
        k->at[k->reduced[i]] = 0;
    for (bool more = true; more;) {
        valued one;
        if (evaluate(k, s, &one)) {
            sum.value = s->combine == PO_MU_MAXIMUM ? fmax(sum.value, one.value)
                        : s->combine == PO_MU_ADD   ? sum.value + one.value
                                                    : one.value;
            sum.sum = s->combine == PO_MU_MAXIMUM ? fmax(sum.sum, one.sum) : sum.sum + one.sum;
        }
        more = false;
        for (uint32_t i = k->n_reduced; i-- > 0 && !more;) {
            int64_t *at = &k->at[k->reduced[i]];
            more = ++*at < k->mu->labels[k->reduced[i]].extent;
            if (!more)
                *at = 0;
        }
    }
    k->main = sum.value;
    k->main_sum = sum.sum;
    if (k->step.tail)
        evaluate(k, k->step.tail, &sum);
    return sum;
}

/* --- numbers for what is read --- */

static void make_data(looking *k, po_arena *arena, const po_loaded_kernel *kernel) {
    const po_mu_statement *both[2] = {k->step.s, k->step.tail};
    for (uint32_t i = 0; i < 2 && both[i]; i++)
        for (uint32_t o = 0; o < both[i]->n_in; o++) {
            uint32_t id = both[i]->in[o].tensor, twin = k->lone->tensor[id];
            const po_mu_tensor *t = &k->mu->tensors[id];
            if (k->data[id] || t->place == PO_MU_REGISTER || t->place == PO_MU_TABLE)
                continue;
            int64_t n = po_mu_elements(t);
            float *data = PO_NEW_N(arena, float, n);
            for (int64_t e = 0; e < n; e++)
                data[e] = po_compiled_number(id, e);
            k->data[id] = data;
            if (t->place == PO_MU_WEIGHT || twin == PO_NONE)
                continue;
            for (int64_t e = 0; e < n; e++)
                *po_compiled_element(kernel, twin, e) = data[e];
        }
}

/* --- the look --- */

/* Element number `sample` of those looked at: first the corners, then random ones. */
static void go_to(looking *k, uint32_t sample) {
    uint32_t corners = k->n_kept < 6 ? 1U << k->n_kept : 64;
    for (uint32_t i = 0; i < k->n_kept; i++) {
        int64_t extent = k->mu->labels[k->kept[i]].extent;
        k->at[k->kept[i]] = sample < corners
                                ? (sample >> (i % 6) & 1 ? extent - 1 : 0)
                                : (int64_t)(po_random_unit(2, sample, i) * (double)extent);
    }
}

/* Beyond limits: the random numbers are no model's, and may make a root of what is negative or go
 * past what a float holds. */
static bool agree(double found, double expected) {
    if (isnan(expected))
        return isnan(found);
    return found == expected || (fabs(expected) > (double)FLT_MAX && isinf(found) &&
                                 signbit(found) == signbit(expected));
}

const char *po_check_step(po_ctx *ctx, po_arena *arena, void *user,
                          const po_loaded_kernel *kernel) {
    const po_lone_step *lone = user;
    looking k = {.lone = lone,
                 .mu = lone->naive,
                 .data = PO_NEW_N(arena, const float *, lone->naive->n_tensors),
                 .at = PO_NEW_N(arena, int64_t, lone->naive->n_labels)};
    if (!po_naive_step_of(k.mu, lone->step, &k.step))
        return "the step has another form";
    po_mu_labels_of(k.mu, k.step.s, arena, &k.n_kept, &k.kept, &k.n_reduced, &k.reduced);
    make_data(&k, arena, kernel);
    const float *const *weights =
        po_compiled_weights(ctx, arena, k.mu, k.data, lone->packed, lone->n_packed);
    if (!weights)
        return "its weights cannot be packed";
    kernel->run(kernel->self, weights);
    uint32_t twin = lone->tensor[k.step.out->tensor];
    for (uint32_t i = 0; i < SAMPLES; i++) {
        int64_t at = 0;
        go_to(&k, i);
        valued expected = value_here(&k);
        if (!element(&k, k.step.out, &at))
            continue;
        double found = (double)*po_compiled_element(kernel, twin, at);
        double limit = lone->k * (FLT_EPSILON / 2) * expected.sum + FLT_MIN;
        if (!(fabs(found - expected.value) <= limit) && !agree(found, expected.value))
            return po_arena_printf(
                arena, "element %lld is %g instead of %g (off by %.3g, limit %.3g)", (long long)at,
                found, expected.value, fabs(found - expected.value), limit);
    }
    return NULL;
}
