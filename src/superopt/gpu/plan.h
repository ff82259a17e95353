/* Plans for NVIDIA GPUs (docs/gpu-schedules.md): a region as muGraphs in which a step is a kernel,
 * ready for po_codegen_cuda. */
#ifndef PO_SUPEROPT_GPU_PLAN_H
#define PO_SUPEROPT_GPU_PLAN_H

#include "cost/cuda/gpu.h"
#include "superopt/lower/lower.h"

/* What was planned in a run: regions of the same form are planned once. It keeps what it was given
 * in the arenas of the calls, so it lives no longer than these. */
typedef struct po_gpu_memo po_gpu_memo;
po_gpu_memo *po_gpu_memo_create(po_arena *arena);

typedef struct po_gpu_options {
    bool exact;        /* nothing that rounds otherwise than the steps */
    bool tf32;         /* products of f32 on tensor cores */
    uint32_t keep;     /* candidates at most; 0: 12 */
    po_gpu_memo *memo; /* may be NULL */
} po_gpu_options;

typedef struct po_gpu_candidate {
    const po_mu *mu; /* INPUT, OUTPUT and WEIGHT numbers are the naive one's, weights as they are */
    double seconds;  /* estimate */
    const char *what; /* for people: programs and loops */
    bool searched;    /* some step of it is none of the naive one's */
} po_gpu_candidate;

/* Schedules of a naive muGraph, the best by estimate first; at least one. What the search
 * (search.h) reads is searched for and checked there; other steps stay as they are, each a kernel
 * with a grid over what it keeps. PO_UNSUPPORTED: a step that no block can hold. */
po_status po_gpu_plan(po_ctx *ctx, po_arena *arena, const po_mu *naive, const po_gpu *gpu,
                      const po_gpu_options *options, po_gpu_candidate **candidates, uint32_t *n);

/* Seconds that no program can beat: FLOPs at the GPU's peak, or bytes of what goes in and out, each
 * once, at its memory's rate. */
double po_gpu_bound(const po_mu *naive, const po_gpu *gpu, bool tf32);

/* A region of a model. */
typedef struct po_gpu_region {
    const po_region *region;
    po_lowered lowered; /* the naive muGraph */
    const po_gpu_candidate *candidates;
    uint32_t n;
    const char *failed; /* why there is none; NULL: there is one */
} po_gpu_region;

/* For po_regions_find: what gains nothing over a library (convolutions, products of many rows with
 * a weight) stays outside. `user`: the context (po_ctx *). */
po_region_part po_gpu_part(void *user, const po_graph *graph, const po_node *node);

/* Fails only for what stops the run. */
po_status po_gpu_plan_region(po_ctx *ctx, po_arena *arena, const po_graph *graph,
                             const po_region *region, const char *name, const po_gpu *gpu,
                             const po_gpu_options *options, po_gpu_region *plan);

#endif
