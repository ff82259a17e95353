/* Functions of a model: the hostile list of docs/import.md, and calls that are inlined. */
#include "unit.h"

#include "import/import.h"
#include "onnx_build.h"

static const int64_t two_three[] = {2, 3};

static Onnx__FunctionProto *function(po_arena *a, Onnx__ModelProto *m, const char *name,
                                     const char *calls) {
    Onnx__FunctionProto *f = tm_function(a, "d", name, "i", "o");
    Onnx__NodeProto *n = tm_node(a, calls, "i", "o");
    n->domain = po_arena_strdup(a, strcmp(calls, "Relu") == 0 ? "" : "d");
    TM_ADD(a, f, node, n);
    TM_ADD(a, m, functions, f);
    return f;
}
static void good_function(po_arena *a, Onnx__ModelProto *m) {
    tm_opset(a, m, "d", 1);
    function(a, m, "F", "G");
    function(a, m, "G", "Relu");
    tm_add_node(a, m, "F", "x", "p");
    tm_last_node(m)->domain = po_arena_strdup(a, "d");
}
static void calls_itself(po_arena *a, Onnx__ModelProto *m) {
    function(a, m, "F", "F");
}
static void calls_each_other(po_arena *a, Onnx__ModelProto *m) {
    function(a, m, "F", "G");
    function(a, m, "G", "F");
}
static void calls_through_if(po_arena *a, Onnx__ModelProto *m) {
    Onnx__FunctionProto *f = tm_function(a, "d", "F", "i", "o");
    Onnx__NodeProto *n = tm_node(a, "If", "i", "o");
    TM_ADD(a, n, attribute, tm_branch(a, "then_branch", "F", "i", "p"));
    TM_ADD(a, n, attribute, tm_branch(a, "else_branch", "Relu", "i", "q"));
    n->attribute[0]->g->node[0]->domain = po_arena_strdup(a, "d");
    TM_ADD(a, f, node, n);
    TM_ADD(a, m, functions, f);
}
static void doubling(po_arena *a, Onnx__ModelProto *m) {
    /* 2^40 nodes where it were inlined: it is not, here. */
    tm_opset(a, m, "d", 1);
    for (int i = 0; i < 40; i++) {
        Onnx__FunctionProto *f = tm_function(a, "d", po_arena_printf(a, "F%d", i), "i", "o");
        for (int k = 0; k < 2; k++) {
            Onnx__NodeProto *n = tm_node(a, i ? po_arena_printf(a, "F%d", i - 1) : "Relu",
                                         k ? "t" : "i", k ? "o" : "t");
            if (i)
                n->domain = po_arena_strdup(a, "d");
            TM_ADD(a, f, node, n);
        }
        TM_ADD(a, m, functions, f);
    }
    tm_add_node(a, m, "F39", "x", "p");
    tm_last_node(m)->domain = po_arena_strdup(a, "d");
}
static void deep_calls(po_arena *a, Onnx__ModelProto *m) {
    for (int i = 0; i < 5000; i++)
        function(a, m, po_arena_printf(a, "F%d", i),
                 i == 4999 ? "Relu" : po_arena_printf(a, "F%d", i + 1));
}
static void function_twice(po_arena *a, Onnx__ModelProto *m) {
    function(a, m, "F", "Relu");
    function(a, m, "F", "Relu");
}
static void function_overloads(po_arena *a, Onnx__ModelProto *m) {
    function(a, m, "F", "Relu");
    function(a, m, "F", "Relu")->overload = po_arena_strdup(a, "second");
}
static void function_dangling(po_arena *a, Onnx__ModelProto *m) {
    function(a, m, "F", "Relu")->node[0]->input[0] = po_arena_strdup(a, "x");
}
static void function_no_output(po_arena *a, Onnx__ModelProto *m) {
    function(a, m, "F", "Relu")->node[0]->output[0] = po_arena_strdup(a, "q");
}
static void function_unknown_reference(po_arena *a, Onnx__ModelProto *m) {
    Onnx__AttributeProto *p = tm_attr(a, "alpha", PO_ATTR_FLOAT);
    p->ref_attr_name = po_arena_strdup(a, "beta");
    Onnx__NodeProto *n = function(a, m, "F", "Relu")->node[0];
    TM_ADD(a, n, attribute, p);
}
static void function_reference(po_arena *a, Onnx__ModelProto *m) {
    function_unknown_reference(a, m);
    Onnx__FunctionProto *f = m->functions[0];
    f->attribute = PO_NEW(a, char *);
    f->attribute[f->n_attribute++] = po_arena_strdup(a, "beta");
}
static void function_inputs_twice(po_arena *a, Onnx__ModelProto *m) {
    Onnx__FunctionProto *f = tm_function(a, "d", "F", "i,i", "i");
    TM_ADD(a, m, functions, f);
}
static void no_name_function(po_arena *a, Onnx__ModelProto *m) {
    function(a, m, "", "Relu");
}

