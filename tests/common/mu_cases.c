/* Products, convolutions, pools, attention, norms and every scalar function, each as a muGraph's
 * text beside the loops; and inputs drawn for them. */
#include "mu_cases.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* --- products --- */

static void matmul(const double *const *in, const double *const *weight, double *out) {
    for (int m = 0; m < 7; m++)
        for (int n = 0; n < 10; n++) {
            double sum = weight[1][n];
            for (int k = 0; k < 11; k++)
                sum += in[0][m * 11 + k] * weight[0][k * 10 + n];
            out[m * 10 + n] = sum > 0 ? sum : 0;
        }
}

static const char matmul_text[] = "mugraph matmul {\n"
                                  "  label m 7 label n 10 label k 11\n"
                                  "  tensor A input 0 [7, 11]\n"
                                  "  tensor B weight 0 [11, 10]\n"
                                  "  tensor bias weight 1 [10]\n"
                                  "  tensor C output 0 [7, 10]\n"
                                  "  step \"matmul\" {\n"
                                  "    grid m by 3 { grid n by 4 {\n"
                                  "      shared P [7, 10]\n"
                                  "      for k by 5 {\n"
                                  "        P[m, n] += A[m, k] * B[k, n] fresh tile m*2 n*1\n"
                                  "      }\n"
                                  "      C[m, n] = max(P[m, n] + bias[n], 0)\n"
                                  "    } }\n"
                                  "  }\n"
                                  "}\n";

/* Loops inside loops over the same range by two labels: 23 = 3 of 8, of which the last is cut. */
static void two_levels(const double *const *in, const double *const *weight, double *out) {
    (void)weight;
    for (int i = 0; i < 23; i++) {
        out[i] = 0;
        for (int k = 0; k < 9; k++)
            out[i] += in[0][i * 9 + k] * in[1][k];
    }
}

static const char two_levels_text[] = "mugraph two_levels {\n"
                                      "  label b 3 label i 8 label k 9\n"
                                      "  tensor A input 0 [23, 9]\n"
                                      "  tensor v input 1 [9]\n"
                                      "  tensor O output 0 [23]\n"
                                      "  step \"rows\" {\n"
                                      "    grid b by 2 {\n"
                                      "      for i by 3 {\n"
                                      "        shared P [23]\n"
                                      "        for k by 4 {\n"
                                      "          P[8*b+i] += A[8*b+i, k] * v[k] fresh\n"
                                      "        }\n"
                                      "        O[8*b+i] = P[8*b+i]\n"
                                      "      }\n"
                                      "    }\n"
                                      "  }\n"
                                      "}\n";

/* --- convolutions --- */

/* Stride 2 down, dilation 2 across, two groups of 3 to 5 channels, padding 1 and 2. */
static void conv(const double *const *in, const double *const *weight, double *out) {
    for (int k = 0; k < 10; k++)
        for (int y = 0; y < 5; y++)
            for (int x = 0; x < 9; x++) {
                double sum = weight[1][k];
                for (int c = 0; c < 3; c++)
                    for (int r = 0; r < 3; r++)
                        for (int s = 0; s < 3; s++) {
                            int iy = 2 * y + r - 1, ix = x + 2 * s - 2, g = k / 5;
                            if (iy >= 0 && iy < 9 && ix >= 0 && ix < 9)
                                sum += in[0][((3 * g + c) * 9 + iy) * 9 + ix] *
                                       weight[0][((k * 3 + c) * 3 + r) * 3 + s];
                        }
                out[(k * 5 + y) * 9 + x] = sum > 0 ? sum : 0;
            }
}

static const char conv_text[] =
    "mugraph conv {\n"
    "  label yi 9 label xi 9 label y 5 label x 9 label g 2 label c 3 label r 3 label s 3\n"
    "  label k 5 label ci 6\n"
    "  tensor X input 0 [6, 9, 9]\n"
    "  tensor W weight 0 [10, 3, 3, 3]\n"
    "  tensor bias weight 1 [10]\n"
    "  tensor A device [9, 9, 6] before [1, 2, 0] after [1, 2, 0]\n"
    "  tensor V device [2, 3, 3, 3, 5]\n"
    "  tensor Y output 0 [10, 5, 9]\n"
    "  step \"channels last\" { grid yi by 4 { A[yi, xi, ci] = X[ci, yi, xi] } }\n"
    "  step \"weights\" { V[g, c, r, s, k] = W[5*g+k, c, r, s] }\n"
    "  step \"conv\" {\n"
    "    grid y by 2 {\n"
    "      register P [5, 9, 10]\n"
    "      P[y, x, 5*g+k] += A[2*y+r-1, x+2*s-2, 3*g+c] * V[g, c, r, s, k] fresh tile x*4 k*1 "
    "order g y r s c\n"
    "      Y[5*g+k, y, x] = max(P[y, x, 5*g+k] + bias[5*g+k], 0) fused\n"
    "    }\n"
    "  }\n"
    "}\n";

