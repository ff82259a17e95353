/* Constants of many graphs, each kept once. Forms of one model have most weights in common, and
 * what a form went through on its way is not needed any more: of the OCR detector, thirteen forms
 * held 111 MB, of which 9 are different and in use. */
#ifndef PO_OPS_SHARE_H
#define PO_OPS_SHARE_H

#include "ops/op.h"

typedef struct po_shared po_shared;
/* Graphs that were shared refer to the arena's memory. */
po_shared *po_shared_create(po_arena *arena);

/* Lets the large constants that the graph's arena holds rest on equal ones of earlier graphs, or on
 * a copy for later ones, and frees the arena's own. Constants that nothing reads are dropped.
 * Nothing else may refer to the bytes of the graph's tensors. */
void po_share_constants(po_shared *shared, po_graph *graph);

#endif