static void no_name_at_all(po_arena *a, Onnx__ModelProto *m) {
    function(a, m, "F", "Relu")->name = NULL;
}
static void nameless_input(po_arena *a, Onnx__ModelProto *m) {
    TM_ADD(a, m, functions, tm_function(a, "d", "F", ",", ""));
}
static void other_operators(po_arena *a, Onnx__ModelProto *m) {
    function(a, m, "F", "Relu")->node[0]->domain = po_arena_strdup(a, "e");
}
/* The standard domain has two names. */
static void standard_domain(po_arena *a, Onnx__ModelProto *m) {
    Onnx__FunctionProto *f = function(a, m, "MyRelu", "Relu");
    f->domain = po_arena_strdup(a, "ai.onnx");
    f->node[0]->domain = po_arena_strdup(a, "ai.onnx");
    tm_add_node(a, m, "MyRelu", "x,x", "p");
}

/* --- attributes --- */

static void parameters(po_arena *a, Onnx__ModelProto *m, int n, int n_defaults) {
    Onnx__FunctionProto *f = function(a, m, "F", "Relu");
    f->attribute = PO_NEW_N(a, char *, n);
    for (; n > 0; n--)
        f->attribute[f->n_attribute++] = po_arena_strdup(a, "b");
    for (; n_defaults > 0; n_defaults--)
        TM_ADD(a, f, attribute_proto, tm_attr_int(a, "b", 1));
}
static void parameter_twice(po_arena *a, Onnx__ModelProto *m) {
    parameters(a, m, 2, 0);
}
static void parameter_and_default(po_arena *a, Onnx__ModelProto *m) {
    parameters(a, m, 1, 1);
}
static void default_twice(po_arena *a, Onnx__ModelProto *m) {
    parameters(a, m, 0, 2);
}
static void default_of_unknown_type(po_arena *a, Onnx__ModelProto *m) {
    parameters(a, m, 0, 1);
    m->functions[0]->attribute_proto[0]->type = (Onnx__AttributeProto__AttributeType)77;
}
static void default_refers(po_arena *a, Onnx__ModelProto *m) {
    Onnx__AttributeProto *p = tm_attr(a, "b", PO_ATTR_TENSOR);
    p->ref_attr_name = po_arena_strdup(a, "c");
    parameters(a, m, 0, 0);
    TM_ADD(a, m->functions[0], attribute_proto, p);
}
static void default_refers_to_nothing(po_arena *a, Onnx__ModelProto *m) {
    parameters(a, m, 0, 1);
    m->functions[0]->attribute_proto[0]->ref_attr_name = po_arena_strdup(a, "");
}
static void tensor_by_reference(po_arena *a, Onnx__ModelProto *m) {
    Onnx__AttributeProto *p = tm_attr(a, "value", PO_ATTR_TENSOR);
    p->ref_attr_name = po_arena_strdup(a, "b");
    parameters(a, m, 1, 0);
    Onnx__NodeProto *n = tm_node(a, "Constant", "", "c");
    TM_ADD(a, n, attribute, p);
    TM_ADD(a, m->functions[0], node, n);
}

/* --- calls: bad ones in the graph, in bodies, in functions --- */

