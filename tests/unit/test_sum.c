/* Indexed sums: random ones against a loop without cleverness, their text, and bad texts. */
#include "base/modp.h"
#include "ops/sum/sum.h"
#include "unit.h"

#include <math.h>
#include <stdio.h>

static const po_rational one = {1, 1};

typedef struct maker {
    uint64_t seed, next;
} maker;

static int64_t draw(maker *m, int64_t from, int64_t to) {
    return from + (int64_t)(po_random_u64(m->seed, 1, m->next++) % (uint64_t)(to - from + 1));
}

static int64_t input_value(uint32_t input, int64_t at) {
    return (int64_t)(po_random_u64(3, input, (uint64_t)at) % 19) - 9;
}

static uint32_t fetch(void *user, uint32_t input, int64_t at) {
    (void)user;
    return po_mod_i64(input_value(input, at));
}

static void random_index(maker *m, const po_term *t, po_index *index) {
    for (uint32_t x = 0; x < index->rank; x++) {
        index->base[x] = draw(m, 0, 3) ? draw(m, 0, 2) : draw(m, -3, 3);
        for (uint32_t v = 0; v < t->n_vars; v++)
            if (draw(m, 0, 1))
                po_index_add(t, index, x, draw(m, 0, 3) ? 1 : draw(m, -3, 3), v);
    }
}

static po_sum *random_sum(maker *m, po_arena *arena) {
    int64_t dims[3];
    uint32_t rank = (uint32_t)draw(m, 0, 3);
    for (uint32_t i = 0; i < rank; i++)
        dims[i] = draw(m, 0, 5) ? draw(m, 1, 6) : 0;
    po_sum *s = po_sum_create(arena, rank, dims);
    for (uint32_t k = 0; k < 3; k++) {
        rank = (uint32_t)draw(m, 0, 3);
        int64_t count = 1;
        for (uint32_t i = 0; i < rank; i++)
            count *= dims[i] = draw(m, 1, 5);
        if (draw(m, 0, 2)) {
            po_sum_input(s, k, rank, dims);
            continue;
        }
        po_rational *table = PO_NEW_N(arena, po_rational, count);
        for (int64_t i = 0; i < count; i++)
            table[i] = PO_RATIONAL(draw(m, -2, 2));
        po_sum_table(s, rank, dims, table);
    }
    for (int64_t i = draw(m, 0, 3); i > 0; i--) {
        uint32_t n = (uint32_t)draw(m, 0, 4);
        po_term *t = po_sum_term(s, n);
        for (uint32_t v = 0; v < n; v++)
            po_term_var(t, NULL, draw(m, 0, 9) ? draw(m, 1, 6) : 0);
        random_index(m, t, &t->out);
        t->scale = PO_RATIONAL(draw(m, -3, 3));
        for (int64_t k = draw(m, 0, 3); k > 0; k--)
            random_index(m, t, po_term_factor(s, t, (uint32_t)draw(m, 0, 2)));
    }
    return s;
}

/* The element that an index names, or -1. */
static int64_t offset(const po_term *t, const po_index *index, const int64_t *dims,
                      const int64_t *at) {
    int64_t o = 0;
    for (uint32_t x = 0; x < index->rank; x++) {
        int64_t i = index->base[x];
        for (uint32_t v = 0; v < t->n_vars; v++)
            i += po_index_coef(t, index, x, v) * at[v];
        if (i < 0 || i >= dims[x])
            return -1;
        o = o * dims[x] + i;
    }
    return o;
}

static void add_naively(const po_sum *s, const po_term *t, uint32_t level, int64_t *at,
                        int64_t *out) {
    if (level < t->n_vars) {
        for (at[level] = 0; at[level] < t->extent[level]; at[level]++)
            add_naively(s, t, level + 1, at, out);
        return;
    }
    int64_t to = offset(t, &t->out, s->dims, at), product = t->scale.num;
    for (uint32_t k = 0; k < t->n_factors && to >= 0; k++) {
        const po_operand *op = &s->operands[t->factor[k].operand];
        int64_t from = offset(t, &t->factor[k].at, op->dims, at);
        if (from < 0)
            return;
        product *=
            op->kind == PO_OPERAND_TABLE ? op->table[from].num : input_value(op->input, from);
    }
    if (to >= 0)
        out[to] += product;
}

