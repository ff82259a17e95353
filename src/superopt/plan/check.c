/* Compiled steps on drawn inputs, element by element. */
#include "superopt/plan/check.h"

#include "base/tasks.h"
#include "mugraph/eval.h"
#include "superopt/plan/check_part.h"
#include "superopt/plan/compiled.h"
#include "superopt/plan/edges.h"
#include "superopt/schedule/internal.h"

#include <float.h>
#include <math.h>

/* Inputs beside those looked at: larger, smaller, up, down, by this part of the largest. */
enum { NEIGHBOURS = 4, MOST_NUMBERS = 1 << 20 };
static const double beside = 0x1p-18;

/* What the steps compute of one part of their output. */
typedef struct part_values {
    double *value[PO_VALUES_KINDS], *sum[PO_VALUES_KINDS];
    double *beside[PO_VALUES_KINDS]
                  [NEIGHBOURS]; /* where it has: the values of inputs that are a little off */
} part_values;

/* Row-major numbers for a tensor, over again after `period` of them. */
typedef struct numbers {
    const float *data; /* NULL: not read */
    int64_t period;
} numbers;

struct po_step_values {
    po_arena *arena;
    const po_mu *naive, *original;
    uint32_t step, n_steps, n_parts;
    numbers *data[PO_VALUES_KINDS]; /* by naive tensor */
    po_step_part part[PO_PARTS_MOST];
    part_values of[PO_PARTS_MOST];
    double largest[PO_VALUES_KINDS]; /* the greatest finite sum */
    bool ties; /* has functions with steps: what is computed otherwise may fall on the other side */
    bool one_sign; /* of the ordinary numbers */
};

/* --- numbers for what is read --- */

static bool has(const po_looked_steps *n, po_mu_function function) {
    for (uint32_t i = 0; i < n->n; i++)
        for (uint32_t k = 0; k < n->s[i]->n_items; k++)
            if (n->s[i]->items[k].function == function)
                return true;
    return false;
}

/* Numbers that large maps have over again: whole rows, a prime number of times. */
static int64_t period_of(int64_t count, int64_t row) {
    static const int64_t primes[] = {10007, 1009, 101, 11, 1};
    uint32_t i = 0;
    while (primes[i] > 1 && primes[i] * row > MOST_NUMBERS)
        i++;
    return count <= MOST_NUMBERS ? count : primes[i] * row;
}

static void make_numbers(po_step_values *v, const po_edge_range *r, uint32_t id) {
    const po_mu_tensor *t = &v->naive->tensors[id];
    bool weight = t->place == PO_MU_WEIGHT;
    int64_t count = po_mu_elements(t), row = t->rank ? t->dims[t->rank - 1] : 1;
    int64_t period = weight ? count : period_of(count, row);
    float *data = PO_NEW_N(v->arena, float, period), *edges = data;
    for (int64_t e = 0; e < period; e++)
        data[e] = (float)(r->least + (1 - r->least) * po_random_unit(1, id, (uint64_t)e));
    if (!weight)
        edges = PO_NEW_N(v->arena, float, period);
    for (int64_t e = 0; e < period && edges != data; e++)
        edges[e] = po_edge_value(r, id, (uint64_t)e, (uint64_t)row);
    v->data[PO_VALUES_RANDOM][id] = (numbers){data, period};
    v->data[PO_VALUES_EDGES][id] = (numbers){edges, period};
}

static void make_data(po_step_values *v, const po_looked_steps *n) {
    po_edge_range r = po_edge_range_of(n->s, n->n);
    v->one_sign = r.least >= 0;
    for (uint32_t i = 0; i < n->n; i++)
        for (uint32_t o = 0; o < n->s[i]->n_in; o++) {
            uint32_t id = n->s[i]->in[o].tensor;
            po_mu_place place = v->naive->tensors[id].place;
            if (!v->data[PO_VALUES_RANDOM][id].data && place != PO_MU_REGISTER &&
                place != PO_MU_TABLE && !n->inner[id])
                make_numbers(v, &r, id);
        }
}

/* --- float64 --- */

/* What a part reads of one kind as float64; `neighbour` NEIGHBOURS: as it is. */
static const double **data_of(po_arena *scratch, const po_step_values *v, const po_step_part *part,
                              int kind, int neighbour) {
    const double **in = PO_NEW_N(scratch, const double *, part->mu->n_tensors);
    uint32_t n_in = 0;
    double sign = neighbour % 2 ? -1 : 1, factor = neighbour < 2 ? 1 + sign * beside : 1;
    for (uint32_t id = 0; id < v->naive->n_tensors; id++) {
        const numbers *from = &v->data[kind][id];
        const po_mu_tensor *t = &v->naive->tensors[id];
        const po_part_box *box = &part->boxes[id];
        if (!from->data)
            continue;
        const bool shifted = neighbour >= 2 && neighbour < NEIGHBOURS;
        double largest = 0;
        for (int64_t e = 0; e < from->period && shifted; e++)
            if (fabsf(from->data[e]) < FLT_MAX)
                largest = fmax(largest, fabs((double)from->data[e]));
        const double shift = sign * beside * largest;
        double *data = PO_NEW_N(scratch, double, po_part_elements(box, t->rank)), *to = data;
        po_part_walk w = po_part_walk_in(box, t);
        do
            *to++ = (double)from->data[w.at % from->period] * factor + shift;
        while (po_part_next(&w));
        in[n_in++] = data;
    }
    return in;
}

