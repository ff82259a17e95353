/* Powers of finite points and of infinity for A and G; for B the coefficients of products of
 * (x - point), whose factors stand apart in `scale`. In fractions of 64-bit numbers; what overflows
 * is refused. */
#include "ops/sum/bilinear.h"

#include <math.h>

/* The first n - 1 of a row serve n products. */
static const struct {
    po_points of;
    uint32_t least, most; /* products */
    po_rational points[PO_BILINEAR_MAX - 1];
} points_of[] = {
    {PO_POINTS_DYADIC,
     3,
     PO_BILINEAR_MAX,
     {{0, 1}, {1, 1}, {-1, 1}, {1, 2}, {-2, 1}, {2, 1}, {-1, 2}, {3, 2}, {-3, 2}}},
    {PO_POINTS_STEADY, 3, 5, {{0, 1}, {1, 1}, {-1, 1}, {1, 2}}},
    {PO_POINTS_STEADY, 6, 6, {{0, 1}, {7, 10}, {-7, 10}, {3, 2}, {-3, 2}}},
    {PO_POINTS_STEADY, 7, 8, {{0, 1}, {1, 1}, {-1, 1}, {1, 2}, {-1, 2}, {2, 1}, {-2, 1}}},
};

/* The tables of an algorithm in the making, and what overflowed. */
typedef struct making {
    uint32_t m, r, n, stride;
    po_rational *a, *b, *g, *powers, *scale;
    uint32_t one;
    bool ok;
} making;

static po_rational times(making *t, po_rational x, po_rational y) {
    po_rational r = PO_RATIONAL(0);
    t->ok = po_rational_mul(x, y, &r) && t->ok;
    return r;
}

static po_rational less(making *t, po_rational x, po_rational y) {
    po_rational r = PO_RATIONAL(0);
    t->ok = po_rational_add(x, (po_rational){-y.num, y.den}, &r) && t->ok;
    return r;
}

static po_rational power(making *t, po_rational x, uint32_t n) {
    po_rational r = PO_RATIONAL(1);
    while (n--)
        r = times(t, r, x);
    return r;
}

/* Coefficients of the product of (x - p) over all n points but number `skip`: what the inverse of
 * the points' powers has for a row, up to a factor. */
static void polynomial(making *t, const po_rational *p, uint32_t n, uint32_t skip,
                       po_rational *out) {
    uint32_t degree = 0;
    out[0] = PO_RATIONAL(1);
    for (uint32_t k = 0; k < n; k++) {
        if (k == skip)
            continue;
        out[++degree] = PO_RATIONAL(0);
        for (uint32_t i = degree; i > 0; i--)
            out[i] = less(t, out[i - 1], times(t, out[i], p[k]));
        out[0] = times(t, out[0], (po_rational){-p[k].num, p[k].den});
    }
}

/* A residue's products from row `first` on: taps q, q + stride, ..; inputs and taps of other
 * residues count zero. */
static void add_products(making *t, const po_rational *p, uint32_t q, uint32_t taps,
                         uint32_t first) {
    const uint32_t n = t->m + taps - 1;
    for (uint32_t i = 0; i < n; i++) {
        const bool infinity = i + 1 == n;
        const uint32_t at = first + i;
        po_rational line[PO_BILINEAR_MAX];
        t->scale[at] = PO_RATIONAL(1);
        for (uint32_t k = 0; k + 1 < n && !infinity; k++)
            if (k != i)
                t->scale[at] = times(t, t->scale[at], less(t, p[i], p[k]));
        for (uint32_t j = 0; j < taps; j++)
            t->powers[at * t->r + q + t->stride * j] =
                infinity ? PO_RATIONAL(j + 1 == taps) : power(t, p[i], j);
        for (uint32_t j = 0; j < t->m; j++)
            t->a[j * t->n + at] = infinity ? PO_RATIONAL(j + 1 == t->m) : power(t, p[i], j);
        polynomial(t, p, n - 1, infinity ? PO_NONE : i, line);
        for (uint32_t j = 0; j < n; j++)
            t->b[at * t->n + q + t->stride * j] = infinity || j + 1 < n ? line[j] : PO_RATIONAL(0);
        if (t->one == PO_NONE && !infinity && po_rational_equal(p[i], PO_RATIONAL(1)))
            t->one = at;
    }
}

/* One tap: each output has a product of its own. */
static void add_single(making *t, uint32_t q, uint32_t first) {
    for (uint32_t i = 0; i < t->m; i++) {
        t->a[i * t->n + first + i] = t->scale[first + i] = PO_RATIONAL(1);
        t->b[(first + i) * t->n + q + t->stride * i] = PO_RATIONAL(1);
        t->powers[(first + i) * t->r + q] = PO_RATIONAL(1);
    }
}

/* Of residue q. */
static uint32_t taps_of(uint32_t r, uint32_t stride, uint32_t q) {
    return (r - q + stride - 1) / stride;
}

