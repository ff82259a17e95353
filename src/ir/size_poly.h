/* Between size.c (what lengths are together) and size_poly.c: a length as a polynomial over names
 * and over floor(P/n), min(P, Q), max(P, Q), each of these an atom by its text. */
#ifndef PO_IR_SIZE_POLY_H
#define PO_IR_SIZE_POLY_H

#include "ir/size.h"

typedef struct po_size_term {
    int64_t coef;
    uint32_t n;
    const char *atom[PO_SIZE_DEGREE]; /* in order, as they are written */
} po_size_term;

/* Terms in order, none with coefficient 0. Not ok: no length, or beyond the limits (size.h). */
typedef struct po_size_poly {
    bool ok;
    uint32_t n;
    po_size_term t[PO_SIZE_TERMS];
} po_size_poly;

/* --- terms: what does not fit is not ok afterwards --- */

void po_size_add_term(po_size_poly *p, const po_size_term *t, int64_t times);
void po_size_add_number(po_size_poly *p, int64_t n);
void po_size_add_poly(po_size_poly *p, const po_size_poly *q, int64_t times);
/* False where the term has no room. */
bool po_size_put_atom(po_size_term *t, const char *atom);
po_size_poly po_size_product(const po_size_poly *a, const po_size_poly *b);
bool po_size_is_number(const po_size_poly *p, int64_t *n);
/* The one atom that it is; NULL: it is more, or a number. */
const char *po_size_is_atom(const po_size_poly *p);

/* --- texts --- */

/* Whether a name may stand in an expression. */
bool po_size_is_plain(const char *name);
po_size_poly po_size_read(po_arena *arena, po_dim d);
const char *po_size_text_of(po_arena *arena, const po_size_poly *p);
po_dim po_size_dim_of(po_arena *arena, const po_size_poly *p);

/* What is inside of an atom; false where it is none of that word. `n`: what the floor is of a part
 * over; word: "min" or "max". */
bool po_size_read_floor(po_arena *arena, const char *atom, po_size_poly *inside, int64_t *n);
bool po_size_read_pair(po_arena *arena, const char *atom, const char *word, po_size_poly pair[2]);

#endif
