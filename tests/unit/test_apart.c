/* Graphs that take each sample by itself, whatever their number: what is called so makes of four
 * samples what it makes of each alone, and what is true of few or of most numbers only is not. */
#include "ops/samples.h"
#include "parts.h"
#include "rewriting.h"
#include "unit.h"

#include <math.h>
#include <stdio.h>

typedef struct apart_case {
    const char *name;
    const char *body; /* x: f32[N,4,6], and what it says besides */
    const char *why;  /* NULL: apart */
} apart_case;

#define TABLE "t: f32[512,6] random 1"
#define COUNT " s = Shape(x)\n n = Gather(s, zero: i64[1] {0}) {axis=0}\n"

static const apart_case cases[] = {
    {"products, norms and a softmax of rows",
     " m = MatMul(x, w: f32[6,6] random 1)\n l = LayerNormalization(m, g: f32[6] random 2)\n"
     " e = Softmax(l) {axis=-1}\n y = Add(e, x)",
     NULL},
    {"a maximum of each sample", " y = ReduceMax(x) {axes=[1],keepdims=0}", NULL},
    {"the best of each row", " v, i = TopK(x, k: i64[1] {2}) {axis=2}\n y = Identity(v)", NULL},
    {"norms of the axes around that of the samples",
     " r = Reshape(x, s: i64[4] {1, -1, 4, 6})\n"
     " q = ReduceSumSquare(r) {axes=[0,2,3],keepdims=0}\n y = Reshape(q, u: i64[2] {-1, 1})",
     NULL},
    {"norms of rows where samples lie behind another axis",
     " t = Transpose(x) {perm=[1,0,2]}\n q = ReduceL2(t) {axes=[2],keepdims=0}\n"
     " y = Transpose(q) {perm=[1,0]}",
     NULL},
    {"the edges of each sample reflected",
     " y = Pad(x, p: i64[6] {0, 1, 2, 0, 0, 3}) {mode=\"reflect\"}", NULL},
    {"an edge repeated", " y = Pad(x, p: i64[6] {0, 0, 2, 0, 0, 1}) {mode=\"edge\"}", NULL},
    {"another sample at the edge of the batch",
     " y = Pad(x, p: i64[6] {1, 0, 0, 1, 0, 0}) {mode=\"edge\"}", "it mixes samples"},
    {"where the largest is", " y = ArgMax(x) {axis=1}", NULL},
    {"windows and a norm of maps",
     " r = Unsqueeze(x, a: i64[1] {3})\n"
     " p = MaxPool(r) {kernel_shape=[2,1]}\n"
     " y = InstanceNormalization(p, g: f32[4] random 1, b: f32[4] random 2)",
     NULL},
    {"a shape that counts them",
     COUNT " c = Concat(n, r: i64[2] {8, 3}) {axis=0}\n y = Reshape(x, c)", NULL},
    {"a shape that counts what they hold",
     COUNT " f = Mul(n, four: i64[1] {4})\n c = Concat(f, six: i64[1] {6}) {axis=0}\n"
           " r = Reshape(x, c)\n t = Tanh(r)\n y = Reshape(t, u: i64[3] {-1, 4, 6})",
     NULL},
    {"a length of the map",
     " s = Shape(x)\n n = Gather(s, two: i64[1] {2}) {axis=0}\n f = Cast(n) {to=1}\n y = Div(x, f)",
     NULL},
    {"a token for each",
     COUNT " c = Concat(n, o: i64[2] {1, 6}) {axis=0}\n"
           " k = Expand(q: f32[1,1,6] random 1, c)\n y = Concat(k, x) {axis=1}",
     NULL},
    {"a token for each, as PyTorch writes it",
     COUNT " h = Concat(n, o: i64[2] {1, 6}) {axis=0}\n d = ConstantOfShape(three: i64[1] {3})"
           " {value=i64[1] {1}}\n"
           " m = Mul(d, k: i64[] {-1})\n q = Equal(h, m)\n c = Where(q, d, h)\n"
           " e = Expand(t: f32[1,1,6] random 1, c)\n y = Concat(e, x) {axis=1}",
     NULL},
    {"lengths that are compared with what they are, but not how many samples there are",
     COUNT " h = Concat(n, o: i64[2] {1, 6}) {axis=0}\n"
           " q = Equal(h, m: i64[3] {-1, 1, 7})\n c = Where(q, d: i64[3] {1, 1, 1}, h)\n"
           " e = Expand(t: f32[1,1,1] random 1, c)\n y = Concat(e, x) {axis=1}",
     NULL},
    {"the number of samples compared with one that it may be",
     COUNT " h = Concat(n, o: i64[2] {1, 6}) {axis=0}\n"
           " q = Equal(h, m: i64[3] {7, -1, -1})\n c = Where(q, d: i64[3] {1, 1, 1}, h)\n"
           " e = Expand(t: f32[1,1,1] random 1, c)\n y = Concat(e, x) {axis=1}",
     "the number of samples"},
    {"as PyTorch expands: lengths of -1 stay as they are",
     COUNT " h = Concat(n, o: i64[2] {-1, -1}) {axis=0}\n z = Shape(h)\n"
           " k = ConstantOfShape(z) {value=i64[1] {1}}\n l = Mul(k, f: i64[] {-1})\n"
           " q = Equal(h, l)\n c = Where(q, k, h)\n"
           " e = Expand(t: f32[1,2,6] random 1, c)\n y = Concat(e, x) {axis=1}",
     NULL},
    {"zeros for each",
     COUNT " c = Concat(n, o: i64[2] {1, 6}) {axis=0}\n k = ConstantOfShape(c)\n"
           " y = Concat(k, x) {axis=1}",
     NULL},
    {"maps resized to a shape that counts them",
     COUNT " c = Concat(n, r: i64[2] {8, 9}) {axis=0}\n"
           " y = Resize(x, _, _, c) {mode=\"linear\"}",
     NULL},
    {"samples resized to twice as many",
     COUNT " f = Mul(n, two: i64[1] {2})\n c = Concat(f, r: i64[2] {8, 9}) {axis=0}\n"
           " y = Resize(x, _, _, c) {mode=\"nearest\"}",
     "no axis counts samples"},
    {"maps as large as there are samples",
     COUNT " c = Concat(n, n, six: i64[1] {6}) {axis=0}\n"
           " y = Resize(x, _, _, c) {mode=\"nearest\"}",
     "no axis counts samples"},
    {"sizes of which others hang on the number of samples",
     COUNT " c = Concat(n, r: i64[2] {8, 9}) {axis=0}\n"
           " y = Resize(x, _, _, c) {mode=\"nearest\",keep_aspect_ratio_policy=\"not_larger\"}",
     "the number of samples"},
    {"rows of a table", " i = ArgMax(x) {axis=2,keepdims=0}\n y = Gather(" TABLE ", i) {axis=0}",
     NULL},
    {"a recurrent layer",
     " t = Transpose(x) {perm=[1,0,2]}\n"
     " h, l = GRU(t, w: f32[1,6,6] random 1, r: f32[1,6,2] random 2) {hidden_size=2}\n"
     " q = Squeeze(h, a: i64[1] {1})\n y = Transpose(q) {perm=[1,0,2]}",
     NULL},
    {"an output that all share", " y = Relu(c: f32[3] random 1)\n z = Relu(x)", NULL},
    {"a sum over the batch", " r = ReduceSum(x, a: i64[1] {0}) {keepdims=1}\n y = Add(x, r)",
     "it mixes samples"},
    {"a maximum of all", " r = ReduceMax(x) {keepdims=1}\n y = Sub(x, r)", "it mixes samples"},
    {"the largest sample", " r = ReduceMax(x) {axes=[0],keepdims=1}\n y = Sub(x, r)",
     "it mixes samples"},
    {"a softmax over the batch", " y = Softmax(x) {axis=0}", "by itself"},
    {"the best sample", " y = ArgMax(x) {axis=0}", "by itself"},
    {"elements numbered through all samples", " p, y = MaxPool(x) {kernel_shape=[2]}", "by itself"},
    {"a range of all", " q, s, y = DynamicQuantizeLinear(x)", "by itself"},
    {"at most 512 samples", " y = Slice(x, a: i64[1] {0}, b: i64[1] {512}, c: i64[1] {0})",
     "it mixes samples"},
    {"all but from the thousandth on",
     " a = Slice(x, f: i64[1] {0}, g: i64[1] {1000}, h: i64[1] {0})\n"
     " b = Slice(x, i: i64[1] {1000}, j: i64[1] {100000}, k: i64[1] {0})\n"
     " y = Concat(a, b) {axis=0}",
     "it mixes samples"},
    {"seven samples are something else",
     COUNT " e = Equal(n, seven: i64[1] {7})\n f = Cast(e) {to=1}\n y = Add(x, f)",
     "the number of samples"},
    {"an odd number of samples",
     COUNT " e = Mod(n, two: i64[1] {2})\n f = Cast(e) {to=1}\n y = Add(x, f)",
     "the number of samples"},
    {"at least eight", COUNT " e = Min(n, eight: i64[1] {8})\n f = Cast(e) {to=1}\n y = Add(x, f)",
     "the number of samples"},
    {"a quotient of the number",
     COUNT " e = Div(n, two: i64[1] {1})\n c = Concat(e, r: i64[1] {24}) {axis=0}\n"
           " y = Reshape(x, c)",
     "the number of samples"},
    {"divided by their number", COUNT " f = Cast(n) {to=1}\n y = Div(x, f)",
     "the number of samples"},
    {"a cube of their number",
     COUNT " a = Mul(n, n)\n b = Mul(a, n)\n c = Concat(b, r: i64[1] {-1}) {axis=0}\n"
           " y = Reshape(x, c)",
     "the number of samples"},
    {"each at its place",
     " s = Shape(x)\n n = Gather(s, zero: i64[] {0}) {axis=0}\n"
     " i = Range(z: i64[] {0}, n, o: i64[] {1})\n g = Gather(" TABLE ", i) {axis=0}\n"
     " u = Unsqueeze(g, a: i64[1] {1})\n y = Add(x, u)",
     "the number of samples"},
    {"cut where their number says", COUNT " y = Slice(x, z: i64[1] {0}, n, a: i64[1] {1})",
     "the number of samples"},
    {"an axis that goes where one sample is",
     " t = Slice(x, a: i64[1] {0}, b: i64[1] {1}, c: i64[1] {1})\n y = Squeeze(t)",
     "the axis of one sample"},
    {"pairs of samples", " y = Reshape(x, s: i64[3] {-1, 8, 6})", "its shape is not known"},
    {"two of them", " y = Reshape(x, s: i64[2] {2, -1})", "no axis counts samples"},
    {"their number as an output", " y = Shape(x)\n z = Relu(x)", "tells the number"},
    {"drawn numbers", " y = RandomNormalLike(x)", "bodies, or draws"},
    {"an operator that nothing is known of", " y = Custom(x)", "by itself"},
    {"running sums over samples", " y = CumSum(x, a: i64[] {0})", "it mixes samples"},
    {"samples that are picked by samples",
     " i = ArgMax(x) {axis=2,keepdims=0}\n j = Slice(i, a: i64[1] {0}, b: i64[1] {1}, c: i64[1] "
     "{1})\n"
     " k = Squeeze(j, d: i64[1] {1})\n y = Gather(x, k) {axis=0}",
     "by itself"},
};

