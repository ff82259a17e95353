/* Messages are allocated as protobuf-c frees them, one by one. Dims come as text: numbers, symbols,
 * or '?' for none. */
#include "test_onnx.h"

#include "test_paths.h"

#include <stdlib.h>
#include <string.h>

static void *zeroed(size_t n, size_t size) {
    void *p = calloc(n ? n : 1, size);
    if (!p)
        abort();
    return p;
}

static char *copy(const char *text, size_t n) {
    char *p = zeroed(n + 1, 1);
    memcpy(p, text, n);
    return p;
}

/* Splits at the separator; *n parts, each allocated, in an allocated list. */
static char **split(const char *text, char separator, size_t *n) {
    char **parts = zeroed(strlen(text) + 1, sizeof *parts);
    *n = 0;
    while (*text) {
        const char *end = strchr(text, separator);
        size_t size = end ? (size_t)(end - text) : strlen(text);
        parts[(*n)++] = copy(text, size);
        text += size + (end != NULL);
    }
    return parts;
}

test_onnx *test_onnx_new(void) {
    test_onnx *m = zeroed(1, sizeof *m);
    onnx__model_proto__init(&m->model);
    onnx__graph_proto__init(&m->graph);
    onnx__operator_set_id_proto__init(&m->opset);
    static char empty[] = "";
    static char name[] = "test";
    m->opset.domain = empty;
    m->opset.version = 13;
    m->opset.has_version = 1;
    m->opsets[0] = &m->opset;
    m->model.ir_version = 7;
    m->model.has_ir_version = 1;
    m->model.n_opset_import = 1;
    m->model.opset_import = m->opsets;
    m->model.graph = &m->graph;
    m->graph.name = name;
    m->graph.input = m->inputs;
    m->graph.output = m->outputs;
    m->graph.node = m->nodes;
    m->graph.initializer = m->initializers;
    return m;
}

void test_onnx_free(test_onnx *m) {
    for (size_t i = 0; i < m->graph.n_input; i++)
        onnx__value_info_proto__free_unpacked(m->inputs[i], NULL);
    for (size_t i = 0; i < m->graph.n_output; i++)
        onnx__value_info_proto__free_unpacked(m->outputs[i], NULL);
    for (size_t i = 0; i < m->graph.n_node; i++)
        onnx__node_proto__free_unpacked(m->nodes[i], NULL);
    for (size_t i = 0; i < m->graph.n_initializer; i++)
        onnx__tensor_proto__free_unpacked(m->initializers[i], NULL);
    free(m);
}

static Onnx__ValueInfoProto *value_info(const char *name, int dtype, const char *dims) {
    Onnx__ValueInfoProto *v = zeroed(1, sizeof *v);
    onnx__value_info_proto__init(v);
    v->name = copy(name, strlen(name));
    v->type = zeroed(1, sizeof *v->type);
    onnx__type_proto__init(v->type);
    Onnx__TypeProto__Tensor *t = zeroed(1, sizeof *t);
    onnx__type_proto__tensor__init(t);
    v->type->value_case = ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE;
    v->type->tensor_type = t;
    t->elem_type = dtype;
    t->has_elem_type = 1;
    t->shape = zeroed(1, sizeof *t->shape);
    onnx__tensor_shape_proto__init(t->shape);
    size_t n;
    char **parts = split(dims, ',', &n);
    t->shape->n_dim = n;
    t->shape->dim = zeroed(n, sizeof(Onnx__TensorShapeProto__Dimension *));
    for (size_t i = 0; i < n; i++) {
        Onnx__TensorShapeProto__Dimension *d = zeroed(1, sizeof *d);
        onnx__tensor_shape_proto__dimension__init(d);
        char *end = NULL;
        long long value = strtoll(parts[i], &end, 10);
        if (*end == '\0') {
            d->value_case = ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE;
            d->dim_value = value;
            free(parts[i]);
        } else if (strcmp(parts[i], "?") == 0) {
            free(parts[i]);
        } else {
            d->value_case = ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM;
            d->dim_param = parts[i];
        }
        t->shape->dim[i] = d;
    }
    free(parts);
    return v;
}

void test_onnx_input(test_onnx *m, const char *name, int dtype, const char *dims) {
    m->inputs[m->graph.n_input++] = value_info(name, dtype, dims);
}

void test_onnx_output(test_onnx *m, const char *name, int dtype, const char *dims) {
    m->outputs[m->graph.n_output++] = value_info(name, dtype, dims);
}

Onnx__NodeProto *test_onnx_node(test_onnx *m, const char *op, const char *in, const char *out) {
    Onnx__NodeProto *node = zeroed(1, sizeof *node);
    onnx__node_proto__init(node);
    node->op_type = copy(op, strlen(op));
    node->input = split(in, ' ', &node->n_input);
    node->output = split(out, ' ', &node->n_output);
    node->attribute = zeroed(16, sizeof *node->attribute);
    m->nodes[m->graph.n_node++] = node;
    return node;
}

static Onnx__AttributeProto *attribute(Onnx__NodeProto *node, const char *name) {
    Onnx__AttributeProto *a = zeroed(1, sizeof *a);
    onnx__attribute_proto__init(a);
    a->name = copy(name, strlen(name));
    a->has_type = 1;
    node->attribute[node->n_attribute++] = a;
    return a;
}

void test_onnx_ints(Onnx__NodeProto *node, const char *name, int n, const int64_t *values) {
    Onnx__AttributeProto *a = attribute(node, name);
    a->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS;
    a->n_ints = (size_t)n;
    a->ints = zeroed((size_t)n, sizeof *a->ints);
    memcpy(a->ints, values, (size_t)n * sizeof *values);
}

void test_onnx_int(Onnx__NodeProto *node, const char *name, int64_t value) {
    Onnx__AttributeProto *a = attribute(node, name);
    a->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT;
    a->i = value;
    a->has_i = 1;
}

void test_onnx_initializer(test_onnx *m, const char *name, int dtype, const char *dims,
                           const void *data, size_t size) {
    Onnx__TensorProto *t = zeroed(1, sizeof *t);
    onnx__tensor_proto__init(t);
    t->name = copy(name, strlen(name));
    t->data_type = dtype;
    t->has_data_type = 1;
    char **parts = split(dims, ',', &t->n_dims);
    t->dims = zeroed(t->n_dims, sizeof *t->dims);
    for (size_t i = 0; i < t->n_dims; i++) {
        t->dims[i] = strtoll(parts[i], NULL, 10);
        free(parts[i]);
    }
    free(parts);
    t->has_raw_data = 1;
    t->raw_data.len = size;
    t->raw_data.data = (uint8_t *)copy(data, size);
    m->initializers[m->graph.n_initializer++] = t;
}

void test_onnx_write(const test_onnx *m, const char *path) {
    size_t size = onnx__model_proto__get_packed_size(&m->model);
    uint8_t *bytes = zeroed(size, 1);
    onnx__model_proto__pack(&m->model, bytes);
    test_write_file(path, bytes, size);
    free(bytes);
}
