/* Both models with a name for every open dim, and with numbers for the names. */
#ifndef PO_VERIFY_SIZES_NAMES_H
#define PO_VERIFY_SIZES_NAMES_H

#include "ops/op.h"
#include "verify/inputs/inputs.h"
#include "verify/sizes/makeup.h"

/* What the names of the models' inputs are. */
typedef struct po_names {
    po_arena *arena;
    const po_inputs *plan;
    uint32_t size;  /* an assignment that the original takes */
    int64_t spaced; /* heights and widths are multiples of it */
    bool positive;  /* no length is 0 */
    bool has_space; /* there are heights or widths */
    uint32_t n, cap;
    const char **name;
    int64_t *tried; /* by name */
    po_map *at;     /* name to its number */
    po_map *given;  /* what the model writes to what stands for it: index in dims */
    po_dim *dims;
    uint32_t n_dims, cap_dims;
    int64_t *fixed; /* lengths of the models that are not open */
    uint32_t n_fixed, cap_fixed;
} po_names;

/* A model: open, at two large assignments, and at the one that is tried. */
typedef struct po_sized {
    po_graph *open, *at[PO_MAKEUP_SIZES];
} po_sized;

/* Finds the names of the original's inputs, and lengths to try parts at. False where none is open.
 */
bool po_names_find(po_names *names, const po_graph *original);
/* Both models, the first being the original. */
void po_sized_make(po_ctx *ctx, po_names *names, const po_graph *original,
                   const po_graph *const graph[2], po_sized sized[2]);
void po_sized_free(po_sized *sized);
/* The length at the tried assignment; -1: it is not known. */
int64_t po_names_tried(const po_names *names, po_dim dim);

#endif
