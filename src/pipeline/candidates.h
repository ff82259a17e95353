/* Candidates as files that the runtime can load, though none is written to a disk. */
#ifndef PO_PIPELINE_CANDIDATES_H
#define PO_PIPELINE_CANDIDATES_H

#include "export/export.h"

/* Writes the model to memory and gives a path that this process and its children can open, until
 * the arena goes. PO_UNSUPPORTED for models too large for one file. */
po_status po_candidate_write(po_ctx *ctx, po_arena *arena, const po_graph *graph, const char **path,
                             po_hash *hash);

#endif
