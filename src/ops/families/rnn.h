/* Cells of recurrent operators. */
#ifndef PO_OPS_RNN_H
#define PO_OPS_RNN_H

#include "ops/rule.h"

typedef struct po_cell po_cell;

/* The cell of the node's operator for a direction. bias: [2 * gates * hidden] or NULL; peep:
 * [3 * hidden] or NULL; recurrence: [hidden, gates * hidden] (transposed R). PO_BAD_INPUT for
 * activations that there are not. */
po_status po_cell_create(po_ref *ref, int64_t direction, int64_t hidden, const double *bias,
                         const double *peep, const double *recurrence, po_cell **cell);
/* One step of one sequence: xw and hr are x * W' and h * R' of all gates; h and c are updated. */
void po_cell_step(po_cell *cell, const double *xw, const double *hr, double *h, double *c);

#endif
