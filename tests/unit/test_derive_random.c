/* Every derivation on random programs of linear operators: the whole of every output, modulo a
 * prime, must be that of the program, for each mutant whose derivation claims that it is equal. */
#include "boxes/agree.h"
#include "mutate/mutate.h"
#include "random_linear.h"
#include "unit.h"

#include <stdio.h>

enum {
    PROGRAMS = 2000 / TEST_SHARE,
    LEAST_MUTANTS = 8000 / TEST_SHARE,
    LEAST_KINDS = 12,
    MOST_KINDS = 64
};

typedef struct tally {
    uint32_t mutants, open, open_wrong, wrong, kinds;
    char kind[MOST_KINDS][48];
} tally;

static void note_kind(tally *t, const char *name) {
    char kind[48];
    snprintf(kind, sizeof kind, "%.*s", (int)strcspn(name, ":"), name);
    for (uint32_t i = 0; i < t->kinds; i++)
        if (strcmp(t->kind[i], kind) == 0)
            return;
    if (t->kinds < MOST_KINDS)
        memcpy(t->kind[t->kinds++], kind, sizeof kind);
}

static void judge(po_ctx *ctx, uint64_t seed, tally *t) {
    po_graph *g = test_random_linear(ctx, seed);
    if (!g)
        return;
    po_arena *arena = po_arena_create(ctx);
    po_subprogram sub = {.graph = g, .n_activations = 1};
    po_mutants list;
    po_mutate_counts counts = {0};
    const po_program *a, *b;
    po_mutants_init(&list, arena);
    assert_int_equal(po_derive(ctx, arena, &sub, PO_LAW_ANY, &list, &counts), PO_OK);
    /* Some programs have no form of sums (reshapes whose digits do not nest). */
    bool known = po_program_of(ctx, arena, g, &a) == PO_OK;
    for (uint32_t i = 0; known && i < list.n; i++) {
        const char *name = list.mutants[i].name;
        bool equal = false, open = strstr(name, "open") != NULL;
        po_arena *scratch = po_arena_create(ctx);
        po_agree_options options = {.seed = seed};
        if (po_program_of(ctx, scratch, list.mutants[i].graph, &b) != PO_OK ||
            po_agree_whole(ctx, scratch, a, b, &options, &equal, NULL, NULL) != PO_OK)
            fail_msg("%s of program %llu: %s", name, (unsigned long long)seed, ctx->error.message);
        t->mutants++;
        t->open += open;
        t->open_wrong += open && !equal;
        if (!open && !equal) {
            t->wrong++;
            printf("%s of program %llu is not equal\n", name, (unsigned long long)seed);
        }
        note_kind(t, name);
        po_arena_free(scratch);
    }
    po_arena_free(arena);
    po_graph_free(g);
}

static void random_programs(void **state) {
    (void)state;
    tally t = {0};
    for (uint64_t seed = 0; seed < PROGRAMS; seed++) {
        po_ctx ctx;
        po_ctx_init(&ctx);
        judge(&ctx, seed, &t);
    }
    printf("%u mutants of %u kinds, %u with open seams (%u of them differ)\n", t.mutants, t.kinds,
           t.open, t.open_wrong);
    assert_int_equal(t.wrong, 0);
    assert_true(t.mutants >= LEAST_MUTANTS);
    assert_true(t.kinds >= LEAST_KINDS);
    /* The check can fail: seams left open are seen. */
    assert_true(t.open_wrong > 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(random_programs)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
