/* Constants that graphs share: what they hold stays the same, what is equal is kept once, and what
 * nothing reads goes. */
#include "ir/text.h"
#include "ops/recipe/recipe.h"
#include "ops/rewrite.h"
#include "ops/share.h"
#include "unit.h"

static const char text[] = "graph g (x: f32[64,96], c: bool[]) -> (y) {\n"
                           " p = MatMul(x, w: f32[96,96] random 1)\n"
                           " q = MatMul(p, v: f32[96,96] random 2)\n"
                           " z = If(c) {\n"
                           "  then_branch = graph t () -> (u) {\n"
                           "   u = MatMul(q, a: f32[96,96] random 1)\n"
                           "  },\n"
                           "  else_branch = graph e () -> (o) {\n"
                           "   o = MatMul(q, b: f32[96,96] random 3)\n"
                           "  }\n"
                           " }\n"
                           " y = Add(z, s: f32[96] random 4)\n"
                           "}";

typedef struct fixture {
    po_ctx ctx;
    po_arena *arena;
    po_shared *shared;
} fixture;

static po_graph *parse(fixture *f) {
    po_graph *g;
    if (po_graph_parse(&f->ctx, text, &g) != PO_OK)
        fail_msg("%s", f->ctx.error.message);
    po_ops_resolve(g);
    assert_int_equal(po_infer_graph(&f->ctx, g, true), PO_OK);
    return g;
}

static void start(fixture *f) {
    po_ctx_init(&f->ctx);
    f->arena = po_arena_create(&f->ctx);
    f->shared = po_shared_create(f->arena);
}

static const po_tensor *constant(const po_graph *g, const char *name) {
    for (po_value_id v = 0; v < g->n_values; v++)
        if (strcmp(g->values[v].name, name) == 0)
            return g->values[v].constant;
    for (po_node_id i = 0; i < g->n_nodes; i++)
        for (uint32_t k = 0; k < g->nodes[i].n_attr; k++)
            if (g->nodes[i].attr[k].kind == PO_ATTR_GRAPH) {
                const po_tensor *t = constant(g->nodes[i].attr[k].u.g, name);
                if (t)
                    return t;
            }
    return NULL;
}

static void add_up(void *user, const void *data, size_t size) {
    (void)data;
    *(size_t *)user += size;
}

static size_t loose(const po_graph *g) {
    size_t sum = 0;
    po_arena_visit_loose(g->arena, add_up, &sum);
    return sum;
}

static void equal_constants_are_kept_once(void **state) {
    (void)state;
    fixture f;
    start(&f);
    po_graph *plain = parse(&f), *one = parse(&f), *two = parse(&f);
    assert_true(loose(one) >= 4 * 96 * 96 * 4);
    po_share_constants(f.shared, one);
    po_share_constants(f.shared, two);
    assert_int_equal(loose(one) + loose(two), 0);
    assert_true(po_graph_equal(one, plain) && po_graph_equal(two, plain));
    assert_ptr_equal(constant(one, "w")->data, constant(two, "w")->data);
    assert_ptr_equal(constant(one, "w")->data, constant(one, "a")->data); /* in a body */
    assert_ptr_equal(constant(one, "b")->data, constant(two, "b")->data);
    assert_ptr_not_equal(constant(one, "w")->data, constant(one, "v")->data);
    assert_ptr_not_equal(constant(one, "w")->data, constant(one, "b")->data);
    po_graph *later = po_graph_clone(&f.ctx, one);
    po_share_constants(f.shared, later); /* nothing is its own */
    assert_true(po_graph_equal(later, plain));
    po_graph_free(later);
    po_graph_free(one);
    assert_true(po_graph_equal(two, plain));
    po_graph_free(two);
    po_graph_free(plain);
    po_arena_free(f.arena);
}

/* One constant is made from another, which nothing reads then. */
static void what_nothing_reads_goes(void **state) {
    (void)state;
    fixture f;
    start(&f);
    po_graph *g = parse(&f);
    po_value_id w = PO_NONE;
    for (po_value_id v = 0; v < g->n_values; v++)
        w = strcmp(g->values[v].name, "w") == 0 ? v : w;
    const po_recipe *sum =
        po_recipe_add(f.arena, po_recipe_doubles(g, f.arena, w), po_recipe_number(f.arena, 1));
    po_value_id first = po_add_recipe(g, "first", PO_F32, sum);
    const po_recipe *more =
        po_recipe_add(f.arena, po_recipe_doubles(g, f.arena, first), po_recipe_number(f.arena, 1));
    po_value_id second = po_add_recipe(g, "second", PO_F32, more);
    po_graph_replace_uses(g, w, second);
    po_graph_sweep(g);
    po_share_constants(f.shared, g);
    assert_int_equal(loose(g), 0);
    assert_null(g->values[first].constant);
    const po_tensor *t = g->values[second].constant;
    po_array *again;
    assert_int_equal(po_recipe_eval(&f.ctx, f.arena, g->model, g->values[second].recipe, &again),
                     PO_OK);
    assert_int_equal(again->count, t->count);
    for (int64_t i = 0; i < t->count; i++)
        assert_true((float)again->f[i] == (float)po_tensor_f64(t, i));
    po_graph_free(g);
    po_arena_free(f.arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(equal_constants_are_kept_once),
                                       cmocka_unit_test(what_nothing_reads_goes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
