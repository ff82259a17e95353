/* Exact fractions of 64-bit numbers. */
#ifndef PO_BASE_RATIONAL_H
#define PO_BASE_RATIONAL_H

#include "base/field.h"
#include "base/scan.h"

typedef struct po_rational {
    int64_t num, den; /* lowest terms, den > 0 */
} po_rational;

#define PO_RATIONAL(n) ((po_rational){(n), 1})

/* Each returns false where the result does not fit (or den is 0). */
bool po_rational_make(int64_t num, int64_t den, po_rational *out);
bool po_rational_add(po_rational a, po_rational b, po_rational *out);
bool po_rational_mul(po_rational a, po_rational b, po_rational *out);
/* The exact value of a finite double. */
bool po_rational_from_f64(double value, po_rational *out);

static inline bool po_rational_equal(po_rational a, po_rational b) {
    return a.num == b.num && a.den == b.den;
}
static inline double po_rational_f64(po_rational a) {
    return (double)a.num / (double)a.den;
}
/* The residue modulo PO_P (base/modp.h). False where the denominator is a multiple of it. */
bool po_rational_mod(po_rational a, uint32_t *residue);
/* The same in any field. */
bool po_rational_residue(po_field field, po_rational a, uint32_t *residue);

/* "3", "-1/2". */
void po_text_rational(po_text *text, po_rational value);
po_status po_scan_rational(po_scan *scan, po_rational *value);

#endif
