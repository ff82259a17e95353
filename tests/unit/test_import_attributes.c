/* Attributes of every type, what is wrong with one, and what Constant nodes hold. */
#include "unit.h"

#include "import/import.h"
#include "onnx_build.h"

static const int64_t two_three[] = {2, 3};

/* An attribute of that type on a node that nobody knows. */
static Onnx__AttributeProto *odd(po_arena *a, Onnx__ModelProto *m, int type) {
    tm_add_node(a, m, "Odd", "x", "p");
    tm_last_node(m)->domain = po_arena_strdup(a, "nobody.knows");
    Onnx__AttributeProto *p = tm_attr(a, "v", type);
    TM_ADD(a, tm_last_node(m), attribute, p);
    return p;
}

/* --- what is wrong --- */

static void negative_type(po_arena *a, Onnx__ModelProto *m) {
    odd(a, m, -1);
}
static void no_name(po_arena *a, Onnx__ModelProto *m) {
    odd(a, m, PO_ATTR_INT)->name = NULL;
}
static void value_and_reference(po_arena *a, Onnx__ModelProto *m) {
    tm_add_node(a, m, "Softmax", "x", "p");
    TM_ADD(a, tm_last_node(m), attribute, tm_attr_int(a, "axis", 1));
    tm_last_node(m)->attribute[0]->ref_attr_name = po_arena_strdup(a, "beta");
}
static void empty_reference(po_arena *a, Onnx__ModelProto *m) {
    value_and_reference(a, m);
    tm_last_node(m)->attribute[0]->ref_attr_name = po_arena_strdup(a, "");
}
static Onnx__AttributeProto *bodies(po_arena *a, Onnx__ModelProto *m) {
    Onnx__AttributeProto *p = odd(a, m, PO_ATTR_GRAPHS);
    for (int i = 0; i < 2; i++) {
        TM_ADD(a, p, graphs, tm_graph(a, "b"));
        TM_ADD(a, p->graphs[i], node, tm_node(a, i ? "Neg" : "Relu", "x", "o"));
        TM_ADD(a, p->graphs[i], output, tm_info(a, "o", PO_F32, 2, two_three));
    }
    return p;
}
static void good_bodies(po_arena *a, Onnx__ModelProto *m) {
    bodies(a, m)->graphs[1]->name = NULL;
}
static void broken_body(po_arena *a, Onnx__ModelProto *m) {
    bodies(a, m)->graphs[1]->node[0]->op_type = po_arena_strdup(a, "");
}
static void broken_tensors(po_arena *a, Onnx__ModelProto *m) {
    Onnx__AttributeProto *p = odd(a, m, PO_ATTR_TENSORS);
    TM_ADD(a, p, tensors, tm_raw(a, "t", PO_F32, 2, two_three, 24));
    TM_ADD(a, p, tensors, tm_raw(a, "t", PO_F32, 2, two_three, 4));
}
static void broken_sparse(po_arena *a, Onnx__ModelProto *m) {
    Onnx__AttributeProto *p = odd(a, m, PO_ATTR_SPARSE_TENSORS);
    TM_ADD(a, p, sparse_tensors, tm_sparse(a, "s", 1, &two_three[1], 3));
}
static void no_body(po_arena *a, Onnx__ModelProto *m) {
    odd(a, m, PO_ATTR_GRAPH);
}
static void no_type_message(po_arena *a, Onnx__ModelProto *m) {
    odd(a, m, PO_ATTR_TYPE);
}
static void constant_of(po_arena *a, Onnx__ModelProto *m, const char *name, int type) {
    tm_add_node(a, m, "Constant", "", "c");
    TM_ADD(a, tm_last_node(m), attribute, tm_attr(a, name, type));
}
static void constant_two_outputs(po_arena *a, Onnx__ModelProto *m) {
    constant_of(a, m, "value_int", PO_ATTR_INT);
    TM_ADD(a, tm_last_node(m), output, po_arena_strdup(a, "d"));
}
static void constant_of_nothing(po_arena *a, Onnx__ModelProto *m) {
    constant_of(a, m, "value_int", PO_ATTR_INT);
    tm_last_node(m)->n_attribute = 0;
}
static void constant_to_nobody(po_arena *a, Onnx__ModelProto *m) {
    constant_of(a, m, "value_int", PO_ATTR_INT);
    tm_last_node(m)->output[0] = po_arena_strdup(a, "");
}

