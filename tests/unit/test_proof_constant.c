/* Which constants a proof takes for one another: by value, by what they were computed from. */
#include "proofs.h"
#include "unit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* More elements than contents are kept of. */
static void test_large_integers(void **state) {
    static const char graph[] =
        "graph g (x: u8[2,1100]) -> (y) {\n  m = MatMulInteger(x, w: i8[1100,1100] {-3})\n"
        "  y = Cast(m) {to=1}\n}\n";
    static const char *const others[] = {"{-3}", "{3}", "{-4}"};
    (void)state;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        po_ctx ctx;
        po_ctx_init(&ctx);
        char *b = test_replaced(graph, "{-3}", others[i]);
        po_proof_report r = test_prove(&ctx, graph, b, NULL);
        assert_int_equal(r.proved, i == 0);
        free(b);
    }
}

/* 2^31 is 1 modulo the prime: constants that far apart must not be taken for one another. */
static void test_powers_of_two(void **state) {
    (void)state;
    po_ctx ctx;
    po_ctx_init(&ctx);
    for (int k = 1; k <= 12; k++) {
        char a[96], b[96];
        snprintf(a, sizeof a, "y = Mul(x, c: f32[] {%.12f})", ldexp(1, -k));
        snprintf(b, sizeof b, "y = Mul(x, c: f32[] {%.1f})", ldexp(1, 31 - k));
        assert_true(test_prove_nodes(&ctx, a, b).differ);
    }
}

static const char folded_a[] = "pir 1 ir_version=8 opset=17\n"
                               "graph g (x: f32[1,4,6,6]) -> (y) {\n"
                               "  c = Conv(x, w: f32[3,4,3,3] random 1)\n"
                               "  y = Mul(c, s: f32[3,1,1] random 2)\n"
                               "}\n";
static const char folded_b[] = "pir 1 ir_version=8 opset=17\n"
                               "graph g (x: f32[1,4,6,6]) -> (y) {\n"
                               "  y = Conv(x, v: f32[3,4,3,3] random 9)\n"
                               "}\n";

static po_proof_report prove_folded(po_ctx *ctx, const char *recipe) {
    char text[1024];
    snprintf(text, sizeof text,
             "pir 1 ir_version=8 opset=17\n"
             "graph recipes (w: f32[3,4,3,3], s: f32[3,1,1]) -> (v) {\n %s\n}\n",
             recipe);
    return test_prove(ctx, folded_a, folded_b, text);
}

static void test_derived_constants_by_recipe(void **state) {
    (void)state;
    po_ctx ctx;
    po_ctx_init(&ctx);
    po_proof_report r = prove_folded(&ctx, "t = Unsqueeze(s, z: i64[1] {3})\n v = Mul(w, t)");
    if (!r.proved)
        fail_msg("%s", r.why);
    assert_false(test_prove(&ctx, folded_a, folded_b, NULL).proved);
    static const char *const wrong[] = {
        "t = Unsqueeze(s, z: i64[1] {3})\n v = Add(w, t)",
        "t = Unsqueeze(s, z: i64[1] {3})\n v = Div(w, t)",
        "t = Unsqueeze(s, z: i64[1] {3})\n u = Mul(w, t)\n v = Mul(u, k: f32[] {1.0000001})",
        "v = Identity(w)",
        "t = Reshape(s, z: i64[2] {1,3})\n v = Mul(w, t)",
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_false(prove_folded(&ctx, wrong[i]).proved);
}

/* What drops tiny numbers is a rounding where a constant is stored, and nowhere else. */
static void test_tiny_constants(void **state) {
    (void)state;
    po_ctx ctx;
    po_ctx_init(&ctx);
#define DROPPED(attributes)                                                                        \
    "t = Unsqueeze(s, z: i64[1] {3})\n u = Mul(w, t)\n v = Shrink(u) {" attributes "}"
    po_proof_report r = prove_folded(&ctx, DROPPED("bias=0.0, lambd=7.888609e-31"));
    if (!r.proved)
        fail_msg("%s", r.why);
    static const char *const wrong[] = {
        DROPPED("bias=0.0"),
        DROPPED("bias=0.0, lambd=1.6e-30"),
        DROPPED("bias=0.0, lambd=-1.0"),
        DROPPED("bias=1e-31, lambd=7e-31"),
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        if (prove_folded(&ctx, wrong[i]).proved)
            fail_msg("proved: %s", wrong[i]);
    static const char in_model[] = "pir 1 ir_version=8 opset=17\n"
                                   "graph g (x: f32[1,4,6,6]) -> (y) {\n"
                                   "  t = Shrink(x) {bias=0.0, lambd=7e-31}\n  y = Tanh(t)\n}\n",
                      plain[] = "pir 1 ir_version=8 opset=17\n"
                                "graph g (x: f32[1,4,6,6]) -> (y) {\n  y = Tanh(x)\n}\n";
    assert_false(test_prove(&ctx, in_model, plain, NULL).proved);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_large_integers),
        cmocka_unit_test(test_powers_of_two),
        cmocka_unit_test(test_derived_constants_by_recipe),
        cmocka_unit_test(test_tiny_constants),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
