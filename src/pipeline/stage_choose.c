/* Which mutant, if any, takes a subprogram's place: by the roofline first, then measured in the
 * runtime with what stands around it in the model, then compared in every element. */
#include "ops/op.h"
#include "pipeline/candidates.h"
#include "pipeline/context.h"
#include "pipeline/search.h"
#include "verify/inputs.h"

#include <stdlib.h>

enum { READING_LAYOUT = 1, BATCH = PO_TIMING_MAX - 1, MOST_MEASURED = 2 * BATCH };
static const double hopeless = 1.5;      /* times the original's estimate */
static const double worth_taking = 1.02; /* in context; the whole model decides later */
static const double seconds_each = 0.15; /* of a reading */

typedef struct choosing {
    po_run_state *state;
    po_ctx *ctx;
    po_search *search;
    po_cost *cost;
    po_site *site;
    po_arena *arena; /* for one site */
    po_context context;
    po_candidate_store store;
    po_graph *original; /* its form in context */
    po_candidate original_file;
    uint32_t *order; /* trials to be measured, best estimate first */
    uint32_t n_order, cap_order;
    const po_graph **form; /* by trial */
    po_candidate *file;    /* by trial */
} choosing;

typedef struct reading {
    double original, seconds, gain, low, high;
} reading;

/* --- what is to be measured --- */

static void free_graph(void *user) {
    po_graph_free(user);
}

static po_status make_form(choosing *c, const po_graph *mutant, po_graph **form) {
    po_graph *with;
    PO_TRY(po_context_form(c->ctx, &c->context, c->site->sub, mutant, &with, form));
    po_graph *made[2] = {with, *form};
    for (int i = 0; i < 2; i++)
        if (made[i]) {
            po_arena_keep(made[i]->arena);
            po_arena_defer(c->arena, free_graph, made[i]);
        }
    return PO_OK;
}

static void sort_by_estimate(choosing *c) {
    for (uint32_t i = 1; i < c->n_order; i++)
        for (uint32_t k = i; k > 0; k--) {
            uint32_t *a = &c->order[k - 1], *b = &c->order[k];
            if (c->site->trials[*a].estimate.seconds <= c->site->trials[*b].estimate.seconds)
                break;
            uint32_t swap = *a;
            *a = *b;
            *b = swap;
        }
}

static void find_hopeful(choosing *c) {
    po_site *site = c->site;
    bool deep = c->state->options->level >= 3;
    po_search_estimate(c->state, site->sub, site->sub->graph, &site->estimate);
    for (uint32_t i = 0; i < site->n_trials; i++) {
        po_trial *t = &site->trials[i];
        if (t->fate != PO_TRIAL_EQUAL)
            continue;
        po_search_estimate(c->state, site->sub, t->graph, &t->estimate);
        if (!deep && t->estimate.seconds > hopeless * site->estimate.seconds)
            t->fate = PO_TRIAL_HOPELESS;
        else
            PO_PUSH(c->arena, c->order, c->n_order, c->cap_order, i);
    }
    sort_by_estimate(c);
    for (uint32_t i = MOST_MEASURED; !deep && i < c->n_order; i++)
        site->trials[c->order[i]].fate = PO_TRIAL_HOPELESS;
    if (!deep && c->n_order > MOST_MEASURED)
        c->n_order = MOST_MEASURED;
}