static const tm_case cases[] = {
    {"a type of -1", negative_type,
     "graph/node[1]/attribute[0] 'v': unknown attribute type (found -1, limit 14)"},
    {"no name at all", no_name, "graph/node[1]/attribute[0]: an attribute has no name"},
    {"value and reference", value_and_reference,
     "attribute[0] 'axis': the attribute has both a value and a reference to 'beta'"},
    {"an empty reference", empty_reference, NULL},
    {"a list of bodies", good_bodies, NULL},
    {"a broken body of a list", broken_body,
     "graph/node[1]/attribute[0] 'v'/graph[1]/node[0]: a node has no operator type"},
    {"a broken tensor of a list", broken_tensors,
     "graph/node[1]/attribute[0] 'v'/tensors[1] 't': raw_data does not fit type and dims"},
    {"a broken sparse tensor of a list", broken_sparse,
     "graph/node[1]/attribute[0] 'v'/sparse_tensors[0]: sparse index 0 is out of range"},
    {"no body", no_body, "attribute[0] 'v': the attribute has no value (type 5)"},
    {"no type message", no_type_message, "attribute[0] 'v': the attribute has no value (type 13)"},
    {"a constant with two outputs", constant_two_outputs,
     "graph/node[1]: node '' (Constant): wrong number of outputs (found 2)"},
    {"a constant for nobody", constant_to_nobody, NULL},
    {"a constant of nothing", constant_of_nothing, NULL},
};

static void test_cases(void **state) {
    (void)state;
    assert_int_equal(tm_run(cases, sizeof cases / sizeof cases[0]), 0);
}

/* --- what comes out --- */

static const po_node *last_node(const po_model *model) {
    return &model->graph->nodes[model->graph->n_nodes - 1];
}

static char *bytes_of(po_arena *a, ProtobufCBinaryData *data, const char *text) {
    char *copy = po_arena_strdup(a, text);
    *data = (ProtobufCBinaryData){strlen(text), (uint8_t *)copy};
    return copy;
}

/* Gives the attribute a value of its type. */
static void fill(po_arena *a, Onnx__AttributeProto *p) {
    static const int64_t at[] = {1, 4};
    const po_type type = {.kind = PO_TYPE_TENSOR, .dtype = PO_I8};
    switch ((int)p->type) {
    case PO_ATTR_FLOAT:
        p->has_f = 1;
        p->f = 1.5f;
        break;
    case PO_ATTR_INT:
        p->has_i = 1;
        p->i = -7;
        break;
    case PO_ATTR_STRING:
        p->has_s = 1;
        bytes_of(a, &p->s, "text");
        break;
    case PO_ATTR_TENSOR:
        p->t = tm_raw(a, "t", PO_F32, 2, two_three, 24);
        break;
    case PO_ATTR_GRAPH:
        p->g = tm_graph(a, "body");
        break;
    case PO_ATTR_FLOATS:
        p->n_floats = 2;
        p->floats = po_arena_memdup(a, (float[]){1, 2}, 2 * sizeof(float));
        break;
    case PO_ATTR_INTS:
        p->n_ints = 2;
        p->ints = po_arena_memdup(a, at, sizeof at);
        break;
    case PO_ATTR_STRINGS:
        p->n_strings = 2;
        p->strings = PO_NEW_N(a, ProtobufCBinaryData, 2);
        bytes_of(a, &p->strings[0], "one");
        bytes_of(a, &p->strings[1], "");
        break;
    case PO_ATTR_TENSORS:
        TM_ADD(a, p, tensors, tm_raw(a, "t", PO_F32, 2, two_three, 24));
        TM_ADD(a, p, tensors, tm_raw(a, "u", PO_I8, 2, two_three, 6));
        break;
    case PO_ATTR_GRAPHS:
        TM_ADD(a, p, graphs, tm_graph(a, "first"));
        TM_ADD(a, p, graphs, tm_graph(a, "second"));
        break;
    case PO_ATTR_SPARSE_TENSOR:
        p->sparse_tensor = tm_sparse(a, "s", 2, at, 6);
        break;
    case PO_ATTR_SPARSE_TENSORS:
        TM_ADD(a, p, sparse_tensors, tm_sparse(a, "s", 2, at, 6));
        break;
    case PO_ATTR_TYPE:
        p->tp = po_type_to_proto(a, &type);
        break;
    case PO_ATTR_TYPES:
        TM_ADD(a, p, type_protos, po_type_to_proto(a, &type));
        break;
    default:
        break;
    }
}

