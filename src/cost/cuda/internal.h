/* Between the parts of the executor, in the child. */
#ifndef PO_COST_CUDA_PRIVATE_H
#define PO_COST_CUDA_PRIVATE_H

#include "cost/cuda/run.h"

/* Work that can be put on the stream, in one of several ways. */
typedef struct po_cuda_work {
    const char *what;
    uint32_t n;      /* ways */
    uint32_t chosen; /* by po_cuda_tune */
    void *own;
    /* False where this way does not run here. */
    bool (*issue)(void *own, uint32_t way);
    double seconds; /* of the chosen way, by itself; 0: there was no choice */
} po_cuda_work;

/* Which way a step goes, as far as it is known: cuDNN takes its time over each plan, and so only
 * those are made that are needed. PO_NONE: not known. */
typedef struct po_cuda_known {
    uint32_t way;
    uint32_t rest; /* of a convolution's second graph, where it has one */
} po_cuda_known;

/* Each makes work of a step; memory: by buffer. Ways have the same numbers each time; where it is
 * known, only that one may be there, else all are and `known` says so. PO_UNSUPPORTED: no way. */
po_status po_cuda_matmul_work(po_ctx *ctx, po_cuda *cuda, po_arena *arena, const po_cuda_step *step,
                              const uint64_t *memory, po_cuda_work *work);
po_status po_cuda_conv_work(po_ctx *ctx, po_cuda *cuda, po_arena *arena, const po_cuda_step *step,
                            const uint64_t *memory, po_cuda_known *known, po_cuda_work *work);

/* Times the ways and chooses the fastest; PO_UNSUPPORTED where none runs. */
po_status po_cuda_tune(po_ctx *ctx, po_cuda *cuda, po_cuda_work *work);
/* What was chosen in this process for a step of this hash (po_cuda_step_hash). */
po_cuda_known po_cuda_recall_way(const po_cuda *cuda, po_hash step);
void po_cuda_keep_way(po_cuda *cuda, po_hash step, po_cuda_known known);

/* What all steps may use one after the other, of PO_CUDA_WORKSPACE bytes. */
enum { PO_CUDA_WORKSPACE = 64 << 20, PO_CUDA_MOST_WAYS = 48, PO_CUDA_MOST_PLANS = 24 };
po_status po_cuda_workspace(po_ctx *ctx, po_cuda *cuda, uint64_t *memory);

/* A plan that is ready to run. */
typedef struct po_cuda_ready {
    po_cuda *cuda;
    const po_cuda_plan *plan;
    uint64_t *memory; /* by buffer */
    po_cuda_work *work;
    void *exec; /* the captured graph; NULL before po_cuda_capture */
    size_t nodes;
} po_cuda_ready;

/* Memory, data, modules; algorithms: by step, those that are known (PO_NONE: not yet) are taken,
 * the others found and written there. NULL: all are found. */
po_status po_cuda_make_ready(po_ctx *ctx, po_cuda *cuda, po_arena *arena, const po_cuda_plan *plan,
                             uint32_t *ways, po_cuda_ready **ready);
/* All steps on the stream. */
po_status po_cuda_issue_all(po_ctx *ctx, po_cuda_ready *ready);
/* Captures `times` runs. */
po_status po_cuda_capture(po_ctx *ctx, po_arena *arena, po_cuda_ready *ready, uint32_t times);

/* Captures issue(own, way) `times` times; NULL where something in it cannot be captured. */
void *po_cuda_captured(po_cuda *cuda, bool (*issue)(void *own, uint32_t way), void *own,
                       uint32_t way, uint32_t times, size_t *nodes);
/* Seconds from before to after so many launches of a graph. Negative: it failed. */
double po_cuda_launch_seconds(po_cuda *cuda, void *exec, uint32_t launches);

#endif
