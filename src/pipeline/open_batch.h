/* Models whose batch is open: every open dim of an input is the first one, and all are the same
 * number of samples. */
#ifndef PO_PIPELINE_OPEN_BATCH_H
#define PO_PIPELINE_OPEN_BATCH_H

#include "ops/samples.h"
#include "pipeline/run.h"

/* Whether an input has an open dim. */
bool po_batch_has_open_dims(const po_graph *graph);

/* The graph with so many samples, its nodes and values by the same numbers; held by the run. Types
 * must be inferred. PO_UNSUPPORTED: it cannot be had so. */
po_status po_batch_pinned(const po_run *run, const po_graph *graph, int64_t samples,
                          const po_graph **pinned);

/* The graph as estimates see it: itself, or with as many samples as are planned for where its batch
 * is open (--batch). */
po_status po_batch_planned(const po_run *run, const po_graph *graph, const po_graph **planned);

#endif
