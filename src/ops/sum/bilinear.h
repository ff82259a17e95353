/* Toom-Cook algorithms F(m, r): m outputs of a correlation with r taps, in fewer products than m r.
 *
 * y = A^T [(G g) * (B^T d)], with d of n = m + r - 1 inputs, g of r taps, y of m outputs. It is the
 * transpose of polynomial multiplication by evaluation at n - 1 finite points and infinity, so with
 * V_k the n x k matrix of powers of the points: A = V_m, G = V_r, B = V_n^-1 (Winograd 1980; PET,
 * section 2, calls such pairs of tables and products multilinear like any convolution). Outputs
 * `stride` apart: the taps q, q + stride, .. of each residue q meet inputs of that residue, so that
 * each has an algorithm of its own, whose products stand side by side and are added up;
 * n = stride (m - 1) + r. */
#ifndef PO_OPS_BILINEAR_H
#define PO_OPS_BILINEAR_H

#include "base/arena.h"
#include "base/hash.h"
#include "base/rational.h"

enum {
    PO_BILINEAR_MAX = 10,  /* products of one residue */
    PO_BILINEAR_STEADY = 8 /* with more of them float32 loses another digit */
};

/* Where polynomials are evaluated. */
typedef enum po_points {
    PO_POINTS_DYADIC, /* 0, 1, -1, 1/2, -2, 2, -1/2, 3/2, -3/2: all tables but G are exact in f32 */
    PO_POINTS_STEADY  /* up to 8 products: what loses least in f32. F(4, 3) with 0, +-7/10, +-3/2 is
                         twice as accurate as with 0, +-1, +-2 (measured) */
} po_points;

typedef struct po_bilinear {
    uint32_t m, r, n;
    const double *a;              /* A^T: [m][n] */
    const double *b;              /* B^T: [n][n] */
    const double *powers, *scale; /* [n][r], [n]: G is powers / scale, row by row */
    uint32_t one; /* a product that every output takes once, so a bias may go there; PO_NONE */
    const po_rational *exact_a, *exact_b, *exact_g; /* [m][n], [n][n], [n][r] */
} po_bilinear;

/* False where the points of a residue do not suffice or there is nothing to gain: a single tap or
 * output, fewer taps than the stride. Tables are the arena's. */
bool po_bilinear_make(po_arena *arena, po_points points, uint32_t m, uint32_t r, uint32_t stride,
                      po_bilinear *algorithm);

/* What such an algorithm makes of rounding, at most, where the plain way is 1: the absolute values
 * of all that an output is added up from, for inputs and taps of 1, over the taps. With dyadic
 * points F(2, 3) 2.7, F(4, 3) 9.9, F(6, 3) 23, F(8, 3) 207; what is seen is less, for signs are
 * mixed. A single tap, or output, is 1. */
double po_bilinear_magnifies(po_points points, uint32_t m, uint32_t r, uint32_t stride);

#endif
