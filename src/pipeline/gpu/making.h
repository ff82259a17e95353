/* What the parts of the kernel stage for target cuda share: forms of the model with plans for their
 * regions (variants.c), and which kernels each gets (choose.c). */
#ifndef PO_PIPELINE_CUDA_MAKING_H
#define PO_PIPELINE_CUDA_MAKING_H

#include "codegen/cuda/library.h"
#include "cost/roofline.h"
#include "pipeline/gpu/timing.h"
#include "superopt/gpu/plan.h"

/* What estimates must promise, of the nodes' own time: they may be off by so much. */
static const double cuda_worth_a_kernel = 0.98;

/* A form of the model with a plan for each region. By region: nodes, batched, which, why. */
typedef struct cuda_variant {
    const char *name;
    po_graph *graph;
    const po_graph *shapes; /* the same with static shapes: with the samples that are planned for */
    bool open;              /* its batch is */
    po_regions regions;
    po_gpu_region *plans;
    const bool **batched;     /* open: by INPUT number, whether it is one of each sample */
    double *nodes;            /* seconds of its nodes one by one, by NVIDIA's libraries */
    bool *timed;              /* its seconds were read, on a GPU or in its records */
    double *taken;            /* seconds of the kernel that was chosen, estimated or read */
    uint32_t *which;          /* the kernel, by its number in the pool */
    const char **why;         /* why it has none; NULL: it has one */
    double seconds;           /* of the whole by estimate, each region as the better of the two */
    double rest;              /* of that, outside regions */
    double read;              /* of the whole with its kernels, as one plan; 0: no reading */
    const po_cuda_plan *plan; /* that; NULL */
} cuda_variant;

/* A kernel that was printed. */
typedef struct cuda_made {
    po_cuda_kernel kernel;
    const char *why;         /* why it cannot be had; NULL */
    bool whole;              /* it has the images of all GPUs */
    const po_mu *naive, *mu; /* what its region computes, and how it does */
    bool valued;             /* their values were compared */
} cuda_made;

typedef struct cuda_making {
    const po_run *run;
    po_ctx *ctx;
    po_rates rates;
    const po_nvrtc *nvrtc;
    const po_object_store *images; /* NULL: none are kept */
    po_gpu_memo *memo;
    cuda_made **pool;
    uint32_t n, cap;
} cuda_making;

/* Why a region has no kernel, though it could. */
extern const char cuda_no_faster[], cuda_no_time[];

/* The regions of a form, planned. */
po_status cuda_plan_variant(cuda_making *m, const po_graph *from, const char *name,
                            cuda_variant *f);

/* Which kernels the form gets: by readings where there is a GPU or its records, and the shapes are
 * static; else by estimates. */
po_status cuda_choose_kernels(cuda_making *m, cuda_variant *f);

/* Images for all GPUs of the kernels that the form has; regions whose kernel has none lose it. */
po_status cuda_compile_chosen(cuda_making *m, cuda_variant *f);

/* The form as one plan with its kernels, and what it takes (plan, read); both stay empty where no
 * reading is to be had. */
po_status cuda_read_variant(cuda_making *m, cuda_variant *f);

#endif
