/* What belongs to the whole file: operator sets, functions, the IR version. */
#include "export/parts.h"
#include "ir/function.h"

/* Before this IR version every initialiser had to be listed among the inputs. */
enum { IR_OF_FREE_INITIALISERS = 4 };

static char *mutable(const char *text) {
    return (char *)(uintptr_t)text; /* protobuf-c's structures have no const; they are only read */
}

/* --- which functions the graph calls --- */

static void collect_calls(po_exporter *ex, const po_graph *g, po_map *calls) {
    for (po_node_id i = 0; i < g->n_nodes; i++) {
        const po_node *n = &g->nodes[i];
        if (n->removed)
            continue;
        if (strcmp(n->domain, PO_KERNEL_DOMAIN) == 0)
            po_map_put(calls, n->op_type, 0);
        for (uint32_t k = 0; k < n->n_attr; k++) {
            const po_attr *a = &n->attr[k];
            if (a->kind == PO_ATTR_GRAPH && a->u.g)
                collect_calls(ex, a->u.g, calls);
            for (uint32_t b = 0; a->kind == PO_ATTR_GRAPHS && b < a->n; b++)
                collect_calls(ex, a->u.graphs[b], calls);
        }
    }
}

static Onnx__OperatorSetIdProto *make_opset(po_exporter *ex, const char *domain, int64_t version) {
    Onnx__OperatorSetIdProto *made =
        PO_PROTO_NEW(ex->arena, Onnx__OperatorSetIdProto, ONNX__OPERATOR_SET_ID_PROTO__INIT);
    made->domain = mutable(domain);
    made->has_version = 1;
    made->version = version;
    return made;
}

/* --- operator sets --- */

/* As they were where the IR's list is the same. */
static void make_opsets(po_exporter *ex, const Onnx__ModelProto *old, bool calls,
                        Onnx__ModelProto *p) {
    const po_model *m = ex->model;
    if (old && old->n_opset_import == 0 && m->n_opsets == 1 && m->opsets[0].version == 1 && !calls)
        return; /* implied by the IR version */
    p->n_opset_import = 0;
    p->opset_import = PO_NEW_N(ex->arena, Onnx__OperatorSetIdProto *, m->n_opsets + 1);
    for (uint32_t i = 0; i < m->n_opsets; i++) {
        const po_opset *o = &m->opsets[i];
        if (strcmp(o->domain, PO_KERNEL_DOMAIN) == 0 && !calls)
            continue; /* its calls are gone */
        const Onnx__OperatorSetIdProto *same = NULL;
        for (size_t k = 0; old && k < old->n_opset_import; k++) {
            const Onnx__OperatorSetIdProto *was = old->opset_import[k];
            if (strcmp(was->domain ? was->domain : "", o->domain) == 0)
                same = was;
        }
        Onnx__OperatorSetIdProto *made = make_opset(ex, o->domain, o->version);
        if (same) {
            *made = *same;
            made->has_version = 1;
            made->version = o->version;
        }
        p->opset_import[p->n_opset_import++] = made;
    }
    if (calls && po_model_opset(m, PO_KERNEL_DOMAIN) == 0)
        p->opset_import[p->n_opset_import++] =
            make_opset(ex, PO_KERNEL_DOMAIN, PO_KERNEL_DOMAIN_VERSION);
}

/* --- functions --- */

/* The operator sets of the domains that the nodes are of. */
static void make_imports(po_exporter *ex, Onnx__FunctionProto *f) {
    f->opset_import = PO_NEW_N(ex->arena, Onnx__OperatorSetIdProto *, ex->model->n_opsets + 1);
    for (uint32_t i = 0; i < ex->model->n_opsets; i++) {
        const po_opset *o = &ex->model->opsets[i];
        bool used = false;
        for (size_t k = 0; k < f->n_node && !used; k++) {
            const char *d = f->node[k]->domain ? f->node[k]->domain : "";
            used = strcmp(strcmp(d, "ai.onnx") == 0 ? "" : d,
                          strcmp(o->domain, "ai.onnx") == 0 ? "" : o->domain) == 0;
        }
        if (used)
            f->opset_import[f->n_opset_import++] = make_opset(ex, o->domain, o->version);
    }
}

static Onnx__NodeProto *make_constant(po_exporter *ex, const Onnx__TensorProto *tensor) {
    Onnx__NodeProto *n = PO_PROTO_NEW(ex->arena, Onnx__NodeProto, ONNX__NODE_PROTO__INIT);
    Onnx__AttributeProto *a =
        PO_PROTO_NEW(ex->arena, Onnx__AttributeProto, ONNX__ATTRIBUTE_PROTO__INIT);
    Onnx__TensorProto *value = PO_PROTO_NEW(ex->arena, Onnx__TensorProto, ONNX__TENSOR_PROTO__INIT);
    *value = *tensor;
    value->name = NULL;
    value->has_data_location = 0; /* functions hold their constants, whatever the model's do */
    value->n_external_data = 0;
    a->name = mutable("value");
    a->has_type = 1;
    a->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__TENSOR;
    a->t = value;
    n->op_type = mutable("Constant");
    n->n_output = 1;
    n->output = PO_NEW_N(ex->arena, char *, 1);
    n->output[0] = tensor->name;
    n->n_attribute = 1;
    n->attribute = PO_NEW_N(ex->arena, Onnx__AttributeProto *, 1);
    n->attribute[0] = a;
    return n;
}

