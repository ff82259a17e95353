/* Where both models take each sample of a batch by itself, one number of samples stands for all. */
#include "ops/samples.h"
#include "verify/proof/internal.h"

static po_dim but_the_first(void *assignment, po_graph *graph, po_value_id input, uint32_t axis) {
    return axis == 0 ? graph->values[input].type.dims[0]
                     : po_assigned_dim(assignment, graph, input, axis);
}

/* With all open dims but the first axes at the lengths of an assignment. */
static po_graph *open_in_batch(po_ctx *ctx, const po_inputs *plan, uint32_t size,
                               const po_graph *graph) {
    return po_graph_with_dims(ctx, graph, but_the_first, &(po_assignment){plan, size});
}

static po_status same_axes(po_ctx *ctx, po_arena *arena, const po_graph *a, const po_graph *b,
                           bool *same) {
    int8_t *x, *y;
    *same = po_samples_are_open(a) && po_samples_are_open(b) && a->n_outputs == b->n_outputs;
    if (!*same)
        return PO_OK;
    PO_TRY(po_samples_apart(ctx, arena, a, &x));
    PO_TRY(po_samples_apart(ctx, arena, b, &y));
    *same = memcmp(x, y, a->n_outputs * sizeof *x) == 0;
    return PO_OK;
}

po_status po_proof_any_batch(po_ctx *ctx, const po_inputs *plan, uint32_t size, const po_graph *a,
                             const po_graph *b, bool *any) {
    po_arena *arena = po_arena_create(ctx);
    po_graph *x = open_in_batch(ctx, plan, size, a), *y = open_in_batch(ctx, plan, size, b);
    po_status status = same_axes(ctx, arena, x, y, any);
    po_graph_free(y);
    po_graph_free(x);
    po_arena_free(arena);
    if (status != PO_UNSUPPORTED && status != PO_BAD_INPUT)
        return status;
    *any = false;
    po_log(ctx, "proof: not for every batch: %s", ctx->error.message);
    po_ctx_clear(ctx);
    return PO_OK;
}
