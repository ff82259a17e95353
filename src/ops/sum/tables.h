/* Sums that mix along each axis by a table of its own: interpolation. */
#ifndef PO_OPS_SUM_TABLES_H
#define PO_OPS_SUM_TABLES_H

#include "ops/sum/sum.h"

/* By axis, [made, read]; NULL: the axis stays as it is. */
typedef struct po_sum_tables {
    uint32_t rank;
    const po_operand *of[PO_SUM_MAX_FACTORS];
} po_sum_tables;

/* False: the sum is none of these, or of more axes than a term has factors. */
bool po_sum_tables_of(const po_sum *sum, po_sum_tables *t);

#endif
