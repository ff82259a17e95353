/* Planted bugs, and who catches them.
 *
 * The derivations of src/mutate and the corrections of src/correct are damaged in named ways. Of
 * every damaged mutant that computes something else (float64 references on whole numbers say so)
 * the boxes, the whole comparison and the proof of models must each say that it differs, on their
 * own; the filter may. Cuts that are left out, seams that are forgotten and weights that are folded
 * wrongly follow. The table is printed. */
#include "agreeing.h"
#include "base/num.h"
#include "correct/correct.h"
#include "damage.h"
#include "mutate/mutate.h"
#include "ops/recipe/recipe.h"
#include "rewriting.h"
#include "unit.h"
#include "verify/proof/proof.h"

#include <stdio.h>

static const struct {
    const char *name, *text;
    uint32_t activations;
} subjects[] = {
    {"dilated",
     "graph g (x: f32[2,3,9,8], w: f32[4,3,3,3]) -> (y) {"
     " y = Conv(x, w) {pads=[2,2,2,2], dilations=[2,2]} }",
     1},
    {"3x3", "graph g (x: f32[4,4,8,8], w: f32[4,4,3,3]) -> (y) { y = Conv(x, w) {pads=[1,1,1,1]} }",
     1},
    {"5x5", "graph g (x: f32[1,3,9,9], w: f32[2,3,5,5]) -> (y) { y = Conv(x, w) {pads=[2,2,2,2]} }",
     1},
    {"strided",
     "graph g (x: f32[2,3,9,9], w: f32[4,3,3,3]) -> (y) {"
     " y = Conv(x, w) {pads=[1,1,1,1], strides=[2,2]} }",
     1},
    {"biased",
     "graph g (x: f32[1,4,8,8], w: f32[4,4,3,3], b: f32[4]) -> (y) {"
     " y = Conv(x, w, b) {pads=[1,1,1,1]} }",
     1},
    {"pointwise", "graph g (x: f32[2,4,6,6], w: f32[3,4,1,1]) -> (y) { y = Conv(x, w) }", 1},
    {"1-D", "graph g (x: f32[2,3,12], w: f32[4,3,3]) -> (y) { y = Conv(x, w) {pads=[1,1]} }", 1},
    {"3-D",
     "graph g (x: f32[1,2,4,5,5], w: f32[2,2,3,3,3]) -> (y) {"
     " y = Conv(x, w) {pads=[1,1,1,1,1,1]} }",
     1},
    {"transposed",
     "graph g (x: f32[1,3,5,5], w: f32[3,2,4,4]) -> (y) {"
     " y = ConvTranspose(x, w) {pads=[1,1,1,1], strides=[2,2]} }",
     1},
    {"grouped",
     "graph g (x: f32[1,8,6,6], w: f32[8,2,3,3]) -> (y) {"
     " y = Conv(x, w) {pads=[1,1,1,1], group=4} }",
     1},
    {"pool",
     "graph g (x: f32[1,3,7,7]) -> (y) {"
     " y = AveragePool(x) {kernel_shape=[3,3], pads=[1,1,1,1], count_include_pad=1} }",
     1},
    {"parallel",
     "graph g (x: f32[1,4,7,7], v: f32[3,4,3,3], w: f32[3,4,1,1]) -> (y, z) {"
     " y = Conv(x, v) {pads=[1,1,1,1]}\n z = Conv(x, w) }",
     1},
    {"products",
     "graph g (x: f32[4,6], v: f32[6,6], w: f32[6,6]) -> (y, z) {"
     " y = MatMul(x, v)\n z = MatMul(x, w) }",
     1},
    {"chain",
     "graph g (x: f32[6,8], v: f32[8,2], w: f32[2,8]) -> (y) {"
     " t = MatMul(x, v)\n y = MatMul(t, w) }",
     1},
    {"sum",
     "graph g (x: f32[1,3,6,6], v: f32[4,3,3,3], w: f32[4,3,1,1]) -> (y) {"
     " a = Conv(x, v) {pads=[1,1,1,1]}\n b = Conv(x, w)\n y = Add(a, b) }",
     1},
};

typedef struct tally {
    int rows, by_filter, by_boxes, by_whole, by_proof, missed, harmless;
} tally;

typedef struct bench {
    po_ctx *ctx;
    po_arena *arena;
    const po_graph *original;
    const po_program *program;
    po_agree_known *known;
    tally *n;
} bench;

