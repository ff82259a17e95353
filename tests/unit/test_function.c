/* Functions of petopt's own: nodes out of a graph and back, and what must be refused; weights in a
 * kernel's order, the nodes that undo it, and the recipe. */
#include "ir/function.h"
#include "ir/text.h"
#include "ops/recipe/pack.h"
#include "ops/recipe/recipe.h"
#include "rewriting.h"
#include "unit.h"
#include "verify/proof/proof.h"

#include <stdio.h>

typedef struct fixture {
    po_ctx ctx;
    po_arena *arena;
    po_graph *graph, *before;
} fixture;

static void start(fixture *f, const char *text) {
    po_ctx_init(&f->ctx);
    f->arena = po_arena_create(&f->ctx);
    if (po_graph_parse(&f->ctx, text, &f->graph) != PO_OK)
        fail_msg("%s", f->ctx.error.message);
    po_ops_resolve(f->graph);
    assert_int_equal(po_infer_graph(&f->ctx, f->graph, false), PO_OK);
    f->before = po_graph_clone(&f->ctx, f->graph);
}

static void end(fixture *f) {
    po_arenas_free_since(&f->ctx, 0);
}

/* --- outlining and inlining --- */

#define CHAIN                                                                                      \
    "graph g (x: f32[4,6]) -> (y, z) {\n"                                                          \
    "  w = f32[6,5] random 3\n"                                                                    \
    "  a = MatMul(x, w)\n"                                                                         \
    "  b = Relu(a)\n"                                                                              \
    "  y = Sqrt(b)\n"                                                                              \
    "  z = Neg(b)\n"                                                                               \
    "}\n"

/* Names separated by spaces, as ids of values or of the nodes that make them. */
static uint32_t ids(const po_graph *g, const char *names, bool nodes, uint32_t *out) {
    char copy[64];
    uint32_t n = 0;
    snprintf(copy, sizeof copy, "%s", names);
    for (char *save = NULL, *s = strtok_r(copy, " ", &save); s; s = strtok_r(NULL, " ", &save)) {
        po_value_id v = test_value(g, s);
        out[n++] = nodes ? g->values[v].producer : v;
    }
    return n;
}

static po_status outline(fixture *f, const char *nodes, const char *in, const char *out,
                         po_graph **body, po_node_id *call) {
    uint32_t list[3][8];
    po_outline o = {.domain = PO_KERNEL_DOMAIN,
                    .name = "R1",
                    .n_nodes = ids(f->graph, nodes, true, list[0]),
                    .n_in = ids(f->graph, in, false, list[1]),
                    .n_out = ids(f->graph, out, false, list[2]),
                    .nodes = list[0],
                    .in = list[1],
                    .out = list[2]};
    return po_graph_outline(&f->ctx, f->graph, &o, body, call);
}

static void goes_and_comes_back(void **unused) {
    (void)unused;
    static const struct {
        const char *nodes, *in, *out;
        uint32_t body_nodes, body_constants;
    } rows[] = {
        {"b a", "x w", "b", 2, 0}, /* in any order */
        {"a b", "x", "b", 2, 1},   /* the weight inside */
        {"a b y z", "x w", "y z", 4, 0}, {"y z", "b", "z y", 2, 0},
        {"a b y", "w x", "y b", 3, 0}, /* a value that is read inside and outside */
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        fixture f;
        po_graph *body;
        po_node_id call;
        start(&f, CHAIN);
        assert_int_equal(outline(&f, rows[i].nodes, rows[i].in, rows[i].out, &body, &call), PO_OK);
        for (po_node_id k = 0; k < body->n_nodes; k++) /* whatever they were called before */
            assert_string_equal(body->nodes[k].name, body->values[body->nodes[k].out[0]].name);
        assert_int_equal(po_graph_check(&f.ctx, f.graph), PO_OK);
        assert_int_equal(po_graph_check(&f.ctx, body), PO_OK);
        assert_int_equal(body->n_live, rows[i].body_nodes);
        assert_int_equal(body->n_initializers, rows[i].body_constants);
        assert_int_equal(f.graph->n_live, 4 - rows[i].body_nodes + 1);
        assert_ptr_equal(po_graph_function(f.graph, &f.graph->nodes[call])->body, body);
        assert_false(po_graph_equal(f.graph, f.before));
        po_graph *clone = po_graph_clone(&f.ctx, f.graph);
        uint32_t inlined;
        assert_int_equal(po_graph_inline(&f.ctx, clone, &inlined), PO_OK);
        assert_int_equal(inlined, 1);
        assert_int_equal(po_graph_check(&f.ctx, clone), PO_OK);
        po_graph_sweep(clone);
        assert_true(po_graph_equal(clone, f.before));
        assert_null(po_graph_function(clone, &f.graph->nodes[call]));
        end(&f);
    }
}

