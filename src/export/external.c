/* External data on the way out: what goes to OUT.data and where in it; or the opposite, everything
 * inside; or weights handed over in memory. */
#include "export/parts.h"

#include <stdlib.h>

/* A distinct run of bytes. */
typedef struct piece {
    const void *data;
    size_t size;
    uint64_t offset;
} piece;

struct po_data_plan {
    po_exporter *ex;
    bool all;
    const char *location;
    po_hash_map *by_hash;  /* content to piece */
    po_hash_map *by_place; /* address and size to piece: what was seen is not hashed again */
    piece *pieces;
    uint32_t n_pieces, cap_pieces;
    uint64_t end;
};

static bool same_bytes(const piece *p, const void *data, size_t size) {
    return p->size == size && (p->data == data || memcmp(p->data, data, size) == 0);
}

/* The piece that holds these bytes; the offsets grow in the order in which weights are met. */
static const piece *place_piece(po_data_plan *plan, const void *data, size_t size) {
    po_hash place = {(uint64_t)(uintptr_t)data, size};
    uint32_t i = po_hash_map_get(plan->by_place, place);
    if (i != PO_NONE)
        return &plan->pieces[i];
    po_hash content = po_hash_bytes(data, size, (po_hash){size, 0});
    i = po_hash_map_get(plan->by_hash, content);
    if (i == PO_NONE || !same_bytes(&plan->pieces[i], data, size)) {
        uint64_t at = plan->end + PO_DATA_ALIGNMENT - 1;
        piece p = {data, size, at - at % PO_DATA_ALIGNMENT};
        plan->end = p.offset + size;
        PO_PUSH(plan->ex->arena, plan->pieces, plan->n_pieces, plan->cap_pieces, p);
        i = plan->n_pieces - 1;
        po_hash_map_put(plan->by_hash, content, i);
    }
    po_hash_map_put(plan->by_place, place, i);
    return &plan->pieces[i];
}

static Onnx__StringStringEntryProto *entry(po_arena *arena, const char *key, char *value) {
    Onnx__StringStringEntryProto *e =
        PO_PROTO_NEW(arena, Onnx__StringStringEntryProto, ONNX__STRING_STRING_ENTRY_PROTO__INIT);
    e->key = (char *)(uintptr_t)key;
    e->value = value;
    return e;
}

/* Keys of our own; what others put beside them stays, but for a checksum of the old file. */
static bool is_ours(const char *key) {
    return key && (strcmp(key, "location") == 0 || strcmp(key, "offset") == 0 ||
                   strcmp(key, "length") == 0 || strcmp(key, "checksum") == 0);
}

static const Onnx__TensorProto *refer(po_arena *arena, const Onnx__TensorProto *t,
                                      const char *location, uint64_t offset) {
    Onnx__TensorProto *p = po_arena_memdup(arena, t, sizeof *t);
    p->has_raw_data = 0;
    p->has_data_location = 1;
    p->data_location = ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL;
    p->external_data = PO_NEW_N(arena, Onnx__StringStringEntryProto *, t->n_external_data + 3);
    p->n_external_data = 0;
    p->external_data[p->n_external_data++] = entry(arena, "location", (char *)(uintptr_t)location);
    p->external_data[p->n_external_data++] =
        entry(arena, "offset", po_arena_printf(arena, "%llu", (unsigned long long)offset));
    p->external_data[p->n_external_data++] =
        entry(arena, "length", po_arena_printf(arena, "%zu", t->raw_data.len));
    for (size_t i = 0; i < t->n_external_data; i++)
        if (!is_ours(t->external_data[i]->key))
            p->external_data[p->n_external_data++] = t->external_data[i];
    return p;
}

/* Typed data as raw bytes, where the layouts agree: so that it can be external. */
static const Onnx__TensorProto *as_raw(po_arena *arena, const Onnx__TensorProto *t) {
    ProtobufCBinaryData raw = {0, NULL};
    if (t->data_type == PO_F32 || t->data_type == PO_C64)
        raw = (ProtobufCBinaryData){t->n_float_data * 4, (uint8_t *)t->float_data};
    else if (t->data_type == PO_F64 || t->data_type == PO_C128)
        raw = (ProtobufCBinaryData){t->n_double_data * 8, (uint8_t *)t->double_data};
    else if (t->data_type == PO_I64)
        raw = (ProtobufCBinaryData){t->n_int64_data * 8, (uint8_t *)t->int64_data};
    else if (t->data_type == PO_I32)
        raw = (ProtobufCBinaryData){t->n_int32_data * 4, (uint8_t *)t->int32_data};
    else if (t->data_type == PO_U64)
        raw = (ProtobufCBinaryData){t->n_uint64_data * 8, (uint8_t *)t->uint64_data};
    if (raw.len == 0)
        return t;
    Onnx__TensorProto *p = po_arena_memdup(arena, t, sizeof *t);
    p->n_float_data = p->n_double_data = p->n_int64_data = p->n_int32_data = p->n_uint64_data = 0;
    p->has_raw_data = 1;
    p->raw_data = raw;
    return p;
}

