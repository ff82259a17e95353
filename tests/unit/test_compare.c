/* Comparison: one element of a million, NaN and infinities, exact types, sequences. */
#include "unit.h"
#include "verify/compare.h"

#include <math.h>
#include <stdlib.h>

enum { MILLION = 1000000 };

static po_datum datum_of(po_tensor *t) {
    return (po_datum){PO_TYPE_TENSOR, t, 0, NULL};
}

static po_difference compare_f32(float *a, float *b, int64_t n, double tolerance) {
    int64_t dims[] = {n};
    po_tensor ta = {PO_F32, 1, dims, n, a, 4 * (size_t)n, NULL};
    po_tensor tb = {PO_F32, 1, dims, n, b, 4 * (size_t)n, NULL};
    po_datum da = datum_of(&ta), db = datum_of(&tb);
    po_compare_rule rule = {.tolerance = tolerance};
    po_difference d;
    po_compare(&da, &db, &rule, &d);
    return d;
}

static void one_of_a_million(void **state) {
    (void)state;
    float *a = malloc(MILLION * sizeof *a), *b = malloc(MILLION * sizeof *b);
    assert_true(a && b);
    for (int i = 0; i < MILLION; i++)
        a[i] = b[i] = sinf((float)i);
    po_difference d = compare_f32(a, b, MILLION, 1e-4);
    assert_true(d.mismatch == PO_MATCH && d.identical && d.elements == MILLION);
    static const int places[] = {0, 1, 765432, MILLION - 1};
    for (size_t k = 0; k < 4; k++) {
        b[places[k]] += 2e-4f;
        d = compare_f32(a, b, MILLION, 1e-4);
        assert_int_equal(d.mismatch, PO_MISMATCH_ERROR);
        assert_int_equal(d.index, places[k]);
        assert_int_equal(d.bad, 1);
        assert_true(fabs(d.max_abs - 2e-4) < 1e-6);
        b[places[k]] = a[places[k]] + 5e-5f;
        d = compare_f32(a, b, MILLION, 1e-4);
        assert_true(d.mismatch == PO_MATCH && !d.identical && d.bad == 0);
        b[places[k]] = a[places[k]];
    }
    free(a);
    free(b);
}

static void special_values_stand_at_their_places(void **state) {
    (void)state;
    float inf = INFINITY, nan = NAN;
    float a[] = {1, nan, inf, -inf, 5}, same[] = {1, nan, inf, -inf, 5};
    assert_int_equal(compare_f32(a, same, 5, 1e-4).mismatch, PO_MATCH);
    float wrong[][5] = {
        {1, 2, inf, -inf, 5},  {nan, nan, inf, -inf, 5}, {1, nan, 3e38f, -inf, 5},
        {1, nan, inf, inf, 5}, {1, nan, inf, -inf, inf},
    };
    static const int places[] = {1, 0, 2, 3, 4};
    for (size_t k = 0; k < 5; k++) {
        po_difference d = compare_f32(a, wrong[k], 5, 1e30);
        assert_int_equal(d.mismatch, PO_MISMATCH_SPECIAL);
        assert_int_equal(d.index, places[k]);
    }
    float zeros[] = {0, 0}, tiny[] = {0, 1e-20f};
    assert_int_equal(compare_f32(zeros, tiny, 2, 1e-4).mismatch, PO_MISMATCH_ERROR);
}

/* Outputs far below what they can reach: rounding is let through, and no more than that. */
static void noise_is_no_error(void **state) {
    (void)state;
    int64_t dims[] = {3};
    float a[] = {1e-6f, 2e-6f, 0}, b[] = {1e-6f, 2.2e-6f, 0};
    po_tensor ta = {PO_F32, 1, dims, 3, a, 12, NULL}, tb = {PO_F32, 1, dims, 3, b, 12, NULL};
    po_datum da = datum_of(&ta), db = datum_of(&tb);
    po_compare_rule rule = {.tolerance = 1e-4, .natural = 1};
    po_difference d;
    po_compare(&da, &db, &rule, &d);
    assert_int_equal(d.mismatch, PO_MISMATCH_ERROR);
    assert_true(d.max_rel < 1e-6); /* relative to 1 */
    rule.noise = 1e-7;
    po_compare(&da, &db, &rule, &d);
    assert_int_equal(d.mismatch, PO_MATCH);
    rule.noise = 0;
    rule.rounding = 3e-7;
    po_compare(&da, &db, &rule, &d);
    assert_int_equal(d.mismatch, PO_MATCH);
    rule.noise = 10; /* never beyond the tolerance of what it can reach */
    b[2] = 2e-4f;
    po_compare(&da, &db, &rule, &d);
    assert_int_equal(d.mismatch, PO_MISMATCH_ERROR);
    assert_int_equal(d.index, 2);
}

