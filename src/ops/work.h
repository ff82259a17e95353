/* What a node has to compute, from its indexed sum: work that needs no list of operators. */
#ifndef PO_OPS_WORK_H
#define PO_OPS_WORK_H

#include "ops/sum/sum.h"

#include "ops/op.h"

typedef struct po_work {
    double flops;       /* multiplications and additions; 2 for each step of a product */
    bool product;       /* of two inputs, and this is their shape */
    po_sum_shape shape; /* as matrices */
} po_work;

/* What the node adds up, by the types of the graph: its sum's figures, those of the float operator
 * for an integer product, and an estimate by the counts of elements for a product without a sum.
 * False where it adds up nothing, and where a shape is not known. */
bool po_work_of(const po_graph *graph, const po_node *node, po_work *work);

/* An integer product as the float one of its inputs 0 and *second, which has a sum, with the same
 * attributes. False for every other node (qlinear.c). */
bool po_float_product(const po_node *node, po_node *plain, uint32_t *second);

#endif
