/* Inner loops of the references, in one file so that it is compiled for speed. Sums keep their
 * order whatever the vector width: only independent outputs are computed side by side. */
#ifndef PO_OPS_KERNELS_H
#define PO_OPS_KERNELS_H

#include <stdint.h>

/* to[i * to_step] += a * from[i * from_step], i < n. Steps may be 0 or negative. */
void po_axpy(double *to, int64_t to_step, const double *from, int64_t from_step, double a,
             int64_t n);
/* The same for four rows that share `from`: to[r * row + i] += a[r] * from[i * from_step]. */
void po_axpy4(double *to, int64_t row, const double *from, int64_t from_step, const double *a,
              int64_t n);
/* c[m, n] += a[m, k] * b[k, n] by strides (elements); the columns of c have step 1. */
void po_gemm(int64_t m, int64_t n, int64_t k, const double *a, int64_t a_row, int64_t a_col,
             const double *b, int64_t b_row, int64_t b_col, double *c, int64_t c_row);

#endif
