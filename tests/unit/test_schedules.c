/* Lowering and schedules on small graphs: the naive and the scheduled muGraph compute what the
 * graph does, and every choice, printed and compiled, what its step does. */
#include "cost/kernels.h"
#include "planned.h"
#include "superopt/schedule/conv.h"
#include "superopt/schedule/internal.h"
#include "unit.h"

#include <math.h>
#include <strings.h>

#define CONV3 "{kernel_shape=[3, 3], pads=[1, 1, 1, 1]}"

static const struct {
    const char *name, *graph;
} samples[] = {
    {"Winograd and a residual",
     "graph g (x: f32[1,16,9,13]) -> (y) {\n"
     " a = Conv(x, w: f32[32,16,3,3] random 1, b: f32[32] random 2) " CONV3 "\n r = Relu(a)\n"
     " c = Conv(r, v: f32[32,32,3,3] random 3) " CONV3 "\n s = Add(c, r)\n y = Relu(s)\n}"},
    {"5x5", "graph g (x: f32[1,16,8,8]) -> (y) {\n"
            " y = Conv(x, w: f32[48,16,5,5] random 1) {kernel_shape=[5, 5], pads=[2, 2, 2, 2]}\n}"},
    {"stride, dilation, odd channels",
     "graph g (x: f32[2,5,11,9]) -> (y) {\n"
     " a = Conv(x, w: f32[10,5,3,3] random 1, b: f32[10] random 2) {kernel_shape=[3, 3], "
     "strides=[2, 1], dilations=[1, 2], pads=[1, 2, 1, 2]}\n y = Sigmoid(a)\n}"},
    {"pools and a classifier",
     "graph g (x: f32[1,3,17,17]) -> (y) {\n"
     " a = Conv(x, w: f32[16,3,3,3] random 1, b: f32[16] random 2) " CONV3 "\n"
     " m = MaxPool(a) {kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1]}\n"
     " v = AveragePool(m) {kernel_shape=[2, 2], strides=[2, 2]}\n g = GlobalAveragePool(v)\n"
     " f = Flatten(g)\n y = Gemm(f, u: f32[10,16] random 3, c: f32[10] random 4) {transB=1}\n}"},
    {"depthwise and grouped",
     "graph g (x: f32[1,32,7,10]) -> (y) {\n"
     " d = Conv(x, w: f32[32,1,3,3] random 1, b: f32[32] random 2) {kernel_shape=[3, 3], "
     "pads=[1, 1, 1, 1], group=32}\n h = HardSwish(d)\n"
     " y = Conv(h, v: f32[64,16,1,1] random 3) {kernel_shape=[1, 1], group=2}\n}"},
    {"a matrix product with its activation",
     "graph g (x: f32[7,24]) -> (y) {\n a = MatMul(x, w: f32[24,33] random 1)\n"
     " b = Add(a, c: f32[33] random 2)\n e = Erf(b)\n y = Mul(b, e)\n}"},
    {"floors of more than a thousand",
     "graph g (x: f32[30,50]) -> (y) {\n a = Mul(x, k: f32[] {7.3})\n f = Floor(a)\n"
     " d = Sub(a, f)\n y = Add(d, x)\n}"},
    {"one axis", "graph g (x: f32[1,16,40]) -> (y) {\n"
                 " a = Conv(x, w: f32[16,16,7] random 1) {kernel_shape=[7], pads=[3, 3]}\n"
                 " y = LeakyRelu(a)\n}"},
    {"Winograd with strides",
     "graph g (x: f32[1,16,21,18]) -> (y) {\n"
     " a = Conv(x, w: f32[32,16,3,3] random 1, b: f32[32] random 2) {kernel_shape=[3, 3], "
     "strides=[2, 2], pads=[1, 1, 1, 1]}\n y = Relu(a)\n}"},
    {"Winograd with strides along one axis",
     "graph g (x: f32[1,16,83]) -> (y) {\n"
     " a = Conv(x, w: f32[32,16,3] random 1, b: f32[32] random 2) {kernel_shape=[3], "
     "strides=[2]}\n r = Relu(a)\n"
     " c = Conv(r, v: f32[16,32,7] random 3) {kernel_shape=[7], strides=[3], pads=[3, 3]}\n"
     " y = Conv(c, u: f32[16,16,3] random 4) {kernel_shape=[3], strides=[3]}\n}"},
    {"Winograd in blocks of a sequence",
     "graph g (x: f32[1,16,421]) -> (y) {\n"
     " a = Conv(x, w: f32[16,16,3] random 1, b: f32[16] random 2) {kernel_shape=[3], "
     "pads=[1, 1]}\n r = Relu(a)\n"
     " y = Conv(r, v: f32[16,16,3] random 3) {kernel_shape=[3], strides=[2]}\n}"},
    {"lanes in equal parts, a row and more",
     "graph g (x: f32[7,24]) -> (y) {\n a = MatMul(x, w: f32[24,1000] random 1)\n"
     " r = Relu(a)\n m = ReduceMean(r) {axes=[0], keepdims=1}\n"
     " y = Gemm(m, v: f32[250,1000] random 2, b: f32[250] random 3) {transB=1}\n}"},
    {"lanes in whole panels and a rest, a row and more",
     "graph g (x: f32[7,24]) -> (y) {\n a = MatMul(x, w: f32[24,577] random 1)\n"
     " b = Add(a, c: f32[577] random 4)\n r = Softmax(b) {axis=-1}\n"
     " m = ReduceMean(r) {axes=[0], keepdims=1}\n"
     " y = Gemm(m, v: f32[541,577] random 2, d: f32[541] random 3) {transB=1}\n}"},
    {"Strassen, halves of matrices",
     "graph g (x: f32[98,96]) -> (y) {\n a = MatMul(x, w: f32[96,128] random 1)\n"
     " b = Add(a, c: f32[128] random 2)\n r = Relu(b)\n"
     " y = MatMul(r, v: f32[128,192] random 3)\n}"},
    {"Strassen, an odd map",
     "graph g (x: f32[1,96,11,9]) -> (y) {\n"
     " a = Conv(x, w: f32[96,96,1,1] random 1, b: f32[96] random 2) {kernel_shape=[1, 1]}\n"
     " r = Relu(a)\n c = Conv(r, v: f32[96,96,1,1] random 3) {kernel_shape=[1, 1]}\n"
     " y = Add(c, r)\n}"},
    {"Strassen, blocks of a map's rows",
     "graph g (x: f32[1,96,24,16]) -> (y) {\n"
     " a = Conv(x, w: f32[192,96,1,1] random 1, b: f32[192] random 2) {kernel_shape=[1, 1]}\n"
     " y = Relu(a)\n}"},
    {"Strassen, blocks of one row",
     "graph g (x: f32[1,96,6,50]) -> (y) {\n"
     " y = Conv(x, w: f32[192,96,1,1] random 1) {kernel_shape=[1, 1]}\n}"},
    {"Strassen, slices of channels in blocks of rows",
     "graph g (x: f32[192,1088]) -> (y) {\n y = MatMul(x, w: f32[1088,96] random 1)\n}"},
    {"long sums in blocks",
     "graph g (x: f32[1,2,1061]) -> (y) {\n"
     " a = Conv(x, w: f32[16,2,3] random 1) {kernel_shape=[3], strides=[2]}\n"
     " b = InstanceNormalization(a, s: f32[16] random 2, t: f32[16] random 3) {epsilon=0.01}\n"
     " g = GlobalAveragePool(b)\n y = Mul(b, g)\n}"},
    {"long sums of numbers of one sign",
     "graph g (x: f32[2048,257]) -> (y) {\n a = MatMul(x, w: f32[257,64] random 1)\n"
     " p = Pow(a, k: f32[] {3})\n t = Tanh(p)\n y = Mul(a, t)\n}"},
    {"long sums by rows", "graph g (x: f32[1,16,30,40]) -> (y) {\n"
                          " s = Sigmoid(x)\n g = GlobalAveragePool(s)\n y = Mul(s, g)\n}"},
    {"rows with their own mean",
     "graph g (x: f32[3,5,40]) -> (y) {\n a = MatMul(x, w: f32[40,48] random 1)\n"
     " n = LayerNormalization(a, s: f32[48] random 2, t: f32[48] random 3) {epsilon=0.01}\n"
     " r = Relu(n)\n y = LayerNormalization(r, u: f32[5,48] random 4) {axis=1}\n}"},
    {"rows with their own size",
     "pir 1 opset = 23 graph g (x: f32[6,40]) -> (y) {\n a = MatMul(x, w: f32[40,48] random 1)\n"
     " n = RMSNormalization(a, s: f32[48] random 2) {epsilon=0.01}\n y = Sigmoid(n)\n}"},
    {"Winograd of what comes as it is read",
     "graph g (x: f32[1,41,16]) -> (y) {\n t = Transpose(x) {perm=[0, 2, 1]}\n"
     " a = Conv(t, w: f32[16,16,3] random 1) {kernel_shape=[3], pads=[1, 1]}\n"
     " b = Conv(t, v: f32[16,16,5] random 2) {kernel_shape=[5], pads=[2, 2]}\n"
     " y = Add(a, b)\n}"},
    {"Winograd in phases",
     "graph g (x: f32[1,16,11,10]) -> (y) {\n"
     " a = Conv(x, w: f32[16,16,3,3] random 1) {kernel_shape=[3, 3], dilations=[2, 2], "
     "pads=[2, 2, 2, 2]}\n y = Relu(a)\n}"},
    {"interpolated by two, and added to",
     "graph g (x: f32[1,16,5,7]) -> (y) {\n"
     " a = Conv(x, w: f32[24,16,1,1] random 1) {kernel_shape=[1, 1]}\n"
     " u = Resize(a, _, s: f32[4] {1, 1, 2, 2}) {mode=\"linear\"}\n r = Relu(u)\n"
     " y = Conv(r, v: f32[16,24,3,3] random 2) " CONV3 "\n}"},
    {"interpolated by three and four, one row",
     "graph g (x: f32[1,16,1,6]) -> (y) {\n"
     " a = Conv(x, w: f32[20,16,1,1] random 1) {kernel_shape=[1, 1]}\n"
     " y = Resize(a, _, s: f32[4] {1, 1, 3, 4}) {mode=\"linear\"}\n}"},
    {"interpolated between corners",
     "graph g (x: f32[1,16,4,5]) -> (y) {\n"
     " a = Conv(x, w: f32[16,16,1,1] random 1) {kernel_shape=[1, 1]}\n"
     " y = Resize(a, _, _, s: i64[4] {1, 16, 7, 13}) {mode=\"linear\", "
     "coordinate_transformation_mode=\"align_corners\"}\n}"},
    {"interpolated to three halves and two thirds",
     "graph g (x: f32[2,16,8,12]) -> (y) {\n"
     " a = Conv(x, w: f32[16,16,1,1] random 1) {kernel_shape=[1, 1]}\n"
     " y = Resize(a, _, _, s: i64[4] {2, 16, 12, 8}) {mode=\"linear\"}\n}"},
    {"interpolated, cubic", "graph g (x: f32[1,16,6,7]) -> (y) {\n"
                            " a = Conv(x, w: f32[16,16,1,1] random 1) {kernel_shape=[1, 1]}\n"
                            " y = Resize(a, _, s: f32[4] {1, 1, 2, 2}) {mode=\"cubic\"}\n}"},
    {"parts of a map beside one another",
     "graph g (x: f32[1,16,10,13]) -> (y) {\n"
     " a = Conv(x, w: f32[32,16,3,3] random 1) {kernel_shape=[3, 3], pads=[0, 1, 0, 1]}\n"
     " r = Relu(a)\n t = Slice(x, b: i64[1] {0}, e: i64[1] {3}, axis: i64[1] {2})\n"
     " c = Conv(t, v: f32[32,16,3,3] random 2) {kernel_shape=[3, 3], pads=[0, 1, 0, 1]}\n"
     " j = Concat(c, r, c) {axis=2}\n y = Conv(j, u: f32[16,32,3,3] random 3) " CONV3 "\n}"},
    {"parts in both directions, Strassen in an odd one",
     "graph g (x: f32[1,96,11,13]) -> (y) {\n"
     " a = Conv(x, w: f32[96,96,1,1] random 1) {kernel_shape=[1, 1]}\n"
     " s = Slice(x, b: i64[1] {0}, e: i64[1] {2}, axis: i64[1] {3})\n"
     " l = Conv(s, w) {kernel_shape=[1, 1]}\n m = Concat(a, l) {axis=3}\n"
     " f = Slice(x, b, e, rows: i64[1] {2})\n"
     " g = Pad(f, p: i64[8] {0, 0, 0, 1, 0, 0, 0, 1}) {mode=\"edge\"}\n"
     " h = Conv(g, w) {kernel_shape=[1, 1]}\n y = Concat(m, h) {axis=2}\n}"},
    {"channels added one after the other",
     "graph g (x: f32[1,16,9,10]) -> (y) {\n"
     " a = Conv(x, w: f32[32,16,3,3] random 1) " CONV3 "\n r = Relu(a)\n"
     " b = Conv(r, v: f32[16,32,3,3] random 2) " CONV3 "\n c = Concat(r, b) {axis=1}\n"
     " d = Conv(c, u: f32[24,48,1,1] random 3) {kernel_shape=[1, 1]}\n"
     " e = Concat(c, d) {axis=1}\n y = Conv(e, t: f32[16,72,3,3] random 4) " CONV3 "\n}"},
    {"taps that meet padding alone",
     "graph g (x: f32[1,16,5,9]) -> (y) {\n"
     " a = Conv(x, w: f32[32,16,3,3] random 1) {kernel_shape=[3, 3], dilations=[5, 8], "
     "pads=[5, 8, 5, 8]}\n s = Slice(a, b: i64[1] {0}, e: i64[1] {2}, rows: i64[1] {2})\n"
     " y = Conv(s, v: f32[16,32,3,3] random 2) {kernel_shape=[3, 3], pads=[1, 1, 0, 1]}\n}"},
    {"sums along the lanes",
     "graph g (x: f32[1,40,5,6]) -> (y) {\n"
     " a = ConvTranspose(x, w: f32[40,1,2,2] random 1, b: f32[1] random 2) {kernel_shape=[2, 2], "
     "strides=[2, 2]}\n y = Sigmoid(a)\n}"},
    {"transposed, strides 2 and 1",
     "graph g (x: f32[1,16,5,6]) -> (y) {\n"
     " a = ConvTranspose(x, w: f32[16,32,3,4] random 1, b: f32[32] random 2) {kernel_shape=[3, 4], "
     "strides=[2, 2], pads=[1, 1, 1, 1], output_padding=[1, 0]}\n r = Relu(a)\n"
     " y = ConvTranspose(r, v: f32[32,1,2,2] random 3) {kernel_shape=[2, 2]}\n}"},
    {"transposed, Winograd in each phase",
     "graph g (x: f32[1,16,9,10]) -> (y) {\n"
     " a = ConvTranspose(x, w: f32[16,32,4,4] random 1, b: f32[32] random 2) {kernel_shape=[4, 4], "
     "strides=[2, 2], pads=[1, 1, 1, 1]}\n r = Relu(a)\n"
     " y = ConvTranspose(r, v: f32[32,16,3,3] random 3) {kernel_shape=[3, 3], pads=[1, 1, 1, 1]}\n"
     "}"},
    {"planes for few outputs",
     "graph g (x: f32[1,32,7,37]) -> (y) {\n"
     " a = Conv(x, w: f32[32,4,3,3] random 1, b: f32[32] random 2) {kernel_shape=[3, 3], "
     "pads=[1, 1, 1, 1], group=8}\n r = Relu(a)\n"
     " c = Conv(r, v: f32[24,8,3,3] random 3) {kernel_shape=[3, 3], pads=[2, 2, 2, 2], "
     "dilations=[2, 2], strides=[2, 1], group=4}\n s = Sigmoid(c)\n"
     " y = ConvTranspose(s, u: f32[24,3,4,4] random 4) {kernel_shape=[4, 4], strides=[2, 2], "
     "pads=[1, 1, 1, 1]}\n}"},
    {"softmax and a maximum",
     "graph g (x: f32[6,40]) -> (y) {\n a = MatMul(x, w: f32[40,40] random 1)\n"
     " s = Softmax(a) {axis=-1}\n m = ReduceMax(a) {axes=[1]}\n y = Mul(s, m)\n}"},
    {"2x2", "graph g (x: f32[1,16,9,8]) -> (y) {\n"
            " y = Conv(x, w: f32[32,16,2,2] random 1) {kernel_shape=[2, 2]}\n}"},
    {"a mean and what is made of it",
     "graph g (x: f32[6,40]) -> (y) {\n a = MatMul(x, w: f32[40,40] random 1)\n"
     " m = ReduceMean(a) {axes=[1]}\n e = Sigmoid(m)\n y = Mul(a, e)\n}"},
    {"Winograd with 24 outputs, and inputs",
     "graph g (x: f32[1,16,10,7]) -> (y) {\n"
     " a = Conv(x, w: f32[24,16,3,3] random 1, b: f32[24] random 2) " CONV3 "\n r = Relu(a)\n"
     " y = Conv(r, v: f32[24,24,3,3] random 3) " CONV3 "\n}"},
    {"Winograd along one of two axes",
     "graph g (x: f32[1,16,9,11]) -> (y) {\n"
     " a = Conv(x, w: f32[16,16,1,7] random 1, b: f32[16] random 2) {kernel_shape=[1, 7], "
     "pads=[0, 3, 0, 3]}\n r = Relu(a)\n"
     " y = Conv(r, v: f32[32,16,7,1] random 3) {kernel_shape=[7, 1], pads=[3, 0, 3, 0]}\n}"},
    {"Winograd in phases along one axis",
     "graph g (x: f32[1,16,37]) -> (y) {\n"
     " a = Conv(x, w: f32[32,16,3] random 1, b: f32[32] random 2) {kernel_shape=[3], "
     "dilations=[8], pads=[16, 0]}\n y = Relu(a)\n}"},
    {"padded for windows and for a map",
     "graph g (x: f32[1,16,20]) -> (y) {\n q = i64[6] {0, 0, 4, 0, 0, 0}\n"
     " s = i64[6] {0, 1, 2, 0, 2, 1}\n p = Pad(x, q)\n"
     " a = Conv(p, w: f32[16,16,3] random 1) {kernel_shape=[3], dilations=[2]}\n"
     " z = Pad(a, s)\n y = Sigmoid(z)\n}"},
    {"maps with their own mean",
     "graph g (x: f32[2,3,20]) -> (y) {\n"
     " a = Conv(x, w: f32[16,3,3] random 1) {kernel_shape=[3], strides=[2]}\n"
     " b = InstanceNormalization(a, s: f32[16] random 2, t: f32[16] random 3) {epsilon=0.01}\n"
     " y = Sigmoid(b)\n}"},
    {"Winograd with frames",
     "graph g (x: f32[1,16,5,9,8]) -> (y) {\n"
     " a = Conv(x, w: f32[32,16,3,3,3] random 1, b: f32[32] random 2) {kernel_shape=[3, 3, 3], "
     "strides=[2, 1, 1], pads=[1, 1, 1, 1, 1, 1]}\n r = Relu(a)\n"
     " y = Conv(r, v: f32[16,32,3,3,3] random 3) {kernel_shape=[3, 3, 3], strides=[3, 1, 1], "
     "pads=[1, 1, 1, 1, 1, 1]}\n}"},
    {"pixels as lanes",
     "graph g (x: f32[1,16,5,70]) -> (y) {\n"
     " a = Conv(x, w: f32[20,16,1,1] random 1, b: f32[20] random 2) {kernel_shape=[1, 1]}\n"
     " t = ConvTranspose(a, v: f32[20,1,2,2] random 3, c: f32[1] random 4) {kernel_shape=[2, 2], "
     "strides=[2, 2]}\n y = Sigmoid(t)\n}"},
    {"an upsampled map that is added",
     "graph g (x: f32[1,16,5,6]) -> (y) {\n"
     " a = Conv(x, w: f32[20,16,1,1] random 1, b: f32[20] random 2) {kernel_shape=[1, 1]}\n"
     " u = Resize(a, e: f32[0] {}, s: f32[4] {1.0, 1.0, 2.0, 2.0}) {mode=\"nearest\", "
     "coordinate_transformation_mode=\"asymmetric\", nearest_mode=\"floor\"}\n"
     " d = Conv(u, v: f32[20,20,3,3] random 3) " CONV3 "\n p = Add(u, d)\n"
     " r = Resize(p, e, s) {mode=\"nearest\", coordinate_transformation_mode=\"asymmetric\", "
     "nearest_mode=\"floor\"}\n y = Relu(r)\n}"},
    {"products of two values, one of them turned",
     "graph g (x: f32[2,20,32]) -> (y) {\n a = MatMul(x, w: f32[32,32] random 1)\n"
     " t = Transpose(a) {perm=[0, 2, 1]}\n s = MatMul(x, t)\n p = Softmax(s) {axis=-1}\n"
     " y = MatMul(p, a)\n}"},
    {"maps of tokens that lie as channels, beside ones that do not",
     "graph g (x: f32[1,20,37]) -> (y) {\n"
     " a = Conv(x, k: f32[20,20,1] random 1)\n t = Transpose(a) {perm=[0, 2, 1]}\n"
     " z = MatMul(t, l: f32[20,20] random 5)\n"
     " b = Add(t, c: f32[20] random 2)\n e = Erf(b)\n m = Mul(e, t)\n s = Add(m, z)\n"
     " u = Mul(s, r: f32[37,1] random 3)\n p = Sub(t, z)\n q = MatMul(p, w: f32[20,20] random 4)\n"
     " v = Tanh(q)\n y = Add(u, v)\n}"},
    {"a row of a thousand",
     "graph g (x: f32[1,72]) -> (y) {\n"
     " y = Gemm(x, w: f32[1000,72] random 1, b: f32[1000] random 2) {transB=1}\n}"},
    {"windows over the edge of what lies flat",
     "graph g (x: f32[1,16,5,6]) -> (y) {\n q = i64[2] {30, 16}\n s = i64[4] {1, 5, 6, 16}\n"
     " t = Transpose(x) {perm=[0, 2, 3, 1]}\n f = Reshape(t, q)\n"
     " n = MatMul(f, w: f32[16,16] random 1)\n r = Relu(n)\n b = Reshape(r, s)\n"
     " u = Transpose(b) {perm=[0, 3, 1, 2]}\n"
     " y = Conv(u, v: f32[16,1,3,3] random 2) {kernel_shape=[3, 3], pads=[1, 1, 1, 1], "
     "group=16}\n}"},
    {"what is repeated is added up as often",
     "graph g (x: f32[1,16,1]) -> (y) {\n n = i64[3] {1, 16, 5}\n"
     " a = Conv(x, w: f32[16,16,1] random 1) {kernel_shape=[1]}\n e = Expand(a, n)\n"
     " s = ReduceSum(e) {axes=[2], keepdims=1}\n y = Sigmoid(s)\n}"},
    {"windows over the edge of a slice",
     "graph g (x: f32[1,16,8,9]) -> (y) {\n from = i64[2] {1, 0}\n to = i64[2] {6, 7}\n"
     " axes = i64[2] {2, 3}\n a = Conv(x, w: f32[16,16,1,1] random 1) {kernel_shape=[1, 1]}\n"
     " s = Slice(a, from, to, axes)\n"
     " m = MaxPool(s) {kernel_shape=[3, 3], pads=[1, 1, 1, 1]}\n"
     " t = ConvTranspose(m, v: f32[16,16,2,2] random 2) {kernel_shape=[2, 2]}\n"
     " u = Slice(t, from, to, axes)\n"
     " y = Conv(u, z: f32[16,16,3,3] random 3) " CONV3 "\n}"},
    {"windows that sum and windows that take the largest",
     "graph g (x: f32[1,16,12,10]) -> (y) {\n f = i64[1] {3}\n t = i64[1] {9}\n e = i64[1] {2}\n"
     " a = Conv(x, w: f32[16,16,1,1] random 1) {kernel_shape=[1, 1]}\n s = Slice(a, f, t, e)\n"
     " b = Conv(s, v: f32[16,16,3,3] random 2) " CONV3 "\n"
     " m = MaxPool(s) {kernel_shape=[3, 3], pads=[1, 1, 1, 1]}\n y = Add(b, m)\n}"},
    {"Winograd with weights that are computed",
     "graph g (x: f32[1,16,10,11]) -> (y) {\n m = GlobalAveragePool(x)\n s = Sigmoid(m)\n"
     " w = Mul(s, k: f32[24,16,3,3] random 1)\n a = Conv(x, w, b: f32[24] random 2) " CONV3 "\n"
     " n = GlobalAveragePool(a)\n t = Reshape(n, q: i64[2] {24, 1})\n"
     " c = Mul(t, l: f32[24,24] random 3)\n p = MatMul(r: f32[144,24] random 4, c)\n"
     " e = Reshape(p, z: i64[3] {16, 9, 24})\n f = Transpose(e) {perm=[0, 2, 1]}\n"
     " v = Reshape(f, u: i64[4] {16, 24, 3, 3})\n y = Conv(a, v) " CONV3 "\n}"},
    {"three axes", "graph g (x: f32[1,4,5,6,7]) -> (y) {\n"
                   " y = Conv(x, w: f32[16,4,3,3,3] random 1) {kernel_shape=[3, 3, 3], "
                   "pads=[1, 1, 1, 1, 1, 1]}\n}"},
};
enum { SAMPLES = sizeof samples / sizeof samples[0] };

