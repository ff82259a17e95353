/* The laws in place: at one node, or everywhere in one graph, a body or the root. */
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

/* What laws.def says of each: a function at a node, or a pass over a graph. */
#define EXACT_LOCAL(fn) bool fn(po_rewriting *r, po_graph *graph, po_node_id node);
#define LOCAL(fn)       EXACT_LOCAL(fn)
#define EXACT(fn)       po_status fn(po_ctx *ctx, po_graph *graph, po_rewriting *state);
#define ALGEBRA(fn)     EXACT(fn)
#define MUTANT(fn)
#define BY_ITSELF
#define LAW(id, name, law, condition, class, helps, proof, apply) apply
#include "rewrite/laws.def"
#undef LAW
#undef BY_ITSELF
#undef MUTANT
#undef ALGEBRA
#undef EXACT
#undef LOCAL
#undef EXACT_LOCAL

#endif
