/* postopt: algebra within float rounding, and the spelling that the target runtime runs fastest.
 * Affine chains go into the weights of their neighbours; activations, norms and what is left of
 * affine chains are written in the form chosen by the options, so that several variants can be
 * made and measured. Only f32 and f64 arithmetic is rearranged; half precision is worked in
 * f32 first, quantised parts pass through. */
#ifndef PO_POSTOPT_POSTOPT_H
#define PO_POSTOPT_POSTOPT_H

#include "rewrite/laws.h"
#include "rewrite/options.h"

typedef po_law_counts po_postopt_counts;

/* Families (po_algebra) with laws that are right in part, and mend themselves. */
uint32_t po_postopt_partly(void);

/* Returns a rewritten copy, bodies included. `counts` may be NULL. */
po_status po_postopt(po_ctx *ctx, const po_graph *in, const po_postopt_options *options,
                     po_graph **out, po_postopt_counts *counts);

#endif
