/* Shape, Size, ConstantOfShape, Range, EyeLike, OneHot, Trilu. */
#include "ir/size.h"
#include "ops/families/rules.h"
#include "ops/ref.h"
#include "ops/shape.h"

#include <math.h>

static po_dtype attr_dtype(const po_graph *graph, const po_node *node, po_dtype otherwise) {
    int64_t v = po_node_int(node, "dtype", otherwise);
    (void)graph;
    return v > 0 && v < PO_DT_COUNT ? (po_dtype)v : PO_DT_NONE;
}

/* --- Shape, Size --- */

/* The slice of axes that Shape gives since opset 15: bounds are clamped. */
static void shape_slice(const po_node *node, uint32_t rank, uint32_t *from, uint32_t *to) {
    int64_t r = rank, start = po_node_int(node, "start", 0), end = po_node_int(node, "end", r);
    start = start < 0 ? start + r : start;
    end = end < 0 ? end + r : end;
    start = start < 0 ? 0 : start > r ? r : start;
    end = end < start ? start : end > r ? r : end;
    *from = (uint32_t)start;
    *to = (uint32_t)end;
}

po_status po_infer_shape(po_infer *infer) {
    const po_type *x = po_infer_tensor(infer, 0);
    uint32_t from, to;
    if (!x || !x->has_rank) {
        po_infer_set(infer, 0, PO_I64, 1, &PO_DIM_UNKNOWN);
        return PO_OK;
    }
    shape_slice(infer->node, x->rank, &from, &to);
    po_dim n = PO_DIM(to - from);
    po_infer_set(infer, 0, PO_I64, 1, &n);
    po_infer_set_partial(infer, 0, to - from, x->dims + from);
    return PO_OK;
}

po_status po_ref_shape(po_ref *ref) {
    const po_array *x = ref->in[0];
    uint32_t from, to;
    po_array *y;
    shape_slice(ref->node, x->rank, &from, &to);
    int64_t n = to - from;
    PO_TRY(po_ref_out(ref, 0, PO_I64, 1, &n, &y));
    for (uint32_t i = from; i < to; i++)
        y->i[i - from] = x->dims[i];
    return PO_OK;
}

po_status po_infer_size(po_infer *infer) {
    const po_type *x = po_infer_tensor(infer, 0);
    int64_t count = x ? po_type_count(x) : -1;
    po_infer_set(infer, 0, PO_I64, 0, NULL);
    if (count >= 0)
        po_infer_set_partial(infer, 0, 1, &PO_DIM(count));
    return PO_OK;
}

po_status po_ref_size(po_ref *ref) {
    po_array *y;
    PO_TRY(po_ref_out(ref, 0, PO_I64, 0, NULL, &y));
    y->i[0] = ref->in[0]->count;
    return PO_OK;
}

/* --- ConstantOfShape --- */

static const po_tensor *fill_of(const po_node *node) {
    const po_attr *a = po_node_attr(node, "value");
    return a && a->kind == PO_ATTR_TENSOR && a->u.t && a->u.t->count == 1 ? a->u.t : NULL;
}

po_status po_infer_constantofshape(po_infer *infer) {
    const po_tensor *fill = fill_of(infer->node);
    po_dtype dtype = fill ? fill->dtype : PO_F32;
    const po_partial *p = po_infer_partial(infer, 0);
    int64_t rank = po_infer_length(infer, 0);
    const int64_t *dims;
    uint32_t n;
    po_infer_set_unranked(infer, 0, dtype);
    if (po_infer_ints(infer, 0, &n, &dims))
        for (uint32_t i = 0; i < n; i++)
            if (dims[i] < 0)
                return po_rule_bad(infer->ctx, infer->node, "a dim is negative (found %lld)",
                                   (long long)dims[i]);
    if (rank < 0 || rank > PO_MAX_RANK)
        return PO_OK;
    po_dim *out = PO_NEW_N(infer->arena, po_dim, rank);
    for (int64_t i = 0; i < rank; i++)
        out[i] = p ? po_size_of_item(p->items[i]) : PO_DIM_UNKNOWN;
    po_infer_set(infer, 0, dtype, (uint32_t)rank, out);
    if (rank > 1 || !fill || (rank == 1 && (out[0].value < 0 || out[0].value > PO_PARTIAL_MAX)))
        return PO_OK;
    n = rank ? (uint32_t)out[0].value : 1;
    po_item *items = PO_NEW_N(infer->arena, po_item, n);
    for (uint32_t i = 0; i < n; i++)
        items[i] = (po_item){.known = true, .value = po_tensor_int(fill, 0)};
    po_infer_set_items(infer, 0, n, items);
    return PO_OK;
}

po_status po_ref_constantofshape(po_ref *ref) {
    const po_tensor *fill = fill_of(ref->node);
    const po_array *shape = ref->in[0];
    po_array *y;
    if (!shape->i || shape->rank != 1 || shape->count > PO_MAX_RANK)
        return PO_UNSUPPORTED;
    PO_TRY(po_ref_out(ref, 0, fill ? fill->dtype : PO_F32, (uint32_t)shape->count, shape->i, &y));
    if (!fill)
        return PO_OK;
    for (int64_t k = 0; k < y->count; k++) {
        if (y->f)
            y->f[k] = po_tensor_f64(fill, 0);
        else if (y->i)
            y->i[k] = po_tensor_int(fill, 0);
        else
            y->s[k] = *(const po_bytes *)fill->data;
    }
    return PO_OK;
}

