/* simplify: constants, shape arithmetic, duplicates, identities, chains of reshapes and
 * transposes, branches with a constant condition. Every rewrite here is exact: it changes no value
 * of any output by a bit, except the sign of a zero where x + 0 is dropped. */
#ifndef PO_SIMPLIFY_SIMPLIFY_H
#define PO_SIMPLIFY_SIMPLIFY_H

#include "ops/op.h"

/* How often each rewrite fired; the names are those of the closing report. */
typedef struct po_simplify_counts {
    uint32_t folded;     /* nodes evaluated to constants */
    uint32_t shapes;     /* values known from shapes alone */
    uint32_t duplicates; /* nodes and constants that stood twice */
    uint32_t identities; /* nodes that changed nothing */
    uint32_t layouts;    /* reshapes and transposes composed or cancelled */
    uint32_t branches;   /* If nodes with a known condition */
    uint32_t dead;       /* nodes that nothing used */
} po_simplify_counts;

typedef struct po_simplify_options {
    size_t growth; /* bytes by which one folded constant may exceed what it is computed from */
} po_simplify_options;

/* The defaults: 64 KiB of growth. */
po_simplify_options po_simplify_defaults(void);

/* Returns a simplified copy, bodies included; types are inferred in it. `counts` may be NULL. */
po_status po_simplify(po_ctx *ctx, const po_graph *in, const po_simplify_options *options,
                      po_graph **out, po_simplify_counts *counts);

#endif
