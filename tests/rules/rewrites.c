/* Simplify and its passes, postopt with every option alone and in every form that the pipeline
 * makes, and models raised to later opsets. */
#include "rules.h"

#include "postopt/postopt.h"
#include "rewrite/passes.h"
#include "simplify/opset.h"
#include "simplify/simplify.h"

#include <stdio.h>

/* --- what is made --- */

static const struct {
    const char *name;
    po_law_group laws; /* first PO_LAWS: all of them */
} simplify_passes[] = {
    {"simplify", {PO_LAWS, PO_LAWS, 0, 0}},
    {"simplify: constants", {PO_LAW_FOLD_NODE, PO_LAW_KNOWN_SHAPE, 0, 0}},
    {"simplify: branches", {PO_LAW_TAKE_BRANCH, PO_LAW_TAKE_BRANCH, 0, 0}},
    {"simplify: identities", {PO_LAW_DROP_IDENTITY, PO_LAW_DROP_SINGLE, 0, 0}},
    {"simplify: padding", {PO_LAW_STATE_PADS, PO_LAW_STATE_PADS, 0, 0}},
    {"simplify: duplicates", {PO_LAW_MERGE_CONSTANTS, PO_LAW_MERGE_NODES, 0, 0}},
    {"simplify: layouts", {PO_LAW_COMPOSE_TRANSPOSES, PO_LAW_MOVE_APART, 0, 0}},
};

static po_postopt_options bare(void) {
    return (po_postopt_options){.hard_swish = PO_HARD_SWISH_KEEP,
                                .leftover = PO_LEFTOVER_ARITHMETIC};
}

static po_postopt_options affine(void) {
    po_postopt_options o = bare();
    o.affine = true;
    return o;
}

static po_postopt_options affine_conv(void) {
    po_postopt_options o = affine();
    o.leftover = PO_LEFTOVER_CONV;
    return o;
}

static po_postopt_options algebra_alone(void) {
    po_postopt_options o = affine();
    o.algebra = PO_ALGEBRA_ALL;
    return o;
}

static po_postopt_options activations(void) {
    po_postopt_options o = bare();
    o.activations = true;
    return o;
}

static po_postopt_options norms(void) {
    po_postopt_options o = bare();
    o.norms = true;
    return o;
}

static po_postopt_options gated(void) {
    po_postopt_options o = bare();
    o.hard_swish = PO_HARD_SWISH_GATED;
    return o;
}

static po_postopt_options gated_node(void) {
    po_postopt_options o = bare();
    o.hard_swish = PO_HARD_SWISH_NODE;
    return o;
}

static po_postopt_options spellings(void) {
    po_postopt_options o = bare();
    o.spread_gates = o.sums = o.split_moves = o.masks = true;
    o.norms = true; /* sums before norms */
    return o;
}

static po_postopt_options half(void) {
    po_postopt_options o = bare();
    o.half = true;
    return o;
}

static po_postopt_options tiny(void) {
    po_postopt_options o = bare();
    o.tiny = true;
    return o;
}

static po_postopt_options spectra(void) {
    po_postopt_options o = bare();
    o.spectra = true;
    return o;
}

static po_postopt_options defaults_node(void) {
    po_postopt_options o = po_postopt_defaults();
    o.hard_swish = PO_HARD_SWISH_NODE;
    o.leftover = PO_LEFTOVER_ARITHMETIC;
    o.spread_gates = o.sums = o.split_moves = false;
    return o;
}

static po_postopt_options without_differences(void) {
    po_postopt_options o = po_postopt_defaults();
    o.algebra &= ~(uint32_t)PO_ALGEBRA_DIFFERENCES;
    return o;
}

static po_postopt_options plain_all(void) {
    return po_postopt_plain(PO_ALGEBRA_ALL);
}

