/* What a node is to a region on a GPU. */
#include "superopt/gpu/plan.h"

/* Products of so few rows are bound by their weight's bytes: a library has nothing to add there,
 * and what stands around them can be done on the way. */
enum { FEW_ROWS = 32 };

/* Rows of a product with a weight; 0: no product with a weight. */
static int64_t weight_rows(const po_graph *graph, const po_node *node) {
    if ((node->op != PO_OP_MatMul && node->op != PO_OP_Gemm) || node->n_in < 2)
        return 0;
    bool a = po_graph_constant(graph, node->in[0]), b = po_graph_constant(graph, node->in[1]);
    const po_type *type = &graph->values[node->out[0]].type;
    if (!a && !b)
        return 0;
    int64_t count = po_type_count(type);
    int64_t last = type->rank ? type->dims[type->rank - 1].value : 1;
    if (a && type->rank > 1) /* the weight on the left: columns are the rows */
        return last;
    return last > 0 ? count / last : count;
}

po_region_part po_gpu_part(void *user, const po_graph *graph, const po_node *node) {
    switch (node->op) {
    case PO_OP_Conv:
    case PO_OP_ConvTranspose:
    case PO_OP_MaxPool:
    case PO_OP_AveragePool:
    case PO_OP_Pad:
    case PO_OP_Resize:
        return PO_REGION_NOT;
    case PO_OP_Cast: {
        po_region_part part = po_lower_part_typed(user, graph, node);
        return part == PO_REGION_NOT ? part : PO_REGION_MOVE;
    }
    case PO_OP_Softmax:
    case PO_OP_InstanceNormalization:
    case PO_OP_LayerNormalization:
    case PO_OP_RMSNormalization: {
        po_region_part part = po_lower_part_typed(user, graph, node);
        return part == PO_REGION_NOT ? part : PO_REGION_MAP;
    }
    default:
        return weight_rows(graph, node) > FEW_ROWS ? PO_REGION_NOT
                                                   : po_lower_part_typed(user, graph, node);
    }
}
