/* What the files of split share. */
#ifndef PO_SPLIT_PARTS_H
#define PO_SPLIT_PARTS_H

#include "split/split.h"

/* --- linear.c: which nodes may be in a subprogram --- */

typedef enum po_split_kind {
    PO_SPLIT_OTHER,  /* no indexed sum, a shape that is not static, no float, an unknown function of
                        something that is no weight */
    PO_SPLIT_LINEAR, /* moves, adds, scales */
    PO_SPLIT_COMPUTE /* a product with a sum over it: convolutions, matrix products */
} po_split_kind;

po_status po_split_kind_of(po_ctx *ctx, po_arena *arena, const po_graph *graph, const po_node *node,
                           po_split_kind *kind);
/* Whether a constant input of a linear node is a weight: its operator's sum is the same whatever it
 * holds. Other constants shape the operator. */
po_status po_split_is_weight(po_ctx *ctx, po_arena *arena, const po_graph *graph,
                             const po_node *node, uint32_t input, bool *weight);

/* --- clusters.c --- */

/* Every live node is in one cluster; between clusters there is no cycle. */
typedef struct po_clusters {
    const po_graph *graph;
    const po_node_id *order; /* live nodes in execution order */
    uint32_t n_order;
    uint32_t *of;        /* by node: the cluster's number, a node's of its own */
    uint32_t *next;      /* by node: the cluster's next, in no order; PO_NONE ends */
    uint32_t *rank;      /* by node: its place in the order */
    po_split_kind *kind; /* by node */
    uint32_t *first, *last, *size, *compute, *low, *high; /* by cluster: list, counts, ranks */
    uint32_t *seen, *stack, stamp;
} po_clusters;

po_status po_clusters_find(po_ctx *ctx, po_arena *arena, const po_graph *graph,
                           uint32_t most_operators, po_clusters **clusters);

/* --- check.c --- */

/* What split.h promises: PO_INTERNAL with what does not hold. */
po_status po_split_check(po_ctx *ctx, const po_graph *graph, const po_split *split);

#endif
