/* Operators that keep the data as it is: Reshape, Flatten, Squeeze, Unsqueeze. */
#include "ir/size.h"
#include "ops/rule.h"

/* --- Reshape --- */

/* One item of the target shape, as far as it is known. */
typedef struct target {
    po_dim dim;    /* meaningful for neither hole nor copy */
    uint32_t copy; /* input dim that it repeats, or PO_NONE */
    bool hole;     /* -1, or an unknown item that might be -1 */
} target;

/* Reads the target; PO_BAD_INPUT where it is wrong by itself. */
static po_status read_target(po_infer *infer, const po_contents *shape, const po_type *in,
                             target *items, uint32_t *holes, bool *exact_hole) {
    bool keep_zero = po_op_int(infer->graph, infer->node, "allowzero") != 0;
    bool zero = false;
    *holes = 0;
    *exact_hole = false;
    for (uint32_t i = 0; i < shape->n; i++) {
        target *t = &items[i];
        *t = (target){.dim = PO_DIM_UNKNOWN, .copy = PO_NONE};
        if (!shape->exact[i]) {
            t->dim.symbol = shape->symbols[i];
            t->hole = !shape->symbols[i];
            *holes += t->hole;
            continue;
        }
        int64_t v = shape->values[i];
        if (v < -1)
            return po_rule_bad(infer->ctx, infer->node, "target dim %u is negative (found %lld)", i,
                               (long long)v);
        if (v == -1) {
            if (*exact_hole)
                return po_rule_bad(infer->ctx, infer->node, "more than one target dim is -1");
            t->hole = *exact_hole = true;
            ++*holes;
        } else if (v == 0 && !keep_zero) {
            if (in && i >= in->rank)
                return po_rule_bad(infer->ctx, infer->node,
                                   "target dim %u repeats an input dim that is not there", i);
            t->copy = i;
        } else {
            t->dim = PO_DIM(v);
            zero = zero || v == 0;
        }
    }
    if (zero && *exact_hole)
        return po_rule_bad(infer->ctx, infer->node, "target has both 0 and -1");
    return PO_OK;
}

/* Cancels input dims against target items; what is left of the input goes to *left (numbers) and
 * *odd (one dim that is not a number), and of the target's numbers to *product. False where more
 * than that is left. */
static bool cancel(const po_type *in, const target *items, uint32_t n, int64_t *left, po_dim *odd,
                   bool *has_odd, int64_t *product) {
    bool gone[PO_MAX_RANK] = {false};
    *left = *product = 1;
    *has_odd = false;
    for (uint32_t i = 0; i < n; i++)
        if (items[i].copy != PO_NONE)
            gone[items[i].copy] = true;
    for (uint32_t i = 0; i < n; i++) {
        const target *t = &items[i];
        if (t->hole || t->copy != PO_NONE)
            continue;
        if (t->dim.value >= 0) {
            if (!po_mul_i64(*product, t->dim.value, product))
                return false;
            continue;
        }
        uint32_t k = 0;
        while (k < in->rank && (gone[k] || !po_dim_same(in->dims[k], t->dim)))
            k++;
        if (k == in->rank)
            return false;
        gone[k] = true;
    }
    for (uint32_t k = 0; k < in->rank; k++) {
        if (gone[k])
            continue;
        if (in->dims[k].value >= 0) {
            if (!po_mul_i64(*left, in->dims[k].value, left))
                return false;
        } else if (*has_odd) {
            return false;
        } else {
            *odd = in->dims[k];
            *has_odd = true;
        }
    }
    return true;
}

/* What is left of the elements for the hole, as expressions; unknown where that is not seen. */
static po_dim quotient(po_infer *infer, const po_type *in, const target *items, uint32_t n) {
    po_dim others = PO_DIM(1);
    for (uint32_t i = 0; i < n; i++)
        if (!items[i].hole)
            others = po_size_mul(infer->arena, others,
                                 items[i].copy == PO_NONE ? items[i].dim : in->dims[items[i].copy]);
    return po_size_divide(infer->arena, po_rule_product(infer, in->dims, in->rank), others);
}

static po_status fill_hole(po_infer *infer, const po_type *in, const target *items, uint32_t n,
                           po_dim *hole) {
    int64_t left, product;
    po_dim odd = PO_DIM_UNKNOWN;
    bool has_odd;
    const bool cancelled = cancel(in, items, n, &left, &odd, &has_odd, &product);
    if (!cancelled || has_odd) {
        /* Names that stand in no expression are found by the first. */
        *hole = cancelled && left == product ? odd : quotient(infer, in, items, n);
        /* Lengths that are sums cancel out, where products of them are not divided. */
        if (cancelled && product > 0 && hole->value < 0 && !hole->symbol)
            *hole = po_size_divide(infer->arena, po_size_times(infer->arena, odd, left),
                                   PO_DIM(product));
        return PO_OK;
    }
    if (product == 0)
        return PO_OK;
    if (left % product != 0)
        return po_rule_bad(infer->ctx, infer->node,
                           "%lld elements do not divide into the target shape (%lld)",
                           (long long)left, (long long)product);
    *hole = PO_DIM(left / product);
    return PO_OK;
}

