/* A compiled program of the search against the float64 value of the naive muGraph, every element,
 * on random inputs and on those at the edges. */
#include "mugraph/eval.h"
#include "superopt/plan/compiled.h"
#include "superopt/plan/edges.h"
#include "superopt/search/internal.h"

#include <float.h>
#include <math.h>

typedef struct looking {
    const po_search_query *look;
    po_arena *arena;
    const po_loaded_kernel *kernel;
    double **in, **weight, **out, **size; /* by number */
    const float **natural;                /* weights, by naive tensor */
} looking;

static const double whole = 100;

static po_edge_range range_of(const looking *k) {
    const po_mu *naive = k->look->naive;
    const po_mu_statement **s = PO_NEW_N(k->arena, const po_mu_statement *, naive->n_nodes + 1);
    uint32_t n = 0;
    for (uint32_t i = 0; i < naive->n_nodes; i++)
        if (naive->nodes[i].kind == PO_MU_STATEMENT)
            s[n++] = &naive->nodes[i].statement;
    po_edge_range r = po_edge_range_of(s, n);
    r.large = whole; /* what guards an exp is in the program */
    return r;
}

/* Weights are the same for both kinds. */
static void make_data(looking *k, po_values_kind kind) {
    const po_mu *naive = k->look->naive;
    po_edge_range range = range_of(k);
    for (uint32_t id = 0; id < naive->n_tensors; id++) {
        const po_mu_tensor *t = &naive->tensors[id];
        uint32_t twin = k->look->found->lone_tensor[id];
        int64_t n = po_mu_elements(t), row = t->rank ? t->dims[t->rank - 1] : 1;
        if (t->place == PO_MU_OUTPUT) {
            k->out[t->number] = PO_NEW_N(k->arena, double, n);
            k->size[t->number] = PO_NEW_N(k->arena, double, n);
        }
        if (t->place != PO_MU_INPUT && t->place != PO_MU_WEIGHT)
            continue;
        bool edges = kind == PO_VALUES_EDGES && t->place == PO_MU_INPUT;
        double *data = PO_NEW_N(k->arena, double, n);
        float *single = PO_NEW_N(k->arena, float, n);
        for (int64_t e = 0; e < n; e++) {
            single[e] = edges ? po_edge_value(&range, id, (uint64_t)e, (uint64_t)row)
                              : po_compiled_number(id, e);
            data[e] = (double)single[e];
            if (t->place == PO_MU_INPUT && twin != PO_NONE)
                *po_compiled_element(k->kernel, twin, e) = single[e];
        }
        (t->place == PO_MU_INPUT ? k->in : k->weight)[t->number] = data;
        if (t->place == PO_MU_WEIGHT)
            k->natural[id] = single;
    }
}

static const char *compare(const looking *k, po_values_kind kind) {
    /* Errors of float32, in u * S(v); numbers that are alike round the same way for long. */
    static const double most[PO_VALUES_KINDS] = {[PO_VALUES_RANDOM] = 32, [PO_VALUES_EDGES] = 128};
    for (uint32_t id = 0; id < k->look->naive->n_tensors; id++) {
        const po_mu_tensor *t = &k->look->naive->tensors[id];
        if (t->place != PO_MU_OUTPUT)
            continue;
        uint32_t twin = k->look->found->lone_tensor[id];
        int64_t count = po_mu_elements(t);
        for (int64_t e = 0; e < count; e++) {
            double found = (double)*po_compiled_element(k->kernel, twin, e);
            double expected = k->out[t->number][e], sum = k->size[t->number][e];
            double limit = most[kind] * (FLT_EPSILON / 2) * sum + FLT_MIN;
            if (po_edge_allows(kind, found, expected, sum, limit))
                continue;
            return po_arena_printf(k->arena,
                                   "element %lld is %g instead of %g (off by %.3g, limit %.3g)%s",
                                   (long long)e, found, expected, fabs(found - expected), limit,
                                   kind == PO_VALUES_EDGES ? ", edge cases" : "");
        }
    }
    return NULL;
}

const char *po_search_queried(po_ctx *ctx, po_arena *arena, void *user,
                              const po_loaded_kernel *kernel) {
    const po_search_query *look = user;
    uint32_t n = look->naive->n_tensors + 1;
    const char *wrong = NULL;
    for (int kind = 0; kind < PO_VALUES_KINDS && !wrong; kind++) {
        looking k = {.look = look, .arena = arena, .kernel = kernel};
        k.in = PO_NEW_N(arena, double *, n);
        k.weight = PO_NEW_N(arena, double *, n);
        k.out = PO_NEW_N(arena, double *, n);
        k.size = PO_NEW_N(arena, double *, n);
        k.natural = PO_NEW_N(arena, const float *, n);
        make_data(&k, (po_values_kind)kind);
        const float *const *weights = po_compiled_weights(
            ctx, arena, look->naive, k.natural, look->found->packed, look->found->n_packed);
        if (!weights)
            return "its weights cannot be packed";
        kernel->run(kernel->self, weights);
        if (po_mu_eval(ctx, look->naive, (const double *const *)k.in,
                       (const double *const *)k.weight, k.out, k.size) != PO_OK)
            return po_arena_strdup(arena, ctx->error.message);
        wrong = compare(&k, (po_values_kind)kind);
    }
    return wrong;
}
