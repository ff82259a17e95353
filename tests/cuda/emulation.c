/* The emulator itself: kernels written by hand, through the interfaces of the driver and NVRTC, and
 * the same with one fault each, which must be told. */
#include "driver.h"
#include "emulate_api.h"
#include "nvrtc.h"
#include "unit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One warp multiplies [16, 16] by [8, 16] transposed, all through shared memory. */
static const char *const product =
    "extern \"C\" __global__ void __launch_bounds__(32) product(const pc_f16 *__restrict__ a,\n"
    "        const pc_f16 *__restrict__ b, float *__restrict__ d) {\n"
    "    PC_SHARED(shared);\n"
    "    int lane = threadIdx.x;\n"
    "    pc_copy16(shared + lane * 16, a + lane * 8, 16);\n"
    "    pc_commit();\n"
    "    if (lane < 16)\n"
    "        pc_copy16(shared + 512 + lane * 16, b + lane * 8, 16);\n"
    "    pc_commit();\n"
    "    pc_wait<0>();\n"
    "    pc_barrier();\n"
    "    unsigned x[4], y[2];\n"
    "    float sum[4] = {0, 0, 0, 0};\n"
    "    pc_ldmatrix4(x, shared + (lane % 16) * 32 + lane / 16 * 16);\n"
    "    pc_ldmatrix2(y, shared + 512 + (lane % 8) * 32 + lane / 8 % 2 * 16);\n"
    "    pc_mma_f16(sum, x, y);\n"
    "    for (int i = 0; i < 4; i++)\n"
    "        d[(lane / 4 + i / 2 * 8) * 8 + lane % 4 * 2 + i % 2] = sum[i];\n"
    "}\n";

/* The same without ldmatrix: fragments as PTX's text has them; b is [16, 8]. */
static const char *const by_hand =
    "extern \"C\" __global__ void by_hand(const pc_f16 *a, const pc_f16 *b, float *d) {\n"
    "    int lane = threadIdx.x, g = lane >> 2, i = lane & 3;\n"
    "    unsigned x[4], y[2];\n"
    "    float sum[4] = {0, 0, 0, 0};\n"
    "    x[0] = a[g * 16 + i * 2] | a[g * 16 + i * 2 + 1] << 16;\n"
    "    x[1] = a[(g + 8) * 16 + i * 2] | a[(g + 8) * 16 + i * 2 + 1] << 16;\n"
    "    x[2] = a[g * 16 + i * 2 + 8] | a[g * 16 + i * 2 + 9] << 16;\n"
    "    x[3] = a[(g + 8) * 16 + i * 2 + 8] | a[(g + 8) * 16 + i * 2 + 9] << 16;\n"
    "    PC_SHARED(shared);\n"
    "    if (lane < 16)\n"
    "        *(uint4 *)(shared + lane * 16) = *(const uint4 *)(b + lane * 8);\n"
    "    pc_barrier();\n"
    "    pc_ldmatrix2_trans(y, shared + lane % 16 * 16);\n"
    "    pc_mma_f16(sum, x, y);\n"
    "    d[g * 8 + i * 2] = sum[0], d[g * 8 + i * 2 + 1] = sum[1];\n"
    "    d[(g + 8) * 8 + i * 2] = sum[2], d[(g + 8) * 8 + i * 2 + 1] = sum[3];\n"
    "}\n";

/* Rows of 256 are added up by 96 threads, and each is divided by its sum. */
static const char *const rows =
    "extern \"C\" __global__ void __launch_bounds__(96) rows(const float *x, float *y) {\n"
    "    PC_SHARED(memory);\n"
    "    float *parts = (float *)memory;\n"
    "    const float *in = x + blockIdx.x * 256;\n"
    "    float sum = 0;\n"
    "    for (int i = threadIdx.x; i < 256; i += 96)\n"
    "        sum += in[i];\n"
    "    for (int by = 16; by; by >>= 1)\n"
    "        sum += pc_shuffle_xor(sum, by);\n"
    "    if (threadIdx.x % 32 == 0)\n"
    "        parts[threadIdx.x / 32] = sum;\n"
    "    pc_barrier();\n"
    "    sum = parts[0] + parts[1] + parts[2];\n"
    "    for (int i = threadIdx.x; i < 256; i += 96)\n"
    "        y[blockIdx.x * 256 + i] = in[i] / sum;\n"
    "}\n";

