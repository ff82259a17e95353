/* Constant tensors: made, compared, and read element by element. */
#include "ir/tensor.h"

#include "base/hash.h"
#include "base/num.h"

#include <math.h>

enum { LEAST_LOOSE = 1 << 14 /* bytes */ };

static po_status count_of(po_ctx *ctx, po_dtype dtype, uint32_t rank, const int64_t *dims,
                          int64_t *count, size_t *bytes) {
    *count = 1;
    for (uint32_t i = 0; i < rank; i++) {
        if (dims[i] < 0)
            return po_fail(ctx, PO_BAD_INPUT, "tensor dim %u is negative (found %lld)", i,
                           (long long)dims[i]);
        if (!po_mul_i64(*count, dims[i], count))
            return po_fail(ctx, PO_BAD_INPUT, "the product of a tensor's dims overflows");
    }
    *bytes = 0;
    if (dtype == PO_STR) {
        int64_t size;
        if (!po_mul_i64(*count, (int64_t)sizeof(po_bytes), &size))
            return po_fail(ctx, PO_BAD_INPUT, "a string tensor's size overflows");
        return PO_OK;
    }
    if (!po_dtype_bytes(dtype, *count, bytes))
        return po_fail(ctx, PO_BAD_INPUT, "a tensor of type %s has no size in bytes",
                       po_dtype_name(dtype));
    return PO_OK;
}

po_status po_tensor_wrap(po_ctx *ctx, po_arena *arena, po_dtype dtype, uint32_t rank,
                         const int64_t *dims, const void *data, po_tensor **tensor) {
    int64_t count;
    size_t bytes;
    PO_TRY(count_of(ctx, dtype, rank, dims, &count, &bytes));
    po_tensor *t = PO_NEW(arena, po_tensor);
    t->dtype = dtype;
    t->rank = rank;
    t->dims = po_arena_memdup(arena, dims, rank * sizeof *dims);
    t->count = count;
    t->data = data;
    t->size = bytes;
    *tensor = t;
    return PO_OK;
}

po_status po_tensor_create(po_ctx *ctx, po_arena *arena, po_dtype dtype, uint32_t rank,
                           const int64_t *dims, po_tensor **tensor) {
    PO_TRY(po_tensor_wrap(ctx, arena, dtype, rank, dims, NULL, tensor));
    po_tensor *t = *tensor;
    size_t size = dtype == PO_STR ? (size_t)t->count * sizeof(po_bytes) : t->size;
    t->data = dtype != PO_STR && size >= LEAST_LOOSE ? po_arena_loose(arena, size)
                                                     : po_arena_calloc(arena, size ? size : 1, 1);
    return PO_OK;
}

void *po_tensor_data(po_tensor *tensor) {
    return (void *)(uintptr_t)tensor->data;
}

void po_tensor_rest_on(const po_tensor *tensor, const void *data) {
    /* What a tensor holds never changes; where it holds it is nobody's concern. */
    ((po_tensor *)(uintptr_t)tensor)->data = data;
}

po_tensor *po_tensor_i64(po_arena *arena, uint32_t count, const int64_t *values) {
    po_tensor *t = PO_NEW(arena, po_tensor);
    int64_t *dims = PO_NEW_N(arena, int64_t, 1);
    dims[0] = count;
    *t = (po_tensor){.dtype = PO_I64,
                     .rank = 1,
                     .dims = dims,
                     .count = count,
                     .data = po_arena_memdup(arena, values, count * sizeof *values),
                     .size = count * sizeof *values};
    return t;
}

po_tensor *po_tensor_scalar_f32(po_arena *arena, float value) {
    po_tensor *t = PO_NEW(arena, po_tensor);
    *t = (po_tensor){.dtype = PO_F32,
                     .dims = PO_NEW(arena, int64_t),
                     .count = 1,
                     .data = po_arena_memdup(arena, &value, sizeof value),
                     .size = sizeof value};
    return t;
}

