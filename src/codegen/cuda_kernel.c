/* From muGraphs to what the CUDA library of a model holds. */
#include "codegen/cuda_library.h"

#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>

static const po_mu_type *types_of(po_arena *arena, const po_mu *mu, po_mu_place place, uint32_t n) {
    po_mu_type *list = PO_NEW_N(arena, po_mu_type, n);
    for (uint32_t i = 0; i < mu->n_tensors; i++)
        if (mu->tensors[i].place == place)
            list[mu->tensors[i].number] = mu->tensors[i].type;
    return list;
}

static po_hash add_types(po_hash hash, const po_mu_type *types, uint32_t n) {
    for (uint32_t i = 0; i < n; i++)
        hash = po_hash_u64(hash, types[i]);
    return po_hash_u64(hash, n);
}

/* Names of CPU kernels begin with another letter. */
static const char *name_of(po_arena *arena, const po_mu *mu, const po_cuda_kernel *k,
                           const po_cuda_print_options *options) {
    po_hash hash = {PO_CUDA_KERNEL_ABI, PO_KERNEL_DOMAIN_VERSION}, one = po_mu_hash(mu);
    hash = po_hash_u64(po_hash_u64(hash, one.lo), one.hi);
    hash = add_types(hash, k->in, k->ports.n_in);
    hash = add_types(hash, k->weights, k->ports.n_weights);
    hash = add_types(hash, k->out, k->ports.n_out);
    hash = po_hash_u64(po_hash_u64(hash, options->tf32), (uint64_t)options->shared_limit);
    return po_arena_printf(arena, "G%016" PRIx64 "%08" PRIx64, hash.lo, hash.hi >> 32);
}

po_status po_cuda_kernel_print(po_ctx *ctx, po_arena *arena, const po_mu *mu,
                               const po_cuda_print_options *options, po_cuda_kernel *kernel) {
    *kernel = (po_cuda_kernel){.n_images = 0};
    po_kernel_set_ports(arena, mu, &kernel->ports);
    kernel->in = types_of(arena, mu, PO_MU_INPUT, kernel->ports.n_in);
    kernel->weights = types_of(arena, mu, PO_MU_WEIGHT, kernel->ports.n_weights);
    kernel->out = types_of(arena, mu, PO_MU_OUTPUT, kernel->ports.n_out);
    kernel->ports.name = name_of(arena, mu, kernel, options);
    return po_codegen_cuda(ctx, arena, mu, kernel->ports.name, options, &kernel->program);
}

/* --- images, and how they are kept --- */

enum { KEPT_LAYOUT = 1, SYMBOL = 96 }; /* of an image that is kept: rows of usage, its bytes */

static po_hash image_key(const po_nvrtc *nvrtc, const char *source, uint32_t arch, bool ptx) {
    po_hash hash = po_hash_str((po_hash){KEPT_LAYOUT, SYMBOL}, source);
    hash = po_hash_u64(po_hash_u64(hash, arch), ptx);
    return po_hash_str(hash, po_nvrtc_version(nvrtc));
}

static void keep(po_arena *arena, const po_object_store *store, po_hash key,
                 const po_cuda_image *image) {
    po_text text;
    po_text_init(&text, arena);
    uint32_t n = image->n_usage;
    po_text_add(&text, (const char *)&n, sizeof n);
    for (uint32_t i = 0; i < n; i++) {
        const po_cuda_usage *u = &image->usage[i];
        const uint32_t row[4] = {u->registers, u->spills, u->stack, u->shared};
        char symbol[SYMBOL] = "";
        snprintf(symbol, sizeof symbol, "%s", u->symbol);
        po_text_add(&text, symbol, sizeof symbol);
        po_text_add(&text, (const char *)row, sizeof row);
    }
    po_text_add(&text, image->bytes.data, image->bytes.size);
    store->keep(store->user, key, (po_bytes){text.data, text.size});
}

static bool find(po_arena *arena, const po_object_store *store, po_hash key, uint32_t arch,
                 bool ptx, po_cuda_image *image) {
    po_bytes kept;
    uint32_t n;
    if (!store->find(store->user, arena, key, &kept) || kept.size < sizeof n)
        return false;
    memcpy(&n, kept.data, sizeof n);
    const char *at = kept.data + sizeof n;
    size_t size = kept.size - sizeof n, row = SYMBOL + 4 * sizeof(uint32_t);
    if (size / row < n)
        return false;
    po_cuda_usage *usage = PO_NEW_N(arena, po_cuda_usage, n);
    for (uint32_t i = 0; i < n; i++, at += row) {
        uint32_t words[4];
        memcpy(words, at + SYMBOL, sizeof words);
        if (at[SYMBOL - 1] != '\0')
            return false;
        usage[i] = (po_cuda_usage){at, words[0], words[1], words[2], words[3]};
    }
    *image = (po_cuda_image){arch, ptx, {at, size - n * row}, n, usage};
    return true;
}

/* --- compiling, on all processors --- */

typedef struct job {
    const po_nvrtc *nvrtc;
    const po_cuda_kernel *kernel;
    uint32_t arch;
    bool ptx;
    po_hash key;
    uint32_t place; /* of its image */
    /* of the thread */
    po_ctx ctx;
    pthread_t thread;
    bool started;
    po_status status;
    po_cuda_image image;
} job;

