/* Printed kernels, compiled and run, against the muGraph's own meaning in float64. */
#include "unit.h"

#include "kernel_cases.h"
#include "kernel_run.h"

#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { CASES = 64, FILES = 4 };

typedef struct fixture {
    po_ctx ctx;
    po_arena *arena;
    po_mu *mu[CASES];
    char dir[40];
} fixture;

static void begin(fixture *f) {
    memset(f, 0, sizeof *f);
    po_ctx_init(&f->ctx);
    f->ctx.threads = 2;
    f->arena = po_arena_create(&f->ctx);
    assert_true(n_kernel_cases <= CASES);
    for (uint32_t i = 0; i < n_kernel_cases; i++) {
        if (po_mu_parse(&f->ctx, f->arena, kernel_cases[i].text, &f->mu[i]) != PO_OK ||
            po_mu_check(&f->ctx, f->mu[i], 1 << 20) != PO_OK)
            fail_msg("%s: %s", kernel_cases[i].name, f->ctx.error.message);
    }
    (void)snprintf(f->dir, sizeof f->dir, "/tmp/petopt-codegen-XXXXXX");
    assert_non_null(mkdtemp(f->dir));
}

static void end(fixture *f) {
    (void)rmdir(f->dir);
    po_arena_free(f->arena);
}

/* All cases in one library. */
static void *load(fixture *f, const po_isa *isa, const char *flags) {
    po_text texts[FILES];
    const char *data[FILES];
    for (uint32_t i = 0; i < FILES; i++)
        po_text_init(&texts[i], f->arena);
    for (uint32_t i = 0; i < n_kernel_cases; i++) {
        const char *symbol = po_arena_printf(f->arena, "k%u", i);
        if (test_kernel_text(&f->ctx, f->mu[i], isa, symbol, &texts[i % FILES]) != PO_OK)
            fail_msg("%s: %s", kernel_cases[i].name, f->ctx.error.message);
    }
    for (uint32_t i = 0; i < FILES; i++)
        data[i] = texts[i].data;
    void *library;
    if (test_kernels_load(&f->ctx, f->arena, isa, data, FILES, flags, f->dir, false, &library) !=
        PO_OK)
        fail_msg("%s", f->ctx.error.message);
    return library;
}

typedef enum values { RANDOM, LARGE, ZERO, TINY, FILLS } values;

static const float **values_of(fixture *f, const po_mu *mu, po_mu_place place, values v,
                               uint64_t seed) {
    int64_t n[64];
    uint32_t count = test_ports(mu, place, n, 64);
    const float **all = PO_NEW_N(f->arena, const float *, count + 1);
    uint64_t state = seed;
    for (uint32_t i = 0; i < count; i++) {
        float *to = PO_NEW_N(f->arena, float, n[i] + 1);
        for (int64_t k = 0; k < n[i]; k++) {
            state = state * 6364136223846793005u + 1442695040888963407u;
            double u = (double)(state >> 33) / 1073741824.0 - 1.0;
            double scale[] = {1, 30, 0, 1e-30};
            to[k] = (float)(u * scale[v]);
        }
        all[i] = to;
    }
    return all;
}

static void check_all(const po_isa *isa) {
    if (!test_has_isa(isa))
        skip();
    fixture f;
    begin(&f);
    void *library = load(&f, isa, NULL);
    for (uint32_t i = 0; i < n_kernel_cases; i++) {
        const po_mu *mu = f.mu[i];
        test_kernel kernel =
            test_kernel_of(f.arena, library, po_arena_printf(f.arena, "k%u", i), mu, NULL, isa);
        double worst = 0;
        for (int v = RANDOM; v < FILLS; v++) {
            const float **in = values_of(&f, mu, PO_MU_INPUT, (values)v, 11 + (uint64_t)v);
            const float **weight = values_of(&f, mu, PO_MU_WEIGHT, RANDOM, 5);
            const char *wrong =
                test_kernel_check(&f.ctx, f.arena, &kernel, in, weight, v == LARGE ? 3 : 1, false,
                                  v == TINY || v == LARGE, kernel_cases[i].k, &worst, NULL);
            if (wrong != NULL)
                fail_msg("%s, %s, values %d: %s", kernel_cases[i].name, isa->name, v, wrong);
        }
        print_message("%s  %-50s %.3g u S\n", isa->name, kernel_cases[i].name, worst);
    }
    (void)dlclose(library);
    end(&f);
}

static void test_avx512(void **state) {
    (void)state;
    check_all(&po_isas[PO_ISA_AVX512]);
}

static void test_avx2(void **state) {
    (void)state;
    check_all(&po_isas[PO_ISA_AVX2]);
}