/* Who sees that `bad` is not the original? */
static void judge(bench *b, const char *what, const char *bug, const po_graph *bad) {
    po_arena *arena = po_arena_child(b->arena);
    const po_program *q;
    po_agree_options options = {.seed = 11, .how = PO_AGREE_BOXES, .known = b->known};
    po_agreement got = {.equal = true};
    bool whole = true;
    double inside;
    po_proof_report proof;
    if (po_program_of(b->ctx, arena, bad, &q) != PO_OK)
        fail_msg("%s, %s: %s", what, bug, b->ctx->error.message);
    assert_int_equal(po_agree_share(b->ctx, arena, b->program, q, options.seed, 6, &inside), PO_OK);
    assert_int_equal(po_agree(b->ctx, arena, b->program, q, &options, &got), PO_OK);
    assert_int_equal(po_agree_whole(b->ctx, arena, b->program, q, &options, &whole, NULL, NULL),
                     PO_OK);
    assert_int_equal(
        po_prove(b->ctx, b->original, bad, NULL, &(po_proof_options){.seed = 3}, &proof), PO_OK);
    char share[16] = "-";
    if (!got.equal)
        snprintf(share, sizeof share, "%.3f", got.share);
    printf("%4d  %-58.58s %-28s %-6s %-6s %-5s %s\n", b->n->rows + 1, what, bug,
           inside > 0 ? "-" : "yes", share, whole ? "-" : "yes", proof.differ ? "yes" : "-");
    b->n->rows++;
    b->n->by_filter += inside == 0;
    b->n->by_boxes += !got.equal;
    b->n->by_whole += !whole;
    b->n->by_proof += proof.differ != 0;
    b->n->missed += got.equal || whole || !proof.differ || proof.proved;
    po_arena_free(arena);
}

static bool differs(const bench *b, const po_graph *other) {
    po_arena *arena = po_arena_child(b->arena);
    uint8_t **differing = test_differing(b->ctx, arena, b->original, other, 2);
    bool any = false;
    assert_non_null(differing);
    for (uint32_t k = 0; k < b->program->n_outputs; k++)
        for (int64_t i = 0; i < b->program->values[b->program->outputs[k]].count; i++)
            any |= differing[k][i];
    po_arena_free(arena);
    return any;
}

/* One row for every damage that has an effect on this graph, at its first place that has one. */
static void damage_all(bench *b, const char *what, const po_graph *graph) {
    enum { MOST_PLACES = 6 };
    for (uint32_t d = 0; d < test_n_damages; d++)
        for (uint32_t nth = 0; nth < MOST_PLACES; nth++) {
            po_graph *bad = test_damaged(b->ctx, graph, &test_damages[d], nth);
            if (!bad)
                continue;
            bool any = differs(b, bad);
            if (any)
                judge(b, what, test_damages[d].name, bad);
            else
                b->n->harmless++;
            po_graph_free(bad);
            if (any)
                break;
        }
}

static void start(bench *b, po_ctx *ctx, tally *n, po_graph *g) {
    *b = (bench){.ctx = ctx, .arena = po_arena_create(ctx), .original = g, .n = n};
    b->known = po_agree_known_create(b->arena);
    if (po_program_of(ctx, b->arena, g, &b->program) != PO_OK)
        fail_msg("%s", ctx->error.message);
}

/* --- mutants and corrections --- */

static bool agrees(bench *b, const po_graph *g, po_agreement *got) {
    const po_program *q;
    po_agree_options options = {.seed = 11, .known = b->known};
    if (po_program_of(b->ctx, b->arena, g, &q) != PO_OK ||
        po_agree(b->ctx, b->arena, b->program, q, &options, got) != PO_OK)
        fail_msg("%s", b->ctx->error.message);
    return got->equal;
}

