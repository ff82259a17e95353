/* Toom-Cook algorithms F(m, r): m outputs of a correlation with r taps from m + r - 1 products.
 *
 * y = A^T [(G g) * (B^T d)], with d of n = m + r - 1 inputs, g of r taps, y of m outputs. It is the
 * transpose of polynomial multiplication by evaluation at n - 1 finite points and infinity, so with
 * V_k the n x k matrix of powers of the points: A = V_m, G = V_r, B = V_n^-1 (Winograd 1980; PET,
 * section 2, calls such pairs of tables and products multilinear like any convolution). */
#ifndef PO_OPS_BILINEAR_H
#define PO_OPS_BILINEAR_H

#include <stdbool.h>
#include <stdint.h>

enum {
    PO_BILINEAR_MAX = 10,  /* products of one algorithm */
    PO_BILINEAR_STEADY = 8 /* with more of them float32 loses another digit */
};

typedef struct po_bilinear {
    uint32_t m, r, n;
    double a[PO_BILINEAR_MAX * PO_BILINEAR_MAX]; /* A^T: [m][n] */
    double b[PO_BILINEAR_MAX * PO_BILINEAR_MAX]; /* B^T: [n][n] */
    double g[PO_BILINEAR_MAX * PO_BILINEAR_MAX]; /* G: [n][r] */
    /* G is powers / scale, row by row, and both are exact in float32, as A and B are. */
    double powers[PO_BILINEAR_MAX * PO_BILINEAR_MAX]; /* [n][r] */
    double scale[PO_BILINEAR_MAX];
    uint32_t one; /* the product at point 1: every output takes it once, so a bias may go there */
} po_bilinear;

/* False where m + r - 1 is below 3 or above PO_BILINEAR_MAX. The points are 0, 1, -1, 1/2, -2, 2,
 * -1/2, 3/2, -3/2, taken in this order: of small rationals they lose the least accuracy in
 * float32. */
bool po_bilinear_make(uint32_t m, uint32_t r, po_bilinear *algorithm);

#endif