/* po_task_fn: one part of one kind. */
static po_status evaluate_part(po_ctx *ctx, void *user, uint32_t which) {
    po_step_values *v = user;
    const int kind = (int)(which % PO_VALUES_KINDS);
    const po_step_part *part = &v->part[which / PO_VALUES_KINDS];
    part_values *to = &v->of[which / PO_VALUES_KINDS];
    for (int k = v->ties ? 0 : NEIGHBOURS; k <= NEIGHBOURS; k++) {
        po_arena *scratch = po_arena_create(ctx);
        const double **in = data_of(scratch, v, part, kind, k);
        double **sum = k == NEIGHBOURS ? &to->sum[kind] : NULL;
        double **out = k == NEIGHBOURS ? &to->value[kind] : &to->beside[kind][k];
        PO_TRY(po_mu_eval(ctx, part->mu, in, NULL, out, sum));
        po_arena_free(scratch);
    }
    return PO_OK;
}

static void make_room(po_step_values *v, const po_step_part *part, part_values *to) {
    for (int kind = 0; kind < PO_VALUES_KINDS; kind++) {
        to->value[kind] = PO_NEW_N(v->arena, double, part->count);
        to->sum[kind] = PO_NEW_N(v->arena, double, part->count);
        for (int k = 0; k < NEIGHBOURS && v->ties; k++)
            to->beside[kind][k] = PO_NEW_N(v->arena, double, part->count);
    }
}

static void find_largest(po_step_values *v, const part_values *of, int64_t count, int kind) {
    for (int64_t e = 0; e < count; e++)
        if (of->value[kind][e] != PO_UNTOUCHED && of->sum[kind][e] > v->largest[kind] &&
            !isinf(of->sum[kind][e]))
            v->largest[kind] = of->sum[kind][e];
}

static po_status evaluate(po_ctx *ctx, po_step_values *v, const po_looked_steps *n) {
    bool goes_on = false;
    for (uint32_t i = 0; i < n->n; i++)
        goes_on |= n->s[i]->combine != PO_MU_SET && !n->s[i]->fresh;
    if (goes_on || !po_step_parts(v->arena, v->naive, n, &po_part_usual, v->part, &v->n_parts))
        return po_fail(ctx, PO_UNSUPPORTED, "the step reads what it writes");
    for (uint32_t i = 0; i < v->n_parts; i++)
        make_room(v, &v->part[i], &v->of[i]);
    PO_TRY(po_tasks_run(ctx, v->n_parts * PO_VALUES_KINDS, evaluate_part, v));
    for (uint32_t i = 0; i < v->n_parts; i++)
        for (int kind = 0; kind < PO_VALUES_KINDS; kind++)
            find_largest(v, &v->of[i], v->part[i].count, kind);
    return PO_OK;
}

/* Of the step looked at last, or made. */
static const po_step_values *values_of(po_ctx *ctx, const po_standalone_step *lone,
                                       const po_looked_steps *n) {
    po_step_values *v = *lone->last;
    if (v && v->original == lone->original && v->step == lone->step && v->n_steps == n->n_steps)
        return v;
    if (v)
        po_arena_free(v->arena);
    *lone->last = NULL;
    po_arena *arena = po_arena_create(ctx);
    v = PO_NEW(arena, po_step_values);
    *v = (po_step_values){.arena = arena,
                          .naive = lone->naive,
                          .original = lone->original,
                          .step = lone->step,
                          .n_steps = n->n_steps};
    v->ties = has(n, PO_MU_FLOOR) || has(n, PO_MU_LESS);
    for (int kind = 0; kind < PO_VALUES_KINDS; kind++)
        v->data[kind] = PO_NEW_N(arena, numbers, lone->naive->n_tensors);
    make_data(v, n);
    if (evaluate(ctx, v, n) != PO_OK)
        return NULL;
    *lone->last = v;
    return v;
}

/* --- the kernel --- */

/* Through a box of a tensor that was compiled. */
static po_part_walk walk_of(const po_loaded_kernel *kernel, uint32_t twin, const po_part_box *box) {
    const po_mu_tensor *t = &kernel->mu->tensors[twin];
    return po_part_walk_by(box, t->rank, t->stride, kernel->places[twin] + t->origin);
}

static const float unlike = -7.25F; /* in memory that the kernel is to write, or to leave */

/* A row, of numbers from place e on (NULL: `unlike`). Where the next one begins. */
static int64_t put_row(float *to, int64_t step, int64_t n, const numbers *from, int64_t e) {
    if (!from) {
        for (int64_t i = 0; i < n; i++)
            to[i * step] = unlike;
        return e;
    }
    while (n > 0) {
        const int64_t some = n < from->period - e ? n : from->period - e;
        if (step == 1)
            memcpy(to, from->data + e, (size_t)some * sizeof *to);
        for (int64_t i = 0; i < some && step != 1; i++)
            to[i * step] = from->data[e + i];
        to += some * step;
        n -= some;
        e = e + some == from->period ? 0 : e + some;
    }
    return e;
}

