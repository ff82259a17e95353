/* The laws as mutants of a subprogram: those that are written so, at every node; then, where asked,
 * those in place on a clone, and all of them on the best of what others made. */
#include "cost/machine.h"
#include "cost/roofline.h"
#include "mutate/mutate.h"
#include "rewrite/apply.h"

#include <math.h>

enum { DEFAULT_ROUNDS = 2, DEFAULT_PARENTS = 6, DEFAULT_TRIED = 512, DEFAULT_KEEP = 24 };

static po_deriving deriving_of(po_ctx *ctx, po_arena *arena, const po_subprogram *sub,
                               po_mutants *mutants, uint64_t *count) {
    return (po_deriving){.ctx = ctx,
                         .arena = arena,
                         .sub = sub,
                         .from = sub->graph,
                         .weight = po_weights_of(sub->graph, arena, sub->n_activations),
                         .mutants = mutants,
                         .derived = count};
}

po_status po_derive(po_ctx *ctx, po_arena *arena, const po_subprogram *sub, unsigned helps,
                    po_mutants *mutants, po_mutate_counts *counts) {
    if (po_model_opset(sub->graph->model, "") < PO_DERIVED_SINCE)
        return PO_OK;
    po_deriving d = deriving_of(ctx, arena, sub, mutants, &counts->derived);
    for (uint32_t i = 0; i < PO_LAWS; i++) {
        d.name = po_laws[i].name;
        if (po_laws[i].derive && (po_laws[i].helps & helps))
            PO_TRY(po_law_mutants(&d, (po_law_id)i, NULL));
    }
    return PO_OK;
}

/* --- further: laws in place on clones, laws on what laws made --- */

typedef struct composing {
    po_ctx *ctx;
    const po_subprogram *sub;
    const po_derive_options *options;
    po_mutants *mutants;
    po_mutate_counts *counts;
    uint32_t tried, kept;
} composing;

/* Of what runs each time; weights are made once. */
static double seconds_of(const po_graph *g, uint32_t n_activations) {
    const po_rates rates = {.flops = po_numbers.flops, .bytes = po_numbers.bytes};
    po_estimate e = {0};
    po_arena *scratch = po_arena_child(g->arena);
    const bool *weight = po_weights_of(g, scratch, n_activations);
    for (po_node_id i = 0; i < g->n_nodes; i++) {
        const po_node *n = &g->nodes[i];
        if (n->removed || n->n_out == 0 || n->out[0] == PO_NONE || weight[n->out[0]])
            continue;
        po_roofline_add(g, n, &rates, 1, &e);
        e.seconds += po_numbers.start;
    }
    po_arena_free(scratch);
    return e.seconds;
}

/* Those of postopt that are algebra: activations, norms and spellings look for what no subprogram
 * holds, and which weights are tiny is not known of made-up ones. */
static bool lifts(uint32_t law) {
    return law >= PO_LAW_CHANNELS && law <= PO_LAW_TILES;
}

static bool spent(const composing *c) {
    return c->tried >= c->options->tried || c->kept >= c->options->keep;
}

/* Every law on one graph, into `found`. */
static po_status laws_on(composing *c, po_arena *arena, const po_subprogram *sub, bool derived,
                         po_mutants *found) {
    uint64_t made = 0;
    po_lifted lifted;
    const bool can_lift = po_lift(c->ctx, arena, sub, &lifted);
    po_deriving d = deriving_of(c->ctx, arena, sub, found, &made);
    for (uint32_t i = 0; i < PO_LAWS && c->tried + made < c->options->tried; i++) {
        d.name = po_laws[i].name;
        const bool helps = (po_laws[i].helps & c->options->helps) != 0;
        if (po_laws[i].derive ? derived && helps : can_lift && lifts(i))
            PO_TRY(po_law_mutants(&d, (po_law_id)i, &lifted));
    }
    c->tried += (uint32_t)made;
    return PO_OK;
}

/* Keeps those of the found that take less time than what they were made of. */
static void keep(composing *c, const char *parent, const po_mutants *found, double limit,
                 uint64_t *count) {
    for (uint32_t i = 0; i < found->n; i++) {
        const po_mutant *m = &found->mutants[i];
        if (c->kept >= c->options->keep || seconds_of(m->graph, c->sub->n_activations) >= limit) {
            c->counts->left_out++;
            continue;
        }
        const char *name =
            parent ? po_arena_printf(c->mutants->arena, "%s, then %s", parent, m->name) : m->name;
        if (po_mutants_add(c->mutants, name, po_graph_clone(c->ctx, m->graph))) {
            c->kept++;
            (*count)++;
        }
    }
}

static po_status laws_on_mutant(composing *c, uint32_t parent) {
    po_arena *arena = po_arena_create(c->ctx);
    const po_mutant m = c->mutants->mutants[parent];
    const po_subprogram sub = {.graph = m.graph, .n_activations = c->sub->n_activations};
    po_mutants found;
    po_mutants_init(&found, arena);
    po_status status = laws_on(c, arena, &sub, true, &found);
    if (status == PO_OK)
        keep(c, m.name, &found, seconds_of(m.graph, sub.n_activations), &c->counts->composed);
    po_arena_free(arena);
    return status;
}

/* The best by estimate of those from `first` on that were no parent yet; PO_NONE: none. */
static uint32_t best_of(const composing *c, uint32_t first, uint32_t end, const bool *was) {
    uint32_t best = PO_NONE;
    double least = 0;
    for (uint32_t i = first; i < end; i++) {
        double s =
            was[i - first] ? 0 : seconds_of(c->mutants->mutants[i].graph, c->sub->n_activations);
        if (!was[i - first] && (best == PO_NONE || s < least)) {
            best = i;
            least = s;
        }
    }
    return best;
}

static po_status round_of(composing *c, po_arena *arena, uint32_t first) {
    const uint32_t end = c->mutants->n;
    bool *was = PO_NEW_N(arena, bool, end - first);
    for (uint32_t k = 0; k < c->options->parents && !spent(c); k++) {
        uint32_t parent = best_of(c, first, end, was);
        if (parent == PO_NONE)
            break;
        was[parent - first] = true;
        PO_TRY(laws_on_mutant(c, parent));
    }
    return PO_OK;
}

po_status po_derive_further(po_ctx *ctx, po_arena *arena, const po_subprogram *sub,
                            const po_derive_options *options, po_mutants *mutants,
                            po_mutate_counts *counts) {
    const po_derive_options o = {.rounds = options->rounds ? options->rounds : DEFAULT_ROUNDS,
                                 .parents = options->parents ? options->parents : DEFAULT_PARENTS,
                                 .tried = options->tried ? options->tried : DEFAULT_TRIED,
                                 .keep = options->keep ? options->keep : DEFAULT_KEEP,
                                 .helps = options->helps ? options->helps : PO_LAW_ANY};
    composing c = {ctx, sub, &o, mutants, counts, 0, 0};
    if (po_model_opset(sub->graph->model, "") < PO_DERIVED_SINCE)
        return PO_OK;
    po_arena *scratch = po_arena_create(ctx);
    po_mutants found;
    po_mutants_init(&found, scratch);
    po_status status = laws_on(&c, scratch, sub, false, &found);
    if (status == PO_OK)
        keep(&c, NULL, &found, INFINITY, &counts->lifted);
    po_arena_free(scratch);
    for (uint32_t round = 1, first = 0; status == PO_OK && round < o.rounds; round++) {
        uint32_t end = mutants->n;
        status = round_of(&c, arena, first);
        first = end;
    }
    counts->tried += c.tried;
    return status;
}
