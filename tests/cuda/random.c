/* Random regions, lowered, as they are (a block for a step) and by the GPU's schedules, printed and
 * run in the emulator: every element of every output against float64.
 *
 *     cuda_random SEED COUNT [text]   the COUNT regions of seeds from SEED on */
#include "cuda_cases.h"
#include "ir/text.h"
#include "mugraph/parts.h"
#include "random_regions.h"
#include "rewriting.h"
#include "superopt/gpu/plan.h"

#include <stdio.h>
#include <stdlib.h>

enum { BATCH = 60, SHARED_LIMIT = 1 << 20, PORTS = 64 };

typedef struct batch {
    po_graph *graphs[BATCH];
    cuda_case cases[BATCH];
    uint32_t n;
} batch;

static void die(uint64_t seed, const char *why) {
    (void)fprintf(stderr, "seed %llu: %s\n", (unsigned long long)seed, why);
    exit(2);
}

/* False where the draws make no region. */
static bool add(po_ctx *ctx, po_arena *arena, uint64_t seed, batch *b) {
    const char *text = test_random_region(arena, seed);
    po_graph *graph = test_graph(ctx, text);
    po_regions regions;
    po_lowered lowered;
    if (po_regions_find(ctx, arena, graph, po_lower_part, ctx, &regions) != PO_OK)
        die(seed, ctx->error.message);
    if (regions.n != 1 || regions.n_nodes != graph->n_live ||
        po_lower_region(ctx, arena, graph, &regions.regions[0], "region", &lowered) != PO_OK) {
        po_ctx_clear(ctx);
        po_graph_free(graph);
        return false;
    }
    po_mu_type type = (po_mu_type)(seed % 3);
    const po_mu *mu = cuda_check_typed(ctx, arena, lowered.mu, type);
    const po_mu *naive = mu;
    const double **weights = PO_NEW_N(arena, const double *, PORTS);
    for (uint32_t i = 0; i < lowered.n_weights && i < PORTS; i++)
        weights[i] = po_tensor_doubles(arena, po_graph_constant(graph, lowered.weights[i]));
    const char *way = "as it is";
    if (seed / 3 % 4 != 0) {
        po_gpu_candidate *found;
        uint32_t n;
        po_gpu_options options = {.keep = 4};
        if (po_gpu_plan(ctx, arena, mu, po_gpu_named("A100"), &options, &found, &n) != PO_OK) {
            (void)printf("seed %llu: no plan: %s\n", (unsigned long long)seed, ctx->error.message);
            po_ctx_clear(ctx);
        } else {
            mu = found[seed / 12 % n].mu;
            way = found[seed / 12 % n].what;
        }
    }
    if (po_mu_check(ctx, mu, SHARED_LIMIT) != PO_OK)
        die(seed, ctx->error.message);
    b->graphs[b->n] = graph;
    b->cases[b->n++] =
        (cuda_case){.name = po_arena_printf(arena, "seed %llu, %s, %s", (unsigned long long)seed,
                                            po_mu_type_names[type], way),
                    .mu = mu,
                    .naive = naive,
                    .weights = weights,
                    .options.tf32 = type == PO_MU_F32 && seed % 2};
    return true;
}

int main(int argc, char **argv) {
    if (argc < 3)
        return 2;
    uint64_t seed = strtoull(argv[1], NULL, 10), count = strtoull(argv[2], NULL, 10);
    po_ctx ctx;
    int rc = 0;
    po_ctx_init(&ctx);
    cuda_check_start();
    for (uint64_t done = 0; done < count;) {
        po_arena *arena = po_arena_create(&ctx);
        po_nvrtc *nvrtc = cuda_check_nvrtc(&ctx, arena);
        batch *b = PO_NEW(arena, batch);
        while (b->n < BATCH && done < count)
            done += add(&ctx, arena, seed++, b);
        for (uint32_t i = 0; i < b->n && argc > 3; i++) /* for people */
            cuda_show(&ctx, arena, &b->cases[i]);
        cuda_check(&ctx, arena, nvrtc, b->cases, b->n);
        rc |= cuda_check_report(b->cases, b->n, b->n / 4);
        for (uint32_t i = 0; i < b->n; i++)
            po_graph_free(b->graphs[i]);
        po_arena_free(arena);
        po_arenas_free_since(&ctx, 0);
    }
    return rc;
}
