/* What po_prove makes of rows that are taken out of a table. */
#include "proofs.h"
#include "rewriting.h"
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>

/* Rows taken by products of one-hot rows: the ids, also outside of the table, are all drawn. */
static void test_one_hot(void **state) {
    static const char from[] = "graph g (ids: i64[1,64]) -> (y) {\n"
                               "  h = OneHot(ids, d: i64[] {8}, v: f32[2] {0.0, 1.0}) {axis=-1}\n"
                               "  m = MatMul(h, t: f32[8,4] random 3)\n"
                               "  y = Tanh(m)\n"
                               "}\n";
    static const char to[] = "graph g (ids: i64[1,64]) -> (y) {\n"
                             "  c = Clip(ids, lo: i64[] {-9}, hi: i64[] {8})\n"
                             "  k = Add(c, by: i64[1] {9})\n"
                             "  g0 = Gather(q: f32[18,4] random 9, k) {axis=0}\n"
                             "  y = Tanh(g0)\n"
                             "}\n";
    static const char recipes[] = "graph r (t: f32[8,4]) -> (q) {\n"
                                  "  q = Concat(n: f32[1,4] {0.0}, t, t, n) {axis=0}\n"
                                  "}\n";
    static const char *const wrong[][2] = {
        {"{-9}", "{-8}"},
        {"{8})", "{7})"},
        {"by: i64[1] {9}", "by: i64[1] {8}"},
        {"Clip(ids, lo: i64[] {-9}, hi: i64[] {8})", "Identity(ids)"},
    };
    (void)state;
    po_ctx ctx;
    po_ctx_init(&ctx);
    po_proof_report r = test_prove(&ctx, from, to, recipes);
    assert_string_equal(r.why, "");
    assert_true(r.proved);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        char *text = test_replaced(to, wrong[i][0], wrong[i][1]);
        assert_non_null(text);
        assert_false(test_prove(&ctx, from, text, recipes).proved);
        free(text);
    }
}

/* A row that is only picked where nothing looks does not count as picked. */
static void test_hidden_rows(void **state) {
    static const char text[] = "graph g (ids: i64[1,64]) -> (y) {\n"
                               "  g1 = Gather(q: f32[18,4] random 9, ids) {axis=0}\n"
                               "  g0 = Slice(g1, a: i64[1] {0}, b: i64[1] {1}, x: i64[1] {1})\n"
                               "  y = Tanh(g0)\n"
                               "}\n";
    (void)state;
    po_ctx ctx;
    po_ctx_init(&ctx);
    po_graph *a = test_graph(&ctx, text), *b = test_graph(&ctx, text);
    const po_tensor *t = NULL;
    for (po_value_id v = 0; v < b->n_values; v++)
        if (b->values[v].constant && b->values[v].constant->dtype == PO_F32)
            t = b->values[v].constant;
    assert_non_null(t);
    for (int64_t row = 0; row < 18; row++) {
        po_proof_report r;
        uint32_t *at = (uint32_t *)(uintptr_t)t->data + 4 * row;
        *at ^= 1;
        assert_int_equal(po_prove(&ctx, a, b, NULL, &(po_proof_options){.seed = 5}, &r), PO_OK);
        assert_false(r.proved);
        *at ^= 1;
    }
    po_graph_free(a);
    po_graph_free(b);
}

/* What stands between rows of a table and the output: where something leaves elements out, rows
 * that are all picked may still not be seen, and the table counts as a whole. */
