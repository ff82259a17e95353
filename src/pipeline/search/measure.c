/* Times trials in the runtime, with what stands around them in the model. */
#include "ops/op.h"
#include "pipeline/budget.h"
#include "pipeline/candidates.h"
#include "pipeline/gpu/timing.h"
#include "pipeline/search/context.h"
#include "pipeline/search/search.h"
#include "postopt/postopt.h"
#include "verify/inputs/inputs.h"

#include <math.h>
#include <stdlib.h>

enum {
    READING_LAYOUT = 2,
    BATCH = PO_TIMING_MAX - 1,
    MOST_MEASURED = BATCH, /* of one subprogram */
    MOST_OF_A_KIND = 2,    /* that become the same operators */
    MOST_BLIND = 3,        /* enumerated ones: there are many */
    MOST_CONFIRMED = 2
};
/* Times the original's estimate, at most. On a GPU estimates are nearer (docs/cuda-cost.md), and
 * readings take longer. */
static const double worth_measuring = 1.5, worth_measuring_gpu = 1.1;
/* Weights of so many bytes take seconds to load for each reading, and what streams them takes about
 * as long as its estimate says. */
#define LARGE_WEIGHTS ((uint64_t)128 << 20)
static const double worth_measuring_large = 1;
static const double worth_taking = 1.02; /* in context; the whole model decides later */
static const double most_seconds = 40;   /* at -O2, over all subprograms */
static const double near = 0.97;         /* of a first reading, to be taken again */
/* Of the time of all subprograms; below there is nothing to win. */
static const double least_share = 0.004;

typedef struct measuring {
    const po_run *run;
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
} measuring;

typedef struct reading {
    double original, seconds, gain;
} reading;

/* --- what is to be measured --- */

static po_status make_form(measuring *c, const po_graph *mutant, po_graph **form) {
    po_graph *with;
    const po_postopt_options options =
        c->run->options->cuda ? po_postopt_gpu() : po_postopt_defaults();
    PO_TRY(po_context_variant(c->ctx, &c->context, c->site->sub, mutant, &options, &with, form));
    po_graph *made[2] = {with, *form};
    for (int i = 0; i < 2; i++)
        if (made[i])
            po_arena_own(c->arena, made[i]->arena);
    return PO_OK;
}

