/* Matrix products modulo p against evaluation at a point, which shares no code with them. */
#include "base/modp.h"
#include "ops/sum/contract.h"
#include "ops/sum/product.h"
#include "ops/sum/sum.h"
#include "unit.h"

static const char *const sums[] = {
    /* grouped, strided, padded convolution; columns do not fill a tile */
    "sum (in0: [2,12,19,17], in1: [20,6,3,3]) -> [2,20,10,9] {\n"
    "  out[n, 10*g+k, y, x] += in0[n, 6*g+c, 2*y+r-1, 2*x+s-1] * in1[10*g+k, c, r, s]"
    "   n<2 g<2 k<10 y<10 x<9 c<6 r<3 s<3\n"
    "}\n",
    /* the scatter of a transposed convolution, clipped at both ends */
    "sum (in0: [1,9,7,8], in1: [9,5,4,4]) -> [1,5,14,16] {\n"
    "  out[n, k, 2*y+r-1, 2*x+s-1] += in0[n, c, y, x] * in1[c, k, r, s]"
    "   n<1 k<5 c<9 y<7 r<4 x<8 s<4\n"
    "}\n",
    /* batched, deeper than a block, scaled, one side backwards */
    "sum (in0: [3,40,300], in1: [3,300,50]) -> [3,40,50] {\n"
    "  out[b, m, n] += -5/7 * in0[b, m, k] * in1[b, -k+299, n]   b<3 m<40 n<50 k<300\n"
    "}\n",
    /* more rows and columns than a block */
    "sum (in0: [500,9], in1: [400,9]) -> [500,400] {\n"
    "  out[m, n] += in0[m, k] * in1[n, k]   m<500 n<400 k<9\n"
    "}\n",
    /* both factors have variables of their own that are summed over, and the output one more */
    "sum (in0: [60,5], in1: [70,6]) -> [60,70,4] {\n"
    "  out[m, n, z] += in0[m, i] * in1[n, j]   m<60 n<70 z<4 i<5 j<6\n"
    "}\n",
};

/* Of three factors and more: which two go first. */
static const char *const longer[] = {
    /* both axes of a map by tables, one bound from outside */
    "sum (in0: [3,9,8], in1: [17,9], in2: [15,8]) -> [3,17,15] {\n"
    "  out[c, o, p] += 2/3 * in0[c, i, j-1] * in1[o, i] * in2[p, j]   c<3 o<17 p<15 i<9 j<9\n"
    "}\n",
    /* a chain of products; a variable that only the output has; two terms */
    "sum (in0: [6,7], in1: [7,8], in2: [8,9], in3: [9]) -> [6,9,2] {\n"
    "  out[m, n, z] += in0[m, i] * in1[i, j] * in2[j, n] * in3[n]   m<6 n<9 z<2 i<7 j<8\n"
    "  out[m, -n+8, 1] += in0[m, i] * in2[j, n] * in1[i, j]   m<6 n<9 i<7 j<8\n"
    "}\n",
    /* a variable that no tensor has counts how often */
    "sum (in0: [6,7], in1: [7,8], in2: [8,9]) -> [6,9] {\n"
    "  out[m, n] += in0[m, i] * in1[i, j] * in2[j, n]   m<6 n<9 i<7 j<8 t<5\n"
    "}\n",
};

static uint32_t value(uint32_t input, int64_t at) {
    return at % 11 == 3 ? PO_P - 1 : (uint32_t)(po_random_u64(7, input, (uint64_t)at) % PO_P);
}

static uint32_t fetch(void *user, uint32_t input, int64_t at) {
    (void)user;
    return value(input, at);
}

static const po_sum *parsed(po_ctx *ctx, po_arena *arena, const char *text) {
    po_scan scan;
    po_sum *s;
    po_scan_init(&scan, ctx, arena, text);
    if (po_sum_parse(&scan, &s) != PO_OK)
        fail_msg("%s", ctx->error.message);
    return s;
}

static void check_sum(po_arena *arena, const po_sum *s, const char *text) {
    const uint32_t *in[4];
    for (uint32_t k = 0; k < s->n_operands; k++) {
        int64_t count = s->operands[k].count;
        uint32_t *v = PO_NEW_N(arena, uint32_t, count);
        for (int64_t j = 0; j < count; j++)
            v[j] = value(s->operands[k].input, j);
        in[s->operands[k].input] = v;
    }
    uint32_t *out = PO_NEW_N(arena, uint32_t, s->count);
    po_sum_point *point;
    assert_int_equal(po_sum_eval_mod(arena, PO_FIELD_FIXED, s, in, out), PO_OK);
    assert_int_equal(po_sum_point_create(arena, s, &point), PO_OK);
    for (int64_t e = 0; e<s->count; e += s->count> 20000 ? 37 : 1) {
        int64_t index[4], rest = e;
        for (uint32_t x = s->rank; x-- > 0; rest /= s->dims[x])
            index[x] = rest % s->dims[x];
        if (out[e] != po_sum_point_eval(point, index, fetch, NULL))
            fail_msg("%s: element %lld", text, (long long)e);
    }
}

static void test_products_are_the_sums(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof sums / sizeof *sums; i++) {
        po_ctx ctx;
        po_ctx_init(&ctx);
        po_arena *arena = po_arena_create(&ctx);
        const po_sum *s = parsed(&ctx, arena, sums[i]);
        assert_true(po_product_suits(s, &s->terms[0]));
        check_sum(arena, s, sums[i]);
        po_arena_free(arena);
    }
}

static void test_two_factors_at_a_time(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof longer / sizeof *longer; i++) {
        po_ctx ctx;
        po_ctx_init(&ctx);
        po_arena *arena = po_arena_create(&ctx);
        const po_sum *s = parsed(&ctx, arena, longer[i]);
        po_contraction c;
        for (uint32_t k = 0; k < s->n_terms; k++)
            assert_true(po_sum_contract(arena, s, &s->terms[k], &c));
        check_sum(arena, s, longer[i]);
        po_arena_free(arena);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_products_are_the_sums),
        cmocka_unit_test(test_two_factors_at_a_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
