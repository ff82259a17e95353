/* Mutants of every subprogram, each judged by the roofline. */
#include "pipeline/budget.h"
#include "pipeline/search/search.h"

/* Candidates that the enumeration judges, over all subprograms, and for one. */
enum { JUDGED = 1 << 19, LEAST_JUDGED = 1 << 14, MOST_JUDGED = 1 << 18 };

static po_mutate_options options_of(const po_run_state *state) {
    if (state->run.options->level >= 3)
        return (po_mutate_options){.depth = 5, .rounds = 6, .keep = 128, .most = MOST_JUDGED};
    uint64_t most = JUDGED / state->search->n_sites;
    most = most < LEAST_JUDGED ? LEAST_JUDGED : most > MOST_JUDGED ? MOST_JUDGED : most;
    return (po_mutate_options){.depth = 4, .rounds = 4, .keep = 16, .most = most};
}

static po_status mutate_site(po_run_state *state, po_site *site) {
    po_arena *arena = state->search->arena;
    po_ctx *ctx = state->run.ctx;
    po_mutate_options options = options_of(state);
    PO_TRY(po_program_of(ctx, arena, site->sub->graph, &site->program));
    site->known = po_agree_known_create(state->search->until_chosen);
    po_mutants lists[2];
    for (int i = 0; i < 2; i++)
        po_mutants_init(&lists[i], arena);
    po_status status = PO_OK;
    if (!po_run_skips(&state->run, "derived"))
        status = po_derive(ctx, arena, site->sub, &lists[0], &site->counts);
    if (status == PO_OK && state->run.options->level >= 3 && !po_run_skips(&state->run, "derived"))
        status = po_derive_further(ctx, arena, site->sub, &(po_derive_options){0}, &lists[0],
                                   &site->counts);
    if (!po_search_drops(ctx, status))
        PO_TRY(status);
    status = PO_OK;
    if (!po_run_skips(&state->run, "blind"))
        status = po_enumerate(ctx, arena, site->sub, &options, &lists[1], &site->counts);
    if (!po_search_drops(ctx, status))
        PO_TRY(status);
    for (int i = 0; i < 2; i++)
        for (uint32_t k = 0; k < lists[i].n; k++)
            PO_TRY(po_search_add(state, site, &lists[i].mutants[k],
                                 (po_trial){.enumerated = i == 1, .parent = PO_NONE}));
    return PO_OK;
}

static po_status mutate_all(void *user) {
    po_run_state *state = user;
    po_search *search = state->search;
    for (uint32_t i = 0; i < search->n_sites; i++) {
        po_step(state->run.ctx, (double)i / search->n_sites, "mutants of subprogram %u", i + 1);
        po_status status = mutate_site(state, &search->sites[i]);
        if (!po_search_drops(state->run.ctx, status))
            PO_TRY(status);
    }
    return PO_OK;
}

po_status po_stage_mutate(po_run_state *state) {
    bool cut;
    if (!state->search || state->recall)
        return PO_OK;
    double start = po_now();
    PO_TRY(po_budget_call(&state->run, PO_PART_JUDGE, "the enumeration of mutants was cut short",
                          mutate_all, state, &cut));
    state->search->search_seconds += po_now() - start;
    return PO_OK;
}
