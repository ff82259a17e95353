/* Which mutant, if any, takes a subprogram's place: the fastest in context that agrees in every
 * element; and, as a guess of its own, the best of all places and seams together. */
#include "ops/op.h"
#include "pipeline/budget.h"
#include "pipeline/recall.h"
#include "pipeline/search/layout_choice.h"

/* Of the time of all subprograms, that joined seams must promise. */
static const double worth_joining = 0.002;

/* The fastest in context that agrees in every element; what was chosen before stays where none is
 * faster. */
static po_status choose(const po_run *run, po_search *search, po_site *site) {
    for (;;) {
        const uint32_t before = site->chosen;
        uint32_t best = before;
        for (uint32_t i = 0; i < site->n_trials; i++) {
            const po_trial *t = &site->trials[i];
            if ((t->fate == PO_TRIAL_EQUAL || t->fate == PO_TRIAL_INSIDE) &&
                po_search_promising(t) && (best == PO_NONE || t->ratio > site->trials[best].ratio))
                best = i;
        }
        if (best == before)
            return PO_OK;
        bool equal;
        PO_TRY(po_search_whole(run, search, site, &site->trials[best], &equal));
        site->trials[best].fate = equal ? PO_TRIAL_CHOSEN : PO_TRIAL_WHOLE;
        site->trials[best].whole = equal;
        if (!equal)
            continue;
        if (before != PO_NONE)
            site->trials[before].fate = PO_TRIAL_EQUAL;
        site->chosen = best;
        return PO_OK;
    }
}

/* What was not measured before, too. */
static po_status measure_and_choose(const po_run *run, po_search *search, po_site *site) {
    uint32_t n = 0, *open = PO_NEW_N(search->arena, uint32_t, site->n_trials);
    for (uint32_t i = 0; i < site->n_trials; i++)
        if (site->trials[i].fate == PO_TRIAL_EQUAL || site->trials[i].fate == PO_TRIAL_INSIDE ||
            site->trials[i].fate == PO_TRIAL_MADE)
            open[n++] = i;
    PO_TRY(po_search_measure(run, search, site, open, n));
    return choose(run, search, site);
}

/* What was measured and not chosen was not fast enough. */
static void settle(po_site *site) {
    for (uint32_t i = 0; i < site->n_trials; i++) {
        po_trial *t = &site->trials[i];
        bool open_still =
            t->fate == PO_TRIAL_EQUAL || t->fate == PO_TRIAL_INSIDE || t->fate == PO_TRIAL_PARTLY;
        if (open_still && t->measured)
            t->fate = PO_TRIAL_COST;
    }
}

/* Puts the chosen mutants of one site into each of its places. */
static po_status put_site(po_ctx *ctx, po_graph *graph, const po_site *site) {
    for (uint32_t k = 0; k < site->sub->n_at; k++) {
        PO_TRY(po_ctx_poll(ctx));
        PO_TRY(po_split_replace(ctx, graph, site->sub, &site->sub->at[k],
                                site->trials[site->chosen].graph));
    }
    return PO_OK;
}

static void note_placed(po_arena *arena, po_mutated *m, uint32_t site, uint32_t at,
                        const po_trial *t) {
    po_placed placed = {site, at, t->name, t->graph};
    PO_PUSH(arena, m->placed, m->n, m->cap, placed);
}

/* The folded graph with the chosen mutants in every place of theirs. One whose weights cannot be
 * computed is taken back, and the rest done again. */
static po_status put_in(const po_run *run, po_search *search, po_mutated *best) {
    po_graph *graph = NULL;
    for (uint32_t i = 0; i < search->n_sites; i++) {
        po_site *site = &search->sites[i];
        if (site->chosen == PO_NONE)
            continue;
        graph = graph ? graph : po_graph_clone(run->ctx, search->graph);
        po_status status = put_site(run->ctx, graph, site);
        if (!po_search_drops(run->ctx, status)) {
            PO_TRY(status);
            continue;
        }
        site->trials[site->chosen].fate = PO_TRIAL_MALFORMED;
        site->chosen = PO_NONE;
        po_graph_free(graph);
        return put_in(run, search, best);
    }
    if (!graph)
        return PO_OK;
    for (uint32_t i = 0; i < search->n_sites; i++) {
        const po_site *site = &search->sites[i];
        if (site->chosen == PO_NONE)
            continue;
        po_record_fired(run->record, site->trials[site->chosen].name, site->sub->n_at);
        for (uint32_t k = 0; k < site->sub->n_at; k++)
            note_placed(run->arena, best, i, k, &site->trials[site->chosen]);
    }
    po_graph_sweep(graph);
    PO_TRY(po_infer_graph(run->ctx, graph, true));
    po_run_hold(run, graph);
    best->graph = graph;
    return PO_OK;
}

