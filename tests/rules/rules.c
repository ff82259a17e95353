/* Every rewrite of the library on random graphs, on patterns made for each rule, and on models,
 * judged by the float64 reference (rules.h). Nothing is timed and nothing is chosen.
 *
 *   rules [--count ROUNDS] [--first ROUND] [--only TEXT] [--least N] [--stop] [--table] [MODEL...]
 *
 *   rules --every-size [--count GRAPHS] [--only LAW]
 *
 * A round makes two graphs of every pattern (patterns*.txt), and some of the random generators.
 * FIRST "now" is one that changes by the hour; it is printed, to be given again. --only: patterns
 * of that name. --least: every rule must have fired so often. --stop: at the first that is wrong. A
 * folder stands for the models in it. --every-size: every law by itself on open dims, proved
 * (every_size.c), with so many graphs of a pattern. */
#include "rules.h"

#include "base/hash.h"
#include "cost/roofline.h"
#include "import/import.h"
#include "ir/text.h"
#include "random_linear.h"
#include "random_regions.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>

enum { REGIONS = 6, LINEAR = 8 }; /* of a round */
/* A pattern of that rarity is large for a rewrite's sake: mutants of it show nothing new. */
enum { LARGE = 8 };

static const char *const pattern_files[] = {"patterns.txt", "patterns_opset.txt",
                                            "patterns_linear.txt", "patterns_conditions.txt",
                                            "patterns_open.txt"};

/* Of a model: the reference takes its time. */
#define LARGEST_FILE  (1 << 20)
#define LARGEST_FLOPS 2e7

/* --- counts --- */

void tally_add(tally *t, const char *stage, const char *name, uint64_t times) {
    char text[160];
    snprintf(text, sizeof text, "%s: %s", stage, name);
    for (uint32_t i = 0; i < t->n; i++)
        if (strcmp(t->rows[i].name, text) == 0) {
            t->rows[i].fired += times;
            return;
        }
    if (t->n == t->cap) {
        t->cap = t->cap ? 2 * t->cap : 64;
        t->rows = realloc(t->rows, t->cap * sizeof *t->rows);
        if (!t->rows)
            abort();
    }
    t->rows[t->n++] = (rule_row){strdup(text), times};
}

static void tally_free(tally *t) {
    for (uint32_t i = 0; i < t->n; i++)
        free((char *)(uintptr_t)t->rows[i].name);
    free(t->rows);
}

bool subject_judge(const subject *s, original *o, const po_graph *after, rules_promise promise,
                   const char *rewrite) {
    const char *why = "";
    s->tally->rewrites++;
    if (po_graph_equal(s->graph, after))
        return true; /* nothing fired but what is swept or merged again */
    switch (original_judge(o, after, promise, &why)) {
    case JUDGED_EQUAL:
        s->tally->compared++;
        return true;
    case JUDGED_UNSUPPORTED:
        s->tally->unsupported++;
        return false;
    default:
        s->tally->wrong++;
        printf("%s, %s: %s\n", s->name, rewrite, why);
        fflush(stdout);
        return false;
    }
}

/* --- graphs --- */

typedef struct run {
    tally tally;
    uint64_t count, first;
    const char *only;
    bool stop;
} run;

typedef po_graph *(*maker_fn)(po_ctx *ctx, po_arena *arena, void *user);

/* The graph in a context of its own; everything on it, or all but mutants. */
static void try_graph(run *r, maker_fn make, void *user, const char *name, uint64_t seed,
                      bool mutants) {
    po_ctx ctx;
    po_guard guard;
    po_ctx_init(&ctx);
    po_guard_push(&ctx, &guard);
    if (setjmp(guard.env) != 0) {
        po_guard_unwind(&ctx, &guard);
        printf("%s: %s\n", name, ctx.error.message);
        r->tally.wrong++;
        return;
    }
    po_arena *arena = po_arena_create(&ctx);
    po_graph *g = make(&ctx, arena, user);
    if (g) {
        subject s = {&ctx, arena, g, name, seed, &r->tally};
        rewrites_try(&s);
        if (mutants)
            mutants_try(&s);
    }
    po_guard_pop(&ctx, &guard);
    po_arenas_free_since(&ctx, 0);
    if (r->stop && r->tally.wrong)
        exit(1);
}

/* A pattern as it is, and with what laws ask for taken away: values that nothing else reads,
 * weights that are constants, lengths that are known. */
typedef enum variant { AS_IT_IS, NAMED, GIVEN, OPEN, VARIANTS } variant;
static const char *const variant_names[] = {"", ", a value named", ", weights given", ", open"};

typedef struct pattern_graph {
    const char *text;
    variant variant;
    uint64_t seed;
} pattern_graph;

