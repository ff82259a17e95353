/* Parts of joined maps: what a Concat puts together is written where it will lie, by the steps that
 * make it, where nothing stands against that. So a map that is corrected at its edges, or one that
 * layers add channels to, is not copied. Who else reads a part reads it there, and a Concat of what
 * lies side by side in a larger one is a view of that. */
#include "superopt/lower/internal.h"

/* Vectors of lanes are not cut by where the parts meet. */
static bool keeps_vectors(const po_lowering *l, po_value_id v, uint32_t axis, int64_t offset) {
    const po_type *type = &l->graph->values[v].type;
    const uint32_t lane = l->channels_last[v] ? 1 : type->rank - 1;
    return axis != lane ||
           (offset % PO_MU_VECTOR == 0 && type->dims[axis].value % PO_MU_VECTOR == 0);
}

/* Whether the value's tensor may be that of a larger one. */
static bool can_join(const po_lowering *l, po_value_id whole, po_value_id v, uint32_t axis,
                     int64_t offset) {
    const po_value *value = &l->graph->values[v];
    const bool inside = value->producer != PO_NONE && l->place[value->producer] != PO_NONE;
    for (uint32_t u = 0; u < value->n_uses; u++)
        if (value->uses[u].input == PO_USE_CAPTURE)
            return false;
    return inside && l->joined[v].whole == PO_NONE && l->output[v] == PO_NONE &&
           l->channels_last[v] == l->channels_last[whole] && keeps_vectors(l, v, axis, offset);
}

/* --- who goes where --- */

/* The axis of a Concat or Split; PO_NONE. */
static uint32_t axis_of(const po_lowering *l, const po_node *node) {
    const int64_t rank = l->graph->values[node->out[0]].type.rank;
    int64_t axis = po_op_int(l->graph, node, "axis");
    axis += axis < 0 ? rank : 0;
    return axis >= 0 && axis < rank ? (uint32_t)axis : PO_NONE;
}

static int64_t length(const po_lowering *l, po_value_id v, uint32_t axis) {
    return l->graph->values[v].type.dims[axis].value;
}

/* What is split and joined again, all of it and in order, is a part itself. */
static void join_source(po_lowering *l, po_value_id part) {
    const po_node *split = po_graph_producer(l->graph, part);
    const po_lower_part_of *first = &l->joined[split->out[0]];
    const uint32_t axis = axis_of(l, split);
    int64_t offset = first->offset;
    for (uint32_t k = 0; k < split->n_out; k++) {
        const po_lower_part_of *is = &l->joined[split->out[k]];
        if (is->whole == PO_NONE || is->whole != first->whole || is->axis != axis ||
            is->offset != offset)
            return;
        offset += length(l, split->out[k], axis);
    }
    if (can_join(l, first->whole, split->in[0], axis, first->offset))
        l->joined[split->in[0]] = (po_lower_part_of){first->whole, axis, first->offset};
}

static void join_inputs(po_lowering *l, const po_node *node, uint32_t axis) {
    int64_t offset = 0;
    for (uint32_t k = 0; k < node->n_in; k++) {
        const po_value_id v = node->in[k];
        if (can_join(l, node->out[0], v, axis, offset))
            l->joined[v] = (po_lower_part_of){node->out[0], axis, offset};
        offset += length(l, v, axis);
    }
    for (uint32_t k = 0; k < node->n_in; k++) {
        const po_node *from = po_graph_producer(l->graph, node->in[k]);
        if (from && from->op == PO_OP_Split && l->joined[node->in[k]].whole == node->out[0])
            join_source(l, node->in[k]);
    }
}

/* Where all that a Concat puts together lies in one larger value, side by side and in order. */
static void join_whole(po_lowering *l, const po_node *node, uint32_t axis) {
    const po_value_id v = node->out[0];
    const po_lower_part_of first = l->joined[node->in[0]];
    int64_t offset = first.offset;
    if (first.whole == PO_NONE || first.whole == v || l->joined[v].whole != PO_NONE ||
        l->output[v] != PO_NONE || l->channels_last[v] != l->channels_last[first.whole])
        return;
    for (uint32_t k = 0; k < node->n_in; k++) {
        const po_lower_part_of *is = &l->joined[node->in[k]];
        if (is->whole != first.whole || is->axis != axis || is->offset != offset)
            return;
        offset += length(l, node->in[k], axis);
    }
    l->joined[v] = (po_lower_part_of){first.whole, axis, first.offset};
}

/* --- what parts share --- */

/* The value in whose tensor it lies. */
static po_value_id root_of(const po_lowering *l, po_value_id v) {
    while (l->joined[v].whole != PO_NONE)
        v = l->joined[v].whole;
    return v;
}

enum { READ_BY_SUMS = 1, READ_BY_MAXIMA = 2 };

