/* The parts of po_mu_check. */
#ifndef PO_MUGRAPH_CHECK_H
#define PO_MUGRAPH_CHECK_H

#include "mugraph/parts.h"
#include "mugraph/smt.h"

typedef struct po_mu_checker {
    po_ctx *ctx;
    const po_mu *mu;
    po_arena *arena; /* freed at the end of the check */
    uint32_t node;   /* that is looked at, for messages; PO_NONE */
    po_smt *smt;     /* made when it is first needed */
} po_mu_checker;

/* Fails (PO_BAD_INPUT), naming muGraph, step and what the statement or loop under way writes. */
__attribute__((format(printf, 2, 3))) po_status po_mu_bad(po_mu_checker *c, const char *format,
                                                          ...);

/* For what the conditions here, which are sufficient only, leave open (prove.h). */
po_smt *po_mu_checker_smt(po_mu_checker *c);

/* Names, sizes, layouts, pointers of the tree: what everything else relies on. */
po_status po_mu_check_parts(po_mu_checker *c);
/* Expressions, and that what is written can be: with the parts, and the scopes, what running a
 * muGraph relies on. */
po_status po_mu_check_values(po_mu_checker *c);
/* Local tensors used where they live, all accesses moving alike along what is local. */
po_status po_mu_check_scopes(po_mu_checker *c);
/* Each statement by itself: what it writes and how often, tile, edges. */
po_status po_mu_check_statements(po_mu_checker *c);
/* What statements mean to one another: reads before writes, parallel chunks, accumulators, fused
 * chains. */
po_status po_mu_check_flow(po_mu_checker *c);
/* That every element of every output is written. */
po_status po_mu_check_cover(po_mu_checker *c);

#endif
