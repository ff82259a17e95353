/* What residue a constant has, by its value alone. A fraction of a few digits that rounds to the
 * number is meant by it; any other number is a variable of its own, and so is its negative: the
 * negative of that variable. */
#include "base/modp.h"
#include "boxes/program.h"

#include <math.h>

/* Fractions that are looked for: of the divisors of these, with limited numerators, so that few
 * numbers fit by chance. Their values stay in a range in which no two are each other's multiple by
 * 2^31, which is 1 modulo the prime. */
static const double bases[] = {720720, 1000000, 84672};
enum { BASES = sizeof bases / sizeof bases[0], MOST_NUMERATOR = 1 << 21, MOST_DYADIC = 1 << 14 };

static bool as_dyadic(double value, uint32_t *residue) {
    double scaled = value * MOST_DYADIC;
    if (!(fabs(value) < MOST_DYADIC) || scaled != nearbyint(scaled))
        return false;
    *residue = po_mod_mul(po_mod_i64((int64_t)scaled), po_mod_inverse(MOST_DYADIC));
    return true;
}

uint32_t po_program_constant(double value, po_dtype dtype) {
    int digits = dtype == PO_F64 ? 53 : dtype == PO_F16 ? 11 : dtype == PO_BF16 ? 8 : 24, exponent;
    uint32_t residue;
    if (isfinite(value) && as_dyadic(value, &residue))
        return residue;
    if (isfinite(value)) {
        frexp(value, &exponent);
        double half_unit = ldexp(0.5, exponent - digits);
        for (uint32_t i = 0; i < BASES; i++) {
            double whole = nearbyint(value * bases[i]);
            if (whole != 0 && fabs(whole) < MOST_NUMERATOR &&
                fabs(fma(value, bases[i], -whole)) <= half_unit * bases[i])
                return po_mod_mul(po_mod_i64((int64_t)whole), po_mod_inverse((uint32_t)bases[i]));
        }
    }
    uint64_t bits;
    double magnitude = fabs(value);
    memcpy(&bits, &magnitude, sizeof bits);
    residue = (uint32_t)(po_random_u64(0x636f6e7374, 0, bits) % PO_P);
    return signbit(value) ? po_mod_neg(residue) : residue;
}
