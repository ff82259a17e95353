/* A compiled step against the float64 value of its naive statement, element by element. */
#ifndef PO_SUPEROPT_CHECK_H
#define PO_SUPEROPT_CHECK_H

#include "cost/kernels.h"
#include "superopt/schedule.h"

typedef struct po_lone_step {
    const po_mu *naive;
    uint32_t step;
    const uint32_t *tensor; /* by naive tensor: that of the muGraph that was compiled, PO_NONE */
    const po_packed *packed;
    uint32_t n_packed;
    double k; /* largest error, in u * S(v) (DESIGN.md, correctness ladder 3) */
} po_lone_step;

/* po_check_kernel_fn, `user` a po_lone_step: random inputs and weights; all corners of the output
 * and random elements of it are computed in float64, as the naive statement says, with the sum of
 * absolute values S. */
const char *po_check_step(po_ctx *ctx, po_arena *arena, void *user, const po_loaded_kernel *kernel);

#endif
