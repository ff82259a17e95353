/* Which values no input can make negative, from the operators that make them. */
#include "ops/rewrite.h"

/* Nodes that one question looks at: values read twice would double the work at every step. */
enum { MOST_VISITS = 64 };

static bool never_negative(const po_graph *graph, po_value_id value, int *visits);

static bool inputs(const po_graph *graph, const po_node *n, bool all, int *visits) {
    for (uint32_t k = 0; k < n->n_in; k++)
        if (never_negative(graph, n->in[k], visits) != all)
            return !all;
    return all;
}

static bool constant(const po_tensor *t) {
    for (int64_t i = 0; i < t->count; i++)
        if (!(po_tensor_f64(t, i) >= 0))
            return false;
    return true;
}

/* A dilated window may lie beside the map with all of its taps: the largest of none is -inf. */
static bool is_dilated(const po_node *n) {
    uint32_t axes;
    const int64_t *dilation = po_node_ints(n, "dilations", &axes);
    for (uint32_t i = 0; dilation && i < axes; i++)
        if (dilation[i] != 1)
            return true;
    return false;
}

static bool never_negative(const po_graph *graph, po_value_id value, int *visits) {
    if (value == PO_NONE || --*visits < 0 || !po_rearrangeable(graph, value))
        return false;
    const po_tensor *t = po_graph_constant(graph, value);
    if (t)
        return constant(t);
    const po_node *n = po_graph_producer(graph, value);
    if (!n || n->n_in == 0 || (n->out[0] != value && n->op != PO_OP_Split))
        return false;
    double low;
    switch ((po_op)n->op) {
    case PO_OP_Relu:
    case PO_OP_Sigmoid:
    case PO_OP_HardSigmoid:
    case PO_OP_Abs:
    case PO_OP_Exp:
    case PO_OP_Softmax:
    case PO_OP_Softplus:
        return true;
    case PO_OP_Clip: /* bounds that cross give the upper one */
        return n->n_in == 2 && po_scalar_constant(graph, n->in[1], &low) && low >= 0;
    case PO_OP_Add:
    case PO_OP_Mul:
    case PO_OP_Sum:
    case PO_OP_Min:
    case PO_OP_Concat:
        return inputs(graph, n, true, visits);
    case PO_OP_Max:
        return inputs(graph, n, false, visits);
    case PO_OP_MaxPool:
    case PO_OP_AveragePool:
        return !is_dilated(n) && never_negative(graph, n->in[0], visits);
    case PO_OP_GlobalAveragePool:
    case PO_OP_GlobalMaxPool:
    case PO_OP_Identity:
    case PO_OP_Reshape:
    case PO_OP_Flatten:
    case PO_OP_Squeeze:
    case PO_OP_Unsqueeze:
    case PO_OP_Transpose:
    case PO_OP_Slice:
    case PO_OP_Split:
        return never_negative(graph, n->in[0], visits);
    default:
        return false;
    }
}

bool po_never_negative(const po_graph *graph, po_value_id value) {
    int visits = MOST_VISITS;
    return never_negative(graph, value, &visits);
}
