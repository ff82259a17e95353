/* Windows: steps that follow one another and pass all they make on to the last of them, as one
 * program that the search finds for them (search/search.h). */
#ifndef PO_SUPEROPT_WINDOW_H
#define PO_SUPEROPT_WINDOW_H

#include "superopt/plan/check.h"
#include "superopt/plan/row_fusion.h"
#include "superopt/search/search.h"

/* By tensor of a naive muGraph: the step that writes it first, the last that reads it, PO_NONE; by
 * step: its number. */
typedef struct po_plan_uses {
    uint32_t *writer, *reader, *number;
} po_plan_uses;
po_plan_uses po_plan_uses_of(po_arena *arena, const po_mu *naive);

/* How many steps from this one on can be a window: no product with a weight, which has ways of its
 * own, at least one sum or maximum, nothing but the last step's tensor read behind them. The most
 * there are, `most` at most, that move so many bytes more than the last of them writes; 0: none. */
uint32_t po_plan_window_from(const po_mu *naive, const po_plan_uses *uses, uint32_t step,
                             uint32_t most, double worth);

/* The steps' muGraph by itself, for the search: copies are read through, and axes of several digits
 * are several axes. False: it is none that the search reads. view: by tensor of it. */
bool po_plan_window_cut(po_arena *arena, const po_mu *naive, const uint32_t *node, uint32_t n,
                        const po_mu **mu, const po_mu_view **view);

/* A program that was found for a window. */
typedef struct po_plan_window {
    const po_found *found;
    const po_mu_view *view;
} po_plan_window;

/* Adds the program to a schedule of the naive muGraph in place of the steps (b's: choices and rows
 * count for nothing); by itself, to be timed and compared with them (po_check_step). */
void po_plan_window_apply(po_schedule *to, const po_row_fusion *b, const po_plan_window *w);
po_mu *po_plan_window_standalone(po_arena *arena, const po_row_fusion *b, const po_plan_window *w,
                                 po_standalone_step *lone);

#endif
