/* Clusters of multilinear nodes. Two clusters become one where that leaves no cycle between
 * clusters: then every cluster is convex, and all of them may be replaced at once. */
#include "ops/conv_view.h"
#include "ops/rewrite.h"
#include "split/parts.h"

enum {
    MOST_NODES = 48,     /* of a cluster */
    MOST_BRANCHES = 8,   /* that meet in one node */
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

/* --- products that can be one --- */

/* Whether two products with weights differ in nothing but how many channels or columns they make:
 * concatenated weights make them one, or two groups of one. */
static bool alike(const po_clusters *c, po_node_id a, po_node_id b) {
    const po_graph *g = c->graph;
    const po_node *x = &g->nodes[a], *y = &g->nodes[b];
    if (c->kind[a] != PO_SPLIT_COMPUTE || c->kind[b] != PO_SPLIT_COMPUTE || x->op != y->op ||
        (!po_conv_is(x) && x->op != PO_OP_MatMul) || !po_graph_constant(g, x->in[1]) ||
        !po_graph_constant(g, y->in[1]))
        return false;
    int columns = po_rank_of(g, x->in[1]) - 1, made = po_rank_of(g, x->out[0]) - 1;
    bool conv = po_conv_is(x);
    return po_same_dims(g, x->in[0], y->in[0]) &&
           po_same_dims_but(g, x->in[1], y->in[1], conv ? 0 : columns) &&
           po_same_dims_but(g, x->out[0], y->out[0], conv ? 1 : made);
}

/* Q, K and V of one tensor, say, before what is made of two of them takes them apart. */
static void join_parallel(po_clusters *c, uint32_t most_operators) {
    for (po_value_id v = 0; v < c->graph->n_values; v++) {
        const po_value *value = &c->graph->values[v];
        for (uint32_t u = 1; u < value->n_uses && !value->constant; u++) {
            const po_use *use = &value->uses[u];
            for (uint32_t k = 0; k < u && use->input == 0; k++) {
                const po_use *other = &value->uses[k];
                if (other->input != 0 || !alike(c, other->node, use->node))
                    continue;
                try_join(c, other->node, use->node, most_operators);
                break;
            }
        }
    }
}

/* The product that makes a value, with nothing between but a bias or one activation that nothing
 * else reads; PO_NONE. */
static po_node_id product_before(const po_clusters *c, po_value_id v) {
    const po_graph *g = c->graph;
    for (uint32_t steps = 0; v != PO_NONE && steps < 3; steps++) {
        po_node_id id = g->values[v].producer;
        if (id == PO_NONE || !po_graph_sole_use(g, v))
            return PO_NONE;
        if (c->kind[id] == PO_SPLIT_COMPUTE)
            return id;
        if (!po_op_has(g->nodes[id].op, PO_OPF_ELEMENTWISE))
            return PO_NONE;
        v = g->nodes[id].in[0];
    }
    return PO_NONE;
}

/* Products alike of different tensors that meet in one node: equal branches. */
static void join_branches(po_clusters *c, uint32_t most_operators) {
    for (uint32_t i = 0; i < c->n_order; i++) {
        const po_node *node = &c->graph->nodes[c->order[i]];
        for (uint32_t k = 1; k < node->n_in && node->n_in <= MOST_BRANCHES; k++) {
            po_node_id b = product_before(c, node->in[k]);
            for (uint32_t l = 0; l < k && b != PO_NONE; l++) {
                po_node_id a = product_before(c, node->in[l]);
                if (a != PO_NONE && a != b && alike(c, a, b))
                    try_join(c, a, b, most_operators);
            }
        }
    }
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
    join_parallel(c, most_operators);
    join_chains(c, most_operators);
    join_readers(c, most_operators);
    join_branches(c, most_operators);
    *clusters = c;
    return PO_OK;
}
