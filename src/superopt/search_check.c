/* A compiled program of the search against the float64 value of the naive muGraph, every element.
 */
#include "mugraph/eval.h"
#include "superopt/search_private.h"

#include <float.h>
#include <math.h>

/* Row-major element i's place in the tensor that was compiled. */
static int64_t place_of(const po_mu_tensor *twin, int64_t i) {
    int64_t at = twin->origin;
    for (uint32_t x = twin->rank; x-- > 0;) {
        at += i % twin->dims[x] * twin->stride[x];
        i /= twin->dims[x];
    }
    return at;
}

typedef struct looking {
    const po_search_look *look;
    po_arena *arena;
    const po_loaded_kernel *kernel;
    double **in, **weight, **out, **size; /* by number */
    float **natural;                      /* weights, by number */
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
            single[e] = (float)(2 * po_random_unit(1, id, (uint64_t)e) - 1);
            data[e] = (double)single[e];
            if (t->place == PO_MU_INPUT && twin != PO_NONE)
                k->kernel
                    ->device[k->kernel->places[twin] + place_of(&k->kernel->mu->tensors[twin], e)] =
                    single[e];
        }
        (t->place == PO_MU_INPUT ? k->in : k->weight)[t->number] = data;
        if (t->place == PO_MU_WEIGHT)
            k->natural[t->number] = single;
    }
}

static const float *const *pack_weights(po_ctx *ctx, const looking *k) {
    const po_found *f = k->look->found;
    const float **weights = PO_NEW_N(k->arena, const float *, f->n_packed + 1);
    for (uint32_t i = 0; i < f->n_packed; i++) {
        const po_packed *p = &f->packed[i];
        const po_tensor *packed;
        po_tensor *natural;
        uint32_t id = 0;
        const po_mu_tensor *t = k->look->naive->tensors;
        while (t[id].place != PO_MU_WEIGHT || t[id].number != p->weight)
            id++;
        if (po_tensor_wrap(ctx, k->arena, PO_F32, t[id].rank, t[id].dims, k->natural[p->weight],
                           &natural) != PO_OK ||
            po_pack(ctx, k->arena, natural, &p->packing, &packed) != PO_OK)
            return NULL;
        float *aligned = po_arena_alloc(k->arena, packed->size + 64);
        aligned = (float *)(((uintptr_t)aligned + 63) / 64 * 64);
        memcpy(aligned, packed->data, packed->size);
        weights[i] = aligned;
    }
    return weights;
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
    k.natural = PO_NEW_N(arena, float *, n);
    make_data(&k);
    const float *const *weights = pack_weights(ctx, &k);
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
            double found =
                (double)
                    kernel->device[kernel->places[twin] + place_of(&kernel->mu->tensors[twin], e)];
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
