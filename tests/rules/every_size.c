/* Every law by itself on graphs whose inputs have open dims: what it makes is proved against what
 * it was given, for every size where that can be shown.
 *
 * Graphs are made of the patterns that laws.txt names for the law. Where it does not fire at once
 * others are applied before it, and what they leave is the graph that it is given: its constants
 * count as the model's own. A law fires on open dims where a node that it took away or changed, or
 * one that reads what such a node makes, has a value of an open length. What is proved for every
 * size is evaluated by the reference at small sizes besides. */
#include "rules.h"

#include "base/hash.h"
#include "ir/text.h"
#include "ops/recipe/recipe.h"
#include "rewrite/apply.h"
#include "verify/proof/proof.h"

#include <stdio.h>
#include <stdlib.h>

enum { MOST_PATTERNS = 8, MOST_INSTANCES = 4, OF_PATTERN = 2, MOST_SLOW = 2, ROUNDS = 3, SET = 32 };

/* A pattern of that rarity is slow. */
enum { SLOW = 8 };
/* Several times what any of them takes: what is left out for its size is so on any machine. */
static const double seconds_for_proof = 60;

/* From the best to the worst: a law is as good as its worst instance. */
typedef enum verdict { NEVER, EVERY, FROM_ONE, SPACED, SIZES, NO_TIME, UNPROVED } verdict;
static const char *const verdict_names[] = {
    [NEVER] = "does not fire", [EVERY] = "every size", [FROM_ONE] = "from 1 on", [SPACED] = "of 32",
    [SIZES] = "sizes tried",   [NO_TIME] = "no time",  [UNPROVED] = "not proved"};

static const char *const law_ids[PO_LAWS] = {
#define LAW(id, name, law, condition, class, helps, proof, apply) #id,
#include "rewrite/laws.def"
#undef LAW
};

typedef struct law_record {
    const char *patterns[MOST_PATTERNS];
    bool has_open; /* some are of patterns_open.txt */
    uint32_t n_patterns, instances, of_pattern;
    uint32_t at[UNPROVED + 1]; /* instances by verdict */
    char resists[200];         /* in the worst instance that was seen first */
    verdict worst;
    /* Of graphs that are not shown to be equal to themselves: where there are no others. */
    verdict aside;
    char resists_aside[200];
} law_record;

typedef struct every_size {
    law_record laws[PO_LAWS];
    const templates *templates;
    every_size_options options;
    uint32_t proofs, checked, wrong;
} every_size;

/* A graph with open dims, to be rewritten. */
typedef struct trial {
    every_size *all;
    po_ctx *ctx;
    const opening *opening;
    const char *name; /* for reports */
    uint32_t names;   /* that are open */
    po_law_id law;
    po_graph *before, *after; /* once it has fired */
    char resists[200];        /* what the proof says first */
} trial;

/* --- firing --- */

static po_postopt_options form(uint32_t which) {
    po_postopt_options o = po_postopt_defaults();
    if (which == 1)
        o.hard_swish = PO_HARD_SWISH_NODE;
    if (which == 2)
        o = po_postopt_plain(PO_ALGEBRA_ALL);
    return o;
}
enum { FORMS = 3 };

/* How often the law fired; the graph is swept then, and its types are inferred. */
static uint32_t fire(po_ctx *ctx, po_graph *g, po_law_id law, uint32_t which) {
    const po_postopt_options options = form(which);
    po_law_counts counts = {0};
    po_arena *scratch = po_arena_create(ctx);
    po_rewriting state = {.ctx = ctx,
                          .options = po_laws[law].stage == PO_LAW_OF_SIMPLIFY ? NULL : &options,
                          .counts = &counts,
                          .scratch = scratch,
                          .growth = (size_t)64 * 1024};
    po_status status = PO_OK;
    if (state.options)
        state.middle = po_law_middle(&state, g);
    if (law == PO_LAW_SWEEP)
        counts.fired[law] = po_graph_sweep(g);
    else
        status = po_law_in_place(ctx, g, law, &state);
    const bool any = po_law_total(&counts) > 0;
    if (any && law != PO_LAW_SWEEP)
        po_graph_sweep(g);
    if (status == PO_OK && any)
        status = po_infer_graph(ctx, g, true);
    po_ctx_clear(ctx);
    po_arena_free(scratch);
    return status == PO_OK ? counts.fired[law] : 0;
}

