/* Two-dimensional convolutions with constant weights, as the algebra of postopt reads and writes
 * them. */
#ifndef PO_REWRITE_CONV_CONV_H
#define PO_REWRITE_CONV_CONV_H

#include "ops/conv_view.h"
#include "ops/recipe/recipe.h"

/* Reads a Conv of `maps` axes with constant f32 or f64 weights, bias constant or absent: both are
 * set. False for everything else. */
bool po_conv_read_maps(const po_graph *graph, po_node_id node, uint32_t maps, po_conv *conv);
/* Of two axes. */
bool po_conv_read(const po_graph *graph, po_node_id node, po_conv *conv);
/* The same for the value's producer. */
bool po_conv_made(const po_graph *graph, po_value_id value, po_conv *conv);

/* One group, an odd square kernel of more than one tap, and as much padding on every side as makes
 * the output as large as the input. */
bool po_conv_keeps_size(const po_conv *conv);

/* What weights and bias are made of, to derive others; the bias is NULL where there is none. */
const po_recipe *po_conv_weights(const po_graph *graph, po_arena *arena, const po_conv *conv);
const po_recipe *po_conv_bias(const po_graph *graph, po_arena *arena, const po_conv *conv);
/* The bias for `times` copies of the outputs one after the other; NULL where there is none. */
const po_recipe *po_conv_tiled_bias(const po_graph *graph, po_arena *arena, const po_conv *conv,
                                    int64_t times);

/* Adds a convolution of x beside `place`, group, kernel, strides, dilations and pads of `like`;
 * bias may be PO_NONE. Returns its output, of unknown type. */
po_value_id po_conv_add(po_graph *graph, po_node_id place, po_value_id x, const po_conv *like,
                        po_value_id w, po_value_id bias);
/* The same with weights [out, in / group, kernel] (any shape of that many) and bias [out] (may be
 * NULL) stored from recipes. PO_NONE, and nothing but constants added, where they cannot be. */
po_value_id po_conv_make(po_graph *graph, po_node_id place, po_value_id x, const po_conv *like,
                         const po_recipe *w, const po_recipe *bias);
/* A pointwise convolution's description, for po_conv_make. */
po_conv po_conv_pointwise(po_dtype dtype, int64_t out, int64_t in);

/* A window's numbers, row by row, over one denominator; 0: they are whole as they are. */
typedef struct po_taps {
    const double *of;
    double over;
} po_taps;
/* The same window on each of so many channels by itself; the rest as po_conv_add. PO_NONE where the
 * weights cannot be stored. */
po_value_id po_conv_each(po_graph *graph, po_arena *arena, po_node_id place, po_value_id x,
                         const po_conv *window, int64_t channels, const po_taps *taps,
                         po_value_id bias);

#endif
