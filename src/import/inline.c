/* Functions into the graph: their bodies are built once more, with the call's values for their
 * inputs and outputs and the call's attributes for their references. */
#include "import/parts.h"
#include "ops/op.h"

/* A graph may grow to this many nodes, or to twice its size; further calls stay calls. */
enum { MOST_NODES = 200000 };

typedef struct inliner {
    po_importer im;
    const Onnx__ModelProto *proto;
    po_map *index; /* key to function */
    uint64_t room; /* nodes that may be added still */
    uint32_t inlined;
} inliner;

static const char *or_empty(const char *text) {
    return text ? text : "";
}

/* Bodies with sparse initialisers, which are found by their names, and those change; and bodies
 * that hand on what the call leaves out. */
static bool has_odd_body(const po_map *omitted, Onnx__NodeProto *const *nodes, size_t n) {
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < nodes[i]->n_attribute; k++) {
            const Onnx__AttributeProto *a = nodes[i]->attribute[k];
            for (size_t g = 0; g < a->n_graphs + (a->g != NULL); g++) {
                const Onnx__GraphProto *body = g < a->n_graphs ? a->graphs[g] : a->g;
                bool odd = body->n_sparse_initializer > 0;
                for (size_t o = 0; o < body->n_output; o++)
                    odd |= po_map_get(omitted, body->output[o]->name) != PO_NONE;
                if (odd || has_odd_body(omitted, body->node, body->n_node))
                    return true;
            }
        }
    return false;
}

/* Domains whose operators runtimes know: the function is only their explanation. */
static bool known_to_runtimes(const char *domain) {
    return !*domain || strncmp(domain, "ai.onnx", 7) == 0 || strcmp(domain, "com.microsoft") == 0;
}

static bool may_inline(const inliner *in, const po_node *call, const Onnx__FunctionProto *f) {
    if (known_to_runtimes(or_empty(f->domain)) || call->n_in > f->n_input ||
        call->n_out > f->n_output || f->n_node > in->room)
        return false;
    if (po_model_opset(in->im.model, "") == 0)
        return false; /* Identity may be needed */
    for (uint32_t i = 0; i < call->n_attr; i++)
        if (call->attr[i].kind == PO_ATTR_GRAPH || call->attr[i].kind == PO_ATTR_GRAPHS)
            return false; /* a body belongs to one node */
    for (size_t i = 0; i < f->n_attribute_proto; i++)
        if (f->attribute_proto[i]->g || f->attribute_proto[i]->n_graphs)
            return false; /* the same of a default */
    for (size_t i = 0; i < f->n_opset_import; i++) {
        const Onnx__OperatorSetIdProto *o = f->opset_import[i];
        if (po_model_opset(in->im.model, or_empty(o->domain)) != o->version)
            return false;
    }
    return true;
}

static void add_identity(po_graph *g, po_node_id place, po_value_id from, po_value_id to) {
    po_node_spec spec = {.op_type = "Identity", .n_in = 1, .n_out = 1, .in = &from, .out = &to};
    po_graph_add_node_at(g, place, &spec);
}

static po_status inline_call(inliner *in, po_graph *g, po_node_id id,
                             const Onnx__FunctionProto *f) {
    po_arena *scratch = in->im.scratch;
    po_node call = g->nodes[id];
    po_map *omitted = po_map_create(scratch), *outputs = po_map_create(scratch);
    po_binding binding = {
        .function = f,
        .call = &call,
        .place = id,
        .caller = g,
        .prefix = po_arena_printf(scratch, "%s/", *call.name ? call.name : call.op_type),
        .omitted = omitted,
        .outputs = outputs,
    };
    po_scope scope = {.graph = g, .names = po_map_create(scratch), .binding = &binding};
    for (size_t i = 0; i < f->n_input; i++) {
        po_value_id given = i < call.n_in ? call.in[i] : PO_NONE;
        if (given == PO_NONE)
            po_map_put(omitted, f->input[i], 0);
        else
            po_map_put(scope.names, f->input[i], given);
    }
    for (uint32_t i = 0; i < call.n_out; i++)
        if (po_map_get(omitted, f->output[i]) != PO_NONE)
            return PO_OK; /* hands on what it was not given: stays a call */
    if (has_odd_body(omitted, f->node, f->n_node))
        return PO_OK;
    /* An output that is an input as well, or there before, is copied at the end. */
    bool *copied = PO_NEW_N(scratch, bool, call.n_out);
    for (uint32_t i = 0; i < call.n_out; i++) {
        const char *name = f->output[i];
        copied[i] = call.out[i] != PO_NONE && (po_map_get(scope.names, name) != PO_NONE ||
                                               po_map_get(outputs, name) != PO_NONE);
        if (call.out[i] != PO_NONE && !copied[i])
            po_map_put(outputs, name, call.out[i]);
    }
    po_graph_remove_node(g, id);
    po_place at = {NULL, "functions", -1, f->name};
    PO_TRY(po_build_nodes(&in->im, &at, &scope, f->node, f->n_node));
    for (uint32_t i = 0; i < call.n_out; i++)
        if (copied[i])
            add_identity(g, id, po_map_get(scope.names, f->output[i]), call.out[i]);
    in->room -= f->n_node;
    in->inlined++;
    return PO_OK;
}

/* New nodes come at the end of the list, so that calls within a function have their turn too. */
static po_status inline_graph(po_ctx *ctx, po_graph *g, void *user) {
    inliner *in = user;
    for (po_node_id i = 0; i < g->n_nodes; i++) {
        const po_node *n = &g->nodes[i];
        if (n->removed)
            continue;
        uint32_t f = po_map_get(
            in->index, po_function_key(in->im.scratch, n->domain, n->op_type, n->overload));
        if (f == PO_NONE || !may_inline(in, n, in->proto->functions[f]))
            continue;
        PO_TRY(po_ctx_poll(ctx));
        PO_TRY(inline_call(in, g, i, in->proto->functions[f]));
    }
    return PO_OK;
}

po_status po_inline_functions(po_ctx *ctx, po_graph *graph, const char *domain, uint32_t *inlined) {
    const po_origin *origin = graph->model ? graph->model->origin : NULL;
    if (inlined)
        *inlined = 0;
    if (!origin || origin->proto->n_functions == 0)
        return PO_OK;
    inliner in = {.proto = origin->proto};
    in.im = (po_importer){.ctx = ctx,
                          .arena = graph->arena,
                          .scratch = po_arena_create(ctx),
                          .file = graph->model->path ? graph->model->path : "model",
                          .model = graph->model};
    in.index = po_map_create(in.im.scratch);
    for (size_t i = 0; i < in.proto->n_functions; i++) {
        const Onnx__FunctionProto *f = in.proto->functions[i];
        if (domain && strcmp(or_empty(f->domain), domain) != 0)
            continue;
        po_map_put(in.index, po_function_key(in.im.scratch, f->domain, f->name, f->overload),
                   (uint32_t)i);
    }
    in.room = graph->n_nodes < MOST_NODES ? MOST_NODES - graph->n_nodes : graph->n_nodes;
    po_status status = po_graph_walk(ctx, graph, inline_graph, &in);
    po_arena_free(in.im.scratch);
    po_ops_resolve(graph);
    if (inlined)
        *inlined = in.inlined;
    return status;
}
