/* Corrections of mutants that are right in part: by hand, where the ways that must succeed are
 * known, and of random mutants. Whatever is offered must be equal modulo p and in float64. */
#include "agreeing.h"
#include "boxes/agree.h"
#include "correct/correct.h"
#include "ir/text.h"
#include "ops/rewrite.h"
#include "random_linear.h"
#include "rewriting.h"
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>

typedef struct tried {
    po_agreement agreement;
    po_mutants corrected;
    uint32_t wrong; /* of those offered */
} tried;

static void show(po_arena *arena, const po_graph *graph) {
    po_text text;
    po_text_init(&text, arena);
    po_graph_print(&text, graph);
    printf("%s\n", text.data);
}

/* False where the programs are opaque. */
static bool correct(po_ctx *ctx, po_arena *arena, const po_graph *a, po_graph *b,
                    uint32_t activations, tried *t) {
    po_subprogram sub = {.graph = a, .n_activations = activations};
    po_mutant mutant = {"mutant", b};
    po_agree_options options = {.seed = 7};
    const po_program *p, *q;
    t->wrong = 0;
    po_mutants_init(&t->corrected, arena);
    if (po_program_of(ctx, arena, a, &p) != PO_OK || po_program_of(ctx, arena, b, &q) != PO_OK) {
        po_ctx_clear(ctx);
        return false;
    }
    assert_int_equal(po_agree(ctx, arena, p, q, &options, &t->agreement), PO_OK);
    if (po_correct(ctx, arena, &sub, &mutant, &t->agreement, &t->corrected) != PO_OK)
        fail_msg("%s", ctx->error.message);
    for (uint32_t i = 0; i < t->corrected.n; i++) {
        const po_graph *g = t->corrected.mutants[i].graph;
        bool equal = false;
        if (po_graph_check(ctx, g) != PO_OK || po_program_of(ctx, arena, g, &q) != PO_OK)
            fail_msg("%s: %s", t->corrected.mutants[i].name, ctx->error.message);
        if (po_agree_whole(ctx, arena, p, q, &options, &equal, NULL, NULL) != PO_OK)
            fail_msg("%s: %s", t->corrected.mutants[i].name, ctx->error.message);
        t->wrong += !equal;
        if (equal && !(test_difference(ctx, a, g, 3) < 1e-12))
            fail_msg("%s: differs in float64", t->corrected.mutants[i].name);
    }
    return true;
}

#define CONV "graph g (x: f32[4,3,8,6], w: f32[5,3,3,3]) -> (y) { y = Conv(x, w) {pads=[1,1,1,1]} }"

typedef struct example {
    const char *name, *a, *b;
    const char *ways[3]; /* that must be offered, all of them right */
    int nodes[3];        /* at most, of the way */
} example;

