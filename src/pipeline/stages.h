/* The stages as functions: what earlier ones found goes in, const, and one result comes out. Each
 * stage is in a file of its own; pipeline.c calls them in their order.
 *
 * A result is filled as far as its stage comes: where that is stopped by its time, or fails, what
 * is there counts. */
#ifndef PO_PIPELINE_STAGES_H
#define PO_PIPELINE_STAGES_H

#include "pipeline/run.h"
#include "verify/proof/proof.h"
#include "verify/verify.h"

struct po_cuda_forms;
struct po_recall;
struct po_search;
struct po_variant_list;

/* --- import --- */

typedef struct po_imported {
    const po_graph *original;   /* input shapes pinned: what everything is compared with */
    const po_graph *graph;      /* that, with its calls of kernels opened and its opset raised */
    const po_check_set *checks; /* --check-data */
    uint32_t n_checks;
} po_imported;

/* stage_import.c: pins input shapes, reads the user's inputs, infers types. */
po_status po_stage_import(const po_run *run, const po_graph *model, po_imported *out);

/* pinned.c: whether the dims have to stay open, since the runtime takes the model only so; noted.
 * The answer is kept in the cost cache. PO_BAD_USE: it takes no inputs of these dims at all. */
po_status po_pinned_check(const po_run *run, const po_graph *open, const po_graph *pinned,
                          bool *stay_open);

/* --- simplify --- */

/* Where the batch alone is open, the search and postopt work on the model with so many samples, and
 * what they make of it is opened again (ops/samples.h). More than one: what holds for one alone is
 * no law of the model. */
enum { PO_SAMPLES = 2 };

typedef struct po_simplified {
    const po_graph *graph;
    const po_graph *sample; /* simplified with PO_SAMPLES samples; NULL: nothing is open, or more is
                               than the batch, or samples are not kept apart */
} po_simplified;

/* stage_simplify.c */
po_status po_stage_simplify(const po_run *run, const po_imported *imported, po_simplified *out);

/* --- the search --- */

/* Split, mutate and correct hand on the same: subprograms with what was tried for them (search.h).
 * NULL: nothing was split. Each begins with a copy of what is before it, and the graphs that it
 * frees are gone there too. recall: the same run is known (recall.h); NULL: it is not. */
po_status po_stage_split(const po_run *run, const po_imported *imported,
                         const po_simplified *simplified, const struct po_recall *recall,
                         const struct po_search **out);
po_status po_stage_mutate(const po_run *run, const struct po_search *split,
                          const struct po_recall *recall, const struct po_search **out);
po_status po_stage_correct(const po_run *run, const struct po_search *mutated,
                           const struct po_recall *recall, const struct po_search **out);

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

typedef struct po_chosen {
    po_mutated mutated[PO_MUTATED_KINDS];
    const struct po_search *search; /* with what became of all that was tried */
    const struct po_recall *recall; /* NULL where its mutants no longer fit */
} po_chosen;

/* stage_choose.c: measures the mutants, and puts those that pay in their places. */
po_status po_stage_choose(const po_run *run, const struct po_search *search,
                          const struct po_recall *recall, po_chosen *out);

/* --- kernels, before choose --- */

/* A program that competes with the original. */
typedef struct po_variant {
    const char *name;
    const po_graph *graph;
    bool kernels;                       /* has calls that a library stands for */
    bool twice;                         /* holds weights for usual sizes and for all others */
    double seconds;                     /* target cuda: estimated; 0: node by node */
    const struct po_cuda_plan *plan;    /* target cuda, where a GPU or its records answer: with its
                                           kernels; NULL: by its graph */
    const struct po_variant_plan *how;  /* variants.h; NULL: kernels, or the model as simplified */
    const struct po_law_counts *counts; /* of what made it; NULL */
} po_variant;

enum { PO_MAX_VARIANTS = 24 };

typedef struct po_kernels {
    po_variant variants[PO_MAX_VARIANTS]; /* with kernels */
    uint32_t n_variants;
    const struct po_library
        *library;                   /* of them (codegen/delivery/library.h); NULL: there is none */
    bool of_mutants;                /* they stand for mutants, too */
    const struct po_search *search; /* with what was judged on the way */
    const char *programs;           /* where a dump asks for them: their muGraphs as text; NULL */
} po_kernels;

/* stage_superopt.c: --kernels, on this processor. */
po_status po_stage_superopt(const po_run *run, const po_imported *imported,
                            const po_simplified *simplified, const struct po_search *search,
                            const struct po_recall *recall, po_kernels *out);

/* stage_cuda.c: --kernels for a GPU, in two parts: the model as kernels, *forms NULL where none are
 * asked for; and, once mutants are chosen, the best of that and of the models with mutants. */
po_status po_stage_cuda_model(const po_run *run, const po_simplified *simplified,
                              struct po_cuda_forms **forms);
po_status po_stage_cuda(struct po_cuda_forms *forms, const po_chosen *chosen, po_kernels *out);

/* why_none.c: why the winner has no kernels, a sentence; "" where it has some, or where none were
 * asked for. */
const char *po_kernels_why_none(const po_run *run, const po_graph *original,
                                const struct po_recall *recall, const po_kernels *kernels,
                                const po_graph *winner);

/* --- forms --- */

/* stage_postopt.c: those that are worth measuring, behind the variants with kernels (variants.h).
 */
po_status po_stage_postopt(const po_run *run, const po_imported *imported,
                           const po_simplified *simplified, const po_chosen *chosen,
                           const po_kernels *kernels, struct po_variant_list *out);

/* --- the choice --- */

typedef struct po_winner {
    const po_graph *graph; /* verified and faster, or the original */
    const char *path;      /* where its bytes can be read; NULL: it is the original, or its weights
                              are not copied */
    po_proof_report proof; /* against the original */
    const po_graph *proof_of; /* the graph that it is of; NULL: none yet */
    const po_graph *recipes;  /* that the proof took its constants by; NULL: none */
} po_winner;

typedef struct po_selected {
    po_winner winner;
    const po_graph *graph; /* that a report shows: the winner; where nothing was ever taken, the
                              first form */
    bool undecided; /* readings were cut short or disturbed: the best candidate may not have had its
                       turn */
} po_selected;

/* stage_select.c: measures the variants, makes more of them, and compares them with the original.
 * size: the assignment of lengths that readings are taken at (verify/inputs/inputs.h). Graphs that
 * lose are freed. */
po_status po_stage_select(const po_run *run, const po_imported *imported,
                          const struct po_variant_list *variants, uint32_t size, po_selected *out);

/* stage_export.c: the winner must load back as what it is, and is proved; else it is the original.
 */
po_status po_stage_export(const po_run *run, const po_imported *imported, const po_winner *selected,
                          po_winner *out);

#endif
