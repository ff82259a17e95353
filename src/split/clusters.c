/* Clusters of multilinear nodes. Two clusters become one where that leaves no cycle between
 * clusters: then every cluster is convex, and all of them may be replaced at once. */
#include "split/parts.h"

enum {
    MOST_NODES = 48,     /* of a cluster */
    MOST_VISITED = 8192, /* in one look for a path: beyond it two clusters stay apart */
};

/* --- building --- */

static po_clusters *create(po_arena *arena, const po_graph *graph) {
    po_clusters *c = PO_NEW(arena, po_clusters);
    uint32_t n = graph->n_nodes;
    c->graph = graph;
    c->order = po_graph_order(graph, arena, &c->n_order);
    uint32_t **arrays[] = {&c->of,      &c->next, &c->rank, &c->first, &c->last, &c->size,
                           &c->compute, &c->low,  &c->high, &c->seen,  &c->stack};
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++)
        *arrays[i] = PO_NEW_N(arena, uint32_t, n);
    c->kind = PO_NEW_N(arena, po_split_kind, n);
    for (uint32_t i = 0; i < n; i++)
        c->of[i] = c->next[i] = PO_NONE;
    for (uint32_t i = 0; i < c->n_order; i++) {
        po_node_id id = c->order[i];
        c->of[id] = c->first[id] = c->last[id] = id;
        c->rank[id] = c->low[id] = c->high[id] = i;
        c->size[id] = 1;
    }
    return c;
}

/* --- paths --- */

/* Calls fn for each node that reads one of the cluster's values; stops where it says false. */
static bool each_reader(const po_clusters *c, uint32_t cluster,
                        bool (*fn)(void *user, uint32_t reader), void *user) {
    for (uint32_t id = c->first[cluster]; id != PO_NONE; id = c->next[id]) {
        const po_node *node = &c->graph->nodes[id];
        for (uint32_t k = 0; k < node->n_out; k++) {
            if (node->out[k] == PO_NONE)
                continue;
            const po_value *v = &c->graph->values[node->out[k]];
            for (uint32_t u = 0; u < v->n_uses; u++)
                if (!fn(user, c->of[v->uses[u].node]))
                    return false;
        }
    }
    return true;
}

typedef struct search {
    po_clusters *c;
    uint32_t from, to, depth, visited;
    bool found;
} search;

static bool visit(void *user, uint32_t reader) {
    search *s = user;
    po_clusters *c = s->c;
    if (reader == s->to || s->visited > MOST_VISITED) {
        s->found = true;
        return false;
    }
    if (reader == s->from || c->seen[reader] == c->stamp || c->low[reader] > c->high[s->to])
        return true;
    c->seen[reader] = c->stamp;
    c->stack[s->depth++] = reader;
    s->visited++;
    return true;
}

/* The direct edges from -> to are no detour. */
static bool visit_first(void *user, uint32_t reader) {
    return reader == ((search *)user)->to ? true : visit(user, reader);
}

/* Whether a path leads from one cluster to the other through a third. */
static bool detour(po_clusters *c, uint32_t from, uint32_t to) {
    if (c->low[from] > c->high[to])
        return false;
    search s = {.c = c, .from = from, .to = to};
    c->stamp++;
    each_reader(c, from, visit_first, &s);
    while (s.depth > 0 && !s.found)
        each_reader(c, c->stack[--s.depth], visit, &s);
    return s.found;
}

/* --- merging --- */

static void join(po_clusters *c, uint32_t a, uint32_t b) {
    if (c->size[a] < c->size[b]) {
        uint32_t swap = a;
        a = b;
        b = swap;
    }
    for (uint32_t id = c->first[b]; id != PO_NONE; id = c->next[id])
        c->of[id] = a;
    c->next[c->last[a]] = c->first[b];
    c->last[a] = c->last[b];
    c->size[a] += c->size[b];
    c->compute[a] += c->compute[b];
    c->low[a] = c->low[a] < c->low[b] ? c->low[a] : c->low[b];
    c->high[a] = c->high[a] > c->high[b] ? c->high[a] : c->high[b];
}

static void try_join(po_clusters *c, po_node_id x, po_node_id y, uint32_t most_operators) {
    uint32_t a = c->of[x], b = c->of[y];
    if (a == b || c->size[a] + c->size[b] > MOST_NODES ||
        c->compute[a] + c->compute[b] > most_operators)
        return;
    if (!detour(c, a, b) && !detour(c, b, a))
        join(c, a, b);
}

static void join_chains(po_clusters *c, uint32_t most_operators) {
    for (uint32_t i = 0; i < c->n_order; i++) {
        po_node_id id = c->order[i];
        const po_node *node = &c->graph->nodes[id];
        for (uint32_t k = 0; k < node->n_in && c->kind[id]; k++) {
            po_node_id from =
                node->in[k] == PO_NONE ? PO_NONE : c->graph->values[node->in[k]].producer;
            if (from != PO_NONE && c->kind[from])
                try_join(c, from, id, most_operators);
        }
    }
}

/* Parallel operators that read one tensor. */
static void join_readers(po_clusters *c, uint32_t most_operators) {
    for (po_value_id v = 0; v < c->graph->n_values; v++) {
        const po_value *value = &c->graph->values[v];
        if (value->n_uses < 2 || po_graph_constant(c->graph, v))
            continue;
        po_node_id first = PO_NONE;
        for (uint32_t u = 0; u < value->n_uses; u++) {
            po_node_id id = value->uses[u].node;
            if (!c->kind[id] || !c->compute[c->of[id]])
                continue;
            if (first == PO_NONE)
                first = id;
            else
                try_join(c, first, id, most_operators);
        }
    }
}

po_status po_clusters_find(po_ctx *ctx, po_arena *arena, const po_graph *graph,
                           uint32_t most_operators, po_clusters **clusters) {
    po_clusters *c = create(arena, graph);
    for (uint32_t i = 0; i < c->n_order; i++) {
        po_node_id id = c->order[i];
        po_arena *scratch = po_arena_create(ctx);
        po_status status = po_split_kind_of(ctx, scratch, graph, &graph->nodes[id], &c->kind[id]);
        po_arena_free(scratch);
        PO_TRY(status);
        c->compute[id] = c->kind[id] == PO_SPLIT_COMPUTE;
    }
    join_chains(c, most_operators);
    join_readers(c, most_operators);
    *clusters = c;
    return PO_OK;
}
