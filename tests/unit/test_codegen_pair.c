/* Kernels of several programs between which the size decides: each is run on its side, with no
 * other weights than its own, between fences. */
#include "unit.h"

#include "kernel_run.h"
#include "planned.h"

#include "base/hash.h"
#include "superopt/schedule/schedule.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { NAMES = 2, MOST = 300, WIDE = 1200, SIZES = 11, PORTS = 16 };

static const char graph[] =
    "graph g (x: f32[1,16,29,26]) -> (y) {\n"
    " a = Conv(x, w: f32[32,16,3,3] random 1, b: f32[32] random 2) {kernel_shape=[3, 3], "
    "pads=[1, 1, 1, 1]}\n c = Relu(a)\n"
    " y = Conv(c, v: f32[48,32,3,3] random 3) {kernel_shape=[3, 3], pads=[1, 1, 1, 1]}\n}";
static const char *const names[NAMES] = {"p0", "p1"};
static const int64_t here[NAMES] = {29, 26};
static const po_mu_number known[NAMES] = {{29, {-1, "p0"}}, {26, {-1, "p1"}}};

/* On both sides of 300 places and of 1,200, and just there. */
static const long sizes[SIZES][NAMES] = {{29, 26}, {15, 20}, {43, 7},  {7, 43}, {1, 1},   {3, 1},
                                         {1, 8},   {50, 49}, {40, 30}, {2, 9},  {11, 109}};

typedef struct fixture {
    test_planned p;
    const po_mu_open *usual;
    po_kernel_others others;
    char dir[40];
} fixture;

static bool is_tiles(const po_choice *choice) {
    return strcmp(choice->how->name, "winograd") == 0;
}

/* Every step in tiles that can be, or none. */
static const po_mu_open *opened(fixture *f, bool tiles) {
    const po_mu *naive = f->p.plan.lowered.mu;
    const po_mu_naming naming = {NAMES, names, here, known, NAMES};
    const po_mu_open *open;
    uint32_t n_tiles = 0;
    po_schedule s;
    po_schedule_start(&s, f->p.arena, naive, false);
    for (uint32_t node = naive->first; node != PO_NONE; node = naive->nodes[node].next) {
        po_choice choices[PO_CHOICES_MAX];
        const uint32_t n =
            po_choices_of(naive, node, &po_isas[PO_ISA_AVX512], tiles ? 0 : 1, choices);
        uint32_t k = 0;
        while (tiles && k < n && !is_tiles(&choices[k]))
            k++;
        n_tiles += k < n && is_tiles(&choices[k]);
        po_schedule_step(&s, node, &choices[k < n ? k : 0]);
    }
    po_schedule_finish(&s);
    assert_int_equal(n_tiles, tiles ? 2 : 0);
    if (po_mu_open_by(&f->p.ctx, f->p.arena, s.mu, &naming, &open) != PO_OK)
        fail_msg("%s", f->p.ctx.error.message);
    return open;
}

static uint32_t weights_of(const po_mu *mu) {
    int64_t n[PORTS];
    return test_ports(mu, PO_MU_WEIGHT, n, PORTS);
}

static const float **numbers(fixture *f, const po_mu *mu, po_mu_place place, uint32_t seed) {
    int64_t n[PORTS];
    const float **lists = PO_NEW_N(f->p.arena, const float *, PORTS);
    const uint32_t count = test_ports(mu, place, n, PORTS);
    for (uint32_t i = 0; i < count; i++) {
        float *list = PO_NEW_N(f->p.arena, float, n[i] + 1);
        for (int64_t k = 0; k < n[i]; k++)
            list[k] = (float)(po_random_unit(seed, i, (uint64_t)k) - 0.4);
        lists[i] = list;
    }
    return lists;
}

