/* Visits the iterations of one term that touch its output and every operand, as strided runs. */
#ifndef PO_OPS_SUM_WALK_H
#define PO_OPS_SUM_WALK_H

#include "ops/sum/sum.h"

/* n iterations; slot 0 is the output, slot 1 + k factor k: row-major offsets. */
typedef struct po_stretch {
    int64_t n;
    int64_t at[PO_SUM_MAX_FACTORS + 1], step[PO_SUM_MAX_FACTORS + 1];
} po_stretch;

typedef void (*po_stretch_fn)(void *user, const po_stretch *run);

typedef struct po_walk po_walk;

/* Prepares a term of a sum that po_sum_check accepts. With `by_point` the visits are to be narrowed
 * to one output element each time, else they cover the whole output. */
po_walk *po_walk_create(po_arena *arena, const po_sum *sum, const po_term *term, bool by_point);
/* `point`: the output index where made by_point, else NULL. Nothing is changed: several threads may
 * use one walk, and fn may use it again. */
void po_walk_run(const po_walk *walk, const int64_t *point, po_stretch_fn fn, void *user);

#endif
