/* Compiled steps on drawn inputs, element by element. */
#include "superopt/check.h"

#include "mugraph/eval.h"
#include "superopt/bands.h"
#include "superopt/compiled.h"
#include "superopt/edges.h"
#include "superopt/schedule_private.h"

#include <float.h>
#include <math.h>

/* Inputs beside those looked at: larger, smaller, up, down, by this part of the largest. */
enum { NEIGHBOURS = 4 };
static const double beside = 0x1p-18;

/* What no element is: stands where the step writes nothing. */
static const double untouched = 0x1p1020;

/* The statements of the steps that are looked at, and what the last of them writes. */
typedef struct looked_at {
    uint32_t n, n_steps, step_of[2 * PO_BANDS_MOST];
    const po_mu_statement *s[2 * PO_BANDS_MOST];
    const po_mu_access *out;
    bool *inner; /* by naive tensor: passes from one of them to another */
} looked_at;

struct po_step_values {
    po_arena *arena;
    const po_mu *naive, *alone;
    uint32_t step, n_steps;
    const float **data[PO_VALUES_KINDS]; /* by naive tensor: row-major; NULL: not read */
    double *value[PO_VALUES_KINDS], *sum[PO_VALUES_KINDS],
        largest[PO_VALUES_KINDS]; /* the greatest finite sum */
    bool ties; /* has functions with steps: what is computed otherwise may fall on the other side */
    double *beside[PO_VALUES_KINDS]
                  [NEIGHBOURS]; /* where it has: the values of inputs that are a little off */
};

/* --- numbers for what is read --- */

static bool has(const looked_at *n, po_mu_function function) {
    for (uint32_t i = 0; i < n->n; i++)
        for (uint32_t k = 0; k < n->s[i]->n_items; k++)
            if (n->s[i]->items[k].function == function)
                return true;
    return false;
}

static void make_data(po_step_values *v, const looked_at *n) {
    po_edge_range r = po_edge_range_of(n->s, n->n);
    for (uint32_t i = 0; i < n->n; i++)
        for (uint32_t o = 0; o < n->s[i]->n_in; o++) {
            uint32_t id = n->s[i]->in[o].tensor;
            const po_mu_tensor *t = &v->naive->tensors[id];
            if (v->data[PO_VALUES_RANDOM][id] || t->place == PO_MU_REGISTER ||
                t->place == PO_MU_TABLE || n->inner[id])
                continue;
            int64_t count = po_mu_elements(t), row = t->rank ? t->dims[t->rank - 1] : 1;
            float *data = PO_NEW_N(v->arena, float, count), *edges = data;
            for (int64_t e = 0; e < count; e++)
                data[e] = (float)(r.least + (1 - r.least) * po_random_unit(1, id, (uint64_t)e));
            if (t->place != PO_MU_WEIGHT)
                edges = PO_NEW_N(v->arena, float, count);
            for (int64_t e = 0; e < count && edges != data; e++)
                edges[e] = po_edge_value(&r, id, (uint64_t)e, (uint64_t)row);
            v->data[PO_VALUES_RANDOM][id] = data;
            v->data[PO_VALUES_EDGES][id] = edges;
        }
}

/* --- float64 --- */

static po_mu_access copy_access(po_mu *mu, const po_mu *from, const po_mu_access *a,
                                const uint32_t *twin) {
    po_mu_access to = po_mu_access_of(mu, twin[a->tensor]);
    for (uint32_t x = 0; x < from->tensors[a->tensor].rank; x++) {
        po_mu_at(mu, &to, x, a->axes[x].offset, PO_NONE);
        for (uint32_t i = 0; i < a->axes[x].n; i++)
            po_mu_at(mu, &to, x, a->axes[x].terms[i].coef, a->axes[x].terms[i].label);
    }
    return to;
}

static void copy_statement(po_mu *mu, uint32_t step, const po_mu *from, const po_mu_statement *s,
                           const uint32_t *twin) {
    uint32_t id = po_mu_add_statement(mu, step, s->combine);
    mu->nodes[id].statement.fresh = s->fresh;
    mu->nodes[id].statement.fused = s->fused;
    mu->nodes[id].statement.out = copy_access(mu, from, &s->out, twin);
    for (uint32_t k = 0; k < s->n_in; k++)
        po_mu_operand(mu, id, copy_access(mu, from, &s->in[k], twin));
    po_mu_copy_items(mu, id, s);
}