static void check_value(const po_attr *p) {
    bool list = p->kind >= PO_ATTR_FLOATS && p->kind <= PO_ATTR_GRAPHS;
    assert_int_equal(p->n, list ? 2 : 1);
    switch (p->kind) {
    case PO_ATTR_FLOAT:
        assert_true(p->u.f == 1.5f);
        break;
    case PO_ATTR_INT:
        assert_int_equal(p->u.i, -7);
        break;
    case PO_ATTR_STRING:
        assert_int_equal(p->u.s.size, 4);
        assert_memory_equal(p->u.s.data, "text", 4);
        break;
    case PO_ATTR_TENSOR:
        assert_int_equal(p->u.t->count, 6);
        break;
    case PO_ATTR_GRAPH:
        assert_string_equal(p->u.g->name, "body");
        break;
    case PO_ATTR_FLOATS:
        assert_true(p->u.floats[1] == 2);
        break;
    case PO_ATTR_INTS:
        assert_int_equal(p->u.ints[1], 4);
        break;
    case PO_ATTR_STRINGS:
        assert_memory_equal(p->u.strings[0].data, "one", 3);
        assert_int_equal(p->u.strings[1].size, 0);
        break;
    case PO_ATTR_TENSORS:
        assert_int_equal(p->u.tensors[0]->dtype, PO_F32);
        assert_int_equal(p->u.tensors[1]->dtype, PO_I8);
        break;
    case PO_ATTR_GRAPHS:
        assert_string_equal(p->u.graphs[0]->name, "first");
        assert_string_equal(p->u.graphs[1]->name, "second");
        break;
    default: /* what they hold is known by its hash */
        assert_false(po_hash_equal(p->u.verbatim, (po_hash){0, 0}));
        break;
    }
}

static int wanted;
static bool said;

static void one_of_each(po_arena *a, Onnx__ModelProto *m) {
    Onnx__AttributeProto *p = odd(a, m, wanted);
    fill(a, p);
    p->has_type = said;
}

/* Of every type, which old models do not say. */
static void test_types(void **state) {
    (void)state;
    for (wanted = PO_ATTR_FLOAT; wanted <= PO_ATTR_TYPES; wanted++)
        for (int k = 0; k < 2; k++) {
            po_ctx ctx;
            po_ctx_init(&ctx);
            po_arena *a = po_arena_create(&ctx);
            said = k;
            po_model *model = tm_imported(&ctx, a, one_of_each);
            const po_node *n = last_node(model);
            assert_int_equal(n->n_attr, 1);
            assert_int_equal(n->attr[0].kind, wanted);
            check_value(&n->attr[0]);
            const Onnx__AttributeProto *p = n->attr[0].origin;
            assert_true(p->has_type);
            assert_int_equal(p->type, wanted);
            assert_int_equal(po_graph_check(&ctx, model->graph), PO_OK);
            po_model_free(model);
            po_arena_free(a);
        }
}

static void nothing_said(po_arena *a, Onnx__ModelProto *m) {
    odd(a, m, PO_ATTR_FLOAT);
    TM_ADD(a, tm_last_node(m), attribute, tm_attr(a, "i", PO_ATTR_INT));
    TM_ADD(a, tm_last_node(m), attribute, tm_attr(a, "s", PO_ATTR_STRING));
    TM_ADD(a, tm_last_node(m), attribute, tm_attr(a, "u", PO_ATTR_UNDEFINED));
    tm_last_node(m)->attribute[3]->has_type = 0;
}

/* protobuf's defaults: a field that is not there is zero. */
static void test_absent(void **state) {
    (void)state;
    po_ctx ctx;
    po_ctx_init(&ctx);
    po_arena *a = po_arena_create(&ctx);
    po_model *model = tm_imported(&ctx, a, nothing_said);
    const po_attr *p = last_node(model)->attr;
    assert_true(p[0].u.f == 0);
    assert_int_equal(p[1].u.i, 0);
    assert_int_equal(p[2].u.s.size, 0);
    assert_int_equal(p[3].kind, PO_ATTR_UNDEFINED);
    po_model_free(model);
    po_arena_free(a);
}

static void unnamed_body(po_arena *a, Onnx__ModelProto *m) {
    Onnx__AttributeProto *p = odd(a, m, PO_ATTR_GRAPH);
    p->g = tm_graph(a, "");
    p->g->name = NULL;
    TM_ADD(a, p->g, node, tm_node(a, "Conv", "x,w", "o"));
    TM_ADD(a, p->g->node[0], attribute, tm_attr_int(a, "group", 0));
}

/* Messages name a body where it has a name. */
static void test_unnamed_body(void **state) {
    (void)state;
    static const tm_case body = {"a body without name", unnamed_body,
                                 "model: graph/node[0]: attribute 'group' is out of range"};
    assert_int_equal(tm_run(&body, 1), 0);
}