static const po_contents *target_shape(po_infer *infer) {
    uint32_t n;
    const int64_t *attr = po_node_ints(infer->node, "shape", &n);
    if (!attr || infer->opset >= 5)
        return po_rule_contents(infer, 1);
    po_contents *c = PO_NEW(infer->arena, po_contents);
    bool *exact = PO_NEW_N(infer->arena, bool, n);
    memset(exact, 1, n);
    *c = (po_contents){.n = n, .values = attr, .exact = exact};
    return c;
}

/* Rows of so many numbers are made of the last axes that are known to have as many, if there are
 * such; else of all but the first, of which one may be open. */
static void demand_rows(const po_infer *infer, const po_type *in, po_dim row) {
    int64_t known = 1;
    uint32_t open = PO_NONE;
    for (uint32_t k = in->rank; k-- > 1;) {
        if (in->dims[k].value < 0 && open != PO_NONE)
            return;
        if (in->dims[k].value < 0)
            open = k;
        else if (!po_mul_i64(known, in->dims[k].value, &known))
            return;
        if (open == PO_NONE && known == row.value)
            return;
    }
    if (open != PO_NONE && known > 0 && row.value > known && row.value % known == 0)
        po_rule_demand(infer, PO_DEMAND_LIKELY, in->dims[open], PO_DIM(row.value / known));
}

/* A target without a hole says how many elements there are; one whose first axis is what is left,
 * how many a row has. */
static void demand(const po_infer *infer, const po_type *in, const target *items,
                   const po_dim *dims, uint32_t n) {
    const po_dim all = po_rule_product(infer, dims, n);
    if (all.value >= 0)
        po_rule_demand(infer, PO_DEMAND_IS, po_rule_product(infer, in->dims, in->rank), all);
    else if (n > 1 && items[0].hole)
        demand_rows(infer, in, po_rule_product(infer, dims + 1, n - 1));
}

po_status po_infer_reshape(po_infer *infer) {
    po_dtype dtype = po_infer_dtype(infer, 0);
    const po_contents *shape = target_shape(infer);
    po_infer_set_unranked(infer, 0, dtype);
    if (!shape) {
        const po_type *t = po_rule_ranked(infer, 1);
        if (t && t->rank == 1 && t->dims[0].value >= 0 && t->dims[0].value <= PO_MAX_RANK)
            po_rule_out(infer, 0, dtype, (uint32_t)t->dims[0].value);
        return PO_OK;
    }
    const po_type *in = po_rule_ranked(infer, 0);
    target *items = PO_NEW_N(infer->arena, target, shape->n);
    uint32_t holes;
    bool exact_hole;
    PO_TRY(read_target(infer, shape, in, items, &holes, &exact_hole));
    po_dim *dims = po_rule_out(infer, 0, dtype, shape->n), hole = PO_DIM_UNKNOWN;
    if (holes == 1 && in)
        PO_TRY(fill_hole(infer, in, items, shape->n, &hole));
    for (uint32_t i = 0; i < shape->n; i++) {
        if (items[i].hole)
            dims[i] = hole;
        else if (items[i].copy == PO_NONE)
            dims[i] = items[i].dim;
        else if (in)
            dims[i] = in->dims[items[i].copy];
    }
    int64_t before = in ? po_type_count(in) : -1;
    po_dim after = po_rule_product(infer, dims, shape->n);
    if (before >= 0 && after.value >= 0 && before != after.value)
        return po_rule_bad(infer->ctx, infer->node, "%lld elements do not fit the target (%lld)",
                           (long long)before, (long long)after.value);
    if (in)
        demand(infer, in, items, dims, shape->n);
    if (shape->n <= 1)
        infer->out_partial[0] = infer->partial[0];
    return PO_OK;
}

/* --- Flatten --- */

po_status po_infer_flatten(po_infer *infer) {
    const po_type *in = po_rule_ranked(infer, 0);
    po_dim *dims = po_rule_out(infer, 0, po_infer_dtype(infer, 0), 2);
    int64_t axis = po_op_int(infer->graph, infer->node, "axis");
    if (!in)
        return PO_OK;
    int64_t rank = in->rank;
    if (axis < -rank || axis > rank)
        return po_rule_bad(infer->ctx, infer->node, "axis %lld is out of range (rank %u)",
                           (long long)axis, in->rank);
    uint32_t at = (uint32_t)(axis < 0 ? axis + rank : axis);
    dims[0] = po_rule_product(infer, in->dims, at);
    dims[1] = po_rule_product(infer, in->dims + at, in->rank - at);
    return PO_OK;
}

