/* Inside this folder: the ways to correct a mutant, and the pieces that they share. */
#ifndef PO_CORRECT_WAYS_H
#define PO_CORRECT_WAYS_H

#include "correct/correct.h"
#include "ops/move/rt.h"
#include "ops/sum/sum.h"

typedef struct po_correcting {
    po_ctx *ctx;
    po_arena *arena; /* scratch */
    const po_subprogram *sub;
    const po_mutant *mutant;
    const po_agreement *agreement;
    po_mutants *corrected;
    const po_program *original;
} po_correcting;

/* What was done to a mutant. */
typedef enum po_correction {
    PO_CORRECTION_GAP,
    PO_CORRECTION_HALO,
    PO_CORRECTION_GAP_AND_HALO,
    PO_CORRECTION_BOXES,
    PO_CORRECTION_SLABS,
    PO_CORRECTION_ROWS,
    PO_CORRECTIONS
} po_correction;

/* gap.c: zero gaps and halos around the windows of the mutant. */
po_status po_correct_windows(po_correcting *c);
/* patch.c: boxes that differ, computed by the original operators. */
po_status po_correct_boxes(po_correcting *c);
/* Sweeps and infers a candidate and adds it as "mutant, way"; one that is no program, or does not
 * agree with the subprogram, goes, and *right is false. */
po_status po_correct_offer(po_correcting *c, po_graph *graph, po_correction way, bool *right);

/* Positions first + i * step of each axis, 0 <= i < count. */
typedef struct po_stepped {
    uint32_t rank;
    int64_t first[PO_RT_MAX_RANK], step[PO_RT_MAX_RANK], count[PO_RT_MAX_RANK];
} po_stepped;

static inline double po_stepped_size(const po_stepped *r) {
    double n = 1;
    for (uint32_t i = 0; i < r->rank; i++)
        n *= (double)r->count[i];
    return n;
}

/* What picks a region out of a tensor of these dims. */
const po_rt *po_stepped_rt(po_arena *arena, const po_stepped *r, const int64_t *dims);

/* reads.c: what a sum reads of an operand where it makes a region: bounds of its index on each
 * axis, before anything falls outside. */
typedef struct po_operand_reach {
    bool any, batched; /* axis 0 of the output is axis 0 of the operand */
    int64_t lo[PO_RT_MAX_RANK], hi[PO_RT_MAX_RANK], step[PO_RT_MAX_RANK];
} po_operand_reach;
/* The variables, lo[v] to hi[v], at which a term writes into the region. False: at none. */
bool po_sum_narrow(const po_sum *sum, const po_term *term, const po_stepped *region, int64_t *lo,
                   int64_t *hi);
void po_sum_reads(const po_sum *sum, const po_stepped *region, uint32_t n_in, po_operand_reach *in);

/* restrict.c: a program computed for regions of its output alone. */
typedef struct po_restrictor {
    po_ctx *ctx;
    po_arena *arena;
    const po_graph *from;      /* the program */
    const bool *weight;        /* by its values: made of weights alone */
    po_graph *to;              /* where nodes are added, at the end */
    const po_value_id *inputs; /* of `to`, by the program's inputs */
    double flops;              /* of what was added */
    struct po_restricted *known;
} po_restrictor;

/* The value at `n` regions of equal counts: along axis 0 behind one another where n > 1. *y is
 * PO_NONE where that cannot be done; nodes may then have been added that nothing reads. */
po_status po_restrict(po_restrictor *r, po_value_id value, uint32_t n, const po_stepped *regions,
                      po_value_id *y);

#endif
