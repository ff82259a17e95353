/* A muGraph, or some of its statements, behind another. */
#include "superopt/part/part.h"

part_appending part_append_begin(po_arena *arena, po_mu *to, const po_mu *from, po_mu_view *twin) {
    part_appending a = {arena,
                        to,
                        from,
                        twin,
                        PO_NEW_N(arena, uint32_t, from->n_labels + 1),
                        PO_NEW_N(arena, uint32_t, from->n_nodes + 1)};
    for (uint32_t i = 0; i < from->n_labels; i++)
        a.label[i] = PO_NONE;
    for (uint32_t i = 0; i < from->n_nodes; i++)
        a.node[i] = PO_NONE;
    return a;
}

uint32_t part_append_label(part_appending *a, uint32_t label) {
    if (a->label[label] == PO_NONE)
        a->label[label] =
            po_mu_add_label(a->to, a->from->labels[label].name, a->from->labels[label].extent);
    return a->label[label];
}

uint32_t part_append_tensor(part_appending *a, uint32_t tensor) {
    po_mu_view *twin = &a->twin[tensor];
    const po_mu_tensor *t = &a->from->tensors[tensor];
    if (twin->tensor != PO_NONE)
        return twin->tensor;
    twin->tensor = po_mu_add_tensor(a->to, t->name, t->place, t->rank, t->dims);
    for (uint32_t x = 0; x < t->rank; x++) {
        twin->axis[x] = x;
        twin->times[x] = 1;
    }
    po_mu_tensor *to = &a->to->tensors[twin->tensor];
    to->type = t->type;
    to->number = t->number;
    to->table = t->table;
    to->scope = t->scope == PO_NONE ? PO_NONE : a->node[t->scope];
    return twin->tensor;
}

po_mu_access part_append_access(part_appending *a, const po_mu_access *from) {
    po_mu_access to = po_mu_access_of(a->to, part_append_tensor(a, from->tensor));
    const po_mu_view *twin = &a->twin[from->tensor];
    for (uint32_t x = 0; x < a->to->tensors[to.tensor].rank; x++)
        po_mu_at(a->to, &to, x, twin->from[x], PO_NONE);
    for (uint32_t x = 0; x < a->from->tensors[from->tensor].rank; x++) {
        const po_mu_index *i = &from->axes[x];
        po_mu_at(a->to, &to, twin->axis[x], twin->times[x] * i->offset, PO_NONE);
        for (uint32_t k = 0; k < i->n; k++)
            po_mu_at(a->to, &to, twin->axis[x], twin->times[x] * i->terms[k].coef,
                     part_append_label(a, i->terms[k].label));
    }
    return to;
}

void part_append_statement(part_appending *a, uint32_t parent, const po_mu_statement *s) {
    uint32_t id = po_mu_add_statement(a->to, parent, s->combine);
    a->to->nodes[id].statement.fresh = s->fresh;
    for (uint32_t k = 0; k < s->n_in; k++)
        po_mu_operand(a->to, id, part_append_access(a, &s->in[k]));
    po_mu_copy_items(a->to, id, s);
    po_mu_access out = part_append_access(a, &s->out);
    a->to->nodes[id].statement.out = out;
}

static void append_children(part_appending *a, uint32_t parent, uint32_t first) {
    for (uint32_t n = first; n != PO_NONE; n = a->from->nodes[n].next) {
        const po_mu_node *node = &a->from->nodes[n];
        if (node->kind == PO_MU_STATEMENT) {
            part_append_statement(a, parent, &node->statement);
            continue;
        }
        a->node[n] = node->kind == PO_MU_STEP
                         ? po_mu_add_step(a->to, node->name)
                         : po_mu_add_loop(a->to, parent, node->loop,
                                          part_append_label(a, node->label), node->chunk);
        append_children(a, a->node[n], node->first);
    }
}

void part_append(po_arena *arena, po_mu *to, const po_mu *from, const po_mu_view *twin) {
    po_mu_view *own = PO_NEW_N(arena, po_mu_view, from->n_tensors + 1);
    memcpy(own, twin, from->n_tensors * sizeof *own);
    part_appending a = part_append_begin(arena, to, from, own);
    append_children(&a, PO_NONE, from->first);
}
