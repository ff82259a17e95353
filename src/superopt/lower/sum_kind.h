/* What an indexed sum is to the lowering: data that moves, or a product. */
#ifndef PO_SUPEROPT_SUM_KIND_H
#define PO_SUPEROPT_SUM_KIND_H

#include "ops/sem/sem.h"

enum { PO_SUM_FACTORS = 4 /* of a term, at most */, PO_SUM_SPATIAL = 3 };

typedef enum po_sum_kind {
    PO_SUM_NONE,
    PO_SUM_VIEW,    /* one term, the output's index is the variables' */
    PO_SUM_MOVES,   /* terms that copy */
    PO_SUM_PART,    /* a block copied, zeros around it */
    PO_SUM_PRODUCT, /* the first term, the others element by element */
    PO_SUM_SCATTER  /* the same, the first over positions that several of its iterations reach */
} po_sum_kind;

po_sum_kind po_sum_kind_of(const po_sum *sum);
/* Whether a term adds up over variables that are not in its output's index. */
bool po_sum_reduces(const po_term *t);
/* The variable that is the index along an axis of more than one element; PO_NONE: there is none. */
uint32_t po_sum_axis_variable(const po_term *t, const int64_t *dims, uint32_t x);

/* Transposed convolutions: out[s*v + d*r - pad] += in[v] * w[r] along some axes. The outputs y =
 * s*q + phase take the taps r = s*t + first with first = (phase + pad) mod s, from v = q + from -
 * t: a convolution for each phase. With dilation only for s = 1. */
typedef struct po_sum_scatter {
    uint32_t n; /* axes */
    uint32_t axis[PO_SUM_SPATIAL], v[PO_SUM_SPATIAL], r[PO_SUM_SPATIAL];
    int64_t stride[PO_SUM_SPATIAL], dilation[PO_SUM_SPATIAL], pad[PO_SUM_SPATIAL];
    uint32_t phases; /* in all */
} po_sum_scatter;

/* False: it is none. */
bool po_sum_find_scatter(const po_sum *sum, const po_term *t, po_sum_scatter *s);

/* Interpolation along some axes (resize.c): sums of one term and one table, each of which makes a
 * block of the output that no other makes; their number, 0: the sum is another. */
enum { PO_LOWER_PIECES = 27 };
uint32_t po_lower_pieces(po_arena *arena, const po_sum *sum, po_sum *pieces[PO_LOWER_PIECES]);

#endif
