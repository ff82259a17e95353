/* Building, editing, cloning and checking graphs. */
#include "ops/op.h"
#include "unit.h"

static po_value_id unary(po_graph *g, const char *op, po_value_id in, const char *out) {
    po_value_id v = po_graph_add_value(g, out, &g->values[in].type);
    po_graph_add_node(g,
                      &(po_node_spec){.op_type = op, .n_in = 1, .in = &in, .n_out = 1, .out = &v});
    return v;
}

static po_graph *chain(po_ctx *ctx) {
    po_graph *g = po_graph_create(ctx, NULL, "chain");
    po_type t = po_type_tensor_i64(g->arena, PO_F32, 1, (int64_t[]){4});
    po_value_id x = po_graph_add_input(g, "x", &t);
    po_value_id a = unary(g, "Identity", x, "a");
    po_value_id b = unary(g, "Relu", a, "b");
    po_graph_add_output(g, unary(g, "Identity", b, "y"));
    return g;
}

static void test_replace_keeps_output_name(void **state) {
    po_ctx ctx;
    (void)state;
    po_ctx_init(&ctx);
    po_graph *g = chain(&ctx);
    assert_int_equal(po_graph_check(&ctx, g), PO_OK);
    po_value_id b = g->nodes[2].in[0];
    assert_true(po_graph_replace_uses(g, g->outputs[0], b));
    po_graph_remove_node(g, 2);
    assert_string_equal(po_graph_value_name(g, g->outputs[0]), "y");
    assert_int_equal(g->outputs[0], b);
    assert_int_equal(po_graph_check(&ctx, g), PO_OK);
    /* An output must not become a graph input: the use stays. */
    assert_true(po_graph_replace_uses(g, g->nodes[0].out[0], g->inputs[0]));
    po_graph_remove_node(g, 0);
    assert_false(po_graph_replace_uses(g, g->outputs[0], g->inputs[0]));
    assert_int_equal(po_graph_check(&ctx, g), PO_OK);
    po_graph_free(g);
}

static void test_sweep_and_constants(void **state) {
    po_ctx ctx;
    (void)state;
    po_ctx_init(&ctx);
    po_graph *g = chain(&ctx);
    unary(g, "Relu", unary(g, "Relu", g->inputs[0], NULL), NULL);
    po_graph_add_constant(g, "unused", po_tensor_scalar_f32(g->arena, 1.0f));
    assert_int_equal(po_graph_sweep(g), 2);
    assert_int_equal(g->n_initializers, 0);
    float zeros[4] = {0};
    po_tensor *t;
    assert_int_equal(po_tensor_wrap(&ctx, g->arena, PO_F32, 1, (int64_t[]){4}, zeros, &t), PO_OK);
    po_value_id b = g->nodes[2].in[0];
    assert_true(po_graph_make_constant(g, b, t));
    assert_int_equal(po_graph_sweep(g), 1);
    assert_int_equal(g->n_live, 1);
    assert_int_equal(po_graph_check(&ctx, g), PO_OK);
    po_graph_free(g);
}

static po_graph *with_body(po_ctx *ctx) {
    po_graph *g = chain(ctx);
    po_graph *body = po_graph_create_body(g, "then");
    po_value_id captured = po_graph_capture(body, g->nodes[1].in[0]);
    po_graph_add_output(body, unary(body, "Relu", captured, "r"));
    po_attr attr = {.name = "then_branch", .kind = PO_ATTR_GRAPH, .n = 1, .u.g = body};
    po_value_id out = po_graph_add_value(g, "if", NULL);
    po_graph_add_node(
        g, &(po_node_spec){.op_type = "If", .n_out = 1, .out = &out, .n_attr = 1, .attr = &attr});
    po_graph_add_output(g, out);
    return g;
}

static void test_captures(void **state) {
    po_ctx ctx;
    (void)state;
    po_ctx_init(&ctx);
    po_graph *g = with_body(&ctx);
    assert_int_equal(po_graph_check(&ctx, g), PO_OK);
    po_value_id a = g->nodes[1].in[0];
    assert_int_equal(g->values[a].n_uses, 2);
    assert_null(po_graph_sole_use(g, a));
    assert_true(po_graph_replace_uses(g, a, g->inputs[0]));
    assert_int_equal(g->values[g->inputs[0]].n_uses, 3);
    assert_int_equal(po_graph_sweep(g), 1);
    assert_string_equal(po_graph_value_name(g->nodes[3].attr[0].u.g, 0), "x");
    assert_int_equal(po_graph_check(&ctx, g), PO_OK);
    po_graph_free(g);
}

static void test_clone_is_equal_and_apart(void **state) {
    po_ctx ctx;
    (void)state;
    po_ctx_init(&ctx);
    po_graph *g = with_body(&ctx), *c = po_graph_clone(&ctx, g);
    assert_int_equal(po_graph_check(&ctx, c), PO_OK);
    assert_true(po_graph_equal(g, c));
    assert_true(po_hash_equal(po_graph_hash(g), po_graph_hash(c)));
    po_node_set_int(c, 1, "axis", 3);
    assert_false(po_graph_equal(g, c));
    assert_false(po_hash_equal(po_graph_hash(g), po_graph_hash(c)));
    assert_int_equal(po_node_int(&g->nodes[1], "axis", -7), -7);
    po_graph_free(c);
    po_graph_free(g);
}

