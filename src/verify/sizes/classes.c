/* Which values are equal for every length since the same nodes make them of the same. */
#include "ops/indices.h"
#include "verify/sizes/internal.h"

/* --- classes --- */

uint32_t po_sizes_new_class(po_sizes *s, uint32_t side, po_value_id value) {
    const po_size_class c = {.side = side,
                             .value = value,
                             .flat = s->n_classes,
                             .within = PO_NONE,
                             .original = side == 0};
    PO_PUSH(s->arena, s->classes, s->n_classes, s->cap_classes, c);
    return s->n_classes - 1;
}

static po_hash mixed(po_hash h, po_hash with) {
    return po_hash_u64(po_hash_u64(h, with.lo), with.hi);
}

static uint32_t class_by(po_sizes *s, po_hash key, uint32_t side, po_value_id value) {
    uint32_t c = po_hash_map_get(s->keys, key);
    if (c == PO_NONE) {
        c = po_sizes_new_class(s, side, value);
        po_hash_map_put(s->keys, key, c);
    }
    return c;
}

static po_hash dims_hash(po_hash h, const po_type *t, bool *known) {
    *known = t->kind == PO_TYPE_TENSOR && t->has_rank;
    for (uint32_t i = 0; *known && i < t->rank; i++) {
        *known = t->dims[i].value >= 0 || t->dims[i].symbol;
        h = po_hash_str(po_hash_u64(h, (uint64_t)t->dims[i].value), t->dims[i].symbol);
    }
    return h;
}

/* Constants by their contents, what follows from lengths by these, inputs by their names. */
uint32_t po_sizes_class(po_sizes *s, uint32_t side, po_value_id v) {
    uint32_t *slot = &s->class_of[side][v];
    const po_value *value = po_sizes_value(s, side, v);
    po_hash key = {0x636c6173, 1};
    if (*slot != PO_NONE)
        return *slot;
    if (value->constant) {
        key = mixed(key, po_tensor_hash(value->constant));
    } else if (po_piece_is_known(s->sized[side].open, v)) {
        key = po_hash_u64(key, value->type.dtype * 64 + value->type.rank + 1);
        for (uint32_t i = 0; i < value->partial->n; i++)
            key = po_hash_str(po_hash_u64(key, (uint64_t)value->partial->items[i].value),
                              value->partial->items[i].symbol);
    } else if (value->producer == PO_NONE && value->outer == PO_NONE) {
        key = po_hash_str(key, value->name);
    } else {
        return PO_NONE;
    }
    return *slot = class_by(s, key, side, v);
}

/* --- nodes of both models that are the same --- */

static bool has_captures(const po_node *node) {
    for (uint32_t k = 0; k < node->n_attr; k++) {
        const po_attr *a = &node->attr[k];
        if (a->kind == PO_ATTR_GRAPHS)
            return true;
        for (po_value_id v = 0; a->kind == PO_ATTR_GRAPH && v < a->u.g->n_values; v++)
            if (a->u.g->values[v].outer != PO_NONE)
                return true;
    }
    return false;
}

bool po_sizes_same_type(const po_sizes *s, uint32_t x, po_value_id a, uint32_t y, po_value_id b) {
    const po_type *p = &po_sizes_value(s, x, a)->type, *q = &po_sizes_value(s, y, b)->type;
    if (p->kind != PO_TYPE_TENSOR || q->kind != PO_TYPE_TENSOR || p->dtype != q->dtype ||
        !p->has_rank || !q->has_rank || p->rank != q->rank)
        return false;
    for (uint32_t i = 0; i < p->rank; i++)
        if (!po_dim_same(p->dims[i], q->dims[i]))
            return false;
    return true;
}

/* The class of what is `flat` in the shape of a value; PO_NONE where that is not known. */
uint32_t po_sizes_view(po_sizes *s, uint32_t side, po_value_id v, uint32_t flat) {
    bool known;
    const po_type *t = &po_sizes_value(s, side, v)->type;
    const po_hash key = dims_hash(po_hash_u64((po_hash){0x76696577, t->dtype}, flat), t, &known);
    if (!known)
        return PO_NONE;
    if (po_sizes_same_type(s, side, v, s->classes[flat].side, s->classes[flat].value))
        return flat;
    const uint32_t c = class_by(s, key, side, v);
    s->classes[c].flat = flat;
    return c;
}

/* The same elements, in another shape perhaps. */
uint32_t po_sizes_class_of_view(po_sizes *s, uint32_t side, const po_node *node) {
    const uint32_t of = node->in[0] == PO_NONE ? PO_NONE : po_sizes_class(s, side, node->in[0]);
    if (of == PO_NONE || node->n_out == 0 || node->out[0] == PO_NONE)
        return PO_NONE;
    return po_sizes_view(s, side, node->out[0], s->classes[of].flat);
}

/* It makes no element that its input does not have at the same place. */
bool po_sizes_is_view(const po_sizes *s, uint32_t side, const po_node *node) {
    if (po_op_has(node->op, PO_OPF_SHAPE_ONLY) || po_piece_passes(s->sized[side].open, node) ||
        (node->op == PO_OP_Concat && node->n_in == 1) ||
        ((node->op == PO_OP_Expand || node->op == PO_OP_Cast) && node->in[0] != PO_NONE &&
         po_sizes_same_type(s, side, node->in[0], side, node->out[0])))
        return true;
    po_arena *scratch = po_arena_child(s->arena);
    const bool in_order = po_takes_in_order(scratch, s->sized[side].open, node);
    po_arena_free(scratch);
    return in_order;
}

/* Operator, attributes and the classes that go in; what only says the shape, by the shape. */
bool po_sizes_key(po_sizes *s, po_prun *run, uint32_t side, const po_node *node, po_hash *key) {
    const po_graph *g = s->sized[side].open;
    const po_pnode n = {
        .run = run, .arena = run->arena, .graph = g, .node = node, .opset = po_op_version(g, node)};
    const bool shaped = node->op == PO_OP_Expand && node->n_out == 1;
    bool known = true;
    if (po_op_has(node->op, PO_OPF_RANDOM) || has_captures(node) ||
        po_model_function(g->model, node))
        return false;
    *key = po_pn_identity(&n);
    for (uint32_t k = 0; k < node->n_in && (!shaped || k == 0); k++) {
        const uint32_t c =
            node->in[k] == PO_NONE ? PO_NONE - 1 : po_sizes_class(s, side, node->in[k]);
        if (c == PO_NONE)
            return false;
        *key = po_hash_u64(*key, c);
    }
    if (shaped)
        *key = dims_hash(*key, &po_sizes_value(s, side, node->out[0])->type, &known);
    return known;
}

int64_t po_sizes_channels(const po_sizes *s, uint32_t side, po_value_id v) {
    const uint32_t c = s->class_of[side][v];
    return c != PO_NONE && s->classes[c].within != PO_NONE ? s->classes[c].channels : 0;
}
