/* Register tiles of instruction sets: they fit, rows come out even, and the first guess of a
 * product's schedule has panels that registers hold. */
#include "planned.h"
#include "superopt/schedule/internal.h"
#include "unit.h"

#include <math.h>

/* Accumulators, a row of vectors and one number: what a step of the sum holds at once. */
static bool fits(const po_isa *isa, int64_t rows, int64_t vectors) {
    return rows * vectors + vectors + 1 <= isa->registers;
}

static void tiles_fit_and_come_out_even(void **state) {
    (void)state;
    for (uint32_t i = 0; i < PO_ISAS; i++)
        for (int64_t lanes = 16; lanes <= 128; lanes += 16)
            for (int64_t most = 2; most <= 14; most++)
                for (int64_t extent = 0; extent <= 200; extent++) {
                    int64_t rows = most, of = lanes, any = most;
                    po_isa_tile(&po_isas[i], extent, &rows, &of);
                    const int64_t vectors = of / po_isas[i].lanes;
                    assert_true(rows >= 1 && rows <= most && of <= lanes);
                    assert_true(fits(&po_isas[i], rows, vectors));
                    po_isa_tile(&po_isas[i], 0, &any, &of);
                    assert_true(rows <= any);
                    if (extent > any)
                        assert_true(po_isa_cycles(extent, rows, vectors) <=
                                    po_isa_cycles(extent, any, vectors));
                    else
                        assert_int_equal(rows, any);
                }
}

/* Rows of a tile and of the last one, by extent, with registers for six rows of two vectors. */
static void rows_of_avx2(void **state) {
    (void)state;
    static const int64_t cases[][2] = {{6, 6},  {7, 4},  {12, 6}, {14, 5},
                                       {16, 6}, {49, 5}, {128, 6}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int64_t rows = 14, lanes = 16;
        po_isa_tile(&po_isas[PO_ISA_AVX2], cases[i][0], &rows, &lanes);
        assert_int_equal(lanes, 16);
        assert_int_equal(rows, cases[i][1]);
    }
}

/* By a count that walks over all tiles: a step is never shorter than the latency of one product. */
static void cycles_are_those_of_all_tiles(void **state) {
    (void)state;
    for (int64_t rows = 1; rows < 60; rows++)
        for (int64_t high = 1; high <= 14; high++)
            for (int64_t vectors = 1; vectors <= 4; vectors++) {
                double sum = 0;
                for (int64_t at = 0; at < rows; at += high) {
                    const int64_t n = rows - at < high ? rows - at : high;
                    sum += 0.2 + (n * vectors < 8 ? 4 : (double)(n * vectors) / 2);
                }
                assert_true(fabs(po_isa_cycles(rows, high, vectors) - sum) < 1e-9);
            }
}

static void the_first_guess_fits_the_registers(void **state) {
    (void)state;
    static const char *const graphs[] = {
        "graph g (x: f32[16,512]) -> (y) {\n y = MatMul(x, w: f32[512,512] random 1)\n}",
        "graph g (x: f32[128,768]) -> (y) {\n y = MatMul(x, w: f32[768,192] random 1)\n}",
        "graph g (x: f32[1,64,7,7]) -> (y) {\n"
        " y = Conv(x, w: f32[128,64,1,1] random 1) {kernel_shape=[1, 1]}\n}",
        "graph g (x: f32[1,64,14,14]) -> (y) {\n"
        " y = Conv(x, w: f32[64,64,3,3] random 1) {kernel_shape=[3, 3], pads=[1, 1, 1, 1]}\n}",
    };
    for (size_t i = 0; i < sizeof graphs / sizeof *graphs; i++)
        for (uint32_t isa = 0; isa < PO_ISAS; isa++) {
            test_planned f;
            uint32_t found = 0;
            test_planned_start(&f, graphs[i], false);
            const po_mu *naive = f.plan.lowered.mu;
            for (uint32_t node = naive->first; node != PO_NONE; node = naive->nodes[node].next) {
                po_choice choices[PO_CHOICES_MAX];
                po_standalone_step lone;
                assert_true(po_choices_of(naive, node, &po_isas[isa], 0, choices) > 0);
                const po_mu *mu = po_plan_standalone(f.arena, naive, node, &choices[0], &lone);
                for (uint32_t w = 0; w < lone.n_packed; w++) {
                    const po_packing *p = &lone.packed[w].packing;
                    const int64_t panel[2] = {p->dims[p->rank - 1], 14};
                    found++;
                    assert_int_equal(po_panel_parts(&po_isas[isa], panel), 1);
                }
                (void)mu;
            }
            assert_true(found > 0);
            test_planned_end(&f);
        }
}

