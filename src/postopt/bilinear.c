#include "postopt/bilinear.h"

#include <math.h>

static const double points[PO_BILINEAR_MAX - 1] = {0, 1, -1, 0.5, -2, 2, -0.5};

/* Powers of the points, n x k; the last row is the point at infinity. */
static void powers(uint32_t n, uint32_t k, double *v) {
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t j = 0; j < k; j++)
            v[i * k + j] = i + 1 < n ? pow(points[i], j) : j + 1 == k;
}

/* In place, by Gauss and Jordan with row exchange; the points differ, so it is regular. */
static void invert(uint32_t n, double *v) {
    double w[PO_BILINEAR_MAX * PO_BILINEAR_MAX] = {0};
    for (uint32_t i = 0; i < n; i++)
        w[i * n + i] = 1;
    for (uint32_t c = 0; c < n; c++) {
        uint32_t pivot = c;
        for (uint32_t i = c + 1; i < n; i++)
            if (fabs(v[i * n + c]) > fabs(v[pivot * n + c]))
                pivot = i;
        double scale = 1 / v[pivot * n + c];
        for (uint32_t j = 0; j < n; j++) {
            double a = v[pivot * n + j], b = w[pivot * n + j];
            v[pivot * n + j] = v[c * n + j];
            w[pivot * n + j] = w[c * n + j];
            v[c * n + j] = a * scale;
            w[c * n + j] = b * scale;
        }
        for (uint32_t i = 0; i < n; i++) {
            double factor = i == c ? 0 : v[i * n + c];
            for (uint32_t j = 0; factor != 0 && j < n; j++) {
                v[i * n + j] -= factor * v[c * n + j];
                w[i * n + j] -= factor * w[c * n + j];
            }
        }
    }
    memcpy(v, w, n * n * sizeof *v);
}

bool po_bilinear_make(uint32_t m, uint32_t r, po_bilinear *algorithm) {
    uint32_t n = m + r - 1;
    if (m < 1 || r < 1 || n < 3 || n > PO_BILINEAR_MAX)
        return false;
    po_bilinear f = {.m = m, .r = r, .n = n, .one = 1};
    double v[PO_BILINEAR_MAX * PO_BILINEAR_MAX];
    powers(n, n, v);
    invert(n, v);
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t j = 0; j < n; j++)
            f.b[i * n + j] = v[j * n + i];
    powers(n, r, f.g);
    powers(n, m, v);
    for (uint32_t i = 0; i < m; i++)
        for (uint32_t j = 0; j < n; j++)
            f.a[i * n + j] = v[j * m + i];
    /* The fractions go where float64 holds them: into the weights. */
    for (uint32_t i = 0; i + 1 < n; i++) {
        double scale = 1;
        for (uint32_t j = 0; j + 1 < n; j++)
            scale *= j == i ? 1 : points[i] - points[j];
        for (uint32_t j = 0; j < n; j++)
            f.b[i * n + j] *= scale;
        for (uint32_t j = 0; j < r; j++)
            f.g[i * r + j] /= scale;
    }
    *algorithm = f;
    return true;
}