/* 3x3 twice with Relu between; of the first only the rows that a block reads are held. */
static void pair(const double *const *in, const double *const *weight, double *out) {
    double mid[7 * 6] = {0};
    for (int pass = 0; pass < 2; pass++)
        for (int y = 0; y < 7; y++)
            for (int x = 0; x < 6; x++) {
                double sum = 0;
                for (int r = 0; r < 3; r++)
                    for (int s = 0; s < 3; s++)
                        if (y + r >= 1 && y + r < 8 && x + s >= 1 && x + s < 7)
                            sum += (pass ? mid : in[0])[(y + r - 1) * 6 + x + s - 1] *
                                   weight[pass][r * 3 + s];
                (pass ? out : mid)[y * 6 + x] = pass || sum > 0 ? sum : 0;
            }
}

static const char pair_text[] = "mugraph pair {\n"
                                "  label b 3 label h 5 label y 3 label x 6 label r 3 label s 3\n"
                                "  tensor X input 0 [7, 6]\n"
                                "  tensor W weight 0 [3, 3]\n"
                                "  tensor V weight 1 [3, 3]\n"
                                "  tensor Y output 0 [7, 6]\n"
                                "  step \"both\" {\n"
                                "    grid b by 1 {\n"
                                "      shared T [7, 6]\n"
                                "      shared U [7, 6]\n"
                                "      T[3*b+h-1, x] += X[3*b+h+r-2, x+s-1] * W[r, s] fresh\n"
                                "      U[3*b+h-1, x] = max(T[3*b+h-1, x], 0)\n"
                                "      Y[3*b+y, x] += U[3*b+y+r-1, x+s-1] * V[r, s] fresh\n"
                                "    }\n"
                                "  }\n"
                                "}\n";

/* Transposed, stride 2: a scatter. */
static void transposed(const double *const *in, const double *const *weight, double *out) {
    for (int k = 0; k < 2 * 11; k++)
        out[k] = 0;
    for (int k = 0; k < 2; k++)
        for (int c = 0; c < 3; c++)
            for (int x = 0; x < 6; x++)
                for (int s = 0; s < 4; s++)
                    if (2 * x + s - 1 >= 0 && 2 * x + s - 1 < 11)
                        out[k * 11 + 2 * x + s - 1] +=
                            in[0][c * 6 + x] * weight[0][(c * 2 + k) * 4 + s];
}

static const char transposed_text[] = "mugraph transposed {\n"
                                      "  label k 2 label c 3 label x 6 label s 4\n"
                                      "  tensor X input 0 [3, 6]\n"
                                      "  tensor W weight 0 [3, 2, 4]\n"
                                      "  tensor Y output 0 [2, 11]\n"
                                      "  step \"scatter\" { grid k by 1 { for c by 2 {\n"
                                      "    Y[k, 2*x+s-1] += X[c, x] * W[c, k, s] fresh\n"
                                      "  } } }\n"
                                      "}\n";

static void winograd(const double *const *in, const double *const *weight, double *out) {
    for (int k = 0; k < 20; k++)
        for (int y = 0; y < 7; y++)
            for (int x = 0; x < 7; x++) {
                double sum = 0;
                for (int c = 0; c < 3; c++)
                    for (int r = 0; r < 3; r++)
                        for (int s = 0; s < 3; s++)
                            if (y + r >= 1 && y + r < 8 && x + s >= 1 && x + s < 8)
                                sum += in[0][(c * 7 + y + r - 1) * 7 + x + s - 1] *
                                       weight[0][((k * 3 + c) * 3 + r) * 3 + s];
                out[(k * 7 + y) * 7 + x] = sum;
            }
}

