/* Graphs, bodies with what they capture, attributes and tensors from protobuf-c's messages.
 * Functions, sparse initialisers and external data are not read: there is no model then. */
#include "onnx_load.h"

#include "onnx-ml.pb-c.h"
#include "test_paths.h"

#include <stdlib.h>

typedef struct scope {
    struct scope *outer;
    po_graph *graph;
    po_map *names;
} scope;

/* Absent strings are NULL. */
static const char *text_of(const char *text) {
    return text ? text : "";
}

static po_tensor *read_tensor(po_ctx *ctx, po_arena *arena, const Onnx__TensorProto *p) {
    po_tensor *t;
    size_t n;
    if (p->data_location == ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL ||
        po_tensor_create(ctx, arena, (po_dtype)p->data_type, (uint32_t)p->n_dims, p->dims, &t) !=
            PO_OK)
        return NULL;
    char *data = po_tensor_data(t);
    size_t count = (size_t)t->count, width = po_dtype_bits(t->dtype);
    if (t->dtype == PO_STR) {
        po_bytes *s = (po_bytes *)(void *)data;
        for (size_t i = 0; i < count && i < p->n_string_data; i++)
            s[i] = (po_bytes){po_arena_memdup(arena, p->string_data[i].data, p->string_data[i].len),
                              p->string_data[i].len};
        return t;
    }
    if (!po_dtype_bytes(t->dtype, t->count, &n))
        return NULL;
    if (p->has_raw_data && p->raw_data.len) {
        memcpy(data, p->raw_data.data, n < p->raw_data.len ? n : p->raw_data.len);
    } else if (p->n_float_data) {
        memcpy(data, p->float_data, n);
    } else if (p->n_double_data) {
        memcpy(data, p->double_data, n);
    } else if (p->n_int64_data) {
        memcpy(data, p->int64_data, n);
    } else if (p->n_uint64_data) {
        for (size_t i = 0; i < count; i++)
            memcpy(data + i * width / 8, &p->uint64_data[i], width / 8);
    } else {
        /* Sub-byte types hold one packed byte per item. */
        size_t item = width < 8 ? 1 : width / 8;
        for (size_t i = 0; i < p->n_int32_data && (i + 1) * item <= n; i++)
            memcpy(data + i * item, &p->int32_data[i], item);
    }
    return t;
}

static po_type read_type(po_arena *arena, const Onnx__TypeProto *p);

static po_type *read_element(po_arena *arena, const Onnx__TypeProto *p) {
    po_type t = read_type(arena, p);
    return po_arena_memdup(arena, &t, sizeof t);
}

static po_type read_type(po_arena *arena, const Onnx__TypeProto *p) {
    po_type type = {0};
    if (!p)
        return type;
    switch (p->value_case) {
    case ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE: {
        const Onnx__TensorShapeProto *s = p->tensor_type->shape;
        type = po_type_unranked((po_dtype)p->tensor_type->elem_type);
        if (!s)
            return type;
        po_dim *dims = PO_NEW_N(arena, po_dim, s->n_dim);
        for (size_t i = 0; i < s->n_dim; i++) {
            dims[i] = PO_DIM_UNKNOWN;
            if (s->dim[i]->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE)
                dims[i] = PO_DIM(s->dim[i]->dim_value);
            else if (s->dim[i]->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM)
                dims[i].symbol = po_arena_strdup(arena, s->dim[i]->dim_param);
        }
        return po_type_tensor(arena, type.dtype, (uint32_t)s->n_dim, dims);
    }
    case ONNX__TYPE_PROTO__VALUE_SEQUENCE_TYPE:
        type.kind = PO_TYPE_SEQUENCE;
        type.element = read_element(arena, p->sequence_type->elem_type);
        return type;
    case ONNX__TYPE_PROTO__VALUE_OPTIONAL_TYPE:
        type.kind = PO_TYPE_OPTIONAL;
        type.element = read_element(arena, p->optional_type->elem_type);
        return type;
    default:
        return type;
    }
}

static po_value_id lookup(scope *s, const char *name) {
    uint32_t id = po_map_get(s->names, name);
    if (id != PO_NONE || !s->outer)
        return id;
    po_value_id outer = lookup(s->outer, name);
    return outer == PO_NONE ? PO_NONE : po_graph_capture(s->graph, outer);
}