/* The muGraph on the graph's inputs and (packed: scheduled) weights. */
static void evaluate(test_planned *f, const po_mu *mu, bool packed, const po_array *in,
                     double *out) {
    po_status status = po_mu_check(&f->ctx, mu, 1 << 24);
    if (status == PO_OK)
        status = test_planned_eval(f, mu, packed, in, out);
    if (status != PO_OK) {
        po_text text;
        po_text_init(&text, f->arena);
        po_mu_print(&text, mu);
        fail_msg("%s\n%s", f->ctx.error.message, text.data);
    }
}

enum { MOST_CHOICES = 8 };

static void take_choice(test_planned *f, uint32_t k) {
    const po_mu *naive = f->plan.lowered.mu;
    po_schedule s;
    po_schedule_start(&s, f->arena, naive, false);
    for (uint32_t node = naive->first; node != PO_NONE; node = naive->nodes[node].next) {
        po_choice choices[PO_CHOICES_MAX];
        uint32_t n = po_choices_of(naive, node, 0, choices);
        assert_true(n > 0);
        po_schedule_step(&s, node, &choices[k % n]);
    }
    po_schedule_finish(&s);
    f->plan.mu = s.mu;
    f->plan.packed = s.packed;
    f->plan.n_packed = s.n_packed;
}