static void sort_by_estimate(measuring *c) {
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

/* How many of the first `n` in the order are of this kind. */
static uint32_t of_its_kind(const uint64_t *kinds, uint32_t n, uint64_t kind) {
    uint32_t same = 0;
    for (uint32_t i = 0; i < n; i++)
        same += kinds[i] == kind;
    return same;
}

bool po_search_deep(const po_run *run, const po_search *search) {
    return run->options->level >= 3 && !search->hopeful_first;
}

typedef struct picking {
    uint32_t *taken, n, blind;
    uint64_t *kinds;      /* of those taken */
    const uint64_t *kind; /* by place in the order, as `seen` */
    bool *seen;
} picking;

/* Takes a trial in, unless it does not agree. */
static po_status pick(measuring *c, picking *p, uint32_t place) {
    po_trial *t = &c->site->trials[c->order[place]];
    p->seen[place] = true;
    PO_TRY(po_search_positions(c->run, c->search, c->site, t));
    if (t->fate != PO_TRIAL_PARTLY && t->fate != PO_TRIAL_INSIDE && t->fate != PO_TRIAL_EQUAL)
        return PO_OK;
    p->kinds[p->n] = p->kind[place];
    p->taken[p->n++] = c->order[place];
    p->blind += t->enumerated;
    return PO_OK;
}

static bool has_large_weights(const po_subprogram *sub) {
    uint64_t bytes = 0;
    for (uint32_t i = sub->n_activations; i < sub->graph->n_inputs; i++) {
        const po_type *t = &sub->graph->values[sub->graph->inputs[i]].type;
        if (po_type_static(t))
            bytes += (uint64_t)po_type_count(t) * po_dtype_bits(t->dtype) / 8;
    }
    return bytes > LARGE_WEIGHTS;
}

/* The best of each kind, then the second of each, while there is room. */
static po_status pick_few(measuring *c, picking *p) {
    const double worth = c->run->options->cuda             ? worth_measuring_gpu
                         : has_large_weights(c->site->sub) ? worth_measuring_large
                                                           : worth_measuring;
    for (uint32_t turn = 0; turn < MOST_OF_A_KIND; turn++)
        for (uint32_t i = 0; i < c->n_order && p->n < MOST_MEASURED; i++) {
            const po_trial *t = &c->site->trials[c->order[i]];
            if (!p->seen[i] && (!t->enumerated || p->blind < MOST_BLIND) &&
                t->estimate.seconds < worth * c->site->estimate.seconds &&
                of_its_kind(p->kinds, p->n, p->kind[i]) == turn)
                PO_TRY(pick(c, p, i));
        }
    return PO_OK;
}

/* The trials to be measured: all that agree, or few of many kinds. */
static po_status find_hopeful(measuring *c, const uint32_t *trials, uint32_t n) {
    po_site *site = c->site;
    bool deep = po_search_deep(c->run, c->search);
    for (uint32_t i = 0; i < n; i++)
        if (!site->trials[trials[i]].measured && site->trials[trials[i]].ratio == 0)
            PO_PUSH(c->arena, c->order, c->n_order, c->cap_order, trials[i]);
    sort_by_estimate(c);
    uint64_t *kind = PO_NEW_N(c->arena, uint64_t, c->n_order);
    picking p = {.taken = PO_NEW_N(c->arena, uint32_t, c->n_order),
                 .kinds = PO_NEW_N(c->arena, uint64_t, c->n_order),
                 .kind = kind,
                 .seen = PO_NEW_N(c->arena, bool, c->n_order)};
    for (uint32_t i = 0; i < c->n_order; i++)
        if (deep)
            PO_TRY(pick(c, &p, i));
        else
            kind[i] = po_search_kind(c->ctx, site->sub, site->trials[c->order[i]].graph);
    if (!deep)
        PO_TRY(pick_few(c, &p));
    for (uint32_t i = 0; i < c->n_order; i++)
        if (!p.seen[i] && !c->search->hopeful_first) /* else its turn may come */
            site->trials[c->order[i]].fate = PO_TRIAL_UNMEASURED;
    c->order = p.taken;
    c->n_order = p.n;
    return PO_OK;
}

/* Writes the forms. One that is the original's, or another's, is not measured. */
static po_status write_forms(measuring *c) {
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
        if (!po_search_drops(c->ctx, status))
            PO_TRY(status);
        if (status != PO_OK || same) {
            site->trials[t].fate = PO_TRIAL_COST;
            site->trials[t].why = same ? "the same as another once postopt has seen it"
                                       : "it cannot be written for the runtime";
            continue;
        }
        c->form[t] = form;
        c->order[kept++] = t;
    }
    c->n_order = kept;
    return PO_OK;
}

/* --- measuring --- */

static po_hash reading_key(const measuring *c, uint32_t trial) {
    po_hash key = po_hash_u64(po_cost_key(c->cost), READING_LAYOUT), a = c->original_file.hash,
            b = c->file[trial].hash;
    key = po_hash_u64(po_hash_u64(key, a.lo), a.hi);
    key = po_hash_u64(po_hash_u64(key, b.lo), b.hi);
    return po_hash_u64(key, c->ctx->threads);
}

/* A time of zero, or none at all, is no reading: it would make the mutant free. */
static bool sensible(const reading *r) {
    return isfinite(r->original) && r->original > 0 && isfinite(r->seconds) && r->seconds > 0 &&
           isfinite(r->gain) && r->gain > 0;
}