static const Onnx__TensorProto *plan_tensor(void *user, const Onnx__TensorProto *t) {
    po_data_plan *plan = user;
    po_arena *arena = plan->ex->arena;
    if (!po_is_external(t)) {
        if (!plan->all)
            return t;
        const Onnx__TensorProto *raw = t->has_raw_data ? t : as_raw(arena, t);
        if (!raw->has_raw_data || raw->raw_data.len < PO_LEAST_EXTERNAL)
            return t;
        t = raw;
    }
    uint64_t offset =
        t->raw_data.len ? place_piece(plan, t->raw_data.data, t->raw_data.len)->offset : 0;
    return refer(arena, t, plan->location, offset);
}

po_data_plan *po_plan_data(po_exporter *ex, const Onnx__ModelProto *proto, bool all,
                           const char *location, const Onnx__ModelProto **planned) {
    po_data_plan *plan = PO_NEW(ex->arena, po_data_plan);
    plan->ex = ex;
    plan->all = all;
    plan->location = location;
    plan->by_hash = po_hash_map_create(ex->arena);
    plan->by_place = po_hash_map_create(ex->arena);
    *planned = (const Onnx__ModelProto *)po_map_tensors(ex->arena, &proto->base, plan_tensor, plan);
    return plan;
}

uint64_t po_plan_bytes(const po_data_plan *plan) {
    return plan->end;
}

void po_write_data(const po_data_plan *plan, po_writer *writer) {
    for (uint32_t i = 0; i < plan->n_pieces; i++) {
        po_writer_align(writer, PO_DATA_ALIGNMENT);
        po_writer_put(writer, plan->pieces[i].data, plan->pieces[i].size);
    }
}

/* --- everything inside --- */

static const Onnx__TensorProto *inline_tensor(void *user, const Onnx__TensorProto *t) {
    po_exporter *ex = user;
    if (!po_is_external(t))
        return t;
    Onnx__TensorProto *p = po_arena_memdup(ex->arena, t, sizeof *t);
    p->n_external_data = 0;
    p->has_data_location = 0;
    return p;
}

const Onnx__ModelProto *po_inline_data(po_exporter *ex, const Onnx__ModelProto *proto) {
    return (const Onnx__ModelProto *)po_map_tensors(ex->arena, &proto->base, inline_tensor, ex);
}

/* --- weights in memory --- */

const Onnx__ModelProto *po_split_data(po_exporter *ex, po_arena *arena,
                                      const Onnx__ModelProto *proto, const po_weight **weights,
                                      uint32_t *n_weights) {
    const Onnx__ModelProto *whole = po_inline_data(ex, proto);
    Onnx__ModelProto *model = po_arena_memdup(ex->arena, whole, sizeof *whole);
    Onnx__GraphProto *graph = po_arena_memdup(ex->arena, whole->graph, sizeof *whole->graph);
    model->graph = graph;
    graph->initializer = po_arena_memdup(ex->arena, graph->initializer,
                                         graph->n_initializer * sizeof(Onnx__TensorProto *));
    po_weight *list = NULL;
    uint32_t n = 0, cap = 0;
    po_map *seen = po_map_create(ex->arena);
    for (size_t i = 0; i < graph->n_initializer; i++) {
        const Onnx__TensorProto *t = as_raw(ex->arena, graph->initializer[i]);
        if (!t->has_raw_data || t->raw_data.len < PO_LEAST_EXTERNAL)
            continue;
        /* Content names the weight: a cache of loaded ones may go by it. */
        po_hash h = po_hash_bytes(t->raw_data.data, t->raw_data.len, (po_hash){0, 0});
        const char *location =
            po_arena_printf(arena, "w%016llx%016llx-%zu", (unsigned long long)h.hi,
                            (unsigned long long)h.lo, t->raw_data.len);
        if (po_map_put(seen, location, 0) == PO_NONE) {
            po_weight w = {location, t->raw_data.data, t->raw_data.len};
            PO_PUSH(arena, list, n, cap, w);
        }
        graph->initializer[i] = (Onnx__TensorProto *)(uintptr_t)refer(ex->arena, t, location, 0);
    }
    *weights = list;
    *n_weights = n;
    return model;
}
