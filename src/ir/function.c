/* Functions of a graph: cutting nodes out as the body of one, and putting bodies back in. */
#include "ir/function.h"

#include "ir/copy.h"

/* --- the list --- */

static bool same_call(const po_function *f, const char *domain, const char *name) {
    return strcmp(f->name, name) == 0 && strcmp(f->domain, domain) == 0;
}

static const po_function *find(const po_graph *root, const char *domain, const char *name) {
    for (uint32_t i = 0; i < root->n_functions; i++)
        if (same_call(&root->functions[i], domain, name))
            return &root->functions[i];
    return NULL;
}

const po_function *po_graph_function(const po_graph *graph, const po_node *call) {
    return find(graph->root, call->domain, call->op_type);
}

void po_graph_add_function(po_graph *graph, const po_function *function) {
    po_graph *root = graph->root;
    if (find(root, function->domain, function->name))
        return;
    po_function copy = {po_arena_strdup(root->arena, function->domain),
                        po_arena_strdup(root->arena, function->name), function->body};
    /* A new array each time: clones share the old one. */
    po_function *all = PO_NEW_N(root->arena, po_function, root->n_functions + 1);
    if (root->n_functions)
        memcpy(all, root->functions, root->n_functions * sizeof *all);
    all[root->n_functions++] = copy;
    root->functions = all;
}

/* --- outlining --- */

typedef struct outlining {
    po_copying copy;
    const po_outline *o;
    po_node_id *order; /* o->nodes in execution order */
    bool *inside;      /* by node */
} outlining;

static void sort_nodes(outlining *u, po_arena *scratch) {
    const po_graph *g = u->copy.from;
    uint32_t n, k = 0;
    u->inside = PO_NEW_N(scratch, bool, g->n_nodes);
    for (uint32_t i = 0; i < u->o->n_nodes; i++)
        u->inside[u->o->nodes[i]] = true;
    const po_node_id *order = po_graph_order(g, scratch, &n);
    u->order = PO_NEW_N(scratch, po_node_id, u->o->n_nodes);
    for (uint32_t i = 0; i < n; i++)
        if (u->inside[order[i]])
            u->order[k++] = order[i];
}

static bool is_output(const po_outline *o, po_value_id v) {
    for (uint32_t i = 0; i < o->n_out; i++)
        if (o->out[i] == v)
            return true;
    return false;
}

/* What is read outside must be given outside. */
static po_status check_uses(const outlining *u) {
    const po_graph *g = u->copy.from;
    for (uint32_t k = 0; k < u->o->n_nodes; k++) {
        const po_node *node = &g->nodes[u->o->nodes[k]];
        for (uint32_t i = 0; i < node->n_out; i++) {
            if (node->out[i] == PO_NONE || is_output(u->o, node->out[i]))
                continue;
            const po_value *v = &g->values[node->out[i]];
            bool outside = v->n_outputs > 0;
            for (uint32_t use = 0; use < v->n_uses; use++)
                outside = outside || !u->inside[v->uses[use].node] ||
                          v->uses[use].input == PO_USE_CAPTURE;
            if (outside)
                return po_fail(u->copy.ctx, PO_UNSUPPORTED,
                               "'%.100s' is read outside of its function, which does not give it",
                               v->name);
        }
    }
    for (uint32_t i = 0; i < u->o->n_out; i++) {
        po_node_id p = g->values[u->o->out[i]].producer;
        if (p == PO_NONE || !u->inside[p])
            return po_fail(u->copy.ctx, PO_UNSUPPORTED,
                           "'%.100s' is to come from a function that does not make it",
                           po_graph_value_name(g, u->o->out[i]));
    }
    return PO_OK;
}

static po_status make_body(outlining *u) {
    po_copying *c = &u->copy;
    for (uint32_t i = 0; i < u->o->n_in; i++) {
        po_value_id v = u->o->in[i];
        c->map[v] =
            po_graph_add_input(c->to, po_graph_value_name(c->from, v), &c->from->values[v].type);
    }
    for (uint32_t i = 0; i < u->o->n_nodes; i++)
        PO_TRY(po_copy_node(c, &c->from->nodes[u->order[i]], PO_NONE));
    for (uint32_t i = 0; i < u->o->n_out; i++)
        po_graph_add_output(c->to, c->map[u->o->out[i]]);
    return PO_OK;
}

static po_node_id replace(const outlining *u, po_graph *g) {
    const po_outline *o = u->o;
    po_node_id last = u->order[o->n_nodes - 1];
    for (uint32_t k = o->n_nodes; k > 0; k--) {
        po_node *node = &g->nodes[u->order[k - 1]];
        for (uint32_t i = 0; i < node->n_out; i++)
            if (node->out[i] != PO_NONE)
                po_graph_set_output(g, u->order[k - 1], i, PO_NONE);
        po_graph_remove_node(g, u->order[k - 1]);
    }
    return po_graph_add_node_at(g, last,
                                &(po_node_spec){.op_type = o->name,
                                                .domain = o->domain,
                                                .name = o->node_name,
                                                .n_in = o->n_in,
                                                .n_out = o->n_out,
                                                .in = o->in,
                                                .out = o->out});
}

