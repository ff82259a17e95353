/* Kernels that are printed for any size: each case's extents are opened one number at a time, and
 * what comes out is run at other sizes between fences, against the muGraph's meaning there. */
#include "unit.h"

#include "kernel_cases.h"
#include "kernel_run.h"
#include "planned.h"

#include "base/hash.h"
#include "superopt/plan/row_fusion.h"
#include "superopt/schedule/internal.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { MOST = 256, SIZES = 12, PORTS = 8, NAMES = 2 };

typedef struct opened {
    const char *name;
    const po_mu_open *open;
    int64_t number;
    bool two; /* names */
} opened;

typedef struct fixture {
    po_ctx ctx;
    po_arena *arena;
    opened all[MOST];
    uint32_t n, compared, sizes_compared;
    char dir[40];
} fixture;

static const char *const names[NAMES] = {"p0", "p1"};

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
    f->all[f->n++] = (opened){kernel_cases[which].name, open, number, false};
    return true;
}

static void open_all(fixture *f) {
    for (uint32_t i = 0; i < n_kernel_cases; i++) {
        po_mu *mu;
        assert_int_equal(po_mu_parse(&f->ctx, f->arena, kernel_cases[i].text, &mu), PO_OK);
        int64_t number[2 * MOST];
        uint32_t n = 0;
        for (uint32_t l = 0; l < mu->n_labels && n < MOST; l++)
            number[n++] = mu->labels[l].extent;
        for (uint32_t t = 0; t < mu->n_tensors; t++) /* of maps that are worked in tiles */
            for (uint32_t a = 0; mu->tensors[t].place == PO_MU_OUTPUT && a < mu->tensors[t].rank;
                 a++)
                number[n++] = mu->tensors[t].dims[a];
        for (uint32_t l = 0; l < n && f->n < MOST; l++) {
            bool again = number[l] < 4;
            for (uint32_t k = 0; k < l; k++)
                again |= number[k] == number[l];
            if (!again)
                (void)open_one(f, i, number[l]);
        }
    }
}

/* --- schedules of products over what is open in two ways --- */

static const struct {
    const char *name, *graph;
    int64_t lengths[NAMES];
    po_mu_number known[2 * NAMES];
} maps[] = {
    {"3x3",
     "graph g (x: f32[1,16,29,26]) -> (y) {\n"
     " a = Conv(x, w: f32[32,16,3,3] random 1, b: f32[32] random 2) {kernel_shape=[3, 3], "
     "pads=[1, 1, 1, 1]}\n y = Relu(a)\n}",
     {29, 26},
     {{29, {-1, "p0"}}, {26, {-1, "p1"}}, {29, {-1, "p0"}}, {26, {-1, "p1"}}}},
    /* 20 tiles a row: two rows of them are as many as the map has columns, four as its input has */
    {"3x3 with strides",
     "graph g (x: f32[1,16,47,80]) -> (y) {\n"
     " y = Conv(x, w: f32[48,16,3,3] random 1) {kernel_shape=[3, 3], strides=[2, 2], "
     "pads=[1, 1, 1, 1]}\n}",
     {47, 80},
     {{47, {-1, "p0"}},
      {80, {-1, "p1"}},
      {24, {-1, "(floor((p0 + 1)/2))"}},
      {40, {-1, "(floor((p1 + 1)/2))"}}}},
    {"of a sequence",
     "graph g (x: f32[1,16,421]) -> (y) {\n"
     " y = Conv(x, w: f32[16,16,3] random 1) {kernel_shape=[3], pads=[1, 1]}\n}",
     {421, 1009},
     {{421, {-1, "p0"}}, {1009, {-1, "p1"}}, {421, {-1, "p0"}}, {421, {-1, "p0"}}}},
    /* a row of a half is a row of the map */
    {"1x1 of wide rows",
     "graph g (x: f32[1,96,29,52]) -> (y) {\n a = Tanh(x)\n"
     " y = Conv(a, w: f32[96,96,1,1] random 1)\n}",
     {29, 52},
     {{29, {-1, "p0"}}, {52, {-1, "p1"}}, {29, {-1, "p0"}}, {52, {-1, "p1"}}}},
    /* several rows are worked at once */
    {"1x1",
     "graph g (x: f32[1,96,30,26]) -> (y) {\n a = Tanh(x)\n"
     " y = Conv(a, w: f32[96,96,1,1] random 1)\n}",
     {30, 26},
     {{30, {-1, "p0"}}, {26, {-1, "p1"}}, {30, {-1, "p0"}}, {26, {-1, "p1"}}}},
    /* up to three rows are worked beyond the map */
    {"1x1, Strassen twice",
     "graph g (x: f32[1,512,9,13]) -> (y) {\n a = Tanh(x)\n"
     " y = Conv(a, w: f32[512,512,1,1] random 1)\n}",
     {9, 13},
     {{9, {-1, "p0"}}, {13, {-1, "p1"}}, {9, {-1, "p0"}}, {13, {-1, "p1"}}}},
    {"tokens of samples",
     "graph g (x: f32[5,65,96]) -> (y) {\n a = Tanh(x)\n y = MatMul(a, w: f32[96,128] random 1)\n}",
     {5, 65},
     {{5, {-1, "p0"}}, {65, {-1, "p1"}}, {5, {-1, "p0"}}, {65, {-1, "p1"}}}},
    {"classes in panels and a rest",
     "graph g (x: f32[5,37,24]) -> (y) {\n a = Tanh(x)\n"
     " m = MatMul(a, w: f32[24,541] random 1)\n b = Add(m, c: f32[541] random 2)\n"
     " y = Relu(b)\n}",
     {5, 37},
     {{5, {-1, "p0"}}, {37, {-1, "p1"}}, {5, {-1, "p0"}}, {37, {-1, "p1"}}}},
};

