/* Stages as functions: none of them changes what goes in, and what --dump prints of their results
 * reads back. */
#include "ir/text.h"
#include "mugraph/mugraph.h"
#include "ops/sum/sum.h"
#include "pipeline/dump.h"
#include "pipeline/search/search.h"
#include "rewriting.h"
#include "run_fixture.h"
#include "unit.h"

static const char model[] =
    "graph g (x: f32[1,16,12,12]) -> (y) {\n"
    " a = Conv(x, w: f32[16,16,3,3] random 1) {kernel_shape=[3, 3], pads=[1, 1, 1, 1]}\n"
    " b = Relu(a)\n i = Identity(b)\n"
    " c = Conv(i, v: f32[16,16,1,1] random 2)\n y = Tanh(c)\n}";

/* --- what goes in stays --- */

/* How many trials have each fate; in all: n. */
typedef struct fates {
    uint32_t of[PO_TRIAL_FATES], n;
} fates;

static fates fates_of(const po_search *search) {
    fates f = {.n = 0};
    for (uint32_t i = 0; i < search->n_sites; i++)
        for (uint32_t k = 0; k < search->sites[i].n_trials; k++, f.n++)
            f.of[search->sites[i].trials[k].fate]++;
    return f;
}

static void same_fates(const po_search *search, const fates *before) {
    fates after = fates_of(search);
    assert_memory_equal(before, &after, sizeof after);
}

static void results_stay(void **state) {
    (void)state;
    run_fixture f;
    run_fixture_start(&f, model);
    const po_graph *g = f.imported.graph;
    po_hash hash = po_graph_hash(g);
    po_simplified simplified;
    const po_search *split, *mutated, *corrected;
    po_chosen chosen;
    assert_int_equal(po_stage_simplify(&f.run, &f.imported, &simplified), PO_OK);
    assert_int_equal(test_count(simplified.graph, "Identity"), 0);
    assert_int_equal(po_stage_split(&f.run, &f.imported, &simplified, NULL, &split), PO_OK);
    assert_non_null(split);
    fates of_split = fates_of(split);
    assert_int_equal(po_stage_mutate(&f.run, split, NULL, &mutated), PO_OK);
    fates of_mutated = fates_of(mutated);
    assert_int_equal(of_split.n, 0);
    assert_true(of_mutated.n > 0);
    same_fates(split, &of_split);
    assert_int_equal(po_stage_correct(&f.run, mutated, NULL, &corrected), PO_OK);
    fates of_corrected = fates_of(corrected);
    assert_true(of_corrected.of[PO_TRIAL_INSIDE] > of_mutated.of[PO_TRIAL_INSIDE]);
    same_fates(mutated, &of_mutated);
    assert_int_equal(po_stage_choose(&f.run, corrected, NULL, &chosen), PO_OK);
    same_fates(corrected, &of_corrected);
    assert_ptr_not_equal(chosen.search, corrected);
    /* Select makes no more variants of what it was given, nor gives it prices. */
    run_fixture_postopt(&f);
    uint32_t n = f.variants.n, states = f.variants.chooser->n;
    const po_graph *first = f.variants.graph;
    run_fixture_select(&f);
    assert_int_equal(f.variants.n, n);
    assert_int_equal(f.variants.chooser->n, states);
    assert_ptr_equal(f.variants.graph, first);
    assert_true(po_hash_equal(po_graph_hash(g), hash));
    run_fixture_end(&f);
}

/* --- dumps --- */

typedef struct dumped {
    run_fixture *f;
    uint32_t nodes, sums, programs; /* that were read */
} dumped;

/* The lines from this one to the one that closes it, without their marks. */
static const char *piece(po_arena *arena, const char *from) {
    po_text t;
    po_text_init(&t, arena);
    for (const char *line = from; *line == '#';) {
        const char *end = strchr(line, '\n');
        const char *text = line[1] == ' ' ? line + 2 : line + 1;
        po_text_add(&t, text, (size_t)(end + 1 - text));
        if (strncmp(line, "# }", 3) == 0)
            break;
        line = end + 1;
    }
    return t.data;
}

static void read_back(void *user, const char *stage, const char *text) {
    dumped *d = user;
    po_ctx *ctx = &d->f->ctx;
    po_arena *arena = d->f->run.arena;
    po_graph *g;
    (void)stage;
    if (po_graph_parse(ctx, text, &g) != PO_OK)
        fail_msg("%s", ctx->error.message);
    d->nodes = g->n_live;
    po_graph_free(g);
    for (const char *line = text; line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL) {
        const char *end = strchr(line, '\n'), *sum = strstr(line, ": sum (");
        if (line[0] == '#' && sum && sum < end) {
            po_scan scan;
            po_sum *read;
            const char *own = piece(arena, line);
            po_scan_init(&scan, ctx, arena, strstr(own, "sum ("));
            if (po_sum_parse(&scan, &read) != PO_OK)
                fail_msg("%s", ctx->error.message);
            d->sums++;
        } else if (strncmp(line, "# mugraph ", 10) == 0) {
            po_mu *mu;
            if (po_mu_parse(ctx, arena, piece(arena, line), &mu) != PO_OK)
                fail_msg("%s", ctx->error.message);
            d->programs++;
        }
    }
}

/* Its weights are short enough to be printed. */
static const char tiny[] = "graph g (x: f32[1,2,12,12]) -> (y) {\n"
                           " a = Conv(x, w: f32[2,2,1,1] random 1)\n b = Relu(a)\n"
                           " c = Conv(b, v: f32[2,2,1,1] random 2)\n y = Tanh(c)\n}";

static void dumps_read_back(void **state) {
    (void)state;
    run_fixture f;
    run_fixture_start(&f, tiny);
    const char *asked[] = {"split", "superopt"};
    dumped d = {.f = &f};
    const po_callbacks callbacks = {.user = &d, .dump = read_back};
    f.run.callbacks = &callbacks;
    f.options.kernels = "not written here";
    f.options.dump = asked;
    f.options.n_dump = 2;
    const po_search *split;
    po_kernels kernels;
    assert_false(po_dump_is_asked(&f.run, "mutate"));
    assert_true(po_dump_is_asked(&f.run, "split"));
    assert_int_equal(po_stage_split(&f.run, &f.imported, &f.simplified, NULL, &split), PO_OK);
    po_dump(&f.run, "split", f.imported.graph, split, NULL);
    assert_int_equal(d.nodes, 4);
    assert_int_equal(d.sums, 1); /* both products are one subprogram */
    assert_int_equal(d.programs, 0);
    assert_int_equal(po_stage_superopt(&f.run, &f.imported, &f.simplified, split, NULL, &kernels),
                     PO_OK);
    assert_non_null(kernels.programs);
    po_dump(&f.run, "superopt", f.imported.graph, NULL, kernels.programs);
    assert_int_equal(d.programs, 1);
    run_fixture_end(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(results_stay),
        cmocka_unit_test(dumps_read_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
