/* Whether a batch is open, and the model with a number of samples in its place: pinned as by
 * --input-shape, and refused where that changes its nodes. */
#include "pipeline/open_batch.h"

#include "pipeline/pin.h"

bool po_batch_has_open_dims(const po_graph *graph) {
    for (uint32_t i = 0; i < graph->n_inputs; i++) {
        const po_type *type = &graph->values[graph->inputs[i]].type;
        for (uint32_t d = 0; type->kind == PO_TYPE_TENSOR && type->has_rank && d < type->rank; d++)
            if (!po_dim_known(type->dims[d]))
                return true;
    }
    return false;
}

po_status po_batch_pinned(const po_run *run, const po_graph *graph, int64_t samples,
                          const po_graph **pinned) {
    po_pin *pins = PO_NEW_N(run->arena, po_pin, graph->n_inputs + 1);
    uint32_t n = 0;
    for (uint32_t i = 0; i < graph->n_inputs; i++) {
        const po_value *value = &graph->values[graph->inputs[i]];
        int64_t *dims = PO_NEW_N(run->arena, int64_t, value->type.rank + 1);
        bool open = false;
        for (uint32_t d = 0; d < value->type.rank; d++) {
            bool known = po_dim_known(value->type.dims[d]);
            dims[d] = known ? value->type.dims[d].value : samples;
            open |= !known;
        }
        if (open)
            pins[n++] = (po_pin){.name = value->name, .rank = value->type.rank, .dims = dims};
    }
    po_graph *made;
    PO_TRY(po_pin_inputs(run->ctx, graph, pins, n, &made));
    po_run_hold(run, made);
    bool same = made->n_nodes == graph->n_nodes && made->n_values == graph->n_values;
    for (uint32_t i = 0; i < made->n_nodes && same; i++)
        same = made->nodes[i].removed == graph->nodes[i].removed &&
               strcmp(made->nodes[i].op_type, graph->nodes[i].op_type) == 0;
    if (!same)
        return po_fail(run->ctx, PO_UNSUPPORTED, "the model with %lld samples has other nodes",
                       (long long)samples);
    *pinned = made;
    return PO_OK;
}

po_status po_batch_planned(const po_run *run, const po_graph *graph, const po_graph **planned) {
    *planned = graph;
    if (!po_samples_are_open(graph))
        return PO_OK;
    po_status status = po_batch_pinned(run, graph, run->options->batch, planned);
    if (status != PO_UNSUPPORTED && status != PO_BAD_INPUT && status != PO_BAD_USE)
        return status;
    po_ctx_clear(run->ctx);
    *planned = graph;
    return PO_OK;
}
