/* A compiled step against the float64 value of its naive statement, at every element. */
#ifndef PO_SUPEROPT_CHECK_H
#define PO_SUPEROPT_CHECK_H

#include "cost/kernels.h"
#include "superopt/schedule/schedule.h"

typedef struct po_step_values po_step_values;

typedef struct po_standalone_step {
    const po_mu *naive,
        *original;          /* what is compared with; the muGraph that it is, or was made of */
    uint32_t step, n_steps; /* of it: this one, and so many in all that follow */
    const uint32_t *tensor; /* by naive tensor: that of the muGraph that was compiled, PO_NONE */
    const po_packed *packed;
    uint32_t n_packed;
    bool exact; /* the same products and sums, in another order at most */
    double k;   /* largest error, in u * S(v) (docs/superopt.md) */
    /* The float64 values of the step that was looked at last, NULL at first: choices of one step
     * come one after the other. In the process that looks. */
    po_step_values **last;
} po_standalone_step;

/* po_check_kernel_fn, `user` a po_standalone_step. Twice: random inputs and weights; and inputs
 * with rows of zeros, of denormals, of large numbers, of one large number and, where nothing can
 * make more of them than floats hold, of the lowest float. All elements of the output are compared
 * with what the naive statement says in float64, by the sum of absolute values S; what the
 * statement does not write must be as it was. */
const char *po_check_step(po_ctx *ctx, po_arena *arena, void *user, const po_loaded_kernel *kernel);

#endif
