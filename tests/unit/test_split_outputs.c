/* Split outputs of convolutions, pointwise convolutions before upsampling, Softmax over an inner
 * axis. */
#include "samples.h"
#include "unit.h"

#define ARITHMETIC PO_LEFTOVER_ARITHMETIC

#define SIZES "q: i64[2] {16, 32}"

static const test_sample samples[] = {
    {"split behind SiLU",
     "graph g (x: f32[1,5,6,4]) -> (y, z) {\n"
     " c = Conv(x, w: f32[48,5,3,3] random 1, b: f32[48] random 2) {pads=[1,1,1,1]}\n"
     " s = Sigmoid(c)\n m = Mul(c, s)\n p, r = Split(m, " SIZES ") {axis=1}\n"
     " y = Relu(p)\n z = Tanh(r)\n}",
     "Split", "Conv", 2, ARITHMETIC},
    {"one map axis, split behind SiLU",
     "graph g (x: f32[1,5,12]) -> (y, z) {\n"
     " c = Conv(x, w: f32[48,5,3] random 1, b: f32[48] random 2) {pads=[1,1]}\n"
     " s = Sigmoid(c)\n m = Mul(c, s)\n p, r = Split(m, " SIZES ") {axis=1}\n"
     " y = Relu(p)\n z = Tanh(r)\n}",
     "Split", "Conv", 2, ARITHMETIC},
    {"three map axes, counted from the end",
     "graph g (x: f32[1,5,3,4,2]) -> (y, z) {\n"
     " c = Conv(x, w: f32[48,5,1,1,1] random 1)\n r = Relu(c)\n"
     " y, z = Split(r, " SIZES ") {axis=-4}\n}",
     "Split", "Conv", 2, ARITHMETIC},
    {"grouped convolutions stay",
     "graph g (x: f32[1,6,12]) -> (y, z) {\n"
     " c = Conv(x, w: f32[48,3,1] random 1) {group=2}\n"
     " y, z = Split(c, " SIZES ") {axis=1}\n}",
     "", "Split", 1, ARITHMETIC},
    {"three parts, no activation, no bias",
     "graph g (x: f32[2,5,6,4]) -> (y, z, u) {\n"
     " c = Conv(x, w: f32[48,5,1,1] random 1)\n"
     " y, z, u = Split(c, q: i64[3] {16, 16, 16}) {axis=-3}\n}",
     "Split", "Conv", 3, ARITHMETIC},
    {"parts that fill no blocks",
     "graph g (x: f32[1,5,6,4]) -> (y, z) {\n"
     " c = Conv(x, w: f32[48,5,1,1] random 1)\n"
     " y, z = Split(c, q: i64[2] {24, 24}) {axis=1}\n}",
     "", "Split", 1, ARITHMETIC},
    {"another axis",
     "graph g (x: f32[1,5,48,4]) -> (y, z) {\n"
     " c = Conv(x, w: f32[48,5,1,1] random 1)\n y, z = Split(c, " SIZES ") {axis=2}\n}",
     "", "Split", 1, ARITHMETIC},
    {"the whole is read as well",
     "graph g (x: f32[1,5,6,4]) -> (y, z, u) {\n"
     " c = Conv(x, w: f32[48,5,1,1] random 1)\n r = Relu(c)\n"
     " y, z = Split(r, " SIZES ") {axis=1}\n u = Softmax(c) {axis=1}\n}",
     "", "Split", 1, ARITHMETIC},
    {"a sum with something else",
     "graph g (x: f32[1,5,6,4], v: f32[1,48,6,4]) -> (y, z) {\n"
     " c = Conv(x, w: f32[48,5,1,1] random 1)\n a = Add(c, v)\n"
     " y, z = Split(a, " SIZES ") {axis=1}\n}",
     "", "Split", 1, ARITHMETIC},
    {"pointwise over an upsampled map",
     "graph g (x: f32[1,40,3,2]) -> (y) {\n"
     " u = Resize(x, r: f32[0] {}, s: f32[4] {1.0, 1.0, 2.0, 2.0}) {mode=\"nearest\",\n"
     "   coordinate_transformation_mode=\"asymmetric\", nearest_mode=\"floor\"}\n"
     " y = Conv(u, w: f32[7,40,1,1] random 1, b: f32[7] random 2)\n}",
     "", "Resize", 1, ARITHMETIC},
    {"pointwise over an upsampled part",
     "graph g (x: f32[1,40,3,2], v: f32[1,9,6,4]) -> (y) {\n"
     " u = Resize(x, r: f32[0] {}, s: f32[4] {1.0, 1.0, 2.0, 2.0}) {mode=\"nearest\",\n"
     "   coordinate_transformation_mode=\"asymmetric\", nearest_mode=\"floor\"}\n"
     " c = Concat(v, u) {axis=1}\n"
     " y = Conv(c, w: f32[7,49,1,1] random 1, b: f32[7] random 2)\n}",
     "Concat", "Conv", 2, ARITHMETIC},
    {"few upsampled channels",
     "graph g (x: f32[1,8,3,2], v: f32[1,9,6,4]) -> (y) {\n"
     " u = Resize(x, r: f32[0] {}, s: f32[4] {1.0, 1.0, 2.0, 2.0}) {mode=\"nearest\",\n"
     "   coordinate_transformation_mode=\"asymmetric\", nearest_mode=\"floor\"}\n"
     " c = Concat(v, u) {axis=1}\n y = Conv(c, w: f32[7,17,1,1] random 1)\n}",
     "", "Concat", 1, ARITHMETIC},
    {"softmax over a short inner axis",
     "graph g (x: f32[2,16,4,40]) -> (y) {\n y = Softmax(x) {axis=1}\n}", "Softmax", "Exp", 1,
     ARITHMETIC},
    {"softmax over the last axis",
     "graph g (x: f32[2,16,4,40]) -> (y) {\n y = Softmax(x) {axis=-1}\n}", "Exp", "Softmax", 1,
     ARITHMETIC},
    {"softmax over a long inner axis",
     "graph g (x: f32[2,100,100]) -> (y) {\n y = Softmax(x) {axis=1}\n}", "Exp", "Softmax", 1,
     ARITHMETIC},
};

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST_SAMPLES(samples),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
