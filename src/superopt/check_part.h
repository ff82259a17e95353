/* Steps that are looked at, and parts of what they write: the muGraph of one part alone, with
 * inputs cut to what the part needs. */
#ifndef PO_SUPEROPT_CHECK_PART_H
#define PO_SUPEROPT_CHECK_PART_H

#include "superopt/bands.h"

/* The statements of the steps, and what the last of them writes. */
typedef struct po_looked_steps {
    uint32_t n, n_steps, step_of[2 * PO_BANDS_MOST];
    const po_mu_statement *s[2 * PO_BANDS_MOST];
    const po_mu_access *out;
    bool *inner; /* by naive tensor: passes from one of them to another */
} po_looked_steps;

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
/* The next element of a box in row-major order; false after the last. `index` starts at from. */
bool po_part_next(const po_part_box *box, uint32_t rank, int64_t *index);

enum { PO_PARTS_MOST = 3 };

/* In elements of the output, but for rows. */
typedef struct po_part_size {
    int64_t whole;       /* up to here it is one part */
    int64_t least, rows; /* of one part: so many elements, so many rows */
} po_part_size;
extern const po_part_size po_part_usual;

/* A large output is looked at in its first, its last and some other rows along one axis, where it
 * can be cut: *n_parts of them. False: the steps read what they write, which has no value by
 * itself. */
bool po_step_parts(po_arena *arena, const po_mu *naive, const po_looked_steps *n,
                   const po_part_size *size, po_step_part *parts, uint32_t *n_parts);

#endif
