/* What a graph says of its values: inputs, outputs, value_info, annotations, tensors. */
#include "export/parts.h"

static char *mutable(const char *text) {
    return (char *)(uintptr_t)text; /* protobuf-c's structures have no const; they are only read */
}

Onnx__TensorProto *po_make_tensor(po_exporter *ex, const po_tensor *t, const char *name) {
    const Onnx__TensorProto *old = t->origin;
    if (old && name && old->name && strcmp(old->name, name) == 0)
        return (Onnx__TensorProto *)(uintptr_t)old;
    if (old && !name)
        return (Onnx__TensorProto *)(uintptr_t)old;
    Onnx__TensorProto *p = PO_PROTO_NEW(ex->arena, Onnx__TensorProto, ONNX__TENSOR_PROTO__INIT);
    if (old) {
        *p = *old;
        p->name = mutable(name);
        return p;
    }
    p->name = mutable(name);
    p->has_data_type = 1;
    p->data_type = (int32_t)t->dtype;
    p->n_dims = t->rank;
    p->dims = (int64_t *)(uintptr_t)t->dims;
    if (t->dtype == PO_STR) {
        const po_bytes *s = t->data;
        p->n_string_data = (size_t)t->count;
        p->string_data = PO_NEW_N(ex->arena, ProtobufCBinaryData, t->count);
        for (int64_t i = 0; i < t->count; i++)
            p->string_data[i] = (ProtobufCBinaryData){s[i].size, (uint8_t *)(uintptr_t)s[i].data};
        return p;
    }
    p->has_raw_data = 1;
    p->raw_data = (ProtobufCBinaryData){t->size, (uint8_t *)(uintptr_t)t->data};
    return p;
}

/* The old entry where it still tells the truth, else one with the value's type. `declared`:
 * an entry that says more or less than the type is kept too, if it does not contradict it. */
static po_status make_info(po_exporter *ex, const po_graph *g, po_value_id id, bool declared,
                           const Onnx__ValueInfoProto *old, Onnx__ValueInfoProto **info) {
    const po_type *type = &g->values[id].type;
    if (old) {
        po_type before;
        po_place at = {NULL, "value", -1, old->name};
        PO_TRY(po_type_from_proto(ex->ctx, ex->arena, "model", &at, old->type, &before));
        po_type both = before;
        if (po_type_equal(&before, type) || (declared && po_type_merge(ex->arena, &both, type))) {
            *info = (Onnx__ValueInfoProto *)(uintptr_t)old;
            return PO_OK;
        }
    }
    *info = PO_PROTO_NEW(ex->arena, Onnx__ValueInfoProto, ONNX__VALUE_INFO_PROTO__INIT);
    if (old)
        **info = *old;
    (*info)->name = mutable(po_graph_value_name(g, id));
    (*info)->type = type->kind == PO_TYPE_UNKNOWN ? NULL : po_type_to_proto(ex->arena, type);
    return PO_OK;
}

/* Old entries by name. */
static const Onnx__ValueInfoProto *find(const po_map *map, Onnx__ValueInfoProto *const *list,
                                        const char *name) {
    uint32_t i = po_map_get(map, name);
    return i == PO_NONE ? NULL : list[i];
}

static po_map *index_infos(po_arena *arena, Onnx__ValueInfoProto *const *list, size_t n) {
    po_map *map = po_map_create(arena);
    for (size_t i = 0; i < n; i++)
        if (list[i]->name && po_map_get(map, list[i]->name) == PO_NONE)
            po_map_put(map, list[i]->name, (uint32_t)i);
    return map;
}

static po_status make_list(po_exporter *ex, const po_graph *g, const po_value_id *ids, uint32_t n,
                           bool declared, Onnx__ValueInfoProto *const *old, size_t n_old,
                           size_t *count, Onnx__ValueInfoProto ***list) {
    po_map *index = index_infos(ex->arena, old, n_old);
    *count = n;
    *list = PO_NEW_N(ex->arena, Onnx__ValueInfoProto *, n);
    for (uint32_t i = 0; i < n; i++) {
        /* Where nothing changed the places agree, also for a name that is there twice. */
        const char *name = po_graph_value_name(g, ids[i]);
        const Onnx__ValueInfoProto *same =
            i < n_old && old[i]->name && strcmp(old[i]->name, name) == 0 ? old[i]
                                                                         : find(index, old, name);
        PO_TRY(make_info(ex, g, ids[i], declared, same, &(*list)[i]));
    }
    return PO_OK;
}

