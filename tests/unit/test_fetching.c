/* What schedules ask for before it is needed, and where their programs do. */
#include "planned.h"
#include "superopt/schedule/internal.h"
#include "unit.h"

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

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(weights_are_fetched_or_not),
        cmocka_unit_test(the_next_chunk_is_fetched_by_tiles),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