/* --- Constant --- */

typedef struct constant {
    const char *attr;
    int kind;
    po_dtype dtype; /* PO_DT_NONE: not taken as a constant */
    uint32_t rank;
    int64_t count;
    const char *domain;
    const char *want; /* the refusal; NULL: taken */
} constant;

static const constant constants[] = {
    {"value", PO_ATTR_TENSOR, PO_F32, 2, 6, "", NULL},
    {"value_int", PO_ATTR_INT, PO_I64, 0, 1, "", NULL},
    {"value_ints", PO_ATTR_INTS, PO_I64, 1, 2, "", NULL},
    {"value_float", PO_ATTR_FLOAT, PO_F32, 0, 1, "ai.onnx", NULL},
    {"value_floats", PO_ATTR_FLOATS, PO_F32, 1, 2, "", NULL},
    {"value_string", PO_ATTR_STRING, PO_STR, 0, 1, "", NULL},
    {"value_strings", PO_ATTR_STRINGS, PO_STR, 1, 2, "ai.onnx", NULL},
    {"sparse_value", PO_ATTR_SPARSE_TENSOR, PO_DT_NONE, 0, 0, "", NULL},
    {"value_int", PO_ATTR_INT, PO_DT_NONE, 0, 0, "nobody.knows", NULL},
    {"value", PO_ATTR_FLOAT, PO_DT_NONE, 0, 0, "", "attribute 'value' has the wrong type (found 1"},
    {"value_int", PO_ATTR_FLOAT, PO_DT_NONE, 0, 0, "", "'value_int' has the wrong type"},
    {"value_ints", PO_ATTR_INT, PO_DT_NONE, 0, 0, "", "'value_ints' has the wrong type"},
    {"value_float", PO_ATTR_INT, PO_DT_NONE, 0, 0, "", "'value_float' has the wrong type"},
    {"value_floats", PO_ATTR_FLOAT, PO_DT_NONE, 0, 0, "", "'value_floats' has the wrong type"},
    {"value_string", PO_ATTR_INT, PO_DT_NONE, 0, 0, "", "'value_string' has the wrong type"},
    {"value_strings", PO_ATTR_STRING, PO_DT_NONE, 0, 0, "", "'value_strings' has the wrong type"},
};

static const constant *row;

static void one_constant(po_arena *a, Onnx__ModelProto *m) {
    constant_of(a, m, row->attr, row->kind);
    tm_last_node(m)->domain = po_arena_strdup(a, row->domain);
    fill(a, tm_last_node(m)->attribute[0]);
}

static void check_constant(void) {
    po_ctx ctx;
    po_ctx_init(&ctx);
    po_arena *a = po_arena_create(&ctx);
    po_model *model = tm_imported(&ctx, a, one_constant);
    const po_value *v = &model->graph->values[last_node(model)->out[0]];
    const po_tensor *t = v->constant;
    if (row->dtype == PO_DT_NONE) {
        assert_null(t);
    } else {
        assert_non_null(t);
        assert_int_equal(t->dtype, row->dtype);
        assert_int_equal(t->rank, row->rank);
        assert_int_equal(t->count, row->count);
        assert_int_equal(v->type.kind, PO_TYPE_TENSOR);
        assert_int_equal(v->type.dtype, row->dtype);
        assert_int_equal(t->size, (size_t)t->count * (po_dtype_bits(t->dtype) / 8));
    }
    if (row->dtype == PO_I64)
        assert_int_equal(po_tensor_int(t, t->count - 1), row->rank ? 4 : -7);
    if (row->dtype == PO_STR)
        assert_memory_equal(((const po_bytes *)t->data)->data, row->rank ? "one" : "text", 3);
    if (row->kind == PO_ATTR_FLOATS)
        assert_true(po_tensor_f64(t, 1) == 2);
    if (row->dtype == PO_F32 && row->kind == PO_ATTR_FLOAT)
        assert_true(po_tensor_f64(t, 0) == 1.5);
    po_model_free(model);
    po_arena_free(a);
}

static void test_constants(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof constants / sizeof constants[0]; i++) {
        row = &constants[i];
        const tm_case taken = {row->attr, one_constant, row->want};
        assert_int_equal(tm_run(&taken, 1), 0);
        if (!row->want)
            check_constant();
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cases),     cmocka_unit_test(test_types),
        cmocka_unit_test(test_absent),    cmocka_unit_test(test_unnamed_body),
        cmocka_unit_test(test_constants),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