/* Moves alone keep every bit. */
static const struct {
    const char *name;
    po_postopt_options (*options)(void);
    rules_promise promise;
} postopt_forms[] = {
    {"postopt: moves", bare, PROMISE_BITS},
    {"postopt: affine", affine, PROMISE_REAL},
    {"postopt: affine as convolutions", affine_conv, PROMISE_REAL},
    {"postopt: algebra", algebra_alone, PROMISE_REAL},
    {"postopt: activations", activations, PROMISE_FORM},
    {"postopt: norms", norms, PROMISE_FORM},
    {"postopt: gates", gated, PROMISE_FORM},
    {"postopt: HardSwish nodes", gated_node, PROMISE_FORM},
    {"postopt: spellings", spellings, PROMISE_FORM},
    {"postopt: half precision", half, PROMISE_REAL},
    {"postopt: tiny weights", tiny, PROMISE_REAL},
    {"postopt: spectra", spectra, PROMISE_REAL},
    {"postopt", po_postopt_defaults, PROMISE_FORM},
    {"postopt: HardSwish nodes, leftovers as arithmetic", defaults_node, PROMISE_FORM},
    {"postopt: upsampled maps in phases", without_differences, PROMISE_FORM},
    {"postopt: plain", plain_all, PROMISE_FORM},
};

static const int64_t raised_to[] = {13, 17, 18, 21, 24};

void rewrites_names(tally *t) {
    for (uint32_t i = 0; i < PO_LAWS; i++)
        if (po_laws[i].stage != PO_LAW_OF_MUTATE)
            tally_add(t, po_laws[i].stage == PO_LAW_OF_SIMPLIFY ? "simplify" : "postopt",
                      po_laws[i].name, 0);
    for (uint32_t i = 0; i < po_raise_rules(); i++)
        if (po_raise_rule_name(i))
            tally_add(t, "opset", po_raise_rule_name(i), 0);
}

/* --- trying --- */

/* What it makes must be a graph; only raising may refuse one (PO_BAD_USE). */
static bool made(const subject *s, po_status status, const po_graph *out, const char *rewrite) {
    if (status == PO_BAD_USE) {
        po_ctx_clear(s->ctx);
        return false;
    }
    bool whole = status == PO_OK;
    if (whole && po_graph_check(s->ctx, out) == PO_OK)
        return true;
    printf("%s, %s: %s: %s\n", s->name, rewrite,
           whole ? "the graph is broken" : "nothing could be made", s->ctx->error.message);
    po_ctx_clear(s->ctx);
    s->tally->wrong++;
    return false;
}

/* Nodes that draw lots: no law may drop, join or evaluate one. */
static uint32_t draws_of(const po_graph *g) {
    uint32_t n = 0;
    for (po_node_id i = 0; i < g->n_nodes; i++) {
        const po_node *node = &g->nodes[i];
        if (node->removed || !po_op_has(node->op, PO_OPF_RANDOM))
            continue;
        const po_tensor *training =
            node->op == PO_OP_Dropout && node->n_in > 2 ? po_graph_constant(g, node->in[2]) : NULL;
        const bool tests = po_op_version(g, node) < 7
                               ? po_node_int(node, "is_test", 0) != 0
                               : node->n_in < 3 || (training && po_all_equal(training, 0));
        n += node->op != PO_OP_Dropout || !tests;
    }
    return n;
}

/* By the reference; where it does not take the graph, by the lots that are drawn. */
static bool judge(const subject *s, original *o, const po_graph *after, rules_promise promise,
                  const char *rewrite) {
    if (o)
        return subject_judge(s, o, after, promise, rewrite);
    po_graph *before = po_graph_clone(s->ctx, s->graph);
    po_graph_sweep(before);
    const uint32_t were = draws_of(before), are = draws_of(after);
    po_graph_free(before);
    if (were == are)
        return true;
    printf("%s, %s: %u nodes draw lots and %u did\n", s->name, rewrite, are, were);
    s->tally->wrong++;
    return false;
}

/* The laws of a stage that fired. */
static void count_fired(const subject *s, const char *stage, const po_law_counts *counts) {
    for (uint32_t i = 0; i < PO_LAWS; i++)
        if (counts->fired[i])
            tally_add(s->tally, stage, po_laws[i].name, counts->fired[i]);
}

