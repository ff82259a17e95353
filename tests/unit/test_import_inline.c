/* Calls of functions that are put into the graph, and those that stay calls. */
#include "unit.h"

#include "import/import.h"
#include "onnx_build.h"
#include "test_paths.h"

#include <limits.h>

static const int64_t two_three[] = {2, 3};

static char *text(po_arena *a, const char *t) {
    return po_arena_strdup(a, t);
}

/* A function of domain d with one node, and a call of it. */
static Onnx__FunctionProto *function(po_arena *a, Onnx__ModelProto *m, const char *in,
                                     const char *op, const char *node_in) {
    Onnx__FunctionProto *f = tm_function(a, "d", "F", in, "o");
    tm_opset(a, m, "d", 1);
    TM_ADD(a, f, node, tm_node(a, op, node_in, "o"));
    TM_ADD(a, m, functions, f);
    tm_add_node(a, m, "F", "x", "p");
    tm_last_node(m)->domain = text(a, "d");
    return f;
}

static void plain(po_arena *a, Onnx__ModelProto *m) {
    function(a, m, "i", "Relu", "i");
}

/* --- what stays a call --- */

static void of_domain(po_arena *a, Onnx__ModelProto *m, const char *domain) {
    function(a, m, "i", "Relu", "i")->domain = domain ? text(a, domain) : NULL;
    tm_last_node(m)->domain = text(a, domain ? domain : "");
    if (domain)
        tm_opset(a, m, domain, 1);
}
static void of_no_domain(po_arena *a, Onnx__ModelProto *m) {
    of_domain(a, m, NULL);
}
static void of_onnx(po_arena *a, Onnx__ModelProto *m) {
    of_domain(a, m, "ai.onnx.ml");
}
static void of_the_runtime(po_arena *a, Onnx__ModelProto *m) {
    of_domain(a, m, "com.microsoft");
}
static void no_standard_operators(po_arena *a, Onnx__ModelProto *m) {
    function(a, m, "i", "Odd", "i")->node[0]->domain = text(a, "d");
    m->graph->node[0]->domain = text(a, "d");
    m->opset_import[0]->domain = text(a, "elsewhere");
}
static void other_version(po_arena *a, Onnx__ModelProto *m) {
    function(a, m, "i", "Relu", "i")->opset_import[0]->version = 16;
}
static void given_a_body(po_arena *a, Onnx__ModelProto *m) {
    plain(a, m);
    TM_ADD(a, tm_last_node(m), attribute, tm_branch(a, "body", "Relu", "x", "b"));
}
static void given_bodies(po_arena *a, Onnx__ModelProto *m) {
    plain(a, m);
    Onnx__AttributeProto *p = tm_attr(a, "bodies", PO_ATTR_GRAPHS);
    TM_ADD(a, p, graphs, tm_graph(a, "b"));
    TM_ADD(a, tm_last_node(m), attribute, p);
}
/* A default that uses what nothing makes: it is never built. */
static void default_body(po_arena *a, Onnx__ModelProto *m) {
    Onnx__FunctionProto *f = function(a, m, "i", "Odd", "i");
    Onnx__AttributeProto *p = tm_attr(a, "body", PO_ATTR_GRAPH);
    p->ref_attr_name = text(a, "body");
    f->node[0]->domain = text(a, "d");
    TM_ADD(a, f->node[0], attribute, p);
    TM_ADD(a, f, attribute_proto, tm_branch(a, "body", "Relu", "nothing", "b"));
}
static void default_bodies(po_arena *a, Onnx__ModelProto *m) {
    Onnx__AttributeProto *p = tm_attr(a, "bodies", PO_ATTR_GRAPHS);
    TM_ADD(a, p, graphs, tm_graph(a, "b"));
    Onnx__FunctionProto *f = function(a, m, "i", "Relu", "i");
    TM_ADD(a, f, attribute_proto, p);
}
/* A body in a body with a sparse initialiser. */
static Onnx__GraphProto *sparse_body(po_arena *a) {
    static const int64_t at[] = {1, 4};
    Onnx__AttributeProto *inner = tm_branch(a, "body", "Relu", "s", "b");
    TM_ADD(a, inner->g, sparse_initializer, tm_sparse(a, "s", 2, at, 6));
    Onnx__GraphProto *g = tm_graph(a, "outer");
    TM_ADD(a, g, node, tm_node(a, "Odd", "", "c"));
    g->node[0]->domain = text(a, "d");
    TM_ADD(a, g->node[0], attribute, inner);
    return g;
}
static void sparse_in_a_body(po_arena *a, Onnx__ModelProto *m) {
    Onnx__FunctionProto *f = function(a, m, "i", "Odd", "i");
    Onnx__AttributeProto *p = tm_attr(a, "body", PO_ATTR_GRAPH);
    f->node[0]->domain = text(a, "d");
    p->g = sparse_body(a);
    TM_ADD(a, f->node[0], attribute, p);
}
static void sparse_in_bodies(po_arena *a, Onnx__ModelProto *m) {
    Onnx__FunctionProto *f = function(a, m, "i", "Odd", "i");
    Onnx__AttributeProto *p = tm_attr(a, "bodies", PO_ATTR_GRAPHS);
    f->node[0]->domain = text(a, "d");
    TM_ADD(a, p, graphs, tm_graph(a, "b"));
    TM_ADD(a, p, graphs, sparse_body(a));
    TM_ADD(a, f->node[0], attribute, p);
}
static void hands_on_nothing(po_arena *a, Onnx__ModelProto *m) {
    Onnx__FunctionProto *f = function(a, m, "i,j", "Relu", "i");
    f->output[0] = text(a, "j");
}
static void body_hands_on_nothing(po_arena *a, Onnx__ModelProto *m) {
    Onnx__FunctionProto *f = function(a, m, "i,j", "Odd", "i");
    Onnx__AttributeProto *p = tm_branch(a, "body", "Relu", "i", "b");
    f->node[0]->domain = text(a, "d");
    p->g->output[0]->name = text(a, "j");
    TM_ADD(a, f->node[0], attribute, p);
}