static void not_imported(po_arena *a, Onnx__ModelProto *m) {
    function(a, m, "F", "Relu");
    tm_add_node(a, m, "F", "x", "p");
    tm_last_node(m)->domain = po_arena_strdup(a, "d");
}
static void many_outputs(po_arena *a, Onnx__ModelProto *m) {
    not_imported(a, m);
    tm_opset(a, m, "d", 1);
    TM_ADD(a, tm_last_node(m), output, po_arena_strdup(a, "q"));
}
/* A body with one call of F; it has one input more than F where that is asked for. */
static Onnx__GraphProto *calling(po_arena *a, bool wide) {
    Onnx__GraphProto *g = tm_graph(a, "b");
    TM_ADD(a, g, node, tm_node(a, "F", wide ? "i,i" : "i", "o"));
    g->node[0]->domain = po_arena_strdup(a, "d");
    TM_ADD(a, g, input, tm_info(a, "i", PO_F32, 2, two_three));
    return g;
}
static Onnx__NodeProto *with_bodies(po_arena *a, bool list, bool wide) {
    Onnx__NodeProto *n = tm_node(a, "Odd", "", "");
    Onnx__AttributeProto *p = tm_attr(a, "v", list ? PO_ATTR_GRAPHS : PO_ATTR_GRAPH);
    n->domain = po_arena_strdup(a, "d");
    if (list) {
        TM_ADD(a, p, graphs, calling(a, false));
        TM_ADD(a, p, graphs, calling(a, wide));
    } else {
        p->g = calling(a, wide);
    }
    TM_ADD(a, n, attribute, p);
    return n;
}
static void calls_in(po_arena *a, Onnx__ModelProto *m, bool list, bool wide) {
    function(a, m, "F", "Relu");
    tm_opset(a, m, "d", 1);
    TM_ADD(a, m->graph, node, with_bodies(a, list, wide));
}
static void wide_in_a_body(po_arena *a, Onnx__ModelProto *m) {
    calls_in(a, m, false, true);
}
static void wide_in_bodies(po_arena *a, Onnx__ModelProto *m) {
    calls_in(a, m, true, true);
}
static void good_in_bodies(po_arena *a, Onnx__ModelProto *m) {
    calls_in(a, m, false, false);
    TM_ADD(a, m->graph, node, with_bodies(a, true, false));
}
static void wide_never_called(po_arena *a, Onnx__ModelProto *m) {
    function(a, m, "F", "Relu");
    function(a, m, "G", "F");
    TM_ADD(a, m->functions[1]->node[0], input, po_arena_strdup(a, "i"));
    tm_opset(a, m, "d", 1);
}
static void wide_in_a_function(po_arena *a, Onnx__ModelProto *m) {
    wide_never_called(a, m);
    tm_add_node(a, m, "G", "x", "p");
    tm_last_node(m)->domain = po_arena_strdup(a, "d");
}
static void wide_in_a_function_body(po_arena *a, Onnx__ModelProto *m) {
    function(a, m, "F", "Relu");
    Onnx__FunctionProto *g = function(a, m, "G", "Relu");
    TM_ADD(a, g, node, with_bodies(a, true, true));
    tm_opset(a, m, "d", 1);
    tm_add_node(a, m, "G", "x", "p");
    tm_last_node(m)->domain = po_arena_strdup(a, "d");
}
static void called_and_calls_itself(po_arena *a, Onnx__ModelProto *m) {
    function(a, m, "F", "F");
    tm_opset(a, m, "d", 1);
    tm_add_node(a, m, "F", "x", "p");
    tm_last_node(m)->domain = po_arena_strdup(a, "d");
}
static void through_bodies(po_arena *a, Onnx__ModelProto *m) {
    Onnx__FunctionProto *f = function(a, m, "F", "Relu");
    TM_ADD(a, f, node, with_bodies(a, true, false));
}
static void bodies_in_a_function(po_arena *a, Onnx__ModelProto *m) {
    function(a, m, "F", "Relu");
    Onnx__FunctionProto *g = function(a, m, "G", "Relu");
    TM_ADD(a, g, node, with_bodies(a, true, false));
}

