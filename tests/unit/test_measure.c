/* Times of mutants in context: what stands around them, what is kept, and what is no reading. */
#include "pipeline/budget.h"
#include "pipeline/search/context.h"
#include "pipeline/search/search.h"
#include "rewriting.h"
#include "test_paths.h"
#include "unit.h"

#include <math.h>
#include <sqlite3.h>
#include <stdio.h>
#include <unistd.h>

static const char *const chain =
    "graph g (x: f32[1,16,32,32]) -> (y) {\n"
    " a = Conv(x, w: f32[16,16,1,1] random 1)\n b = Relu(a)\n"
    " c = Conv(b, v: f32[16,16,1,1] random 2)\n y = Softmax(c) {axis=1}\n}";

#define HEAD "graph g (x: f32[1,16,32,32], w: f32[16,16,1,1]) -> (y) {\n"
static const char *const mutants[] = {
    HEAD " a = Transpose(x) {perm=[0,1,3,2]}\n b = Conv(a, w)\n"
         " y = Transpose(b) {perm=[0,1,3,2]}\n}",
    HEAD " a = Reshape(x, s: i64[3] {1, 16, 1024})\n v = Reshape(w, t: i64[3] {16, 16, 1})\n"
         " b = Conv(a, v)\n y = Reshape(b, u: i64[4] {1, 16, 32, 32})\n}",
    HEAD " y = Conv(x, w)\n}", /* the original */
};
enum {
    BLIND = 3, /* enumerated ones that -O2 times */
    MUTANTS = sizeof mutants / sizeof mutants[0],
    TIMED = MUTANTS - 1,
    KINDS = 2,                       /* the first and the last are one, whatever their moves */
    THIRDS = 3 * MUTANTS - 2 * KINDS /* of each three times: behind two of their kind */
};

/* --- a clock by hand --- */

typedef struct clock_by_hand {
    po_status fails;
    double original, seconds, gain; /* of every mutant; 0: seconds 1e-3, gains by place */
    int calls;
    uint32_t most; /* models at once */
} clock_by_hand;
static clock_by_hand clock_now;

static po_status tell(po_ctx *ctx, const po_timing_spec *spec, po_timing *timing,
                      po_timing_work *work) {
    (void)work;
    clock_now.calls++;
    clock_now.most = spec->n > clock_now.most ? spec->n : clock_now.most;
    if (clock_now.fails != PO_OK)
        return po_fail(ctx, clock_now.fails, "by hand");
    for (uint32_t i = 0; i < spec->n; i++) {
        double gain = i == 0 ? 1 : 1 + 0.25 * i;
        timing[i] = (po_timing){.seconds = 1e-3 / gain, .gain = gain, .low = gain, .high = gain};
    }
    if (clock_now.original != 0) {
        timing[0].seconds = clock_now.original;
        for (uint32_t i = 1; i < spec->n; i++)
            timing[i] = (po_timing){.seconds = clock_now.seconds, .gain = clock_now.gain};
    }
    return PO_OK;
}

typedef struct fixture {
    char dir[256], path[300];
    po_ctx ctx;
    po_arena *arena;
    po_options options;
    po_search search;
    po_cost cost;
    po_run run;
} fixture;

static void search_of(fixture *f, const char *text) {
    *f = (fixture){.options = po_options_default()};
    po_ctx_init(&f->ctx);
    f->arena = po_arena_create(&f->ctx);
    po_graph *g = test_graph(&f->ctx, text);
    f->search = (po_search){.arena = f->arena,
                            .until_chosen = po_arena_create(&f->ctx),
                            .graph = g,
                            .cost = &f->cost,
                            .rates = {.flops = 1e11, .bytes = 1e9},
                            .time = tell};
    f->cost.machine.has_runtime = true;
    f->cost.cache = po_cache_none(f->arena);
    po_run_begin(&f->run, &f->ctx, &f->options, f->arena, 0);
    po_run_hold(&f->run, g);
    assert_int_equal(po_split_model(&f->ctx, f->arena, g, NULL, &f->search.split), PO_OK);
    assert_true(f->search.split.n >= 1);
}

