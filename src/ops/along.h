/* Which axes of its inputs a node's output goes along.
 *
 * A node keeps an axis where what lies at place i of it, whatever i, is made of place i along one
 * axis of some inputs, and of all of the others: the rows of a product, the tokens of a norm, the
 * heads of attention. What takes some places of the output only can then be taken of the inputs,
 * and the node does no more than that. Found by the node's indexed sum (ops/sem), by lengths where
 * the data stays as it is, else by what the registry says of the operator. */
#ifndef PO_OPS_ALONG_H
#define PO_OPS_ALONG_H

#include "ops/op.h"
#include "ops/sum/sum.h"

enum { PO_WHOLE = -1 };

/* Whether the node, of one output, keeps this axis of it; by input, the axis that goes along, or
 * PO_WHOLE. Types of the graph must be static: PO_UNSUPPORTED (not recorded) where one that matters
 * is not, and where the axis is not kept. */
po_status po_kept_along(po_ctx *ctx, po_arena *arena, const po_graph *graph, const po_node *node,
                        uint32_t axis, int8_t *in);

/* Whether that holds whatever the numbers are that stood for open dims: in the graph that has the
 * names the output is known to be as long along the axis as the inputs that go along, and
 * element-wise operands that do not are known to have one place there. */
bool po_same_along(const po_graph *open, const po_node *node, uint32_t axis, const int8_t *in);

/* --- of a term of a sum --- */

/* What the output's axis counts by reaches all of it. */
bool po_term_covers(const po_sum *sum, const po_term *t, uint32_t axis);
/* Whether axis `own` of a factor counts as the output's axis does. */
bool po_term_follows(const po_term *t, const po_index *at, uint32_t own, uint32_t axis);
/* Whether an index moves, on an axis but this, with what the output's axis counts by. */
bool po_term_moves(const po_term *t, const po_index *at, uint32_t but, uint32_t axis);

#endif
