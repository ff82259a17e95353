/* Chains of moves in graphs: their forms, and what becomes of those that cancel. */
#include "base/scan.h"
#include "ops/move/rt.h"
#include "ops/rewrite.h"
#include "postopt/postopt.h"
#include "rewriting.h"
#include "unit.h"

#include <stdio.h>

static const char moves[] = "graph g (x: f32[2,8,6,6]) -> (y) {\n"
                            "  s = i64[6] {2, 2, 4, 3, 2, 6}\n"
                            "  a = Reshape(x, s) : f32[2,2,4,3,2,6]\n"
                            "  b = Transpose(a) {perm=[4,0,1,2,3,5]} : f32[2,2,2,4,3,6]\n"
                            "  t = i64[4] {4, 8, 3, 6}\n"
                            "  c = Reshape(b, t) : f32[4,8,3,6]\n"
                            "  p = i64[8] {0, 0, 1, 0, 0, 0, 1, 0}\n"
                            "  y = Pad(c, p) : f32[4,8,5,6]\n"
                            "}\n";

static void chains_of_nodes(void **state) {
    (void)state;
    po_ctx ctx;
    po_ctx_init(&ctx);
    po_arena *arena = po_arena_create(&ctx);
    po_graph *g = test_graph(&ctx, moves);
    po_text text;
    po_text_init(&text, arena);
    po_value_id root;
    const po_rt *rt;
    assert_int_equal(po_rt_of_chain(&ctx, arena, g, g->outputs[0], &root, &rt), PO_OK);
    assert_int_equal(root, g->inputs[0]);
    po_rt_print(&text, rt, false);
    assert_string_equal(text.data, "n c (h 2) w -> (2 n) c h+1=5 w");
    po_arena_free(arena);
    po_graph_free(g);
}

typedef struct sample {
    const char *name, *text;
    uint32_t moves; /* that are left */
    bool fires;
} sample;

