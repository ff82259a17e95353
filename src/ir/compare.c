/* Structural comparison and hash of graphs, and the check of their invariants. */
#include "ir/function.h"

/* --- operators --- */

static int64_t version_of(const po_graph *g, const po_node *node) {
    return g->model ? po_model_opset(g->model, node->domain) : 0;
}

po_hash po_graph_operator_hash(const po_graph *graph, const po_node *node) {
    const po_function_sum *sum = po_model_function(graph->model, node);
    const po_function *made = po_graph_function(graph, node);
    po_hash h = po_hash_u64((po_hash){5, 0}, (uint64_t)version_of(graph, node));
    if (sum)
        h = po_hash_u64(po_hash_u64(h, sum->contents.lo), sum->contents.hi);
    if (made) {
        po_hash body = po_graph_hash(made->body);
        h = po_hash_u64(po_hash_u64(h, body.lo), body.hi);
    }
    return po_hash_str(h, node->overload);
}

/* --- comparison --- */

typedef struct matching {
    const po_graph *a, *b;
    po_value_id *of; /* value of b for each value of a; PO_NONE: not matched yet */
    struct matching *outer;
} matching;

static bool graphs_match(const po_graph *a, const po_graph *b, matching *outer, po_arena *scratch);

static bool values_match(matching *m, po_value_id x, po_value_id y) {
    if (x == PO_NONE || y == PO_NONE)
        return x == y;
    if (m->of[x] != PO_NONE)
        return m->of[x] == y;
    const po_value *v = &m->a->values[x], *w = &m->b->values[y];
    bool same;
    if (v->outer != PO_NONE || w->outer != PO_NONE)
        /* The captured value may be met here first: a constant, or a capture itself. */
        same = v->outer != PO_NONE && w->outer != PO_NONE && m->outer &&
               values_match(m->outer, v->outer, w->outer);
    else
        same = v->constant && w->constant && v->producer == PO_NONE && w->producer == PO_NONE &&
               v->is_input == w->is_input && po_tensor_equal(v->constant, w->constant);
    if (same)
        m->of[x] = y;
    return same;
}

static bool bytes_match(po_bytes a, po_bytes b) {
    return a.size == b.size && (a.size == 0 || memcmp(a.data, b.data, a.size) == 0);
}

bool po_attr_equal(const po_attr *a, const po_attr *b) {
    if (a->kind != b->kind || !a->reference != !b->reference ||
        (a->reference && strcmp(a->reference, b->reference) != 0))
        return false;
    if (a->reference)
        return true;
    if (a->n != b->n)
        return false;
    switch (a->kind) {
    case PO_ATTR_FLOAT:
        return memcmp(&a->u.f, &b->u.f, sizeof a->u.f) == 0;
    case PO_ATTR_INT:
        return a->u.i == b->u.i;
    case PO_ATTR_STRING:
        return bytes_match(a->u.s, b->u.s);
    case PO_ATTR_TENSOR:
        return po_tensor_equal(a->u.t, b->u.t);
    case PO_ATTR_FLOATS:
        return a->n == 0 || memcmp(a->u.floats, b->u.floats, a->n * sizeof(float)) == 0;
    case PO_ATTR_INTS:
        return a->n == 0 || memcmp(a->u.ints, b->u.ints, a->n * sizeof(int64_t)) == 0;
    case PO_ATTR_STRINGS:
        for (uint32_t i = 0; i < a->n; i++)
            if (!bytes_match(a->u.strings[i], b->u.strings[i]))
                return false;
        return true;
    case PO_ATTR_TENSORS:
        for (uint32_t i = 0; i < a->n; i++)
            if (!po_tensor_equal(a->u.tensors[i], b->u.tensors[i]))
                return false;
        return true;
    case PO_ATTR_GRAPH:
    case PO_ATTR_GRAPHS:
        return false;
    default:
        return po_hash_equal(a->u.verbatim, b->u.verbatim);
    }
}

static bool attrs_match(const po_attr *a, const po_attr *b, matching *m, po_arena *scratch) {
    bool bodies = a->kind == b->kind && a->n == b->n && !a->reference && !b->reference;
    if (bodies && a->kind == PO_ATTR_GRAPH)
        return graphs_match(a->u.g, b->u.g, m, scratch);
    if (!bodies || a->kind != PO_ATTR_GRAPHS)
        return po_attr_equal(a, b);
    for (uint32_t i = 0; i < a->n; i++)
        if (!graphs_match(a->u.graphs[i], b->u.graphs[i], m, scratch))
            return false;
    return true;
}

