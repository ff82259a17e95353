/* How scheduled parts are put together again (step.c, merge.c, pieces.c). */
#ifndef PO_SUPEROPT_GPU_JOIN_H
#define PO_SUPEROPT_GPU_JOIN_H

#include "superopt/gpu/plan.h"
#include "superopt/part/part.h"

/* A scheduled muGraph in which tensors that are put together from pieces, and are only copied to
 * blocks, are copied from the pieces instead. */
const po_mu *gpu_read_pieces(po_arena *arena, const po_mu *mu);

/* Steps that follow one another, have the same loops and need nothing of one another, as one
 * (merge.c). merged: how many launches that saves. */
const po_mu *gpu_merge_steps(po_arena *arena, const po_mu *mu, const po_gpu *gpu, uint32_t *merged);

/* Schedules a naive step as it is and appends it; twin as above, of the naive muGraph; changed
 * where a tensor is added. Its seconds. */
double gpu_append_step(po_arena *arena, po_mu *to, const po_mu *naive, uint32_t step,
                       const po_gpu *gpu, po_mu_view *twin);

#endif
