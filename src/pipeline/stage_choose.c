/* Which mutant, if any, takes a subprogram's place: the fastest in context that agrees in every
 * element. */
#include "ops/op.h"
#include "pipeline/search.h"

/* The fastest in context that agrees in every element. */
static po_status choose(po_run_state *state, po_site *site) {
    for (;;) {
        uint32_t best = PO_NONE;
        for (uint32_t i = 0; i < site->n_trials; i++) {
            const po_trial *t = &site->trials[i];
            if ((t->fate == PO_TRIAL_EQUAL || t->fate == PO_TRIAL_INSIDE) &&
                po_search_promising(t) && (best == PO_NONE || t->ratio > site->trials[best].ratio))
                best = i;
        }
        if (best == PO_NONE)
            return PO_OK;
        bool equal;
        PO_TRY(po_search_whole(state, site, &site->trials[best], &equal));
        site->trials[best].fate = equal ? PO_TRIAL_CHOSEN : PO_TRIAL_WHOLE;
        if (equal) {
            site->chosen = best;
            return PO_OK;
        }
    }
}

static po_status choose_for_site(po_run_state *state, po_site *site) {
    uint32_t n = 0, *open = PO_NEW_N(state->search->arena, uint32_t, site->n_trials);
    for (uint32_t i = 0; i < site->n_trials; i++)
        if (site->trials[i].fate == PO_TRIAL_EQUAL || site->trials[i].fate == PO_TRIAL_INSIDE ||
            site->trials[i].fate == PO_TRIAL_MADE)
            open[n++] = i;
    PO_TRY(po_search_measure(state, site, open, n));
    PO_TRY(choose(state, site));
    for (uint32_t i = 0; i < site->n_trials; i++) {
        po_trial *t = &site->trials[i];
        bool open_still =
            t->fate == PO_TRIAL_EQUAL || t->fate == PO_TRIAL_INSIDE || t->fate == PO_TRIAL_PARTLY;
        if (open_still && t->measured)
            t->fate = PO_TRIAL_COST;
    }
    return PO_OK;
}

/* Puts the chosen mutants of one site into each of its places. */
static po_status put_site(po_run_state *state, po_graph *graph, const po_site *site) {
    for (uint32_t k = 0; k < site->sub->n_at; k++) {
        PO_TRY(po_ctx_poll(state->ctx));
        PO_TRY(po_split_replace(state->ctx, graph, site->sub, &site->sub->at[k],
                                site->trials[site->chosen].graph));
    }
    return PO_OK;
}

/* The folded graph with the chosen mutants in every place of theirs. One whose weights cannot be
 * computed is taken back, and the rest done again. */
static po_status put_in(po_run_state *state) {
    po_search *search = state->search;
    po_graph *graph = NULL;
    for (uint32_t i = 0; i < search->n_sites; i++) {
        po_site *site = &search->sites[i];
        if (site->chosen == PO_NONE)
            continue;
        graph = graph ? graph : po_graph_clone(state->ctx, search->graph);
        po_status status = put_site(state, graph, site);
        if (!po_search_drops(state->ctx, status)) {
            PO_TRY(status);
            continue;
        }
        site->trials[site->chosen].fate = PO_TRIAL_MALFORMED;
        site->chosen = PO_NONE;
        po_graph_free(graph);
        return put_in(state);
    }
    if (!graph)
        return PO_OK;
    for (uint32_t i = 0; i < search->n_sites; i++) {
        const po_site *site = &search->sites[i];
        if (site->chosen != PO_NONE)
            po_record_fired(state->record, site->trials[site->chosen].name, site->sub->n_at);
    }
    po_graph_sweep(graph);
    PO_TRY(po_infer_graph(state->ctx, graph, true));
    po_pipeline_hold(state, graph);
    state->mutated = graph;
    return PO_OK;
}

/* Lines of -v. */
static void tell_site(po_run_state *state, uint32_t i) {
    const po_site *site = &state->search->sites[i];
    const po_node *first = &state->search->graph->nodes[site->sub->at[0].nodes[0]];
    po_log(state->ctx,
           "subprogram %u (%s '%s', %u nodes, %u times): %.3f ms in context, %.0f us estimated",
           i + 1, first->op_type, first->name, site->sub->at[0].n_nodes, site->sub->n_at,
           1e3 * site->seconds, 1e6 * site->estimate.seconds);
    for (uint32_t k = 0; k < site->n_trials; k++) {
        const po_trial *t = &site->trials[k];
        po_log(state->ctx, "  %s: %s, %.0f us estimated, %.3f ms measured, %.3fx%s%s", t->name,
               po_trial_fate_text(t->fate), 1e6 * t->estimate.seconds, 1e3 * t->seconds, t->ratio,
               t->why ? "; " : "", t->why ? t->why : "");
    }
}

po_status po_stage_choose(po_run_state *state) {
    po_search *search = state->search;
    if (!search)
        return PO_OK;
    for (uint32_t i = 0; i < search->n_sites; i++) {
        po_step(state->ctx, (double)i / search->n_sites, "choosing for subprogram %u", i + 1);
        po_status status = choose_for_site(state, &search->sites[i]);
        if (!po_search_drops(state->ctx, status))
            PO_TRY(status);
        tell_site(state, i);
    }
    po_status status = put_in(state);
    po_search_explain(state);
    return status;
}
