/* Operators that go along one axis: ArgMax, ArgMin, CumSum, CumProd. */
#include "ops/families/rules.h"
#include "ops/ref.h"
#include "ops/shape.h"

#include <math.h>

/* --- ArgMax, ArgMin --- */

po_status po_infer_arg(po_infer *infer) {
    const po_type *x = po_infer_tensor(infer, 0);
    bool keep = po_op_int(infer->graph, infer->node, "keepdims") != 0;
    uint32_t at, rank = 0;
    po_infer_set_unranked(infer, 0, PO_I64);
    if (!x || !x->has_rank || x->rank == 0)
        return PO_OK;
    PO_TRY(po_rule_axis(infer->ctx, infer->node, po_op_int(infer->graph, infer->node, "axis"),
                        x->rank, &at));
    po_dim *dims = PO_NEW_N(infer->arena, po_dim, x->rank);
    for (uint32_t i = 0; i < x->rank; i++)
        if (i != at)
            dims[rank++] = x->dims[i];
        else if (keep)
            dims[rank++] = PO_DIM(1);
    po_infer_set(infer, 0, PO_I64, rank, dims);
    return PO_OK;
}

/* True where a goes before b. */
static bool beats(const po_array *x, int64_t a, int64_t b, bool max) {
    if (x->f)
        return max ? x->f[a] > x->f[b] : x->f[a] < x->f[b];
    if (x->dtype == PO_U64)
        return max ? (uint64_t)x->i[a] > (uint64_t)x->i[b] : (uint64_t)x->i[a] < (uint64_t)x->i[b];
    return max ? x->i[a] > x->i[b] : x->i[a] < x->i[b];
}

po_status po_ref_arg(po_ref *ref) {
    const po_array *x = ref->in[0];
    bool keep = po_op_int(ref->graph, ref->node, "keepdims") != 0;
    bool last = po_op_int(ref->graph, ref->node, "select_last_index") != 0;
    bool max = ref->node->op == PO_OP_ArgMax;
    int64_t dims[PO_MAX_RANK];
    uint32_t at, rank = 0;
    po_array *y;
    if (x->s || !po_axis_at(po_op_int(ref->graph, ref->node, "axis"), x->rank, &at))
        return PO_UNSUPPORTED;
    for (uint32_t i = 0; i < x->rank; i++)
        if (i != at)
            dims[rank++] = x->dims[i];
        else if (keep)
            dims[rank++] = 1;
    int64_t n = x->dims[at], inner = po_product(x->dims, at + 1, x->rank);
    if (n == 0)
        return PO_UNSUPPORTED;
    for (int64_t k = 0; k < x->count && x->f; k++)
        if (isnan(x->f[k]))
            return PO_UNSUPPORTED; /* runtimes differ */
    PO_TRY(po_ref_out(ref, 0, PO_I64, rank, dims, &y));
    for (int64_t k = 0; k < y->count; k++) {
        int64_t from = k / inner * n * inner + k % inner, best = 0;
        for (int64_t i = 1; i < n; i++)
            if (last ? !beats(x, from + best * inner, from + i * inner, max)
                     : beats(x, from + i * inner, from + best * inner, max))
                best = i;
        y->i[k] = best;
    }
    return PO_OK;
}

/* --- CumSum, CumProd --- */

po_status po_ref_cumulative(po_ref *ref) {
    const po_array *x = ref->in[0];
    bool product = ref->node->op == PO_OP_CumProd;
    bool exclusive = po_op_int(ref->graph, ref->node, "exclusive") != 0;
    bool reverse = po_op_int(ref->graph, ref->node, "reverse") != 0;
    const int64_t *axis;
    int64_t one;
    uint32_t at;
    po_array *y;
    PO_TRY(po_ref_ints(ref, 1, &one, &axis));
    if (one != 1 || x->s || !po_axis_at(*axis, x->rank, &at))
        return PO_UNSUPPORTED;
    PO_TRY(po_ref_out(ref, 0, x->dtype, x->rank, x->dims, &y));
    int64_t n = x->dims[at], inner = po_product(x->dims, at + 1, x->rank);
    int64_t lines = n ? x->count / n : 0;
    for (int64_t l = 0; l < lines; l++) {
        int64_t from = l / inner * n * inner + l % inner;
        double f = product;
        uint64_t u = product;
        for (int64_t j = 0; j < n; j++) {
            int64_t k = from + (reverse ? n - 1 - j : j) * inner;
            double before_f = f;
            uint64_t before_u = u;
            if (x->f) {
                f = product ? f * x->f[k] : f + x->f[k];
                y->f[k] = exclusive ? before_f : f;
            } else {
                u = product ? u * (uint64_t)x->i[k] : u + (uint64_t)x->i[k];
                y->i[k] = (int64_t)(exclusive ? before_u : u);
            }
        }
    }
    return PO_OK;
}

/* --- attributes --- */

const po_attr_def po_attrs_arg[] = {
    {.name = "axis", .kind = PO_ATTR_INT, .since = 1, .has_default = true, .i = 0},
    {.name = "keepdims", .kind = PO_ATTR_INT, .since = 1, .has_default = true, .i = 1},
    {.name = "select_last_index", .kind = PO_ATTR_INT, .since = 12, .has_default = true, .i = 0},
    {0},
};
const po_attr_def po_attrs_cumsum[] = {
    {.name = "exclusive", .kind = PO_ATTR_INT, .since = 11, .has_default = true, .i = 0},
    {.name = "reverse", .kind = PO_ATTR_INT, .since = 11, .has_default = true, .i = 0},
    {0},
};
const po_attr_def po_attrs_cumprod[] = {
    {.name = "exclusive", .kind = PO_ATTR_INT, .since = 26, .has_default = true, .i = 0},
    {.name = "reverse", .kind = PO_ATTR_INT, .since = 26, .has_default = true, .i = 0},
    {0},
};
