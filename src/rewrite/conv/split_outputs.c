/* Split of a convolution's channels, perhaps behind activations, as one convolution for each part
 * with its share of the outputs. The runtime leaves its blocked layout for Split; convolutions of
 * whole blocks stay in it, as do the sums and concatenations of the parts, each takes its own
 * activation along (the gate of a gated linear unit), and nothing is copied. */
#include "ops/conv_view.h"
#include "ops/recipe/recipe.h"
#include "rewrite/layout/relayout.h"
#include "rewrite/passes.h"

enum { MOST_PARTS = 8, MOST_NODES = 8, MOST_INPUTS = 4 };

/* The nodes between the convolution and the Split, the last one first. */
typedef struct between {
    po_node_id nodes[MOST_NODES], conv;
    uint32_t n;
} between;

/* One group, any number of map axes, f32 weights and bias that are constants. */
static bool can_cut(const po_graph *g, const po_node *n) {
    const po_tensor *w = n->n_in < 2 ? NULL : po_graph_constant(g, n->in[1]);
    return w && w->rank >= 3 && w->dtype == PO_F32 && po_node_int(n, "group", 1) == 1 &&
           (n->n_in == 2 || n->in[2] == PO_NONE || po_graph_constant(g, n->in[2]));
}

/* Everything between v and one convolution is elementwise, of its output and numbers alone. */
static bool collect(const po_graph *g, po_value_id v, between *b) {
    const po_node *n = po_graph_producer(g, v);
    if (n && po_conv_is(n)) {
        if (b->conv != PO_NONE)
            return b->conv == g->values[v].producer;
        b->conv = g->values[v].producer;
        return can_cut(g, n);
    }
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
        if (po_number_or_none(g, n->in[i]))
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

/* The node on other inputs, with a part of its channels. */
static po_value_id copy_node(po_graph *g, po_node_id id, const po_value_id *in, uint32_t n_in,
                             const po_type *part) {
    po_relayout r = {.graph = g};
    po_type type = *part;
    type.dtype = g->values[g->nodes[id].out[0]].type.dtype;
    po_value_id y = po_relayout_copy(&r, id, in, n_in);
    g->values[y].type = type;
    return y;
}

/* v for one part: copies of the nodes, each once. */
static po_value_id copy_part(po_graph *g, const between *b, po_value_id v, po_value_id part,
                             const po_type *type, po_value_id made[MOST_NODES]) {
    po_node_id id = g->values[v].producer;
    if (id == b->conv)
        return part;
    uint32_t at = 0;
    while (b->nodes[at] != id)
        at++;
    if (made[at] != PO_NONE)
        return made[at];
    po_value_id in[MOST_INPUTS];
    uint32_t n_in = g->nodes[id].n_in;
    for (uint32_t i = 0; i < n_in; i++) {
        po_value_id x = g->nodes[id].in[i];
        in[i] = po_number_or_none(g, x) ? x : copy_part(g, b, x, part, type, made);
    }
    return made[at] = copy_node(g, id, in, n_in, type);
}

/* The Split's input is made by one convolution, of whole blocks for each part. */
static bool match(const po_graph *g, po_node_id id, between *b, int64_t from[MOST_PARTS + 1]) {
    const po_node *n = &g->nodes[id];
    *b = (between){.conv = PO_NONE};
    if (n->op != PO_OP_Split || n->n_out < 2 || n->n_out > MOST_PARTS || !collect(g, n->in[0], b) ||
        !is_private(g, b, g->nodes[b->conv].out[0], id))
        return false;
    for (uint32_t i = 0; i < b->n; i++)
        if (!is_private(g, b, g->nodes[b->nodes[i]].out[0], id))
            return false;
    const po_tensor *w = po_graph_constant(g, g->nodes[b->conv].in[1]);
    int64_t axis = po_node_int(n, "axis", 0);
    if ((axis < 0 ? axis + w->rank : axis) != 1)
        return false;
    from[0] = 0;
    for (uint32_t k = 0; k < n->n_out; k++) {
        int64_t channels = n->out[k] == PO_NONE ? -1 : po_dim_of(g, n->out[k], 1);
        if (channels < 1 || channels % PO_CHANNEL_BLOCK)
            return false;
        from[k + 1] = from[k] + channels;
    }
    return from[n->n_out] == w->dims[0];
}

bool po_split_outputs(po_rewriting *r, po_graph *g, po_node_id id) {
    po_arena *arena = r->scratch;
    between b;
    int64_t from[MOST_PARTS + 1];
    if (!match(g, id, &b, from))
        return false;
    const po_node *conv = &g->nodes[b.conv];
    bool biased = conv->n_in > 2 && conv->in[2] != PO_NONE;
    uint32_t parts = g->nodes[id].n_out, n_in = biased ? 3 : 2;
    po_value_id in[MOST_PARTS][3], x = conv->in[0], v = g->nodes[id].in[0];
    const po_recipe *all[3] = {NULL, po_recipe_doubles(g, arena, conv->in[1]),
                               biased ? po_recipe_doubles(g, arena, conv->in[2]) : NULL};
    for (uint32_t k = 0; k < parts; k++) {
        in[k][0] = x;
        for (uint32_t i = 1; i < n_in; i++) {
            in[k][i] = po_add_recipe(g, NULL, PO_F32,
                                     po_recipe_slice(arena, all[i], 0, from[k], from[k + 1]));
            if (in[k][i] == PO_NONE)
                return false;
        }
    }
    for (uint32_t k = 0; k < parts; k++) {
        po_value_id old = g->nodes[id].out[k], made[MOST_NODES];
        po_type type = g->values[old].type;
        for (uint32_t i = 0; i < MOST_NODES; i++)
            made[i] = PO_NONE;
        po_value_id part = copy_node(g, b.conv, in[k], n_in, &type);
        po_substitute(g, old, copy_part(g, &b, v, part, &type, made));
    }
    return true;
}