static const example examples[] = {
    {"the paper's figure 3: half of the width below the other half",
     "graph g (x: f32[1,3,8,8], w: f32[5,3,3,3]) -> (y) { y = Conv(x, w) {pads=[1,1,1,1]} }",
     "graph g (x: f32[1,3,8,8], w: f32[5,3,3,3]) -> (y) {"
     " s = i64[5] {1, 3, 8, 2, 4}\n t = i64[4] {1, 3, 16, 4}\n u = i64[5] {1, 5, 2, 8, 4}\n"
     " v = i64[4] {1, 5, 8, 8}\n a = Reshape(x, s)\n b = Transpose(a) {perm=[0,1,3,2,4]}\n"
     " c = Reshape(b, t)\n d = Conv(c, w) {pads=[1,1,1,1]}\n e = Reshape(d, u)\n"
     " f = Transpose(e) {perm=[0,1,3,2,4]}\n y = Reshape(f, v) }",
     {"mutant, zero gap and halo"},
     {9}},
    {"batch merged into height",
     CONV,
     "graph g (x: f32[4,3,8,6], w: f32[5,3,3,3]) -> (y) {"
     " t = i64[4] {1, 3, 32, 6}\n u = i64[4] {5, 4, 8, 6}\n"
     " a = Transpose(x) {perm=[1,0,2,3]}\n b = Reshape(a, t)\n c = Conv(b, w) {pads=[1,1,1,1]}\n"
     " d = Reshape(c, u)\n y = Transpose(d) {perm=[1,0,2,3]} }",
     {"mutant, zero gap"},
     {8}},
    {"batch merged into height and width, stride 2",
     "graph g (x: f32[4,3,8,6], w: f32[5,3,3,3]) -> (y) {"
     " y = Conv(x, w) {pads=[1,1,1,1], strides=[2,2]} }",
     "graph g (x: f32[4,3,8,6], w: f32[5,3,3,3]) -> (y) {"
     " s = i64[5] {2, 2, 3, 8, 6}\n t = i64[4] {1, 3, 16, 12}\n u = i64[5] {5, 2, 4, 2, 3}\n"
     " v = i64[4] {4, 5, 4, 3}\n a = Reshape(x, s)\n b = Transpose(a) {perm=[2,0,3,1,4]}\n"
     " c = Reshape(b, t)\n d = Conv(c, w) {pads=[1,1,1,1], strides=[2,2]}\n e = Reshape(d, u)\n"
     " f = Transpose(e) {perm=[1,3,0,2,4]}\n y = Reshape(f, v) }",
     {"mutant, zero gap"},
     {9}},
    {"height cut into tiles",
     CONV,
     "graph g (x: f32[4,3,8,6], w: f32[5,3,3,3]) -> (y) {"
     " s = i64[5] {4, 3, 2, 4, 6}\n t = i64[4] {8, 3, 4, 6}\n u = i64[5] {4, 2, 5, 4, 6}\n"
     " v = i64[4] {4, 5, 8, 6}\n a = Reshape(x, s)\n b = Transpose(a) {perm=[0,2,1,3,4]}\n"
     " c = Reshape(b, t)\n d = Conv(c, w) {pads=[1,1,1,1]}\n e = Reshape(d, u)\n"
     " f = Transpose(e) {perm=[0,2,1,3,4]}\n y = Reshape(f, v) }",
     {"mutant, halo", "mutant, boxes computed"},
     {8, 14}},
    {"PET's Table 4: height and width cut in four each, 38 filled up to 40",
     "graph g (x: f32[1,3,38,38], w: f32[2,3,5,5]) -> (y) { y = Conv(x, w) {pads=[2,2,2,2]} }",
     "graph g (x: f32[1,3,38,38], w: f32[2,3,5,5]) -> (y) {"
     " p = i64[8] {0, 0, 0, 0, 0, 0, 2, 2}\n s = i64[6] {1, 3, 4, 10, 4, 10}\n"
     " t = i64[4] {16, 3, 10, 10}\n u = i64[6] {1, 4, 4, 2, 10, 10}\n"
     " v = i64[4] {1, 2, 40, 40}\n q = i64[8] {0, 0, 0, 0, 0, 0, -2, -2}\n"
     " o = Pad(x, p)\n a = Reshape(o, s)\n b = Transpose(a) {perm=[0,2,4,1,3,5]}\n"
     " c = Reshape(b, t)\n d = Conv(c, w) {pads=[2,2,2,2]}\n e = Reshape(d, u)\n"
     " f = Transpose(e) {perm=[0,3,1,4,2,5]}\n h = Reshape(f, v)\n y = Pad(h, q) }",
     {"mutant, halo"},
     {10}},
    {"dilation to phases without their padding",
     "graph g (x: f32[1,3,16,16], w: f32[5,3,3,3]) -> (y) {"
     " y = Conv(x, w) {pads=[2,2,2,2], dilations=[2,2]} }",
     "graph g (x: f32[1,3,16,16], w: f32[5,3,3,3]) -> (y) {"
     " s = i64[6] {1, 3, 8, 2, 8, 2}\n t = i64[4] {4, 3, 8, 8}\n u = i64[6] {2, 2, 5, 8, 8, 1}\n"
     " v = i64[4] {1, 5, 16, 16}\n p = i64[8] {0, 0, 1, 1, 0, 0, 1, 1}\n"
     " q = i64[5] {2, 2, 5, 8, 8}\n"
     " a = Reshape(x, s)\n b = Transpose(a) {perm=[3,5,0,1,2,4]}\n c = Reshape(b, t)\n"
     " d = Conv(c, w)\n e = Pad(d, p)\n f = Reshape(e, q)\n"
     " h = Transpose(f) {perm=[2,3,0,4,1]}\n y = Reshape(h, v) }",
     {"mutant, boxes computed"},
     {30}},
    {"the last row of a stride is left out",
     "graph g (x: f32[2,3,9,6], w: f32[5,3,3,3]) -> (y) {"
     " y = Conv(x, w) {pads=[1,1,1,1], strides=[2,1]} }",
     "graph g (x: f32[2,3,9,6], w: f32[5,3,3,3]) -> (y) { i = i64[1] {0}\n j = i64[1] {8}\n"
     " k = i64[1] {2}\n p = i64[8] {0, 0, 0, 0, 0, 0, 1, 0}\n a = Slice(x, i, j, k)\n"
     " b = Conv(a, w) {pads=[1,1,1,1], strides=[2,1]}\n y = Pad(b, p) }",
     {"mutant, boxes computed"},
     {8}},
    {"two channels of a concatenation in the wrong order",
     "graph g (x: f32[2,4,6,6], w: f32[6,4,3,3], v: f32[1,4,1,1], u: f32[1,4,1,1]) -> (y) {"
     " a = Conv(x, w) {pads=[1,1,1,1]}\n b = Conv(x, v)\n c = Conv(x, u)\n"
     " y = Concat(a, b, c) {axis=1} }",
     "graph g (x: f32[2,4,6,6], w: f32[6,4,3,3], v: f32[1,4,1,1], u: f32[1,4,1,1]) -> (y) {"
     " a = Conv(x, w) {pads=[1,1,1,1]}\n b = Conv(x, v)\n c = Conv(x, u)\n"
     " y = Concat(a, c, b) {axis=1} }",
     {"mutant, boxes computed"},
     {10}},
    {"odd rows wrong",
     "graph g (x: f32[1,3,8,6], w: f32[5,3,3,3], b: f32[5]) -> (y) {"
     " y = Conv(x, w, b) {pads=[1,1,1,1]} }",
     "graph g (x: f32[1,3,8,6], w: f32[5,3,3,3], b: f32[5]) -> (y) {"
     " a = Conv(x, w, b) {pads=[1,1,1,1], strides=[2,1]}\n s = i64[5] {1, 5, 4, 1, 6}\n"
     " p = i64[10] {0, 0, 0, 0, 0, 0, 0, 0, 1, 0}\n v = i64[4] {1, 5, 8, 6}\n"
     " c = Reshape(a, s)\n d = Pad(c, p)\n y = Reshape(d, v) }",
     {"mutant, boxes computed"},
     {10}},
    {"every third row of seven wrong, behind a transposition",
     "graph g (x: f32[2,3,7,6], w: f32[5,3,3,3]) -> (y) {"
     " a = Conv(x, w) {pads=[1,1,1,1]}\n y = Transpose(a) {perm=[0,2,3,1]} }",
     "graph g (x: f32[2,3,7,6], w: f32[5,3,3,3]) -> (y) {"
     " a = Conv(x, w) {pads=[1,1,1,1]}\n b = Transpose(a) {perm=[0,2,3,1]}\n"
     " m = f32[7,1,1] {1, 0, 1, 1, 0, 1, 1}\n y = Mul(b, m) }",
     {"mutant, boxes computed", "mutant, rows computed"},
     {16, 16}},
    {"the last columns of a product",
     "graph g (x: f32[3,6,8], w: f32[8,10]) -> (y) { y = MatMul(x, w) }",
     "graph g (x: f32[3,6,8], w: f32[8,10]) -> (y) { i = i64[1] {0}\n j = i64[1] {7}\n"
     " k = i64[1] {1}\n p = i64[4] {0, 0, 0, 3}\n a = Slice(w, i, j, k)\n q = i64[6] {0, 0, 0, 0, "
     "0, "
     "3}\n"
     " b = MatMul(x, a)\n y = Pad(b, q) }",
     {"mutant, boxes computed"},
     {8}},
    {"one axis", /* a seam in one dimension */
     "graph g (x: f32[3,2,10], w: f32[4,2,5]) -> (y) { y = Conv(x, w) {pads=[2,2]} }",
     "graph g (x: f32[3,2,10], w: f32[4,2,5]) -> (y) {"
     " t = i64[3] {1, 2, 30}\n u = i64[3] {4, 3, 10}\n a = Transpose(x) {perm=[1,0,2]}\n"
     " b = Reshape(a, t)\n c = Conv(b, w) {pads=[2,2]}\n d = Reshape(c, u)\n"
     " y = Transpose(d) {perm=[1,0,2]} }",
     {"mutant, zero gap"},
     {8}},
    {"three axes, pool", /* batch merged into depth */
     "graph g (x: f32[2,2,6,4,4]) -> (y) {"
     " y = AveragePool(x) {kernel_shape=[3,3,3], pads=[1,1,1,1,1,1], count_include_pad=1} }",
     "graph g (x: f32[2,2,6,4,4]) -> (y) {"
     " t = i64[5] {1, 2, 12, 4, 4}\n u = i64[5] {2, 2, 6, 4, 4}\n"
     " a = Transpose(x) {perm=[1,0,2,3,4]}\n b = Reshape(a, t)\n"
     " c = AveragePool(b) {kernel_shape=[3,3,3], pads=[1,1,1,1,1,1], count_include_pad=1}\n"
     " d = Reshape(c, u)\n y = Transpose(d) {perm=[1,0,2,3,4]} }",
     {"mutant, zero gap"},
     {8}},
    {"two outputs, one of them wrong at its end",
     "graph g (x: f32[2,3,8,8], w: f32[4,3,3,3], v: f32[2,3,1,1]) -> (y, z) {"
     " y = Conv(x, w) {pads=[1,1,1,1]}\n z = Conv(x, v) }",
     "graph g (x: f32[2,3,8,8], w: f32[4,3,3,3], v: f32[2,3,1,1]) -> (y, z) {"
     " y = Conv(x, w) {pads=[1,1,1,1]}\n a = Conv(x, v)\n"
     " p = i64[8] {0, 0, 0, 0, 0, 0, -1, 0}\n q = i64[8] {0, 0, 0, 0, 0, 0, 1, 0}\n"
     " b = Pad(a, p)\n z = Pad(b, q) }",
     {"mutant, boxes computed"},
     {8}},
    {"two convolutions in a row, without padding at the borders",
     "graph g (x: f32[2,3,12,12], w: f32[4,3,3,3], v: f32[2,4,3,3]) -> (y) {"
     " a = Conv(x, w) {pads=[1,1,1,1]}\n y = Conv(a, v) {pads=[1,1,1,1]} }",
     "graph g (x: f32[2,3,12,12], w: f32[4,3,3,3], v: f32[2,4,3,3]) -> (y) {"
     " a = Conv(x, w)\n b = Conv(a, v)\n p = i64[8] {0, 0, 2, 0, 0, 0, 2, 0}\n"
     " c = Pad(b, p)\n q = i64[8] {0, 0, 0, 2, 0, 0, 0, 2}\n y = Pad(c, q) }",
     {NULL}, /* more work than half of it */
     {0}},
    {"groups, a group of channels wrong",
     "graph g (x: f32[2,8,6,6], w: f32[12,2,3,3]) -> (y) {"
     " y = Conv(x, w) {pads=[1,1,1,1], group=4} }",
     "graph g (x: f32[2,8,6,6], w: f32[12,2,3,3]) -> (y) {"
     " a = Conv(x, w) {pads=[1,1,1,1], group=4}\n m = f32[12,1,1] {1, 1, 1, 1, 1, 1, 1, 1, 1, 0, "
     "0, 0}\n y = Mul(a, m) }",
     {"mutant, boxes computed"},
     {7}},
};

