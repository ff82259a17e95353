/* Forms for some lengths beside those for all: the If around both reads back as what it was made
 * of, and is proved case by case; what is right for other lengths only is not. */
#include "ops/branches.h"
#include "proofs.h"
#include "rewriting.h"
#include "unit.h"
#include "verify/proof/proof.h"

#include <stdio.h>

#define HEAD         "pir 1 ir_version=8 opset=17\n"
#define GRAPH(nodes) HEAD "graph g (x: f32[\"N\",4,\"H\",\"W\"]) -> (y) {\n" nodes "\n}\n"
#define WEIGHTS      "w: f32[4,4,1,1] random 1"

/* A gate, and the same of one sample: in the weights. */
static const char gated[] =
    GRAPH(" s = GlobalAveragePool(x)\n g = Sigmoid(s)\n m = Mul(x, g)\n y = Conv(m, " WEIGHTS ")");
static const char other[] =
    GRAPH(" s = GlobalAveragePool(x)\n g = Sigmoid(s)\n m = Mul(g, x)\n y = Conv(m, " WEIGHTS ")");
static const char in_weights[] =
    GRAPH(" s = GlobalAveragePool(x)\n g = Sigmoid(s)\n r = Reshape(g, d: i64[4] {1,4,1,1})\n"
          " v = Mul(" WEIGHTS ", r)\n y = Conv(x, v)");
static const char squared[] =
    GRAPH(" s = GlobalAveragePool(x)\n g = Sigmoid(s)\n r = Reshape(g, d: i64[4] {1,4,1,1})\n"
          " t = Mul(r, r)\n v = Mul(" WEIGHTS ", t)\n y = Conv(x, v)");
static const char turned[] =
    GRAPH(" s = GlobalAveragePool(x)\n g = Sigmoid(s)\n r = Reshape(g, d: i64[4] {4,1,1,1})\n"
          " v = Mul(" WEIGHTS ", r)\n y = Conv(x, v)");
static const char ungated[] = GRAPH(" y = Conv(x, " WEIGHTS ")");

/* Windows of two by two that begin on the last row or column are there or not: of even lengths
 * there are none. */
#define WINDOWS(pads)                                                                              \
    GRAPH(" y = Conv(x, w: f32[4,4,2,2] random 1) {strides=[2,2],pads=[0,0," pads "]}")
static const char with_ends[] = WINDOWS("1,1"), without[] = WINDOWS("0,0");

#define ONE                                                                                        \
    { "x", 0, 1, false }
#define EVEN(axis)                                                                                 \
    { "x", axis, 2, true }

typedef struct pair {
    const char *name, *original, *then, *otherwise;
    uint32_t n;
    po_length_is lengths[3];
} pair;

static const pair right[] = {
    {"a gate in the weights of one sample", gated, in_weights, other, 1, {ONE}},
    {"the same where maps are even", gated, in_weights, other, 3, {ONE, EVEN(2), EVEN(3)}},
    {"windows at the end of even maps", with_ends, without, with_ends, 2, {EVEN(2), EVEN(3)}},
    {"multiples of four", with_ends, without, with_ends, 2, {{"x", 2, 4, true}, {"x", 3, 4, true}}},
};

static const pair wrong[] = {
    {"two samples", gated, in_weights, other, 1, {{"x", 0, 2, false}}},
    {"any number of samples", gated, in_weights, other, 1, {EVEN(2)}},
    {"one row", gated, in_weights, other, 1, {{"x", 2, 1, false}}},
    {"four channels", gated, in_weights, other, 1, {{"x", 1, 4, false}}},
    {"no gate for one sample", gated, ungated, other, 1, {ONE}},
    {"its square", gated, squared, other, 1, {ONE}},
    {"at outputs", gated, turned, other, 1, {ONE}},
    {"no gate for others", gated, in_weights, ungated, 1, {ONE}},
    {"the branches of each other", gated, other, in_weights, 1, {ONE}},
    {"multiples of three",
     with_ends,
     without,
     with_ends,
     2,
     {{"x", 2, 3, true}, {"x", 3, 3, true}}},
    {"even heights, any widths", with_ends, without, with_ends, 1, {EVEN(2)}},
    {"windows of what is not even", with_ends, with_ends, without, 2, {EVEN(2), EVEN(3)}},
};

static po_graph *make(po_ctx *ctx, const pair *p) {
    po_graph *then = test_graph(ctx, p->then), *otherwise = test_graph(ctx, p->otherwise), *whole;
    assert_int_equal(po_branches_make(ctx, then, otherwise, p->lengths, p->n, &whole), PO_OK);
    po_graph_free(then);
    po_graph_free(otherwise);
    return whole;
}

static po_proof_report prove(po_ctx *ctx, const pair *p) {
    po_proof_report r;
    po_graph *original = test_graph(ctx, p->original), *whole = make(ctx, p);
    const po_proof_options options = {.seed = 7};
    assert_int_equal(po_prove(ctx, original, whole, NULL, &options, &r), PO_OK);
    po_graph_free(original);
    po_graph_free(whole);
    return r;
}

static void proved_by_cases(void **state) {
    (void)state;
    po_ctx ctx;
    po_ctx_init(&ctx);
    for (size_t i = 0; i < sizeof right / sizeof *right; i++) {
        const po_proof_report r = prove(&ctx, &right[i]);
        if (!r.proved || !r.every_size)
            print_message("%s: %s\n", right[i].name, r.why);
        assert_true(r.proved && r.every_size);
        assert_int_equal(r.spaced, 1);
    }
}

