/* What is taken of a value taken of what it is made of, and products by what is repeated: where
 * they hold, how much less is computed then, and where they must not. */
#include "ops/along.h"
#include "postopt/postopt.h"
#include "rewriting.h"
#include "unit.h"

#include <math.h>
#include <stdio.h>

typedef struct sample {
    const char *name, *graph;
    uint32_t taken, shared; /* how often each law fires */
    const char *value;      /* the value read by this name in what comes out .. */
    const char *type;       /* .. has this type; NULL: not looked at */
} sample;

#define X "pir 1 ir_version=8 opset=17\ngraph g (x: f32[N,T,8]) -> (y) {\n"
#define LAYER                                                                                      \
    " m = MatMul(x, v: f32[8,8] random 1)\n k = Transpose(x) {perm=[0,2,1]}\n s = MatMul(m, k)\n"  \
    " p = Softmax(s) {axis=-1}\n o = MatMul(p, x)\n r = Add(o, x)\n"                               \
    " l = LayerNormalization(r, g: f32[8] random 2)\n"                                             \
    " f = MatMul(l, w: f32[8,32] random 3)\n e = Relu(f)\n"                                        \
    " h = MatMul(e, u: f32[32,8] random 4)\n q = Add(h, l)\n"

static const sample samples[] = {
    {"one token of attention, residuals and norms",
     X LAYER " y = Gather(q, i: i64[] {0}) {axis=1}\n}", 1, 0, "e", "f32[\"N\",1,32]"},
    {"the last two",
     X LAYER " y = Slice(q, a: i64[1] {-2}, b: i64[1] {9223372036854775807}, "
             "c: i64[1] {1})\n}",
     1, 0, NULL, NULL},
    {"the first by all but one",
     X LAYER " y = Slice(q, a: i64[1] {0}, b: i64[1] {-1}, "
             "c: i64[1] {1})\n}",
     0, 0, NULL, NULL},
    {"not where others are read too",
     X LAYER " a = Gather(q, i: i64[] {0}) {axis=1}\n b = ReduceMean(q) {axes=[1], keepdims=0}\n"
             " y = Add(a, b)\n}",
     0, 0, NULL, NULL},
    {"two tokens are two ranges",
     X LAYER " a = Gather(q, i: i64[] {0}) {axis=1}\n"
             " b = Gather(q, j: i64[] {1}) {axis=1}\n"
             " y = Add(a, b)\n}",
     0, 0, NULL, NULL},
    {"the same token twice is one",
     X LAYER " a = Gather(q, i: i64[] {0}) {axis=1}\n"
             " b = Slice(q, j: i64[1] {0}, c: i64[1] {1}, "
             "d: i64[1] {1})\n"
             " t = Squeeze(b, d) \n y = Add(a, t)\n}",
     2, 0, NULL, NULL},
    {"not through a softmax along the axis",
     X " p = Softmax(x) {axis=1}\n y = Gather(p, i: i64[] {0}) {axis=1}\n}", 0, 0, NULL, NULL},
    {"not through sums along the axis",
     X " p = CumSum(x, a: i64[] {1})\n y = Gather(p, i: i64[] {0}) {axis=1}\n}", 0, 0, NULL, NULL},
    {"not what moves alone could save",
     X " p = Transpose(x) {perm=[0,2,1]}\n y = Gather(p, i: i64[] {0}) {axis=2}\n}", 0, 0, NULL,
     NULL},
    {"channels of a convolution",
     "pir 1 ir_version=8 opset=17\ngraph g (x: f32[1,4,H,W]) -> (y) {\n"
     " c = Conv(x, w: f32[8,4,3,3] random 1, e: f32[8] random 2) {pads=[1,1,1,1]}\n r = Relu(c)\n"
     " y = Slice(r, a: i64[1] {2}, b: i64[1] {4}, d: i64[1] {1})\n}",
     1, 0, NULL, NULL},
    {"rows, but not what windows reach over",
     "pir 1 ir_version=8 opset=17\ngraph g (x: f32[1,4,H,W]) -> (y) {\n"
     " c = Conv(x, w: f32[8,4,3,3] random 1) {pads=[1,1,1,1]}\n r = Relu(c)\n"
     " y = Slice(r, a: i64[1] {0}, b: i64[1] {2}, d: i64[1] {2})\n}",
     1, 0, NULL, NULL},
    {"what a body captures is read whole",
     "pir 1 ir_version=8 opset=17\ngraph g (x: f32[N,T,8], c: bool[]) -> (y, z) {\n"
     " m = Tanh(x)\n y = Gather(m, i: i64[] {0}) {axis=1}\n"
     " z = If(c) {then_branch=graph t () -> (u) { u = Neg(m) },\n"
     "   else_branch=graph e () -> (v) { v = Relu(m) }}\n}",
     0, 0, NULL, NULL},
    {"the last of at most forty is not the last of all",
     X " s = Slice(x, a: i64[1] {0}, b: i64[1] {40}, c: i64[1] {1})\n t = Tanh(s)\n"
       " e = Slice(t, d: i64[1] {0}, b2: i64[1] {100}, c)\n r = Relu(e)\n"
       " y = Gather(r, i: i64[] {-1}) {axis=1}\n}",
     1, 0, NULL, "f32[\"N\",\"(min(40, T))\",8]"},
    {"rows picked by an index",
     "pir 1 ir_version=8 opset=17\ngraph g (x: f32[N,T,8], i: i64[N]) -> (y) {\n"
     " m = MatMul(x, v: f32[8,8] random 1)\n r = Add(m, x)\n"
     " l = LayerNormalization(r, g: f32[8] random 2)\n f = MatMul(l, w: f32[8,32] random 3)\n"
     " e = Flatten(f) {axis=2}\n y = Gather(e, i) {axis=0}\n}",
     1, 0, NULL, "f32[\"N\",1,32]"},
    {"tokens picked by an index, but no keys",
     "pir 1 ir_version=8 opset=17\ngraph g (x: f32[N,T,8], i: i64[K,2]) -> (y) {\n" LAYER
     " y = GatherND(q, i)\n}",
     1, 0, NULL, "f32[\"K\",1,32]"},
    {"not through what mixes tokens",
     "pir 1 ir_version=8 opset=17\ngraph g (x: f32[N,T,8], i: i64[K,2]) -> (y) {\n"
     " p = Softmax(x) {axis=1}\n y = GatherND(p, i)\n}",
     0, 0, NULL, NULL},
    {"heads that share keys and values",
     "pir 1 ir_version=8 opset=17\n"
     "graph g (q: f32[N,8,T,16], k: f32[N,2,S,16], v: f32[N,2,S,16], m: f32[N,1,T,S]) -> (y) {\n"
     " ku = Unsqueeze(k, ax: i64[1] {2})\n ke = Expand(ku, sh: i64[5] {1,1,4,1,1})\n"
     " ks = Shape(ke)\n s0 = Gather(ks, i0: i64[1] {0})\n s3 = Gather(ks, i3: i64[1] {3})\n"
     " kr = Concat(s0, eight: i64[1] {8}, s3, d: i64[1] {16}) {axis=0}\n kk = Reshape(ke, kr)\n"
     " kt = Transpose(kk) {perm=[0,1,3,2]}\n kc = Mul(kt, h: f32[] {0.25})\n a = MatMul(q, kc)\n"
     " am = Add(a, m)\n p = Softmax(am) {axis=-1}\n vu = Unsqueeze(v, ax)\n"
     " ve = Expand(vu, sh)\n vv = Reshape(ve, kr)\n y = MatMul(p, vv)\n}",
     0, 2, NULL, NULL},
    {"not where each head has a scale of its own",
     "pir 1 ir_version=8 opset=17\n"
     "graph g (q: f32[N,8,T,16], k: f32[N,2,5,16]) -> (y) {\n"
     " u = Unsqueeze(k, ax: i64[1] {2})\n e = Expand(u, sh: i64[5] {1,1,4,1,1})\n"
     " r = Reshape(e, rs: i64[4] {0, 8, 5, 16})\n t = Transpose(r) {perm=[0,1,3,2]}\n"
     " s = Mul(t, w: f32[8,1,1] random 1)\n y = MatMul(q, s)\n}",
     0, 0, NULL, NULL},
    {"nor where the set of heads is repeated as a whole",
     "pir 1 ir_version=8 opset=17\n"
     "graph g (q: f32[N,8,T,16], k: f32[N,2,16,5]) -> (y) {\n"
     " u = Unsqueeze(k, ax: i64[1] {1})\n e = Expand(u, sh: i64[5] {1,4,1,1,1})\n"
     " r = Reshape(e, rs: i64[4] {0, 8, 16, 5})\n y = MatMul(q, r)\n}",
     0, 0, NULL, NULL},
};

