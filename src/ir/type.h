/* Element types, dimensions and value types. */
#ifndef PO_IR_TYPE_H
#define PO_IR_TYPE_H

#include "base/arena.h"
#include "base/str.h"

/* The numbers are those of ONNX's TensorProto.DataType. */
typedef enum po_dtype {
    PO_DT_NONE = 0,
    PO_F32 = 1,
    PO_U8 = 2,
    PO_I8 = 3,
    PO_U16 = 4,
    PO_I16 = 5,
    PO_I32 = 6,
    PO_I64 = 7,
    PO_STR = 8,
    PO_BOOL = 9,
    PO_F16 = 10,
    PO_F64 = 11,
    PO_U32 = 12,
    PO_U64 = 13,
    PO_C64 = 14,
    PO_C128 = 15,
    PO_BF16 = 16,
    PO_F8E4M3FN = 17,
    PO_F8E4M3FNUZ = 18,
    PO_F8E5M2 = 19,
    PO_F8E5M2FNUZ = 20,
    PO_U4 = 21,
    PO_I4 = 22,
    PO_F4E2M1 = 23,
    PO_F8E8M0 = 24,
    PO_U2 = 25,
    PO_I2 = 26,
    PO_DT_COUNT
} po_dtype;

typedef enum po_dtype_class {
    PO_CLASS_NONE, /* strings, complex numbers, unknown types */
    PO_CLASS_FLOAT,
    PO_CLASS_SIGNED,
    PO_CLASS_UNSIGNED,
    PO_CLASS_BOOL
} po_dtype_class;

/* Bits of one element; 0 for strings and unknown types. */
uint32_t po_dtype_bits(po_dtype dtype);
po_dtype_class po_dtype_class_of(po_dtype dtype);
/* Half of the last bit of a float of magnitude 1: what one operation rounds it by at most. 0 for
 * other types, and for floats without such a bit. */
double po_dtype_half_bit(po_dtype dtype);
/* Short name ("f32"), or "dtype<N>" is never made: unknown numbers give "?". */
const char *po_dtype_name(po_dtype dtype);
/* PO_DT_NONE where the name is not known. */
po_dtype po_dtype_parse(const char *name, size_t size);
/* Bytes of `count` elements (sub-byte types are packed, the last byte padded).
 * False on overflow or for types without a fixed size. */
bool po_dtype_bytes(po_dtype dtype, int64_t count, size_t *bytes);

/* One dimension: a length, or a symbol with the model's own name, or unknown (value -1, no
 * symbol). Two unknown dims are never known to be equal. */
typedef struct po_dim {
    int64_t value;      /* >= 0, or -1 where not known */
    const char *symbol; /* only where value is -1; may be NULL */
} po_dim;

#define PO_DIM(n)      ((po_dim){(n), NULL})
#define PO_DIM_UNKNOWN ((po_dim){-1, NULL})

static inline bool po_dim_known(po_dim d) {
    return d.value >= 0;
}
/* True only where the two are known to be the same length. */
bool po_dim_same(po_dim a, po_dim b);

typedef enum po_type_kind {
    PO_TYPE_UNKNOWN = 0,
    PO_TYPE_TENSOR,
    PO_TYPE_SPARSE,
    PO_TYPE_SEQUENCE,
    PO_TYPE_MAP,
    PO_TYPE_OPTIONAL,
    PO_TYPE_OPAQUE
} po_type_kind;

enum { PO_MAX_RANK = 64 };

/* A value's type. dims are NULL where even the rank is unknown (has_rank false). */
typedef struct po_type {
    po_type_kind kind;
    po_dtype dtype; /* tensors: element type; maps: key type; PO_DT_NONE: unknown */
    bool has_rank;
    uint32_t rank;
    const po_dim *dims;
    const struct po_type *element; /* sequence, optional: what it holds; map: value type */
} po_type;

/* Builders; dims are copied into the arena. */
po_type po_type_tensor(po_arena *arena, po_dtype dtype, uint32_t rank, const po_dim *dims);
po_type po_type_tensor_i64(po_arena *arena, po_dtype dtype, uint32_t rank, const int64_t *dims);
po_type po_type_unranked(po_dtype dtype);

/* Every dim known. */
bool po_type_static(const po_type *type);
/* Number of elements of a static tensor type; -1 where not static or where it overflows. */
int64_t po_type_count(const po_type *type);
/* Structurally the same, symbols included. */
bool po_type_equal(const po_type *a, const po_type *b);
/* Takes what either knows. False where they contradict one another (a known dim or dtype differs):
 * then *into is left as it was. */
bool po_type_merge(po_arena *arena, po_type *into, const po_type *from);
/* Prints "f32[1,3,H,?]", "f32[*]", "seq(f32[2])", "?". */
void po_type_print(po_text *text, const po_type *type);

#endif