static void computes_what_the_graph_does(void **state) {
    (void)state;
    for (size_t i = 0; i < SAMPLES; i++) {
        test_planned f;
        test_planned_start(&f, samples[i].graph, false);
        const po_array *in = test_planned_input(&f);
        po_array *expected;
        assert_int_equal(po_ref_graph(&f.ctx, f.arena, f.graph, &in, &expected, false), PO_OK);
        /* The naive muGraph, the plan's own, and ones that take choice k of every step. */
        for (uint32_t k = 0; k < 2 + MOST_CHOICES; k++) {
            double *out = PO_NEW_N(f.arena, double, expected->count);
            if (k >= 2)
                take_choice(&f, k - 2);
            evaluate(&f, k ? f.plan.mu : f.plan.lowered.mu, k > 0, in, out);
            for (int64_t e = 0; e < expected->count; e++)
                if (!(fabs(out[e] - expected->f[e]) <= 1e-9))
                    fail_msg("%s, %u: element %lld is %g instead of %g", samples[i].name, k,
                             (long long)e, out[e], expected->f[e]);
        }
        test_planned_end(&f);
    }
}

/* What lies along another axis is turned on the way, and never read one by one. */
static void nothing_is_read_across(void **state) {
    (void)state;
    size_t found = 0;
    for (size_t i = 0; i < SAMPLES; i++) {
        test_planned f;
        uint32_t turned = 0;
        if (strncmp(samples[i].name, "maps of tokens", 14) != 0)
            continue;
        found++;
        test_planned_start(&f, samples[i].graph, false);
        const po_mu *naive = f.plan.lowered.mu;
        for (uint32_t node = naive->first; node != PO_NONE; node = naive->nodes[node].next) {
            po_choice choices[PO_CHOICES_MAX];
            assert_true(po_choices_of(naive, node, 0, choices) > 0);
            po_text text;
            po_text_init(&text, f.arena);
            choices[0].how->tell(&choices[0], &text);
            assert_null(strstr(text.data, "plain loops"));
            turned += strstr(text.data, "turned in registers") != NULL;
        }
        assert_true(turned > 0);
        test_planned_end(&f);
    }
    assert_int_equal(found, 1);
}

