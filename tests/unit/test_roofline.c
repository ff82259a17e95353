/* Estimates without a runtime: what they must say of a GPU. */
#include "cost/roofline.h"
#include "ir/text.h"
#include "ops/work.h"
#include "unit.h"

#include <math.h>

static double seconds_of(const char *text, const po_rates *rates) {
    po_ctx ctx;
    po_ctx_init(&ctx);
    po_graph *graph;
    po_estimate estimate;
    if (po_graph_parse(&ctx, text, &graph) != PO_OK)
        fail_msg("%s", ctx.error.message);
    po_ops_resolve(graph);
    assert_int_equal(po_infer_graph(&ctx, graph, false), PO_OK);
    po_roofline_graph(graph, rates, 1, &estimate);
    assert_int_equal(estimate.unknown, 0);
    po_graph_free(graph);
    return estimate.seconds;
}

#define PRODUCT(M, K, N)                                                                           \
    "graph g (x: f32[" #M "," #K "], w: f32[" #K "," #N "]) -> (y) {\n"                            \
    "  y = MatMul(x, w) : f32[" #M "," #N "]\n}\n"

/* A product of many rows is bound by the units, one of a single row by memory; never below what
 * either takes at its peak. */
static void products(void **state) {
    (void)state;
    const po_gpu *gpu = po_gpu_named("H200");
    po_rates rates = {.gpu = gpu};
    double large = seconds_of(PRODUCT(4096, 4096, 4096), &rates);
    double least = 2.0 * 4096 * 4096 * 4096 / gpu->f32;
    assert_true(large > least && large < 2 * least);
    double row = seconds_of(PRODUCT(1, 8192, 8192), &rates);
    least = 4.0 * 8192 * 8192 / gpu->dram;
    assert_true(row > least && row < 2 * least);
    /* Tensor cores, where they may round. */
    rates.tf32 = true;
    assert_true(seconds_of(PRODUCT(4096, 4096, 4096), &rates) < large / 4);
    assert_true(seconds_of(PRODUCT(1, 8192, 8192), &rates) <= row);
}

/* Every node is a launch, but for the activation that a convolution's kernel takes in. */
static void launches(void **state) {
    (void)state;
    static const char head[] = "graph g (x: f32[64], y: f32[1,64,56,56], w: f32[64,64,3,3]) -> (o) "
                               "{\n";
    po_ctx ctx;
    po_ctx_init(&ctx);
    po_arena *arena = po_arena_create(&ctx);
    po_rates rates = {.gpu = po_gpu_named("A100")};
    double one = seconds_of(po_arena_printf(arena, "%s  o = Abs(x) : f32[64]\n}\n", head), &rates);
    double two = seconds_of(
        po_arena_printf(arena, "%s  t = Abs(x) : f32[64]\n  o = Neg(t) : f32[64]\n}\n", head),
        &rates);
    assert_true(one > rates.gpu->launch && two > 1.99 * one && two < 2.01 * one);
    static const char conv[] = "Conv(y, w) {pads=[1,1,1,1]} : f32[1,64,56,56]\n";
    double alone = seconds_of(po_arena_printf(arena, "%s  o = %s}\n", head, conv), &rates);
    double with = seconds_of(
        po_arena_printf(arena, "%s  t = %s  o = Relu(t) : f32[1,64,56,56]\n}\n", head, conv),
        &rates);
    assert_true(alone == with);
    po_arena_free(arena);
}

/* Groups of few channels leave most of a tile empty; few tiles leave multiprocessors idle. */
static void shapes(void **state) {
    (void)state;
    static const char dense[] = "graph g (x: f32[1,512,28,28], w: f32[512,512,3,3]) -> (y) {\n"
                                "  y = Conv(x, w) {pads=[1,1,1,1]} : f32[1,512,28,28]\n}\n";
    static const char grouped[] =
        "graph g (x: f32[1,512,28,28], w: f32[512,4,3,3]) -> (y) {\n"
        "  y = Conv(x, w) {pads=[1,1,1,1], group=128} : f32[1,512,28,28]\n}\n";
    po_rates rates = {.gpu = po_gpu_named("H200")};
    double whole = seconds_of(dense, &rates), parts = seconds_of(grouped, &rates);
    assert_true(parts < whole && parts > whole / 128);
    double full = seconds_of(PRODUCT(1024, 256, 1024), &rates);
    double few = seconds_of(PRODUCT(64, 256, 1024), &rates);
    assert_true(few > full / 16);
    /* The CPU's rates say nothing. */
    po_rates same = {.flops = 1, .bytes = 1, .gpu = rates.gpu};
    assert_true(seconds_of(dense, &same) == whole);
}