/* Mutants as they come from the stage mutate, all agreeing so far. */
static void fill_site(fixture *f, uint32_t n) {
    po_search *s = &f->search;
    s->n_sites = 1;
    s->sites = PO_NEW(f->arena, po_site);
    po_site *site = s->sites;
    *site = (po_site){.sub = &s->split.subs[0],
                      .chosen = PO_NONE,
                      .n_trials = n,
                      .trials = PO_NEW_N(f->arena, po_trial, n)};
    po_search_estimate(&f->run, s, site->sub, site->sub->graph, &site->estimate);
    for (uint32_t i = 0; i < n; i++) {
        po_graph *made = test_graph(&f->ctx, mutants[i % MUTANTS]);
        po_arena_own(f->arena, made->arena);
        site->trials[i] =
            (po_trial){.name = po_arena_printf(f->arena, "mutant %u", (unsigned)(i % MUTANTS)),
                       .graph = made,
                       .fate = PO_TRIAL_INSIDE,
                       .parent = PO_NONE};
        /* Near the original's, the first the best. */
        site->trials[i].estimate = site->estimate;
        site->trials[i].estimate.seconds *= 1 + 0.01 * i;
    }
}

static void start(fixture *f) {
    search_of(f, chain);
    fill_site(f, MUTANTS);
    test_mkdtemp(f->dir, sizeof f->dir);
    snprintf(f->path, sizeof f->path, "%s/cost.db", f->dir);
    assert_int_equal(po_cache_open(&f->ctx, f->arena, f->path, &f->cost.cache), PO_OK);
}

static po_status measure(fixture *f) {
    uint32_t all[16], n = f->search.sites->n_trials;
    for (uint32_t i = 0; i < n; i++)
        all[i] = i;
    return po_search_measure(&f->run, &f->search, f->search.sites, all, n);
}

static void end(fixture *f) {
    po_arenas_free_since(&f->ctx, 0);
    if (f->dir[0])
        test_rmtree(f->dir);
}

static int cached_rows(const char *path) {
    sqlite3 *db = NULL;
    sqlite3_stmt *s = NULL;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(
        sqlite3_prepare_v2(db, "SELECT count(*) FROM entry WHERE kind='mutant'", -1, &s, NULL),
        SQLITE_OK);
    assert_int_equal(sqlite3_step(s), SQLITE_ROW);
    int n = sqlite3_column_int(s, 0);
    sqlite3_finalize(s);
    sqlite3_close(db);
    return n;
}

/* --- readings --- */

/* All but the one that is the original are timed, the near ones twice, and never again. */
static void kept(void **state) {
    (void)state;
    fixture f;
    start(&f);
    clock_now = (clock_by_hand){0};
    assert_int_equal(measure(&f), PO_OK);
    po_trial *t = f.search.sites->trials;
    assert_int_equal(clock_now.calls, 2);
    assert_int_equal(clock_now.most, 1 + TIMED);
    assert_int_equal(t[2].fate, PO_TRIAL_COST);
    assert_false(t[2].measured);
    assert_non_null(t[2].why);
    double ratio[TIMED];
    for (int i = 0; i < TIMED; i++) {
        assert_true(t[i].measured && t[i].ratio > 1.2);
        assert_true(po_search_promising(&t[i]));
        ratio[i] = t[i].ratio;
    }
    assert_int_equal(cached_rows(f.path), TIMED);
    assert_int_equal(measure(&f), PO_OK); /* known in this run */
    assert_int_equal(clock_now.calls, 2);
    fill_site(&f, MUTANTS); /* and in the next */
    assert_int_equal(measure(&f), PO_OK);
    assert_int_equal(clock_now.calls, 2);
    t = f.search.sites->trials;
    for (int i = 0; i < TIMED; i++)
        assert_true(t[i].measured && t[i].ratio == ratio[i]);
    f.ctx.threads = 2; /* another question */
    fill_site(&f, MUTANTS);
    assert_int_equal(measure(&f), PO_OK);
    assert_int_equal(clock_now.calls, 4);
    end(&f);
}

