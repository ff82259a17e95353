/* Recipes: the algebra against direct loops, the way through text and back, and what the check must
 * find. */
#include "ir/text.h"
#include "ops/recipe/recipe.h"
#include "ops/rewrite.h"
#include "rewriting.h"
#include "simplify/simplify.h"
#include "unit.h"

#include <math.h>
#include <stdlib.h>

enum { O = 4, I = 3, K = 2 };

static const char model_text[] = "graph g (x: f32[1,3,5,5]) -> (y) {\n"
                                 " y = Conv(x, w: f32[4,3,2,2] random 1, b: f32[4] random 2)\n"
                                 " s = f32[4] random 3\n z = Add(s, i: f32[4] random 4)\n}";

static const double *numbers(po_ctx *ctx, po_graph *g, const po_recipe *r) {
    po_array *a;
    assert_int_equal(po_recipe_eval(ctx, g->arena, g->model, r, &a), PO_OK);
    assert_int_equal(a->count, r->count);
    assert_int_equal(a->rank, r->rank);
    return a->f;
}

static void assert_near(const double *got, const double *want, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        if (!(fabs(got[i] - want[i]) <= 1e-14))
            fail_msg("element %d: %g, not %g", (int)i, got[i], want[i]);
}

static void test_algebra(void **state) {
    (void)state;
    po_ctx ctx;
    po_ctx_init(&ctx);
    po_graph *g = test_graph(&ctx, model_text);
    po_arena *a = g->arena;
    const po_recipe *w = po_recipe_doubles(g, a, test_value(g, "w"));
    const po_recipe *s = po_recipe_doubles(g, a, test_value(g, "s"));
    const double *wv = numbers(&ctx, g, w), *sv = numbers(&ctx, g, s);
    enum { ROW = I * K * K };
    double want[O * O * ROW];

    const po_recipe *column = po_recipe_reshape(a, s, 4, (const int64_t[]){O, 1, 1, 1});
    const po_recipe *scaled = po_recipe_mul(a, w, column);
    for (int i = 0; i < O * ROW; i++)
        want[i] = wv[i] * sv[i / ROW];
    assert_near(numbers(&ctx, g, scaled), want, O * ROW);

    const po_recipe *other = po_recipe_neg(a, po_recipe_div(a, w, column));
    for (int i = 0; i < O * ROW; i++)
        want[i] = -(wv[i] / sv[i / ROW]);
    assert_near(numbers(&ctx, g, other), want, O * ROW);

    const po_recipe *root =
        po_recipe_sqrt(a, po_recipe_add(a, po_recipe_mul(a, s, s), po_recipe_number(a, 1)));
    for (int i = 0; i < O; i++)
        want[i] = sqrt(sv[i] * sv[i] + 1);
    assert_near(numbers(&ctx, g, po_recipe_sub(a, root, po_recipe_number(a, 0.5))),
                (const double[]){want[0] - 0.5, want[1] - 0.5, want[2] - 0.5, want[3] - 0.5}, O);

    const po_recipe *turned = po_recipe_transpose(a, w, (const uint32_t[]){1, 0, 3, 2});
    for (int i = 0; i < I; i++)
        for (int o = 0; o < O; o++)
            for (int y = 0; y < K; y++)
                for (int x = 0; x < K; x++)
                    want[((i * O + o) * K + x) * K + y] = wv[((o * I + i) * K + y) * K + x];
    assert_near(numbers(&ctx, g, turned), want, O * ROW);

    const po_recipe *rows = po_recipe_reshape(a, w, 2, (const int64_t[]){O, ROW});
    const po_recipe *product =
        po_recipe_matmul(a, rows, po_recipe_transpose(a, rows, (const uint32_t[]){1, 0}));
    for (int i = 0; i < O; i++)
        for (int j = 0; j < O; j++) {
            want[i * O + j] = 0;
            for (int k = 0; k < ROW; k++)
                want[i * O + j] += wv[i * ROW + k] * wv[j * ROW + k];
        }
    assert_near(numbers(&ctx, g, product), want, O * O);

    const po_recipe *sums = po_recipe_einsum(a, "ok,o->k", 2, (const po_recipe *[]){rows, s});
    for (int k = 0; k < ROW; k++) {
        want[k] = 0;
        for (int o = 0; o < O; o++)
            want[k] += wv[o * ROW + k] * sv[o];
    }
    assert_near(numbers(&ctx, g, sums), want, ROW);

    /* Block diagonal, by an identity. */
    const po_recipe *blocks = po_recipe_einsum(
        a, "pq,ok->poqk", 2, (const po_recipe *[]){po_recipe_identity(a, 2), rows});
    for (int p = 0; p < 2; p++)
        for (int o = 0; o < O; o++)
            for (int q = 0; q < 2; q++)
                for (int k = 0; k < ROW; k++)
                    want[((p * O + o) * 2 + q) * ROW + k] = p == q ? wv[o * ROW + k] : 0;
    assert_int_equal(blocks->count, 4 * O * ROW);
    assert_near(numbers(&ctx, g, blocks), want, O * O * ROW);

    const po_recipe *parts[2] = {po_recipe_slice(a, w, 1, 1, 3), po_recipe_slice(a, w, 1, 0, 1)};
    const po_recipe *rotated = po_recipe_concat(a, 1, 2, parts);
    assert_near(numbers(&ctx, g, rotated),
                numbers(&ctx, g, po_recipe_gather(a, w, 1, 3, (const int64_t[]){1, 2, 0})),
                O * ROW);
    assert_true(numbers(&ctx, g, rotated)[0] == wv[K * K]);

    const po_recipe *fill = po_recipe_fill(a, 2, (const int64_t[]){2, 3}, 7);
    for (int i = 0; i < 6; i++)
        assert_true(numbers(&ctx, g, fill)[i] == 7);
    po_graph_free(g);
}