static void try_simplify(const subject *s, original *o, size_t which) {
    po_simplify_options options = po_simplify_defaults();
    po_law_counts counts = {0};
    po_graph *out = NULL;
    po_status status;
    const po_law_group *laws = &simplify_passes[which].laws;
    if (laws->first < PO_LAWS) {
        po_arena *scratch = po_arena_create(s->ctx);
        po_rewriting state = {
            .ctx = s->ctx, .counts = &counts, .scratch = scratch, .growth = options.growth};
        out = po_graph_clone(s->ctx, s->graph);
        status = po_infer_graph(s->ctx, out, true);
        if (status == PO_OK)
            status = po_laws_apply(s->ctx, out, laws, &state);
        po_graph_sweep(out);
        po_arena_free(scratch);
    } else {
        status = po_simplify(s->ctx, s->graph, &options, &out, &counts);
    }
    /* Every bit; and what was folded says how it is made of what was stored, each step rounded. */
    const char *name = simplify_passes[which].name;
    if (made(s, status, out, name) && judge(s, o, out, PROMISE_BITS, name) &&
        judge(s, o, out, PROMISE_FORM, name))
        count_fired(s, "simplify", &counts);
    po_graph_free(out);
}

static bool has_bodies(const po_graph *graph) {
    for (po_node_id i = 0; i < graph->n_nodes; i++)
        if (!graph->nodes[i].removed && po_op_has(graph->nodes[i].op, PO_OPF_CONTROL))
            return true;
    return false;
}

static void try_postopt(const subject *s, original *o, const po_graph *from, const char *name,
                        const po_postopt_options *options, rules_promise promise) {
    po_law_counts counts = {0};
    po_graph *out = NULL;
    /* Weights that are derived in bodies are compared as they are stored. */
    if (promise == PROMISE_REAL && has_bodies(from))
        promise = PROMISE_FORM;
    po_status status = po_postopt(s->ctx, from, options, &out, &counts);
    if (made(s, status, out, name) && judge(s, o, out, promise, name))
        count_fired(s, "postopt", &counts);
    po_graph_free(out);
}

static void try_raise(const subject *s, original *o, int64_t opset) {
    if (!s->graph->model || po_model_opset(s->graph->model, "") >= opset)
        return;
    uint32_t *fired = PO_NEW_N(s->arena, uint32_t, po_raise_rules());
    po_graph *out = NULL;
    const char *name = po_arena_printf(s->arena, "opset %lld", (long long)opset);
    po_status status = po_raise_opset(s->ctx, s->graph, opset, &out, fired);
    if (made(s, status, out, name) && judge(s, o, out, PROMISE_BITS, name))
        for (uint32_t i = 0; i < po_raise_rules(); i++)
            if (po_raise_rule_name(i))
                tally_add(s->tally, "opset", po_raise_rule_name(i), fired[i]);
    if (status == PO_OK)
        po_graph_free(out);
}

void rewrites_try(const subject *s) {
    original *o = original_of(s->ctx, s->arena, s->graph, s->seed);
    s->tally->unsupported += !o;
    s->tally->graphs += o != NULL;
    for (size_t i = 0; i < sizeof simplify_passes / sizeof *simplify_passes; i++)
        try_simplify(s, o, i);
    for (size_t i = 0; i < sizeof postopt_forms / sizeof *postopt_forms; i++) {
        po_postopt_options options = postopt_forms[i].options();
        try_postopt(s, o, s->graph, postopt_forms[i].name, &options, postopt_forms[i].promise);
    }
    for (uint32_t bit = 1; bit & PO_ALGEBRA_ALL; bit <<= 1) {
        po_postopt_options options = bare();
        options.algebra = bit;
        try_postopt(s, o, s->graph, po_arena_printf(s->arena, "postopt: algebra 0x%x alone", bit),
                    &options, PROMISE_REAL);
    }
    po_simplify_options options = po_simplify_defaults();
    po_postopt_options forms = po_postopt_defaults();
    po_graph *simple = NULL;
    if (po_simplify(s->ctx, s->graph, &options, &simple, NULL) == PO_OK &&
        po_infer_graph(s->ctx, simple, true) == PO_OK) {
        /* Folding rounds as the model's types do: what is compared with is simple, too. */
        original *folded = original_of(s->ctx, s->arena, simple, s->seed);
        if (folded)
            try_postopt(s, folded, simple, "simplify and postopt", &forms, PROMISE_FORM);
    }
    po_ctx_clear(s->ctx);
    po_graph_free(simple);
    for (size_t i = 0; i < sizeof raised_to / sizeof *raised_to; i++)
        try_raise(s, o, raised_to[i]);
}