/* A row of the right key and checksum that holds no times is not believed: measured anew. */
static void wrong_cost(void **state) {
    (void)state;
    static const struct {
        double original, seconds, gain;
    } wrong[] = {
        {1e-3, 0, INFINITY}, {1e-3, 1e-9, INFINITY}, {1e-3, NAN, NAN}, {0, 1e-3, 5},
        {-1e-3, 1e-3, 5},    {1e-3, -1e-3, 5},       {1e-3, 1e-3, -5}, {INFINITY, 1e-3, 5},
        {1e-3, 1e-3, 0},     {NAN, 1e-3, 5},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        fixture f;
        start(&f);
        clock_now = (clock_by_hand){0};
        assert_int_equal(measure(&f), PO_OK);
        double ratio = f.search.sites->trials[0].ratio;
        /* The keys of what was kept. */
        po_hash keys[TIMED];
        sqlite3 *db = NULL;
        sqlite3_stmt *s = NULL;
        assert_int_equal(sqlite3_open(f.path, &db), SQLITE_OK);
        assert_int_equal(
            sqlite3_prepare_v2(db, "SELECT key FROM entry WHERE kind='mutant'", -1, &s, NULL),
            SQLITE_OK);
        for (int k = 0; k < TIMED; k++) {
            assert_int_equal(sqlite3_step(s), SQLITE_ROW);
            assert_int_equal(sqlite3_column_bytes(s, 0), sizeof keys[k]);
            memcpy(&keys[k], sqlite3_column_blob(s, 0), sizeof keys[k]);
        }
        sqlite3_finalize(s);
        sqlite3_close(db);
        for (int k = 0; k < TIMED; k++)
            assert_true(po_cache_put(f.cost.cache, "mutant", keys[k], &wrong[i], sizeof wrong[i]));
        fill_site(&f, MUTANTS);
        clock_now.calls = 0;
        assert_int_equal(measure(&f), PO_OK);
        assert_int_equal(clock_now.calls, 2);
        assert_true(f.search.sites->trials[0].ratio == ratio);
        assert_true(f.search.sites->seconds == 1e-3);
        end(&f);
    }
}

/* What could not be timed is not measured, gains nothing, costs nothing less, and is not kept. */
static void no_reading(void **state) {
    (void)state;
    static const clock_by_hand clocks[] = {
        {.fails = PO_RUNTIME},
        {.fails = PO_IO},
        {.original = 1e-3, .seconds = 0, .gain = INFINITY},
        {.original = 1e-3, .seconds = NAN, .gain = NAN},
        {.original = NAN, .seconds = 1e-3, .gain = 2},
        {.original = 1e-3, .seconds = 1e-3, .gain = -1},
    };
    for (size_t i = 0; i < sizeof clocks / sizeof clocks[0]; i++) {
        fixture f;
        start(&f);
        clock_now = clocks[i];
        assert_int_equal(measure(&f), PO_OK);
        assert_int_equal(f.ctx.error.status, PO_OK);
        assert_true(clock_now.calls > 0);
        const po_site *site = f.search.sites;
        for (uint32_t k = 0; k < TIMED; k++) {
            assert_false(site->trials[k].measured);
            assert_false(po_search_promising(&site->trials[k]));
            assert_false(po_search_seconds(site, k) <= po_search_seconds(site, PO_NONE));
        }
        assert_int_equal(cached_rows(f.path), 0);
        po_chosen chosen;
        assert_int_equal(po_stage_choose(&f.run, &f.search, NULL, &chosen), PO_OK);
        assert_null(chosen.mutated[PO_MUTATED_BEST].graph);
        assert_null(chosen.mutated[PO_MUTATED_JOINED].graph);
        end(&f);
    }
    static const po_status stops[] = {PO_CANCELLED, PO_TIME_LIMIT, PO_NO_MEMORY};
    for (size_t i = 0; i < sizeof stops / sizeof stops[0]; i++) {
        fixture f;
        start(&f);
        clock_now = (clock_by_hand){.fails = stops[i]};
        assert_int_equal(measure(&f), stops[i]);
        end(&f);
    }
}

