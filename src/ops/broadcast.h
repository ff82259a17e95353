/* Iterating over broadcast arrays. Axes on which all arrays run on together are merged first, so
 * that equal shapes are one row, and a scalar is a row with step 0. */
#ifndef PO_OPS_BROADCAST_H
#define PO_OPS_BROADCAST_H

#include "ops/ref.h"

enum { PO_BCAST_MAX = 4 };

typedef struct po_bcast {
    uint32_t n;        /* arrays */
    uint32_t out_rank; /* the broadcast shape */
    int64_t out_dims[PO_MAX_RANK];
    int64_t count;
    uint32_t rank; /* after merging, at least 1; the last axis is the row */
    int64_t dims[PO_MAX_RANK + 1];
    int64_t stride[PO_BCAST_MAX][PO_MAX_RANK + 1];
} po_bcast;

typedef struct po_bcast_row {
    int64_t at, n;              /* first element in the output, length */
    int64_t from[PO_BCAST_MAX]; /* first element in each array */
    int64_t step[PO_BCAST_MAX]; /* 0 or 1 */
    int64_t index[PO_MAX_RANK + 1];
} po_bcast_row;

/* False where the shapes do not broadcast. */
bool po_bcast_dims(po_bcast *b, uint32_t n, const uint32_t *ranks, const int64_t *const *dims);
bool po_bcast_init(po_bcast *b, uint32_t n, const po_array *const *arrays);
/* To be called first with a zeroed row; false at the end. */
bool po_bcast_next(const po_bcast *b, po_bcast_row *row);

#endif
