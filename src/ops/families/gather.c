/* Gather, GatherElements, GatherND, Compress. */
#include "ops/rule.h"

/* --- Gather --- */

/* Shape arithmetic: chosen elements of a vector. */
static po_status gather_contents(po_infer *infer, const po_type *data, const po_type *indices) {
    const po_partial *p = infer->partial[0];
    const int64_t *at;
    int64_t n;
    if (!p || data->rank != 1 || indices->rank > 1 ||
        po_rule_ints(infer, NULL, 1, &at, &n) != PO_KNOWN || n > 4096)
        return PO_OK;
    po_dim *items = PO_NEW_N(infer->arena, po_dim, n);
    for (int64_t i = 0; i < n; i++) {
        uint32_t k;
        PO_TRY(po_rule_axis(infer->ctx, infer->node, at[i], p->n, &k));
        items[i] = p->items[k];
    }
    po_infer_set_partial(infer, 0, (uint32_t)n, items);
    return PO_OK;
}

po_status po_infer_gather(po_infer *infer) {
    const po_type *data = po_rule_ranked(infer, 0), *indices = po_rule_ranked(infer, 1);
    po_infer_set_unranked(infer, 0, po_infer_dtype(infer, 0));
    uint32_t axis;
    if (!data)
        return PO_OK;
    PO_TRY(po_rule_axis(infer->ctx, infer->node, po_op_int(infer->graph, infer->node, "axis"),
                        data->rank, &axis));
    if (!indices)
        return PO_OK;
    po_dim *dims = po_rule_out(infer, 0, data->dtype, data->rank + indices->rank - 1);
    uint32_t n = 0;
    for (uint32_t k = 0; k < axis; k++)
        dims[n++] = data->dims[k];
    for (uint32_t k = 0; k < indices->rank; k++)
        dims[n++] = indices->dims[k];
    for (uint32_t k = axis + 1; k < data->rank; k++)
        dims[n++] = data->dims[k];
    return gather_contents(infer, data, indices);
}

po_status po_ref_gather(po_ref *ref) {
    PO_TRY(po_rule_outputs(ref));
    const po_array *data = ref->in[0], *indices = ref->in[1], *out = ref->out[0];
    uint32_t axis;
    if (!indices->i)
        return PO_UNSUPPORTED;
    PO_TRY(po_rule_axis(ref->ctx, ref->node, po_op_int(ref->graph, ref->node, "axis"), data->rank,
                        &axis));
    int64_t outer = po_product(data->dims, 0, axis), dim = data->dims[axis];
    size_t width = po_rule_width(data) * (size_t)po_product(data->dims, axis + 1, data->rank);
    char *to = po_rule_data(out);
    if (out->count == 0)
        return PO_OK;
    for (int64_t o = 0; o < outer; o++)
        for (int64_t i = 0; i < indices->count; i++, to += width) {
            int64_t at;
            PO_TRY(po_rule_index(ref, indices->i[i], dim, &at));
            memcpy(to, po_rule_data(data) + (size_t)(o * dim + at) * width, width);
        }
    return PO_OK;
}

/* --- GatherElements --- */

po_status po_infer_gather_elements(po_infer *infer) {
    const po_type *data = po_rule_ranked(infer, 0), *indices = po_rule_ranked(infer, 1);
    uint32_t axis;
    po_infer_set_as(infer, 0, po_infer_dtype(infer, 0), indices);
    if (!data || !indices)
        return PO_OK;
    if (data->rank != indices->rank)
        return po_rule_bad(infer->ctx, infer->node, "ranks of data and indices differ (%u and %u)",
                           data->rank, indices->rank);
    PO_TRY(po_rule_axis(infer->ctx, infer->node, po_op_int(infer->graph, infer->node, "axis"),
                        data->rank, &axis));
    for (uint32_t k = 0; k < data->rank; k++)
        if (k != axis && data->dims[k].value >= 0 && indices->dims[k].value > data->dims[k].value)
            return po_rule_bad(infer->ctx, infer->node,
                               "dim %u of indices is larger than that of data (%lld, %lld)", k,
                               (long long)indices->dims[k].value, (long long)data->dims[k].value);
    return PO_OK;
}