static const sample samples[] = {
    {"a transposition and its inverse around an activation",
     "graph g (x: f32[2,3,4,5]) -> (y) { a = Transpose(x) {perm=[0,2,3,1]}\n b = Tanh(a)\n"
     " y = Transpose(b) {perm=[0,3,1,2]} }",
     0, true},
    {"around a gate",
     "graph g (x: f32[2,3,4,5]) -> (y) { a = Transpose(x) {perm=[0,2,3,1]}\n b = Tanh(a)\n"
     " c = Mul(a, b)\n y = Transpose(c) {perm=[0,3,1,2]} }",
     0, true},
    {"around a sum of two, one of them a number",
     "graph g (x: f32[2,3,4,5], z: f32[2,3,4,5]) -> (y) { a = Transpose(x) {perm=[0,2,3,1]}\n"
     " b = Transpose(z) {perm=[0,2,3,1]}\n c = Tanh(a)\n d = Add(c, b)\n"
     " e = Max(d, k: f32[1] {0.5})\n y = Transpose(e) {perm=[0,3,1,2]} }",
     0, true},
    {"phases there and back around an activation",
     "graph g (x: f32[1,3,8,8]) -> (y) { s = i64[6] {1, 3, 4, 2, 4, 2}\n t = i64[4] {4, 3, 4, 4}\n"
     " u = i64[6] {2, 2, 1, 3, 4, 4}\n v = i64[4] {1, 3, 8, 8}\n a = Reshape(x, s)\n"
     " b = Transpose(a) {perm=[3,5,0,1,2,4]}\n c = Reshape(b, t)\n d = Tanh(c)\n"
     " e = Reshape(d, u)\n f = Transpose(e) {perm=[2,3,4,0,5,1]}\n y = Reshape(f, v) }",
     0, true},
    {"a pad and its crop",
     "graph g (x: f32[2,3,4,5]) -> (y) { p = i64[8] {0, 0, 1, 1, 0, 0, 2, 2}\n a = Pad(x, p)\n"
     " s = i64[2] {1, 1}\n t = i64[2] {5, 6}\n k = i64[2] {2, 3}\n b = Slice(a, s, t, k)\n"
     " y = Tanh(b) }",
     0, true},
    {"six nodes of a pixel shuffle and a transposition in three",
     "graph g (x: f32[1,12,4,4]) -> (y) { s = i64[6] {1, 3, 2, 2, 4, 4}\n t = i64[4] {1, 3, 8, 8}\n"
     " a = Reshape(x, s)\n b = Transpose(a) {perm=[0,1,4,2,5,3]}\n c = Reshape(b, t)\n"
     " d = Transpose(c) {perm=[0,2,3,1]}\n y = Tanh(d) }",
     3, true},
    {"behind a value that others read",
     "graph g (x: f32[2,3,4,5]) -> (y, z) { a = Transpose(x) {perm=[0,2,3,1]}\n b = Tanh(a)\n"
     " z = Sin(b)\n y = Transpose(b) {perm=[0,3,1,2]} }",
     2, false},
    {"only the one way back goes",
     "graph g (x: f32[2,3,4,5]) -> (y, z) { a = Transpose(x) {perm=[0,2,3,1]}\n z = Tanh(a)\n"
     " b = Transpose(a) {perm=[0,3,1,2]}\n y = Sin(b) }",
     1, true},
    {"an operator that is not element-wise",
     "graph g (x: f32[2,3,4,5]) -> (y) { a = Transpose(x) {perm=[0,2,3,1]}\n"
     " b = Softmax(a) {axis=3}\n y = Transpose(b) {perm=[0,3,1,2]} }",
     2, false},
    {"a pad is not pulled through",
     "graph g (x: f32[2,3,4,5]) -> (y) { s = i64[1] {1}\n t = i64[1] {4}\n k = i64[1] {2}\n"
     " a = Slice(x, s, t, k)\n b = Cos(a)\n p = i64[8] {0, 0, 1, 0, 0, 0, 0, 0}\n y = Pad(b, p) }",
     2, false},
    {"another transposition is left alone",
     "graph g (x: f32[2,3,4,5]) -> (y) { a = Transpose(x) {perm=[0,2,3,1]}\n b = Tanh(a)\n"
     " y = MatMul(b, w: f32[3,6] random 1) }",
     1, false},
    {"a vector along the last axis",
     "graph g (x: f32[2,3,4,5]) -> (y) { a = Transpose(x) {perm=[0,2,3,1]}\n"
     " b = Max(a, k: f32[3] random 2)\n y = Transpose(b) {perm=[0,3,1,2]} }",
     2, false},
    {"an output that is an input",
     "graph g (x: f32[2,3,4,5]) -> (y) { a = Transpose(x) {perm=[0,2,3,1]}\n"
     " y = Transpose(a) {perm=[0,3,1,2]} }",
     1, true},
};

static uint32_t moves_left(const po_graph *g) {
    static const char *const types[] = {"Transpose", "Reshape",      "Pad",          "Slice",
                                        "Gather",    "DepthToSpace", "SpaceToDepth", "Identity"};
    uint32_t n = 0;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        n += test_count(g, types[i]);
    return n;
}

static void moves_cancel(void **state) {
    (void)state;
    for (size_t k = 0; k < sizeof samples / sizeof *samples; k++) {
        po_ctx ctx;
        po_ctx_init(&ctx);
        po_graph *g = test_graph(&ctx, samples[k].text), *h = NULL;
        po_postopt_options options = po_postopt_defaults();
        po_postopt_counts counts;
        options.algebra = 0;
        if (po_postopt(&ctx, g, &options, &h, &counts) != PO_OK)
            fail_msg("%s: %s", samples[k].name, ctx.error.message);
        assert_int_equal(po_graph_check(&ctx, h), PO_OK);
        if (moves_left(h) != samples[k].moves)
            fail_msg("%s: %u moves left, not %u", samples[k].name, moves_left(h), samples[k].moves);
        if ((counts.fired[PO_LAW_SHORTEN_MOVES] + counts.fired[PO_LAW_PULL_MOVES] != 0) !=
            samples[k].fires)
            fail_msg("%s: %s", samples[k].name, samples[k].fires ? "did not fire" : "fired");
        if (!(test_difference(&ctx, g, h, 5) < 1e-12))
            fail_msg("%s: differs", samples[k].name);
        po_graph_free(g);
        po_graph_free(h);
    }
}