/* The steps as a muGraph: what they read are inputs, in the order of the naive tensors, what the
 * last one writes is the output, `untouched` before. NULL: they read what they write. */
static const po_mu *steps_alone(po_arena *arena, const po_mu *naive, const looked_at *n) {
    po_mu *mu = po_mu_create(arena, "step");
    uint32_t *twin = PO_NEW_N(arena, uint32_t, naive->n_tensors), n_in = 0;
    bool *used = PO_NEW_N(arena, bool, naive->n_tensors);
    for (uint32_t i = 0; i < n->n; i++) {
        used[n->s[i]->out.tensor] = true;
        for (uint32_t k = 0; k < n->s[i]->n_in; k++) {
            used[n->s[i]->in[k].tensor] = true;
            if (n->s[i]->in[k].tensor == n->out->tensor)
                return NULL;
        }
    }
    for (uint32_t l = 0; l < naive->n_labels; l++)
        po_mu_add_label(mu, naive->labels[l].name, naive->labels[l].extent);
    for (uint32_t id = 0; id < naive->n_tensors; id++) {
        const po_mu_tensor *t = &naive->tensors[id];
        bool plain = t->place == PO_MU_TABLE || t->place == PO_MU_REGISTER;
        if (!used[id])
            continue;
        twin[id] = po_mu_add_tensor(mu, t->name,
                                    plain                  ? t->place
                                    : id == n->out->tensor ? PO_MU_OUTPUT
                                    : n->inner[id]         ? PO_MU_DEVICE
                                                           : PO_MU_INPUT,
                                    t->rank, t->dims);
        mu->tensors[twin[id]].table = t->table;
        mu->tensors[twin[id]].scope = PO_NONE;
        if (mu->tensors[twin[id]].place == PO_MU_INPUT)
            mu->tensors[twin[id]].number = n_in++;
    }
    const po_mu_tensor *out = &naive->tensors[n->out->tensor];
    uint32_t fill = po_mu_add_statement(mu, po_mu_add_step(mu, "fill"), PO_MU_SET);
    po_mu_access all = po_mu_access_of(mu, twin[n->out->tensor]);
    for (uint32_t x = 0; x < out->rank; x++)
        po_mu_at(mu, &all, x, 1, po_mu_add_label(mu, "i", out->dims[x]));
    mu->nodes[fill].statement.out = all;
    po_mu_constant(mu, fill, untouched);
    uint32_t step = PO_NONE;
    for (uint32_t i = 0; i < n->n; i++) {
        if (i == 0 || n->step_of[i] != n->step_of[i - 1])
            step = po_mu_add_step(mu, "step");
        copy_statement(mu, step, naive, n->s[i], twin);
    }
    return mu;
}

/* The data of one kind as float64; `neighbour` NEIGHBOURS: as they are. */
static const double **data_of(po_arena *scratch, const po_step_values *v, int kind, int neighbour,
                              uint32_t n) {
    const double **in = PO_NEW_N(scratch, const double *, n);
    uint32_t n_in = 0;
    double sign = neighbour % 2 ? -1 : 1, factor = neighbour < 2 ? 1 + sign * beside : 1;
    for (uint32_t id = 0; id < v->naive->n_tensors; id++) {
        const float *from = v->data[kind][id];
        if (!from)
            continue;
        int64_t count = po_mu_elements(&v->naive->tensors[id]);
        double *data = PO_NEW_N(scratch, double, count), largest = 0;
        for (int64_t e = 0; e < count; e++)
            largest = fabsf(from[e]) < FLT_MAX ? fmax(largest, fabs((double)from[e])) : largest;
        double shift = neighbour >= 2 && neighbour < NEIGHBOURS ? sign * beside * largest : 0;
        for (int64_t e = 0; e < count; e++)
            data[e] = (double)from[e] * factor + shift;
        in[n_in++] = data;
    }
    return in;
}

