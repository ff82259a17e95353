/* The passes: laws in place. Each works on one graph, a body or the root, and adds to the counts.
 */
#ifndef PO_REWRITE_PASSES_H
#define PO_REWRITE_PASSES_H

#include "ops/rewrite.h"
#include "rewrite/laws.h"
#include "rewrite/options.h"

struct po_rewriting {
    const po_postopt_options *options; /* NULL for those of exact/ */
    po_law_counts *counts;
    po_arena *scratch; /* freed after each round */
    size_t growth;     /* bytes by which a folded constant may exceed what it is computed from */
};

/* Counts a law that fired, or did not: the same answer. */
static inline bool po_law_fired(po_rewriting *state, po_law_id law, bool fired) {
    state->counts->fired[law] += fired;
    return fired;
}

/* exact/fold.c: nodes whose inputs are all constant, and values that shape inference knows whole.
 */
po_status po_fold_constants(po_ctx *ctx, po_graph *graph, po_rewriting *state);
/* exact/duplicates.c: nodes with the same operator, attributes and inputs; equal constants. */
po_status po_merge_duplicates(po_ctx *ctx, po_graph *graph, po_rewriting *state);
/* exact/identities.c: nodes whose output is one of their inputs. */
po_status po_drop_identities(po_ctx *ctx, po_graph *graph, po_rewriting *state);
/* exact/chains.c: Transpose and reshape chains composed, inverses cancelled. */
po_status po_compose_layouts(po_ctx *ctx, po_graph *graph, po_rewriting *state);
/* exact/pads.c: padding in words as numbers. */
po_status po_state_pads(po_ctx *ctx, po_graph *graph, po_rewriting *state);
/* exact/branches.c: If nodes with a constant condition are replaced by the branch taken. */
po_status po_take_branches(po_ctx *ctx, po_graph *graph, po_rewriting *state);

/* The runtime's layout for convolutions keeps channels in blocks of this many. */
enum { PO_CHANNEL_BLOCK = 16 };
/* Channels that the layout holds for so many: rounded up to whole blocks. */
static inline int64_t po_whole_blocks(int64_t channels) {
    return (channels + PO_CHANNEL_BLOCK - 1) / PO_CHANNEL_BLOCK * PO_CHANNEL_BLOCK;
}

/* activations.c, norms.c: what exporters spell out becomes single nodes, whatever the opset. */
po_status po_find_activations(po_ctx *ctx, po_graph *graph, po_rewriting *state);
po_status po_find_norms(po_ctx *ctx, po_graph *graph, po_rewriting *state);
/* tiny.c */
po_status po_drop_tiny(po_ctx *ctx, po_graph *graph, po_rewriting *state);
/* embedding.c */
po_status po_take_rows(po_ctx *ctx, po_graph *graph, po_rewriting *state);
/* write_forms.c: once, at the end: such nodes spelled for the opset and the runtime; powers. */
po_status po_write_forms(po_ctx *ctx, po_graph *graph, po_rewriting *state);
/* fold_affine.c */
po_status po_fold_affine(po_ctx *ctx, po_graph *graph, po_rewriting *state);
/* gates.c: clipped lines and hard-swish. */
po_status po_write_gates(po_ctx *ctx, po_graph *graph, po_rewriting *state);
/* compose.c */
po_status po_compose_linear(po_ctx *ctx, po_graph *graph, po_rewriting *state);
/* depth_space.c */
po_status po_move_depth_to_space(po_ctx *ctx, po_graph *graph, po_rewriting *state);
/* upsample.c */
po_status po_unfold_upsampling(po_ctx *ctx, po_graph *graph, po_rewriting *state);
/* interpolate.c: behind upsample.c, mixes of channels come before. */
po_status po_interpolate(po_ctx *ctx, po_graph *graph, po_rewriting *state);
/* differences.c */
po_status po_use_differences(po_ctx *ctx, po_graph *graph, po_rewriting *state);
/* gate_weights.c */
po_status po_fold_gates(po_ctx *ctx, po_graph *graph, po_rewriting *state);
/* frames.c */
po_status po_use_frames(po_ctx *ctx, po_graph *graph, po_rewriting *state);
/* split_outputs.c */
po_status po_split_outputs(po_ctx *ctx, po_graph *graph, po_rewriting *state);
/* planes.c */
po_status po_use_planes(po_ctx *ctx, po_graph *graph, po_rewriting *state);
/* channels.c */
po_status po_convolve_channels(po_ctx *ctx, po_graph *graph, po_rewriting *state);
/* blocks.c: once, after the others. */
po_status po_pad_channels(po_ctx *ctx, po_graph *graph, po_rewriting *state);
/* spread_gates.c: once, behind the blocks. */
po_status po_spread_gates(po_ctx *ctx, po_graph *graph, po_rewriting *state);
/* phases.c: once, behind the blocks. */
po_status po_use_phases(po_ctx *ctx, po_graph *graph, po_rewriting *state);
/* rows.c: once, after the others. */
po_status po_use_rows(po_ctx *ctx, po_graph *graph, po_rewriting *state);
/* cancel_moves.c */
po_status po_cancel_moves(po_ctx *ctx, po_graph *graph, po_rewriting *state);
/* masks.c: once, behind everything that looks at what Softmax reads. */
po_status po_raise_masked(po_ctx *ctx, po_graph *graph, po_rewriting *state);
/* spelling.c: once, at the end. */
po_status po_spell(po_ctx *ctx, po_graph *graph, po_rewriting *state);

#endif
