/* Split of a convolution's channels, perhaps behind activations, as one convolution for each part
 * with its share of the outputs. The runtime leaves its blocked layout for Split; convolutions of
 * whole blocks stay in it, and so do the sums and concatenations of the parts. */
#include "ops/recipe.h"
#include "postopt/conv.h"
#include "postopt/passes.h"
#include "postopt/relayout.h"

enum { BLOCK = 16, MOST_PARTS = 8, MOST_NODES = 8, MOST_INPUTS = 4 };

/* The nodes between the convolution and the Split, the last one first. */
typedef struct between {
    po_node_id nodes[MOST_NODES];
    uint32_t n;
    po_conv conv;
    bool found;
} between;

static bool is_number(const po_graph *g, po_value_id v) {
    const po_tensor *t = v == PO_NONE ? NULL : po_graph_constant(g, v);
    return v == PO_NONE || (t && t->count == 1 && t->rank <= 1);
}

/* Everything between v and one convolution is elementwise, of its output and numbers alone. */
static bool collect(const po_graph *g, po_value_id v, between *b) {
    po_conv c;
    if (po_conv_made(g, v, &c)) {
        if (b->found)
            return b->conv.y == v;
        b->conv = c;
        b->found = true;
        return c.group == 1 && c.dtype == PO_F32;
    }
    const po_node *n = po_graph_producer(g, v);
    if (!n || !po_op_has(n->op, PO_OPF_ELEMENTWISE) || n->n_out != 1 || n->n_in > MOST_INPUTS)
        return false;
    for (uint32_t i = 0; i < b->n; i++)
        if (b->nodes[i] == g->values[v].producer)
            return true;
    if (b->n == MOST_NODES)
        return false;
    b->nodes[b->n++] = g->values[v].producer;
    bool any = false;
    for (uint32_t i = 0; i < n->n_in; i++) {
        if (is_number(g, n->in[i]))
            continue;
        if (!collect(g, n->in[i], b))
            return false;
        any = true;
    }
    return any;
}

static bool is_between(const between *b, po_node_id node) {
    for (uint32_t i = 0; i < b->n; i++)
        if (b->nodes[i] == node)
            return true;
    return false;
}

/* Nothing else reads the convolution or what is made of it. */
static bool is_private(const po_graph *g, const between *b, po_value_id v, po_node_id split) {
    const po_value *value = &g->values[v];
    if (value->n_outputs)
        return false;
    for (uint32_t i = 0; i < value->n_uses; i++)
        if (value->uses[i].input == PO_USE_CAPTURE ||
            (value->uses[i].node != split && !is_between(b, value->uses[i].node)))
            return false;
    return true;
}

/* v for one part: copies of the nodes, each once. */
static po_value_id copy_part(po_graph *g, const between *b, po_value_id v, po_value_id part,
                             po_value_id made[MOST_NODES]) {
    if (v == b->conv.y)
        return part;
    po_node_id id = g->values[v].producer;
    uint32_t at = 0;
    while (b->nodes[at] != id)
        at++;
    if (made[at] != PO_NONE)
        return made[at];
    po_value_id in[MOST_INPUTS];
    uint32_t n_in = g->nodes[id].n_in;
    for (uint32_t i = 0; i < n_in; i++) {
        po_value_id x = g->nodes[id].in[i];
        in[i] = is_number(g, x) ? x : copy_part(g, b, x, part, made);
    }
    po_relayout r = {.graph = g};
    return made[at] = po_relayout_copy(&r, id, in, n_in);
}

static bool split_conv(po_graph *g, po_arena *arena, po_node_id id) {
    const po_node *n = &g->nodes[id];
    between b = {0};
    if (n->op != PO_OP_Split || n->n_out < 2 || n->n_out > MOST_PARTS ||
        po_rank_of(g, n->in[0]) != 4 || (po_node_int(n, "axis", 0) + 4) % 4 != 1 ||
        !collect(g, n->in[0], &b) || !is_private(g, &b, b.conv.y, id))
        return false;
    for (uint32_t i = 0; i < b.n; i++)
        if (!is_private(g, &b, g->nodes[b.nodes[i]].out[0], id))
            return false;
    uint32_t parts = n->n_out;
    po_value_id y[MOST_PARTS], w[MOST_PARTS], bias[MOST_PARTS];
    int64_t from[MOST_PARTS + 1] = {0};
    for (uint32_t k = 0; k < parts; k++) {
        y[k] = n->out[k];
        int64_t channels = y[k] == PO_NONE ? -1 : po_dim_of(g, y[k], 1);
        if (channels < 1 || channels % BLOCK)
            return false;
        from[k + 1] = from[k] + channels;
    }
    if (from[parts] != b.conv.out)
        return false;
    const po_recipe *all = po_conv_weights(g, arena, &b.conv);
    const po_recipe *shift = po_conv_bias(g, arena, &b.conv);
    for (uint32_t k = 0; k < parts; k++) {
        w[k] = po_add_recipe(g, NULL, PO_F32, po_recipe_slice(arena, all, 0, from[k], from[k + 1]));
        bias[k] = shift ? po_add_recipe(g, NULL, PO_F32,
                                        po_recipe_slice(arena, shift, 0, from[k], from[k + 1]))
                        : PO_NONE;
        if (w[k] == PO_NONE || (shift && bias[k] == PO_NONE))
            return false;
    }
    po_value_id v = n->in[0];
    for (uint32_t k = 0; k < parts; k++) {
        po_conv part = b.conv;
        po_value_id made[MOST_NODES];
        for (uint32_t i = 0; i < MOST_NODES; i++)
            made[i] = PO_NONE;
        part.out = from[k + 1] - from[k];
        po_value_id x = po_conv_add(g, b.conv.node, b.conv.x, &part, w[k], bias[k]);
        po_value_id last = copy_part(g, &b, v, x, made);
        g->values[last].type = g->values[y[k]].type;
        po_substitute(g, y[k], last);
    }
    return true;
}

po_status po_split_outputs(po_ctx *ctx, po_graph *graph, po_postopt_state *state) {
    (void)ctx;
    if (!(state->options->algebra & PO_ALGEBRA_SPLITS) || po_model_opset(graph->model, "") < 7)
        return PO_OK;
    uint32_t n;
    const po_node_id *order = po_graph_order(graph, state->scratch, &n);
    for (uint32_t k = 0; k < n; k++)
        if (!graph->nodes[order[k]].removed)
            state->counts->composed += split_conv(graph, state->scratch, order[k]);
    return PO_OK;
}
