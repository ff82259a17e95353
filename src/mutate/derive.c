/* The laws that make mutants, each tried at every node of a subprogram. */
#include "mutate/mutate.h"
#include "rewrite/deriving.h"

enum { OLDEST_OPSET = 7 }; /* before it, shapes were broadcast by attributes */

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
                     .derived = &counts->derived};
    uint32_t n;
    const po_node_id *order = po_graph_order(g, arena, &n);
    for (uint32_t i = 0; i < PO_LAWS; i++) {
        d.name = po_laws[i].name;
        for (uint32_t k = 0; k < n && po_laws[i].derive; k++)
            PO_TRY(po_laws[i].derive(&d, order[k]));
    }
    return PO_OK;
}