/* Who reads the value past its edges, as far as nodes say so themselves. */
static unsigned read_past_edges(const po_lowering *l, po_value_id v) {
    const po_value *value = &l->graph->values[v];
    unsigned by = 0;
    for (uint32_t u = 0; u < value->n_uses; u++) {
        const po_node *node = &l->graph->nodes[value->uses[u].node];
        if (!po_op_has(node->op, PO_OPF_WINDOW))
            continue;
        uint32_t n = 0;
        const int64_t *pads = po_node_ints(node, "pads", &n);
        bool past = !po_node_string_is(node, "auto_pad", "NOTSET", "NOTSET");
        for (uint32_t i = 0; pads && i < n; i++)
            past |= pads[i] != 0;
        if (past)
            by |= node->op == PO_OP_MaxPool ? READ_BY_MAXIMA : READ_BY_SUMS;
    }
    return by;
}

/* A ring holds one number, so where sums read one part past its edges and maxima another these
 * have a tensor of their own. And what the region writes out is read by nobody inside. */
static void part_unlike(po_lowering *l) {
    unsigned *by = PO_NEW_N(l->arena, unsigned, l->graph->n_values + 1);
    for (po_value_id v = 0; v < l->graph->n_values; v++)
        by[root_of(l, v)] |= read_past_edges(l, v);
    for (po_value_id v = 0; v < l->graph->n_values; v++) {
        const po_value_id root = root_of(l, v);
        const bool shared = l->graph->values[v].n_uses > 1;
        if (root != v && ((by[root] == (READ_BY_SUMS | READ_BY_MAXIMA) &&
                           (read_past_edges(l, v) & READ_BY_MAXIMA)) ||
                          (shared && l->output[root] != PO_NONE)))
            l->joined[v].whole = PO_NONE;
    }
}

/* --- the plan --- */

static po_node_id *concats_of(const po_lowering *l, uint32_t *n) {
    po_node_id *list = PO_NEW_N(l->arena, po_node_id, l->region->n_nodes + 1);
    *n = 0;
    for (uint32_t i = 0; i < l->region->n_nodes; i++)
        if (l->graph->nodes[l->region->nodes[i]].op == PO_OP_Concat)
            list[(*n)++] = l->region->nodes[i];
    return list;
}

/* The largest first, of equals the last: what they take is no smaller one's. */
static void sort(const po_lowering *l, po_node_id *list, uint32_t n) {
    for (uint32_t i = 1; i < n; i++) {
        const po_node_id id = list[i];
        const int64_t size = po_type_count(&l->graph->values[l->graph->nodes[id].out[0]].type);
        uint32_t k = i;
        for (; k > 0; k--) {
            const po_node *other = &l->graph->nodes[list[k - 1]];
            if (po_type_count(&l->graph->values[other->out[0]].type) > size)
                break;
            list[k] = list[k - 1];
        }
        list[k] = id;
    }
}

/* For each Concat of a list in turn. */
static void for_each(po_lowering *l, const po_node_id *list, uint32_t n,
                     void (*join)(po_lowering *l, const po_node *node, uint32_t axis)) {
    for (uint32_t i = 0; i < n; i++) {
        const po_node *node = &l->graph->nodes[list[i]];
        const uint32_t axis = axis_of(l, node);
        if (axis != PO_NONE)
            join(l, node, axis);
    }
}

void po_lower_plan_joins(po_lowering *l) {
    for (uint32_t i = 0; i < l->graph->n_values; i++)
        l->joined[i].whole = PO_NONE;
    uint32_t n;
    po_node_id *list = concats_of(l, &n);
    sort(l, list, n);
    for_each(l, list, n, join_inputs);
    part_unlike(l);
    for_each(l, list, n, join_whole);
    part_unlike(l);
}

bool po_lower_join(po_lowering *l, po_value_id v, po_view *view) {
    const po_lower_part_of *part = &l->joined[v];
    if (part->whole == PO_NONE)
        return false;
    *view = *po_lower_storage(l, part->whole);
    for (uint32_t x = 0; x < view->rank; x++)
        view->base[x] += view->coef[x][part->axis] * part->offset;
    return true;
}

bool po_lower_is_joined(po_lowering *l, const po_node *node, uint32_t input) {
    const po_view *is = &l->view[node->in[input]], *whole = po_lower_storage(l, node->out[0]);
    const uint32_t axis = axis_of(l, node);
    int64_t offset = 0;
    for (uint32_t k = 0; k < input && axis != PO_NONE; k++)
        offset += length(l, node->in[k], axis);
    bool same = is->set && axis != PO_NONE && is->tensor == whole->tensor;
    for (uint32_t x = 0; x < whole->rank && same; x++)
        same = is->base[x] == whole->base[x] + whole->coef[x][axis] * offset;
    return same && memcmp(is->coef, whole->coef, sizeof is->coef) == 0;
}
