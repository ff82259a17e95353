/* Which elements of a value show in the graph's outputs: backwards from the outputs, element by
 * element where an operator reads some and leaves others out (slices, padding, strides): by its
 * indexed sum, or by what the reference moves.
 *
 * An operator that is not known here shows nothing, so what is said to show does. What shows on one
 * of several ways shows. */
#include "verify/proof/observability.h"

int64_t po_observable_count(const po_observable *s, po_value_id v) {
    const po_type *t = v == PO_NONE ? NULL : &s->graph->values[v].type;
    if (!t || t->kind != PO_TYPE_TENSOR || !po_type_static(t))
        return -1;
    int64_t count = po_type_count(t);
    return count <= PO_OBSERVABLE_ELEMENTS ? count : -1;
}

bool *po_observable_mask(const po_observable *s, po_value_id v) {
    int64_t count = po_observable_count(s, v);
    if (count < 0 || po_graph_constant(s->graph, v) ||
        po_dtype_class_of(s->graph->values[v].type.dtype) != PO_CLASS_FLOAT)
        return NULL;
    if (!s->mask[v])
        s->mask[v] = PO_NEW_N(s->arena, bool, count);
    return s->mask[v];
}

bool po_observable_all(const po_observable *s, po_value_id v) {
    int64_t count = po_observable_count(s, v);
    const bool *mask = count < 0 ? NULL : s->mask[v];
    for (int64_t i = 0; mask && i < count; i++)
        if (!mask[i])
            return false;
    return mask != NULL;
}

static void show_all(const po_observable *s, po_value_id v) {
    bool *mask = v == PO_NONE ? NULL : po_observable_mask(s, v);
    if (mask)
        memset(mask, true, (size_t)po_observable_count(s, v));
}

static bool has_zero(const po_tensor *t) {
    if (po_dtype_class_of(t->dtype) != PO_CLASS_FLOAT)
        return true;
    for (int64_t i = 0; i < t->count; i++)
        if (po_tensor_f64(t, i) == 0)
            return true;
    return false;
}

/* --- operators --- */

/* Elements that move: numbers take their places. */
static po_status by_moving(po_observable *s, const po_node *n) {
    const po_array **in = PO_NEW_N(s->arena, const po_array *, n->n_in);
    po_array **out = PO_NEW_N(s->arena, po_array *, n->n_out);
    bool **mask = PO_NEW_N(s->arena, bool *, n->n_in);
    int64_t *from = PO_NEW_N(s->arena, int64_t, n->n_in + 1);
    for (uint32_t k = 0; k < n->n_in; k++) {
        from[k + 1] = from[k];
        if (n->in[k] == PO_NONE)
            continue;
        const po_type *type = &s->graph->values[n->in[k]].type;
        const po_tensor *t = po_graph_constant(s->graph, n->in[k]);
        po_array *a = NULL;
        if (t && po_dtype_class_of(t->dtype) != PO_CLASS_FLOAT) {
            PO_TRY(po_array_from_tensor(s->ctx, s->arena, t, &a));
        } else {
            int64_t count = t ? t->count : po_observable_count(s, n->in[k]);
            if (count < 0 || (!t && !(mask[k] = po_observable_mask(s, n->in[k]))))
                return PO_OK;
            int64_t dims[PO_MAX_RANK];
            uint32_t rank = t ? t->rank : type->rank;
            for (uint32_t i = 0; i < rank; i++)
                dims[i] = t ? t->dims[i] : type->dims[i].value;
            PO_TRY(po_array_create(s->ctx, s->arena, PO_F64, rank, dims, &a));
            for (int64_t i = 0; !t && i < count; i++)
                a->f[i] = (double)(from[k] + i + 1); /* 0: no element */
            from[k + 1] += t ? 0 : count;
        }
        in[k] = a;
    }
    PO_TRY(po_ref_node(s->ctx, s->arena, s->graph, n, in, out));
    for (uint32_t o = 0; o < n->n_out; o++) {
        const bool *shown = n->out[o] == PO_NONE ? NULL : s->mask[n->out[o]];
        if (!shown || !out[o] || !out[o]->f || out[o]->count != po_observable_count(s, n->out[o]))
            continue;
        for (int64_t i = 0; i < out[o]->count; i++) {
            int64_t id = (int64_t)out[o]->f[i] - 1;
            for (uint32_t k = 0; shown[i] && id >= 0 && k < n->n_in; k++)
                if (mask[k] && id >= from[k] && id < from[k + 1])
                    mask[k][id - from[k]] = true;
        }
    }
    return PO_OK;
}