static void (*const stay[])(po_arena *, Onnx__ModelProto *) = {
    of_no_domain,          of_onnx,          of_the_runtime,   no_standard_operators,
    other_version,         given_a_body,     given_bodies,     default_body,
    default_bodies,        sparse_in_a_body, sparse_in_bodies, hands_on_nothing,
    body_hands_on_nothing,
};

static void test_stay(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof stay / sizeof stay[0]; i++) {
        po_ctx ctx;
        po_ctx_init(&ctx);
        po_arena *a = po_arena_create(&ctx);
        po_model *model = tm_imported(&ctx, a, stay[i]);
        po_graph *g = po_graph_clone(&ctx, model->graph);
        uint32_t n = 7;
        assert_int_equal(po_inline_functions(&ctx, g, NULL, &n), PO_OK);
        assert_int_equal(n, 0);
        assert_true(po_graph_equal(g, model->graph));
        assert_int_equal(po_graph_check(&ctx, g), PO_OK);
        po_graph_free(g);
        po_model_free(model);
        po_arena_free(a);
    }
}

/* A call that a rewrite widened is none of the function's. */
static void test_too_wide(void **state) {
    (void)state;
    for (int k = 0; k < 2; k++) {
        po_ctx ctx;
        po_ctx_init(&ctx);
        po_arena *a = po_arena_create(&ctx);
        po_model *model = tm_imported(&ctx, a, plain);
        po_graph *g = po_graph_clone(&ctx, model->graph);
        const po_value_id in[] = {g->inputs[0], g->inputs[0]};
        const po_value_id out[] = {po_graph_add_value(g, NULL, NULL),
                                   po_graph_add_value(g, NULL, NULL)};
        po_node_spec spec = {.op_type = "F", .domain = "d", .in = in, .out = out};
        spec.n_in = k ? 1 : 2;
        spec.n_out = k ? 2 : 1;
        po_node_id wide = po_graph_add_node(g, &spec);
        uint32_t n;
        assert_int_equal(po_inline_functions(&ctx, g, NULL, &n), PO_OK);
        assert_int_equal(n, 1);
        assert_false(g->nodes[wide].removed);
        po_graph_free(g);
        po_model_free(model);
        po_arena_free(a);
    }
}

/* --- what is inlined --- */

