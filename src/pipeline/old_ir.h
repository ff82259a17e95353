/* Models before IR version 4. */
#ifndef PO_PIPELINE_OLD_IR_H
#define PO_PIPELINE_OLD_IR_H

#include "ir/graph.h"

/* Before IR version 4 every initialiser had to be listed as an input. New inputs would change the
 * model's interface, so constants that are not inputs become Constant nodes. Other models are left
 * as they are. */
void po_old_ir_constants(po_ctx *ctx, po_graph *graph);

/* Whether the model is such a one. */
bool po_old_ir_is(const po_graph *graph);

#endif