/* Of a map that is there for one way, which it names, only that. */
static bool is_asked(po_arena *arena, const char *map, const po_choice *choice) {
    po_text told;
    po_text_init(&told, arena);
    choice->how->tell(choice, &told);
    return !strstr(map, "twice") || strstr(told.data, "twice");
}

/* By tiles of the map, by pairs of its rows, or by panels that do not end with the lanes. */
static bool in_tiles(const po_mu *naive, uint32_t step, const po_choice *choice) {
    po_naive_step n;
    if (strcmp(choice->how->name, "direct") == 0 && po_naive_step_of(naive, step, &n))
        return naive->labels[n.lane].extent > 64 && naive->labels[n.lane].extent % 16 != 0;
    return strcmp(choice->how->name, "winograd") == 0 || strcmp(choice->how->name, "strassen") == 0;
}

/* The program with one step by a choice, or some as one; the others by their first. */
static po_mu *scheduled(fixture *f, const po_mu *naive, uint32_t step, const po_choice *choice,
                        const po_row_fusion *bands) {
    po_schedule s;
    po_schedule_start(&s, f->arena, naive, false);
    for (uint32_t node = naive->first; node != PO_NONE; node = naive->nodes[node].next) {
        po_choice first[PO_CHOICES_MAX];
        if (bands && node == bands->node[0]) {
            po_row_fusion_apply(&s, bands);
            node = bands->node[bands->n - 1];
            continue;
        }
        (void)po_choices_of(naive, node, &po_isas[PO_ISA_AVX512], 1, first);
        po_schedule_step(&s, node, node == step ? choice : &first[0]);
    }
    po_schedule_finish(&s);
    return s.mu;
}

/* Every choice of each of them that is worked in tiles; how many. */
static uint32_t open_tiles(fixture *f) {
    uint32_t n = 0;
    for (size_t m = 0; m < sizeof maps / sizeof maps[0]; m++) {
        test_planned p;
        test_planned_start(&p, maps[m].graph, false);
        const po_mu_naming naming = {NAMES, names, maps[m].lengths, maps[m].known, 2 * NAMES};
        const po_mu *naive = p.plan.lowered.mu;
        for (uint32_t node = naive->first; node != PO_NONE; node = naive->nodes[node].next) {
            po_choice choices[PO_CHOICES_MAX];
            const uint32_t n_choices =
                po_choices_of(naive, node, &po_isas[PO_ISA_AVX512], 0, choices);
            for (uint32_t k = 0; k < n_choices && f->n < MOST; k++) {
                const po_mu_open *open;
                if (!in_tiles(naive, node, &choices[k]) ||
                    !is_asked(f->arena, maps[m].name, &choices[k]))
                    continue;
                po_mu *mu = scheduled(f, naive, node, &choices[k], NULL);
                if (po_mu_open_by(&f->ctx, f->arena, mu, &naming, &open) != PO_OK)
                    fail_msg("%s, choice %u: %s", maps[m].name, k, f->ctx.error.message);
                f->all[f->n++] = (opened){maps[m].name, open, maps[m].lengths[0], true};
                n++;
            }
        }
        test_planned_end(&p);
    }
    return n;
}