static const po_rational *find_points(po_points points, uint32_t n) {
    for (size_t i = 0; i < sizeof points_of / sizeof points_of[0]; i++)
        if (points_of[i].of == points && n >= points_of[i].least && n <= points_of[i].most)
            return points_of[i].points;
    return NULL;
}

static po_rational *zeros(po_arena *arena, uint32_t count) {
    po_rational *v = PO_NEW_N(arena, po_rational, count);
    for (uint32_t i = 0; i < count; i++)
        v[i] = PO_RATIONAL(0);
    return v;
}

static const double *doubles(po_arena *arena, const po_rational *v, uint32_t count) {
    double *d = PO_NEW_N(arena, double, count);
    for (uint32_t i = 0; i < count; i++)
        d[i] = po_rational_f64(v[i]);
    return d;
}

static bool divide_scale(making *t) {
    for (uint32_t i = 0; i < t->n; i++) {
        po_rational inverse;
        if (!po_rational_make(t->scale[i].den, t->scale[i].num, &inverse))
            return false;
        for (uint32_t j = 0; j < t->r; j++)
            t->g[i * t->r + j] = times(t, t->powers[i * t->r + j], inverse);
    }
    return t->ok;
}

bool po_bilinear_make(po_arena *arena, po_points points, uint32_t m, uint32_t r, uint32_t stride,
                      po_bilinear *algorithm) {
    if (m < 2 || r < 2 || stride < 1 || r < stride || m > PO_BILINEAR_MAX ||
        r > stride * PO_BILINEAR_MAX)
        return false;
    making t = {
        .m = m, .r = r, .n = stride * (m - 1) + r, .stride = stride, .one = PO_NONE, .ok = true};
    for (uint32_t q = 0; q < stride; q++) {
        const uint32_t taps = taps_of(r, stride, q);
        if (taps > 1 && !find_points(points, m + taps - 1))
            return false;
    }
    t.a = zeros(arena, m * t.n);
    t.b = zeros(arena, t.n * t.n);
    t.g = zeros(arena, t.n * r);
    t.powers = zeros(arena, t.n * r);
    t.scale = zeros(arena, t.n);
    for (uint32_t q = 0, first = 0; q < stride; q++) {
        const uint32_t taps = taps_of(r, stride, q);
        if (taps > 1)
            add_products(&t, find_points(points, m + taps - 1), q, taps, first);
        else
            add_single(&t, q, first);
        first += m + taps - 1;
    }
    if (!divide_scale(&t))
        return false;
    *algorithm = (po_bilinear){.m = m,
                               .r = r,
                               .n = t.n,
                               .a = doubles(arena, t.a, m * t.n),
                               .b = doubles(arena, t.b, t.n * t.n),
                               .powers = doubles(arena, t.powers, t.n * r),
                               .scale = doubles(arena, t.scale, t.n),
                               .one = t.one,
                               .exact_a = t.a,
                               .exact_b = t.b,
                               .exact_g = t.g};
    return true;
}

/* --- rounding --- */

/* The absolute values of the coefficients of the product of (x - p) over all n points but number
 * `skip`, added up. */
static double coefficients(const double *p, uint32_t n, uint32_t skip) {
    double c[PO_BILINEAR_MAX] = {1}, sum = 0;
    uint32_t degree = 0;
    for (uint32_t k = 0; k < n; k++) {
        if (k == skip)
            continue;
        c[++degree] = 0;
        for (uint32_t i = degree + 1; i-- > 0;)
            c[i] = (i > 0 ? c[i - 1] : 0) - p[k] * c[i];
    }
    for (uint32_t i = 0; i <= degree; i++)
        sum += fabs(c[i]);
    return sum;
}

/* Of F(m, taps), output i: all products, by what they read. */
static double output_of(const double *p, uint32_t m, uint32_t taps, uint32_t i) {
    const uint32_t n = m + taps - 1;
    double sum = i + 1 == m ? coefficients(p, n - 1, PO_NONE) : 0; /* infinity */
    for (uint32_t k = 0; k + 1 < n; k++) {
        double scale = 1, weights = 0;
        for (uint32_t l = 0; l + 1 < n; l++)
            scale *= l == k ? 1 : p[k] - p[l];
        for (uint32_t j = 0; j < taps; j++)
            weights += fabs(pow(p[k], j) / scale);
        sum += fabs(pow(p[k], i)) * weights * coefficients(p, n - 1, k);
    }
    return sum;
}

double po_bilinear_magnifies(po_points points, uint32_t m, uint32_t r, uint32_t stride) {
    double most = 0, p[PO_BILINEAR_MAX];
    for (uint32_t i = 0; i < m; i++) {
        double sum = 0;
        for (uint32_t q = 0; q < stride && q < r; q++) {
            const uint32_t taps = taps_of(r, stride, q);
            const po_rational *of = m > 1 && taps > 1 ? find_points(points, m + taps - 1) : NULL;
            for (uint32_t k = 0; of && k + 2 < m + taps; k++)
                p[k] = po_rational_f64(of[k]);
            sum += of ? output_of(p, m, taps, i) : taps;
        }
        most = fmax(most, sum / r);
    }
    return most;
}
