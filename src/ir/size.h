/* Lengths as expressions over the names that the model gives its open dims.
 *
 * A dim that is not known holds a name, or the text of an expression in brackets: "(past + 1)",
 * "(N*floor((H + 1)/2))". The text is the normal form: a polynomial with whole coefficients, its
 * terms in order, over names and over floor(P/n), min(P, Q), max(P, Q) of such polynomials. So
 * equal texts are equal lengths (po_dim_same), and types need no table beside them. Names that are
 * no plain words stand in no expression.
 *
 * Names are lengths: whole numbers, at least 0, or at least 1 where they end in PO_SIZE_POSITIVE.
 * What none of this can express, or what takes more terms than the limits below, is
 * PO_DIM_UNKNOWN, and so is what is made of that. */
#ifndef PO_IR_SIZE_H
#define PO_IR_SIZE_H

#include "ir/type.h"

enum {
    PO_SIZE_TERMS = 8,  /* of a polynomial */
    PO_SIZE_DEGREE = 8, /* factors of a term */
    PO_SIZE_TEXT = 240  /* bytes */
};

/* The end of a name that is at least 1, which no model's name has. */
#define PO_SIZE_POSITIVE "::1"
bool po_size_positive(const char *name);

/* Whether the symbol is an expression. */
static inline bool po_size_made(const char *symbol) {
    return symbol && symbol[0] == '(';
}

/* --- arithmetic: results are the arena's, or an operand --- */

po_dim po_size_add(po_arena *arena, po_dim a, po_dim b);
po_dim po_size_sub(po_arena *arena, po_dim a, po_dim b);
po_dim po_size_mul(po_arena *arena, po_dim a, po_dim b);
/* a + n, a n for any whole n; a result below 0 whatever the names are is unknown. */
po_dim po_size_plus(po_arena *arena, po_dim a, int64_t n);
po_dim po_size_times(po_arena *arena, po_dim a, int64_t n);
/* floor((a + plus) / n), n > 0. */
po_dim po_size_floor(po_arena *arena, po_dim a, int64_t plus, int64_t n);
/* a / b where b divides every term of a; else unknown. */
po_dim po_size_divide(po_arena *arena, po_dim a, po_dim b);
po_dim po_size_min(po_arena *arena, po_dim a, po_dim b);
po_dim po_size_max(po_arena *arena, po_dim a, po_dim b);

/* --- contents of shapes, which may be numbers below 0 --- */

/* A number as an item of such a list: those below 0 are kept as "(-1)", which is no length. */
po_dim po_size_item(po_arena *arena, int64_t number);
/* Whether the item is a number below 0. */
bool po_size_below_zero(po_dim item, int64_t *number);
/* The number that an item is; false where it is open. */
static inline bool po_size_number(po_dim item, int64_t *number) {
    *number = item.value;
    return item.value >= 0 || po_size_below_zero(item, number);
}
/* The length that an item is; unknown for a number below 0. */
static inline po_dim po_size_of_item(po_dim item) {
    int64_t number;
    return po_size_below_zero(item, &number) ? PO_DIM_UNKNOWN : item;
}

/* --- questions --- */

/* At least 0 whatever lengths the names are, as far as the terms show it. (A dim is so anyway: a
 * model in which one is not does not run.) */
bool po_size_natural(po_arena *arena, po_dim a);
/* b is the least of a and a number above 0: whatever broadcasts with a gives a. */
bool po_size_bounded_by(po_arena *arena, po_dim b, po_dim a);

/* The same expression in the words of someone else: names, sums of parts with coefficients, floor
 * of a part over a number. A product is a name of its own, and so are min and max. False for a
 * length that is not known. */
typedef struct po_size_builder {
    void *user;
    uint32_t (*name)(void *user, const char *name);
    uint32_t (*sum)(void *user, int64_t offset, uint32_t n, const int64_t *coefs,
                    const uint32_t *parts);
    uint32_t (*quotient)(void *user, uint32_t of, int64_t by);
} po_size_builder;
bool po_size_build(po_arena *arena, po_dim a, const po_size_builder *build, uint32_t *out);

/* What a model writes for a dim where it reads as an expression ("past + 1"), in normal form;
 * unknown where it does not. size_rename.c */
po_dim po_size_written(po_arena *arena, const char *symbol);

/* The same over other names: `rename` has a length for each name (and for each product of names);
 * unknown where it has none. size_rename.c */
typedef po_dim (*po_size_rename_fn)(void *user, const char *name);
po_dim po_size_renamed(po_arena *arena, po_dim a, po_size_rename_fn rename, void *user);

/* The number that an expression is, with names as `length` says; false where it does not know one,
 * or where numbers grow beyond 63 bits. */
typedef bool (*po_size_length_fn)(void *user, const char *name, int64_t *length);
bool po_size_at(po_arena *arena, po_dim a, po_size_length_fn length, void *user, int64_t *value);

#endif
