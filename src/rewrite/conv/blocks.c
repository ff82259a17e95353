/* Channels padded with zeros to whole blocks. The runtime pools, gates and sums in its blocked
 * layout only where the channels fill their blocks of 16; otherwise it turns the map over and back
 * around each such operator. Values that share their channels (through activations, pools, gates,
 * sums, depthwise convolutions) form a class; all convolutions that make or read one get zeros in
 * their weights for the channels added. What the added channels hold does not matter as long as it
 * is finite: the weights that read them are zero. */
#include "base/groups.h"
#include "ops/conv_view.h"
#include "ops/recipe/recipe.h"
#include "rewrite/conv/conv.h"
#include "rewrite/passes.h"
#include "rewrite/spelling/match.h"

enum { RANK = 4, STEP = 4, LEAST = 2 };

/* Classes as a forest over the values. */
typedef struct classes {
    po_graph *graph;
    po_arena *arena;
    po_value_id *up; /* PO_NONE: not a map whose channels are known */
    bool *blocked, *wanted;
    int64_t *channels;
} classes;

static bool is_map(const classes *c, po_value_id v) {
    return v != PO_NONE && c->up[v] != PO_NONE;
}

static void block(classes *c, po_value_id v) {
    if (is_map(c, v))
        c->blocked[po_group_root(c->up, v)] = true;
}

static void want(classes *c, po_value_id v) {
    if (is_map(c, v))
        c->wanted[po_group_root(c->up, v)] = true;
}

static void join(classes *c, po_value_id a, po_value_id b) {
    if (!is_map(c, a) || !is_map(c, b) || c->channels[a] != c->channels[b]) {
        block(c, a);
        block(c, b);
        return;
    }
    po_value_id r = po_group_root(c->up, a), s = po_group_root(c->up, b);
    c->up[s] = r;
    c->blocked[r] = c->blocked[r] || c->blocked[s];
    c->wanted[r] = c->wanted[r] || c->wanted[s];
}

/* Finite for every finite input. */
static bool is_tame(po_op_id op) {
    switch ((po_op)op) {
    case PO_OP_Relu:
    case PO_OP_LeakyRelu:
    case PO_OP_Sigmoid:
    case PO_OP_HardSigmoid:
    case PO_OP_HardSwish:
    case PO_OP_Tanh:
    case PO_OP_Clip:
    case PO_OP_Gelu:
        return true;
    default:
        return false;
    }
}

static bool is_pool(po_op_id op) {
    return op == PO_OP_GlobalAveragePool || op == PO_OP_MaxPool || op == PO_OP_AveragePool;
}

static bool is_small(const po_graph *g, po_value_id v) {
    return po_dim_of(g, v, 2) == 1 && po_dim_of(g, v, 3) == 1;
}

/* 1x1 in a gate: the other operand is larger. */
static bool is_gate(const po_graph *g, const po_node *n) {
    return n->op == PO_OP_Mul && is_small(g, n->in[0]) != is_small(g, n->in[1]);
}

static bool is_depthwise(const po_conv *c) {
    return c->group > 1 && c->group == c->in && c->in == c->out;
}

static void note_conv(classes *c, po_node_id id) {
    const po_node *n = &c->graph->nodes[id];
    po_conv conv;
    if (!po_conv_read(c->graph, id, &conv) || conv.dtype != PO_F32 ||
        (conv.group != 1 && !is_depthwise(&conv))) {
        for (uint32_t i = 0; i < n->n_in; i++)
            block(c, n->in[i]);
        block(c, n->out[0]);
    } else if (conv.group > 1) {
        join(c, conv.x, conv.y);
    } else if (is_small(c->graph, conv.x)) {
        want(c, conv.x); /* on vectors the turns are all that takes time */
    } else if (conv.in > PO_CHANNEL_BLOCK && conv.in % STEP) {
        want(c, conv.x); /* would not run in the blocked layout at all */
    }
}

