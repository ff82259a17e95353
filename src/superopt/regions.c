/* Finding regions, and an independent look at them. */
#include "superopt/regions.h"

#include "base/groups.h"

typedef struct finding {
    po_ctx *ctx;
    po_arena *arena, *scratch;
    const po_graph *graph;
    const po_node_id *order;
    uint32_t n_order;
    po_region_part *part; /* by node */
    uint32_t *count;      /* by node */
    uint32_t *up;         /* by node: union-find, towards earlier nodes in the order */
    uint32_t *rank;       /* by node: place in the order */
} finding;

/* --- what a node waits for --- */

typedef void (*before_fn)(void *user, po_node_id producer);

/* Producers of all that a node reads, captures of its bodies included. */
static void each_producer(const po_graph *graph, po_node_id id, const uint32_t *captures,
                          uint32_t n_captures, before_fn fn, void *user) {
    const po_node *node = &graph->nodes[id];
    for (uint32_t i = 0; i < node->n_in; i++)
        if (node->in[i] != PO_NONE && graph->values[node->in[i]].producer != PO_NONE)
            fn(user, graph->values[node->in[i]].producer);
    for (uint32_t i = 0; i + 1 < n_captures; i += 2)
        if (captures[i] == id)
            fn(user, captures[i + 1]);
}

/* Pairs (node, producer) of values that bodies capture. */
static const uint32_t *captures_of(const po_graph *graph, po_arena *arena, uint32_t *n) {
    uint32_t *pairs = NULL, cap = 0;
    *n = 0;
    for (uint32_t v = 0; v < graph->n_values; v++)
        for (uint32_t u = 0; u < graph->values[v].n_uses; u++)
            if (graph->values[v].uses[u].input == PO_USE_CAPTURE &&
                graph->values[v].producer != PO_NONE) {
                PO_PUSH(arena, pairs, *n, cap, graph->values[v].uses[u].node);
                PO_PUSH(arena, pairs, *n, cap, graph->values[v].producer);
            }
    return pairs;
}

static void join(finding *f, uint32_t a, uint32_t b) {
    a = po_group_root(f->up, a);
    b = po_group_root(f->up, b);
    if (f->rank[a] < f->rank[b])
        f->up[b] = a;
    else
        f->up[a] = b;
}

typedef struct counting {
    finding *f;
    po_node_id node;
} counting;

static void raise_count(void *user, po_node_id producer) {
    counting *c = user;
    finding *f = c->f;
    bool inside = f->part[c->node] != PO_REGION_NOT, from = f->part[producer] != PO_REGION_NOT;
    uint32_t least = f->count[producer] + (from && !inside);
    if (f->count[c->node] < least)
        f->count[c->node] = least;
}

static void join_equal(void *user, po_node_id producer) {
    counting *c = user;
    finding *f = c->f;
    if (f->part[producer] != PO_REGION_NOT && f->count[producer] == f->count[c->node])
        join(f, producer, c->node);
}

/* --- borders --- */

static bool seen_outside(const po_graph *graph, po_value_id v, const uint32_t *of,
                         uint32_t region) {
    const po_value *value = &graph->values[v];
    if (value->n_outputs > 0)
        return true;
    for (uint32_t u = 0; u < value->n_uses; u++)
        if (value->uses[u].input == PO_USE_CAPTURE || of[value->uses[u].node] != region)
            return true;
    return false;
}

static void fill_borders(const po_graph *graph, po_arena *arena, po_arena *scratch, po_region *r,
                         const uint32_t *of, uint32_t region) {
    po_value_id *in = NULL, *out = NULL;
    uint32_t cap_in = 0, cap_out = 0;
    uint8_t *listed = PO_NEW_N(scratch, uint8_t, graph->n_values);
    for (uint32_t i = 0; i < r->n_nodes; i++) {
        const po_node *node = &graph->nodes[r->nodes[i]];
        for (uint32_t k = 0; k < node->n_in; k++) {
            po_value_id v = node->in[k];
            if (v == PO_NONE || listed[v] || po_graph_constant(graph, v))
                continue;
            po_node_id from = graph->values[v].producer;
            if (from != PO_NONE && of[from] == region)
                continue;
            listed[v] = 1;
            PO_PUSH(arena, in, r->n_in, cap_in, v);
        }
        for (uint32_t k = 0; k < node->n_out; k++)
            if (node->out[k] != PO_NONE && seen_outside(graph, node->out[k], of, region))
                PO_PUSH(arena, out, r->n_out, cap_out, node->out[k]);
    }
    r->in = in;
    r->out = out;
}

