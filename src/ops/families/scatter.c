/* Scatter, ScatterElements, ScatterND, TensorScatter. */
#include "ops/rule.h"

typedef enum reduction { REDUCE_NONE, REDUCE_ADD, REDUCE_MUL, REDUCE_MAX, REDUCE_MIN } reduction;

static po_status reduction_of(po_ctx *ctx, const po_graph *graph, const po_node *node,
                              reduction *found) {
    static const char *const names[] = {"none", "add", "mul", "max", "min"};
    *found = REDUCE_NONE;
    if (po_op_string(graph, node, "reduction").size == 0)
        return PO_OK;
    for (int i = 0; i < 5; i++)
        if (po_rule_mode(graph, node, "reduction", names[i])) {
            *found = (reduction)i;
            return PO_OK;
        }
    (void)ctx;
    return PO_UNSUPPORTED; /* runtimes run it in ways of their own */
}

static double reduce_float(reduction how, double a, double b) {
    switch (how) {
    case REDUCE_ADD:
        return a + b;
    case REDUCE_MUL:
        return a * b;
    case REDUCE_MAX:
        return a != a || a > b ? a : b;
    case REDUCE_MIN:
        return a != a || a < b ? a : b;
    case REDUCE_NONE:
        break;
    }
    return b;
}

static int64_t reduce_int(reduction how, bool is_unsigned, int64_t a, int64_t b) {
    bool less = is_unsigned ? (uint64_t)a < (uint64_t)b : a < b;
    switch (how) {
    case REDUCE_ADD:
        return (int64_t)((uint64_t)a + (uint64_t)b);
    case REDUCE_MUL:
        return (int64_t)((uint64_t)a * (uint64_t)b);
    case REDUCE_MAX:
        return less ? b : a;
    case REDUCE_MIN:
        return less ? a : b;
    case REDUCE_NONE:
        break;
    }
    return b;
}

static void put(const po_array *to, int64_t at, const po_array *from, int64_t i, reduction how) {
    if (to->f)
        to->f[at] = reduce_float(how, to->f[at], from->f[i]);
    else if (to->i)
        to->i[at] = reduce_int(how, po_dtype_class_of(to->dtype) == PO_CLASS_UNSIGNED, to->i[at],
                               from->i[i]);
    else
        to->s[at] = from->s[i];
}

/* Output 0 starts as a copy of input 0. */
static po_status start(po_ref *ref, const po_array **indices, const po_array **updates) {
    PO_TRY(po_rule_outputs(ref));
    const po_array *data = po_ref_in(ref, 0);
    *indices = po_ref_in(ref, 1);
    *updates = po_ref_in(ref, 2);
    if (!data || !*indices || !*updates || !(*indices)->i || (*updates)->dtype != data->dtype)
        return PO_UNSUPPORTED;
    memcpy(po_rule_data(ref->out[0]), po_rule_data(data),
           (size_t)data->count * po_rule_width(data));
    return PO_OK;
}

/* --- ScatterElements --- */

po_status po_infer_scatter_elements(po_infer *infer) {
    const po_type *data = po_rule_ranked(infer, 0), *indices = po_rule_ranked(infer, 1);
    const po_type *updates = po_rule_ranked(infer, 2);
    reduction how;
    uint32_t axis;
    po_infer_set_as(infer, 0, po_infer_dtype(infer, 0), data);
    PO_TRY(reduction_of(infer->ctx, infer->graph, infer->node, &how));
    if (!data || !indices || !updates)
        return PO_OK;
    if (data->rank != indices->rank || updates->rank != indices->rank)
        return po_rule_bad(infer->ctx, infer->node, "ranks differ (%u, %u and %u)", data->rank,
                           indices->rank, updates->rank);
    PO_TRY(po_rule_axis(infer->ctx, infer->node, po_op_int(infer->graph, infer->node, "axis"),
                        data->rank, &axis));
    for (uint32_t k = 0; k < data->rank; k++) {
        po_dim both;
        PO_TRY(po_rule_same_dim(infer, indices->dims[k], updates->dims[k],
                                "dims of indices and updates", &both));
        if (k != axis && data->dims[k].value >= 0 && both.value > data->dims[k].value)
            return po_rule_bad(infer->ctx, infer->node,
                               "dim %u of indices is larger than that of data (%lld, %lld)", k,
                               (long long)both.value, (long long)data->dims[k].value);
    }
    return PO_OK;
}