static bool functions_match(const matching *m, const po_node *a, const po_node *b) {
    const po_function *f = po_graph_function(m->a, a), *g = po_graph_function(m->b, b);
    const po_function_sum *x = po_model_function(m->a->model, a);
    const po_function_sum *y = po_model_function(m->b->model, b);
    if (f && g)
        return f->body == g->body || po_graph_equal(f->body, g->body);
    /* A call that petopt made, and the same one read back: its name is made of what it holds. */
    if (f || g)
        return strcmp(a->domain, PO_KERNEL_DOMAIN) == 0;
    return x && y ? po_hash_equal(x->contents, y->contents) : !x && !y;
}

static bool operators_match(const matching *m, const po_node *a, const po_node *b) {
    bool made = strcmp(a->domain, PO_KERNEL_DOMAIN) == 0; /* its version is written on export */
    return strcmp(a->op_type, b->op_type) == 0 && strcmp(a->domain, b->domain) == 0 &&
           strcmp(a->overload, b->overload) == 0 &&
           (made || version_of(m->a, a) == version_of(m->b, b)) && functions_match(m, a, b);
}

static bool nodes_match(matching *m, const po_node *a, const po_node *b, po_arena *scratch) {
    if (a->n_in != b->n_in || a->n_out != b->n_out || a->n_attr != b->n_attr ||
        !operators_match(m, a, b))
        return false;
    for (uint32_t i = 0; i < a->n_in; i++)
        if (!values_match(m, a->in[i], b->in[i]))
            return false;
    for (uint32_t i = 0; i < a->n_attr; i++) {
        const po_attr *other = po_node_attr(b, a->attr[i].name);
        if (!other || !attrs_match(&a->attr[i], other, m, scratch))
            return false;
    }
    for (uint32_t i = 0; i < a->n_out; i++) {
        if ((a->out[i] == PO_NONE) != (b->out[i] == PO_NONE))
            return false;
        if (a->out[i] != PO_NONE)
            m->of[a->out[i]] = b->out[i];
    }
    return true;
}

static bool graphs_match(const po_graph *a, const po_graph *b, matching *outer, po_arena *scratch) {
    if (a->n_inputs != b->n_inputs || a->n_outputs != b->n_outputs || a->n_live != b->n_live)
        return false;
    matching m = {a, b, PO_NEW_N(scratch, po_value_id, a->n_values), outer};
    for (uint32_t i = 0; i < a->n_values; i++)
        m.of[i] = PO_NONE;
    for (uint32_t i = 0; i < a->n_inputs; i++) {
        const po_value *v = &a->values[a->inputs[i]], *w = &b->values[b->inputs[i]];
        if (strcmp(v->name, w->name) != 0 || !po_type_equal(&v->type, &w->type))
            return false;
        if (!v->constant != !w->constant ||
            (v->constant && !po_tensor_equal(v->constant, w->constant)))
            return false;
        m.of[a->inputs[i]] = b->inputs[i];
    }
    uint32_t n, n_b;
    const po_node_id *x = po_graph_order(a, scratch, &n);
    const po_node_id *y = po_graph_order(b, scratch, &n_b);
    if (n != n_b)
        return false;
    for (uint32_t i = 0; i < n; i++)
        if (!nodes_match(&m, &a->nodes[x[i]], &b->nodes[y[i]], scratch))
            return false;
    for (uint32_t i = 0; i < a->n_outputs; i++)
        if (!values_match(&m, a->outputs[i], b->outputs[i]) ||
            strcmp(po_graph_value_name(a, a->outputs[i]), po_graph_value_name(b, b->outputs[i])) !=
                0)
            return false;
    return true;
}

/* Scratch memory comes from an arena of a's context, made for the call. */
bool po_graph_equal(const po_graph *a, const po_graph *b) {
    po_arena *scratch = po_arena_child(a->arena);
    bool equal = graphs_match(a, b, NULL, scratch);
    po_arena_free(scratch);
    return equal;
}

/* --- hash --- */

static po_hash hash_graph(const po_graph *g, const po_hash *outer, po_arena *scratch);

static po_hash hash_mix(po_hash h, po_hash with) {
    return po_hash_u64(po_hash_u64(h, with.lo), with.hi);
}

static po_hash hash_type(po_hash h, const po_type *type, po_arena *scratch) {
    po_text text;
    po_text_init(&text, scratch);
    po_type_print(&text, type);
    return po_hash_str(h, text.data);
}

