/* Algorithms along map axes, with strides decomposed, and their tables. */
#ifndef PO_REWRITE_BILINEAR_TILED_H
#define PO_REWRITE_BILINEAR_TILED_H

#include "rewrite/deriving.h"

enum { PO_MOST_OUTPUTS = 6, PO_MOST_PRODUCTS = 64 };

typedef struct po_tiled {
    uint32_t axis;
    int64_t m, r, n, d;        /* outputs, taps, products of a tile (as many as inputs), dilation */
    int64_t step, tiles, room; /* inputs from tile to tile; tiles made; tiles of input held */
    const double *a, *b, *powers, *scale; /* bilinear.h: [m][n], [n][n], [n][r], [n] */
    int64_t one;                          /* a product that every output takes once */
} po_tiled;

/* False where the axis has no such algorithm, or a single tile. */
bool po_tile(po_arena *arena, const po_conv *c, uint32_t axis, int64_t m, po_tiled *t);

typedef enum po_tiled_table { PO_TILED_A, PO_TILED_B, PO_TILED_POWERS } po_tiled_table;
/* The Kronecker product of the axes' tables. */
po_value_id po_tiled_constant(po_deriving *d, const po_tiled *t, uint32_t n_t,
                              po_tiled_table which);
/* w [O, C, k..] as [products O, C, kernel], a convolution's weights: the tiled axes' taps are gone,
 * the others stay in their order; kernel has `rank` dims. */
po_value_id po_tiled_weights(po_deriving *d, const po_conv *c, const po_tiled *t, uint32_t n_t,
                             int64_t products, uint32_t rank, const int64_t *kernel);
/* The bias on the product that every output takes once; PO_NONE for none. */
po_value_id po_tiled_bias(po_deriving *d, const po_conv *c, const po_tiled *t, uint32_t n_t,
                          int64_t products);
/* "F(4,3) along axis 1, .." */
const char *po_tiled_name(po_deriving *d, const po_tiled *t, uint32_t n_t);

#endif
