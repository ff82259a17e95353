/* The last look at the winner: read back from the bytes that were measured, it must be the graph
 * that was meant; that is what is then proved. */
#include "import/import.h"
#include "ops/op.h"
#include "pipeline/pipeline.h"
#include "pipeline/proving.h"

po_status po_stage_export(po_run_state *state) {
    if (!state->winner_path)
        return po_proving_run(state, NULL);
    po_model *back;
    PO_TRY(po_import_file(state->ctx, state->winner_path, &back));
    po_ops_resolve(back->graph);
    bool same = po_graph_equal(back->graph, state->winner);
    po_status status = same ? po_proving_run(state, back->graph) : PO_OK;
    po_model_free(back);
    if (same)
        return status;
    state->winner = state->current = state->original;
    state->record->summary.winner = "original";
    return po_fail(state->ctx, PO_INTERNAL, "the winner does not read back as what it was");
}
