/* The hostile list of docs/import.md: tensors. */
#include "unit.h"

#include "import/import.h"
#include "onnx_build.h"

#include <math.h>

static const int64_t two_three[] = {2, 3};

static Onnx__TensorProto *weight(Onnx__ModelProto *m) {
    return m->graph->initializer[0];
}

static void negative_dim(po_arena *a, Onnx__ModelProto *m) {
    (void)a;
    weight(m)->dims[0] = -2;
}
static void product_wraps(po_arena *a, Onnx__ModelProto *m) {
    (void)a;
    weight(m)->dims[0] = weight(m)->dims[1] = INT64_C(1) << 32;
}
static void size_wraps(po_arena *a, Onnx__ModelProto *m) {
    (void)a;
    weight(m)->dims[0] = INT64_C(1) << 60;
    weight(m)->dims[1] = 4;
}
static void size_wraps_bits(po_arena *a, Onnx__ModelProto *m) {
    (void)a;
    weight(m)->dims[0] = INT64_C(1) << 61;
    weight(m)->dims[1] = 1;
}
static void little_data(po_arena *a, Onnx__ModelProto *m) {
    (void)a;
    weight(m)->dims[0] = 1000000;
    weight(m)->raw_data.len = 4;
}
static void much_data(po_arena *a, Onnx__ModelProto *m) {
    (void)a;
    weight(m)->dims[0] = 1;
}
static void both_data(po_arena *a, Onnx__ModelProto *m) {
    weight(m)->n_float_data = 6;
    weight(m)->float_data = PO_NEW_N(a, float, 6);
}
static void two_typed(po_arena *a, Onnx__ModelProto *m) {
    both_data(a, m);
    weight(m)->has_raw_data = 0;
    weight(m)->n_int64_data = 6;
    weight(m)->int64_data = PO_NEW_N(a, int64_t, 6);
}
static void wrong_field(po_arena *a, Onnx__ModelProto *m) {
    weight(m)->has_raw_data = 0;
    weight(m)->n_int32_data = 6;
    weight(m)->int32_data = PO_NEW_N(a, int32_t, 6);
}
static void few_typed(po_arena *a, Onnx__ModelProto *m) {
    weight(m)->has_raw_data = 0;
    weight(m)->n_float_data = 5;
    weight(m)->float_data = PO_NEW_N(a, float, 5);
}
static void no_data(po_arena *a, Onnx__ModelProto *m) {
    (void)a;
    weight(m)->has_raw_data = 0;
}
static void zero_dim(po_arena *a, Onnx__ModelProto *m) {
    int64_t dims[] = {0, 3};
    TM_ADD(a, m->graph, initializer, tm_raw(a, "e", PO_F32, 2, dims, 0));
    TM_ADD(a, m->graph, initializer, tm_tensor(a, "f", PO_F32, 2, dims));
    int64_t large[] = {INT64_MAX, 0, INT64_MAX};
    TM_ADD(a, m->graph, initializer, tm_tensor(a, "h", PO_F32, 3, large));
}
static void high_rank(po_arena *a, Onnx__ModelProto *m) {
    weight(m)->n_dims = 100000;
    weight(m)->dims = PO_NEW_N(a, int64_t, 100000);
    for (int i = 0; i < 100000; i++)
        weight(m)->dims[i] = 1;
}
static void high_rank_type(po_arena *a, Onnx__ModelProto *m) {
    int64_t *dims = PO_NEW_N(a, int64_t, 100000);
    m->graph->input[0] = tm_info(a, "x", PO_F32, 100000, dims);
}
static void unknown_type(po_arena *a, Onnx__ModelProto *m) {
    (void)a;
    weight(m)->data_type = 99;
}
static void negative_type(po_arena *a, Onnx__ModelProto *m) {
    (void)a;
    weight(m)->data_type = -1;
}
static void no_type(po_arena *a, Onnx__ModelProto *m) {
    (void)a;
    weight(m)->has_data_type = 0;
}
static void unknown_location(po_arena *a, Onnx__ModelProto *m) {
    (void)a;
    weight(m)->has_data_location = 1;
    weight(m)->data_location = (Onnx__TensorProto__DataLocation)7;
}
static void int4_odd(po_arena *a, Onnx__ModelProto *m) {
    int64_t n = 5;
    TM_ADD(a, m->graph, initializer, tm_raw(a, "q", PO_I4, 1, &n, 3));
    Onnx__TensorProto *t = tm_tensor(a, "r", PO_U4, 1, &n);
    t->n_int32_data = 3;
    t->int32_data = PO_NEW_N(a, int32_t, 3);
    TM_ADD(a, m->graph, initializer, t);
}
static void int4_short(po_arena *a, Onnx__ModelProto *m) {
    int64_t n = 5;
    TM_ADD(a, m->graph, initializer, tm_raw(a, "q", PO_I4, 1, &n, 2));
}
static void raw_strings(po_arena *a, Onnx__ModelProto *m) {
    int64_t n = 1;
    TM_ADD(a, m->graph, initializer, tm_raw(a, "s", PO_STR, 1, &n, 16));
}
static void good_strings(po_arena *a, Onnx__ModelProto *m) {
    int64_t n = 1;
    Onnx__TensorProto *t = tm_tensor(a, "s", PO_STR, 1, &n);
    t->n_string_data = 1;
    t->string_data = PO_NEW(a, ProtobufCBinaryData);
    *t->string_data = (ProtobufCBinaryData){3, (uint8_t *)po_arena_memdup(a, "a\0b", 3)};
    TM_ADD(a, m->graph, initializer, t);
}
static void segment(po_arena *a, Onnx__ModelProto *m) {
    weight(m)->segment =
        PO_PROTO_NEW(a, Onnx__TensorProto__Segment, ONNX__TENSOR_PROTO__SEGMENT__INIT);
}
static void in_attribute(po_arena *a, Onnx__ModelProto *m) {
    Onnx__NodeProto *n = tm_node(a, "Constant", "", "c");
    Onnx__AttributeProto *t = tm_attr(a, "value", PO_ATTR_TENSOR);
    t->t = tm_raw(a, "deep", PO_F32, 2, two_three, 4);
    TM_ADD(a, n, attribute, t);
    TM_ADD(a, m->graph, node, n);
}
static void in_function(po_arena *a, Onnx__ModelProto *m) {
    Onnx__FunctionProto *f = tm_function(a, "d", "F", "i", "o");
    Onnx__NodeProto *n = tm_node(a, "Constant", "", "o");
    Onnx__AttributeProto *t = tm_attr(a, "value", PO_ATTR_TENSOR);
    t->t = tm_raw(a, "deep", PO_F32, 2, two_three, 4);
    TM_ADD(a, n, attribute, t);
    TM_ADD(a, f, node, n);
    TM_ADD(a, m, functions, f);
}
static void in_training(po_arena *a, Onnx__ModelProto *m) {
    Onnx__TrainingInfoProto *t =
        PO_PROTO_NEW(a, Onnx__TrainingInfoProto, ONNX__TRAINING_INFO_PROTO__INIT);
    t->initialization = tm_graph(a, "t");
    TM_ADD(a, t->initialization, initializer, tm_raw(a, "deep", PO_F32, 2, two_three, 4));
    TM_ADD(a, m, training_info, t);
}

