/* Programs for NVIDIA GPUs for the regions of models, as they are planned:
 *
 *     petopt-cuda-blocks [--gpu H100] [--f32] [--mu] [--cuda] [--all] [--check]
 *                        [--time [--libraries DIR]] FILE.onnx ...
 *
 * For each region the program, its launches (blocks x threads, shared bytes), its estimate and what
 * no program can beat. --mu prints the muGraphs, naive and planned; --cuda the text of the kernels;
 * --all looks at every candidate; --check compares what is printed with the naive muGraph at its
 * true shapes, over finite fields and in float64, which takes seconds a GFLOP; --time compiles,
 * runs and times it on the GPU that is here, every element compared with float64. */
#include "codegen/cuda/cuda.h"
#include "codegen/cuda/nvrtc.h"
#include "cost/cuda/program.h"
#include "import/import.h"
#include "simplify/simplify.h"
#include "superopt/gpu/plan.h"
#include "superopt/search/search.h"

#include <stdio.h>
#include <string.h>

typedef struct options {
    const po_gpu *gpu;
    po_gpu_options plan;
    bool mu, cuda, all, check, time;
    po_cuda_options cuda_options;
    po_cuda_info here;
    po_nvrtc *nvrtc;
} options;

static uint32_t launches(const po_mu *mu) {
    uint32_t n = 0;
    for (uint32_t step = mu->first; step != PO_NONE; step = mu->nodes[step].next)
        n++;
    return n;
}

static void print_mu(po_arena *arena, const po_mu *mu) {
    po_text text;
    po_text_init(&text, arena);
    po_mu_print(&text, mu);
    puts(text.data);
}

/* What the GPU that is here says of a program. */
static po_status time_one(po_ctx *ctx, po_arena *arena, const options *o, const po_mu *naive,
                          const po_gpu_candidate *c, const po_cuda_program *program, double bound) {
    po_cuda_image image;
    PO_TRY(po_nvrtc_compile(ctx, arena, o->nvrtc, program->source, "kernels", o->here.arch, false,
                            &image));
    po_cuda_candidate one = {
        .mu = c->mu, .program = program, .image = &image, .tf32 = o->plan.tf32};
    const po_cuda_trial trial = {
        .options = &o->cuda_options, .meaning = naive, .check = true, .time = true, .cold = true};
    PO_TRY(po_cuda_try(ctx, arena, &trial, &one, 1));
    if (one.seconds > 0)
        printf("      measured on %s: %.1f us, %.1f times the bound, errors up to %.1f u S\n",
               o->here.name, 1e6 * one.seconds, one.seconds / bound, one.worst);
    else
        printf("      on %s: %s\n", o->here.name, one.why);
    return PO_OK;
}

static void print_candidate(po_ctx *ctx, po_arena *arena, const options *o, const po_mu *naive,
                            const po_gpu_candidate *c, double bound) {
    po_cuda_print_options print = {.tf32 = o->plan.tf32};
    po_cuda_program program;
    printf("    %u launches, %.1f us, %.1f times the bound: %s\n", launches(c->mu),
           1e6 * c->seconds, c->seconds / bound, c->what);
    if (po_codegen_cuda(ctx, arena, c->mu, "kernel", &print, &program) != PO_OK) {
        printf("      not printed: %s\n", ctx->error.message);
        po_ctx_clear(ctx);
        return;
    }
    for (uint32_t i = 0; i < program.n_launches; i++) {
        const po_cuda_launch *l = &program.launches[i];
        printf("      %u x %u x %u blocks of %u threads, %u bytes: %s\n", l->grid[0], l->grid[1],
               l->grid[2], l->threads, l->shared, l->what);
    }
    if (o->cuda)
        puts(program.source);
    if (o->check && po_search_same(ctx, naive, c->mu, NULL, 0, 1 << 20) != PO_OK) {
        printf("      wrong: %s\n", ctx->error.message);
        po_ctx_clear(ctx);
    } else if (o->check) {
        printf("      the same at true shapes\n");
    }
    if (o->nvrtc && time_one(ctx, arena, o, naive, c, &program, bound) != PO_OK) {
        printf("      not timed: %s\n", ctx->error.message);
        po_ctx_clear(ctx);
    }
}

