/* po_prove says yes to other spellings of a function, and no to every planted difference. */
#include "ir/text.h"
#include "proofs.h"
#include "rewriting.h"
#include "unit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* --- one network, and what can be wrong with it --- */

static const char network[] =
    "pir 1 ir_version=8 opset=17\n"
    "graph g (x: f32[1,8,12,12], ids: i64[5]) -> (y, z, u) {\n"
    "  c1 = Conv(x, w1: f32[16,4,3,3] random 1, b1: f32[16] random 2)"
    " {pads=[1,1,1,1], strides=[1,1], dilations=[1,1], group=2}\n"
    "  n1 = BatchNormalization(c1, s1: f32[16] random 3, t1: f32[16] random 4, m1: f32[16] random "
    "5, v1: f32[16] random 6) {epsilon=0.00001}\n"
    "  r1 = Relu(n1)\n"
    "  p1 = MaxPool(r1) {kernel_shape=[3,3], strides=[2,2], pads=[1,1,1,1]}\n"
    "  p2 = AveragePool(p1) {kernel_shape=[2,2], strides=[1,1], pads=[1,1,0,0], "
    "count_include_pad=0}\n"
    "  c2 = ConvTranspose(p2, w2: f32[16,4,2,2] random 7) {strides=[2,2]}\n"
    "  h1 = HardSigmoid(c2) {alpha=0.16666667, beta=0.5}\n"
    "  h2 = Mul(c2, h1)\n"
    "  k1 = Clip(h2, lo: f32[] {-1.0}, hi: f32[] {6.0})\n"
    "  l1 = LeakyRelu(k1) {alpha=0.1}\n"
    "  i1 = Slice(l1, from: i64[1] {1}, to: i64[1] {9}, ax: i64[1] {2}, by: i64[1] {2})\n"
    "  i2 = Slice(l1, f2: i64[1] {2}, t2: i64[1] {10}, ax, by)\n"
    "  j1 = Concat(i1, i2) {axis=1}\n"
    "  j2 = Pad(j1, pads: i64[8] {0,0,1,0,0,0,0,1}, pv: f32[] {0.5})\n"
    "  e1 = Resize(j2, _, scales: f32[4] {1,1,2,2}) {mode=\"nearest\", "
    "coordinate_transformation_mode=\"asymmetric\", nearest_mode=\"floor\"}\n"
    "  y = Transpose(e1) {perm=[0,2,3,1]}\n"
    "  g1 = Gather(table: f32[20,6] random 8, ids) {axis=0}\n"
    "  ln = LayerNormalization(g1, s2: f32[6] random 9, t3: f32[6] random 10) {axis=-1, "
    "epsilon=0.001}\n"
    "  q1 = MatMul(ln, wq: f32[6,6] random 11)\n"
    "  q2 = Transpose(ln) {perm=[1,0]}\n"
    "  q3 = MatMul(q1, q2)\n"
    "  q4 = Mul(q3, scale: f32[] {0.4082483})\n"
    "  q5 = Softmax(q4) {axis=1}\n"
    "  q6 = MatMul(q5, ln)\n"
    "  e2 = Erf(q6)\n"
    "  e3 = Pow(e2, three: f32[] {3.0})\n"
    "  e4 = Exp(e3)\n"
    "  lt = Less(e4, q6)\n"
    "  w3 = Where(lt, e4, e2)\n"
    "  z = Gemm(w3, wg: f32[7,6] random 12, bg: f32[7] random 13) {transB=1, alpha=0.5}\n"
    "  am = ArgMax(z) {axis=1}\n"
    "  rm = ReduceMax(z) {axes=[0], keepdims=0}\n"
    "  t4, t5 = TopK(rm, two: i64[1] {2}) {axis=0}\n"
    "  amf = Cast(am) {to=1}\n"
    "  rs = ReduceMean(amf) {axes=[0]}\n"
    "  u = Add(t4, rs)\n"
    "}\n";

