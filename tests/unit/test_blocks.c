/* Channels padded to whole blocks, and gates spread over small maps. */
#include "rewriting.h"
#include "samples.h"
#include "unit.h"

#define ARITHMETIC PO_LEFTOVER_ARITHMETIC

static const test_sample samples[] = {
    {"a gated block of 24 and 6 channels",
     "graph g (x: f32[1,8,6,5]) -> (y) {\n"
     " c = Conv(x, w: f32[24,8,1,1] random 1, b: f32[24] random 2)\n"
     " h = HardSigmoid(c) {alpha=0.25, beta=0.75}\n"
     " d = Conv(h, v: f32[24,1,3,3] random 3, q: f32[24] random 4) {pads=[1,1,1,1], group=24}\n"
     " r = Relu(d)\n g = GlobalAveragePool(r)\n s = Conv(g, u: f32[6,24,1,1] random 5)\n"
     " t = Relu(s)\n e = Conv(t, p: f32[24,6,1,1] random 6, o: f32[24] random 7)\n"
     " k = Sigmoid(e)\n m = Mul(r, k)\n y = Conv(m, z: f32[7,24,1,1] random 8)\n}",
     "", "Resize", 1, ARITHMETIC},
    {"a pooled vector that others read",
     "graph g (x: f32[1,16,6,5]) -> (y) {\n"
     " c = Conv(x, w: f32[20,16,1,1] random 1, b: f32[20] random 2)\n"
     " p = MaxPool(c) {kernel_shape=[2,2], strides=[2,2]}\n g = GlobalAveragePool(p)\n"
     " f = Flatten(g)\n y = MatMul(f, a: f32[20,3] random 3)\n}",
     "", "Slice", 1, ARITHMETIC},
    {"a pooled map that is an output",
     "graph g (x: f32[1,16,6,5]) -> (y, p) {\n"
     " c = Conv(x, w: f32[20,16,1,1] random 1)\n"
     " p = MaxPool(c) {kernel_shape=[2,2], strides=[2,2]}\n"
     " y = Conv(p, v: f32[16,20,2,2] random 3)\n}",
     "Slice", "Conv", 2, ARITHMETIC},
    {"a pooled map that an opaque operator reads",
     "graph g (x: f32[1,16,6,5]) -> (y, s) {\n"
     " c = Conv(x, w: f32[20,16,1,1] random 1)\n"
     " p = MaxPool(c) {kernel_shape=[2,2], strides=[2,2]}\n s = Softmax(p) {axis=1}\n"
     " y = Conv(p, v: f32[16,20,2,2] random 3)\n}",
     "Slice", "Conv", 2, ARITHMETIC},
    {"sums with what is not made by a convolution",
     "graph g (x: f32[1,20,6,5]) -> (y) {\n"
     " c = Conv(x, w: f32[20,20,1,1] random 1)\n a = Add(c, x)\n"
     " p = AveragePool(a) {kernel_shape=[2,2], strides=[2,2]}\n"
     " y = Conv(p, v: f32[16,20,3,2] random 3)\n}",
     "Slice", "Conv", 2, ARITHMETIC},
    {"grouped convolutions",
     "graph g (x: f32[1,16,6,5]) -> (y) {\n"
     " c = Conv(x, w: f32[20,16,1,1] random 1)\n"
     " p = MaxPool(c) {kernel_shape=[2,2], strides=[2,2]}\n"
     " y = Conv(p, v: f32[16,10,3,2] random 3) {group=2}\n}",
     "Slice", "Conv", 2, ARITHMETIC},
    {"weights of the run",
     "graph g (x: f32[1,16,6,5], v: f32[16,20,3,2]) -> (y) {\n"
     " c = Conv(x, w: f32[20,16,1,1] random 1)\n"
     " p = MaxPool(c) {kernel_shape=[2,2], strides=[2,2]}\n y = Conv(p, v)\n}",
     "Slice", "Conv", 2, ARITHMETIC},
    {"a gate on a large map stays",
     "graph g (x: f32[1,16,80,80]) -> (y) {\n"
     " r = Conv(x, w: f32[16,1,3,3] random 1) {pads=[1,1,1,1], group=16}\n"
     " g = GlobalMaxPool(r)\n e = Conv(g, p: f32[16,16,1,1] random 6)\n k = Sigmoid(e)\n"
     " m = Mul(r, k)\n y = Conv(m, z: f32[4,16,1,1] random 8)\n}",
     "Resize", "Mul", 1, ARITHMETIC},
};

/* The widths themselves: every pooled or gated map fills its blocks. */
static void test_widths(void **state) {
    (void)state;
    po_ctx ctx;
    po_ctx_init(&ctx);
    po_graph *g = test_graph(&ctx, samples[0].graph), *h;
    po_postopt_options options = po_postopt_defaults();
    assert_int_equal(po_postopt(&ctx, g, &options, &h, NULL), PO_OK);
    int convs = 0;
    for (uint32_t i = 0; i < h->n_nodes; i++) {
        const po_node *n = &h->nodes[i];
        if (n->removed || n->op != PO_OP_Conv || h->values[n->out[0]].n_outputs)
            continue;
        const po_tensor *w = po_graph_constant(h, n->in[1]);
        assert_int_equal(w->dims[0] % 16, 0);
        convs++;
    }
    assert_int_equal(convs, 4);
    po_graph_free(h);
    po_graph_free(g);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST_SAMPLES(samples),
        cmocka_unit_test(test_widths),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
