/* What a run decided, kept in the cost cache, so that the same run (model, options, machine) goes
 * straight there: the form that won, with the mutants in it, is made again, and nothing else is
 * searched or measured.
 *
 * None of it is trusted. The form goes through select and the proof like any other; their verdicts
 * are kept by the contents of both models, so a form that comes out otherwise is measured anew, and
 * one that is not accepted makes the run begin again without recall. */
#ifndef PO_PIPELINE_RECALL_H
#define PO_PIPELINE_RECALL_H

#include "pipeline/stages.h"

/* A mutant in one place of its subprogram. */
typedef struct po_placed {
    uint32_t site, at;
    const char *name;
    const po_graph *mutant;
} po_placed;

typedef struct po_recall {
    const char *form;       /* of the winner; NULL: the original stays */
    po_mutated_kind kind;   /* whose mutants are in it; PO_MUTATED_KINDS: no graph's */
    double ms_before;       /* what it was measured to take; 0: not measured */
    const char *no_kernels; /* why it has none; "" where it has some or none were asked for */
    const char *why;        /* the original stays; "" */
    bool cut;               /* that run was */
    /* mutants of the winning form */
    po_placed *placed;
    po_hash *signatures; /* of their subprograms */
    uint32_t n_placed;
} po_recall;

/* Whether a run makes the form of this name: one that is known makes none but that which won. */
bool po_recall_wants(const po_recall *recall, const char *form);

typedef struct po_recalled {
    const po_recall *recall; /* the same run is known; NULL: it is not */
    struct po_cost *cost;    /* NULL: nothing is to be recalled or kept */
    po_hash key;
} po_recalled;

/* Before split. */
po_status po_recall_find(const po_run *run, const po_graph *original, po_recalled *out);

/* In place of choose: the graph with the mutants. out->recall: NULL where they no longer fit, and
 * nothing was placed. */
po_status po_recall_place(const po_run *run, const struct po_search *search,
                          const po_recall *recall, po_chosen *out);

/* After select: what is kept of a run that went all the way. */
typedef struct po_decided {
    const po_chosen *chosen;
    bool changed;            /* the winner is not the original */
    bool undecided;          /* readings were cut short or disturbed */
    bool kernels_of_mutants; /* a recalled run, which looks for no mutants, cannot make them */
    const char *no_kernels;
} po_decided;
void po_recall_keep(const po_run *run, const po_recalled *where, const po_decided *decided);

#endif
