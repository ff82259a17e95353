/* Weights and bias of the products of a tile, as recipes: what frames and tiles share. */
#ifndef PO_REWRITE_BILINEAR_PRODUCTS_H
#define PO_REWRITE_BILINEAR_PRODUCTS_H

#include "ops/sum/bilinear.h"
#include "rewrite/conv/conv.h"

/* G along the first `taps` of each pair of channels, a group for each product: w [out, in / group,
 * taps, rest] as [n out, in / group, kernel]. PO_NONE where that cannot be stored. */
po_value_id po_product_weights(po_graph *graph, po_arena *arena, const po_conv *c,
                               const po_bilinear *alg, int64_t taps, int64_t rest,
                               const int64_t kernel[2]);
/* The bias on one of so many products, which every output takes once; PO_NONE for none too. */
po_value_id po_product_bias(po_graph *graph, po_arena *arena, const po_conv *c, int64_t one,
                            int64_t products);

#endif
