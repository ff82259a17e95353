/* Building and editing graphs; use lists are maintained by every function here. */
#include "ir/graph.h"

void po_model_free(po_model *model) {
    if (!model)
        return;
    po_graph_free(model->graph);
    po_arena_free(model->arena);
}

int64_t po_model_opset(const po_model *model, const char *domain) {
    if (strcmp(domain, "ai.onnx") == 0)
        domain = "";
    for (uint32_t i = 0; i < model->n_opsets; i++) {
        const char *d = model->opsets[i].domain;
        if (strcmp(strcmp(d, "ai.onnx") == 0 ? "" : d, domain) == 0)
            return model->opsets[i].version;
    }
    return 0;
}

static const char *domain_of(const char *domain) {
    return strcmp(domain, "ai.onnx") == 0 ? "" : domain;
}

const po_function_sum *po_model_function(const po_model *model, const po_node *node) {
    for (uint32_t i = 0; model && i < model->n_functions; i++) {
        const po_function_sum *f = &model->functions[i];
        if (strcmp(f->name, node->op_type) == 0 && strcmp(f->overload, node->overload) == 0 &&
            strcmp(f->domain, domain_of(node->domain)) == 0)
            return f;
    }
    return NULL;
}

po_graph *po_graph_create(po_ctx *ctx, po_model *model, const char *name) {
    po_arena *arena = po_arena_create(ctx);
    po_graph *g = PO_NEW(arena, po_graph);
    g->arena = arena;
    g->model = model;
    g->root = g;
    g->owner = PO_NONE;
    g->name = po_arena_strdup(arena, name);
    g->names = po_map_create(arena);
    return g;
}

po_graph *po_graph_create_body(po_graph *parent, const char *name) {
    po_graph *g = PO_NEW(parent->arena, po_graph);
    g->arena = parent->arena;
    g->model = parent->model;
    g->parent = parent;
    g->root = parent->root;
    g->owner = PO_NONE;
    g->name = po_arena_strdup(parent->arena, name);
    return g;
}

void po_graph_free(const po_graph *graph) {
    if (graph)
        po_arena_free(graph->arena);
}

/* Takes the name, or makes one from it that nothing has yet. The value's id is not stored: bodies
 * have ids of their own. */
static const char *claim_name(po_graph *graph, const char *name) {
    po_graph *root = graph->root;
    if (name && po_map_get(root->names, name) == PO_NONE) {
        const char *copy = po_arena_strdup(graph->arena, name);
        po_map_put(root->names, copy, 0);
        return copy;
    }
    const char *stem = name ? name : "petopt";
    for (;;) {
        char *fresh = po_arena_printf(graph->arena, "%s_%u", stem, root->next_name++);
        if (po_map_get(root->names, fresh) == PO_NONE) {
            po_map_put(root->names, fresh, 0);
            return fresh;
        }
    }
}

static po_value_id push_value(po_graph *graph, po_value value) {
    if (graph->n_values == PO_NONE - 1)
        po_arena_exhausted(graph->arena);
    PO_PUSH(graph->arena, graph->values, graph->n_values, graph->cap_values, value);
    return graph->n_values - 1;
}

po_value_id po_graph_add_value(po_graph *graph, const char *name, const po_type *type) {
    return push_value(graph, (po_value){.name = claim_name(graph, name),
                                        .type = type ? *type : (po_type){0},
                                        .producer = PO_NONE,
                                        .outer = PO_NONE});
}

/* Inputs and outputs are few beside nodes and are added once: they are copied at each addition
 * only when their power-of-two capacity is used up. */
static po_value_id *push_id(po_graph *graph, po_value_id *ids, uint32_t *n, po_value_id id) {
    if ((*n & (*n - 1)) == 0) {
        po_value_id *grown = PO_NEW_N(graph->arena, po_value_id, *n ? 2 * (size_t)*n : 1);
        if (*n)
            memcpy(grown, ids, *n * sizeof *ids);
        ids = grown;
    }
    ids[(*n)++] = id;
    return ids;
}

