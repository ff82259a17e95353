/* Every law both ways: laws in place as mutants of subprograms and laws on what laws made, compared
 * modulo a prime; derivations in place on models, compared in float64, with their weights stated.
 */
#include "boxes/agree.h"
#include "mutate/mutate.h"
#include "random_linear.h"
#include "rewrite/apply.h"
#include "rewriting.h"
#include "unit.h"

#include <stdio.h>

enum {
    PROGRAMS = 400 / TEST_SHARE,
    LEAST_LIFTED = 60 / TEST_SHARE,
    LEAST_COMPOSED = 200 / TEST_SHARE
};

typedef struct tally {
    po_mutate_counts counts;
    uint32_t wrong, open_composed, in_place;
} tally;

static void judge_mutants(po_ctx *ctx, po_arena *arena, const po_graph *g, uint64_t seed,
                          const po_mutants *list, uint32_t first, tally *t) {
    const po_program *a, *b;
    if (po_program_of(ctx, arena, g, &a) != PO_OK) {
        po_ctx_clear(ctx);
        return; /* reshapes whose digits do not nest */
    }
    for (uint32_t i = first; i < list->n; i++) {
        const char *name = list->mutants[i].name;
        bool equal = false, open = strstr(name, "open") != NULL;
        po_arena *scratch = po_arena_create(ctx);
        po_agree_options options = {.seed = seed};
        if (po_graph_check(ctx, list->mutants[i].graph) != PO_OK)
            fail_msg("%s of program %llu: %s", name, (unsigned long long)seed, ctx->error.message);
        t->open_composed += open && strstr(name, ", then ") != NULL;
        if (po_program_of(ctx, scratch, list->mutants[i].graph, &b) != PO_OK ||
            po_agree_whole(ctx, scratch, a, b, &options, &equal, NULL, NULL) != PO_OK) {
            po_ctx_clear(ctx);
        } else if (!open && !equal) {
            t->wrong++;
            printf("%s of program %llu is not equal\n", name, (unsigned long long)seed);
        }
        po_arena_free(scratch);
    }
}

static void further(po_ctx *ctx, uint64_t seed, tally *t) {
    po_graph *g = test_random_linear(ctx, seed);
    if (!g)
        return;
    po_arena *arena = po_arena_create(ctx);
    po_subprogram sub = {.graph = g, .n_activations = 1};
    po_mutants list;
    po_derive_options options = {.parents = 4, .tried = 256, .keep = 12};
    po_mutants_init(&list, arena);
    assert_int_equal(po_derive(ctx, arena, &sub, PO_LAW_ANY, &list, &t->counts), PO_OK);
    uint32_t first = list.n;
    uint64_t before = t->counts.lifted + t->counts.composed;
    assert_int_equal(po_derive_further(ctx, arena, &sub, &options, &list, &t->counts), PO_OK);
    assert_int_equal(list.n - first, t->counts.lifted + t->counts.composed - before);
    assert_true(list.n - first <= options.keep);
    judge_mutants(ctx, arena, g, seed, &list, first, t);
    po_arena_free(arena);
    po_graph_free(g);
}

static void on_mutants(void **state) {
    (void)state;
    tally t = {0};
    for (uint64_t seed = 0; seed < PROGRAMS; seed++) {
        po_ctx ctx;
        po_ctx_init(&ctx);
        further(&ctx, seed, &t);
    }
    printf("%llu lifted, %llu composed (%u of what is open), %llu tried, %llu left out\n",
           (unsigned long long)t.counts.lifted, (unsigned long long)t.counts.composed,
           t.open_composed, (unsigned long long)t.counts.tried,
           (unsigned long long)t.counts.left_out);
    assert_int_equal(t.wrong, 0);
    assert_true(t.counts.lifted >= LEAST_LIFTED);
    assert_true(t.counts.composed >= LEAST_COMPOSED);
    assert_true(t.open_composed > 0);
}

/* --- derivations in place --- */

typedef struct sample {
    po_law_id law;
    uint32_t fired;
    const char *graph;
} sample;

#define HEAD "pir 1 ir_version=8 opset=13\n"