static po_status evaluate(po_ctx *ctx, po_step_values *v, const looked_at *n) {
    const po_mu *mu = steps_alone(v->arena, v->naive, n);
    bool goes_on = false;
    for (uint32_t i = 0; i < n->n; i++)
        goes_on |= n->s[i]->combine != PO_MU_SET && !n->s[i]->fresh;
    if (!mu || goes_on)
        return po_fail(ctx, PO_UNSUPPORTED, "the step reads what it writes");
    int64_t count = po_mu_elements(&v->naive->tensors[n->out->tensor]);
    for (int kind = 0; kind < PO_VALUES_KINDS; kind++) {
        v->value[kind] = PO_NEW_N(v->arena, double, count);
        v->sum[kind] = PO_NEW_N(v->arena, double, count);
        for (int k = v->ties ? 0 : NEIGHBOURS; k <= NEIGHBOURS; k++) {
            po_arena *scratch = po_arena_child(v->arena);
            const double **in = data_of(scratch, v, kind, k, mu->n_tensors);
            double **sum = k == NEIGHBOURS ? &v->sum[kind] : NULL, **out = &v->value[kind];
            if (k < NEIGHBOURS) {
                v->beside[kind][k] = PO_NEW_N(v->arena, double, count);
                out = &v->beside[kind][k];
            }
            PO_TRY(po_mu_eval(ctx, mu, in, NULL, out, sum));
            po_arena_free(scratch);
        }
        for (int64_t e = 0; e < count; e++)
            if (v->value[kind][e] != untouched && v->sum[kind][e] > v->largest[kind] &&
                !isinf(v->sum[kind][e]))
                v->largest[kind] = v->sum[kind][e];
    }
    return PO_OK;
}

/* False where a step has another form. */
static bool look_at(po_arena *arena, const po_lone_step *lone, looked_at *n) {
    const po_mu *naive = lone->naive;
    *n = (looked_at){.inner = PO_NEW_N(arena, bool, naive->n_tensors + 1)};
    uint32_t step = lone->step, n_steps = lone->n_steps > 1 ? lone->n_steps : 1;
    for (; n->n_steps < n_steps; step = naive->nodes[step].next) {
        po_naive_step one;
        if (n->n_steps == PO_BANDS_MOST || step == PO_NONE || !po_naive_step_of(naive, step, &one))
            return false;
        const po_mu_statement *both[2] = {one.s, one.tail};
        for (uint32_t i = 0; i < 2 && both[i]; i++) {
            n->step_of[n->n] = n->n_steps;
            n->s[n->n++] = both[i];
        }
        if (n->out)
            n->inner[n->out->tensor] = true;
        n->out = one.out;
        n->n_steps++;
    }
    return true;
}

/* Of the step looked at last, or made. */
static const po_step_values *values_of(po_ctx *ctx, const po_lone_step *lone, const looked_at *n) {
    po_step_values *v = *lone->last;
    if (v && v->naive == lone->naive && v->step == lone->step && v->n_steps == n->n_steps)
        return v;
    if (v)
        po_arena_free(v->arena);
    *lone->last = NULL;
    po_arena *arena = po_arena_create(ctx);
    v = PO_NEW(arena, po_step_values);
    *v = (po_step_values){
        .arena = arena, .naive = lone->naive, .step = lone->step, .n_steps = n->n_steps};
    v->ties = has(n, PO_MU_FLOOR) || has(n, PO_MU_LESS);
    for (int kind = 0; kind < PO_VALUES_KINDS; kind++)
        v->data[kind] = PO_NEW_N(arena, const float *, lone->naive->n_tensors);
    make_data(v, n);
    if (evaluate(ctx, v, n) != PO_OK)
        return NULL;
    *lone->last = v;
    return v;
}

/* --- the kernel --- */

/* Walks the row-major elements of a tensor that was compiled. */
typedef struct walk {
    const po_mu_tensor *t;
    int64_t at, index[PO_MU_MAX_RANK];
} walk;

static walk walk_of(const po_loaded_kernel *kernel, uint32_t twin) {
    return (walk){
        &kernel->mu->tensors[twin], kernel->places[twin] + kernel->mu->tensors[twin].origin, {0}};
}

static void step_on(walk *w) {
    for (uint32_t x = w->t->rank; x-- > 0;) {
        w->at += w->t->stride[x];
        if (++w->index[x] < w->t->dims[x])
            return;
        w->at -= w->t->stride[x] * w->t->dims[x];
        w->index[x] = 0;
    }
}

