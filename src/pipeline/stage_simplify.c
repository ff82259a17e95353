/* Simplify's counts in the words of the report. */
#include "pipeline/pipeline.h"
#include "simplify/simplify.h"

po_status po_stage_simplify(po_run_state *state) {
    po_simplify_options options = po_simplify_defaults();
    po_law_counts counts = {0};
    po_graph *out;
    PO_TRY(po_simplify(state->run.ctx, state->current, &options, &out, &counts));
    po_run_hold(&state->run, out);
    for (uint32_t i = 0; i < PO_LAWS; i++)
        po_record_fired(state->run.record, po_law_name((po_law_id)i), counts.fired[i]);
    state->current = out;
    return PO_OK;
}
