/* protobuf-c's messages in an arena, from a model of one Add: a case changes it, packs it and
 * imports it, and expects success or the importer's sentence. */
#include "onnx_build.h"

#include "export/export.h"
#include "import/import.h"
#include "unit.h"

#include <stdio.h>

static char *text(po_arena *a, const char *t) {
    return po_arena_strdup(a, t);
}

void *tm_append(po_arena *a, const void *items, size_t n, size_t size) {
    char *grown = po_arena_calloc(a, n + 1, size);
    if (n)
        memcpy(grown, items, n * size);
    return grown;
}

static char **names(po_arena *a, const char *list, size_t *n) {
    char **out = NULL;
    *n = 0;
    for (const char *p = list; p && *p;) {
        size_t len = strcspn(p, ",");
        out = tm_append(a, out, *n, sizeof *out);
        out[(*n)++] = po_arena_printf(a, "%.*s", (int)len, p);
        p += len;
        p += *p == ',';
    }
    return out;
}

Onnx__NodeProto *tm_node(po_arena *a, const char *op, const char *in, const char *out) {
    Onnx__NodeProto *n = PO_PROTO_NEW(a, Onnx__NodeProto, ONNX__NODE_PROTO__INIT);
    n->op_type = text(a, op);
    n->input = names(a, in, &n->n_input);
    n->output = names(a, out, &n->n_output);
    return n;
}

Onnx__ValueInfoProto *tm_info(po_arena *a, const char *name, int dtype, int rank,
                              const int64_t *dims) {
    Onnx__ValueInfoProto *v = PO_PROTO_NEW(a, Onnx__ValueInfoProto, ONNX__VALUE_INFO_PROTO__INIT);
    po_dim *d = PO_NEW_N(a, po_dim, rank);
    for (int i = 0; i < rank; i++)
        d[i] = (po_dim){dims[i], NULL};
    po_type type = po_type_tensor(a, (po_dtype)dtype, (uint32_t)rank, d);
    v->name = text(a, name);
    v->type = po_type_to_proto(a, &type);
    return v;
}

Onnx__TensorProto *tm_tensor(po_arena *a, const char *name, int dtype, int rank,
                             const int64_t *dims) {
    Onnx__TensorProto *t = PO_PROTO_NEW(a, Onnx__TensorProto, ONNX__TENSOR_PROTO__INIT);
    t->name = name ? text(a, name) : NULL;
    t->has_data_type = 1;
    t->data_type = dtype;
    t->n_dims = (size_t)rank;
    t->dims = po_arena_memdup(a, dims, (size_t)rank * sizeof *dims);
    return t;
}

Onnx__TensorProto *tm_raw(po_arena *a, const char *name, int dtype, int rank, const int64_t *dims,
                          size_t bytes) {
    Onnx__TensorProto *t = tm_tensor(a, name, dtype, rank, dims);
    t->has_raw_data = 1;
    t->raw_data = (ProtobufCBinaryData){bytes, po_arena_calloc(a, bytes, 1)};
    return t;
}

Onnx__SparseTensorProto *tm_sparse(po_arena *a, const char *name, int64_t n, const int64_t *indices,
                                   int64_t length) {
    Onnx__SparseTensorProto *s =
        PO_PROTO_NEW(a, Onnx__SparseTensorProto, ONNX__SPARSE_TENSOR_PROTO__INIT);
    s->values = tm_raw(a, name, PO_F32, 1, &n, (size_t)n * 4);
    s->indices = tm_raw(a, NULL, PO_I64, 1, &n, (size_t)n * 8);
    if (n)
        memcpy(s->indices->raw_data.data, indices, (size_t)n * 8);
    s->n_dims = 1;
    s->dims = po_arena_memdup(a, &length, sizeof length);
    return s;
}

