/* Random pairs of models with one to three open dims: what the proof says of every size must hold
 * at each size, and most of what petopt makes of a model must be proved so.
 *
 *   size_pairs [--count PAIRS] [--first SEED] [--at SIZES] [--share PERCENT] [--show]
 *
 * Two pairs in five are a model and what petopt makes of it; the others a model and one that was
 * changed somewhere, and rewritten then, half of the time. Where the proof says "every size", both
 * are evaluated modulo p at SIZES assignments of 0..9 to the open dims, or from the least that it
 * says. FIRST "now" is one that changes by the hour; it is printed, to be given again. */
#include "base/hash.h"
#include "generate.h"
#include "ir/text.h"
#include "ops/recipe/recipe.h"
#include "postopt/postopt.h"
#include "simplify/simplify.h"
#include "verify/proof/proof.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { SYMBOLS = 8, LEAST_OWN = 20, SECONDS = 20, MOST_ASSIGNMENTS = 1000 };

typedef struct tally {
    uint64_t own, own_proved, changed, changed_proved, sizes, wrong, no_graph, unchanged,
        tried_only;
    double seconds;
} tally;

typedef struct testing {
    uint64_t count, first;
    uint32_t at;
    bool show;
    tally t;
} testing;

/* One pair, in a context of its own. */
typedef struct pair {
    testing *all;
    po_ctx *ctx;
    po_arena *arena;
    uint64_t seed;
    const char *made; /* what made the second */
    po_graph *original, *candidate, *recipes;
} pair;

/* --- what petopt makes --- */

static po_postopt_options bare(void) {
    return (po_postopt_options){.hard_swish = PO_HARD_SWISH_KEEP,
                                .leftover = PO_LEFTOVER_ARITHMETIC};
}

static po_postopt_options drawn_options(lots *l, const char **name) {
    po_postopt_options o = bare();
    switch (lots_below(l, 6)) {
    case 0:
        *name = "affine";
        o.affine = true;
        break;
    case 1:
        *name = "algebra";
        o.affine = true;
        o.algebra = PO_ALGEBRA_ALL;
        break;
    case 2:
        *name = "one family";
        o.affine = lots_one_in(l, 2);
        o.algebra = 1u << lots_below(l, PO_ALGEBRAS);
        break;
    case 3:
        *name = "plain";
        o = po_postopt_plain(PO_ALGEBRA_ALL);
        break;
    case 4:
        *name = "spellings";
        o.spread_gates = o.sums = o.split_moves = o.masks = o.norms = o.activations = true;
        break;
    default:
        *name = "postopt";
        o = po_postopt_defaults();
    }
    return o;
}

static po_graph *rewritten(const pair *p, lots *l, const char **name) {
    po_graph *simple = NULL, *out = NULL;
    const po_simplify_options plain = po_simplify_defaults();
    const uint32_t kind = lots_below(l, 4);
    *name = "simplify";
    if (kind < 2 && po_simplify(p->ctx, p->original, &plain, &simple, NULL) != PO_OK)
        return NULL;
    if (kind == 0)
        return simple;
    const po_postopt_options o = drawn_options(l, name);
    if (po_postopt(p->ctx, simple ? simple : p->original, &o, &out, NULL) != PO_OK)
        out = NULL;
    po_graph_free(simple);
    return out;
}

/* --- a pair --- */

static po_graph *graph_of(po_ctx *ctx, const char *text) {
    po_graph *g = NULL;
    if (po_graph_parse(ctx, text, &g) != PO_OK)
        return NULL;
    po_ops_resolve(g);
    po_graph_sweep(g); /* what no output needs may fail where it likes */
    if (po_infer_graph(ctx, g, false) == PO_OK)
        return g;
    po_graph_free(g);
    return NULL;
}

/* False: there is none, or both are the same. */
static bool make_pair(pair *p, bool own) {
    generated *g = PO_NEW(p->arena, generated);
    lots l = {.seed = p->seed, .stream = 63};
    generate_graph(g, p->seed);
    const char *text = generated_text(g, p->arena);
    p->original = graph_of(p->ctx, text);
    if (!p->original) {
        if (p->all->show)
            printf("%s\n%s\n", p->ctx->error.message, text);
        p->all->t.no_graph++;
        return false;
    }
    const char *rewrite = "";
    po_graph *source = NULL;
    if (!own) {
        generate_change(g, p->seed);
        p->made = "changed";
        p->candidate = graph_of(p->ctx, generated_text(g, p->arena));
        if (!p->candidate && p->all->show)
            printf("changed: %s\n", p->ctx->error.message);
        /* Either may be the model that is optimised. */
        if (p->candidate && lots_one_in(&l, 2)) {
            po_graph *was = p->original;
            p->original = p->candidate;
            p->candidate = was;
        }
    }
    if (own || (p->candidate && lots_one_in(&l, 2))) {
        source = p->candidate;
        pair of = *p;
        of.original = source ? source : p->original;
        p->candidate = rewritten(&of, &l, &rewrite);
        p->made = po_arena_printf(p->arena, "%s %s", source ? "changed," : "", rewrite);
        if (p->candidate && po_infer_graph(p->ctx, p->candidate, true) != PO_OK)
            p->candidate = NULL;
        /* Recipes name constants of what was rewritten. */
        if (p->candidate && po_recipes_to_graph(p->ctx, p->candidate, &p->recipes) != PO_OK)
            p->recipes = NULL;
        if (p->recipes)
            po_ops_resolve(p->recipes);
    }
    if (!p->candidate)
        p->all->t.no_graph++;
    const bool same = p->candidate && po_graph_equal(p->original, p->candidate);
    p->all->t.unchanged += same;
    return p->candidate && !same;
}

