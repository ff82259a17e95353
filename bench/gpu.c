/* Models on the GPU of this machine, as plans of the executor:
 *
 *     petopt-gpu [--libraries DIR] [--nvrtc FILE] [--tf32] [--no-check] [--no-models] [--cold]
 *                [--seconds S] [--copy MB] [-v] FILE.onnx|FILE.pir ...
 *
 * First the GPU and what it copies a second. Then for each model its regions, every program that is
 * planned for them compared with float64 and timed: us, error in u S(v), the part of the copy rate
 * at which its inputs and outputs move, registers and spills. Then the model three ways, side by
 * side: by cuBLAS, cuDNN and a kernel for each other operator; with regions as the estimates
 * choose; with regions as the readings choose. Each is compared with the float64 reference
 * (--no-models: programs alone, for sanitizers, in which not all of cuBLAS runs). Exits with 1
 * where something is wrong, 3 where there is no GPU. */
#include "base/file.h"
#include "codegen/cuda/library.h"
#include "cost/cuda/program.h"
#include "import/import.h"
#include "ir/text.h"
#include "pipeline/gpu/model.h"
#include "simplify/simplify.h"
#include "superopt/gpu/plan.h"
#include "verify/inputs/inputs.h"

#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WAYS = 3, MOST_TRIED = 24, NO_GPU = 3 };

typedef struct bench {
    po_ctx *ctx;
    po_arena *arena; /* of one model */
    po_cuda_options options;
    po_cuda_info info;
    const po_gpu *gpu;
    const po_nvrtc *nvrtc;
    bool tf32, check, models, cold;
    double seconds, copy; /* copy: bytes a second, read and written counted both */
    int64_t copied;
    bool wrong;
} bench;

/* What a delivered library would run here, of many at a time; NULL where one does not compile. */
static po_status compile(bench *b, const po_cuda_program *programs, uint32_t n,
                         const po_cuda_image **images) {
    po_cuda_kernel *kernels = PO_NEW_N(b->arena, po_cuda_kernel, n + 1);
    po_cuda_kernel **list = PO_NEW_N(b->arena, po_cuda_kernel *, n + 1);
    const char **why = PO_NEW_N(b->arena, const char *, n + 1);
    for (uint32_t i = 0; i < n; i++) {
        kernels[i] = (po_cuda_kernel){.ports.name = "petopt", .program = programs[i]};
        list[i] = &kernels[i];
    }
    PO_TRY(po_cuda_kernels_compile(b->ctx, b->arena, b->nvrtc, NULL, b->info.arch, list, n, why));
    for (uint32_t i = 0; i < n; i++) {
        images[i] = why[i] ? NULL : kernels[i].images;
        if (why[i])
            printf("      not compiled: %s\n", why[i]);
    }
    return PO_OK;
}

/* --- what memory can do --- */

static po_status measure_copy(bench *b) {
    const po_cuda_buffer buffers[2] = {{b->copied, NULL}, {b->copied, NULL}};
    const po_cuda_step step = {PO_CUDA_COPY, "copy", {.copy = {{0, 0}, {1, 0}, b->copied}}};
    const po_cuda_plan plan = {"copy", 2, 1, 0, buffers, &step, NULL}, *one = &plan;
    po_timing timing;
    PO_TRY(po_cuda_time(
        b->ctx,
        &(po_cuda_timing){.options = &b->options, .n = 1, .plans = &one, .seconds = b->seconds},
        &timing, NULL));
    b->copy = 2.0 * (double)b->copied / timing.seconds;
    return PO_OK;
}

/* --- regions --- */

static double bytes_of(const po_mu *mu) {
    double bytes = 0;
    for (uint32_t i = 0; i < mu->n_tensors; i++) {
        const po_mu_tensor *t = &mu->tensors[i];
        if (t->place == PO_MU_INPUT || t->place == PO_MU_WEIGHT || t->place == PO_MU_OUTPUT)
            bytes += (double)(po_mu_elements(t) * po_mu_bytes(t->type));
    }
    return bytes;
}

static void tell(const bench *b, const po_gpu_region *plan, const po_gpu_candidate *from,
                 const po_cuda_candidate *c) {
    uint32_t registers = 0, spills = 0;
    for (uint32_t i = 0; i < c->image->n_usage; i++) {
        registers =
            c->image->usage[i].registers > registers ? c->image->usage[i].registers : registers;
        spills += c->image->usage[i].spills;
    }
    if (c->seconds > 0)
        printf("      %8.1f us (estimate %.1f), %.2f u S, %.0f %% of the copy rate",
               1e6 * c->seconds, 1e6 * from->seconds, c->worst,
               100 * bytes_of(plan->lowered.mu) / c->seconds / b->copy);
    else
        printf("      %s: %s", c->seconds < 0 ? "WRONG" : "FAILED", c->why);
    printf(", %u launches, %u registers, %u bytes spilled: %s\n", c->program->n_launches, registers,
           spills, from->what);
}

