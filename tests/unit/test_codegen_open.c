/* Kernels that are printed for any size: each case's extents are opened one number at a time, and
 * what comes out is run at other sizes between fences, against the muGraph's meaning there. */
#include "unit.h"

#include "kernel_cases.h"
#include "kernel_run.h"

#include "base/hash.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { MOST = 256, SIZES = 12, PORTS = 8 };

typedef struct opened {
    const char *name;
    const po_mu_open *open;
    int64_t number;
} opened;

typedef struct fixture {
    po_ctx ctx;
    po_arena *arena;
    opened all[MOST];
    uint32_t n, compared, sizes_compared;
    char dir[40];
} fixture;

static const char *const names[] = {"p0"};

/* Opens a number of a case; false where other sizes have no such program. */
static bool open_one(fixture *f, uint32_t which, int64_t number) {
    po_mu *mu;
    const po_mu_open *open;
    po_mu_number *known = PO_NEW(f->arena, po_mu_number);
    const po_mu_naming naming = {1, names, &number, known, 1};
    *known = (po_mu_number){number, {-1, "p0"}};
    assert_int_equal(po_mu_parse(&f->ctx, f->arena, kernel_cases[which].text, &mu), PO_OK);
    if (po_mu_open_by(&f->ctx, f->arena, mu, &naming, &open) != PO_OK) {
        po_ctx_clear(&f->ctx);
        return false;
    }
    f->all[f->n++] = (opened){kernel_cases[which].name, open, number};
    return true;
}

static void open_all(fixture *f) {
    for (uint32_t i = 0; i < n_kernel_cases; i++) {
        po_mu *mu;
        assert_int_equal(po_mu_parse(&f->ctx, f->arena, kernel_cases[i].text, &mu), PO_OK);
        for (uint32_t l = 0; l < mu->n_labels && f->n < MOST; l++) {
            bool again = mu->labels[l].extent < 4;
            for (uint32_t k = 0; k < l; k++)
                again |= mu->labels[k].extent == mu->labels[l].extent;
            if (!again)
                (void)open_one(f, i, mu->labels[l].extent);
        }
    }
}

static const float **numbers(fixture *f, const po_mu *mu, po_mu_place place, uint32_t seed) {
    int64_t n[PORTS];
    const float **lists = PO_NEW_N(f->arena, const float *, PORTS);
    const uint32_t count = test_ports(mu, place, n, PORTS);
    for (uint32_t i = 0; i < count; i++) {
        float *list = PO_NEW_N(f->arena, float, n[i] + 1);
        for (int64_t k = 0; k < n[i]; k++)
            list[k] = (float)(po_random_unit(seed, i, (uint64_t)k) - 0.4);
        lists[i] = list;
    }
    return lists;
}

/* At a size; whether there is such a program. */
static bool compare_at(fixture *f, const opened *o, void *library, uint32_t number, int64_t size,
                       const po_isa *isa) {
    const long given[] = {size};
    po_mu *mu = po_mu_open_at(f->arena, o->open, given);
    if (!mu || po_mu_check(&f->ctx, mu, 1 << 24) != PO_OK) {
        po_ctx_clear(&f->ctx);
        return false;
    }
    test_kernel kernel =
        test_kernel_of(f->arena, library, po_arena_printf(f->arena, "k%u", number), mu, given, isa);
    const float **in = numbers(f, mu, PO_MU_INPUT, 1), **weight = numbers(f, mu, PO_MU_WEIGHT, 2);
    for (size_t parts = 1; parts <= 3; parts += 2) {
        const char *wrong = test_kernel_check(&f->ctx, f->arena, &kernel, in, weight, parts, false,
                                              parts == 1, 64, NULL, NULL);
        if (wrong && wrong == f->ctx.error.message) { /* it reads what it has not written there */
            po_ctx_clear(&f->ctx);
            return false;
        }
        if (wrong)
            fail_msg("%s, %lld open, at %lld (%s): %s", o->name, (long long)o->number,
                     (long long)size, isa->name, wrong);
    }
    return true;
}

static void run(const po_isa *isa) {
    fixture f;
    memset(&f, 0, sizeof f);
    po_ctx_init(&f.ctx);
    f.ctx.threads = 2;
    f.arena = po_arena_create(&f.ctx);
    (void)snprintf(f.dir, sizeof f.dir, "/tmp/petopt-open-XXXXXX");
    assert_non_null(mkdtemp(f.dir));
    open_all(&f);
    po_text texts[2];
    bool *printed = PO_NEW_N(f.arena, bool, f.n + 1);
    po_text_init(&texts[0], f.arena);
    po_text_init(&texts[1], f.arena);
    uint32_t unprinted = 0;
    for (uint32_t i = 0; i < f.n; i++) {
        po_text *text = &texts[i % 2], trial;
        po_text_init(&trial, f.arena);
        printed[i] = test_open_text(&f.ctx, f.all[i].open, isa, po_arena_printf(f.arena, "k%u", i),
                                    &trial) == PO_OK;
        if (!printed[i]) {
            unprinted++;
            po_ctx_clear(&f.ctx);
            continue;
        }
        (void)test_open_text(&f.ctx, f.all[i].open, isa, po_arena_printf(f.arena, "k%u", i), text);
    }
    const char *const data[] = {texts[0].data, texts[1].data};
    void *library;
    if (test_kernels_load(&f.ctx, f.arena, isa, data, 2, NULL, f.dir, false, &library) != PO_OK)
        fail_msg("%s", f.ctx.error.message);
    for (uint32_t i = 0; i < f.n; i++) {
        const int64_t own = f.all[i].number;
        const int64_t sizes[SIZES] = {own, own + 1, own - 1, 0, 1, 2, 3, 7, 16, 17, 33, 50};
        bool any = false;
        for (uint32_t k = 0; k < SIZES && printed[i]; k++) {
            const bool is = compare_at(&f, &f.all[i], library, i, sizes[k], isa);
            f.sizes_compared += is;
            any |= is && sizes[k] != own;
        }
        f.compared += any;
    }
    (void)dlclose(library);
    (void)rmdir(f.dir);
    printf("%s: %u of %u opened programs at other sizes, %u sizes in all; %u without a printer\n",
           isa->name, f.compared, f.n, f.sizes_compared, unprinted);
    assert_true(f.compared >= 40 && f.sizes_compared >= 300);
    po_arena_free(f.arena);
}

static void test_avx512(void **state) {
    (void)state;
    if (test_has_isa(&po_isas[PO_ISA_AVX512]))
        run(&po_isas[PO_ISA_AVX512]);
}

static void test_avx2(void **state) {
    (void)state;
    if (test_has_isa(&po_isas[PO_ISA_AVX2]))
        run(&po_isas[PO_ISA_AVX2]);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_avx512), cmocka_unit_test(test_avx2)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
