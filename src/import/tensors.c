/* Tensors: every check that a TensorProto or SparseTensorProto must pass, and the change to
 * po_tensor without copying. */
#include "base/num.h"
#include "import/parts.h"

/* Which typed field holds which element type. */
typedef enum typed_field {
    FIELD_NONE,
    FIELD_FLOAT,
    FIELD_INT32,
    FIELD_STRING,
    FIELD_INT64,
    FIELD_DOUBLE,
    FIELD_UINT64
} typed_field;

static const char *const field_names[] = {"raw_data",   "float_data",  "int32_data", "string_data",
                                          "int64_data", "double_data", "uint64_data"};

static typed_field field_of(po_dtype dtype) {
    switch (dtype) {
    case PO_F32:
    case PO_C64:
        return FIELD_FLOAT;
    case PO_F64:
    case PO_C128:
        return FIELD_DOUBLE;
    case PO_I64:
        return FIELD_INT64;
    case PO_U32:
    case PO_U64:
        return FIELD_UINT64;
    case PO_STR:
        return FIELD_STRING;
    default:
        return FIELD_INT32;
    }
}

/* Items of the typed field for `count` elements. */
static uint64_t items_for(po_dtype dtype, int64_t count) {
    uint64_t n = (uint64_t)count;
    switch (dtype) {
    case PO_C64:
    case PO_C128:
        return 2 * n;
    case PO_U4:
    case PO_I4:
    case PO_F4E2M1:
        return n / 2 + n % 2;
    case PO_U2:
    case PO_I2:
        return n / 4 + (n % 4 != 0);
    default:
        return n;
    }
}

/* Element count from dims, checked. */
static po_status count_dims(po_importer *im, const po_place *place, const int64_t *dims, size_t n,
                            int64_t *count) {
    if (n > PO_MAX_RANK)
        return po_bad(im, place, "too many dims (found %zu, limit %d)", n, PO_MAX_RANK);
    *count = 1;
    bool zero = false;
    for (size_t i = 0; i < n; i++) {
        if (dims[i] < 0)
            return po_bad(im, place, "dim %zu is negative (found %lld, limit 0)", i,
                          (long long)dims[i]);
        zero |= dims[i] == 0;
    }
    /* Large dims beside a zero one are no overflow. */
    for (size_t i = 0; i < n && !zero; i++)
        if (!po_mul_i64(*count, dims[i], count))
            return po_bad(im, place, "the product of the dims overflows (limit 2^63 - 1)");
    if (zero)
        *count = 0;
    return PO_OK;
}

/* Finds the one field that holds the data. */
static po_status find_field(po_importer *im, const po_place *place, const Onnx__TensorProto *t,
                            typed_field *field, uint64_t *items) {
    const uint64_t counts[] = {
        [FIELD_FLOAT] = t->n_float_data,   [FIELD_INT32] = t->n_int32_data,
        [FIELD_STRING] = t->n_string_data, [FIELD_INT64] = t->n_int64_data,
        [FIELD_DOUBLE] = t->n_double_data, [FIELD_UINT64] = t->n_uint64_data,
    };
    *field = FIELD_NONE;
    *items = 0;
    for (typed_field f = FIELD_FLOAT; f <= FIELD_UINT64; f++) {
        if (!counts[f])
            continue;
        if (*field != FIELD_NONE || t->has_raw_data)
            return po_bad(im, place, "data is in two fields (found %s and %s)",
                          field_names[*field != FIELD_NONE ? *field : FIELD_NONE], field_names[f]);
        *field = f;
        *items = counts[f];
    }
    return PO_OK;
}

static po_status check_external(po_importer *im, const po_place *place, Onnx__TensorProto *t,
                                typed_field field, size_t bytes) {
    if (field != FIELD_NONE || (t->has_raw_data && t->raw_data.len))
        return po_bad(im, place, "data is both external and in %s", field_names[field]);
    if (t->data_type == PO_STR)
        return po_bad(im, place, "strings cannot be external data");
    const uint8_t *data;
    PO_TRY(po_external_find(im, place, t, bytes, &data));
    t->has_raw_data = 1;
    t->raw_data = (ProtobufCBinaryData){bytes, (uint8_t *)(uintptr_t)data};
    im->has_external = true;
    return PO_OK;
}

