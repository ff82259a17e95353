/* Weights as nodes and as recipes: what lets one law work on a subprogram, whose weights are
 * inputs, and on a model, whose weights are constants.
 *
 * Mutants make their weights by nodes that run once; in a model these are stated as recipes. Laws
 * in place derive constants; on a clone of a subprogram its weights are constants of made-up
 * numbers first, and what was derived of them becomes nodes on the inputs again. */
#ifndef PO_REWRITE_WEIGHTS_H
#define PO_REWRITE_WEIGHTS_H

#include "ir/subprogram.h"
#include "ops/recipe/recipe.h"

/* States what a node makes of inputs that are stated: recipes by value, floats in f64. The node's
 * types are static, or PO_UNSUPPORTED; so where the operator cannot be stated. */
po_status po_state_node(po_ctx *ctx, po_arena *arena, const po_graph *graph, const po_node *node,
                        const po_recipe **recipes);
/* Nodes from `first` on that read constants alone become constants, evaluated in float64 and
 * rounded once; those that cannot be computed stay nodes. */
po_status po_state_weights(po_ctx *ctx, po_arena *arena, po_graph *graph, po_node_id first);

/* A recipe of these leaves as nodes on the values that stand for them. PO_NONE: one cannot be
 * written. */
po_value_id po_nodes_of(po_arena *arena, po_graph *graph, const po_recipe *r, uint32_t n,
                        const po_recipe *const *leaf, const po_value_id *values);

/* A subprogram with constants in the place of its weights. */
typedef struct po_lifted {
    const po_graph *graph;
    const char **name; /* of the constant for each input; NULL: an activation */
} po_lifted;

/* False where it cannot be done: weights of open shape or too many, an opset before 13. */
bool po_lift(po_ctx *ctx, po_arena *arena, const po_subprogram *sub, po_lifted *lifted);
/* A graph that was made of lifted->graph: its inputs for the constants again, nodes for what was
 * derived of them. False where one cannot be written. */
bool po_lower(po_arena *arena, const po_lifted *lifted, po_graph *graph);

#endif
