/* Taking part of a network over to another layout: frames for three-dimensional maps, planes for
 * one-dimensional ones. Operators are converted in execution order; each value then has a twin in
 * the new layout, made where it is first asked for, and what still reads a converted value in the
 * old layout gets it brought back at the end. */
#ifndef PO_REWRITE_LAYOUT_RELAYOUT_H
#define PO_REWRITE_LAYOUT_RELAYOUT_H

#include "rewrite/passes.h"

typedef struct po_relayout po_relayout;
struct po_relayout {
    po_graph *graph;
    po_arena *arena;
    po_rewriting *state;
    uint32_t rank;     /* of the values concerned, in the old layout */
    po_value_id *twin; /* of each value that the graph had at first; PO_NONE */
    bool *converted;   /* the twin was made in the new layout, and not brought there */
    uint32_t n;
    po_node_id *done; /* converted nodes, in order */
    uint32_t n_done, cap_done;
    /* The value in the other layout, and its twin in the old one, of its type; nodes go beside
     * `place`. */
    po_value_id (*enter)(po_relayout *r, po_node_id place, po_value_id old);
    po_value_id (*leave)(po_relayout *r, po_node_id place, po_value_id old, const po_type *type);
    /* Of a constant operand with one number a channel, beside x: how many axes lie behind the
     * channels in the new layout; -1 where it is none. NULL: there are no such operands. */
    int (*behind_channels)(const po_relayout *r, po_value_id constant, po_value_id x);
};

bool po_relayout_has(const po_relayout *r, po_value_id old);
po_value_id po_relayout_twin(po_relayout *r, po_node_id place, po_value_id old);
/* Notes that the node's output has a twin now. */
void po_relayout_set(po_relayout *r, po_node_id node, po_value_id twin);
/* Converts a node that acts on each element, of inputs of its output's shape, of constant numbers
 * and of constants with one number a channel, where an input has a twin. */
bool po_relayout_elementwise(po_relayout *r, po_node_id node);
/* The node with the same attributes on other inputs; its output's type is not known. */
po_value_id po_relayout_copy(po_relayout *r, po_node_id node, const po_value_id *in, uint32_t n_in);

/* Unsqueeze or Squeeze, as the opset spells it. */
po_value_id po_relayout_axes(po_relayout *r, po_node_id place, po_value_id x, po_op_id op,
                             uint32_t n, const int64_t *axes, const po_type *type);

/* What converts nodes, tried in this order at each; PO_LAWS where it is counted otherwise, or not.
 */
typedef struct po_relayout_law {
    po_law_id law;
    bool (*convert)(po_relayout *r, po_node_id node);
} po_relayout_law;
/* Tries them on all nodes that make one value of what the graph has at first; then every remaining
 * reader of a converted value gets the value brought back. */
void po_relayout_graph(po_relayout *r, po_graph *graph, po_rewriting *state, uint32_t rank,
                       const po_relayout_law *laws, uint32_t n_laws);

#endif
