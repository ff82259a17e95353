/* How long a run may take. -O1 and -O2 end within two minutes whatever the model, -O3 within ten,
 * but for the readings of the best candidate on a busy machine: each part of the run has a time by
 * which it stops, as if it had nothing more to offer, and what it found by then goes on
 * (docs/cli.md). */
#ifndef PO_PIPELINE_BUDGET_H
#define PO_PIPELINE_BUDGET_H

#include "pipeline/pipeline.h"

/* Parts in their order; each also has what those before it left. */
typedef enum po_part {
    PO_PART_JUDGE, /* mutate, correct */
    PO_PART_CHOOSE,
    PO_PART_KERNELS, /* for GPUs, where there is a time limit */
    PO_PART_FORMS,   /* postopt */
    PO_PART_RANKS,   /* first readings of whole models */
    PO_PART_SELECT,  /* comparing, confirming */
    PO_PART_PROOF,
    PO_PARTS
} po_part;

/* When a part must end, as po_now counts; 0: never. */
double po_budget_end(const po_run_state *state, po_part part);

/* Seconds beyond that which what is worth it may take. */
double po_budget_grace(const po_run_state *state, po_part part);

/* Calls fn, for which the run's time limit is the part's end and grace. Where that stops it, the
 * run goes on: PO_OK, *cut true and a note. `what` ends "... was cut short after N s: ". */
typedef po_status (*po_part_fn)(po_run_state *state, void *user);
po_status po_budget_call(po_run_state *state, po_part part, const char *what, po_part_fn fn,
                         void *user, bool *cut);

#endif
