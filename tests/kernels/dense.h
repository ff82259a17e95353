/* The layers that the tests' own kernels are written for: Relu(Add(MatMul(x, w), b)). */
#ifndef TEST_KERNELS_DENSE_H
#define TEST_KERNELS_DENSE_H

#include "ir/function.h"

typedef struct dense {
    po_node_id nodes[3];
    po_value_id in[3], out[1]; /* x, w, b */
    int64_t d[3];              /* rows, inner length, columns */
    const char *name;          /* of the Relu */
} dense;

/* Whether a Relu ends one: matrices of static shapes, w and b constant, nothing between read
 * elsewhere. */
bool dense_at(const po_graph *g, po_node_id relu, dense *found);
/* Its nodes as a call of `name`, which lives as long as `layer`. */
po_outline dense_outline(const dense *layer, const char *name);

#endif