static void set_reading(measuring *c, uint32_t trial, const reading *r) {
    po_trial *t = &c->site->trials[trial];
    t->measured = true;
    t->seconds = r->seconds;
    t->ratio = r->gain;
    c->site->seconds = r->original;
}

/* *filled: as in po_timing_work. */
static po_status time_models(measuring *c, po_arena *arena, const uint32_t *which, uint32_t n,
                             uint32_t processes, po_timing *timing, uint32_t *filled) {
    const char *models[PO_TIMING_MAX] = {c->original_file.path};
    po_inputs *plan;
    po_feed feed;
    for (uint32_t i = 0; i < n; i++)
        models[i + 1] = c->file[which[i]].path;
    PO_TRY(po_inputs_plan(c->ctx, arena, c->original, c->original, &plan));
    PO_TRY(po_inputs_make(c->ctx, arena, plan, 0, PO_INPUTS_NORMAL, 1, &feed));
    po_side_files files = po_candidate_files(&c->store);
    po_timing_spec spec = {.files = &files,
                           .library = c->cost->library,
                           .threads = c->ctx->threads,
                           .n = n + 1,
                           .models = models,
                           .feed = &feed,
                           .room = c->search->room,
                           .quick = processes,
                           .bound = 1,
                           .seed = 2 + processes};
    po_timing_work work = {.processes = 0};
    po_status (*time)(po_ctx *, const po_timing_spec *, po_timing *, po_timing_work *) =
        c->search->time ? c->search->time : po_time_models;
    PO_TRY(time(c->ctx, &spec, timing, &work));
    *filled = work.filled;
    return PO_OK;
}

static po_status time_batch(measuring *c, const uint32_t *which, uint32_t n, uint32_t processes) {
    po_timing timing[PO_TIMING_MAX];
    uint32_t filled;
    po_arena *arena = po_arena_create(c->ctx);
    po_status status = time_models(c, arena, which, n, processes, timing, &filled);
    po_arena_free(arena);
    PO_TRY(status);
    if (filled > 0) { /* in two processes, then */
        uint32_t some = filled - 1;
        PO_TRY(time_batch(c, which, some, processes));
        return time_batch(c, which + some, n - some, processes);
    }
    for (uint32_t i = 0; i < n; i++) {
        const po_timing *t = &timing[i + 1];
        reading r = {timing[0].seconds, t->seconds, t->gain};
        if (!sensible(&r))
            return po_fail(c->ctx, PO_RUNTIME, "timing '%s': a reading of %g s against %g s",
                           c->site->trials[which[i]].name, r.seconds, r.original);
        set_reading(c, which[i], &r);
        c->site->trials[which[i]].disturbed = po_timing_disturbed(t->waited);
    }
    return PO_OK;
}

/* One by one, where one of them stops the runtime and not the original: those that it refuses leave
 * the list. */
static po_status time_each(measuring *c, uint32_t *which, uint32_t *n) {
    uint32_t kept = 0;
    PO_TRY(time_batch(c, which, 0, 1));
    for (uint32_t i = 0; i < *n; i++) {
        po_trial *t = &c->site->trials[which[i]];
        po_status status = time_batch(c, &which[i], 1, 1);
        if (status == PO_OK) {
            which[kept++] = which[i];
            continue;
        }
        if (status != PO_RUNTIME)
            return status;
        po_log(c->ctx, "'%s' is refused: %s", t->name, c->ctx->error.message);
        t->fate = PO_TRIAL_REFUSED;
        t->why = po_arena_strdup(c->run->arena, c->ctx->error.message);
        po_ctx_clear(c->ctx);
    }
    *n = kept;
    return PO_OK;
}

