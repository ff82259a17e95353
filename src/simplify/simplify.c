/* The order of simplify's passes. */
#include "simplify/passes.h"

typedef po_status (*pass_fn)(po_ctx *ctx, po_graph *graph, po_simplify_state *state);

/* Identities come after folding, which makes the constants that they look for; duplicates before
 * layouts, so that equal chains are composed once. */
static const pass_fn passes[] = {
    po_fold_constants,   po_take_branches,   po_drop_identities,
    po_merge_duplicates, po_compose_layouts, po_state_pads,
};

/* Rounds are few in practice: each makes work for the next only where a fold reveals a shape. */
enum { MOST_ROUNDS = 8 };

typedef struct pass_call {
    pass_fn fn;
    po_simplify_state *state;
} pass_call;

static po_status call_pass(po_ctx *ctx, po_graph *graph, void *user) {
    const pass_call *call = user;
    return call->fn(ctx, graph, call->state);
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

po_status po_simplify(po_ctx *ctx, const po_graph *in, const po_simplify_options *options,
                      po_graph **out, po_simplify_counts *counts) {
    po_simplify_counts own = {0};
    po_graph *g = po_graph_clone(ctx, in);
    for (int round = 0; round < MOST_ROUNDS; round++) {
        uint32_t before = total(&own);
        po_simplify_state state = {options, &own, po_arena_create(ctx)};
        PO_TRY(po_ctx_poll(ctx));
        PO_TRY(po_infer_graph(ctx, g, true));
        for (size_t i = 0; i < sizeof passes / sizeof *passes; i++) {
            pass_call call = {passes[i], &state};
            PO_TRY(po_ctx_poll(ctx));
            PO_TRY(po_graph_walk(ctx, g, call_pass, &call));
        }
        own.rule[PO_SIMPLIFY_SWEEP] += po_graph_sweep(g);
        po_arena_free(state.scratch);
        if (total(&own) == before)
            break;
    }
    if (counts)
        *counts = own;
    *out = g;
    return PO_OK;
}