/* Convolutions in f32 are near what an H200 read (docs/cuda-cost.md): a long sum is one block's.
 * Those of other types are not said to be so slow. */
static void convolutions(void **state) {
    (void)state;
    static const struct {
        int in, out, from, to, stride, dilation;
        double seconds;
    } read[] = {{64, 128, 56, 28, 2, 1, 23e-6},   {128, 256, 28, 14, 2, 1, 37e-6},
                {256, 256, 14, 14, 1, 1, 61e-6},  {256, 512, 14, 7, 2, 1, 62e-6},
                {512, 512, 28, 28, 1, 1, 187e-6}, {512, 512, 28, 28, 1, 2, 187e-6},
                {256, 512, 28, 28, 1, 1, 95e-6},  {128, 128, 112, 112, 1, 1, 131e-6},
                {256, 256, 56, 56, 1, 1, 145e-6}};
    static const char text[] = "graph g (x: %s[1,%d,%d,%d], w: %s[%d,%d,3,3]) -> (y) {\n"
                               "  y = Conv(x, w) {pads=[%d,%d,%d,%d], dilations=[%d,%d], "
                               "strides=[%d,%d]} : %s[1,%d,%d,%d]\n}\n";
    po_ctx ctx;
    po_ctx_init(&ctx);
    po_arena *arena = po_arena_create(&ctx);
    po_rates rates = {.gpu = po_gpu_named("H200")};
    for (size_t i = 0; i < sizeof read / sizeof read[0]; i++) {
        const int d = read[i].dilation, s = read[i].stride, n = read[i].from, m = read[i].to;
        double seconds[2];
        for (int half = 0; half < 2; half++) {
            const char *type = half ? "f16" : "f32";
            seconds[half] = seconds_of(po_arena_printf(arena, text, type, read[i].in, n, n, type,
                                                       read[i].out, read[i].in, d, d, d, d, d, d, s,
                                                       s, type, read[i].out, m, m),
                                       &rates);
        }
        if (seconds[0] < read[i].seconds / 1.5 || seconds[0] > read[i].seconds * 1.5)
            fail_msg("row %zu: %.1f us of %.1f", i, 1e6 * seconds[0], 1e6 * read[i].seconds);
        assert_true(seconds[1] < seconds[0] / 2);
    }
    po_arena_free(arena);
}

/* Products of integers ask as much as those of floats, with or without a sum of their own. */
static void integers(void **state) {
    (void)state;
    static const char *const texts[] = {
        "graph g (x: f32[2,8,10,10], w: f32[6,4,3,3]) -> (y) {\n"
        "  y = Conv(x, w) {group=2} : f32[2,6,8,8]\n}\n",
        "graph g (x: u8[2,8,10,10], w: i8[6,4,3,3]) -> (y) {\n"
        "  y = ConvInteger(x, w) {group=2} : i32[2,6,8,8]\n}\n",
        "graph g (x: u8[2,8,10,10], a: f32[], b: u8[], w: u8[6,4,3,3]) -> (y) {\n"
        "  y = QLinearConv(x, a, b, w, a, b, a, b) {group=2} : u8[2,6,8,8]\n}\n",
        "graph g (x: f32[3,5,7], w: f32[3,7,4]) -> (y) {\n  y = MatMul(x, w) : f32[3,5,4]\n}\n",
        "graph g (x: i32[3,5,7], w: i32[3,7,4]) -> (y) {\n  y = MatMul(x, w) : i32[3,5,4]\n}\n",
        "graph g (x: u8[3,5,7], w: u8[3,7,4]) -> (y) {\n"
        "  y = MatMulInteger(x, w) : i32[3,5,4]\n}\n",
        "graph g (x: f32[3,5,7], w: f32[3,7,4]) -> (y) {\n"
        "  y = Einsum(x, w) {equation=\"bij,bjk->bik\"} : f32[3,5,4]\n}\n",
    };
    enum { FIRST_MATRIX = 3 };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        po_ctx ctx;
        po_ctx_init(&ctx);
        po_graph *graph;
        po_work work;
        if (po_graph_parse(&ctx, texts[i], &graph) != PO_OK)
            fail_msg("%s", ctx.error.message);
        po_ops_resolve(graph);
        assert_true(po_work_of(graph, &graph->nodes[0], &work) && work.product);
        const double want = i < FIRST_MATRIX ? 2.0 * 2 * 6 * 8 * 8 * 4 * 9 : 2.0 * 3 * 5 * 7 * 4;
        if (fabs(work.flops - want) > 0.5)
            fail_msg("%s%g instead of %g", texts[i], work.flops, want);
        po_graph_free(graph);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(products), cmocka_unit_test(launches),
                                       cmocka_unit_test(shapes), cmocka_unit_test(convolutions),
                                       cmocka_unit_test(integers)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
