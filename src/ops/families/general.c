/* Operators without arithmetic of their own: Constant, Identity. */
#include "ops/families/rules.h"

po_status po_infer_same(po_infer *infer) {
    if (infer->in[0])
        infer->out[0] = *infer->in[0];
    infer->out_partial[0] = infer->partial[0];
    return PO_OK;
}

po_status po_ref_identity(po_ref *ref) {
    po_array *same = po_arena_memdup(ref->arena, ref->in[0], sizeof *ref->in[0]);
    ref->out[0] = same;
    return PO_OK;
}

const po_attr_def po_attrs_constant[] = {
    {.name = "value", .kind = PO_ATTR_TENSOR, .since = 1, .until = 10, .required = true},
    {.name = "value", .kind = PO_ATTR_TENSOR, .since = 11},
    {.name = "sparse_value", .kind = PO_ATTR_SPARSE_TENSOR, .since = 11},
    {.name = "value_float", .kind = PO_ATTR_FLOAT, .since = 12},
    {.name = "value_floats", .kind = PO_ATTR_FLOATS, .since = 12},
    {.name = "value_int", .kind = PO_ATTR_INT, .since = 12},
    {.name = "value_ints", .kind = PO_ATTR_INTS, .since = 12},
    {.name = "value_string", .kind = PO_ATTR_STRING, .since = 12},
    {.name = "value_strings", .kind = PO_ATTR_STRINGS, .since = 12},
    {0},
};

/* Import attaches the tensor to the value; the rules only read it back. */
static const po_tensor *constant_of(const po_graph *graph, const po_node *node) {
    return node->out[0] == PO_NONE ? NULL : graph->values[node->out[0]].constant;
}

po_status po_infer_constant(po_infer *infer) {
    const po_tensor *t = constant_of(infer->graph, infer->node);
    if (t)
        infer->out[0] = po_tensor_type(infer->arena, t);
    return PO_OK;
}

po_status po_ref_constant(po_ref *ref) {
    const po_tensor *t = constant_of(ref->graph, ref->node);
    if (!t)
        return PO_UNSUPPORTED;
    return po_array_from_tensor(ref->ctx, ref->arena, t, &ref->out[0]);
}
