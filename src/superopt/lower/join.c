/* Parts of joined maps: what a Concat puts together is written where it will lie, by the steps that
 * make it, where nothing stands against that. So a map that is corrected at its edges, or one that
 * layers add channels to, is not copied. */
#include "superopt/lower/internal.h"

/* Vectors of lanes are not cut by where the parts meet. */
static bool keeps_vectors(const po_lowering *l, po_value_id v, uint32_t axis, int64_t offset) {
    const po_type *type = &l->graph->values[v].type;
    const uint32_t lane = l->channels_last[v] ? 1 : type->rank - 1;
    return axis != lane ||
           (offset % PO_MU_VECTOR == 0 && type->dims[axis].value % PO_MU_VECTOR == 0);
}

/* Nobody else reads the value: a step that read one part to write another would read the tensor
 * that it writes. */
static bool can_join(const po_lowering *l, const po_node *node, po_value_id v, uint32_t axis,
                     int64_t offset) {
    const po_value *value = &l->graph->values[v];
    const bool inside = value->producer != PO_NONE && l->place[value->producer] != PO_NONE;
    return inside && value->n_uses == 1 && l->output[v] == PO_NONE &&
           l->channels_last[v] == l->channels_last[node->out[0]] &&
           keeps_vectors(l, v, axis, offset);
}

void po_lower_plan_joins(po_lowering *l) {
    for (uint32_t i = 0; i < l->graph->n_values; i++)
        l->joined[i].whole = PO_NONE;
    for (uint32_t i = 0; i < l->region->n_nodes; i++) {
        const po_node *node = &l->graph->nodes[l->region->nodes[i]];
        if (node->op != PO_OP_Concat)
            continue;
        const uint32_t rank = l->graph->values[node->out[0]].type.rank;
        int64_t axis = po_op_int(l->graph, node, "axis"), offset = 0;
        axis += axis < 0 ? rank : 0;
        for (uint32_t k = 0; k < node->n_in && axis >= 0 && axis < (int64_t)rank; k++) {
            const po_value_id v = node->in[k];
            if (can_join(l, node, v, (uint32_t)axis, offset))
                l->joined[v] = (po_lower_part_of){node->out[0], k, (uint32_t)axis, offset};
            offset += l->graph->values[v].type.dims[axis].value;
        }
    }
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

bool po_lower_is_joined(po_lowering *l, po_value_id v, po_value_id whole, uint32_t input) {
    po_view view;
    const po_lower_part_of *part = &l->joined[v];
    if (part->whole != whole || part->input != input || !po_lower_join(l, v, &view))
        return false;
    const po_view *is = &l->view[v];
    return is->set && is->tensor == view.tensor &&
           memcmp(is->base, view.base, sizeof view.base) == 0 &&
           memcmp(is->coef, view.coef, sizeof view.coef) == 0;
}
