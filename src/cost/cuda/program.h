/* Programs printed from muGraphs, on a GPU: whether they compute what the muGraph says, and how
 * long they take. */
#ifndef PO_COST_CUDA_PROGRAM_H
#define PO_COST_CUDA_PROGRAM_H

#include "cost/cuda/run.h"

/* One of several programs of the same interface: inputs, weights and outputs have the same numbers,
 * shapes and types in all of them. */
typedef struct po_cuda_candidate {
    const po_mu *mu; /* that was printed; INPUT, WEIGHT and OUTPUT tensors dense, row-major */
    const po_cuda_program *program;
    const po_cuda_image *image; /* for the GPU at hand */
    bool tf32;                  /* products of f32 may round their factors */
    double seconds;             /* of one call; 0: it did not run; -1: it computes something else */
    double worst;               /* largest error in u S(v) */
    const char *why;            /* 0, -1: in one sentence, in the arena */
} po_cuda_candidate;

typedef struct po_cuda_trial {
    const po_cuda_options *options;
    const po_mu *meaning; /* what they are to compute; NULL: what the first candidate's mu says */
    double k;             /* largest error in u S(v); 0: 16 */
    bool check;           /* compare with float64 before it is timed */
    bool time;
    bool cold; /* the L2 is flushed before each call */
    uint64_t seed;
} po_cuda_trial;

/* Runs all of them, in children: one that takes the driver down costs the others nothing. Random
 * inputs and weights, by the seed. PO_RUNTIME: no GPU. */
po_status po_cuda_try(po_ctx *ctx, po_arena *arena, const po_cuda_trial *trial,
                      po_cuda_candidate *candidates, uint32_t n);

#endif
