/* What import and export share of ONNX's protobuf messages: places in a model for messages, walking
 * over tensors wherever they are, types, and what import keeps for export. */
#ifndef PO_ONNX_H
#define PO_ONNX_H

#include "base/file.h"
#include "ir/graph.h"

#include "onnx-ml.pb-c.h"

/* --- places --- */

/* A place in a model, as a chain of frames that live on the stack of who descends. */
typedef struct po_place {
    const struct po_place *outer;
    const char *what; /* "graph", "node", "tensor" */
    int64_t index;    /* -1: not one of several */
    const char *name; /* of the thing, or NULL */
} po_place;

/* Records "file: graph/node[3] 'conv1'/attribute[0]: reason" as the failure. */
__attribute__((format(printf, 5, 6))) po_status po_fail_at(po_ctx *ctx, const char *file,
                                                           const po_place *place, po_status status,
                                                           const char *format, ...);
/* Puts file and place before the failure that is recorded already; returns its status. */
po_status po_fail_again_at(po_ctx *ctx, const char *file, const po_place *place);
/* The same as a warning for -v. */
__attribute__((format(printf, 4, 5))) void
po_warn_at(po_ctx *ctx, const char *file, const po_place *place, const char *format, ...);

/* --- tensors anywhere in a message --- */

typedef po_status (*po_tensor_fn)(void *user, const po_place *place, Onnx__TensorProto *tensor);
typedef po_status (*po_sparse_fn)(void *user, const po_place *place,
                                  Onnx__SparseTensorProto *sparse);

/* Calls fn for every TensorProto below the message, in the order of the fields, and `sparse` (may
 * be NULL) for every SparseTensorProto after its two tensors. */
po_status po_each_tensor(ProtobufCMessage *message, const po_place *place, po_tensor_fn fn,
                         po_sparse_fn sparse, void *user);

/* Returns what stands in a tensor's place: itself, or another. */
typedef const Onnx__TensorProto *(*po_map_tensor_fn)(void *user, const Onnx__TensorProto *tensor);

/* The message with fn applied to every tensor below. What holds a changed tensor is copied into the
 * arena, the rest is shared; the message itself is returned where nothing changed. */
const ProtobufCMessage *po_map_tensors(po_arena *arena, const ProtobufCMessage *message,
                                       po_map_tensor_fn fn, void *user);

/* The bytes that a tensor holds outside of its typed fields, or NULL. In memory a tensor with
 * external data has both its external_data entries and raw_data that points into the mapping. */
static inline bool po_is_external(const Onnx__TensorProto *t) {
    return t->has_data_location && t->data_location == ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL;
}

/* --- types --- */

/* PO_BAD_INPUT names the place: negative dims, too many of them, unknown element types. Symbols
 * point into the message. */
po_status po_type_from_proto(po_ctx *ctx, po_arena *arena, const char *file, const po_place *place,
                             const Onnx__TypeProto *proto, po_type *type);
Onnx__TypeProto *po_type_to_proto(po_arena *arena, const po_type *type);

/* --- what import keeps for export (po_model.origin) --- */

typedef struct po_origin {
    const Onnx__ModelProto *proto;
    const po_content *const *files; /* the model file, then external data */
    uint32_t n_files;
    bool external; /* some tensor's data is in a file of its own */
} po_origin;

#define PO_PROTO_NEW(arena, type, init)                                                            \
    ((type *)po_arena_memdup((arena), &(type)init, sizeof(type)))

#endif
