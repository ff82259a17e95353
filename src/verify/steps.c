/* Operators that cut values to steps, and of them those that round what they are given. */
#include "verify/verify_internal.h"

#include "ops/op.h"

bool po_verify_has_steps(const po_graph *g) {
    for (uint32_t i = 0; i < g->n_nodes; i++) {
        const po_node *node = &g->nodes[i];
        if (node->removed)
            continue;
        const po_op_row *row = po_op_row_of(node->op);
        if (row && row->flags & PO_OPF_JUMPS)
            return true;
        for (uint32_t a = 0; a < node->n_attr; a++)
            if (node->attr[a].kind == PO_ATTR_GRAPH || node->attr[a].kind == PO_ATTR_GRAPHS)
                return true; /* bodies hold constants of their own */
        if (node->op == PO_OP_Cast && node->out[0] != PO_NONE &&
            po_dtype_class_of(g->values[node->out[0]].type.dtype) != PO_CLASS_FLOAT)
            return true;
    }
    return false;
}

bool po_verify_quantises(const po_graph *g) {
    for (uint32_t i = 0; i < g->n_nodes; i++) {
        const po_node *node = &g->nodes[i];
        if (!node->removed && (node->op == PO_OP_Round || node->op == PO_OP_QuantizeLinear ||
                               node->op == PO_OP_DynamicQuantizeLinear))
            return true;
    }
    return false;
}
