/* The hostile list of docs/import.md: graphs, nodes, attributes, versions. */
#include "unit.h"

#include "import/import.h"
#include "onnx_build.h"
#include "test_paths.h"

static const int64_t two_three[] = {2, 3};

static void cycle(po_arena *a, Onnx__ModelProto *m) {
    tm_add_node(a, m, "Add", "x,q", "p");
    tm_add_node(a, m, "Add", "x,p", "q");
}
static void self_loop(po_arena *a, Onnx__ModelProto *m) {
    tm_add_node(a, m, "Add", "x,p", "p");
}
static void unsorted(po_arena *a, Onnx__ModelProto *m) {
    tm_add_node(a, m, "Relu", "p", "q");
    tm_add_node(a, m, "Relu", "x", "p");
}
static void made_twice(po_arena *a, Onnx__ModelProto *m) {
    tm_add_node(a, m, "Relu", "x", "y");
}
static void input_made(po_arena *a, Onnx__ModelProto *m) {
    tm_add_node(a, m, "Relu", "y", "x");
}
static void initializer_made(po_arena *a, Onnx__ModelProto *m) {
    tm_add_node(a, m, "Relu", "y", "w");
}
static void one_node_twice(po_arena *a, Onnx__ModelProto *m) {
    tm_add_node(a, m, "Split", "x", "p,p");
}
static void inputs_twice(po_arena *a, Onnx__ModelProto *m) {
    TM_ADD(a, m->graph, input, tm_info(a, "x", PO_F32, 2, two_three));
}
static void initializer_twice(po_arena *a, Onnx__ModelProto *m) {
    TM_ADD(a, m->graph, initializer, tm_raw(a, "w", PO_F32, 2, two_three, 24));
}
static void dangling_input(po_arena *a, Onnx__ModelProto *m) {
    tm_add_node(a, m, "Relu", "nothing", "p");
}
static void dangling_output(po_arena *a, Onnx__ModelProto *m) {
    TM_ADD(a, m->graph, output, tm_info(a, "nothing", PO_F32, 2, two_three));
}
static void nameless_input(po_arena *a, Onnx__ModelProto *m) {
    TM_ADD(a, m->graph, input, tm_info(a, "", PO_F32, 2, two_three));
}
static void nameless_initializer(po_arena *a, Onnx__ModelProto *m) {
    TM_ADD(a, m->graph, initializer, tm_raw(a, "", PO_F32, 2, two_three, 24));
}
static void optional_inputs(po_arena *a, Onnx__ModelProto *m) {
    tm_add_node(a, m, "Clip", "x,,w", "p");
    tm_add_node(a, m, "Dropout", "x", "q,");
}
static void input_and_initializer(po_arena *a, Onnx__ModelProto *m) {
    TM_ADD(a, m->graph, input, tm_info(a, "w", PO_F32, 2, two_three));
}
static void output_twice(po_arena *a, Onnx__ModelProto *m) {
    TM_ADD(a, m->graph, output, tm_info(a, "y", PO_F32, 2, two_three));
    TM_ADD(a, m->graph, output, tm_info(a, "x", PO_F32, 2, two_three));
    TM_ADD(a, m->graph, output, tm_info(a, "w", PO_F32, 2, two_three));
}
static void no_op_type(po_arena *a, Onnx__ModelProto *m) {
    tm_add_node(a, m, "", "x", "p");
}

/* --- bodies --- */