static const float unlike = -7.25F; /* in memory that the kernel is to write, or to leave */

static void put(const po_lone_step *lone, const po_step_values *v, po_values_kind kind,
                uint32_t out, const po_loaded_kernel *kernel) {
    for (uint32_t id = 0; id < v->naive->n_tensors; id++) {
        uint32_t twin = lone->tensor[id];
        const float *data = v->data[kind][id];
        const po_mu_tensor *t = &v->naive->tensors[id];
        if (twin == PO_NONE || t->place == PO_MU_WEIGHT || (!data && id != out))
            continue;
        walk w = walk_of(kernel, twin);
        int64_t count = po_mu_elements(t);
        for (int64_t e = 0; e < count; e++, step_on(&w))
            kernel->device[w.at] = id == out ? unlike : data[e];
    }
}

/* What errors are measured by: S, by which sums of random numbers stay below k. Those of numbers
 * that are alike round the same way for long; transforms round by the largest of a tile. */
static double size_of(const po_lone_step *lone, const po_step_values *v, po_values_kind kind,
                      int64_t e) {
    if (!lone->exact)
        return v->largest[kind];
    return kind == PO_VALUES_RANDOM ? v->sum[kind][e] : 4 * v->sum[kind][e];
}

/* Whether an element stands on a step of a function, and what was found is the value on its other
 * side. Beside a step values jump by more than neighbours differ. */
static bool on_a_step(const po_step_values *v, po_values_kind kind, int64_t e, double found,
                      double limit) {
    if (!v->ties)
        return false;
    double expected = v->value[kind][e], near = limit + 4 * beside * v->sum[kind][e];
    for (int k = 0; k < NEIGHBOURS; k++) {
        double other = v->beside[kind][k][e];
        if (fabs(other - expected) > 2 * near && fabs(found - other) <= near)
            return true;
    }
    return false;
}

static const char *compare(po_arena *arena, const po_lone_step *lone, const po_step_values *v,
                           po_values_kind kind, uint32_t out, const po_loaded_kernel *kernel) {
    walk w = walk_of(kernel, lone->tensor[out]);
    int64_t count = po_mu_elements(&v->naive->tensors[out]);
    const char *where = kind == PO_VALUES_RANDOM ? "" : ", edge cases";
    for (int64_t e = 0; e < count; e++, step_on(&w)) {
        double found = (double)kernel->device[w.at], expected = v->value[kind][e];
        double sum = v->sum[kind][e];
        double limit = lone->k * (FLT_EPSILON / 2) * size_of(lone, v, kind, e) + (double)FLT_MIN;
        if (expected == untouched) {
            if (found != (double)unlike)
                return po_arena_printf(arena, "element %lld, of another step, is overwritten%s",
                                       (long long)e, where);
            continue;
        }
        if (po_edge_allows(kind, found, expected, sum, limit) ||
            on_a_step(v, kind, e, found, limit))
            continue;
        return po_arena_printf(arena,
                               "element %lld is %g instead of %g (off by %.3g, limit %.3g)%s",
                               (long long)e, found, expected, fabs(found - expected), limit, where);
    }
    return NULL;
}

const char *po_check_step(po_ctx *ctx, po_arena *arena, void *user,
                          const po_loaded_kernel *kernel) {
    const po_lone_step *lone = user;
    looked_at n;
    if (!look_at(arena, lone, &n))
        return "the step has another form";
    const po_step_values *v = values_of(ctx, lone, &n);
    if (!v)
        return po_arena_printf(arena, "it has no float64 value: %s", ctx->error.message);
    const float *const *weights = po_compiled_weights(
        ctx, arena, v->naive, v->data[PO_VALUES_RANDOM], lone->packed, lone->n_packed);
    if (!weights)
        return "its weights cannot be packed";
    const char *wrong = NULL;
    for (int kind = 0; kind < PO_VALUES_KINDS && !wrong; kind++) {
        put(lone, v, (po_values_kind)kind, n.out->tensor, kernel);
        kernel->run(kernel->self, weights);
        wrong = compare(arena, lone, v, (po_values_kind)kind, n.out->tensor, kernel);
    }
    return wrong;
}