static void show_pair(const pair *p) {
    po_text text;
    po_text_init(&text, p->arena);
    po_graph_print(&text, p->original);
    po_graph_print(&text, p->candidate);
    printf("%s\n", text.data);
}

/* --- at each size --- */

typedef struct assignment {
    const char *symbol[SYMBOLS];
    int64_t length[SYMBOLS];
    uint32_t n;
} assignment;

static po_dim assigned(void *user, po_graph *graph, po_value_id input, uint32_t axis) {
    const assignment *a = user;
    const po_dim own = graph->values[input].type.dims[axis];
    for (uint32_t i = 0; own.value < 0 && i < a->n; i++)
        if (own.symbol && strcmp(own.symbol, a->symbol[i]) == 0)
            return PO_DIM(a->length[i]);
    return own;
}

static void symbols_of(const po_graph *g, assignment *a) {
    a->n = 0;
    for (uint32_t k = 0; k < g->n_inputs; k++) {
        const po_type *t = &g->values[g->inputs[k]].type;
        for (uint32_t x = 0; x < t->rank; x++) {
            bool known = t->dims[x].value >= 0;
            for (uint32_t i = 0; i < a->n && !known; i++)
                known = strcmp(a->symbol[i], t->dims[x].symbol) == 0;
            if (!known && a->n < SYMBOLS)
                a->symbol[a->n++] = t->dims[x].symbol;
        }
    }
}

/* Whether nodes of it can never run at that size: what the runtime refuses there. */
static bool is_refused(const pair *p, assignment *a) {
    po_node_id node;
    po_graph *one = po_infer_with_dims(p->ctx, p->original, assigned, a);
    const bool refused = po_infer_check(p->ctx, one, &node) != PO_OK;
    po_ctx_clear(p->ctx);
    po_graph_free(one);
    return refused;
}

/* A missed difference of one trial is not likely. */
static po_proof_report prove_at(const pair *p, assignment *a, const po_graph *x, const po_graph *y,
                                const po_graph *recipes) {
    po_proof_report r;
    const po_proof_options options = {.seed = p->seed + 1, .cpu_seconds = SECONDS};
    po_graph *one = po_infer_with_dims(p->ctx, x, assigned, a);
    po_graph *two = po_infer_with_dims(p->ctx, y, assigned, a);
    if (po_prove(p->ctx, one, two, recipes, &options, &r) != PO_OK)
        r.proved = false;
    po_ctx_clear(p->ctx);
    po_graph_free(one);
    po_graph_free(two);
    return r;
}

/* Every assignment where there are few, else drawn ones: the smallest first. */
static void draw_lengths(assignment *a, const po_proof_report *r, uint32_t k, bool every, lots *l) {
    const uint32_t least = r->positive ? 1 : 0, many = 10 - least;
    for (uint32_t i = 0; i < a->n; i++) {
        const bool space = a->symbol[i][0] == 'H' || a->symbol[i][0] == 'W';
        a->length[i] = least + (every ? k % many : k < 3 ? k : lots_below(l, many));
        k = every ? k / many : k;
        /* Windows find nothing in small maps. */
        if (space && !every && lots_one_in(l, 2))
            a->length[i] += 10;
        if (space && r->spaced > 1)
            a->length[i] = (1 + a->length[i] % 3) * r->spaced;
    }
}