/* Hidden by a mask: 0, or next to nothing of what the output reaches. */
static void next_to_nothing_is_none(void **state) {
    (void)state;
    int64_t dims[] = {2};
    float a[] = {0, 0}, b[] = {0, 0x1p-65f};
    po_tensor ta = {PO_F32, 1, dims, 2, a, 8, NULL}, tb = {PO_F32, 1, dims, 2, b, 8, NULL};
    po_datum da = datum_of(&ta), db = datum_of(&tb);
    po_compare_rule rule = {.tolerance = 1e-4, .natural = 1};
    po_difference d;
    po_compare(&da, &db, &rule, &d);
    assert_int_equal(d.mismatch, PO_MATCH);
    rule.natural = 0.25;
    po_compare(&da, &db, &rule, &d);
    assert_int_equal(d.mismatch, PO_MISMATCH_ERROR);
    assert_int_equal(d.index, 1);
    rule = (po_compare_rule){.tolerance = 0, .natural = 1};
    po_compare(&da, &db, &rule, &d);
    assert_int_equal(d.mismatch, PO_MISMATCH_ERROR);
}

static void integers_are_exact(void **state) {
    (void)state;
    int64_t dims[] = {2, 2}, flat[] = {4};
    int64_t x[] = {1, 2, 3, INT64_MAX}, y[] = {1, 2, 3, INT64_MAX - 1};
    po_tensor tx = {PO_I64, 2, dims, 4, x, sizeof x, NULL};
    po_tensor ty = {PO_I64, 2, dims, 4, y, sizeof y, NULL};
    po_datum dx = datum_of(&tx), dy = datum_of(&ty);
    po_compare_rule rule = {.tolerance = 1e-4};
    po_difference d;
    po_compare(&dx, &dx, &rule, &d);
    assert_true(d.mismatch == PO_MATCH && d.identical && d.elements == 4);
    po_compare(&dx, &dy, &rule, &d);
    assert_int_equal(d.mismatch, PO_MISMATCH_EXACT);
    assert_int_equal(d.index, 3);
    ty.data = x;
    ty.dims = flat;
    ty.rank = 1;
    po_compare(&dx, &dy, &rule, &d);
    assert_int_equal(d.mismatch, PO_MISMATCH_SHAPE);
    ty = tx;
    ty.dtype = PO_U64;
    po_compare(&dx, &dy, &rule, &d);
    assert_int_equal(d.mismatch, PO_MISMATCH_DTYPE);

    po_bytes s[] = {{"ab", 2}, {"c\0d", 3}}, t[] = {{"ab", 2}, {"c\0e", 3}};
    int64_t two[] = {2};
    po_tensor ts = {PO_STR, 1, two, 2, s, 0, NULL}, tt = {PO_STR, 1, two, 2, t, 0, NULL};
    po_datum ds = datum_of(&ts), dt = datum_of(&tt);
    po_compare(&ds, &ds, &rule, &d);
    assert_true(d.mismatch == PO_MATCH && d.identical);
    po_compare(&ds, &dt, &rule, &d);
    assert_int_equal(d.mismatch, PO_MISMATCH_EXACT);
    assert_int_equal(d.index, 1);
}

static void sequences_are_compared_in_order(void **state) {
    (void)state;
    int64_t dims[] = {1};
    float one = 1, two = 2;
    po_tensor t1 = {PO_F32, 1, dims, 1, &one, 4, NULL}, t2 = {PO_F32, 1, dims, 1, &two, 4, NULL};
    po_datum ab[] = {datum_of(&t1), datum_of(&t2)}, ba[] = {datum_of(&t2), datum_of(&t1)};
    po_datum x = {PO_TYPE_SEQUENCE, NULL, 2, ab}, y = {PO_TYPE_SEQUENCE, NULL, 2, ba};
    po_datum z = {PO_TYPE_SEQUENCE, NULL, 1, ab}, empty = {PO_TYPE_UNKNOWN, NULL, 0, NULL};
    po_compare_rule rule = {.tolerance = 1e-4};
    po_difference d;
    po_compare(&x, &x, &rule, &d);
    assert_true(d.mismatch == PO_MATCH && d.elements == 2);
    po_compare(&x, &y, &rule, &d);
    assert_int_equal(d.mismatch, PO_MISMATCH_ERROR);
    po_compare(&x, &z, &rule, &d);
    assert_int_equal(d.mismatch, PO_MISMATCH_LENGTH);
    po_compare(&x, &ab[0], &rule, &d);
    assert_int_equal(d.mismatch, PO_MISMATCH_KIND);
    po_compare(&empty, &empty, &rule, &d);
    assert_int_equal(d.mismatch, PO_MATCH);
    po_compare(&ab[0], &empty, &rule, &d);
    assert_int_equal(d.mismatch, PO_MISMATCH_KIND);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_of_a_million),
        cmocka_unit_test(special_values_stand_at_their_places),
        cmocka_unit_test(noise_is_no_error),
        cmocka_unit_test(next_to_nothing_is_none),
        cmocka_unit_test(integers_are_exact),
        cmocka_unit_test(sequences_are_compared_in_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