static po_bytes read_bytes(po_arena *arena, ProtobufCBinaryData b) {
    return (po_bytes){po_arena_memdup(arena, b.data, b.len), b.len};
}

static bool read_graph(po_ctx *ctx, scope *s, const Onnx__GraphProto *p);

static bool read_attr(po_ctx *ctx, scope *s, const Onnx__AttributeProto *p, po_attr *a) {
    po_arena *arena = s->graph->arena;
    *a = (po_attr){.name = po_arena_strdup(arena, p->name), .kind = (po_attr_kind)p->type, .n = 1};
    switch (a->kind) {
    case PO_ATTR_FLOAT:
        a->u.f = p->f;
        return true;
    case PO_ATTR_INT:
        a->u.i = p->i;
        return true;
    case PO_ATTR_STRING:
        a->u.s = read_bytes(arena, p->s);
        return true;
    case PO_ATTR_TENSOR:
        a->u.t = read_tensor(ctx, arena, p->t);
        return a->u.t != NULL;
    case PO_ATTR_FLOATS:
        a->n = (uint32_t)p->n_floats;
        a->u.floats = po_arena_memdup(arena, p->floats, p->n_floats * sizeof *p->floats);
        return true;
    case PO_ATTR_INTS:
        a->n = (uint32_t)p->n_ints;
        a->u.ints = po_arena_memdup(arena, p->ints, p->n_ints * sizeof *p->ints);
        return true;
    case PO_ATTR_STRINGS: {
        po_bytes *strings = PO_NEW_N(arena, po_bytes, p->n_strings);
        a->n = (uint32_t)p->n_strings;
        for (size_t i = 0; i < p->n_strings; i++)
            strings[i] = read_bytes(arena, p->strings[i]);
        a->u.strings = strings;
        return true;
    }
    case PO_ATTR_GRAPH: {
        scope body = {s, po_graph_create_body(s->graph, text_of(p->g->name)), po_map_create(arena)};
        a->u.g = body.graph;
        return read_graph(ctx, &body, p->g);
    }
    case PO_ATTR_TYPE:
        return true;
    default:
        return false;
    }
}

/* Constant nodes: the tensor of whichever attribute is there. */
static const po_tensor *constant_tensor(po_ctx *ctx, po_arena *arena, const po_attr *a) {
    po_tensor *t = NULL;
    switch (a->kind) {
    case PO_ATTR_TENSOR:
        return a->u.t;
    case PO_ATTR_INT:
        (void)po_tensor_create(ctx, arena, PO_I64, 0, NULL, &t);
        po_tensor_set_int(t, 0, a->u.i);
        return t;
    case PO_ATTR_INTS:
        return po_tensor_i64(arena, a->n, a->u.ints);
    case PO_ATTR_FLOAT:
        return po_tensor_scalar_f32(arena, a->u.f);
    case PO_ATTR_FLOATS:
        (void)po_tensor_wrap(ctx, arena, PO_F32, 1, (int64_t[]){a->n}, a->u.floats, &t);
        return t;
    case PO_ATTR_STRING:
        (void)po_tensor_wrap(ctx, arena, PO_STR, 0, NULL, &a->u.s, &t);
        return t;
    case PO_ATTR_STRINGS:
        (void)po_tensor_wrap(ctx, arena, PO_STR, 1, (int64_t[]){a->n}, a->u.strings, &t);
        return t;
    default:
        return NULL;
    }
}

