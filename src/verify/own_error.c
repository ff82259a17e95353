/* How far the original itself is off from float64 on a set of inputs, and how far what it rounds
 * may move it there: what another model may be off by too, times PO_OWN_ERRORS. */
#include "verify/verify_internal.h"

#include <float.h>
#include <math.h>

static const double largest_half = 65504;

static double exact_at(const po_array *a, int64_t i) {
    return a->f ? a->f[i] : (double)a->i[i];
}

/* Against one output of the reference. NULL in *exact and other shapes leave it unknown. */
static po_own_error error_of(po_arena *arena, const po_array *exact, const po_datum *got) {
    po_own_error own = {0, 0, false, NULL};
    const po_tensor *t = got->kind == PO_TYPE_TENSOR ? got->tensor : NULL;
    if (!t || !exact || !(exact->f || exact->i) || exact->count != t->count ||
        po_dtype_class_of(t->dtype) != PO_CLASS_FLOAT)
        return own;
    bool *overflowed = PO_NEW_N(arena, bool, t->count);
    double squares = 0, most = t->dtype == PO_F16 ? largest_half : (double)FLT_MAX;
    for (int64_t i = 0; i < t->count; i++) {
        double x = exact_at(exact, i), y = po_tensor_f64(t, i);
        overflowed[i] = fabs(x) <= most && !isfinite(y);
        if (!isfinite(x) || !isfinite(y))
            continue;
        own.most = fmax(own.most, fabs(y - x));
        squares += (y - x) * (y - x);
    }
    own.mean = t->count > 0 ? sqrt(squares / (double)t->count) : 0;
    own.known = true;
    own.overflowed = overflowed;
    return own;
}

/* How far noise moved one output of the reference. Noise in what sizes are computed from may make
 * another size: then it is unknown. */
static po_own_error noise_of(const po_array *exact, const po_array *noisy) {
    po_own_error own = {0, 0, exact->f && noisy->f && exact->count == noisy->count, NULL};
    double squares = 0;
    for (int64_t i = 0; own.known && i < exact->count; i++) {
        double by = fabs(noisy->f[i] - exact->f[i]);
        if (!isfinite(by))
            continue;
        own.most = fmax(own.most, by);
        squares += by * by;
    }
    own.mean = exact->count > 0 ? sqrt(squares / (double)exact->count) : 0;
    return own;
}

po_status po_verify_exact(po_ctx *ctx, po_arena *arena, const po_graph *graph, const po_feed *feed,
                          double seconds, po_array ***exact) {
    po_limit limit = po_limit_begin(ctx, po_now() + seconds);
    po_status status = po_verify_evaluate(ctx, arena, graph, feed, false, exact);
    if (status != PO_OK)
        *exact = NULL;
    return po_verify_without_answer(ctx, &limit, status);
}

void po_verify_own_error(po_arena *arena, const po_graph *graph, po_array *const *exact,
                         const po_datum *outputs, po_own_error *own) {
    for (uint32_t k = 0; k < graph->n_outputs; k++)
        own[k] = error_of(arena, exact ? exact[k] : NULL, &outputs[k]);
}

po_status po_verify_noise(po_ctx *ctx, const po_graph *graph, const po_feed *feed,
                          po_array *const *exact, uint64_t draw, double seconds,
                          po_own_error *own) {
    po_arena *scratch = po_arena_create(ctx);
    po_array **noisy = NULL;
    po_limit limit = po_limit_begin(ctx, po_now() + seconds);
    po_status status = po_verify_evaluate_noisy(ctx, scratch, graph, feed, draw, &noisy);
    for (uint32_t k = 0; k < graph->n_outputs; k++)
        own[k] = status == PO_OK ? noise_of(exact[k], noisy[k]) : (po_own_error){0, 0, false, NULL};
    po_arena_free(scratch);
    return po_verify_without_answer(ctx, &limit, status);
}