/* A short reading of all; the best few, where they are near enough, once more. */
static po_status measure_new(measuring *c, uint32_t *which, uint32_t n) {
    po_site *site = c->site;
    for (uint32_t i = 0; i < n; i += BATCH) {
        po_status status = time_batch(c, which + i, n - i < BATCH ? n - i : BATCH, 1);
        if (status == PO_RUNTIME && n > 1) {
            po_ctx_clear(c->ctx);
            PO_TRY(time_each(c, which, &n));
            break;
        }
        PO_TRY(status);
    }
    for (uint32_t i = 1; i < n; i++)
        for (uint32_t k = i; k > 0; k--) {
            uint32_t *a = &which[k - 1], *b = &which[k], swap = *a;
            if (site->trials[*a].ratio >= site->trials[*b].ratio)
                break;
            *a = *b;
            *b = swap;
        }
    uint32_t again = 0;
    while (again < n && again < MOST_CONFIRMED && site->trials[which[again]].ratio > near)
        again++;
    if (again > 0)
        PO_TRY(time_batch(c, which, again, 2));
    for (uint32_t i = 0; i < n; i++) {
        const po_trial *t = &site->trials[which[i]];
        reading r = {site->seconds, t->seconds, t->ratio};
        if (!t->disturbed)
            po_cache_put(c->cost->cache, "mutant", reading_key(c, which[i]), &r, sizeof r);
        c->search->undecided |= t->disturbed;
    }
    return PO_OK;
}

/* Half of a time limit is left to what follows: what the search finds must still be compared and
 * confirmed. It counts from the run's start: the context's deadline is that of a part of the run.
 */
static bool time_is_up(measuring *c) {
    const po_options *options = c->run->options;
    bool cut = options->level < 3 && c->search->measure_seconds > most_seconds;
    bool late = options->time_limit > 0 && c->run->budget->started > 0 &&
                po_now() > c->run->budget->started + options->time_limit / 2;
    if (c->search->cut || !(cut || late))
        return cut || late;
    if (late)
        po_record_note(c->run->record,
                       "half of the time limit was up: mutants were no longer measured");
    else
        po_record_note(c->run->record,
                       "-O2 measures mutants for %.0f s: the rest was left out (-O3 measures all)",
                       most_seconds);
    c->search->cut = true;
    return true;
}

static po_status measure(measuring *c) {
    uint32_t *which = PO_NEW_N(c->arena, uint32_t, c->n_order), n = 0;
    for (uint32_t i = 0; i < c->n_order; i++) {
        reading r;
        uint32_t t = c->order[i];
        if (po_cache_get_fixed(c->cost->cache, "mutant", reading_key(c, t), &r, sizeof r) &&
            sensible(&r))
            set_reading(c, t, &r);
        else
            which[n++] = t;
    }
    if (n > 0 && time_is_up(c))
        return PO_OK;
    return n > 0 ? measure_new(c, which, n) : PO_OK;
}

static bool worth_a_look(const po_search *search, const po_site *site) {
    double all = 0;
    for (uint32_t i = 0; i < search->n_sites; i++)
        all += search->sites[i].sub->n_at * search->sites[i].estimate.seconds;
    return site->sub->n_at * site->estimate.seconds > least_share * all;
}

static po_status measure_in_context(measuring *c) {
    po_candidate_store_init(&c->store, c->arena);
    PO_TRY(po_context_of(c->ctx, c->arena, c->search->graph, c->site->sub, &c->site->sub->at[0],
                         &c->context));
    po_arena_own(c->arena, c->context.graph->arena);
    PO_TRY(write_forms(c));
    return measure(c);
}

/* --- on a GPU --- */

/* Forms in context, each by its whole plan, all in one go. No probes: libraries on a GPU have no
 * blocked layouts that neighbours would have to turn. */
