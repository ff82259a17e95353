/* Random regions, lowered, printed with every choice of a schedule, compiled for one of the
 * instruction sets in turn and run on fenced memory: every element of every output against float64.
 *
 *     kernels_random compiled SEED COUNT   the COUNT regions of seeds from SEED on
 *     kernels_random lowered SEED COUNT    lowered and scheduled only, what they compute and checks
 *
 * The reference is the graph's own evaluation in float64, and S(v) the naive muGraph's. */
#include "kernel_run.h"
#include "mugraph/eval.h"
#include "mugraph/prove.h"
#include "ops/recipe/pack.h"
#include "random_regions.h"
#include "rewriting.h"
#include "superopt/plan/plan.h"
#include "test_paths.h"
#include "unit.h"

#include <dlfcn.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    BATCH = 50,    /* regions a library */
    PORTS = 24,    /* inputs, outputs and weights of a region */
    VARIANTS = 24, /* of a region: choice k of every step */
    SHARED_LIMIT = 4 << 20,
    IN_A_ROW = 512 /* numbers that schedules add up one after the other, at most */
};

/* Errors of float32 in u S(v), as the superoptimiser lets them pass for one step. */
static const double exact_error = 16, fast_error = 64;

typedef enum kind {
    NORMAL,
    ROWS,   /* rows of zeros, of denormals, of one large number, of what is large */
    MASKS,  /* rows of -infinity, of one that is not masked, a NaN */
    LOWEST, /* the same with the lowest float, where nothing adds it up beyond all floats */
    KINDS
} kind;
static const char *const kind_names[] = {"normal", "rows", "masks", "lowest"};

typedef struct variant {
    const po_mu *mu;
    const float **weights;
    bool exact;
} variant;

typedef struct region {
    uint64_t seed;
    const char *text;
    po_graph *graph;
    po_lowered lowered;
    const po_value_id *ports_in, *ports_out; /* the region's, in its order */
    uint32_t n_in, n_out, n_variants;
    int64_t in_a_row; /* numbers of the longest sum that are added one after the other */
    int64_t count_in[PORTS], count_out[PORTS], row[PORTS];
    float *in[KINDS][PORTS];
    double *expected[KINDS][PORTS], *sum[KINDS][PORTS];
    variant variants[VARIANTS];
} region;

typedef struct tally {
    uint64_t programs, kernels, elements;
    double worst_exact, worst_fast;
} tally;

static void wrong(const region *r, const char *what) {
    fail_msg("seed %llu: %s\n%s", (unsigned long long)r->seed, what, r->text);
}

/* --- numbers --- */

static float number(kind k, uint64_t seed, uint64_t stream, int64_t i, int64_t row) {
    double normal = po_random_normal(seed, stream, (uint64_t)i);
    int64_t at = i % row;
    uint64_t r = po_random_u64(seed, stream + 100, (uint64_t)(i / row));
    int64_t one = (int64_t)(r >> 32) % row;
    if (k == NORMAL)
        return (float)normal;
    if (k == ROWS)
        switch (r % 7) {
        case 0:
            return r & 1024 ? 0.0F : -0.0F;
        case 1:
            return (float)(normal * 1e-40);
        case 2:
            return at == one ? 60.0F : 0.0F;
        case 3:
            return (float)(normal * 100);
        case 4:
            return 1.0F;
        default:
            return (float)normal;
        }
    float mask = k == MASKS ? -INFINITY : -FLT_MAX;
    switch (r % 6) {
    case 0:
        return mask;
    case 1:
        return at == one ? (float)normal : mask;
    case 2:
        return at < one ? (float)normal : mask;
    case 3:
        return at == one && k == MASKS && r & 1024 ? NAN : (float)normal;
    default:
        return (float)normal;
    }
}

/* --- a region --- */

static uint32_t place_of(const po_value_id *list, uint32_t n, po_value_id v) {
    uint32_t i = 0;
    while (i < n && list[i] != v)
        i++;
    assert_true(i < n);
    return i;
}

