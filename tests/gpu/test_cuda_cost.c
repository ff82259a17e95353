/* Readings of steps: taken on a (fake) GPU, recorded, and given again without one. */
#include "unit.h"

#include "cost/cuda/cost.h"
#include "test_paths.h"

#include <stdio.h>
#include <string.h>

static const po_cuda_options whole = {.folder = FAKES "/all", .alone = true};

typedef struct fixture {
    char dir[512], path[600];
    po_ctx ctx;
    po_arena *arena;
    po_cuda_cost *cost;
    po_cuda_buffer buffers[8];
    po_cuda_step steps[8];
    po_cuda_plan plan;
} fixture;

static const char kernels[] = "fake " FAKES "/kernels/kernels.so";
static const po_cuda_image image = {90, false, {kernels, sizeof kernels}, 0, NULL};
static const po_cuda_arg twice_args[] = {{PO_CUDA_INPUT, 0, 0}, {PO_CUDA_OUTPUT, 0, 0}};
static const po_cuda_launch twice = {"twice", "doubling", {2, 1, 1}, 32, 0, 2, twice_args};
static const po_cuda_program program = {"text", 1, &twice, 0};

/* A convolution, a product by a weight, the same product again, and a kernel. */
static void build(fixture *f) {
    static const float data[4096];
    for (int i = 0; i < 8; i++)
        f->buffers[i] = (po_cuda_buffer){4096, i < 2 ? data : NULL};
    po_cuda_conv c = {.spatial = 2,
                      .n = 1,
                      .c = 3,
                      .k = 4,
                      .groups = 1,
                      .in = {8, 8},
                      .out = {6, 6},
                      .kernel = {3, 3},
                      .stride = {1, 1},
                      .dilation = {1, 1},
                      .x = {2, 0},
                      .w = {0, 0},
                      .y = {3, 0},
                      .bias = PO_CUDA_NOWHERE,
                      .z = PO_CUDA_NOWHERE,
                      .act = PO_CUDA_RELU};
    po_cuda_matmul m = {.m = 4,
                        .n = 8,
                        .k = 6,
                        .batch = 1,
                        .apart_a = 6,
                        .apart_b = 8,
                        .apart_y = 8,
                        .a = {3, 0},
                        .b = {1, 0},
                        .y = {4, 0},
                        .bias = PO_CUDA_NOWHERE,
                        .c = PO_CUDA_NOWHERE};
    f->steps[0] = (po_cuda_step){PO_CUDA_CONV, "Conv 'stem'", {.conv = c}};
    f->steps[1] = (po_cuda_step){PO_CUDA_MATMUL, "MatMul 'fc'", {.matmul = m}};
    m.a.buffer = 4, m.y.buffer = 5;
    f->steps[2] = (po_cuda_step){PO_CUDA_MATMUL, "MatMul 'fc2'", {.matmul = m}};
    po_cuda_place in = {5, 0}, out = {6, 0};
    po_cuda_io io = {&in, NULL, &out, PO_CUDA_NOWHERE};
    f->steps[3] = *po_cuda_program_steps(f->arena, &program, &image, &io);
    f->plan = (po_cuda_plan){"whole", 8, 4, 0, f->buffers, f->steps, NULL};
}

static void start(fixture *f) {
    memset(f, 0, sizeof *f);
    test_mkdtemp(f->dir, sizeof f->dir);
    snprintf(f->path, sizeof f->path, "%s/gpu.db", f->dir);
    po_ctx_init(&f->ctx);
    f->arena = po_arena_create(&f->ctx);
    build(f);
}

static po_status open_cost(fixture *f, const po_cuda_options *options, po_cache *cache,
                           po_cuda_cost **cost) {
    po_cuda_info info;
    assert_int_equal(po_cuda_query(&f->ctx, f->arena, options, &info), PO_OK);
    return po_cuda_cost_open(&f->ctx, f->arena, options, &info, cache, cost);
}

static void measure_with(fixture *f) {
    po_cache *cache;
    assert_int_equal(po_cache_open(&f->ctx, f->arena, f->path, &cache), PO_OK);
    assert_int_equal(open_cost(f, &whole, cache, &f->cost), PO_OK);
}

static void finish(fixture *f) {
    po_arena_free(f->arena);
    test_rmtree(f->dir);
}