static bool is_open(const po_graph *g, const po_node *n) {
    for (uint32_t i = 0; i < n->n_in + n->n_out; i++) {
        const po_value_id v = i < n->n_in ? n->in[i] : n->out[i - n->n_in];
        if (v == PO_NONE || g->values[v].type.kind != PO_TYPE_TENSOR)
            continue;
        for (uint32_t k = 0; k < g->values[v].type.rank; k++)
            if (g->values[v].type.dims[k].value < 0)
                return true;
    }
    return false;
}

static bool is_changed(const po_node *a, const po_node *b) {
    bool same = !b->removed && a->op == b->op && a->n_in == b->n_in && a->n_attr == b->n_attr;
    for (uint32_t i = 0; i < a->n_in && same; i++)
        same = a->in[i] == b->in[i];
    for (uint32_t i = 0; i < a->n_attr && same; i++)
        same = po_attr_equal(&a->attr[i], &b->attr[i]);
    return !same;
}

static bool reads(const po_node *reader, const po_node *of) {
    for (uint32_t i = 0; i < reader->n_in; i++)
        for (uint32_t k = 0; k < of->n_out; k++)
            if (reader->in[i] != PO_NONE && reader->in[i] == of->out[k])
                return true;
    return false;
}

/* Nodes keep their numbers. */
static bool fired_on_open(const po_graph *before, const po_graph *after) {
    for (uint32_t i = 0; i < before->n_nodes; i++) {
        const po_node *n = &before->nodes[i];
        if (n->removed || !is_changed(n, &after->nodes[i]))
            continue;
        if (is_open(before, n))
            return true;
        for (uint32_t k = 0; k < before->n_nodes; k++)
            if (!before->nodes[k].removed && reads(&before->nodes[k], n) &&
                is_open(before, &before->nodes[k]))
                return true;
    }
    return false;
}

/* What others made of the constants counts as given. */
static po_status forget_recipes(po_ctx *ctx, po_graph *g, void *user) {
    (void)ctx, (void)user;
    for (po_value_id v = 0; v < g->n_values; v++)
        g->values[v].recipe = NULL;
    return PO_OK;
}

static bool fires(trial *t, const po_graph *current) {
    for (uint32_t which = 0; which < FORMS; which++) {
        t->before = po_graph_clone(t->ctx, current);
        po_graph_walk(t->ctx, t->before, forget_recipes, NULL);
        if (t->law != PO_LAW_SWEEP)
            po_graph_sweep(t->before);
        po_status status = po_infer_graph(t->ctx, t->before, true);
        t->after = po_graph_clone(t->ctx, t->before);
        if (status == PO_OK && fire(t->ctx, t->after, t->law, which) > 0 &&
            fired_on_open(t->before, t->after))
            return true;
        po_ctx_clear(t->ctx);
        po_graph_free(t->before);
        po_graph_free(t->after);
        if (po_laws[t->law].stage != PO_LAW_OF_POSTOPT)
            break;
    }
    t->before = t->after = NULL;
    return false;
}

/* Others before it, in the table's order, until it fires. */
static bool comes_to_fire(trial *t, const po_graph *graph) {
    if (fires(t, graph))
        return true;
    po_graph *g = po_graph_clone(t->ctx, graph);
    bool fired = false, any = true;
    for (uint32_t round = 0; round < ROUNDS && any && !fired; round++) {
        any = false;
        for (uint32_t law = 0; law < PO_LAW_BLOCKS && !fired; law++) {
            if (law == (uint32_t)t->law || fire(t->ctx, g, (po_law_id)law, 0) == 0)
                continue;
            any = true;
            fired = fires(t, g);
        }
    }
    po_graph_free(g);
    return fired;
}