po_status po_ref_scatter_elements(po_ref *ref) {
    const po_array *indices, *updates;
    reduction how;
    uint32_t axis;
    PO_TRY(start(ref, &indices, &updates));
    PO_TRY(reduction_of(ref->ctx, ref->graph, ref->node, &how));
    const po_array *out = ref->out[0];
    PO_TRY(po_rule_axis(ref->ctx, ref->node, po_op_int(ref->graph, ref->node, "axis"), out->rank,
                        &axis));
    int64_t strides[PO_MAX_RANK], index[PO_MAX_RANK] = {0};
    po_rule_strides(out->rank, out->dims, strides);
    for (int64_t i = 0; i < indices->count; i++) {
        int64_t at, to = 0;
        PO_TRY(po_rule_index(ref, indices->i[i], out->dims[axis], &at));
        for (uint32_t k = 0; k < out->rank; k++)
            to += (k == axis ? at : index[k]) * strides[k];
        put(out, to, updates, i, how);
        po_next_index(indices->rank, indices->dims, index);
    }
    return PO_OK;
}

/* --- ScatterND --- */

po_status po_infer_scatter_nd(po_infer *infer) {
    const po_type *data = po_rule_ranked(infer, 0), *indices = po_rule_ranked(infer, 1);
    const po_type *updates = po_rule_ranked(infer, 2);
    reduction how;
    po_infer_set_as(infer, 0, po_infer_dtype(infer, 0), data);
    PO_TRY(reduction_of(infer->ctx, infer->graph, infer->node, &how));
    if (!data || !indices || !updates || indices->rank == 0)
        return indices && indices->rank == 0
                   ? po_rule_bad(infer->ctx, infer->node, "indices must have a rank of 1 or more")
                   : PO_OK;
    int64_t last = indices->dims[indices->rank - 1].value;
    if (last < 0)
        return PO_OK;
    if (last > (int64_t)data->rank ||
        updates->rank != indices->rank - 1 + data->rank - (uint32_t)last)
        return po_rule_bad(infer->ctx, infer->node, "ranks do not fit (%u, %u and %u)", data->rank,
                           indices->rank, updates->rank);
    for (uint32_t k = 0; k < updates->rank; k++) {
        po_dim both;
        po_dim want = k < indices->rank - 1 ? indices->dims[k]
                                            : data->dims[k - (indices->rank - 1) + (uint32_t)last];
        PO_TRY(po_rule_same_dim(infer, updates->dims[k], want, "dims of updates", &both));
    }
    return PO_OK;
}

po_status po_ref_scatter_nd(po_ref *ref) {
    const po_array *indices, *updates;
    reduction how;
    PO_TRY(start(ref, &indices, &updates));
    PO_TRY(reduction_of(ref->ctx, ref->graph, ref->node, &how));
    const po_array *out = ref->out[0];
    uint32_t last = (uint32_t)indices->dims[indices->rank - 1];
    int64_t strides[PO_MAX_RANK], inner = 1;
    po_rule_strides(out->rank, out->dims, strides);
    for (uint32_t k = last; k < out->rank; k++)
        inner *= out->dims[k];
    if (updates->count == 0)
        return PO_OK;
    for (int64_t i = 0; i < updates->count / inner; i++) {
        int64_t to = 0;
        for (uint32_t k = 0; k < last; k++) {
            int64_t at;
            PO_TRY(po_rule_index(ref, indices->i[i * last + k], out->dims[k], &at));
            to += at * strides[k];
        }
        for (int64_t j = 0; j < inner; j++)
            put(out, to + j, updates, i * inner + j, how);
    }
    return PO_OK;
}

/* --- TensorScatter: writes `update` into a cache from a position given for each batch --- */

static po_status cache_axis(po_ctx *ctx, const po_graph *graph, const po_node *node, uint32_t rank,
                            uint32_t *axis) {
    PO_TRY(po_rule_axis(ctx, node, po_op_int(graph, node, "axis"), rank, axis));
    if (*axis == 0)
        return po_rule_bad(ctx, node, "axis must not be the batch");
    return PO_OK;
}

