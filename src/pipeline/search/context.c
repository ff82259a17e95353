/* A context has up to six element-wise nodes before the occurrence and six behind it. Where the
 * runtime would hold a value at the border in blocks of channels, a depthwise 1x1 convolution makes
 * it do so here. */
#include "pipeline/search/context.h"

#include "ops/conv_view.h"
#include "ops/rewrite.h"

#include <stdlib.h>

enum { MOST_AROUND = 6, MOST_PROBED = 4096, BLOCK = 16 };

typedef struct around {
    po_ctx *ctx;
    po_arena *arena;
    const po_graph *model;
    bool *taken; /* by node */
    po_node_id *nodes;
    uint32_t n, cap;
} around;

static void take(around *a, po_node_id id) {
    if (a->taken[id])
        return;
    a->taken[id] = true;
    PO_PUSH(a->arena, a->nodes, a->n, a->cap, id);
}

static bool is_f32(const po_graph *g, po_value_id v) {
    const po_type *type = &g->values[v].type;
    return type->kind == PO_TYPE_TENSOR && type->dtype == PO_F32 && po_type_static(type);
}

static bool elementwise(const po_graph *g, const po_node *node) {
    if (node->removed || !po_op_has(node->op, PO_OPF_ELEMENTWISE) || node->n_out != 1 ||
        !is_f32(g, node->out[0]))
        return false;
    for (uint32_t k = 0; k < node->n_in; k++)
        if (node->in[k] != PO_NONE && !po_graph_constant(g, node->in[k]) && !is_f32(g, node->in[k]))
            return false;
    return true;
}

/* What is there before an input. */
static void look_back(around *a, po_value_id v, uint32_t *left) {
    po_node_id id = a->model->values[v].producer;
    if (id == PO_NONE || a->taken[id] || *left == 0 || !elementwise(a->model, &a->model->nodes[id]))
        return;
    --*left;
    take(a, id);
    const po_node *node = &a->model->nodes[id];
    for (uint32_t k = 0; k < node->n_in; k++)
        if (node->in[k] != PO_NONE)
            look_back(a, node->in[k], left);
}

/* Elementwise readers of an output that need nothing from elsewhere. */
static void look_ahead(around *a, po_value_id v, uint32_t *left) {
    const po_value *value = &a->model->values[v];
    for (uint32_t u = 0; u < value->n_uses; u++) {
        po_node_id id = value->uses[u].node;
        const po_node *node = &a->model->nodes[id];
        if (a->taken[id] || *left == 0 || !elementwise(a->model, node))
            continue;
        bool inside = true;
        for (uint32_t k = 0; k < node->n_in; k++) {
            if (node->in[k] == PO_NONE || po_graph_constant(a->model, node->in[k]))
                continue;
            po_node_id from = a->model->values[node->in[k]].producer;
            inside &= from != PO_NONE && a->taken[from];
        }
        if (!inside)
            continue;
        --*left;
        take(a, id);
        look_ahead(a, node->out[0], left);
    }
}

/* --- probes --- */

static bool blocked(const po_node *node) {
    return node && (po_conv_is(node) || node->op == PO_OP_MaxPool ||
                    node->op == PO_OP_AveragePool || node->op == PO_OP_GlobalAveragePool);
}

/* Whether the runtime holds the value in blocks on the other side of the border. */
static bool blocked_before(const po_graph *g, po_value_id v) {
    const po_node *node = po_graph_producer(g, v);
    for (int depth = 0; node && depth < 4; depth++) {
        if (blocked(node))
            return true;
        if (!po_op_has(node->op, PO_OPF_ELEMENTWISE) && node->op != PO_OP_Concat)
            return false;
        node = node->in[0] == PO_NONE ? NULL : po_graph_producer(g, node->in[0]);
    }
    return false;
}

static bool blocked_after(const around *a, po_value_id v) {
    const po_value *value = &a->model->values[v];
    for (uint32_t u = 0; u < value->n_uses; u++) {
        po_node_id id = value->uses[u].node;
        if (!a->taken[id] && blocked(&a->model->nodes[id]))
            return true;
    }
    return false;
}

static bool can_be_probed(const po_graph *g, po_value_id v) {
    const po_type *type = &g->values[v].type;
    return is_f32(g, v) && type->rank == 4 && type->dims[1].value % BLOCK == 0 &&
           type->dims[1].value <= MOST_PROBED;
}

/* A depthwise 1x1 convolution of the value. */
static po_value_id probe(po_graph *g, po_value_id v) {
    const po_type type = g->values[v].type;
    int64_t c = type.dims[1].value;
    double *ones = PO_NEW_N(g->arena, double, c);
    for (int64_t i = 0; i < c; i++)
        ones[i] = 0.75;
    po_value_id w = po_add_floats(g, NULL, PO_F32, 4, (int64_t[]){c, 1, 1, 1}, ones);
    const po_conv tap = po_conv_of_one_tap(PO_F32, 2, c, c, c);
    return po_add_conv(g, PO_NONE, v, w, PO_NONE, &tap, &type);
}

