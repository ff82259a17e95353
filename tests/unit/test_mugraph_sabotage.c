/* Planted errors in muGraphs: each must fail, or show as a wrong value, when the tree is run. */
#include "mu_cases.h"
#include "mugraph/eval.h"
#include "unit.h"

#include <math.h>
#include <stdio.h>

typedef struct planted {
    const char *what, *base, *from, *to;
} planted;

static const planted errors[] = {
    /* starts */
    {"no start", "matmul", "fresh tile", "tile"},
    {"no start of the sum of rows", "two_levels", "v[k] fresh", "v[k]"},
    {"no start of a pool", "pool", "c] fresh", "c]"},
    {"no start in lanes", "winograd", "b, c] fresh\n        Y", "b, c]\n        Y"},
    {"no start of the halo's rows", "pair", "W[r, s] fresh", "W[r, s]"},
    {"no start of the mean", "layer_norm", "/ 24 fresh }", "/ 24 }"},
    {"a start too many", "attention", "l[i] = l[i] * f[i]", "l[i] = 0"},
    {"a maximum that starts at 0", "pool_guarded",
     "for r by 2 {\n    Y[y, x, c] max= X[2*y+r-1, 2*x+s-1, c] fresh",
     "Y[y, x, c] = 0 for r by 2 { Y[y, x, c] max= X[2*y+r-1, 2*x+s-1, c]"},
    /* combinations */
    {"set for add", "matmul", "P[m, n] +=", "P[m, n] ="},
    {"maximum for add", "matmul", "P[m, n] +=", "P[m, n] max="},
    {"add for maximum", "pool_guarded", "max=", "+="},
    {"add for set", "layer_norm", "Y[i, c] =", "Y[i, c] +="},
    /* chunks, labels, order */
    {"a range one short", "matmul", "label k 11", "label k 10"},
    {"rows one short", "matmul", "label m 7", "label m 6"},
    {"columns one short", "matmul", "label n 10", "label n 9"},
    {"chunks that do not reach", "two_levels", "label i 8", "label i 7"},
    {"a halo one short", "pair", "label h 5", "label h 4"},
    {"a halo one off", "pair", "T[3*b+h-1, x] += X[3*b+h+r-2", "T[3*b+h, x] += X[3*b+h+r-1"},
    {"too few tiles", "winograd", "label ty 4", "label ty 3"},
    {"a row of inputs missing", "conv", "label yi 9", "label yi 8"},
    {"another block's rows", "two_levels", "O[8*b+i] = P[8*b+i]", "O[8*b+i] = O[8*b+i-8]"},
    {"scatter by overlapping chunks", "transposed", "for c by 2", "for x by 2"},
    {"statements in the wrong order", "attention", "old[i] = m[i]\n        m[i] max= s[i, j]",
     "m[i] max= s[i, j] old[i] = m[i]"},
    {"read before it is written", "conv",
     "P[y, x, 5*g+k] +=", "Y[5*g+k, y, x] = P[y, x, 5*g+k] P[y, x, 5*g+k] +="},
    {"a step left out", "conv", "grid yi by 4 { A[yi, xi, ci] = X[ci, yi, xi] }",
     "A[0, 0, ci] = X[ci, 0, 0]"},
    {"an output set before it is ready", "matmul", "}\n      C[m, n]", "} P[m, n] = 0\n C[m, n]"},
    /* scopes */
    {"an accumulator inside its loop", "matmul", "shared P [7, 10]\n      for k by 5 {",
     "for k by 5 { shared P [7, 10]"},
    {"what a loop forgets", "two_levels", "shared P [23]\n        for k by 4 {",
     "for k by 4 { shared P [23]"},
    {"a running maximum forgotten", "attention",
     "shared m [6]\n      shared l [6]\n      shared acc [6, 3]\n      m[i] = -inf\n",
     "shared l [6]\n shared acc [6, 3]\n for d by 4 { shared m [6] m[i] = -inf }\n"},
    {"a tile forgotten between lanes", "winograd", "M[ty, tx, a, b, k] fresh\n      } }",
     "M[ty, tx, a, b, k] fresh } lanes k { Y[k, 2*ty+i, 2*tx+j] += M[ty, tx, i, j, k] } }"},
    {"a tile used by two coefficients", "pair", "U[3*b+y+r-1", "U[2*b+y+r-1"},
    /* tables */
    {"a digit of B", "winograd", "{1, 0, -1, 0,", "{1, 0, 1, 0,"},
    {"a digit of G", "winograd", "1/2, -1/2, 1/2", "1/2, -1/2, 1/3"},
    {"a digit of A", "winograd", "0, 1, -1, -1}", "0, 1, 1, -1}"},
    /* accesses */
    {"a shifted operand", "matmul", "A[m, k]", "A[m, k-1]"},
    {"a shifted weight", "matmul", "B[k, n]", "B[k, n-1]"},
    {"a shifted bias", "matmul", "bias[n]", "bias[n+1]"},
    {"a shifted window", "conv", "2*y+r-1", "2*y+r"},
    {"dilation left out", "conv", "x+2*s-2", "x+s-1"},
    {"stride left out", "conv", "2*y+r-1", "y+r-1"},
    {"groups mixed", "conv", "3*g+c]", "g+2*c]"},
    {"weights of another group", "conv", "W[5*g+k, c, r, s]", "W[2*k+g, c, r, s]"},
    {"rows and columns swapped", "conv", "V[g, c, r, s, k]", "V[g, c, s, r, k]"},
    {"a flipped kernel", "transposed", "W[c, k, s]", "W[c, k, -s+3]"},
    {"a shifted tile", "winograd", "2*ty+u-1", "2*ty+u"},
    {"a shifted store", "winograd", "Y[k, 2*ty+i, 2*tx+j]", "Y[k, 2*ty+i-1, 2*tx+j]"},
    {"keys of other rows", "softmax", "K[j, d]", "K[-j+19, d]"},
    /* rings and fills */
    {"a ring that a set relies on", "conv", "A[yi, xi, ci] = X[ci, yi, xi]",
     "A[yi, xi, ci] = X[ci, yi-1, xi]"},
    {"a pool of sums over -infinity", "pool", "max= A[2*y+r-1, 2*x+s-1, c]",
     "+= A[2*y+r-1, 2*x+s-1, c]"},
    /* expressions */
    {"no epsilon", "layer_norm", "+ 1e-05", "+ 1e-02"},
    {"not the root", "layer_norm", "1 / sqrt(", "1 / abs("},
    {"no Relu", "matmul", "max(P[m, n] + bias[n], 0)", "P[m, n] + bias[n]"},
    {"Relu before the bias", "matmul", "max(P[m, n] + bias[n], 0)", "max(P[m, n], 0) + bias[n]"},
    {"no rescale", "attention", "acc[i, e] = acc[i, e] * f[i]", "acc[i, e] = acc[i, e]"},
    {"rescaled the other way", "attention", "exp(old[i] - m[i])", "exp(m[i] - old[i])"},
    {"less for its contrary", "functions", "less(A[i], B[i])", "less(B[i], A[i])"},
};