po_region po_region_of(po_arena *arena, const po_graph *graph, const po_node_id *nodes,
                       uint32_t n) {
    po_arena *scratch = po_arena_child(arena);
    uint32_t *of = PO_NEW_N(scratch, uint32_t, graph->n_nodes + 1);
    po_region r = {.nodes = nodes, .n_nodes = n};
    for (uint32_t i = 0; i < n; i++)
        of[nodes[i]] = 1;
    fill_borders(graph, arena, scratch, &r, of, 1);
    po_arena_free(scratch);
    return r;
}

/* --- finding --- */

static bool worth_it(const finding *f, const po_region *r) {
    uint32_t maps = 0;
    for (uint32_t i = 0; i < r->n_nodes; i++) {
        po_region_part part = f->part[r->nodes[i]];
        if (part == PO_REGION_CORE)
            return true;
        maps += part == PO_REGION_MAP;
    }
    return maps >= 2;
}

static void collect(finding *f, po_regions *regions) {
    const po_graph *graph = f->graph;
    uint32_t *of = PO_NEW_N(f->scratch, uint32_t, graph->n_nodes);
    po_node_id **nodes = PO_NEW_N(f->scratch, po_node_id *, graph->n_nodes);
    uint32_t *n = PO_NEW_N(f->scratch, uint32_t, graph->n_nodes);
    uint32_t *cap = PO_NEW_N(f->scratch, uint32_t, graph->n_nodes);
    for (uint32_t i = 0; i < graph->n_nodes; i++)
        of[i] = PO_NONE;
    for (uint32_t i = 0; i < f->n_order; i++) {
        po_node_id id = f->order[i];
        if (f->part[id] == PO_REGION_NOT)
            continue;
        of[id] = po_group_root(f->up, id);
        PO_PUSH(f->arena, nodes[of[id]], n[of[id]], cap[of[id]], id);
    }
    po_region *list = NULL;
    uint32_t cap_list = 0;
    for (uint32_t i = 0; i < f->n_order; i++) {
        po_node_id id = f->order[i];
        if (of[id] != id)
            continue;
        po_region r = {.nodes = nodes[id], .n_nodes = n[id]};
        if (!worth_it(f, &r))
            continue;
        fill_borders(f->graph, f->arena, f->scratch, &r, of, id);
        regions->n_nodes += r.n_nodes;
        PO_PUSH(f->arena, list, regions->n, cap_list, r);
    }
    regions->regions = list;
}

po_status po_regions_find(po_ctx *ctx, po_arena *arena, const po_graph *graph, po_region_fn part,
                          void *user, po_regions *regions) {
    po_arena *scratch = po_arena_create(ctx);
    finding f = {.ctx = ctx, .arena = arena, .scratch = scratch, .graph = graph};
    uint32_t n_captures;
    const uint32_t *captures = captures_of(graph, scratch, &n_captures);
    f.order = po_graph_order(graph, scratch, &f.n_order);
    f.part = PO_NEW_N(scratch, po_region_part, graph->n_nodes);
    f.count = PO_NEW_N(scratch, uint32_t, graph->n_nodes);
    f.up = PO_NEW_N(scratch, uint32_t, graph->n_nodes);
    f.rank = PO_NEW_N(scratch, uint32_t, graph->n_nodes);
    memset(regions, 0, sizeof *regions);
    for (uint32_t i = 0; i < f.n_order; i++) {
        po_node_id id = f.order[i];
        counting c = {&f, id};
        f.rank[id] = i;
        f.up[id] = id;
        f.part[id] = part(user, graph, &graph->nodes[id]);
        each_producer(graph, id, captures, n_captures, raise_count, &c);
        if (f.part[id] != PO_REGION_NOT)
            each_producer(graph, id, captures, n_captures, join_equal, &c);
    }
    collect(&f, regions);
    po_arena_free(scratch);
    return po_regions_check(ctx, graph, regions);
}

/* --- checking --- */

static bool listed(const po_value_id *list, uint32_t n, po_value_id v) {
    for (uint32_t i = 0; i < n; i++)
        if (list[i] == v)
            return true;
    return false;
}