static void conditional(po_arena *a, Onnx__ModelProto *m, const char *in, const char *out) {
    TM_ADD(a, m->graph, input, tm_info(a, "c", PO_BOOL, 0, NULL));
    tm_add_node(a, m, "If", "c", "z");
    TM_ADD(a, tm_last_node(m), attribute, tm_branch(a, "then_branch", "Relu", in, out));
    TM_ADD(a, tm_last_node(m), attribute, tm_branch(a, "else_branch", "Neg", in, out));
}
static void good_bodies(po_arena *a, Onnx__ModelProto *m) {
    conditional(a, m, "x", "o"); /* both bodies call theirs o */
}
static void body_hides(po_arena *a, Onnx__ModelProto *m) {
    conditional(a, m, "x", "y");
}
static void body_uses_later(po_arena *a, Onnx__ModelProto *m) {
    conditional(a, m, "later", "o");
    tm_add_node(a, m, "Relu", "x", "later");
}
static void body_cycle(po_arena *a, Onnx__ModelProto *m) {
    conditional(a, m, "later", "o");
    tm_add_node(a, m, "Relu", "z", "later");
}
static void body_input_hides(po_arena *a, Onnx__ModelProto *m) {
    conditional(a, m, "x", "o");
    TM_ADD(a, tm_last_node(m)->attribute[0]->g, input, tm_info(a, "x", PO_F32, 2, two_three));
}
static void deep_bodies(po_arena *a, Onnx__ModelProto *m) {
    Onnx__NodeProto *n = tm_node(a, "Relu", "x", "o");
    for (int i = 0; i < 33; i++) {
        Onnx__NodeProto *outer = tm_node(a, "Deep", "", "");
        outer->domain = po_arena_strdup(a, "d");
        Onnx__AttributeProto *p = tm_attr(a, "body", PO_ATTR_GRAPH);
        p->g = tm_graph(a, "b");
        TM_ADD(a, p->g, node, n);
        TM_ADD(a, outer, attribute, p);
        n = outer;
    }
    TM_ADD(a, m->graph, node, n);
}
static void long_loop(po_arena *a, Onnx__ModelProto *m) {
    /* Never executed: 2^63 - 1 trips. */
    Onnx__TensorProto *trips = tm_raw(a, "trips", PO_I64, 0, NULL, 8);
    memset(trips->raw_data.data, 0xff, 7);
    trips->raw_data.data[7] = 0x7f;
    TM_ADD(a, m->graph, initializer, trips);
    tm_add_node(a, m, "Loop", "trips,,x", "z");
    Onnx__AttributeProto *p = tm_attr(a, "body", PO_ATTR_GRAPH);
    p->g = tm_graph(a, "b");
    TM_ADD(a, p->g, input, tm_info(a, "i", PO_I64, 0, NULL));
    TM_ADD(a, p->g, input, tm_info(a, "cond", PO_BOOL, 0, NULL));
    TM_ADD(a, p->g, input, tm_info(a, "v", PO_F32, 2, two_three));
    TM_ADD(a, p->g, node, tm_node(a, "Relu", "v", "r"));
    TM_ADD(a, p->g, node, tm_node(a, "Identity", "cond", "on"));
    TM_ADD(a, p->g, output, tm_info(a, "on", PO_BOOL, 0, NULL));
    TM_ADD(a, p->g, output, tm_info(a, "r", PO_F32, 2, two_three));
    TM_ADD(a, tm_last_node(m), attribute, p);
}

/* --- versions --- */

