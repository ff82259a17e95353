#include "ops/kernels.h"

/* Wider vectors where the machine has them; the results are the same. */
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) &&                             \
    !defined(__SANITIZE_ADDRESS__)
#define WIDE __attribute__((target_clones("avx2", "default")))
#else
#define WIDE
#endif

enum { COLUMNS = 512 };

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

void po_gemm(int64_t m, int64_t n, int64_t k, const double *a, int64_t a_row, int64_t a_col,
             const double *b, int64_t b_row, int64_t b_col, double *c, int64_t c_row) {
    for (int64_t x = 0; x < n; x += COLUMNS) {
        int64_t wide = n - x < COLUMNS ? n - x : COLUMNS, y = 0;
        for (; y + 4 <= m; y += 4)
            for (int64_t i = 0; i < k; i++) {
                const double *p = a + y * a_row + i * a_col;
                double four[4] = {p[0], p[a_row], p[2 * a_row], p[3 * a_row]};
                axpy4(c + y * c_row + x, c_row, b + i * b_row + x * b_col, b_col, four, wide);
            }
        for (; y < m; y++)
            for (int64_t i = 0; i < k; i++)
                axpy(c + y * c_row + x, 1, b + i * b_row + x * b_col, b_col,
                     a[y * a_row + i * a_col], wide);
    }
}
