/* Attributes: type and field must agree; references are bound to the call of a function. */
#include "import/parts.h"

/* Fields of the message that hold values, by type; several may be there in a broken model. */
static uint32_t fields_there(const Onnx__AttributeProto *a) {
    uint32_t there = 0;
    there |= a->has_f ? 1u << PO_ATTR_FLOAT : 0;
    there |= a->has_i ? 1u << PO_ATTR_INT : 0;
    there |= a->has_s ? 1u << PO_ATTR_STRING : 0;
    there |= a->t ? 1u << PO_ATTR_TENSOR : 0;
    there |= a->g ? 1u << PO_ATTR_GRAPH : 0;
    there |= a->sparse_tensor ? 1u << PO_ATTR_SPARSE_TENSOR : 0;
    there |= a->tp ? 1u << PO_ATTR_TYPE : 0;
    there |= a->n_floats ? 1u << PO_ATTR_FLOATS : 0;
    there |= a->n_ints ? 1u << PO_ATTR_INTS : 0;
    there |= a->n_strings ? 1u << PO_ATTR_STRINGS : 0;
    there |= a->n_tensors ? 1u << PO_ATTR_TENSORS : 0;
    there |= a->n_graphs ? 1u << PO_ATTR_GRAPHS : 0;
    there |= a->n_sparse_tensors ? 1u << PO_ATTR_SPARSE_TENSORS : 0;
    there |= a->n_type_protos ? 1u << PO_ATTR_TYPES : 0;
    return there;
}

po_status po_attr_check(po_importer *im, const po_place *place, const Onnx__AttributeProto *a,
                        po_attr_kind *kind) {
    uint32_t there = fields_there(a);
    int type = a->has_type ? (int)a->type : 0;
    if (type < 0 || type > PO_ATTR_TYPES)
        return po_bad(im, place, "unknown attribute type (found %d, limit %d)", type,
                      PO_ATTR_TYPES);
    if (type == PO_ATTR_UNDEFINED) {
        /* Old models leave the type out: the field that is there tells it. */
        if (there & (there - 1))
            return po_bad(im, place, "the attribute holds values of several types");
        for (int k = 1; k <= PO_ATTR_TYPES; k++)
            if (there == 1u << k)
                type = k;
        if (type != PO_ATTR_UNDEFINED) { /* runtimes want it said */
            Onnx__AttributeProto *said = (Onnx__AttributeProto *)(uintptr_t)a;
            said->has_type = 1;
            said->type = (Onnx__AttributeProto__AttributeType)type;
        }
    }
    if (there & ~(1u << type))
        return po_bad(im, place, "the attribute's type and its field differ (found type %d)", type);
    bool needs_value = type == PO_ATTR_TENSOR || type == PO_ATTR_GRAPH ||
                       type == PO_ATTR_SPARSE_TENSOR || type == PO_ATTR_TYPE;
    bool refers = a->ref_attr_name && *a->ref_attr_name;
    if (refers && there)
        return po_bad(im, place, "the attribute has both a value and a reference to '%.100s'",
                      a->ref_attr_name);
    if (needs_value && !there && !refers)
        return po_bad(im, place, "the attribute has no value (type %d)", type);
    *kind = (po_attr_kind)type;
    return PO_OK;
}

static po_status set_body(po_importer *im, const po_place *place, const po_scope *scope,
                          const Onnx__GraphProto *proto, po_graph **body) {
    *body = po_graph_create_body(scope->graph, proto->name ? proto->name : "");
    return po_build_graph(im, place, proto, scope, scope->binding, *body);
}

