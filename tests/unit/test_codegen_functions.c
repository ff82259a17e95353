/* The functions of the printed prelude against libm in double, on samples and edges. */
#include "test_paths.h"
#include "unit.h"

#include "codegen/compile.h"
#include "codegen/cpu/kernel.h"

#include <dlfcn.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <xmmintrin.h>

typedef void (*array_fn)(const float *a, const float *b, const float *c, float *y, long n);

/* Below the least normal number there is nothing. */
static double normal(double a) {
    return a < (double)FLT_MIN ? 0 : a;
}
static double of_exp(double a, double b) {
    (void)b;
    return isnan(a) ? a : normal(exp(a));
}
static double of_log(double a, double b) {
    (void)b;
    return log(a);
}
static double of_sqrt(double a, double b) {
    (void)b;
    return sqrt(a);
}
static double of_tanh(double a, double b) {
    (void)b;
    return tanh(a);
}
static double of_erf(double a, double b) {
    (void)b;
    return erf(a);
}
static double of_sigmoid(double a, double b) {
    (void)b;
    return isnan(a) ? a : normal(1 / (1 + exp(-a)));
}
/* e^-a that is beyond floats is as good as infinite. */
static double of_gated(double a, double b) {
    (void)b;
    return isfinite(a) && exp(-a) > (double)FLT_MAX ? -0.0 : a / (1 + exp(-a));
}
static double of_floor(double a, double b) {
    (void)b;
    return floor(a);
}
static double of_abs(double a, double b) {
    (void)b;
    return fabs(a);
}
static double of_max(double a, double b) {
    return isnan(a) || isnan(b) ? (double)NAN : a > b ? a : b;
}
static double of_min(double a, double b) {
    return isnan(a) || isnan(b) ? (double)NAN : a < b ? a : b;
}
static double of_less(double a, double b) {
    return a < b;
}

static const struct row {
    const char *name;
    int arity;
    double ulps;
    double (*of)(double a, double b);
} rows[] = {
    {"exp", 1, 4, of_exp},     {"log", 1, 4, of_log}, {"sqrt", 1, 0.51, of_sqrt},
    {"tanh", 1, 4, of_tanh},   {"erf", 1, 4, of_erf}, {"sigmoid", 1, 4, of_sigmoid},
    {"floor", 1, 0, of_floor}, {"abs", 1, 0, of_abs}, {"pow", 2, 4, pow},
    {"gated", 1, 4, of_gated}, {"max", 2, 0, of_max}, {"min", 2, 0, of_min},
    {"less", 2, 0, of_less},
};
enum { ROWS = sizeof rows / sizeof rows[0] };

static const float edges[] = {
    0.0f,       -0.0f,       1.0f,        -1.0f,     2.0f,    -2.0f,   3.0f,        -3.0f,
    0.5f,       -0.5f,       1e-45f,      -1e-45f,   1e-40f,  -1e-40f, FLT_MIN,     -FLT_MIN,
    FLT_MAX,    -FLT_MAX,    INFINITY,    -INFINITY, NAN,     88.7f,   88.73f,      89.5f,
    -87.3f,     -88.0f,      -103.9f,     -103.98f,  -104.5f, 0.6f,    0.59999996f, 0.99999994f,
    1.0000001f, 4.0f,        3.9f,        9.0f,      -9.1f,   1e10f,   -1e10f,      1e30f,
    -1e30f,     16777216.0f, 16777217.0f, 2.5f,      -2.5f,   1e-20f,  33554431.0f, 8388609.0f};
enum { EDGES = sizeof edges / sizeof edges[0] };

static bool has_avx512(void) {
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
}

static void *load(const po_isa *isa, const char *dir) {
    po_ctx ctx;
    po_ctx_init(&ctx);
    po_arena *arena = po_arena_create(&ctx);
    po_text text;
    po_text_init(&text, arena);
    po_codegen_prelude(isa, &text);
    for (int scalar = 0; scalar < 2; scalar++)
        for (int i = 0; i < ROWS; i++) {
            const char *n = rows[i].name, *b = rows[i].arity > 1 ? ", pk_load(b + i)" : "";
            po_text_printf(&text,
                           "__attribute__((visibility(\"default\"))) void v%d_%s(const float *a, "
                           "const float *b, const float *c, float *y, long n) {\n",
                           scalar, n);
            if (scalar)
                po_text_printf(&text,
                               "    for (long i = 0; i < n; i++) y[i] = pk_%s1(a[i]%s);\n}\n", n,
                               rows[i].arity > 1 ? ", b[i]" : "");
            else
                po_text_printf(&text,
                               "    for (long i = 0; i < n; i += PK_LANES)\n"
                               "        pk_store(y + i, pk_%s(pk_load(a + i)%s));\n}\n",
                               n, b);
        }
    char *c = po_arena_printf(arena, "%s/f_%s.c", dir, isa->name);
    char *so = po_arena_printf(arena, "%s/f_%s.so", dir, isa->name);
    test_write_text(c, text.data);
    po_cc_source source = {.path = c, .flags = isa->flags};
    if (po_cc_library(&ctx, NULL, &source, 1, NULL, so) != PO_OK)
        fail_msg("%s", ctx.error.message);
    void *library = dlopen(so, RTLD_NOW | RTLD_LOCAL);
    assert_non_null(library);
    (void)unlink(c);
    (void)unlink(so);
    po_arena_free(arena);
    return library;
}

