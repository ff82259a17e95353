/* Boxes: regions of an operator's output over which it does the same thing (PET, section 5.1).
 *
 * Within a box every output element sums the same iterations, and moving by one step moves every
 * operand index that they read by the same amount. So equality at one position of a box and at its
 * neighbours says something about the whole box. Each axis of the output is cut on its own: a box
 * is a run of positions of one residue class on every axis. Cuts may be finer than needed, never
 * coarser: where no rule holds, every position of an axis is a box. */
#ifndef PO_BOXES_BOXES_H
#define PO_BOXES_BOXES_H

#include "ops/sum/sum.h"

/* Positions at[i] <= v < at[i + 1] with v = r modulo step are one run for each r. */
typedef struct po_axis_cuts {
    int64_t dim, step;
    uint32_t n;        /* runs before the residue classes are told apart */
    const int64_t *at; /* sorted; at[0] = 0; at[n] = dim */
} po_axis_cuts;

typedef struct po_cuts {
    uint32_t rank;
    const po_axis_cuts *axis;
} po_cuts;

/* The cuts of a sum's output. `input`: by the node's inputs, the cuts of the tensors that they are,
 * whose boxes no output box may straddle; NULL, or NULL for an input: one box. Normal forms
 * (po_sum_normalize) are cut less. */
const po_cuts *po_cuts_of(po_arena *arena, const po_sum *sum, const po_cuts *const *input);

/* The variable of a term that moves along axis x of the output within a box; PO_NONE where the term
 * stays at one position. False where the axis is cut everywhere because of the term. */
bool po_cuts_moving(const po_sum *sum, const po_term *term, uint32_t x, uint32_t *var);

/* Every position is a box of its own. */
const po_cuts *po_cuts_everywhere(po_arena *arena, uint32_t rank, const int64_t *dims);
/* Cuts that respect both. */
const po_cuts *po_cuts_meet(po_arena *arena, const po_cuts *a, const po_cuts *b);

/* A box: positions first + i * step for 0 <= i < count on each axis. */
typedef struct po_box {
    uint32_t rank;
    int64_t *first, *step, *count;
} po_box;

/* Calls fn for every box that holds a position, the last axis running fastest, until it returns
 * false. */
void po_boxes_each(po_arena *arena, const po_cuts *cuts, bool (*fn)(void *user, const po_box *box),
                   void *user);
/* How many there are. */
double po_boxes_count(const po_cuts *cuts);

#endif
