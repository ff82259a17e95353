/* Where element i of a tensor lies in a kernel's memory, the numbers that inputs are drawn from,
 * and weights packed as the kernel reads them. */
#include "superopt/plan/compiled.h"

float *po_compiled_element(const po_loaded_kernel *kernel, uint32_t tensor, int64_t i) {
    const po_mu_tensor *t = &kernel->mu->tensors[tensor];
    int64_t at = t->origin;
    for (uint32_t x = t->rank; x-- > 0;) {
        at += i % t->dims[x] * t->stride[x];
        i /= t->dims[x];
    }
    return &kernel->device[kernel->places[tensor] + at];
}

float po_compiled_number(uint32_t tensor, int64_t i) {
    return (float)(2 * po_random_unit(1, tensor, (uint64_t)i) - 1);
}

const float *const *po_compiled_weights(po_ctx *ctx, po_arena *arena, const po_mu *naive,
                                        const float *const *data, const po_packed *packed,
                                        uint32_t n_packed) {
    const float **weights = PO_NEW_N(arena, const float *, n_packed + 1);
    for (uint32_t i = 0; i < n_packed; i++) {
        const po_packed *p = &packed[i];
        const po_tensor *to;
        po_tensor *natural;
        uint32_t id = 0;
        while (naive->tensors[id].place != PO_MU_WEIGHT || naive->tensors[id].number != p->weight)
            id++;
        const po_mu_tensor *t = &naive->tensors[id];
        if (!data[id] ||
            po_tensor_wrap(ctx, arena, PO_F32, t->rank, t->dims, data[id], &natural) != PO_OK ||
            po_pack(ctx, arena, natural, &p->packing, &to) != PO_OK)
            return NULL;
        float *aligned = po_arena_alloc(arena, to->size + 64);
        aligned = (float *)(((uintptr_t)aligned + 63) / 64 * 64);
        memcpy(aligned, to->data, to->size);
        weights[i] = aligned;
    }
    return weights;
}
