/* A compiled program of the search against the float64 value of the naive muGraph, every element.
 */
#include "mugraph/eval.h"
#include "superopt/compiled.h"
#include "superopt/search_private.h"

#include <float.h>
#include <math.h>

typedef struct looking {
    const po_search_look *look;
    po_arena *arena;
    const po_loaded_kernel *kernel;
    double **in, **weight, **out, **size; /* by number */
    const float **natural;                /* weights, by naive tensor */
} looking;

static void make_data(looking *k) {
    const po_mu *naive = k->look->naive;
    for (uint32_t id = 0; id < naive->n_tensors; id++) {
        const po_mu_tensor *t = &naive->tensors[id];
        uint32_t twin = k->look->found->lone_tensor[id];
        int64_t n = po_mu_elements(t);
        if (t->place == PO_MU_OUTPUT) {
            k->out[t->number] = PO_NEW_N(k->arena, double, n);
            k->size[t->number] = PO_NEW_N(k->arena, double, n);
        }
        if (t->place != PO_MU_INPUT && t->place != PO_MU_WEIGHT)
            continue;
        double *data = PO_NEW_N(k->arena, double, n);
        float *single = PO_NEW_N(k->arena, float, n);
        for (int64_t e = 0; e < n; e++) {
            single[e] = po_compiled_number(id, e);
            data[e] = (double)single[e];
            if (t->place == PO_MU_INPUT && twin != PO_NONE)
                *po_compiled_element(k->kernel, twin, e) = single[e];
        }
        (t->place == PO_MU_INPUT ? k->in : k->weight)[t->number] = data;
        if (t->place == PO_MU_WEIGHT)
            k->natural[id] = single;
    }
}

const char *po_search_looked(po_ctx *ctx, po_arena *arena, void *user,
                             const po_loaded_kernel *kernel) {
    /* Errors of float32, in u * S(v). */
    static const double most = 32;
    const po_search_look *look = user;
    uint32_t n = look->naive->n_tensors + 1;
    looking k = {.look = look, .arena = arena, .kernel = kernel};
    k.in = PO_NEW_N(arena, double *, n);
    k.weight = PO_NEW_N(arena, double *, n);
    k.out = PO_NEW_N(arena, double *, n);
    k.size = PO_NEW_N(arena, double *, n);
    k.natural = PO_NEW_N(arena, const float *, n);
    make_data(&k);
    const float *const *weights = po_compiled_weights(ctx, arena, look->naive, k.natural,
                                                      look->found->packed, look->found->n_packed);
    if (!weights)
        return "its weights cannot be packed";
    kernel->run(kernel->self, weights);
    if (po_mu_eval(ctx, look->naive, (const double *const *)k.in, (const double *const *)k.weight,
                   k.out, k.size) != PO_OK)
        return po_arena_strdup(arena, ctx->error.message);
    for (uint32_t id = 0; id < look->naive->n_tensors; id++) {
        const po_mu_tensor *t = &look->naive->tensors[id];
        if (t->place != PO_MU_OUTPUT)
            continue;
        uint32_t twin = look->found->lone_tensor[id];
        int64_t count = po_mu_elements(t);
        for (int64_t e = 0; e < count; e++) {
            double found = (double)*po_compiled_element(kernel, twin, e);
            double expected = k.out[t->number][e];
            double limit = most * (FLT_EPSILON / 2) * k.size[t->number][e] + FLT_MIN;
            if (!(fabs(found - expected) <= limit))
                return po_arena_printf(
                    arena, "element %lld is %g instead of %g (off by %.3g, limit %.3g)",
                    (long long)e, found, expected, fabs(found - expected), limit);
        }
    }
    return NULL;
}
