/* PET's mutants (paper, Tables 3 and 4, Figures 1, 3 and 10, section 8.3) at their true sizes, as
 * the blind enumeration names them. */
#include "enumerate_cases.h"

#include <stdio.h>

#define DILATED                                                                                    \
    "graph g (x: f32[1,512,14,14], w: f32[256,512,3,3]) -> (y) {\n"                                \
    "  y = Conv(x, w) {dilations=[2,2], pads=[2,2,2,2]}\n}\n"
#define IMAGES                                                                                     \
    "graph g (x: f32[16,256,14,14], w: f32[256,256,3,3]) -> (y) {\n"                               \
    "  y = Conv(x, w) {pads=[1,1,1,1]}\n}\n"
#define POOL                                                                                       \
    "graph g (x: f32[1,192,35,35]) -> (y) {\n"                                                     \
    "  y = AveragePool(x) {kernel_shape=[3,3], pads=[1,1,1,1], count_include_pad=1}\n}\n"
#define TWO_OF_ONE                                                                                 \
    "graph g (x: f32[1,768,18,18], v: f32[192,768,1,1], w: f32[160,768,1,1]) -> (y, z) {\n"        \
    "  y = Conv(x, v)\n  z = Conv(x, w)\n}\n"
#define PRODUCTS(p, q, r, inputs)                                                                  \
    "graph g (" inputs ", a: f32[768,768], b: f32[768,768], c: f32[768,768]) -> (y, z, u) {\n"     \
    "  y = MatMul(" p ", a)\n  z = MatMul(" q ", b)\n  u = MatMul(" r ", c)\n}\n"

