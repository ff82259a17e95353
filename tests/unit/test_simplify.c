/* Every pass of simplify on a small graph: what goes, what must stay, and the function unchanged.
 */
#include "rewriting.h"
#include "simplify/simplify.h"
#include "unit.h"

#include <math.h>
#include <stdio.h>

typedef struct sample {
    const char *name, *graph;
    int nodes;            /* live nodes left in the root graph */
    const char *count_of; /* an operator ... */
    int count;            /* ... and how many of it must be left, bodies included */
} sample;

static const sample samples[] = {
    {"constants fold",
     "graph g (x: f32[2,3]) -> (y) {\n"
     " a = Add(p: f32[3] random 1, q: f32[3] random 2)\n b = Mul(a, a)\n y = Mul(x, b)\n}",
     1, "Add", 0},
    {"a constant that explodes stays",
     "graph g (x: f32[1]) -> (y) {\n"
     " a = Expand(p: f32[1] {2.0}, s: i64[2] {1024, 1024})\n y = Mul(x, a)\n}",
     2, "Expand", 1},
    {"shape arithmetic folds where the shape is known",
     "graph g (x: f32[2,3,4]) -> (y) {\n"
     " s = Shape(x)\n a = Gather(s, i: i64[] {0})\n b = Unsqueeze(a, ax: i64[1] {0})\n"
     " t = Concat(b, m: i64[1] {-1}) {axis=0}\n y = Reshape(x, t)\n}",
     1, "Shape", 0},
    {"lengths that a Reshape can copy are not computed",
     "graph g (x: f32[B,3,4]) -> (y) {\n"
     " s = Shape(x)\n a = Gather(s, i: i64[] {0})\n b = Unsqueeze(a, ax: i64[1] {0})\n"
     " t = Concat(b, m: i64[1] {-1}) {axis=0}\n y = Reshape(x, t)\n}",
     1, "Shape", 0},
    {"nor what is left over beside numbers",
     "graph g (x: f32[B,3,4]) -> (y) {\n"
     " s = Shape(x)\n a = Gather(s, i: i64[1] {0})\n"
     " t = Concat(m: i64[1] {12}, a) {axis=0}\n y = Reshape(x, t)\n}",
     1, "Shape", 0},
    {"lengths that an input has are read of it",
     "graph g (x: f32[B,C,4]) -> (y, z) {\n"
     " t = Transpose(x) {perm=[1,2,0]}\n a = Tanh(t)\n s = Shape(a)\n"
     " y = Gather(s, i: i64[] {2})\n z = ReduceMax(a) {axes=[0,1,2], keepdims=0}\n}",
     5, "Shape", 1},
    {"others are",
     "graph g (x: f32[B,C,4]) -> (y) {\n"
     " s = Shape(x)\n t = Gather(s, i: i64[3] {1, 0, 2})\n y = Reshape(x, t)\n}",
     3, "Shape", 1},
    {"and what is left over beside a length that may be 0",
     "graph g (x: f32[B,C,4]) -> (y) {\n"
     " s = Shape(x)\n a = Gather(s, i: i64[1] {0})\n b = Gather(s, j: i64[1] {1})\n"
     " t = Concat(a, four: i64[1] {4}, b) {axis=0}\n y = Reshape(x, t)\n}",
     5, "Shape", 1},
    {"a known part of an unknown shape folds",
     "graph g (x: f32[B,3,4]) -> (y) {\n"
     " s = Shape(x)\n a = Gather(s, i: i64[1] {1})\n t = Concat(m: i64[1] {-1}, a) {axis=0}\n"
     " y = Reshape(x, t)\n}",
     1, "Shape", 0},
    {"duplicates merge, attributes told apart",
     "graph g (x: f32[2,3]) -> (y) {\n"
     " a = Softmax(x) {axis=1}\n b = Softmax(x) {axis=1}\n c = Softmax(x) {axis=0}\n"
     " d = Mul(a, b)\n y = Mul(d, c)\n}",
     4, "Softmax", 2},
    {"random nodes never merge",
     "graph g (x: f32[2,3]) -> (y) {\n"
     " a = RandomNormalLike(x)\n b = RandomNormalLike(x)\n y = Sub(a, b)\n}",
     3, "RandomNormalLike", 2},
    {"identities go",
     "graph g (x: f32[2,3]) -> (y) {\n"
     " a = Mul(x, one: f32[1] {1.0})\n b = Add(zero: f32[3] {0.0}, a)\n"
     " c = Div(b, u: f32[] {1.0})\n d = Cast(c) {to=1}\n e = Transpose(d) {perm=[0, 1]}\n"
     " f = Reshape(e, s: i64[2] {2, 3})\n g1 = Identity(f)\n h = Dropout(g1)\n y = Tanh(h)\n}",
     1, "Tanh", 1},
    {"means of one number go, other means stay",
     "graph g (x: f32[1,2,6,6]) -> (y) {\n"
     " a = AveragePool(x) {kernel_shape=[1, 1], pads=[0, 0, 0, 0], strides=[1, 1]}\n"
     " b = AveragePool(a) {kernel_shape=[1, 1], strides=[2, 1]}\n"
     " y = AveragePool(b) {kernel_shape=[1, 2]}\n}",
     2, "AveragePool", 2},
    {"a one that broadcasts stays",
     "graph g (x: f32[1,3]) -> (y) {\n y = Mul(x, one: f32[2,1] {1.0})\n}", 1, "Mul", 1},
    {"a slice that reverses stays",
     "graph g (x: f32[2,3]) -> (y) {\n"
     " a = Slice(x, s: i64[1] {-1}, e: i64[1] {-100}, ax: i64[1] {1}, st: i64[1] {-1})\n"
     " y = Tanh(a)\n}",
     2, "Slice", 1},
    {"a slice of the whole goes, as written at either end; a part and every other row stay",
     "graph g (x: f32[4,3]) -> (y) {\n"
     " a = Slice(x, s: i64[1] {0}, e: i64[1] {9223372036854775807}, ax: i64[1] {0})\n"
     " b = Slice(a, t: i64[1] {-4}, f: i64[1] {4}, ax, st: i64[1] {1})\n"
     " c = Slice(b, u: i64[1] {1}, h: i64[1] {4}, ax)\n"
     " d = Slice(c, s, h, ax, w: i64[1] {2})\n y = Tanh(d)\n}",
     3, "Slice", 2},
    {"padding of nothing goes, of any value; some at one end and less than none stay",
     "graph g (x: f32[4,3]) -> (y) {\n"
     " a = Pad(x, p: i64[4] {0, 0, 0, 0}, k: f32[] {0.5})\n b = Pad(a, q: i64[4] {0, 0, 0, 1})\n"
     " c = Pad(b, r: i64[4] {-1, 0, 1, 0})\n y = Tanh(c)\n}",
     3, "Pad", 2},
    {"Dropout goes in inference, its mask unread; in training it stays",
     "graph g (x: f32[4,3]) -> (y, z) {\n"
     " a = Dropout(x, r: f32[] {0.5}, t: bool[] {0})\n b, m = Dropout(a)\n c = Not(m)\n"
     " y = Where(c, a, b)\n z = RandomNormalLike(w: f32[2] {1.0})\n}",
     4, "Dropout", 1},
    {"before opset 7 Dropout says whether it is in inference",
     "pir 1 ir_version=3 opset=6\ngraph g (x: f32[4,3]) -> (y, z) {\n"
     " a = Dropout(x) {is_test=1, ratio=0.5}\n y = Tanh(a)\n b = Dropout(x) {ratio=0.5}\n"
     " c = RandomNormalLike(b)\n z = Add(b, c)\n}",
     4, "Dropout", 1},
    {"a Relu of what is never negative goes",
     "graph g (x: f32[1,2,6]) -> (y) {\n"
     " a = Relu(x)\n b = Sigmoid(x)\n c = Add(a, b)\n d = Relu(c)\n"
     " e = MaxPool(d) {kernel_shape=[2]}\n y = Relu(e)\n}",
     4, "Relu", 1},
    {"Relu of the largest of nothing: a dilated window beside the map",
     "graph g (x: f32[1,2,1]) -> (y) {\n r = Relu(x)\n"
     " e = MaxPool(r) {kernel_shape=[2], dilations=[3], pads=[2,2]}\n y = Relu(e)\n}",
     3, "Relu", 2},
    {"a Relu of what may be negative stays",
     "graph g (x: f32[6]) -> (y) {\n"
     " a = Relu(x)\n b = Sigmoid(x)\n c = Sub(a, b)\n d = Relu(c)\n e = Max(x, d)\n"
     " f = Min(x, e)\n y = Relu(f)\n}",
     7, "Relu", 3},
    {"a Relu of integers that may overflow stays",
     "graph g (x: i64[6]) -> (y) {\n a = Relu(x)\n b = Mul(a, a)\n y = Relu(b)\n}", 3, "Relu", 2},
    {"an identity between input and output stays",
     "graph g (x: f32[2,3]) -> (y) {\n a = Identity(x)\n y = Identity(a)\n}", 1, "Identity", 1},
    {"transposes compose",
     "graph g (x: f32[2,3,4]) -> (y) {\n"
     " a = Transpose(x) {perm=[1, 2, 0]}\n b = Transpose(a) {perm=[1, 2, 0]}\n y = Tanh(b)\n}",
     2, "Transpose", 1},
    {"transposes cancel",
     "graph g (x: f32[2,3,4]) -> (y) {\n"
     " a = Transpose(x)\n b = Transpose(a) {perm=[2, 1, 0]}\n y = Tanh(b)\n}",
     1, "Transpose", 0},
    {"reshapes cancel",
     "graph g (x: f32[2,3,4]) -> (y) {\n"
     " a = Reshape(x, s: i64[2] {6, 4})\n b = Reshape(a, t: i64[3] {2, 3, 4})\n y = Tanh(b)\n}",
     1, "Reshape", 0},
    {"reshapes compose, a copied dim resolved",
     "graph g (x: f32[2,3,4]) -> (y) {\n"
     " a = Reshape(x, s: i64[2] {6, 4})\n b = Reshape(a, t: i64[3] {0, 2, 2})\n y = Tanh(b)\n}",
     2, "Reshape", 1},
    {"a shape of lengths is told so where a 0 would have meant one, too",
     "pir 1 opset=18\ngraph g (x: f32[n,t,12]) -> (y) {\n"
     " h = Shape(x)\n k = Slice(h, b: i64[1] {0}, e: i64[1] {2})\n"
     " s = Concat(k, d: i64[2] {3, 4}) {axis=0}\n a = Reshape(x, s) {allowzero=1}\n"
     " y = Tanh(a)\n}",
     2, "Shape", 0},
    {"a mask taken by sample and place is the mask",
     "pir 1 opset=18\ngraph g (m: f32[n,t], x: f32[n,2,t,t]) -> (y) {\n"
     " h = Shape(m)\n a = Gather(h, z: i64[] {0})\n b = Gather(h, o: i64[] {1})\n"
     " r = Range(z, a, o)\n p = Range(z, b, o)\n u = Unsqueeze(r, k: i64[4] {1, 2, 3, 4})\n"
     " v = Unsqueeze(p, l: i64[4] {0, 1, 2, 4})\n c = Unsqueeze(a, w: i64[1] {0})\n"
     " d = Unsqueeze(b, w)\n s = Concat(c, q: i64[2] {1, 1}, d, f: i64[1] {1}) {axis=0}\n"
     " e = Expand(u, s)\n i = Expand(v, s)\n j = Concat(e, i) {axis=-1}\n"
     " g = GatherND(m, j)\n y = Add(x, g)\n}",
     2, "GatherND", 0},
    {"the same of a mask that is flat",
     "pir 1 opset=18\ngraph g (m: f32[n,t], x: f32[n,2,t,t]) -> (y) {\n"
     " h = Shape(m)\n a = Gather(h, z: i64[] {0})\n b = Gather(h, o: i64[] {1})\n"
     " r = Range(z, a, o)\n p = Range(z, b, o)\n u = Unsqueeze(r, k: i64[3] {1, 2, 3})\n"
     " v = Unsqueeze(p, l: i64[3] {0, 1, 2})\n c = Mul(u, b)\n j = Add(v, c)\n"
     " f = Flatten(m) {axis=2}\n e = Gather(f, j) {axis=0}\n s = Shape(j)\n"
     " g = Reshape(e, s)\n y = Add(x, g)\n}",
     2, "Gather", 0},
    {"taken in another order it is not",
     "pir 1 opset=18\ngraph g (m: f32[n,n], x: f32[n,2,n,n]) -> (y) {\n"
     " h = Shape(m)\n a = Gather(h, z: i64[] {0})\n r = Range(z, a, o: i64[] {1})\n"
     " u = Unsqueeze(r, k: i64[4] {1, 2, 3, 4})\n v = Unsqueeze(r, l: i64[4] {0, 1, 2, 4})\n"
     " c = Unsqueeze(a, w: i64[1] {0})\n"
     " s = Concat(c, q: i64[2] {1, 1}, c, f: i64[1] {1}) {axis=0}\n"
     " e = Expand(u, s)\n i = Expand(v, s)\n j = Concat(i, e) {axis=-1}\n"
     " g = GatherND(m, j)\n y = Add(x, g)\n}",
     12, "GatherND", 1},
    {"positions are at least 0",
     "pir 1 opset=18\ngraph g (m: bool[n,1,1,t], x: f32[n,2,t,t]) -> (y) {\n"
     " h = Shape(m)\n b = Gather(h, o: i64[] {3})\n p = Range(z: i64[] {0}, b, q: i64[] {1})\n"
     " v = Unsqueeze(p, l: i64[3] {0, 1, 3})\n c = GreaterOrEqual(v, z)\n d = And(c, m)\n"
     " w = Where(d, k: f32[] {0.0}, f: f32[] {-9.0})\n y = Add(x, w)\n}",
     2, "And", 0},
    {"and not all at least 1",
     "pir 1 opset=18\ngraph g (m: bool[n,1,1,t], x: f32[n,2,t,t]) -> (y) {\n"
     " h = Shape(m)\n b = Gather(h, o: i64[] {3})\n p = Range(z: i64[] {0}, b, q: i64[] {1})\n"
     " v = Unsqueeze(p, l: i64[3] {0, 1, 3})\n c = GreaterOrEqual(v, q)\n d = And(c, m)\n"
     " w = Where(d, k: f32[] {0.0}, f: f32[] {-9.0})\n y = Add(x, w)\n}",
     8, "And", 1},
    {"what others read as long as it is stays so",
     "pir 1 opset=18\ngraph g (m: bool[n,1,1,t], x: f32[n,2,t,t]) -> (y, w) {\n"
     " h = Shape(m)\n b = Gather(h, o: i64[] {3})\n p = Range(z: i64[] {0}, b, q: i64[] {1})\n"
     " v = Unsqueeze(p, l: i64[3] {0, 1, 3})\n c = GreaterOrEqual(v, z)\n d = And(c, m)\n"
     " w = Where(d, k: f32[] {0.0}, f: f32[] {-9.0})\n y = Add(x, w)\n}",
     8, "And", 1},
    {"one row of a table for all tokens",
     "pir 1 opset=18\ngraph g (x: f32[n,t,4], p: i64[1,t]) -> (y) {\n"
     " g = GatherElements(z: i64[1,9] {2, 2, 2, 2, 2, 2, 2, 2, 2}, p) {axis=1}\n"
     " h = Shape(x)\n s = Slice(h, b: i64[1] {0}, e: i64[1] {2})\n i = Expand(g, s)\n"
     " r = Gather(w: f32[3,4] random 1, i) {axis=0}\n y = Add(x, r)\n}",
     1, "Gather", 0},
    {"an Expand before what repeats anyway",
     "pir 1 opset=18\ngraph g (x: f32[n,t,4], v: f32[n,t,1]) -> (y) {\n"
     " h = Shape(x)\n e = Expand(v, h)\n y = Div(x, e)\n}",
     1, "Expand", 0},
    {"an Expand before what keeps the shape of its first input stays",
     "pir 1 opset=18\ngraph g (x: f32[n,4,t], v: f32[n,1,t]) -> (y) {\n"
     " h = Shape(x)\n e = Expand(v, h)\n p = PRelu(e, s: f32[4,1] random 1)\n y = Add(x, p)\n}",
     4, "Expand", 1},
    {"what has no first output is passed over",
     "pir 1 opset=18\ngraph g (x: f32[2,1,3]) -> (y) {\n"
     " _, h = RNN(x, w: f32[1,4,3] random 1, r: f32[1,4,4] random 2) {hidden_size=4}\n"
     " y = Tanh(h)\n}",
     2, "RNN", 1},
    {"an Expand whose readers meet stays",
     "pir 1 opset=18\ngraph g (x: f32[n,t,4], v: f32[n,t,1]) -> (y) {\n"
     " h = Shape(x)\n e = Expand(v, h)\n a = Neg(e)\n b = Exp(e)\n y = Add(a, b)\n}",
     5, "Expand", 1},
    {"an Expand that makes something longer stays",
     "pir 1 opset=18\ngraph g (x: f32[n,t,4], v: f32[n,t,1]) -> (y) {\n"
     " h = Shape(x)\n e = Expand(v, h)\n y = Div(v, e)\n}",
     3, "Expand", 1},
    {"axes that are merged, moved and taken apart are moved, of open lengths too",
     "graph g (x: f32[n,3,t,4]) -> (y) {\n"
     " h = Shape(x)\n k = Slice(h, b: i64[1] {2}, e: i64[1] {3})\n"
     " s = Concat(m: i64[1] {-1}, k, d: i64[1] {4}) {axis=0}\n a = Reshape(x, s)\n"
     " p = Transpose(a) {perm=[0, 2, 1]}\n c = Slice(h, z: i64[1] {0}, f: i64[1] {2})\n"
     " u = Concat(c, d, k) {axis=0}\n r = Reshape(p, u)\n y = Tanh(r)\n}",
     2, "Reshape", 0},
    {"axes that are taken apart otherwise stay",
     "graph g (x: f32[2,3,6]) -> (y) {\n a = Reshape(x, s: i64[2] {6, 6})\n"
     " b = Transpose(a)\n c = Reshape(b, t: i64[3] {2, 3, 6})\n y = Tanh(c)\n}",
     4, "Reshape", 2},
    {"what is moved stays where others read it too",
     "graph g (x: f32[2,3,6]) -> (y, z) {\n a = Reshape(x, s: i64[2] {6, 6})\n"
     " b = Transpose(a)\n c = Reshape(b, t: i64[3] {6, 2, 3})\n y = Tanh(c)\n z = Neg(b)\n}",
     5, "Reshape", 2},
    {"padding in words is numbers: SAME of known sizes, odd ones at the end",
     "graph g (x: f32[1,2,7,6]) -> (y) {\n"
     " a = Conv(x, w: f32[4,2,3,3] random 1) {auto_pad=\"SAME_UPPER\", strides=[2, 2]}\n"
     " b = MaxPool(a) {auto_pad=\"SAME_LOWER\", kernel_shape=[2, 3]}\n"
     " c = Conv(x, w) {pads=[1, 0, 1, 1], strides=[2, 2]}\n"
     " d = MaxPool(c) {kernel_shape=[2, 3], pads=[1, 1, 0, 1]}\n y = Add(b, d)\n}",
     3, "Conv", 1},
    {"and of open ones with strides of one, VALID always",
     "graph g (x: f32[1,2,H,8]) -> (y) {\n"
     " a = AveragePool(x) {auto_pad=\"SAME_UPPER\", kernel_shape=[4, 3]}\n"
     " b = AveragePool(x) {kernel_shape=[4, 3], pads=[1, 1, 2, 1]}\n c = Add(a, b)\n"
     " d = MaxPool(c) {auto_pad=\"VALID\", kernel_shape=[2, 2], strides=[2, 2]}\n"
     " e = MaxPool(c) {kernel_shape=[2, 2], pads=[0, 0, 0, 0], strides=[2, 2]}\n"
     " y = Add(d, e)\n}",
     4, "AveragePool", 1},
    {"SAME that the size decides stays open",
     "graph g (x: f32[1,2,H,8]) -> (y) {\n"
     " y = MaxPool(x) {auto_pad=\"SAME_UPPER\", kernel_shape=[3, 3], strides=[2, 2]}\n}",
     1, "MaxPool", 1},
    {"a branch is taken",
     "graph g (x: f32[2,3]) -> (y) {\n"
     " c = Greater(p: i64[] {3}, q: i64[] {2})\n a = Tanh(x)\n"
     " r = If(c) {then_branch=graph t () -> (u) { u = Relu(a) },\n"
     "   else_branch=graph e () -> (v) { v = Neg(a) }}\n y = Sin(r)\n}",
     3, "Relu", 1},
    {"bodies are simplified",
     "graph g (x: f32[2,3], c: bool[]) -> (y) {\n"
     " a = Tanh(x)\n"
     " y = If(c) {then_branch=graph t () -> (u) { k = Identity(a) w = Identity(k) u = Relu(w) },\n"
     "   else_branch=graph e () -> (v) { v = Neg(a) }}\n}",
     2, "Identity", 0},
    {"an initialiser that callers may override is no constant",
     "graph g (x: f32[3], w: f32[3] = f32[3] {1.0}) -> (y) {\n y = Mul(x, w)\n}", 1, "Mul", 1},
    {"quantisation pairs stay",
     "graph g (x: f32[3]) -> (y) {\n"
     " q = QuantizeLinear(w: f32[3] random 1, s: f32[] {0.1}, z: u8[] {128})\n"
     " d = DequantizeLinear(q, s, z)\n y = Mul(x, d)\n}",
     3, "DequantizeLinear", 1},
    {"dead code goes", "graph g (x: f32[3]) -> (y) {\n a = Sin(x)\n b = Cos(a)\n y = Tanh(x)\n}", 1,
     "Sin", 0},
};

