/* From muGraphs to what the CUDA library of a model holds. */
#include "codegen/cuda_library.h"

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

static po_status image_of(po_ctx *ctx, po_arena *arena, const po_nvrtc *nvrtc,
                          const po_object_store *store, const po_cuda_kernel *kernel, uint32_t arch,
                          bool ptx, po_cuda_image *image) {
    const char *source = kernel->program.source;
    po_hash key = image_key(nvrtc, source, arch, ptx);
    if (store && find(arena, store, key, arch, ptx, image))
        return PO_OK;
    PO_TRY(po_ctx_poll(ctx));
    PO_TRY(po_nvrtc_compile(ctx, arena, nvrtc, source, kernel->ports.name, arch, ptx, image));
    if (store)
        keep(arena, store, key, image);
    return PO_OK;
}

po_status po_cuda_kernel_compile(po_ctx *ctx, po_arena *arena, const po_nvrtc *nvrtc,
                                 const po_object_store *store, po_cuda_kernel *kernel) {
    po_cuda_image *images = PO_NEW_N(arena, po_cuda_image, PO_CUDA_ARCHS + 1);
    for (uint32_t i = 0; i < PO_CUDA_ARCHS; i++)
        PO_TRY(image_of(ctx, arena, nvrtc, store, kernel, po_cuda_archs[i], false, &images[i]));
    PO_TRY(image_of(ctx, arena, nvrtc, store, kernel, po_cuda_archs[PO_CUDA_ARCHS - 1], true,
                    &images[PO_CUDA_ARCHS]));
    kernel->images = images;
    kernel->n_images = PO_CUDA_ARCHS + 1;
    return PO_OK;
}
