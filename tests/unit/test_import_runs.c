/* Models that can never run are refused, those that may run are taken, and what runtimes forgive is
 * set right: docs/import.md. The other half of the net is tests/e2e/impossible.py. */
#include "unit.h"

#include "import/import.h"
#include "onnx_build.h"

static const int64_t two_three[] = {2, 3}, image[] = {1, 3, 8, 8}, filters[] = {4, 5, 3, 3};

/* --- what can never run --- */

static void transpose(po_arena *a, Onnx__ModelProto *m) {
    static const int64_t perm[] = {0, 5};
    tm_add_node(a, m, "Transpose", "x", "t");
    TM_ADD(a, tm_last_node(m), attribute, tm_attr_ints(a, "perm", 2, perm));
}
static void conv_inputs(po_arena *a, Onnx__ModelProto *m) {
    TM_ADD(a, m->graph, input, tm_info(a, "image", PO_F32, 4, image));
    TM_ADD(a, m->graph, initializer, tm_raw(a, "filters", PO_F32, 4, filters, 720));
}
static void conv(po_arena *a, Onnx__ModelProto *m) {
    conv_inputs(a, m);
    tm_add_node(a, m, "Conv", "image,filters", "c");
}
static void matmul(po_arena *a, Onnx__ModelProto *m) {
    tm_add_node(a, m, "MatMul", "x,w", "p");
}
static void matmul_far(po_arena *a, Onnx__ModelProto *m) {
    tm_add_node(a, m, "Relu", "y", "r");
    tm_add_node(a, m, "MatMul", "r,x", "p");
    /* What the model declares of r would fit: it is not so. */
    static const int64_t three_two[] = {3, 2};
    TM_ADD(a, m->graph, value_info, tm_info(a, "r", PO_F32, 2, three_two));
}
static void integer_input(po_arena *a, Onnx__ModelProto *m) {
    TM_ADD(a, m->graph, input, tm_info(a, "i", PO_I64, 2, two_three));
}
static void types_differ(po_arena *a, Onnx__ModelProto *m) {
    integer_input(a, m);
    tm_add_node(a, m, "Add", "x,i", "p");
}
static void type_not_taken(po_arena *a, Onnx__ModelProto *m) {
    integer_input(a, m);
    tm_add_node(a, m, "Exp", "i", "p");
}
static void type_not_given(po_arena *a, Onnx__ModelProto *m) {
    tm_add_node(a, m, "Cast", "x", "p");
    TM_ADD(a, tm_last_node(m), attribute, tm_attr_int(a, "to", PO_C64));
}
static void type_declared(po_arena *a, Onnx__ModelProto *m) {
    tm_add_node(a, m, "Relu", "x", "p");
    TM_ADD(a, m->graph, value_info, tm_info(a, "p", PO_I64, 2, two_three));
}
static void input_missing(po_arena *a, Onnx__ModelProto *m) {
    tm_add_node(a, m, "Clip", ",x", "p");
}
static void attribute_unknown(po_arena *a, Onnx__ModelProto *m) {
    tm_add_node(a, m, "Relu", "x", "p");
    TM_ADD(a, tm_last_node(m), attribute, tm_attr_int(a, "foo", 1));
}
static void input_untyped(po_arena *a, Onnx__ModelProto *m) {
    (void)a;
    m->graph->input[0]->type = NULL;
}
static void weight_of_other_type(po_arena *a, Onnx__ModelProto *m) {
    TM_ADD(a, m->graph, input, tm_info(a, "w", PO_F64, 2, two_three));
}
static void pooled(po_arena *a, Onnx__ModelProto *m, int64_t samples) {
    const int64_t none[] = {samples, 2, 0, 5};
    TM_ADD(a, m->graph, input, tm_info(a, "map", PO_F32, 4, none));
    tm_add_node(a, m, "GlobalAveragePool", "map", "p");
}
static void nothing_pooled(po_arena *a, Onnx__ModelProto *m) {
    pooled(a, m, 1);
}
static void call_wide(po_arena *a, Onnx__ModelProto *m) {
    Onnx__FunctionProto *f = tm_function(a, "d", "F", "a", "b");
    TM_ADD(a, f, node, tm_node(a, "Relu", "a", "b"));
    TM_ADD(a, m, functions, f);
    tm_opset(a, m, "d", 1);
    tm_add_node(a, m, "F", "x,x", "p");
    tm_last_node(m)->domain = po_arena_strdup(a, "d");
}

