/* muGraphs for any size. A muGraph is made for one size of what is open, and says its numbers
 * there; here is what those numbers are of any other: lengths over names (ir/size.h), each the size
 * of an axis of what the region reads. Chunks and tiles stay numbers.
 *
 * What is laid out, where an access may leave its tensor and how far storage reaches is told for
 * all sizes at once. The same program at other sizes (po_mu_open_at) is a muGraph like any other,
 * to be checked, evaluated and proved. */
#ifndef PO_MUGRAPH_OPEN_H
#define PO_MUGRAPH_OPEN_H

#include "ir/type.h"
#include "mugraph/mugraph.h"

/* A number of the size at hand, and what it is of others. Of several for one number the first
 * stands for it; the program runs only where all of them are the same. */
typedef struct po_mu_number {
    int64_t number;
    po_dim is;
} po_mu_number;

/* The names of what is open, what they are at hand, and numbers that hang on them. */
typedef struct po_mu_naming {
    uint32_t n_names;
    const char *const *names; /* plain words (ir/size.h) */
    const int64_t *lengths;
    const po_mu_number *known;
    uint32_t n_known;
} po_mu_naming;

typedef po_dim po_mu_dims[PO_MU_MAX_RANK];
typedef bool po_mu_flags[PO_MU_MAX_RANK];

typedef struct po_mu_open {
    po_arena *arena;
    const po_mu *mu;          /* at the size at hand */
    uint32_t n_names;         /* 0: nothing is open */
    const char *const *names; /* plain words (ir/size.h) */
    po_dim *extent;           /* by label */
    po_mu_dims *dim, *stride; /* by tensor; strides in floats */
    po_dim *floats, *origin;  /* by tensor */
    bool *made;               /* by label: it counts parts that a schedule makes */
    po_mu_flags *reached;     /* by tensor: as long as what is written */
    const int64_t *here;      /* what the names are at hand */
    const po_mu_number *known;
    uint32_t n_known;
} po_mu_open;

/* Everything is the number that it is. */
const po_mu_open *po_mu_closed(po_arena *arena, const po_mu *mu);

/* Opens a muGraph: extents and dims that are a number of `known` are what that stands for, but for
 * labels that index constants; and what counts parts of those, or is as long as such parts,
 * follows. The muGraph is for a size at which no other number of it is one of these; its rings are
 * widened by what other sizes read past the dims. Constants that are 1 over such a number (means)
 * are known by that. PO_UNSUPPORTED, with the tensor, where something has no such length. */
po_status po_mu_open_by(po_ctx *ctx, po_arena *arena, po_mu *mu, const po_mu_naming *naming,
                        const po_mu_open **open);

/* Lengths of the names, in their order. */
bool po_mu_open_length(const po_mu_open *open, const int64_t *lengths, po_dim dim, int64_t *value);
/* The program at these sizes; NULL where a length is no number there. */
po_mu *po_mu_open_at(po_arena *arena, const po_mu_open *open, const int64_t *lengths);
/* Whether each of a program's labels has a length above 0 there: of some maps nothing is left. */
bool po_mu_open_is_there(const po_mu *there);

/* --- for all sizes --- */

/* The length that a constant is 1 over; false where it is the number that it is. */
bool po_mu_open_part(const po_mu_open *open, double value, po_dim *of);
bool po_mu_open_label(const po_mu_open *open, uint32_t label);
/* What a term of an index is multiplied by; what is a digit's base hangs on sizes as the digit
 * does: columns * row + column. po_mu_open_coef_of: by label, 0 where it has no term. */
po_dim po_mu_open_coef(const po_mu_open *open, const po_mu_index *index, uint32_t term);
po_dim po_mu_open_coef_of(const po_mu_open *open, const po_mu_index *index, uint32_t label);
/* The chunk of a loop that does not run all of its label at once; 0: it does. */
int64_t po_mu_open_chunk(const po_mu_open *open, uint32_t loop);
/* As po_mu_held: `count` for all sizes. */
bool po_mu_open_held(const po_mu_open *open, uint32_t tensor, uint32_t axis, int64_t *least,
                     po_dim *count);
/* Whether an access may leave the dims along an axis at some size. */
bool po_mu_open_leaves(const po_mu_open *open, const po_mu_access *access, uint32_t axis);
/* As po_mu_edge_of, for all sizes. */
po_mu_edge po_mu_open_edge(const po_mu_open *open, uint32_t statement, uint32_t operand);

#endif
