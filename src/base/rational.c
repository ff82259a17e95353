/* Fractions in lowest terms, denominators positive: every operation says whether its result fits 64
 * bits. Floats become fractions exactly or not at all; text has them as n/d. */
#include "base/rational.h"

#include "base/num.h"

#include <math.h>

bool po_rational_make(int64_t num, int64_t den, po_rational *out) {
    if (den == 0 || num == INT64_MIN || den == INT64_MIN)
        return false;
    int64_t g = po_gcd_i64(num < 0 ? -num : num, den < 0 ? -den : den);
    if (den < 0)
        g = -g;
    *out = (po_rational){num / g, den / g};
    return true;
}

bool po_rational_add(po_rational a, po_rational b, po_rational *out) {
    int64_t g = po_gcd_i64(a.den, b.den), x, y, num, den;
    return po_mul_i64(a.num, b.den / g, &x) && po_mul_i64(b.num, a.den / g, &y) &&
           po_add_i64(x, y, &num) && po_mul_i64(a.den, b.den / g, &den) &&
           po_rational_make(num, den, out);
}

bool po_rational_mul(po_rational a, po_rational b, po_rational *out) {
    /* Crosswise in lowest terms first, so that nothing overflows that need not. */
    po_rational x, y;
    int64_t num, den;
    return po_rational_make(a.num, b.den, &x) && po_rational_make(b.num, a.den, &y) &&
           po_mul_i64(x.num, y.num, &num) && po_mul_i64(x.den, y.den, &den) &&
           po_rational_make(num, den, out);
}

bool po_rational_from_f64(double value, po_rational *out) {
    if (value == 0) {
        *out = PO_RATIONAL(0);
        return true;
    }
    if (value - value != 0)
        return false;
    int exponent;
    double mantissa = frexp(value, &exponent);
    int64_t m = (int64_t)ldexp(mantissa, 53);
    exponent -= 53;
    while (m % 2 == 0) {
        m /= 2;
        exponent++;
    }
    if (exponent > 0) {
        int64_t scale;
        if (exponent > 62)
            return false;
        scale = (int64_t)1 << exponent;
        return po_mul_i64(m, scale, &m) && po_rational_make(m, 1, out);
    }
    return exponent >= -62 && po_rational_make(m, (int64_t)1 << -exponent, out);
}

bool po_rational_residue(po_field field, po_rational a, uint32_t *residue) {
    uint32_t den = po_field_i64(field, a.den);
    if (!den)
        return false;
    *residue = po_field_i64(field, a.num);
    if (den != 1)
        *residue = po_field_mul(field, *residue, po_field_inverse(field, den));
    return true;
}

bool po_rational_mod(po_rational a, uint32_t *residue) {
    return po_rational_residue(PO_FIELD_FIXED, a, residue);
}

void po_text_rational(po_text *text, po_rational value) {
    po_text_printf(text, "%lld", (long long)value.num);
    if (value.den != 1)
        po_text_printf(text, "/%lld", (long long)value.den);
}

/* Digits with a sign. po_scan_i64 would take the '/' for a part of the word. */
static po_status scan_part(po_scan *scan, int64_t *value) {
    bool negative = *scan->at == '-';
    const char *p = scan->at + negative;
    int64_t v = 0;
    if (*p < '0' || *p > '9')
        return po_scan_fail(scan, "expected a fraction");
    for (; *p >= '0' && *p <= '9'; p++)
        if (!po_mul_i64(v, 10, &v) || !po_add_i64(v, *p - '0', &v))
            return po_scan_fail(scan, "a number is too large");
    scan->at = p;
    *value = negative ? -v : v;
    return PO_OK;
}

po_status po_scan_rational(po_scan *scan, po_rational *value) {
    int64_t num, den = 1;
    po_scan_peek(scan);
    const char *at = scan->at;
    PO_TRY(scan_part(scan, &num));
    if (*scan->at == '/') {
        scan->at++;
        PO_TRY(scan_part(scan, &den));
    }
    if (po_rational_make(num, den, value))
        return PO_OK;
    scan->at = at;
    return po_scan_fail(scan, "this is no fraction");
}
