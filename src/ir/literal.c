/* Tensors, types and floats in the text form. */
#include "base/num.h"
#include "ir/text.h"

/* --- floats --- */

static bool is_nan_bits(po_dtype dtype, uint64_t bits) {
    double v = po_decode_float(dtype, bits);
    return v != v;
}

void po_text_float(po_text *text, po_dtype dtype, uint64_t bits) {
    double v = po_decode_float(dtype, bits);
    if (is_nan_bits(dtype, bits)) {
        po_text_printf(text, "nan(0x%llx)", (unsigned long long)bits);
        return;
    }
    size_t start = text->size;
    if (v - v != 0) {
        po_text_puts(text, v > 0 ? "inf" : "-inf");
        return;
    }
    if (dtype == PO_F64)
        po_text_f64(text, v);
    else
        po_text_f32(text, (float)v);
    if (!strpbrk(text->data + start, ".e"))
        po_text_puts(text, ".0");
}

po_status po_scan_float(po_scan *scan, po_dtype dtype, uint64_t *bits) {
    bool negative = po_scan_is(scan, "-inf");
    if (negative || po_scan_is_word(scan, "inf")) {
        scan->at += negative ? 4 : 3;
        *bits = po_encode_float(dtype, negative ? -__builtin_inf() : __builtin_inf());
        double v = po_decode_float(dtype, *bits);
        return v - v != 0 && v == v
                   ? PO_OK
                   : po_scan_fail(scan, "%s has no infinity", po_dtype_name(dtype));
    }
    if (po_scan_take_word(scan, "nan")) {
        PO_TRY(po_scan_need(scan, "("));
        PO_TRY(po_scan_u64(scan, bits));
        PO_TRY(po_scan_need(scan, ")"));
        uint32_t width = po_dtype_bits(dtype);
        if ((width < 64 && *bits >> width) || !is_nan_bits(dtype, *bits))
            return po_scan_fail(scan, "these bits are no NaN of type %s", po_dtype_name(dtype));
        return PO_OK;
    }
    double v;
    if (dtype == PO_F64) {
        PO_TRY(po_scan_f64(scan, &v));
    } else {
        /* Printed with the digits that tell it from other f32 values: that f32 is exact. */
        float f;
        PO_TRY(po_scan_f32(scan, &f));
        v = (double)f;
    }
    *bits = po_encode_float(dtype, v);
    double back = po_decode_float(dtype, *bits);
    if (back - back != 0)
        return po_scan_fail(scan, "a number is too large for %s", po_dtype_name(dtype));
    return PO_OK;
}

/* --- types --- */

static po_status parse_dims(po_scan *scan, po_type *type) {
    po_dim dims[PO_MAX_RANK];
    PO_TRY(po_scan_need(scan, "["));
    if (po_scan_take(scan, "*"))
        return po_scan_need(scan, "]");
    type->has_rank = true;
    while (!po_scan_take(scan, "]")) {
        if (type->rank)
            PO_TRY(po_scan_need(scan, ","));
        if (type->rank == PO_MAX_RANK)
            return po_scan_fail(scan, "a type has too many dims (limit %d)", PO_MAX_RANK);
        po_dim *d = &dims[type->rank++];
        *d = PO_DIM_UNKNOWN;
        char c = po_scan_peek(scan);
        if (c == '-')
            return po_scan_fail(scan, "a dim is negative");
        if (c >= '0' && c <= '9')
            PO_TRY(po_scan_i64(scan, &d->value));
        else if (!po_scan_take(scan, "?"))
            PO_TRY(po_scan_name(scan, &d->symbol));
    }
    type->dims = po_arena_memdup(scan->arena, dims, type->rank * sizeof *dims);
    return PO_OK;
}

static po_status parse_dtype(po_scan *scan, po_dtype *dtype) {
    *dtype = PO_DT_NONE;
    if (po_scan_take(scan, "?"))
        return PO_OK;
    const char *at = scan->at, *name;
    PO_TRY(po_scan_name(scan, &name));
    *dtype = po_dtype_parse(name, strlen(name));
    if (*dtype != PO_DT_NONE)
        return PO_OK;
    scan->at = at;
    return po_scan_fail(scan, "no element type is named '%s'", name);
}