typedef struct lined {
    const char *graph, *has; /* NULL: lines are left apart */
} lined;

static bool says_what_it_prints(const test_printed *choice, const void *user) {
    const lined *c = user;
    const bool first = choice->place == 0;
    const bool joined = strstr(choice->told, first && c->has ? c->has : "lines");
    if (first)
        assert_int_equal(joined, c->has != NULL);
    assert_int_equal(strstr(choice->text, " long i_") == NULL, joined);
    return true;
}

/* Seven rows are not whole tiles: lines of them are joined, which their schedule says and the
 * printer does; those of fourteen are left apart. */
static void lines_are_joined_where_rows_are_left(void **state) {
    (void)state;
    static const lined cases[] = {
        {"graph g (x: f32[1,512,7,7]) -> (y) {\n"
         " y = Conv(x, w: f32[512,512,1,1] random 1) {kernel_shape=[1, 1]}\n}",
         "7 lines as one"},
        {"graph g (x: f32[1,512,7,7]) -> (y) {\n"
         " y = Conv(x, w: f32[64,512,1,1] random 1) {kernel_shape=[1, 1]}\n}",
         "2 lines as one"},
        {"graph g (x: f32[1,512,14,14]) -> (y) {\n"
         " y = Conv(x, w: f32[512,512,1,1] random 1) {kernel_shape=[1, 1]}\n}",
         NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_true(test_planned_printed(cases[i].graph, "direct", &po_isas[PO_ISA_AVX2],
                                         says_what_it_prints, &cases[i]) > 0);
}

typedef struct windowed {
    const char *graph;
    bool hidden;
} windowed;

static bool hides_and_keeps_weights(const test_printed *choice, const void *user) {
    const windowed *c = user;
    /* Of a fused tail operands are hidden in any case: p0 is the map. */
    assert_int_equal(strstr(choice->text, "PK_HIDE(p0);") != NULL, c->hidden);
    const po_mu *mu = choice->mu;
    const po_mu_node *outer = &mu->nodes[mu->nodes[mu->first].first];
    assert_int_equal(outer->kind, PO_MU_LOOP);
    assert_int_equal(mu->labels[outer->label].extent, 4); /* the groups */
    return true;
}

/* Rows of a window share what they read, which a compiler would keep in registers that there are
 * not; those of one tap share nothing. Of groups the weights stay while the lines go by. */
static void windows_are_hidden_from_the_compiler(void **state) {
    (void)state;
    static const windowed cases[] = {
        {"graph g (x: f32[1,64,14,14]) -> (y) {\n"
         " y = Conv(x, w: f32[64,16,3,3] random 1) {kernel_shape=[3, 3], pads=[1, 1, 1, 1], "
         "group=4}\n}",
         true},
        {"graph g (x: f32[1,64,28,28]) -> (y) {\n"
         " y = Conv(x, w: f32[64,16,3,3] random 1) {kernel_shape=[3, 3], pads=[1, 1, 1, 1], "
         "group=4, strides=[2, 2]}\n}",
         true},
        {"graph g (x: f32[1,64,14,14]) -> (y) {\n"
         " y = Conv(x, w: f32[64,16,1,1] random 1) {kernel_shape=[1, 1], group=4}\n}",
         false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_true(test_planned_printed(cases[i].graph, "direct", &po_isas[PO_ISA_AVX2],
                                         hides_and_keeps_weights, &cases[i]) > 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tiles_fit_and_come_out_even),
        cmocka_unit_test(rows_of_avx2),
        cmocka_unit_test(cycles_are_those_of_all_tiles),
        cmocka_unit_test(the_first_guess_fits_the_registers),
        cmocka_unit_test(lines_are_joined_where_rows_are_left),
        cmocka_unit_test(windows_are_hidden_from_the_compiler),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
