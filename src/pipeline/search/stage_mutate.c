/* Mutants of every subprogram, each judged by the roofline. */
#include "pipeline/budget.h"
#include "pipeline/recall.h"
#include "pipeline/search/search.h"

/* Candidates that the enumeration judges, over all subprograms, and for one. */
enum { JUDGED = 1 << 19, LEAST_JUDGED = 1 << 14, MOST_JUDGED = 1 << 18 };

static po_mutate_options options_of(const po_run *run, const po_search *search) {
    if (run->options->level >= 3)
        return (po_mutate_options){.depth = 5, .rounds = 6, .keep = 128, .most = MOST_JUDGED};
    uint64_t most = JUDGED / search->n_sites;
    most = most < LEAST_JUDGED ? LEAST_JUDGED : most > MOST_JUDGED ? MOST_JUDGED : most;
    return (po_mutate_options){.depth = 4, .rounds = 4, .keep = 16, .most = most};
}

static po_status mutate_site(const po_run *run, po_search *search, po_site *site) {
    po_arena *arena = search->arena;
    po_ctx *ctx = run->ctx;
    po_mutate_options options = options_of(run, search);
    PO_TRY(po_program_of(ctx, arena, site->sub->graph, &site->program));
    site->known = po_agree_known_create(search->until_chosen);
    const unsigned helps = run->options->cuda ? PO_LAW_ANY : PO_LAW_CPU;
    po_mutants lists[2];
    for (int i = 0; i < 2; i++)
        po_mutants_init(&lists[i], arena);
    po_status status = PO_OK;
    if (!po_run_skips(run, "derived"))
        status = po_derive(ctx, arena, site->sub, helps, &lists[0], &site->counts);
    if (status == PO_OK && run->options->level >= 3 && !po_run_skips(run, "derived"))
        status = po_derive_further(ctx, arena, site->sub, &(po_derive_options){.helps = helps},
                                   &lists[0], &site->counts);
    if (!po_search_drops(ctx, status))
        PO_TRY(status);
    status = PO_OK;
    if (!po_run_skips(run, "blind"))
        status = po_enumerate(ctx, arena, site->sub, &options, &lists[1], &site->counts);
    if (!po_search_drops(ctx, status))
        PO_TRY(status);
    for (int i = 0; i < 2; i++)
        for (uint32_t k = 0; k < lists[i].n; k++)
            PO_TRY(po_search_add(run, search, site, &lists[i].mutants[k],
                                 (po_trial){.enumerated = i == 1, .parent = PO_NONE}));
    return PO_OK;
}

static po_status mutate_all(void *user) {
    const po_searching *s = user;
    const po_run *run = s->run;
    po_search *search = s->search;
    for (uint32_t i = 0; i < search->n_sites; i++) {
        po_step(run->ctx, (double)i / search->n_sites, "mutants of subprogram %u", i + 1);
        po_status status = mutate_site(run, search, &search->sites[i]);
        if (!po_search_drops(run->ctx, status))
            PO_TRY(status);
    }
    return PO_OK;
}

po_status po_stage_mutate(const po_run *run, const po_search *split, const po_recall *recall,
                          const po_search **out) {
    bool cut;
    *out = split;
    if (!split || recall)
        return PO_OK;
    po_searching s = {run, po_search_next(split)};
    *out = s.search;
    double start = po_now();
    PO_TRY(po_budget_call(run, PO_PART_JUDGE, "the enumeration of mutants was cut short",
                          mutate_all, &s, &cut));
    s.search->search_seconds += po_now() - start;
    return PO_OK;
}
