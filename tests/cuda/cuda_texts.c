/* Products, attention, norms, windows and guards, each for one way of the printer: tails, turned
 * operands, rows in registers, rings, operands copied ahead from two tensors. */
#include "cuda_texts.h"

const search_block cuda_texts[] = {
    /* Whole tiles, and a pipeline over k. */
    {"product", "mugraph m { label i 64 label k 128 label j 64\n"
                " tensor X input 0 [64, 128] tensor W weight 0 [128, 64] tensor b weight 1 [64]\n"
                " tensor O output 0 [64, 64]\n"
                " step \"p\" { grid i by 32 { grid j by 32 { shared r [64, 64]\n"
                "   for k by 32 { r[i, j] += X[i, k] * W[k, j] fresh }\n"
                "   O[i, j] = max(r[i, j] + b[j], 0) } } } }"},
    /* Nothing divides. */
    {"product_edges",
     "mugraph m { label i 37 label k 53 label j 29\n"
     " tensor X input 0 [37, 53] tensor W weight 0 [53, 29] tensor O output 0 [37, 29]\n"
     " step \"p\" { grid i by 16 { grid j by 24 { shared r [37, 29]\n"
     "   for k by 16 { r[i, j] += X[i, k] * W[k, j] fresh }\n"
     "   O[i, j] = tanh(r[i, j]) } } } }"},
    /* Last chunks are shorter, by whole pieces of copies: copies fill them up with zeros. */
    {"product_tails",
     "mugraph m { label i 40 label k 72 label j 40\n"
     " tensor X input 0 [40, 72] tensor W weight 0 [72, 40] tensor O output 0 [40, 40]\n"
     " step \"p\" { grid i by 24 { grid j by 24 { shared r [40, 40]\n"
     "   for k by 32 { r[i, j] += X[i, k] * W[k, j] fresh }\n"
     "   O[i, j] = r[i, j] } } } }"},
    /* Both operands by rows of k; batches; a second product of the same block. */
    {"product_turned",
     "mugraph m { label b 3 label i 20 label k 40 label j 24\n"
     " tensor X input 0 [3, 20, 40] tensor W input 1 [3, 24, 40] tensor O output 0 [3, 20, 24]\n"
     " step \"p\" { grid b by 1 { grid j by 16 { shared r [3, 20, 24]\n"
     "   for k by 16 { r[b, i, j] += X[b, i, k] * W[b, j, k] fresh }\n"
     "   O[b, i, j] = r[b, i, j] * 0.5 } } } }"},
    {"gated",
     "mugraph m { label i 8 label k 96 label j 80\n"
     " tensor X input 0 [8, 96] tensor U weight 0 [96, 80] tensor V weight 1 [96, 80]\n"
     " tensor O output 0 [8, 80]\n"
     " step \"g\" { grid j by 32 { shared u [8, 80] shared v [8, 80]\n"
     "   for k by 32 { u[i, j] += X[i, k] * U[k, j] fresh  v[i, j] += X[i, k] * V[k, j] fresh }\n"
     "   O[i, j] = u[i, j] * sigmoid(u[i, j]) * v[i, j] } } }"},
    /* A sum of few rows, whole before a loop that reads it in each of its chunks. */
    {"sum_then_loop",
     "mugraph m { label i 8 label k 64 label r 16 label j 96\n"
     " tensor X input 0 [8, 64] tensor A weight 0 [64, 16] tensor B weight 1 [16, 96]\n"
     " tensor O output 0 [8, 96]\n"
     " step \"s\" { grid i by 1 { shared t [8, 16] t[i, r] += X[i, k] * A[k, r] fresh\n"
     "   for j by 32 { shared u [8, 16] shared v [8, 96] u[i, r] = t[i, r] * 0.5\n"
     "     v[i, j] += u[i, r] * B[r, j] fresh O[i, j] = tanh(v[i, j]) } } } }"},
    /* The norm's sum beside the product, divided by at the end. */
    {"norm_product",
     "mugraph m { label i 16 label k 512 label j 48\n"
     " tensor X input 0 [16, 512] tensor g weight 0 [512] tensor W weight 1 [512, 48]\n"
     " tensor O output 0 [16, 48]\n"
     " step \"n\" { grid j by 16 { shared s [16] shared p [16, 48] shared x [16, 512]\n"
     "   for k by 64 { x[i, k] = X[i, k] * g[k]  s[i] += X[i, k] * X[i, k] fresh\n"
     "     p[i, j] += x[i, k] * W[k, j] fresh }\n"
     "   O[i, j] = p[i, j] / sqrt(s[i] * 0.001953125 + 0.000001) } } }"},
    {"softmax", "mugraph m { label i 13 label j 100\n"
                " tensor X input 0 [13, 100] tensor O output 0 [13, 100]\n"
                " step \"s\" { grid i by 2 { shared m [13] shared e [13, 100] shared l [13]\n"
                "   m[i] max= X[i, j] fresh\n"
                "   e[i, j] = exp(X[i, j] - m[i])\n"
                "   l[i] += e[i, j] fresh\n"
                "   O[i, j] = e[i, j] / l[i] } } }"},
    /* Rows longer than a block: a loop, and a thread's many elements. */
    {"layer_norm",
     "mugraph m { label i 5 label j 771\n"
     " tensor X input 0 [5, 771] tensor g weight 0 [771] tensor h weight 1 [771]\n"
     " tensor O output 0 [5, 771]\n"
     " step \"s\" { grid i by 1 { shared m [5] shared v [5]\n"
     "   for j by 256 { m[i] += X[i, j] fresh }\n"
     "   for j by 256 { v[i] += (d := X[i, j] - m[i] * 0.0012970168612191958) * d fresh }\n"
     "   for j by 256 {\n"
     "     O[i, j] = (X[i, j] - m[i] * 0.0012970168612191958)\n"
     "       / sqrt(v[i] * 0.0012970168612191958 + 0.00001) * g[j] + h[j] } } } }"},
    /* Attention with a running maximum: what was added up is scaled down as the maximum grows. */
    {"attention",
     "mugraph m { label b 2 label i 32 label j 96 label k 16 label d 16\n"
     " tensor Q input 0 [2, 32, 16] tensor K input 1 [2, 96, 16] tensor V input 2 [2, 96, 16]\n"
     " tensor O output 0 [2, 32, 16]\n"
     " step \"a\" { grid b by 1 { grid i by 16 {\n"
     "   shared M [2, 32] shared L [2, 32] shared A [2, 32, 16]\n"
     "   M[b, i] = -inf  L[b, i] = 0  A[b, i, d] = 0\n"
     "   for j by 32 { shared s [2, 32, 96] shared p [2, 32, 96] shared n [2, 32] shared c [2, "
     "32]\n"
     "     n[b, i] = M[b, i]\n"
     "     s[b, i, j] += Q[b, i, k] * K[b, j, k] fresh\n"
     "     n[b, i] max= s[b, i, j]\n"
     "     c[b, i] = exp(M[b, i] - n[b, i])\n"
     "     M[b, i] = n[b, i]\n"
     "     p[b, i, j] = exp(s[b, i, j] - n[b, i])\n"
     "     L[b, i] = L[b, i] * c[b, i]\n"
     "     L[b, i] += p[b, i, j]\n"
     "     A[b, i, d] = A[b, i, d] * c[b, i]\n"
     "     A[b, i, d] += p[b, i, j] * V[b, j, d] }\n"
     "   O[b, i, d] = A[b, i, d] / L[b, i] } } } }"},
    /* Attention whose rows are whole in a warp: what has one value a row, and what is made of the
     * scores, stays in registers. Rows end early; then keys do too. */
    {"attention_rows",
     "mugraph m { label b 2 label i 100 label j 96 label k 16 label d 24\n"
     " tensor Q input 0 [2, 100, 16] tensor K input 1 [2, 96, 16] tensor V input 2 [2, 96, 24]\n"
     " tensor B input 3 [100, 96] tensor s weight 0 [100]\n"
     " tensor O output 0 [2, 100, 24] tensor N output 1 [2, 100]\n"
     " step \"a\" { grid b by 1 { grid i by 64 {\n"
     "   shared M [2, 100] shared L [2, 100] shared A [2, 100, 24]\n"
     "   M[b, i] = -inf  L[b, i] = 0  A[b, i, d] = 0\n"
     "   for j by 32 { shared t [2, 100, 96] shared u [2, 100, 96] shared p [2, 100, 96]\n"
     "     shared n [2, 100] shared c [2, 100]\n"
     "     n[b, i] = M[b, i]\n"
     "     t[b, i, j] += Q[b, i, k] * K[b, j, k] fresh\n"
     "     u[b, i, j] = t[b, i, j] * s[i] + B[i, j]\n"
     "     n[b, i] max= u[b, i, j]\n"
     "     c[b, i] = exp(M[b, i] - n[b, i])\n"
     "     M[b, i] = n[b, i]\n"
     "     p[b, i, j] = exp(u[b, i, j] - n[b, i])\n"
     "     L[b, i] = L[b, i] * c[b, i]\n"
     "     L[b, i] += p[b, i, j]\n"
     "     A[b, i, d] = A[b, i, d] * c[b, i]\n"
     "     A[b, i, d] += p[b, i, j] * V[b, j, d] }\n"
     "   N[b, i] = M[b, i] + s[i]\n"
     "   O[b, i, d] = A[b, i, d] / L[b, i] } } } }"},
    {"attention_rows_tails",
     "mugraph m { label i 128 label j 90 label k 16 label d 16\n"
     " tensor Q input 0 [128, 16] tensor K input 1 [90, 16] tensor V input 2 [90, 16]\n"
     " tensor O output 0 [128, 16]\n"
     " step \"a\" { grid i by 64 {\n"
     "   shared M [128] shared L [128] shared A [128, 16]\n"
     "   M[i] = -inf  L[i] = 0  A[i, d] = 0\n"
     "   for j by 32 { shared t [128, 90] shared p [128, 90] shared n [128] shared c [128]\n"
     "     n[i] = M[i]\n"
     "     t[i, j] += Q[i, k] * K[j, k] fresh\n"
     "     n[i] max= t[i, j]\n"
     "     c[i] = exp(M[i] - n[i])\n"
     "     M[i] = n[i]\n"
     "     p[i, j] = exp(t[i, j] - n[i])\n"
     "     L[i] = L[i] * c[i]\n"
     "     L[i] += p[i, j]\n"
     "     A[i, d] = A[i, d] * c[i]\n"
     "     A[i, d] += p[i, j] * V[j, d] }\n"
     "   O[i, d] = A[i, d] / L[i] } } }"},
    /* A product whose rows are then made of length 1: their sums meet in a warp. */
    {"unit_rows", "mugraph m { label i 150 label j 40 label k 48\n"
                  " tensor X input 0 [150, 48] tensor W weight 0 [48, 40]\n"
                  " tensor O output 0 [150, 40]\n"
                  " step \"p\" { grid i by 128 { shared r [150, 40] shared l [150]\n"
                  "   for k by 16 { r[i, j] += X[i, k] * W[k, j] fresh }\n"
                  "   l[i] += r[i, j] * r[i, j] fresh\n"
                  "   l[i] = sqrt(l[i])\n"
                  "   O[i, j] = r[i, j] / l[i] } } }"},
    /* A window over a ring of zeros, and one over a ring of -infinity. */
    {"windows", "mugraph m { label y 9 label x 14 label c 6 label r 3 label s 3 label k 10\n"
                " tensor X input 0 [9, 14, 6] tensor W weight 0 [10, 3, 3, 6]\n"
                " tensor A device [9, 14, 6] before [1, 1, 0] after [1, 1, 0]\n"
                " tensor P device [9, 14, 10] before [1, 1, 0] after [1, 1, 0] fill -inf\n"
                " tensor O output 0 [9, 14, 10]\n"
                " step \"copy\" { grid y by 4 { A[y, x, c] = X[y, x, c] } }\n"
                " step \"conv\" { grid y by 3 { shared t [9, 14, 10]\n"
                "   t[y, x, k] += A[y+r-1, x+s-1, c] * W[k, r, s, c] fresh\n"
                "   P[y, x, k] = max(t[y, x, k], 0) } }\n"
                " step \"pool\" { grid y by 2 { O[y, x, k] max= P[y+r-1, x+s-1, k] fresh } } }"},
    /* Guards: no ring, so that what lies outside is left out by tests. */
    {"guards", "mugraph m { label y 11 label x 17 label r 3 label s 5\n"
               " tensor X input 0 [11, 17] tensor W weight 0 [3, 5] tensor O output 0 [11, 17]\n"
               " tensor M output 1 [11, 17]\n"
               " step \"sum\" { grid y by 4 { O[y, x] += X[y+r-1, x+s-2] * W[r, s] fresh } }\n"
               " step \"most\" { grid y by 4 { M[y, x] max= X[y+r-1, x+s-2] fresh } } }"},
    /* Nothing is added up, but what lies outside starts from 0. */
    {"scaled", "mugraph m { label y 7 label x 9\n"
               " tensor X input 0 [6, 9] tensor w weight 0 [9] tensor O output 0 [7, 9]\n"
               " step \"s\" { grid y by 3 { shared p [7, 9]\n"
               "   p[y, x] += X[y-1, x] * w[x] fresh\n"
               "   O[y, x] = p[y, x] + w[x] } } }"},
    /* What a product reads comes out of two tensors, a part of each, copied ahead. */
    {"joined", "mugraph m { label i 32 label j 128 label k 32\n"
               " tensor Q input 0 [32, 32] tensor C input 1 [96, 32] tensor N input 2 [32, 32]\n"
               " tensor O output 0 [32, 128]\n"
               " step \"p\" { grid i by 16 { for j by 32 { shared B [128, 32] shared r [32, 128]\n"
               "   B[j, k] = C[j, k]  B[j, k] = N[j-96, k]\n"
               "   r[i, j] += Q[i, k] * B[j, k] fresh\n"
               "   O[i, j] = r[i, j] } } } }"},
    /* Two steps through memory, written by parts: an axis of two labels. */
    {"heads", "mugraph m { label t 16 label h 4 label e 8 label k 32\n"
              " tensor X input 0 [16, 32] tensor W weight 0 [32, 32] tensor D device [4, 16, 8]\n"
              " tensor O output 0 [16, 32]\n"
              " step \"in\" { grid h by 1 { shared r [4, 16, 8]\n"
              "   for k by 16 { r[h, t, e] += X[t, k] * W[k, 8*h+e] fresh }\n"
              "   D[h, t, e] = r[h, t, e] } }\n"
              " step \"out\" { grid t by 4 { O[t, 8*h+e] = D[h, t, e] + X[t, 8*h+e] } } }"},
};
const uint32_t n_cuda_texts = sizeof cuda_texts / sizeof *cuda_texts;