po_hash po_attr_hash(const po_attr *a) {
    po_hash h = po_hash_str((po_hash){4, 0}, a->name);
    h = po_hash_u64(h, (uint64_t)a->kind << 32 | (a->reference ? 0 : a->n));
    if (a->reference)
        return po_hash_str(h, a->reference);
    switch (a->kind) {
    case PO_ATTR_FLOAT:
        return po_hash_bytes(&a->u.f, sizeof a->u.f, h);
    case PO_ATTR_INT:
        return po_hash_u64(h, (uint64_t)a->u.i);
    case PO_ATTR_STRING:
        return po_hash_bytes(a->u.s.data, a->u.s.size, h);
    case PO_ATTR_TENSOR:
        return hash_mix(h, po_tensor_hash(a->u.t));
    case PO_ATTR_FLOATS:
        return po_hash_bytes(a->u.floats, a->n * sizeof(float), h);
    case PO_ATTR_INTS:
        return po_hash_bytes(a->u.ints, a->n * sizeof(int64_t), h);
    case PO_ATTR_STRINGS:
        for (uint32_t i = 0; i < a->n; i++)
            h = po_hash_bytes(a->u.strings[i].data, a->u.strings[i].size,
                              po_hash_u64(h, a->u.strings[i].size));
        return h;
    case PO_ATTR_TENSORS:
        for (uint32_t i = 0; i < a->n; i++)
            h = hash_mix(h, po_tensor_hash(a->u.tensors[i]));
        return h;
    case PO_ATTR_GRAPH:
    case PO_ATTR_GRAPHS:
        return h;
    default:
        return hash_mix(h, a->u.verbatim);
    }
}

static po_hash hash_attr(const po_attr *a, const po_hash *values, po_arena *scratch) {
    po_hash h = po_attr_hash(a);
    if (!a->reference && a->kind == PO_ATTR_GRAPH)
        return hash_mix(h, hash_graph(a->u.g, values, scratch));
    for (uint32_t i = 0; !a->reference && a->kind == PO_ATTR_GRAPHS && i < a->n; i++)
        h = hash_mix(h, hash_graph(a->u.graphs[i], values, scratch));
    return h;
}

static po_hash hash_graph(const po_graph *g, const po_hash *outer, po_arena *scratch) {
    po_hash *values = PO_NEW_N(scratch, po_hash, g->n_values);
    po_hash h = {g->n_inputs, g->n_outputs};
    uint32_t captures = 0;
    for (uint32_t i = 0; i < g->n_values; i++) {
        const po_value *v = &g->values[i];
        if (v->outer != PO_NONE) /* of a body alone: told apart by their order */
            values[i] = outer ? outer[v->outer] : (po_hash){6, captures++};
        else if (v->constant && v->producer == PO_NONE)
            values[i] = po_tensor_hash(v->constant);
    }
    for (uint32_t i = 0; i < g->n_inputs; i++) {
        const po_value *v = &g->values[g->inputs[i]];
        po_hash own =
            po_hash_u64(hash_type(po_hash_str((po_hash){1, i}, v->name), &v->type, scratch),
                        v->constant != NULL);
        values[g->inputs[i]] = v->constant ? hash_mix(own, po_tensor_hash(v->constant)) : own;
        h = hash_mix(h, values[g->inputs[i]]);
    }
    uint32_t n;
    const po_node_id *order = po_graph_order(g, scratch, &n);
    for (uint32_t i = 0; i < n; i++) {
        const po_node *node = &g->nodes[order[i]];
        po_hash own =
            po_hash_str(po_hash_str((po_hash){2, node->n_in}, node->op_type), node->domain);
        own = hash_mix(own, po_graph_operator_hash(g, node));
        for (uint32_t k = 0; k < node->n_in; k++)
            own = node->in[k] == PO_NONE ? po_hash_u64(own, 3) : hash_mix(own, values[node->in[k]]);
        po_hash attrs = {0, 0}; /* a sum: their order does not count */
        for (uint32_t k = 0; k < node->n_attr; k++) {
            po_hash a = hash_attr(&node->attr[k], values, scratch);
            attrs.lo += a.lo;
            attrs.hi += a.hi;
        }
        own = hash_mix(own, attrs);
        for (uint32_t k = 0; k < node->n_out; k++)
            if (node->out[k] != PO_NONE)
                values[node->out[k]] = po_hash_u64(own, k);
        h = hash_mix(h, own);
    }
    for (uint32_t i = 0; i < g->n_outputs; i++)
        h = hash_mix(po_hash_str(h, po_graph_value_name(g, g->outputs[i])), values[g->outputs[i]]);
    return h;
}

po_hash po_graph_hash(const po_graph *graph) {
    po_arena *scratch = po_arena_child(graph->arena);
    po_hash h = hash_graph(graph, NULL, scratch);
    po_arena_free(scratch);
    return h;
}

/* --- invariants --- */

