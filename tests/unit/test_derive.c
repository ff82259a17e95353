/* Every directed derivation on small graphs: it proposes something where it should, nothing where
 * it must not, and what it calls equal is equal in float64. */
#include "deriving.h"
#include "ops/op.h"
#include "unit.h"

typedef struct sample {
    const char *derivation, *graph;
    uint32_t activations; /* how many inputs are no weights */
    int mutants;          /* 0: it must not fire; else at least so many */
} sample;

#define C2(dims, w, attrs)                                                                         \
    "graph g (x: f32" dims ", w: f32" w ", b: f32[6]) -> (y) {\n y = Conv(x, w, b) {" attrs "}\n}"
#define C1(dims, w, attrs)                                                                         \
    "graph g (x: f32" dims ", w: f32" w ") -> (y) {\n y = Conv(x, w) {" attrs "}\n}"
#define T2(dims, w, attrs)                                                                         \
    "graph g (x: f32" dims ", w: f32" w                                                            \
    ", b: f32[6]) -> (y) {\n y = ConvTranspose(x, w, b) {" attrs "}\n}"
#define P(op, attrs) "graph g (x: f32[2,4,9,8]) -> (y) {\n y = " op "(x) {" attrs "}\n}"
/* A Resize by these factors, then a convolution. */
#define U(scales, where, how, w, attrs)                                                            \
    "graph g (x: f32[2,4,5,6], w: f32" w ", b: f32[6]) -> (y) {\n"                                 \
    " u = Resize(x, r: f32[0] {}, s: f32[4] {" scales "})\n   {mode=\"nearest\", "                 \
    "coordinate_transformation_mode=\"" where "\", nearest_mode=\"" how "\"}\n"                    \
    " y = Conv(u, w, b) {" attrs "}\n}"