/* Every reader of an input reads the probe of it instead. */
static void probe_input(po_graph *g, po_value_id v) {
    uint32_t n = g->values[v].n_uses;
    po_use *uses = po_arena_memdup(g->arena, g->values[v].uses, n * sizeof *uses);
    po_value_id out = probe(g, v);
    for (uint32_t u = 0; u < n; u++)
        if (uses[u].input != PO_USE_CAPTURE)
            po_graph_set_input(g, uses[u].node, uses[u].input, out);
}

static void probe_output(po_graph *g, uint32_t i) {
    po_value_id v = g->outputs[i];
    g->outputs[i] = probe(g, v);
    g->values[v].n_outputs--;
    g->values[g->outputs[i]].n_outputs++;
}

/* --- a context --- */

static int by_rank(const void *a, const void *b) {
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

/* Puts the taken nodes into execution order. */
static void sort_nodes(around *a) {
    uint32_t n_order;
    const po_node_id *order = po_graph_order(a->model, a->arena, &n_order);
    uint32_t *rank = PO_NEW_N(a->arena, uint32_t, a->model->n_nodes);
    for (uint32_t i = 0; i < n_order; i++)
        rank[order[i]] = i;
    for (uint32_t i = 0; i < a->n; i++)
        a->nodes[i] = rank[a->nodes[i]];
    qsort(a->nodes, a->n, sizeof *a->nodes, by_rank);
    for (uint32_t i = 0; i < a->n; i++)
        a->nodes[i] = order[a->nodes[i]];
}

/* The occurrence in the numbers of the extract. */
static po_occurrence move_occurrence(po_arena *arena, const around *a, const po_extract *made,
                                     const po_subprogram *sub, const po_occurrence *at) {
    po_value_id *in = PO_NEW_N(arena, po_value_id, sub->graph->n_inputs);
    po_value_id *out = PO_NEW_N(arena, po_value_id, sub->graph->n_outputs);
    po_node_id *nodes = PO_NEW_N(arena, po_node_id, at->n_nodes);
    for (uint32_t i = 0; i < sub->graph->n_inputs; i++)
        in[i] = made->map[at->in[i]];
    for (uint32_t i = 0; i < sub->graph->n_outputs; i++)
        out[i] = made->map[at->out[i]];
    uint32_t n = 0;
    for (uint32_t i = 0; i < a->n; i++)
        for (uint32_t k = 0; k < at->n_nodes; k++)
            if (at->nodes[k] == a->nodes[i])
                nodes[n++] = i;
    return (po_occurrence){in, out, nodes, n};
}

static void find_probes(po_arena *arena, const around *a, const po_extract *made,
                        po_context *context) {
    const po_graph *g = made->graph;
    context->probe_in = PO_NEW_N(arena, bool, g->n_inputs);
    context->probe_out = PO_NEW_N(arena, bool, g->n_outputs);
    for (uint32_t i = 0; i < g->n_inputs; i++)
        context->probe_in[i] =
            can_be_probed(g, g->inputs[i]) && blocked_before(a->model, made->at.in[i]);
    for (uint32_t i = 0; i < g->n_outputs; i++)
        context->probe_out[i] =
            can_be_probed(g, g->outputs[i]) && blocked_after(a, made->at.out[i]);
}

po_status po_context_of(po_ctx *ctx, po_arena *arena, const po_graph *model,
                        const po_subprogram *sub, const po_occurrence *at, po_context *context) {
    po_arena *scratch = po_arena_create(ctx);
    around a = {.ctx = ctx, .arena = scratch, .model = model};
    a.taken = PO_NEW_N(scratch, bool, model->n_nodes);
    for (uint32_t i = 0; i < at->n_nodes; i++)
        take(&a, at->nodes[i]);
    uint32_t left = MOST_AROUND;
    for (uint32_t i = 0; i < sub->n_activations; i++)
        look_back(&a, at->in[i], &left);
    left = MOST_AROUND;
    for (uint32_t i = 0; i < sub->graph->n_outputs; i++)
        look_ahead(&a, at->out[i], &left);
    sort_nodes(&a);
    po_extract made;
    PO_TRY(po_split_extract(ctx, scratch, model, a.nodes, a.n, false, &made));
    context->at = move_occurrence(arena, &a, &made, sub, at);
    find_probes(arena, &a, &made, context);
    context->graph = made.graph;
    po_arena_free(scratch);
    return po_infer_graph(ctx, context->graph, false);
}

po_status po_context_variant(po_ctx *ctx, const po_context *context, const po_subprogram *sub,
                             const po_graph *mutant, const po_postopt_options *options,
                             po_graph **with, po_graph **form) {
    const po_graph *g = context->graph;
    *with = NULL;
    if (mutant) {
        *with = po_graph_clone(ctx, g);
        PO_TRY(po_split_pretend(ctx, *with, sub, &context->at, mutant));
        po_graph_sweep(*with);
        g = *with;
    }
    po_graph *out;
    PO_TRY(po_postopt(ctx, g, options, &out, NULL));
    PO_TRY(po_infer_graph(ctx, out, false));
    /* Only now: folding would take them for affine maps. */
    for (uint32_t i = 0; i < out->n_inputs; i++)
        if (context->probe_in[i])
            probe_input(out, out->inputs[i]);
    for (uint32_t i = 0; i < out->n_outputs; i++)
        if (context->probe_out[i])
            probe_output(out, i);
    *form = out;
    return po_infer_graph(ctx, out, false);
}
