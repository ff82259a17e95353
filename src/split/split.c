/* The subprograms of a model: clusters, each taken out, equal ones found by signature. */
#include "split/split.h"

#include "ops/op.h"
#include "split/parts.h"

#include <stdlib.h>

enum { MOST_OPERATORS = 4 };

typedef struct splitting {
    po_ctx *ctx;
    po_arena *arena;
    po_subprogram *subs;
    po_occurrence **at; /* by subprogram */
    uint32_t *cap_at;
    uint32_t n, cap_subs, n_nodes;
    po_hash_map *known;
} splitting;

/* Adds an occurrence; the subprogram too where it is a new one. */
static void add(splitting *s, po_graph *graph, uint32_t n_activations, po_occurrence at) {
    po_hash signature = po_hash_u64(po_graph_hash(graph), n_activations);
    uint32_t i = po_hash_map_get(s->known, signature);
    if (i != PO_NONE && po_graph_equal(s->subs[i].graph, graph)) {
        po_graph_free(graph);
    } else {
        po_arena_own(s->arena, graph->arena);
        po_subprogram sub = {
            .graph = graph, .n_activations = n_activations, .signature = signature};
        i = s->n;
        uint32_t cap_at = s->cap_subs, cap_cap = s->cap_subs, n = s->n;
        if (n == s->cap_subs) {
            s->at = po_arena_grow(s->arena, s->at, &cap_at, n + 1, sizeof *s->at);
            s->cap_at = po_arena_grow(s->arena, s->cap_at, &cap_cap, n + 1, sizeof *s->cap_at);
        }
        PO_PUSH(s->arena, s->subs, s->n, s->cap_subs, sub);
        s->at[i] = NULL;
        s->cap_at[i] = 0;
        po_hash_map_put(s->known, signature, i);
    }
    PO_PUSH(s->arena, s->at[i], s->subs[i].n_at, s->cap_at[i], at);
    s->subs[i].at = s->at[i];
    s->n_nodes += at.n_nodes;
}

static int by_rank(const void *a, const void *b) {
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

static po_status add_cluster(splitting *s, const po_clusters *c, uint32_t cluster) {
    po_arena *scratch = po_arena_create(s->ctx);
    uint32_t *nodes = PO_NEW_N(scratch, uint32_t, c->size[cluster]), n = 0;
    for (uint32_t id = c->first[cluster]; id != PO_NONE; id = c->next[id])
        nodes[n++] = c->rank[id];
    qsort(nodes, n, sizeof *nodes, by_rank);
    for (uint32_t i = 0; i < n; i++)
        nodes[i] = c->order[nodes[i]];
    po_extract made;
    PO_TRY(po_split_extract(s->ctx, s->arena, c->graph, nodes, n, true, &made));
    add(s, made.graph, made.n_activations, made.at);
    po_arena_free(scratch);
    return PO_OK;
}

po_status po_split_model(po_ctx *ctx, po_arena *arena, const po_graph *graph,
                         const po_split_options *options, po_split *split) {
    po_arena *scratch = po_arena_create(ctx);
    splitting s = {.ctx = ctx, .arena = arena, .known = po_hash_map_create(scratch)};
    uint32_t most = options && options->most_operators ? options->most_operators : MOST_OPERATORS;
    po_clusters *c;
    PO_TRY(po_clusters_find(ctx, scratch, graph, most, &c));
    for (uint32_t i = 0; i < c->n_order; i++) {
        uint32_t cluster = c->of[c->order[i]];
        if (c->low[cluster] == i && c->compute[cluster] > 0)
            PO_TRY(add_cluster(&s, c, cluster));
    }
    po_arena_free(scratch);
    *split = (po_split){s.subs, s.n, s.n_nodes};
    return po_split_check(ctx, graph, split);
}