bool po_tensor_equal(const po_tensor *a, const po_tensor *b) {
    if (a == b)
        return true;
    if (a->dtype != b->dtype || a->rank != b->rank)
        return false;
    for (uint32_t i = 0; i < a->rank; i++)
        if (a->dims[i] != b->dims[i])
            return false;
    if (a->dtype != PO_STR)
        return a->size == b->size && (a->size == 0 || memcmp(a->data, b->data, a->size) == 0);
    const po_bytes *s = a->data, *t = b->data;
    for (int64_t i = 0; i < a->count; i++)
        if (s[i].size != t[i].size || (s[i].size && memcmp(s[i].data, t[i].data, s[i].size) != 0))
            return false;
    return true;
}

po_hash po_tensor_hash(const po_tensor *tensor) {
    po_hash h = po_hash_u64((po_hash){0, 0}, (uint64_t)tensor->dtype << 32 | tensor->rank);
    for (uint32_t i = 0; i < tensor->rank; i++)
        h = po_hash_u64(h, (uint64_t)tensor->dims[i]);
    if (tensor->dtype != PO_STR)
        return po_hash_bytes(tensor->data, tensor->size, h);
    const po_bytes *s = tensor->data;
    for (int64_t i = 0; i < tensor->count; i++)
        h = po_hash_bytes(s[i].data, s[i].size, po_hash_u64(h, s[i].size));
    return h;
}

po_type po_tensor_type(po_arena *arena, const po_tensor *tensor) {
    return po_type_tensor_i64(arena, tensor->dtype, tensor->rank, tensor->dims);
}

/* Layout of the small float formats. */
typedef struct float_format {
    int exponent_bits, mantissa_bits, bias;
    bool infinities;    /* the top exponent holds infinities and NaNs */
    bool unsigned_zero; /* "UZ": one zero, its sign bit pattern is the only NaN */
} float_format;

static bool format_of(po_dtype dtype, float_format *format) {
    switch (dtype) {
    case PO_F16:
        *format = (float_format){5, 10, 15, true, false};
        return true;
    case PO_BF16:
        *format = (float_format){8, 7, 127, true, false};
        return true;
    case PO_F8E4M3FN:
        *format = (float_format){4, 3, 7, false, false};
        return true;
    case PO_F8E4M3FNUZ:
        *format = (float_format){4, 3, 8, false, true};
        return true;
    case PO_F8E5M2:
        *format = (float_format){5, 2, 15, true, false};
        return true;
    case PO_F8E5M2FNUZ:
        *format = (float_format){5, 2, 16, false, true};
        return true;
    case PO_F4E2M1:
        *format = (float_format){2, 1, 1, false, false};
        return true;
    default:
        return false;
    }
}

double po_decode_float(po_dtype dtype, uint64_t bits) {
    float_format f;
    if (dtype == PO_F64) {
        double d;
        memcpy(&d, &bits, sizeof d);
        return d;
    }
    if (dtype == PO_F32) {
        uint32_t word = (uint32_t)bits;
        float v;
        memcpy(&v, &word, sizeof v);
        return (double)v;
    }
    if (dtype == PO_F8E8M0)
        return (bits & 0xff) == 0xff ? NAN : ldexp(1.0, (int)(bits & 0xff) - 127);
    if (!format_of(dtype, &f))
        return NAN;
    uint64_t sign = bits >> (f.exponent_bits + f.mantissa_bits) & 1;
    int64_t exponent = (int64_t)(bits >> f.mantissa_bits & ((1u << f.exponent_bits) - 1));
    uint64_t mantissa = bits & ((1u << f.mantissa_bits) - 1);
    int64_t top = (1 << f.exponent_bits) - 1;
    double magnitude;
    if (f.unsigned_zero && sign && exponent == 0 && mantissa == 0)
        return NAN;
    if (f.infinities && exponent == top)
        magnitude = mantissa ? NAN : INFINITY;
    else if (dtype == PO_F8E4M3FN && exponent == top && mantissa == 7)
        magnitude = NAN;
    else if (exponent == 0)
        magnitude = ldexp((double)mantissa, 1 - f.bias - f.mantissa_bits);
    else
        magnitude = ldexp((double)(mantissa | 1u << f.mantissa_bits),
                          (int)exponent - f.bias - f.mantissa_bits);
    return sign ? -magnitude : magnitude;
}

/* Rounds to nearest even at the format's precision; overflow gives infinity where the format has
 * one, else NaN (which is also what the format has for NaN), else the largest value. */
