/* Whether models whose residues differ, perhaps by a law that the proof does not know, differ in
 * float64 by more than their constants are rounded by. Laws hold there to the last few bits; what a
 * rounded constant moves is measured, by rounding it the other way. */
#include "verify/proof/internal.h"
#include "verify/verify_internal.h"

#include <math.h>
#include <stdio.h>

/* Times what rounding moves; and of the largest magnitude, what float64 itself does. */
static const double margin = 8, float64 = 1e-9;

static bool is_float(const po_tensor *t) {
    return t && po_dtype_class_of(t->dtype) == PO_CLASS_FLOAT;
}

/* A unit in the last place, of one. */
static double unit_of(po_dtype dtype) {
    return dtype == PO_F64   ? 0x1p-52
           : dtype == PO_F32 ? 0x1p-23
           : dtype == PO_F16 ? 0x1p-10
                             : 0x1p-7;
}

/* A copy in which every float that `other` does not hold as well is off by a unit. */
static po_status nudge(po_ctx *ctx, const po_graph *graph, const po_graph *other, po_graph **out) {
    po_graph *g = po_graph_clone(ctx, graph);
    po_hash_map *held = po_hash_map_create(g->arena);
    *out = g;
    for (po_value_id v = 0; v < other->n_values; v++)
        if (is_float(other->values[v].constant))
            po_hash_map_put(held, po_tensor_hash(other->values[v].constant), 1);
    for (po_value_id v = 0; v < g->n_values; v++) {
        const po_tensor *t = g->values[v].constant;
        po_tensor *copy;
        if (!is_float(t) || po_hash_map_get(held, po_tensor_hash(t)) != PO_NONE)
            continue;
        PO_TRY(po_tensor_create(ctx, g->arena, t->dtype, t->rank, t->dims, &copy));
        double unit = unit_of(t->dtype);
        for (int64_t i = 0; i < t->count; i++) {
            bool up = po_random_u64(7, v, (uint64_t)i) & 1;
            po_tensor_set_f64(copy, i, po_tensor_f64(t, i) * (up ? 1 + unit : 1 - unit));
        }
        g->values[v].constant = copy;
    }
    for (uint32_t i = 0; i < g->n_nodes; i++)
        for (uint32_t a = 0; a < g->nodes[i].n_attr; a++) {
            po_attr *attr = &g->nodes[i].attr[a];
            if (attr->kind == PO_ATTR_FLOAT)
                attr->u.f *= po_random_u64(7, ~(uint64_t)i, a) & 1 ? 1 + 0x1p-23f : 1 - 0x1p-23f;
        }
    return PO_OK;
}

/* Largest difference of an output's elements; *largest: magnitude. Infinite where no figure can be
 * had. */
static double difference(const po_array *a, const po_array *b, double *largest) {
    double most = 0;
    *largest = 0;
    if (!a || !b || !a->f || !b->f || a->count != b->count)
        return HUGE_VAL;
    for (int64_t i = 0; i < a->count; i++) {
        if (!isfinite(a->f[i]) || !isfinite(b->f[i]))
            return HUGE_VAL;
        most = fmax(most, fabs(a->f[i] - b->f[i]));
        *largest = fmax(*largest, fabs(a->f[i]));
    }
    return most;
}

static po_status compare(po_ctx *ctx, po_arena *arena, const po_graph *const graphs[4],
                         const po_feed *feed, po_proof_report *report) {
    po_array **out[4];
    for (int k = 0; k < 4; k++)
        PO_TRY(po_verify_evaluate(ctx, arena, graphs[k], feed, false, &out[k]));
    for (uint32_t o = 0; o < graphs[0]->n_outputs; o++) {
        double largest, unused;
        double moved =
            difference(out[0][o], out[2][o], &unused) + difference(out[1][o], out[3][o], &unused);
        double apart = difference(out[0][o], out[1][o], &largest);
        double limit = margin * moved + float64 * largest;
        if (!isfinite(apart) || !(apart > limit))
            continue;
        report->differ = PO_DIFFER_CERTAIN;
        snprintf(report->why, sizeof report->why,
                 "output '%.80s' differs modulo p, and by %.2e in float64, where rounded constants "
                 "explain %.1e",
                 graphs[0]->values[graphs[0]->outputs[o]].name, apart, moved);
        return PO_OK;
    }
    return PO_OK;
}

po_status po_disprove(po_ctx *ctx, const po_inputs *plan, const po_graph *a, const po_graph *b,
                      double seconds, po_proof_report *report) {
    if (po_verify_has_steps(a) || po_verify_has_steps(b))
        return PO_OK;
    po_arena *arena = po_arena_create(ctx);
    po_limit limit = po_limit_begin(ctx, po_now() + seconds);
    po_graph *nudged_a = NULL, *nudged_b = NULL;
    po_feed feed;
    po_status status = po_inputs_make(ctx, arena, plan, 0, PO_INPUTS_NORMAL, report->seed, &feed);
    if (status == PO_OK)
        status = nudge(ctx, a, b, &nudged_a);
    if (status == PO_OK)
        status = nudge(ctx, b, a, &nudged_b);
    const po_graph *graphs[4] = {a, b, nudged_a, nudged_b};
    if (status == PO_OK)
        status = compare(ctx, arena, graphs, &feed, report);
    po_graph_free(nudged_a);
    po_graph_free(nudged_b);
    po_arena_free(arena);
    return po_verify_without_answer(ctx, &limit, status); /* it stays open */
}
