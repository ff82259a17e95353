/* The numbers that a discrete Fourier transform multiplies by. */
#ifndef PO_OPS_SPECTRUM_H
#define PO_OPS_SPECTRUM_H

#include "base/arena.h"
#include "base/rational.h"

enum {
    PO_SPECTRUM_PARTS = 2,      /* real and imaginary */
    PO_SPECTRUM_MOST = 1 << 21, /* elements of a table */
    PO_SPECTRUM_LIMB = 15 /* bits: three of them make a fraction's numerator, and its denominator */
};

/* [bins, parts, length]: cos and -sin of 2 pi k i / length, as fractions of 2^45. bins and length
 * are above 0, and the table has at most PO_SPECTRUM_MOST elements. */
po_rational *po_spectrum_table(po_arena *arena, int64_t length, int64_t bins);

#endif