static po_graph *run(po_ctx *ctx, const po_graph *g, po_law_counts *counts) {
    po_postopt_options options = po_postopt_plain(0);
    po_graph *h = NULL;
    memset(counts, 0, sizeof *counts);
    assert_int_equal(po_postopt(ctx, g, &options, &h, counts), PO_OK);
    assert_int_equal(po_graph_check(ctx, h), PO_OK);
    return h;
}

static bool has_type(const po_graph *g, const char *type) {
    for (po_value_id v = 0; v < g->n_values; v++) {
        po_text text;
        if (!po_graph_producer(g, v))
            continue;
        po_text_init(&text, g->arena);
        po_type_print(&text, &g->values[v].type);
        if (strcmp(text.data, type) == 0)
            return true;
    }
    return false;
}

static void laws_fire_where_they_hold(void **state) {
    (void)state;
    int bad = 0;
    for (size_t i = 0; i < sizeof samples / sizeof *samples; i++) {
        const sample *s = &samples[i];
        po_ctx ctx;
        po_law_counts counts;
        po_ctx_init(&ctx);
        po_graph *g = test_graph(&ctx, s->graph), *h = run(&ctx, g, &counts);
        const uint32_t taken = counts.fired[PO_LAW_TAKE_LESS];
        const uint32_t shared = counts.fired[PO_LAW_SHARE_REPEATED];
        const double d = test_difference(&ctx, g, h, 5);
        if (taken != s->taken || shared != s->shared || !(d < 1e-6) ||
            (s->type && !has_type(h, s->type)) || (shared > 0 && test_count(h, "Expand") > 0)) {
            printf("%s: taken %u (want %u), shared %u (want %u), error %g, %u Expand\n", s->name,
                   taken, s->taken, shared, s->shared, d, test_count(h, "Expand"));
            bad++;
        }
        bad += test_tell(s->name, test_recipe_fault(&ctx, g, h));
        po_graph_free(h);
        po_graph_free(g);
    }
    assert_int_equal(bad, 0);
}