#define GOOD(call) assert_int_equal((call), 0)

/* The text with one piece put for another, which it must hold. */
static char *changed(const char *text, const char *from, const char *to) {
    const char *at = strstr(text, from);
    assert_non_null(at);
    size_t room = strlen(text) + strlen(to) + 1;
    char *out = malloc(room);
    assert_non_null(out);
    (void)snprintf(out, room, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
    return out;
}

static void *compiled(const char *text, const char *arch, bool ptx) {
    program *p;
    char option[64];
    size_t n;
    (void)snprintf(option, sizeof option, "--gpu-architecture=%s", arch);
    const char *options[] = {option, "--std=c++17", "--ptxas-options=-v"};
    GOOD(nvrtcCreateProgram(&p, text, "text.cu", 0, NULL, NULL));
    if (nvrtcCompileProgram(p, 3, options) != 0) {
        GOOD(nvrtcGetProgramLogSize(p, &n));
        char *log = malloc(n);
        GOOD(nvrtcGetProgramLog(p, log));
        fail_msg("%s", log);
    }
    GOOD(ptx ? nvrtcGetPTXSize(p, &n) : nvrtcGetCUBINSize(p, &n));
    char *image = malloc(n);
    GOOD(ptx ? nvrtcGetPTX(p, image) : nvrtcGetCUBIN(p, image));
    GOOD(nvrtcDestroyProgram(&p));
    return image;
}

static void *module_of(const char *text) {
    void *image = compiled(text, "sm_80", false), *module;
    GOOD(cuModuleLoadData(&module, image));
    free(image);
    return module;
}

static int open_device(void **state) {
    void *context;
    (void)state;
    GOOD(cuInit(0));
    GOOD(cuDevicePrimaryCtxRetain(&context, 0));
    GOOD(cuCtxSetCurrent(context));
    return 0;
}

static uint64_t upload(const void *data, size_t bytes) {
    uint64_t memory;
    GOOD(cuMemAlloc_v2(&memory, bytes));
    if (data)
        GOOD(cuMemcpyHtoD_v2(memory, data, bytes));
    return memory;
}

/* What the emulator says of a kernel of three buffers. */
static const char *launch(const char *text, const char *name, uint32_t blocks, uint32_t threads,
                          uint32_t shared, uint64_t *buffers) {
    void *module = module_of(text), *function;
    void *args[] = {&buffers[0], &buffers[1], &buffers[2]};
    GOOD(cuModuleGetFunction(&function, module, name));
    emu_clear();
    int rc = cuLaunchKernel(function, blocks, 1, 1, threads, 1, 1, shared, NULL, args, NULL);
    assert_int_equal(rc, emu_error()[0] ? 700 : 0);
    const char *said = emu_error()[0] ? emu_error() : NULL;
    static char kept[1024];
    (void)snprintf(kept, sizeof kept, "%s", said ? said : "");
    emu_clear();
    GOOD(cuModuleUnload(module));
    return said ? kept : NULL;
}

/* Small numbers, of which all sums are exact. */
static float small(uint32_t i) {
    return (float)((int)(i * 7919 % 17) - 8) / 4;
}

static void products(void **state) {
    uint16_t a[256], b[128], turned[128];
    float d[128];
    (void)state;
    for (uint32_t i = 0; i < 256; i++)
        a[i] = emu_to_f16(small(i));
    for (uint32_t n = 0; n < 8; n++)
        for (uint32_t k = 0; k < 16; k++)
            b[n * 16 + k] = turned[k * 8 + n] = emu_to_f16(small(1000 + n * 16 + k));
    for (int way = 0; way < 2; way++) {
        uint64_t buffers[] = {upload(a, sizeof a), upload(way ? turned : b, sizeof b),
                              upload(NULL, sizeof d)};
        const char *said =
            launch(way ? by_hand : product, way ? "by_hand" : "product", 1, 32, 768, buffers);
        if (said)
            fail_msg("%s", said);
        GOOD(cuMemcpyDtoH_v2(d, buffers[2], sizeof d));
        for (uint32_t m = 0; m < 16; m++)
            for (uint32_t n = 0; n < 8; n++) {
                float sum = 0;
                for (uint32_t k = 0; k < 16; k++)
                    sum += small(m * 16 + k) * small(1000 + n * 16 + k);
                assert_true(d[m * 8 + n] == sum);
            }
        for (int i = 0; i < 3; i++)
            GOOD(cuMemFree_v2(buffers[i]));
    }
}

static void f16(void **state) {
    (void)state;
    for (uint32_t h = 0; h < 65536; h++) {
        float f = emu_from_f16((uint16_t)h);
        if (isnan(f))
            assert_true((h & 0x7c00) == 0x7c00 && h & 1023 && isnan(emu_from_f16(emu_to_f16(f))));
        else
            assert_int_equal(emu_to_f16(f), h);
        /* halfway to the next one: to even */
        if ((h & 0x7fff) < 0x7bff) {
            float next = emu_from_f16((uint16_t)(h + 1)), mid = f / 2 + next / 2;
            assert_int_equal(emu_to_f16(mid), h & 1 ? h + 1 : h);
            assert_int_equal(emu_to_f16(nextafterf(mid, f)), h);
            assert_int_equal(emu_to_f16(nextafterf(mid, next)), h + 1);
        }
    }
    assert_int_equal(emu_to_f16(65519), 0x7bff);
    assert_int_equal(emu_to_f16(65520), 0x7c00);
}

static const char *run_rows(const char *text, uint32_t shared, float *y) {
    float x[1024];
    for (uint32_t i = 0; i < 1024; i++)
        x[i] = 1 + (float)(i % 13);
    uint64_t buffers[3] = {upload(x, sizeof x), upload(NULL, sizeof x), 0};
    const char *said = launch(text, "rows", 4, 96, shared, buffers);
    if (y)
        GOOD(cuMemcpyDtoH_v2(y, buffers[1], sizeof x));
    GOOD(cuMemFree_v2(buffers[0]));
    GOOD(cuMemFree_v2(buffers[1]));
    return said;
}

static void sums(void **state) {
    float y[1024];
    (void)state;
    for (uint64_t seed = 0; seed < 4; seed++) {
        emu_seed(seed);
        const char *said = run_rows(rows, 12, y);
        if (said)
            fail_msg("%s", said);
        for (uint32_t r = 0; r < 4; r++) {
            float sum = 0;
            for (uint32_t i = 0; i < 256; i++)
                sum += y[r * 256 + i];
            assert_float_equal(sum, 1, 1e-5);
        }
    }
    if (emu_accesses() == 0)
        print_message("without clang accesses are not checked one by one\n");
}

/* Each fault, and a word of what is said of it. */
static void faults(void **state) {
    static const struct {
        const char *from, *to, *said;
        bool unchecked; /* seen without the compiler's calls too */
    } cases[] = {
        {"    pc_barrier();\n", "", "since the last barrier", false},
        {"    pc_barrier();\n", "    if (threadIdx.x == 5)\n        return;\n    pc_barrier();\n",
         "missed", true},
        {"by = 16; by;", "by = 16; by && threadIdx.x != 40;", "waits for lanes", true},
        {"threadIdx.x / 32] = sum", "threadIdx.x / 32 + 1] = sum", "byte 12 of shared memory",
         false},
        {"threadIdx.x % 32 == 0", "threadIdx.x % 32 < 2", "written", false},
        {"i < 256; i += 96)\n        sum", "i < 257; i += 96)\n        sum", "buffer", false},
        {"y[blockIdx.x * 256", "y[blockIdx.x * 255", "written", false},
        {"y[blockIdx.x * 256 + i] = ", "y[blockIdx.x * 256 + i - 1] = ", "outside all buffers",
         false}, /* an unsigned index below 0 */
        {"y[blockIdx.x * 256 + i] = ", "y[(int)blockIdx.x * 256 + i - 1] = ", "byte -4 of a buffer",
         false},
        {"sum += in[i]", "sum += ((const float2 *)(in + i))->x", "aligned", false},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        if (emu_accesses() == 0 && !cases[i].unchecked)
            continue;
        char *text = changed(rows, cases[i].from, cases[i].to);
        const char *said = run_rows(text, 12, NULL);
        free(text);
        if (!said || !strstr(said, cases[i].said) || !strstr(said, "kernel rows, block"))
            fail_msg("case %zu: '%s' where '%s' is expected", i, said ? said : "nothing",
                     cases[i].said);
    }
}

static void copy_faults(void **state) {
    static const struct {
        const char *from, *to, *said;
    } cases[] = {
        {"    pc_wait<0>();\n", "", "not waited for"},
        {"pc_wait<0>", "pc_wait<1>", "not waited for"},
        {"a + lane * 8, 16", "a + lane * 8 + 1, 16", "not aligned"},
        {"a + lane * 8, 16", "a + lane * 8 + 8, 16", "outside all buffers"},
        {"    pc_barrier();\n", "", "since the last barrier"},
        {"shared + lane * 16", "shared + 768 + lane * 16", "outside shared"},
        {"lane % 16) * 32 +", "lane % 16) * 32 + 2 +", "not aligned to 16"},
    };
    uint16_t zeros[256] = {0};
    (void)state;
    if (emu_accesses() == 0)
        skip();
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        uint64_t buffers[] = {upload(zeros, 512), upload(zeros, 256), upload(NULL, 512)};
        char *text = changed(product, cases[i].from, cases[i].to);
        const char *said = launch(text, "product", 1, 32, 768, buffers);
        free(text);
        if (!said || !strstr(said, cases[i].said))
            fail_msg("case %zu: '%s' where '%s' is expected", i, said ? said : "nothing",
                     cases[i].said);
        for (int k = 0; k < 3; k++)
            GOOD(cuMemFree_v2(buffers[k]));
    }
}

