/* Which elements of a value show in the graph's outputs: the masks, and the part that goes by
 * indexed sums. */
#ifndef PO_VERIFY_PROOF_OBSERVABILITY_H
#define PO_VERIFY_PROOF_OBSERVABILITY_H

#include "verify/proof/internal.h"

/* What walking the iterations of one node may take, and the elements of one mask. */
#define PO_OBSERVABLE_STEPS 5e8
enum { PO_OBSERVABLE_ELEMENTS = 1 << 26 };

typedef struct po_observable {
    po_ctx *ctx;
    po_arena *arena;
    const po_graph *graph;
    bool **mask; /* by value: of its elements; NULL: none so far */
} po_observable;

/* Elements of a value of known shape that are not too many, else -1. */
int64_t po_observable_count(const po_observable *s, po_value_id value);
/* The mask of a value that carries what may show; NULL for constants, integers, unknown shapes. */
bool *po_observable_mask(const po_observable *s, po_value_id value);
/* Whether every element of the value is known to show. */
bool po_observable_all(const po_observable *s, po_value_id value);

/* What shows through a node with an indexed sum. PO_UNSUPPORTED: it has none. */
po_status po_observable_by_sum(po_observable *s, const po_node *node);

#endif