po_status po_graph_outline(po_ctx *ctx, po_graph *graph, const po_outline *outline, po_graph **body,
                           po_node_id *call) {
    if (po_model_opset(graph->model, "") < 9)
        return po_fail(ctx, PO_UNSUPPORTED,
                       "operator set %lld has no constants of integers, which "
                       "functions need: 9 or later does",
                       (long long)po_model_opset(graph->model, ""));
    po_arena *scratch = po_arena_create(ctx);
    outlining u = {.copy = {.ctx = ctx, .from = graph}, .o = outline};
    u.copy.to = po_graph_create(ctx, graph->model, outline->name);
    po_arena_hold(u.copy.to->arena, graph->arena);
    u.copy.map = po_copy_map(scratch, graph);
    sort_nodes(&u, scratch);
    po_status status = check_uses(&u);
    if (status == PO_OK)
        status = make_body(&u);
    if (status == PO_OK) {
        *call = replace(&u, graph);
        *body = u.copy.to;
        po_graph_add_function(graph, &(po_function){outline->domain, outline->name, u.copy.to});
    } else {
        po_graph_free(u.copy.to);
    }
    po_arena_free(scratch);
    return status;
}

/* --- inlining --- */

static void add_identity(po_graph *g, po_node_id place, po_value_id from, po_value_id to) {
    po_node_spec spec = {.op_type = "Identity", .n_in = 1, .n_out = 1, .in = &from, .out = &to};
    po_graph_add_node_at(g, place, &spec);
}

static po_status inline_call(po_ctx *ctx, po_graph *g, po_node_id id, const po_function *f) {
    po_arena *scratch = po_arena_create(ctx);
    po_node call = g->nodes[id];
    po_copying c = {ctx, f->body, g, po_copy_map(scratch, f->body),
                    *call.name ? call.name : call.op_type};
    if (call.n_in != f->body->n_inputs || call.n_out != f->body->n_outputs)
        return po_fail(ctx, PO_INTERNAL,
                       "a call of function '%.100s' has %u inputs and %u outputs, "
                       "not %u and %u",
                       f->name, call.n_in, call.n_out, f->body->n_inputs, f->body->n_outputs);
    for (uint32_t i = 0; i < call.n_in; i++)
        c.map[f->body->inputs[i]] = call.in[i];
    po_graph_remove_node(g, id);
    /* An output takes the place of the caller's value, unless it has one already. */
    bool *copied = PO_NEW_N(scratch, bool, call.n_out);
    for (uint32_t i = 0; i < call.n_out; i++) {
        po_value_id v = f->body->outputs[i];
        copied[i] = c.map[v] != PO_NONE || f->body->values[v].producer == PO_NONE;
        if (!copied[i])
            c.map[v] = call.out[i] != PO_NONE ? call.out[i] : PO_NONE;
    }
    uint32_t n;
    po_status status = PO_OK;
    const po_node_id *order = po_graph_order(f->body, scratch, &n);
    for (uint32_t i = 0; i < n && status == PO_OK; i++)
        status = po_copy_node(&c, &f->body->nodes[order[i]], id);
    for (uint32_t i = 0; i < call.n_out && status == PO_OK; i++) {
        po_value_id v = f->body->outputs[i];
        if (copied[i] && call.out[i] != PO_NONE)
            add_identity(g, id, c.map[v] != PO_NONE ? c.map[v] : po_copy_constant(&c, v),
                         call.out[i]);
    }
    po_arena_free(scratch);
    return status;
}

/* New nodes come at the end of the list: functions within functions have their turn too. */
static po_status inline_graph(po_ctx *ctx, po_graph *g, void *user) {
    uint32_t *inlined = user;
    for (po_node_id i = 0; i < g->n_nodes; i++) {
        const po_function *f = g->nodes[i].removed ? NULL : po_graph_function(g, &g->nodes[i]);
        if (!f)
            continue;
        PO_TRY(inline_call(ctx, g, i, f));
        ++*inlined;
    }
    return PO_OK;
}

po_status po_graph_inline(po_ctx *ctx, po_graph *graph, uint32_t *inlined) {
    uint32_t n = 0;
    if (graph->n_functions)
        PO_TRY(po_graph_walk(ctx, graph, inline_graph, &n));
    graph->functions = NULL;
    graph->n_functions = 0;
    if (inlined)
        *inlined = n;
    return PO_OK;
}