/* The driver's part: PTX, architectures, limits, graphs. */
static void driver(void **state) {
    void *image = compiled(rows, "sm_90", false), *ptx = compiled(rows, "compute_80", true);
    void *module, *function, *stream, *graph, *exec;
    float x[256], y[256];
    int value;
    (void)state;
    assert_int_equal(cuModuleLoadData(&module, image), 209);
    GOOD(cuModuleLoadData(&module, ptx));
    free(image);
    free(ptx);
    assert_int_equal(cuModuleGetFunction(&function, module, "columns"), 500);
    GOOD(cuModuleGetFunction(&function, module, "rows"));
    uint64_t in = upload(NULL, sizeof x), out = upload(NULL, sizeof y);
    void *args[] = {&in, &out};
    assert_int_equal(cuLaunchKernel(function, 1, 1, 1, 96, 1, 1, 49153, NULL, args, NULL), 1);
    GOOD(cuFuncSetAttribute(function, 8, 100000));
    GOOD(cuFuncGetAttribute(&value, 8, function));
    assert_int_equal(value, 100000);
    assert_int_not_equal(cuFuncSetAttribute(function, 8, 200000), 0);
    assert_int_equal(cuMemcpyHtoD_v2(in, x, sizeof x + 1), 1);

    for (uint32_t i = 0; i < 256; i++)
        x[i] = 2;
    GOOD(cuStreamCreate(&stream, 1));
    GOOD(cuStreamBeginCapture_v2(stream, 2));
    GOOD(cuMemsetD32Async(out, 0, 256, stream));
    GOOD(cuLaunchKernel(function, 1, 1, 1, 96, 1, 1, 49153, stream, args, NULL));
    assert_int_equal(cuStreamSynchronize(stream), 900);
    GOOD(cuStreamEndCapture(stream, &graph));
    size_t n;
    GOOD(cuGraphGetNodes(graph, NULL, &n));
    assert_int_equal(n, 2);
    GOOD(cuGraphInstantiateWithFlags(&exec, graph, 0));
    GOOD(cuGraphDestroy(graph));
    GOOD(cuMemcpyHtoD_v2(in, x, sizeof x));
    in = 0; /* arguments were copied */
    GOOD(cuGraphLaunch(exec, stream));
    GOOD(cuMemcpyDtoH_v2(y, out, sizeof y));
    for (uint32_t i = 0; i < 256; i++)
        assert_true(y[i] == 2.0F / 512);
    GOOD(cuGraphExecDestroy(exec));
    GOOD(cuStreamDestroy_v2(stream));
    GOOD(cuModuleUnload(module));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(f16),    cmocka_unit_test(products),    cmocka_unit_test(sums),
        cmocka_unit_test(faults), cmocka_unit_test(copy_faults), cmocka_unit_test(driver),
    };
    return cmocka_run_group_tests(tests, open_device, NULL);
}
