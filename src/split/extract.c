/* Some nodes of a graph as a graph of their own. */
#include "ops/op.h"
#include "split/parts.h"

#include <stdint.h>

typedef struct extract {
    po_ctx *ctx;
    po_arena *arena;
    const po_graph *from;
    po_graph *to;
    uint32_t *inside;   /* by node of `from`: 1 where it is taken */
    uint64_t *weighing; /* by place in `nodes`: which inputs are weights, a bit each */
    po_value_id *map;   /* by value of `from` */
    bool *is_input;     /* by value of `from` */
    po_value_id *activations, *weights, *outputs;
    uint32_t n_activations, n_weights, n_outputs, cap_activations, cap_weights, cap_outputs;
} extract;

static bool made_inside(const extract *x, po_value_id v) {
    po_node_id producer = x->from->values[v].producer;
    return producer != PO_NONE && x->inside[producer];
}

/* Values that come from outside, by first use. */
static po_status find_inputs(extract *x, const po_node_id *nodes, uint32_t n, bool free_weights) {
    for (uint32_t i = 0; i < n; i++) {
        const po_node *node = &x->from->nodes[nodes[i]];
        for (uint32_t k = 0; k < node->n_in; k++) {
            po_value_id v = node->in[k];
            if (v == PO_NONE || made_inside(x, v))
                continue;
            bool constant = po_graph_constant(x->from, v) != NULL, weight = false;
            if (constant && free_weights) {
                po_arena *scratch = po_arena_create(x->ctx);
                po_status status = po_split_is_weight(x->ctx, scratch, x->from, node, k, &weight);
                po_arena_free(scratch);
                PO_TRY(status);
            }
            x->weighing[i] |= (uint64_t)weight << (k & 63);
            if (x->is_input[v] || (constant && !weight))
                continue;
            x->is_input[v] = true;
            if (constant)
                PO_PUSH(x->arena, x->weights, x->n_weights, x->cap_weights, v);
            else
                PO_PUSH(x->arena, x->activations, x->n_activations, x->cap_activations, v);
        }
    }
    return PO_OK;
}

static bool read_outside(const extract *x, po_value_id v) {
    const po_value *value = &x->from->values[v];
    if (value->n_outputs > 0)
        return true;
    for (uint32_t u = 0; u < value->n_uses; u++)
        if (!x->inside[value->uses[u].node])
            return true;
    return false;
}

static void find_outputs(extract *x, const po_node_id *nodes, uint32_t n) {
    for (uint32_t i = 0; i < n; i++) {
        const po_node *node = &x->from->nodes[nodes[i]];
        for (uint32_t k = 0; k < node->n_out; k++)
            if (node->out[k] != PO_NONE && read_outside(x, node->out[k]))
                PO_PUSH(x->arena, x->outputs, x->n_outputs, x->cap_outputs, node->out[k]);
    }
}

static void add_inputs(extract *x, const po_value_id *values, uint32_t n, char letter) {
    for (uint32_t i = 0; i < n; i++) {
        const char *name = po_arena_printf(x->arena, "%c%u", letter, i);
        x->map[values[i]] = po_graph_add_input(x->to, name, &x->from->values[values[i]].type);
    }
}

/* A value may be a weight at one input and shape the operator at another. */
static po_value_id value_of(extract *x, po_value_id v, bool weight) {
    const po_tensor *constant = po_graph_constant(x->from, v);
    bool input = constant && x->is_input[v];
    if (x->map[v] != PO_NONE && (!constant || weight || !input))
        return x->map[v];
    po_value_id c = po_graph_add_constant(x->to, NULL, constant);
    if (!input)
        x->map[v] = c;
    return c;
}

static void add_node(extract *x, po_node_id id, uint64_t weighing) {
    const po_node *node = &x->from->nodes[id];
    po_value_id *in = PO_NEW_N(x->arena, po_value_id, node->n_in);
    po_value_id *out = PO_NEW_N(x->arena, po_value_id, node->n_out);
    for (uint32_t k = 0; k < node->n_in; k++)
        in[k] =
            node->in[k] == PO_NONE ? PO_NONE : value_of(x, node->in[k], weighing >> (k & 63) & 1);
    for (uint32_t k = 0; k < node->n_out; k++) {
        out[k] = PO_NONE;
        if (node->out[k] == PO_NONE)
            continue;
        const char *name = NULL;
        for (uint32_t o = 0; o < x->n_outputs; o++)
            if (x->outputs[o] == node->out[k])
                name = po_arena_printf(x->arena, "y%u", o);
        out[k] = po_graph_add_value(x->to, name, &x->from->values[node->out[k]].type);
        x->map[node->out[k]] = out[k];
    }
    po_node_spec spec = po_node_spec_like(node, in, out);
    spec.name = NULL;
    spec.origin = NULL;
    po_graph_add_node(x->to, &spec);
}

po_status po_split_extract(po_ctx *ctx, po_arena *arena, const po_graph *graph,
                           const po_node_id *nodes, uint32_t n, bool free_weights,
                           po_extract *made) {
    po_arena *scratch = po_arena_create(ctx);
    extract x = {.ctx = ctx, .arena = scratch, .from = graph};
    x.inside = PO_NEW_N(scratch, uint32_t, graph->n_nodes);
    x.weighing = PO_NEW_N(scratch, uint64_t, n);
    x.is_input = PO_NEW_N(scratch, bool, graph->n_values);
    x.map = PO_NEW_N(arena, po_value_id, graph->n_values);
    for (po_value_id v = 0; v < graph->n_values; v++)
        x.map[v] = PO_NONE;
    for (uint32_t i = 0; i < n; i++)
        x.inside[nodes[i]] = 1;
    PO_TRY(find_inputs(&x, nodes, n, free_weights));
    find_outputs(&x, nodes, n);
    x.to = po_graph_create(ctx, graph->model, "sub");
    po_arena_hold(x.to->arena, graph->arena);
    add_inputs(&x, x.activations, x.n_activations, 'x');
    add_inputs(&x, x.weights, x.n_weights, 'w');
    for (uint32_t i = 0; i < n; i++)
        add_node(&x, nodes[i], x.weighing[i]);
    for (uint32_t i = 0; i < x.n_outputs; i++)
        po_graph_add_output(x.to, x.map[x.outputs[i]]);
    uint32_t n_in = x.n_activations + x.n_weights;
    po_value_id *in = PO_NEW_N(arena, po_value_id, n_in);
    for (uint32_t i = 0; i < n_in; i++)
        in[i] = i < x.n_activations ? x.activations[i] : x.weights[i - x.n_activations];
    *made = (po_extract){
        .graph = x.to,
        .n_activations = x.n_activations,
        .at = {in, po_arena_memdup(arena, x.outputs, x.n_outputs * sizeof *x.outputs),
               po_arena_memdup(arena, nodes, n * sizeof *nodes), n},
        .map = x.map,
    };
    po_arena_free(scratch);
    return PO_OK;
}
