/* A gate of one number a channel on a small map, spread over the map by nearest upsampling first:
 * x * upsampled(s). The runtime multiplies maps of equal shape in its blocked layout and leaves it
 * for everything else; on large maps that costs less than the spread gate. */
#include "ops/conv_view.h"
#include "ops/recipe/recipe.h"
#include "rewrite/passes.h"
#include "rewrite/spelling/match.h"

enum { RANK = 4, LARGEST = 1 << 16, RESIZE_SINCE = 11, ROI_OPTIONAL_SINCE = 13 };

/* Made by a convolution, perhaps through activations: in the blocked layout. */
static bool is_blocked(const po_graph *g, po_value_id v) {
    for (int depth = 0; depth < 3; depth++) {
        const po_node *n = po_graph_producer(g, v);
        if (!n)
            return false;
        if (po_conv_is(n))
            return po_graph_constant(g, n->in[1]) != NULL;
        if (n->op == PO_OP_Mul && n->n_in == 2 && po_made_by(g, n->in[1], PO_OP_HardSigmoid))
            v = n->in[0]; /* hard-swish */
        else if (po_op_has(n->op, PO_OPF_ELEMENTWISE) && n->n_in == 1)
            v = n->in[0];
        else
            return false;
    }
    return false;
}

static bool read_by_convs(const po_graph *g, po_value_id v) {
    const po_value *value = &g->values[v];
    for (uint32_t i = 0; i < value->n_uses; i++) {
        po_use u = value->uses[i];
        if (!po_read_by_conv(g, &u))
            return false;
    }
    return value->n_outputs == 0 && value->n_uses > 0;
}

bool po_spread_gate(po_rewriting *r, po_graph *g, po_node_id id) {
    po_arena *arena = r->scratch;
    const po_node *n = &g->nodes[id];
    if (!r->options->spread_gates || po_opset_of(g) < RESIZE_SINCE || n->op != PO_OP_Mul ||
        n->n_in != 2 || !po_is_f32(g, n->out[0]))
        return false;
    for (uint32_t k = 0; k < 2; k++) {
        uint32_t rank, rank_s;
        po_value_id x = n->in[1 - k], s = n->in[k];
        const po_dim *d = po_static_dims(g, x, &rank), *e = po_static_dims(g, s, &rank_s);
        if (!d || !e || rank != RANK || rank_s != RANK || e[2].value != 1 || e[3].value != 1 ||
            d[2].value * d[3].value < 2 || d[0].value != e[0].value || d[1].value != e[1].value ||
            d[1].value % PO_CHANNEL_BLOCK || po_type_count(&g->values[x].type) > LARGEST ||
            !is_blocked(g, x) || !is_blocked(g, s) || !read_by_convs(g, n->out[0]))
            continue;
        const double factors[RANK] = {1, 1, (double)d[2].value, (double)d[3].value};
        static const int64_t none = 0;
        po_value_id in[3] = {s, PO_NONE, PO_NONE};
        if (po_opset_of(g) < ROI_OPTIONAL_SINCE)
            in[1] = po_add_floats(g, NULL, PO_F32, 1, &none, NULL);
        in[2] = po_add_recipe(g, NULL, PO_F32,
                              po_recipe_literal(arena, 1, (const int64_t[]){RANK}, factors));
        po_type type = g->values[x].type;
        po_value_id y = po_add_op(g, id, PO_OP_Resize, 3, in, &type);
        po_node_id resize = g->values[y].producer;
        po_node_set_string(g, resize, "coordinate_transformation_mode", "asymmetric");
        po_node_set_string(g, resize, "mode", "nearest");
        po_node_set_string(g, resize, "nearest_mode", "floor");
        po_graph_set_input(g, id, k, y);
        r->counts->used |= PO_USED_SPREAD;
        return true;
    }
    return false;
}
