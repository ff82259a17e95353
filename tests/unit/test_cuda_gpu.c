/* What is known of GPUs by name, and estimates from it. */
#include "unit.h"

#include "cost/cuda/gpu.h"

static void test_names(void **state) {
    (void)state;
    static const char *const names[][2] = {
        {"H200", "H200"},        {"NVIDIA H200", "H200"}, {"NVIDIA A100-SXM4-80GB", "A100"},
        {"NVIDIA A10", "A10"},   {"NVIDIA L4", "L4"},     {"NVIDIA H100 80GB HBM3", "H100"},
        {"NVIDIA B200", "B200"},
    };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const po_gpu *gpu = po_gpu_named(names[i][0]);
        assert_non_null(gpu);
        assert_string_equal(gpu->name, names[i][1]);
    }
    assert_null(po_gpu_named("NVIDIA A1000"));
    assert_null(po_gpu_named("NVIDIA L40S"));
    assert_null(po_gpu_named(""));
}

static void test_rows(void **state) {
    (void)state;
    size_t n = 0;
    for (const po_gpu *gpu; (gpu = po_gpu_at(n)) != NULL; n++) {
        assert_true(gpu->arch >= 80 && gpu->sms > 0 && gpu->shared_block < gpu->shared_sm);
        assert_true(gpu->f32 < gpu->tf32 && gpu->tf32 < gpu->f16 && gpu->mma <= 1);
        assert_true(gpu->dram < gpu->l2_rate && gpu->launch > 0);
    }
    assert_int_equal(n, 6);
}

static void test_seconds(void **state) {
    (void)state;
    const po_gpu *gpu = po_gpu_named("H200");
    double least = gpu->launch + gpu->latency;
    po_gpu_work none = {.math = PO_GPU_F16};
    assert_true(po_gpu_seconds(gpu, &none, false) == least);
    /* A large product is bound by the tensor cores, within what they reach. */
    po_gpu_work large = {.flops = 2.0 * 8192 * 8192 * 8192,
                         .dram = 3 * 2.0 * 8192 * 8192,
                         .library = true,
                         .math = PO_GPU_F16};
    double seconds = po_gpu_seconds(gpu, &large, false);
    assert_true(seconds > large.flops / gpu->f16 && seconds < 2 * large.flops / gpu->f16);
    large.math = PO_GPU_F32;
    assert_true(po_gpu_seconds(gpu, &large, false) > 5 * seconds);
    /* By mma.sync alone it takes longer on Hopper and not on Ampere. */
    large.math = PO_GPU_F16, large.library = false;
    assert_true(po_gpu_seconds(gpu, &large, false) > 1.4 * seconds);
    assert_true(po_gpu_peak(po_gpu_named("A100"), PO_GPU_F16, false) ==
                po_gpu_peak(po_gpu_named("A100"), PO_GPU_F16, true));
    /* Few blocks leave most of the multiprocessors without work; a tail of a wave does too. */
    po_gpu_work few = {.flops = 1e12, .blocks = 1, .math = PO_GPU_F16};
    po_gpu_work wave = few, tail = few;
    wave.blocks = gpu->sms, tail.blocks = gpu->sms + 1;
    double t1 = po_gpu_seconds(gpu, &few, false), tw = po_gpu_seconds(gpu, &wave, false);
    assert_true(t1 > 100 * tw);
    assert_true(po_gpu_seconds(gpu, &tail, false) > 1.9 * tw * 132 / 133);
    /* What lies in the L2 moves faster; what does not fit there does not. */
    po_gpu_work copy = {.dram = 16e6, .math = PO_GPU_F32};
    assert_true(po_gpu_seconds(gpu, &copy, true) < po_gpu_seconds(gpu, &copy, false));
    copy.dram = 1e9;
    assert_true(po_gpu_seconds(gpu, &copy, true) == po_gpu_seconds(gpu, &copy, false));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_names), cmocka_unit_test(test_rows),
                                       cmocka_unit_test(test_seconds)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
