/* The way of a model: the stages in order, each timed, dumped and skipped by name. */
#ifndef PO_PIPELINE_PIPELINE_H
#define PO_PIPELINE_PIPELINE_H

#include "pipeline/stages.h"

/* The highest -O level of this version. */
#define PO_MAX_LEVEL 3

#define PO_STAGE_NAMES                                                                             \
    "import, simplify, split, mutate, correct, superopt, choose, postopt, select, export"
bool po_stage_known(const char *name);
/* What a stage does that --skip leaves out alone. */
#define PO_PART_NAMES "blind, derived, corrected, seams, combined, partly"
bool po_stage_part_known(const char *name);

/* What came of a model. */
typedef struct po_optimised {
    const po_graph *original; /* as imported: what the winner is compared with */
    po_winner winner;
    const struct po_library *library; /* of kernels that were made; NULL: there is none */
    const char *no_kernels;           /* why the winner has none, a sentence; "" */
} po_optimised;

/* Runs the stages, also where it is cancelled or out of time: the record says what was dropped and
 * why. Failures: bad options for this model, no memory, no runtime. */
po_status po_pipeline_run(const po_run *run, const po_graph *model, po_optimised *out);

#endif