static void expect(fixture *f, uint32_t measured, uint32_t recalled) {
    static const double microseconds[] = {18, 5, 5, 8};
    double seconds[4], all;
    if (po_cuda_cost_steps(&f->ctx, f->cost, &f->plan, seconds) != PO_OK)
        fail_msg("%s", f->ctx.error.message);
    for (int i = 0; i < 4; i++)
        assert_float_equal((seconds[i] * 1e6), microseconds[i], 1e-3);
    if (po_cuda_cost_plan(&f->ctx, f->cost, &f->plan, &all) != PO_OK)
        fail_msg("%s", f->ctx.error.message);
    assert_float_equal((all * 1e6), 36, 1e-3);
    assert_int_equal(f->cost->measured, measured);
    assert_int_equal(f->cost->recalled, recalled);
}

static void refused(fixture *f, po_status got, po_status status, const char *sentence) {
    assert_int_equal(got, status);
    if (!strstr(f->ctx.error.message, sentence))
        fail_msg("'%s' is not in '%s'", sentence, f->ctx.error.message);
    po_ctx_clear(&f->ctx);
}

static void readings_are_kept(void **state) {
    (void)state;
    fixture f;
    start(&f);
    measure_with(&f);
    expect(&f, 4, 0); /* three kinds of steps, and the whole */
    expect(&f, 4, 4);
    measure_with(&f);
    expect(&f, 0, 4);
    finish(&f);
}

static void a_replay_needs_no_gpu(void **state) {
    (void)state;
    fixture f;
    start(&f);
    measure_with(&f);
    expect(&f, 4, 0);
    assert_int_equal(po_cuda_cost_replay(&f.ctx, f.arena, f.path, &f.cost), PO_OK);
    assert_string_equal(f.cost->info.name, "Fake GPU 0");
    assert_string_equal(f.cost->info.cudnn, "9.19.0");
    assert_int_equal(f.cost->info.arch, 90);
    /* No libraries, and nothing compiled. */
    f.cost->options = (po_cuda_options){.folder = FAKES "/nowhere", .alone = true};
    f.steps[3].u.kernel.image = NULL;
    expect(&f, 0, 4);
    /* And nothing is written: a reading that is not there stays so. */
    double seconds[4];
    f.steps[0].u.conv.dilation[1] = 2;
    for (int i = 0; i < 2; i++)
        refused(&f, po_cuda_cost_steps(&f.ctx, f.cost, &f.plan, seconds), PO_UNSUPPORTED,
                "gpu.db has no reading of Conv 'stem', [1,3,8,8] by [4,3,3,3] dilation 1,2 in f32, "
                "relu on Fake GPU 0: record it there with --cost record:FILE");
    f.steps[0].u.conv.dilation[1] = 1;
    f.steps[2].u.matmul.type = PO_MU_F16;
    refused(&f, po_cuda_cost_steps(&f.ctx, f.cost, &f.plan, seconds), PO_UNSUPPORTED,
            "MatMul 'fc2', [4,6] by [6,8] in f16");
    refused(&f, po_cuda_cost_plan(&f.ctx, f.cost, &f.plan, seconds), PO_UNSUPPORTED,
            "no reading of whole");
    f.steps[2].u.matmul.type = PO_MU_F32;
    assert_false(po_cache_put(f.cost->cache, "cuda step", (po_hash){1, 2}, "x", 1));
    finish(&f);
}

/* Else the second reading would take the place of the one that was gone by. */
static void equal_plans_have_one_reading(void **state) {
    (void)state;
    fixture f;
    start(&f);
    measure_with(&f);
    const po_cuda_plan *const plans[2] = {&f.plan, &f.plan};
    double seconds[2];
    const char *why[2];
    assert_int_equal(po_cuda_cost_plans(&f.ctx, f.arena, f.cost, plans, 2, seconds, why), PO_OK);
    assert_int_equal(f.cost->measured, 1);
    assert_true(seconds[0] > 0 && seconds[0] == seconds[1] && !why[0] && !why[1]);
    finish(&f);
}