static void note_node(classes *c, po_node_id id) {
    const po_graph *g = c->graph;
    const po_node *n = &g->nodes[id];
    if (po_conv_is(n)) {
        note_conv(c, id);
        return;
    }
    bool numbers = true;
    for (uint32_t i = 1; i < n->n_in; i++)
        numbers = numbers && po_number_or_none(g, n->in[i]);
    if (n->n_out == 1 && n->n_in >= 1 && numbers && (is_tame(n->op) || is_pool(n->op))) {
        join(c, n->in[0], n->out[0]);
        if (is_pool(n->op))
            want(c, n->out[0]);
        return;
    }
    if ((n->op == PO_OP_Mul || n->op == PO_OP_Add || n->op == PO_OP_Sub) && n->n_in == 2) {
        for (uint32_t k = 0; k < 2; k++)
            if (!po_number_or_none(g, n->in[k]))
                join(c, n->in[k], n->out[0]);
        if (is_gate(g, n))
            want(c, n->out[0]);
        return;
    }
    for (uint32_t i = 0; i < n->n_in; i++)
        if (n->in[i] != PO_NONE && !is_small(g, n->in[i])) /* vectors are sliced */
            block(c, n->in[i]);
    for (uint32_t i = 0; i < n->n_out; i++)
        block(c, n->out[i]);
}

static void find_classes(classes *c) {
    po_graph *g = c->graph;
    c->up = PO_NEW_N(c->arena, po_value_id, g->n_values);
    c->blocked = PO_NEW_N(c->arena, bool, g->n_values);
    c->wanted = PO_NEW_N(c->arena, bool, g->n_values);
    c->channels = PO_NEW_N(c->arena, int64_t, g->n_values);
    for (po_value_id v = 0; v < g->n_values; v++) {
        const po_value *value = &g->values[v];
        c->channels[v] = po_dim_of(g, v, 1);
        bool map =
            po_rank_of(g, v) == RANK && c->channels[v] > 0 && po_is_f32(g, v) && !value->constant;
        c->up[v] = map ? v : PO_NONE;
        c->blocked[v] = value->producer == PO_NONE || value->n_outputs || value->outer != PO_NONE;
        for (uint32_t i = 0; i < value->n_uses; i++)
            c->blocked[v] = c->blocked[v] || value->uses[i].input == PO_USE_CAPTURE;
    }
    for (po_node_id i = 0; i < g->n_nodes; i++)
        if (!g->nodes[i].removed)
            note_node(c, i);
}

/* Channels that the value will get in addition. */
static int64_t added(classes *c, po_value_id v) {
    if (!is_map(c, v))
        return 0;
    po_value_id r = po_group_root(c->up, v);
    if (c->blocked[r] || !c->wanted[r] || c->channels[v] < LEAST)
        return 0;
    return po_whole_blocks(c->channels[v]) - c->channels[v];
}

/* --- weights --- */

static const po_recipe *padded(classes *c, const po_recipe *r, uint32_t axis, int64_t more) {
    if (more == 0)
        return r;
    int64_t dims[RANK];
    memcpy(dims, r->dims, r->rank * sizeof *dims);
    dims[axis] = more;
    const po_recipe *parts[2] = {r, po_recipe_fill(c->arena, r->rank, dims, 0)};
    return po_recipe_concat(c->arena, axis, 2, parts);
}

typedef struct padding {
    po_node_id node;
    po_value_id w, bias;
    int64_t group; /* 0: as it was */
} padding;

