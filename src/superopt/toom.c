/* A, B and G from fixed points and infinity, in fractions of 64-bit numbers; what overflows is
 * refused. A stride is cut into phases, each with an algorithm of its own. */
#include "superopt/toom.h"

enum { MOST = 8, MOST_PRODUCTS = 16 };

/* Finite points by number of products less one. */
static const struct {
    uint32_t n;
    po_rational points[MOST - 1];
} points_of[] = {
    {2, {{0, 1}, {1, 1}}},
    {3, {{0, 1}, {1, 1}, {-1, 1}}},
    {4, {{0, 1}, {1, 1}, {-1, 1}, {1, 2}}},
    {5, {{0, 1}, {7, 10}, {-7, 10}, {3, 2}, {-3, 2}}},
    {6, {{0, 1}, {1, 1}, {-1, 1}, {1, 2}, {-1, 2}, {2, 1}}},
    {7, {{0, 1}, {1, 1}, {-1, 1}, {1, 2}, {-1, 2}, {2, 1}, {-2, 1}}},
};

static po_rational times(po_rational x, po_rational y, bool *ok) {
    po_rational r = PO_RATIONAL(0);
    *ok = po_rational_mul(x, y, &r) && *ok;
    return r;
}

static po_rational plus(po_rational x, po_rational y, bool *ok) {
    po_rational r = PO_RATIONAL(0);
    *ok = po_rational_add(x, y, &r) && *ok;
    return r;
}

static po_rational power(po_rational x, uint32_t n, bool *ok) {
    po_rational r = PO_RATIONAL(1);
    while (n--)
        r = times(r, x, ok);
    return r;
}

/* Coefficients of the product of (x - p) over all points but number `skip`. */
static void polynomial(const po_rational *p, uint32_t n, uint32_t skip, po_rational *out,
                       bool *ok) {
    uint32_t degree = 0;
    out[0] = PO_RATIONAL(1);
    for (uint32_t k = 0; k < n; k++) {
        if (k == skip)
            continue;
        out[degree + 1] = PO_RATIONAL(0);
        po_rational minus = {-p[k].num, p[k].den};
        for (uint32_t i = degree + 1; i > 0; i--)
            out[i] = plus(out[i - 1], times(out[i], minus, ok), ok);
        out[0] = times(out[0], minus, ok);
        degree++;
    }
}

/* One tap: each output by itself. */
static bool make_single(po_arena *arena, uint32_t m, po_toom *toom) {
    po_rational *one = PO_NEW_N(arena, po_rational, m * m);
    po_rational *taps = PO_NEW_N(arena, po_rational, m);
    for (uint32_t i = 0; i < m * m; i++)
        one[i] = PO_RATIONAL(i / m == i % m);
    for (uint32_t i = 0; i < m; i++)
        taps[i] = PO_RATIONAL(1);
    *toom = (po_toom){m, 1, m, one, one, taps};
    return true;
}

static bool make_dense(po_arena *arena, uint32_t m, uint32_t r, po_toom *toom) {
    uint32_t n = m + r - 1, row = 0;
    const uint32_t rows = sizeof points_of / sizeof points_of[0];
    while (row < rows && points_of[row].n != n - 1)
        row++;
    if (row == rows)
        return false;
    const po_rational *p = points_of[row].points;
    po_rational *a = PO_NEW_N(arena, po_rational, m * n);
    po_rational *b = PO_NEW_N(arena, po_rational, n * n);
    po_rational *g = PO_NEW_N(arena, po_rational, n * r);
    bool ok = true;
    for (uint32_t i = 0; i < n; i++) {
        bool infinity = i + 1 == n;
        po_rational scale = PO_RATIONAL(1), line[MOST + 1];
        for (uint32_t k = 0; k + 1 < n && !infinity; k++)
            if (k != i) {
                po_rational minus = {-p[k].num, p[k].den};
                scale = times(scale, plus(p[i], minus, &ok), &ok);
            }
        po_rational inverse;
        ok = po_rational_make(scale.den, scale.num, &inverse) && ok;
        for (uint32_t j = 0; j < r; j++)
            g[i * r + j] =
                infinity ? PO_RATIONAL(j + 1 == r) : times(power(p[i], j, &ok), inverse, &ok);
        for (uint32_t j = 0; j < m; j++)
            a[j * n + i] = infinity ? PO_RATIONAL(j + 1 == m) : power(p[i], j, &ok);
        polynomial(p, n - 1, infinity ? PO_NONE : i, line, &ok);
        for (uint32_t j = 0; j < n; j++)
            b[i * n + j] = infinity || j + 1 < n ? line[j] : PO_RATIONAL(0);
    }
    *toom = (po_toom){m, r, n, a, b, g};
    return ok;
}

bool po_toom_make(po_arena *arena, uint32_t m, uint32_t r, uint32_t stride, po_toom *toom) {
    uint32_t n = stride * (m - 1) + r, first = 0;
    if (m < 2 || r < 2 || stride < 1 || r < stride || n > MOST_PRODUCTS)
        return false;
    if (stride == 1)
        return make_dense(arena, m, r, toom);
    po_rational *a = PO_NEW_N(arena, po_rational, m * n);
    po_rational *b = PO_NEW_N(arena, po_rational, n * n);
    po_rational *g = PO_NEW_N(arena, po_rational, n * r);
    for (uint32_t i = 0; i < n * n; i++)
        b[i] = PO_RATIONAL(0);
    for (uint32_t i = 0; i < n * r; i++)
        g[i] = PO_RATIONAL(0);
    for (uint32_t phase = 0; phase < stride; phase++) {
        uint32_t taps = (r - phase + stride - 1) / stride;
        po_toom part;
        if (!(taps > 1 ? make_dense(arena, m, taps, &part) : make_single(arena, m, &part)))
            return false;
        for (uint32_t i = 0; i < part.n; i++) {
            for (uint32_t k = 0; k < part.n; k++)
                b[(first + i) * n + stride * k + phase] = part.b[i * part.n + k];
            for (uint32_t k = 0; k < taps; k++)
                g[(first + i) * r + stride * k + phase] = part.g[i * taps + k];
            for (uint32_t k = 0; k < m; k++)
                a[k * n + first + i] = part.a[k * part.n + i];
        }
        first += part.n;
    }
    *toom = (po_toom){m, r, n, a, b, g};
    return true;
}