static const char winograd_text[] =
    "mugraph winograd {\n"
    "  label ty 4 label tx 4 label a 4 label b 4 label u 4 label v 4 label i 2 label j 2\n"
    "  label r 3 label s 3 label c 3 label k 20\n"
    "  tensor X input 0 [3, 7, 7]\n"
    "  tensor W weight 0 [20, 3, 3, 3]\n"
    "  tensor B table [4, 4] {1, 0, -1, 0, 0, 1, 1, 0, 0, -1, 1, 0, 0, 1, 0, -1}\n"
    "  tensor G table [4, 3] {1, 0, 0, 1/2, 1/2, 1/2, 1/2, -1/2, 1/2, 0, 0, 1}\n"
    "  tensor A table [2, 4] {1, 1, 1, 0, 0, 1, -1, -1}\n"
    "  tensor U device [4, 4, 3, 20]\n"
    "  tensor Y output 0 [20, 7, 7]\n"
    "  step \"weights\" { lanes k { U[a, b, c, k] += G[a, r] * G[b, s] * W[k, c, r, s] fresh } }\n"
    "  step \"conv 3x3, F(2,3)\" {\n"
    "    grid ty by 1 {\n"
    "      shared V [4, 4, 4, 4, 3]\n"
    "      V[ty, tx, a, b, c] += B[a, u] * B[b, v] * X[c, 2*ty+u-1, 2*tx+v-1] fresh\n"
    "      for tx by 3 { lanes k {\n"
    "        register M [4, 4, 4, 4, 20]\n"
    "        M[ty, tx, a, b, k] += U[a, b, c, k] * V[ty, tx, a, b, c] fresh\n"
    "        Y[k, 2*ty+i, 2*tx+j] += A[i, a] * A[j, b] * M[ty, tx, a, b, k] fresh\n"
    "      } }\n"
    "    }\n"
    "  }\n"
    "}\n";

/* --- pooling --- */

static void pool(const double *const *in, const double *const *weight, double *out) {
    (void)weight;
    for (int y = 0; y < 4; y++)
        for (int x = 0; x < 4; x++)
            for (int c = 0; c < 5; c++) {
                double most = -INFINITY;
                for (int r = 0; r < 3; r++)
                    for (int s = 0; s < 3; s++) {
                        int iy = 2 * y + r - 1, ix = 2 * x + s - 1;
                        if (iy >= 0 && iy < 8 && ix >= 0 && ix < 7 &&
                            in[0][(iy * 7 + ix) * 5 + c] > most)
                            most = in[0][(iy * 7 + ix) * 5 + c];
                    }
                out[(y * 4 + x) * 5 + c] = most;
            }
}

static const char pool_text[] =
    "mugraph pool {\n"
    "  label yi 8 label xi 7 label y 4 label x 4 label r 3 label s 3 label c 5\n"
    "  tensor X input 0 [8, 7, 5]\n"
    "  tensor A device [8, 7, 5] before [1, 1, 0] after [0, 1, 0] fill -inf\n"
    "  tensor Y output 0 [4, 4, 5]\n"
    "  step \"ring\" { A[yi, xi, c] = X[yi, xi, c] }\n"
    "  step \"pool\" { grid y by 3 {\n"
    "    Y[y, x, c] max= A[2*y+r-1, 2*x+s-1, c] fresh tile x*2 c*1\n"
    "  } }\n"
    "}\n";

/* The same with tests instead of a ring. */
static const char pool_guarded_text[] = "mugraph pool_guarded {\n"
                                        "  label y 4 label x 4 label r 3 label s 3 label c 5\n"
                                        "  tensor X input 0 [8, 7, 5]\n"
                                        "  tensor Y output 0 [4, 4, 5]\n"
                                        "  step \"pool\" { grid y by 3 { for r by 2 {\n"
                                        "    Y[y, x, c] max= X[2*y+r-1, 2*x+s-1, c] fresh\n"
                                        "  } } }\n"
                                        "}\n";

/* --- rows --- */