po_status po_infer_tensor_scatter(po_infer *infer) {
    const po_type *cache = po_rule_ranked(infer, 0), *update = po_rule_ranked(infer, 1);
    const po_type *start_at = po_rule_ranked(infer, 2);
    uint32_t axis;
    po_infer_set_as(infer, 0, po_infer_dtype(infer, 0), cache);
    if (!cache)
        return PO_OK;
    PO_TRY(cache_axis(infer->ctx, infer->graph, infer->node, cache->rank, &axis));
    po_dim both;
    if (update && update->rank != cache->rank)
        return po_rule_bad(infer->ctx, infer->node, "ranks differ (%u and %u)", cache->rank,
                           update->rank);
    for (uint32_t k = 0; update && k < cache->rank; k++)
        if (k != axis)
            PO_TRY(po_rule_same_dim(infer, cache->dims[k], update->dims[k], "dims off the axis",
                                    &both));
    if (start_at && start_at->rank != 1)
        return po_rule_bad(infer->ctx, infer->node, "write_indices must have rank 1 (found %u)",
                           start_at->rank);
    if (start_at)
        PO_TRY(po_rule_same_dim(infer, cache->dims[0], start_at->dims[0], "batch sizes", &both));
    return PO_OK;
}

po_status po_ref_tensor_scatter(po_ref *ref) {
    PO_TRY(po_rule_outputs(ref));
    const po_array *cache = ref->in[0], *update = po_ref_in(ref, 1), *out = ref->out[0];
    const po_array *starts = po_ref_in(ref, 2);
    bool circular = po_rule_mode(ref->graph, ref->node, "mode", "circular");
    uint32_t axis;
    if (!cache || !update || update->dtype != cache->dtype || (starts && !starts->i))
        return PO_UNSUPPORTED;
    PO_TRY(cache_axis(ref->ctx, ref->graph, ref->node, cache->rank, &axis));
    int64_t middle = 1, inner = 1, length = cache->dims[axis], steps = update->dims[axis];
    for (uint32_t k = 1; k < axis; k++)
        middle *= cache->dims[k];
    for (uint32_t k = axis + 1; k < cache->rank; k++)
        inner *= cache->dims[k];
    size_t width = po_rule_width(cache) * (size_t)inner;
    memcpy(po_rule_data(out), po_rule_data(cache), (size_t)cache->count * po_rule_width(cache));
    for (int64_t b = 0; b < cache->dims[0]; b++) {
        int64_t at = starts ? starts->i[b] : 0;
        if (steps == 0)
            continue;
        if (at < 0 || at >= length || steps > length || (!circular && at > length - steps))
            return po_rule_bad(ref->ctx, ref->node, "write index %lld is out of range",
                               (long long)at);
        for (int64_t m = 0; m < middle; m++)
            for (int64_t s = 0; s < steps; s++)
                memcpy(po_rule_data(out) +
                           (size_t)((b * middle + m) * length + (at + s) % length) * width,
                       po_rule_data(update) + (size_t)((b * middle + m) * steps + s) * width,
                       width);
    }
    return PO_OK;
}

/* --- attributes --- */

const po_attr_def po_attrs_scatter[] = {
    {.name = "axis", .kind = PO_ATTR_INT, .since = 9, .has_default = true, .i = 0},
    {0},
};

const po_attr_def po_attrs_scatter_elements[] = {
    {.name = "axis", .kind = PO_ATTR_INT, .since = 11, .has_default = true, .i = 0},
    {.name = "reduction", .kind = PO_ATTR_STRING, .since = 16, .has_default = true, .s = "none"},
    {0},
};

const po_attr_def po_attrs_scatter_nd[] = {
    {.name = "reduction", .kind = PO_ATTR_STRING, .since = 16, .has_default = true, .s = "none"},
    {0},
};

const po_attr_def po_attrs_tensor_scatter[] = {
    {.name = "axis", .kind = PO_ATTR_INT, .since = 24, .has_default = true, .i = -2},
    {.name = "mode", .kind = PO_ATTR_STRING, .since = 24, .has_default = true, .s = "linear"},
    {0},
};
