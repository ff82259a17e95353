/* Random mutants of random programs: what boxes and whole tensors say of them, by brute force.
 * Every position called equal must be equal, every box called unequal must hold a difference. */
#include "agreeing.h"
#include "ir/text.h"
#include "random_linear.h"
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>

enum { MUTANTS = 10000 };

typedef struct counts {
    int mutants, equal, partly, none, programs, opaque, boxes, points, unreferenced;
    double positions;
} counts;

static void explain(po_arena *arena, const po_graph *a, const po_graph *b, uint64_t seed,
                    const char *how, const char *wrong) {
    po_text text;
    po_text_init(&text, arena);
    po_graph_print(&text, a);
    po_graph_print(&text, b);
    fail_msg("seed %d, by %s: %s\n%s", (int)seed, how, wrong, text.data);
}

static void check_mutant(po_ctx *ctx, const po_graph *a, uint64_t seed, uint64_t mutation,
                         counts *n) {
    po_graph *b = test_random_mutant(ctx, seed, mutation);
    if (!b)
        return;
    po_arena *arena = po_arena_create(ctx);
    const po_program *p, *q;
    if (po_program_of(ctx, arena, a, &p) != PO_OK || po_program_of(ctx, arena, b, &q) != PO_OK) {
        n->opaque++;
        po_ctx_clear(ctx);
        po_arena_free(arena);
        po_graph_free(b);
        return;
    }
    uint8_t **differing = test_differing(ctx, arena, a, b, 3);
    n->unreferenced += !differing;
    for (int how = PO_AGREE_BOXES; differing && how <= PO_AGREE_WHOLE; how++) {
        po_agreement got;
        po_agree_options options = {.seed = mutation, .how = (po_agree_how)how};
        if (po_agree(ctx, arena, p, q, &options, &got) != PO_OK)
            explain(arena, a, b, seed, "", ctx->error.message);
        const char *wrong = test_check_agreement(arena, p, &got, differing);
        if (wrong)
            explain(arena, a, b, seed, how == PO_AGREE_BOXES ? "boxes" : "positions", wrong);
        if (how == PO_AGREE_BOXES) {
            n->mutants++;
            n->equal += got.equal;
            n->none += got.share == 0;
            n->partly += got.share > 0 && !got.equal;
            n->boxes += (int)got.boxes;
            n->points += (int)got.points;
            for (uint32_t k = 0; k < p->n_outputs; k++)
                n->positions += (double)p->values[p->outputs[k]].count;
        }
    }
    po_arena_free(arena);
    po_graph_free(b);
}

static void test_random_mutants(void **state) {
    (void)state;
    const char *asked = getenv("PETOPT_TEST_MUTANTS");
    int wanted = asked ? atoi(asked) : MUTANTS;
    counts n = {0};
    for (uint64_t seed = 0; n.mutants < wanted; seed++) {
        po_ctx ctx;
        po_ctx_init(&ctx);
        po_graph *a = test_random_linear(&ctx, seed);
        n.programs += a != NULL;
        for (uint64_t k = 0; a && k < 4; k++)
            check_mutant(&ctx, a, seed, 4 * seed + k, &n);
        po_graph_free(a);
    }
    printf(
        "%d mutants of %d programs: %d equal, %d in part, %d nowhere; %d opaque; %d boxes and %d "
        "points of %.0f positions\n",
        n.mutants, n.programs, n.equal, n.partly, n.none, n.opaque, n.boxes, n.points, n.positions);
    assert_true(n.equal > wanted / 10 && n.partly > wanted / 10 && n.none > wanted / 20);
    assert_int_equal(n.unreferenced, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_mutants),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