static bool is_seen(po_ctx *ctx, const planted *p) {
    po_arena *arena = po_arena_create(ctx);
    const test_mu_case *c = test_mu_case_of(p->base);
    const char *at = strstr(c->text, p->from);
    if (!at)
        fail_msg("no '%s' in the text", p->from);
    const char *text = po_arena_printf(arena, "%.*s%s%s", (int)(at - c->text), c->text, p->to,
                                       at + strlen(p->from));
    po_mu *mu;
    /* A name out of its braces is an error of the text: that too is seen. */
    bool seen = po_mu_parse(ctx, arena, text, &mu) != PO_OK;
    if (!seen) {
        int64_t n = test_mu_count(mu, PO_MU_OUTPUT, 0);
        double *got = PO_NEW_N(arena, double, n), *size = PO_NEW_N(arena, double, n);
        double *want = PO_NEW_N(arena, double, n);
        const double **in = test_mu_values(mu, arena, PO_MU_INPUT, 1, 1);
        const double **weight = test_mu_values(mu, arena, PO_MU_WEIGHT, 1, 1);
        c->reference(in, weight, want);
        seen = po_mu_eval(ctx, mu, in, weight, &got, &size) != PO_OK;
        for (int64_t i = 0; i < n && !seen; i++)
            seen = !(fabs(got[i] - want[i]) <= 1e-9 * size[i]);
    }
    po_ctx_clear(ctx);
    po_arena_free(arena);
    return seen;
}

static void planted_errors(void **state) {
    (void)state;
    po_ctx ctx;
    po_ctx_init(&ctx);
    int missed = 0;
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
        if (!is_seen(&ctx, &errors[i])) {
            fprintf(stderr, "not seen: %s\n", errors[i].what);
            missed++;
        }
    assert_int_equal(missed, 0);
    assert_true(sizeof errors / sizeof *errors >= 30);
}

/* What is changed without changing the meaning must not be seen: the test above is no test if
 * everything fails. */
static void harmless_changes(void **state) {
    (void)state;
    static const planted changes[] = {
        {"other chunks", "matmul", "for k by 5", "for k by 3"},
        {"one chunk", "matmul", "for k by 5", "for k by 100"},
        {"no ring", "conv", " before [1, 2, 0] after [1, 2, 0]", ""},
        {"a ring that does not serve", "pool", " fill -inf", ""},
        {"a wider scope", "winograd",
         "for tx by 3 { lanes k {\n        register M [4, 4, 4, 4, 20]",
         "register M [4, 4, 4, 4, 20] for tx by 3 { lanes k {"},
        {"a loop more", "two_levels", "for k by 4 {\n          P", "for k by 2 { P"},
    };
    po_ctx ctx;
    po_ctx_init(&ctx);
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++)
        if (is_seen(&ctx, &changes[i]))
            fail_msg("%s", changes[i].what);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(planted_errors),
        cmocka_unit_test(harmless_changes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
