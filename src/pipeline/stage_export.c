/* The last look at the winner: read back from the bytes that were measured, it must be the graph
 * that was meant; that is what is then proved. Both in a process of its own: the winner is verified
 * by now, and nothing that hangs takes it away. */
#include "pipeline/pipeline.h"
#include "pipeline/proving.h"

po_status po_stage_export(po_run_state *state) {
    bool same;
    PO_TRY(po_proving_run(state, &same));
    if (same)
        return PO_OK;
    state->winner = state->current = state->original;
    state->record->summary.winner = "original";
    return po_fail(state->ctx, PO_INTERNAL, "the winner does not read back as what it was");
}
