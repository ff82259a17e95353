/* Compiles the kernels of models' regions, as they are planned for a GPU, for every architecture
 * that kernels are delivered for, on all processors:
 *
 *     petopt-cuda-compile [--gpu H100] [--f32] [--all] [--check] [--threads N] [--nvrtc LIB]
 *                         FILE.onnx ...
 *
 * A row a kernel and architecture: registers of a thread, bytes spilled and of the stack, shared
 * bytes of a block, threads, bytes of the image that it is in, seconds that the image took. --all:
 * every candidate. --check: ends with 1 where a kernel spills, has more registers than there are,
 * or more shared memory than a block of the architecture can have. Texts that are the same are
 * compiled once. */
#include "codegen/cuda/cuda.h"
#include "codegen/cuda/nvrtc.h"
#include "import/import.h"
#include "simplify/simplify.h"
#include "superopt/gpu/plan.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_THREADS = 64, REGISTERS = 255, REGISTERS_SM = 65536 };

typedef struct program {
    const char *from; /* file and region */
    po_cuda_program cuda;
} program;

typedef struct task {
    const program *program;
    uint32_t arch;
    po_cuda_image image;
    double seconds;
    const char *failed;
} task;

typedef struct bench {
    po_ctx ctx;
    po_arena *arena;
    po_nvrtc *nvrtc;
    const po_gpu *gpu;
    po_gpu_options plan;
    bool all, check;
    uint32_t n_threads;
    program *programs;
    uint32_t n_programs, cap_programs, n_regions, n_same, n_unprinted;
    task *tasks;
    uint32_t n_tasks, next;
    pthread_mutex_t lock;
} bench;

/* --- programs --- */

static void add(bench *b, const char *from, const po_mu *mu) {
    po_cuda_print_options options = {.tf32 = b->plan.tf32};
    program p = {.from = from};
    if (po_codegen_cuda(&b->ctx, b->arena, mu, "kernel", &options, &p.cuda) != PO_OK) {
        printf("%s: not printed: %s\n", from, b->ctx.error.message);
        po_ctx_clear(&b->ctx);
        b->n_unprinted++;
        return;
    }
    for (uint32_t i = 0; i < b->n_programs; i++)
        if (strcmp(b->programs[i].cuda.source, p.cuda.source) == 0) {
            b->n_same++;
            return;
        }
    PO_PUSH(b->arena, b->programs, b->n_programs, b->cap_programs, p);
}

static po_status read_model(bench *b, const char *path) {
    po_ctx *ctx = &b->ctx;
    po_model *model;
    po_graph *graph;
    po_regions regions;
    po_law_counts counts;
    po_simplify_options simplify = po_simplify_defaults();
    const char *name = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
    PO_TRY(po_import_file(ctx, path, &model));
    PO_TRY(po_infer_graph(ctx, model->graph, true));
    PO_TRY(po_simplify(ctx, model->graph, &simplify, &graph, &counts));
    PO_TRY(po_infer_graph(ctx, graph, true));
    PO_TRY(po_regions_find(ctx, b->arena, graph, po_gpu_part, ctx, &regions));
    for (uint32_t i = 0; i < regions.n; i++) {
        po_gpu_region plan;
        const char *from = po_arena_printf(b->arena, "%.*s #%u", (int)strcspn(name, "."), name, i);
        PO_TRY(po_gpu_plan_region(ctx, b->arena, graph, &regions.regions[i], "region", b->gpu,
                                  &b->plan, &plan));
        b->n_regions++;
        if (plan.failed) {
            printf("%s: no plan: %s\n", from, plan.failed);
            b->n_unprinted++;
        }
        for (uint32_t k = 0; !plan.failed && k < (b->all ? plan.n : 1); k++)
            add(b, b->all ? po_arena_printf(b->arena, "%s.%u", from, k) : from,
                plan.candidates[k].mu);
    }
    po_model_free(model);
    return PO_OK;
}

/* --- compiling --- */

static task *take(bench *b) {
    (void)pthread_mutex_lock(&b->lock);
    task *t = b->next < b->n_tasks ? &b->tasks[b->next++] : NULL;
    (void)pthread_mutex_unlock(&b->lock);
    return t;
}

typedef struct worker {
    bench *bench;
    po_ctx ctx;
    po_arena *arena; /* what the images lie in */
    pthread_t thread;
} worker;

static void *work(void *user) {
    worker *w = user;
    for (task *t; (t = take(w->bench));) {
        double start = po_now();
        if (po_nvrtc_compile(&w->ctx, w->arena, w->bench->nvrtc, t->program->cuda.source,
                             t->program->from, t->arch, false, &t->image) != PO_OK) {
            t->failed = po_arena_strdup(w->arena, w->ctx.error.message);
            po_ctx_clear(&w->ctx);
        }
        t->seconds = po_now() - start;
    }
    return NULL;
}

static void compile(bench *b, worker *workers) {
    for (uint32_t i = 0; i < b->n_threads; i++) {
        workers[i].bench = b;
        po_ctx_init(&workers[i].ctx);
        workers[i].arena = po_arena_create(&workers[i].ctx);
        if (pthread_create(&workers[i].thread, NULL, work, &workers[i]) != 0) {
            po_arena_free(workers[i].arena);
            b->n_threads = i;
        }
    }
    for (uint32_t i = 0; i < b->n_threads; i++)
        (void)pthread_join(workers[i].thread, NULL);
}