static void *compile_one(void *user) {
    job *j = user;
    po_guard guard;
    po_guard_push(&j->ctx, &guard);
    if (setjmp(guard.env) != 0) {
        j->status = po_guard_unwind(&j->ctx, &guard);
        return NULL;
    }
    j->status =
        po_nvrtc_compile(&j->ctx, po_arena_create(&j->ctx), j->nvrtc, j->kernel->program.source,
                         j->kernel->ports.name, j->arch, j->ptx, &j->image);
    po_guard_pop(&j->ctx, &guard);
    return NULL;
}

/* What a thread made, out of its memory. */
static void take_image(po_arena *arena, const po_cuda_image *from, po_cuda_image *to) {
    po_cuda_usage *usage = po_arena_memdup(arena, from->usage, from->n_usage * sizeof *usage);
    for (uint32_t i = 0; i < from->n_usage; i++)
        usage[i].symbol = po_arena_strdup(arena, usage[i].symbol);
    *to = *from;
    to->usage = usage;
    to->bytes.data = po_arena_memdup(arena, from->bytes.data, from->bytes.size);
}

/* As many at a time as there are processors. */
static void run(job *jobs, uint32_t n) {
    cpu_set_t cpus;
    int count = sched_getaffinity(0, sizeof cpus, &cpus) == 0 ? CPU_COUNT(&cpus) : 1;
    uint32_t most = count > 1 ? (uint32_t)count : 1;
    for (uint32_t first = 0; first < n; first += most) {
        uint32_t end = first + most < n ? first + most : n;
        for (uint32_t i = first + 1; i < end; i++)
            jobs[i].started = pthread_create(&jobs[i].thread, NULL, compile_one, &jobs[i]) == 0;
        for (uint32_t i = first; i < end; i++)
            if (!jobs[i].started)
                compile_one(&jobs[i]);
        for (uint32_t i = first; i < end; i++)
            if (jobs[i].started)
                pthread_join(jobs[i].thread, NULL);
    }
}

/* The jobs that the store does not answer come first. */
static uint32_t to_do(po_arena *arena, const po_object_store *store, job *jobs, uint32_t n,
                      po_cuda_image *images) {
    uint32_t open = 0;
    for (uint32_t i = 0; i < n; i++) {
        job j = jobs[i];
        if (store && find(arena, store, j.key, j.arch, j.ptx, &images[i]))
            continue;
        j.place = i;
        jobs[open++] = j;
    }
    return open;
}

static po_status compile(po_ctx *ctx, po_arena *arena, const po_object_store *store, job *jobs,
                         uint32_t n, po_cuda_image *images) {
    PO_TRY(po_ctx_poll(ctx));
    uint32_t open = to_do(arena, store, jobs, n, images);
    for (uint32_t i = 0; i < open; i++) {
        po_ctx_init(&jobs[i].ctx);
        jobs[i].ctx.cancel = ctx->cancel;
        jobs[i].ctx.deadline = ctx->deadline;
    }
    run(jobs, open);
    po_status status = PO_OK;
    for (uint32_t i = 0; i < open; i++) {
        job *j = &jobs[i];
        if (status == PO_OK && j->status != PO_OK)
            status = po_fail(ctx, j->status, "%s", j->ctx.error.message);
        if (status == PO_OK)
            take_image(arena, &j->image, &images[j->place]);
        if (status == PO_OK && store)
            keep(arena, store, j->key, &images[j->place]);
        po_arenas_free_since(&j->ctx, 0);
    }
    return status;
}

static job job_of(const po_nvrtc *nvrtc, const po_cuda_kernel *kernel, uint32_t arch, bool ptx) {
    return (job){.nvrtc = nvrtc,
                 .kernel = kernel,
                 .arch = arch,
                 .ptx = ptx,
                 .key = image_key(nvrtc, kernel->program.source, arch, ptx)};
}

po_status po_cuda_kernel_compile(po_ctx *ctx, po_arena *arena, const po_nvrtc *nvrtc,
                                 const po_object_store *store, po_cuda_kernel *kernel) {
    po_cuda_image *images = PO_NEW_N(arena, po_cuda_image, PO_CUDA_ARCHS + 1);
    job *jobs = PO_NEW_N(arena, job, PO_CUDA_ARCHS + 1);
    for (uint32_t i = 0; i < PO_CUDA_ARCHS; i++)
        jobs[i] = job_of(nvrtc, kernel, po_cuda_archs[i], false);
    jobs[PO_CUDA_ARCHS] = job_of(nvrtc, kernel, po_cuda_archs[PO_CUDA_ARCHS - 1], true);
    PO_TRY(compile(ctx, arena, store, jobs, PO_CUDA_ARCHS + 1, images));
    kernel->images = images;
    kernel->n_images = PO_CUDA_ARCHS + 1;
    kernel->cuda = po_nvrtc_cuda(nvrtc);
    return PO_OK;
}

po_status po_cuda_kernel_compile_for(po_ctx *ctx, po_arena *arena, const po_nvrtc *nvrtc,
                                     const po_object_store *store, uint32_t arch,
                                     po_cuda_kernel *kernel) {
    po_cuda_image *image = PO_NEW(arena, po_cuda_image);
    uint32_t best = 0;
    for (uint32_t i = 0; i < PO_CUDA_ARCHS; i++)
        if (po_cuda_archs[i] / 10 == arch / 10 && po_cuda_archs[i] <= arch)
            best = po_cuda_archs[i];
    job j = job_of(nvrtc, kernel, best ? best : po_cuda_archs[PO_CUDA_ARCHS - 1], best == 0);
    PO_TRY(compile(ctx, arena, store, &j, 1, image));
    kernel->images = image;
    kernel->n_images = 1;
    kernel->cuda = po_nvrtc_cuda(nvrtc);
    return PO_OK;
}
