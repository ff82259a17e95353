/* The rows of laws.def as a table. */
#include "rewrite/deriving.h"
#include "rewrite/passes.h"

#define EXACT(fn)   .stage = PO_LAW_OF_SIMPLIFY, .pass = (fn)
#define ALGEBRA(fn) .stage = PO_LAW_OF_POSTOPT, .pass = (fn)
#define MUTANT(fn)  .stage = PO_LAW_OF_MUTATE, .derive = (fn)
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

typedef struct pass_call {
    po_pass_fn fn;
    po_rewriting *state;
} pass_call;

static po_status call_pass(po_ctx *ctx, po_graph *graph, void *user) {
    const pass_call *call = user;
    return call->fn(ctx, graph, call->state);
}

po_status po_pass_walk(po_ctx *ctx, po_graph *graph, po_pass_fn pass, po_rewriting *state) {
    return po_graph_walk(ctx, graph, call_pass, &(pass_call){pass, state});
}

uint32_t po_law_total(const po_law_counts *counts) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < PO_LAWS; i++)
        n += counts->fired[i];
    return n;
}
