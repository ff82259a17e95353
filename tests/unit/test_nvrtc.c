/* NVRTC: what it makes, what it says of kernels, and what is said where it is not there. */
#include "codegen/cuda/nvrtc.h"
#include "test_paths.h"
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct fixture {
    po_ctx ctx;
    po_arena *arena;
    po_nvrtc *nvrtc; /* NULL: there is none on this machine */
} fixture;

static int set_up(void **state) {
    fixture *f = calloc(1, sizeof *f);
    po_ctx_init(&f->ctx);
    f->arena = po_arena_create(&f->ctx);
    if (po_nvrtc_open(&f->ctx, f->arena, NULL, &f->nvrtc) != PO_OK) {
        print_message("skipped: %s\n", f->ctx.error.message);
        f->nvrtc = NULL;
        po_ctx_clear(&f->ctx);
    }
    *state = f;
    return 0;
}

static int tear_down(void **state) {
    fixture *f = *state;
    po_arena_free(f->arena);
    free(f);
    return 0;
}

static fixture *needs_nvrtc(void **state) {
    fixture *f = *state;
    if (!f->nvrtc)
        skip();
    return f;
}

static const char *const two =
    "extern \"C\" __global__ void zeta(float *a) { a[threadIdx.x] += 1.0f; }\n"
    "extern \"C\" __global__ void alpha(float *a) {\n"
    "    __shared__ float x[32];\n"
    "    x[threadIdx.x] = a[threadIdx.x];\n"
    "    __syncthreads();\n"
    "    a[threadIdx.x] = x[31 - threadIdx.x];\n"
    "}\n";

static void images(void **state) {
    fixture *f = needs_nvrtc(state);
    assert_true(atoi(po_nvrtc_version(f->nvrtc)) >= 12);
    for (uint32_t i = 0; i < PO_CUDA_ARCHS; i++) {
        po_cuda_image m;
        if (po_nvrtc_compile(&f->ctx, f->arena, f->nvrtc, two, "two", po_cuda_archs[i], false,
                             &m) != PO_OK)
            fail_msg("%s", f->ctx.error.message);
        assert_int_equal(m.arch, po_cuda_archs[i]);
        assert_false(m.ptx);
        assert_memory_equal(m.bytes.data, "\177ELF", 4);
        assert_int_equal(m.n_usage, 2); /* in order of the source, not of the alphabet */
        assert_string_equal(m.usage[0].symbol, "zeta");
        assert_string_equal(m.usage[1].symbol, "alpha");
        for (uint32_t k = 0; k < 2; k++) {
            assert_in_range(m.usage[k].registers, 2, 40);
            assert_int_equal(m.usage[k].spills, 0);
            assert_int_equal(m.usage[k].stack, 0);
            assert_int_equal(m.usage[k].shared, k ? 128 : 0);
        }
    }
    po_cuda_image ptx;
    assert_int_equal(po_nvrtc_compile(&f->ctx, f->arena, f->nvrtc, two, "two", 90, true, &ptx),
                     PO_OK);
    assert_non_null(strstr(ptx.bytes.data, ".target sm_90"));
    assert_int_equal(ptx.bytes.data[ptx.bytes.size - 1], '\0');
    assert_int_equal(ptx.n_usage, 0);
}

/* The same text gives the same bytes. */
static void repeats(void **state) {
    fixture *f = needs_nvrtc(state);
    po_cuda_image a, b;
    assert_int_equal(po_nvrtc_compile(&f->ctx, f->arena, f->nvrtc, two, "two", 80, false, &a),
                     PO_OK);
    assert_int_equal(po_nvrtc_compile(&f->ctx, f->arena, f->nvrtc, two, "two", 80, false, &b),
                     PO_OK);
    assert_int_equal(a.bytes.size, b.bytes.size);
    assert_memory_equal(a.bytes.data, b.bytes.data, a.bytes.size);
}

/* More values than there are registers. */
static void spills_are_counted(void **state) {
    fixture *f = needs_nvrtc(state);
    po_cuda_image m;
    const char *text = "extern \"C\" __global__ void __launch_bounds__(1024) many(float *a) {\n"
                       "    float v[100];\n"
                       "#pragma unroll\n"
                       "    for (int i = 0; i < 100; i++)\n"
                       "        v[i] = a[i * 1024 + threadIdx.x];\n"
                       "    __syncthreads();\n"
                       "#pragma unroll\n"
                       "    for (int i = 0; i < 100; i++)\n"
                       "        a[i * 1024 + threadIdx.x] = v[i] + v[99 - i] * v[i * 7 % 100];\n"
                       "}\n";
    assert_int_equal(po_nvrtc_compile(&f->ctx, f->arena, f->nvrtc, text, "many", 80, false, &m),
                     PO_OK);
    assert_int_equal(m.n_usage, 1);
    assert_true(m.usage[0].spills > 0);
    assert_true(m.usage[0].stack > 0);
    assert_int_equal(m.usage[0].registers, 64);
}

static void rejected(fixture *f, const char *text, uint32_t arch, bool ptx, const char *said) {
    po_cuda_image m;
    assert_int_equal(
        po_nvrtc_compile(&f->ctx, f->arena, f->nvrtc, text, "step \"a\"", arch, ptx, &m),
        PO_UNSUPPORTED);
    if (!strstr(f->ctx.error.message, said) ||
        strncmp(f->ctx.error.message, "step \"a\"", 8) != 0 || strchr(f->ctx.error.message, '\n'))
        fail_msg("'%s' where '%s' is expected", f->ctx.error.message, said);
    po_ctx_clear(&f->ctx);
}

static void bad_texts(void **state) {
    fixture *f = needs_nvrtc(state);
    rejected(f, "extern \"C\" __global__ void a() { missing(); }\n", 80, false,
             "kernels.cu(1): error: identifier \"missing\" is undefined");
    rejected(f, "#include <nowhere.h>\n", 80, true, "nowhere.h");
    rejected(f, two, 1, false, "does not compile for sm_1 (NVRTC_ERROR_INVALID_OPTION)");
    rejected(f, "extern \"C\" __global__ void a() { asm(\"nonsense;\"); }\n", 90, false, "sm_90");
    rejected(f, "__device__ int x;\n", 80, false, "does not say what registers");
}

/* Without NVRTC: one sentence. */
static void no_library(void **state) {
    fixture *f = *state;
    po_nvrtc *n;
    char dir[64], path[128];
    test_mkdtemp(dir, sizeof dir);
    (void)snprintf(path, sizeof path, "%s/libnvrtc.so", dir);
    assert_int_equal(po_nvrtc_open(&f->ctx, f->arena, path, &n), PO_UNSUPPORTED);
    assert_non_null(strstr(f->ctx.error.message, "was not found"));
    po_ctx_clear(&f->ctx);
    test_write_text(path, "no library");
    assert_int_equal(po_nvrtc_open(&f->ctx, f->arena, path, &n), PO_UNSUPPORTED);
    assert_non_null(strstr(f->ctx.error.message, "cannot be opened"));
    po_ctx_clear(&f->ctx);
    test_rmtree(dir);
    assert_int_equal(po_nvrtc_open(&f->ctx, f->arena, "libm.so.6", &n), PO_UNSUPPORTED);
    assert_non_null(strstr(f->ctx.error.message, "it has no nvrtc"));
    po_ctx_clear(&f->ctx);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(images),     cmocka_unit_test(repeats),
        cmocka_unit_test(bad_texts),  cmocka_unit_test(spills_are_counted),
        cmocka_unit_test(no_library),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
