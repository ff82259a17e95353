/* Proof that two models compute the same function: both are evaluated modulo drawn primes on random
 * inputs, and every element of every output is compared. Linear operators by their indexed
 * sums, weights as free variables that equal values share, non-linear functions as random ones of
 * which only stated laws hold, derived constants by their recipes (ops/recipe/recipe.h).
 * docs/proof.md says what is proved, and for which functions.
 *
 * Where the models differ as such terms, a trial calls them equal with the probability that the
 * report bounds. Rounding is not looked at: it is measured elsewhere. */
#ifndef PO_VERIFY_PROOF_H
#define PO_VERIFY_PROOF_H

#include "ir/graph.h"

typedef struct po_proof_options {
    uint64_t seed;   /* primes and points follow from it; 0: drawn from the system */
    uint32_t trials; /* at each assignment of lengths; 0: 2, or more where the bound asks for it */
    double cpu_seconds; /* 0: no limit */
} po_proof_options;

enum { PO_PROOF_TEXT = 400, PO_PROOF_TRIALS = 4 /* at most */ };

/* What is known where residues differ. */
typedef enum po_differ {
    PO_DIFFER_NOT = 0,     /* they do not */
    PO_DIFFER_UNEXPLAINED, /* perhaps by a law that the proof does not know, or a rounded constant
                            */
    PO_DIFFER_CERTAIN      /* the models are not the same function */
} po_differ;

/* Plain bytes: it is kept in the cache. */
typedef struct po_proof_report {
    int32_t proved;
    int32_t differ; /* po_differ: `why` says of which output */
    uint32_t trials, sizes;
    int32_t
        any_batch; /* the batch is open, and what was tried stands for every number of samples */
    int32_t every_size; /* it holds for all lengths of open dims that the original takes */
    int32_t spaced;     /* of which heights and widths are multiples of this */
    int32_t positive;   /* and none is 0 */
    uint32_t primes[PO_PROOF_TRIALS]; /* of the trials */
    uint64_t seed;
    double degree;           /* of the polynomials that are compared, at most */
    double log2_bound;       /* of the probability that a difference was missed */
    int64_t elements;        /* of outputs compared, over all trials */
    uint32_t nodes, reused;  /* evaluated; taken over since operator and inputs were the same */
    double seconds;          /* CPU */
    char why[PO_PROOF_TEXT]; /* one sentence where not proved */
} po_proof_report;

/* Both graphs need types inferred and operators resolved. `recipes`: as po_recipes_to_graph makes
 * them, for constants of the candidate; may be NULL. Fails only for what stops the run (cancelled,
 * out of memory): all else is in the report. */
po_status po_prove(po_ctx *ctx, const po_graph *original, const po_graph *candidate,
                   const po_graph *recipes, const po_proof_options *options,
                   po_proof_report *report);

#endif
