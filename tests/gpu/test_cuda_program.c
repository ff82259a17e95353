/* Programs of muGraphs on the fake GPU: right ones are timed, wrong ones are seen, and one that
 * takes the driver down costs the others nothing. */
#include "unit.h"

#include "cost/cuda/cost.h"
#include "test_paths.h"

#include <stdio.h>
#include <string.h>

static const po_cuda_options driver = {.folder = FAKES "/driver", .alone = true};

static const char kernels[] = "fake " FAKES "/kernels/kernels.so";
static const po_cuda_image image = {90, false, {kernels, sizeof kernels}, 0, NULL};
static const po_cuda_arg args[] = {{PO_CUDA_INPUT, 0, 0}, {PO_CUDA_OUTPUT, 0, 0}};
static const po_cuda_arg again[] = {{PO_CUDA_INPUT, 0, 0}, {PO_CUDA_DEVICE, 0, 0}};
static const po_cuda_launch twice = {"twice", "double", {2, 1, 1}, 32, 0, 2, args};
static const po_cuda_launch almost = {"almost", "almost", {2, 1, 1}, 32, 0, 2, args};
static const po_cuda_launch wild = {"wild", "wild", {2, 1, 1}, 32, 0, 2, args};
static const po_cuda_launch none = {"none", "none", {2, 1, 1}, 32, 0, 2, args};
static const po_cuda_launch both[] = {{"twice", "into nothing", {2, 1, 1}, 32, 0, 2, again},
                                      {"twice", "double", {2, 1, 1}, 32, 0, 2, args}};
static const po_cuda_program programs[] = {{"1", 1, &twice, 0},
                                           {"2", 1, &almost, 0},
                                           {"3", 1, &wild, 0},
                                           {"4", 2, both, 256},
                                           {"5", 1, &none, 0}};

static const char text[] = "mugraph twice {\n label i 64\n tensor X input 0 [64]\n"
                           " tensor Y output 0 [64]\n step \"double\" {\n Y[i] = X[i] * 2\n }\n}\n";
static const char other[] =
    "mugraph other {\n label i 32\n tensor X input 0 [32]\n"
    " tensor Y output 0 [32]\n step \"double\" {\n Y[i] = X[i] * 2\n }\n}\n";

typedef struct fixture {
    po_ctx ctx;
    po_arena *arena;
    po_mu *mu, *other;
} fixture;

static void start(fixture *f) {
    po_ctx_init(&f->ctx);
    f->arena = po_arena_create(&f->ctx);
    if (po_mu_parse(&f->ctx, f->arena, text, &f->mu) != PO_OK)
        fail_msg("%s", f->ctx.error.message);
    assert_int_equal(po_mu_parse(&f->ctx, f->arena, other, &f->other), PO_OK);
}

static void each_is_judged_by_itself(void **state) {
    (void)state;
    fixture f;
    start(&f);
    po_cuda_candidate c[6];
    for (int i = 0; i < 5; i++)
        c[i] = (po_cuda_candidate){.mu = f.mu, .program = &programs[i], .image = &image};
    c[5] = (po_cuda_candidate){.mu = f.other, .program = &programs[0], .image = &image};
    po_cuda_trial trial = {.options = &driver, .check = true, .time = true, .seed = 1};
    if (po_cuda_try(&f.ctx, f.arena, &trial, c, 6) != PO_OK)
        fail_msg("%s", f.ctx.error.message);
    assert_float_equal((c[0].seconds * 1e6), 8, 1e-3);
    assert_null(c[0].why);
    assert_true(c[0].worst <= 1);
    assert_true(c[1].seconds < 0 && c[1].worst > 100);
    assert_non_null(strstr(c[1].why, "output 0, element 63"));
    assert_non_null(strstr(c[1].why, "1 of 64 elements are wrong"));
    assert_true(c[2].seconds == 0);
    assert_non_null(strstr(c[2].why, "trying kernels on a GPU"));
    assert_float_equal((c[3].seconds * 1e6), 16, 1e-3);
    assert_true(c[4].seconds == 0);
    assert_non_null(strstr(c[4].why, "none: bad value"));
    assert_true(c[5].seconds == 0);
    assert_string_equal(c[5].why, "'other' has other inputs or outputs than the first");
    /* Cold: each call by itself, as long on the fake clock. */
    trial.cold = true, trial.check = false;
    assert_int_equal(po_cuda_try(&f.ctx, f.arena, &trial, c, 2), PO_OK);
    assert_float_equal((c[0].seconds * 1e6), 8, 1e-3);
    assert_float_equal((c[1].seconds * 1e6), 8, 1e-3);
    po_arena_free(f.arena);
}