/* What was found side by side is what a replay goes by. */
static void pairs_are_kept(void **state) {
    (void)state;
    fixture f;
    po_timing first, again;
    start(&f);
    measure_with(&f);
    po_cuda_plan shorter = f.plan;
    shorter.n_steps = 3;
    assert_int_equal(po_cuda_cost_compare(&f.ctx, f.cost, &f.plan, &shorter, &first), PO_OK);
    assert_float_equal(first.gain, 36.0 / 28, 1e-3);
    assert_int_equal(po_cuda_cost_replay(&f.ctx, f.arena, f.path, &f.cost), PO_OK);
    assert_int_equal(po_cuda_cost_compare(&f.ctx, f.cost, &f.plan, &shorter, &again), PO_OK);
    assert_memory_equal(&first, &again, sizeof first);
    refused(&f, po_cuda_cost_compare(&f.ctx, f.cost, &shorter, &f.plan, &again), PO_UNSUPPORTED,
            "has no reading of whole");
    finish(&f);
}

/* A reading stands for one step on one GPU with one set of libraries. */
static void what_a_reading_depends_on(void **state) {
    (void)state;
    fixture f;
    start(&f);
    measure_with(&f);
    po_cuda_cost other = *f.cost;
    po_hash key = po_cuda_cost_key(f.cost);
    assert_true(po_hash_equal(key, po_cuda_cost_key(&other)));
    other.info.name[0] = 'f';
    assert_false(po_hash_equal(key, po_cuda_cost_key(&other)));
    other = *f.cost;
    other.info.cudnn[0] = '8';
    assert_false(po_hash_equal(key, po_cuda_cost_key(&other)));
    po_hash a = po_cuda_step_hash(&f.plan, &f.steps[1]),
            b = po_cuda_step_hash(&f.plan, &f.steps[2]);
    assert_true(po_hash_equal(a, b));
    f.steps[2].u.matmul.tf32 = true;
    assert_false(po_hash_equal(a, po_cuda_step_hash(&f.plan, &f.steps[2])));
    f.steps[2].u.matmul.tf32 = false;
    f.steps[2].u.matmul.b.buffer = 5; /* not a weight */
    assert_false(po_hash_equal(a, po_cuda_step_hash(&f.plan, &f.steps[2])));
    a = po_cuda_step_hash(&f.plan, &f.steps[3]);
    f.steps[3].u.kernel.source.lo ^= 1;
    assert_false(po_hash_equal(a, po_cuda_step_hash(&f.plan, &f.steps[3])));
    finish(&f);
}

static void files_that_are_none(void **state) {
    (void)state;
    fixture f;
    po_cache *cache;
    po_cuda_cost *cost;
    start(&f);
    refused(&f, po_cuda_cost_replay(&f.ctx, f.arena, f.path, &cost), PO_IO,
            "gpu.db: No such file or directory");
    FILE *file = fopen(f.path, "w");
    assert_non_null(file);
    fputs("something else, longer than the header of a database would be", file);
    fclose(file);
    refused(&f, po_cuda_cost_replay(&f.ctx, f.arena, f.path, &cost), PO_BAD_USE,
            "this file is not a cost cache");
    remove(f.path);
    assert_int_equal(po_cache_open(&f.ctx, f.arena, f.path, &cache), PO_OK);
    refused(&f, po_cuda_cost_replay(&f.ctx, f.arena, f.path, &cost), PO_BAD_USE,
            "it has no readings of a GPU");
    static const po_cuda_options none = {.folder = FAKES "/nowhere", .alone = true};
    refused(&f, open_cost(&f, &none, cache, &cost), PO_RUNTIME, "the NVIDIA driver was not found");
    finish(&f);
}

static void what_a_library_cannot_do(void **state) {
    (void)state;
    fixture f;
    double seconds[4];
    start(&f);
    measure_with(&f);
    f.steps[1].u.matmul.apart_y = 2; /* less than a row */
    refused(&f, po_cuda_cost_steps(&f.ctx, f.cost, &f.plan, seconds), PO_UNSUPPORTED,
            "MatMul 'fc': cuBLAS 13.1.0 has no algorithm for it");
    f.steps[1].u.matmul.apart_y = 8;
    expect(&f, 4, 3); /* the others were read all the same */
    finish(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(readings_are_kept),
        cmocka_unit_test(a_replay_needs_no_gpu),
        cmocka_unit_test(pairs_are_kept),
        cmocka_unit_test(equal_plans_have_one_reading),
        cmocka_unit_test(what_a_reading_depends_on),
        cmocka_unit_test(files_that_are_none),
        cmocka_unit_test(what_a_library_cannot_do),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