static const po_scheduler *const schedulers[] = {&po_schedule_winograd, &po_schedule_strassen,
                                                 &po_schedule_planes};

/* A sample is named after the scheduler that it is there for. */
static bool is_named_after(const char *sample, const po_scheduler *scheduler) {
    return strncasecmp(sample, scheduler->name, strlen(scheduler->name)) == 0;
}

/* The choices of a step, and the plain ways that read the weights of others of them. */
static uint32_t all_choices(const po_mu *naive, uint32_t node, po_choice *choices) {
    const uint32_t listed = po_choices_of(naive, node, 0, choices);
    uint32_t n = listed;
    for (uint32_t k = 0; k < listed; k++)
        n += choices[k].how->plainly &&
             choices[k].how->plainly(naive, node, &choices[k], &choices[n]);
    return n;
}

/* The weights of convolutions by tiles lie as plain ways can read them. */
static void plain_ways_read_the_same_weights(void **state) {
    (void)state;
    uint32_t found = 0, none = 0;
    for (size_t i = 0; i < SAMPLES; i++) {
        test_planned f;
        test_planned_start(&f, samples[i].graph, false);
        const po_mu *naive = f.plan.lowered.mu;
        for (uint32_t node = naive->first; node != PO_NONE; node = naive->nodes[node].next) {
            po_choice choices[PO_CHOICES_MAX], plain;
            const uint32_t n = po_choices_of(naive, node, 0, choices);
            for (uint32_t k = 0; k < n; k++) {
                po_standalone_step lone[2];
                if (!choices[k].how->plainly)
                    continue;
                po_plan_standalone(f.arena, naive, node, &choices[k], &lone[0]);
                if (!choices[k].how->plainly(naive, node, &choices[k], &plain)) {
                    po_mu_conv conv; /* of values that are computed there is no order */
                    none += !po_conv_of(naive, node, &conv) || !conv.values;
                    continue;
                }
                po_plan_standalone(f.arena, naive, node, &plain, &lone[1]);
                assert_int_equal(lone[0].n_packed, lone[1].n_packed);
                for (uint32_t w = 0; w < lone[0].n_packed; w++)
                    assert_true(
                        po_packing_same(&lone[0].packed[w].packing, &lone[1].packed[w].packing));
                found++;
            }
        }
        test_planned_end(&f);
    }
    assert_true(found > 20);
    assert_int_equal(none, 0);
}