static char **copy_names(po_exporter *ex, Onnx__ValueInfoProto *const *infos, size_t n) {
    char **names = PO_NEW_N(ex->arena, char *, n);
    for (size_t i = 0; i < n; i++)
        names[i] = infos[i]->name;
    return names;
}

/* A function has no initialisers: they become Constant nodes. */
static po_status make_function(po_exporter *ex, const po_function *function,
                               Onnx__FunctionProto **made) {
    Onnx__GraphProto *g;
    PO_TRY(po_make_graph(ex, function->body, &g));
    Onnx__FunctionProto *f =
        PO_PROTO_NEW(ex->arena, Onnx__FunctionProto, ONNX__FUNCTION_PROTO__INIT);
    *made = f;
    f->domain = mutable(function->domain);
    f->name = mutable(function->name);
    f->n_input = g->n_input;
    f->input = copy_names(ex, g->input, g->n_input);
    f->n_output = g->n_output;
    f->output = copy_names(ex, g->output, g->n_output);
    f->n_node = g->n_initializer + g->n_node;
    f->node = PO_NEW_N(ex->arena, Onnx__NodeProto *, f->n_node);
    for (size_t i = 0; i < g->n_initializer; i++)
        f->node[i] = make_constant(ex, g->initializer[i]);
    for (size_t i = 0; i < g->n_node; i++)
        f->node[g->n_initializer + i] = g->node[i];
    make_imports(ex, f);
    return PO_OK;
}

/* The model's own; of those that kernels stand for, such as the graph calls. */
static po_status make_functions(po_exporter *ex, const po_graph *graph, const po_map *calls,
                                const Onnx__ModelProto *old, Onnx__ModelProto *p) {
    size_t n_old = old ? old->n_functions : 0;
    if (n_old + graph->n_functions == 0)
        return PO_OK;
    po_map *there = po_map_create(ex->arena);
    p->n_functions = 0;
    p->functions = PO_NEW_N(ex->arena, Onnx__FunctionProto *, n_old + graph->n_functions);
    for (uint32_t i = 0; i < graph->n_functions; i++) {
        const po_function *f = &graph->functions[i];
        if (po_map_get(calls, f->name) == PO_NONE)
            continue;
        po_map_put(there, f->name, 0);
        PO_TRY(make_function(ex, f, &p->functions[p->n_functions++]));
    }
    for (size_t i = 0; i < n_old; i++) {
        Onnx__FunctionProto *f = old->functions[i];
        bool ours = f->domain && strcmp(f->domain, PO_KERNEL_DOMAIN) == 0;
        if (!ours ||
            (po_map_get(calls, f->name) != PO_NONE && po_map_get(there, f->name) == PO_NONE))
            p->functions[p->n_functions++] = f;
    }
    return PO_OK;
}

/* --- the IR version --- */

/* Where it rises past the version that freed initialisers from the list of inputs, they leave it:
 * they would become inputs that callers may set, and no constants any more. */
static void raise_ir(po_exporter *ex, Onnx__ModelProto *p) {
    bool listed = p->ir_version < IR_OF_FREE_INITIALISERS;
    p->ir_version = PO_FUNCTION_IR;
    if (!listed)
        return;
    Onnx__GraphProto *g = p->graph;
    po_map *constants = po_map_create(ex->arena);
    for (size_t i = 0; i < g->n_initializer; i++)
        po_map_put(constants, g->initializer[i]->name, 0);
    Onnx__ValueInfoProto **inputs = PO_NEW_N(ex->arena, Onnx__ValueInfoProto *, g->n_input);
    size_t n = 0;
    for (size_t i = 0; i < g->n_input; i++)
        if (po_map_get(constants, g->input[i]->name) == PO_NONE)
            inputs[n++] = g->input[i];
    g->input = inputs;
    g->n_input = n;
}

po_status po_make_model(po_exporter *ex, const po_graph *graph, Onnx__ModelProto **proto) {
    const Onnx__ModelProto *old = ex->origin ? ex->origin->proto : NULL;
    Onnx__ModelProto *p = PO_PROTO_NEW(ex->arena, Onnx__ModelProto, ONNX__MODEL_PROTO__INIT);
    *proto = p;
    if (old)
        *p = *old;
    else
        p->producer_name = mutable("petopt");
    p->has_ir_version = 1;
    p->ir_version = ex->model->ir_version;
    po_map *calls = po_map_create(ex->arena);
    collect_calls(ex, graph, calls);
    make_opsets(ex, old, po_map_count(calls) > 0, p);
    PO_TRY(make_functions(ex, graph, calls, old, p));
    PO_TRY(po_make_graph(ex, graph, &p->graph));
    if (graph->n_functions > 0 && po_map_count(calls) > 0 && p->ir_version < PO_FUNCTION_IR)
        raise_ir(ex, p);
    return PO_OK;
}