static po_status check_tensor(void *user, const po_place *place, Onnx__TensorProto *t) {
    po_importer *im = user;
    /* Every raw_data is a reference of the scanner's: resolve it before anything can fail. */
    if (t->has_raw_data) {
        uint64_t number = po_raw_number(&t->raw_data);
        if (number >= im->scan.n_raw)
            return po_fail(im->ctx, PO_INTERNAL, "%.300s: raw_data %llu is not known", im->file,
                           (unsigned long long)number);
        const po_raw_ref *ref = &im->scan.raw[number];
        t->raw_data = (ProtobufCBinaryData){ref->size, (uint8_t *)(uintptr_t)ref->data};
    }
    if (t->segment)
        return po_bad(im, place, "segmented tensors are not supported");
    if (!t->has_data_type || t->data_type <= PO_DT_NONE || t->data_type >= PO_DT_COUNT)
        return po_bad(im, place, "unknown element type (found %d, limit 1 to %d)",
                      t->has_data_type ? t->data_type : 0, PO_DT_COUNT - 1);
    if (t->has_data_location && t->data_location != ONNX__TENSOR_PROTO__DATA_LOCATION__DEFAULT &&
        t->data_location != ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL)
        return po_bad(im, place, "unknown data location (found %d, limit 1)",
                      (int)t->data_location);
    po_dtype dtype = (po_dtype)t->data_type;
    int64_t count;
    PO_TRY(count_dims(im, place, t->dims, t->n_dims, &count));
    size_t bytes = 0;
    if (dtype != PO_STR && !po_dtype_bytes(dtype, count, &bytes))
        return po_bad(im, place, "the size in bytes overflows (found %lld elements)",
                      (long long)count);
    typed_field field;
    uint64_t items;
    PO_TRY(find_field(im, place, t, &field, &items));
    if (po_is_external(t))
        return check_external(im, place, t, field, bytes);
    if (t->has_raw_data) {
        if (dtype == PO_STR)
            return po_bad(im, place, "strings cannot be in raw_data");
        if (t->raw_data.len != bytes)
            return po_bad(im, place,
                          "raw_data does not fit type and dims (found %zu bytes, want "
                          "%zu)",
                          t->raw_data.len, bytes);
        return PO_OK;
    }
    if (field == FIELD_NONE) {
        if (count)
            return po_bad(im, place, "there is no data (found 0 elements, want %lld)",
                          (long long)count);
        return PO_OK;
    }
    if (field != field_of(dtype))
        return po_bad(im, place, "data of type %s is in %s (want %s)", po_dtype_name(dtype),
                      field_names[field], field_names[field_of(dtype)]);
    uint64_t want = items_for(dtype, count);
    if (items != want)
        return po_bad(im, place, "%s does not fit type and dims (found %llu items, want %llu)",
                      field_names[field], (unsigned long long)items, (unsigned long long)want);
    return PO_OK;
}

/* --- sparse tensors --- */

/* Entry k of the indices as a position in the dense tensor; false where it is out of range. */
static bool position(const Onnx__SparseTensorProto *s, const po_tensor *indices, int64_t k,
                     int64_t total, int64_t *at) {
    if (indices->rank == 1) {
        *at = po_tensor_int(indices, k);
        return *at >= 0 && *at < total;
    }
    *at = 0;
    for (size_t d = 0; d < s->n_dims; d++) {
        int64_t i = po_tensor_int(indices, k * (int64_t)s->n_dims + (int64_t)d);
        if (i < 0 || i >= s->dims[d])
            return false;
        *at = *at * s->dims[d] + i;
    }
    return true;
}

