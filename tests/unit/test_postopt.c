/* Every rewrite of postopt on a small graph: it fires where it should, does not where it must not,
 * and the function stays the same in float64. */
#include "postopt/postopt.h"
#include "rewriting.h"
#include "samples.h"
#include "unit.h"

#include <math.h>

#define ARITHMETIC PO_LEFTOVER_ARITHMETIC
#define AS_CONV    PO_LEFTOVER_CONV

static const test_sample samples[] = {
    {"batch norm into conv",
     "graph g (x: f32[1,4,6,6]) -> (y) {\n"
     " c = Conv(x, w: f32[8,4,3,3] random 1, b: f32[8] random 2) {pads=[1,1,1,1]}\n"
     " y = BatchNormalization(c, s: f32[8] random 3, t: f32[8] random 4, m: f32[8] random 5,\n"
     "   v: f32[8] {1.0})\n}",
     "BatchNormalization", "Conv", 1, ARITHMETIC},
    {"scalars into conv, either operand order",
     "graph g (x: f32[1,4,6,6]) -> (y) {\n"
     " c = Conv(x, w: f32[8,4,3,3] random 1) {pads=[1,1,1,1]}\n"
     " m = Mul(s: f32[1] {0.3}, c)\n a = Add(m, t: f32[] {1.5})\n"
     " d = Sub(u: f32[1,8,1,1] random 7, a)\n y = Div(d, v: f32[8,1,1] {3.0})\n}",
     "Mul Add Sub Div", "Conv", 1, ARITHMETIC},
    {"grouped conv and transposed conv",
     "graph g (x: f32[1,4,6,6]) -> (y) {\n"
     " c = Conv(x, w: f32[8,2,3,3] random 1) {group=2}\n m = Mul(c, s: f32[8,1,1] random 2)\n"
     " t = ConvTranspose(m, u: f32[8,3,3,3] random 3) {group=2, strides=[2,2], pads=[1,1,1,1]}\n"
     " y = Mul(t, q: f32[6,1,1] random 4)\n}",
     "Mul", "Conv", 1, ARITHMETIC},
    {"scale ahead past padding, shift not",
     "graph g (x: f32[1,4,6,6]) -> (y) {\n"
     " r = Tanh(x)\n m = Mul(r, s: f32[1] {0.5})\n a = Add(m, t: f32[1] {0.25})\n"
     " y = Conv(a, w: f32[4,1,3,3] random 1) {pads=[1,1,1,1], group=4}\n}",
     "Mul", "Add", 1, ARITHMETIC},
    {"the same as a depthwise convolution",
     "graph g (x: f32[1,4,6,6]) -> (y) {\n"
     " r = Tanh(x)\n m = Mul(r, s: f32[1] {0.5})\n a = Add(m, t: f32[1] {0.25})\n"
     " y = Conv(a, w: f32[4,1,3,3] random 1) {pads=[1,1,1,1], group=4}\n}",
     "Mul Add", "Conv", 2, AS_CONV},
    {"shift ahead into an unpadded conv",
     "graph g (x: f32[1,4,6,6]) -> (y) {\n"
     " r = Tanh(x)\n m = Mul(r, s: f32[4,1,1] random 5)\n a = Add(m, t: f32[4,1,1] random 6)\n"
     " y = Conv(a, w: f32[6,2,3,3] random 1, b: f32[6] random 2) {group=2}\n}",
     "Mul Add", "Conv", 1, AS_CONV},
    {"two readers, both take it",
     "graph g (x: f32[1,4,6,6]) -> (y, z) {\n"
     " r = Tanh(x)\n a = Add(r, t: f32[1] {0.25})\n"
     " y = Conv(a, w: f32[6,4,1,1] random 1)\n z = Conv(a, v: f32[6,4,3,3] random 2)\n}",
     "Add", "Conv", 2, AS_CONV},
    {"matmul keeps its shift as Add",
     "graph g (x: f32[2,5,4]) -> (y) {\n"
     " m = MatMul(x, w: f32[4,6] random 1)\n s = Mul(m, a: f32[6] random 2)\n"
     " t = Add(s, b: f32[6] random 3)\n u = Mul(t, c: f32[] {0.1})\n y = Tanh(u)\n}",
     "Mul", "Add", 1, ARITHMETIC},
    {"gemm both ways",
     "graph g (x: f32[5,4]) -> (y) {\n"
     " r = Tanh(x)\n q = Add(r, a: f32[4] random 4)\n"
     " m = Gemm(q, w: f32[6,4] random 1, b: f32[6] random 2) {transB=1, alpha=0.5}\n"
     " y = Mul(m, s: f32[6] random 3)\n}",
     "Mul Add", "Gemm", 1, ARITHMETIC},
    {"a gemm whose bias is a column stays",
     "graph g (x: f32[6,4]) -> (y) {\n"
     " m = Gemm(x, w: f32[4,6] random 1, b: f32[6,1] random 2)\n"
     " y = Mul(m, s: f32[6] random 3)\n}",
     "", "Mul", 1, ARITHMETIC},
    {"past a mean",
     "graph g (x: f32[1,4,6,6]) -> (y, z) {\n"
     " r = Tanh(x)\n a = Add(r, t: f32[4,1,1] random 1)\n p = GlobalAveragePool(a)\n"
     " y = Conv(p, w: f32[6,4,1,1] random 2)\n z = Relu(a)\n}",
     "", "Add", 1, ARITHMETIC},
    {"hard-swish as exporters write it",
     "graph g (x: f32[1,16,6,6]) -> (y) {\n"
     " c = Conv(x, w: f32[16,16,1,1] random 1)\n m = Mul(s: f32[1] {0.7}, c)\n"
     " z = Add(m, t: f32[1] {0.2})\n p = Add(z, three: f32[] {3.0})\n"
     " q = Clip(p, lo: f32[] {0.0}, hi: f32[] {6.0})\n r = Mul(z, q)\n"
     " h = Div(r, six: f32[] {6.0})\n u = Mul(a: f32[1] {1.3}, h)\n"
     " v = Add(u, b: f32[1] {-0.4})\n y = Conv(v, k: f32[8,16,1,1] random 3)\n}",
     "Clip Div Add", "HardSigmoid", 1, AS_CONV},
    {"HardSwish as a gate",
     "pir 1 ir_version=8 opset=14\ngraph g (x: f32[1,8,6,6]) -> (y) {\n"
     " c = Conv(x, w: f32[8,8,1,1] random 1)\n h = HardSwish(c)\n"
     " y = Conv(h, k: f32[8,8,3,3] random 3)\n}",
     "HardSwish", "HardSigmoid", 1, AS_CONV},
    {"an affine chain that nothing takes is written short",
     "graph g (x: f32[1,4,6,6]) -> (y, z) {\n"
     " r = Relu(x)\n m = Mul(r, s: f32[4,1,1] random 1)\n a = Add(m, t: f32[1] {0.25})\n"
     " n = Neg(a)\n b = Sub(n, u: f32[4,1,1] random 2)\n c = Div(b, v: f32[] {0.3})\n"
     " y = Tanh(c)\n d = Mul(r, o: f32[] {0.5})\n e = Add(d, p: f32[] {0.1})\n z = Tanh(e)\n}",
     "Neg Sub Div", "Add", 2, ARITHMETIC},
    {"a clip without a line stays",
     "graph g (x: f32[1,4,6,6]) -> (y) {\n"
     " q = Clip(x, lo: f32[] {0.0}, hi: f32[] {6.0})\n y = Mul(q, x)\n}",
     "HardSigmoid", "Clip", 1, ARITHMETIC},
    {"a sum that only a norm reads",
     "graph g (x: f32[2,5,4], z: f32[2,5,4]) -> (y) {\n a = Add(x, z)\n"
     " m = ReduceMean(a) {axes=[-1]}\n d = Sub(a, m)\n p = Pow(d, two: f32[] {2.0})\n"
     " v = ReduceMean(p) {axes=[-1]}\n e = Add(v, eps: f32[] {0.00001})\n s = Sqrt(e)\n"
     " n = Div(d, s)\n o = Mul(n, g: f32[4] random 1)\n y = Add(o, b: f32[4] random 2)\n}",
     "", "Sum", 1, ARITHMETIC},
    {"a sum that others read too",
     "graph g (x: f32[2,5,4], z: f32[2,5,4]) -> (y, t) {\n a = Add(x, z)\n t = Tanh(a)\n"
     " m = ReduceMean(a) {axes=[-1]}\n y = Sub(a, m)\n}",
     "Sum", "Add", 1, ARITHMETIC},
    {"a gated linear unit of whole blocks",
     "graph g (x: f32[1,4,20]) -> (y) {\n"
     " c = Conv(x, w: f32[48,4,3] random 1, b: f32[48] random 2) {pads=[1,1]}\n r = Relu(c)\n"
     " p, q = Split(r, s: i64[2] {16, 32}) {axis=1}\n g = Sigmoid(q)\n"
     " y = Concat(p, g) {axis=1}\n}",
     "Split", "Conv", 2, ARITHMETIC},
    {"parts of blocks stay together",
     "graph g (x: f32[1,4,20]) -> (y) {\n"
     " c = Conv(x, w: f32[48,4,3] random 1) {pads=[1,1]}\n"
     " p, q = Split(c, s: i64[2] {20, 28}) {axis=1}\n g = Sigmoid(q)\n"
     " y = Concat(p, g) {axis=1}\n}",
     "", "Conv", 1, ARITHMETIC},
    {"one-hot rows times a table",
     "graph g (x: i64[2,60]) -> (y) {\n"
     " h = OneHot(x, d: i64[] {3}, v: f32[2] {0.0, 1.0}) {axis=-1}\n"
     " m = MatMul(h, t: f32[3,4] random 1)\n a = Add(b: f32[4] random 2, m)\n"
     " e = Div(a, r: f32[] {1.4142135})\n f = Erf(e)\n o = Add(f, u: f32[] {1.0})\n"
     " p = Mul(a, o)\n y = Mul(p, q: f32[] {0.5})\n}",
     "OneHot MatMul Erf Mul Gelu", "Gather", 1, ARITHMETIC},
    {"one-hot of other marks stays",
     "graph g (x: i64[2,60]) -> (y) {\n"
     " h = OneHot(x, d: i64[] {3}, v: f32[2] {0.5, 1.0}) {axis=-1}\n"
     " y = MatMul(h, t: f32[3,4] random 1)\n}",
     "Gather", "OneHot", 1, ARITHMETIC},
    {"functions of a large table stay",
     "graph g (x: i64[4]) -> (y) {\n g = Gather(t: f32[30,4] random 1, x)\n y = Tanh(g)\n}", "",
     "Tanh", 1, ARITHMETIC},
    {"functions of different rows stay",
     "graph g (x: i64[40], z: i64[40]) -> (y) {\n g = Gather(t: f32[4,4] random 1, x)\n"
     " h = Gather(t, z)\n y = Mul(g, h)\n}",
     "", "Mul", 1, ARITHMETIC},
    {"pointwise after pointwise",
     "graph g (x: f32[1,12,5,5]) -> (y) {\n"
     " a = Conv(x, w: f32[12,12,1,1] random 1, b: f32[12] random 2)\n"
     " y = Conv(a, v: f32[3,12,1,1] random 3, c: f32[3] random 4)\n}",
     "", "Conv", 1, ARITHMETIC},
    {"padded conv after pointwise with bias stays",
     "graph g (x: f32[1,4,5,5]) -> (y) {\n"
     " a = Conv(x, w: f32[12,4,1,1] random 1, b: f32[12] random 2)\n"
     " y = Conv(a, v: f32[3,12,3,3] random 3) {pads=[1,1,1,1]}\n}",
     "", "Conv", 2, ARITHMETIC},
    {"padded conv after pointwise without bias",
     "graph g (x: f32[1,4,5,5]) -> (y) {\n"
     " a = Conv(x, w: f32[12,4,1,1] random 1)\n"
     " y = Conv(a, v: f32[3,12,3,3] random 3) {pads=[1,1,1,1]}\n}",
     "", "Conv", 1, ARITHMETIC},
    {"mean before an expanding conv",
     "graph g (x: f32[1,4,5,5]) -> (y, z) {\n"
     " a = Conv(x, w: f32[12,4,1,1] random 1, b: f32[12] random 2)\n"
     " y = GlobalAveragePool(a)\n z = Tanh(a)\n}",
     "", "Conv", 2, ARITHMETIC},
    {"gated residual",
     "graph g (x: f32[1,4,5,5]) -> (y) {\n"
     " p = GlobalAveragePool(x)\n s = Sigmoid(p)\n m = Mul(x, s)\n y = Add(x, m)\n}",
     "", "Mul", 1, ARITHMETIC},
    {"transposed convs without overlap",
     "graph g (x: f32[1,6,5,5]) -> (y) {\n"
     " a = ConvTranspose(x, w: f32[6,6,2,2] random 1, b: f32[6] random 2) {strides=[2,2]}\n"
     " r = Relu(a)\n t = ConvTranspose(r, v: f32[6,1,2,2] random 3) {strides=[2,2]}\n"
     " u = Add(t, c: f32[1,1,1,1] {0.3})\n y = Sigmoid(u)\n}",
     "ConvTranspose", "DepthToSpace", 1, ARITHMETIC},
    {"conv over nearest upsampling",
     "graph g (x: f32[1,4,5,6]) -> (y) {\n"
     " u = Resize(x, r: f32[0] {}, s: f32[4] {1.0, 1.0, 2.0, 2.0})\n"
     "   {mode=\"nearest\", coordinate_transformation_mode=\"asymmetric\", "
     "nearest_mode=\"floor\"}\n"
     " y = Conv(u, w: f32[3,4,3,3] random 1, b: f32[3] random 2) {pads=[1,1,1,1]}\n}",
     "Resize", "DepthToSpace", 1, ARITHMETIC},
    {"5x5 over upsampling by three",
     "graph g (x: f32[1,2,4,5]) -> (y) {\n"
     " u = Resize(x, r: f32[0] {}, s: f32[4] {1.0, 1.0, 3.0, 3.0})\n"
     "   {mode=\"nearest\", coordinate_transformation_mode=\"asymmetric\", "
     "nearest_mode=\"floor\"}\n"
     " y = Conv(u, w: f32[3,2,5,5] random 1) {pads=[2,2,2,2]}\n}",
     "Resize", "DepthToSpace", 1, ARITHMETIC},
    {"3x3 over upsampling by four, by differences",
     "graph g (x: f32[2,32,5,6]) -> (y) {\n"
     " u = Resize(x, r: f32[0] {}, s: f32[4] {1.0, 1.0, 4.0, 4.0})\n"
     "   {mode=\"nearest\", coordinate_transformation_mode=\"asymmetric\", "
     "nearest_mode=\"floor\"}\n"
     " y = Conv(u, w: f32[3,32,3,3] random 1, b: f32[3] random 2) {pads=[1,1,1,1]}\n}",
     "Resize", "MatMul", 1, ARITHMETIC},
    {"by differences, a map of any size",
     "graph g (x: f32[N,32,H,W]) -> (y) {\n"
     " u = Resize(x, r: f32[0] {}, s: f32[4] {1.0, 1.0, 4.0, 4.0})\n"
     "   {mode=\"nearest\", coordinate_transformation_mode=\"asymmetric\", "
     "nearest_mode=\"floor\"}\n"
     " y = Conv(u, w: f32[3,32,3,3] random 1, b: f32[3] random 2) {pads=[1,1,1,1]}\n}",
     "Resize", "MatMul", 1, ARITHMETIC},
    {"by differences, a map of any width",
     "graph g (x: f32[N,32,4,W]) -> (y) {\n"
     " u = Resize(x, r: f32[0] {}, s: f32[4] {1.0, 1.0, 4.0, 4.0})\n"
     "   {mode=\"nearest\", coordinate_transformation_mode=\"asymmetric\", "
     "nearest_mode=\"floor\"}\n"
     " y = Conv(u, w: f32[3,32,3,3] random 1, b: f32[3] random 2) {pads=[1,1,1,1]}\n}",
     "Resize", "MatMul", 1, ARITHMETIC},
    {"5x5 over upsampling by four, by differences",
     "graph g (x: f32[1,96,3,4]) -> (y) {\n"
     " u = Resize(x, r: f32[0] {}, s: f32[4] {1.0, 1.0, 4.0, 4.0})\n"
     "   {mode=\"nearest\", coordinate_transformation_mode=\"asymmetric\", "
     "nearest_mode=\"floor\"}\n"
     " y = Conv(u, w: f32[2,96,5,5] random 1) {pads=[2,2,2,2]}\n}",
     "Resize", "MatMul", 1, ARITHMETIC},
    {"upsampled twice, by differences",
     "graph g (x: f32[1,32,1,4]) -> (y, z) {\n"
     " u = Resize(x, r: f32[0] {}, s: f32[4] {1.0, 1.0, 3.0, 3.0})\n"
     "   {mode=\"nearest\", coordinate_transformation_mode=\"asymmetric\", "
     "nearest_mode=\"floor\"}\n"
     " v = Resize(u, q: f32[0] {}, t: f32[4] {1.0, 1.0, 2.0, 2.0})\n"
     "   {mode=\"nearest\", coordinate_transformation_mode=\"asymmetric\", "
     "nearest_mode=\"floor\"}\n"
     " y = Conv(v, w: f32[3,32,3,3] random 1) {pads=[1,1,1,1]}\n z = Tanh(u)\n}",
     "", "MatMul", 1, ARITHMETIC},
    {"upsampled twice and a gate between",
     "graph g (x: f32[1,4,8,8], z: f32[1,96,4,4]) -> (y) {\n"
     " c = Conv(x, w: f32[96,4,1,1] random 1)\n p = GlobalAveragePool(c)\n s = Sigmoid(p)\n"
     " m = Mul(s, c)\n"
     " u = Resize(z, r: f32[0] {}, k: f32[4] {1.0, 1.0, 2.0, 2.0})\n"
     "   {mode=\"nearest\", coordinate_transformation_mode=\"asymmetric\", "
     "nearest_mode=\"floor\"}\n"
     " a = Add(m, u)\n"
     " v = Resize(a, q: f32[0] {}, t: f32[4] {1.0, 1.0, 2.0, 2.0})\n"
     "   {mode=\"nearest\", coordinate_transformation_mode=\"asymmetric\", "
     "nearest_mode=\"floor\"}\n"
     " y = Conv(v, o: f32[3,96,3,3] random 2, b: f32[3] random 3) {pads=[1,1,1,1]}\n}",
     "Resize", "MatMul", 2, ARITHMETIC},
    {"upsampled twice, with others between",
     "graph g (a: f32[1,96,2,3], b: f32[1,3,4,6]) -> (y) {\n"
     " u = Resize(a, r: f32[0] {}, s: f32[4] {1.0, 1.0, 2.0, 2.0})\n"
     "   {mode=\"nearest\", coordinate_transformation_mode=\"asymmetric\", "
     "nearest_mode=\"floor\"}\n"
     " c = Concat(u, b) {axis=1}\n"
     " v = Resize(c, q: f32[0] {}, t: f32[4] {1.0, 1.0, 2.0, 2.0})\n"
     "   {mode=\"nearest\", coordinate_transformation_mode=\"asymmetric\", "
     "nearest_mode=\"floor\"}\n"
     " y = Conv(v, w: f32[3,99,3,3] random 1, d: f32[3] random 2) {pads=[1,1,1,1]}\n}",
     "Resize", "MatMul", 1, ARITHMETIC},
    {"by differences: channels that fill no block",
     "graph g (x: f32[1,24,5,6]) -> (y) {\n"
     " u = Resize(x, r: f32[0] {}, s: f32[4] {1.0, 1.0, 4.0, 4.0})\n"
     "   {mode=\"nearest\", coordinate_transformation_mode=\"asymmetric\", "
     "nearest_mode=\"floor\"}\n"
     " y = Conv(u, w: f32[3,24,3,3] random 1) {pads=[1,1,1,1]}\n}",
     "MatMul", "DepthToSpace", 1, ARITHMETIC},
    {"by differences: another size",
     "graph g (x: f32[1,32,5,6]) -> (y) {\n"
     " u = Resize(x, r: f32[0] {}, s: f32[4] {1.0, 1.0, 4.0, 4.0})\n"
     "   {mode=\"nearest\", coordinate_transformation_mode=\"asymmetric\", "
     "nearest_mode=\"floor\"}\n"
     " y = Conv(u, w: f32[3,32,3,3] random 1) {pads=[1,1,1,0]}\n}",
     "MatMul", "Resize", 1, ARITHMETIC},
    {"by differences: strided",
     "graph g (x: f32[1,32,5,6]) -> (y) {\n"
     " u = Resize(x, r: f32[0] {}, s: f32[4] {1.0, 1.0, 4.0, 4.0})\n"
     "   {mode=\"nearest\", coordinate_transformation_mode=\"asymmetric\", "
     "nearest_mode=\"floor\"}\n"
     " y = Conv(u, w: f32[3,32,3,3] random 1) {pads=[1,1,1,1], strides=[2,2]}\n}",
     "MatMul", "Resize", 1, ARITHMETIC},
    {"by differences: few products saved",
     "graph g (x: f32[1,32,5,6]) -> (y) {\n"
     " u = Resize(x, r: f32[0] {}, s: f32[4] {1.0, 1.0, 2.0, 2.0})\n"
     "   {mode=\"nearest\", coordinate_transformation_mode=\"asymmetric\", "
     "nearest_mode=\"floor\"}\n"
     " y = Conv(u, w: f32[3,32,3,3] random 1) {pads=[1,1,1,1]}\n}",
     "MatMul", "DepthToSpace", 1, ARITHMETIC},
    {"conv over a concat with upsampled parts",
     "graph g (a: f32[1,2,3,4], b: f32[1,3,6,8], c: f32[1,4,12,16]) -> (y) {\n"
     " u = Resize(a, r: f32[0] {}, s: f32[4] {1.0, 1.0, 4.0, 4.0})\n"
     "   {mode=\"nearest\", coordinate_transformation_mode=\"asymmetric\", "
     "nearest_mode=\"floor\"}\n"
     " v = Resize(b, q: f32[0] {}, t: f32[4] {1.0, 1.0, 2.0, 2.0})\n"
     "   {mode=\"nearest\", coordinate_transformation_mode=\"asymmetric\", "
     "nearest_mode=\"floor\"}\n"
     " k = Concat(u, v, c) {axis=1}\n"
     " y = Conv(k, w: f32[3,9,3,3] random 1, d: f32[3] random 2) {pads=[1,1,1,1]}\n}",
     "", "DepthToSpace", 1, ARITHMETIC},
    {"pointwise conv over joined maps of several sizes",
     "graph g (a: f32[1,40,3,4], b: f32[1,33,5,6], c: f32[1,4,11,13], d: f32[1,2,11,13]) -> (y) {\n"
     " u = Resize(a, _, _, s: i64[4] {1, 40, 11, 13})\n"
     "   {mode=\"linear\", coordinate_transformation_mode=\"align_corners\"}\n"
     " v = Resize(b, _, _, t: i64[4] {1, 33, 11, 13})\n"
     "   {mode=\"linear\", coordinate_transformation_mode=\"half_pixel\"}\n"
     " k = Concat(c, u, d, v) {axis=1}\n"
     " y = Conv(k, w: f32[8,79,1,1] random 1, e: f32[8] random 2)\n}",
     "Concat", "Conv", 4, ARITHMETIC},
    {"linear upsampling stays",
     "graph g (x: f32[1,4,5,6]) -> (y) {\n"
     " u = Resize(x, r: f32[0] {}, s: f32[4] {1.0, 1.0, 2.0, 2.0})\n"
     "   {mode=\"linear\", coordinate_transformation_mode=\"asymmetric\"}\n"
     " y = Conv(u, w: f32[3,4,3,3] random 1) {pads=[1,1,1,1]}\n}",
     "DepthToSpace", "Resize", 1, ARITHMETIC},
    {"gate between convs",
     "graph g (x: f32[1,4,8,8]) -> (y) {\n"
     " c = Conv(x, w: f32[24,4,1,1] random 1)\n p = GlobalAveragePool(c)\n s = Sigmoid(p)\n"
     " m = Mul(c, s)\n y = Conv(m, v: f32[3,24,3,3] random 2, b: f32[3] random 3)\n"
     "   {pads=[1,1,1,1]}\n}",
     "", "MatMul", 1, ARITHMETIC},
    {"gate into narrow weights",
     "graph g (x: f32[1,8,8,8]) -> (y) {\n"
     " c = Tanh(x)\n p = GlobalAveragePool(c)\n s = Sigmoid(p)\n"
     " m = Mul(c, s)\n y = Conv(m, v: f32[4,8,3,3] random 2) {pads=[1,1,1,1]}\n}",
     "", "Mul", 1, ARITHMETIC},
    {"conv over gated + upsampled",
     "graph g (x: f32[1,4,8,8], z: f32[1,24,4,4]) -> (y) {\n"
     " c = Conv(x, w: f32[24,4,1,1] random 1)\n p = GlobalAveragePool(c)\n s = Sigmoid(p)\n"
     " m = Mul(s, c)\n u = Resize(z, r: f32[0] {}, k: f32[4] {1.0, 1.0, 2.0, 2.0})\n"
     "   {mode=\"nearest\", coordinate_transformation_mode=\"asymmetric\", "
     "nearest_mode=\"floor\"}\n"
     " a = Add(m, u)\n y = Conv(a, v: f32[3,24,3,3] random 2, b: f32[3] random 3)\n"
     "   {pads=[1,1,1,1]}\n}",
     "Resize", "MatMul", 1, ARITHMETIC},
    {"large DepthToSpace in two moves",
     "graph g (x: f32[1,32,64,128]) -> (y) {\n y = DepthToSpace(x) {blocksize=4}\n}",
     "DepthToSpace", "Transpose", 2, ARITHMETIC},
    {"3-D convs with a residual, in frames",
     "graph g (x: f32[2,16,7,6,5]) -> (y, z) {\n"
     " c = Conv(x, w: f32[16,16,3,3,3] random 1, b: f32[16] random 2) {pads=[1,1,1,1,1,1]}\n"
     " r = Relu(c)\n d = Conv(r, v: f32[16,16,3,3,3] random 3) {pads=[1,1,1,1,1,1]}\n"
     " s = Add(d, x)\n t = Relu(s)\n"
     " e = Conv(t, u: f32[8,16,3,3,3] random 4) {pads=[1,1,1,1,1,1], strides=[2,2,2]}\n"
     " f = Conv(t, q: f32[8,16,1,1,1] random 5, p: f32[8] random 6) {strides=[2,2,2]}\n"
     " h = Add(e, f)\n y = GlobalAveragePool(h)\n z = MaxPool(h) {kernel_shape=[2,2,2]}\n}",
     "", "MatMul", 7, ARITHMETIC},
    {"3-D convs of many frames, eight at a time",
     "graph g (x: f32[1,16,16,6,5]) -> (y) {\n"
     " c = Conv(x, w: f32[16,16,3,3,3] random 1, b: f32[16] random 2) {pads=[1,1,1,1,1,1]}\n"
     " r = Relu(c)\n y = Conv(r, v: f32[16,16,3,3,3] random 3) {pads=[0,1,1,1,1,1]}\n}",
     "", "MatMul", 4, ARITHMETIC},
    {"3-D convs of stride 2 and 3 in products",
     "graph g (x: f32[2,16,9,6,5]) -> (y, z) {\n"
     " c = Conv(x, w: f32[16,16,3,3,3] random 1, b: f32[16] random 2) {pads=[1,1,1,1,1,1]}\n"
     " y = Conv(c, u: f32[16,16,3,3,3] random 4, p: f32[16] random 5)\n"
     "   {pads=[1,1,1,0,1,1], strides=[2,2,1]}\n"
     " z = Conv(c, v: f32[16,16,5,1,3] random 6, q: f32[16] random 7)\n"
     "   {pads=[2,0,1,4,0,1], strides=[3,1,2]}\n}",
     "", "MatMul", 6, ARITHMETIC},
    {"3-D convs whose stride leaves no tap to share stay without products",
     "graph g (x: f32[1,16,8,6,6]) -> (y, z) {\n"
     " c = Conv(x, w: f32[16,16,3,3,3] random 1) {pads=[1,1,1,1,1,1]}\n"
     " y = Conv(c, v: f32[16,16,2,3,3] random 3) {strides=[2,1,1]}\n"
     " z = Conv(c, u: f32[16,16,5,1,1] random 2) {strides=[5,1,1]}\n}",
     "", "MatMul", 4, ARITHMETIC},
    {"3-D convs of few channels stay",
     "graph g (x: f32[1,3,8,6,6]) -> (y) {\n"
     " y = Conv(x, w: f32[16,3,3,3,3] random 1) {pads=[1,1,1,1,1,1]}\n}",
     "MatMul", "Conv", 1, ARITHMETIC},
    {"1-D network in planes",
     "graph g (x: f32[2,4,L]) -> (y, z) {\n"
     " c = Conv(x, w: f32[16,4,3] random 1, b: f32[16] random 2) {pads=[2,0], strides=[2]}\n"
     " r = Relu(c)\n p = Pad(r, q: i64[6] {0, 0, 4, 0, 0, 0}, k: f32[] {0.5})\n"
     " d = Conv(p, v: f32[16,1,3] random 3) {group=16, dilations=[2]}\n"
     " e = Clip(d, lo: f32[] {-1.0}, hi: f32[] {1.0})\n t = ConvTranspose(e, u: f32[16,8,2] random "
     "5)\n"
     "   {strides=[2]}\n z = AveragePool(e) {kernel_shape=[3], pads=[1,1]}\n"
     " f = Concat(t, t) {axis=1}\n n = BatchNormalization(f, s1: f32[16] random 6,\n"
     "   s2: f32[16] random 7, s3: f32[16] random 8, s4: f32[16] {2.0})\n y = Softmax(n) "
     "{axis=2}\n}",
     "", "Squeeze", 2, ARITHMETIC},
    {"planes turned",
     "graph g (x: f32[2,9,4]) -> (y) {\n"
     " t = Transpose(x) {perm=[0,2,1]}\n c = Conv(t, w: f32[16,4,3] random 1)\n r = Relu(c)\n"
     " u = Transpose(r) {perm=[0,2,1]}\n m = Mul(u, g: f32[16] random 2)\n"
     " v = Softmax(m) {axis=-1}\n y = Tanh(v)\n}",
     "Squeeze Unsqueeze", "Transpose", 2, ARITHMETIC},
    {"what a mask hides from a softmax is raised",
     "graph g (x: f32[2,3,N], m: bool[2,1,N], v: f32[2,N,4]) -> (y) {\n"
     " k = Where(m, z: f32[] {0}, l: f32[] {-10000})\n a = Add(x, k)\n s = Softmax(a) {axis=-1}\n"
     " y = MatMul(s, v)\n}",
     "", "ReduceMax", 1, ARITHMETIC},
    {"a softmax with a bias alone stays, as one does that a logarithm reads",
     "graph g (x: f32[2,3,6], m: bool[2,1,6], v: f32[2,6,4]) -> (y, z) {\n"
     " b = Add(x, c: f32[3,6] random 1)\n s = Softmax(b) {axis=-1}\n y = MatMul(s, v)\n"
     " k = Where(m, b, l: f32[] {-10000})\n t = Softmax(k) {axis=-1}\n z = Log(t)\n}",
     "ReduceMax", "Softmax", 2, ARITHMETIC},
    {"a scale in half precision, which is worked in float",
     "graph g (x: f16[1,4,6,6]) -> (y) {\n"
     " c = Conv(x, w: f16[8,4,3,3] random 1)\n y = Mul(c, s: f16[1] {0.3})\n}",
     "Mul", "Cast", 2, ARITHMETIC},
    {"a scale that would overflow stays",
     "graph g (x: f32[1,4,6,6]) -> (y) {\n"
     " c = Conv(x, w: f32[8,4,3,3] {1e20})\n y = Mul(c, s: f32[1] {1e20})\n}",
     "", "Mul", 1, ARITHMETIC},
    {"a value that is an output stays",
     "graph g (x: f32[1,4,6,6]) -> (c, y) {\n"
     " c = Conv(x, w: f32[8,4,3,3] random 1)\n y = Mul(c, s: f32[1] {0.3})\n}",
     "", "Mul", 1, ARITHMETIC},
};