/* Equal numbers that are as large as no float below the infinities have a mean that is off by more
 * than one of the others, and what is off is all that is left when it is taken away. */
static bool takes_means_away(const region *r) {
    return strstr(r->text, "Normalization") || strstr(r->text, "ReduceMean");
}

static int64_t longest_sum(po_arena *arena, const po_mu *mu) {
    int64_t longest = 1;
    for (uint32_t i = 0; i < mu->n_nodes; i++) {
        const po_mu_statement *s = &mu->nodes[i].statement;
        if (mu->nodes[i].kind != PO_MU_STATEMENT || s->combine != PO_MU_ADD)
            continue;
        uint32_t n_kept, n_reduced, *kept, *reduced;
        int64_t n = 1;
        po_mu_labels_of(mu, s, arena, &n_kept, &kept, &n_reduced, &reduced);
        for (uint32_t k = 0; k < n_reduced; k++)
            n *= mu->labels[reduced[k]].extent;
        longest = n > longest ? n : longest;
    }
    return longest < IN_A_ROW ? longest : IN_A_ROW;
}

static po_status references(po_ctx *ctx, po_arena *arena, region *r, kind k) {
    const po_array *ins[PORTS];
    double *values[PORTS];
    const double *weights[PORTS];
    po_array *outs[PORTS], *rounded[PORTS];
    for (uint32_t i = 0; i < r->n_in; i++) {
        const po_type *type = &r->graph->values[r->graph->inputs[i]].type;
        int64_t dims[PO_MU_MAX_RANK];
        po_array *a;
        for (uint32_t x = 0; x < type->rank; x++)
            dims[x] = type->dims[x].value;
        PO_TRY(po_array_create(ctx, arena, PO_F32, type->rank, dims, &a));
        r->in[k][i] = PO_NEW_N(arena, float, a->count + 1);
        for (int64_t e = 0; e < a->count; e++) {
            r->in[k][i][e] = number(k, r->seed, 20 + (uint64_t)k * 8 + i, e,
                                    type->rank ? dims[type->rank - 1] : 1);
            a->f[e] = (double)r->in[k][i][e];
        }
        ins[i] = a;
    }
    float *in[PORTS];
    memcpy(in, r->in[k], sizeof in);
    for (uint32_t i = 0; i < r->n_in; i++) {
        uint32_t from = place_of(r->graph->inputs, r->n_in, r->ports_in[i]);
        values[i] = ins[from]->f;
        r->in[k][i] = in[from];
    }
    for (uint32_t i = 0; i < r->lowered.n_weights; i++)
        weights[i] = po_tensor_doubles(arena, po_graph_constant(r->graph, r->lowered.weights[i]));
    po_array *doubles[PORTS], *floats[PORTS];
    PO_TRY(po_ref_graph(ctx, arena, r->graph, ins, doubles, false));
    PO_TRY(po_ref_graph(ctx, arena, r->graph, ins, floats, true));
    for (uint32_t i = 0; i < r->n_out; i++) {
        uint32_t from = place_of(r->graph->outputs, r->n_out, r->ports_out[i]);
        outs[i] = doubles[from];
        rounded[i] = floats[from];
    }
    double *naive[PORTS];
    for (uint32_t i = 0; i < r->n_out; i++) {
        r->count_out[i] = outs[i]->count;
        naive[i] = PO_NEW_N(arena, double, outs[i]->count + 1);
        r->sum[k][i] = PO_NEW_N(arena, double, outs[i]->count + 1);
        r->expected[k][i] = outs[i]->f;
    }
    PO_TRY(
        po_mu_eval(ctx, r->lowered.mu, (const double *const *)values, weights, naive, r->sum[k]));
    /* The lowering itself. NaN: the runtime, and the muGraph, pass it on where some references
     * bound it. */
    for (uint32_t i = 0; i < r->n_out; i++)
        for (int64_t e = 0; e < r->count_out[i]; e++) {
            double a = naive[i][e], b = outs[i]->f[e], f = rounded[i]->f[e];
            /* What leaves the range of floats on the way is nobody's to compare. */
            if (k == LOWEST &&
                (takes_means_away(r) || (f != b && !(fabs(f - b) <= 1e-3 * r->sum[k][i][e]))))
                r->sum[k][i][e] = INFINITY;
            if (k == MASKS && isnan(a))
                r->expected[k][i][e] = a;
            else if (a != b && !(isnan(a) && isnan(b)) &&
                     !(fabs(a - b) <= 1e-12 * r->sum[k][i][e] + 1e-300))
                return po_fail(ctx, PO_INTERNAL,
                               "%s, output %u, element %lld: lowered to what gives %g, not %g",
                               kind_names[k], i, (long long)e, a, b);
        }
    return PO_OK;
}