static void known_mutants(void **state) {
    (void)state;
    for (size_t k = 0; k < sizeof examples / sizeof *examples; k++) {
        const example *e = &examples[k];
        po_ctx ctx;
        po_ctx_init(&ctx);
        po_arena *arena = po_arena_create(&ctx);
        po_graph *a = test_graph(&ctx, e->a), *b = test_graph(&ctx, e->b);
        tried t;
        assert_true(correct(&ctx, arena, a, b, 1, &t));
        printf("%s: %.0f%% agree", e->name, 100 * t.agreement.share);
        for (uint32_t i = 0; i < t.corrected.n; i++)
            printf("; %s, %u nodes", t.corrected.mutants[i].name,
                   t.corrected.mutants[i].graph->n_live);
        printf("\n");
        if (t.wrong)
            for (uint32_t i = 0; i < t.corrected.n; i++)
                show(arena, t.corrected.mutants[i].graph);
        assert_int_equal(t.wrong, 0);
        for (int w = 0; w < 3 && e->ways[w]; w++) {
            bool found = false;
            for (uint32_t i = 0; i < t.corrected.n; i++)
                if (strcmp(t.corrected.mutants[i].name, e->ways[w]) == 0) {
                    found = true;
                    if (t.corrected.mutants[i].graph->n_live > (uint32_t)e->nodes[w]) {
                        show(arena, t.corrected.mutants[i].graph);
                        fail_msg("%s: %s takes more than %d nodes", e->name, e->ways[w],
                                 e->nodes[w]);
                    }
                }
            if (!found)
                fail_msg("%s: no '%s'", e->name, e->ways[w]);
        }
        if (!e->ways[0])
            assert_int_equal(t.corrected.n, 0);
        po_arena_free(arena);
        po_graph_free(a);
        po_graph_free(b);
    }
}

