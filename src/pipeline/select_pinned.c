/* A model that stays as it was is written with the dims that --input-shape named: whether the
 * runtime takes it with these. A branch for other lengths may not fit them, which runtimes see on
 * loading. */
#include "cost/cost.h"

#include "pipeline/budget.h"
#include "pipeline/candidates.h"
#include "pipeline/pin.h"
#include "pipeline/selecting.h"

#include <stdio.h>

static po_status run_pinned(po_run_state *state, const po_cost *cost, po_arena *arena) {
    po_candidate_store store;
    po_candidate pinned;
    po_graph *typed;
    double seconds;
    po_candidate_store_init(&store, arena);
    /* Not po_candidate_original: the file that was given has the dims open. */
    PO_TRY(po_candidate_write(state->ctx, &store, state->original, &pinned));
    PO_TRY(po_pin_inputs(state->ctx, state->original, NULL, 0, &typed));
    po_pipeline_hold(state, typed);
    po_side_files files = po_candidate_files(&store);
    return po_budget_read(state, arena, cost, pinned.path, &files, typed, &seconds);
}

po_status po_select_check_pinned(po_run_state *state) {
    po_cost *cost;
    if (state->options->n_pins == 0 || state->options->cuda || state->winner != state->original)
        return PO_OK;
    PO_TRY(po_pipeline_cost(state, &cost));
    if (!cost->machine.has_runtime)
        return PO_OK;
    po_arena *arena = po_arena_create(state->ctx);
    po_status status = run_pinned(state, cost, arena);
    po_arena_free(arena);
    if (status != PO_RUNTIME)
        return status;
    char why[PO_MESSAGE_MAX];
    snprintf(why, sizeof why, "%s", state->ctx->error.message);
    po_ctx_clear(state->ctx);
    return po_fail(state->ctx, PO_BAD_USE,
                   "--input-shape: the runtime does not take the model with these shapes: %.600s",
                   why);
}
