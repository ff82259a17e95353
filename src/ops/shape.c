/* Reads and sets types and integer contents, and broadcasts shapes: a length above 1 against an
 * unknown one gives the length, since the model would not run otherwise. */
#include "ops/shape.h"

#include "ir/size.h"

#include <stdio.h>

po_status po_rule_bad(po_ctx *ctx, const po_node *node, const char *format, ...) {
    char text[512];
    va_list args;
    if (!ctx)
        return PO_BAD_INPUT;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return po_fail(ctx, PO_BAD_INPUT, "node '%s' (%s): %s", node->name, node->op_type, text);
}

const po_type *po_infer_tensor(const po_infer *infer, uint32_t k) {
    return k < infer->n_in && infer->in[k] && infer->in[k]->kind == PO_TYPE_TENSOR ? infer->in[k]
                                                                                   : NULL;
}

po_dtype po_infer_dtype(const po_infer *infer, uint32_t k) {
    const po_type *t = po_infer_tensor(infer, k);
    return t ? t->dtype : PO_DT_NONE;
}

void po_infer_set(const po_infer *infer, uint32_t k, po_dtype dtype, uint32_t rank,
                  const po_dim *dims) {
    if (k < infer->n_out)
        infer->out[k] = po_type_tensor(infer->arena, dtype, rank, dims);
}

void po_infer_set_unranked(const po_infer *infer, uint32_t k, po_dtype dtype) {
    if (k < infer->n_out)
        infer->out[k] = po_type_unranked(dtype);
}

void po_infer_set_as(const po_infer *infer, uint32_t k, po_dtype dtype, const po_type *type) {
    if (k >= infer->n_out)
        return;
    infer->out[k] = po_type_unranked(dtype);
    if (type && type->has_rank) {
        infer->out[k].has_rank = true;
        infer->out[k].rank = type->rank;
        infer->out[k].dims = type->dims;
    }
}

void po_infer_set_like(const po_infer *infer, uint32_t k, po_dtype dtype) {
    po_infer_set_as(infer, k, dtype, po_infer_tensor(infer, 0));
}

bool po_axis_at(int64_t axis, uint32_t rank, uint32_t *at) {
    if (axis < -(int64_t)rank || axis >= (int64_t)rank)
        return false;
    *at = (uint32_t)(axis < 0 ? axis + (int64_t)rank : axis);
    return true;
}

po_status po_rule_axis(po_ctx *ctx, const po_node *node, int64_t axis, uint32_t rank,
                       uint32_t *found) {
    if (po_axis_at(axis, rank, found))
        return PO_OK;
    return po_rule_bad(ctx, node, "axis %lld is out of range (rank %u)", (long long)axis, rank);
}

bool po_infer_ints(const po_infer *infer, uint32_t k, uint32_t *n, const int64_t **values) {
    if (k >= infer->n_in)
        return false;
    const po_tensor *t = infer->constant[k];
    po_dtype_class class = t ? po_dtype_class_of(t->dtype) : PO_CLASS_NONE;
    if (t && class != PO_CLASS_FLOAT && class != PO_CLASS_NONE && t->count <= 1 << 20) {
        int64_t *v = PO_NEW_N(infer->arena, int64_t, t->count);
        for (int64_t i = 0; i < t->count; i++)
            v[i] = po_tensor_int(t, i);
        *n = (uint32_t)t->count;
        *values = v;
        return true;
    }
    const po_partial *p = infer->partial[k];
    if (!p)
        return false;
    int64_t *v = PO_NEW_N(infer->arena, int64_t, p->n);
    for (uint32_t i = 0; i < p->n; i++)
        if ((v[i] = p->items[i].value) < 0)
            return false;
    *n = p->n;
    *values = v;
    return true;
}

const po_partial *po_infer_partial(const po_infer *infer, uint32_t k) {
    return k < infer->n_in ? infer->partial[k] : NULL;
}

int64_t po_infer_length(const po_infer *infer, uint32_t k) {
    const po_type *t = po_infer_tensor(infer, k);
    if (t && t->has_rank && t->rank == 0)
        return 1;
    if (t && t->has_rank && t->rank == 1 && t->dims[0].value >= 0)
        return t->dims[0].value;
    if (k < infer->n_in && infer->partial[k])
        return infer->partial[k]->n;
    return -1;
}

void po_infer_set_partial(const po_infer *infer, uint32_t k, uint32_t n, const po_dim *items) {
    if (k >= infer->n_out || n > PO_PARTIAL_MAX)
        return;
    po_partial *p = PO_NEW(infer->arena, po_partial);
    p->n = n;
    p->items = po_arena_memdup(infer->arena, items, n * sizeof *items);
    infer->out_partial[k] = p;
}

void po_rule_demand(const po_infer *infer, po_demand_kind kind, po_dim a, po_dim b) {
    const po_dim open = a.value < 0 ? a : b, known = a.value < 0 ? b : a;
    if (!infer->demands || open.value >= 0 || !open.symbol || known.value < 1 ||
        (kind == PO_DEMAND_LIKELY && known.value == 1))
        return;
    /* Names of expressions go with the rule's arena. */
    const po_dim kept = {-1, po_arena_strdup(infer->demands->arena, open.symbol)};
    const po_demand demand = {kind, kept, known.value};
    PO_PUSH(infer->demands->arena, infer->demands->list, infer->demands->n, infer->demands->cap,
            demand);
}

po_status po_rule_broadcast_dim(const po_infer *infer, po_dim a, po_dim b, po_dim *both) {
    if (a.value == 1) {
        *both = b;
    } else if (b.value == 1 || po_dim_same(a, b)) {
        *both = a;
    } else if (a.value >= 0 && b.value >= 0) {
        return po_rule_bad(infer->ctx, infer->node, "shapes do not broadcast (%lld and %lld)",
                           (long long)a.value, (long long)b.value);
    } else if (a.value >= 0 || b.value >= 0) {
        po_rule_demand(infer, PO_DEMAND_LIKELY, a, b);
        *both = a.value >= 0 ? a : b; /* the other is 1 or that; neither is 1 here */
    } else {
        const bool first = po_size_bounded_by(infer->arena, b, a);
        *both = first ? a : po_size_bounded_by(infer->arena, a, b) ? b : PO_DIM_UNKNOWN;
    }
    return PO_OK;
}

po_status po_infer_broadcast(po_infer *infer, uint32_t n, const po_type *const *shapes,
                             po_type *out) {
    uint32_t rank = 0;
    for (uint32_t k = 0; k < n; k++) {
        if (!shapes[k] || shapes[k]->kind != PO_TYPE_TENSOR || !shapes[k]->has_rank)
            return PO_OK;
        rank = shapes[k]->rank > rank ? shapes[k]->rank : rank;
    }
    po_dim *dims = PO_NEW_N(infer->arena, po_dim, rank);
    for (uint32_t i = 0; i < rank; i++)
        dims[i] = PO_DIM(1);
    for (uint32_t k = 0; k < n; k++) {
        uint32_t skip = rank - shapes[k]->rank;
        for (uint32_t i = 0; i < shapes[k]->rank; i++) {
            po_dim *d = &dims[skip + i];
            PO_TRY(po_rule_broadcast_dim(infer, *d, shapes[k]->dims[i], d));
        }
    }
    out->kind = PO_TYPE_TENSOR;
    out->has_rank = true;
    out->rank = rank;
    out->dims = dims;
    return PO_OK;
}
