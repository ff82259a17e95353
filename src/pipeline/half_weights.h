/* Weights of half precision stay as small as they were. */
#ifndef PO_PIPELINE_HALF_WEIGHTS_H
#define PO_PIPELINE_HALF_WEIGHTS_H

#include "ir/graph.h"

/* Where a model in half precision is worked in float (postopt's law HALF), its weights are
 * constants in float, twice as large. Those whose every number is one of half precision are stored
 * so again, behind a Cast, which the runtime works once, when it loads the model. Small ones stay.
 */
po_status po_half_weights(po_ctx *ctx, po_graph *graph);

#endif