static po_status parse_type(po_scan *scan, po_type *type, int depth) {
    static const struct {
        const char *word;
        po_type_kind kind;
    } heads[] = {{"seq", PO_TYPE_SEQUENCE}, {"optional", PO_TYPE_OPTIONAL}, {"map", PO_TYPE_MAP}};
    *type = (po_type){0};
    if (depth > 16)
        return po_scan_fail(scan, "a type is nested too deeply (limit 16)");
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) {
        if (!po_scan_take_word(scan, heads[i].word))
            continue;
        type->kind = heads[i].kind;
        PO_TRY(po_scan_need(scan, "("));
        if (type->kind == PO_TYPE_MAP) {
            PO_TRY(parse_dtype(scan, &type->dtype));
            PO_TRY(po_scan_need(scan, ","));
        }
        po_type element;
        PO_TRY(parse_type(scan, &element, depth + 1));
        if (element.kind != PO_TYPE_UNKNOWN)
            type->element = po_arena_memdup(scan->arena, &element, sizeof element);
        return po_scan_need(scan, ")");
    }
    if (po_scan_take_word(scan, "opaque")) {
        type->kind = PO_TYPE_OPAQUE;
        return PO_OK;
    }
    bool sparse = po_scan_take_word(scan, "sparse");
    if (sparse)
        PO_TRY(po_scan_need(scan, "("));
    PO_TRY(parse_dtype(scan, &type->dtype));
    if (type->dtype == PO_DT_NONE && !sparse && *scan->at != '[')
        return PO_OK; /* "?": nothing is known */
    type->kind = sparse ? PO_TYPE_SPARSE : PO_TYPE_TENSOR;
    PO_TRY(parse_dims(scan, type));
    return sparse ? po_scan_need(scan, ")") : PO_OK;
}

po_status po_type_parse(po_scan *scan, po_type *type) {
    return parse_type(scan, type, 0);
}

/* --- tensors --- */

static uint64_t bits_at(const po_tensor *t, int64_t i) {
    uint64_t bits = 0;
    uint32_t width = po_dtype_bits(t->dtype);
    if (width < 8)
        return (uint64_t)((const unsigned char *)t->data)[i * width / 8] >>
                   ((uint32_t)(i * width) % 8) &
               ((1u << width) - 1);
    memcpy(&bits, (const char *)t->data + (size_t)i * (width / 8), width / 8 > 8 ? 8 : width / 8);
    return bits;
}

/* Whether the items say it all: no odd bytes in bools, no bits behind the last sub-byte item. */
static bool items_suffice(const po_tensor *t) {
    uint32_t width = po_dtype_bits(t->dtype);
    if (t->dtype == PO_STR)
        return true;
    if (po_dtype_class_of(t->dtype) == PO_CLASS_NONE)
        return false;
    if (t->dtype == PO_BOOL)
        for (int64_t i = 0; i < t->count; i++)
            if (bits_at(t, i) > 1)
                return false;
    uint32_t used = (uint32_t)((uint64_t)t->count * width % 8);
    return !used || !(((const unsigned char *)t->data)[t->size - 1] >> used);
}

static void print_items(po_text *text, const po_tensor *t) {
    int64_t n = t->count;
    if (n > 1 && t->dtype != PO_STR) {
        int64_t same = 1;
        while (same < n && bits_at(t, same) == bits_at(t, 0))
            same++;
        n = same == n ? 1 : n;
    }
    po_text_puts(text, " {");
    for (int64_t i = 0; i < n; i++) {
        po_text_puts(text, i ? ", " : "");
        if (t->dtype == PO_STR)
            po_text_quoted(text, ((const po_bytes *)t->data)[i].data,
                           ((const po_bytes *)t->data)[i].size);
        else if (po_dtype_class_of(t->dtype) == PO_CLASS_FLOAT)
            po_text_float(text, t->dtype, bits_at(t, i));
        else if (t->dtype == PO_U64)
            po_text_printf(text, "%llu", (unsigned long long)bits_at(t, i));
        else
            po_text_printf(text, "%lld", (long long)po_tensor_int(t, i));
    }
    po_text_puts(text, "}");
}

