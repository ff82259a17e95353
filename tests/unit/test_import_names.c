/* Names, depths and orders: what a graph and its bodies may call things, and how nodes are sorted.
 */
#include "unit.h"

#include "import/import.h"
#include "onnx_build.h"

static const int64_t two_three[] = {2, 3};

static char *text(po_arena *a, const char *t) {
    return po_arena_strdup(a, t);
}

/* --- headers --- */

static void opset_too_new(po_arena *a, Onnx__ModelProto *m) {
    (void)a;
    m->opset_import[0]->version = INT64_C(1) << 33;
}
static Onnx__GraphProto *training(po_arena *a, Onnx__ModelProto *m, const char *op) {
    Onnx__TrainingInfoProto *t =
        PO_PROTO_NEW(a, Onnx__TrainingInfoProto, ONNX__TRAINING_INFO_PROTO__INIT);
    t->algorithm = tm_graph(a, "t");
    TM_ADD(a, t->algorithm, node, tm_node(a, "Relu", "x", "t0"));
    TM_ADD(a, t->algorithm, node, tm_node(a, op, "t0", "t1"));
    TM_ADD(a, m, training_info, t);
    return t->algorithm;
}
static void good_training(po_arena *a, Onnx__ModelProto *m) {
    training(a, m, "Neg");
}
static void training_empty_operator(po_arena *a, Onnx__ModelProto *m) {
    training(a, m, "");
}
static void training_no_operator(po_arena *a, Onnx__ModelProto *m) {
    training(a, m, "Neg")->node[1]->op_type = NULL;
}

/* --- names --- */

static void nameless_infos(po_arena *a, Onnx__ModelProto *m) {
    TM_ADD(a, m->graph, value_info, tm_info(a, "", PO_F32, 2, two_three));
    TM_ADD(a, m->graph, value_info, tm_info(a, "", PO_F32, 2, two_three));
    m->graph->value_info[1]->name = NULL;
}
static void nameless_output(po_arena *a, Onnx__ModelProto *m) {
    TM_ADD(a, m->graph, output, tm_info(a, "", PO_F32, 2, two_three));
}
static void output_without_element_type(po_arena *a, Onnx__ModelProto *m) {
    TM_ADD(a, m->graph, output, tm_info(a, "x", PO_DT_NONE, 2, two_three));
}
static void reshape(po_arena *a, Onnx__ModelProto *m, int dtype, int64_t n) {
    Onnx__TensorProto *t = tm_raw(a, "shape", dtype, 1, &n, (size_t)n * (dtype == PO_I64 ? 8 : 4));
    TM_ADD(a, m->graph, initializer, t);
    tm_add_node(a, m, "Reshape", "x,shape", "p");
}
static void reshape_far(po_arena *a, Onnx__ModelProto *m) {
    static const int64_t many[40] = {-5};
    reshape(a, m, PO_I32, 1);
    TM_ADD(a, tm_last_node(m), attribute, tm_attr_ints(a, "shape", 40, many));
}
static void reshape_by_other_type(po_arena *a, Onnx__ModelProto *m) {
    reshape(a, m, PO_I32, 1);
}
static void reshape_to_many(po_arena *a, Onnx__ModelProto *m) {
    reshape(a, m, PO_I64, 65);
}
static void old_reshape(po_arena *a, Onnx__ModelProto *m, int64_t d0) {
    const int64_t dims[] = {d0, -1};
    m->opset_import[0]->version = 1;
    m->graph->node[0] = tm_node(a, "Reshape", "x", "y");
    TM_ADD(a, m->graph->node[0], attribute, tm_attr_ints(a, "shape", 2, dims));
    m->graph->output[0]->type->tensor_type->shape = NULL;
}
static void old_reshape_good(po_arena *a, Onnx__ModelProto *m) {
    old_reshape(a, m, 3);
}
static void old_reshape_two(po_arena *a, Onnx__ModelProto *m) {
    old_reshape(a, m, -1);
}

/* --- depths --- */

/* A node with so many bodies within one another, the innermost of them empty: a message deeper and
 * the scanner would refuse it. */
static void deep(po_arena *a, Onnx__ModelProto *m, int depth) {
    Onnx__GraphProto *body = tm_graph(a, "innermost");
    Onnx__NodeProto *n = NULL;
    for (int i = 0; i < depth; i++) {
        Onnx__AttributeProto *p = tm_attr(a, "body", PO_ATTR_GRAPH);
        p->g = body;
        n = tm_node(a, "Deep", "", "");
        n->domain = text(a, "nobody.knows");
        TM_ADD(a, n, attribute, p);
        body = tm_graph(a, "b");
        TM_ADD(a, body, node, n);
    }
    TM_ADD(a, m->graph, node, n);
}
static void deep_enough(po_arena *a, Onnx__ModelProto *m) {
    deep(a, m, 32);
}
static void too_deep(po_arena *a, Onnx__ModelProto *m) {
    deep(a, m, 33);
}
static void too_deep_unsorted(po_arena *a, Onnx__ModelProto *m) {
    tm_add_node(a, m, "Relu", "later", "q");
    tm_add_node(a, m, "Relu", "x", "later");
    deep(a, m, 33);
}

/* --- unsorted, with bodies --- */

