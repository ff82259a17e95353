/* Subprograms as the runtime will run them: with what stands around them in the model. */
#ifndef PO_PIPELINE_CONTEXT_H
#define PO_PIPELINE_CONTEXT_H

#include "postopt/postopt.h"
#include "split/split.h"

/* An occurrence with the activations before and after it, which the runtime fuses. Where a
 * convolution or a pool is the next beyond them, a depthwise 1x1 convolution stands for it, which
 * brings the runtime's blocked layout to the border at little cost. */
typedef struct po_context {
    po_graph *graph;            /* weights inside */
    po_occurrence at;           /* of the subprogram in that graph */
    bool *probe_in, *probe_out; /* by input and output of the graph */
} po_context;

po_status po_context_of(po_ctx *ctx, po_arena *arena, const po_graph *model,
                        const po_subprogram *sub, const po_occurrence *at, po_context *context);

/* The context with a mutant (NULL: the subprogram itself) in its place, through postopt as the
 * whole model will be (`options`). Numbers derived from weights are made up. The form shares what
 * the context and *with (NULL without a mutant) hold: both must outlive it. */
po_status po_context_variant(po_ctx *ctx, const po_context *context, const po_subprogram *sub,
                             const po_graph *mutant, const po_postopt_options *options,
                             po_graph **with, po_graph **form);

#endif