/* -O2 times two of a kind and stops when its time is up, and says so; -O3 does neither. */
static void limits(void **state) {
    (void)state;
    for (int level = 2; level <= 3; level++) {
        fixture f;
        start(&f);
        f.options.level = level;
        fill_site(&f, 3 * MUTANTS); /* each three times */
        clock_now = (clock_by_hand){0};
        assert_int_equal(measure(&f), PO_OK);
        uint32_t left_out = 0;
        for (uint32_t i = 0; i < f.search.sites->n_trials; i++)
            left_out += f.search.sites->trials[i].fate == PO_TRIAL_UNMEASURED;
        assert_int_equal(left_out, level == 2 ? THIRDS : 0);
        fill_site(&f, 3 * MUTANTS);
        for (uint32_t i = 0; i < f.search.sites->n_trials; i++)
            f.search.sites->trials[i].enumerated = true;
        assert_int_equal(measure(&f), PO_OK);
        left_out = 0;
        for (uint32_t i = 0; i < f.search.sites->n_trials; i++)
            left_out += f.search.sites->trials[i].fate == PO_TRIAL_UNMEASURED;
        assert_int_equal(left_out, level == 2 ? 3 * MUTANTS - BLIND : 0);
        clock_now.calls = 0;
        f.cost.cache = po_cache_none(f.arena);
        f.search.measure_seconds = 41;
        fill_site(&f, MUTANTS);
        assert_int_equal(measure(&f), PO_OK);
        assert_int_equal(clock_now.calls > 0, level == 3);
        assert_int_equal(f.search.cut, level == 2);
        assert_int_equal(f.run.record->n_notes, level == 2);
        assert_int_equal(f.search.sites->trials[0].measured, level == 3);
        /* Half of a time limit is for what follows, at either level; the part of the run that
         * measures ends before that, which says nothing of the half. */
        f.search.cut = false;
        f.search.measure_seconds = 0;
        f.options.time_limit = 1000;
        for (int late = 1; late >= 0; late--) {
            f.run.budget->started = po_now() - (late ? 600 : 400);
            f.ctx.deadline = po_now() + 10;
            fill_site(&f, MUTANTS);
            assert_int_equal(measure(&f), PO_OK);
            assert_int_equal(f.search.sites->trials[0].measured, !late);
        }
        end(&f);
    }
}

/* -O3 first measures what -O2 would, of every subprogram, and then the rest; it has more time. */
static void hopeful_first(void **state) {
    (void)state;
    fixture f;
    start(&f);
    f.options.level = 3;
    f.search.hopeful_first = true;
    fill_site(&f, 3 * MUTANTS);
    clock_now = (clock_by_hand){.original = 1e-3, .seconds = 2e-3, .gain = 0.5};
    assert_int_equal(measure(&f), PO_OK);
    const po_trial *t = f.search.sites->trials;
    uint32_t left_out = 0, measured = 0;
    for (uint32_t i = 0; i < f.search.sites->n_trials; i++) {
        left_out += !t[i].measured && t[i].fate == PO_TRIAL_INSIDE;
        measured += t[i].measured;
    }
    assert_int_equal(left_out, THIRDS);
    assert_true(measured > 0);
    f.run.budget->started = po_now();
    const po_search *corrected;
    assert_int_equal(po_stage_correct(&f.run, &f.search, NULL, &corrected), PO_OK);
    assert_false(corrected->hopeful_first);
    t = corrected->sites->trials;
    for (uint32_t i = 0; i < corrected->sites->n_trials; i++)
        assert_true(t[i].measured || t[i].fate == PO_TRIAL_COST);
    double deep = po_budget_end(&f.run, PO_PART_JUDGE) - f.run.budget->started;
    f.options.level = 2;
    assert_true(deep > 3 * (po_budget_end(&f.run, PO_PART_PROOF) - f.run.budget->started));
    end(&f);
}

