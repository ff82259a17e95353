/* Rows of a softmax of which some elements are hidden, and who may see what becomes of those. */
#include "ops/rewrite.h"

#include <math.h>

/* Nodes that one question looks at. */
enum { MOST_VISITS = 64 };

static bool only_factors(const po_graph *graph, po_value_id value, int *visits) {
    const po_value *v = &graph->values[value];
    if (v->n_outputs || v->n_uses == 0)
        return false;
    for (uint32_t i = 0; i < v->n_uses; i++) {
        const po_use use = v->uses[i];
        if (use.input == PO_USE_CAPTURE || --*visits < 0)
            return false;
        const po_node *n = &graph->nodes[use.node];
        if (n->op == PO_OP_MatMul || (n->op == PO_OP_Gemm && use.input < 2))
            continue;
        const bool passes_on = po_op_has(n->op, PO_OPF_SHAPE_ONLY) || n->op == PO_OP_Transpose;
        if (!passes_on || use.input != 0 || !only_factors(graph, n->out[0], visits))
            return false;
    }
    return true;
}

bool po_only_factors(const po_graph *graph, po_value_id value) {
    int visits = MOST_VISITS;
    return only_factors(graph, value, &visits);
}

/* Floats so large that an exponential of what is moved by them is no normal number. */
static const double hiding = 87;

static bool has_hiding(const po_tensor *t) {
    if (t->dtype != PO_F32)
        return false;
    for (int64_t i = 0; i < t->count; i++)
        if (fabs(po_tensor_f64(t, i)) >= hiding)
            return true;
    return false;
}

static bool masked(const po_graph *graph, po_value_id value, int *visits) {
    if (value == PO_NONE || --*visits < 0)
        return false;
    const po_tensor *t = po_graph_constant(graph, value);
    if (t)
        return has_hiding(t);
    const po_node *n = po_graph_producer(graph, value);
    if (!n || n->op == PO_OP_Softmax)
        return false;
    if (n->op == PO_OP_ConstantOfShape) {
        const po_attr *a = po_node_attr(n, "value");
        return a && a->kind == PO_ATTR_TENSOR && has_hiding(a->u.t);
    }
    if (!po_op_has(n->op, PO_OPF_ELEMENTWISE) && !po_op_has(n->op, PO_OPF_MOVES_DATA) &&
        !po_op_has(n->op, PO_OPF_SHAPE_ONLY))
        return false;
    for (uint32_t k = 0; k < n->n_in; k++)
        if (masked(graph, n->in[k], visits))
            return true;
    return false;
}

bool po_looks_masked(const po_graph *graph, po_value_id value) {
    int visits = MOST_VISITS;
    return masked(graph, value, &visits);
}
