/* A term of three factors and more as two sums: one of two of its factors, and one of the result
 * and the others. */
#ifndef PO_OPS_SUM_CONTRACT_H
#define PO_OPS_SUM_CONTRACT_H

#include "ops/sum/sum.h"

typedef struct po_contraction {
    po_sum *inner, *outer;
    uint32_t pair[2]; /* the term's operands that are inputs 0 and 1 of inner */
    /* The same for outer, whose last input is inner's output. */
    uint32_t n_rest, rest[PO_SUM_MAX_FACTORS];
} po_contraction;

/* False where no two factors have variables to themselves, or where it would not halve the work. */
bool po_sum_contract(po_arena *arena, const po_sum *sum, const po_term *term,
                     po_contraction *contraction);

#endif