/* A graph with constants derived in every way: products, views, a copy, a literal, a chain. */
static po_graph *derived(po_ctx *ctx, po_value_id *bent) {
    po_graph *g = test_graph(ctx, model_text);
    po_arena *a = po_arena_create(ctx);
    po_value_id wv = test_value(g, "w");
    const po_recipe *w = po_recipe_doubles(g, a, wv);
    const po_recipe *s = po_recipe_doubles(g, a, test_value(g, "s"));
    const po_recipe *b = po_recipe_doubles(g, a, test_value(g, "b"));
    const po_recipe *column = po_recipe_reshape(a, s, 4, (const int64_t[]){O, 1, 1, 1});
    po_value_id made[6];
    made[0] = po_add_recipe(g, "scaled", PO_F32, po_recipe_mul(a, w, column));
    made[1] = po_add_recipe(g, "shifted", PO_F32, po_recipe_sub(a, b, s));
    made[2] = po_add_recipe(g, "wide", PO_F64, po_recipe_doubles(g, a, made[0]));
    made[3] = po_add_recipe(
        g, "again", PO_F32,
        po_recipe_mul(a, po_recipe_doubles(g, a, made[0]), po_recipe_number(a, 1.0 / 3)));
    made[4] = po_add_recipe(g, "table", PO_F32, po_recipe_number(a, 0.1));
    made[5] = po_graph_add_constant(g, "copy", g->values[wv].constant);
    po_set_recipe(g, made[5], po_recipe_of(g, a, wv));
    po_arena_free(a);
    po_type unknown = po_type_unranked(PO_F32);
    for (int i = 0; i < 6; i++) {
        assert_int_not_equal(made[i], PO_NONE);
        assert_non_null(g->values[made[i]].recipe);
        po_value_id y = po_graph_add_value(g, NULL, &unknown);
        po_graph_add_node(g, &(po_node_spec){.op = PO_OP_Relu,
                                             .op_type = "Relu",
                                             .n_in = 1,
                                             .in = &made[i],
                                             .n_out = 1,
                                             .out = &y});
        po_graph_add_output(g, y);
    }
    *bent = made[0];
    return g;
}

static const char *check(po_ctx *ctx, const po_graph *recipes, const po_graph *sources,
                         const po_graph *graph) {
    const char *why;
    assert_int_equal(po_recipes_check(ctx, recipes->arena, recipes, sources, graph, &why), PO_OK);
    return why;
}

/* Replaces the first occurrence. */
static char *with(po_arena *arena, const char *text, const char *old, const char *by) {
    const char *at = strstr(text, old);
    if (!at)
        fail_msg("'%s' is not in the text", old);
    return po_arena_printf(arena, "%.*s%s%s", (int)(at - text), text, by, at + strlen(old));
}

