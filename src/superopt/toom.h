/* Toom-Cook algorithms as tables of fractions, by points that lose little accuracy. */
#ifndef PO_SUPEROPT_TOOM_H
#define PO_SUPEROPT_TOOM_H

#include "base/arena.h"
#include "base/hash.h"
#include "base/rational.h"

/* F(m, r): y = a [(g w) * (b x)] for m outputs of a correlation with r taps, from n = m + r - 1
 * products (ops/bilinear.h says why). Points 0, +-7/10, +-3/2 and infinity for F(4, 3): measured,
 * F(4, 3) in float32 is then twice as accurate as with 0, +-1, +-2. */
typedef struct po_toom {
    uint32_t m, r, n;
    const po_rational *a; /* [m][n] */
    const po_rational *b; /* [n][n] */
    const po_rational *g; /* [n][r] */
} po_toom;

/* F(m, r) for outputs `stride` apart, r >= stride: n = stride * (m - 1) + r. Taps of one phase of
 * the stride meet inputs of that phase, so that it is an algorithm with fewer taps for each, their
 * products added. False where there are no points for it. */
bool po_toom_make(po_arena *arena, uint32_t m, uint32_t r, uint32_t stride, po_toom *toom);

#endif
