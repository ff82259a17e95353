/* Looks over a split without using how it was made. */
#include "ops/op.h"
#include "split/parts.h"

typedef struct checking {
    po_ctx *ctx;
    po_arena *arena;
    const po_graph *graph;
    const po_split *split;
    uint32_t *in;   /* by node: 1 + number of its occurrence; 0: in none */
    uint32_t *rank; /* by node */
    uint32_t n_occurrences;
    const po_node_id *order;
    uint32_t n_order;
} checking;

static po_status number_nodes(checking *c) {
    uint32_t covered = 0;
    for (uint32_t s = 0; s < c->split->n; s++)
        for (uint32_t k = 0; k < c->split->subs[s].n_at; k++) {
            const po_occurrence *at = &c->split->subs[s].at[k];
            c->n_occurrences++;
            for (uint32_t i = 0; i < at->n_nodes; i++) {
                po_node_id id = at->nodes[i];
                if (id >= c->graph->n_nodes || c->graph->nodes[id].removed)
                    return po_fail(c->ctx, PO_INTERNAL, "split: node %u is not there", id);
                if (c->in[id])
                    return po_fail(c->ctx, PO_INTERNAL, "split: node %u is in two subprograms", id);
                c->in[id] = c->n_occurrences;
                covered++;
            }
        }
    if (covered != c->split->n_nodes)
        return po_fail(c->ctx, PO_INTERNAL, "split: %u nodes are covered, not %u", covered,
                       c->split->n_nodes);
    return PO_OK;
}

/* Contracts every occurrence to a point and looks for a cycle by taking away what nothing left
 * leads to. */
static po_status no_cycle(const checking *c) {
    const po_graph *g = c->graph;
    uint32_t n = g->n_nodes + c->n_occurrences + 1, left = 0, depth = 0;
    uint32_t *waits = PO_NEW_N(c->arena, uint32_t, n), *ready = PO_NEW_N(c->arena, uint32_t, n);
    uint32_t *point = PO_NEW_N(c->arena, uint32_t, g->n_nodes);
    bool *counted = PO_NEW_N(c->arena, bool, n);
    for (uint32_t i = 0; i < c->n_order; i++) {
        po_node_id id = c->order[i];
        point[id] = c->in[id] ? g->n_nodes + c->in[id] : id;
        left += !counted[point[id]];
        counted[point[id]] = true;
    }
    for (int pass = 0; pass < 2; pass++) {
        for (uint32_t i = 0; pass == 1 && i < n; i++)
            if (counted[i] && waits[i] == 0)
                ready[depth++] = i;
        for (uint32_t i = 0; pass == 0 && i < c->n_order; i++) {
            const po_node *node = &g->nodes[c->order[i]];
            for (uint32_t k = 0; k < node->n_out; k++)
                for (uint32_t u = 0; node->out[k] != PO_NONE && u < g->values[node->out[k]].n_uses;
                     u++) {
                    uint32_t to = point[g->values[node->out[k]].uses[u].node];
                    waits[to] += to != point[c->order[i]];
                }
        }
    }
    /* Nodes by the point that they are in. */
    uint32_t *head = PO_NEW_N(c->arena, uint32_t, n), *next = PO_NEW_N(c->arena, uint32_t, n);
    for (uint32_t i = 0; i < c->n_order; i++) {
        next[c->order[i]] = head[point[c->order[i]]];
        head[point[c->order[i]]] = c->order[i] + 1;
    }
    for (; depth > 0; left--) {
        uint32_t from = ready[--depth];
        for (uint32_t id = head[from]; id > 0; id = next[id - 1]) {
            const po_node *node = &g->nodes[id - 1];
            for (uint32_t k = 0; k < node->n_out; k++)
                for (uint32_t u = 0; node->out[k] != PO_NONE && u < g->values[node->out[k]].n_uses;
                     u++) {
                    uint32_t to = point[g->values[node->out[k]].uses[u].node];
                    if (to != from && --waits[to] == 0)
                        ready[depth++] = to;
                }
        }
    }
    return left == 0 ? PO_OK
                     : po_fail(c->ctx, PO_INTERNAL, "split: subprograms depend on one another");
}