static uint64_t encode_small(po_dtype dtype, const float_format *f, double value) {
    uint64_t sign = signbit(value) ? 1 : 0;
    int width = f->exponent_bits + f->mantissa_bits;
    uint64_t sign_bit = sign << width;
    uint64_t top = (1u << f->exponent_bits) - 1;
    uint64_t nan_bits = f->unsigned_zero       ? 1ull << width
                        : dtype == PO_F8E4M3FN ? (sign_bit | 0x7f)
                        : f->infinities
                            ? (sign_bit | top << f->mantissa_bits | 1u << (f->mantissa_bits - 1))
                            : (sign_bit | ((1u << width) - 1));
    if (isnan(value))
        return nan_bits;
    double magnitude = fabs(value);
    uint64_t infinity_bits = f->infinities ? (sign_bit | top << f->mantissa_bits) : nan_bits;
    if (isinf(magnitude))
        return infinity_bits;
    if (magnitude == 0)
        return f->unsigned_zero ? 0 : sign_bit;
    int exponent;
    frexp(magnitude, &exponent); /* magnitude = m * 2^exponent, m in [0.5, 1) */
    int scale = exponent - 1 < 1 - f->bias ? 1 - f->bias : exponent - 1;
    /* In units of the last place at this scale; nearbyint rounds half to even. */
    double units = nearbyint(ldexp(magnitude, f->mantissa_bits - scale));
    uint64_t whole = (uint64_t)units;
    if (whole >> (f->mantissa_bits + 1)) {
        whole >>= 1;
        scale++;
    }
    uint64_t biased = whole >> f->mantissa_bits ? (uint64_t)(scale + f->bias) : 0;
    uint64_t limit = f->infinities ? top - 1 : top;
    if (biased > limit)
        return infinity_bits;
    uint64_t bits = biased << f->mantissa_bits | (whole & ((1u << f->mantissa_bits) - 1));
    if (dtype == PO_F8E4M3FN && bits == 0x7f)
        return nan_bits;
    if (bits == 0 && f->unsigned_zero)
        return 0;
    return sign_bit | bits;
}

uint64_t po_encode_float(po_dtype dtype, double value) {
    float_format f;
    if (dtype == PO_F64) {
        uint64_t bits;
        memcpy(&bits, &value, sizeof bits);
        return bits;
    }
    if (dtype == PO_F32) {
        float narrow = (float)value;
        uint32_t bits;
        memcpy(&bits, &narrow, sizeof bits);
        return bits;
    }
    if (dtype == PO_F8E8M0) {
        if (isnan(value) || value < 0)
            return 0xff;
        int exponent;
        frexp(value, &exponent);
        int biased = exponent - 1 + 127;
        return (uint64_t)(biased < 0 ? 0 : biased > 254 ? 254 : biased);
    }
    return format_of(dtype, &f) ? encode_small(dtype, &f, value) : 0;
}

static uint64_t load_bits(const po_tensor *tensor, int64_t i) {
    uint32_t width = po_dtype_bits(tensor->dtype);
    const unsigned char *base = tensor->data;
    if (width < 8) {
        uint32_t per_byte = 8 / width;
        unsigned byte = base[i / per_byte];
        return byte >> ((uint32_t)(i % per_byte) * width) & ((1u << width) - 1);
    }
    uint64_t bits = 0;
    memcpy(&bits, base + (size_t)i * (width / 8), width / 8 > 8 ? 8 : width / 8);
    return bits;
}

static void store_bits(po_tensor *tensor, int64_t i, uint64_t bits) {
    uint32_t width = po_dtype_bits(tensor->dtype);
    unsigned char *base = po_tensor_data(tensor);
    if (width < 8) {
        uint32_t per_byte = 8 / width, shift = (uint32_t)(i % per_byte) * width;
        unsigned mask = (1u << width) - 1;
        unsigned char *byte = &base[i / per_byte];
        *byte = (unsigned char)((*byte & ~(mask << shift)) | ((unsigned)bits & mask) << shift);
        return;
    }
    memcpy(base + (size_t)i * (width / 8), &bits, width / 8 > 8 ? 8 : width / 8);
}

