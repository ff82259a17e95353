/* Simplify's counts in the words of the report; and the model with a number of samples, where its
 * batch is open. */
#include "ops/samples.h"
#include "pipeline/open_batch.h"
#include "pipeline/stages.h"
#include "simplify/simplify.h"

static po_status make_sample(const po_run *run, const po_graph *open, const po_graph **out) {
    const po_graph *pinned;
    po_graph *made;
    po_simplify_options options = po_simplify_defaults();
    PO_TRY(po_batch_pinned(run, open, PO_SAMPLES, &pinned));
    PO_TRY(po_simplify(run->ctx, pinned, &options, &made, NULL));
    po_run_hold(run, made);
    PO_TRY(po_infer_graph(run->ctx, made, true));
    po_arena *scratch = po_arena_create(run->ctx);
    int8_t *axis = po_samples_inputs(scratch, made, open);
    po_status status = po_samples_follow(run->ctx, made, PO_SAMPLES, axis);
    po_arena_free(scratch);
    PO_TRY(status);
    *out = made;
    return PO_OK;
}

/* A model that is no such one is worked on with its batch open. */
static po_status find_sample(const po_run *run, const po_graph *open, const po_graph **out) {
    *out = NULL;
    if (run->options->cuda || !po_samples_are_open(open))
        return PO_OK;
    po_status status = make_sample(run, open, out);
    if (status != PO_UNSUPPORTED && status != PO_BAD_INPUT && status != PO_BAD_USE)
        return status;
    po_log(run->ctx, "the batch stays open: %s", run->ctx->error.message);
    po_ctx_clear(run->ctx);
    return PO_OK;
}

po_status po_stage_simplify(const po_run *run, const po_imported *imported, po_simplified *out) {
    po_simplify_options options = po_simplify_defaults();
    po_law_counts counts = {0};
    po_graph *made;
    PO_TRY(po_simplify(run->ctx, imported->graph, &options, &made, &counts));
    po_run_hold(run, made);
    for (uint32_t i = 0; i < PO_LAWS; i++)
        po_record_fired(run->record, po_law_name((po_law_id)i), counts.fired[i]);
    out->graph = made;
    return find_sample(run, imported->graph, &out->sample);
}