static void sparse(po_arena *a, Onnx__ModelProto *m, int64_t n, const int64_t *indices) {
    TM_ADD(a, m->graph, sparse_initializer, tm_sparse(a, "s", n, indices, 10));
}
static void sparse_good(po_arena *a, Onnx__ModelProto *m) {
    sparse(a, m, 3, (int64_t[]){0, 4, 9});
    TM_ADD(a, m->graph, node, tm_node(a, "Relu", "s", "u"));
}
static void sparse_unsorted(po_arena *a, Onnx__ModelProto *m) {
    sparse(a, m, 3, (int64_t[]){4, 0, 9});
}
static void sparse_twice(po_arena *a, Onnx__ModelProto *m) {
    sparse(a, m, 3, (int64_t[]){0, 4, 4});
}
static void sparse_outside(po_arena *a, Onnx__ModelProto *m) {
    sparse(a, m, 3, (int64_t[]){0, 4, 10});
}
static void sparse_negative(po_arena *a, Onnx__ModelProto *m) {
    sparse(a, m, 1, (int64_t[]){-1});
}
static void sparse_no_indices(po_arena *a, Onnx__ModelProto *m) {
    sparse(a, m, 1, (int64_t[]){1});
    m->graph->sparse_initializer[0]->indices = NULL;
}
static void sparse_count(po_arena *a, Onnx__ModelProto *m) {
    sparse(a, m, 2, (int64_t[]){1, 2});
    int64_t n = 1;
    m->graph->sparse_initializer[0]->indices = tm_raw(a, NULL, PO_I64, 1, &n, 8);
}
static void sparse_two_dims(po_arena *a, Onnx__ModelProto *m) {
    sparse(a, m, 2, (int64_t[]){1, 2});
    Onnx__SparseTensorProto *s = m->graph->sparse_initializer[0];
    int64_t shape[] = {2, 2}, dims[] = {3, 4}, at[] = {1, 2, 2, 0};
    s->indices = tm_raw(a, NULL, PO_I64, 2, shape, 32);
    memcpy(s->indices->raw_data.data, at, 32);
    s->n_dims = 2;
    s->dims = po_arena_memdup(a, dims, sizeof dims);
}
static void sparse_two_dims_outside(po_arena *a, Onnx__ModelProto *m) {
    sparse_two_dims(a, m);
    int64_t at[] = {1, 2, 2, 4};
    memcpy(m->graph->sparse_initializer[0]->indices->raw_data.data, at, 32);
}
static void sparse_wraps(po_arena *a, Onnx__ModelProto *m) {
    sparse_two_dims(a, m);
    m->graph->sparse_initializer[0]->dims[0] = INT64_C(1) << 62;
}
static void sparse_zero(po_arena *a, Onnx__ModelProto *m) {
    sparse_two_dims(a, m);
    m->graph->sparse_initializer[0]->dims[0] = INT64_C(1) << 62;
    m->graph->sparse_initializer[0]->dims[1] = 0;
}