/* What is put in the place of what. */
static const char *const sabotages[][2] = {
    {"random 1,", "random 101,"}, /* weights and biases */
    {"b1: f32[16] random 2", "b1: f32[16] random 22"},
    {", b1: f32[16] random 2)", ")"},
    {"w1: f32[16,4,3,3] random 1", "w1: f32[16,4,3,3] {0.5}"},
    {"pads=[1,1,1,1], strides=[1,1], dil", "pads=[0,1,2,1], strides=[1,1], dil"},
    {"pads=[1,1,1,1], strides=[1,1], dil", "pads=[1,0,1,2], strides=[1,1], dil"},
    {"w1: f32[16,4,3,3] random 1, b1: f32[16] random 2) {pads=[1,1,1,1], strides=[1,1], "
     "dilations=[1,1]",
     "w1: f32[16,4,3,3] random 1, b1: f32[16] random 2) {pads=[2,2,2,2], strides=[1,1], "
     "dilations=[2,2]"},
    {"epsilon=0.00001", "epsilon=0.0000101"},
    {"m1: f32[16] random 5", "m1: f32[16] random 6"},
    {"v1: f32[16] random 6", "v1: f32[16] random 5"},
    {"r1 = Relu(n1)", "r1 = Identity(n1)"},
    {"r1 = Relu(n1)", "r1 = Abs(n1)"},
    {"r1 = Relu(n1)", "r1 = Sigmoid(n1)"},
    {"r1 = Relu(n1)", "r1 = LeakyRelu(n1) {alpha=0.000001}"},
    {"kernel_shape=[3,3], strides=[2,2], pads=[1,1,1,1]",
     "kernel_shape=[2,3], strides=[2,2], pads=[0,1,1,1]"},
    {"kernel_shape=[3,3], strides=[2,2], pads=[1,1,1,1]",
     "kernel_shape=[3,3], strides=[2,2], pads=[0,1,1,1]"},
    {"p1 = MaxPool(r1)", "p1 = AveragePool(r1)"},
    {"count_include_pad=0", "count_include_pad=1"},
    {"pads=[1,1,0,0]", "pads=[0,0,1,1]"},
    {"w2: f32[16,4,2,2] random 7", "w2: f32[16,4,2,2] random 77"},
    {"beta=0.5", "beta=0.50000006"},
    {"alpha=0.16666667", "alpha=0.16666669"},
    {"alpha=0.16666667", "alpha=0.2"},
    {"h2 = Mul(c2, h1)", "h2 = Add(c2, h1)"},
    {"lo: f32[] {-1.0}", "lo: f32[] {-1.0000001}"},
    {"hi: f32[] {6.0}", "hi: f32[] {6.0000005}"},
    {"hi: f32[] {6.0}", "hi: f32[] {7.0}"},
    {"alpha=0.1}", "alpha=0.2}"},
    {"from: i64[1] {1}, to: i64[1] {9}", "from: i64[1] {0}, to: i64[1] {8}"},
    {"f2: i64[1] {2}, t2: i64[1] {10}, ax", "f2: i64[1] {3}, t2: i64[1] {11}, ax"},
    {"Concat(i1, i2)", "Concat(i2, i1)"},
    {"{0,0,1,0,0,0,0,1}", "{0,0,0,0,0,0,1,1}"},
    {"pv: f32[] {0.5}", "pv: f32[] {0.0}"},
    {"mode=\"nearest\", coordinate", "mode=\"linear\", coordinate"},
    {"nearest_mode=\"floor\"", "nearest_mode=\"ceil\""},
    {"y = Transpose(e1) {perm=[0,2,3,1]}", "y = Transpose(e1) {perm=[0,3,2,1]}"},
    {"Gather(table: f32[20,6] random 8, ids)", "Gather(table: f32[20,6] random 80, ids)"},
    {"epsilon=0.001", "epsilon=0.0010001"},
    {"t3: f32[6] random 10", "t3: f32[6] random 100"},
    {"q1 = MatMul(ln, wq: f32[6,6] random 11)", "q1 = Gemm(ln, wq: f32[6,6] random 11) {transB=1}"},
    {"q3 = MatMul(q1, q2)", "q0 = Transpose(q1) {perm=[1,0]}\n  q3 = MatMul(ln, q0)"},
    {"{0.4082483}", "{0.40824834}"},
    {"q5 = Softmax(q4) {axis=1}", "q5 = Softmax(q4) {axis=0}"},
    {"q5 = Softmax(q4) {axis=1}", "q5 = LogSoftmax(q4) {axis=1}"},
    {"e2 = Erf(q6)", "e2 = Tanh(q6)"},
    {"three: f32[] {3.0}", "three: f32[] {2.0}"},
    {"lt = Less(e4, q6)", "lt = LessOrEqual(e4, q6)"},
    {"lt = Less(e4, q6)", "lt = Less(q6, e4)"},
    {"w3 = Where(lt, e4, e2)", "w3 = Where(lt, e2, e4)"},
    {"alpha=0.5}", "alpha=0.25}"},
    {", bg: f32[7] random 13)", ")"},
    {"am = ArgMax(z) {axis=1}", "am = ArgMin(z) {axis=1}"},
    {"ReduceMax(z)", "ReduceMin(z)"},
    {"axis=0}\n  amf", "axis=0, largest=0}\n  amf"},
    {"u = Add(t4, rs)", "u = Sub(t4, rs)"},
};

static void test_the_network_is_itself(void **state) {
    (void)state;
    po_ctx ctx;
    po_ctx_init(&ctx);
    po_proof_report r = test_prove(&ctx, network, network, NULL);
    if (!r.proved)
        fail_msg("%s", r.why);
    assert_true(r.log2_bound < -30 && r.trials == 2 && r.elements > 0 && r.degree > 1);
}

