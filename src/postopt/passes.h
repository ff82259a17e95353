/* The passes of postopt: each works on one graph in place and adds to the counts. */
#ifndef PO_POSTOPT_PASSES_H
#define PO_POSTOPT_PASSES_H

#include "ops/rewrite.h"
#include "postopt/postopt.h"

typedef struct po_postopt_state {
    const po_postopt_options *options;
    po_postopt_counts *counts;
    po_arena *scratch; /* freed after each round */
    int64_t middle;    /* positions of the map that parts small ones from large ones */
} po_postopt_state;

/* Counts a rule that fired, or did not: the same answer. */
static inline bool po_postopt_fired(po_postopt_state *state, po_postopt_rule rule, bool fired) {
    state->counts->rule[rule] += fired;
    return fired;
}

/* Outputs of a tile that a family may have, of so many that it could. */
static inline uint32_t po_postopt_tile(const po_postopt_state *state, po_tiled which,
                                       uint32_t most) {
    uint32_t asked = state->options->most_tile[which];
    return asked > 0 && asked < most ? asked : most;
}
/* States what a family made of rounding. */
void po_postopt_magnifies(po_postopt_state *state, uint32_t algebra, double times);
/* The same of Toom-Cook F(m, r) with dyadic points, whose output is y. */
typedef struct po_tiled_use {
    po_tiled which;
    uint32_t algebra, m;
    int64_t r, stride;
} po_tiled_use;
void po_postopt_tiled(po_postopt_state *state, const po_graph *graph, po_value_id y,
                      const po_tiled_use *use);
/* Whether a family may be used for this output (po_postopt_options.on_small). */
bool po_postopt_may(const po_postopt_state *state, uint32_t algebra, const po_graph *graph,
                    po_value_id y);

/* The runtime's layout for convolutions keeps channels in blocks of this many. */
enum { PO_CHANNEL_BLOCK = 16 };
/* Channels that the layout holds for so many: rounded up to whole blocks. */
static inline int64_t po_whole_blocks(int64_t channels) {
    return (channels + PO_CHANNEL_BLOCK - 1) / PO_CHANNEL_BLOCK * PO_CHANNEL_BLOCK;
}

/* activations.c, norms.c: what exporters spell out becomes single nodes, whatever the opset. */
po_status po_find_activations(po_ctx *ctx, po_graph *graph, po_postopt_state *state);
po_status po_find_norms(po_ctx *ctx, po_graph *graph, po_postopt_state *state);
/* tiny.c */
po_status po_drop_tiny(po_ctx *ctx, po_graph *graph, po_postopt_state *state);
/* embedding.c */
po_status po_take_rows(po_ctx *ctx, po_graph *graph, po_postopt_state *state);
/* write_forms.c: once, at the end: such nodes spelled for the opset and the runtime; powers. */
po_status po_write_forms(po_ctx *ctx, po_graph *graph, po_postopt_state *state);
/* fold_affine.c */
po_status po_fold_affine(po_ctx *ctx, po_graph *graph, po_postopt_state *state);
/* gates.c: clipped lines and hard-swish. */
po_status po_write_gates(po_ctx *ctx, po_graph *graph, po_postopt_state *state);
/* compose.c */
po_status po_compose_linear(po_ctx *ctx, po_graph *graph, po_postopt_state *state);
/* depth_space.c */
po_status po_move_depth_to_space(po_ctx *ctx, po_graph *graph, po_postopt_state *state);
/* upsample.c */
po_status po_unfold_upsampling(po_ctx *ctx, po_graph *graph, po_postopt_state *state);
/* interpolate.c: behind upsample.c, mixes of channels come before. */
po_status po_interpolate(po_ctx *ctx, po_graph *graph, po_postopt_state *state);
/* smooth.c: before differences.c and upsample.c, which take what it leaves. */
po_status po_smooth_behind(po_ctx *ctx, po_graph *graph, po_postopt_state *state);
/* differences.c */
po_status po_use_differences(po_ctx *ctx, po_graph *graph, po_postopt_state *state);
/* gate_weights.c */
po_status po_fold_gates(po_ctx *ctx, po_graph *graph, po_postopt_state *state);
/* frames.c */
po_status po_use_frames(po_ctx *ctx, po_graph *graph, po_postopt_state *state);
/* split_outputs.c */
po_status po_split_outputs(po_ctx *ctx, po_graph *graph, po_postopt_state *state);
/* planes.c */
po_status po_use_planes(po_ctx *ctx, po_graph *graph, po_postopt_state *state);
/* channels.c */
po_status po_convolve_channels(po_ctx *ctx, po_graph *graph, po_postopt_state *state);
/* blocks.c: once, after the others. */
po_status po_pad_channels(po_ctx *ctx, po_graph *graph, po_postopt_state *state);
/* spread_gates.c: once, behind the blocks. */
po_status po_spread_gates(po_ctx *ctx, po_graph *graph, po_postopt_state *state);
/* phases.c: once, behind the blocks. */
po_status po_use_phases(po_ctx *ctx, po_graph *graph, po_postopt_state *state);
/* rows.c: once, after the others. */
po_status po_use_rows(po_ctx *ctx, po_graph *graph, po_postopt_state *state);
/* cancel_moves.c */
po_status po_cancel_moves(po_ctx *ctx, po_graph *graph, po_postopt_state *state);
/* masks.c: once, behind everything that looks at what Softmax reads. */
po_status po_raise_masked(po_ctx *ctx, po_graph *graph, po_postopt_state *state);
/* spelling.c: once, at the end. */
po_status po_spell(po_ctx *ctx, po_graph *graph, po_postopt_state *state);

#endif