static po_status check_value(po_ctx *ctx, const po_graph *g, po_value_id id, uint32_t n_outputs) {
    const po_value *v = &g->values[id];
    if (!v->name || !*v->name)
        return po_fail(ctx, PO_INTERNAL, "graph '%s': value %u has no name", g->name, id);
    if (v->producer != PO_NONE) {
        if (v->producer >= g->n_nodes || g->nodes[v->producer].removed ||
            v->output >= g->nodes[v->producer].n_out || g->nodes[v->producer].out[v->output] != id)
            return po_fail(ctx, PO_INTERNAL, "tensor '%s': its producer does not make it", v->name);
        if (v->is_input || v->is_initializer || v->outer != PO_NONE)
            return po_fail(ctx, PO_INTERNAL, "tensor '%s': both produced and given", v->name);
    }
    for (uint32_t i = 0; i < v->n_uses; i++) {
        po_use u = v->uses[i];
        if (u.node >= g->n_nodes || g->nodes[u.node].removed)
            return po_fail(ctx, PO_INTERNAL, "tensor '%s': used by a removed node", v->name);
        if (u.input != PO_USE_CAPTURE &&
            (u.input >= g->nodes[u.node].n_in || g->nodes[u.node].in[u.input] != id))
            return po_fail(ctx, PO_INTERNAL, "tensor '%s': a use that node '%s' does not make",
                           v->name, g->nodes[u.node].name);
    }
    if (n_outputs != v->n_outputs)
        return po_fail(ctx, PO_INTERNAL, "tensor '%s': output count is wrong", v->name);
    return PO_OK;
}

static po_status check_use(po_ctx *ctx, const po_graph *g, po_value_id id, po_node_id node,
                           uint32_t input) {
    const po_value *v = &g->values[id];
    if (input != PO_USE_CAPTURE) {
        uint32_t at = g->nodes[node].slot[input];
        if (at < v->n_uses && v->uses[at].node == node && v->uses[at].input == input)
            return PO_OK;
    }
    for (uint32_t i = 0; input == PO_USE_CAPTURE && i < v->n_uses; i++)
        if (v->uses[i].node == node && v->uses[i].input == input)
            return PO_OK;
    return po_fail(ctx, PO_INTERNAL, "tensor '%s': use by node '%s' is not listed", v->name,
                   g->nodes[node].name);
}

static po_status check_values(po_ctx *ctx, const po_graph *g) {
    po_arena *scratch = po_arena_create(ctx);
    uint32_t *n_outputs = PO_NEW_N(scratch, uint32_t, g->n_values);
    po_status status = PO_OK;
    for (uint32_t i = 0; i < g->n_outputs; i++)
        if (g->outputs[i] < g->n_values)
            n_outputs[g->outputs[i]]++;
    for (po_value_id i = 0; i < g->n_values && status == PO_OK; i++)
        status = check_value(ctx, g, i, n_outputs[i]);
    po_arena_free(scratch);
    return status;
}

static po_status check_graph(po_ctx *ctx, po_graph *g, void *user) {
    (void)user;
    uint32_t live = 0;
    PO_TRY(check_values(ctx, g));
    for (po_node_id i = 0; i < g->n_nodes; i++) {
        const po_node *n = &g->nodes[i];
        if (n->removed)
            continue;
        live++;
        for (uint32_t k = 0; k < n->n_in; k++) {
            if (n->in[k] == PO_NONE)
                continue;
            if (n->in[k] >= g->n_values)
                return po_fail(ctx, PO_INTERNAL, "node '%s': input %u is out of range", n->name, k);
            const po_value *v = &g->values[n->in[k]];
            if (v->producer == PO_NONE && !v->is_input && !v->is_initializer && v->outer == PO_NONE)
                return po_fail(ctx, PO_INTERNAL, "node '%s': nothing makes its input '%s'", n->name,
                               v->name);
            PO_TRY(check_use(ctx, g, n->in[k], i, k));
        }
        for (uint32_t k = 0; k < n->n_out; k++)
            if (n->out[k] != PO_NONE &&
                (n->out[k] >= g->n_values || g->values[n->out[k]].producer != i))
                return po_fail(ctx, PO_INTERNAL, "node '%s': output %u is not its own", n->name, k);
    }
    if (live != g->n_live)
        return po_fail(ctx, PO_INTERNAL, "graph '%s': %u live nodes, %u counted", g->name, live,
                       g->n_live);
    if (g->owner != PO_NONE && g->parent)
        for (po_value_id i = 0; i < g->n_values; i++)
            if (g->values[i].outer != PO_NONE)
                PO_TRY(check_use(ctx, g->parent, g->values[i].outer, g->owner, PO_USE_CAPTURE));
    po_arena *scratch = po_arena_create(ctx);
    uint32_t n;
    po_graph_order(g, scratch, &n);
    po_arena_free(scratch);
    if (n != g->n_live)
        return po_fail(ctx, PO_INTERNAL, "graph '%s': has a cycle", g->name);
    return PO_OK;
}

po_status po_graph_check(po_ctx *ctx, const po_graph *graph) {
    return po_graph_walk(ctx, (po_graph *)(uintptr_t)graph, check_graph, NULL);
}