static void test_planted_differences_are_seen(void **state) {
    (void)state;
    int missed = 0;
    for (size_t i = 0; i < sizeof sabotages / sizeof *sabotages; i++) {
        po_ctx ctx;
        po_ctx_init(&ctx);
        char *b = test_replaced(network, sabotages[i][0], sabotages[i][1]);
        if (!b)
            fail_msg("'%s' is not in the network", sabotages[i][0]);
        po_proof_report r = test_prove(&ctx, network, b, NULL);
        if (r.proved || !r.differ) {
            printf("%s -> %s: %s\n", sabotages[i][0], sabotages[i][1], r.proved ? "proved" : r.why);
            missed++;
        }
        free(b);
    }
    printf("%zu planted differences\n", sizeof sabotages / sizeof *sabotages);
    assert_int_equal(missed, 0);
}

/* One bit of one weight, at either end of the tensor. */
static void test_one_bit_is_seen(void **state) {
    (void)state;
    po_ctx ctx;
    po_ctx_init(&ctx);
    po_graph *a = test_graph(&ctx, network), *b = test_graph(&ctx, network);
    for (po_value_id v = 0; v < b->n_values; v++) {
        const po_tensor *t = b->values[v].constant;
        if (!t || t->dtype != PO_F32 || t->count < 2)
            continue;
        uint32_t *bits = (uint32_t *)(uintptr_t)t->data;
        for (int end = 0; end < 2; end++) {
            uint32_t *at = &bits[end ? t->count - 1 : 0];
            po_proof_report r;
            *at ^= 1;
            assert_int_equal(po_prove(&ctx, a, b, NULL, &(po_proof_options){.seed = 9}, &r), PO_OK);
            /* The scales of Resize are rounded to the shape; a padded window hides none. */
            if (r.proved && strcmp(b->values[v].name, "scales") != 0)
                fail_msg("a bit of '%s' was not missed", b->values[v].name);
            *at ^= 1;
        }
    }
    po_graph_free(a);
    po_graph_free(b);
}

/* --- spellings --- */

typedef struct spelling {
    const char *a, *b; /* nodes that make y of x: f32[2,6,4,4] */
    bool proved;
} spelling;

