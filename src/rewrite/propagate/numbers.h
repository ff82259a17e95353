/* A graph with numbers in the place of its open dims, to follow axes in: indexed sums want numbers.
 * The numbers are ones that lengths of a model hardly are, another for each name; what is seen of
 * them is asked of the names as well (po_same_along). */
#ifndef PO_REWRITE_NUMBERS_H
#define PO_REWRITE_NUMBERS_H

#include "ir/graph.h"

/* The same values and nodes, types inferred, to be freed by the caller. What contradicts itself
 * with such numbers, or depends on data, stays open. */
po_graph *po_with_numbers(po_ctx *ctx, const po_graph *graph);

#endif