/* Random graphs of moves and element-wise nodes: the same function, no node more. */
static void random_graphs(void **state) {
    (void)state;
    uint32_t fewer = 0, graphs = 0;
    for (uint64_t seed = 1; seed <= 600; seed++) {
        po_ctx ctx;
        po_ctx_init(&ctx);
        po_model model = {.ir_version = 8, .opsets = &(po_opset){"", 17}, .n_opsets = 1};
        po_graph *g = po_graph_create(&ctx, &model, "g"), *h = NULL;
        uint64_t next = 0;
        const int64_t dims[4] = {2, 4, 6, 4};
        po_type type = po_type_tensor_i64(g->arena, PO_F32, 4, dims);
        po_value_id live[40];
        uint32_t n = 0;
        live[n++] = po_graph_add_input(g, "x", &type);
        live[n++] = po_graph_add_input(g, "z", &type);
        while (n < 14) {
            uint64_t draw = po_random_u64(seed, 3, next++);
            po_value_id v = live[draw % 3 ? n - 1 : draw / 3 % n], made = PO_NONE;
            const po_dim *d = g->values[v].type.dims;
            uint32_t rank = g->values[v].type.rank;
            int64_t now[PO_RT_MAX_RANK];
            const po_rt *rt = NULL;
            for (uint32_t i = 0; i < rank; i++)
                now[i] = d[i].value;
            switch (draw / 64 % 5) {
            case 0:
            case 1: { /* two axes change places */
                uint32_t perm[PO_RT_MAX_RANK];
                for (uint32_t i = 0; i < rank; i++)
                    perm[i] = i;
                uint32_t i = (uint32_t)(draw / 512 % rank), k = (uint32_t)(draw / 4096 % rank);
                perm[i] = k;
                perm[k] = i;
                rt = po_rt_transpose(g->arena, rank, now, perm);
                break;
            }
            case 2: /* flat, or four axes again */
                rt = rank == 4 ? po_rt_reshape(g->arena, 4, now, 2, (int64_t[]){8, 24})
                               : po_rt_reshape(g->arena, rank, now, 4, dims);
                break;
            case 3:
                made = po_add_op(g, PO_NONE, PO_OP_Tanh, 1, &v, &g->values[v].type);
                break;
            default: {
                po_value_id other = live[draw / 512 % n];
                if (po_type_equal(&g->values[other].type, &g->values[v].type)) {
                    po_value_id in[2] = {v, other};
                    made = po_add_op(g, PO_NONE, PO_OP_Max, 2, in, &g->values[v].type);
                }
            }
            }
            if (rt)
                made = po_rt_emit(g, PO_NONE, v, rt);
            if (made != PO_NONE && made != v)
                live[n++] = made;
        }
        po_graph_add_output(g, live[n - 1]);
        if (seed % 3 == 0)
            po_graph_add_output(g, live[n - 4]);
        po_graph_sweep(g);
        po_postopt_options options = po_postopt_defaults();
        options.algebra = 0;
        options.split_moves = false;
        if (po_infer_graph(&ctx, g, false) != PO_OK ||
            po_postopt(&ctx, g, &options, &h, NULL) != PO_OK || po_graph_check(&ctx, h) != PO_OK)
            fail_msg("seed %u: %s", (unsigned)seed, ctx.error.message);
        if (!(test_difference(&ctx, g, h, seed) < 1e-12) || h->n_live > g->n_live)
            fail_msg("seed %u: %u nodes became %u, difference %g", (unsigned)seed, g->n_live,
                     h->n_live, test_difference(&ctx, g, h, seed));
        fewer += h->n_live < g->n_live;
        graphs++;
        po_graph_free(g);
        po_graph_free(h);
    }
    printf("%u of %u graphs became smaller\n", fewer, graphs);
    assert_true(fewer > graphs / 4);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(chains_of_nodes),
        cmocka_unit_test(moves_cancel),
        cmocka_unit_test(random_graphs),
    };
    return cmocka_run_group_tests_name("rt_nodes", tests, NULL, NULL);
}
