/* The Reduce family. Axes are an attribute until opset 17 (ReduceSum: 12), then an input. */
#include "ops/broadcast.h"
#include "ops/families/rules.h"
#include "ops/shape.h"

#include <math.h>

/* Which axes go, from a list; an empty list means all of them, or none with `noop`. False where
 * one lies outside. */
static bool mark_axes(uint32_t rank, uint32_t n, const int64_t *axes, bool noop, bool *gone) {
    uint64_t seen = 0;
    for (uint32_t i = 0; i < rank; i++)
        gone[i] = n == 0 && !noop;
    for (uint32_t k = 0; k < n; k++) {
        uint32_t at;
        if (!po_axis_at(axes[k], rank, &at) || (seen >> at & 1))
            return false;
        seen |= UINT64_C(1) << at;
        gone[at] = true;
    }
    return true;
}

/* --- shapes --- */

static void unknown_axes(po_infer *infer, const po_type *x, bool keep, int64_t n_axes) {
    if (!keep && n_axes <= 0)
        return;
    uint32_t rank = keep ? x->rank : (uint32_t)((int64_t)x->rank - n_axes);
    po_dim *dims = PO_NEW_N(infer->arena, po_dim, x->rank);
    for (uint32_t i = 0; i < x->rank; i++)
        dims[i] = PO_DIM_UNKNOWN;
    if (rank <= x->rank)
        po_infer_set(infer, 0, x->dtype, rank, dims);
}

static void contents(po_infer *infer, uint32_t rank) {
    const po_item *items;
    uint32_t n;
    po_op_id op = infer->node->op;
    if (rank > 1 || !po_infer_items(infer, 0, &n, &items) || n == 0 ||
        (op != PO_OP_ReduceProd && op != PO_OP_ReduceSum && op != PO_OP_ReduceMax &&
         op != PO_OP_ReduceMin))
        return;
    po_item all = items[0];
    for (uint32_t i = 1; i < n; i++) {
        int64_t v = 0;
        bool ok = all.known && items[i].known;
        switch (op) {
        case PO_OP_ReduceProd:
            ok = ok && po_mul_i64(all.value, items[i].value, &v);
            break;
        case PO_OP_ReduceSum:
            ok = ok && po_add_i64(all.value, items[i].value, &v);
            break;
        case PO_OP_ReduceMax:
            v = all.value > items[i].value ? all.value : items[i].value;
            break;
        default:
            v = all.value < items[i].value ? all.value : items[i].value;
            break;
        }
        if (!ok)
            return;
        all.value = v;
    }
    po_infer_set_items(infer, 0, 1, &all);
}

po_status po_infer_reduce(po_infer *infer) {
    const po_type *x = po_infer_tensor(infer, 0);
    bool keep = po_op_int(infer->graph, infer->node, "keepdims") != 0;
    bool noop = po_op_int(infer->graph, infer->node, "noop_with_empty_axes") != 0;
    uint32_t n = 0;
    const int64_t *axes = po_node_ints(infer->node, "axes", &n);
    po_infer_set_unranked(infer, 0, po_infer_dtype(infer, 0));
    if (!x || !x->has_rank)
        return PO_OK;
    if (infer->n_in > 1 && infer->in[1] && !po_infer_ints(infer, 1, &n, &axes)) {
        int64_t n_axes = po_infer_length(infer, 1);
        unknown_axes(infer, x, keep, n_axes);
        return PO_OK;
    }
    bool *gone = PO_NEW_N(infer->arena, bool, x->rank);
    if (!mark_axes(x->rank, n, axes, noop, gone)) {
        uint32_t at;
        for (uint32_t i = 0; i < n; i++)
            PO_TRY(po_rule_axis(infer->ctx, infer->node, axes[i], x->rank, &at));
        return PO_UNSUPPORTED; /* an axis twice: runtimes run it */
    }
    po_dim *dims = PO_NEW_N(infer->arena, po_dim, x->rank);
    uint32_t rank = 0, reduced = 0;
    for (uint32_t i = 0; i < x->rank; i++) {
        reduced += gone[i];
        if (!gone[i])
            dims[rank++] = x->dims[i];
        else if (keep)
            dims[rank++] = PO_DIM(1);
    }
    po_infer_set(infer, 0, x->dtype, rank, dims);
    if (reduced && x->rank == 1)
        contents(infer, rank);
    return PO_OK;
}