static void test_samples(void **state) {
    (void)state;
    int bad = 0;
    for (size_t i = 0; i < sizeof samples / sizeof *samples; i++) {
        const sample *s = &samples[i];
        po_ctx ctx;
        po_ctx_init(&ctx);
        po_graph *g = test_graph(&ctx, s->graph), *h = NULL;
        po_simplify_options options = po_simplify_defaults();
        if (po_simplify(&ctx, g, &options, &h, NULL) != PO_OK || po_graph_check(&ctx, h) != PO_OK) {
            printf("%s: %s\n", s->name, ctx.error.message);
            bad++;
            continue;
        }
        uint32_t found = test_count(h, s->count_of);
        bool random = test_count(g, "RandomNormalLike") > 0;
        double d = random ? 0 : test_difference(&ctx, g, h, 5);
        if ((int)h->n_live != s->nodes || (int)found != s->count || !(d < 1e-7)) {
            printf("%s: error %g, %u nodes (want %d), %u of %s (want %d)\n", s->name, d, h->n_live,
                   s->nodes, found, s->count_of, s->count);
            bad++;
        }
        bad += test_tell(s->name, test_recipe_fault(&ctx, g, h));
        po_graph_free(h);
        po_graph_free(g);
    }
    assert_int_equal(bad, 0);
}

