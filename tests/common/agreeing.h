/* Brute force for programs that agree in part: float64 references on random whole numbers. */
#ifndef TEST_AGREEING_H
#define TEST_AGREEING_H

#include "boxes/agree.h"

/* By output: a byte for each position, 1 where the two graphs differ for any of the seeds. NULL
 * where a reference is missing. */
uint8_t **test_differing(po_ctx *ctx, po_arena *arena, const po_graph *a, const po_graph *b,
                         uint32_t seeds);

/* Says what is wrong with an agreement, or NULL: every position once in the lists, none called
 * equal that differs, a difference in every box called unequal, share and equal as they are. */
const char *test_check_agreement(po_arena *arena, const po_program *program,
                                 const po_agreement *agreement, uint8_t *const *differing);

#endif