/* Every choice of every step of a sample, compiled as this code. */
static void compile_choices(size_t i, uint32_t isa) {
    enum { MOST = PO_CHOICES_MAX * 16 };
    test_planned f;
    test_planned_start(&f, samples[i].graph, false);
    const po_mu *naive = f.plan.lowered.mu;
    po_timed_kernel kernels[MOST];
    const char *told[MOST];
    uint32_t n = 0;
    bool wanted = false;
    for (size_t k = 0; k < sizeof schedulers / sizeof schedulers[0]; k++)
        wanted |= is_named_after(samples[i].name, schedulers[k]);
    for (uint32_t node = naive->first; node != PO_NONE; node = naive->nodes[node].next) {
        po_choice choices[2 * PO_CHOICES_MAX];
        uint32_t n_choices = all_choices(naive, node, choices);
        assert_true(n + n_choices <= MOST);
        for (uint32_t k = 0; k < n_choices; k++) {
            po_standalone_step *lone = PO_NEW(f.arena, po_standalone_step);
            po_text text;
            po_text_init(&text, f.arena);
            choices[k].how->tell(&choices[k], &text);
            told[n] = text.data;
            wanted &= !is_named_after(samples[i].name, choices[k].how);
            kernels[n] =
                (po_timed_kernel){.mu = po_plan_standalone(f.arena, naive, node, &choices[k], lone),
                                  .check = po_check_step,
                                  .user = lone};
            n++;
        }
    }
    if (wanted)
        fail_msg("'%s' has no step that is worked so", samples[i].name);
    assert_int_equal(po_time_kernels(&f.ctx, NULL, isa, kernels, n), PO_OK);
    for (uint32_t k = 0; k < n; k++)
        if (!(kernels[k].seconds > 0))
            fail_msg("%s, %s, %s: %s", samples[i].name, po_isas[isa].name, told[k],
                     kernels[k].seconds < 0 ? "wrong" : "not printed or compiled");
    test_planned_end(&f);
}