static po_graph *graph_of(po_ctx *ctx, po_arena *arena, const apart_case *c) {
    const char *outputs = strstr(c->body, " z = ") ? "y, z" : "y";
    return test_graph(ctx, po_arena_printf(arena,
                                           "pir 1 ir_version=8 opset=17\n"
                                           "graph g (x: f32[N,4,6]) -> (%s) {\n%s\n}",
                                           outputs, c->body));
}

static const char *fault(const apart_case *c, po_ctx *ctx, po_arena *arena) {
    int8_t *axis;
    po_graph *g = graph_of(ctx, arena, c);
    po_status status = po_samples_apart(ctx, arena, g, &axis);
    const char *text = NULL;
    if (c->why && status == PO_OK)
        text = "called apart";
    else if (c->why && (status != PO_UNSUPPORTED || !strstr(ctx->error.message, c->why)))
        text = po_arena_strdup(arena, ctx->error.message);
    else if (!c->why && status != PO_OK)
        text = po_arena_strdup(arena, ctx->error.message);
    else if (!c->why && !(test_samples_apart(ctx, arena, g, 1, axis) < 1e-12))
        text = "it is not";
    po_graph_free(g);
    return text;
}

static void cases_are_told_apart(void **state) {
    (void)state;
    int bad = 0;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        po_ctx ctx;
        po_ctx_init(&ctx);
        po_arena *arena = po_arena_create(&ctx);
        const char *why = fault(&cases[i], &ctx, arena);
        if (why)
            printf("%s: %s\n", cases[i].name, why);
        bad += why != NULL;
        po_arena_free(arena);
    }
    assert_int_equal(bad, 0);
}