po_status po_ref_gather_elements(po_ref *ref) {
    PO_TRY(po_rule_outputs(ref));
    const po_array *data = ref->in[0], *indices = ref->in[1], *out = ref->out[0];
    uint32_t axis;
    if (!data || !indices->i)
        return PO_UNSUPPORTED;
    PO_TRY(po_rule_axis(ref->ctx, ref->node, po_op_int(ref->graph, ref->node, "axis"), data->rank,
                        &axis));
    int64_t strides[PO_MAX_RANK], index[PO_MAX_RANK] = {0};
    size_t width = po_rule_width(data);
    po_rule_strides(data->rank, data->dims, strides);
    for (int64_t i = 0; i < out->count; i++) {
        int64_t at, from = 0;
        PO_TRY(po_rule_index(ref, indices->i[i], data->dims[axis], &at));
        for (uint32_t k = 0; k < data->rank; k++)
            from += (k == axis ? at : index[k]) * strides[k];
        memcpy(po_rule_data(out) + (size_t)i * width, po_rule_data(data) + (size_t)from * width,
               width);
        po_next_index(out->rank, out->dims, index);
    }
    return PO_OK;
}

/* --- GatherND --- */

static po_status batch_dims(po_ctx *ctx, const po_graph *graph, const po_node *node, uint32_t data,
                            uint32_t indices, uint32_t *batch) {
    int64_t b = po_op_int(graph, node, "batch_dims");
    if (data == 0 || indices == 0 || b < 0 || b >= (int64_t)data || b >= (int64_t)indices)
        return po_rule_bad(ctx, node, "batch_dims %lld is out of range (ranks %u and %u)",
                           (long long)b, data, indices);
    *batch = (uint32_t)b;
    return PO_OK;
}

po_status po_infer_gather_nd(po_infer *infer) {
    const po_type *data = po_rule_ranked(infer, 0), *indices = po_rule_ranked(infer, 1);
    po_infer_set_unranked(infer, 0, po_infer_dtype(infer, 0));
    if (!data || !indices)
        return PO_OK;
    uint32_t batch;
    PO_TRY(batch_dims(infer->ctx, infer->graph, infer->node, data->rank, indices->rank, &batch));
    int64_t last = indices->dims[indices->rank - 1].value;
    for (uint32_t k = 0; k < batch; k++)
        if (data->dims[k].value >= 0 && indices->dims[k].value >= 0 &&
            data->dims[k].value != indices->dims[k].value)
            return PO_OK; /* wrong, but runtimes go by the product */
    if (last <= 0)
        return PO_OK; /* unknown; or no indices at all, which runtimes take for whole batches */
    if (last > (int64_t)(data->rank - batch))
        return po_rule_bad(infer->ctx, infer->node,
                           "the last dim of indices is out of range (%lld)", (long long)last);
    uint32_t inner = batch + (uint32_t)last;
    po_dim *dims = po_rule_out(infer, 0, data->dtype, indices->rank - 1 + data->rank - inner);
    memcpy(dims, indices->dims, (indices->rank - 1) * sizeof *dims);
    memcpy(dims + indices->rank - 1, data->dims + inner, (data->rank - inner) * sizeof *dims);
    return PO_OK;
}

po_status po_ref_gather_nd(po_ref *ref) {
    PO_TRY(po_rule_outputs(ref));
    const po_array *data = ref->in[0], *indices = ref->in[1], *out = ref->out[0];
    uint32_t batch;
    if (!indices->i)
        return PO_UNSUPPORTED;
    PO_TRY(batch_dims(ref->ctx, ref->graph, ref->node, data->rank, indices->rank, &batch));
    uint32_t last = (uint32_t)indices->dims[indices->rank - 1];
    int64_t strides[PO_MAX_RANK], outer = po_product(data->dims, 0, batch);
    int64_t each = po_product(indices->dims, batch, indices->rank - 1);
    po_rule_strides(data->rank, data->dims, strides);
    size_t element = po_rule_width(data),
           width = element * (size_t)po_product(data->dims, batch + last, data->rank);
    char *to = po_rule_data(out);
    const int64_t *at = indices->i;
    if (out->count == 0)
        return PO_OK;
    int64_t batch_stride = po_product(data->dims, batch, data->rank);
    for (int64_t o = 0; o < outer; o++)
        for (int64_t e = 0; e < each; e++, at += last, to += width) {
            int64_t from = o * batch_stride;
            for (uint32_t k = 0; k < last; k++) {
                int64_t i;
                PO_TRY(po_rule_index(ref, at[k], data->dims[batch + k], &i));
                from += i * strides[batch + k];
            }
            memcpy(to, po_rule_data(data) + (size_t)from * element, width);
        }
    return PO_OK;
}

