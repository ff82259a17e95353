/* Where programs agree: known pairs, by boxes and by every position, against brute force. */
#include "agreeing.h"
#include "rewriting.h"
#include "unit.h"

#include <malloc.h>
#include <stdio.h>

typedef struct world {
    po_ctx ctx;
    po_arena *arena;
    po_graph *a, *b;
    const po_program *p, *q;
} world;

static void open_world(world *w, const char *a, const char *b) {
    po_ctx_init(&w->ctx);
    w->arena = po_arena_create(&w->ctx);
    w->a = test_graph(&w->ctx, a);
    w->b = test_graph(&w->ctx, b);
    if (po_program_of(&w->ctx, w->arena, w->a, &w->p) != PO_OK ||
        po_program_of(&w->ctx, w->arena, w->b, &w->q) != PO_OK)
        fail_msg("%s", w->ctx.error.message);
}

static void close_world(world *w) {
    po_graph_free(w->a);
    po_graph_free(w->b);
    po_arena_free(w->arena);
}

typedef struct pair {
    const char *name, *a, *b;
    int differing;  /* positions of the first output */
    uint32_t boxes; /* at most, of those that differ */
} pair;

static const pair pairs[] = {
    {"batch merged into width without a gap",
     "graph g (x: f32[4,2,6,5], w: f32[3,2,3,3]) -> (y) {"
     " y = Conv(x, w) {pads=[1,1,1,1]} }",
     "graph g (x: f32[4,2,6,5], w: f32[3,2,3,3]) -> (y) {"
     " s = i64[6] {2, 2, 2, 6, 5, 1}\n s1 = i64[4] {2, 2, 6, 10}\n s2 = i64[5] {2, 3, 6, 2, 5}\n"
     " s3 = i64[4] {4, 3, 6, 5}\n s0 = i64[5] {2, 2, 2, 6, 5}\n"
     " a = Reshape(x, s0)\n b = Transpose(a) {perm=[0,2,3,1,4]}\n c = Reshape(b, s1)\n"
     " d = Conv(c, w) {pads=[1,1,1,1]}\n e = Reshape(d, s2)\n"
     " f = Transpose(e) {perm=[0,3,1,2,4]}\n y = Reshape(f, s3) }",
     4 * 3 * 6, 2},
    {"the same",
     "graph g (x: f32[1,2,6,5], w: f32[3,2,3,3]) -> (y) { y = Conv(x, w) {pads=[1,1,1,1]} }",
     "graph g (x: f32[1,2,6,5], w: f32[3,2,3,3]) -> (y) {"
     " a = Transpose(x) {perm=[0,1,3,2]}\n v = Transpose(w) {perm=[0,1,3,2]}\n"
     " b = Conv(a, v) {pads=[1,1,1,1]}\n y = Transpose(b) {perm=[0,1,3,2]} }",
     0, 0},
    /* Theorem 1's trap: X[v] + X[v+1] and X[1] + X[2v] agree at v = 0 and v = 1 alone. */
    {"a sum of terms that agrees at two neighbours",
     "graph g (x: f32[16]) -> (y) { i = i64[1] {0}\n j = i64[1] {8}\n k = i64[1] {1}\n"
     " l = i64[1] {9}\n a = Slice(x, i, j)\n b = Slice(x, k, l)\n y = Add(a, b) }",
     "graph g (x: f32[16]) -> (y) { k = i64[1] {1}\n l = i64[1] {2}\n s = i64[1] {8}\n"
     " r = i64[2] {8, 2}\n z = i64[2] {0, 0}\n o = i64[2] {8, 1}\n q = i64[1] {8}\n"
     " a = Slice(x, k, l)\n b = Expand(a, s)\n c = Reshape(x, r)\n d = Slice(c, z, o)\n"
     " e = Reshape(d, q)\n y = Add(b, e) }",
     6, 1},
};

static void check_pair(const pair *p, po_agree_how how) {
    world w;
    open_world(&w, p->a, p->b);
    po_agreement got;
    po_agree_options options = {.seed = 7, .how = how};
    if (po_agree(&w.ctx, w.arena, w.p, w.q, &options, &got) != PO_OK)
        fail_msg("%s: %s", p->name, w.ctx.error.message);
    uint8_t **differing = test_differing(&w.ctx, w.arena, w.a, w.b, 3);
    assert_non_null(differing);
    const char *wrong = test_check_agreement(w.arena, w.p, &got, differing);
    if (wrong)
        fail_msg("%s: %s", p->name, wrong);
    int n = 0;
    for (int64_t i = 0; i < w.p->values[w.p->outputs[0]].count; i++)
        n += differing[0][i];
    assert_int_equal(n, p->differing);
    if (got.differ[0].n > p->boxes || got.equal != (n == 0))
        fail_msg("%s: %u boxes", p->name, got.differ[0].n);
    bool equal;
    uint32_t output = 9;
    int64_t at = -1;
    assert_int_equal(po_agree_whole(&w.ctx, w.arena, w.p, w.q, &options, &equal, &output, &at),
                     PO_OK);
    assert_int_equal(equal, n == 0);
    if (!equal) {
        assert_int_equal(output, 0);
        assert_true(differing[0][at]);
    }
    close_world(&w);
}

static void test_known_pairs(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        check_pair(&pairs[i], PO_AGREE_BOXES);
        check_pair(&pairs[i], PO_AGREE_WHOLE);
    }
}

/* What is remembered of elements has an end, and what was forgotten comes out the same. */
static void test_many_points(void **state) {
    enum { SIDE = 1100, APART = 997 };
    static const char text[] =
        "graph g (x: f32[1,1,1100,1100], v: f32[1,1,1,3], w: f32[1,1,1,3]) -> (y) {"
        " a = Conv(x, v) {pads=[0,1,0,1]}\n y = Conv(a, w) {pads=[0,1,0,1]} }";
    (void)state;
    world w;
    open_world(&w, text, text);
    po_program_points *p, *fresh;
    struct mallinfo2 before = mallinfo2();
    assert_int_equal(po_program_points_create(w.arena, w.p, &p), PO_OK);
    assert_int_equal(po_program_points_create(w.arena, w.p, &fresh), PO_OK);
    po_program_points_reset(p, 5);
    for (int64_t at = 0; at < (int64_t)SIDE * SIDE; at++) {
        const int64_t index[] = {0, 0, at / SIDE, at % SIDE};
        uint32_t one = po_program_points_eval(p, 0, index);
        if (at % APART != 0)
            continue;
        po_program_points_reset(fresh, 5);
        assert_int_equal(po_program_points_eval(fresh, 0, index), one);
    }
    struct mallinfo2 after = mallinfo2();
    assert_true(after.uordblks + after.hblkhd < before.uordblks + before.hblkhd + (48u << 20));
    close_world(&w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_known_pairs),
        cmocka_unit_test(test_many_points),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
