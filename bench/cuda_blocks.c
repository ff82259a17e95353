/* Programs for NVIDIA GPUs for the regions of models, as they are planned:
 *
 *     petopt-cuda-blocks [--gpu H100] [--f32] [--mu] [--cuda] [--all] FILE.onnx ...
 *
 * For each region the program, its launches (blocks x threads, shared bytes), its estimate and what
 * no program can beat. --mu prints the muGraphs, naive and planned; --cuda the text of the kernels;
 * --all looks at every candidate. */
#include "codegen/cuda.h"
#include "import/import.h"
#include "simplify/simplify.h"
#include "superopt/gpu_plan.h"

#include <stdio.h>
#include <string.h>

typedef struct options {
    const po_gpu *gpu;
    po_gpu_options plan;
    bool mu, cuda, all;
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

static void print_candidate(po_ctx *ctx, po_arena *arena, const options *o,
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
}

static po_status one(po_ctx *ctx, const options *o, const char *path) {
    po_model *model;
    po_graph *graph;
    po_regions regions;
    po_simplify_counts counts;
    po_simplify_options simplify = po_simplify_defaults();
    PO_TRY(po_import_file(ctx, path, &model));
    PO_TRY(po_infer_graph(ctx, model->graph, true));
    PO_TRY(po_simplify(ctx, model->graph, &simplify, &graph, &counts));
    PO_TRY(po_infer_graph(ctx, graph, true));
    po_arena *arena = po_arena_create(ctx);
    PO_TRY(po_regions_find(ctx, arena, graph, po_gpu_part, ctx, &regions));
    printf("%s: %u regions with %u of %u nodes\n", path, regions.n, regions.n_nodes, graph->n_live);
    double all = 0;
    for (uint32_t i = 0; i < regions.n; i++) {
        po_gpu_region plan;
        double before = po_now();
        PO_TRY(po_gpu_plan_region(ctx, arena, graph, &regions.regions[i],
                                  po_arena_printf(arena, "region%u", i), o->gpu, &o->plan, &plan));
        if (plan.failed) {
            printf("  region %u, %u nodes: %s\n", i, regions.regions[i].n_nodes, plan.failed);
            continue;
        }
        double bound = po_gpu_bound(plan.lowered.mu, o->gpu, o->plan.tf32);
        printf("  region %u, %u nodes, planned in %.2f s, bound %.1f us\n", i,
               regions.regions[i].n_nodes, po_now() - before, 1e6 * bound);
        for (uint32_t k = 0; k < (o->all ? plan.n : 1); k++)
            print_candidate(ctx, arena, o, &plan.candidates[k], bound);
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

int main(int argc, char **argv) {
    options o = {.gpu = po_gpu_named("H100"), .plan = {.tf32 = true}};
    po_ctx ctx;
    po_ctx_init(&ctx);
    int status = 0;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--gpu") == 0 && i + 1 < argc)
            o.gpu = po_gpu_named(argv[++i]);
        else if (strcmp(argv[i], "--f32") == 0)
            o.plan.tf32 = false;
        else if (strcmp(argv[i], "--mu") == 0)
            o.mu = true;
        else if (strcmp(argv[i], "--cuda") == 0)
            o.cuda = true;
        else if (strcmp(argv[i], "--all") == 0)
            o.all = true;
        else if (strcmp(argv[i], "-v") == 0)
            ctx.log = say;
        else if (!o.gpu || one(&ctx, &o, argv[i]) != PO_OK) {
            fprintf(stderr, "petopt-cuda-blocks: %s\n", o.gpu ? ctx.error.message : "which GPU?");
            po_ctx_clear(&ctx);
            status = 2;
        }
    }
    return status;
}
