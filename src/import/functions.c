/* The model's functions: each one is checked by building it, and none may call itself. */
#include "import/parts.h"

typedef struct call_graph {
    po_importer *im;
    po_map *index;  /* "domain\nname\noverload" to function */
    uint8_t *state; /* 0 not seen, 1 being visited, 2 done */
    po_function_sum *sums;
    bool called; /* what is visited is called from the graph, at last */
} call_graph;

static const char *or_empty(const char *text) {
    return text ? text : "";
}

static const char *plain(const char *domain) {
    return strcmp(or_empty(domain), "ai.onnx") == 0 ? "" : or_empty(domain);
}

const char *po_function_key(po_arena *arena, const char *domain, const char *name,
                            const char *overload) {
    return po_arena_printf(arena, "%s\n%s\n%s", plain(domain), or_empty(name), or_empty(overload));
}

/* --- sums --- */

typedef struct hashing {
    ProtobufCBuffer base;
    po_hash hash;
} hashing;

static void add_bytes(ProtobufCBuffer *buffer, size_t size, const uint8_t *data) {
    hashing *h = (hashing *)buffer;
    h->hash = po_hash_bytes(data, size, h->hash);
}

po_hash po_message_hash(const ProtobufCMessage *message) {
    hashing h = {.base = {.append = add_bytes}};
    protobuf_c_message_pack_to_buffer(message, &h.base);
    return h.hash;
}

static po_function_sum sum_of(po_importer *im, const Onnx__FunctionProto *f) {
    return (po_function_sum){plain(f->domain), f->name,
                             po_arena_strdup(im->arena, or_empty(f->overload)),
                             po_message_hash(&f->base)};
}

/* --- calls --- */

/* A call has no more inputs and outputs than the function that it calls. */
static po_status check_width(call_graph *c, const po_place *at, const Onnx__NodeProto *n,
                             uint32_t callee) {
    const Onnx__FunctionProto *f = c->im->proto->functions[callee];
    if (n->n_input > f->n_input || n->n_output > f->n_output)
        return po_bad(c->im, at,
                      "the call of '%.100s' has too many inputs or outputs (found %zu and %zu, "
                      "limit %zu and %zu)",
                      f->name, n->n_input, n->n_output, f->n_input, f->n_output);
    return PO_OK;
}

static po_status visit(call_graph *c, uint32_t f, int depth);

/* The nodes of function `f`, or of a body within it. */
static po_status visit_nodes(call_graph *c, const po_place *place, uint32_t f,
                             Onnx__NodeProto *const *nodes, size_t n, int depth) {
    po_hash *sum = &c->sums[f].contents;
    for (size_t i = 0; i < n; i++) {
        const Onnx__NodeProto *node = nodes[i];
        po_place at = {place, "node", (int64_t)i, node->name};
        uint32_t callee = po_map_get(
            c->index, po_function_key(c->im->scratch, node->domain, node->op_type, node->overload));
        if (callee != PO_NONE) {
            if (c->called) /* runtimes take a wide call that is never made */
                PO_TRY(check_width(c, &at, node, callee));
            PO_TRY(visit(c, callee, depth + 1));
            *sum = po_hash_u64(po_hash_u64(*sum, c->sums[callee].contents.lo),
                               c->sums[callee].contents.hi);
        }
        for (size_t k = 0; k < node->n_attribute; k++) {
            const Onnx__AttributeProto *a = node->attribute[k];
            if (a->g)
                PO_TRY(visit_nodes(c, &at, f, a->g->node, a->g->n_node, depth));
            for (size_t g = 0; g < a->n_graphs; g++)
                PO_TRY(visit_nodes(c, &at, f, a->graphs[g]->node, a->graphs[g]->n_node, depth));
        }
    }
    return PO_OK;
}

static po_status visit(call_graph *c, uint32_t f, int depth) {
    const Onnx__FunctionProto *fn = c->im->proto->functions[f];
    po_place at = {NULL, "functions", f, fn->name};
    if (c->state[f] == 2)
        return PO_OK;
    if (c->state[f] == 1)
        return po_bad(c->im, &at, "the function calls itself, directly or through others");
    if (depth > PO_MOST_CALLS)
        return po_bad(c->im, &at, "functions call one another too deep (limit %d)", PO_MOST_CALLS);
    c->state[f] = 1;
    PO_TRY(visit_nodes(c, &at, f, fn->node, fn->n_node, depth));
    c->state[f] = 2;
    return PO_OK;
}

/* A function imports the operator sets of its nodes itself. */
static po_status check_imports(po_importer *im, const po_place *place,
                               const Onnx__FunctionProto *f) {
    for (size_t i = 0; i < f->n_node; i++) {
        bool known = false;
        for (size_t k = 0; k < f->n_opset_import && !known; k++)
            known = strcmp(plain(f->opset_import[k]->domain), plain(f->node[i]->domain)) == 0;
        po_place at = {place, "node", (int64_t)i, f->node[i]->name};
        if (!known)
            return po_bad(im, &at, "the function does not import the operator set '%.60s'",
                          plain(f->node[i]->domain));
    }
    return PO_OK;
}

