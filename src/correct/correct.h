/* Correct: makes a mutant that agrees in part agree everywhere (PET, section 6).
 *
 * Three ways, which compete: a gap of zeros between what was merged, a halo copied from the
 * neighbour, and computing the boxes that differ by the original operators, put over the mutant's
 * result. */
#ifndef PO_CORRECT_CORRECT_H
#define PO_CORRECT_CORRECT_H

#include "boxes/agree.h"
#include "ir/subprogram.h"

/* Adds every corrected form that could be made. They agree with the subprogram by po_agree, at a
 * seed of their own; none is certified. `agreement` is of the
 * subprogram (first) and the mutant. */
po_status po_correct(po_ctx *ctx, po_arena *arena, const po_subprogram *sub,
                     const po_mutant *mutant, const po_agreement *agreement, po_mutants *corrected);

/* The ways to correct, which the names of corrected mutants end with. */
uint32_t po_corrections(void);
const char *po_correction_name(uint32_t way);

#endif
