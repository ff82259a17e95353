/* Records of single operators in the cost cache. */
#include "cost/profile.h"

#include <math.h>

static bool hash_type(const po_graph *graph, po_value_id id, po_hash *hash) {
    if (id == PO_NONE) {
        *hash = po_hash_u64(*hash, 0x6e6f6e65);
        return true;
    }
    const po_type *type = &graph->values[id].type;
    if (type->kind != PO_TYPE_TENSOR || !po_type_static(type))
        return false;
    *hash = po_hash_u64(*hash, (uint64_t)type->dtype);
    *hash = po_hash_u64(*hash, type->rank);
    for (uint32_t i = 0; i < type->rank; i++)
        *hash = po_hash_u64(*hash, (uint64_t)type->dims[i].value);
    /* The runtime packs constants and folds: an operator with one costs otherwise. */
    *hash = po_hash_u64(*hash, po_graph_constant(graph, id) != NULL);
    return true;
}

static bool hash_attr(const po_attr *attr, po_hash *hash) {
    *hash = po_hash_str(*hash, attr->name);
    *hash = po_hash_u64(*hash, (uint64_t)attr->kind);
    *hash = po_hash_u64(*hash, attr->n);
    switch (attr->kind) {
    case PO_ATTR_INT:
        *hash = po_hash_u64(*hash, (uint64_t)attr->u.i);
        return true;
    case PO_ATTR_FLOAT:
        *hash = po_hash_bytes(&attr->u.f, sizeof attr->u.f, *hash);
        return true;
    case PO_ATTR_STRING:
        *hash = po_hash_bytes(attr->u.s.data, attr->u.s.size, *hash);
        return true;
    case PO_ATTR_INTS:
        *hash = po_hash_bytes(attr->u.ints, sizeof *attr->u.ints * attr->n, *hash);
        return true;
    case PO_ATTR_FLOATS:
        *hash = po_hash_bytes(attr->u.floats, sizeof *attr->u.floats * attr->n, *hash);
        return true;
    case PO_ATTR_TENSOR: {
        po_hash t = po_tensor_hash(attr->u.t);
        *hash = po_hash_u64(po_hash_u64(*hash, t.lo), t.hi);
        return true;
    }
    default:
        return false; /* bodies: their cost is not one operator's */
    }
}

bool po_operator_key(const po_cost *cost, const po_graph *graph, const po_node *node,
                     uint32_t threads, po_hash *key) {
    po_hash k = po_hash_u64(po_cost_key(cost), threads);
    k = po_hash_str(po_hash_str(k, node->domain), node->op_type);
    k = po_hash_u64(k, (uint64_t)po_model_opset(graph->model, node->domain));
    for (uint32_t i = 0; i < node->n_attr; i++)
        if (!hash_attr(&node->attr[i], &k))
            return false;
    for (uint32_t i = 0; i < node->n_in; i++)
        if (!hash_type(graph, node->in[i], &k))
            return false;
    for (uint32_t i = 0; i < node->n_out; i++)
        if (!hash_type(graph, node->out[i], &k))
            return false;
    *key = k;
    return true;
}

uint32_t po_operators_record(po_cost *cost, const po_graph *graph, uint32_t threads,
                             const po_profile *profile) {
    uint32_t kept = 0;
    po_arena *scratch = po_arena_child(graph->arena);
    po_map *rows = po_map_create(scratch);
    for (uint32_t i = 0; i < profile->n; i++)
        po_map_put(rows, profile->rows[i].name, i);
    for (po_node_id id = 0; id < graph->n_nodes; id++) {
        const po_node *node = &graph->nodes[id];
        uint32_t at = node->removed || !node->name[0] ? PO_NONE : po_map_get(rows, node->name);
        po_hash key;
        if (at == PO_NONE || strcmp(profile->rows[at].op, node->op_type) != 0 ||
            profile->rows[at].calls != 1 || !po_operator_key(cost, graph, node, threads, &key))
            continue;
        double seconds = profile->rows[at].seconds;
        kept += po_cache_put(cost->cache, "operator", key, &seconds, sizeof seconds);
    }
    po_arena_free(scratch);
    return kept;
}

bool po_operator_seconds(po_cost *cost, const po_graph *graph, const po_node *node,
                         uint32_t threads, double *seconds) {
    po_hash key;
    return po_operator_key(cost, graph, node, threads, &key) &&
           po_cache_get_fixed(cost->cache, "operator", key, seconds, sizeof *seconds) &&
           isfinite(*seconds) && *seconds >= 0;
}
