/* Rows of residues that exponentials are added up of: where many elements of a row are one number,
 * the sum counts them, and with them the length of the axis. */
#include "verify/sizes/internal.h"

#include "ops/rewrite.h"

#include <stdlib.h>

/* Elements of a row that may be alike: some by chance, those that lie outside of a map. */
enum { FEW = 2, ONE_IN = 64 };

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

/* Whether some number comes often in a row. */
static bool repeats(po_arena *scratch, const po_ptensor *t, const uint32_t *mod,
                    const bool *along) {
    uint64_t *keys = PO_NEW_N(scratch, uint64_t, t->count), length = 1;
    for (uint32_t x = 0; x < t->rank; x++)
        length *= along[x] ? (uint64_t)t->dims[x] : 1;
    for (int64_t i = 0; i < t->count; i++) {
        uint64_t row = 0, left = (uint64_t)i, place = (uint64_t)t->count;
        for (uint32_t x = 0; x < t->rank; x++) {
            place /= (uint64_t)t->dims[x];
            row = along[x] ? row : row * (uint64_t)t->dims[x] + left / place;
            left %= place;
        }
        keys[i] = row << 32 | mod[i];
    }
    qsort(keys, (size_t)t->count, sizeof *keys, by_number);
    const uint64_t most = length / ONE_IN > FEW ? length / ONE_IN : FEW;
    uint64_t run = 1;
    for (int64_t i = 1; i < t->count && run <= most; i++)
        run = keys[i] == keys[i - 1] ? run + 1 : 1;
    return run > most;
}

void po_varying_record(void *varying, po_value_id value, po_ptensor *tensor) {
    po_varying *v = varying;
    const uint32_t *mod = po_pt_mod(tensor);
    for (uint32_t i = 0; i < v->cone->n_nodes && !v->same; i++) {
        const po_node *node = &v->open->nodes[v->cone->nodes[i]];
        bool along[PO_MAX_RANK] = {false};
        if (node->n_in == 0 || node->in[0] != value || !axes_of(v->open, node, along))
            continue;
        po_arena *scratch = po_arena_child(v->arena);
        v->same = !mod || repeats(scratch, tensor, mod, along);
        po_arena_free(scratch);
    }
}
