/* Floats as models meet them: images, pages of text, ramps, constants, sparse maps, and numbers
 * around a large offset. Each element depends on the seed, the stream and its place alone. */
#ifndef PO_VERIFY_PATTERNS_H
#define PO_VERIFY_PATTERNS_H

#include "verify/inputs/inputs.h"

enum { PO_PATTERN_WAVES = 3, PO_PATTERN_DISCS = 3 };

typedef struct po_pattern {
    po_input_kind kind;
    uint64_t seed, stream;
    double scale;
    uint32_t rank;
    const int64_t *dims;
    int64_t rows, columns; /* of a plane: the last two axes */
    int64_t plane;         /* that waves and discs are of; -1: none yet */
    double waves[PO_PATTERN_WAVES][4], discs[PO_PATTERN_DISCS][4];
    const unsigned char *ink; /* PAGE: one plane, 0 where the paper shows */
    double whole;             /* of the tensor: a level, a density, a sign */
} po_pattern;

/* Whether a kind is one of these. */
bool po_pattern_has(po_input_kind kind);
po_pattern po_pattern_of(po_arena *arena, po_input_kind kind, uint64_t seed, uint64_t stream,
                         double scale, uint32_t rank, const int64_t *dims);
/* Element i, row-major; quick where they are asked for in order. */
double po_pattern_at(po_pattern *pattern, int64_t i);

#endif