static void ir_zero(po_arena *a, Onnx__ModelProto *m) {
    (void)a;
    m->ir_version = 0;
}
static void ir_none(po_arena *a, Onnx__ModelProto *m) {
    (void)a;
    m->has_ir_version = 0;
}
static void ir_negative(po_arena *a, Onnx__ModelProto *m) {
    (void)a;
    m->ir_version = -1;
}
static void ir_future(po_arena *a, Onnx__ModelProto *m) {
    (void)a;
    m->ir_version = 1000;
}
static void no_opset(po_arena *a, Onnx__ModelProto *m) {
    (void)a;
    m->n_opset_import = 0;
}
static void old_no_opset(po_arena *a, Onnx__ModelProto *m) {
    (void)a;
    m->n_opset_import = 0;
    m->ir_version = 2;
}
static void double_opset(po_arena *a, Onnx__ModelProto *m) {
    tm_opset(a, m, "", 17);
}
static void two_opsets(po_arena *a, Onnx__ModelProto *m) {
    tm_opset(a, m, "", 16);
}
static void double_opset_alias(po_arena *a, Onnx__ModelProto *m) {
    tm_opset(a, m, "ai.onnx", 17);
}
static void opset_zero(po_arena *a, Onnx__ModelProto *m) {
    (void)a;
    m->opset_import[0]->version = 0;
}
static void only_other_opset(po_arena *a, Onnx__ModelProto *m) {
    m->opset_import[0]->domain = po_arena_strdup(a, "other");
}
static void unknown_operator(po_arena *a, Onnx__ModelProto *m) {
    tm_add_node(a, m, "Frobnicate", "x,,w", "p,,q");
    tm_add_node(a, m, "Conv", "p", "r");
    tm_last_node(m)->domain = po_arena_strdup(a, "nobody.knows");
    TM_ADD(a, tm_last_node(m), attribute, tm_attr_int(a, "group", -7));
}

/* --- attributes --- */

static void attr_type_field(po_arena *a, Onnx__ModelProto *m) {
    Onnx__AttributeProto *p = tm_attr(a, "alpha", PO_ATTR_INT);
    p->has_f = 1;
    TM_ADD(a, m->graph->node[0], attribute, p);
}
static void attr_two_fields(po_arena *a, Onnx__ModelProto *m) {
    Onnx__AttributeProto *p = tm_attr_int(a, "alpha", 1);
    p->has_f = 1;
    TM_ADD(a, m->graph->node[0], attribute, p);
}
static void attr_no_type_two(po_arena *a, Onnx__ModelProto *m) {
    attr_two_fields(a, m);
    m->graph->node[0]->attribute[0]->has_type = 0;
}
static void attr_no_type(po_arena *a, Onnx__ModelProto *m) {
    tm_add_node(a, m, "Softmax", "x", "p");
    TM_ADD(a, tm_last_node(m), attribute, tm_attr_int(a, "axis", 1));
    tm_last_node(m)->attribute[0]->has_type = 0;
}
static void attr_unknown_type(po_arena *a, Onnx__ModelProto *m) {
    TM_ADD(a, m->graph->node[0], attribute, tm_attr(a, "alpha", 77));
}
static void attr_no_value(po_arena *a, Onnx__ModelProto *m) {
    TM_ADD(a, m->graph->node[0], attribute, tm_attr(a, "alpha", PO_ATTR_TENSOR));
}
static void attr_twice(po_arena *a, Onnx__ModelProto *m) {
    TM_ADD(a, m->graph->node[0], attribute, tm_attr_int(a, "alpha", 1));
    TM_ADD(a, m->graph->node[0], attribute, tm_attr_int(a, "alpha", 1));
}
static void many_attrs(po_arena *a, Onnx__ModelProto *m) {
    m->graph->node[0]->domain = po_arena_strdup(a, "d");
    for (int i = 0; i < 40; i++)
        TM_ADD(a, m->graph->node[0], attribute,
               tm_attr_int(a, po_arena_printf(a, "a%d", i == 39 ? 3 : i), 1));
}
static void attr_no_name(po_arena *a, Onnx__ModelProto *m) {
    TM_ADD(a, m->graph->node[0], attribute, tm_attr_int(a, "", 1));
}
static void reference_outside(po_arena *a, Onnx__ModelProto *m) {
    Onnx__AttributeProto *p = tm_attr(a, "alpha", PO_ATTR_INT);
    p->ref_attr_name = po_arena_strdup(a, "beta");
    TM_ADD(a, m->graph->node[0], attribute, p);
}

