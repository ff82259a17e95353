/* Runs all derivations on a subprogram: each mutant must pass the check of graphs and compute the
 * same to within 1e-9, and enough of them, or none, must have the name. */
#include "deriving.h"

#include "rewriting.h"
#include "unit.h"

#include <math.h>
#include <stdio.h>

void test_each_mutant(const char *text, uint32_t activations,
                      void (*see)(void *user, po_ctx *ctx, const po_graph *from,
                                  const po_mutant *mutant),
                      void *user) {
    po_ctx ctx;
    po_ctx_init(&ctx);
    po_graph *g = test_graph(&ctx, text);
    po_arena *arena = po_arena_create(&ctx);
    po_subprogram sub = {.graph = g, .n_activations = activations};
    po_mutants list;
    po_mutate_counts counts = {0};
    po_mutants_init(&list, arena);
    if (po_derive(&ctx, arena, &sub, PO_LAW_ANY, &list, &counts) != PO_OK)
        fail_msg("%s", ctx.error.message);
    assert_int_equal(counts.derived, list.n);

    for (uint32_t i = 0; i < list.n; i++)
        see(user, &ctx, g, &list.mutants[i]);
    po_arena_free(arena);
    po_graph_free(g);
}

typedef struct judging {
    const char *name, *text;
    int found;
    bool right;
} judging;

static void judge(void *user, po_ctx *ctx, const po_graph *from, const po_mutant *m) {
    judging *j = user;
    j->found += strncmp(m->name, j->name, strlen(j->name)) == 0;
    if (po_graph_check(ctx, m->graph) != PO_OK)
        fail_msg("%s: %s", m->name, ctx->error.message);
    double worst = test_difference(ctx, from, m->graph, 7);
    if (!strstr(m->name, "open") && !(worst < 1e-9)) {
        printf("%s: differs by %g from\n%s\n", m->name, worst, j->text);
        j->right = false;
    }
}

bool test_derivation(const char *name, const char *text, uint32_t activations, int mutants) {
    judging j = {name, text, 0, true};
    test_each_mutant(text, activations, judge, &j);
    if (mutants ? j.found < mutants : j.found > 0) {
        printf("%s: %d mutants of\n%s\n", name, j.found, text);
        j.right = false;
    }
    return j.right;
}