static const sample samples[] = {
    {"dilation to phases", C2("[2,4,9,11]", "[6,4,3,3]", "dilations=[2,3], pads=[2,3,2,3]"), 1, 1},
    {"dilation to phases",
     C2("[1,4,9,10]", "[6,2,3,2]", "dilations=[2,2], pads=[1,0,2,3], group=2"), 1, 1},
    {"dilation to phases",
     C2("[3,4,12,12]", "[6,4,3,3]", "dilations=[3,1], strides=[1,2], pads=[3,1,3,1]"), 1, 1},
    {"dilation to phases", C1("[2,3,31]", "[5,3,4]", "dilations=[5], pads=[15,0]"), 1, 1},
    {"dilation to phases",
     C1("[1,2,5,7,6]", "[4,2,2,3,2]", "dilations=[1,2,3], pads=[0,1,2,1,1,0]"), 1, 1},
    {"dilation to phases", C1("[2,3,31]", "[5,3,4]", "dilations=[2], strides=[2]"), 1, 0},
    {"dilation to phases", C1("[2,3,31]", "[5,3,4]", "pads=[1,1]"), 1, 0},
    {"one-dimensional as two", C1("[2,3,31]", "[5,3,4]", "dilations=[2], strides=[3], pads=[2,1]"),
     1, 2},
    {"one-dimensional as two", C1("[2,4,31]", "[6,2,5]", "group=2, pads=[2,2]"), 1, 2},
    {"one-dimensional as two", C2("[2,4,5,7]", "[6,4,3,3]", ""), 1, 0},
    {"one axis less", C2("[2,4,5,7]", "[6,2,1,3]", "pads=[0,1,0,2], strides=[1,2], group=2"), 1, 1},
    {"one axis less", C2("[2,4,5,7]", "[6,4,2,1]", "dilations=[2,1], pads=[1,0,1,0]"), 1, 1},
    {"one axis less", C1("[2,4,3,5,7]", "[6,4,2,1,3]", "pads=[1,0,1,0,0,1]"), 1, 1},
    {"one axis less", C2("[2,4,1,7]", "[6,4,1,3]", ""), 1, 1},
    {"one axis less", C2("[2,4,5,7]", "[6,4,1,3]", "pads=[1,1,0,0]"), 1, 0},
    {"parallel convolutions",
     "graph g (x: f32[2,4,9,8], v: f32[6,4,3,3], w: f32[3,4,1,5], u: f32[2,4,1,1], b: f32[6]) -> "
     "(p, q, r) {\n p = Conv(x, v, b) {pads=[1,1,1,1]}\n q = Conv(x, w) {pads=[0,2,0,2]}\n"
     " r = Conv(x, u)\n}",
     1, 1},
    {"parallel convolutions",
     "graph g (x: f32[1,4,9,9], v: f32[6,4,3,3], w: f32[3,4,5,5]) -> (p, q) {\n"
     " p = Conv(x, v) {pads=[1,0,1,2], strides=[2,2]}\n"
     " q = Conv(x, w) {pads=[2,2,2,2], strides=[2,2]}\n}",
     1, 1},
    {"parallel convolutions",
     "graph g (x: f32[1,4,9], v: f32[6,4,3], w: f32[3,4,3]) -> (p, q) {\n"
     " p = Conv(x, v) {pads=[1,1]}\n q = Conv(x, w) {pads=[2,2], dilations=[2]}\n}",
     1, 0},
    {"parallel convolutions",
     "graph g (x: f32[1,4,9], v: f32[6,4,3], w: f32[3,4,3]) -> (p, q) {\n"
     " p = Conv(x, v) {pads=[1,1]}\n q = Conv(x, w) {pads=[1,1], strides=[2]}\n}",
     1, 0},
    {"convolution by taps", C2("[2,4,9,7]", "[6,4,3,2]", "strides=[2,3], pads=[1,0,2,1]"), 1, 2},
    {"convolution by taps", C1("[2,3,31]", "[5,3,4]", "dilations=[3], pads=[4,1]"), 1, 2},
    {"convolution by taps", C1("[1,2,5,7,6]", "[4,2,2,3,2]", "pads=[0,1,2,1,1,0]"), 1, 2},
    {"convolution by taps", C2("[2,4,9,7]", "[6,2,3,3]", "group=2"), 1, 0},
    {"convolution by taps", C2("[2,4,9,7]", "[6,4,1,1]", ""), 1, 0},
    {"kernel in blocks", C2("[2,4,11,9]", "[6,4,5,5]", "pads=[2,2,2,2]"), 1, 1},
    {"kernel in blocks", C2("[1,4,15,13]", "[6,4,3,7]", "pads=[2,0,1,3], strides=[2,3]"), 1, 1},
    {"kernel in blocks", C1("[2,3,40]", "[5,3,8]", "dilations=[2], strides=[2], pads=[7,6]"), 1, 1},
    {"kernel in blocks", C1("[2,3,40]", "[5,3,8]", "strides=[2]"), 1, 0},
    {"kernel in blocks", C2("[2,4,11,9]", "[6,4,3,3]", ""), 1, 0},
    {"stride to phases", C2("[2,4,11,9]", "[6,4,3,3]", "pads=[1,1,1,1], strides=[2,2]"), 1, 1},
    {"stride to phases", C2("[1,4,13,10]", "[6,2,5,3]", "pads=[3,1,2,0], strides=[3,1], group=2"),
     1, 1},
    {"stride to phases", C1("[2,1,53]", "[5,1,10]", "strides=[5]"), 1, 1},
    {"stride to phases", C1("[2,3,41]", "[5,3,3]", "strides=[4], pads=[5,2]"), 1, 1},
    {"stride to phases", C1("[2,3,41]", "[5,3,3]", "strides=[4], dilations=[2]"), 1, 0},
    {"batch to map", C2("[4,4,7,9]", "[6,4,3,3]", "pads=[1,1,1,1]"), 1, 8},
    {"batch to map", C2("[3,4,7,9]", "[6,4,3,4]", "pads=[2,0,1,1], strides=[2,3]"), 1, 2},
    {"batch to map", C2("[2,4,9,11]", "[6,4,3,3]", "dilations=[2,3], strides=[3,1]"), 1, 2},
    {"batch to map", C1("[2,4,9]", "[6,2,3]", "pads=[0,6], group=2, strides=[4]"), 1, 1},
    {"batch to map", C2("[1,4,7,9]", "[6,4,3,3]", "pads=[1,1,1,1]"), 1, 0},
    {"map to batch", C2("[1,4,8,9]", "[6,4,3,3]", "pads=[1,1,1,1]"), 1, 3},
    {"map to batch", C2("[1,4,7,11]", "[6,4,3,3]", "pads=[1,1,1,1]"), 1, 0},
    {"pointwise to matrix", C2("[2,4,7,9]", "[6,4,1,1]", "strides=[2,3]"), 1, 1},
    {"pointwise to matrix", C1("[2,4,9]", "[6,2,1]", "group=2"), 1, 1},
    {"pointwise to matrix", C2("[2,4,7,9]", "[6,4,1,1]", "pads=[0,1,0,0]"), 1, 0},
    {"windows to matrix",
     C2("[2,4,9,11]", "[6,2,3,2]", "dilations=[2,3], strides=[1,2], pads=[2,1,0,2], group=2"), 1,
     1},
    {"windows to matrix", C2("[1,3,7,9]", "[6,3,3,3]", "pads=[1,1,1,1]"), 1, 1},
    {"windows to matrix", C1("[2,3,31]", "[5,3,4]", "dilations=[3], pads=[4,1]"), 1, 1},
    {"windows to matrix", C1("[1,2,5,7,6]", "[4,2,2,3,2]", "pads=[0,1,2,1,1,0]"), 1, 1},
    {"windows to matrix", C2("[2,4,7,9]", "[6,4,1,1]", ""), 1, 0},
    {"transposed to sub", T2("[2,4,5,6]", "[4,6,4,4]", "strides=[2,2], pads=[1,1,1,1]"), 1, 1},
    {"transposed to sub",
     T2("[1,4,5,6]", "[4,3,3,2]", "strides=[2,3], pads=[0,1,1,0], output_padding=[1,2], group=2"),
     1, 1},
    {"transposed to sub", T2("[2,4,5,6]", "[4,6,3,3]", "pads=[1,0,2,1]"), 1, 1},
    {"transposed to sub", T2("[2,4,5,6]", "[4,6,3,3]", "dilations=[2,1]"), 1, 0},
    {"transposed to sel", T2("[2,4,5,6]", "[4,6,4,4]", "strides=[2,2], pads=[1,1,1,1]"), 1, 1},
    {"transposed to sel",
     T2("[1,4,5,6]", "[4,6,5,2]", "strides=[2,3], pads=[3,1,1,0], output_padding=[1,2]"), 1, 1},
    {"transposed to sel", T2("[1,4,5,6]", "[4,3,3,3]", "group=2, strides=[2,2]"), 1, 0},
    {"fast bilinear: F(2,3) along axis 0, F", C2("[2,4,9,7]", "[6,4,3,3]", "pads=[1,1,1,1]"), 1, 1},
    {"fast bilinear by rows", C2("[2,4,9,7]", "[6,4,3,3]", "pads=[1,1,1,1]"), 1, 8},
    {"fast bilinear", C2("[1,3,11,13]", "[6,3,5,2]", "pads=[2,0,1,1], dilations=[1,3]"), 1, 8},
    {"fast bilinear", C1("[2,3,37]", "[5,3,5]", "pads=[2,2]"), 1, 3},
    {"fast bilinear", C1("[2,3,37]", "[5,3,3]", "pads=[4,1], dilations=[2]"), 1, 4},
    {"fast bilinear", C1("[1,2,6,7,6]", "[4,2,3,3,2]", "pads=[1,1,0,1,1,1]"), 1, 8},
    {"fast bilinear", C2("[2,4,9,15]", "[6,4,1,3]", "strides=[1,2], pads=[0,1,0,1]"), 1, 4},
    {"fast bilinear", C1("[1,3,61]", "[5,3,10]", "strides=[4], pads=[3,2]"), 1, 3},
    {"fast bilinear", C2("[2,4,13,15]", "[6,4,3,5]", "strides=[2,3], pads=[1,2,1,0]"), 1, 4},
    {"fast bilinear", C1("[2,4,33]", "[6,4,3]", "strides=[2], dilations=[2]"), 1, 0},
    {"fast bilinear", C2("[2,4,9,7]", "[6,4,1,2]", "strides=[1,2]"), 1, 0},
    {"fast bilinear", C2("[2,4,9,7]", "[6,2,3,3]", "group=2"), 1, 0},
    {"frames", C1("[2,4,6,7,6]", "[4,4,3,3,2]", "pads=[1,1,0,1,1,1], strides=[2,1,1]"), 1, 2},
    {"frames", C1("[1,4,6,7,6]", "[4,2,2,3,2]", "pads=[1,1,0,0,1,1], dilations=[3,1,2], group=2"),
     1, 2},
    {"frames", C2("[2,4,9,7]", "[6,4,3,3]", "pads=[1,1,1,1]"), 1, 2},
    {"frames", C2("[2,4,9,7]", "[6,4,1,3]", ""), 1, 0},
    {"groups merged", C2("[2,12,9,7]", "[6,2,3,3]", "pads=[1,1,1,1], group=6"), 1, 3},
    {"groups merged", C1("[2,8,9]", "[16,1,3]", "group=8, strides=[2]"), 1, 3},
    {"groups merged", C2("[2,4,9,7]", "[6,4,3,3]", ""), 1, 0},
    {"groups split", C2("[2,12,9,7]", "[6,2,3,3]", "pads=[1,1,1,1], group=6"), 1, 3},
    {"groups split", C2("[2,4,9,7]", "[6,4,3,3]", ""), 1, 0},
    {"convolutions joined",
     "graph g (x: f32[2,4,9,8], z: f32[2,4,9,8], v: f32[6,4,3,3], w: f32[3,4,3,3], b: f32[6], c: "
     "f32[3]) -> (p, q) {\n p = Conv(x, v, b) {pads=[1,1,1,1]}\n"
     " q = Conv(z, w, c) {pads=[1,1,1,1]}\n}",
     2, 1},
    {"convolutions joined",
     "graph g (x: f32[2,4,9,8], v: f32[4,4,3,3], w: f32[3,4,3,3]) -> (q) {\n"
     " p = Conv(x, v) {pads=[1,1,1,1]}\n q = Conv(p, w) {pads=[1,1,1,1]}\n}",
     1, 0},
    {"pool as", P("AveragePool", "kernel_shape=[3,2], strides=[2,1], pads=[1,0,1,1]"), 1, 1},
    {"pool as", P("AveragePool", "kernel_shape=[3,3], pads=[1,1,1,1], count_include_pad=1"), 1, 1},
    {"pool as", P("AveragePool", "kernel_shape=[3,3], strides=[2,2], ceil_mode=1"), 1, 0},
    {"pool as", P("MaxPool", "kernel_shape=[3,3]"), 1, 0},
    {"pool into",
     "graph g (x: f32[2,4,11,8], v: f32[6,4,3,2], b: f32[6]) -> (q) {\n"
     " p = Conv(x, v, b) {pads=[1,0,1,2], strides=[2,1]}\n"
     " q = AveragePool(p) {kernel_shape=[2,3], strides=[2,2]}\n}",
     1, 1},
    {"pool into",
     "graph g (x: f32[2,4,11,8], v: f32[6,4,3,2], b: f32[6]) -> (q) {\n"
     " p = Conv(x, v, b)\n q = AveragePool(p) {kernel_shape=[2,3], pads=[1,1,0,0]}\n}",
     1, 0},
    {"convolution over up",
     U("1.0, 1.0, 2.0, 2.0", "asymmetric", "floor", "[6,4,3,3]", "pads=[1,1,1,1]"), 1, 1},
    {"convolution over up",
     U("1.0, 1.0, 2.0, 3.0", "asymmetric", "floor", "[6,4,5,2]", "pads=[2,0,1,3]"), 1, 1},
    {"convolution over up",
     U("1.0, 1.0, 3.0, 1.0", "half_pixel", "round_prefer_floor", "[6,2,4,3]", "group=2"), 1, 1},
    {"convolution over up",
     U("1.0, 1.0, 2.0, 2.0", "asymmetric", "floor", "[6,4,3,3]", "strides=[2,2]"), 1, 0},
    {"parallel products",
     "graph g (x: f32[2,3,5,4], v: f32[4,7], w: f32[4,2], u: f32[4,3]) -> (p, q, r) {\n"
     " p = MatMul(x, v)\n q = MatMul(x, w)\n r = MatMul(x, u)\n}",
     1, 1},
    {"parallel products",
     "graph g (x: f32[5,4], v: f32[4,7], w: f32[7,5]) -> (p, q) {\n"
     " p = MatMul(x, v)\n q = MatMul(w, x)\n}",
     1, 0},
    {"products batched",
     "graph g (x: f32[2,5,4], y: f32[2,5,4], v: f32[4,7], w: f32[4,7]) -> (p, q) {\n"
     " p = MatMul(x, v)\n q = MatMul(y, w)\n}",
     2, 1},
    {"products batched",
     "graph g (x: f32[2,5,4], v: f32[4,4], w: f32[4,4]) -> (q) {\n"
     " p = MatMul(x, v)\n q = MatMul(p, w)\n}",
     1, 0},
    {"products bracketed",
     "graph g (x: f32[2,5,4], v: f32[4,9], w: f32[9,3]) -> (q) {\n"
     " p = MatMul(x, v)\n q = MatMul(p, w)\n}",
     1, 1},
    {"products bracketed",
     "graph g (x: f32[3,9], y: f32[9,2], z: f32[2,9]) -> (q) {\n"
     " p = MatMul(y, z)\n q = MatMul(x, p)\n}",
     3, 1},
    {"products bracketed",
     "graph g (x: f32[2,50,40], v: f32[40,2], w: f32[2,40]) -> (q) {\n"
     " p = MatMul(x, v)\n q = MatMul(p, w)\n}",
     1, 0},
    /* What is between is a column to one and a row to the other. */
    {"products bracketed",
     "graph g (x: f32[2,3,3], v: f32[3], w: f32[3,3]) -> (q) {\n"
     " p = MatMul(x, v)\n q = MatMul(p, w)\n}",
     1, 0},
    /* What is made of the batch is a matrix to the other. */
    {"products bracketed",
     "graph g (x: f32[9,3], y: f32[3,3,3], z: f32[3]) -> (q) {\n"
     " p = MatMul(y, z)\n q = MatMul(x, p)\n}",
     2, 0},
    {"products bracketed",
     "graph g (x: f32[5,4], v: f32[4,9], w: f32[9]) -> (q) {\n"
     " p = MatMul(x, v)\n q = MatMul(p, w)\n}",
     1, 1},
    {"sum of products of one",
     "graph g (x: f32[2,5,4], w: f32[4,6], a: f32[4,2], b: f32[2,6]) -> (y) {\n"
     " p = MatMul(x, w)\n q = MatMul(x, a)\n r = MatMul(q, b)\n y = Add(p, r)\n}",
     1, 1},
    {"sum of products of one",
     "graph g (x: f32[2,5,4], z: f32[2,5,4], w: f32[4,6], v: f32[4,6]) -> (y) {\n"
     " p = MatMul(x, w)\n q = MatMul(z, v)\n y = Add(p, q)\n}",
     2, 0},
    {"sum of products by one",
     "graph g (x: f32[2,5,4], z: f32[2,5,4], w: f32[4,6]) -> (y) {\n"
     " p = MatMul(x, w)\n q = MatMul(z, w)\n y = Add(p, q)\n}",
     2, 1},
    {"common factor",
     "graph g (x: f32[2,4,5,6], s: f32[2,4,1,1]) -> (y) {\n m = Mul(s, x)\n y = Add(m, x)\n}", 2,
     1},
    {"common factor",
     "graph g (x: f32[2,4,5,6], s: f32[2,4,1,1], t: f32[1,1,5,1]) -> (y) {\n m = Mul(s, x)\n"
     " n = Mul(x, t)\n y = Add(m, n)\n}",
     3, 1},
    {"common factor",
     "graph g (x: f32[2,4,5,6], s: f32[2,4,1,1], z: f32[2,4,5,6]) -> (y) {\n m = Mul(s, x)\n"
     " y = Add(m, z)\n}",
     3, 0},
    {"Strassen", "graph g (x: f32[10,8], w: f32[8,12]) -> (y) {\n y = MatMul(x, w)\n}", 1, 1},
    {"Strassen", "graph g (x: f32[10,9], w: f32[9,12]) -> (y) {\n y = MatMul(x, w)\n}", 1, 0},
    {"convolutions composed",
     "graph g (x: f32[2,3,9,8], v: f32[6,3,3,3], b: f32[6], w: f32[2,6,1,1], c: f32[2]) -> (y) {\n"
     " p = Conv(x, v, b) {pads=[1,1,0,1], strides=[2,1]}\n y = Conv(p, w, c)\n}",
     1, 1},
    {"convolutions composed",
     "graph g (x: f32[2,3,9,8], v: f32[6,3,1,1], b: f32[6], w: f32[2,6,3,2], c: f32[2]) -> (y) {\n"
     " p = Conv(x, v, b)\n y = Conv(p, w, c) {strides=[2,1], dilations=[1,2]}\n}",
     1, 1},
    {"convolutions composed",
     "graph g (x: f32[2,3,9,8], v: f32[6,3,1,1], w: f32[2,6,3,2]) -> (y) {\n"
     " p = Conv(x, v)\n y = Conv(p, w) {pads=[1,1,1,0]}\n}",
     1, 1},
    {"convolutions composed",
     "graph g (x: f32[2,3,9,8], v: f32[6,3,1,1], b: f32[6], w: f32[2,6,3,2]) -> (y) {\n"
     " p = Conv(x, v, b)\n y = Conv(p, w) {pads=[1,1,1,0]}\n}",
     1, 0},
    {"convolution over Concat",
     "graph g (x: f32[2,3,9,8], z: f32[2,5,9,8], w: f32[4,8,3,3], b: f32[4]) -> (y) {\n"
     " p = Concat(x, z) {axis=1}\n y = Conv(p, w, b) {pads=[1,1,1,1]}\n}",
     2, 1},
    {"convolution over Concat",
     "graph g (x: f32[2,3,4,8], z: f32[2,3,5,8], w: f32[4,3,3,3]) -> (y) {\n"
     " p = Concat(x, z) {axis=2}\n y = Conv(p, w) {pads=[1,1,1,1]}\n}",
     2, 0},
    {"convolution over Add",
     "graph g (x: f32[2,3,9,8], z: f32[2,3,9,8], w: f32[4,3,3,3], b: f32[4]) -> (y) {\n"
     " p = Add(x, z)\n y = Conv(p, w, b) {pads=[1,1,1,1]}\n}",
     2, 1},
    {"sum of convolutions: one tensor",
     "graph g (x: f32[2,3,9,8], v: f32[4,3,3,3], b: f32[4], w: f32[4,3,1,1]) -> (y) {\n"
     " p = Conv(x, v, b) {pads=[1,1,1,1]}\n q = Conv(x, w)\n y = Add(p, q)\n}",
     1, 1},
    {"sum of convolutions: one kernel",
     "graph g (x: f32[2,3,9,8], z: f32[2,3,9,8], v: f32[4,3,3,3], b: f32[4]) -> (y) {\n"
     " p = Conv(x, v, b) {pads=[1,1,1,1]}\n q = Conv(z, v, b) {pads=[1,1,1,1]}\n"
     " y = Add(p, q)\n}",
     2, 1},
    /* Spread over the other's rows it would be another map. */
    {"sum of convolutions",
     "graph g (x: f32[2,3,1,8], z: f32[2,3,9,8], v: f32[4,3,3,3]) -> (y) {\n"
     " p = Conv(x, v) {pads=[1,1,1,1]}\n q = Conv(z, v) {pads=[1,1,1,1]}\n y = Add(p, q)\n}",
     2, 0},
    {"sum of convolutions: over",
     "graph g (x: f32[2,3,9,8], z: f32[2,5,9,8], v: f32[4,3,3,3], w: f32[4,5,3,3], b: f32[4]) -> "
     "(y) "
     "{\n p = Conv(x, v) {pads=[1,1,1,1]}\n q = Conv(z, w, b) {pads=[1,1,1,1]}\n"
     " y = Add(p, q)\n}",
     2, 1},
    {"sum of convolutions: of its own",
     "graph g (x: f32[2,4,9,8], v: f32[4,2,3,3]) -> (y) {\n"
     " p = Conv(x, v) {pads=[1,2,1,2], group=2, dilations=[1,2]}\n y = Add(x, p)\n}",
     1, 1},
    {"sum of convolutions",
     "graph g (x: f32[2,4,9,8], v: f32[4,4,3,3], w: f32[4,4,3,3]) -> (y) {\n"
     " p = Conv(x, v) {pads=[1,1,1,1]}\n q = Conv(p, w) {pads=[2,2,2,2], dilations=[2,2]}\n"
     " y = Add(q, p)\n}",
     1, 1},
    {"sum of convolutions",
     "graph g (x: f32[2,4,9,8], z: f32[2,4,9,8], v: f32[4,4,3,3], w: f32[4,4,5,5]) -> (y) {\n"
     " p = Conv(x, v) {pads=[1,1,1,1]}\n q = Conv(z, w) {pads=[2,2,2,2]}\n y = Add(q, p)\n}",
     2, 0},
};