/* Weights under other names and shapes are the same bytes; what is computed has its own. */
static void shared_weights(void **state) {
    (void)state;
    po_ctx ctx;
    po_ctx_init(&ctx);
    po_graph *h = NULL,
             *g = test_graph(&ctx, "graph g (x: f32[16,16]) -> (y) {\n"
                                   " a = Identity(w: f32[16,16] random 1)\n b = Mul(x, a)\n"
                                   " c = Reshape(w, s: i64[3] {4, 4, 16})\n f = Mul(c, c)\n"
                                   " e = Reshape(f, t: i64[2] {16, 16})\n d = Mul(b, e)\n"
                                   " k = Reshape(d, s)\n y = Mul(k, c)\n}");
    po_simplify_options options = po_simplify_defaults();
    assert_int_equal(po_simplify(&ctx, g, &options, &h, NULL), PO_OK);
    const void *data[8];
    uint32_t constants = 0, different = 0;
    for (po_value_id v = 0; v < h->n_values; v++) {
        const po_tensor *t = po_graph_constant(h, v);
        if (!t || t->size != 1024 || h->values[v].n_uses == 0)
            continue;
        uint32_t k = 0;
        while (k < different && data[k] != t->data)
            k++;
        if (k == different)
            data[different++] = t->data;
        constants++;
    }
    assert_int_equal(constants, 3); /* w, w as 4x4x16, its square */
    assert_int_equal(different, 2);
    po_graph_free(h);
    po_graph_free(g);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_samples),
                                       cmocka_unit_test(shared_weights)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
