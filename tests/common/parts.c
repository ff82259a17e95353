/* Parts of a batch, compared element by element. */
#include "parts.h"

#include <math.h>

po_graph *test_with_samples(po_ctx *ctx, const po_graph *graph, uint32_t mask, int64_t n) {
    po_graph *g = po_graph_clone(ctx, graph);
    for (uint32_t i = 0; i < g->n_inputs; i++) {
        po_type *type = &g->values[g->inputs[i]].type;
        po_dim *dims = po_arena_memdup(g->arena, type->dims, type->rank * sizeof *dims);
        if (mask >> i & 1)
            dims[0] = n < 0 ? (po_dim){-1, "N"} : PO_DIM(n);
        type->dims = dims;
    }
    return g;
}

static double at(const po_array *a, int64_t i) {
    return a->f ? a->f[i] : (double)a->i[i];
}

static double differ(double x, double y) {
    if (isnan(x) || isnan(y))
        return isnan(x) && isnan(y) ? 0 : INFINITY;
    if (isinf(x) || isinf(y))
        return x == y ? 0 : INFINITY;
    return fabs(x - y) / (1 + fabs(y));
}

/* How far the part of sample i along the axis is from `one`; INFINITY where it is of another shape.
 */
static double part_differs(const po_array *all, const po_array *one, int axis, int64_t i) {
    int64_t before = 1, behind = 1, own = axis < 0 ? 1 : one->dims[axis],
            times = axis < 0 ? 1 : TEST_SAMPLES;
    for (int d = 0; d < (int)one->rank; d++) {
        before *= d < axis || axis < 0 ? one->dims[d] : 1;
        behind *= axis >= 0 && d > axis ? one->dims[d] : 1;
    }
    if (all->rank != one->rank || all->count != times * one->count || all->s || one->s ||
        (axis >= 0 && all->dims[axis] != TEST_SAMPLES * own))
        return INFINITY;
    double worst = 0;
    for (int64_t b = 0; b < before; b++)
        for (int64_t k = 0; k < own * behind; k++)
            worst = fmax(worst, differ(at(all, (b * times + (axis < 0 ? 0 : i)) * own * behind + k),
                                       at(one, b * own * behind + k)));
    return worst;
}

/* `first`: of the samples; inputs that are not in the mask are the same for all. */
static const po_array *drawn(po_ctx *ctx, po_arena *arena, const po_graph *g, uint32_t i,
                             uint32_t mask, int64_t first) {
    const po_type *t = &g->values[g->inputs[i]].type;
    int64_t dims[PO_MAX_RANK], each = 1;
    for (uint32_t d = 0; d < t->rank; d++) {
        dims[d] = t->dims[d].value;
        each *= d > 0 ? dims[d] : 1;
    }
    po_array *a;
    if (po_array_create(ctx, arena, t->dtype, t->rank, dims, &a) != PO_OK)
        return NULL;
    const int64_t from = mask >> i & 1 ? first * each : 0;
    for (int64_t k = 0; k < a->count; k++) {
        const uint64_t at = (uint64_t)(from + k);
        if (a->f)
            a->f[k] = po_random_normal(3, i, at);
        else
            a->i[k] = (int64_t)(po_random_u64(3, i, at) % (t->dtype == PO_BOOL ? 2 : 4));
    }
    po_array_round(a);
    return a;
}

static bool evaluate(po_ctx *ctx, po_arena *arena, const po_graph *g, uint32_t mask, int64_t first,
                     po_array **out) {
    const po_array *in[TEST_MOST_INPUTS];
    for (uint32_t i = 0; i < g->n_inputs; i++)
        if (!(in[i] = drawn(ctx, arena, g, i, mask, first)))
            return false;
    return po_ref_graph(ctx, arena, g, in, out, false) == PO_OK;
}

double test_samples_apart(po_ctx *ctx, po_arena *arena, const po_graph *graph, uint32_t mask,
                          const int8_t *axis) {
    po_graph *many = test_with_samples(ctx, graph, mask, TEST_SAMPLES);
    po_graph *one = test_with_samples(ctx, graph, mask, 1);
    po_array **all = PO_NEW_N(arena, po_array *, graph->n_outputs);
    po_array **part = PO_NEW_N(arena, po_array *, graph->n_outputs);
    bool good = evaluate(ctx, arena, many, mask, 0, all);
    double worst = 0;
    for (int64_t i = 0; good && i < TEST_SAMPLES; i++) {
        good = evaluate(ctx, arena, one, mask, i, part);
        for (uint32_t k = 0; good && k < graph->n_outputs; k++)
            worst = fmax(worst, part_differs(all[k], part[k], axis[k], i));
    }
    po_graph_free(one);
    po_graph_free(many);
    return good ? worst : NAN;
}
