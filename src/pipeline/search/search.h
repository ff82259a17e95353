/* What the stages split, mutate, correct and choose hand on: every subprogram with the mutants that
 * were tried for it (docs/search.md). */
#ifndef PO_PIPELINE_SEARCH_H
#define PO_PIPELINE_SEARCH_H

#include "boxes/agree.h"
#include "cost/roofline.h"
#include "cost/timing.h"
#include "mutate/mutate.h"
#include "pipeline/stages.h"
#include "split/split.h"

/* What became of a mutant, in the order in which it may happen. */
typedef enum po_trial_fate {
    PO_TRIAL_MADE,       /* not looked at yet */
    PO_TRIAL_HOPELESS,   /* by the roofline not worth judging */
    PO_TRIAL_SAMPLES,    /* holds for one number of samples alone */
    PO_TRIAL_MALFORMED,  /* no graph with these inputs and outputs, or an operator without a sum */
    PO_TRIAL_POINTS,     /* differs at most of the positions that were looked at */
    PO_TRIAL_PARTLY,     /* agrees at some of them */
    PO_TRIAL_INSIDE,     /* agrees at all of them */
    PO_TRIAL_BOXES,      /* differs in some boxes; corrected forms of it are trials of their own */
    PO_TRIAL_EQUAL,      /* agrees in every box */
    PO_TRIAL_UNMEASURED, /* others had better estimates */
    PO_TRIAL_REFUSED,    /* the runtime does not load or run it: a fault of ours */
    PO_TRIAL_COST,       /* measured, and not faster */
    PO_TRIAL_WHOLE,      /* the whole tensors differ */
    PO_TRIAL_CHOSEN,
    PO_TRIAL_JOINED, /* not the fastest alone, but where seams are joined (layout_choice.h) */
    PO_TRIAL_FATES
} po_trial_fate;

typedef struct po_trial {
    const char *name;
    po_graph *graph; /* types inferred; NULL where it cannot be taken any more */
    po_trial_fate fate;
    bool enumerated, corrected, measured; /* neither of the first two: derived */
    bool whole;                           /* agrees in every element */
    uint32_t parent;           /* of a corrected one: the trial that it corrects; else PO_NONE */
    const po_program *program; /* NULL where there is none */
    const po_agreement *agreement; /* NULL before po_agree */
    po_estimate estimate;          /* of the graph, weights evaluated */
    double seconds;                /* measured in context; 0: not measured */
    double ratio;                  /* of the original's time in context over this one's */
    bool disturbed;                /* that was read beside other programs */
    const char *why;               /* for the report; may be NULL */
} po_trial;

typedef struct po_site {
    const po_subprogram *sub;
    const po_program *program; /* NULL: nothing can be tried */
    po_agree_known *known;     /* of that program, kept from one trial to the next */
    po_estimate estimate;      /* of the original */
    po_trial *trials;
    uint32_t n_trials, cap_trials;
    po_mutate_counts counts;
    uint64_t boxes, points; /* judged by po_agree */
    double seconds;         /* measured in context; 0: not measured */
    uint32_t chosen;        /* trial; PO_NONE: the original stays */
} po_site;

typedef struct po_search po_search;
struct po_search {
    po_arena *arena;
    po_arena *until_chosen; /* what trials are judged by; goes when choose is done */
    const po_graph *graph;  /* that was split: affine maps folded, types inferred */
    int64_t samples;        /* that it was made for, and is to be opened for any number; 0: none */
    int8_t *sample_axis;    /* then, by its values: as in po_samples_follow */
    po_cost *cost;
    po_rates rates;
    double room; /* po_run_room */
    po_split split;
    po_site *sites; /* by subprogram */
    uint32_t n_sites;
    bool cut;           /* the time for measuring was up */
    bool undecided;     /* readings were disturbed: the best may not have been taken for it */
    bool kernels;       /* are made: what is not measured may still pay there */
    bool hopeful_first; /* -O3 goes through all subprograms as -O2 does before it measures all */
    /* What times models; NULL: po_time_models. */
    po_status (*time)(po_ctx *ctx, const po_timing_spec *spec, po_timing *timing,
                      po_timing_work *work);
    double search_seconds, certify_seconds, measure_seconds;
};

/* What a stage of the search goes on with: a copy of what the one before it found. */
po_search *po_search_next(const po_search *before);

/* What a part of the run works on that has a limit of its own (budget.h). */
typedef struct po_searching {
    const po_run *run;
    po_search *search;
} po_searching;

/* Takes a mutant in as a trial (name and graph are filled in), and judges it by the roofline. What
 * concerns this mutant alone is no failure. */
po_status po_search_add(const po_run *run, po_search *search, po_site *site,
                        const po_mutant *mutant, po_trial trial);

/* Judges a trial that was not looked at by some positions inside the outputs. */
po_status po_search_positions(const po_run *run, po_search *search, po_site *site, po_trial *trial);
/* Judges a trial by boxes. */
po_status po_search_boxes(const po_run *run, po_search *search, po_site *site, po_trial *trial);

/* measure.c: times trials in context (pipeline/search/context.h), those with the best estimates
 * where there are many; sets measured, seconds and ratio. What was timed before is not timed again.
 */
po_status po_search_measure(const po_run *run, po_search *search, po_site *site,
                            const uint32_t *trials, uint32_t n);
/* Whether all that was found is measured and judged. */
bool po_search_deep(const po_run *run, const po_search *search);
bool po_search_promising(const po_trial *trial);
/* The sites, those that take most of the model's time by estimate first. */
const uint32_t *po_search_heaviest(po_search *search);
/* Seconds in context, or estimated where nothing is measured; a promising trial (PO_NONE: the
 * original) has fewer than the original. */
double po_search_seconds(const po_site *site, uint32_t trial);

/* Frees the graphs of mutants that no stage after correct may take, or, after choose, that it did
 * not place: thousands, with weights many times those of the model. */
void po_search_free_losers(po_search *search, bool chosen);

/* The failures that concern one mutant or subprogram alone: true, and forgotten. */
bool po_search_drops(po_ctx *ctx, po_status status);

/* Agreement with the original in every element. */
po_status po_search_whole(const po_run *run, po_search *search, po_site *site, po_trial *trial,
                          bool *equal);

/* The roofline of a graph of the subprogram's interface as it would run: work on weights, which is
 * done once, left out. */
void po_search_estimate(const po_run *run, const po_search *search, const po_subprogram *sub,
                        const po_graph *graph, po_estimate *estimate);

/* What operators a mutant becomes: their kinds and how many there are, but not how many of each,
 * for several products that change one by one are no news; nor how they are led to one another. */
uint64_t po_search_kind(po_ctx *ctx, const po_subprogram *sub, const po_graph *graph);

/* explain.c: a fate in words; and all that was tried, for reports. */
const char *po_trial_fate_text(po_trial_fate fate);
void po_search_explain(po_record *record, const po_search *search);

#endif