static const tm_case cases[] = {
    {"as it is", NULL, NULL},
    {"negative dim", negative_dim, "graph/initializer[0] 'w': dim 0 is negative (found -2"},
    {"product of dims wraps", product_wraps, "product of the dims overflows"},
    {"product times size wraps", size_wraps, "'w': the "},
    {"size in bits wraps", size_wraps_bits, "size in bytes overflows"},
    {"4 bytes for millions", little_data, "raw_data does not fit type and dims (found 4 bytes"},
    {"too much data", much_data, "raw_data does not fit type and dims (found 24 bytes, want 12)"},
    {"raw and typed data", both_data, "data is in two fields (found raw_data and float_data)"},
    {"two typed fields", two_typed, "data is in two fields (found float_data and int64_data)"},
    {"wrong typed field", wrong_field, "data of type f32 is in int32_data (want float_data)"},
    {"too little typed data", few_typed, "float_data does not fit type and dims (found 5 items"},
    {"no data", no_data, "there is no data (found 0 elements, want 6)"},
    {"zero dims", zero_dim, NULL},
    {"rank 100,000", high_rank, "too many dims (found 100000, limit 64)"},
    {"type of rank 100,000", high_rank_type, "too many dims (found 100000, limit 64)"},
    {"unknown dtype", unknown_type, "unknown element type (found 99"},
    {"negative dtype", negative_type, "unknown element type (found -1"},
    {"no dtype", no_type, "unknown element type (found 0"},
    {"unknown data location", unknown_location, "unknown data location (found 7"},
    {"int4, odd count", int4_odd, NULL},
    {"int4, too short", int4_short, "found 2 bytes, want 3"},
    {"strings in raw_data", raw_strings, "strings cannot be in raw_data"},
    {"strings with NUL", good_strings, NULL},
    {"segment", segment, "segmented tensors are not supported"},
    {"in an attribute", in_attribute, "graph/node[1]/attribute[0] 'value'/t 'deep': raw_data"},
    {"in a function", in_function, "functions[0] 'F'/node[0]/attribute[0] 'value'/t 'deep': raw"},
    {"in training info", in_training, "training_info[0]/initialization/initializer[0] 'deep': raw"},
    {"sparse", sparse_good, NULL},
    {"sparse, unsorted", sparse_unsorted, "sparse index 1 is not sorted (found 0 after 4)"},
    {"sparse, duplicate", sparse_twice, "sparse index 2 is there twice"},
    {"sparse, out of range", sparse_outside, "sparse index 2 is out of range"},
    {"sparse, negative", sparse_negative, "sparse index 0 is out of range"},
    {"sparse without indices", sparse_no_indices, "needs values and indices"},
    {"sparse, counts differ", sparse_count, "sparse indices must be i64"},
    {"sparse, two dims", sparse_two_dims, NULL},
    {"sparse, two dims, out of range", sparse_two_dims_outside, "sparse index 1 is out of range"},
    {"sparse dims wrap", sparse_wraps, "product of the dims overflows"},
    {"sparse in nothing", sparse_zero, "sparse index 0 is out of range"},
};

