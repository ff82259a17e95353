/* Channels-last products as pointwise convolutions, and norms between transposes. */
#include "samples.h"
#include "unit.h"

#define ARITHMETIC PO_LEFTOVER_ARITHMETIC

static const test_sample samples[] = {
    {"a block with a norm, an activation, biases and a scale",
     "graph g (x: f32[2,16,5,4]) -> (y) {\n"
     " c = Conv(x, w: f32[16,1,3,3] random 1) {pads=[1,1,1,1], group=16}\n"
     " t = Transpose(c) {perm=[0,2,3,1]}\n n = Tanh(t)\n m = MatMul(n, a: f32[16,32] random 2)\n"
     " b = Add(p: f32[32] random 3, m)\n r = Relu(b)\n o = MatMul(r, q: f32[32,16] random 4)\n"
     " d = Add(o, e: f32[16] random 5)\n s = Mul(u: f32[16] random 6, d)\n"
     " v = Transpose(s) {perm=[0,3,1,2]}\n y = Add(x, v)\n}",
     "MatMul Mul", "Conv", 3, ARITHMETIC},
    {"open batch",
     "graph g (x: f32[N,5,4,16]) -> (y) {\n"
     " m = MatMul(x, a: f32[16,32] random 2)\n b = Sub(p: f32[1,32] random 3, m)\n"
     " c = Clip(b, lo: f32[] {-1.0}, hi: f32[] {1.0})\n y = Transpose(c) {perm=[0,3,1,2]}\n}",
     "MatMul", "Conv", 1, ARITHMETIC},
    {"a product that another reads too",
     "graph g (x: f32[1,5,4,16]) -> (y, z) {\n"
     " m = MatMul(x, a: f32[16,32] random 2)\n z = Relu(m)\n"
     " y = Transpose(m) {perm=[0,3,1,2]}\n}",
     "MatMul", "Transpose", 2, ARITHMETIC},
    {"another transpose",
     "graph g (x: f32[1,5,4,16]) -> (y) {\n"
     " m = MatMul(x, a: f32[16,32] random 2)\n y = Transpose(m) {perm=[0,3,2,1]}\n}",
     "MatMul", "Transpose", 2, ARITHMETIC},
    {"a vector along another axis",
     "graph g (x: f32[1,5,4,16]) -> (y) {\n"
     " m = MatMul(x, a: f32[16,32] random 2)\n b = Add(m, p: f32[4,1] random 3)\n"
     " y = Transpose(b) {perm=[0,3,1,2]}\n}",
     "MatMul", "Transpose", 3, ARITHMETIC},
    {"few channels",
     "graph g (x: f32[1,5,4,8]) -> (y) {\n"
     " m = MatMul(x, a: f32[8,32] random 2)\n y = Transpose(m) {perm=[0,3,1,2]}\n}",
     "Conv", "MatMul", 1, ARITHMETIC},
    {"a matrix that only the run knows",
     "graph g (x: f32[1,5,4,16], a: f32[16,32]) -> (y) {\n"
     " m = MatMul(x, a)\n y = Transpose(m) {perm=[0,3,1,2]}\n}",
     "Conv", "MatMul", 1, ARITHMETIC},
    {"a norm between transposes, as a matrix below opset 17",
     "pir 1 ir_version=7 opset=13\n"
     "graph g (x: f32[2,16,3,4]) -> (y) {\n"
     " t = Transpose(x) {perm=[0,2,3,1]}\n m = ReduceMean(t) {axes=[-1]}\n d = Sub(t, m)\n"
     " s = Mul(d, d)\n v = ReduceMean(s) {axes=[-1]}\n e = Add(v, k: f32[] {1e-5})\n"
     " r = Sqrt(e)\n q = Div(d, r)\n g = Mul(q, a: f32[16] random 2)\n"
     " b = Add(g, c: f32[16] random 3)\n y = Transpose(b) {perm=[0,3,1,2]}\n}",
     "", "Reshape", 2, ARITHMETIC},
};

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST_SAMPLES(samples),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