static void random_mutants(void **state) {
    (void)state;
    const char *asked = getenv("PETOPT_TEST_MUTANTS");
    int wanted = asked ? atoi(asked) : 1000, partly = 0, some = 0, offered = 0, wrong = 0;
    for (uint64_t seed = 0; partly < wanted; seed++) {
        po_ctx ctx;
        po_ctx_init(&ctx);
        po_graph *a = test_random_linear(&ctx, seed);
        for (uint64_t k = 0; a && k < 4; k++) {
            po_graph *b = test_random_mutant(&ctx, seed, 4 * seed + k);
            if (!b)
                continue;
            po_arena *arena = po_arena_create(&ctx);
            tried t;
            uint32_t activations = k % 2 ? 1 : a->n_inputs;
            if (correct(&ctx, arena, a, b, activations, &t) && !t.agreement.equal &&
                t.agreement.share > 0) {
                partly++;
                some += t.corrected.n > 0;
                offered += (int)t.corrected.n;
                wrong += (int)t.wrong;
                if (t.wrong && wrong <= 3) {
                    show(arena, a);
                    show(arena, b);
                    for (uint32_t i = 0; i < t.corrected.n; i++) {
                        printf("%s\n", t.corrected.mutants[i].name);
                        show(arena, t.corrected.mutants[i].graph);
                    }
                }
            }
            po_arena_free(arena);
            po_graph_free(b);
        }
        po_graph_free(a);
    }
    printf("%d mutants right in part, %d of them corrected, %d programs offered, %d wrong\n",
           partly, some, offered, wrong);
    assert_int_equal(wrong, 0);
    assert_true(some > partly / 6);
}

