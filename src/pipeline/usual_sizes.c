/* Which lengths of inputs are usual, and the model at these. */
#include "pipeline/usual_sizes.h"

#include "simplify/simplify.h"
#include "verify/inputs/inputs.h"

/* Above these nothing is written twice. */
#define MOST_TWICE ((uint64_t)64 << 20)
/* Maps are halved five times at most in nearly all networks. */
enum { PERIOD = 32, MOST_DIMS = 4 };

/* Whether the dim has such a length where the model is meant to be used: one sample at the first
 * place, whole periods at all of them. */
static bool is_meant(const po_inputs *plan, const po_length_is *is) {
    const uint32_t n = is->multiple ? po_inputs_meant(plan) : 1;
    for (uint32_t k = 0; k < n; k++)
        if (!po_length_holds(is,
                             po_inputs_length(plan, is->input, is->axis, po_inputs_meant_size(k))))
            return false;
    return true;
}

/* One sample in a batch, which is an input's first axis; whole periods of a map. */
static uint32_t find_usual(const po_inputs *plan, const po_graph *graph, po_length_is *list) {
    const bool divides = po_model_opset(graph->model, "") >= PO_MULTIPLES_OPSET;
    uint32_t n = 0;
    for (uint32_t i = 0; i < graph->n_inputs; i++) {
        const po_value *in = &graph->values[graph->inputs[i]];
        const po_type *type = &in->type;
        for (uint32_t d = 0; type->kind == PO_TYPE_TENSOR && type->has_rank && d < type->rank;
             d++) {
            const po_dim_class class = po_inputs_class(plan, in->name, d);
            const bool batch = class == PO_DIM_BATCH && d == 0;
            const po_length_is is = {in->name, d, batch ? 1 : PERIOD, !batch};
            if (!po_dim_known(type->dims[d]) && n < MOST_DIMS && is_meant(plan, &is) &&
                (batch || (class == PO_DIM_SPACE && divides)))
                list[n++] = is;
        }
    }
    return n;
}

static po_status make(const po_run *run, const po_graph *open, const po_branches *usual,
                      const po_graph **out) {
    const po_simplify_options options = po_simplify_defaults();
    po_graph *pinned = po_branches_pin(run->ctx, open, usual), *made;
    po_status status = po_simplify(run->ctx, pinned, &options, &made, NULL);
    po_graph_free(pinned);
    PO_TRY(status);
    po_run_hold(run, made);
    PO_TRY(po_infer_graph(run->ctx, made, true));
    *out = made;
    return PO_OK;
}

po_status po_usual_find(const po_run *run, const po_inputs *plan, const po_graph *open,
                        po_variant_plan *base, po_branches *usual) {
    po_length_is *list = PO_NEW_N(run->arena, po_length_is, MOST_DIMS);
    *base = (po_variant_plan){.of = "branch for usual sizes"};
    *usual = (po_branches){.lengths = list};
    if (run->options->cuda || po_run_skips(run, "usual") || po_record_weights(open) > MOST_TWICE)
        return PO_OK;
    usual->n = po_inputs_meant(plan) > 0 ? find_usual(plan, open, list) : 0;
    if (usual->n == 0)
        return PO_OK;
    po_status status = make(run, open, usual, &base->from);
    if (status != PO_UNSUPPORTED && status != PO_BAD_INPUT)
        return status;
    po_log(run->ctx, "no form for usual sizes: %s", run->ctx->error.message);
    po_ctx_clear(run->ctx);
    return PO_OK;
}

bool po_usual_does_more(const po_postopt_counts *usual, const po_postopt_counts *open) {
    for (uint32_t i = 0; i < PO_LAWS; i++)
        if (usual->fired[i] > open->fired[i])
            return true;
    return false;
}
