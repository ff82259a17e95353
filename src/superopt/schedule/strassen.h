/* Between strassen.c (how a product is worked) and strassen_choices.c (in which sizes). */
#ifndef PO_SUPEROPT_STRASSEN_H
#define PO_SUPEROPT_STRASSEN_H

#include "superopt/schedule/internal.h"

/* Of po_choice.n. BLOCK: rows of a part of the halved label. BY_SLICES: the inputs' sums are made
 * slice by slice, for all panels, rather than for all slices. */
enum {
    PO_STRASSEN_SLICE,
    PO_STRASSEN_PANEL,
    PO_STRASSEN_ROWS,
    PO_STRASSEN_BLOCK,
    PO_STRASSEN_LEVELS,
    PO_STRASSEN_BY_SLICES
};
enum {
    PO_STRASSEN_PRODUCTS = 7,
    PO_STRASSEN_PAD = 16, /* floats that keep the products' store streams apart */
    PO_STRASSEN_KEPT = 3, /* labels of rows */
    PO_STRASSEN_MOST = 2  /* times that it is used */
};

/* A product whose sides are cut in as many parts, halves of halves. */
typedef struct po_strassen_parts {
    po_naive_step n;
    uint32_t n_kept, kept[PO_STRASSEN_KEPT]; /* of the inputs */
    uint32_t halved;                         /* of those, by number */
    uint32_t c, w_k, w_c;                    /* channels; axes of the weight */
    int64_t in;                              /* how many parts along each */
    int64_t part[3];                         /* rows, channels, outputs of one */
    int64_t tiles;                           /* rows of a part by the other kept labels */
} po_strassen_parts;

/* False: the step is no such product, or its sides have no such parts. */
bool po_strassen_parts_of(const po_mu *mu, uint32_t step, int64_t levels, po_strassen_parts *p);

/* As in po_scheduler. */
void po_strassen_apply(po_schedule *s, uint32_t step, const po_choice *choice);

#endif
