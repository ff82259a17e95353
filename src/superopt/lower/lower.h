/* Lowering: the nodes of a region as naive statements of a muGraph.
 *
 * Every statement stands in a step of its own or is fused to the one before it: sums by the
 * operators' own indexed sums (ops/sem/sem.h), element-wise operators as expressions behind what
 * they read. Maps of convolutional networks lie channels last; what only moves data is an access
 * where it can be one. No loops, no tiles, no rings: that is the schedule's part. */
#ifndef PO_SUPEROPT_LOWER_H
#define PO_SUPEROPT_LOWER_H

#include "mugraph/mugraph.h"
#include "ops/op.h"
#include "superopt/regions.h"

typedef struct po_lowered {
    po_mu *mu;                  /* INPUT and OUTPUT numbers: those of the region's lists */
    const po_value_id *weights; /* by WEIGHT number: the constant; the tensor's dims are its own,
                                   without those of length 1 */
    uint32_t n_weights;
    const po_value_id *value; /* by tensor: the value that lies there, or PO_NONE */
} po_lowered;

/* For po_regions_find: whether a node has a lowering. `user`: the context (po_ctx *). */
po_region_part po_lower_part(void *user, const po_graph *graph, const po_node *node);

/* The same where 16-bit tensors are taken too (f16, bf16; and casts between floats): for targets
 * whose printer goes by the tensors' types. */
po_region_part po_lower_part_typed(void *user, const po_graph *graph, const po_node *node);

/* Tensors have the types of the model's values; what is in no value of it is f32. `name` is the
 * muGraph's. PO_UNSUPPORTED naming the node where something does not fit. */
po_status po_lower_region(po_ctx *ctx, po_arena *arena, const po_graph *graph,
                          const po_region *region, const char *name, po_lowered *lowered);

#endif
