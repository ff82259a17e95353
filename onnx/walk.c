/* Tensors wherever they are: initialisers, attributes, bodies, functions, training information. */
#include "onnx/onnx.h"

static bool may_hold_tensors(const ProtobufCMessageDescriptor *d) {
    return d == &onnx__tensor_proto__descriptor || d == &onnx__attribute_proto__descriptor ||
           d == &onnx__node_proto__descriptor || d == &onnx__graph_proto__descriptor ||
           d == &onnx__sparse_tensor_proto__descriptor || d == &onnx__function_proto__descriptor ||
           d == &onnx__training_info_proto__descriptor || d == &onnx__model_proto__descriptor;
}

static bool is_repeated(const ProtobufCFieldDescriptor *field) {
    return field->label == PROTOBUF_C_LABEL_REPEATED;
}

/* The messages of a field: an array and its length; none where the field is absent. */
static ProtobufCMessage **messages_of(const ProtobufCMessage *m,
                                      const ProtobufCFieldDescriptor *field, size_t *n) {
    char *at = (char *)(uintptr_t)m + field->offset;
    if (is_repeated(field)) {
        memcpy(n, (const char *)m + field->quantifier_offset, sizeof *n);
        ProtobufCMessage **items;
        memcpy(&items, at, sizeof items);
        return items;
    }
    ProtobufCMessage **one = (ProtobufCMessage **)(void *)at;
    *n = *one != NULL;
    return one;
}

static const char *name_of(const ProtobufCMessage *m) {
    const ProtobufCMessageDescriptor *d = m->descriptor;
    if (d == &onnx__node_proto__descriptor)
        return ((const Onnx__NodeProto *)m)->name;
    if (d == &onnx__tensor_proto__descriptor)
        return ((const Onnx__TensorProto *)m)->name;
    if (d == &onnx__attribute_proto__descriptor)
        return ((const Onnx__AttributeProto *)m)->name;
    if (d == &onnx__function_proto__descriptor)
        return ((const Onnx__FunctionProto *)m)->name;
    return NULL;
}

po_status po_each_tensor(ProtobufCMessage *message, const po_place *place, po_tensor_fn fn,
                         po_sparse_fn sparse, void *user) {
    if (message->descriptor == &onnx__tensor_proto__descriptor)
        return fn(user, place, (Onnx__TensorProto *)message);
    const ProtobufCMessageDescriptor *d = message->descriptor;
    for (unsigned f = 0; f < d->n_fields; f++) {
        const ProtobufCFieldDescriptor *field = &d->fields[f];
        if (field->type != PROTOBUF_C_TYPE_MESSAGE || !may_hold_tensors(field->descriptor))
            continue;
        size_t n;
        ProtobufCMessage **items = messages_of(message, field, &n);
        for (size_t i = 0; i < n; i++) {
            po_place at = {place, field->name, is_repeated(field) ? (int64_t)i : -1,
                           name_of(items[i])};
            PO_TRY(po_each_tensor(items[i], &at, fn, sparse, user));
        }
    }
    if (sparse && d == &onnx__sparse_tensor_proto__descriptor)
        return sparse(user, place, (Onnx__SparseTensorProto *)message);
    return PO_OK;
}

const ProtobufCMessage *po_map_tensors(po_arena *arena, const ProtobufCMessage *message,
                                       po_map_tensor_fn fn, void *user) {
    if (message->descriptor == &onnx__tensor_proto__descriptor)
        return &fn(user, (const Onnx__TensorProto *)message)->base;
    const ProtobufCMessageDescriptor *d = message->descriptor;
    char *copy = NULL;
    for (unsigned f = 0; f < d->n_fields; f++) {
        const ProtobufCFieldDescriptor *field = &d->fields[f];
        if (field->type != PROTOBUF_C_TYPE_MESSAGE || !may_hold_tensors(field->descriptor))
            continue;
        size_t n;
        ProtobufCMessage **items = messages_of(message, field, &n);
        ProtobufCMessage **changed = NULL;
        for (size_t i = 0; i < n; i++) {
            const ProtobufCMessage *other = po_map_tensors(arena, items[i], fn, user);
            if (other == items[i])
                continue;
            if (!changed)
                changed = po_arena_memdup(arena, items, n * sizeof(ProtobufCMessage *));
            changed[i] = (ProtobufCMessage *)(uintptr_t)other;
        }
        if (!changed)
            continue;
        if (!copy)
            copy = po_arena_memdup(arena, message, d->sizeof_message);
        if (is_repeated(field))
            memcpy(copy + field->offset, &changed, sizeof changed);
        else
            memcpy(copy + field->offset, changed, sizeof *changed);
    }
    return copy ? (const ProtobufCMessage *)(void *)copy : message;
}