/* --- Squeeze and Unsqueeze --- */

static po_status mark_axes(po_infer *infer, const int64_t *axes, int64_t n, uint32_t rank,
                           bool twice, bool *marked) {
    for (int64_t i = 0; i < n; i++) {
        uint32_t at;
        PO_TRY(po_rule_axis(infer->ctx, infer->node, axes[i], rank, &at));
        if (marked[at] && !twice)
            return po_rule_bad(infer->ctx, infer->node, "axis %u is given twice", at);
        marked[at] = true;
    }
    return PO_OK;
}

po_status po_infer_squeeze(po_infer *infer) {
    const po_type *in = po_rule_ranked(infer, 0);
    const int64_t *axes = NULL;
    int64_t n;
    bool drop[PO_MAX_RANK] = {false};
    po_known known = po_rule_ints(infer, "axes", 1, &axes, &n);
    po_infer_set_unranked(infer, 0, po_infer_dtype(infer, 0));
    if (!in || in->rank > PO_MAX_RANK)
        return PO_OK;
    if (known == PO_NOT_KNOWN) {
        if (n <= 1 && n >= 0 && n <= (int64_t)in->rank) /* of several, two may be the same */
            po_rule_out(infer, 0, in->dtype, in->rank - (uint32_t)n);
        return PO_OK;
    }
    if (known == PO_KNOWN)
        PO_TRY(mark_axes(infer, axes, n, in->rank, true, drop));
    uint32_t rank = 0;
    for (uint32_t i = 0; i < in->rank; i++) {
        if (known == PO_ABSENT && in->dims[i].value < 0)
            return PO_OK;
        if (known == PO_ABSENT)
            drop[i] = in->dims[i].value == 1;
        if (drop[i] && in->dims[i].value >= 0 && in->dims[i].value != 1)
            return po_rule_bad(infer->ctx, infer->node, "dim %u is not 1 (found %lld)", i,
                               (long long)in->dims[i].value);
        if (drop[i])
            po_rule_demand(infer, PO_DEMAND_IS, in->dims[i], PO_DIM(1));
        rank += !drop[i];
    }
    po_dim *dims = po_rule_out(infer, 0, in->dtype, rank);
    for (uint32_t i = 0, k = 0; i < in->rank; i++)
        if (!drop[i])
            dims[k++] = in->dims[i];
    if (rank <= 1)
        infer->out_partial[0] = infer->partial[0];
    return PO_OK;
}

po_status po_infer_unsqueeze(po_infer *infer) {
    const po_type *in = po_rule_ranked(infer, 0);
    const int64_t *axes;
    int64_t n;
    bool added[PO_MAX_RANK] = {false};
    po_known known = po_rule_ints(infer, "axes", 1, &axes, &n);
    po_infer_set_unranked(infer, 0, po_infer_dtype(infer, 0));
    if (!in || known == PO_ABSENT || n < 0)
        return PO_OK;
    if (n > PO_MAX_RANK - (int64_t)in->rank)
        return po_rule_bad(infer->ctx, infer->node, "too many axes (found %lld)", (long long)n);
    uint32_t rank = in->rank + (uint32_t)n;
    po_dim *dims = po_rule_out(infer, 0, in->dtype, rank);
    if (known == PO_NOT_KNOWN)
        return PO_OK;
    PO_TRY(mark_axes(infer, axes, n, rank, false, added));
    for (uint32_t i = 0, k = 0; i < rank; i++)
        dims[i] = added[i] ? PO_DIM(1) : in->dims[k++];
    if (rank <= 1)
        infer->out_partial[0] = infer->partial[0];
    return PO_OK;
}

/* --- attributes --- */

const po_attr_def po_attrs_reshape[] = {
    {.name = "allowzero", .kind = PO_ATTR_INT, .since = 14, .has_default = true, .i = 0},
    {.name = "consumed_inputs", .kind = PO_ATTR_INTS, .since = 1, .until = 4},
    {.name = "shape", .kind = PO_ATTR_INTS, .since = 1, .until = 4},
    {0},
};

const po_attr_def po_attrs_flatten[] = {
    {.name = "axis", .kind = PO_ATTR_INT, .since = 1, .has_default = true, .i = 1},
    {0},
};

const po_attr_def po_attrs_squeeze[] = {
    {.name = "axes", .kind = PO_ATTR_INTS, .since = 1, .until = 12},
    {0},
};

const po_attr_def po_attrs_unsqueeze[] = {
    {.name = "axes", .kind = PO_ATTR_INTS, .since = 1, .until = 12, .required = true},
    {0},
};