/* The comparison that the samples rest on must see one wrong weight. */
static void test_difference_sees_damage(void **state) {
    (void)state;
    po_ctx ctx;
    po_ctx_init(&ctx);
    po_graph *g = test_graph(&ctx, samples[0].graph), *h = po_graph_clone(&ctx, g);
    for (uint32_t i = 0; i < h->n_values; i++)
        if (h->values[i].constant && strcmp(h->values[i].name, "w") == 0) {
            const po_tensor *w = h->values[i].constant;
            po_tensor *damaged = po_arena_memdup(h->arena, w, sizeof *w);
            damaged->data = po_arena_memdup(h->arena, w->data, w->size);
            po_tensor_set_f64(damaged, 40, po_tensor_f64(w, 40) + 1e-3);
            h->values[i].constant = damaged;
        }
    double d = test_difference(&ctx, g, h, 11);
    assert_true(d > 2e-6 && !isnan(d));
    po_graph_free(h);
    po_graph_free(g);
}

static double element(const po_graph *g, const char *op, uint32_t input, int64_t i) {
    for (po_node_id n = 0; n < g->n_nodes; n++)
        if (!g->nodes[n].removed && strcmp(g->nodes[n].op_type, op) == 0)
            return po_tensor_f64(po_graph_constant(g, g->nodes[n].in[input]), i);
    fail_msg("no %s", op);
    return 0;
}