/* The same bits by any number of parts, one after the other or side by side. */
static void test_parts(void **state) {
    (void)state;
    const po_isa *isa = &po_isas[PO_ISA_AVX2];
    if (!test_has_isa(isa))
        skip();
    fixture f;
    begin(&f);
    void *library = load(&f, isa, NULL);
    for (uint32_t i = 0; i < n_kernel_cases; i++) {
        const po_mu *mu = f.mu[i];
        test_kernel kernel =
            test_kernel_of(f.arena, library, po_arena_printf(f.arena, "k%u", i), mu, NULL, isa);
        const float **in = values_of(&f, mu, PO_MU_INPUT, RANDOM, 3);
        const float **weight = values_of(&f, mu, PO_MU_WEIGHT, RANDOM, 4);
        int64_t n[64];
        uint32_t count = test_ports(mu, PO_MU_OUTPUT, n, 64);
        float *first[8], *then[8];
        for (uint32_t o = 0; o < count; o++) {
            first[o] = PO_NEW_N(f.arena, float, n[o] + 1);
            then[o] = PO_NEW_N(f.arena, float, n[o] + 1);
        }
        for (size_t parts = 1; parts <= 8; parts++)
            for (int threads = 0; threads < 2; threads++) {
                const char *wrong =
                    test_kernel_check(&f.ctx, f.arena, &kernel, in, weight, parts, threads != 0,
                                      false, 0, NULL, parts == 1 && !threads ? first : then);
                if (wrong != NULL)
                    fail_msg("%s, %zu parts: %s", kernel_cases[i].name, parts, wrong);
                for (uint32_t o = 0; o < count && (parts > 1 || threads); o++)
                    if (memcmp(first[o], then[o], (size_t)n[o] * sizeof(float)) != 0)
                        fail_msg("%s: other bits by %zu parts", kernel_cases[i].name, parts);
            }
    }
    (void)dlclose(library);
    end(&f);
}

static void dealt_out(void *self, void (*fn)(void *arg, size_t part), void *arg) {
    ++*(uint32_t *)self;
    fn(arg, 0);
}

static float *aligned(po_arena *arena, size_t floats) {
    char *memory = po_arena_alloc(arena, (floats + 32) * sizeof(float));
    return (float *)(void *)(((uintptr_t)memory + 63) / 64 * 64);
}

/* Times that a pool is asked, over all cases. */
static uint32_t times_dealt_out(fixture *f, const po_isa *isa, const char *flags) {
    void *library = load(f, isa, flags);
    uint32_t times = 0;
    for (uint32_t i = 0; i < n_kernel_cases; i++) {
        const po_mu *mu = f->mu[i];
        test_kernel kernel =
            test_kernel_of(f->arena, library, po_arena_printf(f->arena, "k%u", i), mu, NULL, isa);
        const float **in = values_of(f, mu, PO_MU_INPUT, RANDOM, 3);
        const float **weight = values_of(f, mu, PO_MU_WEIGHT, RANDOM, 4);
        int64_t n[64];
        uint32_t count = test_ports(mu, PO_MU_OUTPUT, n, 64);
        float *out[8];
        for (uint32_t o = 0; o < count; o++)
            out[o] = aligned(f->arena, (size_t)n[o]);
        float *device = aligned(f->arena, kernel.device);
        test_pool pool = {1, dealt_out, &times};
        kernel.start(device, kernel.z);
        kernel.run(in, weight, out, device, aligned(f->arena, kernel.scratch), kernel.z, &pool);
    }
    (void)dlclose(library);
    return times;
}

/* What takes a few microseconds is not dealt out, unless the file is compiled so. */
static void test_small(void **state) {
    (void)state;
    const po_isa *isa = &po_isas[PO_ISA_AVX2];
    if (!test_has_isa(isa))
        skip();
    fixture f;
    begin(&f);
    uint32_t all = times_dealt_out(&f, isa, "-DPK_LEAST=0");
    uint32_t usual = times_dealt_out(&f, isa, "-O1");
    assert_true(all >= n_kernel_cases);
    assert_true(usual < all / 2);
    end(&f);
}

/* The same text twice. */
static void test_text(void **state) {
    (void)state;
    fixture f;
    begin(&f);
    for (uint32_t i = 0; i < n_kernel_cases; i++)
        for (uint32_t k = 0; k < PO_ISAS; k++) {
            po_text a, b;
            po_text_init(&a, f.arena);
            po_text_init(&b, f.arena);
            po_mu *again;
            assert_int_equal(test_kernel_text(&f.ctx, f.mu[i], &po_isas[k], "k", &a), PO_OK);
            assert_int_equal(po_mu_parse(&f.ctx, f.arena, kernel_cases[i].text, &again), PO_OK);
            assert_int_equal(test_kernel_text(&f.ctx, again, &po_isas[k], "k", &b), PO_OK);
            assert_string_equal(a.data, b.data);
        }
    end(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_avx512), cmocka_unit_test(test_avx2),
                                       cmocka_unit_test(test_parts), cmocka_unit_test(test_small),
                                       cmocka_unit_test(test_text)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
