/* What residue a constant has. By value alone, so that names, layouts and element types do not
 * matter: a simple fraction within half a unit in the last place is that fraction; sqrt 2 and
 * sqrt(2 / pi) times one are themselves times one; any other number is a variable of its own, of
 * which its negative is the negative. */
#include "base/clones.h"
#include "verify/proof/internal.h"

#include <math.h>

/* Denominators that are looked for: the divisors of these. The numerators over them are limited so
 * that few numbers fit by chance. */
static const uint32_t bases[PO_PC_BASES] = {720720, 1000000, 84672};
enum { DYADIC = 4096, FEW = 64, MILLION = 1, MOST_NUMERATOR = 1 << 21 };

po_pfractions po_pc_fractions(po_field field) {
    po_pfractions f = {po_field_inverse(field, DYADIC), po_field_inverse(field, FEW), {0}};
    for (int k = 0; k < PO_PC_BASES; k++)
        f.bases[k] = po_field_inverse(field, bases[k]);
    return f;
}

/* How far a number near 1 of this type may be from the one that is meant. Floats of 16 and 8 bits
 * are taken at their word, as floats that they are cast to are: almost every number is within their
 * rounding of some fraction. */
static double half_bit(po_dtype dtype) {
    return po_dtype_half_bit(dtype == PO_F64 ? PO_F64 : PO_F32);
}

/* Half a unit in the last place of a normal number of this type. A double that is a float was one.
 */
static double half_ulp(double value, po_dtype dtype) {
    if (dtype == PO_F64 && (double)(float)value == value)
        dtype = PO_F32;
    double half = half_bit(dtype);
    uint64_t u;
    memcpy(&u, &value, sizeof u);
    u &= 0x7ff0000000000000;
    memcpy(&value, &u, sizeof value);
    return value * half;
}

/* The nearest whole number of |v| < 2^51, without a call. */
static inline double nearest(double v) {
    return v + 0x1.8p52 - 0x1.8p52;
}

/* value as numerator / base. */
static bool over(double value, double base, double tolerance, int64_t *numerator) {
    double scaled = value * base, whole = nearest(scaled);
    if (!(fabs(scaled) < MOST_NUMERATOR) || !(fabs(scaled - whole) <= 1.01 * tolerance * base) ||
        !(fabs(fma(value, base, -whole)) < tolerance * base))
        return false;
    *numerator = (int64_t)whole;
    return true;
}

static uint32_t fraction(const po_prun *run, int64_t numerator, uint32_t inverse) {
    return po_field_mul(run->field, po_field_i64(run->field, numerator), inverse);
}

static bool dyadic(const po_prun *run, double value, uint32_t *residue) {
    double scaled = value * DYADIC;
    if (!(fabs(scaled) < 0x1p30) || scaled != nearest(scaled))
        return false;
    *residue = fraction(run, (int64_t)scaled, run->fractions.dyadic);
    return true;
}

static bool simple(const po_prun *run, double value, double tolerance, uint32_t *residue) {
    for (int k = 0; k < PO_PC_BASES; k++) {
        int64_t numerator;
        if (over(value, bases[k], tolerance, &numerator) && numerator != 0) {
            *residue = fraction(run, numerator, run->fractions.bases[k]);
            return true;
        }
    }
    return false;
}

/* q times a root for few q, so that it is hardly ever met by chance. */
static bool times(double value, double root, double tolerance, uint32_t base, int64_t *numerator) {
    enum { MOST = 4096 };
    return over(value / root, base, tolerance / root, numerator) && *numerator != 0 &&
           *numerator > -MOST && *numerator < MOST;
}

/* q sqrt 2 for whole q, else q / sqrt 2: so that sqrt 2 and its inverse cancel. */
static bool named(const po_prun *run, double value, double tolerance, uint32_t *residue) {
    static const double root2 = 1.4142135623730950488, gelu = 0.79788456080286535588,
                        cubic = 0.044715;
    uint32_t root = po_pf(run->field, run->seed ^ 0x726f6f7432, 1),
             c = po_pf(run->field, run->seed ^ 0x726f6f747069, 1);
    int64_t q;
    tolerance += fabs(value) * 0x1p-52; /* of the quotients below */
    if (times(value, root2, tolerance, 1, &q))
        *residue = po_field_mul(run->field, po_field_i64(run->field, q), root);
    else if (times(value, 1 / root2, tolerance, FEW, &q))
        *residue = po_field_mul(run->field, fraction(run, q, run->fractions.few),
                                po_field_inverse(run->field, root));
    else if (times(value, gelu, tolerance, FEW, &q))
        *residue = po_field_mul(run->field, fraction(run, q, run->fractions.few), c);
    else if (times(value, gelu * cubic, tolerance, FEW, &q))
        *residue = po_field_mul(run->field,
                                po_field_mul(run->field, fraction(run, q, run->fractions.few),
                                             fraction(run, 44715, run->fractions.bases[MILLION])),
                                c);
    else
        return false;
    return true;
}

static uint32_t variable(const po_prun *run, double value) {
    uint64_t bits;
    double magnitude = fabs(value);
    memcpy(&bits, &magnitude, sizeof bits);
    uint32_t v = po_pf(run->field, run->seed ^ 0x76617269, bits);
    return value < 0 ? po_field_neg(run->field, v) : v;
}

uint32_t po_pc_residue(const po_prun *run, double value, po_dtype dtype, bool lone) {
    uint32_t residue;
    double tolerance = half_ulp(value, dtype);
    if (!isfinite(value))
        return variable(run, value);
    if (dyadic(run, value, &residue) || (lone && named(run, value, tolerance, &residue)) ||
        simple(run, value, tolerance, &residue))
        return residue;
    return variable(run, value);
}

enum { PIECE = 1024 };

/* Which numbers may be more than a variable: few of most weights. Tolerances are those of floats,
 * which are no smaller than a double's. */
PO_CLONES("avx512f", "avx2")
static void screen(uint32_t n, const double *restrict v, double half, uint64_t *restrict maybe) {
    for (uint32_t i = 0; i < n; i++) {
        union {
            double f;
            uint64_t u;
        } magnitude = {.f = v[i]};
        magnitude.u &= 0x7ff0000000000000;
        double tolerance = 1.01 * half * magnitude.f;
        double a = v[i] * DYADIC, b = v[i] * bases[0];
        double c = v[i] * bases[1], d = v[i] * bases[2];
        uint64_t found = a == nearest(a);
        found |= fabs(b - nearest(b)) <= tolerance * bases[0];
        found |= fabs(c - nearest(c)) <= tolerance * bases[1];
        found |= fabs(d - nearest(d)) <= tolerance * bases[2];
        maybe[i] = found;
    }
}

void po_pc_residues(const po_prun *run, const po_tensor *tensor, uint32_t *out) {
    bool lone = tensor->count == 1;
    const double half = half_bit(PO_F32);
    uint64_t maybe[PIECE];
    double v[PIECE];
    for (int64_t at = 0; at < tensor->count; at += PIECE) {
        uint32_t n = tensor->count - at < PIECE ? (uint32_t)(tensor->count - at) : PIECE;
        po_tensor_read_f64(tensor, at, n, v);
        screen(n, v, half, maybe);
        for (uint32_t i = 0; i < n; i++)
            out[at + i] = maybe[i] || lone ? po_pc_residue(run, v[i], tensor->dtype, lone)
                                           : variable(run, v[i]);
    }
}