/* --- what may run --- */

static void no_samples(po_arena *a, Onnx__ModelProto *m) {
    pooled(a, m, 0);
}
static Onnx__TypeProto__Tensor *type_of_x(Onnx__ModelProto *m) {
    return m->graph->input[0]->type->tensor_type;
}
static void open_dims(po_arena *a, Onnx__ModelProto *m) {
    for (int i = 0; i < 2; i++) {
        Onnx__TensorShapeProto__Dimension *d = type_of_x(m)->shape->dim[i];
        d->value_case = ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM;
        d->dim_param = po_arena_strdup(a, i ? "n" : "m");
    }
    tm_add_node(a, m, "MatMul", "x,x", "p");
}
static void unranked(po_arena *a, Onnx__ModelProto *m) {
    type_of_x(m)->shape = NULL;
    transpose(a, m);
}
static void foreign(po_arena *a, Onnx__ModelProto *m) {
    matmul(a, m);
    tm_last_node(m)->domain = po_arena_strdup(a, "nobody.knows");
}
static void after_foreign(po_arena *a, Onnx__ModelProto *m) {
    tm_add_node(a, m, "Odd", "x", "o");
    tm_last_node(m)->domain = po_arena_strdup(a, "nobody.knows");
    TM_ADD(a, m->graph, value_info, tm_info(a, "o", PO_F32, 2, two_three));
    tm_add_node(a, m, "MatMul", "o,w", "p");
}
static void in_a_branch(po_arena *a, Onnx__ModelProto *m) {
    conv_inputs(a, m);
    TM_ADD(a, m->graph, input, tm_info(a, "c", PO_BOOL, 0, NULL));
    tm_add_node(a, m, "If", "c", "z");
    TM_ADD(a, tm_last_node(m), attribute,
           tm_branch(a, "then_branch", "Conv", "image,filters", "o"));
    TM_ADD(a, tm_last_node(m), attribute, tm_branch(a, "else_branch", "Neg", "x", "o"));
}
static void declared_dims(po_arena *a, Onnx__ModelProto *m) {
    static const int64_t other[] = {7, 7};
    tm_add_node(a, m, "Relu", "x", "p");
    tm_add_node(a, m, "Add", "p,w", "q");
    TM_ADD(a, m->graph, value_info, tm_info(a, "p", PO_F32, 2, other));
}
static void newer_opset(po_arena *a, Onnx__ModelProto *m) {
    attribute_unknown(a, m);
    m->opset_import[0]->version = 99;
}

static const tm_case cases[] = {
    {"Transpose", transpose, "graph/node[1]: node '' (Transpose): perm is not a permutation"},
    {"Conv", conv, "graph/node[1]: node '' (Conv): "},
    {"MatMul", matmul, "graph/node[1]: node '' (MatMul): "},
    {"MatMul of what nodes make", matmul_far, "graph/node[2]: node '' (MatMul): "},
    {"types that differ", types_differ, "(Add): element types differ (f32 and i64 of input 1)"},
    {"a type that is not taken", type_not_taken, "(Exp): input 0 has element type i64, which"},
    {"a type that is not given", type_not_given, "(Cast): output 0 would have element type c64"},
    {"a type declared wrong", type_declared, "(Relu): output 'p' is declared as i64, and is f32"},
    {"an input missing", input_missing, "(Clip): input 0 is missing"},
    {"an unknown attribute", attribute_unknown, "the operator has no attribute 'foo' at opset 17"},
    {"an input without type", input_untyped, "graph/input[0] 'x': input 'x' has no type"},
    {"a weight of another type", weight_of_other_type, "tensor 'w' is declared with another type"},
    {"an empty map pooled", nothing_pooled, "there is nothing in its input to pool"},
    {"a call with an input too many", call_wide, "the call of 'F' has too many inputs"},
    {"open dims", open_dims, NULL},
    {"no samples to pool", no_samples, NULL},
    {"no rank", unranked, NULL},
    {"another domain", foreign, NULL},
    {"after another domain", after_foreign, NULL},
    {"in a branch", in_a_branch, NULL},
    {"dims declared wrong", declared_dims, NULL},
    {"an opset newer than the tables", newer_opset, NULL},
};

