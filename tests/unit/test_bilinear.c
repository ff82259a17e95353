/* Toom-Cook algorithms against the correlation that they stand for, for every size. */
#include "base/hash.h"
#include "ops/bilinear.h"
#include "unit.h"

#include <math.h>

static double worst_error(const po_bilinear *f) {
    double worst = 0;
    for (uint64_t trial = 0; trial < 20; trial++) {
        double d[PO_BILINEAR_MAX], g[PO_BILINEAR_MAX], products[PO_BILINEAR_MAX];
        for (uint32_t i = 0; i < f->n; i++)
            d[i] = po_random_normal(trial, 0, i);
        for (uint32_t i = 0; i < f->r; i++)
            g[i] = po_random_normal(trial, 1, i);
        for (uint32_t j = 0; j < f->n; j++) {
            double x = 0, w = 0;
            for (uint32_t k = 0; k < f->n; k++)
                x += f->b[j * f->n + k] * d[k];
            for (uint32_t k = 0; k < f->r; k++)
                w += f->g[j * f->r + k] * g[k];
            products[j] = x * w;
        }
        for (uint32_t i = 0; i < f->m; i++) {
            double y = 0, want = 0;
            for (uint32_t j = 0; j < f->n; j++)
                y += f->a[i * f->n + j] * products[j];
            for (uint32_t k = 0; k < f->r; k++)
                want += g[k] * d[i + k];
            worst = fmax(worst, fabs(y - want));
        }
    }
    return worst;
}

static void test_every_size(void **state) {
    (void)state;
    int made = 0;
    for (uint32_t m = 1; m <= PO_BILINEAR_MAX; m++)
        for (uint32_t r = 1; r <= PO_BILINEAR_MAX; r++) {
            po_bilinear f;
            bool fits = m + r - 1 >= 3 && m + r - 1 <= PO_BILINEAR_MAX;
            assert_int_equal(po_bilinear_make(m, r, &f), fits);
            if (!fits)
                continue;
            made++;
            assert_true(worst_error(&f) < 1e-10);
            /* The bias relies on this: every output takes product `one` once. */
            for (uint32_t i = 0; i < m; i++)
                assert_true(f.a[i * f.n + f.one] == 1);
            f.b[f.n] += 1e-3; /* one wrong entry must show */
            assert_true(worst_error(&f) > 1e-6);
        }
    assert_true(made > 20);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_every_size)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