/* What only a body in a body uses: a constant and a value, through a body that does not. */
static void test_deep_captures_are_equal(void **state) {
    po_ctx ctx;
    (void)state;
    po_ctx_init(&ctx);
    po_graph *g = chain(&ctx);
    po_value_id w = po_graph_add_constant(g, "w", po_tensor_scalar_f32(g->arena, 2.0f));
    po_graph *outer = po_graph_create_body(g, "outer"), *inner = po_graph_create_body(outer, "in");
    po_value_id x = po_graph_capture(inner, po_graph_capture(outer, g->nodes[1].out[0]));
    po_graph_add_output(inner, unary(inner, "Relu", x, "r"));
    x = po_graph_capture(inner, po_graph_capture(outer, w));
    po_graph_add_output(inner, unary(inner, "Relu", x, "s"));
    po_attr attr = {.name = "b", .kind = PO_ATTR_GRAPH, .n = 1, .u.g = inner};
    po_graph_add_node(outer, &(po_node_spec){.op_type = "If", .n_attr = 1, .attr = &attr});
    attr.u.g = outer;
    po_graph_add_node(g, &(po_node_spec){.op_type = "If", .n_attr = 1, .attr = &attr});
    po_graph *c = po_graph_clone(&ctx, g);
    assert_int_equal(po_graph_check(&ctx, c), PO_OK);
    assert_true(po_graph_equal(g, c));
    c->values[w].constant = po_tensor_scalar_f32(c->arena, 3.0f);
    assert_false(po_graph_equal(g, c));
    po_graph_free(c);
    po_graph_free(g);
}

static void test_check_catches_damage(void **state) {
    po_ctx ctx;
    (void)state;
    po_ctx_init(&ctx);
    po_graph *g = chain(&ctx);
    g->nodes[1].in[0] = g->inputs[0]; /* behind the use lists' back */
    assert_int_equal(po_graph_check(&ctx, g), PO_INTERNAL);
    po_graph_free(g);
    po_ctx_clear(&ctx);
    g = chain(&ctx);
    po_graph_set_input(g, 0, 0, g->nodes[2].out[0]); /* a cycle */
    assert_int_equal(po_graph_check(&ctx, g), PO_INTERNAL);
    po_graph_free(g);
}

static void test_insertion_keeps_place(void **state) {
    po_ctx ctx;
    (void)state;
    po_ctx_init(&ctx);
    po_graph *g = chain(&ctx);
    po_value_id a = g->nodes[1].in[0];
    po_value_id v = po_graph_add_value(g, NULL, NULL);
    po_node_id id = po_graph_add_node_at(
        g, 1, &(po_node_spec){.op_type = "Neg", .n_in = 1, .in = &a, .n_out = 1, .out = &v});
    po_graph_set_input(g, 1, 0, v);
    uint32_t n;
    const po_node_id *order = po_graph_order(g, g->arena, &n);
    assert_int_equal(n, 4);
    assert_int_equal(order[1], id);
    assert_int_equal(order[2], 1);
    po_graph_free(g);
}

static void test_small_floats(void **state) {
    (void)state;
    /* Every bit pattern of every small format comes back, NaN payloads aside. */
    static const po_dtype formats[] = {PO_F16,    PO_BF16,       PO_F8E4M3FN, PO_F8E4M3FNUZ,
                                       PO_F8E5M2, PO_F8E5M2FNUZ, PO_F4E2M1,   PO_F8E8M0};
    for (size_t f = 0; f < sizeof formats / sizeof *formats; f++) {
        uint64_t patterns = 1ull << po_dtype_bits(formats[f]);
        for (uint64_t bits = 0; bits < patterns; bits++) {
            double v = po_decode_float(formats[f], bits);
            uint64_t back = po_encode_float(formats[f], v);
            if (v == v)
                assert_int_equal(back, bits);
            else
                assert_true(po_decode_float(formats[f], back) != po_decode_float(formats[f], back));
        }
    }
    assert_int_equal(po_encode_float(PO_F16, 65520.0), 0x7c00); /* rounds up to infinity */
    assert_int_equal(po_encode_float(PO_F16, 65519.0), 0x7bff);
    assert_int_equal(po_encode_float(PO_BF16, 1.00390625), 0x3f80); /* half to even */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_replace_keeps_output_name),
        cmocka_unit_test(test_sweep_and_constants),
        cmocka_unit_test(test_captures),
        cmocka_unit_test(test_clone_is_equal_and_apart),
        cmocka_unit_test(test_deep_captures_are_equal),
        cmocka_unit_test(test_check_catches_damage),
        cmocka_unit_test(test_insertion_keeps_place),
        cmocka_unit_test(test_small_floats),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