/* Each is equal at some lengths. */
static void not_fooled(void **state) {
    (void)state;
    po_ctx ctx;
    po_ctx_init(&ctx);
    uint32_t fooled = 0, at_some = 0;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        const po_proof_report r = prove(&ctx, &wrong[i]);
        const bool claimed = r.every_size && r.spaced == 1; /* multiples of 32 are no odd ones */
        if (claimed)
            print_message("%s: fooled\n", wrong[i].name);
        fooled += claimed;
        at_some += r.proved != 0;
        assert_true(r.proved || r.why[0] != '\0');
    }
    assert_int_equal(fooled, 0);
    assert_int_equal(at_some, 3); /* odd lengths are not among those tried */
}

/* What it was made of: lengths, inputs, outputs, and what the branches compute. */
static void reads_back(void **state) {
    (void)state;
    po_ctx ctx;
    po_ctx_init(&ctx);
    po_arena *arena = po_arena_create(&ctx);
    for (size_t i = 0; i < sizeof right / sizeof *right; i++) {
        const pair *p = &right[i];
        po_branches found;
        po_graph *whole = make(&ctx, p);
        assert_true(po_branches_find(arena, whole, &found));
        assert_int_equal(found.n, p->n);
        for (uint32_t k = 0; k < p->n; k++) {
            assert_string_equal(found.lengths[k].input, p->lengths[k].input);
            assert_int_equal(found.lengths[k].axis, p->lengths[k].axis);
            assert_int_equal(found.lengths[k].length, p->lengths[k].length);
            assert_int_equal(found.lengths[k].multiple, p->lengths[k].multiple);
        }
        const char *forms[] = {p->otherwise, p->then};
        for (uint32_t then = 0; then < 2; then++) {
            po_graph *taken, *form = test_graph(&ctx, forms[then]);
            assert_int_equal(po_branches_take(&ctx, whole, &found, then, &taken), PO_OK);
            assert_int_equal(po_graph_check(&ctx, taken), PO_OK);
            assert_true(po_graph_equal(taken, form));
            po_graph_free(taken);
            po_graph_free(form);
        }
        po_graph_free(whole);
    }
    po_arena_free(arena);
}

/* The reference takes the branch that the lengths say: unknown ones are 5. */
static void computes(void **state) {
    (void)state;
    po_ctx ctx;
    po_ctx_init(&ctx);
    pair p = right[0];
    po_graph *a = test_graph(&ctx, p.otherwise), *b = test_graph(&ctx, ungated);
    p.then = ungated;
    po_graph *whole = make(&ctx, &p);
    assert_true(test_difference(&ctx, a, whole, 1) < 1e-12);
    po_graph_free(whole);
    p.lengths[0].length = 5;
    whole = make(&ctx, &p);
    assert_true(test_difference(&ctx, b, whole, 1) < 1e-12);
    assert_true(test_difference(&ctx, a, whole, 1) > 1e-3);
    po_graph_free(whole);
    po_graph_free(a);
    po_graph_free(b);
}

/* Conditions that are none of lengths, and graphs that are more than a choice. */
static void finds_nothing_else(void **state) {
    (void)state;
    po_ctx ctx;
    po_ctx_init(&ctx);
    po_arena *arena = po_arena_create(&ctx);
    po_branches found;
    po_graph *plain = test_graph(&ctx, gated), *whole = make(&ctx, &right[1]);
    assert_false(po_branches_find(arena, plain, &found));
    for (po_node_id id = 0; id < whole->n_nodes; id++) {
        po_node *node = &whole->nodes[id];
        const po_op_id op = node->op;
        if (node->removed || op == PO_OP_Constant)
            continue;
        node->op = PO_OP_Neg; /* any other */
        assert_false(po_branches_find(arena, whole, &found));
        node->op = op;
    }
    assert_true(po_branches_find(arena, whole, &found));
    po_graph_free(whole);
    po_graph_free(plain);
    po_arena_free(arena);
}

/* What cannot be a branch is refused with the reason. */
static void refused(void **state) {
    (void)state;
    static const char *const bad[] = {
        HEAD "graph g (x: f32[\"N\",4,\"H\",\"W\"]) -> (y, x) {\n y = Relu(x)\n}\n",
        HEAD "graph g (x: f32[\"N\",4,\"H\",\"W\"]) -> (y, z) {\n y = Relu(x)\n z = Neg(x)\n}\n",
    };
    po_ctx ctx;
    po_ctx_init(&ctx);
    const po_length_is one = ONE, none = {"v", 0, 1, false};
    po_graph *fine = test_graph(&ctx, gated), *whole;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        po_graph *other_form = test_graph(&ctx, bad[i]);
        assert_int_equal(po_branches_make(&ctx, other_form, fine, &one, 1, &whole), PO_UNSUPPORTED);
        assert_true(ctx.error.message[0] != '\0');
        po_ctx_clear(&ctx);
        po_graph_free(other_form);
    }
    assert_int_equal(po_branches_make(&ctx, fine, fine, &none, 1, &whole), PO_UNSUPPORTED);
    po_ctx_clear(&ctx);
    po_graph_free(fine);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_back),         cmocka_unit_test(computes),
        cmocka_unit_test(proved_by_cases),    cmocka_unit_test(not_fooled),
        cmocka_unit_test(finds_nothing_else), cmocka_unit_test(refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