/* --- proving --- */

static void hear(void *user, const char *line) {
    trial *t = user;
    if (!t->resists[0] && strstr(line, "for every size"))
        snprintf(t->resists, sizeof t->resists, "%.199s", line + 7);
}

static verdict judge(trial *t, const po_proof_report *r) {
    if (!r->proved) {
        snprintf(t->resists, sizeof t->resists, "%.199s", r->why);
        return strstr(r->why, "CPU time") ? NO_TIME : UNPROVED;
    }
    if (!r->every_size)
        return SIZES;
    return r->spaced > 1 ? SPACED : r->positive ? FROM_ONE : EVERY;
}

/* Whether the proof takes the graph at all: what it cannot show of a graph and itself says nothing
 * of the law. */
static bool is_taken(trial *t) {
    const po_proof_options options = {.seed = 5, .cpu_seconds = seconds_for_proof};
    po_proof_report report = {0};
    const po_status status = po_prove(t->ctx, t->before, t->before, NULL, &options, &report);
    po_ctx_clear(t->ctx);
    return status == PO_OK && report.proved && report.every_size;
}

static verdict prove(trial *t) {
    const po_proof_options options = {.seed = 5, .cpu_seconds = seconds_for_proof};
    po_proof_report report = {0};
    po_graph *recipes = NULL;
    t->ctx->log = hear;
    t->ctx->log_user = t;
    po_status status = po_recipes_to_graph(t->ctx, t->after, &recipes);
    if (recipes)
        po_ops_resolve(recipes);
    if (status == PO_OK)
        status = po_prove(t->ctx, t->before, t->after, recipes, &options, &report);
    t->ctx->log = NULL;
    po_graph_free(recipes);
    t->all->proofs++;
    if (t->all->options.tell)
        printf("# %s, '%s', open %x: %.1f s\n", law_ids[t->law], t->name, t->names, report.seconds);
    if (status != PO_OK) {
        snprintf(t->resists, sizeof t->resists, "%.199s", t->ctx->error.message);
        po_ctx_clear(t->ctx);
        return UNPROVED;
    }
    return judge(t, &report);
}

/* Unlike runtimes the reference slides windows over empty maps. */
static bool has_windows(const po_graph *g) {
    for (po_node_id i = 0; i < g->n_nodes; i++)
        if (!g->nodes[i].removed && po_op_has(g->nodes[i].op, PO_OPF_WINDOW))
            return true;
    return false;
}

/* Both by the reference, at lengths that windows hardly fit into and at others. */
static void check_small(trial *t, bool zero) {
    int64_t lengths[SET];
    for (uint32_t turn = zero ? 0 : 1; turn < 5; turn++) {
        for (uint32_t k = 0; k < SET; k++)
            lengths[k] = turn == 0 ? k % 2 : turn < 3 ? (int64_t)turn : 1 + (k * 5 + turn) % 7;
        po_graph *a = opening_at(t->opening, t->before, t->names, lengths);
        po_graph *b = opening_at(t->opening, t->after, t->names, lengths);
        po_arena *arena = po_arena_create(t->ctx);
        const char *why = "";
        original *o = original_runs(t->ctx, a) ? original_of(t->ctx, arena, a, turn) : NULL;
        if (o && original_judge(o, b, PROMISE_FORM, &why) == JUDGED_DIFFERENT) {
            t->all->wrong++;
            printf("%s, '%s': proved for every size, and %s with lengths of turn %u\n",
                   law_ids[t->law], t->name, why, turn);
        }
        t->all->checked += o != NULL;
        po_arena_free(arena);
        po_graph_free(a);
        po_graph_free(b);
    }
}