static const sample samples[] = {
    {PO_LAW_DILATION, 1,
     HEAD "graph g (x: f32[1,4,9,10]) -> (y) {\n"
          " y = Conv(x, w: f32[6,4,3,3] random 1, b: f32[6] random 2) {dilations=[2,2], "
          "pads=[2,2,2,2]}\n}"},
    {PO_LAW_STRIDE, 2,
     HEAD "graph g (x: f32[1,4,9,10]) -> (y) {\n"
          " a = Conv(x, w: f32[6,4,3,3] random 1) {strides=[2,2], pads=[1,1,1,1]}\n"
          " r = Relu(a)\n y = Conv(r, v: f32[5,6,3,3] random 2) {strides=[2,1]}\n}"},
    {PO_LAW_PRODUCTS_SIDE, 1,
     HEAD "graph g (x: f32[7,8]) -> (y) {\n a = MatMul(x, w: f32[8,6] random 1)\n"
          " b = MatMul(x, v: f32[8,6] random 2)\n c = Sigmoid(a)\n y = Mul(c, b)\n}"},
    {PO_LAW_INNER_ROWS, 1,
     HEAD "graph g (x: f32[1,4,16]) -> (y) {\n y = Conv(x, w: f32[6,4,3] random 1, b: f32[6] "
          "random 2) {pads=[1,1]}\n}"},
    {PO_LAW_CONV_SUM, 1,
     HEAD
     "graph g (x: f32[1,4,9,10]) -> (y) {\n a = Conv(x, w: f32[6,4,3,3] random 1) "
     "{pads=[1,1,1,1]}\n b = Conv(x, v: f32[6,4,1,1] random 2)\n c = Add(a, b)\n y = Relu(c)\n}"},
    {PO_LAW_STRIDE, 0,
     HEAD "graph g (x: f32[1,4,9,10]) -> (y) {\n y = Conv(x, w: f32[6,4,3,3] random 1)\n}"},
};

static uint32_t nodes_of_weights(const po_graph *g) {
    po_arena *arena = po_arena_child(g->arena);
    const bool *weight = po_weights_of(g, arena, g->n_inputs);
    uint32_t n = 0;
    for (po_node_id i = 0; i < g->n_nodes; i++)
        n += !g->nodes[i].removed && weight[g->nodes[i].out[0]];
    po_arena_free(arena);
    return n;
}

static void in_place(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof samples / sizeof *samples; i++) {
        po_ctx ctx;
        po_ctx_init(&ctx);
        po_graph *g = test_graph(&ctx, samples[i].graph), *before = po_graph_clone(&ctx, g);
        po_law_counts counts = {0};
        const po_postopt_options options = po_postopt_plain(PO_ALGEBRA_ALL);
        po_rewriting r = {
            .ctx = &ctx, .options = &options, .counts = &counts, .scratch = po_arena_create(&ctx)};
        assert_int_equal(po_law_in_place(&ctx, g, samples[i].law, &r), PO_OK);
        assert_int_equal(counts.fired[samples[i].law], samples[i].fired);
        assert_int_equal(po_graph_check(&ctx, g), PO_OK);
        assert_true(test_difference(&ctx, before, g, 3) < 1e-6);
        assert_int_equal(nodes_of_weights(g), 0);
        const char *fault = test_recipe_fault(&ctx, before, g);
        if (fault)
            fail_msg("%s: %s", po_laws[samples[i].law].name, fault);
        po_arena_free(r.scratch);
        po_graph_free(before);
        po_graph_free(g);
    }
}

/* Each law can be applied: it has one way, and all but the sweep have one. */
static void each_has_a_way(void **state) {
    (void)state;
    for (uint32_t i = 0; i < PO_LAWS; i++) {
        const po_law *law = &po_laws[i];
        int ways = (law->at != NULL) + (law->pass != NULL) + (law->derive != NULL);
        assert_int_equal(ways, i == PO_LAW_SWEEP ? 0 : 1);
        assert_true(law->helps != 0 && law->law[0] && law->condition[0]);
        for (uint32_t k = 0; k < i; k++)
            assert_string_not_equal(po_laws[k].name, law->name);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_has_a_way),
                                       cmocka_unit_test(on_mutants), cmocka_unit_test(in_place)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
