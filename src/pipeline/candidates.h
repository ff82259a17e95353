/* Candidates as files that the runtime can load, though none is written to a disk. */
#ifndef PO_PIPELINE_CANDIDATES_H
#define PO_PIPELINE_CANDIDATES_H

#include "cost/ort/ort.h"
#include "export/export.h"

/* What the candidates of one run share: large weights are not written once for each of them, the
 * runtime takes them from where they lie. */
typedef struct po_candidate_store {
    po_arena *arena; /* holds paths and descriptors open */
    const char **names;
    const void **data;
    size_t *sizes;
    uint32_t n, cap_names, cap_data, cap_sizes;
    po_map *known; /* names that are listed */
    uint32_t n_mapped;
    const po_content *const *mapped; /* what the model was read from */
} po_candidate_store;

typedef struct po_candidate {
    const char *path; /* for this process and its children, until the arena goes */
    po_hash hash;     /* of the whole model, weights included */
    bool whole;       /* the file holds its weights; else they are in the store */
} po_candidate;

void po_candidate_store_init(po_candidate_store *store, po_arena *arena);
/* The weights of all candidates written so far. */
po_side_files po_candidate_files(const po_candidate_store *store);

/* Where the runtime finds the original: its own file, or one in memory where there is none. */
po_status po_candidate_original(po_ctx *ctx, po_candidate_store *store, const po_graph *original,
                                const char **path);

/* Writes the model to memory. Weights of more than 32 MB in all stay where they are. */
po_status po_candidate_write(po_ctx *ctx, po_candidate_store *store, const po_graph *graph,
                             po_candidate *candidate);

#endif