static void attention(const double *const *in, const double *const *weight, double *out) {
    (void)weight;
    for (int i = 0; i < 6; i++) {
        double score[20], most = -INFINITY, sum = 0;
        for (int j = 0; j < 20; j++) {
            score[j] = 0;
            for (int d = 0; d < 4; d++)
                score[j] += in[0][i * 4 + d] * in[1][j * 4 + d] * 0.5;
            most = score[j] > most ? score[j] : most;
        }
        for (int j = 0; j < 20; j++)
            sum += exp(score[j] - most);
        for (int e = 0; e < 3; e++) {
            out[i * 3 + e] = 0;
            for (int j = 0; j < 20; j++)
                out[i * 3 + e] += exp(score[j] - most) / sum * in[2][j * 3 + e];
        }
    }
}

static const char attention_text[] = "mugraph attention {\n"
                                     "  label i 6 label j 20 label d 4 label e 3\n"
                                     "  tensor Q input 0 [6, 4]\n"
                                     "  tensor K input 1 [20, 4]\n"
                                     "  tensor V input 2 [20, 3]\n"
                                     "  tensor O output 0 [6, 3]\n"
                                     "  step \"attention\" {\n"
                                     "    grid i by 4 {\n"
                                     "      shared m [6]\n"
                                     "      shared l [6]\n"
                                     "      shared acc [6, 3]\n"
                                     "      m[i] = -inf\n"
                                     "      l[i] = 0\n"
                                     "      acc[i, e] = 0\n"
                                     "      for j by 8 {\n"
                                     "        shared s [6, 20]\n"
                                     "        shared old [6]\n"
                                     "        shared f [6]\n"
                                     "        s[i, j] += Q[i, d] * K[j, d] * 0.5 fresh\n"
                                     "        old[i] = m[i]\n"
                                     "        m[i] max= s[i, j]\n"
                                     "        f[i] = exp(old[i] - m[i])\n"
                                     "        l[i] = l[i] * f[i]\n"
                                     "        acc[i, e] = acc[i, e] * f[i]\n"
                                     "        l[i] += exp(s[i, j] - m[i])\n"
                                     "        acc[i, e] += exp(s[i, j] - m[i]) * V[j, e]\n"
                                     "      }\n"
                                     "      O[i, e] = acc[i, e] / l[i]\n"
                                     "    }\n"
                                     "  }\n"
                                     "}\n";

static const char softmax_text[] =
    "mugraph softmax {\n"
    "  label i 6 label j 20 label d 4 label e 3\n"
    "  tensor Q input 0 [6, 4]\n"
    "  tensor K input 1 [20, 4]\n"
    "  tensor V input 2 [20, 3]\n"
    "  tensor s device [6, 20]\n"
    "  tensor m device [6]\n"
    "  tensor p device [6, 20]\n"
    "  tensor l device [6]\n"
    "  tensor O output 0 [6, 3]\n"
    "  step \"scores\" { s[i, j] += Q[i, d] * K[j, d] * 0.5 fresh }\n"
    "  step \"max\" { m[i] max= s[i, j] fresh }\n"
    "  step \"exp\" { p[i, j] = exp(s[i, j] - m[i]) }\n"
    "  step \"sum\" { l[i] += p[i, j] fresh }\n"
    "  step \"out\" { O[i, e] += p[i, j] / l[i] * V[j, e] fresh }\n"
    "}\n";

static void layer_norm(const double *const *in, const double *const *weight, double *out) {
    for (int i = 0; i < 5; i++) {
        double mean = 0, var = 0;
        for (int c = 0; c < 24; c++)
            mean += in[0][i * 24 + c] / 24;
        for (int c = 0; c < 24; c++)
            var += (in[0][i * 24 + c] - mean) * (in[0][i * 24 + c] - mean) / 24;
        for (int c = 0; c < 24; c++)
            out[i * 24 + c] =
                (in[0][i * 24 + c] - mean) / sqrt(var + 1e-5) * weight[0][c] + weight[1][c];
    }
}

static const char layer_norm_text[] =
    "mugraph layer_norm {\n"
    "  label i 5 label c 24\n"
    "  tensor X input 0 [5, 24]\n"
    "  tensor gamma weight 0 [24]\n"
    "  tensor beta weight 1 [24]\n"
    "  tensor Y output 0 [5, 24]\n"
    "  step \"norm\" {\n"
    "    grid i by 2 {\n"
    "      shared mean [5]\n"
    "      shared var [5]\n"
    "      shared rs [5]\n"
    "      for c by 10 { mean[i] += X[i, c] / 24 fresh }\n"
    "      var[i] += (t := X[i, c] - mean[i]) * t / 24 fresh\n"
    "      rs[i] = 1 / sqrt(var[i] + 1e-05)\n"
    "      for c by 7 { Y[i, c] = (X[i, c] - mean[i]) * rs[i] * gamma[c] + beta[c] }\n"
    "    }\n"
    "  }\n"
    "}\n";

