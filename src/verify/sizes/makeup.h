/* What values of a part of a model are made of, whatever the lengths of its open dims.
 *
 * A part has leaves, whose elements stand for any numbers, and nodes. Along every open axis, an
 * element of a value is made of elements of the leaves at places that follow from its own place
 * (verify/sizes/read.h), or of all of an axis, or of a fixed place of one; and what it makes of
 * them does not depend on its place, nor on the lengths, but for the class of the place. Where two
 * values are so and read no elements twice at some place, equal terms there are equal terms
 * everywhere (docs/proof.md, "Every size").
 *
 * Indexed sums are read at two assignments of lengths to which nothing else in a model is equal:
 * what differs between them is open, all else must be the same. */
#ifndef PO_VERIFY_SIZES_MAKEUP_H
#define PO_VERIFY_SIZES_MAKEUP_H

#include "ops/op.h"
#include "ops/sum/sum.h"
#include "verify/sizes/guard.h"
#include "verify/sizes/read.h"

enum {
    PO_MAKEUP_DIGITS = 16,
    PO_MAKEUP_SIZES = 3 /* two where lengths are large, and one tried */
};

/* A part of an axis, in order: of a merged one there are several. */
typedef struct po_digit {
    uint32_t axis;
    po_dim size; /* open: a name or an expression */
} po_digit;

typedef struct po_makeup_read {
    uint32_t leaf, leaf_axis, digit;
    po_read read;
    bool absent; /* what lies outside of the leaf is left out, not 0: windows of maxima */
} po_makeup_read;

/* What is read of a leaf's axis for every place that is added up over, or one place. */
enum { PO_EVERY_PLACE = -1 };
typedef struct po_makeup_tie {
    uint32_t leaf, leaf_axis;
    int64_t place;
    po_read read; /* of PO_EVERY_PLACE */
} po_makeup_tie;

typedef struct po_makeup {
    uint32_t n_digits;
    po_digit digit[PO_MAKEUP_DIGITS];
    uint32_t n_reads, cap_reads, n_ties, cap_ties;
    po_makeup_read *reads;
    po_makeup_tie *ties;
    bool strict;      /* outside of its axes the term need not be 0 */
    bool sums, means; /* over open axes */
    bool sized;       /* numbers that depend on lengths: only for shapes */
    bool placed;      /* positions (ops/indices.h): only for what follows from places */
    uint32_t poles;   /* leaves that it is divided by something of, by bit */
    /* How many indices a product of its terms may have, at most, and what it is the argument of. */
    double places, needed;
} po_makeup;

/* A part of a graph. */
typedef struct po_piece {
    po_ctx *ctx;
    po_arena *arena;
    po_oracle *oracle;                   /* of all parts */
    const po_graph *open;                /* with names for all open dims */
    const po_graph *at[PO_MAKEUP_SIZES]; /* the same with numbers; the last: those that are tried */
    po_makeup **makeup;                  /* by value; NULL: not found yet */
    uint32_t n_leaves, cap_leaves;
    const po_type **leaves; /* with names */
    bool full;              /* a value reads more than is looked at */
    char why[200];
} po_piece;

/* The value is leaf number `leaf`, in another shape perhaps, or with channels of zeros behind the
 * first `channels` (0: it has no others). False: it is not seen to be. */
bool po_piece_leaf(po_piece *part, po_value_id value, uint32_t leaf, int64_t channels);
/* The same with every axis whose parts are an open one and numbers as one digit. */
const po_makeup *po_makeup_merged(po_piece *part, const po_makeup *makeup);
/* The same with so many channels, the others being 0; 0: as it is. */
const po_makeup *po_makeup_trimmed(po_piece *part, const po_makeup *makeup, int64_t channels);
/* Whether a value is known without its nodes: a constant, or integers that follow from lengths. */
bool po_piece_is_known(const po_graph *open, po_value_id value);
/* Whether it is a Dropout that gives what it is given: outside of training, its mask not read. */
bool po_piece_passes(const po_graph *open, const po_node *node);
/* Finds the makeups of what the node makes, those of its inputs being found. PO_UNSUPPORTED with
 * part->why. */
po_status po_piece_node(po_piece *part, const po_node *node);

/* --- for the rules --- */

po_status po_piece_fail(po_piece *part, const po_node *node, const char *why);
/* The digits of an axis: the first, and behind the last. */
void po_makeup_axis(const po_makeup *makeup, uint32_t axis, uint32_t *from, uint32_t *to);
static inline bool po_digit_open(const po_digit *d) {
    return d->size.value < 0;
}
void po_makeup_add_read(po_piece *part, po_makeup *makeup, po_makeup_read read);
void po_makeup_add_tie(po_piece *part, po_makeup *makeup, po_makeup_tie tie);
/* What is read along the digits from..to is read along those from `own` on. */
void po_makeup_take(po_piece *part, po_makeup *out, uint32_t own, const po_makeup *of,
                    uint32_t from, uint32_t to);
/* The same for digits that are put behind the last, of an axis. False: there is no room. */
bool po_makeup_put(po_piece *part, po_makeup *out, uint32_t axis, const po_makeup *of,
                   uint32_t from, uint32_t to);
/* The leaves that are read, by bit. */
uint32_t po_makeup_leaves(const po_makeup *makeup);
/* Whether anything is read along the digits. */
bool po_makeup_reads(const po_makeup *makeup, uint32_t from, uint32_t to);
/* Whether an axis is split alike in both. */
bool po_makeup_same_digits(const po_makeup *a, uint32_t from, uint32_t to, const po_makeup *b,
                           uint32_t b_from, uint32_t b_to);
/* What holds of a part of a value: ties, sums, and what is needed. */
void po_makeup_inherit(po_piece *part, po_makeup *out, const po_makeup *of);
/* The makeup of a value by its type alone, without reads; NULL: a dim is not known. */
po_makeup *po_makeup_create(po_piece *part, const po_type *type);
/* All that is read along the digits from..to is tied: at one place, where it is read one by one
 * (else false), or at every one. */
bool po_makeup_tie_all(po_piece *part, po_makeup *out, const po_makeup *of, uint32_t from,
                       uint32_t to, int64_t place);

/* makeup_shape.c: the same elements in another shape; NULL where its axes are not seen to be made
 * of these. */
po_makeup *po_makeup_reshaped(po_piece *part, const po_makeup *makeup, const po_type *type);
/* makeup_window.c: a maximum over windows. */
po_status po_makeup_window(po_piece *part, const po_node *node);
/* makeup_sum.c: by the indexed sums of the node's output k. */
po_status po_makeup_sum(po_piece *part, const po_node *node, uint32_t k,
                        const po_sum *const *sums /* PO_MAKEUP_SIZES */);
/* makeup_lengths.c. By lengths nodes only say how far they go: what else they do by one may be
 * another where it is cut off at an end, or a quotient or minimum. Resize makes maps larger by so
 * many times, or by what is no whole number, where lengths are sums of multiples of names. */
bool po_piece_follows_lengths(po_piece *part, const po_node *node);
/* As much padding for every length. */
bool po_piece_pads_alike(const po_piece *part, const po_node *node);
/* What follows from places alone, whatever the lengths: a condition that is the same everywhere, or
 * a row; or positions, which only say where something lies. */
bool po_piece_follows_places(po_piece *part, const po_node *node);

#endif
