/* How long printed kernels (codegen/cpu/kernel.h) run. */
#ifndef PO_COST_KERNELS_H
#define PO_COST_KERNELS_H

#include "codegen/cpu/kernel.h"

/* A kernel that is loaded, for a look at what it computes. */
typedef struct po_loaded_kernel {
    const po_mu *mu;
    float *device;
    const int64_t *places; /* po_codegen_places */
    void *self;
    void (*run)(void *self, const float *const *weights);
} po_loaded_kernel;

/* Fills inputs, runs, compares; in the child. NULL, or what is wrong; po_check_no_time where that
 * could not be found in time. Rings are filled already. */
extern const char po_check_no_time[];
typedef const char *(*po_check_kernel_fn)(po_ctx *ctx, po_arena *arena, void *user,
                                          const po_loaded_kernel *kernel);

typedef struct po_timed_kernel {
    const po_mu *mu; /* DEVICE and WEIGHT tensors only: what a step reads lies in DEVICE ones */
    po_check_kernel_fn check; /* before it is timed; may be NULL */
    void *user;
    int64_t spread; /* bytes that a model runs through from one call of this to the next: each run
                       has other memory until so much is used. 0: the same */
    double seconds; /* of a run on one thread; 0: it could not be timed; -1: it computes something
                       else */
} po_timed_kernel;

/* Bytes that copies of a kernel's weights come to at most, so that no run finds the last one's in
 * cache. */
enum { PO_KERNELS_COLD = 48 << 20 };

/* Whether this processor runs code for it. */
bool po_isa_runs(uint32_t isa);
/* The first from `isa` on, the best first, that this processor runs; PO_ISAS or more: none does. */
uint32_t po_isa_from(uint32_t isa);
/* The instruction set of this machine that kernels are timed with; PO_ISAS: none of them. */
uint32_t po_isa_of_machine(void);

/* Of the keys of readings: raised whenever printing or timing of kernels changes. */
enum { PO_KERNEL_READING = 28 };

/* Prints, compiles and times, in a temporary folder and a process of its own. Weights are read from
 * memory as in a model, not from cache: each run has a copy of its own. What cannot be printed or
 * compiled has 0 seconds. PO_UNSUPPORTED where there is no compiler. `cc` as for po_cc_library.
 * Where it fails on the way (PO_TIME_LIMIT, PO_RUNTIME) what was read by then has its seconds. */
po_status po_time_kernels(po_ctx *ctx, const char *cc, uint32_t isa, po_timed_kernel *kernels,
                          uint32_t n);

#endif
