/* A graph evaluated by the float64 reference on a feed. */
#include "verify/verify_internal.h"

#include "ops/op.h"

#include <string.h>

/* The graph's inputs as arrays; initialisers give the rest. */
static po_status arrays_of(po_ctx *ctx, po_arena *arena, const po_graph *graph, const po_feed *feed,
                           const po_array ***out) {
    const po_array **in = PO_NEW_N(arena, const po_array *, graph->n_inputs);
    for (uint32_t i = 0; i < graph->n_inputs; i++) {
        const po_value *value = &graph->values[graph->inputs[i]];
        const po_tensor *tensor = value->constant;
        for (uint32_t k = 0; k < feed->n; k++)
            if (strcmp(feed->names[k], value->name) == 0)
                tensor = feed->data[k].tensor;
        if (!tensor)
            return po_fail(ctx, PO_UNSUPPORTED, "the input '%s' is not a tensor", value->name);
        po_array *array = NULL;
        PO_TRY(po_array_from_tensor(ctx, arena, tensor, &array));
        in[i] = array;
    }
    *out = in;
    return PO_OK;
}

static po_status told(po_ctx *ctx, po_status status) {
    return status == PO_UNSUPPORTED ? po_fail(ctx, status, "an operator has no reference") : status;
}

po_status po_verify_evaluate(po_ctx *ctx, po_arena *arena, const po_graph *graph,
                             const po_feed *feed, bool round, po_array ***out) {
    const po_array **in = NULL;
    PO_TRY(arrays_of(ctx, arena, graph, feed, &in));
    *out = PO_NEW_N(arena, po_array *, graph->n_outputs);
    return told(ctx, po_ref_graph(ctx, arena, graph, in, *out, round));
}

po_status po_verify_evaluate_noisy(po_ctx *ctx, po_arena *arena, const po_graph *graph,
                                   const po_feed *feed, uint64_t draw, po_array ***noisy) {
    const po_array **in = NULL;
    PO_TRY(arrays_of(ctx, arena, graph, feed, &in));
    *noisy = PO_NEW_N(arena, po_array *, graph->n_outputs);
    return told(ctx, po_ref_graph_noisy(ctx, arena, graph, in, draw, NULL, *noisy));
}

po_status po_verify_without_answer(po_ctx *ctx, const po_limit *limit, po_status status) {
    po_limit_end(ctx, limit, &status);
    if (status == PO_OK || status == PO_NO_MEMORY || status == PO_CANCELLED)
        return status;
    po_ctx_clear(ctx);
    return po_ctx_poll(ctx);
}