static bool read_node(po_ctx *ctx, scope *s, const Onnx__NodeProto *p) {
    po_arena *arena = s->graph->arena;
    po_node_spec spec = {.op_type = p->op_type,
                         .domain = text_of(p->domain),
                         .name = po_arena_strdup(arena, text_of(p->name)),
                         .n_in = (uint32_t)p->n_input,
                         .n_out = (uint32_t)p->n_output,
                         .n_attr = (uint32_t)p->n_attribute};
    po_value_id *in = PO_NEW_N(arena, po_value_id, p->n_input);
    po_value_id *out = PO_NEW_N(arena, po_value_id, p->n_output);
    po_attr *attr = PO_NEW_N(arena, po_attr, p->n_attribute);
    for (size_t i = 0; i < p->n_input; i++) {
        in[i] = p->input[i][0] ? lookup(s, p->input[i]) : PO_NONE;
        if (p->input[i][0] && in[i] == PO_NONE)
            return false;
    }
    for (size_t i = 0; i < p->n_attribute; i++)
        if (!read_attr(ctx, s, p->attribute[i], &attr[i]))
            return false;
    for (size_t i = 0; i < p->n_output; i++) {
        out[i] = PO_NONE;
        if (!p->output[i][0])
            continue;
        out[i] = po_graph_add_value(s->graph, p->output[i], NULL);
        po_map_put(s->names, po_arena_strdup(arena, p->output[i]), out[i]);
    }
    if (strcmp(p->op_type, "Constant") == 0 && spec.n_attr)
        s->graph->values[out[0]].constant = constant_tensor(ctx, arena, &attr[0]);
    spec.in = in;
    spec.out = out;
    spec.attr = attr;
    po_graph_add_node(s->graph, &spec);
    return true;
}

static bool read_graph(po_ctx *ctx, scope *s, const Onnx__GraphProto *p) {
    po_arena *arena = s->graph->arena;
    for (size_t i = 0; i < p->n_input; i++) {
        po_type t = read_type(arena, p->input[i]->type);
        po_map_put(s->names, po_arena_strdup(arena, p->input[i]->name),
                   po_graph_add_input(s->graph, p->input[i]->name, &t));
    }
    for (size_t i = 0; i < p->n_initializer; i++) {
        const po_tensor *t = read_tensor(ctx, arena, p->initializer[i]);
        if (!t)
            return false;
        uint32_t id = po_map_get(s->names, p->initializer[i]->name);
        if (id != PO_NONE)
            s->graph->values[id].constant = t;
        else
            po_map_put(s->names, po_arena_strdup(arena, p->initializer[i]->name),
                       po_graph_add_constant(s->graph, p->initializer[i]->name, t));
    }
    if (p->n_sparse_initializer)
        return false;
    for (size_t i = 0; i < p->n_node; i++)
        if (!read_node(ctx, s, p->node[i]))
            return false;
    for (size_t i = 0; i < p->n_output; i++) {
        uint32_t id = lookup(s, p->output[i]->name);
        if (id == PO_NONE)
            return false;
        if (s->graph->values[id].type.kind == PO_TYPE_UNKNOWN)
            s->graph->values[id].type = read_type(arena, p->output[i]->type);
        po_graph_add_output(s->graph, id);
    }
    return true;
}

po_model *test_model_load(po_ctx *ctx, const char *path) {
    size_t size;
    void *bytes = test_read_file(path, &size);
    Onnx__ModelProto *p = bytes ? onnx__model_proto__unpack(NULL, size, bytes) : NULL;
    free(bytes);
    if (!p)
        return NULL;
    po_arena *arena = po_arena_create(ctx);
    po_model *model = PO_NEW(arena, po_model);
    model->arena = arena;
    model->opsets = PO_NEW_N(arena, po_opset, p->n_opset_import);
    model->n_opsets = (uint32_t)p->n_opset_import;
    for (size_t i = 0; i < p->n_opset_import; i++)
        model->opsets[i] = (po_opset){po_arena_strdup(arena, text_of(p->opset_import[i]->domain)),
                                      p->opset_import[i]->version};
    model->graph = po_graph_create(ctx, model, text_of(p->graph->name));
    scope root = {NULL, model->graph, po_map_create(arena)};
    bool ok = p->n_functions == 0 && read_graph(ctx, &root, p->graph);
    onnx__model_proto__free_unpacked(p, NULL);
    if (!ok) {
        test_model_free(model);
        return NULL;
    }
    po_ops_resolve(model->graph);
    return model;
}

void test_model_free(po_model *model) {
    if (!model)
        return;
    po_graph_free(model->graph);
    po_arena_free(model->arena);
}

po_tensor *test_tensor_load(po_ctx *ctx, po_arena *arena, const char *path) {
    size_t size;
    void *bytes = test_read_file(path, &size);
    Onnx__TensorProto *p = bytes ? onnx__tensor_proto__unpack(NULL, size, bytes) : NULL;
    free(bytes);
    if (!p)
        return NULL;
    po_tensor *t = read_tensor(ctx, arena, p);
    onnx__tensor_proto__free_unpacked(p, NULL);
    return t;
}
