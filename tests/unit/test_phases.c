/* Convolutions along one axis by Toom-Cook in phases: strides, padding, both axes, chains that stay
 * in phases, tiles that reach over the end, and where it must stay away. */
#include "samples.h"
#include "unit.h"

#define ARITHMETIC PO_LEFTOVER_ARITHMETIC

static const test_sample samples[] = {
    {"a strided chain stays in phases; the last tile reaches over the end",
     "graph g (x: f32[1,512,1,1607]) -> (y) {\n"
     " c = Conv(x, w: f32[512,512,1,3] random 1) {strides=[1,2]}\n r = Relu(c)\n"
     " y = Conv(r, v: f32[512,512,1,3] random 3, b: f32[512] random 2) {strides=[1,2]}\n}",
     "", "Concat", 1, ARITHMETIC},
    {"padding at both ends",
     "graph g (x: f32[1,256,1,301]) -> (y) {\n"
     " y = Conv(x, w: f32[256,256,1,3] random 1, b: f32[256] random 2) {pads=[0,2,0,1]}\n}",
     "", "Concat", 1, ARITHMETIC},
    {"padding behind phases that end in anything: put together first",
     "graph g (x: f32[1,256,1,455]) -> (y) {\n"
     " c = Conv(x, w: f32[256,256,1,3] random 1) {pads=[0,1,0,0]}\n r = Sigmoid(c)\n"
     " y = Conv(r, v: f32[256,256,1,3] random 3) {pads=[0,1,0,1]}\n}",
     "", "Concat", 2, ARITHMETIC},
    {"along the rows of a strip of four, a batch of two",
     "graph g (x: f32[2,256,72,4]) -> (y) {\n"
     " y = Conv(x, w: f32[256,256,3,1] random 1) {pads=[1,0,0,0]}\n}",
     "", "Concat", 1, ARITHMETIC},
    {"another reader gets the whole",
     "graph g (x: f32[1,256,1,300]) -> (y, z) {\n"
     " c = Conv(x, w: f32[256,256,1,3] random 1)\n r = Relu(c)\n"
     " y = Conv(r, v: f32[256,256,1,3] random 3)\n z = MaxPool(r) {kernel_shape=[1,2]}\n}",
     "", "MaxPool", 1, ARITHMETIC},
    {"sums of phases",
     "graph g (x: f32[1,256,1,300]) -> (y) {\n"
     " a = Conv(x, w: f32[256,256,1,3] random 1)\n"
     " b = Conv(x, v: f32[256,256,1,3] random 2)\n"
     " s = Sigmoid(b)\n m = Mul(a, s)\n y = LeakyRelu(m)\n}",
     "", "Concat", 1, ARITHMETIC},
    {"one tap a residue: nothing to save",
     "graph g (x: f32[1,256,1,400]) -> (y) {\n"
     " y = Conv(x, w: f32[256,256,1,3] random 1) {strides=[1,3]}\n}",
     "Concat", "Conv", 1, ARITHMETIC},
    {"behind rows that integers pick",
     "graph g (i: i64[300]) -> (y) {\n"
     " r = Gather(t: f32[9,256] random 1, i)\n"
     " m = Reshape(r, s: i64[4] {1, 1, 300, 256})\n x = Transpose(m) {perm=[0,3,1,2]}\n"
     " y = Conv(x, w: f32[256,256,1,3] random 1)\n}",
     "", "Concat", 1, ARITHMETIC},
    {"few channels",
     "graph g (x: f32[1,32,1,400]) -> (y) {\n y = Conv(x, w: f32[32,32,1,3] random 1)\n}", "Concat",
     "Conv", 1, ARITHMETIC},
    {"dilated",
     "graph g (x: f32[1,256,1,200]) -> (y) {\n"
     " y = Conv(x, w: f32[256,256,1,3] random 1) {dilations=[1,2]}\n}",
     "Concat", "Conv", 1, ARITHMETIC},
    {"groups",
     "graph g (x: f32[1,256,1,200]) -> (y) {\n"
     " y = Conv(x, w: f32[256,128,1,3] random 1) {group=2}\n}",
     "Concat", "Conv", 1, ARITHMETIC},
    {"weights that only the run knows",
     "graph g (x: f32[1,256,1,200], w: f32[256,256,1,3]) -> (y) {\n y = Conv(x, w)\n}", "Concat",
     "Conv", 1, ARITHMETIC},
    {"open sizes",
     "graph g (x: f32[1,256,1,L]) -> (y) {\n"
     " y = Conv(x, w: f32[256,256,1,3] random 1) {strides=[1,2]}\n}",
     "Concat", "Conv", 1, ARITHMETIC},
};

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST_SAMPLES(samples),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