static const spelling spellings[] = {
    {"y = Sigmoid(x)", "n = Neg(x)\n e = Exp(n)\n s = Add(e, o: f32[] {1})\n y = Div(o, s)", true},
    {"s = Sigmoid(x)\n y = Mul(x, s)",
     "n = Neg(x)\n e = Exp(n)\n s = Add(e, o: f32[] {1})\n y = Div(x, s)", true},
    {"y = HardSwish(x)",
     "a = Add(x, t: f32[] {3})\n c = Clip(a, z: f32[] {0}, s: f32[] {6})\n m = Mul(x, c)\n"
     " y = Div(m, s)",
     true},
    {"y = HardSwish(x)", "h = HardSigmoid(x) {alpha=0.16666667, beta=0.5}\n y = Mul(h, x)", true},
    {"y = HardSwish(x)", "h = HardSigmoid(x) {alpha=0.2, beta=0.5}\n y = Mul(h, x)", false},
    {"m = Max(x, z: f32[] {0})\n y = Min(m, s: f32[] {6})",
     "y = Clip(x, z: f32[] {0}, s: f32[] {6})", true},
    {"r = Relu(x)\n s = Sigmoid(x)\n a = Add(r, s)\n b = Relu(a)\n y = Add(b, x)",
     "r = Relu(x)\n s = Sigmoid(x)\n a = Add(r, s)\n y = Add(a, x)", true},
    {"r = Relu(x)\n s = Sigmoid(x)\n a = Sub(r, s)\n y = Relu(a)",
     "r = Relu(x)\n s = Sigmoid(x)\n y = Sub(r, s)", false},
    {"r = Relu(x)\n a = Add(r, x)\n y = Relu(a)", "r = Relu(x)\n y = Add(r, x)", false},
    {"r = Clip(x, k: f32[] {-0.5})\n y = Relu(r)", "y = Clip(x, k: f32[] {-0.5})", false},
    {"m = Min(x, s: f32[] {6})\n y = Relu(m)", "y = Clip(x, z: f32[] {0}, s: f32[] {6})", true},
    {"a = Mul(x, k: f32[] {0.01})\n y = Max(a, x)", "y = LeakyRelu(x) {alpha=0.01}", true},
    {"y = PRelu(x, s: f32[6,1,1] random 3)",
     "r = Relu(x)\n q = Sub(o: f32[] {1}, s: f32[6,1,1] random 3)\n p = Mul(r, q)\n m = Mul(x, s)\n"
     " y = Add(m, p)",
     true},
    {"d = Div(x, r: f32[] {1.4142135})\n e = Erf(d)\n p = Add(e, o: f32[] {1})\n m = Mul(x, p)\n"
     " y = Mul(m, h: f32[] {0.5})",
     "d = Mul(x, r: f32[] {0.70710678})\n e = Erf(d)\n p = Add(o: f32[] {1}, e)\n"
     " h = Mul(x, k: f32[] {0.5})\n y = Mul(h, p)",
     true},
    {"e = Exp(x)\n s = ReduceSum(e, a: i64[1] {3})\n y = Div(e, s)", "y = Softmax(x) {axis=3}",
     true},
    {"m = ReduceMax(x) {axes=[3]}\n d = Sub(x, m)\n e = Exp(d)\n s = ReduceSum(e, a: i64[1] {-1})\n"
     " y = Div(e, s)",
     "y = Softmax(x) {axis=-1}", true},
    {"y = Softmax(x) {axis=2}", "y = Softmax(x) {axis=3}", false},
    /* Raised to 70 below the row's maximum, in what only sums see. */
    {"s = Softmax(x) {axis=3}\n y = MatMul(s, w: f32[4,5] random 1)",
     "m = ReduceMax(x) {axes=[3]}\n f = Sub(m, c: f32[] {70})\n r = Max(x, f)\n"
     " s = Softmax(r) {axis=3}\n y = MatMul(s, w: f32[4,5] random 1)",
     true},
    {"s = Softmax(x) {axis=3}\n y = MatMul(s, w: f32[4,5] random 1)",
     "m = ReduceMax(x) {axes=[3]}\n f = Sub(m, c: f32[] {60})\n r = Max(x, f)\n"
     " s = Softmax(r) {axis=3}\n y = MatMul(s, w: f32[4,5] random 1)",
     false},
    {"s = Softmax(x) {axis=3}\n y = MatMul(s, w: f32[4,5] random 1)",
     "m = ReduceMax(x) {axes=[2]}\n f = Sub(m, c: f32[] {70})\n r = Max(x, f)\n"
     " s = Softmax(r) {axis=3}\n y = MatMul(s, w: f32[4,5] random 1)",
     false},
    {"s = Softmax(x) {axis=3}\n y = MatMul(s, w: f32[4,5] random 1)",
     "m = ReduceMax(x) {axes=[3]}\n f = Add(m, c: f32[] {70})\n r = Max(x, f)\n"
     " s = Softmax(r) {axis=3}\n y = MatMul(s, w: f32[4,5] random 1)",
     false},
    {"s = Softmax(x) {axis=3}\n y = Log(s)",
     "m = ReduceMax(x) {axes=[3]}\n f = Sub(m, c: f32[] {70})\n r = Max(x, f)\n"
     " s = Softmax(r) {axis=3}\n y = Log(s)",
     false},
    {"s = LogSoftmax(x) {axis=3}\n y = MatMul(s, w: f32[4,5] random 1)",
     "m = ReduceMax(x) {axes=[3]}\n f = Sub(m, c: f32[] {70})\n r = Max(x, f)\n"
     " s = LogSoftmax(r) {axis=3}\n y = MatMul(s, w: f32[4,5] random 1)",
     false},
    {"m = ReduceMean(x) {axes=[3]}\n d = Sub(x, m)\n p = Pow(d, t: f32[] {2})\n"
     " v = ReduceMean(p) {axes=[3]}\n e = Add(v, k: f32[] {0.00001})\n q = Sqrt(e)\n"
     " f = Div(d, q)\n s = Mul(f, g: f32[4] random 1)\n y = Add(s, h: f32[4] random 2)",
     "y = LayerNormalization(x, g: f32[4] random 1, h: f32[4] random 2) {axis=3}", true},
    /* Means and inverse deviations are outputs as well. */
    {"l, m, v = LayerNormalization(x, g: f32[4] random 1) {axis=3}\n t = Mul(m, v)\n y = Add(l, t)",
     "m = ReduceMean(x) {axes=[3]}\n d = Sub(x, m)\n p = Pow(d, t: f32[] {2})\n"
     " v = ReduceMean(p) {axes=[3]}\n e = Add(v, k: f32[] {0.00001})\n q = Sqrt(e)\n"
     " f = Div(d, q)\n s = Mul(f, g: f32[4] random 1)\n r = Div(m, q)\n y = Add(s, r)",
     true},
    {"l, m, v = LayerNormalization(x, g: f32[4] random 1) {axis=3}\n y = Add(l, v)",
     "l, m, v = LayerNormalization(x, g: f32[4] random 1) {axis=3}\n y = Add(l, m)", false},
    {"l, m, v = LayerNormalization(x, g: f32[4] random 1) {axis=3}\n y = Mul(l, v)",
     "l, m, v = LayerNormalization(x, g: f32[4] random 1) {axis=3, epsilon=0.001}\n"
     " y = Mul(l, v)",
     false},
    {"m = ReduceMean(x) {axes=[3]}\n d = Sub(x, m)\n p = Mul(d, d)\n v = ReduceMean(p) {axes=[3]}\n"
     " e = Add(v, k: f32[] {0.00001})\n q = Pow(e, h: f32[] {-0.5})\n y = Mul(d, q)",
     "m = ReduceMean(x) {axes=[3]}\n d = Sub(x, m)\n p = Pow(d, t: f32[] {2})\n"
     " v = ReduceMean(p) {axes=[3]}\n e = Add(v, k: f32[] {0.00001})\n q = Sqrt(e)\n y = Div(d, q)",
     true},
    {"y = Pow(x, t: f32[] {4})", "a = Mul(x, x)\n y = Mul(a, a)", true},
    {"y = Tanh(x)", "a = Add(x, x)\n s = Sigmoid(a)\n t = Add(s, s)\n y = Sub(t, o: f32[] {1})",
     true},
    {"y = Relu(x)", "a = Abs(x)\n b = Add(a, x)\n y = Mul(b, h: f32[] {0.5})", true},
    {"y = Max(x, k: f32[6,1,1] random 1)",
     "n = Neg(x)\n l = Neg(k: f32[6,1,1] random 1)\n m = Min(l, n)\n y = Neg(m)", true},
    {"s = Shape(x)\n y = Reshape(x, s)", "y = Identity(x)", true},
    {"a, b = Split(x, n: i64[2] {2,4}) {axis=1}\n y = Concat(a, b) {axis=1}", "y = Identity(x)",
     true},
    {"w = Identity(x)\n y = DepthToSpace(w) {blocksize=1}", "y = Identity(x)", true},
    {"y = Conv(x, w: f32[6,6,1,1] random 1)",
     "t = Transpose(x) {perm=[0,2,3,1]}\n r = Reshape(w: f32[6,6,1,1] random 1, q: i64[2] {6,6})\n"
     " s = Transpose(r) {perm=[1,0]}\n m = MatMul(t, s)\n y = Transpose(m) {perm=[0,3,1,2]}",
     true},
    {"c = Greater(x, k: f32[] {0.25})\n y = Where(c, x, k)",
     "c = LessOrEqual(x, k: f32[] {0.25})\n y = Where(c, k, x)", true},
    {"c = Less(x, k: f32[] {0.25})\n n = Not(c)\n y = Where(n, x, k)",
     "c = GreaterOrEqual(x, k: f32[] {0.25})\n y = Where(c, x, k)", true},
    /* true of numbers, but not of what is proved: never "proved", and no error either */
    {"a = Mul(x, t: f32[] {3})\n y = Relu(a)", "r = Relu(x)\n y = Mul(r, t: f32[] {3})", false},
    {"e = Exp(x)\n y = Log(e)", "y = Identity(x)", false},
};