void po_tensor_print(po_text *text, const po_tensor *t, po_print_options options) {
    static const char digits[] = "0123456789abcdef";
    po_text_printf(text, "%s[", po_dtype_name(t->dtype));
    for (uint32_t i = 0; i < t->rank; i++)
        po_text_printf(text, "%s%lld", i ? "," : "", (long long)t->dims[i]);
    po_text_puts(text, "]");
    if (t->count > options.most_items && !options.all_data) {
        po_hash h = po_tensor_hash(t);
        po_text_printf(text, " hash %016llx%016llx", (unsigned long long)h.hi,
                       (unsigned long long)h.lo);
        return;
    }
    if (t->dtype == PO_STR || (t->count <= options.most_items && items_suffice(t))) {
        print_items(text, t);
        return;
    }
    po_text_puts(text, " raw ");
    char line[64];
    for (size_t i = 0; i < t->size;) {
        size_t n = 0;
        for (; n < sizeof line && i < t->size; i++) {
            line[n++] = digits[((const unsigned char *)t->data)[i] >> 4];
            line[n++] = digits[((const unsigned char *)t->data)[i] & 15];
        }
        po_text_add(text, line, n);
    }
}

/* Tensors that a few characters ask for are bounded; written out ones are bounded by the text. */
enum { MOST_FILLED_BYTES = 1 << 28 };

static void copy_first(po_tensor *t) {
    uint32_t width = po_dtype_bits(t->dtype);
    if (width >= 8) {
        char *data = po_tensor_data(t);
        for (int64_t i = 1; i < t->count; i++)
            memcpy(data + (size_t)i * (width / 8), data, width / 8);
        return;
    }
    int64_t first = (int64_t)bits_at(t, 0);
    for (int64_t i = 1; i < t->count; i++)
        if (po_dtype_class_of(t->dtype) == PO_CLASS_FLOAT)
            po_tensor_set_f64(t, i, po_decode_float(t->dtype, (uint64_t)first));
        else
            po_tensor_set_int(t, i, first);
}

static po_status parse_item(po_scan *scan, po_tensor *t, int64_t i) {
    uint32_t width = po_dtype_bits(t->dtype);
    char *data = po_tensor_data(t);
    if (t->dtype == PO_STR)
        return po_scan_string(scan, (po_bytes *)po_tensor_data(t) + i);
    if (po_dtype_class_of(t->dtype) == PO_CLASS_FLOAT) {
        uint64_t bits;
        PO_TRY(po_scan_float(scan, t->dtype, &bits));
        if (width >= 8)
            memcpy(data + (size_t)i * (width / 8), &bits, width / 8);
        else
            po_tensor_set_f64(t, i, po_decode_float(t->dtype, bits));
        return PO_OK;
    }
    int64_t v;
    if (t->dtype == PO_U64) {
        uint64_t u;
        PO_TRY(po_scan_u64(scan, &u));
        v = (int64_t)u;
    } else {
        PO_TRY(po_scan_i64(scan, &v));
    }
    po_tensor_set_int(t, i, v);
    if (po_tensor_int(t, i) != v)
        return po_scan_fail(scan, "%lld does not fit in %s", (long long)v, po_dtype_name(t->dtype));
    return PO_OK;
}

static po_status parse_items(po_scan *scan, po_tensor *t) {
    int64_t n = 0;
    while (!po_scan_take(scan, "}")) {
        if (n)
            PO_TRY(po_scan_need(scan, ","));
        if (n == t->count)
            return po_scan_fail(scan, "more items than the tensor's shape has (%lld)",
                                (long long)t->count);
        PO_TRY(parse_item(scan, t, n++));
    }
    if (n == t->count)
        return PO_OK;
    if (n != 1 || t->dtype == PO_STR)
        return po_scan_fail(scan, "%lld items for a tensor of %lld", (long long)n,
                            (long long)t->count);
    if (t->count)
        copy_first(t);
    return PO_OK;
}

