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
    size_t growth;     /* bytes by which a folded constant may exceed what it is computed from */
};

/* Counts a law that fired, or did not: the same answer. */
static inline bool po_law_fired(po_rewriting *state, po_law_id law, bool fired) {
    state->counts->fired[law] += fired;
    return fired;
}

#endif
