/* Takes the readings that cost.c keeps, in children. */
#ifndef PO_COST_CUDA_READING_H
#define PO_COST_CUDA_READING_H

#include "cost/cuda/run.h"

/* Seconds of one run; 0: there is no reading, and `why` says so in a sentence. */
typedef struct po_cuda_reading {
    double seconds;
    char why[400];
} po_cuda_reading;

/* Of the steps of a plan that `which` numbers, n of them, each by itself (cost.h). PO_RUNTIME:
 * no GPU, or a step took the process down. */
po_status po_cuda_read_steps(po_ctx *ctx, po_arena *arena, const po_cuda_options *options,
                             const po_cuda_plan *plan, const uint32_t *which, uint32_t n,
                             po_cuda_reading *readings);
/* Of the plans that `which` numbers, as graphs. One that takes the process down costs the others
 * nothing; readings are zero before. PO_RUNTIME: no GPU. */
po_status po_cuda_read_plans(po_ctx *ctx, po_arena *arena, const po_cuda_options *options,
                             const po_cuda_plan *const *plans, const uint32_t *which, uint32_t n,
                             po_cuda_reading *readings);

#endif