/* Every scalar function. */
static void functions(const double *const *in, const double *const *weight, double *out) {
    (void)weight;
    for (int i = 0; i < 19; i++) {
        double a = in[0][i], b = in[1][i];
        double f[] = {a + b,
                      a - b,
                      a * b,
                      a / b,
                      a > b ? a : b,
                      a < b ? a : b,
                      -a,
                      fabs(a),
                      exp(a),
                      log(fabs(a)),
                      sqrt(fabs(a)),
                      tanh(a),
                      erf(a),
                      1 / (1 + exp(-a)),
                      floor(a),
                      pow(fabs(a), b),
                      a < b,
                      a < b ? a : b};
        out[i] = 0;
        for (size_t k = 0; k < sizeof f / sizeof *f; k++)
            out[i] += f[k] * (double)(k + 1);
    }
}

static const char functions_text[] =
    "mugraph functions {\n"
    "  label i 19\n"
    "  tensor A input 0 [19]\n"
    "  tensor B input 1 [19]\n"
    "  tensor Y output 0 [19]\n"
    "  step \"all\" { for i by 4 {\n"
    "    Y[i] = A[i] + B[i] + (A[i] - B[i]) * 2 + A[i] * B[i] * 3 + A[i] / B[i] * 4 + max(A[i], "
    "B[i]) * 5 + min(A[i], B[i]) * 6 + -A[i] * 7 + (e1 := abs(A[i])) * 8 + exp(A[i]) * 9 + "
    "log(e1) * 10 + sqrt(e1) * 11 + tanh(A[i]) * 12\n"
    "    Y[i] += erf(A[i]) * 13 + sigmoid(A[i]) * 14 + floor(A[i]) * 15 + pow(abs(A[i]), B[i]) * "
    "16 + (e1 := less(A[i], B[i])) * 17 + choose(e1, A[i], B[i]) * 18\n"
    "  } }\n"
    "}\n";

/* --- all --- */

const test_mu_case test_mu_cases[] = {
    {"matmul", matmul_text, matmul},
    {"two_levels", two_levels_text, two_levels},
    {"conv", conv_text, conv},
    {"pair", pair_text, pair},
    {"transposed", transposed_text, transposed},
    {"winograd", winograd_text, winograd},
    {"pool", pool_text, pool},
    {"pool_guarded", pool_guarded_text, pool},
    {"attention", attention_text, attention},
    {"softmax", softmax_text, attention},
    {"layer_norm", layer_norm_text, layer_norm},
    {"functions", functions_text, functions},
};
const uint32_t n_test_mu_cases = sizeof test_mu_cases / sizeof *test_mu_cases;

const test_mu_case *test_mu_case_of(const char *name) {
    for (uint32_t i = 0; i < n_test_mu_cases; i++)
        if (strcmp(test_mu_cases[i].name, name) == 0)
            return &test_mu_cases[i];
    fprintf(stderr, "no muGraph '%s'\n", name);
    abort();
}

int64_t test_mu_count(const po_mu *mu, po_mu_place place, uint32_t number) {
    for (uint32_t i = 0; i < mu->n_tensors; i++) {
        const po_mu_tensor *t = &mu->tensors[i];
        if (t->place == place && t->number == number)
            return po_mu_elements(t);
    }
    return 0;
}

const double **test_mu_values(const po_mu *mu, po_arena *arena, po_mu_place place, uint64_t seed,
                              double scale) {
    const double **values = PO_NEW_N(arena, const double *, mu->n_tensors + 1);
    for (uint32_t n = 0; n < mu->n_tensors; n++) {
        int64_t count = test_mu_count(mu, place, n);
        double *v = PO_NEW_N(arena, double, count + 1);
        for (int64_t i = 0; i < count; i++)
            v[i] = scale * po_random_normal(seed, (uint64_t)place * 100 + n, (uint64_t)i);
        values[n] = v;
    }
    return values;
}
