/* Axes that nodes keep: by sums, by lengths, by the registry's word. */
#include "ops/along.h"

#include "base/num.h"
#include "ops/rewrite.h"
#include "ops/sem/sem.h"

enum { MOST_INPUTS = 64 };

/* --- terms --- */

bool po_term_covers(const po_sum *sum, const po_term *t, uint32_t axis) {
    int64_t last = t->out.base[axis];
    for (uint32_t v = 0; v < t->n_vars; v++)
        last += po_index_coef(t, &t->out, axis, v) * (t->extent[v] - 1);
    return t->out.base[axis] == 0 && last == sum->dims[axis] - 1;
}

bool po_term_follows(const po_term *t, const po_index *at, uint32_t own, uint32_t axis) {
    if (own >= at->rank || at->base[own] != 0)
        return false;
    for (uint32_t v = 0; v < t->n_vars; v++)
        if (t->extent[v] > 1 && po_index_coef(t, at, own, v) != po_index_coef(t, &t->out, axis, v))
            return false;
    return true;
}

bool po_term_moves(const po_term *t, const po_index *at, uint32_t but, uint32_t axis) {
    for (uint32_t x = 0; x < at->rank; x++)
        for (uint32_t v = 0; v < t->n_vars && x != but; v++)
            if (t->extent[v] > 1 && po_index_coef(t, &t->out, axis, v) != 0 &&
                po_index_coef(t, at, x, v) != 0)
                return true;
    return false;
}

/* --- by the sum --- */

/* The axis of a factor that goes along, PO_WHOLE where none moves; false: it does otherwise. */
static bool factor_along(const po_sum *sum, const po_term *t, const po_factor *f, uint32_t axis,
                         int8_t *own) {
    const po_operand *op = &sum->operands[f->operand];
    if (!po_term_moves(t, &f->at, PO_NONE, axis)) {
        *own = PO_WHOLE;
        return true;
    }
    for (uint32_t x = 0; x < f->at.rank && x < INT8_MAX; x++)
        if (po_term_follows(t, &f->at, x, axis) && !po_term_moves(t, &f->at, x, axis)) {
            *own = (int8_t)x;
            return op->kind != PO_OPERAND_TABLE && op->dims[x] == sum->dims[axis];
        }
    return false;
}

/* An input that several factors read goes along the same axis in all of them. */
static bool by_sum(const po_sum *sum, uint32_t n_in, uint32_t axis, int8_t *in) {
    bool read[MOST_INPUTS] = {false};
    for (uint32_t k = 0; k < sum->n_terms; k++) {
        const po_term *t = &sum->terms[k];
        if (!po_term_covers(sum, t, axis))
            return false;
        for (uint32_t i = 0; i < t->n_factors; i++) {
            const po_operand *op = &sum->operands[t->factor[i].operand];
            int8_t own;
            if (!factor_along(sum, t, &t->factor[i], axis, &own))
                return false;
            if (op->kind == PO_OPERAND_TABLE)
                continue;
            if (op->input >= n_in || (read[op->input] && in[op->input] != own))
                return false;
            read[op->input] = true;
            in[op->input] = own;
        }
    }
    return sum->n_terms > 0;
}

/* --- by lengths, where the data stays as it is --- */

static bool by_lengths(const po_graph *graph, const po_node *node, uint32_t axis, int8_t *in) {
    uint32_t rank, from_rank;
    const po_dim *to = po_static_dims(graph, node->out[0], &rank);
    const po_dim *from = po_static_dims(graph, node->in[0], &from_rank);
    /* Which axes of one place it drops would change. */
    const bool any = node->op == PO_OP_Squeeze && node->n_in < 2 && !po_node_attr(node, "axes");
    const int64_t before = to ? po_places(to, axis) : -1;
    if (!to || !from || any || before < 1 || to[axis].value < 1)
        return false;
    for (uint32_t x = 0; x < from_rank && x < INT8_MAX; x++)
        if (from[x].value == to[axis].value && po_places(from, x) == before) {
            in[0] = (int8_t)x;
            return true;
        }
    return false;
}

/* --- by the registry's word --- */

/* Broadcast from the last axis on. */
static bool element_wise(const po_graph *graph, const po_node *node, uint32_t axis, int8_t *in) {
    uint32_t rank, own_rank;
    const po_dim *to = po_static_dims(graph, node->out[0], &rank);
    for (uint32_t k = 0; k < node->n_in; k++) {
        if (node->in[k] == PO_NONE)
            continue;
        const po_dim *own = po_static_dims(graph, node->in[k], &own_rank);
        if (!to || !own || own_rank > rank)
            return false;
        const int at = (int)axis - (int)(rank - own_rank);
        if (at < 0 || (own[at].value == 1 && to[axis].value != 1))
            continue;
        if (own[at].value != to[axis].value || at > INT8_MAX)
            return false;
        in[k] = (int8_t)at;
    }
    return to != NULL;
}

