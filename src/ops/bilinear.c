/* Powers of up to nine finite points and of infinity for A and G; for B the coefficients of
 * products of (x - point), whose factors stand apart in `scale`. All tables but G are exact in
 * float64. */
#include "ops/bilinear.h"

#include <math.h>
#include <string.h>

static const double points[PO_BILINEAR_MAX - 1] = {0, 1, -1, 0.5, -2, 2, -0.5, 1.5, -1.5};

/* Powers of the points, n x k; the last row is the point at infinity. */
static void powers(uint32_t n, uint32_t k, double *v) {
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t j = 0; j < k; j++)
            v[i * k + j] = i + 1 < n ? pow(points[i], j) : j + 1 == k;
}

/* Coefficients of the product of (x - point) over the first n - 1 points without `skip`: what the
 * inverse of the points' powers has for a row, up to a factor. Sums of products of dyadic numbers,
 * so exact. */
static void roots(uint32_t n, uint32_t skip, double *row) {
    uint32_t degree = 0;
    row[0] = 1;
    for (uint32_t k = 0; k + 1 < n; k++) {
        if (k == skip)
            continue;
        row[++degree] = 0;
        for (uint32_t j = degree; j > 0; j--)
            row[j] = row[j - 1] - points[k] * row[j];
        row[0] *= -points[k];
    }
}

bool po_bilinear_make(uint32_t m, uint32_t r, po_bilinear *algorithm) {
    uint32_t n = m + r - 1;
    if (m < 1 || r < 1 || n < 3 || n > PO_BILINEAR_MAX)
        return false;
    po_bilinear f = {.m = m, .r = r, .n = n, .one = 1};
    double v[PO_BILINEAR_MAX * PO_BILINEAR_MAX];
    powers(n, r, f.powers);
    powers(n, m, v);
    for (uint32_t i = 0; i < m; i++)
        for (uint32_t j = 0; j < n; j++)
            f.a[i * n + j] = v[j * m + i];
    for (uint32_t i = 0; i < n; i++) {
        roots(n, i, &f.b[(size_t)i * n]);
        f.scale[i] = 1;
        for (uint32_t j = 0; i + 1 < n && j + 1 < n; j++)
            f.scale[i] *= j == i ? 1 : points[i] - points[j];
        for (uint32_t j = 0; j < r; j++)
            f.g[i * r + j] = f.powers[i * r + j] / f.scale[i];
    }
    *algorithm = f;
    return true;
}