static void test_what_shows(void **state) {
    static const struct {
        const char *between; /* z: f32[1,4,2,16], of the rows */
        bool shows;
    } samples[] = {
        {"y = Tanh(z)", true},
        {"y = Slice(z, a: i64[1] {0}, b: i64[1] {16}, x: i64[1] {3})", true},
        {"y = Slice(z, a: i64[1] {0}, b: i64[1] {15}, x: i64[1] {3})", false},
        {"y = Slice(z, a: i64[1] {0}, b: i64[1] {16}, x: i64[1] {3}, step: i64[1] {2})", false},
        {"p = Slice(z, a: i64[1] {0}, b: i64[1] {12}, x: i64[1] {3})\n"
         "  q = Slice(z, c: i64[1] {8}, d: i64[1] {16}, x)\n"
         "  y = Concat(q, p) {axis=3}",
         true},
        {"p = Slice(z, a: i64[1] {0}, b: i64[1] {8}, x: i64[1] {3})\n"
         "  q = Slice(z, c: i64[1] {9}, d: i64[1] {16}, x)\n"
         "  y = Concat(q, p) {axis=3}",
         false},
        {"y = Conv(z, w: f32[5,4,1,3] random 1)", true},
        {"y = Conv(z, w: f32[5,4,1,3] random 1) {strides=[1,3]}", false}, /* the last is left out */
        {"y = Conv(z, w: f32[5,4,1,2] random 1) {strides=[1,2]}", true},
        {"y = Conv(z, w: f32[5,4,1,1] random 1) {strides=[1,2]}", false},
        {"y = Conv(z, w: f32[5,4,1,3] random 1) {strides=[1,3], pads=[0,1,0,1]}", true},
        {"y = Conv(z, w: f32[5,4,1,3] random 1) {strides=[1,3], pads=[0,0,0,2]}", true},
        {"y = Conv(z, w: f32[5,4,1,2] random 1) {strides=[1,2], dilations=[1,2]}", false},
        {"p = Conv(z, w: f32[5,4,1,1] random 1) {strides=[1,2]}\n"
         "  q = Conv(z, w) {strides=[1,2], pads=[0,-1,0,0]}\n  y = Add(p, q)",
         true},
        {"p = Conv(z, w: f32[5,4,1,1] random 1) {strides=[1,2]}\n"
         "  r = Slice(z, a: i64[1] {1}, b: i64[1] {16}, x: i64[1] {3})\n"
         "  q = Conv(r, w) {strides=[1,2]}\n  y = Add(p, q)",
         true},
        {"y = Conv(z, w: f32[4,1,1,3] {1,0,2, 1,0,2, 1,0,2, 1,0,2}) {group=4}", true},
        {"y = Conv(z, w: f32[4,1,1,2] {1,0, 1,0, 1,0, 1,1}) {group=4}", false},
        {"y = Conv(z, w: f32[4,1,1,2] {1,0, 1,0, 1,0, 1,1}) {group=4, pads=[0,0,0,1]}", true},
        {"y = MatMul(z, w: f32[16,2] {1,0, 0,1, 1,0, 0,1, 1,0, 0,1, 1,0, 0,1, 1,0, 0,1, 1,0, 0,1, "
         "1,0, 0,1, 1,0, 0,1})",
         true},
        {"y = MatMul(z, w: f32[16,2] {1,0, 0,1, 1,0, 0,1, 1,0, 0,1, 1,0, 0,0, 1,0, 0,1, 1,0, 0,1, "
         "1,0, 0,1, 1,0, 0,1})",
         false},
        {"y = MatMul(w: f32[3,2] {1,0, 0,0, 1,1}, z)", true},
        {"y = MatMul(w: f32[3,2] {1,0, 0,0, 1,0}, z)", false},
        {"y = Mul(z, w: f32[4,1,1] {1,2,0,3})", false},
        {"y = Mul(z, w: f32[4,1,1] {1,2,4,3})", true},
        {"y = Pad(z, p: i64[8] {0,0,0,1,0,0,0,1})", true},
        {"y = Pad(z, p: i64[8] {0,0,0,-1,0,0,0,1})", false},
    };
    (void)state;
    for (size_t i = 0; i < sizeof samples / sizeof samples[0]; i++) {
        char text[1600];
        po_ctx ctx;
        po_ctx_init(&ctx);
        snprintf(text, sizeof text,
                 "graph g (ids: i64[1,64]) -> (y) {\n"
                 "  g0 = Gather(table: f32[8,2] random 9, ids) {axis=0}\n"
                 "  z = Reshape(g0, size: i64[4] {1,4,2,16})\n  %s\n}\n",
                 samples[i].between);
        po_graph *a = test_graph(&ctx, text);
        char spelled[2000];
        snprintf(spelled, sizeof spelled,
                 "graph g (ids: i64[1,64]) -> (y) {\n"
                 "  minus = Neg(table: f32[8,2] random 9)\n  rows = Gather(minus, ids) {axis=0}\n"
                 "  g0 = Neg(rows)\n  z = Reshape(g0, size: i64[4] {1,4,2,16})\n  %s\n}\n",
                 samples[i].between);
        po_graph *turned = test_graph(&ctx, spelled);
        po_proof_report other;
        assert_int_equal(po_prove(&ctx, turned, a, NULL, &(po_proof_options){.seed = 5}, &other),
                         PO_OK);
        assert_false(other.differ);
        if (other.proved != samples[i].shows)
            fail_msg("%s: %s", samples[i].between, other.why);
        po_graph_free(a);
        po_graph_free(turned);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_hot),
        cmocka_unit_test(test_hidden_rows),
        cmocka_unit_test(test_what_shows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
