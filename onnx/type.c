/* Types of values and ONNX's TypeProto, one made of the other. */
#include "ir/size.h"
#include "onnx/onnx.h"

enum { DEEPEST_TYPE = 16 };

static po_status element_type(po_ctx *ctx, const char *file, const po_place *place, bool there,
                              int32_t number, po_dtype *dtype) {
    *dtype = PO_DT_NONE;
    if (!there || number == 0)
        return PO_OK; /* not said: inference finds it */
    if (number < 0 || number >= PO_DT_COUNT)
        return po_fail_at(ctx, file, place, PO_BAD_INPUT,
                          "unknown element type (found %d, limit %d)", number, PO_DT_COUNT - 1);
    *dtype = (po_dtype)number;
    return PO_OK;
}

static po_status shape(po_ctx *ctx, po_arena *arena, const char *file, const po_place *place,
                       const Onnx__TensorShapeProto *proto, po_type *type) {
    if (!proto)
        return PO_OK;
    if (proto->n_dim > PO_MAX_RANK)
        return po_fail_at(ctx, file, place, PO_BAD_INPUT, "too many dims (found %zu, limit %d)",
                          proto->n_dim, PO_MAX_RANK);
    po_dim *dims = PO_NEW_N(arena, po_dim, proto->n_dim);
    for (size_t i = 0; i < proto->n_dim; i++) {
        const Onnx__TensorShapeProto__Dimension *d = proto->dim[i];
        dims[i] = PO_DIM_UNKNOWN;
        if (d->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE) {
            /* Exporters write -1 for a dim that they do not know, and runtimes read it so. */
            if (d->dim_value < -1)
                return po_fail_at(ctx, file, place, PO_BAD_INPUT,
                                  "dim %zu is negative (found %lld, limit 0)", i,
                                  (long long)d->dim_value);
            dims[i] = PO_DIM(d->dim_value);
        } else if (d->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM &&
                   d->dim_param && *d->dim_param && strcmp(d->dim_param, "?") != 0) {
            /* "?" is written for dims that are not known: two of them need not be equal. */
            dims[i].symbol = d->dim_param;
        }
    }
    type->has_rank = true;
    type->rank = (uint32_t)proto->n_dim;
    type->dims = dims;
    return PO_OK;
}

static po_status convert(po_ctx *ctx, po_arena *arena, const char *file, const po_place *place,
                         const Onnx__TypeProto *proto, po_type *type, int depth) {
    *type = (po_type){0};
    if (!proto)
        return PO_OK;
    if (depth > DEEPEST_TYPE)
        return po_fail_at(ctx, file, place, PO_BAD_INPUT, "the type is nested too deep (limit %d)",
                          DEEPEST_TYPE);
    const Onnx__TypeProto *inner = NULL;
    switch (proto->value_case) {
    case ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE:
        type->kind = PO_TYPE_TENSOR;
        PO_TRY(element_type(ctx, file, place, proto->tensor_type->has_elem_type,
                            proto->tensor_type->elem_type, &type->dtype));
        return shape(ctx, arena, file, place, proto->tensor_type->shape, type);
    case ONNX__TYPE_PROTO__VALUE_SPARSE_TENSOR_TYPE:
        type->kind = PO_TYPE_SPARSE;
        PO_TRY(element_type(ctx, file, place, proto->sparse_tensor_type->has_elem_type,
                            proto->sparse_tensor_type->elem_type, &type->dtype));
        return shape(ctx, arena, file, place, proto->sparse_tensor_type->shape, type);
    case ONNX__TYPE_PROTO__VALUE_SEQUENCE_TYPE:
        type->kind = PO_TYPE_SEQUENCE;
        inner = proto->sequence_type->elem_type;
        break;
    case ONNX__TYPE_PROTO__VALUE_OPTIONAL_TYPE:
        type->kind = PO_TYPE_OPTIONAL;
        inner = proto->optional_type->elem_type;
        break;
    case ONNX__TYPE_PROTO__VALUE_MAP_TYPE:
        type->kind = PO_TYPE_MAP;
        PO_TRY(element_type(ctx, file, place, proto->map_type->has_key_type,
                            proto->map_type->key_type, &type->dtype));
        inner = proto->map_type->value_type;
        break;
    case ONNX__TYPE_PROTO__VALUE_OPAQUE_TYPE:
        type->kind = PO_TYPE_OPAQUE;
        return PO_OK;
    default:
        return PO_OK;
    }
    po_type *element = PO_NEW(arena, po_type);
    type->element = element;
    return convert(ctx, arena, file, place, inner, element, depth + 1);
}

