/* Sequences and optionals: types only. */
#include "ops/families/rules.h"
#include "ops/shape.h"

static po_type sequence_of(po_arena *arena, const po_type *element) {
    return (po_type){.kind = PO_TYPE_SEQUENCE,
                     .element = po_arena_memdup(arena, element, sizeof *element)};
}

/* The element type of input k where it is a sequence, else NULL. */
static const po_type *element_of(const po_infer *infer, uint32_t k) {
    const po_type *t = k < infer->n_in ? infer->in[k] : NULL;
    return t && t->kind == PO_TYPE_SEQUENCE ? t->element : NULL;
}

po_status po_infer_sequence_construct(po_infer *infer) {
    const po_type *first = po_infer_tensor(infer, 0);
    if (!first)
        return PO_OK;
    po_type element = *first;
    for (uint32_t k = 1; k < infer->n_in; k++) {
        const po_type *t = po_infer_tensor(infer, k);
        if (!t)
            return PO_OK;
        element = po_type_common(infer->arena, &element, t);
    }
    infer->out[0] = sequence_of(infer->arena, &element);
    return PO_OK;
}

po_status po_infer_sequence_empty(po_infer *infer) {
    int64_t dtype = po_node_int(infer->node, "dtype", PO_F32);
    po_type element =
        po_type_unranked(dtype > 0 && dtype < PO_DT_COUNT ? (po_dtype)dtype : PO_DT_NONE);
    infer->out[0] = sequence_of(infer->arena, &element);
    return PO_OK;
}

po_status po_infer_sequence_insert(po_infer *infer) {
    const po_type *element = element_of(infer, 0), *added = po_infer_tensor(infer, 1);
    if (!element || !added)
        return PO_OK;
    po_type both = po_type_common(infer->arena, element, added);
    infer->out[0] = sequence_of(infer->arena, &both);
    return PO_OK;
}

po_status po_infer_sequence_at(po_infer *infer) {
    const po_type *element = element_of(infer, 0);
    if (element)
        infer->out[0] = *element;
    return PO_OK;
}

po_status po_infer_sequence_length(po_infer *infer) {
    po_infer_set(infer, 0, PO_I64, 0, NULL);
    return PO_OK;
}

po_status po_infer_sequence_map(po_infer *infer) {
    po_graph *body = po_node_body(infer->node, "body");
    if (!body || body->n_inputs != infer->n_in || body->n_outputs != infer->n_out)
        return po_rule_bad(infer->ctx, infer->node,
                           "the body's inputs and outputs do not fit the node's");
    for (uint32_t k = 0; k < infer->n_in; k++) {
        const po_type *t = element_of(infer, k);
        t = t ? t : infer->in[k];
        if (t)
            po_infer_merge(body, body->inputs[k], t);
    }
    PO_TRY(po_infer_body(infer, body));
    for (uint32_t k = 0; k < infer->n_out; k++)
        infer->out[k] = sequence_of(infer->arena, &body->values[body->outputs[k]].type);
    return PO_OK;
}

po_status po_infer_concatfromsequence(po_infer *infer) {
    const po_type *element = element_of(infer, 0);
    bool fresh = po_op_int(infer->graph, infer->node, "new_axis") != 0;
    uint32_t at, rank;
    if (!element || element->kind != PO_TYPE_TENSOR)
        return PO_OK;
    po_infer_set_unranked(infer, 0, element->dtype);
    if (!element->has_rank || element->rank >= PO_MAX_RANK)
        return PO_OK;
    rank = element->rank + fresh;
    PO_TRY(po_rule_axis(infer->ctx, infer->node, po_op_int(infer->graph, infer->node, "axis"), rank,
                        &at));
    po_dim *dims = PO_NEW_N(infer->arena, po_dim, rank);
    for (uint32_t i = 0; i < rank; i++)
        dims[i] = i == at           ? PO_DIM_UNKNOWN
                  : fresh && i > at ? element->dims[i - 1]
                                    : element->dims[i];
    po_infer_set(infer, 0, element->dtype, rank, dims);
    return PO_OK;
}

po_status po_infer_splittosequence(po_infer *infer) {
    const po_type *x = po_infer_tensor(infer, 0);
    bool given = infer->n_in > 1 && infer->in[1];
    bool keep = given || po_op_int(infer->graph, infer->node, "keepdims") != 0;
    uint32_t at, rank = 0;
    if (!x)
        return PO_OK;
    po_type element = po_type_unranked(x->dtype);
    if (x->has_rank) {
        PO_TRY(po_rule_axis(infer->ctx, infer->node, po_op_int(infer->graph, infer->node, "axis"),
                            x->rank, &at));
        po_dim *dims = PO_NEW_N(infer->arena, po_dim, x->rank);
        for (uint32_t i = 0; i < x->rank; i++)
            if (i != at)
                dims[rank++] = x->dims[i];
            else if (keep)
                dims[rank++] = given ? PO_DIM_UNKNOWN : PO_DIM(1);
        element = po_type_tensor(infer->arena, x->dtype, rank, dims);
    }
    infer->out[0] = sequence_of(infer->arena, &element);
    return PO_OK;
}

/* --- optionals --- */

po_status po_infer_optional(po_infer *infer) {
    if (infer->n_in && infer->in[0] && infer->in[0]->kind != PO_TYPE_UNKNOWN)
        infer->out[0] = (po_type){.kind = PO_TYPE_OPTIONAL, .element = infer->in[0]};
    return PO_OK;
}

po_status po_infer_optional_get(po_infer *infer) {
    const po_type *t = infer->in[0];
    if (t && t->kind == PO_TYPE_OPTIONAL && t->element)
        infer->out[0] = *t->element;
    else if (t && t->kind != PO_TYPE_OPTIONAL)
        infer->out[0] = *t;
    return PO_OK;
}

po_status po_infer_optional_has(po_infer *infer) {
    po_infer_set(infer, 0, PO_BOOL, 0, NULL);
    return PO_OK;
}

/* --- attributes --- */

const po_attr_def po_attrs_concatfromsequence[] = {
    {.name = "axis", .kind = PO_ATTR_INT, .since = 11, .required = true},
    {.name = "new_axis", .kind = PO_ATTR_INT, .since = 11, .has_default = true, .i = 0},
    {0},
};
const po_attr_def po_attrs_optional[] = {
    {.name = "type", .kind = PO_ATTR_TYPE, .since = 15},
    {0},
};
const po_attr_def po_attrs_sequenceempty[] = {
    {.name = "dtype", .kind = PO_ATTR_INT, .since = 11},
    {0},
};
const po_attr_def po_attrs_splittosequence[] = {
    {.name = "axis", .kind = PO_ATTR_INT, .since = 11, .has_default = true, .i = 0},
    {.name = "keepdims", .kind = PO_ATTR_INT, .since = 11, .has_default = true, .i = 1},
    {0},
};