/* As every code that this machine runs. */
static void kernels_compute_what_their_steps_do(void **state) {
    (void)state;
    if (po_isa_of_machine() == PO_ISAS)
        skip();
    for (uint32_t isa = po_isa_of_machine(); isa < PO_ISAS; isa = po_isa_from(isa + 1))
        for (size_t i = 0; i < SAMPLES; i += TEST_SHARE)
            compile_choices(i, isa);
}

/* A step that differs in one place from what was compiled must be told. */
static void errors_are_found(void **state) {
    (void)state;
    uint32_t isa = po_isa_of_machine();
    if (isa == PO_ISAS)
        skip();
    for (int error = 0; error < 5; error++) {
        test_planned f;
        test_planned_start(&f, samples[0].graph, false);
        po_mu *naive = f.plan.lowered.mu;
        uint32_t node = naive->nodes[naive->nodes[naive->first].next].next;
        po_choice choices[PO_CHOICES_MAX];
        po_standalone_step lone;
        po_choices_of(naive, node, 0, choices);
        po_timed_kernel kernel = {.mu =
                                      po_plan_standalone(f.arena, naive, node, &choices[0], &lone),
                                  .check = po_check_step,
                                  .user = &lone};
        po_mu_statement *s = &naive->nodes[naive->nodes[node].first].statement;
        po_mu_statement *tail =
            &naive->nodes[naive->nodes[naive->nodes[node].first].next].statement;
        po_mu_index *y = (po_mu_index *)(uintptr_t)&s->in[0].axes[1];
        po_mu_item *items = (po_mu_item *)(uintptr_t)tail->items;
        switch (error) {
        case 0: /* a row further */
            y->offset++;
            break;
        case 1: /* another tap */
            ((po_mu_index *)(uintptr_t)&s->in[1].axes[2])->offset = -1;
            break;
        case 2: /* no bound at 0 */
            items[tail->n_items - 1].function = PO_MU_PLUS;
            break;
        case 3: /* the residual is left out: its operand is the sum itself */
            tail->n_items = 1;
            break;
        default: /* a stride */
            ((po_mu_term *)(uintptr_t)y->terms)[0].coef = 2;
        }
        assert_int_equal(po_time_kernels(&f.ctx, NULL, isa, &kernel, 1), PO_OK);
        if (kernel.seconds != -1)
            fail_msg("error %d is not found", error);
        test_planned_end(&f);
    }
}