po_value_id po_graph_add_input(po_graph *graph, const char *name, const po_type *type) {
    po_value_id id = po_graph_add_value(graph, name, type);
    graph->values[id].is_input = true;
    graph->inputs = push_id(graph, graph->inputs, &graph->n_inputs, id);
    return id;
}

static void push_initializer(po_graph *graph, po_value_id id) {
    graph->values[id].is_initializer = true;
    PO_PUSH(graph->arena, graph->initializers, graph->n_initializers, graph->cap_initializers, id);
}

po_value_id po_graph_add_constant(po_graph *graph, const char *name, const po_tensor *tensor) {
    po_type type = po_tensor_type(graph->arena, tensor);
    po_value_id id = po_graph_add_value(graph, name, &type);
    graph->values[id].constant = tensor;
    push_initializer(graph, id);
    return id;
}

void po_graph_add_output(po_graph *graph, po_value_id value) {
    graph->values[value].n_outputs++;
    graph->outputs = push_id(graph, graph->outputs, &graph->n_outputs, value);
}

static void add_use(po_graph *graph, po_value_id value, po_node_id node, uint32_t input) {
    if (value == PO_NONE)
        return;
    po_value *v = &graph->values[value];
    po_use use = {node, input};
    PO_PUSH(graph->arena, v->uses, v->n_uses, v->cap_uses, use);
    if (input != PO_USE_CAPTURE)
        graph->nodes[node].slot[input] = v->n_uses - 1;
}

/* Constant time for inputs, so that a constant that everything reads costs no more than others. */
static void drop_use(po_graph *graph, po_value_id value, po_node_id node, uint32_t input) {
    if (value == PO_NONE)
        return;
    po_value *v = &graph->values[value];
    uint32_t at = 0;
    if (input != PO_USE_CAPTURE)
        at = graph->nodes[node].slot[input];
    else
        while (at < v->n_uses && (v->uses[at].node != node || v->uses[at].input != input))
            at++;
    if (at >= v->n_uses)
        return;
    po_use last = v->uses[--v->n_uses];
    v->uses[at] = last;
    if (at < v->n_uses && last.input != PO_USE_CAPTURE)
        graph->nodes[last.node].slot[last.input] = at;
}

static bool has_capture(const po_graph *graph, po_value_id value, po_node_id node) {
    const po_value *v = &graph->values[value];
    for (uint32_t i = 0; i < v->n_uses; i++)
        if (v->uses[i].node == node && v->uses[i].input == PO_USE_CAPTURE)
            return true;
    return false;
}

po_value_id po_graph_capture(po_graph *body, po_value_id parent_value) {
    for (uint32_t i = 0; i < body->n_values; i++)
        if (body->values[i].outer == parent_value)
            return i;
    po_graph *parent = body->parent;
    const po_value *outer = &parent->values[parent_value];
    po_value_id id = push_value(body, (po_value){.name = outer->name,
                                                 .type = outer->type,
                                                 .producer = PO_NONE,
                                                 .outer = parent_value,
                                                 .partial = outer->partial});
    if (body->owner != PO_NONE && !has_capture(parent, parent_value, body->owner))
        add_use(parent, parent_value, body->owner, PO_USE_CAPTURE);
    return id;
}

/* Calls fn for each body that the node holds. */
static void each_body(const po_node *node, void (*fn)(po_graph *body, void *user), void *user) {
    for (uint32_t i = 0; i < node->n_attr; i++) {
        const po_attr *a = &node->attr[i];
        if (a->kind == PO_ATTR_GRAPH && a->u.g)
            fn(a->u.g, user);
        else if (a->kind == PO_ATTR_GRAPHS)
            for (uint32_t k = 0; k < a->n; k++)
                fn(a->u.graphs[k], user);
    }
}

typedef struct capture_walk {
    po_graph *graph;
    po_node_id node;
    po_value_id from, to;
} capture_walk;

static void adopt_body(po_graph *body, void *user) {
    const capture_walk *w = user;
    body->owner = w->node;
    for (uint32_t i = 0; i < body->n_values; i++) {
        po_value_id outer = body->values[i].outer;
        if (outer != PO_NONE && !has_capture(w->graph, outer, w->node))
            add_use(w->graph, outer, w->node, PO_USE_CAPTURE);
    }
}

