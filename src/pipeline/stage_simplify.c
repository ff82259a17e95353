/* Simplify's counts in the words of the report. */
#include "pipeline/pipeline.h"
#include "simplify/simplify.h"

#include <stddef.h>

po_status po_stage_simplify(po_run_state *state) {
    static const struct {
        const char *rule;
        size_t offset;
    } rules[] = {
        {"fold constants", offsetof(po_simplify_counts, folded)},
        {"shape arithmetic", offsetof(po_simplify_counts, shapes)},
        {"merge duplicates", offsetof(po_simplify_counts, duplicates)},
        {"drop identities", offsetof(po_simplify_counts, identities)},
        {"compose layouts", offsetof(po_simplify_counts, layouts)},
        {"take known branches", offsetof(po_simplify_counts, branches)},
        {"sweep dead nodes", offsetof(po_simplify_counts, dead)},
    };
    po_simplify_options options = po_simplify_defaults();
    po_simplify_counts counts = {0};
    po_graph *out;
    PO_TRY(po_simplify(state->ctx, state->current, &options, &out, &counts));
    po_pipeline_hold(state, out);
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++)
        po_record_fired(state->record, rules[i].rule,
                        *(const uint32_t *)((const char *)&counts + rules[i].offset));
    state->current = out;
    return PO_OK;
}