int64_t po_tensor_int(const po_tensor *tensor, int64_t i) {
    uint32_t width = po_dtype_bits(tensor->dtype);
    switch (po_dtype_class_of(tensor->dtype)) {
    case PO_CLASS_SIGNED: {
        uint64_t bits = load_bits(tensor, i);
        uint32_t shift = 64 - width;
        return (int64_t)(bits << shift) >> shift;
    }
    case PO_CLASS_UNSIGNED:
        return (int64_t)load_bits(tensor, i);
    case PO_CLASS_BOOL:
        return load_bits(tensor, i) != 0;
    case PO_CLASS_FLOAT:
        return (int64_t)po_decode_float(tensor->dtype, load_bits(tensor, i));
    case PO_CLASS_NONE:
        break;
    }
    return 0;
}

double po_tensor_f64(const po_tensor *tensor, int64_t i) {
    switch (po_dtype_class_of(tensor->dtype)) {
    case PO_CLASS_FLOAT:
        return po_decode_float(tensor->dtype, load_bits(tensor, i));
    case PO_CLASS_UNSIGNED:
        return (double)(uint64_t)po_tensor_int(tensor, i);
    case PO_CLASS_SIGNED:
    case PO_CLASS_BOOL:
        return (double)po_tensor_int(tensor, i);
    case PO_CLASS_NONE:
        break;
    }
    return NAN;
}

void po_tensor_read_f64(const po_tensor *tensor, int64_t from, int64_t n, double *out) {
    const char *data = tensor->data;
    for (int64_t i = 0; tensor->dtype == PO_F32 && i < n; i++) {
        float v; /* the data may be unaligned */
        memcpy(&v, data + (size_t)(from + i) * sizeof v, sizeof v);
        out[i] = (double)v;
    }
    for (int64_t i = 0; tensor->dtype != PO_F32 && i < n; i++)
        out[i] = po_tensor_f64(tensor, from + i);
}

double *po_tensor_doubles(po_arena *arena, const po_tensor *tensor) {
    size_t bytes;
    if (__builtin_mul_overflow((size_t)tensor->count, sizeof(double), &bytes))
        po_arena_exhausted(arena);
    double *out = po_arena_alloc(arena, bytes);
    po_tensor_read_f64(tensor, 0, tensor->count, out);
    return out;
}

void po_tensor_set_f64(po_tensor *tensor, int64_t i, double value) {
    switch (po_dtype_class_of(tensor->dtype)) {
    case PO_CLASS_FLOAT:
        store_bits(tensor, i, po_encode_float(tensor->dtype, value));
        break;
    case PO_CLASS_BOOL:
        store_bits(tensor, i, value != 0);
        break;
    case PO_CLASS_UNSIGNED:
        /* Beyond 2^63 a signed conversion would not be defined. */
        store_bits(tensor, i, value >= 0x1p63 ? (uint64_t)value : (uint64_t)(int64_t)value);
        break;
    default:
        store_bits(tensor, i, (uint64_t)(int64_t)value);
        break;
    }
}

void po_tensor_draw(po_tensor *tensor, uint64_t stream, double least, double most) {
    enum { PRIME = 65537 }; /* rows of no usual length are alike */
    const size_t width = po_dtype_bits(tensor->dtype) / 8;
    const int64_t drawn = width == 0 || tensor->count < PRIME ? tensor->count : PRIME;
    for (int64_t i = 0; i < drawn; i++)
        po_tensor_set_f64(tensor, i,
                          least + (most - least) * po_random_unit(11, stream, (uint64_t)i));
    char *data = po_tensor_data(tensor);
    for (size_t at = (size_t)drawn * width; width > 0 && at < tensor->size;) {
        const size_t n = at < tensor->size - at ? at : tensor->size - at;
        memcpy(data + at, data, n);
        at += n;
    }
}

void po_tensor_set_int(po_tensor *tensor, int64_t i, int64_t value) {
    if (po_dtype_class_of(tensor->dtype) == PO_CLASS_FLOAT)
        po_tensor_set_f64(tensor, i, (double)value);
    else
        store_bits(tensor, i,
                   po_dtype_class_of(tensor->dtype) == PO_CLASS_BOOL ? value != 0
                                                                     : (uint64_t)value);
}
