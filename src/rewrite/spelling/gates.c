/* Clipped lines as HardSigmoid, scales moved behind products, the forms of hard-swish, and factors
 * that two sides of a sum have in common. */
#include "rewrite/deriving.h"
#include "rewrite/pattern.h"
#include "rewrite/spelling/match.h"

#include <float.h>

static bool is_product(po_op_id op) {
    return op == PO_OP_Mul || op == PO_OP_Div;
}

/* clip(a x + b, 0, H) = H * HardSigmoid(x; a / H, b / H), where a product takes up the H. A clip
 * of x itself stays: runtimes fuse it into convolutions as it is. */
static bool clip_to_gate(po_graph *graph, po_arena *arena, po_node_id id) {
    const po_node *n = &graph->nodes[id];
    po_affine f;
    po_match m;
    const po_use *reader = po_graph_sole_use(graph, n->out[0]);
    if (!reader || !is_product(graph->nodes[reader->node].op) ||
        !po_matches(graph, arena, n, "(Clip(x, 0, h:number) | Clip{min=0, max=h}(x))", &m))
        return false;
    const double high = po_matched_number(&m, 'h');
    const po_value_id line = po_matched(&m, 'x');
    if (!(high > 0) || !(high < (double)FLT_MAX) || !po_rearrangeable(graph, line) ||
        !po_read_once(graph, line) || !po_affine_match(graph, arena, line, &f) || f.n != 1 ||
        f.b[0] == 0 || f.a[0] == 0)
        return false;
    po_match_value(&m, 'x', f.x);
    po_match_number(&m, 'a', f.a[0]);
    po_match_number(&m, 'b', f.b[0]);
    po_match_value(&m, 'g', po_write(graph, f.first, &m, "HardSigmoid{alpha=a/h, beta=b/h}(x)"));
    return po_write_instead(graph, id, &m, "Mul(g, h)");
}

/* (s * u) * v = s * (u * v): the scale may meet its like, or weights, behind the product. */
static bool move_scale(po_graph *graph, po_arena *arena, po_node_id id) {
    const po_node *n = &graph->nodes[id];
    if (n->n_in != 2 || !po_rearrangeable(graph, n->out[0]) || po_graph_constant(graph, n->in[0]) ||
        po_graph_constant(graph, n->in[1]))
        return false;
    for (uint32_t k = 0; k < 2; k++) {
        po_affine m;
        if (!po_read_once(graph, n->in[k]) || !po_affine_match(graph, arena, n->in[k], &m) ||
            m.n != 1 || !po_affine_is_scale(&m) ||
            !po_type_equal(&graph->values[m.x].type, &graph->values[n->out[0]].type))
            continue;
        po_value_id out = n->out[0];
        const po_use *next = po_graph_sole_use(graph, out);
        if (!next || !is_product(graph->nodes[next->node].op))
            continue; /* nothing there to meet */
        po_affine_derive(graph, arena, &m);
        po_type type = graph->values[out].type;
        po_graph_set_input(graph, id, k, m.x);
        po_value_id product = po_graph_add_value(graph, NULL, &type);
        po_graph_set_output(graph, id, 0, product);
        po_graph_replace_uses(graph, out, po_affine_emit(graph, id, product, &m));
        return true;
    }
    return false;
}

static bool may_round(const po_graph *graph, const po_node *node, po_match *m) {
    (void)m;
    return po_rearrangeable(graph, node->out[0]);
}

static const po_text_law to_node = {
    PO_LAW_HARD_SWISH_NODE, "Mul(x, HardSigmoid{alpha=1/6, beta=0.5}(x))", NULL, "HardSwish(x)"};
static const po_text_law to_gate = {PO_LAW_HARD_SWISH_GATE, "HardSwish(x)", may_round,
                                    "Mul(x, HardSigmoid{alpha=1/6, beta=0.5}(x))"};

po_status po_write_gates(po_ctx *ctx, po_graph *graph, po_rewriting *state) {
    (void)ctx;
    po_hard_swish_form form = state->options->hard_swish;
    if (form == PO_HARD_SWISH_KEEP)
        return PO_OK;
    const bool has_node = po_opset_of(graph) >= PO_HARD_SWISH_SINCE;
    uint32_t n;
    const po_node_id *order = po_graph_order(graph, state->scratch, &n);
    for (uint32_t k = 0; k < n; k++) {
        const po_node *node = &graph->nodes[order[k]];
        if (node->removed || node->n_out == 0 || node->out[0] == PO_NONE)
            continue;
        bool written = false;
        if (node->op == PO_OP_Clip)
            written = po_law_fired(state, PO_LAW_CLIPPED_LINE,
                                   clip_to_gate(graph, state->scratch, order[k]));
        else if (node->op == PO_OP_Mul && po_law_fired(state, PO_LAW_MOVE_SCALE,
                                                       move_scale(graph, state->scratch, order[k])))
            continue;
        else if (form == PO_HARD_SWISH_GATED || has_node)
            written = po_rewrite_by_text(state, graph, order[k],
                                         form == PO_HARD_SWISH_GATED ? &to_gate : &to_node, 1);
        state->counts->used |= written ? PO_USED_HARD_SWISH : 0;
    }
    return PO_OK;
}

/* --- common factors --- */

/* s is [N, C, 1, 1] (or smaller) beside the map x: the addition then is on the small tensor. */
static bool much_smaller(const po_graph *graph, po_value_id s, po_value_id x) {
    int rank = po_rank_of(graph, x);
    if (rank < 3 || po_rank_of(graph, s) > rank || po_rank_of(graph, s) < 0)
        return false;
    for (int i = 1; i <= 2; i++)
        if (po_rank_of(graph, s) >= i && po_dim_of(graph, s, -i) != 1)
            return false;
    int64_t h = po_dim_of(graph, x, -1), w = po_dim_of(graph, x, -2);
    return h * w > 1 || h < 0 || w < 0;
}

bool po_gate_residual(po_rewriting *r, po_graph *graph, po_node_id id) {
    const po_node *n = &graph->nodes[id];
    po_match m;
    return po_matches(graph, r->scratch, n, "Add(x, Mul(x, s))", &m) &&
           po_rearrangeable(graph, n->out[0]) &&
           much_smaller(graph, po_matched(&m, 's'), po_matched(&m, 'x')) &&
           po_write_instead(graph, id, &m, "Mul(x, Add(s, 1))");
}

po_status po_derive_gated_sum(po_deriving *d, po_node_id id) {
    const po_node *n = &d->from->nodes[id];
    po_match m;
    if (!po_rearrangeable(d->from, n->out[0]))
        return PO_OK;
    if (po_matches(d->from, d->arena, n, "Add(x, &Mul(x, s))", &m))
        return po_derive_text(d, id, &m, "Mul(x, Add(s, 1))");
    if (po_matches(d->from, d->arena, n, "Add(&Mul(x, s), &Mul(x, t))", &m))
        return po_derive_text(d, id, &m, "Mul(x, Add(s, t))");
    return PO_OK;
}