/* --- Compress --- */

po_status po_infer_compress(po_infer *infer) {
    const po_type *in = po_rule_ranked(infer, 0);
    const po_attr *a = po_node_attr(infer->node, "axis");
    if (!a) {
        po_rule_out(infer, 0, po_infer_dtype(infer, 0), 1);
        return PO_OK;
    }
    po_infer_set_unranked(infer, 0, po_infer_dtype(infer, 0));
    uint32_t axis;
    if (!in)
        return PO_OK;
    PO_TRY(po_rule_axis(infer->ctx, infer->node, po_node_int(infer->node, "axis", 0), in->rank,
                        &axis));
    po_dim *dims = po_rule_out(infer, 0, in->dtype, in->rank);
    memcpy(dims, in->dims, in->rank * sizeof *dims);
    dims[axis] = PO_DIM_UNKNOWN;
    return PO_OK;
}

po_status po_ref_compress(po_ref *ref) {
    const po_array *in = po_ref_in(ref, 0), *keep = po_ref_in(ref, 1);
    if (!in || !keep || !keep->i || keep->rank != 1 || in->count > PO_REF_MAX_COUNT)
        return PO_UNSUPPORTED;
    uint32_t axis = 0, rank = in->rank;
    const int64_t *shape = in->dims;
    if (po_node_attr(ref->node, "axis")) {
        PO_TRY(po_rule_axis(ref->ctx, ref->node, po_node_int(ref->node, "axis", 0), rank, &axis));
    } else {
        rank = 1;
        shape = &in->count;
    }
    int64_t *dims = po_arena_memdup(ref->arena, shape, rank * sizeof *dims), kept = 0;
    int64_t last = -1;
    for (int64_t i = 0; i < keep->count; i++)
        if (keep->i[i]) {
            kept++;
            last = i;
        }
    if (last >= shape[axis])
        return po_rule_bad(ref->ctx, ref->node, "condition is longer than the dim (%lld)",
                           (long long)shape[axis]);
    dims[axis] = kept;
    PO_TRY(po_array_create(ref->ctx, ref->arena, in->dtype, rank, dims, &ref->out[0]));
    size_t width = po_rule_width(in) * (size_t)po_product(shape, axis + 1, rank);
    char *to = po_rule_data(ref->out[0]);
    if (ref->out[0]->count == 0)
        return PO_OK;
    for (int64_t o = 0; o < po_product(shape, 0, axis); o++)
        for (int64_t i = 0; i <= last; i++)
            if (keep->i[i]) {
                memcpy(to, po_rule_data(in) + (size_t)(o * shape[axis] + i) * width, width);
                to += width;
            }
    return PO_OK;
}

/* --- attributes --- */

const po_attr_def po_attrs_gather[] = {
    {.name = "axis", .kind = PO_ATTR_INT, .since = 1, .has_default = true, .i = 0},
    {0},
};

const po_attr_def po_attrs_gather_elements[] = {
    {.name = "axis", .kind = PO_ATTR_INT, .since = 11, .has_default = true, .i = 0},
    {0},
};

const po_attr_def po_attrs_gather_nd[] = {
    {.name = "batch_dims", .kind = PO_ATTR_INT, .since = 12, .has_default = true, .i = 0},
    {0},
};

const po_attr_def po_attrs_compress[] = {
    {.name = "axis", .kind = PO_ATTR_INT, .since = 9},
    {0},
};
