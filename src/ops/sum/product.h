/* Terms of two factors as matrix products modulo PO_P: convolutions, MatMul, Gemm and whatever else
 * has rows that one factor alone has, columns that the other alone has, and a depth. */
#ifndef PO_OPS_SUM_PRODUCT_H
#define PO_OPS_SUM_PRODUCT_H

#include "ops/sum/sum.h"

/* Whether the term is large and regular enough that the matrix product is faster than the walk. */
bool po_product_suits(const po_sum *sum, const po_term *term);
/* Adds scale times the term to the output. left and right: residues of its two factors. */
void po_product_run(po_arena *arena, po_field field, const po_sum *sum, const po_term *term,
                    uint32_t scale, const uint32_t *left, const uint32_t *right, uint32_t *out);

#endif
