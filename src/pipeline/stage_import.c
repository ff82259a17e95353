/* The pipeline's own part of import: input shapes pinned as asked for, the user's own inputs read,
 * and the opset raised where the user lets it rise. */
#include "ir/function.h"
#include "pipeline/api/check_data.h"
#include "pipeline/pin.h"
#include "pipeline/pipeline.h"
#include "simplify/opset.h"

/* The original stays as it is: what was raised competes with it like every other form. */
static po_status raise(po_run_state *state) {
    const po_options *o = state->run.options;
    po_graph *raised;
    if (o->level < 1 || o->opset <= po_model_opset(state->current->model, ""))
        return PO_OK;
    PO_TRY(po_raise_opset(state->run.ctx, state->current, o->opset, &raised, NULL));
    po_run_hold(&state->run, raised);
    state->current = raised;
    return PO_OK;
}

/* A model that was optimised with kernels before: what its calls stand for is optimised anew. */
static po_status open_calls(po_run_state *state) {
    const po_graph *g = state->current;
    po_graph *opened;
    if (state->run.options->level < 1 || po_model_opset(g->model, PO_KERNEL_DOMAIN) == 0)
        return PO_OK;
    PO_TRY(po_pin_inputs(state->run.ctx, g, NULL, 0, &opened));
    po_run_hold(&state->run, opened);
    state->current = opened;
    return PO_OK;
}

po_status po_stage_import(po_run_state *state) {
    const po_options *o = state->run.options;
    if (o->check_data)
        PO_TRY(po_check_data_read(state->run.ctx, state->run.files, o->check_data, state->original,
                                  &state->checks, &state->n_checks));
    if (o->n_pins) {
        po_graph *pinned;
        bool stay_open;
        PO_TRY(po_pin_inputs(state->run.ctx, state->original, o->pins, o->n_pins, &pinned));
        po_run_hold(&state->run, pinned);
        PO_TRY(po_pinned_check(&state->run, state->original, pinned, &stay_open));
        if (stay_open)
            po_graph_free(pinned);
        else
            state->original = state->current = pinned;
    }
    PO_TRY(open_calls(state));
    return raise(state);
}