/* Pairs turned by one node, and by hand with one mistake each. */
static void test_rotary(void **state) {
    (void)state;
    static const char *const node = "y = RotaryEmbedding(x, c, s)";
    static const char *const by_hand =
        "p, q = Split(x, n: i64[2] {2,2}) {axis=3}\n d = Unsqueeze(c, o: i64[1] {1})\n"
        " t = Unsqueeze(s, o)\n a = Mul(d, p)\n b = Mul(t, q)\n e = Mul(t, p)\n f = Mul(d, q)\n"
        " g = Sub(a, b)\n h = Add(e, f)\n y = Concat(g, h) {axis=3}";
    static const struct {
        const char *what, *with;
        bool proved;
    } samples[] = {
        {"", "", true},
        {"Sub(a, b)", "Add(a, b)", false},
        {"Add(e, f)", "Sub(f, e)", false},
        {"a = Mul(d, p)", "a = Mul(t, p)", false},
        {"Split(x, n: i64[2] {2,2})", "Split(x, n: i64[2] {2,2})", true},
        {"p, q = Split", "q, p = Split", false},
        {"Concat(g, h)", "Concat(h, g)", false},
    };
    static const char *const form = "pir 1 ir_version=11 opset=23\n"
                                    "graph g (x: f32[2,3,5,4], c: f32[2,5,2], s: f32[2,5,2]) -> "
                                    "(y) {\n %s\n}\n";
    for (size_t i = 0; i < sizeof samples / sizeof *samples; i++) {
        char hand[1024], x[2048], y[2048];
        const char *at = strstr(by_hand, samples[i].what);
        assert_non_null(at);
        snprintf(hand, sizeof hand, "%.*s%s%s", (int)(at - by_hand), by_hand, samples[i].with,
                 at + strlen(samples[i].what));
        snprintf(x, sizeof x, form, node);
        snprintf(y, sizeof y, form, hand);
        po_ctx ctx;
        po_ctx_init(&ctx);
        po_proof_report r = test_prove(&ctx, x, y, NULL);
        if (!!r.proved != samples[i].proved)
            fail_msg("%s: %s", samples[i].with, r.why);
        snprintf(x, sizeof x, form, "y = RotaryEmbedding(x, c, s) {interleaved=1}");
        assert_false(test_prove(&ctx, x, y, NULL).proved);
    }
}