/* A copy of a constant with one element more or less by one. */
static const po_tensor *nudged(po_graph *g, const po_tensor *t, int64_t at, int64_t by) {
    int64_t *values = PO_NEW_N(g->arena, int64_t, t->count);
    for (int64_t i = 0; i < t->count; i++)
        values[i] = po_tensor_int(t, i) + (i == at ? by : 0);
    po_tensor *copy = po_tensor_i64(g->arena, (uint32_t)t->count, values);
    copy->rank = t->rank;
    copy->dims = t->dims;
    return copy;
}

/* One of the faults that a wrong correction would have: a slice beside its box, zeros on the wrong
 * side or another number of them, a row of the halo from elsewhere, padding of the windows moved.
 * False where the node has no such number. */
static bool spoil(po_graph *g, po_node_id id, uint32_t k) {
    const po_node n = g->nodes[id];
    const po_tensor *a = n.n_in > 1 ? po_graph_constant(g, n.in[1]) : NULL;
    const po_tensor *b = n.n_in > 2 ? po_graph_constant(g, n.in[2]) : NULL;
    if (n.op == PO_OP_Slice && a && b && k < 2 * a->count) {
        int64_t by = k % 2 ? 1 : -1;
        po_graph_set_input(g, id, 1, po_graph_add_constant(g, NULL, nudged(g, a, k / 2, by)));
        po_graph_set_input(g, id, 2, po_graph_add_constant(g, NULL, nudged(g, b, k / 2, by)));
        return po_tensor_int(a, k / 2) + by >= 0;
    }
    if (n.op == PO_OP_Pad && a && k < a->count / 2) {
        const po_tensor *t = nudged(g, nudged(g, a, k, 1), k + a->count / 2, -1);
        po_graph_set_input(g, id, 1, po_graph_add_constant(g, NULL, t));
        return true;
    }
    if (n.op == PO_OP_Gather && a && k < a->count) {
        po_graph_set_input(g, id, 1, po_graph_add_constant(g, NULL, nudged(g, a, k, k ? -1 : 1)));
        return true;
    }
    uint32_t n_pads;
    const int64_t *pads = po_node_ints(&n, "pads", &n_pads);
    if (n.op == PO_OP_Conv && pads && k < n_pads / 2) {
        int64_t *moved = po_arena_memdup(g->arena, pads, n_pads * sizeof *pads);
        moved[k]++;
        moved[k + n_pads / 2]--;
        po_node_set_ints(g, id, "pads", n_pads, moved);
        return moved[k + n_pads / 2] >= 0;
    }
    return false;
}

