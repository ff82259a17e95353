/* Graphs, nodes and attributes to messages. */
#include "export/parts.h"

static char *mutable(const char *text) {
    return (char *)(uintptr_t)text; /* protobuf-c's structures have no const; they are only read */
}

/* Keeps an optional text as it was where it says the same: absent and empty differ in the file. */
static void set_text(char **field, const char *text) {
    if (strcmp(*field ? *field : "", text) != 0)
        *field = mutable(text);
}

static ProtobufCBinaryData binary(po_bytes b) {
    return (ProtobufCBinaryData){b.size, (uint8_t *)(uintptr_t)b.data};
}

static po_status make_graphs(po_exporter *ex, const po_attr *a, Onnx__AttributeProto *p) {
    if (a->kind == PO_ATTR_GRAPH)
        return po_make_graph(ex, a->u.g, &p->g);
    p->n_graphs = a->n;
    p->graphs = PO_NEW_N(ex->arena, Onnx__GraphProto *, a->n);
    for (uint32_t i = 0; i < a->n; i++)
        PO_TRY(po_make_graph(ex, a->u.graphs[i], &p->graphs[i]));
    return PO_OK;
}

static void make_strings(po_exporter *ex, const po_attr *a, Onnx__AttributeProto *p) {
    p->n_strings = a->n;
    p->strings = PO_NEW_N(ex->arena, ProtobufCBinaryData, a->n);
    for (uint32_t i = 0; i < a->n; i++)
        p->strings[i] = binary(a->u.strings[i]);
}

static void make_tensors(po_exporter *ex, const po_attr *a, Onnx__AttributeProto *p) {
    p->n_tensors = a->n;
    p->tensors = PO_NEW_N(ex->arena, Onnx__TensorProto *, a->n);
    for (uint32_t i = 0; i < a->n; i++)
        p->tensors[i] = po_make_tensor(ex, a->u.tensors[i], NULL);
}

static po_status make_attr(po_exporter *ex, const po_attr *a, Onnx__AttributeProto **proto) {
    const Onnx__AttributeProto *old = a->origin;
    bool has_bodies = a->kind == PO_ATTR_GRAPH || a->kind == PO_ATTR_GRAPHS;
    if (old && (!has_bodies || a->reference)) {
        *proto = (Onnx__AttributeProto *)(uintptr_t)old;
        return PO_OK;
    }
    Onnx__AttributeProto *p =
        PO_PROTO_NEW(ex->arena, Onnx__AttributeProto, ONNX__ATTRIBUTE_PROTO__INIT);
    *proto = p;
    if (old) {
        *p = *old;
        return make_graphs(ex, a, p);
    }
    p->name = mutable(a->name);
    p->has_type = 1;
    p->type = (Onnx__AttributeProto__AttributeType)a->kind;
    if (a->reference) {
        p->ref_attr_name = mutable(a->reference);
        return PO_OK;
    }
    switch (a->kind) {
    case PO_ATTR_FLOAT:
        p->has_f = 1;
        p->f = a->u.f;
        return PO_OK;
    case PO_ATTR_INT:
        p->has_i = 1;
        p->i = a->u.i;
        return PO_OK;
    case PO_ATTR_STRING:
        p->has_s = 1;
        p->s = binary(a->u.s);
        return PO_OK;
    case PO_ATTR_TENSOR:
        p->t = po_make_tensor(ex, a->u.t, NULL);
        return PO_OK;
    case PO_ATTR_FLOATS:
        p->n_floats = a->n;
        p->floats = (float *)(uintptr_t)a->u.floats;
        return PO_OK;
    case PO_ATTR_INTS:
        p->n_ints = a->n;
        p->ints = (int64_t *)(uintptr_t)a->u.ints;
        return PO_OK;
    case PO_ATTR_STRINGS:
        make_strings(ex, a, p);
        return PO_OK;
    case PO_ATTR_TENSORS:
        make_tensors(ex, a, p);
        return PO_OK;
    case PO_ATTR_GRAPH:
    case PO_ATTR_GRAPHS:
        return make_graphs(ex, a, p);
    default:
        return po_fail(ex->ctx, PO_INTERNAL, "attribute '%.100s' of kind %d has no message",
                       a->name, (int)a->kind);
    }
}