/* --- seams --- */

static const po_layout_option *option_at(const po_layouts *seams, const uint32_t *choice,
                                         uint32_t p) {
    return &seams->options[seams->places[p].site][choice[p]];
}

/* Every mutant of the choice agrees in every element; one that does not is out of the running. */
static po_status joined_agree(const po_run *run, po_search *search, const po_layouts *seams,
                              const uint32_t *choice, bool *agree) {
    *agree = true;
    for (uint32_t p = 0; p < seams->problem.n && *agree; p++) {
        po_site *site = &search->sites[seams->places[p].site];
        const po_layout_option *option = option_at(seams, choice, p);
        po_trial *t = option->trial == PO_NONE ? NULL : &site->trials[option->trial];
        if (!t || t->whole)
            continue;
        PO_TRY(po_search_whole(run, search, site, t, agree));
        t->whole = *agree;
        if (!*agree)
            t->fate = PO_TRIAL_WHOLE;
    }
    return PO_OK;
}

/* The folded graph with the mutants of the choice. *graph is NULL where the weights of one cannot
 * be computed: that is out of the running. */
static po_status put_joined(const po_run *run, po_search *search, const po_layouts *seams,
                            const uint32_t *choice, po_graph **graph) {
    po_graph *g = po_graph_clone(run->ctx, search->graph);
    *graph = NULL;
    for (uint32_t p = 0; p < seams->problem.n; p++) {
        po_site *site = &search->sites[seams->places[p].site];
        uint32_t trial = option_at(seams, choice, p)->trial;
        PO_TRY(po_ctx_poll(run->ctx));
        if (trial == PO_NONE)
            continue;
        po_status status = po_split_replace(
            run->ctx, g, site->sub, &site->sub->at[seams->places[p].at], site->trials[trial].graph);
        if (po_search_drops(run->ctx, status)) {
            site->trials[trial].fate = PO_TRIAL_MALFORMED;
            po_graph_free(g);
            return PO_OK;
        }
        PO_TRY(status);
    }
    po_graph_sweep(g);
    PO_TRY(po_infer_graph(run->ctx, g, true));
    po_run_hold(run, g);
    *graph = g;
    return PO_OK;
}

/* The choice of the places each alone. */
static void choose_alone(const po_search *search, const po_layouts *seams, uint32_t *choice) {
    for (uint32_t p = 0; p < seams->problem.n; p++) {
        uint32_t site = seams->places[p].site;
        for (uint32_t k = 0; k < seams->n_options[site]; k++)
            if (seams->options[site][k].trial == search->sites[site].chosen)
                choice[p] = k;
    }
}

/* One solution: *again where it had to be given up, and one of its mutants is out. */
static po_status join_once(const po_run *run, po_search *search, po_arena *arena,
                           po_mutated *joined_seams, bool *again) {
    po_layouts seams;
    *again = false;
    PO_TRY(po_layouts_find(run->ctx, arena, search, run->ctx->threads, &seams));
    uint32_t *choice = PO_NEW_N(arena, uint32_t, seams.problem.n), changed = 0;
    double all = 0;
    choose_alone(search, &seams, choice);
    for (uint32_t p = 0; p < seams.problem.n; p++)
        all += seams.problem.seconds[p][0];
    double alone = po_layouts_cost(&seams.problem, choice);
    po_layouts_solve(arena, &seams.problem, choice);
    double joined = po_layouts_cost(&seams.problem, choice);
    if (!(alone - joined > worth_joining * all))
        return PO_OK;
    po_graph *graph = NULL;
    bool agree;
    PO_TRY(joined_agree(run, search, &seams, choice, &agree));
    if (agree)
        PO_TRY(put_joined(run, search, &seams, choice, &graph));
    *again = graph == NULL;
    if (*again)
        return PO_OK;
    for (uint32_t p = 0; p < seams.problem.n; p++) {
        po_site *site = &search->sites[seams.places[p].site];
        uint32_t trial = option_at(&seams, choice, p)->trial;
        changed += trial != site->chosen;
        if (trial != PO_NONE && site->trials[trial].fate != PO_TRIAL_CHOSEN)
            site->trials[trial].fate = PO_TRIAL_JOINED;
    }
    po_log(run->ctx, "seams joined: %u of %u places take another mutant, %.0f us for %.0f us",
           changed, seams.problem.n, 1e6 * joined, 1e6 * alone);
    joined_seams->graph = graph;
    for (uint32_t p = 0; p < seams.problem.n; p++) {
        uint32_t site = seams.places[p].site, trial = option_at(&seams, choice, p)->trial;
        if (trial != PO_NONE)
            note_placed(run->arena, joined_seams, site, seams.places[p].at,
                        &search->sites[site].trials[trial]);
    }
    return PO_OK;
}

