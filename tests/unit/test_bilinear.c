/* Toom-Cook algorithms against the correlation that they stand for, for every size and stride. */
#include "base/hash.h"
#include "ops/sum/bilinear.h"
#include "unit.h"

#include <math.h>

enum { MOST = 64, MOST_STRIDE = 4 };

static double worst_error(const po_bilinear *f, uint32_t stride, const double *b,
                          const po_rational *exact_b) {
    double worst = 0;
    for (uint64_t trial = 0; trial < 20; trial++) {
        double d[MOST], g[MOST], products[MOST];
        for (uint32_t i = 0; i < f->n; i++)
            d[i] = po_random_normal(trial, 0, i);
        for (uint32_t i = 0; i < f->r; i++)
            g[i] = po_random_normal(trial, 1, i);
        for (uint32_t j = 0; j < f->n; j++) {
            double x = 0, w = 0;
            for (uint32_t k = 0; k < f->n; k++)
                x += (b ? b[j * f->n + k] : po_rational_f64(exact_b[j * f->n + k])) * d[k];
            for (uint32_t k = 0; k < f->r; k++)
                w += (b ? f->powers[j * f->r + k] / f->scale[j]
                        : po_rational_f64(f->exact_g[j * f->r + k])) *
                     g[k];
            products[j] = x * w;
        }
        for (uint32_t i = 0; i < f->m; i++) {
            double y = 0, want = 0;
            for (uint32_t j = 0; j < f->n; j++)
                y += (b ? f->a[i * f->n + j] : po_rational_f64(f->exact_a[i * f->n + j])) *
                     products[j];
            for (uint32_t k = 0; k < f->r; k++)
                want += g[k] * d[stride * i + k];
            worst = fmax(worst, fabs(y - want));
        }
    }
    return worst;
}

/* Whether each residue's taps have points. */
static bool fits(uint32_t m, uint32_t r, uint32_t stride, uint32_t most) {
    if (m < 2 || r < 2 || r < stride || m > PO_BILINEAR_MAX || r > stride * PO_BILINEAR_MAX)
        return false;
    for (uint32_t q = 0; q < stride; q++) {
        const uint32_t taps = (r - q + stride - 1) / stride;
        if (taps > 1 && m + taps - 1 > most)
            return false;
    }
    return true;
}

/* The bias relies on it: every output takes product `one` once. */
static void check_one(const po_bilinear *f) {
    for (uint32_t i = 0; f->one != PO_NONE && i < f->m; i++)
        assert_true(f->a[i * f->n + f->one] == 1);
}

/* Exact in float32, but G. */
static void check_tables(const po_bilinear *f) {
    for (uint32_t i = 0; i < f->m * f->n; i++)
        assert_true((double)(float)f->a[i] == f->a[i]);
    for (uint32_t i = 0; i < f->n * f->n; i++)
        assert_true((double)(float)f->b[i] == f->b[i]);
    for (uint32_t i = 0; i < f->n * f->r; i++)
        assert_true((double)(float)f->powers[i] == f->powers[i]);
}

static void test_every_size(void **state) {
    (void)state;
    po_ctx ctx;
    po_ctx_init(&ctx);
    po_arena *arena = po_arena_create(&ctx);
    int made[2] = {0};
    for (uint32_t stride = 1; stride <= MOST_STRIDE; stride++)
        for (uint32_t m = 1; m <= PO_BILINEAR_MAX + 1; m++)
            for (uint32_t r = 1; r <= 12; r++)
                for (int points = 0; points < 2; points++) {
                    po_bilinear f;
                    const bool steady = points == PO_POINTS_STEADY;
                    const bool want = fits(m, r, stride, steady ? 8 : PO_BILINEAR_MAX);
                    assert_int_equal(po_bilinear_make(arena, (po_points)points, m, r, stride, &f),
                                     want);
                    if (!want)
                        continue;
                    made[points]++;
                    assert_int_equal(f.n, stride * (m - 1) + r);
                    assert_true(worst_error(&f, stride, f.b, NULL) < 1e-9);
                    assert_true(worst_error(&f, stride, NULL, f.exact_b) < 1e-9);
                    check_one(&f);
                    assert_true(stride > 1 || steady || f.one == 1);
                    if (!steady)
                        check_tables(&f);
                    double *wrong = PO_NEW_N(arena, double, f.n *f.n);
                    memcpy(wrong, f.b, f.n * f.n * sizeof *wrong);
                    wrong[0] += 1e-3; /* one wrong entry must show */
                    assert_true(worst_error(&f, stride, wrong, NULL) > 1e-6);
                }
    assert_true(made[0] > 100 && made[1] > 80);
    po_arena_free(arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_every_size)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
