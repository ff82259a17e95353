/* The order of simplify's passes. */
#include "simplify/simplify.h"
#include "rewrite/passes.h"

/* Identities come after folding, which makes the constants that they look for; duplicates before
 * layouts, so that equal chains are composed once. */
static const po_law_group passes[] = {
    {PO_LAW_FOLD_NODE, PO_LAW_KNOWN_SHAPE, 0, 0},
    {PO_LAW_TAKE_BRANCH, PO_LAW_TAKE_BRANCH, 0, 0},
    {PO_LAW_DROP_IDENTITY, PO_LAW_DROP_SINGLE, 0, 0},
    {PO_LAW_MERGE_CONSTANTS, PO_LAW_MERGE_NODES, 0, 0},
    {PO_LAW_COMPOSE_TRANSPOSES, PO_LAW_MOVE_APART, 0, 0},
    {PO_LAW_STATE_PADS, PO_LAW_DROP_EXPAND, 0, 0},
};

/* Rounds are few in practice: each makes work for the next only where a fold reveals a shape. */
enum { MOST_ROUNDS = 8 };

po_simplify_options po_simplify_defaults(void) {
    return (po_simplify_options){.growth = (size_t)64 * 1024};
}

po_status po_simplify(po_ctx *ctx, const po_graph *in, const po_simplify_options *options,
                      po_graph **out, po_law_counts *counts) {
    po_law_counts own = {0};
    po_graph *g = po_graph_clone(ctx, in);
    for (int round = 0; round < MOST_ROUNDS; round++) {
        uint32_t before = po_law_total(&own);
        po_rewriting state = {
            .counts = &own, .scratch = po_arena_create(ctx), .growth = options->growth};
        PO_TRY(po_ctx_poll(ctx));
        PO_TRY(po_infer_graph(ctx, g, true));
        for (size_t i = 0; i < sizeof passes / sizeof *passes; i++) {
            PO_TRY(po_ctx_poll(ctx));
            PO_TRY(po_laws_apply(ctx, g, &passes[i], &state));
        }
        own.fired[PO_LAW_SWEEP] += po_graph_sweep(g);
        po_arena_free(state.scratch);
        if (po_law_total(&own) == before)
            break;
    }
    if (counts)
        *counts = own;
    *out = g;
    return PO_OK;
}
