/* Models before IR version 4. */
#ifndef PO_PIPELINE_OLD_IR_H
#define PO_PIPELINE_OLD_IR_H

#include "ir/graph.h"

/* Before IR version 4 every initialiser had to be listed as an input. New inputs would change the
 * model's interface, so constants that are not inputs become Constant nodes. Other models are left
 * as they are. */
void po_old_ir_constants(po_ctx *ctx, po_graph *graph);

/* A copy in which initialisers are no inputs: what such a model is where it is written as one of a
 * later version, as functions demand. */
po_graph *po_old_ir_freed(po_ctx *ctx, const po_graph *graph);

bool po_old_ir_is(const po_graph *graph);

#endif