static void test_random_sums(void **state) {
    (void)state;
    int used = 0;
    for (uint64_t seed = 0; seed < 8000; seed++) {
        po_ctx ctx;
        po_ctx_init(&ctx);
        po_arena *arena = po_arena_create(&ctx);
        maker m = {.seed = seed};
        po_sum *s = random_sum(&m, arena), *back;
        assert_true(po_sum_check(s));
        int64_t *want = PO_NEW_N(arena, int64_t, s->count), at[8];
        for (uint32_t i = 0; i < s->n_terms; i++)
            add_naively(s, &s->terms[i], 0, at, want);
        const double *in[3] = {NULL};
        const uint32_t *in_mod[3] = {NULL};
        for (uint32_t k = 0; k < 3; k++) {
            double *f = PO_NEW_N(arena, double, 125);
            uint32_t *r = PO_NEW_N(arena, uint32_t, 125);
            for (int64_t i = 0; i < 125; i++) {
                f[i] = (double)input_value(k, i);
                r[i] = fetch(NULL, k, i);
            }
            in[k] = f;
            in_mod[k] = r;
        }
        double *floats = PO_NEW_N(arena, double, s->count);
        uint32_t *residues = PO_NEW_N(arena, uint32_t, s->count);
        po_sum_point *point;
        assert_int_equal(po_sum_point_create(arena, s, &point), PO_OK);
        for (int round = 0; round < 2; round++) {
            assert_int_equal(po_sum_eval_f64(arena, s, in, floats), PO_OK);
            assert_int_equal(po_sum_eval_mod(arena, PO_FIELD_FIXED, s, in_mod, residues), PO_OK);
            for (int64_t i = 0; i < s->count; i++) {
                int64_t index[3], rest = i;
                for (uint32_t x = s->rank; x-- > 0; rest /= s->dims[x])
                    index[x] = rest % s->dims[x];
                used += want[i] != 0;
                if ((int64_t)floats[i] != want[i] || residues[i] != po_mod_i64(want[i]) ||
                    (!round && po_sum_point_eval(point, index, fetch, NULL) != residues[i])) {
                    po_text text;
                    po_text_init(&text, arena);
                    po_sum_print(&text, s);
                    fail_msg("seed %d, round %d, element %d:\n%s", (int)seed, round, (int)i,
                             text.data);
                }
            }
            po_text text;
            po_scan scan;
            po_text_init(&text, arena);
            po_sum_print(&text, s);
            po_scan_init(&scan, &ctx, arena, text.data);
            if (po_sum_parse(&scan, &back) != PO_OK)
                fail_msg("%s\n%s", ctx.error.message, text.data);
            assert_true(po_sum_equal(s, back));
            assert_int_equal(po_sum_normalize(s), PO_OK);
        }
        po_arena_free(arena);
    }
    printf("%d elements that are not 0\n", used);
    assert_true(used > 8000);
}

/* Convolutions in groups and transposed, a move, an average pool, atoms. */
static const char *const examples[] = {
    "sum (in0: [1,32,56,56], in1: [64,8,3,3]) -> [1,64,28,28] {\n"
    "  out[n, 16*g+k, y, x] += in0[n, 8*g+c, 2*y+r-1, 2*x+s-1] * in1[16*g+k, c, r, s]"
    "   n<1 g<4 k<16 y<28 x<28 c<8 r<3 s<3\n"
    "}\n",
    "sum (in0: [1,2,5,5], in1: [2,3,3,3]) -> [1,3,9,9] {\n"
    "  out[n, k, 2*y+r-1, 2*x+s-1] += in0[n, c, y, x] * in1[c, k, r, s]"
    "   n<1 k<3 c<2 y<5 r<3 x<5 s<3\n"
    "}\n",
    "sum (in0: [1,3,4,2]) -> [2,3,2,2] {\n"
    "  out[n+p, c, h, w] += in0[n, c, 2*h+p, w]   n<1 c<3 h<2 p<2 w<2\n"
    "}\n",
    "sum (in0: [1,1,3,3], tab1: [3] {1/2, 1/3, 1/2}, tab2: [3] {1/2, 1/3, 1/2}) -> [1,1,3,3] {\n"
    "  out[0, 0, y, x] += in0[0, 0, y+r-1, x+s-1] * tab1[y] * tab2[x]   y<3 x<3 r<3 s<3\n"
    "}\n",
    "sum (in0: [4], atom1: [4] rsqrt(in3, 1e-05), atom2: [4] 1/in1) -> [4] {\n"
    "  out[x] += -1/2 * in0[-x+3] * atom1[x] * atom2[x]   x<4\n"
    "  out[0] += 7\n"
    "}\n",
};

