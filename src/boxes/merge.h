/* Turns verdicts over a grid of boxes into a short list of boxes. */
#ifndef PO_BOXES_MERGE_H
#define PO_BOXES_MERGE_H

#include "boxes/agree.h"

/* Positions first + i * step for 0 <= i < count of one axis. */
typedef struct po_run_of_axis {
    int64_t first, step, count;
} po_run_of_axis;

typedef struct po_grid_axis {
    int64_t dim;
    uint32_t n;
    const po_run_of_axis *runs; /* disjoint, together every position; NULL: run i is position i */
} po_grid_axis;

/* Adds boxes, disjoint and together all of the cells whose byte is `which`. `cells` is row-major
 * over the runs. The same grid gives the same list. */
void po_grid_boxes(po_arena *arena, uint32_t rank, const po_grid_axis *axes, const uint8_t *cells,
                   uint8_t which, po_box_list *list);

#endif
