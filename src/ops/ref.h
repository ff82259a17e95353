/* Helpers of the references. */
#ifndef PO_OPS_REF_H
#define PO_OPS_REF_H

#include "base/num.h"
#include "ops/op.h"

enum {
    PO_REF_MAX_COUNT = 1 << 28, /* elements of one output */
    PO_REF_MAX_TRIPS = 1 << 20  /* iterations of all loops of one evaluation */
};

/* True where the node has output k. */
static inline bool po_ref_wants(const po_ref *ref, uint32_t k) {
    return k < ref->n_out && ref->node->out[k] != PO_NONE;
}

/* Input k, or NULL where it is omitted. */
static inline const po_array *po_ref_in(const po_ref *ref, uint32_t k) {
    return k < ref->n_in ? ref->in[k] : NULL;
}

/* False where the dims multiply to more than the limit, zeros counted as ones: loops over the outer
 * axes of an empty array must end too, and products of some of its dims must not wrap. */
bool po_ref_fits(uint32_t rank, const int64_t *dims);

/* Makes output k, zeroed; PO_UNSUPPORTED (not recorded) where it would be too large. */
po_status po_ref_out(po_ref *ref, uint32_t k, po_dtype dtype, uint32_t rank, const int64_t *dims,
                     po_array **array);
/* The same for an array that is not an output. */
po_status po_ref_make(po_ref *ref, po_dtype dtype, uint32_t rank, const int64_t *dims,
                      po_array **array);

/* An array with the data of another and other dims of the same product. */
po_array *po_array_view(po_arena *arena, const po_array *array, uint32_t rank, const int64_t *dims);
/* A copy with its own data. */
po_array *po_array_copy(po_arena *arena, const po_array *array);

/* All elements of an integer input of rank 0 or 1 (also floats with whole values). */
po_status po_ref_ints(po_ref *ref, uint32_t k, int64_t *n, const int64_t **values);
/* Product of dims[from..to) of an array that a reference sees: it cannot overflow (po_ref_fits). */
static inline int64_t po_product(const int64_t *dims, uint32_t from, uint32_t to) {
    int64_t p = 1;
    for (uint32_t i = from; i < to; i++)
        p *= dims[i];
    return p;
}

/* Evaluates a body of the node. `in` are the body's inputs; the outputs are made in `arena`.
 * PO_UNSUPPORTED where a captured value is not known (a node that is evaluated alone). */
po_status po_ref_body(po_ref *ref, po_arena *arena, const po_graph *body, const po_array *const *in,
                      po_array **out);
/* Counts an iteration of a loop: PO_UNSUPPORTED beyond the limit. */
po_status po_ref_trip(po_ref *ref);

#endif
