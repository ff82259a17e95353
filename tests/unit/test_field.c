/* Arithmetic modulo drawn primes against division, and sums in such fields against loops. */
#include "base/field.h"
#include "ops/sum/sum.h"
#include "unit.h"

static const uint32_t primes[] = {1073741827, 1073742361, 1610612741, 2147483629, PO_P};
enum { PRIMES = sizeof primes / sizeof primes[0] };

static uint32_t value(uint32_t p, uint32_t input, int64_t at) {
    uint64_t r = po_random_u64(7, input, (uint64_t)at);
    return at % 11 == 3   ? p - 1
           : at % 7 == 2  ? p / 2 + (uint32_t)(r & 1) /* the largest that are balanced */
           : at % 13 == 5 ? 0
                          : (uint32_t)(r % p);
}

static void test_arithmetic(void **state) {
    (void)state;
    for (int i = 0; i < PRIMES; i++) {
        uint32_t p = primes[i];
        po_field f = po_field_of(p);
        assert_true(po_field_is_prime(p));
        assert_int_equal(po_field_add(f, f.half, f.half), 1);
        for (int64_t k = 0; k < 20000; k++) {
            uint64_t v = po_random_u64(1, (uint64_t)k % 3, (uint64_t)k) >> (k % 3 ? k % 40 : 0);
            uint32_t a = value(p, 0, k), b = value(p, 1, k + 5);
            v = k % 17 == 0 ? UINT64_MAX - (uint64_t)k : k % 17 == 1 ? (v / p) * p : v;
            assert_int_equal(po_field_reduce(f, v), v % p);
            assert_int_equal(po_field_add(f, a, b), ((uint64_t)a + b) % p);
            assert_int_equal(po_field_sub(f, a, b), ((uint64_t)a + p - b) % p);
            assert_int_equal(po_field_mul(f, a, b), (uint64_t)a * b % p);
            assert_int_equal(po_field_add(f, a, po_field_neg(f, a)), 0);
            assert_int_equal(po_field_mul(f, a, po_field_inverse(f, a)), a != 0);
            int64_t s = (int64_t)v;
            assert_int_equal((po_field_i64(f, s) + (s < 0 ? (0 - (uint64_t)s) % p : p - v % p)) % p,
                             0);
        }
        uint32_t g = po_field_generator(f);
        assert_int_equal(po_field_pow(f, g, p - 1), 1);
        assert_int_equal(po_field_pow(f, g, (p - 1) / 2), p - 1);
    }
    assert_true(po_field_of(PO_P).quotient == PO_FIELD_FIXED.quotient);
}

static bool divides(uint32_t n) {
    for (uint32_t d = 3; d <= n / d; d += 2)
        if (n % d == 0)
            return true;
    return n % 2 == 0;
}

static void test_primes(void **state) {
    (void)state;
    po_ctx ctx;
    po_ctx_init(&ctx);
    for (uint32_t n = (1u << 30) + 1; n < (1u << 30) + 3000; n++)
        assert_int_equal(po_field_is_prime(n), !divides(n));
    uint32_t first[4], second[4];
    uint64_t seed[2];
    assert_int_equal(po_field_draw(&ctx, 4, first, &seed[0]), PO_OK);
    assert_int_equal(po_field_draw(&ctx, 4, second, &seed[1]), PO_OK);
    assert_true(seed[0] != seed[1]);
    assert_memory_not_equal(first, second, sizeof first);
    for (int i = 0; i < 4; i++) {
        assert_true(first[i] >= 1u << 30 && first[i] < 1u << 31 && !divides(first[i]));
        for (int k = 0; k < i; k++)
            assert_int_not_equal(first[i], first[k]);
    }
}

/* M x K times K x N through every way that sums are worked: products, dots, lines. */
static const struct {
    const char *text;
    int m, n, k;
    uint32_t num, den;
} rows[] = {
    {"sum (in0: [50,300], in1: [300,70]) -> [50,70] {\n"
     "  out[m, n] += 5/7 * in0[m, k] * in1[k, n]   m<50 n<70 k<300\n}\n",
     50, 70, 300, 5, 7},
    {"sum (in0: [1,900], in1: [900,3]) -> [1,3] {\n"
     "  out[m, n] += in0[m, k] * in1[k, n]   m<1 n<3 k<900\n}\n",
     1, 3, 900, 1, 1},
    {"sum (in0: [3,2], in1: [2,90]) -> [3,90] {\n"
     "  out[m, n] += 3/11 * in0[m, k] * in1[k, n]   m<3 k<2 n<90\n}\n",
     3, 90, 2, 3, 11},
};

static void test_sums(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        for (int q = 0; q < PRIMES; q++) {
            po_ctx ctx;
            po_ctx_init(&ctx);
            po_arena *arena = po_arena_create(&ctx);
            po_field f = po_field_of(primes[q]);
            po_scan scan;
            po_sum *s;
            po_scan_init(&scan, &ctx, arena, rows[i].text);
            if (po_sum_parse(&scan, &s) != PO_OK)
                fail_msg("%s", ctx.error.message);
            int m = rows[i].m, n = rows[i].n, depth = rows[i].k;
            uint32_t *in[2] = {PO_NEW_N(arena, uint32_t, m * depth),
                               PO_NEW_N(arena, uint32_t, depth * n)};
            uint32_t *out = PO_NEW_N(arena, uint32_t, m * n);
            for (int e = 0; e < m * depth; e++)
                in[0][e] = value(f.p, 0, e);
            for (int e = 0; e < depth * n; e++)
                in[1][e] = value(f.p, 1, e);
            const uint32_t *const given[2] = {in[0], in[1]};
            assert_int_equal(po_sum_eval_mod(arena, f, s, given, out), PO_OK);
            for (int e = 0; e < m * n; e++) {
                uint64_t sum = 0;
                for (int k = 0; k < depth; k++)
                    sum = (sum + (uint64_t)in[0][e / n * depth + k] * in[1][k * n + e % n]) % f.p;
                /* out = sum * num / den */
                assert_int_equal((uint64_t)out[e] * rows[i].den % f.p, sum * rows[i].num % f.p);
            }
            po_arena_free(arena);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_arithmetic),
        cmocka_unit_test(test_primes),
        cmocka_unit_test(test_sums),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