static void every_sample(void **state) {
    (void)state;
    int wrong = 0;
    for (size_t i = 0; i < sizeof samples / sizeof *samples; i++) {
        const sample *s = &samples[i];
        wrong += !test_derivation(s->derivation, s->graph, s->activations, s->mutants);
    }
    assert_int_equal(wrong, 0);
}

static bool turns(const po_node *n, const int64_t *perm) {
    uint32_t count;
    const int64_t *p = n && n->op == PO_OP_Transpose ? po_node_ints(n, "perm", &count) : NULL;
    return p && count == 4 && memcmp(p, perm, 4 * sizeof *perm) == 0;
}

static void see_rows(void *user, po_ctx *ctx, const po_graph *from, const po_mutant *mutant) {
    static const char name[] = "fast bilinear by rows";
    const po_graph *m = mutant->graph;
    uint32_t *found = user;
    (void)ctx;
    (void)from;
    if (strncmp(mutant->name, name, sizeof name - 1) != 0)
        return;
    po_node_id conv = 0;
    while (m->nodes[conv].removed || m->nodes[conv].op != PO_OP_Conv)
        conv++;
    const po_node *c = &m->nodes[conv];
    const po_use *use = po_graph_sole_use(m, c->out[0]);
    assert_true(turns(po_graph_producer(m, c->in[0]), (const int64_t[]){0, 3, 1, 2}));
    assert_non_null(use);
    assert_true(turns(&m->nodes[use->node], (const int64_t[]){0, 2, 3, 1}));
    ++*found;
}

/* Right before and behind the products' convolution by rows: of rank 4, from channels last and
 * back, also where there is one sample and one axis. The runtime joins these with its changes of
 * layout.
 */
static void rows_turn_as_the_runtime_joins(void **state) {
    (void)state;
    static const char *const graphs[] = {
        "graph g (x: f32[1,4,16], w: f32[6,4,5]) -> (y) {\n y = Conv(x, w) {pads=[2,2]}\n}",
        "graph g (x: f32[1,4,9,8], w: f32[6,4,3,3]) -> (y) {\n y = Conv(x, w) {pads=[1,1,1,1]}\n}"};
    for (size_t k = 0; k < sizeof graphs / sizeof *graphs; k++) {
        uint32_t found = 0;
        test_each_mutant(graphs[k], 1, see_rows, &found);
        assert_true(found > 0);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_turn_as_the_runtime_joins),
        cmocka_unit_test(every_sample),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
