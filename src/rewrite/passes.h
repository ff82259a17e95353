/* The laws in place: at one node, or everywhere in one graph, a body or the root. */
#ifndef PO_REWRITE_PASSES_H
#define PO_REWRITE_PASSES_H

#include "cost/machine.h"
#include "ops/rewrite.h"
#include "rewrite/declared.h"
#include "rewrite/options.h"

struct po_rewriting {
    po_ctx *ctx;
    const po_postopt_options *options; /* NULL for those of exact/ */
    po_law_counts *counts;
    po_arena *scratch; /* freed after each round */
    int64_t middle;    /* positions of the map that parts small ones from large ones */
    size_t growth;     /* bytes by which a folded constant may exceed what it is computed from */
};

/* Counts a law that fired, or did not: the same answer. */
static inline bool po_law_fired(po_rewriting *state, po_law_id law, bool fired) {
    state->counts->fired[law] += fired;
    return fired;
}

/* Outputs of a tile that a family may have, of so many that it could. */
static inline uint32_t po_law_tile(const po_rewriting *state, po_tile_family which, uint32_t most) {
    uint32_t asked = state->options->most_tile[which];
    return asked > 0 && asked < most ? asked : most;
}
/* States what a family made of rounding. */
void po_law_magnifies(po_rewriting *state, uint32_t algebra, double times);
/* The same of Toom-Cook F(m, r) with dyadic points, whose output is y. */
typedef struct po_tiled_use {
    po_tile_family which;
    uint32_t algebra, m;
    int64_t r, stride;
    double across; /* what tiles along another axis make of rounding; 0: there are none */
} po_tiled_use;
void po_law_tiled(po_rewriting *state, const po_graph *graph, po_value_id y,
                  const po_tiled_use *use);
/* Whether a family may be used for this output (po_postopt_options.on_small). */
bool po_law_may(const po_rewriting *state, uint32_t algebra, const po_graph *graph, po_value_id y);
/* A length, or what an open one is at the k-th size that is meant; -1: that is not known. */
int64_t po_law_length(const po_rewriting *state, po_dim dim, uint32_t k);
/* Of the maps that the graph's convolutions make, each size once, the positions of the middle one:
 * the lower half are small. */
int64_t po_law_middle(const po_rewriting *state, const po_graph *graph);

#endif