/* A node with one list or number out of bounds. */
static void window(po_arena *a, Onnx__ModelProto *m, const char *attr, int64_t value) {
    static const int64_t image[] = {1, 1, 8, 8};
    TM_ADD(a, m->graph, input, tm_info(a, "image", PO_F32, 4, image));
    tm_add_node(a, m, "MaxPool", "image", "p");
    int64_t good[] = {2, 2}, all[] = {value, value, value, value};
    if (strcmp(attr, "kernel_shape") != 0)
        TM_ADD(a, tm_last_node(m), attribute, tm_attr_ints(a, "kernel_shape", 2, good));
    TM_ADD(a, tm_last_node(m), attribute,
           tm_attr_ints(a, attr, strcmp(attr, "pads") == 0 ? 4 : 2, all));
}
static void stride_zero(po_arena *a, Onnx__ModelProto *m) {
    window(a, m, "strides", 0);
}
static void stride_negative(po_arena *a, Onnx__ModelProto *m) {
    window(a, m, "strides", -1);
}
static void stride_least(po_arena *a, Onnx__ModelProto *m) {
    window(a, m, "strides", INT64_MIN);
}
static void pad_negative(po_arena *a, Onnx__ModelProto *m) {
    window(a, m, "pads", -1);
}
static void pad_least(po_arena *a, Onnx__ModelProto *m) {
    window(a, m, "pads", INT64_MIN);
}
static void pad_zero(po_arena *a, Onnx__ModelProto *m) {
    window(a, m, "pads", 0);
}
static void kernel_zero(po_arena *a, Onnx__ModelProto *m) {
    window(a, m, "kernel_shape", 0);
}
static void kernel_least(po_arena *a, Onnx__ModelProto *m) {
    window(a, m, "kernel_shape", INT64_MIN);
}
static void dilation_zero(po_arena *a, Onnx__ModelProto *m) {
    window(a, m, "dilations", 0);
}
static void one_int(po_arena *a, Onnx__ModelProto *m, const char *op, const char *in,
                    const char *attr, int64_t value) {
    tm_add_node(a, m, op, in, "p");
    TM_ADD(a, tm_last_node(m), attribute, tm_attr_int(a, attr, value));
}
static void group_zero(po_arena *a, Onnx__ModelProto *m) {
    one_int(a, m, "Conv", "x,w", "group", 0);
}
static void group_least(po_arena *a, Onnx__ModelProto *m) {
    one_int(a, m, "Conv", "x,w", "group", INT64_MIN);
}
static void axis_least(po_arena *a, Onnx__ModelProto *m) {
    one_int(a, m, "Softmax", "x", "axis", INT64_MIN);
}
static void axis_most(po_arena *a, Onnx__ModelProto *m) {
    one_int(a, m, "Concat", "x,w", "axis", INT64_MAX);
}
static void axis_negative(po_arena *a, Onnx__ModelProto *m) {
    one_int(a, m, "Softmax", "x", "axis", -1);
}
static void reshape(po_arena *a, Onnx__ModelProto *m, int64_t d0, int64_t d1) {
    int64_t n = 2, dims[] = {d0, d1};
    Onnx__TensorProto *t = tm_raw(a, "shape", PO_I64, 1, &n, 16);
    memcpy(t->raw_data.data, dims, 16);
    TM_ADD(a, m->graph, initializer, t);
    tm_add_node(a, m, "Reshape", "x,shape", "p");
}
static void reshape_two(po_arena *a, Onnx__ModelProto *m) {
    reshape(a, m, -1, -1);
}
static void reshape_negative(po_arena *a, Onnx__ModelProto *m) {
    reshape(a, m, -5, 2);
}
static void reshape_good(po_arena *a, Onnx__ModelProto *m) {
    reshape(a, m, 0, -1);
}

