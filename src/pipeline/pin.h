/* --input-shape: dims of inputs made fixed, and their symbols with them. */
#ifndef PO_PIPELINE_PIN_H
#define PO_PIPELINE_PIN_H

#include "ir/graph.h"
#include "pipeline/options.h"

/* Returns a copy with these dims pinned, operators resolved, types inferred, and the bodies of
 * calls that kernels stand for in their place. PO_BAD_USE: no such input, or a dim that has another
 * length already. */
po_status po_pin_inputs(po_ctx *ctx, const po_graph *graph, const po_pin *pins, uint32_t n_pins,
                        po_graph **pinned);

#endif
