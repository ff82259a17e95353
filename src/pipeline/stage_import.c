/* The pipeline's own part of import: input shapes pinned as asked for. */
#include "pipeline/pin.h"
#include "pipeline/pipeline.h"

po_status po_stage_import(po_run_state *state) {
    const po_options *o = state->options;
    if (o->n_pins == 0)
        return PO_OK;
    po_graph *pinned;
    PO_TRY(po_pin_inputs(state->ctx, state->original, o->pins, o->n_pins, &pinned));
    po_pipeline_hold(state, pinned);
    state->original = state->current = pinned;
    return PO_OK;
}