static void test_examples_read_as_written(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof examples / sizeof *examples; i++) {
        po_ctx ctx;
        po_ctx_init(&ctx);
        po_arena *arena = po_arena_create(&ctx);
        po_scan scan;
        po_sum *s;
        po_text text;
        po_scan_init(&scan, &ctx, arena, examples[i]);
        if (po_sum_parse(&scan, &s) != PO_OK)
            fail_msg("%s\n%s", ctx.error.message, examples[i]);
        po_text_init(&text, arena);
        po_sum_print(&text, s);
        assert_string_equal(text.data, examples[i]);
        assert_true(po_sum_flops(s) >= 0 && po_sum_elements(s) > 0);
        po_arena_free(arena);
    }
}

static po_sum *parse(po_ctx *ctx, po_arena *arena, const char *text) {
    po_scan scan;
    po_sum *s;
    po_scan_init(&scan, ctx, arena, text);
    assert_int_equal(po_sum_parse(&scan, &s), PO_OK);
    assert_int_equal(po_sum_normalize(s), PO_OK);
    return s;
}

static void test_normal_form_unites(void **state) {
    (void)state;
    /* Each row writes one function in two ways. */
    static const char *const pairs[][2] = {
        {"sum (in0: [6]) -> [6] { out[2*a+b] += in0[2*a+b] a<3 b<2 }",
         "sum (in0: [6]) -> [6] { out[i] += in0[i] i<6 }"},
        {"sum (in0: [6]) -> [6] { out[5-i] += in0[5-i] i<6 }",
         "sum (in0: [6]) -> [6] { out[i] += in0[i] i<6 }"},
        {"sum (in0: [6]) -> [6] { out[i] += in0[i] i<6 k<1 j<3 }",
         "sum (in0: [6]) -> [6] { out[i] += 3 * in0[i] i<6 }"},
        {"sum (in0: [6], in1: []) -> [6] { out[i] += in1[] * in0[i] i<6 }",
         "sum (in0: [6], in1: []) -> [6] { out[i] += in0[i] * in1[] i<6 }"},
        {"sum (in0: [6]) -> [6] { out[i] += in0[i] i<6 out[0] += 1 out[j] += in0[j] j<6 }",
         "sum (in0: [6]) -> [6] { out[0] += 1 out[i] += 2 * in0[i] i<6 }"},
        {"sum (in0: [6]) -> [6] { out[i] += in0[i] i<6 out[j] += -1 * in0[j] j<6 }",
         "sum (in0: [6]) -> [6] { out[i] += in0[i] i<0 }"},
        {"sum (in0: [2,3]) -> [3,2] { out[b, a] += in0[a, b] b<3 a<2 }",
         "sum (in0: [2,3]) -> [3,2] { out[b, a] += in0[a, b] a<2 b<3 }"},
    };
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        po_ctx ctx;
        po_ctx_init(&ctx);
        po_arena *arena = po_arena_create(&ctx);
        po_sum *a = parse(&ctx, arena, pairs[i][0]), *b = parse(&ctx, arena, pairs[i][1]);
        if (!po_sum_equal(a, b) || !po_hash_equal(po_sum_hash(a), po_sum_hash(b)))
            fail_msg("not equal: %s\n%s", pairs[i][0], pairs[i][1]);
        po_arena_free(arena);
    }
    po_ctx ctx;
    po_ctx_init(&ctx);
    po_arena *arena = po_arena_create(&ctx);
    /* A swapped digit, a shifted start and another scale are other functions. */
    po_sum *a = parse(&ctx, arena, "sum (in0: [6]) -> [2,3] { out[a, b] += in0[3*a+b] a<2 b<3 }");
    assert_false(po_sum_equal(
        a, parse(&ctx, arena, "sum (in0: [6]) -> [2,3] { out[a, b] += in0[a+2*b] a<2 b<3 }")));
    assert_false(po_sum_equal(
        a, parse(&ctx, arena, "sum (in0: [6]) -> [2,3] { out[a, b] += in0[3*a+b-1] a<2 b<3 }")));
    assert_false(po_sum_equal(
        a, parse(&ctx, arena, "sum (in0: [6]) -> [2,3] { out[a, b] += 2 * in0[3*a+b] a<2 b<3 }")));
    po_arena_free(arena);
}

