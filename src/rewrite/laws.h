/* The table of laws (laws.def): their names, what is promised of them, and how they are applied. */
#ifndef PO_REWRITE_LAWS_H
#define PO_REWRITE_LAWS_H

#include "ops/op.h"
#include "rewrite/options.h"

typedef enum po_law_id {
#define LAW(id, name, law, condition, class, helps, proof, apply) PO_LAW_##id,
#include "rewrite/laws.def"
#undef LAW
    PO_LAWS
} po_law_id;

/* How often each law fired in place. */
typedef struct po_law_counts {
    uint32_t fired[PO_LAWS];
    uint32_t used;           /* po_algebra and po_used bits of what changed anything (options.h) */
    uint32_t tile[PO_TILED]; /* the largest that was made */
    uint32_t on_small, on_large; /* po_algebra bits: where they changed anything, if they tell */
    /* By bit of po_algebra: what the family made of rounding, at most, where the plain way is 1; 0:
     * it changed nothing. */
    double magnifies[PO_ALGEBRAS];
} po_law_counts;

typedef struct po_rewriting po_rewriting; /* passes.h */
typedef struct po_deriving po_deriving;   /* deriving.h */

/* In place, at one node: true where it was rewritten. */
typedef bool (*po_law_fn)(po_rewriting *r, po_graph *graph, po_node_id node);
/* In place, everywhere in the graph. */
typedef po_status (*po_pass_fn)(po_ctx *ctx, po_graph *graph, po_rewriting *state);
/* As mutants: tries one node, adds any number of clones. */
typedef po_status (*po_derivation_fn)(po_deriving *d, po_node_id id);

typedef enum po_law_class {
    PO_LAW_KEEPS_BITS,  /* but the sign of a zero */
    PO_LAW_ROUNDS,      /* equal over the reals */
    PO_LAW_PARTLY_RIGHT /* some of what it makes is wrong at seams, which the corrector mends */
} po_law_class;

typedef enum po_law_helps {
    PO_LAW_RUNTIME = 1 << 0,
    PO_LAW_KERNELS = 1 << 1,
    PO_LAW_GPU = 1 << 2,
    PO_LAW_CPU = PO_LAW_RUNTIME | PO_LAW_KERNELS,
    PO_LAW_ANY = PO_LAW_CPU | PO_LAW_GPU
} po_law_helps;

typedef enum po_law_proof {
    PO_LAW_SAME,  /* the same numbers, moved or computed again */
    PO_LAW_FIELD, /* a polynomial identity, modulo primes */
    PO_LAW_NAMED  /* a law that the proof holds of a function (docs/proof.md) */
} po_law_proof;

/* Whose list it is on. */
typedef enum po_law_stage { PO_LAW_OF_SIMPLIFY, PO_LAW_OF_POSTOPT, PO_LAW_OF_MUTATE } po_law_stage;

typedef struct po_law {
    const char *name; /* in the words of the closing report and of mutants */
    const char *law, *condition;
    po_law_class class;
    unsigned helps; /* po_law_helps bits */
    po_law_proof proof;
    po_law_stage stage;
    /* One of these at most (the sweep has none). */
    po_law_fn at;
    po_pass_fn pass; /* the walk that finds it, others beside it */
    po_derivation_fn derive;
} po_law;

extern const po_law po_laws[PO_LAWS];

const char *po_law_name(po_law_id law);
/* Laws that stand side by side in the table, on the graph and on every body in it: their pass, or
 * at each node the first that fires. */
typedef struct po_law_group {
    po_law_id first, last;
    uint32_t family;  /* po_algebra bit that it belongs to; 0: none */
    double magnifies; /* what it makes of rounding; 0: it says so itself */
} po_law_group;
/* The second on one graph. */
void po_laws_at_nodes(po_graph *graph, const po_law_group *group, po_rewriting *state);
po_status po_laws_apply(po_ctx *ctx, po_graph *graph, const po_law_group *group,
                        po_rewriting *state);
/* All that fired. */
uint32_t po_law_total(const po_law_counts *counts);

#endif