/* A kernel that gets one element wrong, a little. */
typedef struct damaged {
    const po_loaded_kernel *kernel;
    int64_t at;
} damaged;

static void run_damaged(void *self, const float *const *weights) {
    const damaged *d = self;
    d->kernel->run(d->kernel->self, weights);
    d->kernel->device[d->at] = d->kernel->device[d->at] * 1.01F + 1e-3F;
}

/* NULL where damage to every single element is found, and none without damage. */
static const char *check_damaged(po_ctx *ctx, po_arena *arena, void *user,
                                 const po_loaded_kernel *kernel) {
    const po_standalone_step *lone = user;
    po_naive_step step;
    const char *wrong = po_check_step(ctx, arena, user, kernel);
    if (wrong || !po_naive_step_of(lone->naive, lone->step, &step))
        return wrong;
    uint32_t twin = lone->tensor[step.out->tensor];
    const po_mu_tensor *t = &kernel->mu->tensors[twin];
    int64_t count = 1;
    for (uint32_t x = 0; x < t->rank; x++)
        count *= t->dims[x];
    for (int64_t e = 0; e < count; e++) {
        damaged d = {kernel, kernel->places[twin] + t->origin};
        for (int64_t x = t->rank, rest = e; x-- > 0; rest /= t->dims[x])
            d.at += rest % t->dims[x] * t->stride[x];
        po_loaded_kernel broken = *kernel;
        broken.self = &d;
        broken.run = run_damaged;
        if (!po_check_step(ctx, arena, user, &broken))
            return po_arena_printf(arena, "damage to element %lld is not found", (long long)e);
    }
    return NULL;
}