static void record(trial *t) {
    law_record *r = &t->all->laws[t->law];
    const verdict v = prove(t);
    if (v >= SIZES && !is_taken(t)) {
        if (v > r->aside)
            snprintf(r->resists_aside, sizeof r->resists_aside, "%s", t->resists);
        r->aside = v > r->aside ? v : r->aside;
        return;
    }
    if (v == EVERY || v == FROM_ONE)
        check_small(t, v == EVERY && !has_windows(t->before));
    r->instances++;
    r->of_pattern++;
    r->at[v]++;
    if (v > r->worst) {
        r->worst = v;
        snprintf(r->resists, sizeof r->resists, "%s", v > FROM_ONE ? t->resists : "");
    }
}

/* --- graphs --- */

/* All that may be open; all but one; one alone. */
static uint32_t openings(const opening *o, uint32_t most, uint32_t *sets) {
    uint32_t n = 0;
    sets[n++] = most;
    for (uint32_t turn = 0; turn < 2; turn++)
        for (uint32_t k = 0; k < opening_names(o) && n + 1 < SET; k++) {
            const uint32_t set = turn == 0 ? most & ~(1u << k) : 1u << k;
            bool known = set == 0 || !(most >> k & 1);
            for (uint32_t i = 0; i < n && !known; i++)
                known = sets[i] == set;
            if (!known)
                sets[n++] = set;
        }
    return most ? n : 0;
}

/* In a context of its own. True where the law fired. */
static bool try_law(every_size *all, const opening *o, const po_graph *graph, uint32_t names,
                    po_law_id law, const char *name) {
    trial t = {.all = all, .ctx = opening_ctx(o), .opening = o, .name = name, .names = names};
    t.law = law;
    po_graph *g = opening_graph(o, graph, names);
    const bool fired = g && comes_to_fire(&t, g);
    if (fired)
        record(&t);
    po_graph_free(t.before);
    po_graph_free(t.after);
    po_graph_free(g);
    return fired;
}

static bool is_named(const law_record *r, const char *pattern) {
    for (uint32_t i = 0; i < r->n_patterns; i++)
        if (strcmp(r->patterns[i], pattern) == 0)
            return true;
    return false;
}

/* Whether the law is to be tried on one more graph of a pattern. */
static bool waits(const every_size *all, uint32_t law, uint32_t pattern) {
    const law_record *r = &all->laws[law];
    const uint32_t rarity = templates_rarity(all->templates, pattern);
    const bool slow = rarity >= SLOW;
    if (slow && r->has_open && pattern < all->options.first_open)
        return false;
    const uint32_t most = slow ? MOST_SLOW : MOST_INSTANCES;
    return is_named(r, templates_name(all->templates, pattern)) && r->instances < most &&
           r->of_pattern < (rarity > 1 ? 1 : OF_PATTERN);
}

static void try_text(every_size *all, uint32_t pattern, const char *text, uint64_t seed) {
    const char *name = templates_name(all->templates, pattern);
    po_ctx ctx;
    po_guard guard;
    po_graph *graph = NULL;
    uint32_t sets[SET];
    po_ctx_init(&ctx);
    po_guard_push(&ctx, &guard);
    if (setjmp(guard.env) != 0) {
        po_guard_unwind(&ctx, &guard);
        printf("'%s': %s\n", name, ctx.error.message);
        all->wrong++;
        return;
    }
    po_arena *arena = po_arena_create(&ctx);
    if (po_graph_parse(&ctx, text, &graph) != PO_OK)
        abort();
    po_ops_resolve(graph);
    const opening *o = opening_of(&ctx, arena, graph);
    const uint32_t n = openings(o, opening_most(o, graph), sets);
    for (uint32_t law = 0; law < PO_LAWS; law++) {
        if (!waits(all, law, pattern))
            continue;
        for (uint32_t i = 0; i < n; i++)
            if (try_law(all, o, graph, sets[(seed + i) % n], (po_law_id)law, name))
                break;
    }
    po_guard_pop(&ctx, &guard);
    po_arenas_free_since(&ctx, 0);
}

