/* The functions that laws.def names, declared as it says how they are applied. */
#ifndef PO_REWRITE_DECLARED_H
#define PO_REWRITE_DECLARED_H

#include "rewrite/laws.h"

#define EXACT_LOCAL(fn) bool fn(po_rewriting *r, po_graph *graph, po_node_id node);
#define LOCAL(fn)       EXACT_LOCAL(fn)
#define EXACT(fn)       po_status fn(po_ctx *ctx, po_graph *graph, po_rewriting *state);
#define ALGEBRA(fn)     EXACT(fn)
#define BOTH(fn)        po_status fn(po_deriving *d, po_node_id id);
#define MUTANT(fn)      po_status fn(po_deriving *d, po_node_id id);
#define BY_ITSELF
#define LAW(id, name, law, condition, class, helps, proof, apply) apply
#include "rewrite/laws.def"
#undef LAW
#undef BY_ITSELF
#undef MUTANT
#undef BOTH
#undef ALGEBRA
#undef EXACT
#undef LOCAL
#undef EXACT_LOCAL

#endif