/* Choice k of every step. */
static po_status make_variant(po_ctx *ctx, po_arena *arena, region *r, uint32_t k, uint32_t *most) {
    const po_mu *naive = r->lowered.mu;
    po_schedule s;
    variant *v = &r->variants[r->n_variants];
    *v = (variant){.exact = true};
    po_schedule_start(&s, arena, naive, false);
    for (uint32_t node = naive->first; node != PO_NONE; node = naive->nodes[node].next) {
        po_choice choices[PO_CHOICES_MAX];
        uint32_t n = po_choices_of(naive, node, &po_isas[k % PO_ISAS], 0, choices);
        if (n == 0)
            return po_fail(ctx, PO_INTERNAL, "a step without a schedule");
        *most = n > *most ? n : *most;
        po_schedule_step(&s, node, &choices[k % n]);
        v->exact &= choices[k % n].how->rounding != PO_ROUNDS;
    }
    po_schedule_finish(&s);
    v->mu = s.mu;
    v->weights = PO_NEW_N(arena, const float *, s.n_packed + 1);
    for (uint32_t i = 0; i < s.n_packed; i++) {
        const po_tensor *t = po_graph_constant(r->graph, r->lowered.weights[s.packed[i].weight]);
        PO_TRY(po_pack(ctx, arena, t, &s.packed[i].packing, &t));
        v->weights[i] = t->data;
    }
    r->n_variants++;
    po_mu_proved proved;
    PO_TRY(po_mu_check(ctx, s.mu, SHARED_LIMIT));
    /* What the quick conditions pass, Z3 must not refute. */
    return r->seed % 8 == 0 ? po_mu_prove(ctx, s.mu, 0, &proved) : PO_OK;
}

/* Regions that are not all of their graph, beside nodes of other types, empty values and such:
 * every choice of theirs stands. */
static po_status make_parts(po_ctx *ctx, po_arena *arena, po_graph *graph,
                            const po_regions *regions) {
    for (uint32_t i = 0; i < regions->n; i++) {
        region part = {.seed = 1, .graph = graph};
        po_status status =
            po_lower_region(ctx, arena, graph, &regions->regions[i], "part", &part.lowered);
        if (status == PO_UNSUPPORTED)
            continue;
        PO_TRY(status);
        PO_TRY(po_mu_check(ctx, part.lowered.mu, SHARED_LIMIT));
        uint32_t most = 1;
        for (uint32_t k = 0; k < most && k < VARIANTS; k++)
            PO_TRY(make_variant(ctx, arena, &part, k, &most));
    }
    return PO_OK;
}

