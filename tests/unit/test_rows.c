/* Convolutions by Toom-Cook along the rows: where it pays, at borders, dilated, in groups, in
 * strips, and where it must stay away. */
#include "samples.h"
#include "unit.h"

#define ARITHMETIC PO_LEFTOVER_ARITHMETIC

static const test_sample samples[] = {
    {"a residual block stays in rows",
     "graph g (x: f32[1,96,16,20]) -> (y, z) {\n"
     " c = Conv(x, w: f32[96,96,3,3] random 1, b: f32[96] random 2) {pads=[1,1,1,1]}\n"
     " r = Relu(c)\n d = Conv(r, v: f32[96,96,3,3] random 3) {pads=[1,1,1,1]}\n"
     " s = Add(d, x)\n y = Relu(s)\n z = MaxPool(y) {kernel_shape=[2,2]}\n}",
     "", "Transpose", 6, ARITHMETIC},
    {"uneven padding and a wide kernel",
     "graph g (x: f32[1,80,11,16]) -> (y) {\n"
     " y = Conv(x, w: f32[80,80,5,3] random 1, b: f32[80] random 2) {pads=[0,1,2,0]}\n}",
     "", "MatMul", 2, ARITHMETIC},
    {"dilated rows, strided columns",
     "graph g (x: f32[1,160,16,40]) -> (y) {\n y = Conv(x, w: f32[160,160,3,3] random 1)\n"
     "   {pads=[2,1,2,1], dilations=[2,1], strides=[1,2]}\n}",
     "", "MatMul", 2, ARITHMETIC},
    {"groups",
     "graph g (x: f32[1,192,12,24]) -> (y) {\n"
     " y = Conv(x, w: f32[192,96,3,3] random 1, b: f32[192] random 2) {pads=[1,1,1,1], group=2}\n}",
     "", "MatMul", 2, ARITHMETIC},
    {"a batch",
     "graph g (x: f32[2,192,12,12]) -> (y) {\n"
     " y = Conv(x, w: f32[192,192,3,3] random 1, b: f32[192] random 2) {pads=[1,1,1,1]}\n}",
     "", "MatMul", 2, ARITHMETIC},
    {"groups of a batch stay",
     "graph g (x: f32[2,192,12,12]) -> (y) {\n"
     " y = Conv(x, w: f32[192,96,3,3] random 1, b: f32[192] random 2) {pads=[1,1,1,1], group=2}\n}",
     "MatMul", "Conv", 1, ARITHMETIC},
    {"many rows in strips",
     "graph g (x: f32[1,80,71,4]) -> (y) {\n"
     " y = Conv(x, w: f32[96,80,3,3] random 1, b: f32[96] random 2) {pads=[1,1,1,1]}\n}",
     "", "Gather", 2, ARITHMETIC},
    {"dilated strips",
     "graph g (x: f32[1,96,50,10]) -> (y) {\n y = Conv(x, w: f32[96,96,3,3] random 1)\n"
     "   {pads=[3,1,3,1], dilations=[3,1]}\n}",
     "", "Gather", 2, ARITHMETIC},
    {"parts joined for another one",
     "graph g (x: f32[1,80,16,20], u: f32[1,80,16,20]) -> (y) {\n"
     " c = Conv(x, w: f32[80,80,3,3] random 1) {pads=[1,1,1,1]}\n"
     " j = Concat(c, u) {axis=1}\n"
     " y = Conv(j, v: f32[80,160,3,3] random 2) {pads=[1,1,1,1]}\n}",
     "", "Transpose", 7, ARITHMETIC},
    {"few channels",
     "graph g (x: f32[1,16,32,32]) -> (y) {\n"
     " y = Conv(x, w: f32[16,16,3,3] random 1) {pads=[1,1,1,1]}\n}",
     "MatMul", "Conv", 1, ARITHMETIC},
    {"a map that no cache holds",
     "graph g (x: f32[1,64,64,240]) -> (y) {\n"
     " y = Conv(x, w: f32[64,64,3,3] random 1) {pads=[1,1,1,1]}\n}",
     "MatMul", "Conv", 1, ARITHMETIC},
    {"a narrower one",
     "graph g (x: f32[1,64,64,60]) -> (y) {\n"
     " y = Conv(x, w: f32[64,64,3,3] random 1) {pads=[1,1,1,1]}\n}",
     "", "MatMul", 2, ARITHMETIC},
    {"channels that are no multiple of the block",
     "graph g (x: f32[1,104,24,24]) -> (y) {\n"
     " y = Conv(x, w: f32[96,104,3,3] random 1) {pads=[1,1,1,1]}\n}",
     "MatMul", "Conv", 1, ARITHMETIC},
    {"strided rows",
     "graph g (x: f32[1,96,24,24]) -> (y) {\n"
     " y = Conv(x, w: f32[96,96,3,3] random 1) {pads=[1,1,1,1], strides=[2,1]}\n}",
     "MatMul", "Conv", 1, ARITHMETIC},
    {"weights that only the run knows",
     "graph g (x: f32[1,96,24,24], w: f32[96,96,3,3]) -> (y) {\n"
     " y = Conv(x, w) {pads=[1,1,1,1]}\n}",
     "MatMul", "Conv", 1, ARITHMETIC},
    {"open sizes",
     "graph g (x: f32[1,96,H,W]) -> (y) {\n"
     " y = Conv(x, w: f32[96,96,3,3] random 1) {pads=[1,1,1,1]}\n}",
     "MatMul", "Conv", 1, ARITHMETIC},
};

static void test_samples(void **state) {
    (void)state;
    assert_int_equal(test_samples_run(samples, sizeof samples / sizeof *samples), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_samples),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
