/* Printed kernels in the emulator against float64: muGraphs written by hand in all types, those of
 * the other tests, and what the GPU's schedules make of the search's blocks.
 *
 *     cuda_kernels hand|cases|blocks|plans|models
 *     cuda_kernels onnx FILE.onnx ...   the regions of models, one after the other: minutes each */
#include "cuda_check.h"
#include "cuda_texts.h"
#include "gpu_blocks.h"
#include "import/import.h"
#include "mu_cases.h"
#include "search_blocks.h"
#include "simplify/simplify.h"
#include "superopt/gpu_plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 256, SHARED_LIMIT = 1 << 20 };

typedef struct list {
    po_ctx *ctx;
    po_arena *arena;
    cuda_case cases[MOST];
    uint32_t n;
} list;

static const char *const type_names[] = {"f32", "f16", "bf16"};

static void die(const char *name, const char *why) {
    (void)fprintf(stderr, "%s: %s\n", name, why);
    exit(2);
}

static po_mu *parsed(list *l, const char *name, const char *text) {
    po_mu *mu;
    if (po_mu_parse(l->ctx, l->arena, text, &mu) != PO_OK)
        die(name, l->ctx->error.message);
    return mu;
}

static cuda_case *add(list *l, const char *name, const po_mu *mu) {
    if (l->n == MOST)
        die(name, "too many cases");
    if (po_mu_check(l->ctx, mu, SHARED_LIMIT) != PO_OK)
        die(name, l->ctx->error.message);
    l->cases[l->n] = (cuda_case){.name = name, .mu = mu};
    return &l->cases[l->n++];
}

static const char *named(list *l, const char *name, const char *more) {
    return po_arena_printf(l->arena, "%s %s", name, more);
}

static void hand(list *l) {
    for (uint32_t i = 0; i < n_cuda_texts; i++)
        for (int t = PO_MU_F32; t <= PO_MU_BF16; t++) {
            const char *name = cuda_texts[i].name;
            const po_mu *mu = parsed(l, name, cuda_texts[i].text);
            mu = cuda_check_typed(l->ctx, l->arena, mu, (po_mu_type)t);
            (void)add(l, named(l, name, type_names[t]), mu);
            if (t == PO_MU_F32)
                add(l, named(l, name, "tf32"), mu)->options.tf32 = true;
        }
}

static void cases(list *l) {
    for (uint32_t i = 0; i < n_test_mu_cases; i++)
        for (int t = PO_MU_F32; t <= PO_MU_F16; t++) {
            const char *name = test_mu_cases[i].name;
            const po_mu *mu = parsed(l, name, test_mu_cases[i].text);
            mu = cuda_check_typed(l->ctx, l->arena, mu, (po_mu_type)t);
            (void)add(l, named(l, name, type_names[t]), mu);
        }
}

static void blocks(list *l) {
    for (uint32_t i = 0; i < n_search_blocks; i++)
        for (int t = PO_MU_F32; t <= PO_MU_BF16; t++) {
            const char *name = search_blocks[i].name;
            const po_mu *mu = parsed(l, name, search_blocks[i].text);
            mu = cuda_check_typed(l->ctx, l->arena, mu, (po_mu_type)t);
            (void)add(l, named(l, name, type_names[t]), mu);
        }
}

static void plan(list *l, const char *name, const po_mu *mu, uint32_t keep) {
    po_gpu_candidate *found;
    uint32_t n;
    po_gpu_options options = {.keep = keep};
    if (po_gpu_plan(l->ctx, l->arena, mu, po_gpu_named("H200"), &options, &found, &n) != PO_OK)
        die(name, l->ctx->error.message);
    for (uint32_t k = 0; k < n; k++)
        add(l, po_arena_printf(l->arena, "%s, plan %u: %s", name, k, found[k].what), found[k].mu)
            ->naive = mu;
}

static void plans(list *l) {
    for (uint32_t i = 0; i < n_search_blocks; i++)
        for (int t = PO_MU_F32; t <= PO_MU_F16; t++) {
            const char *name = search_blocks[i].name;
            const po_mu *mu = parsed(l, name, search_blocks[i].text);
            mu = cuda_check_typed(l->ctx, l->arena, mu, (po_mu_type)t);
            plan(l, named(l, name, type_names[t]), mu, 6);
        }
}

/* Trinity's blocks, in the types that models give them. */
static void models(list *l) {
    for (uint32_t i = 0; i < n_gpu_blocks; i++) {
        const po_mu *mu = parsed(l, gpu_blocks[i].name, gpu_blocks[i].text);
        (void)add(l, gpu_blocks[i].name, mu);
        plan(l, gpu_blocks[i].name, mu, 3);
    }
    for (uint32_t i = 0; i < l->n; i++)
        l->cases[i].scale = 0.25; /* scores that softmax does not make all or nothing of */
}

/* The best plan of each region of a model, with its weights. */
static int onnx(const char *path) {
    po_ctx ctx;
    po_model *model;
    po_graph *graph;
    po_regions regions;
    po_simplify_counts counts;
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
        die(path, ctx.error.message);
    for (uint32_t i = 0; i < regions.n; i++) {
        po_gpu_region r;
        po_gpu_options options = {.tf32 = true};
        if (po_gpu_plan_region(&ctx, arena, graph, &regions.regions[i], "region",
                               po_gpu_named("H200"), &options, &r) != PO_OK)
            die(path, ctx.error.message);
        if (r.failed)
            die(path, r.failed);
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
    static const struct {
        const char *name;
        void (*make)(list *l);
    } parts[] = {
        {"hand", hand}, {"cases", cases}, {"blocks", blocks}, {"plans", plans}, {"models", models}};
    po_ctx ctx;
    if (argc > 2 && strcmp(argv[1], "onnx") == 0) {
        int wrong = 0;
        cuda_check_start();
        for (int i = 2; i < argc; i++)
            wrong |= onnx(argv[i]);
        return wrong;
    }
    po_ctx_init(&ctx);
    list *l = calloc(1, sizeof *l);
    if (!l || argc < 2)
        return 2;
    l->ctx = &ctx;
    l->arena = po_arena_create(&ctx);
    cuda_check_start();
    po_nvrtc *nvrtc = cuda_check_nvrtc(&ctx, l->arena);
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        if (strcmp(argv[1], parts[i].name) == 0)
            parts[i].make(l);
    if (argc > 2) { /* for people: those whose name has this in it; with a third, the text */
        uint32_t kept = 0;
        for (uint32_t i = 0; i < l->n; i++)
            if (strstr(l->cases[i].name, argv[2]))
                l->cases[kept++] = l->cases[i];
        l->n = kept;
        for (uint32_t i = 0; i < l->n && argc > 3; i++) {
            po_cuda_program p;
            if (po_codegen_cuda(&ctx, l->arena, l->cases[i].mu, "k0", &l->cases[i].options, &p) ==
                PO_OK)
                (void)puts(strstr(p.source, "/* mugraph"));
            po_ctx_clear(&ctx);
        }
    }
    if (l->n == 0)
        die(argv[1], "no cases");
    cuda_check(&ctx, l->arena, nvrtc, l->cases, l->n);
    int rc = cuda_check_report(l->cases, l->n, 0);
    po_arena_free(l->arena);
    free(l);
    return rc;
}
