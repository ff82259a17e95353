/* What steps and whole plans take on a GPU: timed there once, recorded in the cost cache under the
 * GPU's name and the libraries' versions, and known from then on, without a GPU too
 * (docs/cuda-cost.md).
 *
 * A step is timed by itself: as often as the events need, in a captured graph, behind itself. What
 * the plan brings data for (weights) is read from copies that take turns, as many as the L2 does
 * not hold, since in a model other weights were read in the meantime; what steps hand to one
 * another is where the step before left it. */
#ifndef PO_COST_CUDA_COST_H
#define PO_COST_CUDA_COST_H

#include "cost/cache.h"
#include "cost/cuda/program.h"

typedef struct po_cuda_cost {
    po_cuda_options options;
    po_cuda_info info; /* of the GPU that is measured, or that was */
    po_cache *cache;
    const char *replay;          /* the file that all is taken from; NULL: a GPU answers */
    uint32_t measured, recalled; /* readings so far */
} po_cuda_cost;

/* With a GPU, of which info is what po_cuda_query found by the same options: its readings are
 * looked for in the cache, and kept there. PO_RUNTIME where there is none: the sentence says why.
 */
po_status po_cuda_cost_open(po_ctx *ctx, po_arena *arena, const po_cuda_options *options,
                            const po_cuda_info *info, po_cache *cache, po_cuda_cost **cost);
/* Without one: by what the file has recorded, which is never written to. PO_BAD_USE where it is no
 * cost cache or has no readings of a GPU. */
po_status po_cuda_cost_replay(po_ctx *ctx, po_arena *arena, const char *path, po_cuda_cost **cost);

/* Seconds of each step of a plan. Equal steps are timed once. Images may be missing in a replay.
 * PO_UNSUPPORTED: a library has no algorithm for a step, or the file has no record of it; the
 * sentence names step and shapes. */
po_status po_cuda_cost_steps(po_ctx *ctx, po_cuda_cost *cost, const po_cuda_plan *plan,
                             double *seconds);
/* Seconds of whole plans as graphs, one after the other in one process; 0 where there is no
 * reading, and the reason in why[i], in the arena. PO_RUNTIME: no GPU. */
po_status po_cuda_cost_plans(po_ctx *ctx, po_arena *arena, po_cuda_cost *cost,
                             const po_cuda_plan *const *plans, uint32_t n, double *seconds,
                             const char **why);
/* Seconds of one; as po_cuda_cost_steps. */
po_status po_cuda_cost_plan(po_ctx *ctx, po_cuda_cost *cost, const po_cuda_plan *plan,
                            double *seconds);

/* Two plans side by side (po_cuda_time), recorded too: timing of the second. PO_UNSUPPORTED: the
 * file has no record. */
po_status po_cuda_cost_compare(po_ctx *ctx, po_cuda_cost *cost, const po_cuda_plan *before,
                               const po_cuda_plan *after, po_timing *timing);

/* po_cuda_try (cost/cuda/program.h) with its readings kept: a program that was tried is not tried
 * again. In a replay one without a reading has 0 seconds, and says so. trial->options are the
 * cost's. */
po_status po_cuda_cost_programs(po_ctx *ctx, po_arena *arena, po_cuda_cost *cost,
                                const po_cuda_trial *trial, po_cuda_candidate *candidates,
                                uint32_t n);

/* Hash of what a reading depends on: GPU, driver, libraries. For readings of other kinds. */
po_hash po_cuda_cost_key(const po_cuda_cost *cost);
/* What a step does, hashed: its places count only by what has data. */
po_hash po_cuda_step_hash(const po_cuda_plan *plan, const po_cuda_step *step);
/* "Conv 'stem', [1,48,38,38] by [64,48,5,5] in f32". */
const char *po_cuda_step_text(po_arena *arena, const po_cuda_step *step);

#endif