static void put(const po_standalone_step *lone, const po_step_values *v, po_values_kind kind,
                uint32_t out, const po_loaded_kernel *kernel) {
    for (uint32_t id = 0; id < v->naive->n_tensors; id++) {
        uint32_t twin = lone->tensor[id];
        const numbers *from = &v->data[kind][id];
        const po_mu_tensor *t = &v->naive->tensors[id];
        if (twin == PO_NONE || t->place == PO_MU_WEIGHT || (!from->data && id != out))
            continue;
        po_part_box all = po_part_whole(t);
        po_part_walk w = walk_of(kernel, twin, &all);
        int64_t e = 0, step;
        do {
            const int64_t n = po_part_row(&w, &step);
            e = put_row(&kernel->device[w.at], step, n, id == out ? NULL : from, e);
        } while (po_part_next_row(&w));
    }
}

/* What errors are measured by: S, by which sums of random numbers stay below k. Those of numbers
 * that are alike round the same way for long, and what is added up of n numbers of one sign rounds
 * by all that came before: about sqrt(n) / 4 S, so that one in 100,000 sums of 257 is off by more
 * than 16. Transforms round by the largest of a tile. */
static double size_of(const po_standalone_step *lone, const po_step_values *v, po_values_kind kind,
                      double sum) {
    if (!lone->exact)
        return v->largest[kind];
    return kind == PO_VALUES_RANDOM && !v->one_sign ? sum : 4 * sum;
}

/* Whether an element stands on a step of a function, and what was found is the value on its other
 * side. Beside a step values jump by more than neighbours differ. */
static bool on_a_step(const part_values *of, po_values_kind kind, int64_t e, double found,
                      double limit) {
    double expected = of->value[kind][e], near = limit + 4 * beside * of->sum[kind][e];
    for (int k = 0; k < NEIGHBOURS; k++) {
        double other = of->beside[kind][k][e];
        if (fabs(other - expected) > 2 * near && fabs(found - other) <= near)
            return true;
    }
    return false;
}

static const char *compare(po_arena *arena, const po_standalone_step *lone, const po_step_values *v,
                           uint32_t number, po_values_kind kind, uint32_t out,
                           const po_loaded_kernel *kernel) {
    const part_values *of = &v->of[number];
    po_part_walk w = walk_of(kernel, lone->tensor[out], &v->part[number].boxes[out]);
    const char *where = kind == PO_VALUES_RANDOM ? "" : ", edge cases";
    for (int64_t e = 0; e < v->part[number].count; e++, po_part_next(&w)) {
        double found = (double)kernel->device[w.at], expected = of->value[kind][e];
        double sum = of->sum[kind][e];
        double limit = lone->k * (FLT_EPSILON / 2) * size_of(lone, v, kind, sum) + (double)FLT_MIN;
        if (expected == PO_UNTOUCHED) {
            if (found != (double)unlike)
                return po_arena_printf(arena,
                                       "element %lld of part %u, of another step, is overwritten%s",
                                       (long long)e, number, where);
            continue;
        }
        if (po_edge_allows(kind, found, expected, sum, limit) ||
            (v->ties && on_a_step(of, kind, e, found, limit)))
            continue;
        return po_arena_printf(
            arena, "element %lld of part %u is %g instead of %g (off by %.3g, limit %.3g)%s",
            (long long)e, number, found, expected, fabs(found - expected), limit, where);
    }
    return NULL;
}

const char *po_check_step(po_ctx *ctx, po_arena *arena, void *user,
                          const po_loaded_kernel *kernel) {
    const po_standalone_step *lone = user;
    po_looked_steps n;
    uint32_t n_steps = lone->n_steps > 1 ? lone->n_steps : 1;
    if (!po_look_at_steps(arena, lone->naive, lone->step, n_steps, &n))
        return "the step has another form";
    const po_step_values *v = values_of(ctx, lone, &n);
    if (!v && ctx->error.status == PO_TIME_LIMIT)
        return po_check_no_time;
    if (!v)
        return po_arena_printf(arena, "it has no float64 value: %s", ctx->error.message);
    const float **data = PO_NEW_N(arena, const float *, v->naive->n_tensors);
    for (uint32_t id = 0; id < v->naive->n_tensors; id++)
        data[id] = v->data[PO_VALUES_RANDOM][id].data;
    const float *const *weights =
        po_compiled_weights(ctx, arena, v->naive, data, lone->packed, lone->n_packed);
    if (!weights)
        return "its weights cannot be packed";
    const char *wrong = NULL;
    for (int kind = 0; kind < PO_VALUES_KINDS && !wrong; kind++) {
        put(lone, v, (po_values_kind)kind, n.out->tensor, kernel);
        kernel->run(kernel->self, weights);
        for (uint32_t i = 0; i < v->n_parts && !wrong; i++)
            wrong = compare(arena, lone, v, i, (po_values_kind)kind, n.out->tensor, kernel);
    }
    return wrong;
}
