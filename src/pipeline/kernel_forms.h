/* Which form of the model kernels are made of: linear identities save work in ways that depend on
 * what a kernel costs, not on what one runtime likes. */
#ifndef PO_PIPELINE_KERNEL_FORMS_H
#define PO_PIPELINE_KERNEL_FORMS_H

#include "pipeline/pipeline.h"
#include "superopt/plan.h"

/* A form of the model, planned. */
typedef struct po_kernel_form {
    po_graph *graph;
    po_regions regions;
    po_plan *plans;
    uint32_t outside; /* nodes without a kernel */
    double seconds;   /* of all steps: read, or else estimated */
    const char *name;
} po_kernel_form;

/* Plans the model with its affine maps folded; further forms, by families of postopt's identities
 * (po_algebra), are estimated, and the most promising planned too. The fastest is returned. */
po_status po_kernel_forms(po_run_state *state, const po_plan_options *options,
                          po_kernel_form *best);

#endif
