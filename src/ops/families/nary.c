/* Max, Mean, Min and Sum of any number of inputs; Where, Clip, PRelu. */
#include "ops/broadcast.h"
#include "ops/families/rules.h"
#include "ops/shape.h"

#include <math.h>

po_status po_infer_nary(po_infer *infer) {
    po_type out = po_type_unranked(PO_DT_NONE);
    for (uint32_t k = 0; k < infer->n_in && out.dtype == PO_DT_NONE; k++)
        out.dtype = po_infer_dtype(infer, k);
    PO_TRY(po_infer_broadcast(infer, infer->n_in, infer->in, &out));
    infer->out[0] = out;
    if (infer->n_in == 1)
        infer->out_partial[0] = infer->partial[0];
    else if (infer->n_in == 2)
        po_contents_binary(infer);
    return PO_OK;
}

static double join_f(po_op_id op, double a, double b) {
    switch (op) {
    case PO_OP_Max:
        return isnan(a) || a > b ? a : b;
    case PO_OP_Min:
        return isnan(a) || a < b ? a : b;
    default:
        return a + b;
    }
}

static int64_t join_i(po_op_id op, bool is_u64, int64_t a, int64_t b) {
    bool less = is_u64 ? (uint64_t)a < (uint64_t)b : a < b;
    switch (op) {
    case PO_OP_Max:
        return less ? b : a;
    case PO_OP_Min:
        return less ? a : b;
    default:
        return (int64_t)((uint64_t)a + (uint64_t)b);
    }
}

/* *x = *x joined with y, broadcast. */
static po_status join(po_ref *ref, const po_array **x, const po_array *y) {
    const po_array *both[] = {*x, y}, *a = *x;
    po_bcast b;
    po_bcast_row row = {0};
    po_array *z;
    po_op_id op = ref->node->op;
    if (a->dtype != y->dtype || a->s || !po_bcast_init(&b, 2, both))
        return PO_UNSUPPORTED;
    PO_TRY(po_ref_make(ref, a->dtype, b.out_rank, b.out_dims, &z));
    while (po_bcast_next(&b, &row))
        for (int64_t k = 0; k < row.n; k++) {
            int64_t i = row.from[0] + k * row.step[0], j = row.from[1] + k * row.step[1];
            if (a->f)
                z->f[row.at + k] = join_f(op, a->f[i], y->f[j]);
            else
                z->i[row.at + k] = join_i(op, a->dtype == PO_U64, a->i[i], y->i[j]);
        }
    *x = z;
    return PO_OK;
}

po_status po_ref_nary(po_ref *ref) {
    const po_array *x = ref->in[0];
    for (uint32_t k = 0; k < ref->n_in; k++)
        if (!ref->in[k] || ref->in[k]->s)
            return PO_UNSUPPORTED;
    for (uint32_t k = 1; k < ref->n_in; k++)
        PO_TRY(join(ref, &x, ref->in[k]));
    po_array *out = x == ref->in[0] ? po_array_copy(ref->arena, x)
                                    : po_array_view(ref->arena, x, x->rank, x->dims);
    if (ref->node->op == PO_OP_Mean) {
        if (!out->f)
            return PO_UNSUPPORTED;
        for (int64_t k = 0; k < out->count; k++)
            out->f[k] /= (double)ref->n_in;
    }
    ref->out[0] = out;
    return PO_OK;
}

/* --- Where --- */

po_status po_infer_where(po_infer *infer) {
    po_dtype dtype = po_infer_dtype(infer, 1);
    po_type out = po_type_unranked(dtype == PO_DT_NONE ? po_infer_dtype(infer, 2) : dtype);
    PO_TRY(po_infer_broadcast(infer, 3, infer->in, &out));
    infer->out[0] = out;
    po_contents_where(infer);
    return PO_OK;
}

po_status po_ref_where(po_ref *ref) {
    const po_array *c = ref->in[0], *x = ref->in[1], *y = ref->in[2];
    po_bcast b;
    po_bcast_row row = {0};
    po_array *z;
    if (!c->i || x->dtype != y->dtype || !po_bcast_init(&b, 3, ref->in))
        return PO_UNSUPPORTED;
    PO_TRY(po_ref_out(ref, 0, x->dtype, b.out_rank, b.out_dims, &z));
    while (po_bcast_next(&b, &row))
        for (int64_t k = 0; k < row.n; k++) {
            bool take = c->i[row.from[0] + k * row.step[0]] != 0;
            const po_array *from = take ? x : y;
            int64_t at = take ? row.from[1] + k * row.step[1] : row.from[2] + k * row.step[2];
            if (z->f)
                z->f[row.at + k] = from->f[at];
            else if (z->i)
                z->i[row.at + k] = from->i[at];
            else
                z->s[row.at + k] = from->s[at];
        }
    return PO_OK;
}

