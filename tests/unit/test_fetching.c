/* What schedules ask for before it is needed, and where their programs do. */
#include "planned.h"
#include "superopt/schedule/internal.h"
#include "unit.h"

#include "kernel_run.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>

/* A weight that no cache holds is read with the next panel fetched, and without. */
static void weights_are_fetched_or_not(void **state) {
    (void)state;
    static const struct {
        const char *graph;
        uint32_t with, without; /* at least one of the choices; 0: none */
    } cases[] = {
        {"graph g (x: f32[12,512]) -> (y) {\n y = MatMul(x, w: f32[512,512] random 1)\n}", 1, 1},
        {"graph g (x: f32[12,64]) -> (y) {\n y = MatMul(x, w: f32[64,512] random 1)\n}", 1, 0},
        {"graph g (x: f32[12,4096]) -> (y) {\n y = MatMul(x, w: f32[4096,64] random 1)\n}", 0, 0},
        {"graph g (x: f32[12,64]) -> (y) {\n y = MatMul(x, w: f32[64,577] random 1)\n}", 1, 0},
        {"graph g (x: f32[2,64,5,9]) -> (y) {\n"
         " y = Conv(x, w: f32[128,64,1,1] random 1) {kernel_shape=[1, 1]}\n}",
         1, 0},
    };
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        test_planned f;
        test_planned_start(&f, cases[c].graph, false);
        const po_mu *naive = f.plan.lowered.mu;
        po_choice choices[PO_CHOICES_MAX];
        uint32_t with = 0, without = 0;
        for (uint32_t node = naive->first; node != PO_NONE; node = naive->nodes[node].next) {
            const uint32_t n = po_choices_of(naive, node, &po_isas[PO_ISA_AVX512], 1, choices);
            for (uint32_t i = 0; i < n; i++) {
                bool ahead = false, alone = false;
                po_standalone_step lone;
                const po_mu *mu = po_plan_standalone(f.arena, naive, node, &choices[i], &lone);
                for (uint32_t k = 0; k < mu->n_nodes; k++)
                    ahead |=
                        mu->nodes[k].kind == PO_MU_STATEMENT && mu->nodes[k].statement.ahead != 0;
                po_text text;
                po_text_init(&text, f.arena);
                choices[i].how->tell(&choices[i], &text);
                alone = strstr(text.data, "nothing fetched ahead") != NULL;
                assert_false(ahead && alone);
                with += ahead;
                without += alone;
            }
        }
        assert_int_equal(with > 0, cases[c].with);
        assert_int_equal(without > 0, cases[c].without);
        test_planned_end(&f);
    }
}

typedef struct chunked {
    const char *graph, *scheduler, *has;
} chunked;

static bool fetches_by_tiles(const test_printed *choice, const void *user) {
    const chunked *c = user;
    if (strcmp(c->scheduler, "winograd") == 0 && !strstr(choice->told, "slices"))
        return false; /* all weights are transformed first */
    assert_non_null(strstr(choice->text, "const float *h = "));
    assert_null(strstr(choice->text, "pk_ahead(p1"));
    assert_non_null(strstr(choice->text, "pk_ahead(h"));
    assert_non_null(strstr(choice->text, c->has));
    return true;
}

/* Weights that a loop transforms into cache, chunk by chunk, are asked for by the products of the
 * chunk before; those of which lines of a map lie outside, by the first line. */
static void the_next_chunk_is_fetched_by_tiles(void **state) {
    (void)state;
    static const chunked cases[] = {
        {"graph g (x: f32[1,128,14,14]) -> (y) {\n"
         " y = Conv(x, w: f32[128,128,3,3] random 1) {kernel_shape=[3, 3], pads=[1, 1, 1, 1]}\n}",
         "winograd", "* (b_"},
        {"graph g (x: f32[1,64,5,30]) -> (y) {\n"
         " y = Conv(x, w: f32[128,64,1,1] random 1) {kernel_shape=[1, 1]}\n}",
         "direct", " == 0 ? "},
    };
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++)
        assert_true(test_planned_printed(cases[c].graph, cases[c].scheduler,
                                         &po_isas[PO_ISA_AVX512], fetches_by_tiles, &cases[c]) > 0);
}

typedef struct outer {
    const char *graph;
    int64_t lines; /* of the map */
    bool first;
} outer;

static bool begins_with(const test_printed *choice, const void *user) {
    const outer *c = user;
    for (uint32_t n = choice->mu->first; n != PO_NONE; n = choice->mu->nodes[n].next) {
        const po_mu_node *loop = &choice->mu->nodes[choice->mu->nodes[n].first];
        assert_int_equal(loop->kind, PO_MU_LOOP);
        if (strstr(choice->told, "lines as one") == NULL)
            assert_int_equal(po_mu_extent(choice->mu, loop->label) == c->lines, c->first);
    }
    return true;
}

/* A small weight is read anew for each line of a large map; else each panel is read once. */
static void lines_are_worked_first(void **state) {
    (void)state;
    static const outer cases[] = {
        {"graph g (x: f32[1,64,57,56]) -> (y) {\n"
         " y = Conv(x, w: f32[256,64,1,1] random 1) {kernel_shape=[1, 1]}\n}",
         57, true},
        {"graph g (x: f32[1,64,57,56]) -> (y) {\n"
         " y = Conv(x, w: f32[1024,64,1,1] random 1) {kernel_shape=[1, 1]}\n}",
         57, false},
        {"graph g (x: f32[1,64,27,28]) -> (y) {\n"
         " y = Conv(x, w: f32[256,64,1,1] random 1) {kernel_shape=[1, 1]}\n}",
         27, false},
        {"graph g (x: f32[1,128,57,56]) -> (y) {\n"
         " y = Conv(x, w: f32[128,16,3,3] random 1) {kernel_shape=[3, 3], group=8}\n}",
         55, true},
    };
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++)
        assert_true(test_planned_printed(cases[c].graph, "direct", &po_isas[PO_ISA_AVX2],
                                         begins_with, &cases[c]) > 0);
}

