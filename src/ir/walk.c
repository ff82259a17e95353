/* Execution order, cloning, comparison and checking of graphs. */
#include "ir/graph.h"

/* A binary heap of node ids by (order, id). */
typedef struct heap {
    const po_graph *graph;
    po_node_id *ids;
    uint32_t n;
} heap;

static bool runs_before(const po_graph *g, po_node_id a, po_node_id b) {
    uint64_t x = g->nodes[a].order, y = g->nodes[b].order;
    return x != y ? x < y : a < b;
}

static void heap_push(heap *h, po_node_id id) {
    uint32_t i = h->n++;
    for (; i && runs_before(h->graph, id, h->ids[(i - 1) / 2]); i = (i - 1) / 2)
        h->ids[i] = h->ids[(i - 1) / 2];
    h->ids[i] = id;
}

static po_node_id heap_pop(heap *h) {
    po_node_id top = h->ids[0], last = h->ids[--h->n];
    uint32_t i = 0;
    for (uint32_t child; (child = 2 * i + 1) < h->n; i = child) {
        if (child + 1 < h->n && runs_before(h->graph, h->ids[child + 1], h->ids[child]))
            child++;
        if (!runs_before(h->graph, h->ids[child], last))
            break;
        h->ids[i] = h->ids[child];
    }
    h->ids[i] = last;
    return top;
}

/* Kahn's algorithm. A cycle leaves *n short of n_live: po_graph_check reports it. */
const po_node_id *po_graph_order(const po_graph *graph, po_arena *arena, uint32_t *n) {
    po_node_id *order = PO_NEW_N(arena, po_node_id, graph->n_live);
    uint32_t *waiting = PO_NEW_N(arena, uint32_t, graph->n_nodes);
    heap ready = {graph, PO_NEW_N(arena, po_node_id, graph->n_live + 1), 0};
    for (po_value_id v = 0; v < graph->n_values; v++)
        if (graph->values[v].producer != PO_NONE)
            for (uint32_t i = 0; i < graph->values[v].n_uses; i++)
                waiting[graph->values[v].uses[i].node]++;
    for (po_node_id i = 0; i < graph->n_nodes; i++)
        if (!graph->nodes[i].removed && waiting[i] == 0)
            heap_push(&ready, i);
    *n = 0;
    while (ready.n) {
        po_node_id id = heap_pop(&ready);
        const po_node *node = &graph->nodes[id];
        order[(*n)++] = id;
        for (uint32_t k = 0; k < node->n_out; k++) {
            if (node->out[k] == PO_NONE)
                continue;
            const po_value *v = &graph->values[node->out[k]];
            for (uint32_t i = 0; i < v->n_uses; i++)
                if (--waiting[v->uses[i].node] == 0)
                    heap_push(&ready, v->uses[i].node);
        }
    }
    return order;
}

po_value_id po_graph_input(const po_graph *graph, const char *name) {
    for (uint32_t i = 0; i < graph->n_inputs; i++)
        if (strcmp(graph->values[graph->inputs[i]].name, name) == 0)
            return graph->inputs[i];
    return PO_NONE;
}

static po_graph *clone_into(po_arena *arena, const po_graph *g, po_graph *parent);

static po_attr clone_attr(po_arena *arena, const po_attr *a, po_graph *owner) {
    po_attr copy = *a;
    if (a->kind == PO_ATTR_GRAPH && a->u.g)
        copy.u.g = clone_into(arena, a->u.g, owner);
    if (a->kind == PO_ATTR_GRAPHS) {
        copy.u.graphs = PO_NEW_N(arena, po_graph *, a->n);
        for (uint32_t i = 0; i < a->n; i++)
            copy.u.graphs[i] = clone_into(arena, a->u.graphs[i], owner);
    }
    return copy;
}