/* Writes the forms. One that is the original's, or another's, is not measured. */
static po_status write_forms(choosing *c) {
    po_site *site = c->site;
    uint32_t kept = 0;
    c->form = PO_NEW_N(c->arena, const po_graph *, site->n_trials);
    c->file = PO_NEW_N(c->arena, po_candidate, site->n_trials);
    PO_TRY(make_form(c, NULL, &c->original));
    PO_TRY(po_candidate_write(c->ctx, &c->store, c->original, &c->original_file));
    for (uint32_t i = 0; i < c->n_order; i++) {
        uint32_t t = c->order[i];
        po_graph *form;
        po_status status = make_form(c, site->trials[t].graph, &form);
        bool same = status == PO_OK && po_graph_equal(form, c->original);
        for (uint32_t k = 0; status == PO_OK && k < kept && !same; k++)
            same = po_graph_equal(form, c->form[c->order[k]]);
        if (status == PO_OK && !same)
            status = po_candidate_write(c->ctx, &c->store, form, &c->file[t]);
        if (status == PO_UNSUPPORTED || status == PO_INTERNAL || status == PO_BAD_INPUT) {
            site->trials[t].why = po_arena_strdup(c->state->arena, c->ctx->error.message);
            po_ctx_clear(c->ctx);
        } else {
            PO_TRY(status);
        }
        if (status != PO_OK || same) {
            site->trials[t].fate = PO_TRIAL_COST;
            if (same)
                site->trials[t].why = "the same as another once postopt has seen it";
            continue;
        }
        c->form[t] = form;
        c->order[kept++] = t;
    }
    c->n_order = kept;
    return PO_OK;
}

/* --- measuring --- */

static po_hash reading_key(const choosing *c, uint32_t trial) {
    po_hash key = po_hash_u64(po_cost_key(c->cost), READING_LAYOUT), a = c->original_file.hash,
            b = c->file[trial].hash;
    key = po_hash_u64(po_hash_u64(key, a.lo), a.hi);
    key = po_hash_u64(po_hash_u64(key, b.lo), b.hi);
    return po_hash_u64(key, c->ctx->threads);
}

static void set_reading(choosing *c, uint32_t trial, const reading *r) {
    po_trial *t = &c->site->trials[trial];
    t->seconds = r->seconds;
    t->ratio = r->gain;
    t->fate = PO_TRIAL_COST;
    c->site->seconds = r->original;
}

static po_status time_batch(choosing *c, const uint32_t *which, uint32_t n) {
    const char *models[PO_TIMING_MAX] = {c->original_file.path};
    po_timing timing[PO_TIMING_MAX];
    po_inputs *plan;
    po_feed feed;
    for (uint32_t i = 0; i < n; i++)
        models[i + 1] = c->file[which[i]].path;
    PO_TRY(po_inputs_plan(c->ctx, c->arena, c->original, c->original, &plan));
    PO_TRY(po_inputs_make(c->ctx, c->arena, plan, 0, PO_INPUTS_NORMAL, 1, &feed));
    po_side_files files = po_candidate_files(&c->store);
    po_timing_spec spec = {.files = &files,
                           .library = c->cost->library,
                           .threads = c->ctx->threads,
                           .n = n + 1,
                           .models = models,
                           .feed = &feed,
                           .seconds = seconds_each * (n + 1),
                           .seed = 3};
    PO_TRY(po_time_models(c->ctx, &spec, timing, NULL));
    for (uint32_t i = 0; i < n; i++) {
        const po_timing *t = &timing[i + 1];
        reading r = {timing[0].seconds, t->seconds, t->gain, t->low, t->high};
        set_reading(c, which[i], &r);
        po_cache_put(c->cost->cache, "mutant", reading_key(c, which[i]), &r, sizeof r);
    }
    return PO_OK;
}

static po_status measure(choosing *c) {
    uint32_t which[BATCH], n = 0;
    for (uint32_t i = 0; i < c->n_order; i++) {
        reading r;
        uint32_t t = c->order[i];
        if (po_cache_get_fixed(c->cost->cache, "mutant", reading_key(c, t), &r, sizeof r))
            set_reading(c, t, &r);
        else
            which[n++] = t;
        if (n == BATCH || (n > 0 && i + 1 == c->n_order)) {
            PO_TRY(time_batch(c, which, n));
            n = 0;
        }
    }
    return PO_OK;
}

/* --- choosing --- */

