/* If with a constant condition: the nodes of the branch taken move into the graph around it. */
#include "rewrite/passes.h"

#include "ops/recipe/recipe.h"

static po_graph *branch(const po_node *node, bool condition) {
    const po_attr *a = po_node_attr(node, condition ? "then_branch" : "else_branch");
    return a && a->kind == PO_ATTR_GRAPH && !a->reference ? a->u.g : NULL;
}

bool po_take_branch(po_rewriting *r, po_graph *graph, po_node_id id) {
    const po_node *node = &graph->nodes[id];
    double condition;
    if (node->op != PO_OP_If || node->n_in != 1 ||
        !po_scalar_constant(graph, node->in[0], &condition))
        return false;
    po_graph *body = branch(node, condition != 0);
    if (!body || body->n_outputs != node->n_out)
        return false;
    uint32_t n_out = node->n_out;
    const po_value_id *outs = po_arena_memdup(r->scratch, node->out, n_out * sizeof *outs);
    po_name_sources(body); /* its constants get other names */
    const po_value_id *results = po_graph_absorb_body(graph, id, body);
    for (uint32_t i = 0; i < n_out; i++)
        if (outs[i] != PO_NONE)
            po_substitute(graph, outs[i], results[i]);
    return true;
}
