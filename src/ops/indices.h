/* Integers that follow from their places, whatever the lengths of open dims are: positions of
 * tokens, numbers of samples. Exporters write masks by them: mask[sample, position] as GatherND or
 * Gather, position >= 0 as a condition. */
#ifndef PO_OPS_INDICES_H
#define PO_OPS_INDICES_H

#include "ir/graph.h"

/* base + the sum over axes of step times place, each at least 0 for every length. */
typedef struct po_index_form {
    uint32_t rank;
    po_dim base, step[PO_MAX_RANK];
} po_index_form;

/* Whether the elements of an integer tensor are so; *form then. */
bool po_index_form_of(po_arena *arena, const po_graph *graph, po_value_id value,
                      po_index_form *form);

/* Whether they are one number, whatever the lengths. */
bool po_index_uniform(po_arena *arena, const po_graph *graph, po_value_id value, int64_t *number);

typedef enum po_truth { PO_TRUTH_UNKNOWN, PO_TRUTH_FALSE, PO_TRUTH_TRUE } po_truth;
/* Whether a condition is the same for all elements, whatever the lengths. */
po_truth po_truth_of(po_arena *arena, const po_graph *graph, po_value_id value);
/* Whether what a comparison says of each element is the same for all lengths. */
bool po_condition_told(po_arena *arena, const po_graph *graph, const po_node *node);

/* Whether a Gather or GatherND takes every element of its first input once, in order: it only gives
 * them another shape. */
bool po_takes_in_order(po_arena *arena, const po_graph *graph, const po_node *node);

#endif
