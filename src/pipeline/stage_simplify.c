/* Simplify's counts in the words of the report. */
#include "pipeline/stages.h"
#include "simplify/simplify.h"

po_status po_stage_simplify(const po_run *run, const po_imported *imported, po_simplified *out) {
    po_simplify_options options = po_simplify_defaults();
    po_law_counts counts = {0};
    po_graph *made;
    PO_TRY(po_simplify(run->ctx, imported->graph, &options, &made, &counts));
    po_run_hold(run, made);
    for (uint32_t i = 0; i < PO_LAWS; i++)
        po_record_fired(run->record, po_law_name((po_law_id)i), counts.fired[i]);
    out->graph = made;
    return PO_OK;
}
