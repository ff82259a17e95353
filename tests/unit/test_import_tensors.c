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
static void external(po_arena *a, Onnx__ModelProto *m) {
    tm_external(a, weight(m), "w.bin", "0", "24");
}
static void external_and_typed(po_arena *a, Onnx__ModelProto *m) {
    external(a, m);
    both_data(a, m);
}
static void external_and_empty(po_arena *a, Onnx__ModelProto *m) {
    external(a, m);
    weight(m)->has_raw_data = 1;
    weight(m)->raw_data.len = 0;
}
static void external_strings(po_arena *a, Onnx__ModelProto *m) {
    external(a, m);
    weight(m)->data_type = PO_STR;
}
static void location_default(po_arena *a, Onnx__ModelProto *m) {
    (void)a;
    weight(m)->has_data_location = 1;
    weight(m)->data_location = ONNX__TENSOR_PROTO__DATA_LOCATION__DEFAULT;
}
static void large_and_zero(po_arena *a, Onnx__ModelProto *m) {
    int64_t dims[] = {INT64_C(1) << 62, 4, 0};
    TM_ADD(a, m->graph, initializer, tm_tensor(a, "z", PO_F64, 3, dims));
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
    {"external and typed", external_and_typed, "data is both external and in float_data"},
    {"external and empty", external_and_empty,
     "external data is not allowed in a model from memory"},
    {"external strings", external_strings, "'w': strings cannot be external data"},
    {"data location said", location_default, NULL},
    {"zero dim behind large ones", large_and_zero, NULL},
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

/* The fields whose items are no smaller than elements, and those that pack several into one. */
typedef struct typed {
    po_dtype dtype;
    int64_t count;
    size_t items, size;
    const char *field;
} typed;

static const typed typed_rows[] = {
    {PO_F32, 2, 2, 8, "float_data"},    {PO_C64, 2, 4, 16, "float_data"},
    {PO_F64, 2, 2, 16, "double_data"},  {PO_C128, 2, 4, 32, "double_data"},
    {PO_I64, 2, 2, 16, "int64_data"},   {PO_U64, 2, 2, 16, "uint64_data"},
    {PO_U32, 3, 3, 12, "uint64_data"},  {PO_I4, 3, 2, 2, "int32_data"},
    {PO_F4E2M1, 5, 3, 3, "int32_data"}, {PO_I2, 5, 2, 2, "int32_data"},
    {PO_I2, 4, 1, 1, "int32_data"},
};
static const typed *typed_row;
static size_t typed_less; /* items that are missing */

static void typed_tensor(po_arena *a, Onnx__ModelProto *m) {
    Onnx__TensorProto *t = tm_tensor(a, "t", (int)typed_row->dtype, 1, &typed_row->count);
    size_t n = typed_row->items - typed_less;
    uint64_t *items = PO_NEW_N(a, uint64_t, n);
    const char *field = typed_row->field;
    if (strcmp(field, "float_data") == 0) {
        t->n_float_data = n;
        t->float_data = PO_NEW_N(a, float, n);
        for (size_t i = 0; i < n; i++)
            t->float_data[i] = (float)i + 1;
    } else if (strcmp(field, "double_data") == 0) {
        t->n_double_data = n;
        t->double_data = PO_NEW_N(a, double, n);
        for (size_t i = 0; i < n; i++)
            t->double_data[i] = (double)i + 1;
    } else if (strcmp(field, "int32_data") == 0) {
        t->n_int32_data = n;
        t->int32_data = PO_NEW_N(a, int32_t, n);
        for (size_t i = 0; i < n; i++)
            t->int32_data[i] = (int32_t)i + 1;
    } else {
        for (size_t i = 0; i < n; i++)
            items[i] = i + 1;
        bool is_signed = strcmp(field, "int64_data") == 0;
        t->n_int64_data = is_signed ? n : 0;
        t->n_uint64_data = is_signed ? 0 : n;
        t->int64_data = (int64_t *)(void *)items;
        t->uint64_data = items;
    }
    TM_ADD(a, m->graph, initializer, t);
}

static void check_items(const po_tensor *t) {
    for (size_t i = 0; i < typed_row->items; i++) {
        float f;
        double d;
        uint64_t u = 0;
        const uint8_t *data = t->data;
        switch (typed_row->dtype) {
        case PO_F32:
        case PO_C64:
            memcpy(&f, data + 4 * i, 4);
            assert_true(f == (float)i + 1);
            break;
        case PO_F64:
        case PO_C128:
            memcpy(&d, data + 8 * i, 8);
            assert_true(d == (double)i + 1);
            break;
        default:
            memcpy(&u, data + i * (t->size / typed_row->items), t->size / typed_row->items);
            assert_int_equal(u, i + 1);
        }
    }
}

static void test_typed(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof typed_rows / sizeof typed_rows[0]; i++) {
        po_ctx ctx;
        po_ctx_init(&ctx);
        po_arena *a = po_arena_create(&ctx);
        typed_row = &typed_rows[i];
        typed_less = 0;
        po_model *model = tm_imported(&ctx, a, typed_tensor);
        const po_tensor *t = model->graph->values[model->graph->initializers[1]].constant;
        assert_int_equal(t->dtype, typed_row->dtype);
        assert_int_equal(t->size, typed_row->size);
        check_items(t);
        po_model_free(model);
        if (typed_row->items > 1) {
            typed_less = 1;
            const tm_case less = {
                typed_row->field, typed_tensor,
                po_arena_printf(a, "'t': %s does not fit type and dims (found %zu items, want %zu)",
                                typed_row->field, typed_row->items - 1, typed_row->items)};
            assert_int_equal(tm_run(&less, 1), 0);
        }
        po_arena_free(a);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cases),
        cmocka_unit_test(test_bits),
        cmocka_unit_test(test_narrow),
        cmocka_unit_test(test_typed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