/* What differs for sure, and what may be the same by a law or a rounded number. */
static void test_certain_differences(void **state) {
    (void)state;
    static const struct {
        const char *a, *b;
        po_differ differ;
    } pairs[] = {
        {"r = Relu(x)\n y = Add(r, x)", "r = Relu(x)\n y = Sub(r, x)", PO_DIFFER_CERTAIN},
        {"y = Mul(x, k: f32[] {0.3})", "m = Mul(x, k: f32[] {0.3})\n y = Add(m, x)",
         PO_DIFFER_CERTAIN},
        {"y = Mul(x, x)", "a = Mul(x, x)\n y = Mul(a, x)", PO_DIFFER_CERTAIN},
        {"y = Conv(x, w: f32[6,6,1,1] random 1)",
         "s = Slice(x, f: i64[1] {0}, t: i64[1] {5}, ax: i64[1] {1})\n"
         " u = Slice(x, f, v: i64[1] {1}, ax)\n"
         " z = Concat(s, u) {axis=1}\n y = Conv(z, w: f32[6,6,1,1] random 1)",
         PO_DIFFER_CERTAIN},
        /* Before a function: float64 shows it, however small it is. */
        {"m = Mul(x, k: f32[] {0.3})\n y = Relu(m)",
         "m = Mul(x, k: f32[] {0.3})\n n = Mul(x, t: f32[] {0.000001})\n a = Add(m, n)\n"
         " y = Relu(a)",
         PO_DIFFER_CERTAIN},
        {"y = Softmax(x) {axis=3}", "m = Mul(x, k: f32[] {1.00001})\n y = Softmax(m) {axis=3}",
         PO_DIFFER_CERTAIN},
        {"y = Mul(x, k: f32[] {0.3})", "y = Mul(x, k: f32[] {0.30000004})", PO_DIFFER_UNEXPLAINED},
        {"y = Div(x, k: f32[] {0.5875})", "y = Mul(x, k: f32[] {1.7021277})",
         PO_DIFFER_UNEXPLAINED},
        {"a = Mul(x, t: f32[] {3})\n y = Relu(a)", "r = Relu(x)\n y = Mul(r, t: f32[] {3})",
         PO_DIFFER_UNEXPLAINED},
        {"e = Exp(x)\n l = Log(e)\n y = Add(e, l)", "e = Exp(x)\n y = Add(e, x)",
         PO_DIFFER_UNEXPLAINED},
        /* Relu(x)^2 = x Relu(x) */
        {"r = Relu(x)\n s = Mul(r, r)\n y = Add(r, s)",
         "r = Relu(x)\n s = Mul(r, x)\n y = Add(r, s)", PO_DIFFER_UNEXPLAINED},
        {"y = Relu(x)", "y = Relu(x)", PO_DIFFER_NOT},
    };
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        po_ctx ctx;
        po_ctx_init(&ctx);
        po_proof_report r = test_prove_nodes(&ctx, pairs[i].a, pairs[i].b);
        if (r.differ != (int32_t)pairs[i].differ)
            fail_msg("%s: %d: %s", pairs[i].b, r.differ, r.why);
    }
}

/* What the proof does not look into is named where it stands in one model only. */
static void test_opaque_is_named(void **state) {
    (void)state;
    po_ctx ctx;
    po_ctx_init(&ctx);
    const char *a = "i = ArgMax(x) {axis=3}\n y = Cast(i) {to=1}",
               *b = "m = ReduceMax(x) {axes=[3]}\n y = Mul(m, z: f32[] {0})",
               *c = "i = ArgMax(x) {axis=3, select_last_index=1}\n y = Cast(i) {to=1}";
    po_proof_report r = test_prove_nodes(&ctx, a, b);
    assert_true(!r.proved && strstr(r.why, "ArgMax"));
    r = test_prove_nodes(&ctx, b, a);
    assert_true(!r.proved && strstr(r.why, "ArgMax"));
    r = test_prove_nodes(&ctx, a, c);
    assert_true(!r.proved && strstr(r.why, "differs modulo p"));
    assert_true(test_prove_nodes(&ctx, a, a).proved);
}

static void test_spellings(void **state) {
    (void)state;
    int wrong = 0;
    for (size_t i = 0; i < sizeof spellings / sizeof *spellings; i++) {
        const spelling *s = &spellings[i];
        po_ctx ctx;
        po_ctx_init(&ctx);
        po_proof_report r = test_prove_nodes(&ctx, s->a, s->b);
        if (!!r.proved != s->proved) {
            printf("%s\n  against\n%s\n  %s\n", s->a, s->b, r.proved ? "proved" : r.why);
            wrong++;
        }
    }
    assert_int_equal(wrong, 0);
}

/* --- open dims, what cannot be evaluated, budgets --- */

/* A window that is longer than its map is put once; padding behind the last window is nothing. What
 * moves the windows is something else. */
static void test_windows_longer_than_maps(void **state) {
    static const char *const ops[] = {"MaxPool", "AveragePool"};
    static const struct {
        const char *pads;
        bool same;
    } others[] = {{"0,0,1,0", true}, {"0,0,1,1", true}, {"1,0,1,0", false}, {"1,0,0,0", false}};
    (void)state;
    for (size_t k = 0; k < 2 * sizeof others / sizeof *others; k++) {
        const size_t i = k / 2;
        po_ctx ctx;
        char a[200], b[200];
        po_ctx_init(&ctx);
        snprintf(a, sizeof a,
                 "graph g (x: f32[1,2,12,1]) -> (y) {\n"
                 " y = %s(x) {kernel_shape=[2,2], strides=[2,2]}\n}",
                 ops[k % 2]);
        snprintf(b, sizeof b,
                 "graph g (x: f32[1,2,12,1]) -> (y) {\n"
                 " y = %s(x) {kernel_shape=[2,2], strides=[2,2], pads=[%s]}\n}",
                 ops[k % 2], others[i].pads);
        po_proof_report r = test_prove(&ctx, a, b, NULL);
        if ((r.proved != 0) != others[i].same)
            fail_msg("%s, pads %s: %s", ops[k % 2], others[i].pads, r.proved ? "proved" : r.why);
    }
}