static po_node_id add_node(po_graph *graph, uint64_t order, const po_node_spec *spec) {
    po_arena *arena = graph->arena;
    po_node_id id = graph->n_nodes;
    if (id == PO_NONE - 1)
        po_arena_exhausted(arena);
    po_node node = {
        .op = spec->op,
        .op_type = po_arena_strdup(arena, spec->op_type),
        .domain = spec->domain && *spec->domain ? po_arena_strdup(arena, spec->domain) : "",
        .overload = spec->overload && *spec->overload ? po_arena_strdup(arena, spec->overload) : "",
        .name = spec->name && *spec->name ? po_arena_strdup(arena, spec->name) : "",
        .n_in = spec->n_in,
        .n_out = spec->n_out,
        .n_attr = spec->n_attr,
        .in = po_arena_memdup(arena, spec->in, spec->n_in * sizeof *spec->in),
        .out = po_arena_memdup(arena, spec->out, spec->n_out * sizeof *spec->out),
        .slot = PO_NEW_N(arena, uint32_t, spec->n_in),
        .attr = po_arena_memdup(arena, spec->attr, spec->n_attr * sizeof *spec->attr),
        .order = order,
        .origin = spec->origin,
    };
    PO_PUSH(arena, graph->nodes, graph->n_nodes, graph->cap_nodes, node);
    graph->n_live++;
    for (uint32_t i = 0; i < node.n_in; i++)
        add_use(graph, node.in[i], id, i);
    for (uint32_t i = 0; i < node.n_out; i++)
        if (node.out[i] != PO_NONE) {
            graph->values[node.out[i]].producer = id;
            graph->values[node.out[i]].output = i;
        }
    each_body(&node, adopt_body, &(capture_walk){graph, id, PO_NONE, PO_NONE});
    return id;
}

po_node_spec po_node_spec_like(const po_node *node, const po_value_id *in, const po_value_id *out) {
    return (po_node_spec){.op = node->op,
                          .op_type = node->op_type,
                          .domain = node->domain,
                          .overload = node->overload,
                          .name = node->name,
                          .n_in = node->n_in,
                          .n_out = node->n_out,
                          .n_attr = node->n_attr,
                          .in = in,
                          .out = out,
                          .attr = node->attr,
                          .origin = node->origin};
}

po_node_id po_graph_add_node(po_graph *graph, const po_node_spec *spec) {
    return add_node(graph, graph->next_order++, spec);
}

po_node_id po_graph_add_node_at(po_graph *graph, po_node_id place, const po_node_spec *spec) {
    return add_node(graph, graph->nodes[place].order, spec);
}

void po_graph_set_input(po_graph *graph, po_node_id node, uint32_t input, po_value_id value) {
    po_node *n = &graph->nodes[node];
    drop_use(graph, n->in[input], node, input);
    n->in[input] = value;
    add_use(graph, value, node, input);
}

void po_graph_resize_inputs(po_graph *graph, po_node_id node, uint32_t n_in) {
    po_node *n = &graph->nodes[node];
    for (uint32_t i = n_in; i < n->n_in; i++)
        drop_use(graph, n->in[i], node, i);
    if (n_in > n->n_in) {
        po_value_id *grown = PO_NEW_N(graph->arena, po_value_id, n_in);
        if (n->n_in)
            memcpy(grown, n->in, n->n_in * sizeof *grown);
        for (uint32_t i = n->n_in; i < n_in; i++)
            grown[i] = PO_NONE;
        n->in = grown;
        uint32_t *slots = PO_NEW_N(graph->arena, uint32_t, n_in);
        memcpy(slots, n->slot, n->n_in * sizeof *slots);
        n->slot = slots;
    }
    n->n_in = n_in;
}

void po_graph_set_output(po_graph *graph, po_node_id node, uint32_t output, po_value_id value) {
    po_node *n = &graph->nodes[node];
    if (n->out[output] != PO_NONE)
        graph->values[n->out[output]].producer = PO_NONE;
    n->out[output] = value;
    if (value != PO_NONE) {
        graph->values[value].producer = node;
        graph->values[value].output = output;
    }
}