static void sabotage_mutants(bench *b, const char *name, const po_subprogram *sub) {
    po_mutants mutants, corrected;
    po_mutate_counts counts = {0};
    po_mutants_init(&mutants, b->arena);
    po_mutants_init(&corrected, b->arena);
    assert_int_equal(po_derive(b->ctx, b->arena, sub, PO_LAW_ANY, &mutants, &counts), PO_OK);
    for (uint32_t i = 0; i < mutants.n; i++) {
        const po_mutant *m = &mutants.mutants[i];
        const char *what = po_arena_printf(b->arena, "%s: %s", name, m->name);
        po_agreement got;
        assert_int_equal(po_infer_graph(b->ctx, m->graph, false), PO_OK);
        if (agrees(b, m->graph, &got)) {
            /* Names repeat where a derivation has several parameters: one of each is damaged. */
            bool seen = false;
            for (uint32_t k = 0; k < i; k++)
                seen |= strncmp(mutants.mutants[k].name, m->name, 12) == 0;
            if (!seen)
                damage_all(b, what, m->graph);
            continue;
        }
        judge(b, what, "seam forgotten", m->graph);
        uint32_t before = corrected.n;
        po_status status = po_correct(b->ctx, b->arena, sub, m, &got, &corrected);
        if (status != PO_OK && status != PO_UNSUPPORTED)
            fail_msg("%s: %s", what, b->ctx->error.message);
        po_ctx_clear(b->ctx);
        for (uint32_t k = before; k < corrected.n; k++)
            if (i < 2 || k == before) {
                assert_int_equal(po_infer_graph(b->ctx, corrected.mutants[k].graph, false), PO_OK);
                damage_all(
                    b,
                    po_arena_printf(b->arena, "%s, corrected: %s", name, corrected.mutants[k].name),
                    corrected.mutants[k].graph);
            }
    }
}

static void test_mutants(void **state) {
    tally *n = *state;
    printf("%4s  %-58s %-28s %-6s %-6s %-5s %s\n", "", "mutant", "planted", "filter", "boxes",
           "whole", "proof");
    for (size_t i = 0; i < sizeof subjects / sizeof *subjects; i++) {
        po_ctx ctx;
        po_ctx_init(&ctx);
        po_graph *g = test_graph(&ctx, subjects[i].text);
        bench b;
        start(&b, &ctx, n, g);
        po_subprogram sub = {.graph = g, .n_activations = subjects[i].activations};
        sabotage_mutants(&b, subjects[i].name, &sub);
        po_arena_free(b.arena);
        po_graph_free(g);
    }
    printf("%d bugs: the filter sees %d, boxes %d, the whole %d, the proof %d; %d damages changed "
           "nothing\n",
           n->rows, n->by_filter, n->by_boxes, n->by_whole, n->by_proof, n->harmless);
    assert_int_equal(n->missed, 0);
    assert_true(n->rows >= 100);
}

/* --- cuts --- */

/* Boxes by other cuts, as po_agree judges them: one position of each, where both sides move alike;
 * here the first or the last. */
typedef struct blind {
    po_program_points *p, *q;
    const uint8_t *differing;
    const po_tensor_shape *shape;
    int wrong; /* boxes called equal that hold a difference */
} blind;

static bool blind_box(void *user, const po_box *box) {
    blind *b = user;
    int64_t at[PO_MAX_RANK] = {0}, last[PO_MAX_RANK];
    for (uint32_t x = 0; x < box->rank; x++)
        last[x] = box->first[x] + (box->count[x] - 1) * box->step[x];
    if (po_program_points_eval(b->p, 0, box->first) !=
            po_program_points_eval(b->q, 0, box->first) &&
        po_program_points_eval(b->p, 0, last) != po_program_points_eval(b->q, 0, last))
        return true;
    do {
        int64_t i = 0;
        for (uint32_t x = 0; x < box->rank; x++)
            i = i * b->shape->dims[x] + box->first[x] + at[x] * box->step[x];
        if (b->differing[i]) {
            b->wrong++;
            return true;
        }
    } while (po_next_index(box->rank, box->count, at));
    return true;
}

static int wrong_boxes(bench *b, const po_graph *mutant, const po_cuts *cuts) {
    const po_program *q;
    blind view = {.shape = &b->program->values[b->program->outputs[0]]};
    assert_int_equal(po_program_of(b->ctx, b->arena, mutant, &q), PO_OK);
    assert_int_equal(po_program_points_create(b->arena, b->program, &view.p), PO_OK);
    assert_int_equal(po_program_points_create(b->arena, q, &view.q), PO_OK);
    po_program_points_reset(view.p, 5);
    po_program_points_reset(view.q, 5);
    view.differing = test_differing(b->ctx, b->arena, b->original, mutant, 2)[0];
    po_boxes_each(b->arena, cuts, blind_box, &view);
    return view.wrong;
}