/* False where weights cannot be made; nothing is changed then. */
static bool pad_conv(classes *c, po_node_id id, padding *p, bool *any) {
    po_conv conv;
    *any = false;
    if (!po_conv_read(c->graph, id, &conv))
        return true;
    int64_t in = added(c, conv.x), out = added(c, conv.y);
    bool deep = is_depthwise(&conv);
    if (in == 0 && out == 0)
        return true;
    *any = true;
    const po_recipe *w = po_conv_weights(c->graph, c->arena, &conv);
    const po_recipe *bias = po_conv_bias(c->graph, c->arena, &conv);
    w = padded(c, padded(c, w, 1, deep ? 0 : in), 0, out);
    *p =
        (padding){id, po_add_recipe(c->graph, NULL, PO_F32, w), PO_NONE, deep ? conv.out + out : 0};
    if (bias)
        p->bias = po_add_recipe(c->graph, NULL, PO_F32, padded(c, bias, 0, out));
    return p->w != PO_NONE && (!bias || p->bias != PO_NONE);
}

/* --- readers of vectors that are no convolutions --- */

static bool reads_classes(const po_node *n) {
    return po_conv_is(n) || is_tame(n->op) || is_pool(n->op) || n->op == PO_OP_Mul ||
           n->op == PO_OP_Add || n->op == PO_OP_Sub;
}

static void slice_for_others(classes *c, po_value_id v, int64_t channels) {
    po_graph *g = c->graph;
    uint32_t n = g->values[v].n_uses;
    const po_use *uses = po_arena_memdup(c->arena, g->values[v].uses, n * sizeof *uses);
    po_value_id cut = PO_NONE;
    for (uint32_t i = 0; i < n; i++) {
        if (reads_classes(&g->nodes[uses[i].node]))
            continue;
        if (cut == PO_NONE) {
            static const int64_t zero = 0, one = 1;
            po_value_id in[4] = {v, po_add_i64s(g, NULL, 1, &zero), PO_NONE, PO_NONE};
            in[2] = po_add_i64s(g, NULL, 1, &channels);
            in[3] = po_add_i64s(g, NULL, 1, &one);
            po_type unknown = po_type_unranked(PO_F32);
            cut = po_add_op(g, uses[i].node, PO_OP_Slice, 4, in, &unknown);
        }
        po_graph_set_input(g, uses[i].node, uses[i].input, cut);
    }
}

static void widen(classes *c, po_value_id v, int64_t more) {
    po_value *value = &c->graph->values[v];
    int64_t channels = c->channels[v];
    po_type type = value->type;
    po_dim *dims = po_arena_memdup(c->graph->arena, type.dims, RANK * sizeof *dims);
    dims[1] = PO_DIM(channels + more);
    type.dims = dims;
    value->type = type;
    value->origin = NULL; /* states the old shape */
    if (is_small(c->graph, v))
        slice_for_others(c, v, channels);
}

po_status po_pad_channels(po_ctx *ctx, po_graph *graph, po_rewriting *state) {
    (void)ctx;
    if (po_model_opset(graph->model, "") < 10)
        return PO_OK;
    classes c = {.graph = graph, .arena = state->scratch};
    uint32_t n_values = graph->n_values, n_pads = 0;
    find_classes(&c);
    padding *pads = PO_NEW_N(state->scratch, padding, graph->n_nodes);
    for (po_node_id i = 0; i < graph->n_nodes; i++) {
        bool any;
        if (graph->nodes[i].removed || !po_conv_is(&graph->nodes[i]))
            continue;
        if (!pad_conv(&c, i, &pads[n_pads], &any))
            return PO_OK;
        n_pads += any;
    }
    for (uint32_t i = 0; i < n_pads; i++) {
        po_graph_set_input(graph, pads[i].node, 1, pads[i].w);
        if (pads[i].bias != PO_NONE)
            po_graph_set_input(graph, pads[i].node, 2, pads[i].bias);
        if (pads[i].group)
            po_node_set_int(graph, pads[i].node, "group", pads[i].group);
    }
    for (po_value_id v = 0; v < n_values; v++)
        if (added(&c, v))
            widen(&c, v, added(&c, v));
    po_law_fired(state, PO_LAW_BLOCKS, n_pads > 0);
    return PO_OK;
}