static void test_rejects(void **state) {
    (void)state;
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"", "expected 'sum'"},
        {"sum (in0: [2]) -> [2] { out[i] += in0[i] }", "line 1, column 30: variable 'i' has no"},
        {"sum (in0: [2]) -> [2] { out[i] += in1[i] i<2 }", "operand 'in1' is not declared"},
        {"sum (in0: [2]) -> [2] { out[i, i] += in0[i] i<2 }", "too many axes"},
        {"sum (in0: [2]) -> [2] { out[] += in0[i] i<2 }", "too few axes"},
        {"sum (in0: [2]) -> [2] { out[i] += in0[i] i<2 i<2 }", "a negative extent or two"},
        {"sum (in0: [2]) -> [2] { out[i] += in0[i] i<-2 }", "a negative extent or two"},
        {"sum (in0: [2], in0: [2]) -> [2] {}", "declared twice"},
        {"sum (x: [2]) -> [2] {}", "expected an input such as in0"},
        {"sum (in99999999999: [2]) -> [2] {}", "expected an input such as in0"},
        {"sum (tab0: [2] {1}) -> [2] {}", "too few items"},
        {"sum (tab0: [2] {1, 1, 1}) -> [2] {}", "too many items"},
        {"sum (tab0: [2] {1/0, 1}) -> [2] {}", "no fraction"},
        {"sum (tab0: [99999999] {1}) -> [2] {}", "too large"},
        {"sum (in0: [-1]) -> [2] {}", "a dim is negative"},
        {"sum (in0: [4611686018427387904,4]) -> [2] {}", "overflows"},
        {"sum (in0: [2]) -> [2] { out[9223372036854775807*i] += 1 i<9 }", "beyond the limits"},
        {"sum (in0: [2]) -> [2] { out[i] += 1 i<2", "expected"},
        {"sum (in0: [2]) -> [2] { out[9223372036854775807*i+i] += 1 i<9 }", "overflows"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        po_ctx ctx;
        po_ctx_init(&ctx);
        po_arena *arena = po_arena_create(&ctx);
        po_scan scan;
        po_sum *s;
        po_scan_init(&scan, &ctx, arena, cases[i].text);
        po_status status = po_sum_parse(&scan, &s);
        if (status != PO_BAD_INPUT || !strstr(ctx.error.message, cases[i].message))
            fail_msg("%s\ngave %d '%s', not '%s'", cases[i].text, (int)status, ctx.error.message,
                     cases[i].message);
        po_arena_free(arena);
    }
}

static void test_fractions(void **state) {
    (void)state;
    po_rational a, b;
    assert_true(po_rational_make(6, -4, &a) && a.num == -3 && a.den == 2);
    assert_false(po_rational_make(1, 0, &a));
    assert_true(po_rational_add((po_rational){1, 6}, (po_rational){1, 10}, &a) && a.num == 4 &&
                a.den == 15);
    assert_true(po_rational_mul((po_rational){INT64_MAX, 3}, (po_rational){3, INT64_MAX}, &a) &&
                po_rational_equal(a, one));
    assert_false(po_rational_mul((po_rational){INT64_MAX, 1}, (po_rational){2, 1}, &a));
    assert_true(po_rational_from_f64((double)0.1f, &a) && a.num == 13421773 && a.den == 1 << 27);
    assert_true(po_rational_f64(a) == (double)0.1f);
    assert_true(po_rational_from_f64(-0x1p60, &a) && a.num == -((int64_t)1 << 60));
    assert_false(po_rational_from_f64(0x1p-80, &a));
    assert_false(po_rational_from_f64(__builtin_inf(), &a));
    uint32_t third, three;
    assert_true(po_rational_mod((po_rational){1, 3}, &third));
    assert_true(po_rational_mod((po_rational){3, 1}, &three));
    assert_int_equal(po_mod_mul(third, three), 1);
    assert_false(po_rational_mod((po_rational){1, PO_P}, &third));
    assert_true(po_rational_make(INT64_MIN + 1, 3, &b));
    assert_int_equal(po_mod_i64(INT64_MIN), PO_P - po_mod_reduce((uint64_t)1 << 63));
}