static void readings_are_kept(void **state) {
    (void)state;
    fixture f;
    po_cache *cache;
    po_cuda_cost *cost;
    po_cuda_info info;
    char dir[512], path[600];
    start(&f);
    test_mkdtemp(dir, sizeof dir);
    snprintf(path, sizeof path, "%s/gpu.db", dir);
    assert_int_equal(po_cache_open(&f.ctx, f.arena, path, &cache), PO_OK);
    assert_int_equal(po_cuda_query(&f.ctx, f.arena, &driver, &info), PO_OK);
    assert_int_equal(po_cuda_cost_open(&f.ctx, f.arena, &driver, &info, cache, &cost), PO_OK);
    po_cuda_trial trial = {.check = true, .time = true, .seed = 1};
    for (int turn = 0; turn < 3; turn++) {
        po_cuda_candidate c[3];
        for (int i = 0; i < 3; i++)
            c[i] = (po_cuda_candidate){.mu = f.mu, .program = &programs[i], .image = &image};
        if (turn == 2)
            assert_int_equal(po_cuda_cost_replay(&f.ctx, f.arena, path, &cost), PO_OK);
        assert_int_equal(po_cuda_cost_programs(&f.ctx, f.arena, cost, &trial, c, 3), PO_OK);
        assert_float_equal((c[0].seconds * 1e6), 8, 1e-3);
        assert_true(c[1].seconds < 0 && c[1].worst > 100);
        assert_true(c[2].seconds == 0); /* what did not run is tried each time */
        assert_non_null(
            strstr(c[2].why, turn < 2 ? "trying kernels" : "has no reading of 'twice'"));
        assert_int_equal(cost->measured, turn < 2 ? 2 : 0);
        assert_int_equal(cost->recalled, turn == 0 ? 0 : 2);
    }
    po_arena_free(f.arena);
    test_rmtree(dir);
}

static void without_a_gpu(void **state) {
    (void)state;
    fixture f;
    start(&f);
    static const po_cuda_options nowhere = {.folder = FAKES "/nowhere", .alone = true};
    po_cuda_candidate c = {.mu = f.mu, .program = &programs[0], .image = &image};
    po_cuda_trial trial = {.options = &nowhere, .check = true, .time = true, .seed = 1};
    assert_int_equal(po_cuda_try(&f.ctx, f.arena, &trial, &c, 1), PO_RUNTIME);
    assert_string_equal(f.ctx.error.message, "the NVIDIA driver was not found (libcuda.so.1)");
    po_arena_free(f.arena);
}

/* Records go by what a program does: its symbols' name is none of it. */
static void names_do_not_count(void **state) {
    (void)state;
    fixture f;
    start(&f);
    static const po_cuda_launch named[] = {{"a_0", "x", {1, 1, 1}, 32, 0, 0, NULL},
                                           {"a_1", "x", {1, 1, 1}, 32, 0, 0, NULL},
                                           {"unit12_0", "x", {1, 1, 1}, 32, 0, 0, NULL},
                                           {"unit12_1", "x", {1, 1, 1}, 32, 0, 0, NULL}};
    const po_cuda_program one = {"void a_0() { many; } void a_1() {}", 2, named, 0};
    const po_cuda_program two = {"void unit12_0() { many; } void unit12_1() {}", 2, named + 2, 0};
    const po_cuda_program three = {"void unit12_0() { maxy; } void unit12_1() {}", 2, named + 2, 0};
    po_cuda_io io = {NULL, NULL, NULL, PO_CUDA_NOWHERE};
    const po_cuda_step *a = po_cuda_program_steps(f.arena, &one, NULL, &io);
    const po_cuda_step *b = po_cuda_program_steps(f.arena, &two, NULL, &io);
    const po_cuda_step *c = po_cuda_program_steps(f.arena, &three, NULL, &io);
    assert_true(po_hash_equal(a[0].u.kernel.source, b[0].u.kernel.source));
    assert_true(po_hash_equal(a[1].u.kernel.source, b[1].u.kernel.source));
    assert_false(po_hash_equal(a[0].u.kernel.source, a[1].u.kernel.source));
    assert_false(po_hash_equal(b[0].u.kernel.source, c[0].u.kernel.source));
    po_arena_free(f.arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_is_judged_by_itself), cmocka_unit_test(readings_are_kept),
        cmocka_unit_test(without_a_gpu), cmocka_unit_test(names_do_not_count)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
