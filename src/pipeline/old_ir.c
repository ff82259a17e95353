/* Before IR version 4 every initialiser had to be an input too: constants that are no inputs become
 * Constant nodes. */
#include "pipeline/old_ir.h"

#include "ops/recipe/recipe.h"

enum { FIRST_FREE_IR = 4 };

bool po_old_ir_is(const po_graph *graph) {
    return graph->model->ir_version < FIRST_FREE_IR;
}

static po_status write_as_nodes(po_ctx *ctx, po_graph *graph, void *user) {
    (void)ctx;
    (void)user;
    po_name_sources(graph);
    for (uint32_t i = 0; i < graph->n_initializers; i++) {
        po_value_id old = graph->initializers[i];
        const po_tensor *tensor = graph->values[old].constant;
        if (graph->values[old].is_input || !tensor ||
            (graph->values[old].n_uses == 0 && graph->values[old].n_outputs == 0))
            continue;
        po_type type = po_tensor_type(graph->arena, tensor);
        po_value_id fresh = po_graph_add_value(graph, NULL, &type);
        po_attr value = {.name = "value", .kind = PO_ATTR_TENSOR, .n = 1, .u.t = tensor};
        po_node_spec spec = {.op = PO_OP_Constant,
                             .op_type = "Constant",
                             .n_out = 1,
                             .n_attr = 1,
                             .out = &fresh,
                             .attr = &value};
        po_graph_add_node(graph, &spec);
        graph->values[fresh].constant = tensor;
        graph->values[fresh].recipe = graph->values[old].recipe;
        po_graph_replace_uses(graph, old, fresh);
    }
    return PO_OK;
}

void po_old_ir_constants(po_ctx *ctx, po_graph *graph) {
    if (!po_old_ir_is(graph))
        return;
    po_graph_walk(ctx, graph, write_as_nodes, NULL);
    po_graph_sweep(graph);
}