/* Work, shapes as products of matrices, and whether the first term is the same everywhere. */
static void test_figures(void **state) {
    static const struct {
        const char *text;
        double work;
        po_sum_shape shape; /* times 0: no product of two */
        bool all;
    } cases[] = {
        {"sum (in0: [1,32,56,56], in1: [64,8,3,3], in2: [64]) -> [1,64,28,28] {\n"
         "  out[n, 16*g+k, y, x] += in0[n, 8*g+c, 2*y+r-1, 2*x+s-1] * in1[16*g+k, c, r, s]   "
         "n<1 g<4 k<16 y<28 x<28 c<8 r<3 s<3\n"
         "  out[n, k, y, x] += in2[k]   n<1 k<64 y<28 x<28\n}",
         2.0 * 64 * 28 * 28 * 8 * 9,
         {4, 28 * 28, 16, 72},
         true},
        {"sum (in0: [5,7], in1: [7,3]) -> [5,3] { out[i, j] += 2 * in0[i, k] * in1[k, j] "
         "i<5 j<3 k<7 }",
         2.0 * 5 * 7 * 3,
         {1, 5, 3, 7},
         true},
        {"sum (in0: [1,2,4], in1: [2,3,2]) -> [1,3,8] { out[n, k, 2*x+s] += "
         "in0[n, c, x] * in1[c, k, s]   n<1 k<3 x<4 c<2 s<2 }",
         2.0 * 3 * 4 * 2 * 2,
         {1, 4, 6, 2},
         true},
        {"sum (in0: [4,6]) -> [4] { out[i] += 1/6 * in0[i, j] i<4 j<6 }", 24, {0, 0, 0, 0}, true},
        {"sum (in0: [4]) -> [6] { out[i+1] += in0[i] i<4 }", 4, {0, 0, 0, 0}, false},
        {"sum (in0: [6]) -> [6] { out[5-i] += in0[i] i<6 }", 6, {0, 0, 0, 0}, false},
        {"sum (in0: [2], in1: [2], in2: [2]) -> [2] { out[i] += in0[i] * in1[i] * in2[i] i<2 }",
         6,
         {0, 0, 0, 0},
         true},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        po_ctx ctx;
        po_ctx_init(&ctx);
        po_arena *arena = po_arena_create(&ctx);
        po_scan scan;
        po_sum *s;
        po_sum_shape got = {0, 0, 0, 0};
        const po_sum_shape *want = &cases[i].shape;
        po_scan_init(&scan, &ctx, arena, cases[i].text);
        assert_int_equal(po_sum_parse(&scan, &s), PO_OK);
        assert_true(po_sum_product_shape(s, &got) == (want->times > 0));
        if (fabs(po_sum_work(s) - cases[i].work) > 0.5 || fabs(got.times - want->times) > 0.5 ||
            fabs(got.rows - want->rows) > 0.5 || fabs(got.columns - want->columns) > 0.5 ||
            fabs(got.depth - want->depth) > 0.5 ||
            po_term_writes_all(s, &s->terms[0]) != cases[i].all)
            fail_msg("%s\nwork %g, %g x %g x %g, sums of %g", cases[i].text, po_sum_work(s),
                     got.times, got.rows, got.columns, got.depth);
        po_arena_free(arena);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_sums),        cmocka_unit_test(test_examples_read_as_written),
        cmocka_unit_test(test_normal_form_unites), cmocka_unit_test(test_rejects),
        cmocka_unit_test(test_fractions),          cmocka_unit_test(test_figures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
