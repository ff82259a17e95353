/* Mutants that would pay are judged by boxes; those that agree in part are corrected. What they
 * cost is known before that: a correction only adds to it. */
#include "correct/correct.h"
#include "pipeline/budget.h"
#include "pipeline/recall.h"
#include "pipeline/search/search.h"

#include <math.h>

enum { MOST_JUDGED = 4 }; /* of one subprogram */

static po_status correct_trial(const po_run *run, po_search *search, po_site *site, uint32_t i) {
    po_mutants corrected;
    po_mutants_init(&corrected, search->arena);
    const po_trial *trial = &site->trials[i];
    po_mutant mutant = {trial->name, (po_graph *)(uintptr_t)trial->graph};
    po_status status =
        po_correct(run->ctx, search->arena, site->sub, &mutant, trial->agreement, &corrected);
    if (po_search_drops(run->ctx, status))
        return PO_OK;
    PO_TRY(status);
    for (uint32_t k = 0; k < corrected.n; k++)
        PO_TRY(po_search_add(
            run, search, site, &corrected.mutants[k],
            (po_trial){.enumerated = site->trials[i].enumerated, .corrected = true, .parent = i}));
    return PO_OK;
}

static bool open_question(const po_trial *t) {
    return t->fate == PO_TRIAL_MADE || t->fate == PO_TRIAL_INSIDE || t->fate == PO_TRIAL_PARTLY;
}

/* The fastest of those that are not judged yet; PO_NONE where none would pay. */
static uint32_t next_trial(const po_site *site) {
    uint32_t best = PO_NONE;
    for (uint32_t i = 0; i < site->n_trials; i++) {
        const po_trial *t = &site->trials[i];
        if (open_question(t) && t->fate != PO_TRIAL_MADE && po_search_promising(t) &&
            (best == PO_NONE || t->ratio > site->trials[best].ratio))
            best = i;
    }
    return best;
}

static po_status correct_site(const po_run *run, po_search *search, po_site *site) {
    uint32_t n = 0, *open = PO_NEW_N(search->arena, uint32_t, site->n_trials);
    bool deep = po_search_deep(run, search);
    for (uint32_t i = 0; i < site->n_trials; i++)
        if (open_question(&site->trials[i]))
            open[n++] = i;
    PO_TRY(po_search_measure(run, search, site, open, n));
    uint32_t most = deep ? UINT32_MAX : MOST_JUDGED;
    for (uint32_t k = 0; k < most; k++) {
        uint32_t i = next_trial(site);
        if (i == PO_NONE)
            break;
        PO_TRY(po_search_boxes(run, search, site, &site->trials[i]));
        if (site->trials[i].fate == PO_TRIAL_BOXES && !po_run_skips(run, "corrected") &&
            !po_run_skips(run, "partly"))
            PO_TRY(correct_trial(run, search, site, i));
        else if (site->trials[i].fate == PO_TRIAL_EQUAL && !deep)
            break; /* what is slower than this one cannot win */
    }
    return PO_OK;
}

/* What takes most of the model's time comes first: the time is limited. */
static po_status correct_all(void *user) {
    const po_searching *s = user;
    const po_run *run = s->run;
    po_search *search = s->search;
    const uint32_t *order = po_search_heaviest(search);
    bool deep = run->options->level >= 3;
    double end = po_budget_end(run, PO_PART_JUDGE);
    for (uint32_t pass = 0; pass < 1 + (uint32_t)deep; pass++) {
        search->hopeful_first = deep && pass == 0;
        for (uint32_t i = 0; i < search->n_sites; i++) {
            double part = (pass + (double)i / search->n_sites) / (1 + deep);
            if (pass == 0)
                po_step(run->ctx, part, "judging mutants of subprogram %u", order[i] + 1);
            else if (end > 0)
                po_step(run->ctx, part, "measuring all mutants of subprogram %u (up to %.0f s)",
                        order[i] + 1, fmax(end - run->budget->started, 0));
            else
                po_step(run->ctx, part, "measuring all mutants of subprogram %u", order[i] + 1);
            po_status status = correct_site(run, search, &search->sites[order[i]]);
            if (!po_search_drops(run->ctx, status))
                PO_TRY(status);
        }
    }
    return PO_OK;
}

po_status po_stage_correct(const po_run *run, const po_search *mutated, const po_recall *recall,
                           const po_search **out) {
    bool cut;
    *out = mutated;
    if (!mutated || recall)
        return PO_OK;
    po_searching s = {run, po_search_next(mutated)};
    *out = s.search;
    PO_TRY(po_budget_call(run, PO_PART_JUDGE, "the judging of mutants was cut short", correct_all,
                          &s, &cut));
    po_search_free_losers(s.search, false);
    return PO_OK;
}
