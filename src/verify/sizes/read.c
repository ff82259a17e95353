/* Reads of one axis, one after the other. */
#include "verify/sizes/read.h"

#include "base/num.h"

/* Beyond this no model goes; products of two stay in 63 bits. */
enum { MOST = 1 << 24 };

static int64_t floor_div(int64_t a, int64_t b) {
    return a / b - (a % b != 0 && (a < 0) != (b < 0));
}

static bool small(int64_t a) {
    return a > -(int64_t)MOST && a < MOST;
}

bool po_read_pace(po_read of, po_pace s, po_paced *out) {
    const int64_t g = po_gcd_i64(s.in, of.m), period = of.m / g;
    int64_t t = 0;
    if (!small(of.m) || !small(of.alpha) || !small(of.beta) || !small(s.in) || !small(s.in_base) ||
        !small(s.out) || !small(s.out_base) || s.out < 1 || s.in < 1)
        return false;
    /* The first t >= 0 whose element is of the class rho. */
    while (t < period && (s.in * t + s.in_base - of.rho) % of.m != 0)
        t++;
    if (t == period)
        return false;
    /* t + period u: element of the operand m (first + in / g u) + rho, of the output
     * out period u + (out t + out_base). */
    const int64_t first = floor_div(s.in * t + s.in_base - of.rho, of.m);
    const int64_t m = s.out * period, at = s.out * t + s.out_base, turns = floor_div(at, m);
    const int64_t alpha = of.alpha * (s.in / g);
    out->read = (po_read){m, at - turns * m, alpha, of.alpha * first + of.beta - alpha * turns};
    out->by = period;
    out->at = t - period * turns;
    return small(m) && small(alpha) && small(out->read.beta);
}