static void leaky(po_arena *a, Onnx__ModelProto *m) {
    Onnx__FunctionProto *f = function(a, m, "i", "LeakyRelu", "i");
    Onnx__AttributeProto *p = tm_attr(a, "alpha", PO_ATTR_FLOAT);
    p->ref_attr_name = text(a, "slope");
    TM_ADD(a, f->node[0], attribute, p);
    f->n_attribute = 2;
    f->attribute = PO_NEW_N(a, char *, 2);
    f->attribute[0] = text(a, "other");
    f->attribute[1] = text(a, "slope");
}

/* A call made by a rewrite: its attributes come from no message. */
static void test_attribute_of_a_rewrite(void **state) {
    (void)state;
    po_ctx ctx;
    po_ctx_init(&ctx);
    po_arena *a = po_arena_create(&ctx);
    po_model *model = tm_imported(&ctx, a, leaky);
    po_graph *g = po_graph_clone(&ctx, model->graph);
    po_node_set_float(g, 1, "slope", 0.25f);
    uint32_t n;
    assert_int_equal(po_inline_functions(&ctx, g, NULL, &n), PO_OK);
    assert_int_equal(n, 1);
    const po_node *made = &g->nodes[g->n_nodes - 1];
    assert_string_equal(made->op_type, "LeakyRelu");
    assert_int_equal(made->n_attr, 1);
    assert_string_equal(made->attr[0].name, "alpha");
    assert_true(made->attr[0].u.f == 0.25f);
    assert_null(made->attr[0].origin);
    /* Once more: the call is gone. */
    assert_int_equal(po_inline_functions(&ctx, g, NULL, &n), PO_OK);
    assert_int_equal(n, 0);
    assert_int_equal(po_graph_check(&ctx, g), PO_OK);
    po_graph_free(g);
    po_model_free(model);
    po_arena_free(a);
}

static Onnx__AttributeProto *constant(po_arena *a, Onnx__FunctionProto *f) {
    Onnx__NodeProto *n = tm_node(a, "Constant", "", "c");
    Onnx__AttributeProto *p = tm_attr(a, "value", PO_ATTR_TENSOR);
    p->ref_attr_name = text(a, "what");
    TM_ADD(a, n, attribute, p);
    TM_ADD(a, f, node, n);
    TM_ADD(a, f, node, tm_node(a, "Add", "i,c", "q"));
    Onnx__AttributeProto *own = tm_attr(a, "what", PO_ATTR_TENSOR);
    own->t = tm_raw(a, "t", PO_F32, 2, two_three, 24);
    own->t->raw_data.data[3] = 0x40; /* 2.0f */
    return own;
}
static void constant_by_default(po_arena *a, Onnx__ModelProto *m) {
    Onnx__FunctionProto *f = function(a, m, "i", "Relu", "i");
    Onnx__AttributeProto *nameless = tm_attr_int(a, "", 1);
    nameless->name = NULL; /* as runtimes take it */
    TM_ADD(a, f, attribute_proto, nameless);
    TM_ADD(a, f, attribute_proto, constant(a, f));
}
static void constant_given(po_arena *a, Onnx__ModelProto *m) {
    Onnx__FunctionProto *f = function(a, m, "i", "Relu", "i");
    TM_ADD(a, tm_last_node(m), attribute, constant(a, f));
    f->n_attribute = 1;
    f->attribute = PO_NEW(a, char *);
    f->attribute[0] = text(a, "what");
}

/* A Constant of what the call gives or the function has is one only once it is inlined. */
static void test_constant(void **state) {
    (void)state;
    for (int k = 0; k < 2; k++) {
        po_ctx ctx;
        po_ctx_init(&ctx);
        po_arena *a = po_arena_create(&ctx);
        po_model *model = tm_imported(&ctx, a, k ? constant_given : constant_by_default);
        po_graph *g = po_graph_clone(&ctx, model->graph);
        uint32_t n;
        assert_int_equal(po_inline_functions(&ctx, g, NULL, &n), PO_OK);
        assert_int_equal(n, 1);
        const po_node *made = NULL;
        for (po_node_id i = 0; i < g->n_nodes; i++)
            if (strcmp(g->nodes[i].op_type, "Constant") == 0)
                made = &g->nodes[i];
        assert_non_null(made);
        assert_true(po_tensor_f64(g->values[made->out[0]].constant, 0) == 2);
        const Onnx__AttributeProto *origin = made->attr[0].origin;
        assert_string_equal(origin->name, "value");
        po_graph_free(g);
        po_model_free(model);
        po_arena_free(a);
    }
}