/* Nodes that would take the machine down where they were run: kept, never computed. */
static void explosions(po_arena *a, Onnx__ModelProto *m) {
    int64_t n = 2, dims[] = {INT64_C(1) << 40, INT64_C(1) << 40};
    Onnx__TensorProto *t = tm_raw(a, "huge", PO_I64, 1, &n, 16);
    memcpy(t->raw_data.data, dims, 16);
    TM_ADD(a, m->graph, initializer, t);
    tm_add_node(a, m, "ConstantOfShape", "huge", "e1");
    tm_add_node(a, m, "Tile", "x,huge", "e2");
    static const int64_t one[] = {1, 1};
    TM_ADD(a, m->graph, input, tm_info(a, "one", PO_F32, 2, one));
    tm_add_node(a, m, "Expand", "one,huge", "e3");
    tm_add_node(a, m, "Resize", "x,,,huge", "e4");
}
static void random_nodes(po_arena *a, Onnx__ModelProto *m) {
    tm_add_node(a, m, "RandomNormalLike", "x", "r1");
    tm_add_node(a, m, "RandomNormalLike", "x", "r2");
}

/* --- types --- */

static Onnx__TensorShapeProto__Dimension *dim(Onnx__ModelProto *m) {
    return m->graph->input[0]->type->tensor_type->shape->dim[0];
}
static void dim_minus_one(po_arena *a, Onnx__ModelProto *m) {
    (void)a;
    dim(m)->dim_value = -1;
}
static void dim_minus_two(po_arena *a, Onnx__ModelProto *m) {
    (void)a;
    dim(m)->dim_value = -2;
}
static void unknown_element(po_arena *a, Onnx__ModelProto *m) {
    (void)a;
    m->graph->input[0]->type->tensor_type->elem_type = 200;
}
static void unknown_element_unused(po_arena *a, Onnx__ModelProto *m) {
    TM_ADD(a, m->graph, value_info, tm_info(a, "nobody", PO_F32, 2, two_three));
    m->graph->value_info[0]->type->tensor_type->elem_type = 200;
}
static void hostile_names(po_arena *a, Onnx__ModelProto *m) {
    char *big = po_arena_alloc(a, (1 << 20) + 1);
    memset(big, 'n', 1 << 20);
    big[1 << 20] = '\0';
    Onnx__NodeProto *n = tm_node(a, "Relu", "x", "p");
    n->name = po_arena_strdup(a, "\"'\n\x1b[31m<script>*/ ?\?/ \\");
    n->output[0] = big;
    TM_ADD(a, m->graph, node, n);
    Onnx__NodeProto *next = tm_node(a, "Relu", "x", "q");
    next->input[0] = big;
    TM_ADD(a, m->graph, node, next);
}
static void hostile_name_refused(po_arena *a, Onnx__ModelProto *m) {
    hostile_names(a, m);
    m->graph->node[1]->input[0] = po_arena_strdup(a, "\x1b[2J\n");
}

