/* Bands: neighbouring steps as one that is worked in bands of rows, so that what one of them writes
 * is read by the next while it is in cache. At the block level of the muGraph: a grid loop over
 * bands, inside it the steps' statements, and what passes between them in SHARED tensors that hold
 * the rows of a band and those that the next step reads beside them. Such rows are computed again
 * in the bands they belong to. */
#ifndef PO_SUPEROPT_ROW_FUSION_H
#define PO_SUPEROPT_ROW_FUSION_H

#include "superopt/schedule/schedule.h"

enum {
    PO_BANDS_MOST = 4,  /* steps in bands */
    PO_WINDOW_MOST = 24 /* as one program that was searched for */
};

/* Steps of a naive muGraph that follow one another, and how each is worked. */
typedef struct po_row_fusion {
    const po_mu *naive;
    uint32_t n, node[PO_WINDOW_MOST];
    const po_choice *choice[PO_WINDOW_MOST];
    int64_t rows; /* of what the last step writes, in a band; 0: a step after the other, no bands */
} po_row_fusion;

/* What bands of so many rows hold and repeat. */
typedef struct po_row_fusion_cost {
    int64_t height; /* rows of what the last step writes */
    int64_t held;   /* bytes of what passes between the steps, a band */
    int64_t whole;  /* the same without bands */
    /* Rows that a step computes for each that is needed; of the last one 1. */
    double again[PO_BANDS_MOST], most_again;
} po_row_fusion_cost;

/* Whether the steps can be worked in bands of `rows`. What passes between them is read by none but
 * them, each is scheduled as one nest of grid loops over single rows, or over so many together as
 * one step of a label writes; what computes rows beyond its map leaves them out. */
bool po_row_fusion_fits(po_arena *arena, const po_row_fusion *b, po_row_fusion_cost *cost);
/* Adds the steps to a schedule; with rows, as one. Those of po_row_fusion_fits only. */
void po_row_fusion_apply(po_schedule *s, const po_row_fusion *b);

#endif