static po_status check_sparse(void *user, const po_place *place, Onnx__SparseTensorProto *s) {
    po_importer *im = user;
    if (!s->values || !s->indices)
        return po_bad(im, place, "a sparse tensor needs values and indices");
    int64_t total;
    PO_TRY(count_dims(im, place, s->dims, s->n_dims, &total));
    if (s->n_dims == 0)
        return po_bad(im, place, "a sparse tensor needs dims (found 0, want 1 or more)");
    if (s->values->n_dims != 1)
        return po_bad(im, place, "sparse values must have one dim (found %zu)", s->values->n_dims);
    int64_t n = s->values->dims[0];
    const Onnx__TensorProto *i = s->indices;
    bool linear = i->n_dims == 1;
    if (i->data_type != PO_I64 || i->n_dims < 1 || i->n_dims > 2 || i->dims[0] != n ||
        (!linear && i->dims[1] != (int64_t)s->n_dims))
        return po_bad(im, place, "sparse indices must be i64 of shape [n] or [n, rank] (n is %lld)",
                      (long long)n);
    if (total == 0 && n)
        return po_bad(im, place, "sparse index 0 is out of range (limit 0 elements)");
    const po_tensor *indices = po_import_tensor(im, i);
    int64_t before = -1;
    for (int64_t k = 0; k < n; k++) {
        int64_t at = 0;
        if (!position(s, indices, k, total, &at))
            return po_bad(im, place, "sparse index %lld is out of range (limit %lld elements)",
                          (long long)k, (long long)total);
        if (at <= before)
            return po_bad(im, place, "sparse index %lld is %s (found %lld after %lld)",
                          (long long)k, at == before ? "there twice" : "not sorted", (long long)at,
                          (long long)before);
        before = at;
    }
    return PO_OK;
}

po_status po_import_tensors(po_importer *im) {
    return po_each_tensor(&im->proto->base, NULL, check_tensor, check_sparse, im);
}

/* --- to po_tensor --- */

/* Of dims that were found good. */
static int64_t product(const int64_t *dims, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (dims[i] == 0)
            return 0; /* whatever the others are: their product may overflow */
    int64_t count = 1;
    for (size_t i = 0; i < n; i++)
        count *= dims[i];
    return count;
}

/* int32_data and uint64_data items cut to the bytes that an element takes. */
static void *narrow(po_arena *arena, const Onnx__TensorProto *t, size_t item, size_t bytes) {
    uint8_t *data = po_arena_alloc(arena, bytes);
    for (size_t i = 0; i < t->n_int32_data; i++)
        memcpy(data + i * item, &t->int32_data[i], item);
    for (size_t i = 0; i < t->n_uint64_data; i++)
        memcpy(data + i * item, &t->uint64_data[i], item);
    return data;
}

static const void *typed_data(po_importer *im, const Onnx__TensorProto *t, const po_tensor *like) {
    switch (field_of(like->dtype)) {
    case FIELD_FLOAT:
        return t->float_data;
    case FIELD_DOUBLE:
        return t->double_data;
    case FIELD_INT64:
        return t->int64_data;
    case FIELD_STRING: {
        po_bytes *s = PO_NEW_N(im->arena, po_bytes, t->n_string_data);
        for (size_t i = 0; i < t->n_string_data; i++)
            s[i] = (po_bytes){(const char *)t->string_data[i].data, t->string_data[i].len};
        return s;
    }
    case FIELD_UINT64:
        return like->dtype == PO_U64 ? (const void *)t->uint64_data
                                     : narrow(im->arena, t, 4, like->size);
    default:
        if (like->dtype == PO_I32)
            return t->int32_data;
        return narrow(im->arena, t, po_dtype_bits(like->dtype) <= 8 ? 1 : 2, like->size);
    }
}

const po_tensor *po_import_tensor(po_importer *im, const Onnx__TensorProto *t) {
    po_tensor *made = PO_NEW(im->arena, po_tensor);
    made->dtype = (po_dtype)t->data_type;
    made->rank = (uint32_t)t->n_dims;
    made->dims = t->dims ? t->dims : PO_NEW(im->arena, int64_t);
    made->count = product(t->dims, t->n_dims);
    if (made->dtype != PO_STR)
        (void)po_dtype_bytes(made->dtype, made->count, &made->size);
    made->data = t->has_raw_data ? t->raw_data.data : made->count ? typed_data(im, t, made) : "";
    made->origin = t;
    return made;
}
