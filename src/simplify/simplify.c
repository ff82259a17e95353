/* The order of simplify's passes. */
#include "simplify/passes.h"

typedef po_status (*pass_fn)(po_ctx *ctx, po_graph *graph, po_simplify_state *state);

/* Identities come after folding, which makes the constants that they look for; duplicates before
 * layouts, so that equal chains are composed once. */
static const pass_fn passes[] = {
    po_fold_constants,   po_take_branches,   po_drop_identities,
    po_merge_duplicates, po_compose_layouts,
};

/* Rounds are few in practice: each makes work for the next only where a fold reveals a shape. */
enum { MOST_ROUNDS = 8 };

typedef struct pass_call {
    pass_fn fn;
    po_simplify_state *state;
    const po_map *closed; /* bodies that stay as they are; NULL: none */
} pass_call;

/* A body of a node of the root, by what no pass changes: what the node makes, and the body's name.
 */
static const char *body_key(po_arena *arena, const po_graph *body) {
    const po_node *owner = &body->parent->nodes[body->owner];
    uint32_t k = 0;
    while (k + 1 < owner->n_out && owner->out[k] == PO_NONE)
        k++;
    bool made = owner->n_out > 0 && owner->out[k] != PO_NONE;
    return po_arena_printf(arena, "%s\n%s",
                           made ? po_graph_value_name(body->parent, owner->out[k]) : owner->name,
                           body->name);
}

static bool is_closed(const pass_call *call, const po_graph *graph) {
    if (!call->closed || !graph->parent)
        return false;
    while (graph->parent->parent)
        graph = graph->parent;
    return po_map_get(call->closed, body_key(call->state->scratch, graph)) != PO_NONE;
}

static po_status call_pass(po_ctx *ctx, po_graph *graph, void *user) {
    const pass_call *call = user;
    return is_closed(call, graph) ? PO_OK : call->fn(ctx, graph, call->state);
}

static uint32_t total(const po_simplify_counts *c) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < PO_SIMPLIFY_RULES; i++)
        n += c->rule[i];
    return n;
}

const char *po_simplify_rule_name(po_simplify_rule rule) {
    static const char *const names[] = {
#define RULE(id, name) name,
#include "simplify/rules.def"
#undef RULE
    };
    return names[rule];
}

po_simplify_options po_simplify_defaults(void) {
    return (po_simplify_options){.growth = (size_t)64 * 1024};
}

static po_status simplify(po_ctx *ctx, const po_graph *in, const po_simplify_options *options,
                          const po_map *closed, po_graph **out, po_simplify_counts *counts) {
    po_simplify_counts own = {0};
    po_graph *g = po_graph_clone(ctx, in);
    for (int round = 0; round < MOST_ROUNDS; round++) {
        uint32_t before = total(&own);
        po_simplify_state state = {options, &own, po_arena_create(ctx)};
        PO_TRY(po_ctx_poll(ctx));
        PO_TRY(po_infer_graph(ctx, g, true));
        for (size_t i = 0; i < sizeof passes / sizeof *passes; i++) {
            pass_call call = {passes[i], &state, closed};
            PO_TRY(po_ctx_poll(ctx));
            PO_TRY(po_graph_walk(ctx, g, call_pass, &call));
        }
        own.rule[PO_SIMPLIFY_SWEEP] += po_graph_sweep(g);
        po_arena_free(state.scratch);
        if (total(&own) == before)
            break;
    }
    *counts = own;
    *out = g;
    return PO_OK;
}

/* --- bodies that are never executed --- */

typedef struct closing {
    po_arena *arena;
    po_map *closed;
    uint32_t n;
} closing;

static void close_body(const po_graph *body, void *user) {
    closing *c = user;
    const char *key = body_key(c->arena, body);
    if (po_map_get(c->closed, key) == PO_NONE)
        po_map_put(c->closed, key, c->n++);
}

/* A branch may not fit the lengths that are given, where it is for others. What is simplified in it
 * shows that, and runtimes then refuse the model: such a body is left as it was. */
po_status po_simplify(po_ctx *ctx, const po_graph *in, const po_simplify_options *options,
                      po_graph **out, po_simplify_counts *counts) {
    po_simplify_counts own;
    closing c = {.arena = po_arena_create(ctx)};
    c.closed = po_map_create(c.arena);
    PO_TRY(simplify(ctx, in, options, NULL, out, &own));
    PO_TRY(po_infer_bodies(ctx, *out, close_body, &c));
    if (c.n > 0) {
        po_graph_free(*out);
        PO_TRY(simplify(ctx, in, options, c.closed, out, &own));
    }
    po_arena_free(c.arena);
    if (counts)
        *counts = own;
    return PO_OK;
}