static void spoil_all(po_ctx *ctx, const po_graph *a, const po_graph *good, int *spoiled,
                      int *seen) {
    po_agree_options options = {.seed = 11};
    for (po_node_id id = 0; id < good->n_nodes; id++)
        for (uint32_t k = 0; k < 16 && !good->nodes[id].removed; k++) {
            po_graph *g = po_graph_clone(ctx, good);
            po_arena *arena = po_arena_create(ctx);
            const po_program *p, *q;
            if (spoil(g, id, k) && po_infer_graph(ctx, g, false) == PO_OK) {
                bool equal = true;
                assert_int_equal(po_program_of(ctx, arena, a, &p), PO_OK);
                assert_int_equal(po_program_of(ctx, arena, g, &q), PO_OK);
                assert_int_equal(po_agree_whole(ctx, arena, p, q, &options, &equal, NULL, NULL),
                                 PO_OK);
                /* Zeros may stand on either side of some: then nothing is wrong. */
                if (equal != (test_difference(ctx, a, g, 9) < 1e-12)) {
                    show(arena, g);
                    fail_msg("called %s, and is not", equal ? "equal" : "unequal");
                }
                ++*spoiled;
                *seen += !equal;
            }
            po_ctx_clear(ctx);
            po_arena_free(arena);
            po_graph_free(g);
        }
}

static void spoiled_corrections(void **state) {
    (void)state;
    int spoiled = 0, seen = 0;
    for (size_t k = 0; k < sizeof examples / sizeof *examples; k++) {
        po_ctx ctx;
        po_ctx_init(&ctx);
        po_arena *arena = po_arena_create(&ctx);
        po_graph *a = test_graph(&ctx, examples[k].a), *b = test_graph(&ctx, examples[k].b);
        tried t;
        assert_true(correct(&ctx, arena, a, b, 1, &t));
        for (uint32_t i = 0; i < t.corrected.n; i++)
            spoil_all(&ctx, a, t.corrected.mutants[i].graph, &spoiled, &seen);
        po_arena_free(arena);
        po_graph_free(a);
        po_graph_free(b);
    }
    printf("%d of %d spoiled corrections seen; the others compute the same\n", seen, spoiled);
    assert_true(spoiled > 200 && seen > spoiled * 9 / 10);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_mutants),
        cmocka_unit_test(spoiled_corrections),
        cmocka_unit_test(random_mutants),
    };
    return cmocka_run_group_tests_name("correct", tests, NULL, NULL);
}