static po_status measure_on_gpu(measuring *c) {
    po_site *site = c->site;
    const po_graph **forms = PO_NEW_N(c->arena, const po_graph *, c->n_order + 1);
    uint32_t *of = PO_NEW_N(c->arena, uint32_t, c->n_order + 1), n = 1;
    double *seconds = PO_NEW_N(c->arena, double, c->n_order + 1);
    const char **why = PO_NEW_N(c->arena, const char *, c->n_order + 1);
    po_trial_fate *fates = PO_NEW_N(c->arena, po_trial_fate, c->n_order + 1);
    po_graph *original;
    PO_TRY(po_context_of(c->ctx, c->arena, c->search->graph, site->sub, &site->sub->at[0],
                         &c->context));
    po_arena_own(c->arena, c->context.graph->arena);
    memset(c->context.probe_in, 0, c->context.graph->n_inputs * sizeof *c->context.probe_in);
    memset(c->context.probe_out, 0, c->context.graph->n_outputs * sizeof *c->context.probe_out);
    PO_TRY(make_form(c, NULL, &original));
    forms[0] = original;
    for (uint32_t i = 0; i < c->n_order; i++) {
        po_graph *form;
        po_trial *t = &site->trials[c->order[i]];
        po_status status = make_form(c, t->graph, &form);
        if (!po_search_drops(c->ctx, status))
            PO_TRY(status);
        fates[n] = t->fate;
        t->fate = PO_TRIAL_UNMEASURED;
        if (status != PO_OK || po_graph_equal(form, original))
            continue;
        of[n] = c->order[i];
        forms[n++] = form;
    }
    PO_TRY(po_gpu_graphs_seconds(c->run, c->arena, forms, n, c->run->options->kernels != NULL,
                                 seconds, why));
    for (uint32_t i = 0; i < n; i++) {
        if (why[i])
            po_log(c->ctx, "not measured: %s", why[i]);
        if (i == 0 || !(seconds[0] > 0) || !(seconds[i] > 0))
            continue;
        site->trials[of[i]].fate = fates[i];
        set_reading(c, of[i], &(reading){seconds[0], seconds[i], seconds[0] / seconds[i]});
    }
    return PO_OK;
}

/* --cost model: the estimates stand for readings. */
static void estimate_all(measuring *c) {
    for (uint32_t i = 0; i < c->n_order; i++) {
        po_trial *t = &c->site->trials[c->order[i]];
        if (t->estimate.unknown == 0 && t->estimate.seconds > 0)
            t->ratio = c->site->estimate.seconds / t->estimate.seconds;
    }
}

po_status po_search_measure(const po_run *run, po_search *search, po_site *site,
                            const uint32_t *trials, uint32_t n) {
    measuring c = {.run = run,
                   .ctx = run->ctx,
                   .search = search,
                   .cost = search->cost,
                   .site = site,
                   .arena = po_arena_create(run->ctx)};
    double start = po_now();
    po_status status = PO_OK;
    bool estimated = po_options_estimated(run->options);
    bool runtime = search->cost->machine.has_runtime && !estimated;
    if (n > 0 && worth_a_look(search, site) && (runtime || estimated)) {
        status = find_hopeful(&c, trials, n);
        if (status == PO_OK && c.n_order > 0 && run->gpu_cost)
            status = measure_on_gpu(&c);
        else if (status == PO_OK && c.n_order > 0 && runtime)
            status = measure_in_context(&c);
        else if (status == PO_OK && !runtime)
            estimate_all(&c);
    }
    search->measure_seconds += po_now() - start;
    po_arena_free(c.arena);
    if (status == PO_RUNTIME || status == PO_IO) {
        po_log(run->ctx, "not measured: %s", run->ctx->error.message);
        po_ctx_clear(run->ctx);
        status = PO_OK;
    }
    return status;
}

bool po_search_promising(const po_trial *trial) {
    return trial->ratio > worth_taking;
}

double po_search_seconds(const po_site *site, uint32_t trial) {
    double original = site->seconds > 0 ? site->seconds : site->estimate.seconds;
    return trial == PO_NONE ? original : original * worth_taking / site->trials[trial].ratio;
}
