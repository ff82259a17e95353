/* The iterations of a sum that reach one element of its output, as strided runs: what evaluation
 * at a point pulls. For the usual sums, in which the output's index fixes its digits and every
 * other variable is free or bounded alone; others go through ops/sum/walk.h. */
#ifndef PO_BOXES_PULL_H
#define PO_BOXES_PULL_H

#include "ops/sum/walk.h"

typedef struct po_pull po_pull; /* of a term */

po_pull *po_pull_create(po_arena *arena, const po_sum *sum, const po_term *term);
/* Calls fn for every run; slot 0 of a run is not set. Where every element has one iteration at
 * most, fn is called at most once, with a run of 1. */
void po_pull_run(const po_pull *pull, const int64_t *index, po_stretch_fn fn, void *user);
/* No element has more than one iteration. */
bool po_pull_single(const po_pull *pull);

#endif
