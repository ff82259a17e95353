/* One way to apply a law, whatever it is written as: in place, everywhere in a graph, or as mutants
 * of a subprogram, each with the law applied once. */
#ifndef PO_REWRITE_APPLY_H
#define PO_REWRITE_APPLY_H

#include "rewrite/deriving.h"
#include "rewrite/passes.h"
#include "rewrite/weights.h"

/* In place, on one graph (not on its bodies). A derivation takes its first mutant at each node;
 * what it makes of weights is stated as recipes. `state` as for po_laws_apply. */
po_status po_law_in_place(po_ctx *ctx, po_graph *graph, po_law_id law, po_rewriting *state);

/* A law that stands in postopt's list and in mutate's, at one node of the graph itself: true where
 * it was rewritten. Such a law reads what it needs before it makes anything, and takes open
 * shapes. */
bool po_law_derive_at(po_rewriting *state, po_graph *graph, po_law_id law, po_node_id node);

/* Mutants of d's subprogram, under d->name. A law in place works on a clone in which the weights
 * are constants (lifted; NULL: then it makes none). */
po_status po_law_mutants(po_deriving *d, po_law_id law, const po_lifted *lifted);

#endif