/* Without a cut at a seam a box reaches over it. */
static void test_cuts_left_out(void **state) {
    (void)state;
    static const char *const text =
        "graph g (x: f32[4,2,8,8], w: f32[2,2,3,3]) -> (y) { y = Conv(x, w) {pads=[1,1,1,1]} }";
    po_ctx ctx;
    po_ctx_init(&ctx);
    po_graph *g = test_graph(&ctx, text);
    tally n = {0};
    bench b;
    start(&b, &ctx, &n, g);
    po_subprogram sub = {.graph = g, .n_activations = 1};
    po_mutants mutants;
    po_mutate_counts counts = {0};
    po_mutants_init(&mutants, b.arena);
    assert_int_equal(po_derive(&ctx, b.arena, &sub, PO_LAW_ANY, &mutants, &counts), PO_OK);
    int tried = 0, noticed = 0;
    for (uint32_t i = 0; i < mutants.n; i++) {
        po_agreement got;
        const po_program *q;
        assert_int_equal(po_infer_graph(&ctx, mutants.mutants[i].graph, false), PO_OK);
        if (agrees(&b, mutants.mutants[i].graph, &got))
            continue;
        assert_int_equal(po_program_of(&ctx, b.arena, mutants.mutants[i].graph, &q), PO_OK);
        const po_cuts *cuts = po_cuts_meet(b.arena, po_program_cuts(b.arena, b.program, 0),
                                           po_program_cuts(b.arena, q, 0));
        assert_int_equal(wrong_boxes(&b, mutants.mutants[i].graph, cuts), 0);
        for (uint32_t x = 0; x < cuts->rank; x++)
            for (uint32_t k = cuts->axis[x].step > 1 ? 0 : 1; k < cuts->axis[x].n; k++) {
                po_axis_cuts *axes =
                    po_arena_memdup(b.arena, cuts->axis, cuts->rank * sizeof *axes);
                if (k == 0) {
                    axes[x].step = 1;
                } else {
                    int64_t *at =
                        po_arena_memdup(b.arena, axes[x].at, (axes[x].n + 1) * sizeof *at);
                    memmove(&at[k], &at[k + 1], (axes[x].n - k) * sizeof *at);
                    axes[x].at = at;
                    axes[x].n--;
                }
                int wrong = wrong_boxes(&b, mutants.mutants[i].graph, &(po_cuts){cuts->rank, axes});
                tried++;
                if (!wrong)
                    continue;
                printf("      %-40.40s axis %u: %s %u, left out: %d boxes are wrong\n",
                       mutants.mutants[i].name, x, k ? "cut" : "residue classes", k, wrong);
                noticed++;
            }
    }
    /* The others part boxes of one verdict. */
    printf("%d cuts left out: %d make boxes wrong\n", tried, noticed);
    assert_true(noticed >= 8);
    po_arena_free(b.arena);
    po_graph_free(g);
}

/* --- weights --- */

static const char folded[] =
    "pir 1 ir_version=10 opset=20\n"
    "graph g (x: f32[1,3,6,6]) -> (y) {\n"
    "  t = Conv(x, w: f32[3,3,3,3] random 1, b: f32[3] random 2) {pads=[1,1,1,1]}\n"
    "  s = Mul(t, m: f32[3,1,1] random 3)\n"
    "  y = Add(s, a: f32[3,1,1] random 4)\n"
    "}\n";

/* What the folded weights and bias are made of, and what may be wrong there. */
typedef enum fold_bug {
    FOLD_RIGHT,
    FOLD_SCALE_FORGOTTEN,
    FOLD_SCALE_OF_INPUTS,
    FOLD_BIAS_UNSCALED,
    FOLD_BIAS_TWICE,
    FOLD_SHIFT_FORGOTTEN,
    FOLD_TRANSPOSED,
    FOLD_FLIPPED,
    FOLD_SCALE_SQUARED,
    FOLD_BUGS
} fold_bug;

static const char *const fold_names[FOLD_BUGS] = {
    [FOLD_SCALE_FORGOTTEN] = "scale forgotten",
    [FOLD_SCALE_OF_INPUTS] = "scale along the input channels",
    [FOLD_BIAS_UNSCALED] = "bias not scaled",
    [FOLD_BIAS_TWICE] = "bias twice",
    [FOLD_SHIFT_FORGOTTEN] = "shift forgotten",
    [FOLD_TRANSPOSED] = "weights transposed",
    [FOLD_FLIPPED] = "kernel flipped",
    [FOLD_SCALE_SQUARED] = "scale twice",
};