/* Calls in the graph and its bodies, and what they lead to. */
static po_status check_calls(call_graph *c, const po_place *place, const Onnx__GraphProto *g) {
    for (size_t i = 0; i < g->n_node; i++) {
        const Onnx__NodeProto *n = g->node[i];
        po_place at = {place, "node", (int64_t)i, n->name};
        uint32_t callee = po_map_get(
            c->index, po_function_key(c->im->scratch, n->domain, n->op_type, n->overload));
        if (callee != PO_NONE) {
            if (po_model_opset(c->im->model, plain(n->domain)) == 0)
                return po_bad(c->im, &at, "the operator set '%.60s' of a function is not imported",
                              plain(n->domain));
            PO_TRY(check_width(c, &at, n, callee));
            PO_TRY(visit(c, callee, 0));
        }
        for (size_t k = 0; k < n->n_attribute; k++) {
            const Onnx__AttributeProto *a = n->attribute[k];
            if (a->g)
                PO_TRY(check_calls(c, &at, a->g));
            for (size_t b = 0; b < a->n_graphs; b++)
                PO_TRY(check_calls(c, &at, a->graphs[b]));
        }
    }
    return PO_OK;
}

static po_status build_body(po_importer *im, const po_place *place, const Onnx__FunctionProto *f,
                            po_graph *graph) {
    po_binding binding = {.function = f};
    po_scope scope = {.graph = graph, .names = po_map_create(im->scratch), .binding = &binding};
    for (size_t i = 0; i < f->n_input; i++) {
        if (!*f->input[i] || po_map_get(scope.names, f->input[i]) != PO_NONE)
            return po_bad(im, place, "input %zu has no name or one that is taken", i);
        po_map_put(scope.names, f->input[i], po_graph_add_input(graph, f->input[i], NULL));
    }
    PO_TRY(po_build_nodes(im, place, &scope, f->node, f->n_node));
    for (size_t i = 0; i < f->n_output; i++)
        if (po_scope_find(&scope, f->output[i]) == PO_NONE)
            return po_bad(im, place, "nothing makes output %zu ('%.100s')", i, f->output[i]);
    return PO_OK;
}

/* Builds the body as a graph of its own, which is thrown away. */
static po_status check_body(po_importer *im, const po_place *place, const Onnx__FunctionProto *f) {
    po_graph *graph = po_graph_create(im->ctx, im->model, or_empty(f->name));
    po_status status = build_body(im, place, f, graph);
    po_graph_free(graph);
    return status;
}

static po_status check_parameters(po_importer *im, const po_place *place,
                                  const Onnx__FunctionProto *f) {
    po_map *names = po_map_create(im->scratch);
    for (size_t i = 0; i < f->n_attribute; i++)
        if (po_map_put(names, f->attribute[i], 0) != PO_NONE)
            return po_bad(im, place, "attribute '%.100s' is there twice", f->attribute[i]);
    for (size_t i = 0; i < f->n_attribute_proto; i++) {
        const Onnx__AttributeProto *a = f->attribute_proto[i];
        po_place at = {place, "attribute_proto", (int64_t)i, a->name};
        po_attr_kind kind;
        PO_TRY(po_attr_check(im, &at, a, &kind));
        if (a->ref_attr_name && *a->ref_attr_name)
            return po_bad(im, &at, "a default refers to an attribute ('%.100s')", a->ref_attr_name);
        if (po_map_put(names, or_empty(a->name), 0) != PO_NONE)
            return po_bad(im, place, "attribute '%.100s' is there twice", or_empty(a->name));
    }
    return PO_OK;
}

po_status po_check_functions(po_importer *im) {
    const Onnx__ModelProto *m = im->proto;
    call_graph c = {.im = im,
                    .index = po_map_create(im->scratch),
                    .state = PO_NEW_N(im->scratch, uint8_t, m->n_functions),
                    .sums = PO_NEW_N(im->arena, po_function_sum, m->n_functions)};
    for (size_t i = 0; i < m->n_functions; i++) {
        const Onnx__FunctionProto *f = m->functions[i];
        po_place at = {NULL, "functions", (int64_t)i, f->name};
        if (!f->name || !*f->name)
            return po_bad(im, &at, "a function has no name");
        const char *key = po_function_key(im->scratch, f->domain, f->name, f->overload);
        if (po_map_put(c.index, key, (uint32_t)i) != PO_NONE)
            return po_bad(im, &at, "the function is there twice");
        PO_TRY(check_parameters(im, &at, f));
        PO_TRY(check_body(im, &at, f));
        PO_TRY(check_imports(im, &at, f));
        c.sums[i] = sum_of(im, f);
    }
    po_place graph = {NULL, "graph", -1, NULL};
    c.called = true;
    if (m->n_functions)
        PO_TRY(check_calls(&c, &graph, m->graph));
    c.called = false;
    for (size_t i = 0; i < m->n_functions; i++)
        PO_TRY(visit(&c, (uint32_t)i, 0));
    im->model->functions = c.sums;
    im->model->n_functions = (uint32_t)m->n_functions;
    return PO_OK;
}