/* --- axes that nodes keep --- */

typedef struct axis_case {
    const char *node; /* y of x: f32[2,3,4], w: f32[4,5], b: f32[3,1] */
    uint32_t axis;
    const char *in; /* by input, '-': whole; NULL: not kept */
} axis_case;

static const axis_case axes[] = {
    {"MatMul(x, w)", 0, "0-"},
    {"MatMul(x, w)", 1, "1-"},
    {"MatMul(x, w)", 2, "-1"},
    {"Transpose(x) {perm=[2,0,1]}", 0, "2"},
    {"Transpose(x) {perm=[2,0,1]}", 2, "1"},
    {"Add(x, b)", 1, "10"},
    {"Add(x, b)", 2, "2-"},
    {"Add(x, b)", 0, "0-"},
    {"Softmax(x) {axis=2}", 1, "1"},
    {"Softmax(x) {axis=2}", 2, NULL},
    {"Reshape(x, s: i64[2] {6, 4})", 1, "2-"},
    {"Reshape(x, s: i64[2] {6, 4})", 0, NULL},
    {"Reshape(x, s: i64[4] {2, 3, 2, 2})", 1, "1-"},
    {"Reshape(x, s: i64[4] {2, 3, 2, 2})", 2, NULL},
    {"Reshape(x, s: i64[3] {2, 4, 3})", 1, NULL},
    {"ReduceMax(x) {axes=[1], keepdims=0}", 1, "2"},
    {"ReduceMax(x) {axes=[1], keepdims=1}", 2, "2"},
    {"ReduceMax(x) {axes=[1], keepdims=1}", 1, NULL},
    {"Concat(x, x) {axis=1}", 0, "00"},
    {"Concat(x, x) {axis=1}", 1, NULL},
    {"Pad(x, p: i64[6] {0, 1, 0, 0, 0, 0})", 1, NULL},
    {"Pad(x, p: i64[6] {0, 1, 0, 0, 0, 0})", 2, "2-"},
    {"MatMul(x, q: f32[2,4,3] random 1)", 1, "1-"},
    {"MatMul(x, q: f32[2,4,3] random 1)", 0, "00"},
    {"Mul(x, x)", 1, "11"},
};

static void axes_are_kept_or_not(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof axes / sizeof *axes; i++) {
        po_ctx ctx;
        int8_t in[8];
        po_ctx_init(&ctx);
        po_arena *arena = po_arena_create(&ctx);
        po_graph *g = test_graph(
            &ctx, po_arena_printf(arena,
                                  "pir 1 ir_version=8 opset=17\ngraph g (x: f32[2,3,4], w: "
                                  "f32[4,5], b: f32[3,1]) -> (y) {\n y = %s\n}",
                                  axes[i].node));
        const po_node *n = po_graph_producer(g, test_value(g, "y"));
        const po_status status = po_kept_along(&ctx, arena, g, n, axes[i].axis, in);
        bool right = (status == PO_OK) == (axes[i].in != NULL);
        for (uint32_t k = 0; right && axes[i].in && k < n->n_in; k++)
            right = in[k] == (axes[i].in[k] == '-' ? PO_WHOLE : axes[i].in[k] - '0');
        if (!right)
            printf("%s, axis %u\n", axes[i].node, axes[i].axis);
        assert_true(right);
        po_graph_free(g);
        po_arena_free(arena);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(laws_fire_where_they_hold),
                                       cmocka_unit_test(axes_are_kept_or_not)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
