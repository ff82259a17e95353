/* Random mutants of random programs: what boxes and whole tensors say of them, by brute force.
 * Every position called equal must be equal, every box called unequal must hold a difference. */
#include "agreeing.h"
#include "boxes/contract.h"
#include "ir/text.h"
#include "random_linear.h"
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>

enum { MUTANTS = 10000 / TEST_SHARE };

typedef struct counts {
    int mutants, equal, partly, none, programs, opaque, boxes, points, unreferenced, contracted;
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

/* The outputs of the contracted programs are the sums of the programs' own. */
static bool right_sums(po_ctx *ctx, po_arena *arena, const po_program *p, const po_program *sums,
                       const po_digit_of_axis *digits) {
    enum { SEED = 77 };
    uint32_t **whole = PO_NEW_N(arena, uint32_t *, p->n_outputs);
    uint32_t **sum = PO_NEW_N(arena, uint32_t *, p->n_outputs);
    for (uint32_t k = 0; k < p->n_outputs; k++) {
        whole[k] = PO_NEW_N(arena, uint32_t, p->values[p->outputs[k]].count);
        sum[k] = PO_NEW_N(arena, uint32_t, sums->values[sums->outputs[k]].count);
    }
    assert_int_equal(po_program_eval(ctx, arena, p, SEED, whole), PO_OK);
    assert_int_equal(po_program_eval(ctx, arena, sums, SEED, sum), PO_OK);
    for (uint32_t k = 0; k < p->n_outputs; k++) {
        const po_tensor_shape *shape = &p->values[p->outputs[k]];
        const po_digit_of_axis *d = &digits[k];
        uint32_t *made = PO_NEW_N(arena, uint32_t, sums->values[sums->outputs[k]].count);
        for (int64_t i = 0; i < shape->count; i++) {
            int64_t inner = 1, rest = i;
            for (uint32_t x = d->axis + 1; x < shape->rank; x++)
                inner *= shape->dims[x];
            int64_t below = rest % inner, at = rest / inner % shape->dims[d->axis];
            int64_t outer = rest / inner / shape->dims[d->axis];
            int64_t digit = at / d->stride % d->extent;
            int64_t left = at / (d->stride * d->extent) * d->stride + at % d->stride;
            int64_t to = (outer * (shape->dims[d->axis] / d->extent) + left) * inner + below;
            uint32_t r = d->extent == 1 ? 1 : po_program_input(SEED, p->n_inputs + k, digit);
            made[to] = po_mod_add(made[to], po_mod_mul(r, whole[k][i]));
        }
        if (memcmp(made, sum[k], (size_t)sums->values[sums->outputs[k]].count * sizeof *made) != 0)
            return false;
    }
    return true;
}

static void check_sums(po_ctx *ctx, po_arena *arena, const po_graph *a, const po_graph *b,
                       uint64_t seed, const po_program *p, const po_program *q, counts *n) {
    const po_program *x = NULL, *y = NULL;
    po_digit_of_axis *digits = PO_NEW_N(arena, po_digit_of_axis, p->n_outputs);
    double cost;
    if (!po_programs_contract(arena, p, q, &x, &y, digits, &cost))
        return;
    n->contracted++;
    if (!right_sums(ctx, arena, p, x, digits) || !right_sums(ctx, arena, q, y, digits))
        explain(arena, a, b, seed, "sums", "not the sum");
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
    check_sums(ctx, arena, a, b, seed, p, q, n);
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
        "points of %.0f positions; %d summed over an axis\n",
        n.mutants, n.programs, n.equal, n.partly, n.none, n.opaque, n.boxes, n.points, n.positions,
        n.contracted);
    assert_true(n.equal > wanted / 10 && n.partly > wanted / 10 && n.none > wanted / 20);
    assert_int_equal(n.unreferenced, 0);
    assert_true(n.contracted > wanted / 50);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_mutants),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