/* False where the draws make no region. */
static bool make_region(po_ctx *ctx, po_arena *arena, uint64_t seed, region *r) {
    po_regions regions;
    *r = (region){.seed = seed, .text = test_random_region(arena, seed)};
    r->graph = test_graph(ctx, r->text);
    assert_int_equal(po_regions_find(ctx, arena, r->graph, po_lower_part, ctx, &regions), PO_OK);
    r->n_in = r->graph->n_inputs;
    r->n_out = r->graph->n_outputs;
    if (regions.n == 1) {
        r->ports_in = regions.regions[0].in;
        r->ports_out = regions.regions[0].out;
        assert_true(regions.regions[0].n_in == r->n_in || regions.n_nodes != r->graph->n_live);
    }
    if (regions.n != 1 || regions.n_nodes != r->graph->n_live ||
        po_lower_region(ctx, arena, r->graph, &regions.regions[0], "region", &r->lowered) !=
            PO_OK) {
        po_ctx_clear(ctx);
        if (make_parts(ctx, arena, r->graph, &regions) != PO_OK)
            wrong(r, ctx->error.message);
        po_ctx_clear(ctx);
        return false;
    }
    assert_true(r->lowered.n_weights <= PORTS && r->n_out <= PORTS);
    po_status status = po_mu_check(ctx, r->lowered.mu, SHARED_LIMIT);
    r->in_a_row = longest_sum(arena, r->lowered.mu);
    for (int k = 0; k < KINDS && status == PO_OK; k++)
        status = references(ctx, arena, r, (kind)k);
    uint32_t most = 1;
    for (uint32_t k = 0; k < most && k < VARIANTS && status == PO_OK; k++)
        status = make_variant(ctx, arena, r, k, &most);
    if (status != PO_OK)
        wrong(r, ctx->error.message);
    return true;
}

/* --- comparison --- */