/* Factors of sums below 2^-100 go, at once and for all readers; biases, what is added by itself and
 * what is looked up stay, and so do 2^-99 and a tensor of nothing else. */
static void test_tiny_weights(void **state) {
    static const char *const text =
        "graph g (x: f32[1,2,3,4], i: i64[3]) -> (y, q, t, s) {\n"
        " y = Conv(x, w: f32[2,2,1,1] {1e-40, 1.5, -7e-31, 1.6e-30}, b: f32[2] {1e-38, 1.0})\n"
        " z = MatMul(x, u: f32[4,2] {1.0, 1e-45, -1e-38, 2.0, 0.0, 1e-33, 3.0, 4.0})\n"
        " t = Gather(k: f32[2,2] {1e-40, 1.0, 2.0, 3.0}, i)\n"
        " q = MatMul(z, a: f32[2,2] {1e-40, 1e-39, 0.0, 1e-38})\n"
        " l = Add(x, e: f32[] {1e-38})\n s = Log(l)\n}";
    (void)state;
    po_ctx ctx;
    po_ctx_init(&ctx);
    po_graph *g = test_graph(&ctx, text), *out[2];
    po_postopt_options options = po_postopt_defaults();
    po_postopt_counts counts;
    for (int kept = 0; kept < 2; kept++) {
        options.tiny = !kept;
        assert_int_equal(po_postopt(&ctx, g, &options, &out[kept], &counts), PO_OK);
        assert_int_equal(counts.fired[PO_LAW_TINY], kept ? 0 : 2);
        assert_int_equal((counts.used & PO_USED_TINY) != 0, !kept);
    }
    static const double conv[] = {0, 1.5, 0, 1.6e-30}, matmul[] = {1, 0, 0, 2, 0, 0, 3, 4};
    for (int64_t i = 0; i < 4; i++)
        assert_true(element(out[0], "Conv", 1, i) == (double)(float)conv[i]);
    for (int64_t i = 0; i < 8; i++)
        assert_true(element(out[0], "MatMul", 1, i) == matmul[i]);
    assert_true(element(out[1], "Conv", 1, 0) != 0);
    assert_true(element(out[0], "Conv", 2, 0) != 0);
    assert_true(element(out[0], "Gather", 0, 0) != 0);
    const po_node *q = po_graph_producer(out[0], out[0]->outputs[1]);
    assert_true(po_tensor_f64(po_graph_constant(out[0], q->in[1]), 0) != 0);
    assert_true(element(out[0], "Add", 1, 0) != 0);
    for (int kept = 0; kept < 2; kept++)
        po_graph_free(out[kept]);
    po_graph_free(g);
}

