/* The order of postopt's passes. */
#include "postopt/postopt.h"
#include "rewrite/passes.h"

/* Tiny weights first, before others are made of them. Then rows of tables: functions are taken
 * apart there yet. Activations and norms then: affine folding would take their constants away. Then
 * hard-swish: its scale joins the affine chain behind it. Algebra last: it looks for convolutions
 * that read one another, which folding leaves. */
static const struct {
    po_pass_fn fn;
    uint32_t algebra; /* the family that it belongs to; 0: none */
} passes[] = {{po_drop_tiny, 0},
              {po_take_rows, PO_ALGEBRA_COMPOSE},
              {po_find_norms, 0},
              {po_find_activations, 0},
              {po_write_gates, 0},
              {po_convolve_channels, PO_ALGEBRA_CHANNELS},
              {po_fold_affine, 0},
              {po_compose_linear, PO_ALGEBRA_COMPOSE},
              {po_move_depth_to_space, PO_ALGEBRA_DEPTH_SPACE},
              {po_use_differences, PO_ALGEBRA_DIFFERENCES},
              {po_unfold_upsampling, PO_ALGEBRA_UPSAMPLE},
              {po_interpolate, PO_ALGEBRA_UPSAMPLE},
              {po_fold_gates, PO_ALGEBRA_GATES},
              {po_use_frames, PO_ALGEBRA_FRAMES},
              {po_split_outputs, PO_ALGEBRA_SPLITS},
              {po_use_planes, PO_ALGEBRA_PLANES},
              {po_cancel_moves, 0}},
  /* Once, when nothing fires any more: what depends on the channels that are left. */
    late[] = {{po_pad_channels, PO_ALGEBRA_BLOCKS},
              {po_spread_gates, 0},
              {po_use_phases, PO_ALGEBRA_PHASES},
              {po_use_rows, PO_ALGEBRA_ROWS}};

enum { MOST_ROUNDS = 16 };

po_postopt_options po_postopt_defaults(void) {
    return (po_postopt_options){.affine = true,
                                .algebra = PO_ALGEBRA_ALL,
                                .hard_swish = PO_HARD_SWISH_GATED,
                                .leftover = PO_LEFTOVER_CONV,
                                .activations = true,
                                .norms = true,
                                .spread_gates = true,
                                .sums = true,
                                .split_moves = true,
                                .tiny = true,
                                .masks = true};
}

po_postopt_options po_postopt_plain(uint32_t algebra) {
    po_postopt_options options = po_postopt_defaults();
    options.algebra = algebra;
    options.hard_swish = PO_HARD_SWISH_KEEP;
    options.leftover = PO_LEFTOVER_ARITHMETIC;
    options.spread_gates = options.sums = options.split_moves = options.masks = false;
    return options;
}

po_status po_postopt(po_ctx *ctx, const po_graph *in, const po_postopt_options *options,
                     po_graph **out, po_postopt_counts *counts) {
    po_postopt_counts own = {0};
    po_graph *g = po_graph_clone(ctx, in);
    for (int round = 0; round < MOST_ROUNDS; round++) {
        uint32_t before = po_law_total(&own);
        po_rewriting state = {.options = options, .counts = &own, .scratch = po_arena_create(ctx)};
        PO_TRY(po_ctx_poll(ctx));
        PO_TRY(po_infer_graph(ctx, g, true));
        for (size_t i = 0; i < sizeof passes / sizeof *passes; i++) {
            uint32_t fired = po_law_total(&own);
            PO_TRY(po_ctx_poll(ctx));
            PO_TRY(po_pass_walk(ctx, g, passes[i].fn, &state));
            /* What is left over must not count as a reader in the next pass. */
            if (po_law_total(&own) != fired) {
                po_graph_sweep(g);
                own.used |= passes[i].algebra;
            }
        }
        po_arena_free(state.scratch);
        if (po_law_total(&own) == before)
            break;
    }
    po_rewriting last = {.options = options, .counts = &own, .scratch = po_arena_create(ctx)};
    PO_TRY(po_infer_graph(ctx, g, true));
    for (size_t i = 0; i < sizeof late / sizeof *late; i++) {
        uint32_t fired = po_law_total(&own);
        PO_TRY(po_ctx_poll(ctx));
        PO_TRY(po_pass_walk(ctx, g, late[i].fn, &last));
        if (po_law_total(&own) != fired)
            own.used |= late[i].algebra;
        po_graph_sweep(g);
        PO_TRY(po_infer_graph(ctx, g, true));
    }
    PO_TRY(po_pass_walk(ctx, g, po_write_forms, &last));
    PO_TRY(po_pass_walk(ctx, g, po_spell, &last));
    PO_TRY(po_pass_walk(ctx, g, po_raise_masked, &last));
    po_arena_free(last.scratch);
    po_graph_sweep(g);
    if (counts)
        *counts = own;
    *out = g;
    return PO_OK;
}
