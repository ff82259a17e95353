/* Comparing outputs summed over an axis with random coefficients (Freivalds).
 *
 * Where an axis of an output, or a digit of it, comes straight from one operand of every term (the
 * output channels of a convolution, from its weights), its sum with coefficients r can be taken of
 * that operand first: then everything behind costs as much less as the axis is long. The r are one
 * more input of the program, so two programs whose outputs differ anywhere give sums that differ,
 * but for one more in the degree. */
#ifndef PO_BOXES_CONTRACT_H
#define PO_BOXES_CONTRACT_H

#include "boxes/program.h"

/* Index = hi * (stride * extent) + digit * stride + lo on this axis. extent 1: nothing is summed.
 */
typedef struct po_digit_of_axis {
    uint32_t axis;
    int64_t stride, extent;
} po_digit_of_axis;

/* Chooses a digit for every output (extent 1 where there is none that both programs can sum over)
 * and makes the programs of the sums: output k has the axis's length divided by the extent. False
 * where there is no gain. *cost: of both together. */
bool po_programs_contract(po_arena *arena, const po_program *a, const po_program *b,
                          const po_program **sum_a, const po_program **sum_b,
                          po_digit_of_axis *digits, double *cost);
/* Nanoseconds that evaluating the whole takes, roughly. */
double po_program_cost(const po_program *program);

#endif