po_status po_type_from_proto(po_ctx *ctx, po_arena *arena, const char *file, const po_place *place,
                             const Onnx__TypeProto *proto, po_type *type) {
    return convert(ctx, arena, file, place, proto, type, 0);
}

static Onnx__TensorShapeProto *shape_to_proto(po_arena *arena, const po_type *type) {
    if (!type->has_rank)
        return NULL;
    Onnx__TensorShapeProto *s =
        PO_PROTO_NEW(arena, Onnx__TensorShapeProto, ONNX__TENSOR_SHAPE_PROTO__INIT);
    s->n_dim = type->rank;
    s->dim = PO_NEW_N(arena, Onnx__TensorShapeProto__Dimension *, type->rank);
    for (uint32_t i = 0; i < type->rank; i++) {
        Onnx__TensorShapeProto__Dimension *d = PO_PROTO_NEW(
            arena, Onnx__TensorShapeProto__Dimension, ONNX__TENSOR_SHAPE_PROTO__DIMENSION__INIT);
        if (po_dim_known(type->dims[i])) {
            d->value_case = ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE;
            d->dim_value = type->dims[i].value;
        } else if (type->dims[i].symbol) {
            d->value_case = ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM;
            d->dim_param = po_arena_strdup(arena, type->dims[i].symbol);
            /* Expressions as exporters write them: without the brackets around the whole. */
            if (po_size_made(d->dim_param)) {
                const size_t n = strlen(d->dim_param);
                d->dim_param = po_arena_printf(arena, "%.*s", (int)n - 2, d->dim_param + 1);
            }
        }
        s->dim[i] = d;
    }
    return s;
}

Onnx__TypeProto *po_type_to_proto(po_arena *arena, const po_type *type) {
    Onnx__TypeProto *p = PO_PROTO_NEW(arena, Onnx__TypeProto, ONNX__TYPE_PROTO__INIT);
    switch (type->kind) {
    case PO_TYPE_TENSOR:
        p->value_case = ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE;
        p->tensor_type =
            PO_PROTO_NEW(arena, Onnx__TypeProto__Tensor, ONNX__TYPE_PROTO__TENSOR__INIT);
        p->tensor_type->has_elem_type = type->dtype != PO_DT_NONE;
        p->tensor_type->elem_type = (int32_t)type->dtype;
        p->tensor_type->shape = shape_to_proto(arena, type);
        break;
    case PO_TYPE_SPARSE:
        p->value_case = ONNX__TYPE_PROTO__VALUE_SPARSE_TENSOR_TYPE;
        p->sparse_tensor_type = PO_PROTO_NEW(arena, Onnx__TypeProto__SparseTensor,
                                             ONNX__TYPE_PROTO__SPARSE_TENSOR__INIT);
        p->sparse_tensor_type->has_elem_type = type->dtype != PO_DT_NONE;
        p->sparse_tensor_type->elem_type = (int32_t)type->dtype;
        p->sparse_tensor_type->shape = shape_to_proto(arena, type);
        break;
    case PO_TYPE_SEQUENCE:
        p->value_case = ONNX__TYPE_PROTO__VALUE_SEQUENCE_TYPE;
        p->sequence_type =
            PO_PROTO_NEW(arena, Onnx__TypeProto__Sequence, ONNX__TYPE_PROTO__SEQUENCE__INIT);
        p->sequence_type->elem_type = type->element ? po_type_to_proto(arena, type->element) : NULL;
        break;
    case PO_TYPE_OPTIONAL:
        p->value_case = ONNX__TYPE_PROTO__VALUE_OPTIONAL_TYPE;
        p->optional_type =
            PO_PROTO_NEW(arena, Onnx__TypeProto__Optional, ONNX__TYPE_PROTO__OPTIONAL__INIT);
        p->optional_type->elem_type = type->element ? po_type_to_proto(arena, type->element) : NULL;
        break;
    case PO_TYPE_MAP:
        p->value_case = ONNX__TYPE_PROTO__VALUE_MAP_TYPE;
        p->map_type = PO_PROTO_NEW(arena, Onnx__TypeProto__Map, ONNX__TYPE_PROTO__MAP__INIT);
        p->map_type->has_key_type = type->dtype != PO_DT_NONE;
        p->map_type->key_type = (int32_t)type->dtype;
        p->map_type->value_type = type->element ? po_type_to_proto(arena, type->element) : NULL;
        break;
    case PO_TYPE_OPAQUE:
        p->value_case = ONNX__TYPE_PROTO__VALUE_OPAQUE_TYPE;
        p->opaque_type =
            PO_PROTO_NEW(arena, Onnx__TypeProto__Opaque, ONNX__TYPE_PROTO__OPAQUE__INIT);
        break;
    case PO_TYPE_UNKNOWN:
        break;
    }
    return p;
}
