/* Constants in float that are stored in half precision: which, and that they are the same numbers.
 */
#include "ir/text.h"
#include "pipeline/half_weights.h"
#include "postopt/postopt.h"
#include "rewriting.h"
#include "simplify/simplify.h"
#include "unit.h"

static uint32_t constants(const po_graph *g, po_dtype dtype) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < g->n_initializers; i++)
        n += g->values[g->initializers[i]].constant->dtype == dtype;
    return n;
}

/* Constants of either type and casts of them, once the text is simplified and its weights are
 * stored again; as text, or what is wrong. */
static const char *stored(po_ctx *ctx, po_arena *arena, const char *text, bool worked) {
    po_graph *g = test_graph(ctx, text), *simple, *before, *out;
    const po_simplify_options options = {.growth = 1 << 20};
    const po_postopt_options half = {.half = true};
    assert_int_equal(po_simplify(ctx, g, &options, &simple, NULL), PO_OK);
    if (worked)
        assert_int_equal(po_postopt(ctx, simple, &half, &before, NULL), PO_OK);
    else
        before = po_graph_clone(ctx, simple);
    out = po_graph_clone(ctx, before);
    assert_int_equal(po_half_weights(ctx, out), PO_OK);
    assert_int_equal(po_graph_check(ctx, out), PO_OK);
    assert_int_equal(po_infer_graph(ctx, out, true), PO_OK);
    const char *fault = test_recipe_fault(ctx, g, out);
    if (!fault &&
        (test_difference(ctx, before, out, 3) != 0 || !(test_difference(ctx, g, out, 3) < 1e-6)))
        fault = "other numbers";
    const char *told =
        fault ? po_arena_printf(arena, "%s", fault)
              : po_arena_printf(arena, "%u f32, %u f16, %u casts", constants(out, PO_F32),
                                constants(out, PO_F16), test_count(out, "Cast"));
    po_graph_free(out);
    po_graph_free(before);
    po_graph_free(simple);
    po_graph_free(g);
    return told;
}

static void test_stored(void **state) {
    static const struct {
        const char *text, *told;
        bool worked;
    } cases[] = {
        /* As it was, and moved. */
        {"graph g (x: f32[2,16], u: f32[2,32]) -> (y, z) {\n"
         " h = Cast(w: f16[16,32] random 1) {to=1}\n y = MatMul(x, h)\n"
         " t = Transpose(h) {perm=[1, 0]}\n z = MatMul(u, t)\n}",
         "0 f32, 2 f16, 2 casts", false},
        /* Few numbers, and numbers that are none of half precision. */
        {"graph g (x: f32[2,16]) -> (y, z) {\n"
         " h = Cast(w: f16[16,8] random 1) {to=1}\n y = MatMul(x, h)\n"
         " k = Cast(v: f16[16,32] random 2) {to=1}\n s = Mul(k, three: f32[] {3.1})\n"
         " z = MatMul(x, s)\n}",
         "2 f32, 0 f16, 0 casts", false},
        /* The model's own float constants. */
        {"graph g (x: f32[2,16]) -> (y) {\n y = MatMul(x, w: f32[16,32] {0.5})\n}",
         "1 f32, 0 f16, 0 casts", false},
        /* Of a law; a branch reads it too. */
        {"graph g (x: f16[2,16], c: bool[]) -> (y, z) {\n y = MatMul(x, w: f16[16,32] random 1)\n"
         " z = If(c) {\n then_branch=graph then () -> (a) { a = MatMul(x, w) },\n"
         " else_branch=graph other () -> (b) { b = Tanh(y) }\n }\n}",
         "0 f32, 1 f16, 8 casts", true},
    };
    po_ctx ctx;
    po_ctx_init(&ctx);
    po_arena *arena = po_arena_create(&ctx);
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_string_equal(stored(&ctx, arena, cases[i].text, cases[i].worked), cases[i].told);
    po_arena_free(arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_stored)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
