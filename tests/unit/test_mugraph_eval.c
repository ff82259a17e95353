/* What muGraphs compute, against plain loops. */
#include "mu_cases.h"
#include "mugraph/eval.h"
#include "unit.h"

#include <math.h>
#include <stdio.h>

static const int64_t shared_limit = 1 << 20;

static po_mu *parsed(po_ctx *ctx, po_arena *arena, const char *text) {
    po_mu *mu;
    if (po_mu_parse(ctx, arena, text, &mu) != PO_OK)
        fail_msg("%s", ctx->error.message);
    return mu;
}

static void cases(void **state) {
    (void)state;
    po_ctx ctx;
    po_ctx_init(&ctx);
    for (uint32_t i = 0; i < n_test_mu_cases; i++) {
        const test_mu_case *c = &test_mu_cases[i];
        for (uint64_t seed = 1; seed < 4; seed++) {
            po_arena *arena = po_arena_create(&ctx);
            po_mu *mu = parsed(&ctx, arena, c->text);
            if (po_mu_check(&ctx, mu, shared_limit) != PO_OK)
                fail_msg("%s", ctx.error.message);
            int64_t n = test_mu_count(mu, PO_MU_OUTPUT, 0);
            double *got = PO_NEW_N(arena, double, n), *size = PO_NEW_N(arena, double, n);
            double *want = PO_NEW_N(arena, double, n), *again = PO_NEW_N(arena, double, n);
            const double **in = test_mu_values(mu, arena, PO_MU_INPUT, seed, 1);
            const double **weight = test_mu_values(mu, arena, PO_MU_WEIGHT, seed, 1);
            c->reference(in, weight, want);
            if (po_mu_eval(&ctx, mu, in, weight, &got, &size) != PO_OK)
                fail_msg("%s", ctx.error.message);
            for (int64_t k = 0; k < n; k++) {
                /* S(v) is no less than v, and no more than loose. */
                if (!(fabs(got[k] - want[k]) <= 1e-13 * size[k]) ||
                    size[k] < (1 - 1e-12) * fabs(want[k]) || size[k] > 1e5 * (1 + fabs(want[k])))
                    fail_msg("%s, seed %d, element %d: %.17g, not %.17g (S %g)", c->name, (int)seed,
                             (int)k, got[k], want[k], size[k]);
            }
            assert_int_equal(po_mu_eval(&ctx, mu, in, weight, &again, NULL), PO_OK);
            assert_memory_equal(got, again, (size_t)n * sizeof *got);
            po_arena_free(arena);
        }
    }
}

/* S(v) of a sum of products is that of the products taken positive. */
static void magnitudes(void **state) {
    (void)state;
    static const char text[] =
        "mugraph m { label i 4 label k 50\n"
        "  tensor A input 0 [4, 50] tensor B input 1 [50]\n"
        "  tensor Y output 0 [4]\n"
        "  step \"s\" { for k by 7 { Y[i] += -A[i, k] * B[k] * 3 fresh } } }";
    po_ctx ctx;
    po_ctx_init(&ctx);
    po_arena *arena = po_arena_create(&ctx);
    po_mu *mu = parsed(&ctx, arena, text);
    const double **in = test_mu_values(mu, arena, PO_MU_INPUT, 5, 1);
    double got[4], size[4], *out = got, *sizes = size;
    assert_int_equal(po_mu_eval(&ctx, mu, in, NULL, &out, &sizes), PO_OK);
    for (int i = 0; i < 4; i++) {
        double want = 0, most = 0;
        for (int k = 0; k < 50; k++) {
            want -= in[0][i * 50 + k] * in[1][k] * 3;
            most += fabs(in[0][i * 50 + k] * in[1][k] * 3);
        }
        assert_true(fabs(got[i] - want) < 1e-12 && fabs(size[i] - most) < 1e-10);
    }
    po_arena_free(arena);
}

/* Large scores: the running maximum keeps exp from overflowing, and what does without it does not.
 */
