/* Questions about integers in ranges, their sums with constant factors, quotients and remainders by
 * constants: decided by Z3. Off the hot path: a context takes some milliseconds. Deterministic: the
 * limit counts Z3's own steps, no time. */
#ifndef PO_MUGRAPH_SMT_H
#define PO_MUGRAPH_SMT_H

#include "base/arena.h"

typedef struct po_smt po_smt;

typedef enum po_smt_answer {
    PO_SMT_NEVER, /* no values fulfil all that is required */
    PO_SMT_SOME,  /* some do */
    PO_SMT_UNKNOWN
} po_smt_answer;

typedef struct po_smt_term {
    uint32_t of; /* an expression */
    int64_t coef;
} po_smt_term;

typedef enum po_smt_relation { PO_SMT_EQUAL, PO_SMT_DIFFERENT, PO_SMT_LESS } po_smt_relation;

typedef struct po_smt_claim {
    po_smt_relation relation;
    uint32_t a, b; /* expressions */
} po_smt_claim;

/* A context of its own, freed with the arena. limit: the steps that one question may take; 0: as
 * many as questions about accesses need, many times over. */
po_smt *po_smt_create(po_arena *arena, uint32_t limit);
/* Forgets all expressions: as one that was just made, in a hundredth of the time. */
void po_smt_restart(po_smt *smt);
/* Expressions; they hold over all questions, and are made before anything is required for the next
 * one. */
uint32_t po_smt_variable(po_smt *smt, int64_t least, int64_t most);
uint32_t po_smt_sum(po_smt *smt, int64_t offset, uint32_t n, const po_smt_term *terms);
/* The greatest whole number that times `by` (above 0) is not above it, and what is left. */
uint32_t po_smt_quotient(po_smt *smt, uint32_t of, int64_t by);
uint32_t po_smt_rest(po_smt *smt, uint32_t of, int64_t by);
/* Required for the next question: the claim; at least one of the claims (none: what never holds).
 */
void po_smt_require(po_smt *smt, po_smt_claim claim);
void po_smt_require_any(po_smt *smt, uint32_t n, const po_smt_claim *claims);
/* Whether values within their ranges fulfil what was required since the last question. */
po_smt_answer po_smt_ask(po_smt *smt);

#endif
