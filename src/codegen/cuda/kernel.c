/* From muGraphs to what the CUDA library of a model holds. */
#include "base/tasks.h"
#include "codegen/cuda/library.h"

#include <inttypes.h>
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
    for (uint32_t i = 0; i < k->ports.n_in && options->batched; i++)
        hash = po_hash_u64(hash, options->batched[i]);
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

/* An image of a kernel. */
typedef struct job {
    const po_nvrtc *nvrtc;
    const po_cuda_kernel *kernel;
    uint32_t arch;
    bool ptx;
    po_hash key;
    po_cuda_image *to; /* where it goes */
    const char **why;  /* why there is none, of its kernel */
    po_arena *arena;   /* of what was made */
    po_cuda_image made;
    char failed[PO_MESSAGE_MAX]; /* "": nothing */
} job;

typedef struct jobs {
    job *list;
    uint32_t n;
} jobs;

static void free_made(void *user) {
    jobs *all = user;
    for (uint32_t i = 0; i < all->n; i++)
        if (all->list[i].arena)
            po_arena_free(all->list[i].arena);
}

static po_status compile_one(po_ctx *ctx, void *user, uint32_t which) {
    job *j = &((jobs *)user)->list[which];
    po_arena *arena = po_arena_create(ctx);
    po_status status = po_nvrtc_compile(ctx, arena, j->nvrtc, j->kernel->program.source,
                                        j->kernel->ports.name, j->arch, j->ptx, &j->made);
    if (status == PO_UNSUPPORTED || status == PO_BAD_INPUT || status == PO_INTERNAL) {
        memcpy(j->failed, ctx->error.message, sizeof j->failed);
        po_ctx_clear(ctx);
        return PO_OK;
    }
    if (status == PO_OK) {
        po_arena_keep(arena);
        j->arena = arena;
    }
    return status;
}

/* What a task made, out of its memory. */
static void take_image(po_arena *arena, const po_cuda_image *from, po_cuda_image *to) {
    po_cuda_usage *usage = po_arena_memdup(arena, from->usage, from->n_usage * sizeof *usage);
    for (uint32_t i = 0; i < from->n_usage; i++)
        usage[i].symbol = po_arena_strdup(arena, usage[i].symbol);
    *to = *from;
    to->usage = usage;
    to->bytes.data = po_arena_memdup(arena, from->bytes.data, from->bytes.size);
}

static po_status compile_all(po_ctx *ctx, po_arena *arena, const po_object_store *store,
                             jobs *all) {
    po_arena *own = po_arena_create(ctx);
    po_arena_defer(own, free_made, all);
    po_status status = po_tasks_run(ctx, all->n, compile_one, all);
    for (uint32_t i = 0; i < all->n && status == PO_OK; i++) {
        job *j = &all->list[i];
        if (j->failed[0]) {
            if (!*j->why)
                *j->why = po_arena_strdup(arena, j->failed);
            continue;
        }
        take_image(arena, &j->made, j->to);
        if (store)
            keep(own, store, j->key, j->to);
    }
    po_arena_free(own);
    return status;
}

/* What a library with images for all would run on this GPU. */
static job for_gpu(uint32_t arch) {
    uint32_t best = 0;
    for (uint32_t i = 0; i < PO_CUDA_ARCHS; i++)
        if (po_cuda_archs[i] / 10 == arch / 10 && po_cuda_archs[i] <= arch)
            best = po_cuda_archs[i];
    return (job){.arch = best ? best : po_cuda_archs[PO_CUDA_ARCHS - 1], .ptx = best == 0};
}

po_status po_cuda_kernels_compile(po_ctx *ctx, po_arena *arena, const po_nvrtc *nvrtc,
                                  const po_object_store *store, uint32_t arch,
                                  po_cuda_kernel *const *kernels, uint32_t n, const char **why) {
    uint32_t each = arch ? 1 : PO_CUDA_ARCHS + 1;
    jobs all = {.list = PO_NEW_N(arena, job, (size_t)n * each)};
    for (uint32_t k = 0; k < n; k++) {
        po_cuda_image *images = PO_NEW_N(arena, po_cuda_image, each);
        why[k] = NULL;
        for (uint32_t i = 0; i < each; i++) {
            bool ptx = i == PO_CUDA_ARCHS;
            job j = arch ? for_gpu(arch)
                         : (job){.arch = po_cuda_archs[ptx ? PO_CUDA_ARCHS - 1 : i], .ptx = ptx};
            j.nvrtc = nvrtc;
            j.kernel = kernels[k];
            j.key = image_key(nvrtc, kernels[k]->program.source, j.arch, j.ptx);
            j.to = &images[i];
            j.why = &why[k];
            if (!store || !find(arena, store, j.key, j.arch, j.ptx, j.to))
                all.list[all.n++] = j;
        }
        kernels[k]->images = images;
        kernels[k]->n_images = each;
        kernels[k]->cuda = po_nvrtc_cuda(nvrtc);
    }
    PO_TRY(compile_all(ctx, arena, store, &all));
    for (uint32_t k = 0; k < n; k++)
        if (why[k])
            kernels[k]->n_images = 0;
    return PO_OK;
}

static po_status compile_standalone(po_ctx *ctx, po_arena *arena, const po_nvrtc *nvrtc,
                                    const po_object_store *store, uint32_t arch,
                                    po_cuda_kernel *kernel) {
    const char *why;
    PO_TRY(po_cuda_kernels_compile(ctx, arena, nvrtc, store, arch, &kernel, 1, &why));
    return why ? po_fail(ctx, PO_UNSUPPORTED, "%s", why) : PO_OK;
}

po_status po_cuda_kernel_compile(po_ctx *ctx, po_arena *arena, const po_nvrtc *nvrtc,
                                 const po_object_store *store, po_cuda_kernel *kernel) {
    return compile_standalone(ctx, arena, nvrtc, store, 0, kernel);
}

po_status po_cuda_kernel_compile_for(po_ctx *ctx, po_arena *arena, const po_nvrtc *nvrtc,
                                     const po_object_store *store, uint32_t arch,
                                     po_cuda_kernel *kernel) {
    return compile_standalone(ctx, arena, nvrtc, store, arch, kernel);
}