static void large_scores(void **state) {
    (void)state;
    static const struct {
        const char *from, *to;
        bool finite;
    } changes[] = {
        {"Q", "Q", true},
        {"exp(s[i, j] - m[i]) * V", "exp(s[i, j] - old[i]) * V", false},
        {"m[i] max= s[i, j]", "m[i] max= 0 * s[i, j]", false},
    };
    po_ctx ctx;
    po_ctx_init(&ctx);
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        po_arena *arena = po_arena_create(&ctx);
        const char *text = test_mu_case_of("attention")->text, *at = strstr(text, changes[i].from);
        text = po_arena_printf(arena, "%.*s%s%s", (int)(at - text), text, changes[i].to,
                               at + strlen(changes[i].from));
        po_mu *mu = parsed(&ctx, arena, text);
        const double **in = test_mu_values(mu, arena, PO_MU_INPUT, 5, 100);
        double got[18], *out = got;
        bool finite = true;
        assert_int_equal(po_mu_eval(&ctx, mu, in, NULL, &out, NULL), PO_OK);
        for (int k = 0; k < 18; k++)
            finite = finite && isfinite(got[k]);
        assert_int_equal(finite, changes[i].finite);
        po_arena_free(arena);
    }
}

/* A row without a score above -infinity gives NaN, as the plain form does. */
static void infinities(void **state) {
    (void)state;
    static const char text[] = "mugraph m { label i 2 label j 3\n"
                               "  tensor A input 0 [2, 3] tensor Y output 0 [2, 3]\n"
                               "  tensor m device [2] tensor l device [2]\n"
                               "  step \"a\" { m[i] max= A[i, j] fresh }\n"
                               "  step \"b\" { l[i] += exp(A[i, j] - m[i]) fresh }\n"
                               "  step \"c\" { Y[i, j] = exp(A[i, j] - m[i]) / l[i] } }";
    po_ctx ctx;
    po_ctx_init(&ctx);
    po_arena *arena = po_arena_create(&ctx);
    po_mu *mu = parsed(&ctx, arena, text);
    double a[6] = {0, -INFINITY, 0, -INFINITY, -INFINITY, -INFINITY}, got[6], size[6];
    const double *in = a;
    double *out = got, *sizes = size;
    assert_int_equal(po_mu_eval(&ctx, mu, &in, NULL, &out, &sizes), PO_OK);
    assert_true(got[0] == 0.5 && got[1] == 0 && got[2] == 0.5 && size[1] == 0);
    assert_true(isnan(got[3]) && isnan(got[4]) && isnan(got[5]));
    po_arena_free(arena);
}

/* 64 channels, 56 x 56, 3 x 3: 116 million products and as many sums of sizes. */
static void large_conv(void **state) {
    (void)state;
    static const char text[] =
        "mugraph conv { label y 56 label x 56 label c 64 label r 3 label s 3 label k 64\n"
        "  tensor X input 0 [56, 56, 64] tensor W weight 0 [64, 3, 3, 64]\n"
        "  tensor A device [56, 56, 64] before [1, 1, 0] after [1, 1, 0]\n"
        "  tensor Y output 0 [56, 56, 64]\n"
        "  step \"ring\" { A[y, x, c] = X[y, x, c] }\n"
        "  step \"conv\" { grid y by 4 {\n"
        "    Y[y, x, k] += A[y+r-1, x+s-1, c] * W[c, r, s, k] fresh } } }";
    po_ctx ctx;
    po_ctx_init(&ctx);
    po_arena *arena = po_arena_create(&ctx);
    po_mu *mu = parsed(&ctx, arena, text);
    int64_t n = 56 * 56 * 64;
    double *got = PO_NEW_N(arena, double, n), *size = PO_NEW_N(arena, double, n);
    const double **in = test_mu_values(mu, arena, PO_MU_INPUT, 5, 1);
    const double **weight = test_mu_values(mu, arena, PO_MU_WEIGHT, 5, 1);
    double start = po_now();
    assert_int_equal(po_mu_eval(&ctx, mu, in, weight, &got, &size), PO_OK);
    print_message("%.2f s\n", po_now() - start);
    for (int64_t i = 0; i < n; i += 9973) {
        int64_t k = i % 64, x = i / 64 % 56, y = i / 64 / 56;
        double want = 0;
        for (int64_t r = 0; r < 3; r++)
            for (int64_t s = 0; s < 3; s++)
                for (int64_t c = 0; c < 64; c++)
                    if (y + r >= 1 && y + r < 57 && x + s >= 1 && x + s < 57)
                        want += in[0][((y + r - 1) * 56 + x + s - 1) * 64 + c] *
                                weight[0][((c * 3 + r) * 3 + s) * 64 + k];
        assert_true(fabs(got[i] - want) <= 1e-13 * size[i]);
    }
    po_arena_free(arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cases),      cmocka_unit_test(magnitudes), cmocka_unit_test(large_scores),
        cmocka_unit_test(infinities), cmocka_unit_test(large_conv),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