/* Means over what is inside: a factor may stand before or behind them. */
static void test_means_of_short_windows(void **state) {
    static const char *const before = "graph g (x: f32[1,2,12,1]) -> (y) {\n"
                                      " m = Mul(x, c: f32[] {3.0})\n"
                                      " y = AveragePool(m) {kernel_shape=[2,2], strides=[2,2]}\n}";
    static const char *const behind[] = {"3.0", "1.5"}; /* the other: over the whole window */
    (void)state;
    for (size_t i = 0; i < sizeof behind / sizeof *behind; i++) {
        po_ctx ctx;
        char b[200];
        po_ctx_init(&ctx);
        snprintf(b, sizeof b,
                 "graph g (x: f32[1,2,12,1]) -> (y) {\n"
                 " m = AveragePool(x) {kernel_shape=[2,1], strides=[2,2]}\n"
                 " y = Mul(m, c: f32[] {%s})\n}",
                 behind[i]);
        po_proof_report r = test_prove(&ctx, before, b, NULL);
        if ((r.proved != 0) != (i == 0))
            fail_msg("%s: %s", behind[i], r.proved ? "proved" : r.why);
    }
}

static void test_open_dims(void **state) {
    (void)state;
    po_ctx ctx;
    po_ctx_init(&ctx);
    const char *a = "pir 1 ir_version=8 opset=17\n"
                    "graph g (x: f32[\"N\",4,\"L\"]) -> (y) {\n"
                    "  s = Shape(x)\n"
                    "  f = Reshape(x, k: i64[2] {-1,4})\n"
                    "  y = Reshape(f, s)\n"
                    "}\n";
    const char *b = "pir 1 ir_version=8 opset=17\n"
                    "graph g (x: f32[\"N\",4,\"L\"]) -> (y) {\n  y = Identity(x)\n}\n";
    po_proof_report r = test_prove(&ctx, a, b, NULL);
    /* Every size is shown at one of them. */
    assert_true(r.proved && r.every_size && r.sizes == 1 && r.trials >= 2);
    assert_true(r.log2_bound < -20 && r.elements > 0);
}

static void test_what_is_not_proved(void **state) {
    (void)state;
    po_ctx ctx;
    po_ctx_init(&ctx);
    /* The same function of what is drawn, and others. */
    po_proof_report r = test_prove_nodes(&ctx, "r = RandomNormalLike(x)\n y = Add(r, x)",
                                         "r = RandomNormalLike(x)\n y = Add(x, r)");
    assert_true(r.proved);
    static const char *const others[] = {"r = RandomNormalLike(x)\n y = Mul(x, r)",
                                         "r = RandomNormalLike(x) {mean=1.0}\n y = Add(x, r)",
                                         ("r = RandomNormalLike(x)\n s = RandomNormalLike(x)\n"
                                          " t = Add(s, r)\n y = Add(x, t)")};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        assert_false(
            test_prove_nodes(&ctx, "r = RandomNormalLike(x)\n y = Add(r, x)", others[i]).proved);
    r = test_prove_nodes(&ctx, "y = Relu(x)", "q = Relu(x)\n y = Relu(q)");
    assert_true(r.proved);
    po_graph *g = test_graph(&ctx, network);
    po_proof_options tiny = {.seed = 1, .cpu_seconds = 1e-9};
    assert_int_equal(po_prove(&ctx, g, g, NULL, &tiny, &r), PO_OK);
    assert_true(!r.proved && !r.differ && strstr(r.why, "CPU"));
    po_graph_free(g);
}

