/* Which form of the model kernels are made of: linear identities save work in ways that depend on
 * what a kernel costs, not on what one runtime likes. */
#ifndef PO_PIPELINE_KERNEL_VARIANTS_H
#define PO_PIPELINE_KERNEL_VARIANTS_H

#include "codegen/delivery/library.h"
#include "pipeline/kernels/open_sizes.h"
#include "pipeline/search/search.h"
#include "superopt/plan/plan.h"

/* A form of the model, planned. */
typedef struct po_kernel_variant {
    const po_graph *graph; /* static: where the model's batch is open, with one sample */
    const po_graph *open;  /* the same as it is delivered, its batch open; NULL: graph */
    const int8_t *axis;    /* with it: by value, the axis of its samples (ops/samples.h); NULL where
                              no batch is open */
    po_open_sizes *sizes;  /* where more is open than the batch; NULL */
    po_regions regions;
    const po_regions *there; /* the same in `open`, which is then another form (one_sample.h); NULL:
                                by the same numbers */
    po_plan *plans;
    const po_mu_open **programs;       /* by region; NULL where the plan has `failed` */
    po_kernel_ports *ports;            /* likewise */
    po_kernel_others *others;          /* by region: what runs at some sizes */
    const po_kernel_batched **batched; /* by region: several samples at once; NULL: one by one */
    uint32_t outside;                  /* nodes without a kernel */
    uint32_t unread;                   /* steps that time was not enough to read */
    double seconds;                    /* of all steps: read, or else estimated */
    double
        magnifies; /* what its families and schedules make of rounding, at most; 1: the plain way */
    const char *name;
    bool mutants; /* it has some */
} po_kernel_variant;

/* What kernels are made of. */
typedef struct po_kernel_source {
    const po_graph *original; /* as imported */
    const po_graph *graph;    /* as simplified */
    const po_graph *like; /* where that has PO_SAMPLES samples: the model with its batch open; NULL:
                             it is as it is */
    po_search *search;    /* its mutants take part, and it is told what was judged; NULL */
} po_kernel_source;

/* Plans the model with its affine maps folded. Further forms, by families of postopt's identities
 * (po_algebra), are estimated, and the most promising planned too. The fastest is returned; its
 * regions and plans lie in the arena, the graph is held by the run. */
po_status po_kernel_variants(const po_run *run, const po_kernel_source *source, po_arena *arena,
                             const po_plan_options *options, po_kernel_variant *best);

/* batched.c: how several samples are worked at once, in regions that are called for each of them
 * and gain by it; weights are read as they are. samples: of its lengths, as the form's sizes. */
po_status po_kernel_batch(const po_run *run, po_arena *arena, const po_plan_options *options,
                          const po_open_samples *samples, po_kernel_variant *form);

/* mutants.c: the model with mutants that are estimated to be faster as kernels, each of
 * which agrees in every element with what it stands for; NULL: there are none. `whole`: seconds of
 * the model as kernels. */
po_status po_kernel_mutants(const po_run *run, po_search *search, const po_plan_options *options,
                            double whole, const po_graph **mutated);

#endif
