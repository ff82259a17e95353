/* How a naive muGraph is taken apart and put together again: parts that are scheduled by
 * themselves, each with one output (parts.c), and steps that are scheduled as they are
 * (step.c). */
#ifndef PO_SUPEROPT_GPU_PARTS_H
#define PO_SUPEROPT_GPU_PARTS_H

#include "superopt/gpu/plan.h"

/* A tensor of a part: axis x of it is so many times an index of an axis of the whole's tensor, so
 * that 128 * head + element is two axes. */
typedef struct gpu_twin {
    uint32_t tensor; /* of the whole; PO_NONE: the part's own */
    uint32_t axis[PO_MU_MAX_RANK];
    int64_t times[PO_MU_MAX_RANK];
} gpu_twin;

typedef struct gpu_part {
    uint32_t target; /* tensor of the naive muGraph that it makes */
    uint32_t n_steps;
    uint32_t *steps; /* nodes of the naive muGraph, in order */
    po_mu *mu;       /* by itself: what it reads is INPUT or WEIGHT, the target OUTPUT; NULL: cannot
                        stand by itself */
    gpu_twin *twin;  /* by tensor of mu */
} gpu_part;

/* Tensors that lie in memory: where values are seen by several parts, or read by other indices than
 * they were written by, or parts would be too large. more: others that have to (by tensor); NULL.
 * Parts in an order in which they can run. */
void gpu_parts_of(po_arena *arena, const po_mu *naive, const bool *more, gpu_part **parts,
                  uint32_t *n);

/* Without what only moves elements from one tensor to another whole one (views.c): those who
 * read it read where they lay before. Tensors keep their numbers. */
const po_mu *gpu_without_copies(po_arena *arena, const po_mu *naive);
/* With labels cut in two where a value is read by more digits than it was written by, or the other
 * way round (digits.c), so that both go by the same. Tensors keep their numbers. */
const po_mu *gpu_with_digits(po_arena *arena, const po_mu *naive);
/* Whether the index is digits that make up the whole axis: 128 * a + b with b below 128. In digits'
 * order, largest first; n is 0 for an axis of length 1. */
bool gpu_digits_of(const po_mu *mu, const po_mu_index *i, int64_t dim, uint32_t *n,
                   po_mu_term digits[PO_MU_MAX_RANK]);
/* A muGraph with the same labels and tensors, and no steps; a statement with the same items. */
po_mu *gpu_same_tables(po_arena *arena, const po_mu *mu);
uint32_t gpu_same_statement(po_mu *to, uint32_t parent, const po_mu_statement *s,
                            const po_mu_access *in, po_mu_access out);
/* A scheduled muGraph in which tensors that are put together from pieces, and are only copied to
 * blocks, are copied from the pieces instead. */
const po_mu *gpu_read_pieces(po_arena *arena, const po_mu *mu);

/* Steps that follow one another, have the same loops and need nothing of one another, as one
 * (merge.c). merged: how many launches that saves. */
const po_mu *gpu_merge_steps(po_arena *arena, const po_mu *mu, const po_gpu *gpu, uint32_t *merged);

/* Appends all steps of a (scheduled) muGraph. twin: by tensor, `tensor` of `to`; what is PO_NONE is
 * copied. */
void gpu_append(po_arena *arena, po_mu *to, const po_mu *from, const gpu_twin *twin);

/* Schedules a naive step as it is and appends it; twin as above, of the naive muGraph; changed
 * where a tensor is added. Its seconds. */
double gpu_append_step(po_arena *arena, po_mu *to, const po_mu *naive, uint32_t step,
                       const po_gpu *gpu, gpu_twin *twin);

#endif
