/* Half precision worked in float.
 *
 * ONNX Runtime's CPU has hardly an operator in half precision: it puts casts around what it cannot
 * work and takes out the pairs that meet, those with a cast of the model too, after it has looked
 * for what can be fused. So it rounds to half precision where a value leaves, and nowhere inside.
 * Written like that from the start, the inside is a model in float: the runtime fuses it, and all
 * other laws and kernels are for it too. Two casts of the model that meet stay, and round. What
 * only moves data is worked in float where it gets floats; else it stays in half precision, and its
 * result is cast. */
#include "ops/recipe/recipe.h"
#include "rewrite/passes.h"

typedef struct widening {
    po_graph *graph;
    po_value_id *wide; /* by value: the same in float; PO_NONE: not made yet */
    bool *worked;      /* by value: a node in float makes it */
    uint32_t known;    /* values that there were */
} widening;

static bool is_half(const po_graph *graph, po_value_id value) {
    return value != PO_NONE && graph->values[value].type.kind == PO_TYPE_TENSOR &&
           graph->values[value].type.dtype == PO_F16;
}

static bool was_worked(const widening *w, po_value_id value) {
    return value != PO_NONE && value < w->known && w->worked[value];
}

static bool is_worked(const widening *w, const po_node *node) {
    const uint32_t never = PO_OPF_CONTROL | PO_OPF_QUANTIZE | PO_OPF_RANDOM;
    const uint32_t moves = PO_OPF_MOVES_DATA | PO_OPF_SHAPE_ONLY;
    bool half = false, worked = false;
    for (uint32_t k = 0; k < node->n_in; k++) {
        half |= is_half(w->graph, node->in[k]);
        worked |= was_worked(w, node->in[k]);
    }
    if (!half || node->op == PO_OP_Cast || !po_signature_retypes(w->graph, node, PO_F16, PO_F32))
        return false;
    return !po_op_has(node->op, worked ? never : never | moves);
}

static po_type in_float(const po_graph *graph, po_value_id value) {
    po_type type = graph->values[value].type;
    type.dtype = PO_F32;
    return type;
}

/* A value in float, for a node at that place: what a node makes so, a constant, or a cast. Weights
 * that a body shares with the graph around it are cast, and not there once more. */
static po_value_id wide_of(widening *w, po_arena *scratch, po_node_id place, po_value_id value) {
    if (!is_half(w->graph, value) || value >= w->known)
        return value;
    if (w->wide[value] != PO_NONE)
        return w->wide[value];
    const po_node *made = po_made_by(w->graph, value, PO_OP_Cast);
    if (made && w->graph->values[made->in[0]].type.dtype == PO_F32)
        w->wide[value] = made->in[0];
    else if (w->graph->values[value].outer == PO_NONE && po_graph_constant(w->graph, value))
        w->wide[value] =
            po_add_recipe(w->graph, NULL, PO_F32, po_recipe_doubles(w->graph, scratch, value));
    if (w->wide[value] == PO_NONE)
        w->wide[value] = po_add_cast(w->graph, place, value, PO_F32);
    return w->wide[value];
}

static void work_in_float(widening *w, po_arena *scratch, po_node_id id) {
    po_graph *graph = w->graph;
    const uint32_t n_in = graph->nodes[id].n_in, n_out = graph->nodes[id].n_out;
    po_value_id *in = PO_NEW_N(scratch, po_value_id, n_in);
    po_value_id *out = PO_NEW_N(scratch, po_value_id, n_out);
    for (uint32_t k = 0; k < n_in; k++)
        in[k] = wide_of(w, scratch, id, graph->nodes[id].in[k]);
    for (uint32_t k = 0; k < n_out; k++) {
        const po_value_id y = graph->nodes[id].out[k];
        if (y == PO_NONE) {
            out[k] = PO_NONE;
            continue;
        }
        const po_type type = is_half(graph, y) ? in_float(graph, y) : graph->values[y].type;
        out[k] = po_graph_add_value(graph, NULL, &type);
        w->wide[y] = out[k];
        w->worked[y] = is_half(graph, y);
    }
    const po_node_spec spec = po_node_spec_like(&graph->nodes[id], in, out);
    po_graph_add_node_at(graph, id, &spec);
}

/* What reads the node's outputs yet reads those of the node in float. */
static void replace(widening *w, po_node_id id) {
    po_graph *graph = w->graph;
    for (uint32_t k = 0; k < graph->nodes[id].n_out; k++) {
        const po_value_id y = graph->nodes[id].out[k];
        if (y == PO_NONE || (graph->values[y].n_uses == 0 && graph->values[y].n_outputs == 0))
            continue;
        const po_value_id wide = w->wide[y];
        po_substitute(graph, y, w->worked[y] ? po_add_cast(graph, id, wide, PO_F16) : wide);
        if (graph->nodes[id].removed)
            return;
    }
    po_graph_remove_node(graph, id);
}

/* A cast of the model back to float is of what is in float already. */
static bool is_back(const widening *w, const po_node *node) {
    return node->op == PO_OP_Cast && was_worked(w, node->in[0]) &&
           w->graph->values[node->out[0]].type.dtype == PO_F32;
}

po_status po_work_half_in_float(po_ctx *ctx, po_graph *graph, po_rewriting *state) {
    if (!state->options->half)
        return PO_OK;
    uint32_t n, n_worked = 0;
    const po_node_id *order = po_graph_order(graph, state->scratch, &n);
    po_node_id *worked = PO_NEW_N(state->scratch, po_node_id, n);
    widening w = {.graph = graph, .known = graph->n_values};
    w.wide = PO_NEW_N(state->scratch, po_value_id, w.known);
    w.worked = PO_NEW_N(state->scratch, bool, w.known);
    for (uint32_t v = 0; v < w.known; v++)
        w.wide[v] = PO_NONE;
    for (uint32_t k = 0; k < n; k++) {
        const po_node *node = &graph->nodes[order[k]];
        if (is_back(&w, node)) {
            w.wide[node->out[0]] = w.wide[node->in[0]];
        } else if (is_worked(&w, node)) {
            PO_TRY(po_ctx_poll(ctx));
            work_in_float(&w, state->scratch, order[k]);
            po_law_fired(state, PO_LAW_HALF, true);
        } else {
            continue;
        }
        worked[n_worked++] = order[k];
    }
    while (n_worked > 0) /* readers first: what is read of them no more needs no cast */
        replace(&w, worked[--n_worked]);
    return PO_OK;
}
