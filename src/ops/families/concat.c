/* Concat and Split. */
#include "ir/size.h"
#include "ops/rule.h"

/* --- Concat --- */

static int64_t concat_axis(const po_graph *graph, const po_node *node) {
    return po_node_int(node, "axis", po_op_version(graph, node) < 4 ? 1 : 0);
}

/* Shape arithmetic: vectors end to end. */
static void concat_contents(po_infer *infer) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < infer->n_in; i++) {
        const po_type *t = po_rule_ranked(infer, i);
        if (!t || t->rank != 1)
            return;
        if (!infer->partial[i] && t->dims[0].value != 0 &&
            (t->dims[0].value < 0 || t->dims[0].value > 64))
            return;
        n += infer->partial[i] ? infer->partial[i]->n : (uint32_t)t->dims[0].value;
        if (n > 4096)
            return;
    }
    po_dim *items = PO_NEW_N(infer->arena, po_dim, n);
    uint32_t k = 0;
    bool any = false;
    for (uint32_t i = 0; i < infer->n_in; i++) {
        const po_partial *p = infer->partial[i];
        uint32_t len = p ? p->n : (uint32_t)infer->in[i]->dims[0].value;
        any = any || p;
        for (uint32_t j = 0; j < len; j++)
            items[k++] = p ? p->items[j] : PO_DIM_UNKNOWN;
    }
    if (any)
        po_infer_set_partial(infer, 0, n, items);
}

po_status po_infer_concat(po_infer *infer) {
    const po_type *model = NULL;
    po_dtype dtype = PO_DT_NONE;
    uint32_t axis;
    for (uint32_t i = 0; i < infer->n_in; i++) {
        const po_type *t = po_rule_ranked(infer, i);
        if (dtype == PO_DT_NONE)
            dtype = po_infer_dtype(infer, i);
        if (!model)
            model = t;
        if (t && t->rank != model->rank)
            return po_rule_bad(infer->ctx, infer->node, "ranks differ (%u and %u)", model->rank,
                               t->rank);
        if (t && dtype != PO_DT_NONE && t->dtype != PO_DT_NONE && t->dtype != dtype)
            return po_rule_bad(infer->ctx, infer->node, "element types differ (%s and %s)",
                               po_dtype_name(dtype), po_dtype_name(t->dtype));
    }
    po_infer_set_unranked(infer, 0, dtype);
    if (!model)
        return PO_OK;
    PO_TRY(po_rule_axis(infer->ctx, infer->node, concat_axis(infer->graph, infer->node),
                        model->rank, &axis));
    po_dim *dims = po_rule_out(infer, 0, dtype, model->rank), sum = PO_DIM(0);
    for (uint32_t i = 0; i < infer->n_in; i++) {
        const po_type *t = po_rule_ranked(infer, i);
        for (uint32_t k = 0; t && k < t->rank; k++)
            if (k != axis)
                PO_TRY(po_rule_same_dim(infer, dims[k], t->dims[k], "dims off the axis", &dims[k]));
        po_dim d = t ? t->dims[axis] : PO_DIM_UNKNOWN;
        sum = po_size_add(infer->arena, sum, d);
    }
    dims[axis] = sum;
    concat_contents(infer);
    return PO_OK;
}

po_status po_ref_concat(po_ref *ref) {
    PO_TRY(po_rule_outputs(ref));
    const po_array *out = ref->out[0];
    uint32_t axis;
    PO_TRY(po_rule_axis(ref->ctx, ref->node, concat_axis(ref->graph, ref->node), out->rank, &axis));
    int64_t outer = 1, inner = 1, at = 0;
    for (uint32_t k = 0; k < axis; k++)
        outer *= out->dims[k];
    for (uint32_t k = axis + 1; k < out->rank; k++)
        inner *= out->dims[k];
    size_t width = po_rule_width(out), row = (size_t)(out->dims[axis] * inner) * width;
    for (uint32_t i = 0; i < ref->n_in; i++) {
        const po_array *in = ref->in[i];
        if (!in || in->dtype != out->dtype)
            return PO_UNSUPPORTED;
        size_t piece = (size_t)(in->dims[axis] * inner) * width;
        for (int64_t o = 0; o < outer; o++)
            memcpy(po_rule_data(out) + (size_t)o * row + (size_t)(at * inner) * width,
                   po_rule_data(in) + (size_t)o * piece, piece);
        at += in->dims[axis];
    }
    return PO_OK;
}

/* --- Split --- */