/* --- Clip --- */

/* A bound: since opset 11 an input with one element, before that an attribute. */
static po_status bound(po_ref *ref, uint32_t k, const char *name, bool *has, double *f,
                       int64_t *i) {
    const po_array *a = po_ref_in(ref, k);
    *has = false;
    if (ref->opset > 0 && ref->opset < 11) {
        *has = ref->opset >= 6 || po_node_attr(ref->node, name);
        *f = (double)po_op_float(ref->graph, ref->node, name);
        return ref->in[0]->f ? PO_OK : PO_UNSUPPORTED;
    }
    if (!a)
        return PO_OK;
    if (a->count != 1 || a->dtype != ref->in[0]->dtype)
        return PO_UNSUPPORTED;
    *has = true;
    *f = a->f ? a->f[0] : 0;
    *i = a->i ? a->i[0] : 0;
    return PO_OK;
}

po_status po_ref_clip(po_ref *ref) {
    const po_array *x = ref->in[0];
    bool has_min, has_max, is_u64 = x->dtype == PO_U64;
    double fmin_, fmax_;
    int64_t imin, imax;
    po_array *y;
    if (x->s)
        return PO_UNSUPPORTED;
    PO_TRY(bound(ref, 1, "min", &has_min, &fmin_, &imin));
    PO_TRY(bound(ref, 2, "max", &has_max, &fmax_, &imax));
    PO_TRY(po_ref_out(ref, 0, x->dtype, x->rank, x->dims, &y));
    for (int64_t k = 0; k < x->count; k++) {
        if (x->f) {
            double v = x->f[k];
            v = has_min && v < fmin_ ? fmin_ : v;
            y->f[k] = has_max && v > fmax_ ? fmax_ : v;
        } else {
            int64_t v = x->i[k];
            v = has_min ? join_i(PO_OP_Max, is_u64, v, imin) : v;
            y->i[k] = has_max ? join_i(PO_OP_Min, is_u64, v, imax) : v;
        }
    }
    return PO_OK;
}

/* --- PRelu --- */

po_status po_ref_prelu(po_ref *ref) {
    const po_array *x = ref->in[0], *slope = ref->in[1];
    int64_t channel[PO_MAX_RANK];
    const uint32_t rank =
        slope->rank == 1 && ref->opset < 7 && x->rank > 1 ? x->rank - 1 : slope->rank;
    po_bcast b;
    po_bcast_row row = {0};
    po_array *y;
    if (slope->rank > PO_MAX_RANK || rank > PO_MAX_RANK || x->dtype != slope->dtype || x->s)
        return PO_UNSUPPORTED;
    /* Until opset 6 the slope was one number, or one for each channel. */
    for (uint32_t i = 0; i < rank; i++)
        channel[i] = i < slope->rank ? slope->dims[i] : 1;
    if (rank != slope->rank && slope->count == 1)
        channel[0] = 1;
    const uint32_t ranks[] = {x->rank, rank};
    const int64_t *dims[] = {x->dims, channel};
    if (!po_bcast_dims(&b, 2, ranks, dims) || b.out_rank != x->rank || b.count != x->count)
        return PO_UNSUPPORTED;
    PO_TRY(po_ref_out(ref, 0, x->dtype, x->rank, x->dims, &y));
    while (po_bcast_next(&b, &row))
        for (int64_t k = 0; k < row.n; k++) {
            int64_t i = row.from[0] + k * row.step[0], j = row.from[1] + k * row.step[1];
            bool negative =
                x->f ? x->f[i] < 0 : x->i[i] < 0 && po_dtype_class_of(x->dtype) == PO_CLASS_SIGNED;
            if (x->f)
                y->f[i] = negative ? x->f[i] * slope->f[j] : x->f[i];
            else
                y->i[i] = negative ? (int64_t)((uint64_t)x->i[i] * (uint64_t)slope->i[j]) : x->i[i];
        }
    return PO_OK;
}

/* --- attributes --- */

const po_attr_def po_attrs_clip[] = {
    {.name = "consumed_inputs", .kind = PO_ATTR_INTS, .since = 1, .until = 5},
    {.name = "max", .kind = PO_ATTR_FLOAT, .since = 1, .until = 5},
    {.name = "max",
     .kind = PO_ATTR_FLOAT,
     .since = 6,
     .until = 10,
     .has_default = true,
     .f = 3.4028235e+38f},
    {.name = "min", .kind = PO_ATTR_FLOAT, .since = 1, .until = 5},
    {.name = "min",
     .kind = PO_ATTR_FLOAT,
     .since = 6,
     .until = 10,
     .has_default = true,
     .f = -3.4028235e+38f},
    {0},
};
