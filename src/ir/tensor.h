/* Constant tensors. The data is never changed and often lies in a mapped file. */
#ifndef PO_IR_TENSOR_H
#define PO_IR_TENSOR_H

#include "base/hash.h"
#include "ir/type.h"

typedef struct po_tensor {
    po_dtype dtype;
    uint32_t rank;
    const int64_t *dims; /* each >= 0; their product was checked */
    int64_t count;       /* product of dims */
    const void *data;    /* little-endian, row-major, sub-byte types packed low nibble first;
                            strings: const po_bytes[count]; may be unaligned */
    size_t size;         /* bytes of data; strings: 0 */
    const void *origin;  /* the TensorProto it was read from, for import and export; may be NULL */
} po_tensor;

/* Makes a tensor whose data is zeroed and writable through po_tensor_data until it is shared. Large
 * data is loose in the arena (po_arena_loose). */
po_status po_tensor_create(po_ctx *ctx, po_arena *arena, po_dtype dtype, uint32_t rank,
                           const int64_t *dims, po_tensor **tensor);
void *po_tensor_data(po_tensor *tensor);
/* From now on the tensor's data is that, which holds the same bytes. */
void po_tensor_rest_on(const po_tensor *tensor, const void *data);
/* A tensor over data that already exists (not copied). */
po_status po_tensor_wrap(po_ctx *ctx, po_arena *arena, po_dtype dtype, uint32_t rank,
                         const int64_t *dims, const void *data, po_tensor **tensor);
/* 1-D i64 tensor, and f32 scalars, for rewrites. */
po_tensor *po_tensor_i64(po_arena *arena, uint32_t count, const int64_t *values);
po_tensor *po_tensor_scalar_f32(po_arena *arena, float value);

/* dtype, dims and every byte the same (NaN payloads and -0 included). */
bool po_tensor_equal(const po_tensor *a, const po_tensor *b);
po_hash po_tensor_hash(const po_tensor *tensor);
po_type po_tensor_type(po_arena *arena, const po_tensor *tensor);

/* Element i as a number. Floats of every width, integers, bool; PO_F64 exact for up to 53 bits.
 * Strings and complex numbers give NaN / 0: ask po_dtype_class_of first. */
double po_tensor_f64(const po_tensor *tensor, int64_t i);
/* Elements [from, from + n), or all of them in an arena: much faster than one by one. */
void po_tensor_read_f64(const po_tensor *tensor, int64_t from, int64_t n, double *out);
double *po_tensor_doubles(po_arena *arena, const po_tensor *tensor);
int64_t po_tensor_int(const po_tensor *tensor, int64_t i); /* u64: two's complement */
/* Stores a number, rounded to nearest even and (floats) to infinity on overflow, integers
 * wrapped, as the ONNX Cast operator does without saturation. */
void po_tensor_set_f64(po_tensor *tensor, int64_t i, double value);
/* Numbers between the two, the same for the same stream; over again after 65537 of them, since
 * large weights are made up many times. */
void po_tensor_draw(po_tensor *tensor, uint64_t stream, double least, double most);
void po_tensor_set_int(po_tensor *tensor, int64_t i, int64_t value);

/* One element by format, for those that hold raw bytes. */
double po_decode_float(po_dtype dtype, uint64_t bits);
uint64_t po_encode_float(po_dtype dtype, double value);
/* What a float type makes of a number. */
static inline double po_round_float(po_dtype dtype, double value) {
    if (dtype == PO_F64)
        return value;
    return dtype == PO_F32 ? (double)(float)value
                           : po_decode_float(dtype, po_encode_float(dtype, value));
}

#endif
