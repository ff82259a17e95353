/* Raising the opset: the same model for a later version of the standard operators. Only what the
 * user asks for with --opset; the optimiser never raises it by itself. */
#ifndef PO_SIMPLIFY_OPSET_H
#define PO_SIMPLIFY_OPSET_H

#include "ops/op.h"

enum { PO_OPSET_LEAST = 6, PO_OPSET_MOST = 24 }; /* versions that can be raised from and to */

/* The rules, one for each operator that a version changed. */
uint32_t po_raise_rules(void);
const char *po_raise_rule_name(uint32_t rule); /* NULL: one that refuses */

/* Returns a copy of the graph, bodies included, written for a later opset of the standard domain;
 * it belongs to a copy of the model that says so. Other domains stay, and the IR
 * version but that 3 becomes 4 from opset 9 on; initialisers are then no inputs any more.
 * PO_BAD_USE with the node's name and the reason where an operator cannot be written for it, where
 * the opset is lower than the model's, or outside the versions above. `fired` (may be NULL) has a
 * count for each rule. */
po_status po_raise_opset(po_ctx *ctx, const po_graph *in, int64_t opset, po_graph **out,
                         uint32_t *fired);

#endif
