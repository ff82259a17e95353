/* The blind enumeration: forms that experts know, found again without hints; those of PET's paper
 * at their true sizes. */
#include "boxes/agree.h"
#include "correct/correct.h"
#include "enumerate_cases.h"
#include "rewriting.h"
#include "unit.h"

#include <stdio.h>
#include <time.h>

/* The first mutant that is the form looked for; exact where it is to be exact. */
static const po_mutant *find(po_ctx *ctx, const enumerate_case *c, const po_subprogram *sub,
                             const po_mutants *mutants) {
    for (uint32_t i = 0; i < mutants->n; i++) {
        const po_mutant *m = &mutants->mutants[i];
        if (!c->is(m->graph))
            continue;
        double difference = test_difference(ctx, sub->graph, m->graph, 3);
        if (c->partial || difference < 1e-12)
            return m;
    }
    return NULL;
}

static void test_rediscovery(void **state) {
    (void)state;
    for (uint32_t i = 0; i < n_enumerate_cases; i++) {
        const enumerate_case *c = &enumerate_cases[i];
        po_ctx ctx;
        po_ctx_init(&ctx);
        po_arena *arena = po_arena_create(&ctx);
        po_subprogram sub = enumerate_subprogram(&ctx, c);
        po_mutants mutants;
        po_mutate_counts counts = {0};
        po_mutants_init(&mutants, arena);
        assert_int_equal(
            po_enumerate(&ctx, arena, &sub, &(po_mutate_options){.depth = 4}, &mutants, &counts),
            PO_OK);
        const po_mutant *m = find(&ctx, c, &sub, &mutants);
        print_message("%-46s %s; %llu judged, %.2f s\n", c->name, m ? m->name : "NOT FOUND",
                      (unsigned long long)counts.judged, counts.seconds);
        assert_non_null(m);
        po_graph_free((po_graph *)sub.graph);
        po_arena_free(arena);
    }
}

/* Two steps that no single round takes: phases, then the phases merged into fewer images. */
static void test_rounds(void **state) {
    (void)state;
    po_ctx ctx;
    po_ctx_init(&ctx);
    po_arena *arena = po_arena_create(&ctx);
    po_subprogram sub = enumerate_subprogram(&ctx, &enumerate_cases[0]);
    po_mutants lists[2];
    po_mutate_counts counts = {0};
    for (uint32_t i = 0; i < 2; i++) {
        po_mutants_init(&lists[i], arena);
        assert_int_equal(po_enumerate(&ctx, arena, &sub,
                                      &(po_mutate_options){.depth = 4, .rounds = 1 + 3 * i},
                                      &lists[i], &counts),
                         PO_OK);
    }
    assert_true(lists[1].n > lists[0].n);
    uint32_t exact = 0;
    for (uint32_t i = 0; i < lists[1].n; i++) {
        const po_mutant *m = &lists[1].mutants[i];
        if (i < lists[0].n) /* the first round is the same */
            assert_true(po_graph_equal(m->graph, lists[0].mutants[i].graph));
        else
            exact += test_difference(&ctx, sub.graph, m->graph, 3) < 1e-12;
        assert_true(test_count(m->graph, "Transpose") <= 3);
    }
    print_message("%u mutants of mutants, %u of them exact\n", lists[1].n - lists[0].n, exact);
    assert_true(exact > 0);
    po_graph_free((po_graph *)sub.graph);
    po_arena_free(arena);
}

