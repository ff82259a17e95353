/* Convolutions split by linearity, and the small pieces that upsampling, gates and transposed
 * convolutions share. */
#ifndef PO_REWRITE_UPSAMPLE_SPLIT_H
#define PO_REWRITE_UPSAMPLE_SPLIT_H

#include "rewrite/conv/conv.h"

/* po_derive_parts and po_derive_terms in place, on open shapes too. False where the parts of the
 * weights cannot be stored. */
bool po_split_conv(po_graph *graph, const po_conv *conv, uint32_t n, const po_value_id *parts,
                   const int64_t *channels);
bool po_distribute_conv(po_graph *graph, const po_conv *conv, const po_value_id terms[2]);
/* Rows and columns [begin, end) of a map of rank 4; a negative end counts from the map's own. */
po_value_id po_add_crop(po_graph *graph, po_node_id place, po_value_id x, int64_t begin,
                        int64_t end, const po_type *type);

/* gate_weights.c: true where y is a pointwise convolution of few channels times a channel gate, so
 * that a convolution of y becomes one of those few channels. */
bool po_gated_narrow(const po_graph *graph, po_value_id y);

/* DepthToSpace in the order depth, column, row. */
po_value_id po_add_depth_to_space(po_graph *graph, po_node_id place, po_value_id x, int64_t block,
                                  const po_type *type);

/* upsample.c: true where y is x with every pixel repeated factor times along both map axes. */
bool po_upsampled(const po_graph *graph, po_value_id y, po_value_id *x, int64_t *factor);
/* Another upsampling in the manner of an existing node. */
po_value_id po_add_upsample(po_graph *graph, po_node_id place, po_value_id x, int64_t factor,
                            const po_node *like);

/* Whether a part of joined maps is worth a convolution like this one of its own: that will be one
 * of the map that it was made larger from. */
typedef bool (*po_apart_fn)(const po_graph *graph, const po_conv *conv, po_value_id part);
/* A convolution of joined maps as a sum of convolutions of each, where some are worth it. */
bool po_split_parts(po_graph *graph, po_arena *arena, po_node_id id, po_apart_fn apart);

#endif
