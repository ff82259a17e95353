/* The passes of simplify: each works on one graph in place, a body or the root, and adds to the
 * counts. */
#ifndef PO_SIMPLIFY_PASSES_H
#define PO_SIMPLIFY_PASSES_H

#include "ops/rewrite.h"
#include "simplify/simplify.h"

typedef struct po_simplify_state {
    const po_simplify_options *options;
    po_simplify_counts *counts;
    po_arena *scratch; /* freed after each round */
} po_simplify_state;

/* Counts a rule that fired, or did not. */
static inline void po_simplify_fired(po_simplify_state *state, po_simplify_rule rule, bool fired) {
    state->counts->rule[rule] += fired;
}

/* fold.c: nodes whose inputs are all constant, and values that shape inference knows whole. */
po_status po_fold_constants(po_ctx *ctx, po_graph *graph, po_simplify_state *state);
/* duplicates.c: nodes with the same operator, attributes and inputs; equal constants. */
po_status po_merge_duplicates(po_ctx *ctx, po_graph *graph, po_simplify_state *state);
/* identities.c: nodes whose output is one of their inputs. */
po_status po_drop_identities(po_ctx *ctx, po_graph *graph, po_simplify_state *state);
/* layout.c: Transpose and reshape chains composed, inverses cancelled. */
po_status po_compose_layouts(po_ctx *ctx, po_graph *graph, po_simplify_state *state);
/* pads.c: padding in words as numbers. */
po_status po_state_pads(po_ctx *ctx, po_graph *graph, po_simplify_state *state);
/* branches.c: If nodes with a constant condition are replaced by the branch taken. */
po_status po_take_branches(po_ctx *ctx, po_graph *graph, po_simplify_state *state);

#endif