/* Which names of the graph's own values still mean something: the value's number and 1; 0. */
enum { NAME_GONE = 0, NAME_LIVE = 1 };

static po_map *index_names(po_exporter *ex, const po_graph *g) {
    po_map *map = po_map_create(ex->arena);
    for (po_value_id i = 0; i < g->n_values; i++) {
        const po_value *v = &g->values[i];
        if (v->outer != PO_NONE)
            continue;
        bool live = v->producer != PO_NONE || v->is_input || v->is_initializer;
        if (live || po_map_get(map, v->name) == PO_NONE)
            po_map_put(map, v->name, live ? NAME_LIVE + i : NAME_GONE);
    }
    return map;
}

static bool keeps(const po_map *names, const char *name) {
    return !name || po_map_get(names, name) != NAME_GONE;
}

/* Whether an entry does not contradict the shape that its value has by now: the runtime believes
 * entries, and then refuses the nodes behind. */
static po_status still_true(po_exporter *ex, const po_graph *g, const po_map *names,
                            const Onnx__ValueInfoProto *info, bool *true_still) {
    uint32_t name = info->name ? po_map_get(names, info->name) : PO_NONE;
    po_place at = {NULL, "value", -1, info->name};
    po_type type;
    *true_still = true;
    if (name == PO_NONE || name < NAME_LIVE || !info->type)
        return PO_OK;
    PO_TRY(po_type_from_proto(ex->ctx, ex->arena, "model", &at, info->type, &type));
    *true_still = po_type_merge(ex->arena, &type, &g->values[name - NAME_LIVE].type);
    return PO_OK;
}

po_status po_make_infos(po_exporter *ex, const po_graph *g, const Onnx__GraphProto *old,
                        Onnx__GraphProto *p) {
    PO_TRY(make_list(ex, g, g->inputs, g->n_inputs, false, old ? old->input : NULL,
                     old ? old->n_input : 0, &p->n_input, &p->input));
    /* Outputs stay declared as they were, though inference may know more of them by now, or less:
     * only where the inputs were pinned do users expect other shapes. */
    bool pinned = old && p->n_input != old->n_input;
    for (size_t i = 0; old && !pinned && i < p->n_input; i++)
        pinned = p->input[i] != old->input[i];
    PO_TRY(make_list(ex, g, g->outputs, g->n_outputs, !pinned, old ? old->output : NULL,
                     old ? old->n_output : 0, &p->n_output, &p->output));
    if (!old ||
        (!old->n_value_info && !old->n_quantization_annotation && !old->n_sparse_initializer))
        return PO_OK;
    po_map *names = index_names(ex, g);
    /* What the model says of names that no value ever had is none of our business: it stays. */
    p->value_info = PO_NEW_N(ex->arena, Onnx__ValueInfoProto *, old->n_value_info);
    p->n_value_info = 0;
    for (size_t i = 0; i < old->n_value_info; i++) {
        bool stays;
        PO_TRY(still_true(ex, g, names, old->value_info[i], &stays));
        if (stays && keeps(names, old->value_info[i]->name))
            p->value_info[p->n_value_info++] = old->value_info[i];
    }
    p->quantization_annotation =
        PO_NEW_N(ex->arena, Onnx__TensorAnnotation *, old->n_quantization_annotation);
    p->n_quantization_annotation = 0;
    for (size_t i = 0; i < old->n_quantization_annotation; i++)
        if (keeps(names, old->quantization_annotation[i]->tensor_name))
            p->quantization_annotation[p->n_quantization_annotation++] =
                old->quantization_annotation[i];
    p->sparse_initializer =
        PO_NEW_N(ex->arena, Onnx__SparseTensorProto *, old->n_sparse_initializer);
    p->n_sparse_initializer = 0;
    for (size_t i = 0; i < old->n_sparse_initializer; i++) {
        uint32_t name = po_map_get(names, old->sparse_initializer[i]->values->name);
        if (name != PO_NONE && name >= NAME_LIVE)
            p->sparse_initializer[p->n_sparse_initializer++] = old->sparse_initializer[i];
    }
    return PO_OK;
}
