/* What --dump prints after a stage. */
#ifndef PO_PIPELINE_DUMP_H
#define PO_PIPELINE_DUMP_H

#include "base/str.h"
#include "mugraph/mugraph.h"
#include "pipeline/stages.h"

bool po_dump_is_asked(const po_run *run, const char *stage);

/* Prints the graph; and as comments, so that the whole parses back as the graph: of split, mutate,
 * correct and choose the subprograms (NULL: none), of superopt the programs of its kernels. */
void po_dump(const po_run *run, const char *stage, const po_graph *graph,
             const struct po_search *search, const char *programs);

/* A kernel's program under a line with the number of its region, in the arena of the text. */
void po_dump_program(po_text *text, uint32_t region, const po_mu *mu);

#endif