const enumerate_paper_case enumerate_paper_cases[] = {
    {"Table 4: conv, both map axes cut in four, 38 filled up to 40",
     "graph g (x: f32[1,48,38,38], w: f32[64,48,5,5]) -> (y) {\n"
     "  y = Conv(x, w) {pads=[2,2,2,2]}\n}\n",
     1, 1, 16, " Conv([16,48,10,10] R/T, [64,48,5,5]); R/T", "halo"},
    {"Table 4: dilated to plain, as phases", DILATED, 1, 1, 0,
     " Conv([4,512,7,7] R/T, [256,512,3,3]); R/T", ""},
    {"Figure 1: 16 images as one", IMAGES, 1, 1, 0, " Conv([1,256,14,224] R/T, [256,256,3,3]); R/T",
     "zero gap"},
    {"Figure 1: 16 images as 4", IMAGES, 1, 1, 0, " Conv([4,256,28,28] R/T, [256,256,3,3]); R/T",
     "zero gap"},
    {"strided to stride 1", /* ResNet's */
     "graph g (x: f32[1,64,56,56], w: f32[128,64,3,3]) -> (y) {\n"
     "  y = Conv(x, w) {pads=[1,1,1,1], strides=[2,2]}\n}\n",
     1, 1, 0, " Conv([1,256,28,28] R/T, [128,256,2,2] R/T)", ""},
    {"strided to stride 1, 7x7", /* ResNet's first */
     "graph g (x: f32[1,3,224,224], w: f32[64,3,7,7]) -> (y) {\n"
     "  y = Conv(x, w) {pads=[3,3,3,3], strides=[2,2]}\n}\n",
     1, 1, 0, " Conv([1,12,112,112] R/T, [64,12,4,4] R/T)", ""},
    {"group convolution to fewer groups", /* ResNeXt's */
     "graph g (x: f32[1,128,28,28], w: f32[128,4,3,3]) -> (y) {\n"
     "  y = Conv(x, w) {pads=[1,1,1,1], group=32}\n}\n",
     1, 1, 0, " Conv([1,128,28,28], [128,16,3,3] R/T)", ""},
    {"group convolution to convolution", /* AlexNet's second */
     "graph g (x: f32[1,96,27,27], w: f32[256,48,5,5]) -> (y) {\n"
     "  y = Conv(x, w) {pads=[2,2,2,2], group=2}\n}\n",
     1, 1, 0, " Conv([1,96,27,27], [256,96,5,5] R/T)", ""},
    {"average pool to group convolution", POOL, 1, 1, 0, " Conv([1,192,35,35], [192,1,3,3])", ""},
    {"average pool to convolution", POOL, 1, 1, 0, " Conv([1,192,35,35], [192,192,3,3] R/T)", ""},
    {"Table 3: groupconv, four of one map",
     "graph g (x: f32[1,768,18,18], a: f32[192,768,1,1], b: f32[192,768,1,1], "
     "c: f32[160,768,1,1], d: f32[160,768,1,1]) -> (y, z, u, v) {\n"
     "  y = Conv(x, a)\n  z = Conv(x, b)\n  u = Conv(x, c)\n  v = Conv(x, d)\n}\n",
     1, 1, 0, " Conv([1,768,18,18], [704,768,1,1]); Split([1,704,18,18])", ""},
    {"Table 3: groupconv, two of each of two maps",
     "graph g (a: f32[1,768,18,18], b: f32[1,768,18,18], s: f32[192,768,1,1], "
     "t: f32[192,768,1,1], u: f32[160,768,1,1], v: f32[160,768,1,1]) -> (y) {\n"
     "  c = Conv(a, s)\n  d = Conv(b, t)\n  e = Conv(a, u)\n  f = Conv(b, v)\n"
     "  y = Concat(c, d, e, f) {axis=1}\n}\n",
     2, 4, 0,
     " Concat([352,768,1,1], [352,768,1,1]); Conv([1,1536,18,18], [704,768,1,1]); "
     "Split([1,704,18,18])",
     ""},
    {"Figure 10a: unequal channels filled up to groups", TWO_OF_ONE, 1, 1, 0,
     " Conv([1,1536,18,18], [384,768,1,1]); Split([1,384,18,18])", ""},
    {"Figure 10b: two inputs as groups",
     "graph g (a: f32[1,768,18,18], b: f32[1,768,18,18], v: f32[192,768,1,1], "
     "w: f32[192,768,1,1]) -> (y, z) {\n  y = Conv(a, v)\n  z = Conv(b, w)\n}\n",
     2, 1, 0, " Conv([1,1536,18,18], [384,768,1,1]); Split([1,384,18,18])", ""},
    {"Table 3: batchmatmul, of one input", PRODUCTS("x", "x", "x", "x: f32[512,768]"), 1, 1, 0,
     " MatMul([512,768], [768,2304]); Split([512,2304])", ""},
    {"Table 3: batchmatmul, of one input, as a batch", PRODUCTS("x", "x", "x", "x: f32[512,768]"),
     1, 1, 0, " MatMul([512,768], [3,768,768]); Split([3,512,768])", ""},
    {"Table 3: batchmatmul, of three inputs, as a batch",
     PRODUCTS("s", "t", "r", "s: f32[512,768], t: f32[512,768], r: f32[512,768]"), 3, 1, 0,
     " MatMul([3,512,768], [3,768,768]); Split([3,512,768])", ""},
    {"batched product to one",
     "graph g (x: f32[16,512,768], w: f32[768,768]) -> (y) {\n  y = MatMul(x, w)\n}\n", 1, 1, 0,
     " MatMul([8192,768] R/T, [768,768]); R/T", ""},
};
const uint32_t n_enumerate_paper_cases =
    sizeof enumerate_paper_cases / sizeof *enumerate_paper_cases;

po_subprogram enumerate_paper_subprogram(po_ctx *ctx, const enumerate_paper_case *c) {
    enumerate_case plain = {.n_activations = c->n_activations};
    char text[1024];
    snprintf(text, sizeof text, "pir 1 ir_version=8 opset=17\n%s", c->text);
    plain.text = text;
    return enumerate_subprogram(ctx, &plain);
}