static void damage_to_any_element_is_found(void **state) {
    (void)state;
    uint32_t isa = po_isa_of_machine();
    if (isa == PO_ISAS)
        skip();
    /* Winograd; steps that write a part of a map each; sums along the lanes. */
    static const char *const names[] = {"Winograd and a residual", "transposed, strides 2 and 1",
                                        "softmax and a maximum", "floors of more than a thousand"};
    for (size_t i = 0; i < SAMPLES; i++) {
        bool wanted = false;
        for (size_t k = 0; k < sizeof names / sizeof names[0]; k++)
            wanted |= strcmp(samples[i].name, names[k]) == 0;
        if (!wanted)
            continue;
        test_planned f;
        test_planned_start(&f, samples[i].graph, false);
        const po_mu *naive = f.plan.lowered.mu;
        po_timed_kernel kernels[16];
        uint32_t n = 0;
        for (uint32_t node = naive->first; node != PO_NONE && n < 16;
             node = naive->nodes[node].next) {
            po_choice choices[PO_CHOICES_MAX];
            po_standalone_step *lone = PO_NEW(f.arena, po_standalone_step);
            po_choices_of(naive, node, 0, choices);
            kernels[n++] =
                (po_timed_kernel){.mu = po_plan_standalone(f.arena, naive, node, &choices[0], lone),
                                  .check = check_damaged,
                                  .user = lone};
        }
        assert_int_equal(po_time_kernels(&f.ctx, NULL, isa, kernels, n), PO_OK);
        for (uint32_t k = 0; k < n; k++)
            if (!(kernels[k].seconds > 0))
                fail_msg("%s, step %u: damage is not found", samples[i].name, k);
        test_planned_end(&f);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(computes_what_the_graph_does),
        cmocka_unit_test(plain_ways_read_the_same_weights),
        cmocka_unit_test(kernels_compute_what_their_steps_do),
        cmocka_unit_test(nothing_is_read_across),
        cmocka_unit_test(errors_are_found),
        cmocka_unit_test(damage_to_any_element_is_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
