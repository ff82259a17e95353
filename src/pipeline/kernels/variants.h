/* Which form of the model kernels are made of: linear identities save work in ways that depend on
 * what a kernel costs, not on what one runtime likes. */
#ifndef PO_PIPELINE_KERNEL_VARIANTS_H
#define PO_PIPELINE_KERNEL_VARIANTS_H

#include "pipeline/kernels/open_sizes.h"
#include "pipeline/search/search.h"
#include "superopt/plan/plan.h"

/* A form of the model, planned. */
typedef struct po_kernel_variant {
    const po_graph *graph; /* static: where the model's batch is open, with one sample */
    po_graph *open;        /* the same as it is delivered, its batch open; NULL: graph */
    const int8_t *axis;    /* with it: by value, the axis of its samples (ops/samples.h); NULL where
                              no batch is open */
    const po_open_sizes *sizes; /* where more is open than the batch; NULL */
    po_regions regions;
    po_plan *plans;
    const po_mu_open **programs;   /* by region; NULL where the plan has `failed` */
    po_kernel_ports *ports;        /* likewise */
    const po_kernel_small **small; /* by region: what runs where it is small; NULL: the same */
    uint32_t outside;              /* nodes without a kernel */
    uint32_t unread;               /* steps that time was not enough to read */
    double seconds;                /* of all steps: read, or else estimated */
    double
        magnifies; /* what its families and schedules make of rounding, at most; 1: the plain way */
    const char *name;
    bool mutants; /* it has some */
} po_kernel_variant;

/* Plans the model with its affine maps folded, with the mutants of the search, which is told what
 * was judged (NULL: without). like: where `graph` has PO_SAMPLES samples, the model with its batch
 * open; NULL: it is as it is. Further forms, by families of postopt's identities
 * (po_algebra), are estimated, and the most promising planned too. The fastest is returned; its
 * regions and plans lie in the arena, the graph is held by the run. */
po_status po_kernel_variants(const po_run *run, const po_graph *graph, const po_graph *like,
                             po_search *search, po_arena *arena, const po_plan_options *options,
                             po_kernel_variant *best);

/* mutants.c: the model with mutants that are estimated to be faster as kernels, each of
 * which agrees in every element with what it stands for; NULL: there are none. `whole`: seconds of
 * the model as kernels. */
po_status po_kernel_mutants(const po_run *run, po_search *search, const po_plan_options *options,
                            double whole, const po_graph **mutated);

#endif