/* Its weights stand behind those of the programs before, the last first. */
static void add(fixture *f, const char *name, int64_t least, int64_t most) {
    const po_mu_open *open = opened(f, false);
    const uint32_t n = weights_of(open->mu), before = weights_of(f->usual->mu) + f->others.n * n;
    uint32_t *weight = PO_NEW_N(f->p.arena, uint32_t, n);
    assert_true(n > 1 && before + n <= PORTS);
    for (uint32_t i = 0; i < n; i++)
        weight[i] = before + n - 1 - i;
    f->others.program[f->others.n++] = (po_kernel_other){
        name, open, weight, n, {-1, "(p0*p1)"}, least, most, strcmp(name, "small") == 0};
}

/* The program that runs at a size; NULL: the first. */
static const po_kernel_other *that_runs(const fixture *f, const long *given) {
    const long places = given[0] * given[1];
    return places <= MOST ? &f->others.program[0] : places >= WIDE ? &f->others.program[1] : NULL;
}

/* other: the program that the kernel runs there; NULL: the first. */
static const char *check_at(fixture *f, void *library, const char *symbol, const long *given,
                            const po_isa *isa, size_t parts, const po_kernel_other *other) {
    const po_mu_open *open = other ? other->open : f->usual;
    po_mu *mu = po_mu_open_at(f->p.arena, open, given);
    assert_non_null(mu);
    test_kernel kernel = test_kernel_of(f->p.arena, library, symbol, mu, given, isa);
    kernel.weight = other ? other->weight : NULL;
    return test_kernel_check(&f->p.ctx, f->p.arena, &kernel, numbers(f, mu, PO_MU_INPUT, 1),
                             numbers(f, mu, PO_MU_WEIGHT, 2), parts, false, parts == 1, 64, NULL,
                             NULL);
}

/* All of them, and in the same file the first program by itself, which has all its functions there.
 */
static void print(fixture *f, const po_isa *isa, po_text *text) {
    po_codegen_file file = {.arena = f->p.arena};
    po_text_init(text, f->p.arena);
    test_text_start(isa, text);
    if (po_codegen_kernel(&f->p.ctx, f->usual, &f->others, isa, "pair", &file, text) != PO_OK)
        fail_msg("%s", f->p.ctx.error.message);
    const uint32_t n = file.n;
    assert_true(n > 2);
    assert_int_equal(po_codegen_kernel(&f->p.ctx, f->usual, NULL, isa, "alone", &file, text),
                     PO_OK);
    assert_int_equal(file.n, n);
}

static void run(const po_isa *isa) {
    fixture f;
    memset(&f, 0, sizeof f);
    test_planned_start(&f.p, graph, false);
    (void)snprintf(f.dir, sizeof f.dir, "/tmp/petopt-pair-XXXXXX");
    assert_non_null(mkdtemp(f.dir));
    f.usual = opened(&f, true);
    add(&f, "small", 1, MOST);
    add(&f, "wide", WIDE, INT64_MAX);
    po_text text;
    print(&f, isa, &text);
    const char *const data[] = {text.data};
    void *library;
    if (test_kernels_load(&f.p.ctx, f.p.arena, isa, data, 1, NULL, f.dir, false, &library) != PO_OK)
        fail_msg("%s", f.p.ctx.error.message);
    uint32_t n_small = 0, n_wide = 0;
    for (uint32_t i = 0; i < SIZES; i++) {
        const po_kernel_other *other = that_runs(&f, sizes[i]);
        n_small += other == &f.others.program[0];
        n_wide += other == &f.others.program[1];
        for (size_t parts = 1; parts <= 3; parts += 2) {
            const char *wrong = check_at(&f, library, "pair", sizes[i], isa, parts, other);
            wrong = wrong ? wrong : check_at(&f, library, "alone", sizes[i], isa, parts, NULL);
            if (wrong)
                fail_msg("at %ld x %ld (%s, %zu parts): %s", sizes[i][0], sizes[i][1], isa->name,
                         parts, wrong);
        }
    }
    assert_true(n_small >= 3 && n_wide >= 2 && n_small + n_wide + 3 <= SIZES);
    (void)dlclose(library);
    (void)rmdir(f.dir);
    test_planned_end(&f.p);
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
