/* Runs printed CUDA C in the emulator and compares what comes out, element by element, with the
 * muGraph's evaluation in float64. */
#ifndef TEST_CUDA_CUDA_CHECK_H
#define TEST_CUDA_CUDA_CHECK_H

#include "codegen/cuda/cuda.h"
#include "codegen/cuda/nvrtc.h"

typedef struct cuda_case {
    const char *name;
    const po_mu *mu;
    const po_mu *naive; /* what it is compared with, same numbers of ports; NULL: itself */
    po_cuda_print_options options;
    const double *const *weights; /* by number; NULL: random ones */
    double scale;                 /* of random inputs and weights; 0: 1 */
    /* Changes the kernels' text (without the prelude); NULL: no change. Returns NULL where there is
     * nothing to change. */
    const char *(*edit)(po_arena *arena, const char *text, int which);
    int which;
    /* what came out */
    const char *unsupported; /* the printer's reason */
    const char *failed;      /* a fault, or a wrong element; NULL: all is well */
    bool edited;
    int64_t loose, lost; /* elements whose bound says nothing; of them, those that are far off */
    double far;          /* greatest error of those, in parts of the output's largest value */
    double worst;        /* greatest error in u S(v), u of the coarsest type that is stored */
    int64_t elements, skipped; /* compared; of infinities, and what may leave the range of floats */
    uint32_t launches;
} cuda_case;

enum { CUDA_LIMIT = 16 /* u S(v) that pass */ };

/* Opens the emulated driver, for this process. */
void cuda_check_start(void);
/* The emulated NVRTC. */
po_nvrtc *cuda_check_nvrtc(po_ctx *ctx, po_arena *arena);
/* Prints all, compiles them as one text, runs each under two orders of warps. */
void cuda_check(po_ctx *ctx, po_arena *arena, const po_nvrtc *nvrtc, cuda_case *cases, uint32_t n);
/* A copy in which all tensors but tables have a type. */
po_mu *cuda_check_typed(po_ctx *ctx, po_arena *arena, const po_mu *mu, po_mu_type type);
/* Prints how many, and fails the program where a case failed. */
int cuda_check_report(const cuda_case *cases, uint32_t n, uint32_t most_unsupported);

#endif
