/* Copying nodes from one graph to another: into functions, out of them, and into bodies. */
#ifndef PO_IR_COPY_H
#define PO_IR_COPY_H

#include "ir/graph.h"

typedef struct po_copying {
    po_ctx *ctx;
    const po_graph *from;
    po_graph *to;
    po_value_id *map;   /* by value of `from`: what it is in `to`; PO_NONE: nothing so far */
    const char *prefix; /* of names; NULL: none */
} po_copying;

/* Where nothing has been copied yet. */
po_value_id *po_copy_map(po_arena *arena, const po_graph *graph);

/* A constant of `from`, with its recipe. */
po_value_id po_copy_constant(po_copying *c, po_value_id v);

/* Its node, what it makes, and the constants that it reads, to the place of a node of `to`
 * (PO_NONE: to the end). PO_UNSUPPORTED where it holds a graph, or reads what has no place in the
 * map and is not constant. */
po_status po_copy_node(po_copying *c, const po_node *node, po_node_id place);

#endif
