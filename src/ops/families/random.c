/* Random operators: shapes only, they are never evaluated; and Dropout, which outside of training
 * passes its input through. */
#include "ops/families/rules.h"
#include "ops/ref.h"
#include "ops/shape.h"

static po_dtype dtype_of(const po_infer *infer, po_dtype otherwise) {
    const po_attr *a = po_node_attr(infer->node, "dtype");
    int64_t v = a && a->kind == PO_ATTR_INT ? a->u.i : (int64_t)otherwise;
    return v > 0 && v < PO_DT_COUNT ? (po_dtype)v : PO_DT_NONE;
}

po_status po_infer_random(po_infer *infer) {
    uint32_t n;
    const int64_t *shape = po_node_ints(infer->node, "shape", &n);
    po_infer_set_unranked(infer, 0, dtype_of(infer, PO_F32));
    if (!shape || n > PO_MAX_RANK)
        return PO_OK;
    for (uint32_t i = 0; i < n; i++)
        if (shape[i] < 0)
            return po_rule_bad(infer->ctx, infer->node, "a dim is negative (found %lld)",
                               (long long)shape[i]);
    infer->out[0] = po_type_tensor_i64(infer->arena, infer->out[0].dtype, n, shape);
    return PO_OK;
}

po_status po_infer_random_like(po_infer *infer) {
    po_infer_set_like(infer, 0, dtype_of(infer, po_infer_dtype(infer, 0)));
    return PO_OK;
}

po_status po_infer_multinomial(po_infer *infer) {
    const po_type *x = po_infer_tensor(infer, 0);
    int64_t n = po_op_int(infer->graph, infer->node, "sample_size");
    po_dim dims[] = {PO_DIM_UNKNOWN, n >= 0 ? PO_DIM(n) : PO_DIM_UNKNOWN};
    if (x && x->has_rank && x->rank == 2)
        dims[0] = x->dims[0];
    po_infer_set(infer, 0, dtype_of(infer, PO_I32), 2, dims);
    return PO_OK;
}

/* --- Dropout --- */

po_status po_infer_dropout(po_infer *infer) {
    bool is_mask_bool = infer->opset == 0 || infer->opset >= 10;
    po_infer_set_like(infer, 0, po_infer_dtype(infer, 0));
    po_infer_set_like(infer, 1, is_mask_bool ? PO_BOOL : po_infer_dtype(infer, 0));
    return PO_OK;
}

po_status po_ref_dropout(po_ref *ref) {
    const po_array *x = ref->in[0], *training = po_ref_in(ref, 2);
    po_array *mask;
    if ((ref->opset > 0 && ref->opset < 7 && !po_op_int(ref->graph, ref->node, "is_test")) ||
        (training && (!training->i || training->count != 1 || training->i[0])))
        return PO_UNSUPPORTED;
    ref->out[0] = po_array_view(ref->arena, x, x->rank, x->dims);
    if (!po_ref_wants(ref, 1))
        return PO_OK;
    /* Before opset 10 the mask's contents are not told: only a mask that nothing reads is made. */
    const po_value *value = &ref->graph->values[ref->node->out[1]];
    bool old = ref->opset > 0 && ref->opset < 10;
    if (old && (value->n_uses || value->n_outputs))
        return PO_UNSUPPORTED;
    PO_TRY(po_ref_out(ref, 1, old ? x->dtype : PO_BOOL, x->rank, x->dims, &mask));
    for (int64_t k = 0; k < mask->count && mask->i; k++)
        mask->i[k] = 1;
    return PO_OK;
}

/* --- attributes --- */

#define SEED                                                                                       \
    { .name = "seed", .kind = PO_ATTR_FLOAT, .since = 1 }
#define NUMBER(key, value)                                                                         \
    { .name = key, .kind = PO_ATTR_FLOAT, .since = 1, .has_default = true, .f = value }

const po_attr_def po_attrs_bernoulli[] = {
    {.name = "dtype", .kind = PO_ATTR_INT, .since = 15},
    SEED,
    {0},
};
const po_attr_def po_attrs_dropout[] = {
    {.name = "consumed_inputs", .kind = PO_ATTR_INTS, .since = 1, .until = 5},
    {.name = "is_test", .kind = PO_ATTR_INT, .since = 1, .until = 6, .has_default = true, .i = 0},
    {.name = "ratio",
     .kind = PO_ATTR_FLOAT,
     .since = 1,
     .until = 11,
     .has_default = true,
     .f = 0.5f},
    {.name = "seed", .kind = PO_ATTR_INT, .since = 12},
    {0},
};
const po_attr_def po_attrs_multinomial[] = {
    {.name = "dtype", .kind = PO_ATTR_INT, .since = 7, .has_default = true, .i = 6},
    {.name = "sample_size", .kind = PO_ATTR_INT, .since = 7, .has_default = true, .i = 1},
    SEED,
    {0},
};
const po_attr_def po_attrs_randomnormal[] = {
    {.name = "dtype", .kind = PO_ATTR_INT, .since = 1, .has_default = true, .i = 1},
    {.name = "shape", .kind = PO_ATTR_INTS, .since = 1, .required = true},
    NUMBER("mean", 0.0f),
    NUMBER("scale", 1.0f),
    SEED,
    {0},
};
const po_attr_def po_attrs_randomnormallike[] = {
    {.name = "dtype", .kind = PO_ATTR_INT, .since = 1},
    NUMBER("mean", 0.0f),
    NUMBER("scale", 1.0f),
    SEED,
    {0},
};
const po_attr_def po_attrs_randomuniform[] = {
    {.name = "dtype", .kind = PO_ATTR_INT, .since = 1, .has_default = true, .i = 1},
    {.name = "shape", .kind = PO_ATTR_INTS, .since = 1, .required = true},
    NUMBER("high", 1.0f),
    NUMBER("low", 0.0f),
    SEED,
    {0},
};
const po_attr_def po_attrs_randomuniformlike[] = {
    {.name = "dtype", .kind = PO_ATTR_INT, .since = 1},
    NUMBER("high", 1.0f),
    NUMBER("low", 0.0f),
    SEED,
    {0},
};