/* The fastest of a region's programs that are right; false: none. */
static po_status try_region(bench *b, const po_gpu_region *plan, po_gpu_given *given, bool *found) {
    po_cuda_candidate *c = PO_NEW_N(b->arena, po_cuda_candidate, plan->n);
    po_cuda_program *programs = PO_NEW_N(b->arena, po_cuda_program, plan->n);
    const po_cuda_image **images = PO_NEW_N(b->arena, const po_cuda_image *, plan->n);
    uint32_t *of = PO_NEW_N(b->arena, uint32_t, plan->n), n_printed = 0, n = 0, best = PO_NONE;
    const po_cuda_print_options printing = {.tf32 = b->tf32};
    for (uint32_t k = 0; k < plan->n && n_printed < MOST_TRIED; k++) {
        po_cuda_program *to = &programs[n_printed];
        if (po_codegen_cuda(b->ctx, b->arena, plan->candidates[k].mu, "petopt", &printing, to) !=
            PO_OK) {
            printf("      not printed: %s\n", b->ctx->error.message);
            po_ctx_clear(b->ctx);
            continue;
        }
        of[n_printed++] = k;
    }
    PO_TRY(compile(b, programs, n_printed, images));
    for (uint32_t i = 0; i < n_printed; i++) {
        if (!images[i])
            continue;
        of[n] = of[i];
        c[n++] = (po_cuda_candidate){.mu = plan->candidates[of[i]].mu,
                                     .program = &programs[i],
                                     .image = images[i],
                                     .tf32 = b->tf32};
    }
    const po_cuda_trial trial = {.options = &b->options,
                                 .meaning = plan->lowered.mu,
                                 .check = b->check,
                                 .time = true,
                                 .cold = b->cold,
                                 .seed = 1};
    PO_TRY(po_cuda_try(b->ctx, b->arena, &trial, c, n));
    for (uint32_t i = 0; i < n; i++) {
        tell(b, plan, &plan->candidates[of[i]], &c[i]);
        b->wrong |= c[i].seconds <= 0;
        if (c[i].seconds > 0 && (best == PO_NONE || c[i].seconds < c[best].seconds))
            best = i;
    }
    *found = best != PO_NONE;
    if (*found)
        *given = (po_gpu_given){plan->region, &plan->lowered, c[best].program, c[best].image};
    return PO_OK;
}

static po_status try_regions(bench *b, const po_graph *graph, po_gpu_given **given, uint32_t *n) {
    po_regions *regions = PO_NEW(b->arena, po_regions);
    po_gpu_options options = {.tf32 = b->tf32};
    PO_TRY(po_regions_find(b->ctx, b->arena, graph, po_gpu_part, b->ctx, regions));
    *given = PO_NEW_N(b->arena, po_gpu_given, regions->n + 1);
    *n = 0;
    for (uint32_t i = 0; i < regions->n; i++) {
        po_gpu_region *plan = PO_NEW(b->arena, po_gpu_region);
        bool found = false;
        PO_TRY(po_gpu_plan_region(b->ctx, b->arena, graph, &regions->regions[i],
                                  po_arena_printf(b->arena, "region%u", i), b->gpu, &options,
                                  plan));
        if (plan->failed) {
            printf("    region %u, %u nodes: %s\n", i, regions->regions[i].n_nodes, plan->failed);
            continue;
        }
        printf("    region %u, %u nodes, bound %.1f us\n", i, regions->regions[i].n_nodes,
               1e6 * po_gpu_bound(plan->lowered.mu, b->gpu, b->tf32));
        PO_TRY(try_region(b, plan, &(*given)[*n], &found));
        *n += found;
    }
    return PO_OK;
}

/* --- whole models --- */

typedef struct way {
    const char *name;
    const po_cuda_plan *plan;
} way;

static void add_way(bench *b, const po_graph *graph, const po_feed *feed, const char *name,
                    const po_gpu_given *given, uint32_t n_given, bool fuse, way *ways,
                    uint32_t *n) {
    po_gpu_model *model = PO_NEW(b->arena, po_gpu_model);
    const po_gpu_model_options options = {.gpu = b->gpu,
                                          .nvrtc = b->nvrtc,
                                          .arch = b->info.arch,
                                          .tf32 = b->tf32,
                                          .fuse = fuse,
                                          .given = given,
                                          .n_given = n_given};
    if (po_gpu_model_make(b->ctx, b->arena, graph, &options, feed, model) == PO_OK) {
        ways[(*n)++] = (way){name, &model->plan};
        return;
    }
    printf("    %s: %s\n", name, b->ctx->error.message);
    po_ctx_clear(b->ctx);
}

