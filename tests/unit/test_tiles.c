/* Convolutions by tiles: along rows and columns, at borders, dilated, in groups, of open sizes, and
 * where they must stay away. */
#include "pipeline/pin.h"
#include "rewriting.h"
#include "samples.h"
#include "unit.h"

#define ARITHMETIC PO_LEFTOVER_ARITHMETIC

static const test_sample samples[] = {
    {"a residual block, tiles that fit",
     "graph g (x: f32[1,96,16,20]) -> (y, z) {\n"
     " c = Conv(x, w: f32[96,96,3,3] random 1, b: f32[96] random 2) {pads=[1,1,1,1]}\n"
     " r = Relu(c)\n d = Conv(r, v: f32[96,96,3,3] random 3) {pads=[1,1,1,1]}\n"
     " s = Add(d, x)\n y = Relu(s)\n z = MaxPool(y) {kernel_shape=[2,2]}\n}",
     "Slice", "MatMul", 2, ARITHMETIC},
    {"what lies behind the map is cut off",
     "graph g (x: f32[1,128,29,30]) -> (y) {\n"
     " y = Conv(x, w: f32[128,128,3,3] random 1, b: f32[128] random 2) {pads=[1,1,1,1]}\n}",
     "", "Slice", 1, ARITHMETIC},
    {"rows and columns",
     "graph g (x: f32[1,256,24,20]) -> (y) {\n"
     " y = Conv(x, w: f32[256,256,3,3] random 1, b: f32[256] random 2) {pads=[1,1,1,1]}\n}",
     "", "Transpose", 2, ARITHMETIC},
    {"rows and columns of which some are cut off",
     "graph g (x: f32[2,256,23,21]) -> (y) {\n"
     " y = Conv(x, w: f32[256,256,3,3] random 1) {pads=[1,0,2,1]}\n}",
     "", "Transpose", 2, ARITHMETIC},
    {"uneven padding and a wide kernel",
     "graph g (x: f32[1,96,18,23]) -> (y) {\n"
     " y = Conv(x, w: f32[96,96,5,3] random 1, b: f32[96] random 2) {pads=[0,1,2,0]}\n}",
     "", "MatMul", 1, ARITHMETIC},
    {"dilated rows, strided columns",
     "graph g (x: f32[1,160,16,40]) -> (y) {\n y = Conv(x, w: f32[160,160,3,3] random 1)\n"
     "   {pads=[2,1,2,1], dilations=[2,1], strides=[1,2]}\n}",
     "", "MatMul", 1, ARITHMETIC},
    {"dilated columns",
     "graph g (x: f32[1,160,16,40]) -> (y) {\n y = Conv(x, w: f32[160,160,3,3] random 1)\n"
     "   {pads=[1,2,1,2], dilations=[1,2]}\n}",
     "", "MatMul", 1, ARITHMETIC},
    {"rows of each residue of a dilation, some of them cut off",
     "graph g (x: f32[1,96,50,30]) -> (y) {\n y = Conv(x, w: f32[96,96,3,3] random 1)\n"
     "   {pads=[3,1,3,1], dilations=[3,1]}\n}",
     "", "MatMul", 1, ARITHMETIC},
    {"less padding than residues need",
     "graph g (x: f32[1,96,50,30]) -> (y) {\n y = Conv(x, w: f32[96,96,3,3] random 1)\n"
     "   {pads=[1,1,1,1], dilations=[3,1]}\n}",
     "MatMul", "Conv", 1, ARITHMETIC},
    {"groups of a batch",
     "graph g (x: f32[2,192,12,24]) -> (y) {\n"
     " y = Conv(x, w: f32[192,96,3,3] random 1, b: f32[192] random 2) {pads=[1,1,1,1], group=2}\n}",
     "", "MatMul", 1, ARITHMETIC},
    {"few channels",
     "graph g (x: f32[1,16,32,32]) -> (y) {\n"
     " y = Conv(x, w: f32[16,16,3,3] random 1) {pads=[1,1,1,1]}\n}",
     "MatMul", "Conv", 1, ARITHMETIC},
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
};