/* A kind is what a mutant becomes: not its name, its moves or the lengths of its maps. */
static void kinds(void **state) {
    (void)state;
#define MAPS "graph g (x: f32[1,16,32,32], w: f32[16,16,3,3]) -> (y) {\n"
    static const struct {
        const char *text;
        int kind;
    } rows[] = {
        {MAPS " y = Conv(x, w) {pads=[1,1,1,1]}\n}", 0},
        {MAPS " a = Transpose(x) {perm=[0,1,3,2]}\n b = Conv(a, w) {pads=[1,1,1,1]}\n"
              " y = Transpose(b) {perm=[0,1,3,2]}\n}",
         0},
        {MAPS " a = Reshape(x, s: i64[4] {1, 16, 64, 16})\n b = Conv(a, w) {pads=[1,1,1,1]}\n"
              " y = Reshape(b, t: i64[4] {1, 16, 32, 32})\n}",
         0},
        {MAPS " v = Add(w, w)\n y = Conv(x, v) {pads=[1,1,1,1]}\n}", 0}, /* runs once */
        {MAPS " a = Reshape(x, s: i64[4] {4, 16, 16, 16})\n b = Conv(a, w) {pads=[1,1,1,1]}\n"
              " y = Reshape(b, t: i64[4] {1, 16, 32, 32})\n}",
         1},
        {MAPS " y = Conv(x, w) {pads=[2,2,2,2], dilations=[2,2]}\n}", 2},
        {MAPS " a = Conv(x, w) {pads=[1,1,1,1]}\n b = Conv(x, w) {pads=[1,1,1,1]}\n"
              " y = Add(a, b)\n}",
         3},
        {MAPS " a = Conv(x, w) {pads=[1,1,1,1]}\n"
              " b = Conv(x, w) {pads=[2,2,2,2], dilations=[2,2]}\n y = Add(a, b)\n}",
         5},
        {MAPS " a = Conv(x, w) {pads=[1,1,1,1]}\n b = Conv(x, w) {pads=[1,1,1,1]}\n"
              " c = Add(a, b)\n d = Conv(x, w) {pads=[2,2,2,2], dilations=[2,2]}\n"
              " y = Add(c, d)\n}",
         6},
        {MAPS " a = Conv(x, w) {pads=[1,1,1,1]}\n"
              " b = Conv(x, w) {pads=[2,2,2,2], dilations=[2,2]}\n c = Add(a, b)\n"
              " d = Conv(x, w) {pads=[2,2,2,2], dilations=[2,2]}\n y = Add(c, d)\n}",
         6}, /* one more of the three has changed */
        {MAPS " a = Reshape(x, s: i64[4] {1, 32, 16, 32})\n"
              " b = Conv(a, w) {pads=[1,1,1,1], group=2}\n c = Concat(b, b) {axis=1}\n"
              " y = Reshape(c, t: i64[4] {1, 16, 32, 32})\n}",
         4},
    };
    enum { N = sizeof rows / sizeof rows[0] };
    uint64_t kind[N];
    fixture f;
    search_of(&f, chain);
    for (int i = 0; i < N; i++) {
        po_graph *g = test_graph(&f.ctx, rows[i].text);
        po_arena_own(f.arena, g->arena);
        kind[i] = po_search_kind(&f.ctx, &f.search.split.subs[0], g);
        for (int k = 0; k < i; k++)
            if ((kind[i] == kind[k]) != (rows[i].kind == rows[k].kind))
                fail_msg("rows %d and %d", k, i);
    }
    end(&f);
}

/* Without a runtime nothing is measured, and nothing promises anything unless estimates may. */
static void no_runtime(void **state) {
    (void)state;
    for (int by_model = 0; by_model < 2; by_model++) {
        fixture f;
        start(&f);
        f.cost.machine.has_runtime = false;
        f.options.model_cost = by_model;
        f.search.sites->trials[1].estimate.seconds /= 2;
        f.search.sites->trials[0].estimate.unknown = 1;
        clock_now = (clock_by_hand){0};
        assert_int_equal(measure(&f), PO_OK);
        assert_int_equal(clock_now.calls, 0);
        assert_int_equal(po_search_promising(&f.search.sites->trials[1]), by_model);
        assert_false(po_search_promising(&f.search.sites->trials[0])); /* not known in full */
        assert_false(f.search.sites->trials[1].measured);
        end(&f);
    }
}

/* --- contexts --- */

