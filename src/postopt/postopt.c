/* The order of postopt's passes. */
#include "postopt/postopt.h"
#include "rewrite/passes.h"

/* Half precision first: the other laws are for float. Then tiny weights, before others are made of
 * them. Then rows of tables: functions are taken apart there yet. Activations and norms then:
 * affine folding would take their constants away. Then hard-swish: its scale joins the affine chain
 * behind it. Algebra last: it looks for convolutions that read one another, which folding leaves.
 */
static const po_law_group passes[] = {
    {PO_LAW_HALF, PO_LAW_HALF, 0, 0},
    {PO_LAW_TINY, PO_LAW_TINY, 0, 0},
    {PO_LAW_TABLE_ROWS, PO_LAW_TABLE_FUNCTION, PO_ALGEBRA_COMPOSE, 1},
    {PO_LAW_NORM, PO_LAW_NORM_GROUP, 0, 0},
    {PO_LAW_GELU_ERF, PO_LAW_PRELU, 0, 0},
    {PO_LAW_CLIPPED_LINE, PO_LAW_HARD_SWISH_GATE, 0, 0},
    {PO_LAW_TAKE_LESS, PO_LAW_TAKE_LESS, 0, 0},
    {PO_LAW_SHARE_REPEATED, PO_LAW_SHARE_REPEATED, 0, 0},
    {PO_LAW_CHANNELS, PO_LAW_CHANNELS, PO_ALGEBRA_CHANNELS, 1},
    {PO_LAW_FLATTENED, PO_LAW_FLATTENED, PO_ALGEBRA_COMPOSE, 1},
    {PO_LAW_TOKENS, PO_LAW_TOKENS_SPLIT, PO_ALGEBRA_TOKENS, 1},
    {PO_LAW_AFFINE_NOTHING, PO_LAW_AFFINE_SHORT, 0, 0},
    {PO_LAW_GATED_RESIDUAL, PO_LAW_COMPOSE_CONVS, PO_ALGEBRA_COMPOSE, 1},
    {PO_LAW_TRANSPOSED_CONV, PO_LAW_MERGE_SPACES, PO_ALGEBRA_DEPTH_SPACE, 1},
    {PO_LAW_SPLIT_SMOOTH, PO_LAW_SMOOTH, PO_ALGEBRA_SMOOTH, 1},
    {PO_LAW_PART_SUM, PO_LAW_DIFFERENCES, PO_ALGEBRA_DIFFERENCES, 2},
    {PO_LAW_FACTOR_UPSAMPLING, PO_LAW_UPSAMPLED_PHASES, PO_ALGEBRA_UPSAMPLE, 1},
    {PO_LAW_CUBIC, PO_LAW_CUBIC, PO_ALGEBRA_UPSAMPLE, 1},
    {PO_LAW_SPECTRUM, PO_LAW_SPECTRUM, 0, 0},
    {PO_LAW_GATED_SUM, PO_LAW_GATE_BEFORE, PO_ALGEBRA_GATES, 1},
    {PO_LAW_FRAMES, PO_LAW_FRAMES_MEAN, PO_ALGEBRA_FRAMES, 0},
    {PO_LAW_SPLIT_OUTPUTS, PO_LAW_SPLIT_OUTPUTS, PO_ALGEBRA_SPLITS, 1},
    {PO_LAW_PLANES, PO_LAW_PLANES_TURN, PO_ALGEBRA_PLANES, 1},
    {PO_LAW_SHORTEN_MOVES, PO_LAW_PULL_MOVES, 0, 0},
};
/* Once, when nothing fires any more: what depends on the channels that are left. */
static const po_law_group late[] = {
    {PO_LAW_BLOCKS, PO_LAW_BLOCKS, PO_ALGEBRA_BLOCKS, 1},
    {PO_LAW_SPREAD_GATE, PO_LAW_SPREAD_GATE, 0, 0},
    {PO_LAW_PHASES, PO_LAW_PHASES, PO_ALGEBRA_PHASES, 0},
    {PO_LAW_TILES, PO_LAW_TILES, PO_ALGEBRA_TILES, 0},
};
/* Last: operators as they are written. */
static const po_law_group spelt[] = {
    {PO_LAW_WRITE_GELU, PO_LAW_WRITE_NORM, 0, 0},
    {PO_LAW_SPLIT_MOVES, PO_LAW_SUMS, 0, 0},
    {PO_LAW_MASKS, PO_LAW_MASKS, 0, 0},
};

uint32_t po_postopt_partly(void) {
    uint32_t families = 0;
    for (size_t i = 0; i < sizeof passes / sizeof *passes; i++)
        for (uint32_t law = passes[i].first; law <= passes[i].last; law++)
            families |= po_laws[law].class == PO_LAW_PARTLY_RIGHT ? passes[i].family : 0;
    return families;
}

enum { MOST_ROUNDS = 16 };

/* What is left over must not count as a reader in the next pass: it is swept. */
static po_status apply(po_graph *g, const po_law_group *group, po_rewriting *state) {
    uint32_t fired = po_law_total(state->counts);
    bool cubic = group->first == PO_LAW_CUBIC && state->options->cubic;
    if (group->family && !(state->options->algebra & group->family) && !cubic)
        return PO_OK;
    PO_TRY(po_ctx_poll(state->ctx));
    PO_TRY(po_laws_apply(state->ctx, g, group, state));
    if (po_law_total(state->counts) != fired) {
        po_graph_sweep(g);
        po_law_magnifies(state, group->family, group->magnifies);
    }
    return PO_OK;
}

po_status po_postopt(po_ctx *ctx, const po_graph *in, const po_postopt_options *options,
                     po_graph **out, po_postopt_counts *counts) {
    po_law_counts own = {0};
    po_graph *g = po_graph_clone(ctx, in);
    po_rewriting state = {.ctx = ctx, .options = options, .counts = &own};
    for (int round = 0; round < MOST_ROUNDS; round++) {
        uint32_t before = po_law_total(&own);
        state.scratch = po_arena_create(ctx);
        PO_TRY(po_ctx_poll(ctx));
        PO_TRY(po_infer_graph(ctx, g, true));
        if (round == 0)
            state.middle = po_law_middle(&state, g);
        for (size_t i = 0; i < sizeof passes / sizeof *passes; i++)
            PO_TRY(apply(g, &passes[i], &state));
        po_arena_free(state.scratch);
        if (po_law_total(&own) == before)
            break;
    }
    state.scratch = po_arena_create(ctx);
    PO_TRY(po_infer_graph(ctx, g, true));
    for (size_t i = 0; i < sizeof late / sizeof *late; i++) {
        PO_TRY(apply(g, &late[i], &state));
        po_graph_sweep(g);
        PO_TRY(po_infer_graph(ctx, g, true));
    }
    for (size_t i = 0; i < sizeof spelt / sizeof *spelt; i++)
        PO_TRY(po_laws_apply(ctx, g, &spelt[i], &state));
    po_arena_free(state.scratch);
    po_graph_sweep(g);
    if (counts)
        *counts = own;
    *out = g;
    return PO_OK;
}