static const char *name_of(const po_graph *g, po_value_id id) {
    return id == PO_NONE ? "" : po_graph_value_name(g, id);
}

static char **names_of(po_exporter *ex, const po_graph *g, const po_value_id *ids, uint32_t n) {
    char **names = PO_NEW_N(ex->arena, char *, n);
    for (uint32_t i = 0; i < n; i++)
        names[i] = mutable(name_of(g, ids[i]));
    return names;
}

static po_status make_node(po_exporter *ex, const po_graph *g, const po_node *n,
                           Onnx__NodeProto **proto) {
    const Onnx__NodeProto *old = n->origin;
    Onnx__NodeProto *p = PO_PROTO_NEW(ex->arena, Onnx__NodeProto, ONNX__NODE_PROTO__INIT);
    *proto = p;
    if (old)
        *p = *old;
    set_text(&p->op_type, n->op_type);
    set_text(&p->domain, n->domain);
    set_text(&p->overload, n->overload);
    set_text(&p->name, n->name);
    p->n_input = n->n_in;
    p->input = names_of(ex, g, n->in, n->n_in);
    p->n_output = n->n_out;
    p->output = names_of(ex, g, n->out, n->n_out);
    p->n_attribute = n->n_attr;
    p->attribute = PO_NEW_N(ex->arena, Onnx__AttributeProto *, n->n_attr);
    for (uint32_t i = 0; i < n->n_attr; i++)
        PO_TRY(make_attr(ex, &n->attr[i], &p->attribute[i]));
    return PO_OK;
}

/* A body must not have a value of its own that hides one that it captures: then the file would say
 * something else than the graph. */
static po_status check_captures(po_exporter *ex, const po_graph *g) {
    bool captures = false;
    for (po_value_id i = 0; i < g->n_values && !captures; i++)
        captures = g->values[i].outer != PO_NONE && (g->values[i].n_uses || g->values[i].n_outputs);
    if (!captures)
        return PO_OK;
    po_map *own = po_map_create(ex->arena);
    for (po_value_id i = 0; i < g->n_values; i++)
        if (g->values[i].outer == PO_NONE)
            po_map_put(own, g->values[i].name, i);
    for (po_value_id i = 0; i < g->n_values; i++) {
        const po_value *v = &g->values[i];
        uint32_t hides = v->outer != PO_NONE && (v->n_uses || v->n_outputs)
                             ? po_map_get(own, po_graph_value_name(g, i))
                             : PO_NONE;
        if (hides != PO_NONE && (g->values[hides].producer != PO_NONE ||
                                 g->values[hides].is_input || g->values[hides].is_initializer))
            return po_fail(ex->ctx, PO_INTERNAL,
                           "body '%.100s': tensor '%.100s' hides one that it "
                           "captures",
                           g->name, g->values[hides].name);
    }
    return PO_OK;
}

po_status po_make_graph(po_exporter *ex, const po_graph *g, Onnx__GraphProto **proto) {
    const Onnx__GraphProto *old = g->origin;
    Onnx__GraphProto *p = PO_PROTO_NEW(ex->arena, Onnx__GraphProto, ONNX__GRAPH_PROTO__INIT);
    *proto = p;
    if (old)
        *p = *old;
    PO_TRY(check_captures(ex, g));
    set_text(&p->name, g->name ? g->name : "");
    if (!p->name)
        p->name = old ? NULL : mutable("");
    uint32_t n;
    const po_node_id *order = po_graph_order(g, ex->arena, &n);
    if (n != g->n_live)
        return po_fail(ex->ctx, PO_INTERNAL, "graph '%.100s' has a cycle", g->name);
    p->n_node = n;
    p->node = PO_NEW_N(ex->arena, Onnx__NodeProto *, n);
    for (uint32_t i = 0; i < n; i++)
        PO_TRY(make_node(ex, g, &g->nodes[order[i]], &p->node[i]));
    p->n_initializer = 0;
    p->initializer = PO_NEW_N(ex->arena, Onnx__TensorProto *, g->n_initializers);
    for (uint32_t i = 0; i < g->n_initializers; i++) {
        const po_value *v = &g->values[g->initializers[i]];
        if (v->constant) /* else: sparse, kept by po_make_infos */
            p->initializer[p->n_initializer++] = po_make_tensor(ex, v->constant, v->name);
    }
    return po_make_infos(ex, g, old, p);
}
