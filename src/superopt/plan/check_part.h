/* Steps that are looked at, and parts of what they write: the muGraph of one part alone, with
 * inputs cut to what the part needs. */
#ifndef PO_SUPEROPT_CHECK_PART_H
#define PO_SUPEROPT_CHECK_PART_H

#include "superopt/plan/row_fusion.h"

/* The statements of the steps, and what the last of them writes. */
typedef struct po_looked_steps {
    uint32_t n, n_steps, step_of[2 * PO_WINDOW_MOST];
    const po_mu_statement *s[2 * PO_WINDOW_MOST];
    const po_mu_access *out;
    bool *inner; /* by naive tensor: passes from one of them to another */
} po_looked_steps;

/* n_steps steps of a naive muGraph from this one on; false where one has another form. */
bool po_look_at_steps(po_arena *arena, const po_mu *naive, uint32_t step, uint32_t n_steps,
                      po_looked_steps *n);

/* A box of a tensor's elements, [from, to) along each axis; to 0: none of it. */
typedef struct po_part_box {
    int64_t from[PO_MU_MAX_RANK], to[PO_MU_MAX_RANK];
} po_part_box;

/* What no element is: stands where the steps write nothing. */
#define PO_UNTOUCHED 0x1p1020

typedef struct po_step_part {
    const po_mu *mu; /* inputs in the order of the naive tensors, cut to their boxes; one output */
    po_part_box *boxes; /* by naive tensor */
    int64_t count;      /* elements of the output */
} po_step_part;

/* Elements of a box of a tensor of that rank. */
int64_t po_part_elements(const po_part_box *box, uint32_t rank);
po_part_box po_part_whole(const po_mu_tensor *t);

/* Goes through a box in row-major order; `at`: where the element lies. */
typedef struct po_part_walk {
    const po_part_box *box;
    uint32_t rank;
    int64_t at, index[PO_MU_MAX_RANK], stride[PO_MU_MAX_RANK];
} po_part_walk;
/* In memory with these strides, where element 0 lies at `origin`. */
po_part_walk po_part_walk_by(const po_part_box *box, uint32_t rank, const int64_t *stride,
                             int64_t origin);
/* By the elements' row-major numbers in the whole tensor. */
po_part_walk po_part_walk_in(const po_part_box *box, const po_mu_tensor *t);
/* The next one; false after the last. */
bool po_part_next(po_part_walk *w);
/* The same by rows along the last axis: elements of the one that the walk is at the beginning of,
 * and what lies between them; the next one. */
int64_t po_part_row(const po_part_walk *w, int64_t *step);
bool po_part_next_row(po_part_walk *w);

enum { PO_PARTS_MOST = 3 };

/* In elements, but for rows. */
typedef struct po_part_size {
    int64_t whole, whole_of_all; /* of the output, and of all that is gone through: up to here it is
                                  * one part */
    int64_t least, rows;         /* of one part: so many elements of the output, so many rows */
    int64_t work, columns; /* terms of all, beyond which a part has so many along another axis */
} po_part_size;
extern const po_part_size po_part_usual;

/* A large output is looked at in its first, its last and some other rows along one axis, where it
 * can be cut, and one that takes long in parts of those along another: *n_parts of them. False: the
 * steps read what they write, which has no value by itself. */
bool po_step_parts(po_arena *arena, const po_mu *naive, const po_looked_steps *n,
                   const po_part_size *size, po_step_part *parts, uint32_t *n_parts);

#endif
