/* What the open lengths of a model are at the sizes that it is meant for. */
#ifndef PO_PIPELINE_MEANT_H
#define PO_PIPELINE_MEANT_H

#include "pipeline/run.h"
#include "rewrite/options.h"

/* Of the graph's inputs, in the run's arena; names that no input has are not known. */
po_status po_meant_lengths(const po_run *run, const po_graph *graph, po_meant *meant);

#endif