/* One more output: a value that was inside. */
static void name_value(po_graph *g, uint64_t draw) {
    for (uint32_t i = 0; i < g->n_nodes; i++) {
        const po_node *n = &g->nodes[(draw + i) % g->n_nodes];
        const po_value_id v = n->removed || !n->n_out ? PO_NONE : n->out[0];
        if (v == PO_NONE || g->values[v].n_outputs || g->values[v].type.kind != PO_TYPE_TENSOR)
            continue;
        po_graph_add_output(g, v);
        return;
    }
}

/* Whether it says how long something is: by how much a map is resized. */
static bool is_length(const po_graph *g, const po_value *v) {
    bool is = false;
    for (uint32_t k = 0; k < v->n_uses; k++) {
        const po_op_id op = g->nodes[v->uses[k].node].op;
        is |= (op == PO_OP_Resize || op == PO_OP_Upsample) && v->uses[k].input > 0;
    }
    return is;
}

/* A constant of numbers becomes an input. */
static void give_weights(po_graph *g, uint64_t draw) {
    for (uint32_t i = 0; i < g->n_initializers; i++) {
        const po_value_id c = g->initializers[(draw + i) % g->n_initializers];
        const po_value *v = &g->values[c];
        if (v->is_input || v->n_uses == 0 || !v->constant || is_length(g, v) ||
            po_dtype_class_of(v->constant->dtype) != PO_CLASS_FLOAT)
            continue;
        const po_type type = v->type;
        po_graph_replace_uses(g, c, po_graph_add_input(g, "given", &type));
        po_graph_sweep(g);
        return;
    }
}

/* Lengths of inputs are not told; their symbols are, and to the test what they stand for. */
static void open_dims(po_graph *g, uint64_t draw) {
    for (uint32_t i = 0; i < g->n_inputs; i++) {
        po_value *v = &g->values[g->inputs[i]];
        if (v->type.kind != PO_TYPE_TENSOR || v->constant)
            continue;
        po_dim *dims = po_arena_memdup(g->arena, v->type.dims, v->type.rank * sizeof *dims);
        for (uint32_t k = 0; k < v->type.rank; k++)
            if (dims[k].value > 0 && (draw >> k) & 1)
                dims[k] = (po_dim){
                    -1, po_arena_printf(g->arena, "axis%u_of_%lld", k, (long long)dims[k].value)};
        v->type.dims = dims;
    }
}

static po_graph *parsed(po_ctx *ctx, po_arena *arena, void *user) {
    (void)arena;
    po_graph *g = NULL;
    const pattern_graph *p = user;
    const char *text = p->text;
    if (po_graph_parse(ctx, text, &g) != PO_OK) {
        printf("%s\n%s\n", ctx->error.message, text);
        exit(2);
    }
    po_ops_resolve(g);
    const uint64_t draw = po_random_u64(p->seed, 29, p->variant);
    if (p->variant == OPEN)
        open_dims(g, draw);
    if (po_infer_graph(ctx, g, false) != PO_OK) {
        printf("%s\n%s\n", ctx->error.message, text);
        exit(2);
    }
    if (p->variant == NAMED)
        name_value(g, draw);
    if (p->variant == GIVEN) {
        give_weights(g, draw);
        if (po_infer_graph(ctx, g, true) != PO_OK) {
            po_ctx_clear(ctx);
            return NULL;
        }
    }
    return g;
}

static po_graph *region(po_ctx *ctx, po_arena *arena, void *user) {
    const char *text = test_random_region(arena, *(uint64_t *)user);
    return parsed(ctx, arena, &(pattern_graph){.text = text});
}

static po_graph *linear(po_ctx *ctx, po_arena *arena, void *user) {
    (void)arena;
    return test_random_linear(ctx, *(uint64_t *)user);
}

static po_graph *imported(po_ctx *ctx, po_arena *arena, void *user) {
    (void)arena;
    po_model *model = NULL;
    if (po_import_file(ctx, user, &model) != PO_OK || po_infer_graph(ctx, model->graph, true)) {
        po_ctx_clear(ctx);
        return NULL;
    }
    po_estimate work;
    po_roofline_graph(model->graph, &(po_rates){.flops = 1, .bytes = 1}, 1, &work);
    return work.flops > LARGEST_FLOPS ? NULL : model->graph;
}

static void one_round(run *r, const templates *t, uint64_t round) {
    char name[160];
    po_ctx ctx;
    po_ctx_init(&ctx);
    po_arena *arena = po_arena_create(&ctx);
    for (uint32_t i = 0; i < templates_count(t); i++) {
        if ((round + i) % templates_rarity(t, i) != 0 && !r->only)
            continue;
        if (r->only && !strstr(templates_name(t, i), r->only))
            continue;
        const char *text = templates_fill(t, arena, i, round);
        const variant two[2] = {AS_IT_IS, 1 + (round + i) % (VARIANTS - 1)};
        for (uint32_t k = 0; k < (templates_rarity(t, i) < LARGE ? 2 : 1); k++) {
            snprintf(name, sizeof name, "round %llu, '%s'%s", (unsigned long long)round,
                     templates_name(t, i), variant_names[two[k]]);
            try_graph(r, parsed, &(pattern_graph){text, two[k], round + i}, name, round,
                      templates_rarity(t, i) < LARGE);
        }
    }
    po_arena_free(arena);
    for (uint64_t i = 0; !r->only && i < REGIONS + LINEAR; i++) {
        bool is_region = i < REGIONS;
        uint64_t seed = is_region ? round * REGIONS + i : round * LINEAR + i - REGIONS;
        snprintf(name, sizeof name, "round %llu, %s %llu", (unsigned long long)round,
                 is_region ? "region" : "linear program", (unsigned long long)seed);
        try_graph(r, is_region ? region : linear, &seed, name, seed, true);
    }
}

