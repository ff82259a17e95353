/* The pipeline's own part of import: input shapes pinned as asked for, the user's own inputs read,
 * and the opset raised where the user lets it rise. */
#include "ir/function.h"
#include "pipeline/api/check_data.h"
#include "pipeline/pin.h"
#include "pipeline/stages.h"
#include "simplify/opset.h"

/* The original stays as it is: what was raised competes with it like every other form. */
/* Lengths that the model's file leaves open, and its nodes do not. */
static void note_demands(const po_run *run, const po_inputs *plan) {
    enum { MOST_NOTES = 3 };
    const char *symbol;
    int64_t length;
    bool exact;
    for (uint32_t k = 0, told = 0;
         told < MOST_NOTES && po_inputs_demanded(plan, k, &symbol, &length, &exact); k++) {
        if (!symbol || run->options->n_sizes > 0)
            continue;
        told++;
        if (exact)
            po_record_note(run->record, "%.60s is %lld wherever the model runs", symbol,
                           (long long)length);
        else
            po_record_note(run->record,
                           "%.60s is taken for %lld, as the model's nodes want it (--sizes says "
                           "another, --input-shape pins it)",
                           symbol, (long long)length);
    }
}

static po_status raise(const po_run *run, po_imported *out) {
    const po_options *o = run->options;
    po_graph *raised;
    if (o->level < 1 || o->opset <= po_model_opset(out->graph->model, ""))
        return PO_OK;
    PO_TRY(po_raise_opset(run->ctx, out->graph, o->opset, &raised, NULL));
    po_run_hold(run, raised);
    out->graph = raised;
    return PO_OK;
}

/* A model that was optimised with kernels before: what its calls stand for is optimised anew. */
static po_status open_calls(const po_run *run, po_imported *out) {
    po_graph *opened;
    if (run->options->level < 1 || po_model_opset(out->graph->model, PO_KERNEL_DOMAIN) == 0)
        return PO_OK;
    PO_TRY(po_pin_inputs(run->ctx, out->graph, NULL, 0, &opened));
    po_run_hold(run, opened);
    out->graph = opened;
    return PO_OK;
}

po_status po_stage_import(const po_run *run, const po_graph *model, po_imported *out) {
    const po_options *o = run->options;
    *out = (po_imported){.original = model, .graph = model};
    if (o->check_data)
        PO_TRY(po_check_data_read(run->ctx, run->files, o->check_data, model, &out->checks,
                                  &out->n_checks));
    if (o->n_pins) {
        po_graph *pinned;
        bool stay_open;
        PO_TRY(po_pin_inputs(run->ctx, model, o->pins, o->n_pins, &pinned));
        po_run_hold(run, pinned);
        PO_TRY(po_pinned_check(run, model, pinned, &stay_open));
        if (stay_open)
            po_graph_free(pinned);
        else
            out->original = out->graph = pinned;
    }
    PO_TRY(open_calls(run, out));
    po_inputs *plan; /* before anything is done for sizes that cannot be */
    PO_TRY(po_run_inputs(run, run->files, out->original, NULL, &plan));
    note_demands(run, plan);
    return raise(run, out);
}