static po_graph *parsed(po_ctx *ctx, const char *text) {
    po_graph *g;
    if (po_graph_parse(ctx, text, &g) != PO_OK)
        fail_msg("%s", ctx->error.message);
    po_ops_resolve(g);
    return g;
}

static void test_text_and_check(void **state) {
    (void)state;
    po_ctx ctx;
    po_ctx_init(&ctx);
    po_value_id bent;
    po_graph *g = derived(&ctx, &bent), *sources = test_graph(&ctx, model_text), *recipes;
    assert_int_equal(po_recipes_to_graph(&ctx, g, &recipes), PO_OK);
    assert_int_equal(recipes->n_inputs, 3);
    assert_int_equal(recipes->n_outputs, 6);
    assert_null(check(&ctx, recipes, sources, g));
    po_text text;
    po_text_init(&text, recipes->arena);
    po_graph_print_as(&text, recipes, (po_print_options){.most_items = 32, .all_data = true});
    po_graph *again = parsed(&ctx, text.data);
    assert_null(check(&ctx, again, sources, g));

    /* As the reference computes a graph, rounding as its types say. */
    const po_array *in[3];
    po_array *out[6];
    for (uint32_t i = 0; i < 3; i++) {
        po_array *a;
        const po_tensor *t =
            sources->values[test_value(sources, again->values[again->inputs[i]].name)].constant;
        assert_int_equal(po_array_from_tensor(&ctx, again->arena, t, &a), PO_OK);
        in[i] = a;
    }
    assert_int_equal(po_ref_graph(&ctx, again->arena, again, in, out, true), PO_OK);
    for (uint32_t i = 0; i < 6; i++) {
        po_tensor *t;
        const char *name = again->values[again->outputs[i]].name;
        assert_int_equal(po_array_to_tensor(&ctx, again->arena, out[i], &t), PO_OK);
        assert_true(po_tensor_equal(t, g->values[test_value(g, name)].constant));
    }

    /* What must be found. */
    static const char *const swaps[][2] = {
        {"Sub(", "Add("}, {"0.1", "0.2"}, {"Mul(", "Div("}, {"{4, 1, 1, 1}", "{1, 1, 2, 2}"}};
    for (size_t i = 0; i < sizeof swaps / sizeof *swaps; i++) {
        po_graph *wrong = parsed(&ctx, with(recipes->arena, text.data, swaps[i][0], swaps[i][1]));
        if (!check(&ctx, wrong, sources, g))
            fail_msg("'%s' for '%s' was not found", swaps[i][1], swaps[i][0]);
        po_graph_free(wrong);
    }
    for (uint32_t i = 0; i < again->n_nodes; i++) {
        po_node *n = &again->nodes[i];
        if (n->op != PO_OP_Sub)
            continue;
        po_value_id first = n->in[0], second = n->in[1];
        po_graph_set_input(again, i, 0, second);
        po_graph_set_input(again, i, 1, first);
        assert_non_null(check(&ctx, again, sources, g));
        po_graph_set_input(again, i, 0, first);
        po_graph_set_input(again, i, 1, second);
    }
    assert_null(check(&ctx, again, sources, g));
    const po_tensor *t = g->values[bent].constant;
    for (size_t bit = 0; bit < 8 * t->size; bit += 37) {
        ((uint8_t *)(uintptr_t)t->data)[bit / 8] ^= (uint8_t)(1u << bit % 8);
        assert_non_null(check(&ctx, again, sources, g));
        ((uint8_t *)(uintptr_t)t->data)[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    /* Sources of another value, name or shape. */
    static const char *const models[][2] = {
        {"random 3", "random 5"}, {"s: f32", "q: f32"}, {"f32[4] random 3", "f32[4,1] random 3"}};
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        const char *old = i == 1 ? " s = f32" : models[i][0];
        const char *by = i == 1 ? " q = f32" : models[i][1];
        char *changed = with(recipes->arena, model_text, old, by);
        if (i == 1)
            changed = with(recipes->arena, changed, "Add(s", "Add(q");
        po_graph *other = test_graph(&ctx, changed);
        assert_non_null(check(&ctx, again, other, g));
        po_graph_free(other);
    }
    po_graph_free(again);
    po_graph_free(recipes);
    po_graph_free(sources);
    po_graph_free(g);
}

/* Large arrays are worked on where they lie, or shared: the bits are those of the reference. */
static void test_large(void **state) {
    (void)state;
    po_ctx ctx;
    po_ctx_init(&ctx);
    po_graph *g = test_graph(&ctx, "graph g (x: f32[1,64,5,5]) -> (y) {\n"
                                   " y = Conv(x, w: f32[32,64,3,3] random 1, s: f32[32] random 2)\n"
                                   " z = Relu(t: f64[32,64,9] random 3)\n}");
    po_arena *a = g->arena;
    const po_recipe *w = po_recipe_doubles(g, a, test_value(g, "w"));
    const po_recipe *t = po_recipe_doubles(g, a, test_value(g, "t"));
    const po_recipe *s = po_recipe_reshape(a, po_recipe_doubles(g, a, test_value(g, "s")), 3,
                                           (const int64_t[]){32, 1, 1});
    const po_recipe *v = po_recipe_reshape(a, w, 3, (const int64_t[]){32, 64, 9});
    const po_recipe *scaled = po_recipe_mul(a, v, s);
    static const uint32_t turn[3] = {0, 2, 1};
    const po_recipe *made[] = {
        scaled,
        po_recipe_add(a, scaled, v),
        po_recipe_sub(a, po_recipe_div(a, scaled, s), po_recipe_mul(a, s, v)),
        /* Two views of one array: the first must not be written over. */
        po_recipe_add(a, scaled, po_recipe_reshape(a, w, 3, (const int64_t[]){32, 64, 9})),
        po_recipe_mul(a, s, t),
        po_recipe_div(a, po_recipe_mul(a, t, t), po_recipe_add(a, t, s)),
        po_recipe_mul(a, po_recipe_transpose(a, scaled, turn), po_recipe_number(a, 3)),
        po_recipe_sub(a, po_recipe_reshape(a, scaled, 3, (const int64_t[]){32, 9, 64}),
                      po_recipe_transpose(a, scaled, turn)),
        po_recipe_add(a, po_recipe_number(a, 1), po_recipe_neg(a, po_recipe_add(a, v, v))),
        /* A small view of what was cut from a large array, which goes before the view does. */
        po_recipe_add(a,
                      po_recipe_reshape(a, po_recipe_slice(a, po_recipe_mul(a, v, s), 0, 3, 5), 3,
                                        (const int64_t[]){4, 32, 9}),
                      po_recipe_reshape(a, po_recipe_slice(a, po_recipe_mul(a, t, t), 0, 0, 2), 3,
                                        (const int64_t[]){4, 32, 9})),
    };
    enum { MADE = sizeof made / sizeof *made };
    po_type unknown = po_type_unranked(PO_F32);
    for (int i = 0; i < MADE; i++) {
        po_value_id in = po_add_recipe(g, NULL, i % 2 ? PO_F64 : PO_F32, made[i]);
        po_value_id y = po_graph_add_value(g, NULL, &unknown);
        po_ops_add(g, 0,
                   &(po_node_spec){.op = PO_OP_Relu, .n_in = 1, .in = &in, .n_out = 1, .out = &y});
        po_graph_add_output(g, y);
    }
    po_graph *recipes;
    assert_int_equal(po_recipes_to_graph(&ctx, g, &recipes), PO_OK);
    assert_null(check(&ctx, recipes, g, g));
    const po_array *in[3];
    po_array *out[MADE];
    assert_int_equal(recipes->n_inputs, 3);
    for (uint32_t i = 0; i < 3; i++) {
        po_array *array;
        const char *name = recipes->values[recipes->inputs[i]].name;
        assert_int_equal(po_array_from_tensor(&ctx, recipes->arena,
                                              g->values[test_value(g, name)].constant, &array),
                         PO_OK);
        in[i] = array;
    }
    assert_int_equal(po_ref_graph(&ctx, recipes->arena, recipes, in, out, true), PO_OK);
    for (uint32_t i = 0; i < MADE; i++) {
        po_tensor *again;
        const char *name = recipes->values[recipes->outputs[i]].name;
        assert_int_equal(po_array_to_tensor(&ctx, recipes->arena, out[i], &again), PO_OK);
        assert_true(po_tensor_equal(again, g->values[test_value(g, name)].constant));
    }
    po_graph_free(recipes);
    po_graph_free(g);
}

/* Constants of which nothing is known: made without a recipe, of another value, renamed. */
static void test_missing(void **state) {
    (void)state;
    po_ctx ctx;
    po_ctx_init(&ctx);
    po_graph *sources = test_graph(&ctx, model_text);
    const char *name;
    for (int k = 0; k < 4; k++) {
        po_graph *g = po_graph_clone(&ctx, sources);
        po_value_id v = test_value(g, "s");
        const po_tensor *old = g->values[v].constant;
        float numbers[O] = {1, 2, 3, 4};
        po_tensor *other;
        assert_int_equal(po_tensor_wrap(&ctx, g->arena, PO_F32, 1, old->dims, numbers, &other),
                         PO_OK);
        po_value_id fresh = PO_NONE;
        if (k == 1)
            fresh = po_graph_add_constant(g, NULL, other);
        else if (k == 2)
            g->values[v].constant = other;
        else if (k == 3)
            fresh = po_graph_add_constant(g, NULL, old);
        if (fresh != PO_NONE)
            po_graph_replace_uses(g, v, fresh);
        assert_int_equal(po_recipes_missing(&ctx, g->arena, NULL, sources, g, &name), PO_OK);
        if (k == 0)
            assert_null(name);
        else
            assert_string_equal(name, g->values[fresh == PO_NONE ? v : fresh].name);
        po_graph_free(g);
    }
    po_graph_free(sources);
}

/* A branch that is taken moves its constants, under other names, into the graph around it. */
static void test_branches(void **state) {
    (void)state;
    po_ctx ctx;
    po_ctx_init(&ctx);
    po_graph *g =
        test_graph(&ctx, "graph g (x: f32[4]) -> (y) {\n"
                         " y = If(c: bool[] {1})\n"
                         " {then_branch=graph t () -> (a) { a = Mul(x, w: f32[4] random 1)"
                         " },\n"
                         "  else_branch=graph e () -> (b) { b = Mul(x, v: f32[4] random 2)"
                         " }}\n}");
    po_simplify_options options = po_simplify_defaults();
    po_graph *h;
    assert_int_equal(po_simplify(&ctx, g, &options, &h, NULL), PO_OK);
    assert_int_equal(test_count(h, "If"), 0);
    assert_int_equal(test_count(h, "Mul"), 1);
    const char *fault = test_recipe_fault(&ctx, g, h);
    if (fault)
        fail_msg("%s", fault);
    po_graph_free(h);
    po_graph_free(g);
}

/* What cannot be stored: infinite once rounded, shapes that do not fit. */
static void test_refusals(void **state) {
    (void)state;
    po_ctx ctx;
    po_ctx_init(&ctx);
    po_graph *g = test_graph(&ctx, model_text);
    po_arena *a = g->arena;
    const po_recipe *s = po_recipe_doubles(g, a, test_value(g, "s"));
    const po_recipe *huge = po_recipe_mul(a, po_recipe_mul(a, s, s), po_recipe_number(a, 1e60));
    assert_int_equal(po_add_recipe(g, NULL, PO_F32, huge), PO_NONE);
    assert_int_not_equal(po_add_recipe(g, NULL, PO_F64, huge), PO_NONE);
    const po_recipe *zero = po_recipe_sub(a, s, s);
    assert_int_equal(po_add_recipe(g, NULL, PO_F64, po_recipe_div(a, s, zero)), PO_NONE);
    const po_recipe *three = po_recipe_fill(a, 1, (const int64_t[]){3}, 1);
    assert_int_equal(po_add_recipe(g, NULL, PO_F32, po_recipe_mul(a, s, three)), PO_NONE);
    assert_int_equal(
        po_add_recipe(g, NULL, PO_F32, po_recipe_reshape(a, s, 1, (const int64_t[]){3})), PO_NONE);
    assert_int_equal(ctx.error.status, PO_OK);
    po_graph_free(g);
}

/* Neither deep nor shared expressions cost more than they hold. */
static void test_long_chains(void **state) {
    (void)state;
    po_ctx ctx;
    po_ctx_init(&ctx);
    po_graph *g = test_graph(&ctx, model_text);
    po_arena *a = po_arena_create(&ctx);
    const po_recipe *r = po_recipe_doubles(g, a, test_value(g, "s"));
    for (int i = 0; i < 100000; i++)
        r = i % 2 ? po_recipe_neg(a, r) : po_recipe_sub(a, r, po_recipe_add(a, r, r));
    po_value_id v = po_add_recipe(g, "deep", PO_F32, r);
    assert_int_not_equal(v, PO_NONE);
    for (int64_t i = 0; i < O; i++)
        assert_true(po_tensor_f64(g->values[v].constant, i) ==
                    po_tensor_f64(g->values[test_value(g, "s")].constant, i));
    /* Derived again, it starts from what is stored. */
    const po_recipe *next = po_recipe_doubles(g, a, v);
    assert_int_equal(next->kind, PO_RECIPE_OP);
    assert_int_equal(next->height, 1);
    po_arena_free(a);
    po_graph_free(g);
}

/* What only moves elements is moved as it lies: bit for bit as evaluation has it. */
static void test_moves(void **state) {
    (void)state;
    enum { CASES = 200, RANK = 4 };
    po_ctx ctx;
    po_ctx_init(&ctx);
    po_graph *g = test_graph(&ctx, model_text);
    int refused = 0, reshapes = 0;
    for (uint64_t seed = 0; seed < CASES; seed++) {
        po_arena *a = po_arena_create(&ctx);
        int64_t dims[RANK], mixed[RANK];
        po_tensor *t;
        for (uint64_t x = 0; x < RANK; x++)
            dims[x] = 1 + (int64_t)(po_random_u64(seed, 1, x) % 9);
        assert_int_equal(po_tensor_create(&ctx, a, PO_F32, RANK, dims, &t), PO_OK);
        po_tensor_draw(t, seed, -1, 1);
        po_tensor_set_f64(t, 0, seed % 3 ? -0.0 : 0x1p-149);
        const bool finite = seed % 20 != 7;
        if (!finite)
            po_tensor_set_f64(t, t->count - 1, seed % 40 == 7 ? (double)NAN : HUGE_VAL);
        const po_value_id w = po_graph_add_constant(g, NULL, t);
        const po_recipe *r = seed % 4 ? po_recipe_doubles(g, a, w) : po_recipe_of(g, a, w);
        for (uint64_t k = 0; k < seed % 5 && seed % 4; k++) {
            uint32_t perm[RANK] = {0, 1, 2, 3};
            for (uint64_t x = RANK; x-- > 1;) {
                const uint64_t y = po_random_u64(seed, 2 + k, x) % (x + 1);
                const uint32_t was = perm[x];
                perm[x] = perm[y];
                perm[y] = was;
            }
            for (uint32_t x = 0; x < RANK; x++)
                mixed[x] = r->dims[(x + 1) % RANK];
            const bool reshapes_it = po_random_u64(seed, 12, k) % 3 == 0;
            reshapes += reshapes_it;
            r = reshapes_it ? po_recipe_reshape(a, r, RANK, mixed)
                            : po_recipe_transpose(a, r, perm);
        }
        po_array *want;
        po_tensor *rounded;
        assert_int_equal(po_recipe_eval(&ctx, a, g->model, r, &want), PO_OK);
        want->dtype = PO_F32;
        assert_int_equal(po_array_to_tensor(&ctx, a, want, &rounded), PO_OK);
        const po_value_id v = po_add_recipe(g, NULL, PO_F32, r);
        assert_int_equal(v != PO_NONE, finite);
        refused += !finite;
        if (finite) {
            assert_true(po_tensor_equal(g->values[v].constant, rounded));
            assert_memory_equal(g->values[v].constant->data, rounded->data, rounded->size);
            assert_true(g->values[v].constant->data != t->data);
        }
        po_arena_keep(a); /* the graph's constants point into it */
        po_arena_own(g->arena, a);
    }
    assert_true(refused > 5 && reshapes > 20);
    po_graph_free(g);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_algebra),     cmocka_unit_test(test_text_and_check),
        cmocka_unit_test(test_large),       cmocka_unit_test(test_missing),
        cmocka_unit_test(test_branches),    cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_long_chains), cmocka_unit_test(test_moves),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