static po_graph *clone_into(po_arena *arena, const po_graph *g, po_graph *parent) {
    po_graph *c = po_arena_memdup(arena, g, sizeof *g);
    c->arena = arena;
    c->parent = parent;
    c->root = parent ? parent->root : c;
    c->cap_values = g->n_values;
    c->values = po_arena_memdup(arena, g->values, g->n_values * sizeof *g->values);
    for (uint32_t i = 0; i < g->n_values; i++) {
        po_value *v = &c->values[i];
        v->uses = po_arena_memdup(arena, v->uses, v->n_uses * sizeof *v->uses);
        v->cap_uses = v->n_uses;
    }
    c->cap_nodes = g->n_nodes;
    c->nodes = po_arena_memdup(arena, g->nodes, g->n_nodes * sizeof *g->nodes);
    for (uint32_t i = 0; i < g->n_nodes; i++) {
        po_node *n = &c->nodes[i];
        if (n->removed) {
            n->in = n->out = NULL;
            n->slot = NULL;
            n->attr = NULL;
            n->n_in = n->n_out = n->n_attr = 0;
            continue;
        }
        n->in = po_arena_memdup(arena, n->in, n->n_in * sizeof *n->in);
        n->slot = po_arena_memdup(arena, n->slot, n->n_in * sizeof *n->slot);
        n->out = po_arena_memdup(arena, n->out, n->n_out * sizeof *n->out);
        po_attr *attr = PO_NEW_N(arena, po_attr, n->n_attr);
        for (uint32_t k = 0; k < n->n_attr; k++)
            attr[k] = clone_attr(arena, &n->attr[k], c);
        n->attr = attr;
    }
    /* Lists of inputs and outputs grow at powers of two: copy the room too. */
    c->inputs = PO_NEW_N(arena, po_value_id, 2 * (size_t)g->n_inputs + 1);
    memcpy(c->inputs, g->inputs ? g->inputs : c->inputs, g->n_inputs * sizeof *g->inputs);
    c->outputs = PO_NEW_N(arena, po_value_id, 2 * (size_t)g->n_outputs + 1);
    memcpy(c->outputs, g->outputs ? g->outputs : c->outputs, g->n_outputs * sizeof *g->outputs);
    c->cap_initializers = g->n_initializers;
    c->initializers =
        po_arena_memdup(arena, g->initializers, g->n_initializers * sizeof *g->initializers);
    return c;
}

static void collect_names(po_map *names, const po_graph *g) {
    for (uint32_t i = 0; i < g->n_values; i++)
        if (g->values[i].outer == PO_NONE)
            po_map_put(names, g->values[i].name, 0);
    for (uint32_t i = 0; i < g->n_nodes; i++)
        for (uint32_t k = 0; k < g->nodes[i].n_attr; k++) {
            const po_attr *a = &g->nodes[i].attr[k];
            if (a->kind == PO_ATTR_GRAPH && a->u.g)
                collect_names(names, a->u.g);
            else if (a->kind == PO_ATTR_GRAPHS)
                for (uint32_t b = 0; b < a->n; b++)
                    collect_names(names, a->u.graphs[b]);
        }
}

po_graph *po_graph_clone(po_ctx *ctx, const po_graph *graph) {
    po_arena *arena = po_arena_create(ctx);
    po_graph *clone = clone_into(arena, graph, NULL);
    po_arena_hold(arena, graph->arena); /* names, attributes and tensors are not copied */
    clone->names = po_map_create(arena);
    collect_names(clone->names, clone);
    return clone;
}

po_status po_graph_walk(po_ctx *ctx, po_graph *graph,
                        po_status (*fn)(po_ctx *ctx, po_graph *graph, void *user), void *user) {
    PO_TRY(fn(ctx, graph, user));
    for (po_node_id i = 0; i < graph->n_nodes; i++) {
        if (graph->nodes[i].removed)
            continue;
        for (uint32_t k = 0; k < graph->nodes[i].n_attr; k++) {
            po_attr *a = &graph->nodes[i].attr[k];
            if (a->kind == PO_ATTR_GRAPH && a->u.g)
                PO_TRY(po_graph_walk(ctx, a->u.g, fn, user));
            else if (a->kind == PO_ATTR_GRAPHS)
                for (uint32_t b = 0; b < a->n; b++)
                    PO_TRY(po_graph_walk(ctx, a->u.graphs[b], fn, user));
        }
    }
    return PO_OK;
}
