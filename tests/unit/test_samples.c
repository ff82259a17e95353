/* Graphs that were made for two samples, opened: they compute at five what the open ones do; and
 * what holds for two alone is refused, with the node that says so. */
#include "ops/samples.h"
#include "rewriting.h"
#include "unit.h"

#include <stdio.h>

typedef struct sample {
    const char *name;
    const char *made; /* for two samples */
    const char *open; /* what it must compute */
    const char *why;  /* or why it cannot be opened */
} sample;

static const sample samples[] = {
    {"a convolution, its bias and a residual",
     "graph g (x: f32[2,4,6,6]) -> (y) {\n"
     " c = Conv(x, w: f32[4,4,3,3] random 1, b: f32[4] random 2) {pads=[1,1,1,1]}\n"
     " r = Relu(c)\n y = Add(r, x)\n}",
     "graph g (x: f32[N,4,6,6]) -> (y) {\n"
     " c = Conv(x, w: f32[4,4,3,3] random 1, b: f32[4] random 2) {pads=[1,1,1,1]}\n"
     " r = Relu(c)\n y = Add(r, x)\n}",
     NULL},
    {"tokens flattened for a product, heads apart and together",
     "graph g (x: f32[2,5,8]) -> (y) {\n"
     " f = Reshape(x, s: i64[2] {10, 8})\n m = Gemm(f, a: f32[8,8] random 1, b: f32[8] random 2)\n"
     " r = Reshape(m, t: i64[4] {2, 5, 2, 4})\n h = Transpose(r) {perm=[0,2,1,3]}\n"
     " q = Transpose(h) {perm=[0,1,3,2]}\n p = MatMul(h, q)\n e = Softmax(p) {axis=-1}\n"
     " o = MatMul(e, h)\n k = Transpose(o) {perm=[0,2,1,3]}\n y = Reshape(k, u: i64[3] {2, -1, "
     "8})\n"
     "}",
     "graph g (x: f32[N,5,8]) -> (y) {\n"
     " f = Reshape(x, s: i64[2] {-1, 8})\n m = Gemm(f, a: f32[8,8] random 1, b: f32[8] random 2)\n"
     " r = Reshape(m, t: i64[4] {-1, 5, 2, 4})\n h = Transpose(r) {perm=[0,2,1,3]}\n"
     " q = Transpose(h) {perm=[0,1,3,2]}\n p = MatMul(h, q)\n e = Softmax(p) {axis=-1}\n"
     " o = MatMul(e, h)\n k = Transpose(o) {perm=[0,2,1,3]}\n y = Reshape(k, u: i64[3] {-1, 5, "
     "8})\n"
     "}",
     NULL},
    {"samples inside of the map for a while",
     "graph g (x: f32[2,3,4]) -> (y) {\n"
     " t = Transpose(x) {perm=[1,0,2]}\n r = Reshape(t, s: i64[2] {3, 8})\n"
     " m = Mul(r, p: f32[3,1] random 1)\n b = Reshape(m, u: i64[3] {3, 2, 4})\n"
     " y = Transpose(b) {perm=[1,0,2]}\n}",
     "graph g (x: f32[N,3,4]) -> (y) {\n y = Mul(x, p: f32[3,1] random 1)\n}", NULL},
    {"blocks along the batch",
     "graph g (x: f32[2,3,4]) -> (y) {\n"
     " r = Reshape(x, s: i64[3] {4, 3, 2})\n e = Tanh(r)\n y = Reshape(e, u: i64[3] {2, 3, 4})\n}",
     "graph g (x: f32[N,3,4]) -> (y) {\n y = Tanh(x)\n}", NULL},
    {"an Expand that states the number",
     "graph g (x: f32[2,1,4]) -> (y) {\n y = Expand(x, s: i64[3] {2, 3, 4})\n}",
     "graph g (x: f32[N,1,4]) -> (y) {\n y = Expand(x, s: i64[3] {1, 3, 4})\n}", NULL},
    {"an input that is the same for all",
     "graph g (x: f32[2,4], w: f32[4,3]) -> (y) {\n y = MatMul(x, w)\n}",
     "graph g (x: f32[N,4], w: f32[4,3]) -> (y) {\n y = MatMul(x, w)\n}", NULL},
    {"a class token",
     "pir 1 ir_version=8 opset=17\n"
     "graph g (x: f32[2,3,2]) -> (y) {\n"
     " y = Concat(k: f32[2,1,2] {1, 2, 1, 2}, x) {axis=1}\n}",
     "pir 1 ir_version=8 opset=17\n"
     "graph g (x: f32[N,3,2]) -> (y) {\n"
     " s = Shape(x)\n b = Gather(s, i: i64[1] {0}) {axis=0}\n"
     " e = Concat(b, o: i64[2] {1, 1}) {axis=0}\n"
     " t = Gather(k: f32[2,1,2] {1, 2, 1, 2}, j: i64[1] {1}) {axis=0}\n"
     " c = Expand(t, e)\n y = Concat(c, x) {axis=1}\n}",
     NULL},
    {"two class tokens",
     "graph g (x: f32[2,3,2]) -> (y) {\n"
     " y = Concat(k: f32[2,1,2] {1, 2, 1, 3}, x) {axis=1}\n}",
     "graph g (x: f32[N,3,2]) -> (y) {\n y = Relu(x)\n}", "Concat 'y': it mixes samples"},
    {"a sum over the batch",
     "graph g (x: f32[2,4]) -> (y) {\n"
     " s = ReduceSum(x, a: i64[1] {0}) {keepdims=1}\n y = Add(x, s)\n}",
     "graph g (x: f32[N,4]) -> (y) {\n y = Relu(x)\n}", "ReduceSum 's': it mixes samples"},
    {"a factor of each sample",
     "graph g (x: f32[2,4]) -> (y) {\n y = Mul(x, p: f32[2,1] random 1)\n}",
     "graph g (x: f32[N,4]) -> (y) {\n y = Relu(x)\n}", "Mul 'y': it mixes samples"},
    {"samples changed about",
     "graph g (x: f32[2,4]) -> (y) {\n"
     " y = Slice(x, a: i64[1] {-1}, b: i64[1] {-3}, c: i64[1] {0}, d: i64[1] {-1})\n}",
     "graph g (x: f32[N,4]) -> (y) {\n y = Relu(x)\n}", "Slice 'y': it mixes samples"},
    {"two samples beside one another",
     "graph g (x: f32[2,4]) -> (y) {\n"
     " r = Reshape(x, s: i64[2] {1, 8})\n t = Tanh(r)\n y = Reshape(t, u: i64[2] {2, 4})\n}",
     "graph g (x: f32[N,4]) -> (y) {\n y = Tanh(x)\n}", NULL},
    {"one of them", "graph g (x: f32[2,4]) -> (y) {\n y = Gather(x, i: i64[1] {1}) {axis=0}\n}",
     "graph g (x: f32[N,4]) -> (y) {\n y = Relu(x)\n}", "it mixes samples"},
    {"all of them behind one another, twice",
     "graph g (x: f32[2,4]) -> (y) {\n"
     " c = Concat(x, x) {axis=0}\n y = Reshape(c, s: i64[2] {2, 8})\n}",
     "graph g (x: f32[N,4]) -> (y) {\n y = Relu(x)\n}", "Concat 'c': it mixes samples"},
    {"a Resize to sizes",
     "pir 1 ir_version=8 opset=17\n"
     "graph g (x: f32[2,1,4,4]) -> (y) {\n"
     " y = Resize(x, _, _, s: i64[4] {2, 1, 8, 8}) {mode=\"nearest\"}\n}",
     "graph g (x: f32[N,1,4,4]) -> (y) {\n y = Relu(x)\n}", "another number of samples"},
    {"a body that reads them",
     "pir 1 ir_version=8 opset=17\n"
     "graph g (x: f32[2,4], c: bool[]) -> (y, z) {\n"
     " y = If(c) {then_branch=graph t () -> (a) { a = ReduceMax(x) {keepdims=0} },"
     " else_branch=graph e () -> (b) { b = ReduceMin(x) {keepdims=0} }}\n"
     " z = Relu(x)\n}",
     "graph g (x: f32[N,4], c: bool[]) -> (y, z) {\n y = ReduceMax(x) {keepdims=0}\n z = "
     "Relu(x)\n}",
     "it has bodies"},
    {"a recurrent layer and its first state",
     "pir 1 ir_version=8 opset=17\n"
     "graph g (x: f32[2,3,4]) -> (y) {\n"
     " t = Transpose(x) {perm=[1,0,2]}\n"
     " h, l = GRU(t, w: f32[1,6,4] random 1, r: f32[1,6,2] random 2, _, _,"
     " m: f32[1,2,2] {1, 2, 1, 2}) {hidden_size=2}\n"
     " q = Squeeze(h, a: i64[1] {1})\n y = Transpose(q) {perm=[1,0,2]}\n}",
     "pir 1 ir_version=8 opset=17\n"
     "graph g (x: f32[N,3,4]) -> (y) {\n"
     " t = Transpose(x) {perm=[1,0,2]}\n s = Shape(x)\n b = Gather(s, i: i64[1] {0}) {axis=0}\n"
     " e = Concat(o: i64[1] {1}, b, p: i64[1] {1}) {axis=0}\n"
     " j = Gather(m: f32[1,2,2] {1, 2, 1, 2}, n: i64[1] {1}) {axis=1}\n k = Expand(j, e)\n"
     " h, l = GRU(t, w: f32[1,6,4] random 1, r: f32[1,6,2] random 2, _, _, k) {hidden_size=2}\n"
     " q = Squeeze(h, a: i64[1] {1})\n y = Transpose(q) {perm=[1,0,2]}\n}",
     NULL},
    {"a recurrent layer that begins otherwise for each",
     "pir 1 ir_version=8 opset=17\n"
     "graph g (x: f32[2,3,4]) -> (y) {\n"
     " t = Transpose(x) {perm=[1,0,2]}\n"
     " h, l = GRU(t, w: f32[1,6,4] random 1, r: f32[1,6,2] random 2, _, _,"
     " s: f32[1,2,2] {1, 2, 1, 3}) {hidden_size=2}\n"
     " y = Transpose(l) {perm=[1,0,2]}\n}",
     "graph g (x: f32[N,3,4]) -> (y) {\n y = Relu(x)\n}", "it begins with other states"},
    {"an output that counts them elsewhere",
     "graph g (x: f32[2,4]) -> (y) {\n y = Transpose(x) {perm=[1,0]}\n}",
     "graph g (x: f32[N,4]) -> (y) {\n y = Relu(x)\n}", "does not count samples"},
};

