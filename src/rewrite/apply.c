/* The adapters between the two ways in which laws are written. */
#include "rewrite/apply.h"

/* --- derivations in place --- */

/* Tries the law at nodes that the graph has now, from the given place in the order on, until it
 * fires once: what it read is out of date then. *next is where to go on, n at the end. */
static po_status derive_once(po_ctx *ctx, po_graph *graph, po_law_id law, po_rewriting *state,
                             const po_node_id *order, uint32_t n, uint32_t *next) {
    po_graph *before = po_graph_clone(ctx, graph);
    po_deriving d = {.ctx = ctx,
                     .arena = po_arena_child(state->scratch),
                     .from = before,
                     .in_place = graph,
                     .name = po_laws[law].name};
    po_status status = PO_OK;
    const po_node_id first = graph->n_nodes;
    d.weight = po_weights_of(before, d.arena, before->n_inputs);
    while (status == PO_OK && *next < n && !d.done) {
        po_node_id id = order[(*next)++];
        if (!before->nodes[id].removed)
            status = po_laws[law].derive(&d, id);
    }
    if (status == PO_OK && po_law_fired(state, law, d.done))
        status = po_state_weights(ctx, d.arena, graph, first);
    po_arena_free(d.arena);
    po_graph_free(before);
    return status;
}

bool po_law_derive_at(po_rewriting *state, po_graph *graph, po_law_id law, po_node_id node) {
    if (po_model_opset(graph->model, "") < PO_DERIVED_SINCE)
        return false;
    po_deriving d = {.ctx = state->ctx,
                     .arena = state->scratch,
                     .from = graph,
                     .in_place = graph,
                     .name = po_laws[law].name};
    const po_node_id first = graph->n_nodes;
    return po_laws[law].derive(&d, node) == PO_OK && d.done &&
           po_state_weights(state->ctx, d.arena, graph, first) == PO_OK;
}

static po_status derive_in_place(po_ctx *ctx, po_graph *graph, po_law_id law, po_rewriting *state) {
    uint32_t n, next = 0;
    const po_node_id *order = po_graph_order(graph, state->scratch, &n);
    while (next < n)
        PO_TRY(derive_once(ctx, graph, law, state, order, n, &next));
    po_graph_sweep(graph);
    return PO_OK;
}

po_status po_law_in_place(po_ctx *ctx, po_graph *graph, po_law_id law, po_rewriting *state) {
    if (po_laws[law].stage == PO_LAW_OF_MUTATE && po_laws[law].derive)
        return po_model_opset(graph->model, "") < PO_DERIVED_SINCE
                   ? PO_OK
                   : derive_in_place(ctx, graph, law, state);
    if (po_laws[law].pass)
        return po_laws[law].pass(ctx, graph, state);
    if (po_laws[law].at || po_laws[law].derive)
        po_laws_at_nodes(graph, &(po_law_group){law, law, 0, 0}, state);
    return PO_OK;
}

/* --- laws in place as mutants --- */

/* Takes the rewritten clone over. */
static po_status add_lowered(po_deriving *d, const po_lifted *lifted, po_graph *g) {
    d->g = g;
    d->dropped = !po_lower(d->arena, lifted, g);
    return po_derive_end(d, NULL);
}

static po_status at_each_node(po_deriving *d, po_law_id law, const po_lifted *lifted,
                              po_rewriting *state) {
    uint32_t n;
    const po_node_id *order = po_graph_order(lifted->graph, state->scratch, &n);
    po_graph *g = po_graph_clone(d->ctx, lifted->graph);
    for (uint32_t k = 0; k < n; k++) {
        if (g->nodes[order[k]].n_out == 0 || !po_laws[law].at(state, g, order[k]))
            continue;
        PO_TRY(add_lowered(d, lifted, g));
        g = po_graph_clone(d->ctx, lifted->graph);
    }
    po_graph_free(g);
    return PO_OK;
}

/* The pass is tried once for all laws that share it. */
static po_status whole_pass(po_deriving *d, po_law_id law, const po_lifted *lifted,
                            po_rewriting *state) {
    if (law > 0 && po_laws[law - 1].pass == po_laws[law].pass)
        return PO_OK;
    po_graph *g = po_graph_clone(d->ctx, lifted->graph);
    po_status status = po_laws[law].pass(d->ctx, g, state);
    if (status == PO_OK && po_law_total(state->counts) > 0) {
        for (uint32_t i = PO_LAWS; i-- > 0;)
            d->name = state->counts->fired[i] ? po_laws[i].name : d->name;
        return add_lowered(d, lifted, g);
    }
    po_graph_free(g);
    return status;
}

po_status po_law_mutants(po_deriving *d, po_law_id law, const po_lifted *lifted) {
    if (po_laws[law].derive) {
        uint32_t n;
        const po_node_id *order = po_graph_order(d->from, d->arena, &n);
        for (uint32_t k = 0; k < n; k++)
            PO_TRY(po_laws[law].derive(d, order[k]));
        return PO_OK;
    }
    if (!lifted || (!po_laws[law].at && !po_laws[law].pass))
        return PO_OK;
    const po_postopt_options options = po_postopt_plain(PO_ALGEBRA_ALL);
    po_law_counts counts = {0};
    po_rewriting state = {
        .ctx = d->ctx, .options = &options, .counts = &counts, .scratch = po_arena_create(d->ctx)};
    po_status status =
        po_laws[law].at ? at_each_node(d, law, lifted, &state) : whole_pass(d, law, lifted, &state);
    po_arena_free(state.scratch);
    return status;
}
