/* The passes that golden cases may name. */
#ifndef PO_TESTS_GOLDEN_H
#define PO_TESTS_GOLDEN_H

#include "ir/text.h"
#include "ops/op.h"

typedef struct golden_pass {
    const char *name;
    /* Makes the new graph. The old one has its registry rows, but no inferred types. */
    po_status (*run)(po_ctx *ctx, const po_graph *graph, po_graph **result);
} golden_pass;

extern const golden_pass golden_passes[]; /* ends with a row whose name is NULL */

#endif
