/* A TensorProto in a file of its own, as test data is kept. */
#include "import/parts.h"

#include <fcntl.h>

static void *unpack_alloc(void *arena, size_t size) {
    return po_arena_alloc(arena, size);
}

static void unpack_free(void *arena, void *memory) {
    (void)arena;
    (void)memory;
}

static po_status read_tensor(po_importer *im, const po_tensor **tensor) {
    int fd;
    po_content content;
    PO_TRY(po_file_open(im->ctx, im->scratch, AT_FDCWD, im->file, 0, &fd));
    PO_TRY(po_file_content(im->ctx, im->arena, fd, im->file, &content));
    PO_TRY(po_scan_message(im->ctx, im->arena, im->scratch, im->file,
                           &onnx__tensor_proto__descriptor, content.data, content.size, &im->scan));
    ProtobufCAllocator allocator = {unpack_alloc, unpack_free, im->arena};
    Onnx__TensorProto *proto = (Onnx__TensorProto *)protobuf_c_message_unpack(
        &onnx__tensor_proto__descriptor, &allocator, im->scan.skeleton_size, im->scan.skeleton);
    if (!proto)
        return po_fail(im->ctx, PO_BAD_INPUT, "%.300s: is not a valid tensor", im->file);
    /* Tensors are checked as parts of a model. */
    Onnx__GraphProto graph = ONNX__GRAPH_PROTO__INIT;
    Onnx__ModelProto model = ONNX__MODEL_PROTO__INIT;
    graph.n_initializer = 1;
    graph.initializer = &proto;
    model.graph = &graph;
    im->proto = &model;
    PO_TRY(po_import_tensors(im));
    *tensor = po_import_tensor(im, proto);
    return PO_OK;
}

po_status po_import_tensor_file(po_ctx *ctx, po_arena *arena, const char *path,
                                const po_tensor **tensor) {
    po_importer im = {.ctx = ctx, .arena = arena, .file = path, .scratch = po_arena_create(ctx)};
    po_status status = read_tensor(&im, tensor);
    po_arena_free(im.scratch); /* with the file that is open */
    return status;
}
