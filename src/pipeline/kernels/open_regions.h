/* Regions of a model whose batch is open: a kernel is of one sample and called for each, so that
 * what it reads and writes must hold samples one behind the other. */
#ifndef PO_PIPELINE_OPEN_REGIONS_H
#define PO_PIPELINE_OPEN_REGIONS_H

#include "codegen/delivery/library.h"
#include "superopt/regions.h"

/* In the place of an axis: no border may be there (one_sample.h). */
enum { PO_NOT_DELIVERED = -2 };

/* How the values of a model keep samples apart, as po_samples_apart_parts tells. What is made of
 * several, the last steps of a detector or a decoder's loop, stays with the runtime:
 * PO_UNSUPPORTED, with the node, where that is more than a tenth of the work. batch: any number of
 * samples, and numbers; here: the same graph of one sample, all numbers. */
po_status po_open_axes(po_ctx *ctx, po_arena *arena, const po_graph *batch, const po_graph *here,
                       const int8_t **axis);

/* As po_regions_find with po_lower_part, of a graph with one sample. axis: by value, as
 * po_samples_apart_values tells; NULL: all is static. A node at a region's border where samples do
 * not lie so, or are not told apart, stays outside, and so do those that `outside` names (by node;
 * NULL: none). */
po_status po_open_regions(po_ctx *ctx, po_arena *arena, const po_graph *graph, const int8_t *axis,
                          const bool *outside, po_regions *regions);

/* Whether the node reads or makes the value. */
bool po_node_touches(const po_node *node, po_value_id v);

/* The ports of a region, as the model has them, for any number of samples where there is an axis.
 * PO_INTERNAL where one cannot be opened. */
po_status po_open_ports(po_ctx *ctx, po_arena *arena, const po_graph *graph, const int8_t *axis,
                        const po_region *region, po_kernel_ports *ports);

#endif
