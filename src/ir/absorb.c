/* Moving a body's nodes into the graph around it. */
#include "ir/graph.h"

/* Bodies inside the absorbed one now capture from the graph around it. */
static void reparent(po_graph *inner, po_graph *parent, const po_value_id *map) {
    inner->parent = parent;
    inner->owner = PO_NONE; /* until its node is added */
    for (uint32_t i = 0; i < inner->n_values; i++)
        if (inner->values[i].outer != PO_NONE)
            inner->values[i].outer = map[inner->values[i].outer];
}

const po_value_id *po_graph_absorb_body(po_graph *graph, po_node_id place, po_graph *body) {
    po_arena *arena = graph->arena;
    po_value_id *map = PO_NEW_N(arena, po_value_id, body->n_values);
    for (uint32_t i = 0; i < body->n_values; i++) {
        const po_value *v = &body->values[i];
        if (v->outer != PO_NONE) {
            map[i] = v->outer;
        } else if (v->is_initializer && v->constant) {
            map[i] = po_graph_add_constant(graph, v->name, v->constant);
            graph->values[map[i]].recipe = v->recipe;
        } else {
            map[i] = po_graph_add_value(graph, v->name, &v->type);
            graph->values[map[i]].constant = v->constant;
            graph->values[map[i]].recipe = v->recipe;
            graph->values[map[i]].partial = v->partial;
        }
    }
    uint32_t n;
    const po_node_id *order = po_graph_order(body, arena, &n);
    for (uint32_t k = 0; k < n; k++) {
        const po_node *node = &body->nodes[order[k]];
        po_value_id *in = PO_NEW_N(arena, po_value_id, node->n_in);
        po_value_id *out = PO_NEW_N(arena, po_value_id, node->n_out);
        for (uint32_t i = 0; i < node->n_in; i++)
            in[i] = node->in[i] == PO_NONE ? PO_NONE : map[node->in[i]];
        for (uint32_t i = 0; i < node->n_out; i++)
            out[i] = node->out[i] == PO_NONE ? PO_NONE : map[node->out[i]];
        for (uint32_t i = 0; i < node->n_attr; i++) {
            const po_attr *a = &node->attr[i];
            if (a->kind == PO_ATTR_GRAPH && a->u.g)
                reparent(a->u.g, graph, map);
            else if (a->kind == PO_ATTR_GRAPHS)
                for (uint32_t b = 0; b < a->n; b++)
                    reparent(a->u.graphs[b], graph, map);
        }
        const po_node_spec spec = po_node_spec_like(node, in, out);
        po_graph_add_node_at(graph, place, &spec);
    }
    po_value_id *results = PO_NEW_N(arena, po_value_id, body->n_outputs);
    for (uint32_t i = 0; i < body->n_outputs; i++)
        results[i] = map[body->outputs[i]];
    return results;
}
