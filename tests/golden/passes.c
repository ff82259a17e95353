#include "golden.h"

/* Only the text form itself. */
static po_status copy(po_ctx *ctx, const po_graph *graph, po_graph **result) {
    *result = po_graph_clone(ctx, graph);
    return PO_OK;
}

static po_status sweep(po_ctx *ctx, const po_graph *graph, po_graph **result) {
    *result = po_graph_clone(ctx, graph);
    po_graph_sweep(*result);
    return PO_OK;
}

const golden_pass golden_passes[] = {
    {"copy", copy},
    {"sweep", sweep},
    {NULL, NULL},
};