static po_status one(po_ctx *ctx, const options *o, const char *path) {
    po_model *model;
    po_graph *graph;
    po_regions regions;
    po_law_counts counts;
    po_simplify_options simplify = po_simplify_defaults();
    PO_TRY(po_import_file(ctx, path, &model));
    PO_TRY(po_infer_graph(ctx, model->graph, true));
    PO_TRY(po_simplify(ctx, model->graph, &simplify, &graph, &counts));
    PO_TRY(po_infer_graph(ctx, graph, true));
    po_arena *arena = po_arena_create(ctx);
    PO_TRY(po_regions_find(ctx, arena, graph, po_gpu_part, ctx, &regions));
    printf("%s: %u regions with %u of %u nodes\n", path, regions.n, regions.n_nodes, graph->n_live);
    double all = 0;
    po_gpu_options planning = o->plan;
    planning.memo = po_gpu_memo_create(arena);
    for (uint32_t i = 0; i < regions.n; i++) {
        po_gpu_region plan;
        double before = po_now();
        PO_TRY(po_gpu_plan_region(ctx, arena, graph, &regions.regions[i],
                                  po_arena_printf(arena, "region%u", i), o->gpu, &planning, &plan));
        if (plan.failed) {
            printf("  region %u, %u nodes: %s\n", i, regions.regions[i].n_nodes, plan.failed);
            continue;
        }
        double bound = po_gpu_bound(plan.lowered.mu, o->gpu, o->plan.tf32);
        printf("  region %u, %u nodes, planned in %.2f s, bound %.1f us\n", i,
               regions.regions[i].n_nodes, po_now() - before, 1e6 * bound);
        for (uint32_t k = 0; k < (o->all ? plan.n : 1); k++)
            print_candidate(ctx, arena, o, plan.lowered.mu, &plan.candidates[k], bound);
        if (o->mu) {
            print_mu(arena, plan.lowered.mu);
            print_mu(arena, plan.candidates[0].mu);
        }
        all += plan.candidates[0].seconds;
    }
    printf("  regions together: %.1f us\n", 1e6 * all);
    po_arena_free(arena);
    po_model_free(model);
    return PO_OK;
}

static void say(void *user, const char *message) {
    (void)user;
    fprintf(stderr, "%s\n", message);
}

/* The GPU and the compiler, where they are here. */
static void look(po_ctx *ctx, po_arena *arena, options *o) {
    const char *library = o->cuda_options.folder
                              ? po_arena_printf(arena, "%s/libnvrtc.so.13", o->cuda_options.folder)
                              : NULL;
    if (po_cuda_query(ctx, arena, &o->cuda_options, &o->here) == PO_OK && !o->here.has_gpu)
        fprintf(stderr, "petopt-cuda-blocks: nothing is timed: %s\n", o->here.missing);
    else if (po_nvrtc_open(ctx, arena, library, &o->nvrtc) != PO_OK)
        fprintf(stderr, "petopt-cuda-blocks: nothing is timed: %s\n", ctx->error.message);
    po_ctx_clear(ctx);
}

int main(int argc, char **argv) {
    options o = {.gpu = po_gpu_named("H100"), .plan = {.tf32 = true}};
    const struct {
        const char *name;
        bool *set;
    } flags[] = {{"--mu", &o.mu},
                 {"--cuda", &o.cuda},
                 {"--all", &o.all},
                 {"--time", &o.time},
                 {"--check", &o.check}};
    po_ctx ctx;
    po_ctx_init(&ctx);
    po_arena *arena = po_arena_create(&ctx);
    int at = 1, status = 0;
    for (; at < argc && argv[at][0] == '-'; at++) {
        for (size_t k = 0; k < sizeof flags / sizeof flags[0]; k++)
            *flags[k].set |= strcmp(argv[at], flags[k].name) == 0;
        if (strcmp(argv[at], "--gpu") == 0 && at + 1 < argc)
            o.gpu = po_gpu_named(argv[++at]);
        else if (strcmp(argv[at], "--libraries") == 0 && at + 1 < argc)
            o.cuda_options.folder = argv[++at];
        else if (strcmp(argv[at], "--f32") == 0)
            o.plan.tf32 = false;
        else if (strcmp(argv[at], "-v") == 0)
            ctx.log = say;
    }
    if (!o.gpu) {
        fprintf(stderr, "petopt-cuda-blocks: this GPU is not known\n");
        return 2;
    }
    if (o.time)
        look(&ctx, arena, &o);
    for (; at < argc; at++)
        if (one(&ctx, &o, argv[at]) != PO_OK) {
            fprintf(stderr, "petopt-cuda-blocks: %s\n", ctx.error.message);
            po_ctx_clear(&ctx);
            status = 2;
        }
    po_arena_free(arena);
    return status;
}
