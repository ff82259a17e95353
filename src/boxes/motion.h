/* How what a program's output sums moves as its position does: what makes a few positions of a box
 * stand for all of it (docs/boxes.md).
 *
 * Within a box each output is a sum of monomials, products of input elements. As the position moves
 * by one along an axis, every monomial's elements move by a fixed amount: its motion. Terms of a
 * sum may have different motions; then more neighbours must be tested. */
#ifndef PO_BOXES_MOTION_H
#define PO_BOXES_MOTION_H

#include "boxes/program.h"

/* One factor of a monomial: an element of an input, or of an atom of it. */
typedef struct po_motion_slot {
    uint32_t input;
    po_operand_kind kind; /* INPUT, or an atom */
    double eps;
} po_motion_slot;

typedef struct po_motion {
    uint32_t n_slots, n_rows; /* rows: the axes of all slots, in order */
    const po_motion_slot *slots;
    const po_rational *by; /* row r, axis x of the value: by[r * rank + x] */
    uint64_t
        still; /* axes along which it is there at single positions only, never in longer boxes */
} po_motion;

typedef struct po_motions {
    bool known; /* false: nothing may be concluded from a part of a box */
    po_motion *items;
    uint32_t n, cap;
} po_motions;

/* Of an output. Slots are sorted; where an input occurs several times in a product, every order of
 * its occurrences is there, as the product does not tell them apart. */
po_motions po_motions_of(po_arena *arena, const po_program *program, uint32_t output);

/* Whether a value that the program computes with is read as 1 / x; then x itself must not be. */
bool po_motions_compatible(const po_motions *a, const po_motions *b);

/* What must be tested of a box whose axes of `moving` are longer than 1: along axis x fewer than
 * on_axis[x] steps, `total` - 1 steps over all axes together. Both programs' motions count. */
typedef struct po_motion_need {
    uint32_t total;
    uint32_t on_axis[PO_MAX_RANK];
} po_motion_need;
void po_motions_need(po_arena *arena, const po_motions *a, const po_motions *b, uint32_t rank,
                     uint64_t moving, po_motion_need *need);

#endif
