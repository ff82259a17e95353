/* Whether two models that are equal at some lengths of their open dims are so at every length.
 *
 * Values of both are put into classes that are equal for all lengths: by the same node of the same
 * classes, or as parts of both models that make the same of any leaves, shown at one assignment by
 * residues and for all others by their forms (verify/sizes/makeup.h). docs/proof.md, "Every size".
 */
#ifndef PO_VERIFY_SIZES_H
#define PO_VERIFY_SIZES_H

#include "verify/proof/internal.h"
#include "verify/sizes/names.h"

typedef struct po_sizes po_sizes;

/* Of which lengths it is to hold: heights and widths are multiples of `spaced`, none is 0. */
typedef struct po_spacing {
    int64_t spaced;
    bool positive;
} po_spacing;

/* `size`: the assignment at which both models are run. */
po_sizes *po_sizes_create(po_ctx *ctx, po_arena *arena, const po_inputs *plan, uint32_t size,
                          const po_graph *original, const po_graph *candidate);
void po_sizes_free(po_sizes *sizes);
/* Has the evaluation of the original (0) or the candidate (1) tell what values are. */
void po_sizes_record(po_sizes *sizes, uint32_t side, po_pgraph_spec *spec);
/* After both models were evaluated in the run: finds the classes, and the parts that show them. */
po_status po_sizes_find(po_sizes *sizes, po_prun *run, const po_pgraph_spec *candidate);
bool po_sizes_found(const po_sizes *sizes); /* whether that was done */
/* Evaluates the parts once more, with another prime. `candidate`: with its derived constants. */
po_status po_sizes_again(po_sizes *sizes, po_prun *run, const po_pgraph_spec *candidate);
/* Whether every output was equal for all lengths in all trials, and of which lengths. */
bool po_sizes_hold(const po_sizes *sizes, po_spacing *spacing);

#endif
