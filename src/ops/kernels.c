/* Updates y += a x of one row or of four, compiled for AVX2 too, and the matrix product made of
 * them. Columns that lie apart are copied to tiles of 64 by 64 first. */
#include "ops/kernels.h"

#include "base/clones.h"

/* Wider vectors where the machine has them; the results are the same. */
#define WIDE PO_CLONES("avx2")

enum { COLUMNS = 512, TILE = 64 };

WIDE static void axpy(double *to, int64_t to_step, const double *from, int64_t from_step, double a,
                      int64_t n) {
    if (to_step == 1 && from_step == 1) {
        for (int64_t i = 0; i < n; i++)
            to[i] += a * from[i];
        return;
    }
    for (int64_t i = 0; i < n; i++)
        to[i * to_step] += a * from[i * from_step];
}

WIDE static void axpy4(double *to, int64_t row, const double *from, int64_t from_step,
                       const double *a, int64_t n) {
    double *restrict t0 = to, *restrict t1 = to + row;
    double *restrict t2 = to + 2 * row, *restrict t3 = to + 3 * row;
    const double a0 = a[0], a1 = a[1], a2 = a[2], a3 = a[3];
    if (from_step == 1) {
        for (int64_t i = 0; i < n; i++) {
            double v = from[i];
            t0[i] += a0 * v;
            t1[i] += a1 * v;
            t2[i] += a2 * v;
            t3[i] += a3 * v;
        }
        return;
    }
    for (int64_t i = 0; i < n; i++) {
        double v = from[i * from_step];
        t0[i] += a0 * v;
        t1[i] += a1 * v;
        t2[i] += a2 * v;
        t3[i] += a3 * v;
    }
}

void po_axpy(double *to, int64_t to_step, const double *from, int64_t from_step, double a,
             int64_t n) {
    axpy(to, to_step, from, from_step, a, n);
}

void po_axpy4(double *to, int64_t row, const double *from, int64_t from_step, const double *a,
              int64_t n) {
    axpy4(to, row, from, from_step, a, n);
}

/* The rows [0, k) of a tile of b whose columns have step 1 in `b`. */
static void multiply_tile(int64_t m, int64_t n, int64_t k, const double *a, int64_t a_row,
                          int64_t a_col, const double *b, int64_t b_row, double *c, int64_t c_row) {
    int64_t y = 0;
    for (; y + 4 <= m; y += 4)
        for (int64_t i = 0; i < k; i++) {
            const double *p = a + y * a_row + i * a_col;
            double four[4] = {p[0], p[a_row], p[2 * a_row], p[3 * a_row]};
            axpy4(c + y * c_row, c_row, b + i * b_row, 1, four, n);
        }
    for (; y < m; y++)
        for (int64_t i = 0; i < k; i++)
            axpy(c + y * c_row, 1, b + i * b_row, 1, a[y * a_row + i * a_col], n);
}

void po_gemm(int64_t m, int64_t n, int64_t k, const double *a, int64_t a_row, int64_t a_col,
             const double *b, int64_t b_row, int64_t b_col, double *c, int64_t c_row) {
    double tile[TILE * TILE];
    int64_t columns = b_col == 1 ? COLUMNS : TILE;
    for (int64_t x = 0; x < n; x += columns) {
        int64_t wide = n - x < columns ? n - x : columns;
        if (b_col == 1) {
            multiply_tile(m, wide, k, a, a_row, a_col, b + x, b_row, c + x, c_row);
            continue;
        }
        /* Columns far apart are copied side by side first. The order of the sums stays. */
        for (int64_t z = 0; z < k; z += TILE) {
            int64_t deep = k - z < TILE ? k - z : TILE;
            for (int64_t j = 0; j < wide; j++)
                for (int64_t i = 0; i < deep; i++)
                    tile[i * TILE + j] = b[(z + i) * b_row + (x + j) * b_col];
            multiply_tile(m, wide, deep, a + z * a_col, a_row, a_col, tile, TILE, c + x, c_row);
        }
    }
}