/* The truth that the cases are held against sees samples that are mixed. */
static void truth_sees_mixing(void **state) {
    (void)state;
    static const apart_case mixed[] = {
        {"", " y = Softmax(x) {axis=0}", NULL},
        {"", " p, y = MaxPool(x) {kernel_shape=[2]}", NULL},
        {"", " y = CumSum(x, a: i64[] {0})", NULL},
        {"",
         " t = Slice(x, a: i64[1] {-1}, b: i64[1] {-9}, c: i64[1] {0}, d: i64[1] {-1})\n"
         " y = Relu(t)",
         NULL}};
    for (size_t i = 0; i < sizeof mixed / sizeof mixed[0]; i++) {
        po_ctx ctx;
        po_ctx_init(&ctx);
        po_arena *arena = po_arena_create(&ctx);
        po_graph *g = graph_of(&ctx, arena, &mixed[i]);
        assert_true(test_samples_apart(&ctx, arena, g, 1, (int8_t[]){0}) > 1e-3);
        po_graph_free(g);
        po_arena_free(arena);
    }
}

/* Of a graph that mixes samples somewhere the rest is followed: what mixes them, and what is made
 * of that, is told, in bodies too; shapes of it are of it. */
static void parts_are_told_apart(void **state) {
    (void)state;
    static const apart_case mixing = {
        "",
        " a = Relu(x)\n m = ReduceMax(a) {axes=[0],keepdims=1}\n b = Sub(a, m)\n c = Tanh(a)\n"
        " s = Shape(b)\n d = Reshape(c, s)\n e = Relu(w: f32[4,6] random 1)\n f = Add(c, e)\n"
        " i = If(q: bool[] {1}) {then_branch=graph t () -> (o) {\n o = Neg(b)\n},"
        "else_branch=graph u () -> (p) {\n p = Neg(c)\n}}\n y = Add(i, d)\n z = Neg(f)",
        NULL};
    static const struct {
        const char *value;
        int axis;
    } told[] = {{"x", 0},
                {"a", 0},
                {"m", PO_MIXED_SAMPLES},
                {"b", PO_MIXED_SAMPLES},
                {"c", 0},
                {"s", PO_MIXED_SAMPLES},
                {"d", PO_MIXED_SAMPLES},
                {"e", PO_NO_SAMPLES},
                {"f", 0},
                {"i", PO_MIXED_SAMPLES},
                {"y", PO_MIXED_SAMPLES},
                {"z", 0}};
    po_ctx ctx;
    po_ctx_init(&ctx);
    po_arena *arena = po_arena_create(&ctx);
    po_graph *g = graph_of(&ctx, arena, &mixing);
    int8_t *axis;
    const char *why;
    assert_int_equal(po_samples_apart_values(&ctx, arena, g, &axis), PO_UNSUPPORTED);
    po_ctx_clear(&ctx);
    assert_int_equal(po_samples_apart_parts(&ctx, arena, g, &axis, &why), PO_OK);
    assert_non_null(strstr(why, "ReduceMax 'm': it mixes samples"));
    for (size_t i = 0; i < sizeof told / sizeof told[0]; i++) {
        if (axis[test_value(g, told[i].value)] != told[i].axis)
            fail_msg("%s: %d", told[i].value, axis[test_value(g, told[i].value)]);
    }
    po_graph_free(g);
    /* Nothing is mixed: as for all of it. */
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int8_t *all;
        if (cases[i].why)
            continue;
        g = graph_of(&ctx, arena, &cases[i]);
        assert_int_equal(po_samples_apart_values(&ctx, arena, g, &all), PO_OK);
        assert_int_equal(po_samples_apart_parts(&ctx, arena, g, &axis, &why), PO_OK);
        assert_null(why);
        assert_memory_equal(all, axis, g->n_values);
        po_graph_free(g);
    }
    po_arena_free(arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(cases_are_told_apart),
                                       cmocka_unit_test(parts_are_told_apart),
                                       cmocka_unit_test(truth_sees_mixing)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