static void try_path(run *r, const char *path) {
    struct stat st;
    if (stat(path, &st) != 0) {
        fprintf(stderr, "%s: cannot be read\n", path);
        exit(2);
    }
    if (!S_ISDIR(st.st_mode)) {
        size_t size = strlen(path);
        if (size > 5 && strcmp(path + size - 5, ".onnx") == 0 && st.st_size <= LARGEST_FILE)
            try_graph(r, imported, (void *)(uintptr_t)path, path, 1, true);
        return;
    }
    DIR *folder = opendir(path);
    struct dirent *e;
    while (folder && (e = readdir(folder)) != NULL) {
        char inner[4096];
        if (e->d_name[0] == '.')
            continue;
        snprintf(inner, sizeof inner, "%s/%s", path, e->d_name);
        try_path(r, inner);
    }
    if (folder)
        closedir(folder);
}

/* --- the table --- */

static int by_fired(const void *a, const void *b) {
    const rule_row *x = a, *y = b;
    return x->fired < y->fired ? -1 : x->fired > y->fired;
}

static uint32_t report(tally *t, bool whole, uint64_t least) {
    uint32_t rare = 0;
    qsort(t->rows, t->n, sizeof *t->rows, by_fired);
    for (uint32_t i = 0; i < t->n; i++) {
        bool too_rare = t->rows[i].fired < least;
        rare += too_rare;
        if (whole || too_rare || i < 5)
            printf("%10llu  %s%s\n", (unsigned long long)t->rows[i].fired, t->rows[i].name,
                   too_rare ? "  (too rare)" : "");
    }
    return rare;
}

int main(int argc, char **argv) {
    run r = {.count = 1};
    uint64_t least = 0;
    bool whole = false, every = false;
    po_ctx ctx;
    po_ctx_init(&ctx);
    po_arena *arena = po_arena_create(&ctx);
    templates *t = templates_create(arena);
    uint32_t first_open = 0;
    for (size_t k = 0; k < sizeof pattern_files / sizeof *pattern_files; k++) {
        first_open = templates_count(t); /* in the last file */
        templates_read(t, arena,
                       po_arena_printf(arena, TEST_SOURCE_DIR "/tests/rules/%s", pattern_files[k]));
    }
    rewrites_names(&r.tally);
    mutants_names(&r.tally);
    int i = 1;
    for (; i < argc && argv[i][0] == '-'; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : "";
        if (strcmp(argv[i], "--stop") == 0) {
            r.stop = true;
            continue;
        }
        if (strcmp(argv[i], "--table") == 0) {
            whole = true;
            continue;
        }
        if (strcmp(argv[i], "--every-size") == 0) {
            every = true;
            continue;
        }
        if (strcmp(argv[i], "--count") == 0)
            r.count = strtoull(value, NULL, 10);
        else if (strcmp(argv[i], "--first") == 0)
            r.first =
                strcmp(value, "now") == 0 ? (uint64_t)time(NULL) / 3600 : strtoull(value, NULL, 10);
        else if (strcmp(argv[i], "--only") == 0)
            r.only = value;
        else if (strcmp(argv[i], "--least") == 0)
            least = strtoull(value, NULL, 10);
        else
            return 2;
        i++;
    }
    if (every)
        return every_size_report(
                   t, &(every_size_options){r.only, (uint32_t)r.count, first_open, whole})
                   ? 0
                   : 1;
    if (i == argc)
        for (uint64_t k = 0; k < r.count; k++)
            one_round(&r, t, r.first + k);
    for (; i < argc; i++)
        try_path(&r, argv[i]);
    uint32_t rare = report(&r.tally, whole, least);
    printf("%u rules; rounds from %llu: %llu graphs, %llu rewrites, %llu changed and compared, "
           "%llu without a reference, %llu wrong\n",
           r.tally.n, (unsigned long long)r.first, (unsigned long long)r.tally.graphs,
           (unsigned long long)r.tally.rewrites, (unsigned long long)r.tally.compared,
           (unsigned long long)r.tally.unsupported, (unsigned long long)r.tally.wrong);
    bool bad = r.tally.wrong > 0 || rare > 0;
    tally_free(&r.tally);
    po_arena_free(arena);
    return bad ? 1 : 0;
}