static po_status check_borders(po_ctx *ctx, const po_graph *graph, const po_region *r,
                               const uint32_t *of, uint32_t region) {
    for (uint32_t i = 0; i < r->n_nodes; i++) {
        const po_node *node = &graph->nodes[r->nodes[i]];
        for (uint32_t k = 0; k < node->n_in; k++) {
            po_value_id v = node->in[k];
            if (v == PO_NONE || po_graph_constant(graph, v))
                continue;
            po_node_id from = graph->values[v].producer;
            bool inside = from != PO_NONE && of[from] == region;
            if (inside == listed(r->in, r->n_in, v))
                return po_fail(ctx, PO_INTERNAL, "region %u: '%s' is %s among its inputs", region,
                               graph->values[v].name, inside ? "wrongly" : "missing");
        }
        for (uint32_t k = 0; k < node->n_out; k++) {
            po_value_id v = node->out[k];
            if (v != PO_NONE && seen_outside(graph, v, of, region) != listed(r->out, r->n_out, v))
                return po_fail(ctx, PO_INTERNAL,
                               "region %u: '%s' is wrongly among its outputs, or missing", region,
                               graph->values[v].name);
        }
    }
    return PO_OK;
}

/* Takes away what waits for nothing until nothing is left; what stays is a cycle. */
static po_status check_cycles(po_ctx *ctx, po_arena *arena, const po_graph *graph,
                              const po_regions *regions, const uint32_t *of) {
    uint32_t n = graph->n_nodes + regions->n, n_captures, gone = 0, live = 0;
    const uint32_t *captures = captures_of(graph, arena, &n_captures);
    bool *done = PO_NEW_N(arena, bool, n), moved = true;
    for (uint32_t i = 0; i < graph->n_nodes; i++)
        live += !graph->nodes[i].removed;
    while (moved && gone < live) {
        moved = false;
        for (uint32_t i = 0; i < n; i++) {
            bool single = i < graph->n_nodes;
            if (done[i] || (single && (graph->nodes[i].removed || of[i] != PO_NONE)))
                continue;
            const po_node_id *nodes = single ? &i : regions->regions[i - graph->n_nodes].nodes;
            uint32_t count = single ? 1 : regions->regions[i - graph->n_nodes].n_nodes;
            bool ready = true;
            for (uint32_t k = 0; k < count && ready; k++) {
                const po_node *node = &graph->nodes[nodes[k]];
                for (uint32_t j = 0; j < node->n_in && ready; j++) {
                    po_node_id p =
                        node->in[j] == PO_NONE ? PO_NONE : graph->values[node->in[j]].producer;
                    if (p == PO_NONE || (!single && of[p] == i - graph->n_nodes))
                        continue;
                    ready = done[of[p] == PO_NONE ? p : graph->n_nodes + of[p]];
                }
                for (uint32_t j = 0; j + 1 < n_captures && ready; j += 2)
                    if (captures[j] == nodes[k])
                        ready = done[of[captures[j + 1]] == PO_NONE
                                         ? captures[j + 1]
                                         : graph->n_nodes + of[captures[j + 1]]];
            }
            if (ready) {
                done[i] = moved = true;
                gone += count;
            }
        }
    }
    return gone == live ? PO_OK : po_fail(ctx, PO_INTERNAL, "the regions form a cycle");
}

po_status po_regions_check(po_ctx *ctx, const po_graph *graph, const po_regions *regions) {
    po_arena *scratch = po_arena_create(ctx);
    uint32_t *of = PO_NEW_N(scratch, uint32_t, graph->n_nodes);
    po_status status = PO_OK;
    for (uint32_t i = 0; i < graph->n_nodes; i++)
        of[i] = PO_NONE;
    for (uint32_t i = 0; i < regions->n && status == PO_OK; i++)
        for (uint32_t k = 0; k < regions->regions[i].n_nodes; k++) {
            po_node_id id = regions->regions[i].nodes[k];
            if (id >= graph->n_nodes || graph->nodes[id].removed || of[id] != PO_NONE) {
                status = po_fail(ctx, PO_INTERNAL, "region %u: node %u is not its own", i, id);
                break;
            }
            of[id] = i;
        }
    for (uint32_t i = 0; i < regions->n && status == PO_OK; i++)
        status = check_borders(ctx, graph, &regions->regions[i], of, i);
    if (status == PO_OK)
        status = check_cycles(ctx, scratch, graph, regions, of);
    po_arena_free(scratch);
    return status;
}

po_outline po_region_outline(const char *name, const po_region *region) {
    return (po_outline){.domain = PO_KERNEL_DOMAIN,
                        .name = name,
                        .node_name = name,
                        .n_nodes = region->n_nodes,
                        .n_in = region->n_in,
                        .n_out = region->n_out,
                        .nodes = region->nodes,
                        .in = region->in,
                        .out = region->out};
}