/* --- the table --- */

static uint32_t shared_limit(uint32_t arch) {
    return arch == 80 ? 163 << 10 : arch >= 90 ? 227 << 10 : 99 << 10;
}

/* What is wrong with a kernel on an architecture; NULL. */
static const char *wrong(const po_cuda_usage *u, const po_cuda_launch *l, uint32_t arch) {
    if (u->spills || u->stack)
        return "spills";
    if (u->registers > REGISTERS || u->registers * l->threads > REGISTERS_SM)
        return "too many registers";
    return u->shared + l->shared > shared_limit(arch) ? "too much shared memory" : NULL;
}

static uint32_t report(const bench *b) {
    uint32_t bad = 0, kernels = 0;
    printf("%-28s %-28s %4s %4s %6s %6s %7s %7s %8s %7s\n", "program", "kernel", "arch", "regs",
           "spills", "stack", "shared", "threads", "image", "seconds");
    for (uint32_t i = 0; i < b->n_tasks; i++) {
        const task *t = &b->tasks[i];
        const po_cuda_program *p = &t->program->cuda;
        if (t->failed || t->image.n_usage != p->n_launches) {
            printf("%s, sm_%u: %s\n", t->program->from, t->arch,
                   t->failed ? t->failed : "kernels are missing");
            bad++;
            continue;
        }
        for (uint32_t k = 0; k < p->n_launches; k++) {
            const po_cuda_usage *u = &t->image.usage[k];
            const po_cuda_launch *l = &p->launches[k];
            const char *why = wrong(u, l, t->arch);
            printf("%-28.28s %-28.28s %4u %4u %6u %6u %7u %7u %8zu %7.2f%s%s\n", t->program->from,
                   l->what, t->arch, u->registers, u->spills, u->stack, u->shared + l->shared,
                   l->threads, t->image.bytes.size, t->seconds, why ? "  " : "", why ? why : "");
            kernels++;
            bad += why != NULL;
        }
    }
    printf("%u regions, %u programs (%u met again, %u not printed), %u kernels for %u "
           "architectures, %u wrong",
           b->n_regions, b->n_programs, b->n_same, b->n_unprinted, kernels / PO_CUDA_ARCHS,
           (uint32_t)PO_CUDA_ARCHS, bad);
    return bad;
}

static int usage(void) {
    fprintf(stderr, "usage: petopt-cuda-compile [--gpu NAME] [--f32] [--all] [--check] "
                    "[--threads N] [--nvrtc LIB] FILE.onnx ...\n");
    return 2;
}

int main(int argc, char **argv) {
    static bench b = {.plan = {.tf32 = true}, .lock = PTHREAD_MUTEX_INITIALIZER};
    static worker workers[MOST_THREADS];
    const char *library = NULL;
    int at = 1;
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    b.gpu = po_gpu_named("H100");
    b.n_threads = processors > 0 ? (uint32_t)processors : 1;
    for (; at < argc && argv[at][0] == '-'; at++) {
        if (strcmp(argv[at], "--gpu") == 0 && at + 1 < argc)
            b.gpu = po_gpu_named(argv[++at]);
        else if (strcmp(argv[at], "--nvrtc") == 0 && at + 1 < argc)
            library = argv[++at];
        else if (strcmp(argv[at], "--threads") == 0 && at + 1 < argc)
            b.n_threads = (uint32_t)strtoul(argv[++at], NULL, 10);
        else if (strcmp(argv[at], "--f32") == 0)
            b.plan.tf32 = false;
        else if (strcmp(argv[at], "--all") == 0)
            b.all = true;
        else if (strcmp(argv[at], "--check") == 0)
            b.check = true;
        else
            return usage();
    }
    if (at == argc || !b.gpu || b.n_threads == 0 || b.n_threads > MOST_THREADS)
        return usage();
    double start = po_now();
    po_ctx_init(&b.ctx);
    b.arena = po_arena_create(&b.ctx);
    if (po_nvrtc_open(&b.ctx, b.arena, library, &b.nvrtc) != PO_OK) {
        fprintf(stderr, "petopt-cuda-compile: %s\n", b.ctx.error.message);
        return b.check ? 77 : 2; /* 77: there is nothing to check with */
    }
    for (; at < argc; at++)
        if (read_model(&b, argv[at]) != PO_OK) {
            fprintf(stderr, "petopt-cuda-compile: %s: %s\n", argv[at], b.ctx.error.message);
            return 2;
        }
    b.tasks = PO_NEW_N(b.arena, task, b.n_programs * PO_CUDA_ARCHS + 1);
    for (uint32_t i = 0; i < b.n_programs; i++)
        for (uint32_t a = 0; a < PO_CUDA_ARCHS; a++)
            b.tasks[b.n_tasks++] = (task){.program = &b.programs[i], .arch = po_cuda_archs[a]};
    double planned = po_now();
    compile(&b, workers);
    uint32_t bad = report(&b);
    printf("; planned in %.1f s, compiled by NVRTC %s in %.1f s on %u threads\n", planned - start,
           po_nvrtc_version(b.nvrtc), po_now() - planned, b.n_threads);
    for (uint32_t i = 0; i < b.n_threads; i++)
        po_arena_free(workers[i].arena);
    po_arena_free(b.arena);
    return b.check && (bad || b.n_unprinted || b.n_tasks == 0);
}
