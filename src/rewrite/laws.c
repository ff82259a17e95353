/* The rows of laws.def as a table. */
#include "rewrite/apply.h"

#define EXACT(fn)       .stage = PO_LAW_OF_SIMPLIFY, .pass = (fn)
#define EXACT_LOCAL(fn) .stage = PO_LAW_OF_SIMPLIFY, .at = (fn)
#define LOCAL(fn)       .stage = PO_LAW_OF_POSTOPT, .at = (fn)
#define ALGEBRA(fn)     .stage = PO_LAW_OF_POSTOPT, .pass = (fn)
#define BOTH(fn)        .stage = PO_LAW_OF_POSTOPT, .derive = (fn)
#define MUTANT(fn)      .stage = PO_LAW_OF_MUTATE, .derive = (fn)
#define BY_ITSELF       .stage = PO_LAW_OF_SIMPLIFY
enum { RUNTIME = PO_LAW_RUNTIME, KERNELS = PO_LAW_KERNELS, GPU = PO_LAW_GPU };

const po_law po_laws[PO_LAWS] = {
#define LAW(id, words, symbols, where, kind, whom, shown, apply)                                   \
    [PO_LAW_##id] = {.name = (words),                                                              \
                     .law = (symbols),                                                             \
                     .condition = (where),                                                         \
                     .class = PO_LAW_##kind,                                                       \
                     .helps = (whom),                                                              \
                     .proof = PO_LAW_##shown,                                                      \
                     apply},
#include "rewrite/laws.def"
#undef LAW
};

const char *po_law_name(po_law_id law) {
    return po_laws[law].name;
}

typedef struct applying {
    const po_law_group *group;
    po_rewriting *state;
} applying;

void po_laws_at_nodes(po_graph *graph, const po_law_group *group, po_rewriting *state) {
    uint32_t n;
    const po_node_id *order = po_graph_order(graph, state->scratch, &n);
    for (uint32_t k = 0; k < n; k++) {
        bool fired = graph->nodes[order[k]].removed || graph->nodes[order[k]].n_out == 0;
        for (uint32_t law = group->first; law <= group->last && !fired; law++)
            fired = po_law_fired(state, (po_law_id)law,
                                 po_laws[law].at
                                     ? po_laws[law].at(state, graph, order[k])
                                     : po_law_derive_at(state, graph, (po_law_id)law, order[k]));
    }
}

static po_status apply_group(po_ctx *ctx, po_graph *graph, void *user) {
    const applying *a = user;
    if (po_laws[a->group->first].pass)
        return po_laws[a->group->first].pass(ctx, graph, a->state);
    po_laws_at_nodes(graph, a->group, a->state);
    return PO_OK;
}

po_status po_laws_apply(po_ctx *ctx, po_graph *graph, const po_law_group *group,
                        po_rewriting *state) {
    return po_graph_walk(ctx, graph, apply_group, &(applying){group, state});
}

uint32_t po_law_total(const po_law_counts *counts) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < PO_LAWS; i++)
        n += counts->fired[i];
    return n;
}