/* What was only tried at drawn integers or at some lengths is not proved. */
static void test_what_was_only_tried(void **state) {
    static const char head[] = "pir 1 ir_version=8 opset=17\n";
    static const struct {
        const char *in, *a, *b;
        bool proved;
    } rows[] = {
        {"ids: i64[4], x: f32[4]", "y = Identity(x)",
         "c = Equal(ids, k: i64[] {4711})\n  n = Neg(x)\n  y = Where(c, n, x)", false},
        {"ids: i64[4], x: f32[4]",
         "c = Equal(ids, k: i64[] {4711})\n  n = Neg(x)\n  y = Where(c, n, x)",
         "c = Equal(ids, k: i64[] {4711})\n  n = Exp(x)\n  y = Where(c, n, x)", false},
        {"ids: i64[4], x: f32[4]",
         "c = Equal(ids, k: i64[] {4711})\n  n = Neg(x)\n  y = Where(c, n, x)",
         "c = Equal(ids, k: i64[] {4711})\n  d = Not(c)\n  n = Neg(x)\n  y = Where(d, x, n)", true},
        {"ids: i64[4], x: f32[4]", "t = Gather(w: f32[9000] random 1, ids)\n  y = Add(t, x)",
         "c = Equal(ids, k: i64[] {4711})\n  j = Where(c, z: i64[] {0}, ids)\n"
         "  t = Gather(w: f32[9000] random 1, j)\n  y = Add(t, x)",
         false},
        {"ids: i64[4], x: f32[4]", "f = Cast(ids) {to=1}\n  y = Add(f, x)",
         "i = Cast(ids) {to=3}\n  f = Cast(i) {to=1}\n  y = Add(f, x)", false},
        {"ids: i64[4], x: f32[4]",
         "i = Add(ids, k: i64[] {3})\n  f = Cast(i) {to=1}\n  y = Add(f, x)",
         "f = Cast(ids) {to=1}\n  g = Add(f, x)\n  y = Add(g, k: f32[] {3.0})", true},
        {"s: str[4], x: f32[4]",
         "c = Equal(s, k: str[1] {\"a\"})\n  f = Cast(c) {to=1}\n  y = Add(f, x)",
         "c = Equal(s, k: str[1] {\"b\"})\n  f = Cast(c) {to=1}\n  y = Add(f, x)", false},
        {"x: f32[\"N\"]", "y = Identity(x)",
         "s = Shape(x)\n  m = Mod(s, k: i64[] {37})\n  c = Equal(m, z: i64[] {0})\n"
         "  f = Cast(c) {to=1}\n  y = Add(x, f)",
         false},
        {"x: f32[\"N\"]", "y = Identity(x)",
         "p = Slice(x, a: i64[1] {0}, b: i64[1] {700})\n  q = Slice(x, b, e: i64[1] {9999999999})\n"
         "  n = Neg(q)\n  y = Concat(p, n) {axis=0}",
         false},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char a[800], b[800];
        po_ctx ctx;
        po_ctx_init(&ctx);
        snprintf(a, sizeof a, "%sgraph g (%s) -> (y) {\n  %s\n}\n", head, rows[i].in, rows[i].a);
        snprintf(b, sizeof b, "%sgraph g (%s) -> (y) {\n  %s\n}\n", head, rows[i].in, rows[i].b);
        po_proof_report r = test_prove(&ctx, a, b, NULL);
        if ((r.proved != 0) != rows[i].proved)
            fail_msg("row %zu: %s", i, r.why);
    }
}

/* Numbers that are one another modulo a known prime are told apart by drawn ones. */
static void test_no_prime_is_known(void **state) {
    static const char *const pairs[][2] = {
        {"y = Mul(x, k: f64[] {1.5})", "y = Mul(x, k: f64[] {3221225472.0})"},
        {"y = Mul(x, k: f64[] {0.5})", "y = Mul(x, k: f64[] {-524287.25})"},
        {"y = Identity(x)", "a = Mul(x, k: f64[] {65536.0})\n  y = Mul(a, l: f64[] {32768.0})"},
        {"y = Identity(x)", "a = Mul(x, k: f64[] {262143.75})\n  b = Mul(x, l: f64[] {262144.0})\n"
                            "  c = Add(a, b)\n  y = Add(c, x)"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        char a[300], b[300];
        po_ctx ctx;
        po_ctx_init(&ctx);
        snprintf(a, sizeof a, "graph g (x: f64[3]) -> (y) {\n  %s\n}\n", pairs[i][0]);
        snprintf(b, sizeof b, "graph g (x: f64[3]) -> (y) {\n  %s\n}\n", pairs[i][1]);
        po_graph *x = test_graph(&ctx, a), *y = test_graph(&ctx, b);
        po_proof_report r[2];
        for (int k = 0; k < 2; k++) {
            assert_int_equal(po_prove(&ctx, x, y, NULL, &(po_proof_options){0}, &r[k]), PO_OK);
            assert_false(r[k].proved);
        }
        assert_int_not_equal(r[0].seed, r[1].seed);
        assert_memory_not_equal(r[0].primes, r[1].primes, sizeof r[0].primes);
        assert_int_not_equal(r[0].primes[0], r[0].primes[1]);
        po_graph_free(x);
        po_graph_free(y);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_was_only_tried),
        cmocka_unit_test(test_no_prime_is_known),
        cmocka_unit_test(test_the_network_is_itself),
        cmocka_unit_test(test_rotary),
        cmocka_unit_test(test_certain_differences),
        cmocka_unit_test(test_opaque_is_named),
        cmocka_unit_test(test_planted_differences_are_seen),
        cmocka_unit_test(test_one_bit_is_seen),
        cmocka_unit_test(test_spellings),
        cmocka_unit_test(test_windows_longer_than_maps),
        cmocka_unit_test(test_means_of_short_windows),
        cmocka_unit_test(test_open_dims),
        cmocka_unit_test(test_what_is_not_proved),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