static po_status set_value(po_importer *im, const po_place *place, const po_scope *scope,
                           const Onnx__AttributeProto *a, po_attr *attr) {
    switch (attr->kind) {
    case PO_ATTR_FLOAT:
        attr->u.f = a->has_f ? a->f : 0;
        return PO_OK;
    case PO_ATTR_INT:
        attr->u.i = a->has_i ? a->i : 0;
        return PO_OK;
    case PO_ATTR_STRING:
        attr->u.s = a->has_s ? (po_bytes){(const char *)a->s.data, a->s.len} : (po_bytes){"", 0};
        return PO_OK;
    case PO_ATTR_TENSOR:
        attr->u.t = po_import_tensor(im, a->t);
        return PO_OK;
    case PO_ATTR_GRAPH:
        return set_body(im, place, scope, a->g, &attr->u.g);
    case PO_ATTR_FLOATS:
        attr->u.floats = a->floats;
        attr->n = (uint32_t)a->n_floats;
        return PO_OK;
    case PO_ATTR_INTS:
        attr->u.ints = a->ints;
        attr->n = (uint32_t)a->n_ints;
        return PO_OK;
    case PO_ATTR_STRINGS: {
        po_bytes *list = PO_NEW_N(im->arena, po_bytes, a->n_strings);
        for (size_t i = 0; i < a->n_strings; i++)
            list[i] = (po_bytes){(const char *)a->strings[i].data, a->strings[i].len};
        attr->u.strings = list;
        attr->n = (uint32_t)a->n_strings;
        return PO_OK;
    }
    case PO_ATTR_TENSORS: {
        const po_tensor **list = PO_NEW_N(im->arena, const po_tensor *, a->n_tensors);
        for (size_t i = 0; i < a->n_tensors; i++)
            list[i] = po_import_tensor(im, a->tensors[i]);
        attr->u.tensors = list;
        attr->n = (uint32_t)a->n_tensors;
        return PO_OK;
    }
    case PO_ATTR_GRAPHS:
        attr->u.graphs = PO_NEW_N(scope->graph->arena, po_graph *, a->n_graphs);
        attr->n = (uint32_t)a->n_graphs;
        for (size_t i = 0; i < a->n_graphs; i++) {
            po_place at = {place, "graph", (int64_t)i, NULL};
            PO_TRY(set_body(im, &at, scope, a->graphs[i], &attr->u.graphs[i]));
        }
        return PO_OK;
    default: /* kept through `origin` */
        attr->u.verbatim = po_message_hash(&a->base);
        return PO_OK;
    }
}

/* A function's own default for an attribute, or NULL; *known tells whether it has the attribute. */
static const Onnx__AttributeProto *parameter(const Onnx__FunctionProto *f, const char *name,
                                             bool *known) {
    *known = true;
    for (size_t i = 0; i < f->n_attribute_proto; i++)
        if (f->attribute_proto[i]->name && strcmp(f->attribute_proto[i]->name, name) == 0)
            return f->attribute_proto[i];
    for (size_t i = 0; i < f->n_attribute; i++)
        if (strcmp(f->attribute[i], name) == 0)
            return NULL;
    *known = false;
    return NULL;
}

static po_status bind(po_importer *im, const po_place *place, const po_scope *scope,
                      const Onnx__AttributeProto *a, po_attr *attr, bool *present) {
    const po_binding *b = scope->binding;
    if (!b)
        return po_bad(im, place, "refers to the attribute '%.100s' of a function, outside of one",
                      a->ref_attr_name);
    bool known;
    const Onnx__AttributeProto *own = parameter(b->function, a->ref_attr_name, &known);
    if (!known)
        return po_bad(im, place,
                      "refers to an attribute that the function does not have "
                      "('%.100s')",
                      a->ref_attr_name);
    if (!b->call) {
        attr->reference = a->ref_attr_name;
        attr->n = 0; /* no items, and no bodies, until it is bound */
        return PO_OK;
    }
    const po_attr *given = po_node_attr(b->call, a->ref_attr_name);
    const char *name = attr->name;
    *present = given || own;
    if (given) {
        *attr = *given;
        attr->name = name;
    } else if (own) {
        attr->origin = own;
        attr->kind = (po_attr_kind)own->type; /* checked with the function */
    }
    if (*present && attr->origin) {
        /* What the IR does not model is written from the message: under the name it has here. */
        Onnx__AttributeProto *renamed =
            po_arena_memdup(im->arena, attr->origin, sizeof(Onnx__AttributeProto));
        renamed->name = a->name;
        attr->origin = renamed;
    }
    return given || !own ? PO_OK : set_value(im, place, scope, own, attr);
}

po_status po_build_attr(po_importer *im, const po_place *place, const po_scope *scope,
                        const Onnx__AttributeProto *a, po_attr *attr, bool *present) {
    if (!a->name || !*a->name)
        return po_bad(im, place, "an attribute has no name");
    po_attr_kind kind;
    PO_TRY(po_attr_check(im, place, a, &kind));
    *attr = (po_attr){.name = a->name, .kind = kind, .n = 1, .origin = a};
    *present = true;
    if (a->ref_attr_name && *a->ref_attr_name)
        return bind(im, place, scope, a, attr, present);
    return set_value(im, place, scope, a, attr);
}