static po_status reference(bench *b, const po_graph *graph, const po_feed *feed, po_array ***out) {
    const po_array **in = PO_NEW_N(b->arena, const po_array *, graph->n_inputs + 1);
    *out = PO_NEW_N(b->arena, po_array *, graph->n_outputs + 1);
    for (uint32_t i = 0; i < graph->n_inputs; i++)
        for (uint32_t k = 0; k < feed->n; k++) {
            po_array *a;
            if (strcmp(feed->names[k], graph->values[graph->inputs[i]].name) != 0)
                continue;
            PO_TRY(po_array_from_tensor(b->ctx, b->arena, feed->data[k].tensor, &a));
            in[i] = a;
        }
    return po_ref_graph(b->ctx, b->arena, graph, in, *out, false);
}

/* Largest error of all outputs, as a part of the largest magnitude of its own. */
static po_status error_of(bench *b, const po_graph *graph, po_array *const *want,
                          const po_cuda_plan *plan, double *error) {
    po_bytes *got = PO_NEW_N(b->arena, po_bytes, plan->n_outputs + 1);
    PO_TRY(po_cuda_execute(b->ctx, b->arena, &b->options, plan, true, got));
    *error = 0;
    for (uint32_t o = 0; o < plan->n_outputs; o++) {
        po_dtype dtype = graph->values[graph->outputs[o]].type.dtype;
        po_mu_type type = dtype == PO_F16 ? PO_MU_F16 : dtype == PO_BF16 ? PO_MU_BF16 : PO_MU_F32;
        int64_t n = want[o]->count;
        double *y = PO_NEW_N(b->arena, double, n + 1), worst = 0, largest = 0;
        if ((int64_t)got[o].size != n * po_mu_bytes(type))
            return po_fail(b->ctx, PO_INTERNAL, "output %u: %zu bytes", o, got[o].size);
        po_cuda_load(type, got[o].data, n, y);
        for (int64_t i = 0; i < n; i++) {
            double off = fabs(y[i] - want[o]->f[i]);
            worst = off <= worst ? worst : off; /* NaN too */
            largest = fmax(largest, fabs(want[o]->f[i]));
        }
        worst /= largest > 0 ? largest : 1;
        *error = worst <= *error ? *error : worst;
    }
    return PO_OK;
}

static po_status whole(bench *b, const po_graph *graph, const po_feed *feed,
                       const po_gpu_given *given, uint32_t n_given) {
    way ways[WAYS];
    const po_cuda_plan *plans[WAYS];
    po_timing timing[WAYS];
    po_array **want = NULL;
    uint32_t n = 0;
    add_way(b, graph, feed, "libraries and a kernel an operator", NULL, 0, false, ways, &n);
    add_way(b, graph, feed, "regions by estimate", NULL, 0, true, ways, &n);
    if (n_given > 0)
        add_way(b, graph, feed, "regions by reading", given, n_given, false, ways, &n);
    if (n == 0)
        return PO_OK;
    for (uint32_t i = 0; i < n; i++)
        plans[i] = ways[i].plan;
    po_cuda_timing spec = {.options = &b->options,
                           .n = n,
                           .plans = plans,
                           .seconds = b->seconds,
                           .seed = 1,
                           .cold = b->cold,
                           .thorough = true};
    PO_TRY(po_cuda_time(b->ctx, &spec, timing, NULL));
    if (b->check)
        PO_TRY(reference(b, graph, feed, &want));
    for (uint32_t i = 0; i < n; i++) {
        printf("    %-36s %9.1f us, %4u steps, %.3fx [%.3f, %.3f]", ways[i].name,
               1e6 * timing[i].seconds, plans[i]->n_steps, timing[i].gain, timing[i].low,
               timing[i].high);
        if (b->check) {
            double error;
            PO_TRY(error_of(b, graph, want, plans[i], &error));
            bool right = error <= (b->tf32 ? 2e-2 : 1e-2);
            printf(", error %.2g%s", error, right ? "" : " WRONG");
            b->wrong |= !right;
        }
        printf("\n");
    }
    return PO_OK;
}

/* --- models --- */

static po_status load(bench *b, const char *path, po_model **model, po_graph **graph) {
    size_t n = strlen(path);
    *model = NULL;
    if (n > 4 && strcmp(path + n - 4, ".pir") == 0) {
        int fd;
        po_content text;
        PO_TRY(po_file_open(b->ctx, b->arena, AT_FDCWD, path, 0, &fd));
        PO_TRY(po_file_content(b->ctx, b->arena, fd, path, &text));
        char *copy = po_arena_calloc(b->arena, text.size + 1, 1);
        memcpy(copy, text.data, text.size);
        PO_TRY(po_graph_parse(b->ctx, copy, graph));
        po_ops_resolve(*graph);
        return po_infer_graph(b->ctx, *graph, true);
    }
    po_law_counts counts;
    po_simplify_options simplify = po_simplify_defaults();
    PO_TRY(po_import_file(b->ctx, path, model));
    PO_TRY(po_infer_graph(b->ctx, (*model)->graph, true));
    PO_TRY(po_simplify(b->ctx, (*model)->graph, &simplify, graph, &counts));
    return po_infer_graph(b->ctx, *graph, true);
}