static void recapture(po_graph *body, void *user) {
    const capture_walk *w = user;
    for (uint32_t i = 0; i < body->n_values; i++)
        if (body->values[i].outer == w->from)
            body->values[i].outer = w->to;
}

bool po_graph_replace_uses(po_graph *graph, po_value_id from, po_value_id to) {
    if (from == to)
        return true;
    po_value *f = &graph->values[from];
    po_use *uses = f->uses;
    uint32_t n = f->n_uses;
    f->uses = NULL;
    f->n_uses = f->cap_uses = 0;
    for (uint32_t i = 0; i < n; i++) {
        po_node_id node = uses[i].node;
        if (uses[i].input != PO_USE_CAPTURE) {
            graph->nodes[node].in[uses[i].input] = to;
            add_use(graph, to, node, uses[i].input);
            continue;
        }
        each_body(&graph->nodes[node], recapture, &(capture_walk){graph, node, from, to});
        if (!has_capture(graph, to, node))
            add_use(graph, to, node, PO_USE_CAPTURE);
    }
    if (f->n_outputs == 0)
        return true;
    po_value *t = &graph->values[to];
    if (t->is_input || t->is_initializer || t->n_outputs || t->outer != PO_NONE)
        return false;
    const char *name = t->name;
    t->name = f->name;
    f->name = name;
    t->origin = f->origin;
    f->origin = NULL;
    t->n_outputs = f->n_outputs;
    f->n_outputs = 0;
    for (uint32_t i = 0; i < graph->n_outputs; i++)
        if (graph->outputs[i] == from)
            graph->outputs[i] = to;
    return true;
}

static void release_body(po_graph *body, void *user) {
    const capture_walk *w = user;
    for (uint32_t i = 0; i < body->n_values; i++)
        if (body->values[i].outer != PO_NONE)
            drop_use(w->graph, body->values[i].outer, w->node, PO_USE_CAPTURE);
}

void po_graph_remove_node(po_graph *graph, po_node_id node) {
    po_node *n = &graph->nodes[node];
    if (n->removed)
        return;
    for (uint32_t i = 0; i < n->n_in; i++)
        drop_use(graph, n->in[i], node, i);
    each_body(n, release_body, &(capture_walk){graph, node, PO_NONE, PO_NONE});
    for (uint32_t i = 0; i < n->n_out; i++)
        if (n->out[i] != PO_NONE)
            graph->values[n->out[i]].producer = PO_NONE;
    n->removed = true;
    graph->n_live--;
}

static bool unused(const po_graph *graph, po_value_id value) {
    return value == PO_NONE ||
           (graph->values[value].n_uses == 0 && graph->values[value].n_outputs == 0);
}

static bool node_unused(const po_graph *graph, const po_node *node) {
    for (uint32_t i = 0; i < node->n_out; i++)
        if (!unused(graph, node->out[i]))
            return false;
    return true;
}

typedef struct sweep_state {
    po_graph *graph;
    po_node_id *stack;
    uint32_t n, cap, removed;
} sweep_state;

static void push_producer(sweep_state *s, po_value_id value) {
    if (value == PO_NONE || !unused(s->graph, value))
        return;
    po_node_id producer = s->graph->values[value].producer;
    if (producer != PO_NONE && !s->graph->nodes[producer].removed)
        PO_PUSH(s->graph->arena, s->stack, s->n, s->cap, producer);
}

static void sweep_body(po_graph *body, void *user) {
    *(uint32_t *)user += po_graph_sweep(body);
}

static void push_captured(po_graph *body, void *user) {
    for (uint32_t i = 0; i < body->n_values; i++)
        if (body->values[i].outer != PO_NONE)
            push_producer(user, body->values[i].outer);
}

/* Captured values that nothing in the body uses any more give up their use of the parent. */
static void drop_stale_captures(po_graph *body, void *user) {
    const capture_walk *w = user;
    for (uint32_t i = 0; i < body->n_values; i++) {
        po_value *v = &body->values[i];
        if (v->outer == PO_NONE || v->n_uses || v->n_outputs)
            continue;
        drop_use(w->graph, v->outer, w->node, PO_USE_CAPTURE);
        v->outer = PO_NONE;
    }
}