/* --- reference --- */

static double start_f(po_op_id op) {
    return op == PO_OP_ReduceMax    ? -INFINITY
           : op == PO_OP_ReduceMin  ? INFINITY
           : op == PO_OP_ReduceProd ? 1.0
                                    : 0.0;
}

static double step_f(po_op_id op, double acc, double x) {
    switch (op) {
    case PO_OP_ReduceMax:
        return isnan(acc) || acc > x ? acc : x;
    case PO_OP_ReduceMin:
        return isnan(acc) || acc < x ? acc : x;
    case PO_OP_ReduceProd:
        return acc * x;
    case PO_OP_ReduceL1:
        return acc + fabs(x);
    case PO_OP_ReduceL2:
    case PO_OP_ReduceSumSquare:
        return acc + x * x;
    default:
        return acc + x;
    }
}

static double finish_f(po_op_id op, double acc, double n) {
    switch (op) {
    case PO_OP_ReduceMean:
        return acc / n;
    case PO_OP_ReduceL2:
        return sqrt(acc);
    case PO_OP_ReduceLogSum:
        return log(acc);
    default:
        return acc;
    }
}

/* Smallest or largest number of an integer type, as the start of Max and Min. */
static int64_t extreme(po_dtype dtype, bool smallest) {
    uint32_t bits = po_dtype_bits(dtype);
    switch (po_dtype_class_of(dtype)) {
    case PO_CLASS_BOOL:
        return !smallest;
    case PO_CLASS_UNSIGNED:
        return smallest ? 0 : (int64_t)(UINT64_MAX >> (64 - bits));
    default:
        return smallest ? -(int64_t)(INT64_MAX >> (64 - bits)) - 1 : INT64_MAX >> (64 - bits);
    }
}

static int64_t step_i(po_op_id op, bool is_u64, int64_t acc, int64_t x) {
    uint64_t a = (uint64_t)acc, b = (uint64_t)x;
    switch (op) {
    case PO_OP_ReduceMax:
        return (is_u64 ? a > b : acc > x) ? acc : x;
    case PO_OP_ReduceMin:
        return (is_u64 ? a < b : acc < x) ? acc : x;
    case PO_OP_ReduceProd:
        return (int64_t)(a * b);
    case PO_OP_ReduceSumSquare:
        return (int64_t)(a + b * b);
    case PO_OP_ReduceL1:
        return (int64_t)(x < 0 && !is_u64 ? a - b : a + b);
    default:
        return (int64_t)(a + b);
    }
}

typedef struct plan {
    po_bcast b;   /* the input, and the output with its axes kept */
    int64_t each; /* elements that go into one result */
} plan;

static po_status reduce_floats(po_ref *ref, const po_array *x, po_array *y, const plan *p) {
    po_op_id op = ref->node->op;
    bool log_sum_exp = op == PO_OP_ReduceLogSumExp;
    double *top = NULL;
    po_bcast_row row = {0};
    if (log_sum_exp) {
        /* Exponents relative to the largest: exp does not overflow. */
        top = PO_NEW_N(ref->arena, double, y->count);
        for (int64_t k = 0; k < y->count; k++)
            top[k] = -INFINITY;
        while (po_bcast_next(&p->b, &row))
            for (int64_t k = 0; k < row.n; k++) {
                double *t = &top[row.from[1] + k * row.step[1]];
                *t = step_f(PO_OP_ReduceMax, *t, x->f[row.from[0] + k * row.step[0]]);
            }
        for (int64_t k = 0; k < y->count; k++)
            top[k] = isfinite(top[k]) ? top[k] : 0;
    }
    for (int64_t k = 0; k < y->count; k++)
        y->f[k] = start_f(op);
    row = (po_bcast_row){0};
    while (po_bcast_next(&p->b, &row))
        for (int64_t k = 0; k < row.n; k++) {
            int64_t to = row.from[1] + k * row.step[1];
            double v = x->f[row.from[0] + k * row.step[0]];
            y->f[to] = log_sum_exp ? y->f[to] + exp(v - top[to]) : step_f(op, y->f[to], v);
        }
    for (int64_t k = 0; k < y->count; k++)
        y->f[k] = log_sum_exp ? log(y->f[k]) + top[k] : finish_f(op, y->f[k], (double)p->each);
    return PO_OK;
}

