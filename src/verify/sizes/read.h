/* Where the elements of a value along an axis are read from, whatever its length.
 *
 * Element m q + rho of the axis is made of element alpha q + beta of an axis of a leaf, for every
 * whole q. What lies outside of the leaf counts as 0. */
#ifndef PO_VERIFY_SIZES_READ_H
#define PO_VERIFY_SIZES_READ_H

#include <stdbool.h>
#include <stdint.h>

typedef struct po_read {
    int64_t m, rho; /* m > 0, 0 <= rho < m */
    int64_t alpha, beta;
} po_read;

#define PO_READ_ITSELF ((po_read){1, 0, 1, 0})

static inline bool po_read_equal(po_read a, po_read b) {
    return a.m == b.m && a.rho == b.rho && a.alpha == b.alpha && a.beta == b.beta;
}
static inline bool po_read_is_itself(po_read r) {
    return po_read_equal(r, PO_READ_ITSELF);
}

/* What they read moves by as much for a step along the axis: where they read one element, they do
 * at all places of that class. */
static inline bool po_read_along(po_read a, po_read b) {
    return a.alpha * b.m == b.alpha * a.m;
}

/* An iteration of a sum, t running over whole numbers: element out t + out_base of the output reads
 * element in t + in_base of the operand. out, in > 0. */
typedef struct po_pace {
    int64_t out, out_base, in, in_base;
} po_pace;

/* What q counts then: t = by q + at, and the operand's element is in t + in_base. */
typedef struct po_paced {
    po_read read;
    int64_t by, at;
} po_paced;

/* What the output's elements read, where those of the operand read `of`. False where none reads
 * it, or numbers grow too large. */
bool po_read_pace(po_read of, po_pace step, po_paced *out);

/* The element that y reads; false where it is none of those that `r` tells of. */
static inline bool po_read_at(po_read r, int64_t y, int64_t *element) {
    const int64_t rest = ((y % r.m) + r.m) % r.m;
    if (rest != r.rho)
        return false;
    *element = r.alpha * ((y - rest) / r.m) + r.beta;
    return true;
}

#endif
