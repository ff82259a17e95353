/* Mutate: programs that may compute what a subprogram does, wholly or in part (PET, section 4). */
#ifndef PO_MUTATE_MUTATE_H
#define PO_MUTATE_MUTATE_H

#include "ir/subprogram.h"
#include "rewrite/laws.h"

typedef struct po_mutate_options {
    uint32_t depth;  /* of the enumeration; 0: none */
    uint32_t rounds; /* mutants of mutants; 0: 1 */
    uint32_t keep;   /* best kept of a round; 0: 32 */
    double seconds;  /* of CPU for the enumeration; 0: no limit */
    uint64_t most;   /* candidates that the enumeration judges; 0: 131,072 */
} po_mutate_options;

typedef struct po_mutate_counts {
    uint64_t derived; /* mutants by directed derivations */
    /* By po_derive_further: by laws in place on a clone, by laws on what others made; tried in all,
     * of these left out as slower than what they were made of, or beyond the budget. */
    uint64_t lifted, composed, tried, left_out;
    uint64_t judged; /* candidates of the enumeration: shape, hash, interior points */
    uint64_t by_shape, by_hash, by_points; /* rejected */
    double seconds;
} po_mutate_counts;

/* Directed derivations: the laws that make mutants (rewrite/laws.def, docs/mutants.md) and help one
 * of these (po_law_helps bits). Names begin with the law's. */
po_status po_derive(po_ctx *ctx, po_arena *arena, const po_subprogram *sub, unsigned helps,
                    po_mutants *mutants, po_mutate_counts *counts);

typedef struct po_derive_options {
    uint32_t rounds;  /* the first is the laws in place, others laws on mutants; 0: 2 */
    uint32_t parents; /* mutants of a round that laws are tried on, the best by estimate; 0: 6 */
    uint32_t tried;   /* mutants made at most, good or not; 0: 512 */
    uint32_t keep;    /* of these at most; 0: 24 */
    unsigned helps;   /* as in po_derive; 0: PO_LAW_ANY */
} po_derive_options;

/* Behind po_derive: every other law on a clone of the subprogram, and all laws on the best of the
 * mutants, partly right ones too. Those of mutants are kept where the roofline of a plain machine
 * says that they take less time than what they were made of. */
po_status po_derive_further(po_ctx *ctx, po_arena *arena, const po_subprogram *sub,
                            const po_derive_options *options, po_mutants *mutants,
                            po_mutate_counts *counts);

/* Depth-first enumeration over the subprogram's operators and R/T (PET, Algorithm 1). */
po_status po_enumerate(po_ctx *ctx, po_arena *arena, const po_subprogram *sub,
                       const po_mutate_options *options, po_mutants *mutants,
                       po_mutate_counts *counts);

#endif
