/* Nodes copied from one graph to another, and the constants that they read. */
#include "ir/copy.h"

/* Values of an inlined body are called as po_inline_functions calls them. */
static const char *name_of(const po_copying *c, po_value_id v) {
    const char *name = po_graph_value_name(c->from, v);
    return c->prefix ? po_arena_printf(c->to->arena, "%s/%s", c->prefix, name) : name;
}

po_value_id po_copy_constant(po_copying *c, po_value_id v) {
    const po_value *value = &c->from->values[v];
    const po_tensor *tensor = po_graph_constant(c->from, v);
    c->map[v] = po_graph_add_constant(c->to, name_of(c, v), tensor);
    c->to->values[c->map[v]].recipe = value->recipe;
    return c->map[v];
}

po_status po_copy_node(po_copying *c, const po_node *node, po_node_id place) {
    po_arena *arena = c->to->arena;
    for (uint32_t i = 0; i < node->n_attr; i++)
        if (node->attr[i].kind == PO_ATTR_GRAPH || node->attr[i].kind == PO_ATTR_GRAPHS)
            return po_fail(c->ctx, PO_UNSUPPORTED,
                           "node '%.100s' (%.60s) holds a graph: it cannot "
                           "become part of another",
                           node->name, node->op_type);
    po_value_id *in = PO_NEW_N(arena, po_value_id, node->n_in);
    po_value_id *out = PO_NEW_N(arena, po_value_id, node->n_out);
    for (uint32_t i = 0; i < node->n_in; i++) {
        po_value_id v = node->in[i];
        in[i] = v == PO_NONE ? PO_NONE : c->map[v];
        if (v != PO_NONE && in[i] == PO_NONE) {
            if (!po_graph_constant(c->from, v))
                return po_fail(c->ctx, PO_UNSUPPORTED,
                               "node '%.100s' (%.60s) reads '%.100s', which "
                               "it is not given there",
                               node->name, node->op_type, po_graph_value_name(c->from, v));
            in[i] = po_copy_constant(c, v);
        }
    }
    for (uint32_t i = 0; i < node->n_out; i++) {
        po_value_id v = node->out[i];
        out[i] = v;
        if (v == PO_NONE)
            continue;
        if (c->map[v] == PO_NONE)
            c->map[v] = po_graph_add_value(c->to, name_of(c, v), &c->from->values[v].type);
        out[i] = c->map[v];
        c->to->values[out[i]].constant = c->from->values[v].constant;
        c->to->values[out[i]].recipe = c->from->values[v].recipe;
        c->to->values[out[i]].partial = c->from->values[v].partial;
    }
    po_node_spec spec = po_node_spec_like(node, in, out);
    /* In a body nodes are named after what they make: the names that values get there later may be
     * those of nodes whose output is another one by now. */
    if (place == PO_NONE && node->n_out > 0 && out[0] != PO_NONE)
        spec.name = c->to->values[out[0]].name;
    if (place == PO_NONE)
        po_graph_add_node(c->to, &spec);
    else
        po_graph_add_node_at(c->to, place, &spec);
    return PO_OK;
}

po_value_id *po_copy_map(po_arena *arena, const po_graph *graph) {
    po_value_id *map = PO_NEW_N(arena, po_value_id, graph->n_values);
    for (po_value_id v = 0; v < graph->n_values; v++)
        map[v] = PO_NONE;
    return map;
}