static void test_cases(void **state) {
    (void)state;
    assert_int_equal(tm_run(cases, sizeof cases / sizeof cases[0]), 0);
}

/* Every bit of a weight survives, whatever it means as a number. */
static void test_bits(void **state) {
    (void)state;
    static const uint32_t odd[] = {0x7fc00001, 0xff800000, 0x00000001, 0x80000000, 0x7f812345, 0};
    po_ctx ctx;
    po_ctx_init(&ctx);
    po_arena *a = po_arena_create(&ctx);
    Onnx__ModelProto *m = tm_model(a);
    memcpy(weight(m)->raw_data.data, odd, sizeof odd);
    size_t size;
    const uint8_t *data = tm_pack(a, m, &size);
    po_model *model;
    assert_int_equal(po_import_bytes(&ctx, data, size, &model), PO_OK);
    const po_graph *g = model->graph;
    const po_tensor *w = g->values[g->initializers[0]].constant;
    assert_int_equal(w->size, sizeof odd);
    assert_memory_equal(w->data, odd, sizeof odd);
    /* Not a copy. */
    assert_true((const uint8_t *)w->data > data && (const uint8_t *)w->data < data + size);
    po_model_free(model);
    po_arena_free(a);
}

/* Typed fields of every width become the bytes that raw_data would have. */
static void test_narrow(void **state) {
    (void)state;
    static const struct {
        int dtype, items;
        int64_t count;
        int32_t in[3];
        uint8_t want[8];
        size_t size;
    } rows[] = {
        {PO_I8, 3, 3, {-1, 2, -128}, {0xff, 2, 0x80}, 3},
        {PO_U8, 2, 2, {255, 7}, {255, 7}, 2},
        {PO_I16, 2, 2, {-2, 300}, {0xfe, 0xff, 0x2c, 1}, 4},
        {PO_BOOL, 2, 2, {1, 0}, {1, 0}, 2},
        {PO_F16, 1, 1, {0x3c00}, {0, 0x3c}, 2},
        {PO_BF16, 1, 1, {0x3f80}, {0x80, 0x3f}, 2},
        {PO_F8E4M3FN, 1, 1, {0x38}, {0x38}, 1},
        {PO_U4, 2, 3, {0x21, 0x03}, {0x21, 0x03}, 2},
        {PO_U2, 1, 3, {0x39}, {0x39}, 1},
        {PO_I32, 1, 1, {-5}, {0xfb, 0xff, 0xff, 0xff}, 4},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        po_ctx ctx;
        po_ctx_init(&ctx);
        po_arena *a = po_arena_create(&ctx);
        Onnx__ModelProto *m = tm_model(a);
        Onnx__TensorProto *t = tm_tensor(a, "n", rows[i].dtype, 1, &rows[i].count);
        t->n_int32_data = (size_t)rows[i].items;
        t->int32_data = po_arena_memdup(a, rows[i].in, sizeof rows[i].in);
        TM_ADD(a, m->graph, initializer, t);
        size_t size;
        const uint8_t *data = tm_pack(a, m, &size);
        po_model *model;
        assert_int_equal(po_import_bytes(&ctx, data, size, &model), PO_OK);
        const po_tensor *n = model->graph->values[model->graph->initializers[1]].constant;
        assert_int_equal(n->size, rows[i].size);
        assert_memory_equal(n->data, rows[i].want, rows[i].size);
        po_model_free(model);
        po_arena_free(a);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cases),
        cmocka_unit_test(test_bits),
        cmocka_unit_test(test_narrow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