static const tm_case cases[] = {
    {"functions", good_function, NULL},
    {"function calls itself", calls_itself, "functions[0] 'F': the function calls itself"},
    {"functions call each other", calls_each_other, "the function calls itself"},
    {"through If", calls_through_if, "the function calls itself"},
    {"2^40 nodes", doubling, NULL},
    {"5,000 calls deep", deep_calls, "functions call one another too deep (limit 64)"},
    {"function twice", function_twice, "functions[1] 'F': the function is there twice"},
    {"function overloads", function_overloads, NULL},
    {"function, dangling input", function_dangling, "functions[0] 'F'/node[0]: input 0 is tensor"},
    {"function, dangling output", function_no_output, "nothing makes output 0 ('o')"},
    {"function, unknown reference", function_unknown_reference, "does not have ('beta')"},
    {"function, reference", function_reference, NULL},
    {"function, inputs twice", function_inputs_twice, "input 1 has no name or one that is taken"},
    {"function without name", no_name_function, "a function has no name"},
    {"without any name", no_name_at_all, "functions[0]: a function has no name"},
    {"function, nameless input", nameless_input, "input 0 has no name or one that is taken"},
    {"function, operators not imported", other_operators,
     "functions[0] 'F'/node[0]: the function does not import the operator set 'e'"},
    {"function of the standard domain", standard_domain,
     "graph/node[1]: the call of 'MyRelu' has too many inputs"},
    {"parameter twice", parameter_twice, "functions[0] 'F': attribute 'b' is there twice"},
    {"parameter with a default", parameter_and_default, "attribute 'b' is there twice"},
    {"default twice", default_twice, "functions[0] 'F': attribute 'b' is there twice"},
    {"default of unknown type", default_of_unknown_type,
     "functions[0] 'F'/attribute_proto[0] 'b': unknown attribute type (found 77"},
    {"default that refers", default_refers,
     "functions[0] 'F'/attribute_proto[0] 'b': a default refers to an attribute ('c')"},
    {"default that refers to nothing", default_refers_to_nothing, NULL},
    {"tensor by reference", tensor_by_reference, NULL},
    {"call, domain not imported", not_imported,
     "graph/node[1]: the operator set 'd' of a function is not imported"},
    {"call with an output too many", many_outputs,
     "the call of 'F' has too many inputs or outputs (found 1 and 2, limit 1 and 1)"},
    {"bad call in a body", wide_in_a_body, "graph/node[1]/node[0]: the call of 'F' has too many"},
    {"bad call in a list of bodies", wide_in_bodies, "graph/node[1]/node[0]: the call of 'F' has"},
    {"calls in bodies", good_in_bodies, NULL},
    {"called and calls itself", called_and_calls_itself, "the function calls itself"},
    {"bad call that is never made", wide_never_called, NULL},
    {"bad call in a function", wide_in_a_function,
     "functions[1] 'G'/node[0]: the call of 'F' has too many inputs or outputs (found 2 and 1"},
    {"bad call in a function's body", wide_in_a_function_body,
     "functions[1] 'G'/node[1]/node[0]: the call of 'F' has too many inputs or outputs"},
    {"through a list of bodies", through_bodies, "functions[0] 'F': the function calls itself"},
    {"bodies in a function", bodies_in_a_function, NULL},
};

static void test_cases(void **state) {
    (void)state;
    assert_int_equal(tm_run(cases, sizeof cases / sizeof cases[0]), 0);
}

static const po_node *maker(const po_graph *g, const char *name) {
    for (po_value_id i = 0; i < g->n_values; i++)
        if (strcmp(g->values[i].name, name) == 0)
            return po_graph_producer(g, i);
    return NULL;
}

/* A function that hands an input on, gives one value twice and leaves one out. */
static void odd_function(po_arena *a, Onnx__ModelProto *m) {
    tm_opset(a, m, "d", 1);
    Onnx__FunctionProto *f = tm_function(a, "d", "F", "i,j", "i,r,r,s");
    TM_ADD(a, f, node, tm_node(a, "Relu", "i", "r"));
    TM_ADD(a, f, node, tm_node(a, "Clip", "r,j", "s"));
    f->node[0]->name = po_arena_strdup(a, "inner");
    TM_ADD(a, m, functions, f);
    tm_add_node(a, m, "F", "y", "p,q,r,s");
    tm_last_node(m)->domain = po_arena_strdup(a, "d");
    tm_last_node(m)->name = po_arena_strdup(a, "call");
    static const char *const names[] = {"p", "q", "r", "s"};
    for (int i = 0; i < 4; i++)
        TM_ADD(a, m->graph, output, tm_info(a, names[i], PO_F32, 2, two_three));
}

