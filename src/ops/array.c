/* Arrays of the float64 reference, and their conversion from and to tensors. */
#include "ops/op.h"

#include "base/num.h"

po_status po_array_create(po_ctx *ctx, po_arena *arena, po_dtype dtype, uint32_t rank,
                          const int64_t *dims, po_array **array) {
    po_dtype_class class = po_dtype_class_of(dtype);
    if (class == PO_CLASS_NONE && dtype != PO_STR)
        return PO_UNSUPPORTED;
    int64_t count = 1, bytes;
    for (uint32_t i = 0; i < rank; i++)
        if (dims[i] < 0 || !po_mul_i64(count, dims[i], &count))
            return po_fail(ctx, PO_BAD_INPUT, "the product of an array's dims overflows");
    if (!po_mul_i64(count, (int64_t)sizeof(po_bytes), &bytes))
        return po_fail(ctx, PO_BAD_INPUT, "an array's size overflows");
    po_array *a = PO_NEW(arena, po_array);
    a->dtype = dtype;
    a->rank = rank;
    a->dims = po_arena_memdup(arena, dims, rank * sizeof *dims);
    a->count = count;
    if (dtype == PO_STR)
        a->s = PO_NEW_N(arena, po_bytes, count);
    else if (class == PO_CLASS_FLOAT)
        a->f = PO_NEW_N(arena, double, count);
    else
        a->i = PO_NEW_N(arena, int64_t, count);
    *array = a;
    return PO_OK;
}

po_status po_array_from_tensor(po_ctx *ctx, po_arena *arena, const po_tensor *tensor,
                               po_array **array) {
    PO_TRY(po_array_create(ctx, arena, tensor->dtype, tensor->rank, tensor->dims, array));
    po_array *a = *array;
    if (a->f) {
        po_tensor_read_f64(tensor, 0, a->count, a->f);
    } else if (a->i) {
        for (int64_t k = 0; k < a->count; k++)
            a->i[k] = po_tensor_int(tensor, k);
    } else if (a->count) {
        memcpy(a->s, tensor->data, (size_t)a->count * sizeof *a->s);
    }
    return PO_OK;
}

po_status po_array_to_tensor(po_ctx *ctx, po_arena *arena, const po_array *array,
                             po_tensor **tensor) {
    PO_TRY(po_tensor_create(ctx, arena, array->dtype, array->rank, array->dims, tensor));
    po_tensor *t = *tensor;
    if (array->dtype == PO_F32) {
        float *out = po_tensor_data(t);
        for (int64_t k = 0; k < array->count; k++)
            out[k] = (float)array->f[k];
    } else if (array->f) {
        for (int64_t k = 0; k < array->count; k++)
            po_tensor_set_f64(t, k, array->f[k]);
    } else if (array->i) {
        for (int64_t k = 0; k < array->count; k++)
            po_tensor_set_int(t, k, array->i[k]);
    } else if (array->count) {
        memcpy(po_tensor_data(t), array->s, (size_t)array->count * sizeof *array->s);
    }
    return PO_OK;
}

/* Integers keep the low bits of their type, as two's complement hardware does. */
static int64_t wrap_int(po_dtype dtype, int64_t value) {
    uint32_t shift = 64 - po_dtype_bits(dtype);
    if (po_dtype_class_of(dtype) == PO_CLASS_BOOL)
        return value != 0;
    if (po_dtype_class_of(dtype) == PO_CLASS_SIGNED)
        return (int64_t)((uint64_t)value << shift) >> shift;
    return (int64_t)((uint64_t)value << shift >> shift);
}

void po_array_round(po_array *array) {
    if (array->f) {
        for (int64_t k = 0; k < array->count; k++)
            array->f[k] = po_round_float(array->dtype, array->f[k]);
    } else if (array->i) {
        for (int64_t k = 0; k < array->count; k++)
            array->i[k] = wrap_int(array->dtype, array->i[k]);
    }
}