static po_status reduce_ints(po_ref *ref, const po_array *x, po_array *y, const plan *p) {
    po_op_id op = ref->node->op;
    bool is_u64 = x->dtype == PO_U64;
    po_bcast_row row = {0};
    if (op == PO_OP_ReduceL2 || op == PO_OP_ReduceLogSum || op == PO_OP_ReduceLogSumExp ||
        (op == PO_OP_ReduceMean && (p->each == 0 || is_u64)))
        return PO_UNSUPPORTED;
    for (int64_t k = 0; k < y->count; k++)
        y->i[k] = op == PO_OP_ReduceMax || op == PO_OP_ReduceMin
                      ? extreme(x->dtype, op == PO_OP_ReduceMax)
                      : op == PO_OP_ReduceProd;
    while (po_bcast_next(&p->b, &row))
        for (int64_t k = 0; k < row.n; k++) {
            int64_t *acc = &y->i[row.from[1] + k * row.step[1]];
            *acc = step_i(op, is_u64, *acc, x->i[row.from[0] + k * row.step[0]]);
        }
    for (int64_t k = 0; k < y->count && op == PO_OP_ReduceMean; k++)
        y->i[k] /= p->each;
    return PO_OK;
}

po_status po_ref_reduce(po_ref *ref) {
    const po_array *x = ref->in[0];
    bool keep = po_op_int(ref->graph, ref->node, "keepdims") != 0;
    bool noop = po_op_int(ref->graph, ref->node, "noop_with_empty_axes") != 0;
    bool gone[PO_MAX_RANK];
    int64_t kept[PO_MAX_RANK], dims[PO_MAX_RANK], n_axes = 0;
    uint32_t n = 0, rank = 0, reduced = 0;
    const int64_t *axes = po_node_ints(ref->node, "axes", &n);
    plan p = {.each = 1};
    po_array *y;
    if (po_ref_in(ref, 1)) {
        if (!ref->in[1]->i)
            return PO_UNSUPPORTED;
        PO_TRY(po_ref_ints(ref, 1, &n_axes, &axes));
        n = (uint32_t)n_axes;
    }
    if (x->s || x->rank > PO_MAX_RANK || !mark_axes(x->rank, n, axes, noop, gone))
        return PO_UNSUPPORTED;
    for (uint32_t i = 0; i < x->rank; i++) {
        reduced += gone[i];
        kept[i] = gone[i] ? 1 : x->dims[i];
        p.each *= gone[i] ? x->dims[i] : 1;
        if (!gone[i] || keep)
            dims[rank++] = kept[i];
    }
    const uint32_t ranks[] = {x->rank, x->rank};
    const int64_t *both[] = {x->dims, kept};
    if (n > 0 && reduced != n)
        return PO_UNSUPPORTED; /* an axis is named twice */
    if (!po_bcast_dims(&p.b, 2, ranks, both))
        return PO_UNSUPPORTED;
    PO_TRY(po_ref_out(ref, 0, x->dtype, rank, dims, &y));
    return x->f ? reduce_floats(ref, x, y, &p) : reduce_ints(ref, x, y, &p);
}

/* --- attributes --- */

const po_attr_def po_attrs_reduce[] = {
    {.name = "axes", .kind = PO_ATTR_INTS, .since = 1, .until = 17},
    {.name = "keepdims", .kind = PO_ATTR_INT, .since = 1, .has_default = true, .i = 1},
    {.name = "noop_with_empty_axes", .kind = PO_ATTR_INT, .since = 18, .has_default = true, .i = 0},
    {0},
};
const po_attr_def po_attrs_reducesum[] = {
    {.name = "axes", .kind = PO_ATTR_INTS, .since = 1, .until = 12},
    {.name = "keepdims", .kind = PO_ATTR_INT, .since = 1, .has_default = true, .i = 1},
    {.name = "noop_with_empty_axes", .kind = PO_ATTR_INT, .since = 13, .has_default = true, .i = 0},
    {0},
};
