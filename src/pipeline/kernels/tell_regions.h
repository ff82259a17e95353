/* What became of the regions that kernels were made for, for the summary of petopt.h. */
#ifndef PO_PIPELINE_TELL_REGIONS_H
#define PO_PIPELINE_TELL_REGIONS_H

#include "cost/roofline.h"
#include "pipeline/run.h"
#include "superopt/plan/plan.h"

/* Adds a region with its steps; why: it stays with the runtime, NULL: it has a kernel. */
void po_tell_region(const po_run *run, const po_plan *plan, const po_rates *rates, const char *why);

#endif
