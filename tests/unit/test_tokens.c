/* Products of tokens as pointwise convolutions: what goes along, what stays, heads of attention. */
#include "samples.h"
#include "unit.h"

#define ARITHMETIC PO_LEFTOVER_ARITHMETIC

static const test_sample samples[] = {
    {"bias, activation and second product in blocks, the residual sum behind them",
     "graph g (x: f32[1,5,16]) -> (y) {\n"
     " m = MatMul(x, a: f32[16,64] random 1)\n b = Add(p: f32[64] random 2, m)\n r = Relu(b)\n"
     " o = MatMul(r, q: f32[64,16] random 3)\n d = Add(o, e: f32[16] random 4)\n"
     " y = Add(x, d)\n}",
     "MatMul", "Add", 1, ARITHMETIC},
    {"one turn for all products of a value, one back for each result",
     "graph g (x: f32[1,5,16]) -> (y, z) {\n"
     " y = MatMul(x, a: f32[16,64] random 1)\n z = MatMul(x, b: f32[16,32] random 2)\n}",
     "MatMul", "Transpose", 3, ARITHMETIC},
    {"attention: heads are taken off the map and joined to it by one move each",
     "pir 1 ir_version=8 opset=17\n"
     "graph g (x: f32[1,8,16]) -> (y) {\n"
     " a = MatMul(x, wq: f32[16,16] random 1)\n b = MatMul(x, wk: f32[16,16] random 2)\n"
     " c = MatMul(x, wv: f32[16,16] random 3)\n s = i64[4] {1, 8, 4, 4}\n"
     " ra = Reshape(a, s)\n rb = Reshape(b, s)\n rc = Reshape(c, s)\n"
     " q = Transpose(ra) {perm=[0,2,1,3]}\n k = Transpose(rb) {perm=[0,2,3,1]}\n"
     " v = Transpose(rc) {perm=[0,2,1,3]}\n m = MatMul(q, k)\n p = Softmax(m) {axis=-1}\n"
     " o = MatMul(p, v)\n t = Transpose(o) {perm=[0,2,1,3]}\n"
     " u = Reshape(t, f: i64[3] {1, 8, 16})\n y = MatMul(u, wo: f32[16,16] random 4)\n}",
     /* To the map and back, Q and V from it, the context to it; K is there. */
     "", "Transpose", 5, ARITHMETIC},
    {"tokens of several samples side by side",
     "graph g (x: f32[2,5,16]) -> (y) {\n y = MatMul(x, a: f32[16,64] random 1)\n}", "MatMul",
     "Transpose", 2, ARITHMETIC},
    {"the lengths of all are read once",
     "pir 1 ir_version=8 opset=17\n"
     "graph g (x: f32[N,T,16]) -> (y) {\n"
     " a = MatMul(x, wa: f32[16,32] random 1)\n b = Softmax(a) {axis=-1}\n"
     " c = MatMul(b, wb: f32[32,16] random 2)\n d = Softmax(c) {axis=-1}\n"
     " y = MatMul(d, wc: f32[16,48] random 3)\n}",
     "MatMul", "Shape", 1, ARITHMETIC},
    {"and so is a shape of them",
     "pir 1 ir_version=8 opset=17\n"
     "graph g (x: f32[N,T,16]) -> (y, z) {\n"
     " y = MatMul(x, wa: f32[16,32] random 1)\n z = MatMul(x, wb: f32[16,32] random 2)\n}",
     "MatMul", "Concat", 1, ARITHMETIC},
    {"open batch and tokens",
     "pir 1 ir_version=8 opset=17\n"
     "graph g (x: f32[N,T,16]) -> (y) {\n"
     " m = MatMul(x, a: f32[16,32] random 1)\n"
     " s = Reshape(m, f: i64[4] {0, 0, 4, 8})\n q = Transpose(s) {perm=[0,2,1,3]}\n"
     " e = Tanh(q)\n t = Transpose(e) {perm=[0,2,1,3]}\n"
     " u = Reshape(t, g: i64[3] {0, 0, 32})\n y = MatMul(u, b: f32[32,16] random 2)\n}",
     "MatMul", "Conv", 2, ARITHMETIC},
    {"maps with their channels last",
     "graph g (x: f32[2,3,4,16]) -> (y) {\n"
     " m = MatMul(x, a: f32[16,32] random 1)\n r = Relu(m)\n"
     " y = MatMul(r, b: f32[32,16] random 2)\n}",
     "MatMul", "Transpose", 2, ARITHMETIC},
    {"tokens flattened for their products",
     "pir 1 ir_version=8 opset=17\n"
     "graph g (x: f32[2,5,4]) -> (y) {\n"
     " f = Reshape(x, s: i64[2] {10, 4})\n m = MatMul(f, a: f32[4,6] random 1)\n"
     " r = Reshape(m, t: i64[3] {2, 5, 6})\n b = Add(r, p: f32[6] random 2)\n y = Tanh(b)\n}",
     "Reshape", "MatMul", 1, ARITHMETIC},
    {"tokens flattened and dealt anew",
     "pir 1 ir_version=8 opset=17\n"
     "graph g (x: f32[2,5,4]) -> (y) {\n"
     " f = Reshape(x, s: i64[2] {10, 4})\n m = MatMul(f, a: f32[4,6] random 1)\n"
     " y = Reshape(m, t: i64[3] {5, 2, 6})\n}",
     "", "Reshape", 2, ARITHMETIC},
    {"rows, by Gemm, and their heads",
     "pir 1 ir_version=8 opset=17\n"
     "graph g (x: f32[8,128]) -> (y) {\n"
     " m = Gemm(x, a: f32[128,128] random 1, b: f32[128] random 2) {transB=1}\n"
     " s = Reshape(m, f: i64[4] {1, 8, 4, 32})\n y = Transpose(s) {perm=[0,2,3,1]}\n}",
     "Gemm", "Transpose", 1, ARITHMETIC},
    {"rows by a matrix, by its transpose and beside it",
     "pir 1 ir_version=8 opset=17\n"
     "graph g (x: f32[128,128]) -> (y, z) {\n"
     " m = MatMul(x, a: f32[128,128] random 1)\n b = Add(m, a)\n y = Relu(b)\n"
     " z = Gemm(x, a) {transB=1}\n}",
     "MatMul Gemm", "Conv", 2, ARITHMETIC},
    {"a few rows by a small matrix",
     "graph g (x: f32[2,128]) -> (y) {\n y = Gemm(x, a: f32[128,128] random 1)\n}", "Conv", "Gemm",
     1, ARITHMETIC},
    {"Gemm with a factor",
     "graph g (x: f32[8,128]) -> (y) {\n"
     " y = Gemm(x, a: f32[128,128] random 1) {alpha=0.5}\n}",
     "Conv", "Gemm", 1, ARITHMETIC},
    {"few channels", "graph g (x: f32[1,5,8]) -> (y) {\n y = MatMul(x, a: f32[8,64] random 1)\n}",
     "Conv", "MatMul", 1, ARITHMETIC},
    {"channels that blocks do not take",
     "graph g (x: f32[1,5,18]) -> (y) {\n y = MatMul(x, a: f32[18,64] random 1)\n}", "Conv",
     "MatMul", 1, ARITHMETIC},
    {"a large and narrow map",
     "graph g (x: f32[1,5000,64]) -> (y) {\n y = MatMul(x, a: f32[64,64] random 1)\n}", "Conv",
     "MatMul", 1, ARITHMETIC},
    {"a matrix that only the run knows",
     "graph g (x: f32[1,5,16], a: f32[16,32]) -> (y) {\n y = MatMul(x, a)\n}", "Conv", "MatMul", 1,
     ARITHMETIC},
    {"a matrix for each of the batch",
     "graph g (x: f32[2,5,16]) -> (y) {\n y = MatMul(x, a: f32[2,16,32] random 1)\n}", "Conv",
     "MatMul", 1, ARITHMETIC},
    {"a vector along the tokens",
     "graph g (x: f32[1,16,16]) -> (y) {\n"
     " m = MatMul(x, a: f32[16,16] random 1)\n y = Mul(m, p: f32[16,1] random 2)\n}",
     "", "Mul", 1, ARITHMETIC},
};

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST_SAMPLES(samples),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