/* Operators whose output has every element of every float that they take. */
static bool keeps_all(po_op_id op) {
    switch (op) {
    case PO_OP_Concat:
    case PO_OP_Flatten:
    case PO_OP_Identity:
    case PO_OP_Reshape:
    case PO_OP_Squeeze:
    case PO_OP_Transpose:
    case PO_OP_Unsqueeze:
        return true;
    default:
        return false;
    }
}

/* Each element of the output by those that are broadcast to its place. */
static void by_element(const po_observable *s, const po_node *n) {
    const po_type *to = &s->graph->values[n->out[0]].type;
    const bool *shown = s->mask[n->out[0]];
    int64_t count = po_observable_count(s, n->out[0]);
    for (uint32_t k = 0; k < n->n_in; k++) {
        bool *mask = n->in[k] == PO_NONE ? NULL : po_observable_mask(s, n->in[k]);
        if (!mask)
            continue;
        const po_type *from = &s->graph->values[n->in[k]].type;
        if (from->rank > to->rank)
            continue;
        for (int64_t i = 0; i < count; i++) {
            int64_t rest = i, at = 0, stride = 1;
            for (uint32_t a = to->rank; shown[i] && a-- > 0;) {
                int64_t place = rest % to->dims[a].value;
                rest /= to->dims[a].value;
                if (a + from->rank < to->rank)
                    continue;
                int64_t length = from->dims[a + from->rank - to->rank].value;
                at += length == 1 ? 0 : place * stride;
                stride *= length;
            }
            if (shown[i])
                mask[at] = true;
        }
    }
}

/* --- the graph --- */

static po_status through(po_observable *s, const po_node *n) {
    if (n->n_out < 1 || n->n_in < 1)
        return PO_OK;
    bool any = false;
    for (uint32_t k = 0; k < n->n_out; k++)
        any |= n->out[k] != PO_NONE && s->mask[n->out[k]];
    if (!any || (n->out[0] == PO_NONE && !po_op_has(n->op, PO_OPF_MOVES_DATA)))
        return PO_OK;
    /* Each element of what they make is made of a whole row or map, and of a weight and a row. That
     * is nothing that a flag or a sum says: they are no sums. */
    switch (n->op) {
    case PO_OP_ReduceMax:
    case PO_OP_GlobalMaxPool:
    case PO_OP_Softmax:
    case PO_OP_LogSoftmax:
        if (po_observable_all(s, n->out[0]))
            show_all(s, n->in[0]);
        return PO_OK;
    case PO_OP_LayerNormalization:
        for (uint32_t k = 0; k < 2; k++) {
            const po_tensor *t =
                n->in[1 - k] == PO_NONE ? NULL : po_graph_constant(s->graph, n->in[1 - k]);
            if (po_observable_all(s, n->out[0]) && !(t && has_zero(t)))
                show_all(s, n->in[k]);
        }
        return PO_OK;
    default:
        break;
    }
    if (n->n_out == 1 && keeps_all(n->op) && po_observable_all(s, n->out[0])) {
        for (uint32_t k = 0; k < n->n_in; k++)
            show_all(s, n->in[k]);
        return PO_OK;
    }
    if (po_op_has(n->op, PO_OPF_MOVES_DATA))
        return by_moving(s, n);
    if (po_op_has(n->op, PO_OPF_LINEAR))
        return po_observable_by_sum(s, n);
    if (po_op_has(n->op, PO_OPF_ELEMENTWISE) && n->n_out == 1 && s->mask[n->out[0]])
        by_element(s, n);
    return PO_OK;
}

bool po_pn_all_observable(po_pnode *at, po_value_id value) {
    const po_graph *g = at->graph;
    po_observable s = {at->run->ctx, po_arena_child(at->arena), g, NULL};
    s.mask = PO_NEW_N(s.arena, bool *, g->n_values);
    uint32_t n;
    const po_node_id *order = po_graph_order(g, s.arena, &n);
    for (uint32_t k = 0; k < g->n_outputs; k++)
        show_all(&s, g->outputs[k]);
    bool all = false;
    for (uint32_t k = n; k-- > 0;) {
        const po_node *node = &g->nodes[order[k]];
        if (node == at->node) {
            all = po_observable_all(&s, value);
            break;
        }
        if (node->removed)
            continue;
        if (through(&s, node) != PO_OK)
            po_ctx_clear(s.ctx);
    }
    po_arena_free(s.arena);
    return all;
}