static void test_cases(void **state) {
    (void)state;
    assert_int_equal(tm_run(cases, sizeof cases / sizeof cases[0]), 0);
}

/* --- what is set right --- */

static void out_of_order(po_arena *a, Onnx__ModelProto *m) {
    tm_add_node(a, m, "Relu", "q", "r");
    tm_add_node(a, m, "Neg", "p", "q");
    tm_add_node(a, m, "Abs", "x", "p");
    tm_add_node(a, m, "Exp", "x", "e");
}

/* Stable: what is in order stays where it is. */
static void test_sorted(void **state) {
    static const char *const want[] = {"Add", "Abs", "Neg", "Relu", "Exp"};
    (void)state;
    tm_assert_operators(out_of_order, want, 5);
}

static void named_alike(po_arena *a, Onnx__ModelProto *m) {
    for (int i = 0; i < 3; i++) {
        tm_add_node(a, m, "Relu", "x", i == 0 ? "p" : i == 1 ? "q" : "r");
        tm_last_node(m)->name = po_arena_strdup(a, i < 2 ? "n" : "n_1");
    }
}

static void test_node_names(void **state) {
    (void)state;
    po_ctx ctx;
    po_ctx_init(&ctx);
    po_arena *a = po_arena_create(&ctx);
    po_model *model = tm_imported(&ctx, a, named_alike);
    const po_node *n = model->graph->nodes;
    assert_string_equal(n[1].name, "n");
    assert_string_not_equal(n[2].name, "n");
    assert_string_not_equal(n[3].name, n[2].name);
    po_model_free(model);
    po_arena_free(a);
}

static void body_hides(po_arena *a, Onnx__ModelProto *m) {
    TM_ADD(a, m->graph, input, tm_info(a, "c", PO_BOOL, 0, NULL));
    tm_add_node(a, m, "If", "c", "z");
    TM_ADD(a, tm_last_node(m), attribute, tm_branch(a, "then_branch", "Relu", "x", "y"));
    TM_ADD(a, tm_last_node(m), attribute, tm_branch(a, "else_branch", "Neg", "w", "x"));
}

static void test_hidden_names(void **state) {
    (void)state;
    po_ctx ctx;
    po_ctx_init(&ctx);
    po_arena *a = po_arena_create(&ctx);
    po_model *model = tm_imported(&ctx, a, body_hides);
    const po_node *n = &model->graph->nodes[1];
    for (int i = 0; i < 2; i++) {
        const po_graph *body = n->attr[i].u.g;
        const po_node *inner = &body->nodes[0];
        assert_int_not_equal(body->values[inner->in[0]].outer, PO_NONE);
        assert_string_not_equal(body->values[inner->out[0]].name, i ? "x" : "y");
        assert_int_equal(body->outputs[0], inner->out[0]);
    }
    po_model_free(model);
    po_arena_free(a);
}

static void initialiser_twice(po_arena *a, Onnx__ModelProto *m) {
    Onnx__TensorProto *t = tm_raw(a, "w", PO_F32, 2, two_three, 24);
    ((float *)(void *)t->raw_data.data)[0] = 5;
    TM_ADD(a, m->graph, initializer, t);
    tm_opset(a, m, "ai.onnx", 17);
}

static void test_twice(void **state) {
    (void)state;
    po_ctx ctx;
    po_ctx_init(&ctx);
    po_arena *a = po_arena_create(&ctx);
    po_model *model = tm_imported(&ctx, a, initialiser_twice);
    assert_int_equal(model->n_opsets, 1);
    assert_int_equal(model->graph->n_initializers, 1);
    const po_tensor *t = model->graph->values[model->graph->initializers[0]].constant;
    assert_true(po_tensor_f64(t, 0) == 5);
    po_model_free(model);
    po_arena_free(a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cases),      cmocka_unit_test(test_sorted),
        cmocka_unit_test(test_node_names), cmocka_unit_test(test_hidden_names),
        cmocka_unit_test(test_twice),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