static po_status same_type(const checking *c, po_value_id outside, const po_graph *sub,
                           po_value_id inside) {
    const po_type *a = &c->graph->values[outside].type, *b = &sub->values[inside].type;
    if (!po_type_static(a) || !po_type_equal(a, b))
        return po_fail(c->ctx, PO_INTERNAL, "split: the type of tensor '%s' is another inside",
                       c->graph->values[outside].name);
    return PO_OK;
}

/* Whether the node is in no subprogram but the one numbered `own`, and its value is read outside.
 */
static bool leaves(const checking *c, po_value_id v, uint32_t own) {
    const po_value *value = &c->graph->values[v];
    for (uint32_t u = 0; u < value->n_uses; u++)
        if (c->in[value->uses[u].node] != own)
            return true;
    return value->n_outputs > 0;
}

static po_status check_occurrence(const checking *c, const po_subprogram *sub,
                                  const po_occurrence *at, uint32_t own) {
    const po_graph *g = sub->graph;
    for (uint32_t i = 0; i < g->n_inputs; i++) {
        po_value_id v = at->in[i];
        po_node_id producer = c->graph->values[v].producer;
        bool constant = po_graph_constant(c->graph, v) != NULL;
        PO_TRY(same_type(c, v, g, g->inputs[i]));
        if ((producer != PO_NONE && c->in[producer] == own) ||
            constant != (i >= sub->n_activations))
            return po_fail(c->ctx, PO_INTERNAL, "split: tensor '%s' is no input of its subprogram",
                           c->graph->values[v].name);
    }
    uint32_t leaving = 0, compute = 0;
    for (uint32_t i = 0; i < g->n_outputs; i++) {
        po_node_id producer = c->graph->values[at->out[i]].producer;
        PO_TRY(same_type(c, at->out[i], g, g->outputs[i]));
        if (producer == PO_NONE || c->in[producer] != own || !leaves(c, at->out[i], own))
            return po_fail(c->ctx, PO_INTERNAL, "split: tensor '%s' is no output of its subprogram",
                           c->graph->values[at->out[i]].name);
    }
    for (uint32_t i = 0; i < at->n_nodes; i++) {
        const po_node *node = &c->graph->nodes[at->nodes[i]];
        po_arena *scratch = po_arena_create(c->ctx);
        po_split_kind kind;
        po_status status = po_split_kind_of(c->ctx, scratch, c->graph, node, &kind);
        po_arena_free(scratch);
        PO_TRY(status);
        if (kind == PO_SPLIT_OTHER)
            return po_fail(c->ctx, PO_INTERNAL, "split: node '%s' (%s) is not multilinear",
                           node->name, node->op_type);
        compute += kind == PO_SPLIT_COMPUTE;
        for (uint32_t k = 0; k < node->n_out; k++)
            leaving += node->out[k] != PO_NONE && leaves(c, node->out[k], own);
    }
    if (leaving != g->n_outputs || compute == 0)
        return po_fail(c->ctx, PO_INTERNAL,
                       "split: a subprogram has %u outputs, not %u, and %u products", g->n_outputs,
                       leaving, compute);
    return PO_OK;
}

po_status po_split_check(po_ctx *ctx, const po_graph *graph, const po_split *split) {
    po_arena *arena = po_arena_create(ctx);
    checking c = {.ctx = ctx, .arena = arena, .graph = graph, .split = split};
    c.in = PO_NEW_N(arena, uint32_t, graph->n_nodes);
    c.rank = PO_NEW_N(arena, uint32_t, graph->n_nodes);
    c.order = po_graph_order(graph, arena, &c.n_order);
    PO_TRY(number_nodes(&c));
    PO_TRY(no_cycle(&c));
    uint32_t own = 0;
    for (uint32_t s = 0; s < split->n; s++) {
        PO_TRY(po_graph_check(ctx, split->subs[s].graph));
        for (uint32_t k = 0; k < split->subs[s].n_at; k++)
            PO_TRY(check_occurrence(&c, &split->subs[s], &split->subs[s].at[k], ++own));
    }
    po_arena_free(arena);
    return PO_OK;
}
