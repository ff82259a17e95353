/* Mutants (PET's candidates) for kernels: what a mutant costs as kernels is another matter than
 * what it costs the runtime, so that those which the runtime runs no faster are looked at again. */
#include "pipeline/kernels/variants.h"
#include "pipeline/search/context.h"
#include "pipeline/search/search.h"

/* A mutant must promise so much, in its context, and its places of the whole model. */
static const double worth_placing = 0.97, of_the_whole = 0.002;

enum { MOST_LOOKED_AT = 24 }; /* of one subprogram, by their roofline */

typedef struct looking {
    const po_run *run;
    po_ctx *ctx;
    po_search *search;
    const po_plan_options *options;
    po_site *site;
    po_context context;
    double original; /* seconds of the context, estimated */
    double whole;    /* of the model */
} looking;

/* Seconds of a graph as kernels; 0 where a part of it has none. */
static po_status seconds_of(const looking *l, const po_graph *graph, double *seconds) {
    po_regions regions;
    po_plan_guess guess;
    po_arena *scratch = po_arena_create(l->ctx);
    *seconds = 0;
    PO_TRY(po_regions_find(l->ctx, scratch, graph, po_lower_part, l->ctx, &regions));
    if (regions.n_nodes == graph->n_live) {
        PO_TRY(po_plan_estimate(l->ctx, scratch, graph, &regions, l->options, &guess));
        *seconds = guess.n_nodes ? 0 : guess.seconds;
    }
    po_arena_free(scratch);
    return PO_OK;
}

/* The context with the mutant in it. */
static po_status try_trial(const looking *l, const po_trial *trial, double *seconds) {
    po_graph *with = po_graph_clone(l->ctx, l->context.graph);
    *seconds = 0;
    po_status status = po_split_pretend(l->ctx, with, l->site->sub, &l->context.at, trial->graph);
    if (status == PO_OK) {
        po_graph_sweep(with);
        status = po_infer_graph(l->ctx, with, false);
    }
    if (status == PO_OK)
        status = seconds_of(l, with, seconds);
    po_graph_free(with);
    return po_search_drops(l->ctx, status) ? PO_OK : status;
}

static bool may_agree(const po_trial *t) {
    bool unknown = t->fate == PO_TRIAL_MADE || t->fate == PO_TRIAL_UNMEASURED;
    return t->graph && (unknown || t->fate == PO_TRIAL_INSIDE || t->fate == PO_TRIAL_EQUAL);
}

/* The trials with the least estimates of the roofline first. */
static uint32_t sort_trials(const po_site *site, uint32_t *order) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < site->n_trials; i++) {
        if (!may_agree(&site->trials[i]))
            continue;
        uint32_t k = n++;
        for (; k > 0 &&
               site->trials[order[k - 1]].estimate.seconds > site->trials[i].estimate.seconds;
             k--)
            order[k] = order[k - 1];
        order[k] = i;
    }
    return n < MOST_LOOKED_AT ? n : MOST_LOOKED_AT;
}

/* Agreement at some positions, then in every element. */
static po_status agrees(const looking *l, po_trial *t, bool *equal) {
    *equal = t->whole;
    if (t->whole)
        return PO_OK;
    if (t->fate == PO_TRIAL_UNMEASURED) /* nor looked at, perhaps */
        t->fate = PO_TRIAL_MADE;
    PO_TRY(po_search_positions(l->run, l->search, l->site, t));
    if (t->fate == PO_TRIAL_INSIDE || t->fate == PO_TRIAL_EQUAL)
        PO_TRY(po_search_whole(l->run, l->search, l->site, t, equal));
    return PO_OK;
}

/* The mutant of one subprogram that is the fastest as kernels; PO_NONE: the original. */
static po_status best_of_site(looking *l, uint32_t *best) {
    po_site *site = l->site;
    uint32_t *order = PO_NEW_N(l->search->arena, uint32_t, site->n_trials + 1);
    uint32_t n = sort_trials(site, order);
    double *seconds = PO_NEW_N(l->search->arena, double, site->n_trials + 1);
    *best = PO_NONE;
    if (n == 0)
        return PO_OK;
    PO_TRY(po_context_of(l->ctx, l->search->arena, l->search->graph, site->sub, &site->sub->at[0],
                         &l->context));
    PO_TRY(seconds_of(l, l->context.graph, &l->original));
    for (uint32_t k = 0; k < n && l->original > 0; k++) {
        PO_TRY(po_ctx_poll(l->ctx));
        PO_TRY(try_trial(l, &site->trials[order[k]], &seconds[order[k]]));
    }
    double least = of_the_whole * l->whole / site->sub->n_at;
    for (;;) {
        uint32_t i = PO_NONE;
        for (uint32_t k = 0; k < n; k++)
            if (seconds[order[k]] > 0 && seconds[order[k]] < worth_placing * l->original &&
                l->original - seconds[order[k]] > least &&
                (i == PO_NONE || seconds[order[k]] < seconds[i]))
                i = order[k];
        if (i == PO_NONE)
            return PO_OK;
        bool equal;
        PO_TRY(agrees(l, &site->trials[i], &equal));
        if (equal) {
            po_log(l->ctx, "as kernels: %s, %.0f us for %.0f us estimated, %u times",
                   site->trials[i].name, 1e6 * seconds[i], 1e6 * l->original, site->sub->n_at);
            *best = i;
            return PO_OK;
        }
        seconds[i] = 0;
    }
}

static po_status put_in(po_ctx *ctx, po_graph *graph, const po_site *site, const po_trial *trial) {
    for (uint32_t k = 0; k < site->sub->n_at; k++)
        PO_TRY(po_split_replace(ctx, graph, site->sub, &site->sub->at[k], trial->graph));
    return PO_OK;
}

/* A graph that failed half way is of no further use: without its mutant once more. */
static po_status put_all(po_ctx *ctx, const po_search *search, uint32_t *best, po_graph **out) {
    for (;;) {
        po_graph *graph = NULL;
        bool again = false;
        for (uint32_t i = 0; i < search->n_sites && !again; i++) {
            if (best[i] == PO_NONE)
                continue;
            graph = graph ? graph : po_graph_clone(ctx, search->graph);
            po_status status =
                put_in(ctx, graph, &search->sites[i], &search->sites[i].trials[best[i]]);
            again = po_search_drops(ctx, status);
            if (again)
                best[i] = PO_NONE;
            else
                PO_TRY(status);
        }
        *out = graph;
        if (!again)
            return PO_OK;
        po_graph_free(graph);
    }
}

po_status po_kernel_mutants(const po_run *run, po_search *search, const po_plan_options *options,
                            double whole, const po_graph **mutated) {
    *mutated = NULL;
    if (!search || options->exact)
        return PO_OK;
    uint32_t *best = PO_NEW_N(search->arena, uint32_t, search->n_sites + 1);
    for (uint32_t i = 0; i < search->n_sites; i++) {
        looking l = {.run = run,
                     .ctx = run->ctx,
                     .search = search,
                     .options = options,
                     .site = &search->sites[i],
                     .whole = whole};
        best[i] = PO_NONE;
        po_status status = best_of_site(&l, &best[i]);
        po_graph_free(l.context.graph);
        if (!po_search_drops(run->ctx, status))
            PO_TRY(status);
    }
    po_graph *graph;
    PO_TRY(put_all(run->ctx, search, best, &graph));
    if (!graph)
        return PO_OK;
    po_graph_sweep(graph);
    PO_TRY(po_infer_graph(run->ctx, graph, true));
    po_run_hold(run, graph);
    *mutated = graph;
    return PO_OK;
}