/* One graph for every size: tiles that fit, that are cut, fewer rows than a tile, batches. */
static void any_size(const char *text) {
    static const int64_t sizes[][4] = {{1, 96, 4, 4},  {1, 96, 3, 7},  {1, 96, 8, 12},
                                       {2, 96, 9, 5},  {1, 96, 13, 6}, {3, 96, 10, 3},
                                       {1, 96, 5, 26}, {2, 96, 25, 24}};
    po_ctx ctx;
    po_ctx_init(&ctx);
    po_graph *g = test_graph(&ctx, text), *out;
    const po_postopt_options options = po_postopt_defaults();
    assert_int_equal(po_postopt(&ctx, g, &options, &out, NULL), PO_OK);
    assert_int_equal(test_count(out, "MatMul"), 1);
    for (uint32_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        const po_pin pin = {.name = "x", .rank = 4, .dims = sizes[i]};
        po_graph *before, *after;
        assert_int_equal(po_pin_inputs(&ctx, g, &pin, 1, &before), PO_OK);
        assert_int_equal(po_pin_inputs(&ctx, out, &pin, 1, &after), PO_OK);
        double off = test_difference(&ctx, before, after, i);
        if (!(off < 3e-5))
            fail_msg("%s: off by %g at %lld x %lld", text, off, (long long)sizes[i][2],
                     (long long)sizes[i][3]);
        po_graph_free(before);
        po_graph_free(after);
    }
    po_graph_free(out);
    po_graph_free(g);
    po_ctx_clear(&ctx);
}

static void open_sizes(void **state) {
    (void)state;
    any_size("graph g (x: f32[N,96,H,W]) -> (y) {\n"
             " y = Conv(x, w: f32[96,96,3,3] random 1, b: f32[96] random 2) {pads=[1,1,1,1]}\n}");
    any_size("graph g (x: f32[N,96,H,W]) -> (y) {\n"
             " y = Conv(x, w: f32[256,96,3,3] random 1) {pads=[1,1,1,1]}\n}");
    any_size("graph g (x: f32[N,96,H,W]) -> (y) {\n"
             " y = Conv(x, w: f32[96,96,2,3] random 1) {pads=[0,1,1,0]}\n}");
    any_size("graph g (x: f32[N,96,H,W]) -> (y) {\n"
             " y = Conv(x, w: f32[96,96,3,3] random 1, b: f32[96] random 2)\n"
             "   {pads=[2,1,2,1], dilations=[2,1]}\n}");
    any_size("graph g (x: f32[N,96,H,W]) -> (y) {\n"
             " y = Conv(x, w: f32[96,96,3,3] random 1) {pads=[2,1,2,1]}\n}");
}

static bool meant_length(void *user, const char *name, int64_t *length) {
    *length = strcmp(name, "N") == 0 ? 1 : *(const int64_t *)user;
    return true;
}

/* It must pay at each size that is meant. */
static void meant_sizes(void **state) {
    (void)state;
    static const struct {
        uint32_t n;
        int64_t length[2];
        uint32_t tiled;
    } cases[] = {{1, {24}, 1}, {1, {3}, 0}, {2, {24, 3}, 0}, {2, {3, 24}, 0}, {2, {24, 20}, 1}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        po_ctx ctx;
        po_ctx_init(&ctx);
        po_graph *out, *g = test_graph(&ctx, "graph g (x: f32[N,256,H,W]) -> (y) {\n"
                                             " y = Conv(x, w: f32[256,256,3,3] random 1) "
                                             "{pads=[1,1,1,1]}\n}");
        int64_t length[2] = {cases[i].length[0], cases[i].length[1]};
        void *user[2] = {&length[0], &length[1]};
        po_postopt_options options = po_postopt_defaults();
        options.meant = (po_meant){cases[i].n, meant_length, user};
        assert_int_equal(po_postopt(&ctx, g, &options, &out, NULL), PO_OK);
        if (test_count(out, "MatMul") != cases[i].tiled)
            fail_msg("case %zu: %u", i, test_count(out, "MatMul"));
        po_graph_free(out);
        po_graph_free(g);
        po_ctx_clear(&ctx);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST_SAMPLES(samples),
        cmocka_unit_test(open_sizes),
        cmocka_unit_test(meant_sizes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