static void try_pattern(every_size *all, uint32_t pattern) {
    po_ctx ctx;
    po_ctx_init(&ctx);
    po_arena *arena = po_arena_create(&ctx);
    for (uint32_t law = 0; law < PO_LAWS; law++)
        all->laws[law].of_pattern = 0;
    for (uint32_t seed = 0; seed < all->options.seeds; seed++) {
        bool any = false;
        for (uint32_t law = 0; law < PO_LAWS && !any; law++)
            any = waits(all, law, pattern);
        if (any)
            try_text(all, pattern, templates_fill(all->templates, arena, pattern, seed), seed);
    }
    po_arena_free(arena);
}

/* --- laws.txt, and the report --- */

static const char *trimmed(po_arena *arena, const char *from, const char *to) {
    while (from < to && *from == ' ')
        from++;
    while (to > from && (to[-1] == ' ' || to[-1] == '\n'))
        to--;
    return po_arena_printf(arena, "%.*s", (int)(to - from), from);
}

static void read_patterns(law_record *r, po_arena *arena, const char *p) {
    while (r->n_patterns < MOST_PATTERNS) {
        const char *end = strchr(p, ';');
        r->patterns[r->n_patterns++] = trimmed(arena, p, end ? end : p + strlen(p));
        if (!end)
            break;
        p = end + 1;
    }
}

static void read_laws(every_size *all, po_arena *arena, const char *only) {
    char line[1024];
    FILE *file = fopen(TEST_SOURCE_DIR "/tests/rules/laws.txt", "r");
    if (!file)
        abort();
    while (fgets(line, sizeof line, file)) {
        char *bar = strchr(line, '|'), *second = bar ? strchr(bar + 1, '|') : NULL;
        if (line[0] == '#' || !second)
            continue;
        const char *id = trimmed(arena, line, bar);
        for (uint32_t law = 0; law < PO_LAWS; law++)
            if (strcmp(id, law_ids[law]) == 0 && (!only || strstr(id, only)))
                read_patterns(&all->laws[law], arena, second + 1);
    }
    fclose(file);
    for (uint32_t i = all->options.first_open; i < templates_count(all->templates); i++)
        for (uint32_t law = 0; law < PO_LAWS; law++)
            all->laws[law].has_open |= is_named(&all->laws[law], templates_name(all->templates, i));
}

static void print_law(const every_size *all, uint32_t law) {
    const law_record *r = &all->laws[law];
    if (r->n_patterns == 0)
        return;
    const bool aside = r->instances == 0;
    printf("%s | %s | ", law_ids[law], verdict_names[aside ? r->aside : r->worst]);
    const char *comma = "";
    for (uint32_t v = EVERY; v <= UNPROVED; v++)
        if (r->at[v]) {
            printf("%s%u %s", comma, r->at[v], verdict_names[v]);
            comma = ", ";
        }
    printf(" | %s\n", aside ? r->resists_aside : r->resists);
}

bool every_size_report(const templates *t, const every_size_options *options) {
    po_ctx ctx;
    po_ctx_init(&ctx);
    po_arena *arena = po_arena_create(&ctx);
    every_size *all = PO_NEW(arena, every_size);
    all->templates = t;
    all->options = *options;
    read_laws(all, arena, options->only);
    /* Those that were made for it first. */
    for (uint32_t i = options->first_open; i < templates_count(t); i++)
        try_pattern(all, i);
    for (uint32_t i = 0; i < options->first_open; i++)
        try_pattern(all, i);
    for (uint32_t law = 0; law < PO_LAWS; law++)
        print_law(all, law);
    printf("# %u proofs, %u graphs evaluated besides, %u wrong\n", all->proofs, all->checked,
           all->wrong);
    const bool good = all->wrong == 0;
    po_arena_free(arena);
    return good;
}