/* What is wrong, a text of the arena, or NULL. */
static const char *fault(const sample *s, po_ctx *ctx, po_arena *arena) {
    po_graph *made = test_graph(ctx, s->made), *open = test_graph(ctx, s->open);
    po_status status = po_samples_open(ctx, made, open, 2);
    const char *text = NULL;
    if (s->why) {
        if (status != PO_UNSUPPORTED || !strstr(ctx->error.message, s->why))
            text = status == PO_OK ? "opened" : ctx->error.message;
    } else if (status != PO_OK || po_graph_check(ctx, made) != PO_OK) {
        text = ctx->error.message;
    } else if (!(test_difference(ctx, made, open, 3) < 1e-6)) {
        text = "it computes something else";
    } else {
        text = test_recipe_fault(ctx, open, made);
    }
    text = text ? po_arena_strdup(arena, text) : NULL;
    po_graph_free(made);
    po_graph_free(open);
    return text;
}

static void graphs_are_opened_or_refused(void **state) {
    (void)state;
    int bad = 0;
    for (size_t i = 0; i < sizeof samples / sizeof samples[0]; i++) {
        po_ctx ctx;
        po_ctx_init(&ctx);
        po_arena *arena = po_arena_create(&ctx);
        const char *why = fault(&samples[i], &ctx, arena);
        if (why)
            printf("%s: %s\n", samples[i].name, why);
        bad += why != NULL;
        po_arena_free(arena);
    }
    assert_int_equal(bad, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(graphs_are_opened_or_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