/* --- Range --- */

po_status po_infer_range(po_infer *infer) {
    const po_item *start, *limit, *delta;
    uint32_t n[3];
    po_dim length = PO_DIM_UNKNOWN;
    po_dtype dtype = po_infer_dtype(infer, 0);
    for (uint32_t k = 1; k < 3 && dtype == PO_DT_NONE; k++)
        dtype = po_infer_dtype(infer, k);
    po_infer_set(infer, 0, dtype, 1, &length);
    if (!po_infer_items(infer, 0, &n[0], &start) || !po_infer_items(infer, 1, &n[1], &limit) ||
        !po_infer_items(infer, 2, &n[2], &delta) || n[0] != 1 || n[1] != 1 || n[2] != 1)
        return PO_OK;
    if (!start->known || !delta->known || delta->value == 0)
        return PO_OK;
    if (!limit->known) {
        if (start->value == 0 && delta->value > 0 && limit->symbol)
            length = po_size_floor(infer->arena, (po_dim){-1, limit->symbol}, delta->value - 1,
                                   delta->value);
        po_infer_set(infer, 0, dtype, 1, &length);
        return PO_OK;
    }
    int64_t span, d = delta->value;
    if (d == INT64_MIN || !po_sub_i64(limit->value, start->value, &span) || span == INT64_MIN)
        return PO_OK;
    length.value = d > 0 ? po_ceil_div(span, d) : po_ceil_div(-span, -d);
    length.value = length.value < 0 ? 0 : length.value;
    po_infer_set(infer, 0, dtype, 1, &length);
    if (length.value > PO_PARTIAL_MAX)
        return PO_OK;
    po_item *items = PO_NEW_N(infer->arena, po_item, length.value);
    for (int64_t i = 0; i < length.value; i++)
        items[i] = (po_item){.known = true, .value = start->value + i * d};
    po_infer_set_items(infer, 0, (uint32_t)length.value, items);
    return PO_OK;
}

po_status po_ref_range(po_ref *ref) {
    const po_array *s = ref->in[0], *l = ref->in[1], *d = ref->in[2];
    po_array *y;
    if (s->count != 1 || l->count != 1 || d->count != 1 || s->dtype != l->dtype ||
        s->dtype != d->dtype || s->s || s->dtype == PO_U64)
        return PO_UNSUPPORTED;
    double n;
    if (s->f) {
        n = ceil((l->f[0] - s->f[0]) / d->f[0]);
    } else {
        int64_t span;
        if (d->i[0] == 0 || d->i[0] == INT64_MIN || !po_sub_i64(l->i[0], s->i[0], &span) ||
            span == INT64_MIN)
            return PO_UNSUPPORTED;
        n = (double)(d->i[0] > 0 ? po_ceil_div(span, d->i[0]) : po_ceil_div(-span, -d->i[0]));
    }
    if (!(n <= PO_REF_MAX_COUNT))
        return PO_UNSUPPORTED;
    int64_t count = n > 0 ? (int64_t)n : 0;
    PO_TRY(po_ref_out(ref, 0, s->dtype, 1, &count, &y));
    for (int64_t k = 0; k < count; k++) {
        if (y->f)
            y->f[k] = s->f[0] + (double)k * d->f[0];
        else
            y->i[k] = s->i[0] + k * d->i[0];
    }
    return PO_OK;
}

/* --- EyeLike --- */

po_status po_infer_eyelike(po_infer *infer) {
    const po_type *x = po_infer_tensor(infer, 0);
    po_infer_set_like(infer, 0, attr_dtype(infer->graph, infer->node, po_infer_dtype(infer, 0)));
    if (x && x->has_rank && x->rank != 2)
        return po_rule_bad(infer->ctx, infer->node, "input must have rank 2 (found %u)", x->rank);
    return PO_OK;
}

po_status po_ref_eyelike(po_ref *ref) {
    const po_array *x = ref->in[0];
    int64_t shift = po_op_int(ref->graph, ref->node, "k");
    po_array *y;
    if (x->rank != 2)
        return PO_UNSUPPORTED;
    PO_TRY(po_ref_out(ref, 0, attr_dtype(ref->graph, ref->node, x->dtype), 2, x->dims, &y));
    if (y->s || shift < -x->dims[0] || shift > x->dims[1])
        return y->s ? PO_UNSUPPORTED : PO_OK;
    for (int64_t r = 0; r < x->dims[0]; r++) {
        int64_t c = r + shift;
        if (c < 0 || c >= x->dims[1])
            continue;
        if (y->f)
            y->f[r * x->dims[1] + c] = 1;
        else
            y->i[r * x->dims[1] + c] = 1;
    }
    return PO_OK;
}

/* --- OneHot --- */

