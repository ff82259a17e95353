/* How long printed kernels (codegen/kernel.h) run. */
#ifndef PO_COST_KERNELS_H
#define PO_COST_KERNELS_H

#include "codegen/kernel.h"

typedef struct po_timed_kernel {
    const po_mu *mu; /* DEVICE and WEIGHT tensors only: what a step reads lies in DEVICE ones */
    double seconds;  /* of a run on one thread; 0: it could not be timed */
} po_timed_kernel;

/* The instruction set of this machine that kernels are timed with; PO_ISAS: none of them. */
uint32_t po_isa_of_machine(void);

/* Prints, compiles and times, in a temporary folder and a process of its own. Weights are read from
 * memory as in a model, not from cache: each run has a copy of its own. What cannot be printed or
 * compiled has 0 seconds. PO_UNSUPPORTED where there is no compiler. `cc` as for po_cc_library. */
po_status po_time_kernels(po_ctx *ctx, po_arena *arena, const char *cc, uint32_t isa,
                          po_timed_kernel *kernels, uint32_t n);

#endif