/* A batch norm that no neighbour takes is one node to a runtime; where kernels are made, two maps.
 */
static void test_lone_norms(void **state) {
    static const char *const text =
        "graph g (x: f32[1,4,6,6]) -> (y) {\n"
        " h = Tanh(x)\n c = Concat(h, x, h) {axis=1}\n"
        " n = BatchNormalization(c, s: f32[12] random 1, t: f32[12] random 2, m: f32[12] random "
        "3,\n"
        "   v: f32[12] {1.5})\n"
        " r = Relu(n)\n y = Conv(r, w: f32[8,12,3,3] random 4) {pads=[1,1,1,1]}\n}";
    (void)state;
    po_ctx ctx;
    po_ctx_init(&ctx);
    po_graph *g = test_graph(&ctx, text);
    for (int lone = 0; lone < 2; lone++) {
        po_postopt_options options = po_postopt_plain(PO_ALGEBRA_ALL);
        po_postopt_counts counts;
        po_graph *out;
        uint32_t norms = 0, maps = 0;
        options.lone_norms = lone;
        assert_int_equal(po_postopt(&ctx, g, &options, &out, &counts), PO_OK);
        for (po_node_id n = 0; n < out->n_nodes; n++)
            if (!out->nodes[n].removed) {
                norms += out->nodes[n].op == PO_OP_BatchNormalization;
                maps += out->nodes[n].op == PO_OP_Mul || out->nodes[n].op == PO_OP_Add;
            }
        assert_int_equal(norms, !lone);
        assert_int_equal(maps, lone ? 2 : 0);
        assert_int_equal(counts.fired[PO_LAW_AFFINE_SHORT], lone);
        assert_true(test_difference(&ctx, g, out, 12) < 2e-6);
        po_graph_free(out);
    }
    po_graph_free(g);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST_SAMPLES(samples),
        cmocka_unit_test(test_difference_sees_damage),
        cmocka_unit_test(test_tiny_weights),
        cmocka_unit_test(test_lone_norms),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