/* The same mutants, whatever the threads, and twice in one process. */
static void test_deterministic(void **state) {
    (void)state;
    po_mutants lists[2];
    po_mutate_counts counts[2] = {0};
    po_ctx ctx[2];
    po_arena *arena[2];
    po_subprogram subs[2];
    const enumerate_case *c = &enumerate_cases[6];
    for (uint32_t i = 0; i < 2; i++) {
        po_ctx_init(&ctx[i]);
        ctx[i].threads = i ? 8 : 1;
        arena[i] = po_arena_create(&ctx[i]);
        subs[i] = enumerate_subprogram(&ctx[i], c);
        po_mutants_init(&lists[i], arena[i]);
        assert_int_equal(po_enumerate(&ctx[i], arena[i], &subs[i], &(po_mutate_options){.depth = 4},
                                      &lists[i], &counts[i]),
                         PO_OK);
    }
    assert_int_equal(counts[0].judged, counts[1].judged);
    assert_int_equal(counts[0].by_points, counts[1].by_points);
    assert_true(lists[0].n > 0);
    assert_int_equal(lists[0].n, lists[1].n);
    for (uint32_t i = 0; i < lists[0].n; i++) {
        assert_string_equal(lists[0].mutants[i].name, lists[1].mutants[i].name);
        assert_true(po_graph_equal(lists[0].mutants[i].graph, lists[1].mutants[i].graph));
    }
    for (uint32_t i = 0; i < 2; i++) {
        po_arena_free(arena[i]);
        po_graph_free((po_graph *)subs[i].graph);
    }
}

static double cpu_seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* The share of positions at which a mutant agrees; where that is not all of them, some correction
 * must agree at every one, which is returned. */
static const char *correction(po_ctx *ctx, po_arena *arena, const po_subprogram *sub,
                              const po_mutant *m, double *share) {
    const po_program *p, *q;
    const po_agree_options options = {.seed = 7};
    po_agreement agreement;
    po_mutants corrected;
    po_mutants_init(&corrected, arena);
    assert_int_equal(po_program_of(ctx, arena, sub->graph, &p), PO_OK);
    assert_int_equal(po_program_of(ctx, arena, m->graph, &q), PO_OK);
    assert_int_equal(po_agree(ctx, arena, p, q, &options, &agreement), PO_OK);
    *share = agreement.share;
    if (agreement.equal)
        return "";
    assert_int_equal(po_correct(ctx, arena, sub, m, &agreement, &corrected), PO_OK);
    assert_true(corrected.n > 0);
    bool equal = false;
    assert_int_equal(po_program_of(ctx, arena, corrected.mutants[0].graph, &q), PO_OK);
    assert_int_equal(po_agree_whole(ctx, arena, p, q, &options, &equal, NULL, NULL), PO_OK);
    assert_true(equal);
    return corrected.mutants[0].name + strlen(m->name) + 2;
}

/* PET's mutants, at the sizes of its Tables 3 and 4 or of the networks that it has them from. */
static void test_paper(void **state) {
    (void)state;
    for (uint32_t i = 0; i < n_enumerate_paper_cases; i++) {
        const enumerate_paper_case *c = &enumerate_paper_cases[i];
        po_ctx ctx;
        po_ctx_init(&ctx);
        po_arena *arena = po_arena_create(&ctx);
        po_subprogram sub = enumerate_paper_subprogram(&ctx, c);
        po_mutants mutants;
        po_mutate_counts counts = {0};
        po_mutants_init(&mutants, arena);
        double start = cpu_seconds(), share = 0;
        const po_mutate_options options = {.depth = 4, .rounds = c->rounds, .keep = c->keep};
        assert_int_equal(po_enumerate(&ctx, arena, &sub, &options, &mutants, &counts), PO_OK);
        double took = cpu_seconds() - start;
        const po_mutant *found = NULL;
        for (uint32_t k = 0; k < mutants.n && !found; k++) {
            size_t length = strlen(mutants.mutants[k].name), wanted = strlen(c->wanted);
            if (length >= wanted &&
                strcmp(mutants.mutants[k].name + length - wanted, c->wanted) == 0)
                found = &mutants.mutants[k];
        }
        if (!found)
            fail_msg("%s: not found", c->name);
        const char *way = correction(&ctx, arena, &sub, found, &share);
        print_message("%s: %s; %.2f s, %.0f%% agree; %s\n", c->name, found->name, took, 100 * share,
                      *way ? way : "-"); /* read by bench/operators.py */
        assert_string_equal(way, c->corrected);
        assert_true(took < 60);
        po_graph_free((po_graph *)sub.graph);
        po_arena_free(arena);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_rediscovery),
                                       cmocka_unit_test(test_paper), cmocka_unit_test(test_rounds),
                                       cmocka_unit_test(test_deterministic)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