/* Neighbouring steps that are worked by heads, or by rows as many as there are tokens: what passes
 * between them is as long as there are tokens, or classes. */
static const struct {
    const char *name, *graph;
    int64_t height;
    uint32_t least; /* such programs */
} passed_on[] = {
    {"attention",
     "graph g (x: f32[1,6,37,16]) -> (y) {\n a = Tanh(x)\n"
     " t = Transpose(a) {perm=[0, 1, 3, 2]}\n s = MatMul(a, t)\n"
     " m = Softmax(s) {axis=-1}\n y = MatMul(m, a)\n}",
     6, 5},
    {"classes of tokens",
     "graph g (x: f32[1,37,48]) -> (y) {\n a = Tanh(x)\n"
     " m = MatMul(a, w: f32[48,541] random 1)\n y = Softmax(m) {axis=-1}\n}",
     37, 3},
};

static uint32_t open_bands(fixture *f) {
    enum { TOKENS = 37, FROM = 2, TO = 4 };
    static const int64_t lengths[NAMES] = {TOKENS, 1009};
    static const po_mu_number known[NAMES] = {{TOKENS, {-1, "p0"}}, {1009, {-1, "p1"}}};
    static const po_mu_naming naming = {NAMES, names, lengths, known, NAMES};
    uint32_t n = 0;
    for (size_t g = 0; g < sizeof passed_on / sizeof passed_on[0]; g++) {
        test_planned p;
        test_planned_start(&p, passed_on[g].graph, false);
        const po_mu *naive = p.plan.lowered.mu;
        const uint32_t before = n;
        for (uint32_t node = naive->first; node != PO_NONE; node = naive->nodes[node].next)
            for (uint32_t steps = FROM; steps <= TO && f->n < MOST; steps++) {
                po_row_fusion b;
                po_row_fusion_cost cost;
                if (!test_planned_bands(&p, node, steps, 1, &b) ||
                    !po_row_fusion_fits(f->arena, &b, &cost) || cost.height != passed_on[g].height)
                    continue;
                const po_mu_open *open;
                po_mu *mu = scheduled(f, naive, PO_NONE, NULL, &b);
                if (po_mu_open_by(&f->ctx, f->arena, mu, &naming, &open) != PO_OK)
                    fail_msg("%s, %u steps from '%s': %s", passed_on[g].name, steps,
                             naive->nodes[node].name, f->ctx.error.message);
                f->all[f->n++] = (opened){passed_on[g].name, open, TOKENS, true};
                n++;
            }
        assert_true(n - before >= passed_on[g].least);
        test_planned_end(&p);
    }
    return n;
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
static bool compare_at(fixture *f, const opened *o, void *library, uint32_t number,
                       const long *given, const po_isa *isa) {
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
            fail_msg("%s, %lld open, at %ld, %ld (%s): %s", o->name, (long long)o->number, given[0],
                     given[1], isa->name, wrong);
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
    const uint32_t tiles = open_tiles(&f), bands = open_bands(&f);
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
            const long given[NAMES] = {sizes[k], sizes[f.all[i].two ? (k + 3) % SIZES : k]};
            const bool is = compare_at(&f, &f.all[i], library, i, given, isa);
            f.sizes_compared += is;
            any |= is && sizes[k] != own;
        }
        if (f.all[i].two && printed[i] && !any)
            fail_msg("%s runs at no other size", f.all[i].name);
        f.compared += any;
    }
    (void)dlclose(library);
    (void)rmdir(f.dir);
    printf(
        "%s: %u of %u opened programs at other sizes, %u of them in tiles, %u in bands, %u sizes "
        "in all; %u without a printer\n",
        isa->name, f.compared, f.n, tiles, bands, f.sizes_compared, unprinted);
    assert_true(f.compared >= 50 && tiles >= 20 && bands >= 8 && f.sizes_compared >= 400);
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
