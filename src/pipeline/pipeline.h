/* The way of a model: the stages in order, each timed, dumped and skipped by name. */
#ifndef PO_PIPELINE_PIPELINE_H
#define PO_PIPELINE_PIPELINE_H

#include "pipeline/run.h"
#include "verify/proof/proof.h"
#include "verify/verify.h"

/* The highest -O level of this version. */
#define PO_MAX_LEVEL 3

#define PO_STAGE_NAMES                                                                             \
    "import, simplify, split, mutate, correct, superopt, choose, postopt, select, export"
bool po_stage_known(const char *name);
/* What a stage does that --skip leaves out alone. */
#define PO_PART_NAMES "blind, derived, corrected, seams, combined, partly"
bool po_stage_part_known(const char *name);

/* A program that competes with the original. */
typedef struct po_variant {
    const char *name;
    const po_graph *graph;
    bool kernels;                       /* has calls that state->library stands for */
    double seconds;                     /* target cuda: estimated; 0: node by node */
    const struct po_cuda_plan *plan;    /* target cuda, where a GPU or its records answer: with its
                                           kernels; NULL: by its graph */
    const struct po_variant_plan *how;  /* variants.h; NULL: kernels, or the model as simplified */
    const struct po_law_counts *counts; /* of what made it; NULL */
} po_variant;

enum { PO_MAX_VARIANTS = 24 };

/* The model with mutants in it. */
typedef enum po_mutated_kind {
    PO_MUTATED_BEST,   /* in each place the fastest in context */
    PO_MUTATED_JOINED, /* chosen with the seams between them */
    PO_MUTATED_KINDS
} po_mutated_kind;

typedef struct po_mutated {
    const po_graph *graph;    /* NULL: there is none, or it is that of a kind before it */
    struct po_placed *placed; /* recall.h */
    uint32_t n, cap;
} po_mutated;

/* One run of the pipeline. Graphs live until the end: later ones share what earlier ones hold. */
typedef struct po_run_state {
    po_run run;
    const po_graph
        *original; /* as imported, input shapes pinned: what everything is compared with */
    const po_graph *current;  /* what the last stage made */
    struct po_search *search; /* search.h; NULL where nothing was split */
    po_mutated mutated[PO_MUTATED_KINDS];
    struct po_variant_list *forms;    /* variants.h; NULL: none are made */
    const struct po_library *library; /* of them (codegen/delivery/library.h) */
    po_variant variants[PO_MAX_VARIANTS];
    uint32_t n_variants;
    const po_graph *winner;     /* verified and faster, or the original */
    const char *winner_path;    /* where its bytes can be read; NULL: it is the original, or its
                                   weights are not copied */
    po_proof_report proof;      /* of the winner against the original */
    const po_graph *proof_of;   /* the winner that it is of; NULL: none yet */
    const po_graph *recipes;    /* that the proof took the winner's constants by; NULL: none */
    const po_check_set *checks; /* --check-data */
    uint32_t n_checks;
    uint32_t
        size; /* the assignment of lengths that readings are taken at (verify/inputs/inputs.h) */
    bool kernels_of_mutants; /* a recalled run, which looks for no mutants, cannot make them */
    /* Readings were cut short or disturbed: the best candidate may not have had its turn. */
    bool undecided;
    /* recall.h */
    const struct po_recall *recall; /* the same run is known; NULL: it is not */
    struct po_cost *recall_cost;    /* NULL: nothing is to be recalled or kept */
    po_hash recall_key;
    bool tried_recall;
    const po_graph *split_from; /* what split starts from, should the run begin there again */
} po_run_state;

/* Runs the stages. On success, and when cancelled or out of time, state->winner is set; the record
 * says what was dropped and why. Failures: bad options for this model, no memory, no runtime. */
po_status po_pipeline_run(po_run_state *state);

/* Why the winner has no kernels, a sentence; "" where it has some, or where none were asked for. */
const char *po_pipeline_no_kernels(const po_run_state *state);

/* --- stages that are more than one call, each in a file of its own --- */

/* pinned.c: whether the dims have to stay open, since the runtime takes the model only so; noted.
 * The answer is kept in the cost cache. PO_BAD_USE: it takes no inputs of these dims at all. */
po_status po_pinned_check(const po_run *run, const po_graph *open, const po_graph *pinned,
                          bool *stay_open);
/* stage_import.c: pins input shapes, infers types. */
po_status po_stage_import(po_run_state *state);
/* stage_simplify.c */
po_status po_stage_simplify(po_run_state *state);
/* stage_split.c, stage_mutate.c, stage_correct.c: search.h. */
po_status po_stage_split(po_run_state *state);
po_status po_stage_mutate(po_run_state *state);
po_status po_stage_correct(po_run_state *state);
/* stage_superopt.c: --kernels; adds the variants with kernels, sets state->library. */
po_status po_stage_superopt(po_run_state *state);
/* stage_cuda.c: the same for target cuda. */
po_status po_stage_cuda(po_run_state *state);
/* stage_choose.c: measures the mutants, sets state->mutated. */
po_status po_stage_choose(po_run_state *state);
/* stage_postopt.c: the forms that are worth measuring, as variants. */
po_status po_stage_postopt(po_run_state *state);
/* stage_select.c: measures the variants, compares them with the original, sets the winner. */
po_status po_stage_select(po_run_state *state);
/* stage_export.c: the winner must load back as what it is, and is proved. */
po_status po_stage_export(po_run_state *state);

#endif
