/* Clipped lines as HardSigmoid, scales moved behind products, and the forms of hard-swish. */
#include "rewrite/affine/affine.h"
#include "rewrite/passes.h"

#include <math.h>

/* The constant bounds of a Clip, as attributes (before opset 11) or inputs. */
static bool bounds(const po_graph *graph, const po_node *n, double *low, double *high) {
    if (n->n_in == 1) {
        *low = (double)po_node_float(n, "min", -INFINITY);
        *high = (double)po_node_float(n, "max", INFINITY);
        return true;
    }
    return n->n_in == 3 && n->in[1] != PO_NONE && n->in[2] != PO_NONE &&
           po_scalar_constant(graph, n->in[1], low) && po_scalar_constant(graph, n->in[2], high);
}

static bool is_product(po_op_id op) {
    return op == PO_OP_Mul || op == PO_OP_Div;
}

/* clip(a x + b, 0, H) = H * HardSigmoid(x; a / H, b / H), where a product takes up the H. A clip
 * of x itself stays: runtimes fuse it into convolutions as it is. */
static bool clip_to_gate(po_graph *graph, po_arena *arena, po_node_id id) {
    const po_node *n = &graph->nodes[id];
    double low, high;
    po_affine m;
    const po_use *reader = po_graph_sole_use(graph, n->out[0]);
    if (!reader || !is_product(graph->nodes[reader->node].op) || !bounds(graph, n, &low, &high) ||
        low != 0 || !(high > 0) || !isfinite(high) || !po_rearrangeable(graph, n->in[0]) ||
        !po_read_once(graph, n->in[0]) || !po_affine_match(graph, arena, n->in[0], &m) ||
        m.n != 1 || m.b[0] == 0 || m.a[0] == 0)
        return false;
    po_type type = graph->values[m.x].type;
    po_value_id gate = po_add_op(graph, m.first, PO_OP_HardSigmoid, 1, &m.x, &type);
    po_node_id made = graph->values[gate].producer;
    po_node_set_float(graph, made, "alpha", (float)(m.a[0] / high));
    po_node_set_float(graph, made, "beta", (float)(m.b[0] / high));
    po_affine scale = {.axis = -1, .n = 1, .a = &high, .b = &(double){0}};
    po_substitute(graph, n->out[0], po_affine_emit(graph, id, gate, &scale));
    return true;
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

static bool near(double a, double b) {
    return fabs(a - b) <= 1e-6 * fabs(b);
}

/* x * HardSigmoid(x; 1/6, 1/2) as one HardSwish node. */
static bool gate_to_node(po_graph *graph, po_node_id id) {
    const po_node *n = &graph->nodes[id];
    for (uint32_t k = 0; k < 2; k++) {
        const po_node *gate = po_made_alone_by(graph, n->in[k], PO_OP_HardSigmoid);
        if (!gate || gate->in[0] != n->in[1 - k] ||
            !near((double)po_op_float(graph, gate, "alpha"), 1.0 / 6) ||
            !near((double)po_op_float(graph, gate, "beta"), 0.5))
            continue;
        po_value_id x = n->in[1 - k];
        po_type type = graph->values[x].type;
        po_substitute(graph, n->out[0], po_add_op(graph, id, PO_OP_HardSwish, 1, &x, &type));
        return true;
    }
    return false;
}

static bool node_to_gate(po_graph *graph, po_node_id id) {
    const po_node *n = &graph->nodes[id];
    po_value_id x = n->in[0];
    po_type type = graph->values[x].type;
    po_value_id gate = po_add_op(graph, id, PO_OP_HardSigmoid, 1, &x, &type);
    po_node_set_float(graph, graph->values[gate].producer, "alpha", 1.0f / 6.0f);
    po_node_set_float(graph, graph->values[gate].producer, "beta", 0.5f);
    po_substitute(graph, graph->nodes[id].out[0],
                  po_add_op(graph, id, PO_OP_Mul, 2, (po_value_id[]){x, gate}, &type));
    return true;
}

po_status po_write_gates(po_ctx *ctx, po_graph *graph, po_rewriting *state) {
    (void)ctx;
    po_hard_swish_form form = state->options->hard_swish;
    if (form == PO_HARD_SWISH_KEEP)
        return PO_OK;
    bool has_node = graph->model && po_model_opset(graph->model, "") >= 14;
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
        else if (node->op == PO_OP_Mul && form == PO_HARD_SWISH_NODE && has_node)
            written = po_law_fired(state, PO_LAW_HARD_SWISH_NODE, gate_to_node(graph, order[k]));
        else if (node->op == PO_OP_HardSwish && form == PO_HARD_SWISH_GATED &&
                 po_rearrangeable(graph, node->in[0]))
            written = po_law_fired(state, PO_LAW_HARD_SWISH_GATE, node_to_gate(graph, order[k]));
        state->counts->used |= written ? PO_USED_HARD_SWISH : 0;
    }
    return PO_OK;
}
