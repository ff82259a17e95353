/* How long a run may take. -O1 and -O2 end within two minutes whatever the model, -O3 within a
 * little more than ten: each part of the run has a time by which it stops, as if it had nothing
 * more to offer, and what it found by then goes on. Models of microseconds have less of it
 * (docs/cli.md). */
#ifndef PO_PIPELINE_BUDGET_H
#define PO_PIPELINE_BUDGET_H

#include "cost/cost.h"
#include "pipeline/run.h"

/* What is known of a run's time. */
typedef struct po_budget {
    double started; /* po_now(); 0: a stage alone, which has no budget */
    double spend;   /* the part of its time that the run may take; 0: all of it */
    bool heavy;     /* one run of the model takes long, and so does all that is done to it */
    bool loads;     /* loading it does */
    bool sizes;     /* it is read and compared at several sizes */
    bool read;      /* at `size`, an assignment of lengths (verify/inputs/inputs.h) at which the
                       model runs and is read in no minutes */
    uint32_t size;
} po_budget;

/* Parts in their order; each also has what those before it left. */
typedef enum po_part {
    PO_PART_JUDGE,   /* mutate, correct */
    PO_PART_READ,    /* superopt: readings of schedules */
    PO_PART_KERNELS, /* superopt: the rest of it, the library compiled */
    PO_PART_CHOOSE,
    PO_PART_FORMS,  /* postopt */
    PO_PART_RANKS,  /* first readings of whole models */
    PO_PART_SELECT, /* comparing, confirming */
    PO_PART_PROOF,
    PO_PARTS
} po_part;

/* Seconds by which the run has ended whatever is under way, but for writing. */
double po_budget_limit(const po_options *options);

/* The part of a run's time that a model is worth of which one run takes so many seconds. */
double po_budget_share(const po_options *options, double seconds);
/* worth.c: reads how long one run of the original takes, which is kept in the cost cache, and sets
 * spend, heavy, loads, sizes and the size that readings are taken at, where dims are open. Where it
 * cannot be read, or weighs much, all of the time may be spent; with a time limit that is what may
 * be. */
po_status po_budget_settle(const po_run *run, const po_graph *original);

/* When a part must end, as po_now counts; 0: never. */
double po_budget_end(const po_run *run, po_part part);

/* Seconds beyond that which what is worth it may take. */
double po_budget_grace(const po_run *run, po_part part);

/* Calls fn, for which the run's time limit is the part's end and grace. Where that stops it, the
 * run goes on: PO_OK, *cut true and a note. `what` ends "... was cut short after N s: ". */
typedef po_status (*po_part_fn)(void *user);
po_status po_budget_call(const po_run *run, po_part part, const char *what, po_part_fn fn,
                         void *user, bool *cut);

#endif
