/* Weights and bias of the products of a tile, as recipes: what frames and tiles share. */
#ifndef PO_REWRITE_BILINEAR_PRODUCTS_H
#define PO_REWRITE_BILINEAR_PRODUCTS_H

#include "ops/sum/bilinear.h"
#include "rewrite/conv/conv.h"

/* G along the first axis of taps or along both, a group for each product, those of the second axis
 * outermost: w [out, in / group, taps] as [products out, in / group, kernel]. PO_NONE where that
 * cannot be stored. */
po_value_id po_product_weights(po_graph *graph, po_arena *arena, const po_conv *c, uint32_t axes,
                               const po_bilinear *alg, const int64_t taps[2],
                               const int64_t kernel[2]);
/* The bias on one of so many products, which every output takes once; PO_NONE for none too. */
po_value_id po_product_bias(po_graph *graph, po_arena *arena, const po_conv *c, int64_t one,
                            int64_t products);

#endif
