/* The list of derivations, each tried at every node of a subprogram, and how mutants begin and end:
 * cloned, swept, their types inferred, dropped where the outputs' types differ. */
#include "mutate/derive.h"

/* In the order in which they run. */
static const po_derivation derivations[] = {
    {"dilation to phases", po_derive_phases},
    {"one-dimensional as two-dimensional", po_derive_rank},
    {"one axis less", po_derive_fewer_axes},
    {"parallel convolutions merged", po_derive_parallel},
    {"convolution by taps", po_derive_taps},
    {"kernel in blocks of 3", po_derive_blocks},
    {"stride to phases", po_derive_stride},
    {"batch to map", po_derive_batch_merge},
    {"map to batch", po_derive_batch_split},
    {"pointwise to matrix product", po_derive_point},
    {"matrix product to pointwise", po_derive_as_conv},
    {"transposed to sub-pixel", po_derive_subpixel},
    {"transposed to selective add", po_derive_selective},
    {"fast bilinear", po_derive_bilinear},
    {"fast bilinear by rows", po_derive_rows},
    {"frames", po_derive_frames},
    {"groups merged", po_derive_group_merge},
    {"groups split", po_derive_group_split},
    {"convolutions joined as groups", po_derive_group_join},
    {"pool as convolution", po_derive_pool},
    {"pool into convolution", po_derive_pool_into_conv},
    {"convolution over upsampling", po_derive_upsample},
    {"parallel products merged", po_derive_products_side},
    {"products batched", po_derive_products_batch},
    {"products bracketed", po_derive_bracket},
    {"sum of products of one tensor", po_derive_factor_sum},
    {"sum of products by one weight", po_derive_common_weight},
    {"common factor", po_derive_gated_sum},
    {"Strassen", po_derive_strassen},
    {"convolutions composed", po_derive_compose},
    {"convolution over Concat", po_derive_over_concat},
    {"convolution over Add", po_derive_over_add},
    {"sum of convolutions", po_derive_conv_sum},
};

uint32_t po_derivations(void) {
    return sizeof derivations / sizeof *derivations;
}

const char *po_derivation_name(uint32_t derivation) {
    return derivations[derivation].name;
}

enum { OLDEST_OPSET = 7 }; /* before it, shapes were broadcast by attributes */

void po_derive_begin(po_deriving *d, po_node_id place) {
    d->g = po_graph_clone(d->ctx, d->from);
    d->place = place;
    d->dropped = false;
}

static bool same_dims(const po_type *a, const po_type *b) {
    if (a->dtype != b->dtype || !po_type_static(a) || !po_type_static(b) || a->rank != b->rank)
        return false;
    for (uint32_t i = 0; i < a->rank; i++)
        if (a->dims[i].value != b->dims[i].value)
            return false;
    return true;
}

void po_derive_replace(po_deriving *d, po_value_id old, po_value_id y) {
    if (y == old || !same_dims(&d->from->values[old].type, &d->g->values[y].type))
        d->dropped = true;
    else
        po_substitute(d->g, old, y);
}

/* Outputs of the types that the subprogram's have, after inference of the clone alone. */
static bool fits(po_deriving *d) {
    po_graph *g = d->g;
    if (g->n_outputs != d->from->n_outputs || g->n_inputs != d->from->n_inputs)
        return false;
    if (po_infer_graph(d->ctx, g, false) != PO_OK) {
        po_ctx_clear(d->ctx);
        return false;
    }
    for (uint32_t i = 0; i < g->n_outputs; i++)
        if (!same_dims(&g->values[g->outputs[i]].type, &d->from->values[d->from->outputs[i]].type))
            return false;
    return true;
}

po_status po_derive_end(po_deriving *d, const char *detail) {
    po_graph *g = d->g;
    d->g = NULL;
    if (!d->dropped) {
        po_graph_sweep(g);
        d->g = g;
        d->dropped = !fits(d);
        d->g = NULL;
    }
    if (d->dropped) {
        po_graph_free(g);
        return po_ctx_poll(d->ctx);
    }
    const char *name = detail ? po_arena_printf(d->arena, "%s: %s", d->name, detail) : d->name;
    if (po_mutants_add(d->mutants, name, g))
        d->counts->derived++;
    return po_ctx_poll(d->ctx);
}

po_status po_derive_done(po_deriving *d, po_value_id y, const char *detail) {
    po_derive_replace(d, d->from->nodes[d->place].out[0], y);
    return po_derive_end(d, detail);
}

/* Weights are inputs behind the activations; what reads nothing else is one as well. */
static bool *find_weights(po_arena *arena, const po_subprogram *sub) {
    const po_graph *g = sub->graph;
    bool *weight = PO_NEW_N(arena, bool, g->n_values);
    for (po_value_id v = 0; v < g->n_values; v++)
        weight[v] = g->values[v].constant != NULL;
    for (uint32_t i = sub->n_activations; i < g->n_inputs; i++)
        weight[g->inputs[i]] = true;
    uint32_t n;
    const po_node_id *order = po_graph_order(g, arena, &n);
    for (uint32_t k = 0; k < n; k++) {
        const po_node *node = &g->nodes[order[k]];
        bool all = true;
        for (uint32_t i = 0; i < node->n_in; i++)
            all = all && (node->in[i] == PO_NONE || weight[node->in[i]]);
        for (uint32_t i = 0; i < node->n_out; i++)
            if (node->out[i] != PO_NONE)
                weight[node->out[i]] = all;
    }
    return weight;
}

po_status po_derive(po_ctx *ctx, po_arena *arena, const po_subprogram *sub, po_mutants *mutants,
                    po_mutate_counts *counts) {
    const po_graph *g = sub->graph;
    if (po_model_opset(g->model, "") < OLDEST_OPSET)
        return PO_OK;
    po_deriving d = {.ctx = ctx,
                     .arena = arena,
                     .sub = sub,
                     .from = g,
                     .weight = find_weights(arena, sub),
                     .mutants = mutants,
                     .counts = counts};
    uint32_t n;
    const po_node_id *order = po_graph_order(g, arena, &n);
    for (uint32_t i = 0; i < sizeof derivations / sizeof *derivations; i++) {
        d.name = derivations[i].name;
        for (uint32_t k = 0; k < n; k++)
            PO_TRY(derivations[i].fn(&d, order[k]));
    }
    return PO_OK;
}
