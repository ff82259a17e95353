/* simplify: constants, shape arithmetic, duplicates, identities, chains of reshapes and
 * transposes, branches with a constant condition. Every rewrite here is exact: it changes no value
 * of any output by a bit, except the sign of a zero where x + 0 is dropped. */
#ifndef PO_SIMPLIFY_SIMPLIFY_H
#define PO_SIMPLIFY_SIMPLIFY_H

#include "rewrite/laws.h"

typedef struct po_simplify_options {
    size_t growth; /* bytes by which one folded constant may exceed what it is computed from */
} po_simplify_options;

/* The defaults: 64 KiB of growth. */
po_simplify_options po_simplify_defaults(void);

/* Returns a simplified copy, bodies included; types are inferred in it. `counts` may be NULL. */
po_status po_simplify(po_ctx *ctx, const po_graph *in, const po_simplify_options *options,
                      po_graph **out, po_law_counts *counts);

#endif