void po_graph_free_initialisers(po_graph *graph) {
    uint32_t kept = 0;
    for (uint32_t i = 0; i < graph->n_inputs; i++) {
        po_value *v = &graph->values[graph->inputs[i]];
        if (v->constant)
            v->is_input = false;
        else
            graph->inputs[kept++] = graph->inputs[i];
    }
    graph->n_inputs = kept;
}

uint32_t po_graph_sweep(po_graph *graph) {
    sweep_state s = {.graph = graph};
    for (po_node_id i = 0; i < graph->n_nodes; i++) {
        po_node *n = &graph->nodes[i];
        if (n->removed)
            continue;
        capture_walk w = {graph, i, PO_NONE, PO_NONE};
        each_body(n, sweep_body, &s.removed);
        each_body(n, drop_stale_captures, &w);
        /* What another body of the node captures too is taken up again. */
        each_body(n, adopt_body, &w);
    }
    for (po_node_id i = 0; i < graph->n_nodes; i++)
        if (!graph->nodes[i].removed && node_unused(graph, &graph->nodes[i]))
            PO_PUSH(graph->arena, s.stack, s.n, s.cap, i);
    while (s.n) {
        po_node_id id = s.stack[--s.n];
        po_node *n = &graph->nodes[id];
        if (n->removed || !node_unused(graph, n))
            continue;
        po_graph_remove_node(graph, id);
        s.removed++;
        for (uint32_t i = 0; i < n->n_in; i++)
            push_producer(&s, n->in[i]);
        each_body(n, push_captured, &s);
    }
    uint32_t kept = 0;
    for (uint32_t i = 0; i < graph->n_initializers; i++) {
        po_value_id id = graph->initializers[i];
        po_value *v = &graph->values[id];
        if (v->is_input || !unused(graph, id))
            graph->initializers[kept++] = id;
        else
            v->is_initializer = false;
    }
    graph->n_initializers = kept;
    return s.removed;
}

bool po_graph_make_constant(po_graph *graph, po_value_id value, const po_tensor *tensor) {
    po_value *v = &graph->values[value];
    if (v->is_input || v->n_outputs || v->outer != PO_NONE)
        return false;
    v->constant = tensor;
    v->recipe = NULL;
    v->type = po_tensor_type(graph->arena, tensor);
    if (v->is_initializer)
        return true;
    po_node_id producer = v->producer;
    uint32_t output = v->output;
    v->producer = PO_NONE;
    push_initializer(graph, value);
    if (producer == PO_NONE)
        return true;
    graph->nodes[producer].out[output] = PO_NONE;
    if (node_unused(graph, &graph->nodes[producer])) {
        po_graph_remove_node(graph, producer);
    } else {
        /* Outputs that the operator requires stay present, under a name that nothing reads. */
        po_type type = graph->values[value].type;
        po_graph_set_output(graph, producer, output, po_graph_add_value(graph, NULL, &type));
    }
    return true;
}

const char *po_graph_value_name(const po_graph *graph, po_value_id value) {
    while (graph->values[value].outer != PO_NONE && graph->parent) {
        value = graph->values[value].outer;
        graph = graph->parent;
    }
    return graph->values[value].name;
}

const po_node *po_graph_producer(const po_graph *graph, po_value_id value) {
    if (value == PO_NONE || graph->values[value].producer == PO_NONE)
        return NULL;
    return &graph->nodes[graph->values[value].producer];
}

const po_use *po_graph_sole_use(const po_graph *graph, po_value_id value) {
    const po_value *v = &graph->values[value];
    if (v->n_uses != 1 || v->n_outputs || v->uses[0].input == PO_USE_CAPTURE)
        return NULL;
    return &v->uses[0];
}

const po_tensor *po_graph_constant(const po_graph *graph, po_value_id value) {
    if (value == PO_NONE)
        return NULL;
    while (graph->values[value].outer != PO_NONE && graph->parent) {
        value = graph->values[value].outer;
        graph = graph->parent;
    }
    const po_value *v = &graph->values[value];
    bool overridable = v->is_input && (!graph->model || graph->model->ir_version >= 4);
    return overridable ? NULL : v->constant;
}
