/* Split: the multilinear subprograms of a model, between its non-linear operators (PET, section
 * 4.1). */
#ifndef PO_SPLIT_SPLIT_H
#define PO_SPLIT_SPLIT_H

#include "ir/subprogram.h"

typedef struct po_split_options {
    uint32_t most_operators; /* compute operators (products of activations and weights) in one
                                subprogram; 0: 4 */
} po_split_options;

typedef struct po_split {
    const po_subprogram *subs; /* distinct, by first occurrence */
    uint32_t n;
    uint32_t n_nodes; /* covered, occurrences counted */
} po_split;

/* `graph`: types inferred. Every node is in at most one occurrence; only nodes that have an indexed
 * sum and static shapes are in one, each occurrence is convex (no path leaves it and comes back)
 * and holds at least one operator that multiplies. Parallel operators that read one tensor are in
 * one subprogram. Checked before return: PO_INTERNAL. */
po_status po_split_model(po_ctx *ctx, po_arena *arena, const po_graph *graph,
                         const po_split_options *options, po_split *split);

/* Puts a mutant in the place of one occurrence in a clone of that graph. Nodes of the mutant that
 * read only weights become constants, evaluated in float64 and rounded once, with
 * their recipes (ops/recipe/recipe.h). PO_UNSUPPORTED where one cannot be computed: the graph is
 * then of no further use. The values at the occurrence's ends keep their numbers, so that all
 * occurrences can be replaced in one clone. */
po_status po_split_replace(po_ctx *ctx, po_graph *model_graph, const po_subprogram *sub,
                           const po_occurrence *at, const po_graph *mutant);
/* The same with random numbers for what depends on weights alone: to be measured, not kept. */
po_status po_split_pretend(po_ctx *ctx, po_graph *model_graph, const po_subprogram *sub,
                           const po_occurrence *at, const po_graph *mutant);

/* Makes a graph of some of another's nodes (in execution order; node i of it is nodes[i]). Float
 * constants that are weights become inputs where `free_weights`, else they and all others are
 * initialisers. */
typedef struct po_extract {
    po_graph *graph;
    uint32_t n_activations; /* how many of its inputs are activations */
    po_occurrence at;       /* in the arena */
    po_value_id *map;       /* by value of the graph that it was taken from: its own, or PO_NONE */
} po_extract;
po_status po_split_extract(po_ctx *ctx, po_arena *arena, const po_graph *graph,
                           const po_node_id *nodes, uint32_t n, bool free_weights,
                           po_extract *extract);

#endif