/* A node that holds bodies and stands before what they use; the body has an output and an input. */
static Onnx__GraphProto *early_body(po_arena *a, Onnx__ModelProto *m) {
    tm_add_node(a, m, "Odd", "", "z");
    tm_last_node(m)->domain = text(a, "nobody.knows");
    Onnx__AttributeProto *p = tm_branch(a, "body", "Add", "late,i", "o");
    TM_ADD(a, p->g, input, tm_info(a, "i", PO_F32, 2, two_three));
    TM_ADD(a, tm_last_node(m), attribute, p);
    tm_add_node(a, m, "Relu", "x", "late");
    return p->g;
}
static void nameless_body_output(po_arena *a, Onnx__ModelProto *m) {
    tm_add_node(a, m, "Neg", "late", "n"); /* sorting starts before the body is looked at */
    early_body(a, m)->output[0]->name = NULL;
}
static void empty_body_output(po_arena *a, Onnx__ModelProto *m) {
    early_body(a, m)->output[0]->name = text(a, "");
}
static void nameless_body_input(po_arena *a, Onnx__ModelProto *m) {
    early_body(a, m)->input[0]->name = NULL;
}
static void nameless_body_initializer(po_arena *a, Onnx__ModelProto *m) {
    Onnx__GraphProto *g = early_body(a, m);
    TM_ADD(a, g, initializer, tm_raw(a, NULL, PO_F32, 2, two_three, 24));
}
static void empty_outputs(po_arena *a, Onnx__ModelProto *m) {
    early_body(a, m);
    TM_ADD(a, tm_last_node(m), output, text(a, ""));
    tm_last_node(m)->domain = text(a, "nobody.knows");
}

static const tm_case cases[] = {
    {"opset beyond 2^31", opset_too_new,
     "opset_import[0]: unknown operator set version (found 8589934592, limit 1 to 2147483647)"},
    {"training", good_training, NULL},
    {"training, empty operator", training_empty_operator,
     "training_info[0]: a node has no operator type"},
    {"training, no operator", training_no_operator,
     "training_info[0]: a node has no operator type"},
    {"declarations without name", nameless_infos, NULL},
    {"an output without name", nameless_output, "graph/output[1]: a graph output has no name"},
    {"an output without element type", output_without_element_type,
     "graph/output[1] 'x': tensor 'x' has no element type"},
    {"shape and attribute", reshape_far, "graph/node[1]: "},
    {"shape of another type", reshape_by_other_type,
     "graph/node[1]: node '' (Reshape): input 1 has element type i32"},
    {"65 dims", reshape_to_many, "graph/node[1]: node '' (Reshape): "},
    {"Reshape of opset 1", old_reshape_good, NULL},
    {"the same with two -1", old_reshape_two,
     "graph/node[0]: more than one dim to reshape to is -1 (found 2, limit 1)"},
    {"32 bodies", deep_enough, NULL},
    {"33 bodies", too_deep, "bodies are nested too deep (found 33, limit 32)"},
    {"33 bodies, not sorted", too_deep_unsorted, "bodies are nested too deep (found 33, limit 32)"},
    {"body output without name", nameless_body_output,
     "graph/node[3]/attribute[0] 'body'/output[0]: a graph output has no name"},
    {"empty body output", empty_body_output, "'body'/output[0]: a graph output has no name"},
    {"body input without name", nameless_body_input, "'body'/input[0]: a graph input has no name"},
    {"body initialiser without name", nameless_body_initializer, NULL},
    {"an output left out", empty_outputs, NULL},
};

static void test_cases(void **state) {
    (void)state;
    assert_int_equal(tm_run(cases, sizeof cases / sizeof cases[0]), 0);
}

/* Whose bodies need what another node makes; `hold` of the bodies' own is not looked for outside.
 */
static void needs_in_bodies(po_arena *a, Onnx__ModelProto *m) {
    tm_add_node(a, m, "Odd", "", "z");
    tm_last_node(m)->domain = text(a, "nobody.knows");
    Onnx__AttributeProto *p = tm_attr(a, "bodies", PO_ATTR_GRAPHS);
    for (int i = 0; i < 2; i++) {
        Onnx__GraphProto *g = tm_graph(a, "b");
        TM_ADD(a, g, initializer, tm_raw(a, "hold", PO_F32, 2, two_three, 24));
        TM_ADD(a, g, node, tm_node(a, "Add", i ? "second,hold" : "first,hold", "o"));
        TM_ADD(a, g, output, tm_info(a, "o", PO_F32, 2, two_three));
        TM_ADD(a, p, graphs, g);
    }
    TM_ADD(a, tm_last_node(m), attribute, p);
    tm_add_node(a, m, "Relu", "z", "hold");
    tm_add_node(a, m, "Abs", "x", "second");
    tm_add_node(a, m, "Exp", "x", "first");
}

static void test_sorted(void **state) {
    static const char *const want[] = {"Add", "Exp", "Abs", "Odd", "Relu"};
    (void)state;
    tm_assert_operators(needs_in_bodies, want, 5);
}

static void named_alike(po_arena *a, Onnx__ModelProto *m) {
    static const char *const names[] = {"n_1", "n", "n", "n_2"};
    for (int i = 0; i < 4; i++) {
        tm_add_node(a, m, "Relu", "x", po_arena_printf(a, "p%d", i));
        tm_last_node(m)->name = text(a, names[i]);
    }
}

/* A new name is none that an earlier node has. */
static void test_node_names(void **state) {
    static const char *const want[] = {"n_1", "n", "n_2", "n_2_3"};
    (void)state;
    po_ctx ctx;
    po_ctx_init(&ctx);
    po_arena *a = po_arena_create(&ctx);
    po_model *model = tm_imported(&ctx, a, named_alike);
    for (int i = 0; i < 4; i++)
        assert_string_equal(model->graph->nodes[1 + i].name, want[i]);
    po_model_free(model);
    po_arena_free(a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cases),
        cmocka_unit_test(test_sorted),
        cmocka_unit_test(test_node_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
