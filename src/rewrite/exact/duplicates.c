/* Duplicate nodes and constants. Of two equal nodes the earlier one stays. */
#include "rewrite/passes.h"

static po_hash node_hash(const po_node *n) {
    po_hash h = po_hash_str(po_hash_u64((po_hash){0, 0}, n->op), n->op_type);
    for (uint32_t i = 0; i < n->n_in; i++)
        h = po_hash_u64(h, n->in[i]);
    po_hash sum = {0, 0};
    for (uint32_t i = 0; i < n->n_attr; i++) {
        po_hash a = po_attr_hash(&n->attr[i]);
        sum.lo += a.lo;
        sum.hi += a.hi;
    }
    return po_hash_u64(po_hash_u64(h, sum.lo), sum.hi);
}

static bool node_equal(const po_node *a, const po_node *b) {
    if (a->op != b->op || a->n_in != b->n_in || a->n_out != b->n_out || a->n_attr != b->n_attr)
        return false;
    for (uint32_t i = 0; i < a->n_in; i++)
        if (a->in[i] != b->in[i])
            return false;
    for (uint32_t i = 0; i < a->n_out; i++)
        if ((a->out[i] == PO_NONE) != (b->out[i] == PO_NONE))
            return false;
    for (uint32_t i = 0; i < a->n_attr; i++) {
        const po_attr *other = po_node_attr(b, a->attr[i].name);
        if (!other || !po_attr_equal(&a->attr[i], other))
            return false;
    }
    return true;
}

/* Known operators without randomness or bodies; an opaque node may have state. */
static bool may_merge(const po_graph *graph, const po_node *n) {
    if (n->op == PO_OP_OPAQUE || po_op_has(n->op, PO_OPF_RANDOM | PO_OPF_CONTROL))
        return false;
    for (uint32_t i = 0; i < n->n_out; i++)
        if (n->out[i] != PO_NONE && graph->values[n->out[i]].n_outputs)
            return false;
    return true;
}

static void merge_constants(po_graph *graph, po_rewriting *state) {
    po_hash_map *seen = po_hash_map_create(state->scratch);
    for (uint32_t i = 0; i < graph->n_initializers; i++) {
        po_value_id id = graph->initializers[i];
        const po_value *v = &graph->values[id];
        if (v->is_input || v->n_outputs || v->n_uses == 0 || !v->constant)
            continue;
        po_hash h = po_tensor_hash(v->constant);
        po_value_id first = po_hash_map_get(seen, h);
        if (first == PO_NONE) {
            po_hash_map_put(seen, h, id);
        } else if (po_tensor_equal(graph->values[first].constant, v->constant)) {
            po_graph_replace_uses(graph, id, first);
            po_law_fired(state, PO_LAW_MERGE_CONSTANTS, true);
        }
    }
}

po_status po_merge_duplicates(po_ctx *ctx, po_graph *graph, po_rewriting *state) {
    (void)ctx;
    merge_constants(graph, state);
    po_hash_map *seen = po_hash_map_create(state->scratch);
    uint32_t n;
    const po_node_id *order = po_graph_order(graph, state->scratch, &n);
    for (uint32_t k = 0; k < n; k++) {
        po_node *node = &graph->nodes[order[k]];
        if (node->removed || node->n_in == 0 || !may_merge(graph, node))
            continue;
        po_hash h = node_hash(node);
        po_node_id first = po_hash_map_get(seen, h);
        if (first == PO_NONE) {
            po_hash_map_put(seen, h, order[k]);
            continue;
        }
        const po_node *other = &graph->nodes[first];
        if (!node_equal(node, other))
            continue;
        for (uint32_t i = 0; i < node->n_out; i++)
            if (node->out[i] != PO_NONE)
                po_graph_replace_uses(graph, node->out[i], other->out[i]);
        po_graph_remove_node(graph, order[k]);
        po_law_fired(state, PO_LAW_MERGE_NODES, true);
    }
    return PO_OK;
}