/* Scales and the like of what it works along; each place of the axes before by itself. */
static bool along_later(const po_graph *graph, const po_node *node, uint32_t axis, int8_t *in) {
    const int rank = po_rank_of(graph, node->in[0]);
    int64_t first = po_op_int(graph, node, "axis");
    first += first < 0 ? rank : 0;
    if (rank < 0 || (int64_t)axis >= first || !po_same_dims(graph, node->in[0], node->out[0]))
        return false;
    for (uint32_t k = 1; k < node->n_in; k++)
        if (node->in[k] != PO_NONE &&
            (po_rank_of(graph, node->in[k]) < 0 || po_rank_of(graph, node->in[k]) > rank - first))
            return false;
    in[0] = (int8_t)axis;
    return true;
}

static bool reduces_others(const po_graph *graph, const po_node *node, uint32_t axis, int8_t *in) {
    uint32_t axes[PO_MAX_RANK], n = po_reduced_axes(graph, node, PO_MAX_RANK, axes);
    const int rank = po_rank_of(graph, node->in[0]);
    const bool keeps = po_node_int(node, "keepdims", 1) != 0;
    uint32_t kept = 0;
    for (int x = 0; x < rank && x < INT8_MAX && n > 0; x++) {
        bool reduced = false;
        for (uint32_t i = 0; i < n; i++)
            reduced |= axes[i] == (uint32_t)x;
        if (!reduced && kept == axis) {
            in[0] = (int8_t)x;
            return po_dim_of(graph, node->in[0], x) == po_dim_of(graph, node->out[0], (int)axis);
        }
        kept += keeps || !reduced;
    }
    return false;
}

static bool by_word(const po_graph *graph, const po_node *node, uint32_t axis, int8_t *in) {
    if (po_op_has(node->op, PO_OPF_ELEMENTWISE))
        return element_wise(graph, node, axis, in);
    if (po_op_has(node->op, PO_OPF_REDUCES))
        return reduces_others(graph, node, axis, in);
    return po_op_has(node->op, PO_OPF_ALONG) && along_later(graph, node, axis, in);
}

po_status po_kept_along(po_ctx *ctx, po_arena *arena, const po_graph *graph, const po_node *node,
                        uint32_t axis, int8_t *in) {
    po_sum *sum[1] = {NULL};
    memset(in, PO_WHOLE, node->n_in);
    if (node->n_out != 1 || node->n_in == 0 || node->n_in > MOST_INPUTS || node->in[0] == PO_NONE ||
        (int)axis >= po_rank_of(graph, node->out[0]) ||
        po_op_has(node->op, PO_OPF_CONTROL | PO_OPF_RANDOM))
        return PO_UNSUPPORTED;
    if (po_op_has(node->op, PO_OPF_SHAPE_ONLY))
        return by_lengths(graph, node, axis, in) ? PO_OK : PO_UNSUPPORTED;
    po_status status = po_sem_of(ctx, arena, graph, node, sum);
    if (status != PO_OK && status != PO_UNSUPPORTED)
        return status;
    const bool kept = status == PO_OK && sum[0] ? by_sum(sum[0], node->n_in, axis, in)
                                                : by_word(graph, node, axis, in);
    return kept ? PO_OK : PO_UNSUPPORTED;
}

bool po_same_along(const po_graph *open, const po_node *node, uint32_t axis, const int8_t *in) {
    const po_type *y = &open->values[node->out[0]].type;
    if (!y->has_rank || axis >= y->rank)
        return false;
    for (uint32_t k = 0; k < node->n_in; k++) {
        const po_type *x = node->in[k] == PO_NONE ? NULL : &open->values[node->in[k]].type;
        if (!x)
            continue;
        if (!x->has_rank)
            return false;
        const int at = (int)axis - (int)y->rank + (int)x->rank;
        if (in[k] != PO_WHOLE &&
            ((uint32_t)in[k] >= x->rank || !po_dim_same(x->dims[in[k]], y->dims[axis])))
            return false;
        if (in[k] == PO_WHOLE && po_op_has(node->op, PO_OPF_ELEMENTWISE) && at >= 0 &&
            x->dims[at].value != 1)
            return false;
    }
    return true;
}