/* Distance in units of the last place of the result, as floats near it have it. */
static double ulps(float y, double ref) {
    if (isnan(ref) || isnan((double)y))
        return isnan(ref) && isnan((double)y) ? 0 : INFINITY;
    float rounded = (float)ref;
    if (isinf((double)rounded) || isinf((double)y))
        return y == rounded || (fabs(ref) < 3.4028236e38 * 1.0000002 && fabsf(y) >= FLT_MAX)
                   ? 0
                   : INFINITY;
    int e;
    (void)frexp(ref, &e);
    double unit = ldexp(1, e - 24 < -149 ? -149 : e - 24);
    return fabs((double)y - ref) / unit;
}

static void check(const struct row *row, const float *a, const float *b, const float *y, long n,
                  double *worst) {
    for (long i = 0; i < n; i++) {
        double off = ulps(y[i], row->of((double)a[i], (double)b[i]));
        if (off > *worst)
            *worst = off;
        if (!(off <= row->ulps))
            fail_msg("%s(%.9g, %.9g) = %.9g, not %.17g: %.3g ulp", row->name, (double)a[i],
                     (double)b[i], (double)y[i], row->of((double)a[i], (double)b[i]), off);
    }
}

static float from_bits(uint32_t bits) {
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

static void run(const po_isa *isa) {
    enum { N = 1 << 16 };
    char dir[] = "/tmp/petopt-functions-XXXXXX";
    assert_non_null(mkdtemp(dir));
    void *library = load(isa, dir);
    (void)rmdir(dir);
    float *a = malloc(N * sizeof *a), *b = malloc(N * sizeof *b), *y = malloc(N * sizeof *y);
    assert_true(a != NULL && b != NULL && y != NULL);
    for (int scalar = 0; scalar < 2; scalar++)
        for (int i = 0; i < ROWS; i++) {
            const struct row *row = &rows[i];
            char name[40];
            (void)snprintf(name, sizeof name, "v%d_%s", scalar, row->name);
            array_fn fn;
            *(void **)&fn = dlsym(library, name);
            assert_non_null(fn);
            double worst = 0;
            uint64_t state = 7;
            /* Rounds: edges by edges, all bit patterns thinly, then ranges where the function does
             * something. */
            for (int round = 0; round < (scalar ? 2 : 12); round++) {
                for (long k = 0; k < N; k++) {
                    state = state * 6364136223846793005u + 1442695040888963407u;
                    double u = (double)(state >> 11) * 0x1p-53;
                    uint32_t bits = (uint32_t)(state >> 20);
                    if (round == 0) {
                        a[k] = edges[k / EDGES % EDGES];
                        b[k] = edges[k % EDGES];
                    } else if (round == 1) {
                        a[k] = from_bits((uint32_t)(state >> 32));
                        b[k] = from_bits(bits);
                    } else {
                        static const float width[] = {0.01f, 0.7f, 1.5f, 5, 12, 30, 60, 110};
                        float w = width[round % 8];
                        a[k] = (float)((2 * u - 1) * (double)w);
                        b[k] = (float)(((double)bits * 0x1p-31 - 1) * (double)w * 0.5);
                        if (round & 1)
                            a[k] = fabsf(a[k]);
                    }
                }
                fn(a, b, NULL, y, N);
                check(row, a, b, y, N, &worst);
            }
            if (!scalar)
                print_message("%s %-8s %.2f ulp\n", isa->name, row->name, worst);
        }
    free(a);
    free(b);
    free(y);
    (void)dlclose(library);
}

/* What reads or makes a number below the normal ones takes a hundred cycles: at arguments that are
 * none no function does so inside. */
static void all_normal(const po_isa *isa) {
    enum { N = 1 << 12, DENORMAL = 1 << 1, UNDERFLOW_SEEN = 1 << 4, FLAGS = 0x3f };
    static const char *const names[] = {"exp", "sigmoid", "gated", "tanh", "erf"};
    char dir[] = "/tmp/petopt-functions-XXXXXX";
    assert_non_null(mkdtemp(dir));
    void *library = load(isa, dir);
    (void)rmdir(dir);
    float *a = malloc(N * sizeof *a), *y = malloc(N * sizeof *y);
    assert_true(a != NULL && y != NULL);
    for (int k = 0; k < N; k++) {
        const double size = exp((k / 2 - N / 8) * 0.04); /* 1e-9 to 1e26 */
        a[k] = (float)(k % 2 ? -size : size);
    }
    a[0] = INFINITY;
    a[1] = -INFINITY;
    a[2] = 0;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char name[40];
        (void)snprintf(name, sizeof name, "v0_%s", names[i]);
        array_fn fn;
        *(void **)&fn = dlsym(library, name);
        assert_non_null(fn);
        _mm_setcsr(_mm_getcsr() & ~(unsigned)FLAGS);
        fn(a, a, NULL, y, N);
        const unsigned seen = _mm_getcsr() & (DENORMAL | UNDERFLOW_SEEN);
        if (seen)
            fail_msg("%s: numbers below the normal ones inside (flags %x)", names[i], seen);
    }
    free(a);
    free(y);
    (void)dlclose(library);
}

static void test_avx512(void **state) {
    (void)state;
    if (!has_avx512())
        skip();
    run(&po_isas[PO_ISA_AVX512]);
    all_normal(&po_isas[PO_ISA_AVX512]);
}

static void test_avx2(void **state) {
    (void)state;
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma"))
        skip();
    run(&po_isas[PO_ISA_AVX2]);
    all_normal(&po_isas[PO_ISA_AVX2]);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_avx512), cmocka_unit_test(test_avx2)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