/* The fastest in context that agrees in every element. */
static po_status choose(choosing *c) {
    po_site *site = c->site;
    for (;;) {
        uint32_t best = PO_NONE;
        for (uint32_t i = 0; i < c->n_order; i++) {
            const po_trial *t = &site->trials[c->order[i]];
            if (t->fate == PO_TRIAL_COST && t->ratio > worth_taking &&
                (best == PO_NONE || t->ratio > site->trials[best].ratio))
                best = c->order[i];
        }
        if (best == PO_NONE)
            return PO_OK;
        bool equal;
        PO_TRY(po_search_whole(c->state, site, &site->trials[best], &equal));
        site->trials[best].fate = equal ? PO_TRIAL_CHOSEN : PO_TRIAL_WHOLE;
        if (equal) {
            site->chosen = best;
            return PO_OK;
        }
    }
}

static po_status look_at_site(choosing *c) {
    find_hopeful(c);
    if (c->n_order == 0)
        return PO_OK;
    double start = po_now();
    po_candidate_store_init(&c->store, c->arena);
    PO_TRY(po_context_of(c->ctx, c->arena, c->search->graph, c->site->sub, &c->site->sub->at[0],
                         &c->context));
    po_arena_keep(c->context.graph->arena);
    po_arena_defer(c->arena, free_graph, c->context.graph);
    PO_TRY(write_forms(c));
    if (!c->state->options->model_cost)
        PO_TRY(measure(c));
    c->search->measure_seconds += po_now() - start;
    return choose(c);
}

/* The folded graph with the chosen mutants in every place of theirs. */
static po_status put_in(po_run_state *state) {
    po_search *search = state->search;
    uint32_t n = 0;
    for (uint32_t i = 0; i < search->n_sites; i++)
        n += search->sites[i].chosen != PO_NONE;
    if (n == 0)
        return PO_OK;
    po_graph *graph = po_graph_clone(state->ctx, search->graph);
    for (uint32_t i = 0; i < search->n_sites; i++) {
        const po_site *site = &search->sites[i];
        for (uint32_t k = 0; site->chosen != PO_NONE && k < site->sub->n_at; k++) {
            PO_TRY(po_ctx_poll(state->ctx));
            PO_TRY(po_split_replace(state->ctx, graph, site->sub, &site->sub->at[k],
                                    site->trials[site->chosen].graph));
            po_record_fired(state->record, site->trials[site->chosen].name, 1);
        }
    }
    po_graph_sweep(graph);
    PO_TRY(po_infer_graph(state->ctx, graph, true));
    po_pipeline_hold(state, graph);
    state->mutated = graph;
    return PO_OK;
}

static bool drops(po_ctx *ctx, po_status status) {
    if (status != PO_UNSUPPORTED && status != PO_INTERNAL && status != PO_BAD_INPUT &&
        status != PO_RUNTIME && status != PO_IO)
        return false;
    po_log(ctx, "a subprogram was left as it is: %s", ctx->error.message);
    po_ctx_clear(ctx);
    return true;
}

po_status po_stage_choose(po_run_state *state) {
    po_search *search = state->search;
    if (!search || search->n_sites == 0)
        return PO_OK;
    po_cost *cost;
    po_cost_options options = {.cache = state->options->cache};
    PO_TRY(po_cost_open(state->ctx, state->files, &options, &cost));
    if (!cost->machine.has_runtime && !state->options->model_cost)
        return PO_OK; /* select says so */
    po_rates_of_machine(cost, &search->rates);
    for (uint32_t i = 0; i < search->n_sites; i++) {
        choosing c = {.state = state,
                      .ctx = state->ctx,
                      .search = search,
                      .cost = cost,
                      .site = &search->sites[i],
                      .arena = po_arena_create(state->ctx)};
        po_step(state->ctx, (double)i / search->n_sites, "measuring subprogram %u", i + 1);
        po_status status = look_at_site(&c);
        po_arena_free(c.arena);
        if (!drops(state->ctx, status))
            PO_TRY(status);
    }
    return put_in(state);
}