static void fill_random(po_tensor *t, uint64_t seed) {
    for (int64_t i = 0; i < t->count; i++)
        if (po_dtype_class_of(t->dtype) == PO_CLASS_FLOAT)
            po_tensor_set_f64(t, i, po_random_normal(seed, 0, (uint64_t)i));
        else
            po_tensor_set_int(t, i, (int64_t)(po_random_u64(seed, 0, (uint64_t)i) % 2));
}

static po_status parse_hash(po_scan *scan, const po_hash_map *data, const po_tensor *const *tensors,
                            const po_type *type, const po_tensor **tensor) {
    unsigned char bytes[16];
    po_hash h = {0, 0};
    PO_TRY(po_scan_hex(scan, bytes, sizeof bytes));
    for (int i = 0; i < 8; i++) {
        h.hi = h.hi << 8 | bytes[i];
        h.lo = h.lo << 8 | bytes[i + 8];
    }
    uint32_t found = data ? po_hash_map_get(data, h) : PO_NONE;
    if (found == PO_NONE)
        return po_scan_fail(scan, "the data of this tensor was not printed");
    po_type own = po_tensor_type(scan->arena, tensors[found]);
    if (!po_type_equal(&own, type))
        return po_scan_fail(scan, "the hash is that of a tensor of another shape");
    *tensor = tensors[found];
    return PO_OK;
}

po_status po_tensor_parse(po_scan *scan, const po_hash_map *data, const po_tensor *const *tensors,
                          const po_tensor **tensor) {
    po_type type;
    int64_t dims[PO_MAX_RANK], count = 1;
    PO_TRY(po_type_parse(scan, &type));
    if (type.kind != PO_TYPE_TENSOR || type.dtype == PO_DT_NONE || !po_type_static(&type))
        return po_scan_fail(scan, "a tensor needs an element type and known dims");
    for (uint32_t i = 0; i < type.rank; i++) {
        dims[i] = type.dims[i].value;
        if (!po_mul_i64(count, dims[i], &count))
            return po_scan_fail(scan, "the product of a tensor's dims overflows");
    }
    if (po_scan_take_word(scan, "hash"))
        return parse_hash(scan, data, tensors, &type, tensor);
    /* The text must be able to hold the items before memory is taken for them. */
    bool braces = po_scan_take(scan, "{"), raw = !braces && po_scan_take_word(scan, "raw");
    bool random = !braces && !raw && po_scan_take_word(scan, "random");
    if (!braces && !raw && !random)
        return po_scan_fail(scan, "expected '{', raw, hash or random");
    size_t bytes = 0, left = (size_t)(scan->end - scan->at);
    if (type.dtype != PO_STR && !po_dtype_bytes(type.dtype, count, &bytes))
        return po_scan_fail(scan, "the tensor's size overflows");
    if (type.dtype == PO_STR && (raw || random))
        return po_scan_fail(scan, "a tensor of strings is written in braces");
    bool fits = raw ? bytes <= left / 2 : (uint64_t)count <= left || bytes <= MOST_FILLED_BYTES;
    if (!fits || (type.dtype == PO_STR && (uint64_t)count > left))
        return po_scan_fail(scan, "the tensor is larger than the text holds");
    if (braces && po_dtype_class_of(type.dtype) == PO_CLASS_NONE && type.dtype != PO_STR)
        return po_scan_fail(scan, "a tensor of %s is written raw", po_dtype_name(type.dtype));
    po_tensor *t;
    PO_TRY(po_tensor_create(scan->ctx, scan->arena, type.dtype, type.rank, dims, &t));
    *tensor = t;
    if (braces)
        return parse_items(scan, t);
    if (raw)
        return po_scan_hex(scan, po_tensor_data(t), t->size);
    uint64_t seed;
    PO_TRY(po_scan_u64(scan, &seed));
    fill_random(t, seed);
    return PO_OK;
}