static void refuses(void **unused) {
    (void)unused;
    static const struct {
        const char *text, *nodes, *in, *out, *says;
    } rows[] = {
        {CHAIN, "a b y", "x w", "y", "read outside"},
        {CHAIN, "a b", "w", "b", "not given"},
        {CHAIN, "a b", "x w", "b y", "does not make"},
        {CHAIN, "y", "x", "y", "not given"},
        {"pir 1 ir_version=4 opset=8\n" CHAIN, "a b", "x w", "b", "operator set 8"},
        {"graph g (x: f32[2], c: bool[]) -> (y) {\n"
         "  y = If(c) {then_branch=graph t () -> (t) { t = Neg(x) },\n"
         "             else_branch=graph e () -> (e) { e = Abs(x) }}\n"
         "}\n",
         "y", "x c", "y", "holds a graph"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        fixture f;
        po_graph *body;
        po_node_id call;
        start(&f, rows[i].text);
        assert_int_equal(outline(&f, rows[i].nodes, rows[i].in, rows[i].out, &body, &call),
                         PO_UNSUPPORTED);
        if (!strstr(f.ctx.error.message, rows[i].says))
            fail_msg("row %zu: %s", i, f.ctx.error.message);
        assert_true(po_graph_equal(f.graph, f.before));
        assert_int_equal(f.graph->n_functions, 0);
        end(&f);
    }
}

/* A call whose function does not fit is no call that can be opened. */
static void misfits(void **unused) {
    (void)unused;
    fixture f;
    po_graph *body;
    po_node_id call;
    start(&f, CHAIN);
    assert_int_equal(outline(&f, "a b", "x w", "b", &body, &call), PO_OK);
    po_graph_resize_inputs(f.graph, call, 1);
    assert_int_equal(po_graph_inline(&f.ctx, f.graph, NULL), PO_INTERNAL);
    end(&f);
}

/* --- constants that functions hold --- */

/* The derived weight inside of a function, by its recipe; the original's is taken in two steps. */
static void recipes_of_functions(void **unused) {
    (void)unused;
    static const struct {
        po_op_id op;
        float flip; /* added to the stored constant */
        bool proved, holds;
    } rows[] = {
        {PO_OP_Mul, 0, true, true},
        {PO_OP_Div, 0, false, true}, /* another function of the same constants */
        {PO_OP_Mul, 1, true, false}, /* the proof goes by recipes, which give other bits */
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        fixture f;
        po_graph *body, *recipes, *plain;
        po_node_id call;
        po_proof_report r;
        const char *why;
        start(&f, "graph g (x: f32[4,6]) -> (y) {\n"
                  "  m = Mul(x, s: f32[6] random 1)\n  y = MatMul(m, w: f32[6,5] random 3)\n}\n");
        po_graph *g = f.graph;
        const po_recipe *in[2] = {
            po_recipe_doubles(g, f.arena, test_value(g, "w")),
            po_recipe_reshape(f.arena, po_recipe_doubles(g, f.arena, test_value(g, "s")), 2,
                              (const int64_t[]){6, 1})};
        po_value_id v =
            po_add_recipe(g, "v", PO_F32,
                          rows[i].op == PO_OP_Mul ? po_recipe_mul(f.arena, in[0], in[1])
                                                  : po_recipe_div(f.arena, in[0], in[1]));
        po_node_id y = g->values[test_value(g, "y")].producer;
        po_graph_set_input(g, y, 0, test_value(g, "x"));
        po_graph_set_input(g, y, 1, v);
        po_graph_sweep(g);
        *(float *)po_tensor_data((po_tensor *)(uintptr_t)g->values[v].constant) += rows[i].flip;
        assert_int_equal(outline(&f, "y", "x", "y", &body, &call), PO_OK);
        po_graph_sweep(g);
        assert_int_equal(po_recipes_to_graph(&f.ctx, g, &recipes), PO_OK);
        assert_non_null(recipes);
        po_ops_resolve(recipes);
        assert_int_equal(recipes->n_outputs, 1);
        assert_string_equal(recipes->values[recipes->outputs[0]].name, "R1/v");
        plain = po_graph_clone(&f.ctx, g);
        assert_int_equal(po_graph_inline(&f.ctx, plain, NULL), PO_OK);
        assert_int_equal(test_value(plain, "R1/v"), plain->initializers[0]);
        po_ops_resolve(plain);
        assert_int_equal(po_infer_graph(&f.ctx, plain, false), PO_OK);
        assert_int_equal(po_recipes_check(&f.ctx, f.arena, recipes, f.before, plain, &why), PO_OK);
        assert_int_equal(!why, rows[i].holds);
        const po_proof_options options = {.seed = 3};
        assert_int_equal(po_prove(&f.ctx, f.before, plain, recipes, &options, &r), PO_OK);
        if (!!r.proved != rows[i].proved)
            fail_msg("row %zu: %s", i, r.why);
        assert_int_equal(po_prove(&f.ctx, f.before, plain, NULL, &options, &r), PO_OK);
        assert_false(r.proved);
        end(&f);
    }
}

/* --- packing --- */

static const struct {
    const char *weight;
    po_packing packing;
} packings[] = {
    {"f32[64,3,3,3]", {4, 3, {1, 3, 9, 64}, {0, 3, 1, 2}, {64, 3, 9}, {64, 3, 9}}},
    {"f32[70,5,3,3]", {4, 3, {2, 5, 9, 64}, {0, 3, 1, 2}, {128, 5, 9}, {70, 5, 9}}},
    {"f32[10,7]", {3, 2, {2, 10, 4}, {1, 0, 2}, {10, 8}, {10, 7}}},
    {"f32[5,6]", {2, 2, {6, 5}, {1, 0}, {5, 6}, {5, 6}}},
    {"f32[5,6]", {2, 2, {5, 6}, {0, 1}, {5, 6}, {5, 6}}}, /* nothing at all */
    {"f32[7]", {1, 1, {16}, {0}, {16}, {7}}},             /* padded */
    {"f32[2,3,4]", {1, 1, {24}, {0}, {24}, {24}}},        /* joined */
    {"f32[3,5]", {4, 2, {2, 2, 3, 4}, {2, 0, 1, 3}, {3, 16}, {3, 5}}},
};
enum { PACKINGS = sizeof packings / sizeof packings[0] };

static void pack_graph(fixture *f, const char *weight) {
    char text[256];
    snprintf(text, sizeof text,
             "graph g (x: f32[1]) -> (y) {\n  w = %s random 9\n  p = Neg(w)\n"
             "  y = Mul(p, x)\n}\n",
             weight);
    start(f, text);
}

static const po_tensor *evaluate(fixture *f, const po_graph *body, const po_tensor *packed) {
    po_array *in, *out;
    po_tensor *result;
    po_graph *copy = po_graph_clone(&f->ctx, body);
    po_ops_resolve(copy);
    assert_int_equal(po_infer_graph(&f->ctx, copy, false), PO_OK);
    assert_int_equal(po_array_from_tensor(&f->ctx, f->arena, packed, &in), PO_OK);
    const po_array *ins[1] = {in};
    assert_int_equal(po_ref_graph(&f->ctx, f->arena, copy, ins, &out, true), PO_OK);
    assert_int_equal(po_array_to_tensor(&f->ctx, f->arena, out, &result), PO_OK);
    return result;
}

/* The body, given the packed weight, computes what it did; every bit of the recipe holds. */
static void packs(void **unused) {
    (void)unused;
    for (size_t i = 0; i < PACKINGS; i++) {
        fixture f;
        po_graph *body, *recipes;
        po_node_id call;
        po_value_id packed;
        const char *why;
        pack_graph(&f, packings[i].weight);
        po_value_id w = test_value(f.graph, "w");
        assert_int_equal(outline(&f, "p", "w", "p", &body, &call), PO_OK);
        const po_tensor *weight = f.graph->values[w].constant;
        const po_tensor *want = evaluate(&f, body, weight);
        assert_int_equal(po_pack_add(&f.ctx, f.graph, "packed", w, &packings[i].packing, &packed),
                         PO_OK);
        assert_int_equal(po_pack_unpack(&f.ctx, body, body->inputs[0], &packings[i].packing),
                         PO_OK);
        assert_int_equal(po_graph_check(&f.ctx, body), PO_OK);
        po_graph_set_input(f.graph, call, 0, packed);
        po_graph_sweep(f.graph);
        assert_true(po_tensor_equal(evaluate(&f, body, f.graph->values[packed].constant), want));
        assert_int_equal(po_recipes_to_graph(&f.ctx, f.graph, &recipes), PO_OK);
        assert_non_null(recipes);
        po_ops_resolve(recipes);
        assert_int_equal(po_recipes_check(&f.ctx, f.arena, recipes, f.before, f.graph, &why),
                         PO_OK);
        if (why)
            fail_msg("packing %zu: %s", i, why);
        /* A weight in another order, or with another number in it, is found out. */
        float *numbers = po_tensor_data((po_tensor *)(uintptr_t)f.graph->values[packed].constant);
        numbers[1] += 1;
        assert_false(po_tensor_equal(evaluate(&f, body, f.graph->values[packed].constant), want) &&
                     packings[i].packing.dims[0] != 16);
        assert_int_equal(po_recipes_check(&f.ctx, f.arena, recipes, f.before, f.graph, &why),
                         PO_OK);
        assert_non_null(why);
        end(&f);
    }
}

static void packs_only_what_fits(void **unused) {
    (void)unused;
    static const po_packing wrong[] = {
        {2, 2, {5, 7}, {0, 1}, {5, 7}, {5, 7}}, /* too many numbers */
        {2, 2, {6, 5}, {1, 1}, {5, 6}, {5, 6}}, /* one axis twice */
        {2, 2, {6, 5}, {1, 2}, {5, 6}, {5, 6}}, /* no such axis */
        {2, 2, {6, 5}, {1, 0}, {5, 7}, {5, 6}}, /* other products */
        {2, 2, {6, 5}, {1, 0}, {5, 6}, {6, 5}}, /* longer than the axis */
        {2, 1, {6, 5}, {1, 0}, {30}, {29}},     /* not all of it */
        {9, 1, {30}, {0}, {30}, {30}},          /* too many axes */
        {2, 2, {-6, -5}, {1, 0}, {-5, -6}, {-5, -6}},
    };
    fixture f;
    pack_graph(&f, "f32[5,6]");
    const po_tensor *packed, *w = f.graph->values[test_value(f.graph, "w")].constant;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        assert_int_equal(po_pack(&f.ctx, f.arena, w, &wrong[i], &packed), PO_INTERNAL);
        po_ctx_clear(&f.ctx);
    }
    end(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(goes_and_comes_back),
        cmocka_unit_test(refuses),
        cmocka_unit_test(misfits),
        cmocka_unit_test(recipes_of_functions),
        cmocka_unit_test(packs),
        cmocka_unit_test(packs_only_what_fits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
