/* Rows of residues that exponentials are added up of: where elements of a row are one number, the
 * sum counts them, and with them the length of the axis. */
#include "verify/sizes/internal.h"

#include "ops/rewrite.h"

#include <stdlib.h>

/* Places that are noted; by chance there are few. */
enum { MOST_MET = 1 << 16 };

/* The axes that the node adds exponentials up over, where one of them is open. */
static bool axes_of(const po_graph *g, const po_node *node, bool *along) {
    const po_type *t = &g->values[node->in[0]].type;
    uint32_t axes[PO_MAX_RANK], n = 0;
    bool open = false;
    if (node->op == PO_OP_ReduceLogSumExp) {
        n = po_reduced_axes(g, node, PO_MAX_RANK, axes);
    } else if (node->op == PO_OP_Softmax || node->op == PO_OP_LogSoftmax) {
        const int64_t axis = po_op_int(g, node, "axis");
        axes[n++] = (uint32_t)(axis < 0 ? axis + t->rank : axis);
        while (po_op_version(g, node) < 13 && axes[n - 1] + 1 < t->rank && n < PO_MAX_RANK) {
            axes[n] = axes[n - 1] + 1;
            n++;
        }
    }
    for (uint32_t i = 0; i < n; i++) {
        along[axes[i]] = true;
        open |= t->dims[axes[i]].value < 0;
    }
    return open;
}

static int by_number(const void *a, const void *b) {
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

/* Notes each place whose number another place of its row has. */
static void note(po_varying *v, po_arena *scratch, po_value_id value, const po_ptensor *t,
                 const uint32_t *mod, const bool *along) {
    /* Row by row: number and place. */
    uint64_t *e = PO_NEW_N(scratch, uint64_t, t->count), length = 1;
    for (uint32_t x = 0; x < t->rank; x++)
        length *= along[x] ? (uint64_t)t->dims[x] : 1;
    for (int64_t i = 0; i < t->count; i++) {
        uint64_t row = 0, in_row = 0, left = (uint64_t)i, step = (uint64_t)t->count;
        for (uint32_t x = 0; x < t->rank; x++) {
            const uint64_t dim = (uint64_t)t->dims[x];
            step /= dim;
            if (along[x])
                in_row = in_row * dim + left / step;
            else
                row = row * dim + left / step;
            left %= step;
        }
        e[row * length + in_row] = (uint64_t)mod[i] << 32 | (uint64_t)i;
    }
    for (uint64_t from = 0; from < (uint64_t)t->count && !v->same; from += length) {
        qsort(&e[from], length, sizeof *e, by_number);
        for (uint64_t i = from; i < from + length && !v->same; i++) {
            const uint64_t number = e[i] >> 32;
            if (!(i > from && e[i - 1] >> 32 == number) &&
                !(i + 1 < from + length && e[i + 1] >> 32 == number))
                continue;
            const po_met met = {value, (uint32_t)e[i]};
            v->same = v->n_met == MOST_MET;
            PO_PUSH(v->arena, v->met, v->n_met, v->cap_met, met);
        }
    }
}

void po_varying_record(void *varying, po_value_id value, po_ptensor *tensor) {
    po_varying *v = varying;
    for (uint32_t i = 0; i < v->cone->n_nodes && !v->same; i++) {
        const po_node *node = &v->open->nodes[v->cone->nodes[i]];
        bool along[PO_MAX_RANK] = {false};
        if (node->n_in == 0 || node->in[0] != value || !axes_of(v->open, node, along))
            continue;
        const uint32_t *mod = po_pt_mod(tensor);
        po_arena *scratch = po_arena_child(v->arena);
        v->same = !mod || tensor->count > UINT32_MAX;
        if (!v->same)
            note(v, scratch, value, tensor, mod, along);
        po_arena_free(scratch);
    }
}

static int by_place(const void *a, const void *b) {
    const po_met *x = a, *y = b;
    if (x->value != y->value)
        return x->value < y->value ? -1 : 1;
    return x->place < y->place ? -1 : x->place > y->place;
}

bool po_varying_same(po_varying *a, po_varying *b) {
    uint32_t i = 0, k = 0;
    int order = 1;
    if (a->same || b->same)
        return true;
    if (a->n_met == 0 || b->n_met == 0)
        return false;
    qsort(a->met, a->n_met, sizeof *a->met, by_place);
    qsort(b->met, b->n_met, sizeof *b->met, by_place);
    while (i < a->n_met && k < b->n_met && order != 0) {
        order = by_place(&a->met[i], &b->met[k]);
        i += order < 0;
        k += order > 0;
    }
    return order == 0;
}