static const tm_case cases[] = {
    {"cycle", cycle, "graph/node[1]: input 1 is tensor 'q', which nothing before it makes"},
    {"self loop", self_loop, "input 1 is tensor 'p', which nothing before it makes"},
    {"not sorted", unsorted, NULL},
    {"name made twice", made_twice, "graph/node[1]: tensor 'y' is made twice"},
    {"input made", input_made, "tensor 'x' is made twice"},
    {"initialiser made", initializer_made, "tensor 'w' is made twice"},
    {"one node, twice", one_node_twice, "tensor 'p' is made twice"},
    {"duplicate inputs", inputs_twice, "graph/input[1] 'x': tensor 'x' is made twice"},
    {"duplicate initialisers", initializer_twice, NULL},
    {"dangling input", dangling_input, "tensor 'nothing', which nothing before it makes"},
    {"dangling output", dangling_output, "graph/output[1] 'nothing': nothing makes this output"},
    {"nameless input", nameless_input, "a graph input has no name"},
    {"nameless initialiser", nameless_initializer, NULL},
    {"empty optional names", optional_inputs, NULL},
    {"initialiser that is an input", input_and_initializer, NULL},
    {"outputs of every kind", output_twice, NULL},
    {"no operator", no_op_type, "graph/node[1]: a node has no operator type"},
    {"bodies", good_bodies, NULL},
    {"body hides a name", body_hides, NULL},
    {"body's input hides a name", body_input_hides, NULL},
    {"body uses what comes later", body_uses_later, NULL},
    {"a cycle through a body", body_cycle, "'later', which nothing before it makes"},
    {"33 bodies", deep_bodies, "model: graph/node[1]"},
    {"loop of 2^63 trips", long_loop, NULL},
    {"IR version 0", ir_zero, NULL},
    {"IR version -1", ir_negative, "unknown IR version (found -1"},
    {"no IR version", ir_none, "there is no IR version"},
    {"future IR version", ir_future, "unknown IR version (found 1000"},
    {"no opset", no_opset, "no operator set is imported"},
    {"no opset in an old model", old_no_opset, NULL},
    {"double opset", double_opset, NULL},
    {"double opset, two versions", two_opsets,
     "opset_import[1]: the operator set is imported in two"},
    {"double opset by its alias", double_opset_alias, NULL},
    {"opset 0", opset_zero, "unknown operator set version (found 0"},
    {"opset of another domain", only_other_opset, "the standard operator set is not imported"},
    {"unknown operator, domain", unknown_operator, NULL},
    {"attribute type not its field", attr_type_field, "type and its field differ (found type 2)"},
    {"attribute with two fields", attr_two_fields, "type and its field differ"},
    {"attribute without type, two", attr_no_type_two, "holds values of several types"},
    {"attribute without type", attr_no_type, NULL},
    {"attribute of unknown type", attr_unknown_type, "unknown attribute type (found 77"},
    {"attribute without value", attr_no_value, "attribute[0] 'alpha': the attribute has no value"},
    {"attribute twice", attr_twice, "attribute[1] 'alpha': the attribute is there twice"},
    {"one of 40 attributes twice", many_attrs, "attribute[39] 'a3': the attribute is there twice"},
    {"attribute without name", attr_no_name, "an attribute has no name"},
    {"reference outside", reference_outside, "refers to the attribute 'beta' of a function, outsi"},
    {"stride 0", stride_zero, "attribute 'strides' is out of range (found 0, limit 1"},
    {"stride -1", stride_negative, "attribute 'strides' is out of range (found -1"},
    {"stride least", stride_least,
     "attribute 'strides' is out of range (found -9223372036854775808"},
    {"pad -1", pad_negative, "attribute 'pads' is out of range (found -1"},
    {"pad least", pad_least, "attribute 'pads' is out of range"},
    {"pad 0", pad_zero, NULL},
    {"kernel 0", kernel_zero, "attribute 'kernel_shape' is out of range (found 0"},
    {"kernel least", kernel_least, "attribute 'kernel_shape' is out of range"},
    {"dilation 0", dilation_zero, "attribute 'dilations' is out of range (found 0"},
    {"group 0", group_zero, "attribute 'group' is out of range (found 0"},
    {"group least", group_least, "attribute 'group' is out of range"},
    {"axis least", axis_least, "attribute 'axis' is out of range"},
    {"axis most", axis_most, "attribute 'axis' is out of range"},
    {"axis -1", axis_negative, NULL},
    {"two -1 in Reshape", reshape_two, "more than one dim to reshape to is -1 (found 2, limit 1)"},
    {"-5 in Reshape", reshape_negative, "dim 0 to reshape to is negative (found -5"},
    {"0 and -1 in Reshape", reshape_good, NULL},
    {"explosions", explosions, NULL},
    {"random nodes", random_nodes, NULL},
    {"dim -1", dim_minus_one, NULL},
    {"dim -2", dim_minus_two, "graph/input[0] 'x': dim 0 is negative (found -2"},
    {"unknown element type", unknown_element,
     "graph/input[0] 'x': unknown element type (found 200"},
    {"the same, unused", unknown_element_unused, "graph/value_info[0] 'nobody': unknown element"},
    {"hostile names", hostile_names, NULL},
    {"hostile name in a message", hostile_name_refused, "'?[2J?'"},
};

