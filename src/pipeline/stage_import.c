/* The pipeline's own part of import: input shapes pinned as asked for, and the user's
 * own inputs read. */
#include "pipeline/check_data.h"
#include "pipeline/pin.h"
#include "pipeline/pipeline.h"

po_status po_stage_import(po_run_state *state) {
    const po_options *o = state->options;
    if (o->check_data)
        PO_TRY(po_check_data_read(state->ctx, state->files, o->check_data, state->original,
                                  &state->checks, &state->n_checks));
    if (o->n_pins == 0)
        return PO_OK;
    po_graph *pinned;
    PO_TRY(po_pin_inputs(state->ctx, state->original, o->pins, o->n_pins, &pinned));
    po_pipeline_hold(state, pinned);
    state->original = state->current = pinned;
    return PO_OK;
}
