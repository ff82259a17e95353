/* Printed kernels in the emulator against float64: muGraphs written by hand in all types, those of
 * the other tests, and what the GPU's schedules make of the search's blocks.
 *
 *     cuda_kernels hand|cases|blocks|plans|models
 *     cuda_kernels onnx FILE.onnx ...   the regions of models, one after the other: minutes each */
#include "cuda_cases.h"
#include "cuda_texts.h"
#include "gpu_blocks.h"
#include "import/import.h"
#include "mu_cases.h"
#include "mugraph/parts.h"
#include "search_blocks.h"
#include "simplify/simplify.h"
#include "superopt/gpu/plan.h"

#include <stdio.h>
#include <string.h>

static const char *named(cuda_cases *c, const char *name, const char *more) {
    return po_arena_printf(c->arena, "%s %s", name, more);
}

static void hand(cuda_cases *c) {
    for (uint32_t i = 0; i < n_cuda_texts; i++)
        for (int t = PO_MU_F32; t <= PO_MU_BF16; t++) {
            const char *name = cuda_texts[i].name;
            const po_mu *mu = cuda_typed(c, name, cuda_texts[i].text, (po_mu_type)t);
            (void)cuda_add(c, named(c, name, po_mu_type_names[t]), mu);
            if (t == PO_MU_F32)
                cuda_add(c, named(c, name, "tf32"), mu)->options.tf32 = true;
        }
}

static void cases(cuda_cases *c) {
    for (uint32_t i = 0; i < n_test_mu_cases; i++)
        for (int t = PO_MU_F32; t <= PO_MU_F16; t++) {
            const char *name = test_mu_cases[i].name;
            const po_mu *mu = cuda_typed(c, name, test_mu_cases[i].text, (po_mu_type)t);
            (void)cuda_add(c, named(c, name, po_mu_type_names[t]), mu);
        }
}

static void blocks(cuda_cases *c) {
    for (uint32_t i = 0; i < n_search_blocks; i++)
        for (int t = PO_MU_F32; t <= PO_MU_BF16; t++) {
            const char *name = search_blocks[i].name;
            const po_mu *mu = cuda_typed(c, name, search_blocks[i].text, (po_mu_type)t);
            (void)cuda_add(c, named(c, name, po_mu_type_names[t]), mu);
        }
}

static void plan(cuda_cases *c, const char *name, const po_mu *mu, uint32_t keep) {
    po_gpu_candidate *found;
    uint32_t n;
    po_gpu_options options = {.keep = keep};
    if (po_gpu_plan(c->ctx, c->arena, mu, po_gpu_named("H200"), &options, &found, &n) != PO_OK)
        cuda_die(name, c->ctx->error.message);
    for (uint32_t k = 0; k < n; k++)
        cuda_add(c, po_arena_printf(c->arena, "%s, plan %u: %s", name, k, found[k].what),
                 found[k].mu)
            ->naive = mu;
}

static void plans(cuda_cases *c) {
    for (uint32_t i = 0; i < n_search_blocks; i++)
        for (int t = PO_MU_F32; t <= PO_MU_F16; t++) {
            const char *name = search_blocks[i].name;
            const po_mu *mu = cuda_typed(c, name, search_blocks[i].text, (po_mu_type)t);
            plan(c, named(c, name, po_mu_type_names[t]), mu, 6);
        }
}

/* Trinity's blocks, in the types that models give them. */
static void models(cuda_cases *c) {
    for (uint32_t i = 0; i < n_gpu_blocks; i++) {
        const po_mu *mu = cuda_parsed(c, gpu_blocks[i].name, gpu_blocks[i].text);
        (void)cuda_add(c, gpu_blocks[i].name, mu);
        plan(c, gpu_blocks[i].name, mu, 3);
    }
    for (uint32_t i = 0; i < c->n; i++)
        c->list[i].scale = 0.25; /* scores that softmax does not make all or nothing of */
}

/* The best plan of each region of a model, with its weights. */
static int onnx(const char *path) {
    po_ctx ctx;
    po_model *model;
    po_graph *graph;
    po_regions regions;
    po_law_counts counts;
    po_simplify_options simplify = po_simplify_defaults();
    int rc = 0;
    po_ctx_init(&ctx);
    po_arena *arena = po_arena_create(&ctx);
    po_nvrtc *nvrtc = cuda_check_nvrtc(&ctx, arena);
    if (po_import_file(&ctx, path, &model) != PO_OK ||
        po_infer_graph(&ctx, model->graph, true) != PO_OK ||
        po_simplify(&ctx, model->graph, &simplify, &graph, &counts) != PO_OK ||
        po_infer_graph(&ctx, graph, true) != PO_OK ||
        po_regions_find(&ctx, arena, graph, po_gpu_part, &ctx, &regions) != PO_OK)
        cuda_die(path, ctx.error.message);
    for (uint32_t i = 0; i < regions.n; i++) {
        po_gpu_region r;
        po_gpu_options options = {.tf32 = true};
        if (po_gpu_plan_region(&ctx, arena, graph, &regions.regions[i], "region",
                               po_gpu_named("H200"), &options, &r) != PO_OK)
            cuda_die(path, ctx.error.message);
        if (r.failed)
            cuda_die(path, r.failed);
        const double **weights = PO_NEW_N(arena, const double *, r.lowered.n_weights + 1);
        for (uint32_t w = 0; w < r.lowered.n_weights; w++)
            weights[w] = po_tensor_doubles(arena, po_graph_constant(graph, r.lowered.weights[w]));
        cuda_case c = {.name = po_arena_printf(arena, "%s #%u", path, i),
                       .mu = r.candidates[0].mu,
                       .naive = r.lowered.mu,
                       .options.tf32 = true,
                       .weights = weights};
        double start = po_now();
        cuda_check(&ctx, arena, nvrtc, &c, 1);
        rc |= cuda_check_report(&c, 1, 0);
        (void)printf("%s: %.1f s\n", c.name, po_now() - start);
        (void)fflush(stdout);
    }
    po_model_free(model);
    po_arena_free(arena);
    return rc;
}

int main(int argc, char **argv) {
    static const cuda_part parts[] = {
        {"hand", hand}, {"cases", cases}, {"blocks", blocks}, {"plans", plans}, {"models", models}};
    if (argc > 2 && strcmp(argv[1], "onnx") == 0) {
        int wrong = 0;
        cuda_check_start();
        for (int i = 2; i < argc; i++)
            wrong |= onnx(argv[i]);
        return wrong;
    }
    return cuda_main(argc, argv, parts, sizeof parts / sizeof parts[0]);
}