/* What the stage works on. */
typedef struct choosing {
    const po_run *run;
    po_search *search;
    po_chosen *out;
} choosing;

static po_status join_seams(void *user) {
    const choosing *c = user;
    for (bool again = true; again;) { /* each time with one mutant less */
        po_arena *arena = po_arena_child(c->search->arena);
        po_status status =
            join_once(c->run, c->search, arena, &c->out->mutated[PO_MUTATED_JOINED], &again);
        po_arena_free(arena);
        if (po_search_drops(c->run->ctx, status))
            return PO_OK;
        PO_TRY(status);
    }
    return PO_OK;
}

/* Lines of -v. */
static void tell_site(po_ctx *ctx, const po_search *search, uint32_t i) {
    const po_site *site = &search->sites[i];
    const po_node *first = &search->graph->nodes[site->sub->at[0].nodes[0]];
    po_arena *scratch = po_arena_create(ctx);
    po_log(ctx, "subprogram %u (%s '%s', %u nodes, %u times): %s%.0f us estimated", i + 1,
           first->op_type, first->name, site->sub->at[0].n_nodes, site->sub->n_at,
           site->seconds > 0 ? po_arena_printf(scratch, "%.3f ms in context, ", 1e3 * site->seconds)
                             : "",
           1e6 * site->estimate.seconds);
    for (uint32_t k = 0; k < site->n_trials; k++) {
        const po_trial *t = &site->trials[k];
        po_log(ctx, "  %s: %s, %.0f us estimated%s%s%s%s", t->name, po_trial_fate_text(t->fate),
               1e6 * t->estimate.seconds,
               t->seconds > 0 ? po_arena_printf(scratch, ", %.3f ms measured", 1e3 * t->seconds)
                              : "",
               t->ratio > 0 ? po_arena_printf(scratch, ", %.3fx", t->ratio) : "",
               t->why ? "; " : "", t->why ? t->why : "");
    }
    po_arena_free(scratch);
}

/* First among what was measured, so that no gain that was read is lost where the time ends; then
 * what was not. What takes most of the model's time comes first. */
static po_status choose_all(void *user) {
    const choosing *c = user;
    po_search *search = c->search;
    const uint32_t *order = po_search_heaviest(search);
    for (int measures = 0; measures < 2; measures++)
        for (uint32_t i = 0; i < search->n_sites; i++) {
            po_site *site = &search->sites[order[i]];
            po_step(c->run->ctx, (measures + (double)i / search->n_sites) / 2,
                    "choosing for subprogram %u", order[i] + 1);
            po_status status =
                measures ? measure_and_choose(c->run, search, site) : choose(c->run, search, site);
            if (!po_search_drops(c->run->ctx, status))
                PO_TRY(status);
        }
    return PO_OK;
}

po_status po_stage_choose(const po_run *run, const po_search *before, const po_recall *recall,
                          po_chosen *out) {
    bool cut;
    *out = (po_chosen){.search = before, .recall = recall};
    if (!before)
        return PO_OK;
    if (recall)
        return po_recall_place(run, before, recall, out);
    po_search *search = po_search_next(before);
    choosing c = {run, search, out};
    out->search = search;
    PO_TRY(po_budget_call(run, PO_PART_CHOOSE, "the choice of mutants was cut short", choose_all,
                          &c, &cut));
    po_status status = put_in(run, search, &out->mutated[PO_MUTATED_BEST]);
    if (status == PO_OK && !cut && !po_run_skips(run, "seams"))
        status = po_budget_call(run, PO_PART_CHOOSE, "joining seams was cut short", join_seams, &c,
                                &cut);
    for (uint32_t i = 0; i < search->n_sites; i++) {
        settle(&search->sites[i]);
        tell_site(run->ctx, search, i);
    }
    po_search_explain(run->record, search);
    for (uint32_t i = 0; i < search->n_sites; i++)
        search->sites[i].known = NULL;
    po_arena_free(search->until_chosen);
    po_search_free_losers(search, true);
    return status;
}