/* A product of four panels. */
typedef struct panels {
    uint32_t rows, terms;
    double most_times; /* that a line is asked for, on average */
} panels;

enum { PANELS = 4, LANES = 16, NOTED = 1 << 16 };

/* Runs the product with every address that it asks for written down. Whether each line of all but
 * the first panel is asked for; how often on average. `spoil`: it asks for the same line again and
 * again. */
static bool all_asked_for(const panels *c, bool spoil, double *times) {
    static const char ahead[] = "#define pk_ahead(p) __builtin_prefetch((p), 0, 2)";
    const po_isa *isa = &po_isas[PO_ISA_AVX2];
    po_ctx ctx;
    po_ctx_init(&ctx);
    po_arena *arena = po_arena_create(&ctx);
    po_mu *mu;
    const char *recorder = po_arena_printf(arena,
                                           "const void *noted[%d];\nsize_t n_noted;\n"
                                           "#define pk_ahead(p) (noted[n_noted++ %% %d] = (p))",
                                           NOTED, NOTED);
    const char *text = po_arena_printf(
        arena,
        "mugraph m {\n  label m %u label b %d label n %d label k %u\n"
        "  tensor A input 0 [%u, %u]\n  tensor B weight 0 [%d, %u, %d]\n"
        "  tensor Y output 0 [%u, %d]\n  step \"s\" { grid b by 1 {\n"
        "    Y[m, %d*b+n] += A[m, k] * B[b, k, n] fresh tile m*6 n*1 ahead B %u } }\n}\n",
        c->rows, PANELS, LANES, c->terms, c->rows, c->terms, PANELS, c->terms, LANES, c->rows,
        PANELS * LANES, LANES, LANES * c->terms);
    assert_int_equal(po_mu_parse(&ctx, arena, text, &mu), PO_OK);
    po_text printed;
    po_text_init(&printed, arena);
    assert_int_equal(test_kernel_text(&ctx, mu, isa, "k", &printed), PO_OK);
    char *at = strstr(printed.data, ahead);
    assert_non_null(at);
    const char *noting = po_arena_printf(arena, "%.*s%s%s", (int)(at - printed.data), printed.data,
                                         recorder, at + strlen(ahead));
    if (spoil) {
        at = strstr(strstr(noting, "const float *h = "), "h += ");
        assert_non_null(at);
        memcpy(at, "h  + ", 5);
    }
    char dir[] = "/tmp/petopt-fetching-XXXXXX";
    void *library;
    assert_non_null(mkdtemp(dir));
    assert_int_equal(test_kernels_load(&ctx, arena, isa, &noting, 1, NULL, dir, false, &library),
                     PO_OK);
    const test_kernel k = test_kernel_of(arena, library, "k", mu, NULL, isa);
    float *w = PO_NEW_N(arena, float, (size_t)(PANELS + 2) * LANES * c->terms);
    float *from = w + (LANES - (uintptr_t)w / sizeof *w % LANES) % LANES;
    const float *in = PO_NEW_N(arena, float, (size_t)c->rows * c->terms);
    float *out = PO_NEW_N(arena, float, (size_t)c->rows *PANELS *LANES);
    test_pool one = {1, test_pool_serial, NULL};
    one.self = &one;
    k.run(&in, (const float *const[]){from}, &out, NULL, NULL, k.z, &one);
    const void **noted = dlsym(library, "noted");
    const size_t n = *(const size_t *)dlsym(library, "n_noted");
    const size_t lines = (size_t)PANELS * (size_t)c->terms;
    bool *asked = PO_NEW_N(arena, bool, lines), all = true;
    size_t inside = 0;
    assert_true(n <= NOTED);
    for (size_t i = 0; i < n; i++) {
        const ptrdiff_t line = ((const char *)noted[i] - (const char *)from) / 64;
        if (line < 0 || line >= (ptrdiff_t)lines)
            continue;
        asked[line] = true;
        inside++;
    }
    for (size_t i = (size_t)c->terms; i < lines; i++)
        all &= asked[i];
    *times = (double)inside / (double)(lines - (size_t)c->terms);
    (void)dlclose(library);
    (void)rmdir(dir);
    po_arena_free(arena);
    return all;
}

/* While a panel is worked every line of the next one is asked for, and not again for each term. */
static void a_panel_is_fetched_once(void **state) {
    (void)state;
    static const panels cases[] = {
        {6, 96, 1.1}, {12, 96, 1.5}, {48, 256, 1.5}, {96, 512, 1.5}, {30, 100, 1.7}, {24, 17, 2},
    };
    double times;
    if (!test_has_isa(&po_isas[PO_ISA_AVX2]))
        skip();
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        assert_true(all_asked_for(&cases[c], false, &times));
        if (times > cases[c].most_times)
            fail_msg("%u rows, %u terms: each line %.2f times", cases[c].rows, cases[c].terms,
                     times);
    }
    assert_false(all_asked_for(&cases[2], true, &times));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(weights_are_fetched_or_not),
        cmocka_unit_test(the_next_chunk_is_fetched_by_tiles),
        cmocka_unit_test(a_panel_is_fetched_once),
        cmocka_unit_test(lines_are_worked_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