Onnx__AttributeProto *tm_attr(po_arena *a, const char *name, int type) {
    Onnx__AttributeProto *p = PO_PROTO_NEW(a, Onnx__AttributeProto, ONNX__ATTRIBUTE_PROTO__INIT);
    p->name = text(a, name);
    p->has_type = 1;
    p->type = (Onnx__AttributeProto__AttributeType)type;
    return p;
}

Onnx__AttributeProto *tm_attr_int(po_arena *a, const char *name, int64_t value) {
    Onnx__AttributeProto *p = tm_attr(a, name, PO_ATTR_INT);
    p->has_i = 1;
    p->i = value;
    return p;
}

Onnx__AttributeProto *tm_attr_ints(po_arena *a, const char *name, int n, const int64_t *values) {
    Onnx__AttributeProto *p = tm_attr(a, name, PO_ATTR_INTS);
    p->n_ints = (size_t)n;
    p->ints = po_arena_memdup(a, values, (size_t)n * sizeof *values);
    return p;
}

Onnx__GraphProto *tm_graph(po_arena *a, const char *name) {
    Onnx__GraphProto *g = PO_PROTO_NEW(a, Onnx__GraphProto, ONNX__GRAPH_PROTO__INIT);
    g->name = text(a, name);
    return g;
}

Onnx__FunctionProto *tm_function(po_arena *a, const char *domain, const char *name, const char *in,
                                 const char *out) {
    Onnx__FunctionProto *f = PO_PROTO_NEW(a, Onnx__FunctionProto, ONNX__FUNCTION_PROTO__INIT);
    f->domain = text(a, domain);
    f->name = text(a, name);
    f->input = names(a, in, &f->n_input);
    f->output = names(a, out, &f->n_output);
    for (int i = 0; i < 2; i++) {
        Onnx__OperatorSetIdProto *o =
            PO_PROTO_NEW(a, Onnx__OperatorSetIdProto, ONNX__OPERATOR_SET_ID_PROTO__INIT);
        o->domain = text(a, i ? "d" : "");
        o->has_version = 1;
        o->version = i ? 1 : 17;
        TM_ADD(a, f, opset_import, o);
    }
    return f;
}

void tm_opset(po_arena *a, Onnx__ModelProto *m, const char *domain, int64_t version) {
    Onnx__OperatorSetIdProto *o =
        PO_PROTO_NEW(a, Onnx__OperatorSetIdProto, ONNX__OPERATOR_SET_ID_PROTO__INIT);
    o->domain = text(a, domain);
    o->has_version = 1;
    o->version = version;
    TM_ADD(a, m, opset_import, o);
}

void tm_external(po_arena *a, Onnx__TensorProto *t, const char *location, const char *offset,
                 const char *length) {
    const char *keys[] = {"location", "offset", "length"}, *values[] = {location, offset, length};
    t->has_data_location = 1;
    t->data_location = ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL;
    t->has_raw_data = 0;
    for (int i = 0; i < 3; i++) {
        if (!values[i])
            continue;
        Onnx__StringStringEntryProto *e =
            PO_PROTO_NEW(a, Onnx__StringStringEntryProto, ONNX__STRING_STRING_ENTRY_PROTO__INIT);
        e->key = text(a, keys[i]);
        e->value = text(a, values[i]);
        TM_ADD(a, t, external_data, e);
    }
}

Onnx__ModelProto *tm_model(po_arena *a) {
    static const int64_t dims[] = {2, 3};
    Onnx__ModelProto *m = PO_PROTO_NEW(a, Onnx__ModelProto, ONNX__MODEL_PROTO__INIT);
    m->has_ir_version = 1;
    m->ir_version = 8;
    tm_opset(a, m, "", 17);
    m->graph = tm_graph(a, "g");
    TM_ADD(a, m->graph, input, tm_info(a, "x", PO_F32, 2, dims));
    TM_ADD(a, m->graph, output, tm_info(a, "y", PO_F32, 2, dims));
    TM_ADD(a, m->graph, initializer, tm_raw(a, "w", PO_F32, 2, dims, 24));
    TM_ADD(a, m->graph, node, tm_node(a, "Add", "x,w", "y"));
    m->graph->node[0]->name = text(a, "add");
    return m;
}