po_status po_infer_onehot(po_infer *infer) {
    const po_type *x = po_infer_tensor(infer, 0);
    const po_partial *depth = po_infer_partial(infer, 1);
    po_dtype dtype = po_infer_dtype(infer, 2);
    uint32_t at;
    po_infer_set_unranked(infer, 0, dtype);
    if (!x || !x->has_rank || x->rank >= PO_MAX_RANK)
        return PO_OK;
    PO_TRY(po_rule_axis(infer->ctx, infer->node, po_op_int(infer->graph, infer->node, "axis"),
                        x->rank + 1, &at));
    po_dim *dims = PO_NEW_N(infer->arena, po_dim, x->rank + 1);
    for (uint32_t i = 0; i <= x->rank; i++)
        dims[i] = i < at ? x->dims[i] : i > at ? x->dims[i - 1] : PO_DIM_UNKNOWN;
    if (depth && depth->n == 1)
        dims[at] = po_size_of_item(depth->items[0]);
    else if (infer->constant[1] && infer->constant[1]->count == 1) {
        double d = po_tensor_f64(infer->constant[1], 0); /* a float depth is allowed */
        dims[at].value = d >= 0 && d < 0x1p53 ? (int64_t)d : -1;
    }
    po_infer_set(infer, 0, dtype, x->rank + 1, dims);
    return PO_OK;
}

po_status po_ref_onehot(po_ref *ref) {
    const po_array *x = ref->in[0], *values = ref->in[2];
    const int64_t *depths;
    int64_t one, dims[PO_MAX_RANK + 1];
    uint32_t at;
    po_array *y;
    PO_TRY(po_ref_ints(ref, 1, &one, &depths));
    if (one != 1 || values->count != 2 || x->s || x->rank >= PO_MAX_RANK ||
        !po_axis_at(po_op_int(ref->graph, ref->node, "axis"), x->rank + 1, &at))
        return PO_UNSUPPORTED;
    int64_t depth = depths[0];
    for (uint32_t i = 0; i <= x->rank; i++)
        dims[i] = i < at ? x->dims[i] : i > at ? x->dims[i - 1] : depth;
    PO_TRY(po_ref_out(ref, 0, values->dtype, x->rank + 1, dims, &y));
    int64_t inner = po_product(x->dims, at, x->rank);
    for (int64_t k = 0; k < y->count; k++) {
        int64_t d = k / inner % depth, from = k / inner / depth * inner + k % inner;
        double wanted = x->f ? x->f[from] : (double)x->i[from];
        wanted += wanted < 0 ? (double)depth : 0;
        int on = wanted == (double)d;
        if (y->f)
            y->f[k] = values->f[on];
        else if (y->i)
            y->i[k] = values->i[on];
        else
            y->s[k] = values->s[on];
    }
    return PO_OK;
}

/* --- Trilu --- */

po_status po_ref_trilu(po_ref *ref) {
    const po_array *x = ref->in[0];
    bool upper = po_op_int(ref->graph, ref->node, "upper") != 0;
    const int64_t *shift = &(int64_t){0};
    int64_t one = 1;
    po_array *y;
    if (po_ref_in(ref, 1))
        PO_TRY(po_ref_ints(ref, 1, &one, &shift));
    if (x->rank < 2 || x->s || one != 1)
        return PO_UNSUPPORTED;
    PO_TRY(po_ref_out(ref, 0, x->dtype, x->rank, x->dims, &y));
    int64_t rows = x->dims[x->rank - 2], columns = x->dims[x->rank - 1];
    int64_t by = *shift < -rows ? -rows : *shift > columns ? columns : *shift;
    for (int64_t k = 0; k < x->count; k++) {
        int64_t r = k / columns % rows, c = k % columns;
        if (upper ? c < r + by : c > r + by)
            continue;
        if (x->f)
            y->f[k] = x->f[k];
        else
            y->i[k] = x->i[k];
    }
    return PO_OK;
}

/* --- attributes --- */

const po_attr_def po_attrs_shape[] = {
    {.name = "end", .kind = PO_ATTR_INT, .since = 15},
    {.name = "start", .kind = PO_ATTR_INT, .since = 15, .has_default = true, .i = 0},
    {0},
};
const po_attr_def po_attrs_constantofshape[] = {
    {.name = "value", .kind = PO_ATTR_TENSOR, .since = 9},
    {0},
};
const po_attr_def po_attrs_range[] = {
    {.name = "stash_type", .kind = PO_ATTR_INT, .since = 27, .has_default = true, .i = 1},
    {0},
};
const po_attr_def po_attrs_eyelike[] = {
    {.name = "dtype", .kind = PO_ATTR_INT, .since = 9},
    {.name = "k", .kind = PO_ATTR_INT, .since = 9, .has_default = true, .i = 0},
    {0},
};
const po_attr_def po_attrs_onehot[] = {
    {.name = "axis", .kind = PO_ATTR_INT, .since = 9, .has_default = true, .i = -1},
    {0},
};
const po_attr_def po_attrs_trilu[] = {
    {.name = "upper", .kind = PO_ATTR_INT, .since = 14, .has_default = true, .i = 1},
    {0},
};
