/* A table of twins by value, the copies of nodes that read and make twins, and element-wise
 * operators, which every layout treats alike. */
#include "rewrite/layout/relayout.h"

#include "ops/recipe/recipe.h"

bool po_relayout_has(const po_relayout *r, po_value_id old) {
    return old < r->n && r->twin[old] != PO_NONE;
}

po_value_id po_relayout_twin(po_relayout *r, po_node_id place, po_value_id old) {
    if (r->twin[old] == PO_NONE)
        r->twin[old] = r->enter(r, place, old);
    return r->twin[old];
}

void po_relayout_set(po_relayout *r, po_node_id node, po_value_id twin) {
    r->twin[r->graph->nodes[node].out[0]] = twin;
    r->converted[r->graph->nodes[node].out[0]] = true;
    PO_PUSH(r->arena, r->done, r->n_done, r->cap_done, node);
}

po_value_id po_relayout_copy(po_relayout *r, po_node_id node, const po_value_id *in,
                             uint32_t n_in) {
    const po_node *n = &r->graph->nodes[node];
    po_type unknown = po_type_unranked(r->graph->values[n->out[0]].type.dtype);
    return po_add_like(r->graph, node, n, n_in, in, &unknown);
}

po_value_id po_relayout_axes(po_relayout *r, po_node_id place, po_value_id x, po_op_id op,
                             uint32_t n, const int64_t *axes, const po_type *type) {
    po_graph *g = r->graph;
    if (po_model_opset(g->model, "") >= 13) {
        const po_value_id in[2] = {x, po_add_i64s(g, NULL, n, axes)};
        return po_add_op(g, place, op, 2, in, type);
    }
    po_value_id y = po_add_op(g, place, op, 1, &x, type);
    po_node_set_ints(g, g->values[y].producer, "axes", n, axes);
    return y;
}

/* The constant with axes of 1 behind its channels. */
static po_value_id over_channels(po_relayout *r, po_value_id constant, int behind) {
    int64_t dims[1 + PO_MAX_RANK] = {po_graph_constant(r->graph, constant)->count};
    for (int i = 1; i <= behind; i++)
        dims[i] = 1;
    return po_add_reshaped(r->graph, constant, 1 + (uint32_t)behind, dims);
}

bool po_relayout_elementwise(po_relayout *r, po_node_id node) {
    enum { MOST = 4 };
    const po_node *n = &r->graph->nodes[node];
    po_value_id y = n->out[0], in[MOST];
    int behind[MOST]; /* -1: no constant over channels */
    if (!po_op_has(n->op, PO_OPF_ELEMENTWISE) || n->n_in < 1 || n->n_in > MOST ||
        !po_rearrangeable(r->graph, y) || po_rank_of(r->graph, y) != (int)r->rank)
        return false;
    uint32_t n_in = n->n_in, beside = 0, known = 0;
    for (uint32_t k = 0; k < n_in; k++) {
        in[k] = n->in[k];
        behind[k] = -1;
        if (po_number_or_none(r->graph, in[k]))
            continue;
        if (r->behind_channels && po_graph_constant(r->graph, in[k]))
            behind[k] = r->behind_channels(r, in[k], y);
        beside++;
        known += po_relayout_has(r, in[k]);
    }
    /* A single tensor has its output's shape, whether that is known or not. */
    for (uint32_t k = 0; k < n_in; k++)
        if (!po_number_or_none(r->graph, in[k]) && behind[k] < 0 &&
            (in[k] >= r->n || !po_rearrangeable(r->graph, in[k]) ||
             (beside > 1 && !po_same_dims(r->graph, in[k], y))))
            return false;
    if (known == 0)
        return false;
    for (uint32_t k = 0; k < n_in; k++)
        if (behind[k] >= 0)
            in[k] = over_channels(r, in[k], behind[k]);
        else if (!po_number_or_none(r->graph, in[k]))
            in[k] = po_relayout_twin(r, node, in[k]);
    po_relayout_set(r, node, po_relayout_copy(r, node, in, n_in));
    return true;
}

static void bring_back(po_relayout *r) {
    for (uint32_t k = 0; k < r->n_done; k++) {
        po_value_id y = r->graph->nodes[r->done[k]].out[0];
        po_type type = r->graph->values[y].type;
        po_substitute(r->graph, y, r->leave(r, r->done[k], y, &type));
    }
}

/* It makes one value, of what the graph had at first. */
static bool may_convert(const po_relayout *r, po_node_id node) {
    const po_node *n = &r->graph->nodes[node];
    return !n->removed && n->n_out == 1 && n->out[0] != PO_NONE && n->n_in > 0 && n->in[0] < r->n;
}

void po_relayout_graph(po_relayout *r, po_graph *graph, po_rewriting *state, uint32_t rank,
                       const po_relayout_law *laws, uint32_t n_laws) {
    r->graph = graph;
    r->arena = state->scratch;
    r->state = state;
    r->rank = rank;
    r->n = graph->n_values;
    r->twin = PO_NEW_N(r->arena, po_value_id, r->n);
    r->converted = PO_NEW_N(r->arena, bool, r->n);
    memset(r->twin, 0xff, r->n * sizeof *r->twin); /* PO_NONE */
    uint32_t n;
    const po_node_id *order = po_graph_order(graph, r->arena, &n);
    for (uint32_t k = 0; k < n; k++) {
        bool done = !may_convert(r, order[k]);
        for (uint32_t i = 0; i < n_laws && !done; i++) {
            done = laws[i].convert(r, order[k]);
            if (laws[i].law < PO_LAWS)
                po_law_fired(state, laws[i].law, done);
        }
    }
    bring_back(r);
}