static const po_recipe *source(const po_graph *g, po_arena *arena, const char *name) {
    for (uint32_t v = 0; v < g->n_values; v++)
        if (strcmp(g->values[v].name, name) == 0)
            return po_recipe_doubles(g, arena, v);
    fail_msg("no '%s'", name);
    return NULL;
}

/* The convolution alone, with weights and a bias that are folded so. */
static po_graph *fold(po_ctx *ctx, const po_graph *g, fold_bug bug) {
    po_graph *c = po_graph_clone(ctx, g);
    po_arena *arena = po_arena_create(ctx);
    static const int64_t four[4] = {3, 1, 1, 1}, inputs[4] = {1, 3, 1, 1}, one[1] = {3};
    static const uint32_t crossed[4] = {1, 0, 2, 3};
    const po_recipe *w = source(c, arena, "w"), *b = source(c, arena, "b");
    const po_recipe *m = source(c, arena, "m"), *a = source(c, arena, "a");
    const po_recipe *scale =
        po_recipe_reshape(arena, m, 4, bug == FOLD_SCALE_OF_INPUTS ? inputs : four);
    if (bug == FOLD_TRANSPOSED)
        w = po_recipe_transpose(arena, w, crossed);
    if (bug == FOLD_FLIPPED)
        w = po_recipe_gather(arena, w, 3, 3, (const int64_t[]){2, 1, 0});
    if (bug != FOLD_SCALE_FORGOTTEN)
        w = po_recipe_mul(arena, w, scale);
    if (bug == FOLD_SCALE_SQUARED)
        w = po_recipe_mul(arena, w, scale);
    const po_recipe *m1 = po_recipe_reshape(arena, m, 1, one);
    const po_recipe *a1 = po_recipe_reshape(arena, a, 1, one);
    const po_recipe *scaled = bug == FOLD_BIAS_UNSCALED ? b : po_recipe_mul(arena, b, m1);
    const po_recipe *bias = bug == FOLD_SHIFT_FORGOTTEN ? scaled : po_recipe_add(arena, scaled, a1);
    if (bug == FOLD_BIAS_TWICE)
        bias = po_recipe_add(arena, bias, scaled);
    po_value_id weights = po_add_recipe(c, "folded_w", PO_F32, w);
    po_value_id shift = po_add_recipe(c, "folded_b", PO_F32, bias);
    po_arena_free(arena);
    for (uint32_t i = 0; i < c->n_nodes; i++)
        if (c->nodes[i].op == PO_OP_Conv) {
            po_graph_set_input(c, i, 1, weights);
            po_graph_set_input(c, i, 2, shift);
            assert_true(po_graph_replace_uses(c, c->outputs[0], c->nodes[i].out[0]));
        }
    po_graph_sweep(c);
    assert_int_equal(po_infer_graph(ctx, c, false), PO_OK);
    return c;
}

static void test_weights_folded_wrong(void **state) {
    (void)state;
    po_ctx ctx;
    po_ctx_init(&ctx);
    po_graph *g = test_graph(&ctx, folded);
    for (int bug = FOLD_RIGHT; bug < FOLD_BUGS; bug++) {
        po_graph *c = fold(&ctx, g, (fold_bug)bug), *recipes = NULL;
        po_proof_report report;
        assert_int_equal(po_recipes_to_graph(&ctx, c, &recipes), PO_OK);
        assert_int_equal(po_prove(&ctx, g, c, recipes, &(po_proof_options){.seed = 4}, &report),
                         PO_OK);
        if (bug == FOLD_RIGHT)
            assert_true(report.proved);
        else
            printf("      folded weights: %-44s the proof says: %s\n", fold_names[bug],
                   report.differ   ? "differs"
                   : report.proved ? "PROVED"
                                   : report.why);
        assert_true(bug == FOLD_RIGHT || report.differ);
        po_graph_free(recipes);
        po_graph_free(c);
    }
    po_graph_free(g);
}

int main(void) {
    tally n = {0};
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate(test_mutants, &n),
        cmocka_unit_test(test_cuts_left_out),
        cmocka_unit_test(test_weights_folded_wrong),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