static void test_cases(void **state) {
    (void)state;
    assert_int_equal(tm_run(cases, sizeof cases / sizeof cases[0]), 0);
}

/* What callers may override is no constant. */
static void test_overridable(void **state) {
    (void)state;
    po_ctx ctx;
    po_ctx_init(&ctx);
    po_arena *a = po_arena_create(&ctx);
    po_model *model = tm_imported(&ctx, a, input_and_initializer);
    const po_graph *g = model->graph;
    assert_int_equal(g->n_inputs, 2);
    assert_int_equal(g->n_initializers, 1);
    assert_int_equal(g->inputs[1], g->initializers[0]);
    assert_non_null(g->values[g->inputs[1]].constant);
    assert_null(po_graph_constant(g, g->inputs[1]));
    po_model_free(model);
    po_arena_free(a);
}

static void named_dims(po_arena *a, Onnx__ModelProto *m) {
    Onnx__TensorShapeProto *s = m->graph->input[0]->type->tensor_type->shape;
    for (int i = 0; i < 2; i++) {
        s->dim[i]->value_case = ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM;
        s->dim[i]->dim_param = po_arena_strdup(a, i ? "?" : "N");
    }
}

/* "?" is a dim that nobody knows: no two of them are known to be equal. */
static void test_dim_names(void **state) {
    (void)state;
    po_ctx ctx;
    po_ctx_init(&ctx);
    po_arena *a = po_arena_create(&ctx);
    po_model *model = tm_imported(&ctx, a, named_dims);
    const po_type *t = &model->graph->values[model->graph->inputs[0]].type;
    assert_string_equal(t->dims[0].symbol, "N");
    assert_null(t->dims[1].symbol);
    assert_false(po_dim_same(t->dims[1], t->dims[1]));
    po_model_free(model);
    po_arena_free(a);
}

/* Bodies capture what they use, once, and keep their own names. */
static void test_bodies(void **state) {
    (void)state;
    po_ctx ctx;
    po_ctx_init(&ctx);
    po_arena *a = po_arena_create(&ctx);
    po_model *model = tm_imported(&ctx, a, good_bodies);
    const po_graph *g = model->graph;
    const po_node *n = &g->nodes[1];
    assert_int_equal(n->n_attr, 2);
    for (int i = 0; i < 2; i++) {
        const po_graph *body = n->attr[i].u.g;
        assert_int_equal(body->owner, 1);
        assert_ptr_equal(body->parent, g);
        const po_value *captured = &body->values[body->nodes[0].in[0]];
        assert_int_equal(captured->outer, g->inputs[0]);
        assert_string_equal(body->values[body->nodes[0].out[0]].name, "o");
    }
    po_model_free(model);
    po_arena_free(a);
}

static void test_missing_file(void **state) {
    (void)state;
    po_ctx ctx;
    po_ctx_init(&ctx);
    po_model *model;
    assert_int_equal(po_import_file(&ctx, "/nowhere/m.onnx", &model), PO_IO);
    assert_non_null(strstr(ctx.error.message, "/nowhere/m.onnx: cannot be opened"));
    po_ctx_clear(&ctx);
    assert_int_equal(po_import_file(&ctx, "/", &model), PO_BAD_INPUT);
    assert_non_null(strstr(ctx.error.message, "is a folder"));
    po_ctx_clear(&ctx);
    assert_int_equal(po_import_file(&ctx, "/dev/null", &model), PO_BAD_INPUT);
    assert_null(ctx.arenas);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cases),        cmocka_unit_test(test_overridable),
        cmocka_unit_test(test_dim_names),    cmocka_unit_test(test_bodies),
        cmocka_unit_test(test_missing_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