/* The sizes of the outputs along the axis, where they can be told: sizes[n_out]. */
static po_status split_sizes(po_infer *infer, po_dim dim, int64_t *sizes, bool *known) {
    const int64_t *given;
    int64_t n, total = 0, parts = infer->n_out;
    *known = false;
    po_known have = po_rule_ints(infer, infer->opset < 13 ? "split" : NULL, 1, &given, &n);
    const po_attr *count = infer->opset >= 18 ? po_node_attr(infer->node, "num_outputs") : NULL;
    if (count && count->kind == PO_ATTR_INT && count->u.i < parts)
        return po_rule_bad(infer->ctx, infer->node, "num_outputs is %lld, the node has %lld",
                           (long long)count->u.i, (long long)parts);
    if (count && count->kind == PO_ATTR_INT && count->u.i > parts)
        return PO_OK; /* runtimes differ in what the parts are then */
    if (have == PO_ABSENT && infer->opset >= 18 && !count)
        return po_rule_bad(infer->ctx, infer->node, "neither split nor num_outputs is there");
    if (have == PO_NOT_KNOWN)
        return PO_OK;
    if (have == PO_KNOWN) {
        if (n != parts)
            return po_rule_bad(infer->ctx, infer->node, "split has %lld sizes for %lld outputs",
                               (long long)n, (long long)parts);
        for (int64_t i = 0; i < n; i++) {
            sizes[i] = given[i];
            if (given[i] < 0 || !po_add_i64(total, given[i], &total))
                return po_rule_bad(infer->ctx, infer->node, "split size %lld is wrong",
                                   (long long)given[i]);
        }
        if (dim.value >= 0 && total != dim.value)
            return po_rule_bad(infer->ctx, infer->node, "split adds up to %lld, the dim is %lld",
                               (long long)total, (long long)dim.value);
        *known = true;
        return PO_OK;
    }
    if (dim.value < 0)
        return PO_OK;
    if (infer->opset < 18 && dim.value % parts != 0)
        return po_rule_bad(infer->ctx, infer->node, "a dim of %lld does not split into %lld",
                           (long long)dim.value, (long long)parts);
    int64_t each = po_ceil_div(dim.value, parts), left = dim.value;
    for (int64_t i = 0; i < parts; i++) {
        sizes[i] = each < left ? each : left;
        left -= sizes[i];
    }
    *known = true;
    return PO_OK;
}

po_status po_infer_split(po_infer *infer) {
    const po_type *in = po_rule_ranked(infer, 0);
    uint32_t axis;
    bool known;
    if (infer->n_out == 0)
        return PO_OK;
    if (!in) {
        for (uint32_t i = 0; i < infer->n_out; i++)
            po_infer_set_unranked(infer, i, po_infer_dtype(infer, 0));
        return PO_OK;
    }
    PO_TRY(po_rule_axis(infer->ctx, infer->node, po_op_int(infer->graph, infer->node, "axis"),
                        in->rank, &axis));
    int64_t *sizes = PO_NEW_N(infer->arena, int64_t, infer->n_out), at = 0;
    PO_TRY(split_sizes(infer, in->dims[axis], sizes, &known));
    const po_partial *p = infer->partial[0];
    for (uint32_t i = 0; i < infer->n_out; i++) {
        po_dim *dims = po_rule_out(infer, i, in->dtype, in->rank);
        memcpy(dims, in->dims, in->rank * sizeof *dims);
        dims[axis] = known ? PO_DIM(sizes[i]) : PO_DIM_UNKNOWN;
        if (known && p && in->rank == 1 && at <= (int64_t)p->n && sizes[i] <= (int64_t)p->n - at) {
            po_infer_set_partial(infer, i, (uint32_t)sizes[i], p->items + at);
            at += sizes[i];
        }
    }
    return PO_OK;
}

po_status po_ref_split(po_ref *ref) {
    PO_TRY(po_rule_outputs(ref));
    const po_array *in = ref->in[0];
    po_type *types = PO_NEW_N(ref->arena, po_type, ref->n_out);
    PO_TRY(po_rule_types(ref, types));
    uint32_t axis;
    PO_TRY(po_rule_axis(ref->ctx, ref->node, po_op_int(ref->graph, ref->node, "axis"), in->rank,
                        &axis));
    int64_t strides[PO_MAX_RANK], at = 0;
    po_rule_strides(in->rank, in->dims, strides);
    for (uint32_t i = 0; i < ref->n_out; i++) {
        if (types[i].rank <= axis)
            return PO_UNSUPPORTED; /* an omitted output of unknown size */
        if (ref->node->out[i] != PO_NONE)
            po_move(po_rule_data(ref->out[i]), po_rule_data(in), po_rule_width(in), in->rank,
                    ref->out[i]->dims, at * strides[axis], strides);
        at += types[i].dims[axis].value;
    }
    return PO_OK;
}

/* --- attributes --- */

const po_attr_def po_attrs_concat[] = {
    {.name = "axis", .kind = PO_ATTR_INT, .since = 1, .until = 3},
    {.name = "axis", .kind = PO_ATTR_INT, .since = 4, .required = true},
    {0},
};

const po_attr_def po_attrs_split[] = {
    {.name = "axis", .kind = PO_ATTR_INT, .since = 1, .until = 1},
    {.name = "axis", .kind = PO_ATTR_INT, .since = 2, .has_default = true, .i = 0},
    {.name = "num_outputs", .kind = PO_ATTR_INT, .since = 18},
    {.name = "split", .kind = PO_ATTR_INTS, .since = 1, .until = 12},
    {0},
};