static void test_inlining(void **state) {
    (void)state;
    po_ctx ctx;
    po_ctx_init(&ctx);
    po_arena *a = po_arena_create(&ctx);
    po_model *model = tm_imported(&ctx, a, odd_function);
    po_graph *g = po_graph_clone(&ctx, model->graph);
    uint32_t n;
    assert_int_equal(po_inline_functions(&ctx, g, NULL, &n), PO_OK);
    assert_int_equal(n, 1);
    assert_int_equal(po_graph_check(&ctx, g), PO_OK);
    assert_int_equal(g->n_live, 5);
    assert_string_equal(maker(g, "p")->op_type, "Identity");
    assert_string_equal(maker(g, "q")->op_type, "Relu");
    assert_string_equal(maker(g, "q")->name, "call/inner");
    assert_string_equal(maker(g, "r")->op_type, "Identity");
    assert_string_equal(maker(g, "s")->op_type, "Clip");
    assert_int_equal(maker(g, "s")->in[1], PO_NONE);
    assert_int_not_equal(maker(g, "s")->op, 0);
    po_graph_free(g);
    po_model_free(model);
    po_arena_free(a);
}

/* 2^40 nodes are not made: calls stay calls once the graph has grown enough. */
static void test_inlining_limit(void **state) {
    (void)state;
    po_ctx ctx;
    po_ctx_init(&ctx);
    po_arena *a = po_arena_create(&ctx);
    po_model *model = tm_imported(&ctx, a, doubling);
    po_graph *g = po_graph_clone(&ctx, model->graph);
    uint32_t n;
    assert_int_equal(po_inline_functions(&ctx, g, NULL, &n), PO_OK);
    assert_true(n > 1000);
    assert_true(g->n_live <= 200000);
    assert_int_equal(po_graph_check(&ctx, g), PO_OK);
    po_graph_free(g);
    po_model_free(model);
    po_arena_free(a);
}

/* Two functions of one name, told apart by what they hold, also where it is a callee that does. */
static void calls_relu(po_arena *a, Onnx__ModelProto *m) {
    good_function(a, m);
}
static void calls_tanh(po_arena *a, Onnx__ModelProto *m) {
    good_function(a, m);
    m->functions[1]->node[0]->op_type = po_arena_strdup(a, "Tanh");
}
static void calls_sparse(po_arena *a, Onnx__ModelProto *m, uint8_t last) {
    static const int64_t at[] = {1, 4};
    good_function(a, m);
    Onnx__NodeProto *n = tm_node(a, "Constant", "", "c");
    Onnx__AttributeProto *value = tm_attr(a, "sparse_value", PO_ATTR_SPARSE_TENSOR);
    value->sparse_tensor = tm_sparse(a, "s", 2, at, 6);
    value->sparse_tensor->values->raw_data.data[7] = last;
    n->n_input = 0;
    TM_ADD(a, n, attribute, value);
    TM_ADD(a, m->graph, node, n);
}
static void calls_sparse_0(po_arena *a, Onnx__ModelProto *m) {
    calls_sparse(a, m, 0);
}
static void calls_sparse_1(po_arena *a, Onnx__ModelProto *m) {
    calls_sparse(a, m, 0x40);
}

static void test_functions_are_their_contents(void **state) {
    (void)state;
    void (*const changes[])(po_arena *, Onnx__ModelProto *) = {calls_relu, calls_tanh,
                                                               calls_sparse_0, calls_sparse_1};
    enum { N = sizeof changes / sizeof *changes };
    po_ctx ctx;
    po_ctx_init(&ctx);
    po_arena *a = po_arena_create(&ctx);
    for (int i = 0; i < N; i++)
        for (int k = 0; k < N; k++) {
            po_model *x = tm_imported(&ctx, a, changes[i]), *y = tm_imported(&ctx, a, changes[k]);
            assert_int_equal(po_graph_equal(x->graph, y->graph), i == k);
            assert_int_equal(po_hash_equal(po_graph_hash(x->graph), po_graph_hash(y->graph)),
                             i == k);
            po_model_free(y);
            po_model_free(x);
        }
    po_arena_free(a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cases),
        cmocka_unit_test(test_inlining),
        cmocka_unit_test(test_inlining_limit),
        cmocka_unit_test(test_functions_are_their_contents),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
