/* Convolutions whose outputs are split into parts of the channels: one convolution for each part,
 * activations between repeated. A part that fills whole blocks of channels then stays in the
 * runtime's blocked layout, takes its own activation along (the gate of a gated linear unit), and
 * nothing is copied. */
#include "ops/recipe.h"
#include "postopt/passes.h"

enum { BLOCK = 16, MOST_PARTS = 4, MOST_BETWEEN = 3 };

typedef struct halves {
    po_node_id split, conv, between[MOST_BETWEEN]; /* activations, the convolution's reader last */
    uint32_t n_between, n;
    int64_t channels[MOST_PARTS];
} halves;

static bool match(const po_graph *g, po_node_id id, halves *h) {
    const po_node *n = &g->nodes[id];
    *h = (halves){.split = id, .n = n->n_out};
    if (n->op != PO_OP_Split || n->n_out < 2 || n->n_out > MOST_PARTS ||
        po_node_int(n, "axis", 0) != 1)
        return false;
    for (uint32_t k = 0; k < n->n_out; k++) {
        if (n->out[k] == PO_NONE)
            return false;
        h->channels[k] = po_dim_of(g, n->out[k], 1);
        if (h->channels[k] <= 0 || h->channels[k] % BLOCK != 0)
            return false;
    }
    po_value_id v = n->in[0];
    const po_node *made = po_graph_producer(g, v);
    while (made && made->op != PO_OP_Conv && po_op_has(made->op, PO_OPF_ACTIVATION) &&
           made->n_in == 1 && h->n_between < MOST_BETWEEN && po_read_once(g, v)) {
        h->between[h->n_between++] = (po_node_id)(made - g->nodes);
        v = made->in[0];
        made = po_graph_producer(g, v);
    }
    if (!made || made->op != PO_OP_Conv || !po_read_once(g, v) || made->n_in < 2 ||
        po_node_int(made, "group", 1) != 1)
        return false;
    const po_tensor *w = po_graph_constant(g, made->in[1]);
    const po_tensor *b = made->n_in > 2 ? po_graph_constant(g, made->in[2]) : NULL;
    h->conv = (po_node_id)(made - g->nodes);
    return w && w->rank >= 3 && w->dtype == PO_F32 &&
           (b || made->n_in == 2 || made->in[2] == PO_NONE);
}

/* The node on other inputs, beside `place`. */
static po_value_id again(po_graph *g, po_node_id place, po_node_id id, uint32_t n_in,
                         const po_value_id *in, const po_type *type) {
    const po_node *n = &g->nodes[id];
    po_op_id op = n->op;
    uint32_t n_attr = n->n_attr;
    const po_attr *attrs = po_arena_memdup(g->arena, n->attr, n_attr * sizeof *attrs);
    po_value_id y = po_graph_add_value(g, NULL, type);
    po_ops_add(g, place,
               &(po_node_spec){.op = op,
                               .name = g->values[y].name,
                               .n_in = n_in,
                               .in = in,
                               .n_out = 1,
                               .out = &y,
                               .n_attr = n_attr,
                               .attr = attrs});
    return y;
}

static bool cut(po_graph *g, po_arena *arena, const halves *h) {
    po_value_id w[MOST_PARTS], b[MOST_PARTS], x = g->nodes[h->conv].in[0];
    po_value_id weights = g->nodes[h->conv].in[1];
    po_value_id bias = g->nodes[h->conv].n_in > 2 ? g->nodes[h->conv].in[2] : PO_NONE;
    const po_recipe *all = po_recipe_doubles(g, arena, weights);
    const po_recipe *shift = bias == PO_NONE ? NULL : po_recipe_doubles(g, arena, bias);
    int64_t at = 0;
    for (uint32_t k = 0; k < h->n; k++) {
        int64_t end = at + h->channels[k];
        w[k] = po_add_recipe(g, NULL, PO_F32, po_recipe_slice(arena, all, 0, at, end));
        b[k] = shift ? po_add_recipe(g, NULL, PO_F32, po_recipe_slice(arena, shift, 0, at, end))
                     : PO_NONE;
        if (w[k] == PO_NONE || (shift && b[k] == PO_NONE))
            return false;
        at = end;
    }
    for (uint32_t k = 0; k < h->n; k++) {
        po_value_id old = g->nodes[h->split].out[k];
        po_type type = g->values[old].type;
        po_value_id y =
            again(g, h->conv, h->conv, shift ? 3 : 2, (po_value_id[]){x, w[k], b[k]}, &type);
        for (uint32_t i = h->n_between; i-- > 0;)
            y = again(g, h->conv, h->between[i], 1, &y, &type);
        po_substitute(g, old, y);
    }
    return true;
}

po_status po_cut_split_convs(po_ctx *ctx, po_graph *graph, po_postopt_state *state) {
    (void)ctx;
    if (!(state->options->algebra & PO_ALGEBRA_PLANES))
        return PO_OK;
    uint32_t n;
    const po_node_id *order = po_graph_order(graph, state->scratch, &n);
    for (uint32_t k = 0; k < n; k++) {
        halves h;
        if (!graph->nodes[order[k]].removed && match(graph, order[k], &h) &&
            cut(graph, state->scratch, &h))
            state->counts->composed++;
    }
    return PO_OK;
}