static po_status one(bench *b, const char *path) {
    po_model *model;
    po_graph *graph;
    po_inputs *inputs;
    po_feed feed;
    po_gpu_given *given;
    uint32_t n;
    b->arena = po_arena_create(b->ctx);
    PO_TRY(load(b, path, &model, &graph));
    printf("%s: %u nodes\n", path, graph->n_live);
    PO_TRY(po_inputs_plan(b->ctx, b->arena, graph, graph, &inputs));
    PO_TRY(po_inputs_make(b->ctx, b->arena, inputs, 0, PO_INPUTS_NORMAL, 3, &feed));
    PO_TRY(try_regions(b, graph, &given, &n));
    if (b->models)
        PO_TRY(whole(b, graph, &feed, given, n));
    po_arena_free(b->arena);
    po_graph_free(graph);
    po_model_free(model);
    return PO_OK;
}

static po_status start(bench *b, po_arena *arena, const char *nvrtc) {
    po_nvrtc *opened;
    const po_cuda_info *i = &b->info;
    PO_TRY(po_cuda_query(b->ctx, arena, &b->options, &b->info));
    if (!i->has_gpu)
        return po_fail(b->ctx, PO_RUNTIME, "%s", i->missing);
    PO_TRY(nvrtc ? po_nvrtc_open(b->ctx, arena, nvrtc, &opened)
                 : po_nvrtc_find(b->ctx, arena, b->options.folder, i->driver, &opened));
    b->nvrtc = opened;
    b->gpu = po_gpu_named(i->name);
    printf("%s (%u.%u), %u multiprocessors, %.1f GB, driver for CUDA %s, cuBLAS %s, cuDNN %s, "
           "NVRTC %s\n",
           i->name, i->arch / 10, i->arch % 10, i->sms, (double)i->memory / 1e9, i->driver,
           i->cublas[0] ? i->cublas : "none", i->cudnn[0] ? i->cudnn : "none",
           po_nvrtc_version(opened));
    if (!b->gpu) {
        b->gpu = po_gpu_named("H200");
        printf("petopt has no description of it: estimates are for H200\n");
    }
    PO_TRY(measure_copy(b));
    printf("copies %.0f GB/s\n", b->copy / 1e9);
    return PO_OK;
}

static void say(void *user, const char *message) {
    (void)user;
    fprintf(stderr, "%s\n", message);
}

static int fail(const bench *b, int code) {
    fprintf(stderr, "petopt-gpu: %s\n", b->ctx->error.message);
    return code;
}

int main(int argc, char **argv) {
    po_ctx ctx;
    const char *nvrtc = NULL;
    int first = 1;
    po_ctx_init(&ctx);
    bench b = {.ctx = &ctx, .check = true, .models = true, .seconds = 4, .copied = 256 << 20};
    for (; first < argc && argv[first][0] == '-'; first++) {
        const char *o = argv[first], *value = first + 1 < argc ? argv[first + 1] : "";
        if (strcmp(o, "--tf32") == 0)
            b.tf32 = true;
        else if (strcmp(o, "--no-check") == 0)
            b.check = false;
        else if (strcmp(o, "--no-models") == 0)
            b.models = false;
        else if (strcmp(o, "--cold") == 0)
            b.cold = true;
        else if (strcmp(o, "-v") == 0)
            ctx.log = say;
        else if (strcmp(o, "--libraries") == 0 && ++first)
            b.options.folder = value;
        else if (strcmp(o, "--nvrtc") == 0 && ++first)
            nvrtc = value;
        else if (strcmp(o, "--seconds") == 0 && ++first)
            b.seconds = strtod(value, NULL);
        else if (strcmp(o, "--copy") == 0 && ++first)
            b.copied = (int64_t)strtol(value, NULL, 10) << 20;
        else {
            fprintf(stderr, "petopt-gpu: there is no option '%s'\n", o);
            return 2;
        }
    }
    po_arena *arena = po_arena_create(&ctx);
    if (start(&b, arena, nvrtc) != PO_OK)
        return fail(&b, b.info.has_gpu ? 2 : NO_GPU);
    int code = 0;
    for (; first < argc; first++)
        if (one(&b, argv[first]) != PO_OK) {
            code = fail(&b, 2);
            po_ctx_clear(&ctx);
        }
    po_arena_free(arena);
    return code ? code : b.wrong;
}
