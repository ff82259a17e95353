/* Mutants of the linear parts of a graph: every derivation, corrected where seams are left open,
 * and put back into the graph. */
#include "rules.h"

#include "correct/correct.h"
#include "mutate/mutate.h"
#include "ops/conv_view.h"
#include "rewrite/laws.h"
#include "split/split.h"

#include <stdio.h>

enum { MOST_SUBPROGRAMS = 3, MOST_PUT_BACK = 6 };
/* Agreement of a mutant with what it is of costs as much as the walk over all its positions. */
enum { MOST_CORRECTED = 6 };

void mutants_names(tally *t) {
    for (uint32_t i = 0; i < PO_LAWS; i++)
        if (po_laws[i].derive)
            tally_add(t, "derivation", po_laws[i].name, 0);
    for (uint32_t i = 0; i < po_corrections(); i++)
        tally_add(t, "correction", po_correction_name(i), 0);
}

static void count_derivation(const subject *s, const char *mutant) {
    for (uint32_t i = 0; i < PO_LAWS; i++) {
        const char *name = po_laws[i].name;
        size_t size = strlen(name);
        if (po_laws[i].derive && strncmp(mutant, name, size) == 0 &&
            (mutant[size] == ':' || !mutant[size]))
            tally_add(s->tally, "derivation", name, 1);
    }
}

static void count_correction(const subject *s, const char *mutant) {
    const char *comma = strrchr(mutant, ',');
    for (uint32_t i = 0; comma && i < po_corrections(); i++)
        if (strcmp(comma + 2, po_correction_name(i)) == 0)
            tally_add(s->tally, "correction", po_correction_name(i), 1);
}

/* In the graph, at all its places. */
static void put_back(const subject *s, original *whole, const po_subprogram *sub,
                     const po_mutant *m) {
    po_graph *g = po_graph_clone(s->ctx, s->graph);
    po_status status = PO_OK;
    for (uint32_t i = 0; i < sub->n_at && status == PO_OK; i++)
        status = po_split_replace(s->ctx, g, sub, &sub->at[i], m->graph);
    if (status == PO_OK) {
        po_graph_sweep(g);
        subject_judge(s, whole, g, PROMISE_REAL,
                      po_arena_printf(s->arena, "%s, put back", m->name));
    }
    po_ctx_clear(s->ctx);
    po_graph_free(g);
}

/* The only node, where it is a convolution. */
static bool one_conv(const po_graph *g, po_conv *c) {
    po_node_id conv = PO_NONE;
    for (po_node_id i = 0; i < g->n_nodes; i++) {
        if (g->nodes[i].removed)
            continue;
        if (conv != PO_NONE)
            return false;
        conv = i;
    }
    return conv != PO_NONE && po_conv_view(g, conv, c) && po_conv_fits(c);
}

/* What is left open of one convolution is wrong at its seams alone: where windows lie across them.
 * The corrector would mend any other mistake too. */
static bool seams_alone(const subject *s, const po_mutant *m, double share) {
    po_conv c;
    unsigned axis;
    long long pieces;
    char word[16];
    const char *colon = strchr(m->name, ':');
    if (!colon || !one_conv(s->graph, &c) ||
        sscanf(colon, ": %lld %15s axis %u, seams open", &pieces, word, &axis) != 3 || axis >= c.n)
        return true;
    const int64_t span = c.dilation[axis] * (c.kernel[axis] - 1) + 1, step = c.stride[axis];
    const double across = (double)((pieces - 1) * ((span - 1 + step - 1) / step));
    const double all = (double)(c.to[axis] * (strcmp(word, "along") == 0 ? pieces : 1));
    if (share >= 1 - across / all - 1e-9)
        return true;
    printf("%s, %s: right at %g of the positions, and %g of %g rows lie across seams\n", s->name,
           m->name, share, across, all);
    s->tally->wrong++;
    return false;
}

static void try_corrections(const subject *s, original *o, const po_subprogram *sub,
                            const po_mutant *m) {
    const po_program *p, *q;
    po_agreement agreement = {0};
    po_agree_options options = {.seed = s->seed};
    po_mutants corrected;
    po_arena *scratch = po_arena_child(s->arena);
    po_mutants_init(&corrected, scratch);
    if (po_program_of(s->ctx, scratch, sub->graph, &p) == PO_OK &&
        po_program_of(s->ctx, scratch, m->graph, &q) == PO_OK &&
        po_agree(s->ctx, scratch, p, q, &options, &agreement) == PO_OK &&
        seams_alone(s, m, agreement.share) &&
        po_correct(s->ctx, scratch, sub, m, &agreement, &corrected) == PO_OK)
        for (uint32_t i = 0; i < corrected.n; i++)
            if (subject_judge(s, o, corrected.mutants[i].graph, PROMISE_REAL,
                              corrected.mutants[i].name))
                count_correction(s, corrected.mutants[i].name);
    po_ctx_clear(s->ctx);
    po_arena_free(scratch);
}

static void try_subprogram(const subject *s, original *whole, const po_subprogram *sub) {
    po_mutants mutants;
    po_mutate_counts counts = {0};
    subject part = *s;
    part.arena = po_arena_child(s->arena);
    part.graph = sub->graph;
    original *o = original_of(part.ctx, part.arena, sub->graph, s->seed);
    po_mutants_init(&mutants, part.arena);
    if (!o || po_derive(s->ctx, part.arena, sub, PO_LAW_ANY, &mutants, &counts) != PO_OK) {
        po_ctx_clear(s->ctx);
        po_arena_free(part.arena);
        return;
    }
    uint32_t put = 0, open = 0;
    for (uint32_t i = 0; i < mutants.n; i++) {
        const po_mutant *m = &mutants.mutants[i];
        if (strstr(m->name, "open")) {
            count_derivation(s, m->name);
            if (open++ < MOST_CORRECTED)
                try_corrections(&part, o, sub, m);
            continue;
        }
        if (!subject_judge(&part, o, m->graph, PROMISE_REAL, m->name))
            continue;
        count_derivation(s, m->name);
        if (put++ < MOST_PUT_BACK)
            put_back(s, whole, sub, m);
    }
    po_arena_free(part.arena);
}

void mutants_try(const subject *s) {
    po_split split;
    po_split_options options = {0};
    po_arena *arena = po_arena_child(s->arena);
    original *o = original_of(s->ctx, arena, s->graph, s->seed);
    if (o && po_split_model(s->ctx, arena, s->graph, &options, &split) == PO_OK)
        for (uint32_t i = 0; i < split.n && i < MOST_SUBPROGRAMS; i++)
            try_subprogram(s, o, &split.subs[i]);
    po_ctx_clear(s->ctx);
    po_arena_free(arena);
}
