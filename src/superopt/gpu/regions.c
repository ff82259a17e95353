/* What a node is to a region on a GPU. */
#include "ops/work.h"
#include "superopt/gpu/plan.h"

/* Products of so few rows are bound by their weight's bytes: a library has nothing to add there,
 * and what stands around them can be done on the way. */
enum { FEW_ROWS = 32 };

/* Rows of a product with a weight; 0: no product with a weight. */
static double weight_rows(const po_graph *graph, const po_node *node) {
    po_work work;
    if (!po_op_is_product(node->op) || !po_work_of(graph, node, &work) || !work.product)
        return 0;
    if (po_graph_constant(graph, node->in[1]))
        return work.shape.rows * work.shape.times;
    /* The weight on the left: columns are the rows. */
    return po_graph_constant(graph, node->in[0]) ? work.shape.columns * work.shape.times : 0;
}

po_region_part po_gpu_part(void *user, const po_graph *graph, const po_node *node) {
    if (po_op_has(node->op, PO_OPF_WINDOW)) /* the libraries' */
        return PO_REGION_NOT;
    /* What kernels of a block each gain by, as measured: no property of the operators. */
    switch (node->op) {
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