static bool adds_up(const region *r) {
    static const char *const words[] = {"Conv",      "MatMul",   "Gemm",        "ReduceMean",
                                        "ReduceSum", "ReduceL2", "AveragePool", "Normalization"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (strstr(r->text, words[i]))
            return true;
    return false;
}

/* Toom-Cook's transforms make infinities meet. */
static bool skips(const region *r, const variant *v, kind k) {
    return (k == MASKS && !v->exact) || (k == LOWEST && adds_up(r));
}

static const char *compare(po_arena *arena, const region *r, const variant *v, kind k,
                           float *const *found, tally *t) {
    double limit = v->exact ? exact_error : fast_error;
    double *worst = v->exact ? &t->worst_exact : &t->worst_fast;
    if (k == ROWS) /* equal numbers may all be rounded the same way: half a unit an addition */
        limit += (double)r->in_a_row / 2;
    for (uint32_t i = 0; i < r->n_out; i++) {
        double largest = 0; /* transforms round by the largest of a tile */
        for (int64_t e = 0; e < r->count_out[i] && !v->exact; e++)
            if (!isinf(r->sum[k][i][e]))
                largest = fmax(largest, r->sum[k][i][e]);
        for (int64_t e = 0; e < r->count_out[i]; e++) {
            double y = (double)found[i][e], ref = r->expected[k][i][e];
            double size = v->exact ? r->sum[k][i][e] : largest;
            double unit = FLT_EPSILON / 2 * size + (double)FLT_MIN;
            double off =
                y == ref || (isnan(y) && isnan(ref)) ||
                        (isinf(y) && fabs(ref) > (double)FLT_MAX && signbit(y) == signbit(ref))
                    ? 0
                    : fabs(y - ref) / unit;
            if (isinf(r->sum[k][i][e]))
                continue;
            t->elements++;
            if (off > *worst && off <= limit)
                *worst = off;
            if (!(off <= limit))
                return po_arena_printf(
                    arena, "output %u, element %lld: %.9g instead of %.9g (%.3g units of %.3g)", i,
                    (long long)e, y, ref, off, unit);
        }
    }
    return NULL;
}

/* Compiling takes most of the time: the choices of a region take turns, and so do regions. */
static bool is_for(const region *r, uint32_t choice, uint32_t isa) {
    return (r->seed + choice) % PO_ISAS == isa;
}

static void check_region(po_ctx *ctx, po_arena *arena, const region *r, void *library,
                         uint32_t number_of, uint32_t m, tally *t) {
    const po_isa *isa = &po_isas[m];
    float *found[PORTS];
    for (uint32_t i = 0; i < r->n_out; i++)
        found[i] = PO_NEW_N(arena, float, r->count_out[i] + 1);
    for (uint32_t i = 0; i < r->n_variants; i++) {
        const variant *v = &r->variants[i];
        if (!is_for(r, i, m))
            continue;
        test_kernel kernel = test_kernel_of(
            arena, library, po_arena_printf(arena, "k%u_%u", number_of, i), v->mu, NULL, isa);
        t->kernels++;
        for (int k = 0; k < KINDS; k++) {
            if (skips(r, v, (kind)k))
                continue;
            const char *fault =
                test_kernel_check(ctx, arena, &kernel, (const float *const *)r->in[k], v->weights,
                                  k == ROWS ? 3 : 1, false, (k + (int)i) % 2 == 0, 0, NULL, found);
            if (!fault)
                fault = compare(arena, r, v, (kind)k, found, t);
            if (fault)
                wrong(r, po_arena_printf(arena, "%s, choice %u, %s: %s", isa->name, i,
                                         kind_names[k], fault));
        }
    }
}

static void check_batch(po_ctx *ctx, po_arena *arena, const region *regions, uint32_t n,
                        const char *dir, tally *t) {
    for (uint32_t m = 0; m < PO_ISAS; m++) {
        const po_isa *isa = &po_isas[m];
        po_text text;
        void *library;
        if (!test_has_isa(isa))
            continue;
        po_text_init(&text, arena);
        for (uint32_t i = 0; i < n; i++)
            for (uint32_t v = 0; v < regions[i].n_variants; v++) {
                const char *symbol = po_arena_printf(arena, "k%u_%u", i, v);
                if (is_for(&regions[i], v, m) &&
                    test_kernel_text(ctx, regions[i].variants[v].mu, isa, symbol, &text) != PO_OK)
                    wrong(&regions[i], ctx->error.message);
            }
        const char *texts[] = {text.data};
        if (test_kernels_load(ctx, arena, isa, texts, 1, NULL, dir, false, &library) != PO_OK)
            fail_msg("%s", ctx->error.message);
        for (uint32_t i = 0; i < n; i++)
            check_region(ctx, arena, &regions[i], library, i, m, t);
        (void)dlclose(library);
    }
}

int main(int argc, char **argv) {
    if (argc != 4 || (strcmp(argv[1], "compiled") != 0 && strcmp(argv[1], "lowered") != 0))
        return 2;
    bool compiled = strcmp(argv[1], "compiled") == 0;
    uint64_t seed = strtoull(argv[2], NULL, 10), count = strtoull(argv[3], NULL, 10);
    tally t = {0};
    po_ctx ctx;
    char dir[64];
    test_mkdtemp(dir, sizeof dir);
    po_ctx_init(&ctx);
    ctx.threads = 1;
    for (uint64_t done = 0; done < count;) {
        po_arena *arena = po_arena_create(&ctx);
        region *regions = PO_NEW_N(arena, region, BATCH);
        uint32_t n = 0;
        while (n < BATCH && done < count) {
            t.programs++;
            if (make_region(&ctx, arena, seed++, &regions[n])) {
                n++;
                done++;
            } else {
                po_graph_free(regions[n].graph);
            }
        }
        if (compiled)
            check_batch(&ctx, arena, regions, n, dir, &t);
        for (uint32_t i = 0; i < n; i++)
            po_graph_free(regions[i].graph);
        po_arena_free(arena);
        po_arenas_free_since(&ctx, 0); /* of programs that make no region */
    }
    test_rmtree(dir);
    printf("%llu regions of %llu programs, %llu kernels, %llu elements; at most %.1f u S, Winograd "
           "%.1f\n",
           (unsigned long long)count, (unsigned long long)t.programs, (unsigned long long)t.kernels,
           (unsigned long long)t.elements, t.worst_exact, t.worst_fast);
    return 0;
}
