/* Opening NVIDIA's libraries: a machine without them gets a sentence. */
#include "unit.h"

#include "cost/cuda/cuda.h"

#include <string.h>

typedef struct fixture {
    po_ctx ctx;
    po_arena *arena;
} fixture;

static void start(fixture *f) {
    po_ctx_init(&f->ctx);
    f->arena = po_arena_create(&f->ctx);
}

static po_cuda_info look_in(const char *folder) {
    fixture f;
    start(&f);
    po_cuda_info info;
    po_cuda_options o = {.folder = folder, .alone = true};
    assert_int_equal(po_cuda_query(&f.ctx, f.arena, &o, &info), PO_OK);
    assert_int_equal(info.has_gpu, info.missing[0] == '\0');
    po_arena_free(f.arena);
    return info;
}

static void missing(const char *folder, const char *sentence) {
    po_cuda_info info = look_in(folder);
    assert_false(info.has_gpu);
    if (!strstr(info.missing, sentence))
        fail_msg("'%s' is not in '%s'", sentence, info.missing);
    assert_null(strchr(info.missing, '\n'));
}

static void what_is_missing_is_named(void **state) {
    (void)state;
    missing(FAKES "/nowhere", "the NVIDIA driver was not found (libcuda.so.1)");
    missing(FAKES "/old", "the NVIDIA driver is too old: it is for CUDA 11.4, and 12.0 is needed");
    missing(FAKES "/without", "the NVIDIA driver sees no GPU");
    missing(FAKES "/turing",
            "Fake GPU 0 has compute capability 7.0, and kernels need 8.0 or later");
    missing(FAKES "/broken", "it has no cuInit");
}

static void a_crash_stays_in_the_child(void **state) {
    (void)state;
    po_cuda_info info = look_in(FAKES "/crash");
    assert_false(info.has_gpu);
    assert_non_null(strstr(info.missing, "looking for a GPU"));
}

static void a_gpu_is_described(void **state) {
    (void)state;
    po_cuda_info info = look_in(FAKES "/driver");
    assert_true(info.has_gpu);
    assert_string_equal(info.name, "Fake GPU 0");
    assert_string_equal(info.driver, "13.0");
    assert_int_equal(info.arch, 90);
    assert_int_equal(info.sms, 4);
    assert_int_equal(info.shared_block, 232448);
    assert_int_equal(info.shared_sm, 233472);
    assert_int_equal(info.l2, 1 << 20);
    assert_int_equal(info.registers, 65536);
    assert_int_equal(info.memory, 1 << 30);
    assert_true(info.clock == 1e9);
    /* The driver alone is a GPU without libraries. */
    assert_string_equal(info.cublas, "");
    assert_string_equal(info.cudnn, "");
    assert_string_equal(info.no_cublas, "cuBLAS was not found (libcublasLt.so.13)");
    assert_string_equal(info.no_cudnn, "cuDNN was not found (libcudnn.so.9)");
}

/* Of two libraries the one that the driver can run. */
static void an_older_driver(void **state) {
    (void)state;
    po_cuda_info info = look_in(FAKES "/older");
    assert_string_equal(info.driver, "12.4");
    assert_string_equal(info.cublas, "12.4.1");
    assert_string_equal(look_in(FAKES "/all").cublas, "13.1.0");
}

static void another_gpu(void **state) {
    (void)state;
    fixture f;
    start(&f);
    po_cuda_info info;
    po_cuda_options o = {.folder = FAKES "/driver", .alone = true, .device = 3};
    assert_int_equal(po_cuda_query(&f.ctx, f.arena, &o, &info), PO_OK);
    assert_string_equal(info.missing, "there is no GPU 3: the NVIDIA driver sees 1");
    po_arena_free(f.arena);
}

/* On any machine, whatever it has. */
static void this_machine(void **state) {
    (void)state;
    fixture f;
    start(&f);
    po_cuda_info info;
    assert_int_equal(po_cuda_query(&f.ctx, f.arena, &(po_cuda_options){.folder = NULL}, &info),
                     PO_OK);
    assert_int_equal(info.has_gpu, info.missing[0] == '\0');
    assert_int_equal(info.has_gpu, info.arch > 0);
    po_arena_free(f.arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_missing_is_named),
        cmocka_unit_test(a_crash_stays_in_the_child),
        cmocka_unit_test(a_gpu_is_described),
        cmocka_unit_test(an_older_driver),
        cmocka_unit_test(another_gpu),
        cmocka_unit_test(this_machine),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