/* What a context holds of each model: operators by name, and probes at its ends. */
static void around(void **state) {
    (void)state;
    static const struct {
        const char *name, *graph;
        uint32_t at;                                /* occurrence of the first subprogram */
        uint32_t inputs, convs, relus, adds, nodes; /* nodes: others */
        uint32_t probes;
    } samples[] = {
        {"the activation behind, a convolution after it", chain, 0, 1, 1, 1, 0, 0, 1},
        {"the activation before, no Softmax", chain, 1, 1, 1, 1, 0, 0, 1},
        {"channels that make no block are not probed",
         "graph g (x: f32[1,8,9,9]) -> (y) {\n a = Conv(x, w: f32[8,8,1,1] random 1)\n"
         " b = Relu(a)\n c = Conv(b, v: f32[8,8,1,1] random 2)\n y = Softmax(c) {axis=1}\n}",
         0, 1, 1, 1, 0, 0, 0},
        {"a sum with what is not there stays outside",
         "graph g (x: f32[1,16,8,8], z: f32[1,16,8,8]) -> (y) {\n s = Softmax(z) {axis=1}\n"
         " a = Conv(x, w: f32[16,16,1,1] random 1)\n b = Relu(a)\n t = Max(b, s)\n"
         " y = Softmax(t) {axis=1}\n}",
         0, 1, 1, 1, 0, 0, 0},
        {"three activations in a row",
         "graph g (x: f32[1,16,8,8]) -> (y) {\n a = Conv(x, w: f32[16,16,1,1] random 1)\n"
         " b = Relu(a)\n c = Sigmoid(b)\n d = Tanh(c)\n y = Softmax(d) {axis=1}\n}",
         0, 1, 1, 1, 0, 2, 0},
    };
    for (size_t i = 0; i < sizeof samples / sizeof samples[0]; i++) {
        fixture f;
        search_of(&f, samples[i].graph);
        const po_subprogram *sub = &f.search.split.subs[0];
        po_context context;
        assert_int_equal(
            po_context_of(&f.ctx, f.arena, f.search.graph, sub, &sub->at[samples[i].at], &context),
            PO_OK);
        po_run_hold(&f.run, context.graph);
        const po_graph *g = context.graph;
        uint32_t live = 0, probes = 0;
        for (uint32_t k = 0; k < g->n_nodes; k++)
            live += !g->nodes[k].removed;
        for (uint32_t k = 0; k < g->n_inputs; k++)
            probes += context.probe_in[k];
        for (uint32_t k = 0; k < g->n_outputs; k++)
            probes += context.probe_out[k];
        uint32_t convs = test_count(g, "Conv"), relus = test_count(g, "Relu");
        printf("%s: %u nodes, %u inputs, %u probes\n", samples[i].name, live, g->n_inputs, probes);
        assert_int_equal(g->n_inputs, samples[i].inputs);
        assert_int_equal(convs, samples[i].convs);
        assert_int_equal(relus, samples[i].relus);
        assert_int_equal(test_count(g, "Max"), samples[i].adds);
        assert_int_equal(live, convs + relus + samples[i].nodes);
        assert_int_equal(probes, samples[i].probes);
        /* The occurrence is that convolution. */
        assert_int_equal(context.at.n_nodes, 1);
        assert_string_equal(g->nodes[context.at.nodes[0]].op_type, "Conv");
        /* Probes are convolutions of the form, and both forms have the same. */
        po_graph *with, *form;
        po_postopt_options options = po_postopt_defaults();
        assert_int_equal(po_context_variant(&f.ctx, &context, sub, NULL, &options, &with, &form),
                         PO_OK);
        po_run_hold(&f.run, form);
        assert_null(with);
        assert_int_equal(test_count(form, "Conv"), convs + probes);
        end(&f);
    }
}

/* A mutant's form computes what the original's does, and a wrong mutant's does not: the context is
 * the mutant's own surroundings. */
static void forms(void **state) {
    (void)state;
    static const struct {
        const char *graph;
        bool equal;
    } samples[] = {
        {HEAD " a = Transpose(x) {perm=[0,1,3,2]}\n b = Conv(a, w)\n"
              " y = Transpose(b) {perm=[0,1,3,2]}\n}",
         true},
        {HEAD " a = Transpose(x) {perm=[0,1,3,2]}\n y = Conv(a, w)\n}", false},
        {HEAD " b = Conv(x, w)\n y = Add(b, b)\n}", false},
    };
    for (uint32_t at = 0; at < 2; at++)
        for (size_t i = 0; i < sizeof samples / sizeof samples[0]; i++) {
            fixture f;
            search_of(&f, chain);
            const po_subprogram *sub = &f.search.split.subs[0];
            po_context context;
            assert_int_equal(
                po_context_of(&f.ctx, f.arena, f.search.graph, sub, &sub->at[at], &context), PO_OK);
            po_graph *mutant = test_graph(&f.ctx, samples[i].graph), *none, *with, *forms[2];
            po_postopt_options options = po_postopt_defaults();
            assert_int_equal(
                po_context_variant(&f.ctx, &context, sub, NULL, &options, &none, &forms[0]), PO_OK);
            assert_int_equal(
                po_context_variant(&f.ctx, &context, sub, mutant, &options, &with, &forms[1]),
                PO_OK);
            double d = test_difference(&f.ctx, forms[0], forms[1], 1);
            assert_int_equal(d < 1e-5, samples[i].equal);
            po_graph *const made[] = {forms[1], forms[0], with, mutant, context.graph};
            for (size_t k = 0; k < sizeof made / sizeof made[0]; k++)
                po_graph_free(made[k]);
            end(&f);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kept),       cmocka_unit_test(wrong_cost),    cmocka_unit_test(no_reading),
        cmocka_unit_test(limits),     cmocka_unit_test(hopeful_first), cmocka_unit_test(kinds),
        cmocka_unit_test(no_runtime), cmocka_unit_test(around),        cmocka_unit_test(forms),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
