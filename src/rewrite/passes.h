/* The passes: laws in place. Each works on one graph, a body or the root, and adds to the counts.
 */
#ifndef PO_REWRITE_PASSES_H
#define PO_REWRITE_PASSES_H

#include "cost/machine.h"
#include "ops/rewrite.h"
#include "rewrite/laws.h"
#include "rewrite/options.h"

struct po_rewriting {
    po_ctx *ctx;
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

/* --- passes: everywhere in the graph --- */

/* exact/fold.c: nodes whose inputs are all constant, and values that shape inference knows whole.
 */
po_status po_fold_constants(po_ctx *ctx, po_graph *graph, po_rewriting *state);
/* exact/duplicates.c: nodes with the same operator, attributes and inputs; equal constants. */
po_status po_merge_duplicates(po_ctx *ctx, po_graph *graph, po_rewriting *state);
/* exact/identities.c: nodes whose output is one of their inputs. */
po_status po_drop_identities(po_ctx *ctx, po_graph *graph, po_rewriting *state);
/* exact/chains.c: Transpose and reshape chains composed, inverses cancelled. */
po_status po_compose_layouts(po_ctx *ctx, po_graph *graph, po_rewriting *state);

/* activations.c, norms.c: what exporters spell out becomes single nodes, whatever the opset. */
po_status po_find_activations(po_ctx *ctx, po_graph *graph, po_rewriting *state);
po_status po_find_norms(po_ctx *ctx, po_graph *graph, po_rewriting *state);
/* tiny.c */
po_status po_drop_tiny(po_ctx *ctx, po_graph *graph, po_rewriting *state);
/* fold_affine.c */
po_status po_fold_affine(po_ctx *ctx, po_graph *graph, po_rewriting *state);
/* gates.c: clipped lines and hard-swish. */
po_status po_write_gates(po_ctx *ctx, po_graph *graph, po_rewriting *state);
/* differences.c */
po_status po_use_differences(po_ctx *ctx, po_graph *graph, po_rewriting *state);
/* frames.c */
po_status po_use_frames(po_ctx *ctx, po_graph *graph, po_rewriting *state);
/* planes.c */
po_status po_use_planes(po_ctx *ctx, po_graph *graph, po_rewriting *state);
/* blocks.c: once, after the others. */
po_status po_pad_channels(po_ctx *ctx, po_graph *graph, po_rewriting *state);
/* phases.c: once, behind the blocks. */
po_status po_use_phases(po_ctx *ctx, po_graph *graph, po_rewriting *state);
/* rows.c: once, after the others. */
po_status po_use_rows(po_ctx *ctx, po_graph *graph, po_rewriting *state);
/* cancel_moves.c */
po_status po_cancel_moves(po_ctx *ctx, po_graph *graph, po_rewriting *state);

/* --- laws at a node: true where it was rewritten --- */

/* exact/branches.c */
bool po_take_branch(po_rewriting *r, po_graph *graph, po_node_id node);
/* exact/pads.c */
bool po_state_pads(po_rewriting *r, po_graph *graph, po_node_id node);
/* products/embedding.c */
bool po_rows_of_table(po_rewriting *r, po_graph *graph, po_node_id node);
bool po_function_of_table(po_rewriting *r, po_graph *graph, po_node_id node);
/* conv/compose.c */
bool po_gate_residual(po_rewriting *r, po_graph *graph, po_node_id node);
bool po_reduction_as_pool(po_rewriting *r, po_graph *graph, po_node_id node);
bool po_mean_first(po_rewriting *r, po_graph *graph, po_node_id node);
bool po_pool_first(po_rewriting *r, po_graph *graph, po_node_id node);
bool po_compose_convs(po_rewriting *r, po_graph *graph, po_node_id node);
/* conv/channels.c */
bool po_convolve_channels(po_rewriting *r, po_graph *graph, po_node_id node);
/* conv/gate_weights.c */
bool po_gate_between(po_rewriting *r, po_graph *graph, po_node_id node);
bool po_gate_before(po_rewriting *r, po_graph *graph, po_node_id node);
bool po_distribute_gated(po_rewriting *r, po_graph *graph, po_node_id node);
/* conv/split_outputs.c */
bool po_split_outputs(po_rewriting *r, po_graph *graph, po_node_id node);
/* upsample/depth_space.c */
bool po_transposed_to_pointwise(po_rewriting *r, po_graph *graph, po_node_id node);
bool po_space_behind_activation(po_rewriting *r, po_graph *graph, po_node_id node);
bool po_space_behind_pointwise(po_rewriting *r, po_graph *graph, po_node_id node);
bool po_merge_spaces(po_rewriting *r, po_graph *graph, po_node_id node);
/* upsample/upsample.c */
bool po_upsampled_phases(po_rewriting *r, po_graph *graph, po_node_id node);
bool po_factor_concat(po_rewriting *r, po_graph *graph, po_node_id node);
/* upsample/resized.c */
bool po_mix_before_resize(po_rewriting *r, po_graph *graph, po_node_id node);
bool po_split_concat(po_rewriting *r, po_graph *graph, po_node_id node);
/* upsample/interpolate.c */
bool po_cubic_as_products(po_rewriting *r, po_graph *graph, po_node_id node);
/* spelling/spread_gates.c */
bool po_spread_gate(po_rewriting *r, po_graph *graph, po_node_id node);
/* spelling/masks.c */
bool po_raise_masked(po_rewriting *r, po_graph *graph, po_node_id node);
/* spelling/spelling.c */
bool po_split_move(po_rewriting *r, po_graph *graph, po_node_id node);
bool po_spell_sum(po_rewriting *r, po_graph *graph, po_node_id node);
bool po_spell_resize(po_rewriting *r, po_graph *graph, po_node_id node);
/* spelling/write_forms.c */
bool po_write_gelu(po_rewriting *r, po_graph *graph, po_node_id node);
bool po_write_mish(po_rewriting *r, po_graph *graph, po_node_id node);
bool po_write_prelu(po_rewriting *r, po_graph *graph, po_node_id node);
bool po_write_softmax(po_rewriting *r, po_graph *graph, po_node_id node);
bool po_write_power(po_rewriting *r, po_graph *graph, po_node_id node);
bool po_write_norm(po_rewriting *r, po_graph *graph, po_node_id node);

#endif