static void two_domains(po_arena *a, Onnx__ModelProto *m) {
    function(a, m, "i", "Relu", "i");
    tm_opset(a, m, "e", 1);
    Onnx__FunctionProto *f = tm_function(a, "e", "F", "i", "o");
    TM_ADD(a, f, node, tm_node(a, "Neg", "i", "o"));
    TM_ADD(a, m, functions, f);
    tm_add_node(a, m, "F", "x", "q");
    tm_last_node(m)->domain = text(a, "e");
}

static void test_domain(void **state) {
    (void)state;
    po_ctx ctx;
    po_ctx_init(&ctx);
    po_arena *a = po_arena_create(&ctx);
    po_model *model = tm_imported(&ctx, a, two_domains);
    po_graph *g = po_graph_clone(&ctx, model->graph);
    uint32_t n;
    assert_int_equal(po_inline_functions(&ctx, g, "e", &n), PO_OK);
    assert_int_equal(n, 1);
    assert_false(g->nodes[1].removed);
    assert_true(g->nodes[2].removed);
    assert_int_equal(po_inline_functions(&ctx, g, "nobody's", &n), PO_OK);
    assert_int_equal(n, 0);
    po_graph_free(g);
    po_model_free(model);
    po_arena_free(a);
}

/* A graph beyond the limit may grow to twice its size. */
static void test_large(void **state) {
    (void)state;
    po_ctx ctx;
    po_ctx_init(&ctx);
    po_arena *a = po_arena_create(&ctx);
    po_model *model = tm_imported(&ctx, a, plain);
    po_graph *g = po_graph_clone(&ctx, model->graph);
    const po_node_spec nothing = {.op_type = "Odd", .domain = "d"};
    for (int i = 0; i < 200000; i++)
        po_graph_add_node(g, &nothing);
    uint32_t n;
    assert_int_equal(po_inline_functions(&ctx, g, NULL, &n), PO_OK);
    assert_int_equal(n, 1);
    po_graph_free(g);
    po_model_free(model);
    po_arena_free(a);
}

/* --- what there is nothing in, and what ends early --- */

static void test_nothing(void **state) {
    (void)state;
    po_ctx ctx;
    po_ctx_init(&ctx);
    po_model built = {0};
    po_model *const models[] = {NULL, &built};
    for (int i = 0; i < 2; i++) {
        po_graph *g = po_graph_create(&ctx, models[i], "g");
        uint32_t n = 7;
        assert_int_equal(po_inline_functions(&ctx, g, NULL, &n), PO_OK);
        assert_int_equal(n, 0);
        assert_int_equal(po_inline_functions(&ctx, g, NULL, NULL), PO_OK);
        po_graph_free(g);
    }
    assert_null(ctx.arenas);
}

static void test_cancelled(void **state) {
    (void)state;
    po_ctx ctx;
    po_ctx_init(&ctx);
    po_arena *a = po_arena_create(&ctx);
    char folder[PATH_MAX];
    test_mkdtemp(folder, sizeof folder);
    const char *path = po_arena_printf(a, "%s/m.onnx", folder);
    Onnx__ModelProto *m = tm_model(a);
    plain(a, m);
    size_t size;
    const uint8_t *data = tm_pack(a, m, &size);
    test_write_file(path, data, size);
    po_model *model;
    assert_int_equal(po_import_file(&ctx, path, &model), PO_OK);
    po_graph *g = po_graph_clone(&ctx, model->graph);
    atomic_bool cancel = true;
    ctx.cancel = &cancel;
    uint32_t n;
    assert_int_equal(po_inline_functions(&ctx, g, NULL, &n), PO_CANCELLED);
    assert_int_equal(n, 0);
    po_ctx_clear(&ctx);
    cancel = false;
    assert_int_equal(po_inline_functions(&ctx, g, NULL, &n), PO_OK);
    assert_int_equal(n, 1);
    po_graph_free(g);
    po_model_free(model);
    po_arena_free(a);
    assert_null(ctx.arenas);
    test_rmtree(folder);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_stay),     cmocka_unit_test(test_too_wide),
        cmocka_unit_test(test_constant), cmocka_unit_test(test_attribute_of_a_rewrite),
        cmocka_unit_test(test_domain),   cmocka_unit_test(test_large),
        cmocka_unit_test(test_nothing),  cmocka_unit_test(test_cancelled),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
