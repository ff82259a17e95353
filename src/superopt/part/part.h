/* How a naive muGraph is taken apart: parts that can be searched by themselves, each with one
 * output and plain labels. For GPUs, whose regions are all of such parts, and for windows of steps
 * (plan/window.h). */
#ifndef PO_SUPEROPT_PART_H
#define PO_SUPEROPT_PART_H

#include "superopt/search/search.h"

typedef struct po_mu_part {
    uint32_t target; /* tensor of the naive muGraph that it makes */
    uint32_t n_steps;
    uint32_t *steps; /* nodes of the naive muGraph, in order */
    po_mu *mu;       /* by itself: what it reads is INPUT or WEIGHT, the target OUTPUT; NULL: cannot
                        stand by itself */
    po_mu_view *twin; /* by tensor of mu */
} po_mu_part;

/* Tensors that lie in memory: where values are seen by several parts, or read by other indices than
 * they were written by, or parts would be too large. more: others that have to (by tensor); NULL.
 * slices: what lies in memory may be read piece by piece, each a tensor of the part. Parts in an
 * order in which they can run. */
void part_all(po_arena *arena, const po_mu *naive, const bool *more, bool slices,
              po_mu_part **parts, uint32_t *n);

/* Without what only moves elements from one tensor to another whole one (copies.c): those who
 * read it read where they lay before. Tensors keep their numbers. */
const po_mu *part_without_copies(po_arena *arena, const po_mu *naive);
/* With labels cut in two where a value is read by more digits than it was written by, or the other
 * way round (digits.c), so that both go by the same. Tensors keep their numbers. */
const po_mu *part_with_digits(po_arena *arena, const po_mu *naive);
/* Whether the index is digits that make up the whole axis: 128 * a + b with b below 128. In digits'
 * order, largest first; n is 0 for an axis of length 1. */
bool part_digits_of(const po_mu *mu, const po_mu_index *i, int64_t dim, uint32_t *n,
                    po_mu_term digits[PO_MU_MAX_RANK]);

/* A statement that only moves elements of another tensor in memory. */
bool part_is_copy(const po_mu *mu, const po_mu_statement *s);
/* The axis that a label alone moves, by single elements; PO_NONE. */
uint32_t part_axis_of(const po_mu *mu, const po_mu_access *a, uint32_t label);
/* An access of what a copy reads in place of `at`, an access of what it writes. False where an axis
 * of the copy has no label of its own. */
bool part_through(po_mu *to, const po_mu *mu, const po_mu_statement *copy, const po_mu_access *at,
                  po_mu_access *out);

/* A muGraph with the same labels and tensors, and no steps; a statement with the same items; an
 * access of a tensor of the same number. */
po_mu *part_same_tables(po_arena *arena, const po_mu *mu);
uint32_t part_same_statement(po_mu *to, uint32_t parent, const po_mu_statement *s,
                             const po_mu_access *in, po_mu_access out);
po_mu_access part_same_access(po_mu *to, const po_mu *mu, const po_mu_access *a);

/* Appends all steps of a muGraph (append.c). twin: by tensor, `tensor` of `to`; what is PO_NONE is
 * copied. */
void part_append(po_arena *arena, po_mu *to, const po_mu *from, const po_mu_view *twin);

/* The same statement by statement: twin is written where a tensor is copied. */
typedef struct part_appending {
    po_arena *arena;
    po_mu *to;
    const po_mu *from;
    po_mu_view *twin;
    uint32_t *label, *node; /* by those of `from`: those of `to`, PO_NONE */
} part_appending;
part_appending part_append_begin(po_arena *arena, po_mu *to, const po_mu *from, po_mu_view *twin);
/* What stands for a label, a tensor, an access; copied where nothing does yet. */
uint32_t part_append_label(part_appending *a, uint32_t label);
uint32_t part_append_tensor(part_appending *a, uint32_t tensor);
po_mu_access part_append_access(part_appending *a, const po_mu_access *from);
/* Without its tile, and by itself where it was fused to another. */
void part_append_statement(part_appending *a, uint32_t parent, const po_mu_statement *s);

#endif
