/* The paper's operator cases at their true shapes: what the derivations make of them, judged, and
 * what that costs. */
#include "boxes/agree.h"
#include "mutate/mutate.h"
#include "rewriting.h"
#include "unit.h"

#include <stdio.h>
#include <time.h>

static const struct {
    const char *name, *text;
} cases[] = {
    {"5x5, 48 to 64 at 38", "graph g (x: f32[1,48,38,38], w: f32[64,48,5,5]) -> (y) {"
                            " y = Conv(x, w) {pads=[2,2,2,2]} }"},
    {"3x3, dilation 2, 512 to 256 at 14",
     "graph g (x: f32[1,512,14,14], w: f32[256,512,3,3]) -> (y) {"
     " y = Conv(x, w) {pads=[2,2,2,2], dilations=[2,2]} }"},
    {"groups of 768 at 18, 192 and 160 outputs, two of each",
     "graph g (x: f32[1,768,18,18], w0: f32[192,768,1,1], w1: f32[160,768,1,1],"
     " w2: f32[192,768,1,1], w3: f32[160,768,1,1]) -> (a, b, c, d) {"
     " a = Conv(x, w0)\n b = Conv(x, w1)\n c = Conv(x, w2)\n d = Conv(x, w3) }"},
    {"3 products [512,768] x [768,768]",
     "graph g (x: f32[512,768], w0: f32[768,768], w1: f32[768,768], w2: f32[768,768])"
     " -> (a, b, c) { a = MatMul(x, w0)\n b = MatMul(x, w1)\n c = MatMul(x, w2) }"},
    {"3x3, 512 to 512 at 28", "graph g (x: f32[1,512,28,28], w: f32[512,512,3,3]) -> (y) {"
                              " y = Conv(x, w) {pads=[1,1,1,1]} }"},
    {"3x3, 64 to 64 at 56", "graph g (x: f32[1,64,56,56], w: f32[64,64,3,3]) -> (y) {"
                            " y = Conv(x, w) {pads=[1,1,1,1]} }"},
};

static double seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void judge(po_ctx *ctx, const po_program *a, po_agree_known *known, const po_mutant *m) {
    po_arena *arena = po_arena_create(ctx);
    const po_program *b;
    po_agree_options options = {.seed = 1, .known = known};
    po_agreement got;
    bool whole = false;
    double share;
    double start = seconds(), make, filter, boxes, end;
    if (po_program_of(ctx, arena, m->graph, &b) != PO_OK)
        fail_msg("%s: %s", m->name, ctx->error.message);
    make = seconds();
    assert_int_equal(po_agree_share(ctx, arena, a, b, options.seed, 6, &share), PO_OK);
    filter = seconds();
    if (po_agree(ctx, arena, a, b, &options, &got) != PO_OK)
        fail_msg("%s: %s", m->name, ctx->error.message);
    boxes = seconds();
    assert_int_equal(po_agree_whole(ctx, arena, a, b, &options, &whole, NULL, NULL), PO_OK);
    end = seconds();
    printf(
        "  %-46s program %.2f ms, filter %.2f ms (%s), boxes %.1f ms (%s, %.4f; %llu boxes, %llu "
        "points), whole %.2f s (%s)\n",
        m->name, 1e3 * (make - start), 1e3 * (filter - make), share > 0 ? "pass" : "fails",
        1e3 * (boxes - filter), got.equal ? "equal" : "in part", got.share,
        (unsigned long long)got.boxes, (unsigned long long)got.points, end - boxes,
        whole ? "equal" : "not equal");
    assert_int_equal(got.equal, whole);
    po_arena_free(arena);
}

static void test_cases(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        po_ctx ctx;
        po_ctx_init(&ctx);
        po_arena *arena = po_arena_create(&ctx);
        po_graph *g = test_graph(&ctx, cases[i].text);
        po_subprogram sub = {.graph = g, .n_activations = 1};
        po_mutants mutants;
        po_mutate_counts counts = {0};
        po_mutants_init(&mutants, arena);
        assert_int_equal(po_derive(&ctx, arena, &sub, PO_LAW_ANY, &mutants, &counts), PO_OK);
        const po_program *p;
        assert_int_equal(po_program_of(&ctx, arena, g, &p), PO_OK);
        po_agree_known *known = po_agree_known_create(arena);
        printf("%s: %u mutants\n", cases[i].name, mutants.n);
        for (uint32_t k = 0; k < mutants.n; k++)
            judge(&ctx, p, known, &mutants.mutants[k]);
        po_arena_free(arena);
        po_graph_free(g);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cases),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
