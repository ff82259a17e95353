/* The wire scanner: the first to look at the bytes of a model. It checks what protobuf-c does not
 * (depth, budgets, strings, repeated singular fields) and makes the skeleton that protobuf-c then
 * unpacks: the model with every TensorProto.raw_data replaced by its number, 8 bytes long, so that
 * weights are never copied. */
#ifndef PO_IMPORT_SCAN_H
#define PO_IMPORT_SCAN_H

#include "onnx/onnx.h"

enum {
    PO_SCAN_DEPTH = 100, /* messages within messages: protobuf's own limit */
    PO_RAW_REF_SIZE = 8
};

/* Where a raw_data field lies in the scanned bytes. */
typedef struct po_raw_ref {
    const uint8_t *data;
    size_t size;
} po_raw_ref;

typedef struct po_scanned {
    uint8_t *skeleton;
    size_t skeleton_size;
    const po_raw_ref *raw; /* by number */
    uint32_t n_raw;
} po_scanned;

/* Scans a serialised message of the given type (ModelProto). `keep` holds what the references need,
 * `scratch` the skeleton. PO_BAD_INPUT names file, field path and reason. */
po_status po_scan_message(po_ctx *ctx, po_arena *keep, po_arena *scratch, const char *file,
                          const ProtobufCMessageDescriptor *type, const uint8_t *data, size_t size,
                          po_scanned *scan);

/* The number of a raw_data field of the skeleton; UINT64_MAX where its size is wrong. */
uint64_t po_raw_number(const ProtobufCBinaryData *raw);

#endif
