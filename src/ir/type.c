/* What element types are called, how wide they are and how finely they round; types of values. */
#include "ir/type.h"

#include "base/num.h"

typedef struct dtype_row {
    const char *name;
    uint32_t bits;
    po_dtype_class class;
    double half_bit;
} dtype_row;

static const dtype_row dtypes[PO_DT_COUNT] = {
    [PO_DT_NONE] = {"?", 0, PO_CLASS_NONE, 0},
    [PO_F32] = {"f32", 32, PO_CLASS_FLOAT, 0x1p-24},
    [PO_U8] = {"u8", 8, PO_CLASS_UNSIGNED, 0},
    [PO_I8] = {"i8", 8, PO_CLASS_SIGNED, 0},
    [PO_U16] = {"u16", 16, PO_CLASS_UNSIGNED, 0},
    [PO_I16] = {"i16", 16, PO_CLASS_SIGNED, 0},
    [PO_I32] = {"i32", 32, PO_CLASS_SIGNED, 0},
    [PO_I64] = {"i64", 64, PO_CLASS_SIGNED, 0},
    [PO_STR] = {"str", 0, PO_CLASS_NONE, 0},
    [PO_BOOL] = {"bool", 8, PO_CLASS_BOOL, 0},
    [PO_F16] = {"f16", 16, PO_CLASS_FLOAT, 0x1p-11},
    [PO_F64] = {"f64", 64, PO_CLASS_FLOAT, 0x1p-53},
    [PO_U32] = {"u32", 32, PO_CLASS_UNSIGNED, 0},
    [PO_U64] = {"u64", 64, PO_CLASS_UNSIGNED, 0},
    [PO_C64] = {"c64", 64, PO_CLASS_NONE, 0},
    [PO_C128] = {"c128", 128, PO_CLASS_NONE, 0},
    [PO_BF16] = {"bf16", 16, PO_CLASS_FLOAT, 0x1p-8},
    [PO_F8E4M3FN] = {"f8e4m3fn", 8, PO_CLASS_FLOAT, 0x1p-4},
    [PO_F8E4M3FNUZ] = {"f8e4m3fnuz", 8, PO_CLASS_FLOAT, 0x1p-4},
    [PO_F8E5M2] = {"f8e5m2", 8, PO_CLASS_FLOAT, 0x1p-3},
    [PO_F8E5M2FNUZ] = {"f8e5m2fnuz", 8, PO_CLASS_FLOAT, 0x1p-3},
    [PO_U4] = {"u4", 4, PO_CLASS_UNSIGNED, 0},
    [PO_I4] = {"i4", 4, PO_CLASS_SIGNED, 0},
    [PO_F4E2M1] = {"f4e2m1", 4, PO_CLASS_FLOAT, 0},
    [PO_F8E8M0] = {"f8e8m0", 8, PO_CLASS_FLOAT, 0},
    [PO_U2] = {"u2", 2, PO_CLASS_UNSIGNED, 0},
    [PO_I2] = {"i2", 2, PO_CLASS_SIGNED, 0},
};

static const dtype_row *row_of(po_dtype dtype) {
    return (unsigned)dtype < PO_DT_COUNT ? &dtypes[dtype] : &dtypes[PO_DT_NONE];
}

uint32_t po_dtype_bits(po_dtype dtype) {
    return row_of(dtype)->bits;
}

po_dtype_class po_dtype_class_of(po_dtype dtype) {
    return row_of(dtype)->class;
}

double po_dtype_half_bit(po_dtype dtype) {
    return row_of(dtype)->half_bit;
}

const char *po_dtype_name(po_dtype dtype) {
    return row_of(dtype)->name;
}

po_dtype po_dtype_parse(const char *name, size_t size) {
    for (unsigned i = 1; i < PO_DT_COUNT; i++)
        if (strlen(dtypes[i].name) == size && memcmp(dtypes[i].name, name, size) == 0)
            return (po_dtype)i;
    return PO_DT_NONE;
}

bool po_dtype_bytes(po_dtype dtype, int64_t count, size_t *bytes) {
    int64_t bits, rounded;
    uint32_t width = po_dtype_bits(dtype);
    if (width == 0 || count < 0 || !po_mul_i64(count, width, &bits) ||
        !po_add_i64(bits, 7, &rounded))
        return false;
    *bytes = (size_t)(rounded / 8);
    return true;
}

bool po_dim_same(po_dim a, po_dim b) {
    if (a.value >= 0 || b.value >= 0)
        return a.value == b.value;
    return a.symbol && b.symbol && strcmp(a.symbol, b.symbol) == 0;
}

po_type po_type_tensor(po_arena *arena, po_dtype dtype, uint32_t rank, const po_dim *dims) {
    return (po_type){.kind = PO_TYPE_TENSOR,
                     .dtype = dtype,
                     .has_rank = true,
                     .rank = rank,
                     .dims = po_arena_memdup(arena, dims, rank * sizeof *dims)};
}

