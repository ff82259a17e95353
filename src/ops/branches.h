/* A model that takes one of two forms by how long its inputs are: an If around both. Each branch
 * holds weights of its own, since runtimes lay out only those of the graph that a node is in. */
#ifndef PO_OPS_BRANCHES_H
#define PO_OPS_BRANCHES_H

#include "ops/op.h"

/* That a dim of an input has this length, or is a multiple of it. */
typedef struct po_length_is {
    const char *input;
    uint32_t axis;
    int64_t length; /* above 0 */
    bool multiple;
} po_length_is;

/* The first operator set in which multiples can be told. */
enum { PO_MULTIPLES_OPSET = 10 };

static inline bool po_length_holds(const po_length_is *is, int64_t length) {
    return is->multiple ? length >= 0 && length % is->length == 0 : length == is->length;
}

/* What takes the form `then` where all of these hold, and `otherwise` elsewhere. Both have the same
 * inputs and outputs by name; the types are those of `otherwise`. PO_UNSUPPORTED where a node of
 * theirs holds a graph, or an output is no node's. The caller's. */
po_status po_branches_make(po_ctx *ctx, const po_graph *then, const po_graph *otherwise,
                           const po_length_is *lengths, uint32_t n, po_graph **out);

/* How a graph chooses. */
typedef struct po_branches {
    const po_node *node; /* the If */
    const po_length_is *lengths;
    uint32_t n;
} po_branches;

/* Whether all that the graph gives is made by one If, on lengths of its inputs alone. */
bool po_branches_find(po_arena *arena, const po_graph *graph, po_branches *found);

/* The branch as a graph of its own, with the inputs and outputs of the whole; what it holds keeps
 * its names. Types are inferred. The caller's. */
po_status po_branches_take(po_ctx *ctx, const po_graph *graph, const po_branches *branches,
                           bool then, po_graph **out);

/* A copy with inputs of these lengths, types inferred anew. What is a multiple is so many times a
 * new name, so that nothing else is known to be as long. */
po_graph *po_branches_pin(po_ctx *ctx, const po_graph *graph, const po_branches *branches);

#endif