void tm_add_node(po_arena *a, Onnx__ModelProto *m, const char *op, const char *in,
                 const char *out) {
    TM_ADD(a, m->graph, node, tm_node(a, op, in, out));
}

Onnx__NodeProto *tm_last_node(Onnx__ModelProto *m) {
    return m->graph->node[m->graph->n_node - 1];
}

Onnx__AttributeProto *tm_branch(po_arena *a, const char *name, const char *op, const char *in,
                                const char *out) {
    Onnx__AttributeProto *p = tm_attr(a, name, PO_ATTR_GRAPH);
    p->g = tm_graph(a, name);
    TM_ADD(a, p->g, node, tm_node(a, op, in, out));
    TM_ADD(a, p->g, output, tm_info(a, out, PO_F32, 2, (const int64_t[]){2, 3}));
    return p;
}
uint8_t *tm_pack(po_arena *a, const Onnx__ModelProto *m, size_t *size) {
    *size = protobuf_c_message_get_packed_size(&m->base);
    uint8_t *data = po_arena_alloc(a, *size);
    protobuf_c_message_pack(&m->base, data);
    return data;
}

po_status tm_import(po_ctx *ctx, const void *data, size_t size) {
    po_guard guard;
    po_model *model = NULL;
    po_guard_push(ctx, &guard);
    if (setjmp(guard.env) != 0)
        return po_guard_unwind(ctx, &guard);
    po_hash hash;
    po_status status = po_import_bytes(ctx, data, size, &model);
    if (status == PO_OK)
        status = po_graph_check(ctx, model->graph);
    if (status == PO_OK)
        status = po_export_hash(ctx, model->graph, &hash);
    po_model_free(model);
    po_guard_pop(ctx, &guard);
    return status;
}

po_model *tm_imported(po_ctx *ctx, po_arena *a, void (*change)(po_arena *, Onnx__ModelProto *)) {
    Onnx__ModelProto *m = tm_model(a);
    change(a, m);
    size_t size;
    const uint8_t *data = tm_pack(a, m, &size);
    po_model *model = NULL;
    if (po_import_bytes(ctx, data, size, &model) != PO_OK)
        fail_msg("%s", ctx->error.message);
    return model;
}

void tm_assert_operators(void (*change)(po_arena *, Onnx__ModelProto *), const char *const *want,
                         uint32_t n) {
    po_ctx ctx;
    po_ctx_init(&ctx);
    po_arena *a = po_arena_create(&ctx);
    po_model *model = tm_imported(&ctx, a, change);
    assert_int_equal(model->graph->n_nodes, n);
    for (uint32_t i = 0; i < n; i++)
        assert_string_equal(model->graph->nodes[i].op_type, want[i]);
    po_model_free(model);
    po_arena_free(a);
}

int tm_run(const tm_case *cases, size_t n) {
    int wrong = 0;
    for (size_t i = 0; i < n; i++) {
        po_ctx ctx;
        po_ctx_init(&ctx);
        po_arena *a = po_arena_create(&ctx);
        Onnx__ModelProto *m = tm_model(a);
        if (cases[i].change)
            cases[i].change(a, m);
        size_t size;
        const uint8_t *data = tm_pack(a, m, &size);
        po_status status = tm_import(&ctx, data, size);
        const char *want = cases[i].want;
        bool right = want ? status == PO_BAD_INPUT && strstr(ctx.error.message, want) != NULL &&
                                strncmp(ctx.error.message, "model: ", 7) == 0
                          : status == PO_OK;
        po_arena_free(a);
        right &= ctx.arenas == NULL; /* whatever happens, nothing stays behind */
        if (!right) {
            printf("%s: %s: '%s' (want '%s')%s\n", cases[i].name, po_status_name(status),
                   ctx.error.message, want ? want : "", ctx.arenas ? ", an arena was left" : "");
            wrong++;
        }
    }
    return wrong;
}