po_type po_type_tensor_i64(po_arena *arena, po_dtype dtype, uint32_t rank, const int64_t *dims) {
    po_dim *copy = PO_NEW_N(arena, po_dim, rank);
    for (uint32_t i = 0; i < rank; i++)
        copy[i] = PO_DIM(dims[i]);
    return (po_type){
        .kind = PO_TYPE_TENSOR, .dtype = dtype, .has_rank = true, .rank = rank, .dims = copy};
}

po_type po_type_unranked(po_dtype dtype) {
    return (po_type){.kind = PO_TYPE_TENSOR, .dtype = dtype};
}

bool po_type_static(const po_type *type) {
    if (type->kind != PO_TYPE_TENSOR || !type->has_rank)
        return false;
    for (uint32_t i = 0; i < type->rank; i++)
        if (type->dims[i].value < 0)
            return false;
    return true;
}

int64_t po_type_count(const po_type *type) {
    if (!po_type_static(type))
        return -1;
    int64_t count = 1;
    for (uint32_t i = 0; i < type->rank; i++)
        if (!po_mul_i64(count, type->dims[i].value, &count))
            return -1;
    return count;
}

static bool same_symbol(const char *a, const char *b) {
    return a == b || (a && b && strcmp(a, b) == 0);
}

bool po_type_equal(const po_type *a, const po_type *b) {
    if (a->kind != b->kind || a->dtype != b->dtype || a->has_rank != b->has_rank)
        return false;
    if (a->has_rank) {
        if (a->rank != b->rank)
            return false;
        for (uint32_t i = 0; i < a->rank; i++)
            if (a->dims[i].value != b->dims[i].value ||
                !same_symbol(a->dims[i].symbol, b->dims[i].symbol))
                return false;
    }
    if (!a->element || !b->element)
        return a->element == b->element;
    return po_type_equal(a->element, b->element);
}

bool po_type_merge(po_arena *arena, po_type *into, const po_type *from) {
    if (from->kind == PO_TYPE_UNKNOWN)
        return true;
    if (into->kind == PO_TYPE_UNKNOWN) {
        *into = *from;
        return true;
    }
    if (into->kind != from->kind)
        return false;
    po_type merged = *into;
    if (merged.dtype == PO_DT_NONE)
        merged.dtype = from->dtype;
    else if (from->dtype != PO_DT_NONE && from->dtype != merged.dtype)
        return false;
    if (from->element) {
        po_type element = merged.element ? *merged.element : (po_type){0};
        if (!po_type_merge(arena, &element, from->element))
            return false;
        merged.element = po_arena_memdup(arena, &element, sizeof element);
    }
    if (from->has_rank && !merged.has_rank) {
        merged.has_rank = true;
        merged.rank = from->rank;
        merged.dims = from->dims;
    } else if (from->has_rank) {
        if (from->rank != merged.rank)
            return false;
        po_dim *dims = po_arena_memdup(arena, merged.dims, merged.rank * sizeof *dims);
        for (uint32_t i = 0; i < merged.rank; i++) {
            if (dims[i].value < 0 && (from->dims[i].value >= 0 || !dims[i].symbol))
                dims[i] = from->dims[i];
            else if (dims[i].value >= 0 && from->dims[i].value >= 0 &&
                     dims[i].value != from->dims[i].value)
                return false;
        }
        merged.dims = dims;
    }
    *into = merged;
    return true;
}

static void print_tensor(po_text *text, const po_type *type) {
    po_text_puts(text, po_dtype_name(type->dtype));
    if (!type->has_rank) {
        po_text_puts(text, "[*]");
        return;
    }
    po_text_puts(text, "[");
    for (uint32_t i = 0; i < type->rank; i++) {
        if (i)
            po_text_puts(text, ",");
        if (type->dims[i].value >= 0)
            po_text_printf(text, "%lld", (long long)type->dims[i].value);
        else if (type->dims[i].symbol)
            po_text_quoted(text, type->dims[i].symbol, strlen(type->dims[i].symbol));
        else
            po_text_puts(text, "?");
    }
    po_text_puts(text, "]");
}

void po_type_print(po_text *text, const po_type *type) {
    static const char *const heads[] = {
        [PO_TYPE_SPARSE] = "sparse(",
        [PO_TYPE_SEQUENCE] = "seq(",
        [PO_TYPE_OPTIONAL] = "optional(",
        [PO_TYPE_MAP] = "map(",
    };
    switch (type->kind) {
    case PO_TYPE_TENSOR:
        print_tensor(text, type);
        return;
    case PO_TYPE_SPARSE:
        po_text_puts(text, heads[type->kind]);
        print_tensor(text, type);
        po_text_puts(text, ")");
        return;
    case PO_TYPE_SEQUENCE:
    case PO_TYPE_OPTIONAL:
    case PO_TYPE_MAP:
        po_text_puts(text, heads[type->kind]);
        if (type->kind == PO_TYPE_MAP)
            po_text_printf(text, "%s,", po_dtype_name(type->dtype));
        if (type->element)
            po_type_print(text, type->element);
        else
            po_text_puts(text, "?");
        po_text_puts(text, ")");
        return;
    case PO_TYPE_OPAQUE:
        po_text_puts(text, "opaque");
        return;
    case PO_TYPE_UNKNOWN:
        break;
    }
    po_text_puts(text, "?");
}
