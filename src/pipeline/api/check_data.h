/* --check-data: the user's own inputs. */
#ifndef PO_PIPELINE_CHECK_DATA_H
#define PO_PIPELINE_CHECK_DATA_H

#include "verify/verify.h"

/* Reads DIR/input_K.pb and DIR/<folder>/input_K.pb (by name), K counting the graph's inputs without
 * initialisers. PO_BAD_USE where there is no such folder or no set in it; PO_BAD_INPUT for files
 * that are no tensors or of another type than the input. */
po_status po_check_data_read(po_ctx *ctx, po_arena *arena, const char *folder,
                             const po_graph *graph, const po_check_set **sets, uint32_t *n_sets);

#endif