static void check_sizes(const pair *p, const po_proof_report *r) {
    assignment a;
    lots l = {.seed = p->seed, .stream = 64};
    symbols_of(p->original, &a);
    uint32_t all = 1;
    for (uint32_t i = 0; i < a.n && all <= MOST_ASSIGNMENTS; i++)
        all *= r->positive ? 9 : 10;
    const bool every = all <= p->all->at;
    for (uint32_t k = 0; k < (every ? all : p->all->at); k++) {
        draw_lengths(&a, r, k, every, &l);
        const po_proof_report at = prove_at(p, &a, p->original, p->candidate, p->recipes);
        p->all->t.sizes++;
        /* What the original itself refuses is not spoken of. */
        if (at.proved || is_refused(p, &a) ||
            !prove_at(p, &a, p->original, p->original, NULL).proved)
            continue;
        p->all->t.wrong++;
        printf("pair %llu (%s): every size, and not at", (unsigned long long)p->seed, p->made);
        for (uint32_t i = 0; i < a.n; i++)
            printf(" %s=%lld", a.symbol[i], (long long)a.length[i]);
        printf(": %s\n", at.why);
        show_pair(p);
        return;
    }
}

static void show_line(void *user, const char *line) {
    const pair *p = user;
    if (strncmp(line, "proof: ", 7) == 0)
        printf("pair %llu, %s\n", (unsigned long long)p->seed, line + 7);
}

static void judge(pair *p, bool own) {
    tally *t = &p->all->t;
    po_proof_report r;
    const po_proof_options options = {.seed = p->seed + 1, .cpu_seconds = SECONDS};
    if (p->all->show) {
        p->ctx->log = show_line;
        p->ctx->log_user = p;
    }
    if (po_prove(p->ctx, p->original, p->candidate, p->recipes, &options, &r) != PO_OK) {
        po_ctx_clear(p->ctx);
        return;
    }
    t->seconds += r.seconds;
    p->ctx->log = NULL;
    /* Not a model, at lengths that models have. */
    if (!r.proved && !prove_at(p, &(assignment){.n = 0}, p->original, p->original, NULL).proved) {
        t->no_graph++;
        return;
    }
    *(own ? &t->own : &t->changed) += 1;
    *(own ? &t->own_proved : &t->changed_proved) += r.every_size != 0;
    t->tried_only += !own && r.proved && !r.every_size;
    if (r.every_size)
        check_sizes(p, &r);
    else if (own && p->all->show) {
        printf("pair %llu (%s): not for every size: %s\n", (unsigned long long)p->seed, p->made,
               r.proved ? "" : r.why);
        show_pair(p);
    }
}

static void one_pair(testing *all, uint64_t seed) {
    po_ctx ctx;
    po_guard guard;
    po_ctx_init(&ctx);
    po_guard_push(&ctx, &guard);
    if (setjmp(guard.env) != 0) {
        po_guard_unwind(&ctx, &guard);
        printf("pair %llu: %s\n", (unsigned long long)seed, ctx.error.message);
        all->t.wrong++;
        return;
    }
    pair p = {.all = all, .ctx = &ctx, .arena = po_arena_create(&ctx), .seed = seed};
    const bool own = seed % 5 < 2;
    if (make_pair(&p, own))
        judge(&p, own);
    po_guard_pop(&ctx, &guard);
    po_arenas_free_since(&ctx, 0);
}

int main(int argc, char **argv) {
    testing all = {.count = 300, .at = 12};
    uint64_t share = 80;
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : "";
        if (strcmp(argv[i], "--show") == 0) {
            all.show = true;
            continue;
        }
        if (strcmp(argv[i], "--count") == 0)
            all.count = strtoull(value, NULL, 10);
        else if (strcmp(argv[i], "--first") == 0)
            all.first = strcmp(value, "now") == 0 ? (uint64_t)time(NULL) / 3600 * 1000
                                                  : strtoull(value, NULL, 10);
        else if (strcmp(argv[i], "--at") == 0)
            all.at = (uint32_t)strtoul(value, NULL, 10);
        else if (strcmp(argv[i], "--share") == 0)
            share = strtoull(value, NULL, 10);
        else
            return 2;
        i++;
    }
    /* Until there are so many pairs. */
    tally *t = &all.t;
    uint64_t k = 0;
    for (; t->own + t->changed < all.count && k < 4 * all.count; k++)
        one_pair(&all, all.first + k);
    printf(
        "%llu pairs from %llu (%llu without a graph, %llu the same): petopt's own %llu, of which "
        "%llu proved for every size; changed %llu, of which %llu for every size, %llu at those "
        "tried; %llu sizes evaluated, %llu wrong; %.0f s of proofs\n",
        (unsigned long long)(t->own + t->changed), (unsigned long long)all.first,
        (unsigned long long)t->no_graph, (unsigned long long)t->unchanged,
        (unsigned long long)t->own, (unsigned long long)t->own_proved,
        (unsigned long long)t->changed, (unsigned long long)t->changed_proved,
        (unsigned long long)t->tried_only, (unsigned long long)t->sizes,
        (unsigned long long)t->wrong, t->seconds);
    const bool few = t->own >= LEAST_OWN && 100 * t->own_proved < share * t->own;
    if (few)
        printf("fewer than %llu %% of petopt's own pairs are proved\n", (unsigned long long)share);
    return t->wrong > 0 || few;
}
