/* Where two programs with the same inputs and outputs agree (PET, section 5).
 *
 * Each output is cut into boxes that neither program straddles. A box is called equal if the
 * programs agree, for random inputs modulo PO_P, at as many neighbouring positions of it as their
 * terms move in different ways (docs/boxes.md: the paper's Theorem 1, which holds for a single
 * affine sum of products a side, made to hold for sums of several). Where every position of the
 * whole outputs costs less, that is tested. Boxes of one verdict are merged. */
#ifndef PO_BOXES_AGREE_H
#define PO_BOXES_AGREE_H

#include "boxes/program.h"

typedef enum po_agree_how {
    PO_AGREE_CHEAPER, /* of the other two */
    PO_AGREE_BOXES,   /* a few positions of every box */
    PO_AGREE_WHOLE    /* every position of every output */
} po_agree_how;

/* What was found of a first program, kept for the next comparison with it under the same seed. */
typedef struct po_agree_known po_agree_known;
po_agree_known *po_agree_known_create(po_arena *arena);

typedef struct po_agree_options {
    uint64_t seed;
    uint32_t trials;   /* seeds for each position; 0: 1 */
    double most_boxes; /* of an output; beyond, every position is tested; 0: 65,536 */
    po_agree_how how;
    po_agree_known *known; /* may be NULL */
} po_agree_options;

typedef struct po_box_list {
    po_box *boxes;
    uint32_t n, cap;
} po_box_list;

typedef struct po_agreement {
    bool equal;                  /* everywhere */
    bool whole;                  /* every position was tested, as po_agree_whole does */
    double share;                /* of the output positions that agree */
    po_box_list *agree, *differ; /* by output; disjoint, together every position */
    uint64_t boxes, points;      /* judged */
    uint32_t degree; /* bound of the polynomials tested: a point lies with probability at most
                        degree / PO_P a trial */
} po_agreement;

/* The first filter: the share of so many positions away from the borders at which the programs
 * agree, the least over the outputs. Where one position costs more than the whole would, nothing is
 * tried and the share is 1. The arena may be let go afterwards. */
po_status po_agree_share(po_ctx *ctx, po_arena *arena, const po_program *a, const po_program *b,
                         uint64_t seed, uint32_t positions, double *share);

/* PO_BAD_USE where inputs or outputs are not alike, PO_UNSUPPORTED where the programs are too large
 * to compare. */
po_status po_agree(po_ctx *ctx, po_arena *arena, const po_program *a, const po_program *b,
                   const po_agree_options *options, po_agreement *agreement);

/* The whole of every output, independent of boxes and of Theorem 1: for what is to be kept. Where
 * they differ, *output and *at (may be NULL) say where first. */
po_status po_agree_whole(po_ctx *ctx, po_arena *arena, const po_program *a, const po_program *b,
                         const po_agree_options *options, bool *equal, uint32_t *output,
                         int64_t *at);

#endif
