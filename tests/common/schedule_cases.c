/* Small graphs of which every step is worked in each of its ways. */
#include "schedule_cases.h"

#define CONV3 "{kernel_shape=[3, 3], pads=[1, 1, 1, 1]}"

const schedule_case schedule_cases[] = {
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
    {"Strassen by slices of channels, in blocks of rows",
     "graph g (x: f32[192,3136]) -> (y) {\n y = MatMul(x, w: f32[3136,96] random 1)\n}"},
    {"Strassen twice, an odd map",
     "graph g (x: f32[1,16,13,11]) -> (y) {\n"
     " a = Conv(x, w: f32[512,16,1,1] random 1) {kernel_shape=[1, 1]}\n"
     " c = Conv(a, v: f32[512,512,1,1] random 3) {kernel_shape=[1, 1]}\n y = Add(c, a)\n}"},
    {"Strassen twice, blocks of rows",
     "graph g (x: f32[256,512]) -> (y) {\n a = MatMul(x, w: f32[512,512] random 1)\n"
     " b = Add(a, c: f32[512] random 2)\n y = Relu(b)\n}"},
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
    {"more parts than a sum has terms, lines of seven",
     "graph g (x: f32[1,16,7,7]) -> (y) {\n"
     " a = Conv(x, w: f32[16,16,1,1] random 1) {kernel_shape=[1, 1]}\n r = Relu(a)\n"
     " c = Concat(r, x, r, x, r, x, r, x, r, x, r, x, r, x, r, x, r, x) {axis=1}\n"
     " n = Mul(c, s: f32[288,1,1] random 2)\n m = Add(n, t: f32[288,1,1] random 3)\n"
     " h = Relu(m)\n y = Conv(h, v: f32[16,288,1,1] random 4) {kernel_shape=[1, 1]}\n}"},
    {"halves of a map, and what is added to one of them, again and again",
     "graph g (x: f32[1,16,9,10]) -> (y) {\n"
     " a = Conv(x, w: f32[32,16,1,1] random 1) {kernel_shape=[1, 1]}\n"
     " s, t = Split(a, h: i64[2] {16, 16}) {axis=1}\n"
     " b = Conv(t, v: f32[16,16,3,3] random 2) " CONV3 "\n c = Add(t, b)\n"
     " d = Conv(c, u: f32[16,16,3,3] random 3) " CONV3 "\n r = Relu(d)\n e = Add(c, r)\n"
     " j = Concat(s, t, c, e) {axis=1}\n"
     " y = Conv(j, k: f32[16,64,1,1] random 4) {kernel_shape=[1, 1]}\n}"},
    {"what all layers before made, put together for each",
     "graph g (x: f32[1,16,9,10]) -> (y) {\n"
     " a = Conv(x, w: f32[32,16,1,1] random 1) {kernel_shape=[1, 1]}\n"
     " b = Conv(a, v: f32[16,32,3,3] random 2) " CONV3 "\n c = Concat(a, b) {axis=1}\n"
     " d = Conv(c, u: f32[16,48,3,3] random 3) " CONV3 "\n e = Concat(a, b, d) {axis=1}\n"
     " f = Conv(e, t: f32[16,64,1,1] random 4) {kernel_shape=[1, 1]}\n"
     " g = Concat(a, b, d, f) {axis=1}\n"
     " y = Conv(g, s: f32[16,80,3,3] random 5) " CONV3 "\n}"},
    {"maxima of maxima beside what they are of",
     "graph g (x: f32[1,16,9,10]) -> (y) {\n"
     " a = Conv(x, w: f32[16,16,1,1] random 1) {kernel_shape=[1, 1]}\n"
     " b = MaxPool(a) {kernel_shape=[5, 5], pads=[2, 2, 2, 2]}\n"
     " c = MaxPool(b) {kernel_shape=[5, 5], pads=[2, 2, 2, 2]}\n d = Concat(a, b, c) {axis=1}\n"
     " y = Conv(d, v: f32[16,48,1,1] random 2) {kernel_shape=[1, 1]}\n}"},
    {"sums and maxima past the edges of parts",
     "graph g (x: f32[1,16,9,10]) -> (y) {\n"
     " a = Conv(x, w: f32[16,16,1,1] random 1) {kernel_shape=[1, 1]}\n"
     " b = MaxPool(a) {kernel_shape=[3, 3], pads=[1, 1, 1, 1]}\n"
     " c = Conv(b, v: f32[16,16,3,3] random 2) " CONV3 "\n d = Concat(a, b, c) {axis=1}\n"
     " e = Concat(a, b) {axis=1}\n f = MaxPool(e) {kernel_shape=[3, 3], pads=[1, 1, 1, 1]}\n"
     " g = Concat(d, f) {axis=1}\n y = Conv(g, u: f32[16,80,3,3] random 3) " CONV3 "\n}"},
    {"maxima past the edges of slices of parts, sums past those of the parts",
     "graph g (x: f32[1,16,9,10]) -> (y) {\n"
     " a = Conv(x, w: f32[32,16,3,3] random 1) " CONV3 "\n"
     " s = Slice(a, b: i64[1] {0}, e: i64[1] {16}, c: i64[1] {1})\n"
     " m = MaxPool(s) {kernel_shape=[3, 3], pads=[1, 1, 1, 1]}\n"
     " f = Conv(m, v: f32[32,16,3,3] random 2) " CONV3 "\n t = Slice(f, b, e, c)\n"
     " n = MaxPool(t) {kernel_shape=[3, 3], pads=[1, 1, 1, 1]}\n j = Concat(a, f, n) {axis=1}\n"
     " g = Conv(a, u: f32[16,32,3,3] random 3) " CONV3 "\n"
     " h = Conv(j, k: f32[16,80,3,3] random 4) " CONV3 "\n y = Add(g, h)\n}"},
    {"a part with an edge of its own",
     "graph g (x: f32[1,16,9,10]) -> (y) {\n"
     " a = Conv(x, w: f32[32,16,1,1] random 1) {kernel_shape=[1, 1]}\n"
     " p = Pad(a, q: i64[8] {0, 0, 1, 1, 0, 0, 1, 1})\n"
     " b = Conv(p, v: f32[16,32,3,3] random 2) {kernel_shape=[3, 3]}\n"
     " c = Concat(b, a) {axis=1}\n"
     " y = Conv(c, u: f32[16,48,1,1] random 3) {kernel_shape=[1, 1]}\n}"},
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

const uint32_t n_schedule_cases = sizeof schedule_cases / sizeof schedule_cases[0];
