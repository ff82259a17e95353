/* R/T forms of nodes and of chains of nodes. */
#include "ops/move/rt.h"
#include "ops/sem/sem.h"

po_status po_rt_of_node(po_ctx *ctx, po_arena *arena, const po_graph *graph, const po_node *node,
                        uint32_t output, const po_rt **rt) {
    *rt = NULL;
    if (!po_op_has(node->op, PO_OPF_MOVES_DATA) || output >= node->n_out || !node->n_in ||
        node->in[0] == PO_NONE || node->out[output] == PO_NONE)
        return PO_OK;
    const po_type *x = &graph->values[node->in[0]].type,
                  *y = &graph->values[node->out[output]].type;
    if (!po_type_static(x) || !po_type_static(y) || x->dtype != y->dtype)
        return PO_OK;
    po_sum **sums = PO_NEW_N(arena, po_sum *, node->n_out);
    po_status status = po_sem_of(ctx, arena, graph, node, sums);
    if (status == PO_UNSUPPORTED)
        return PO_OK;
    PO_TRY(status);
    if (sums[output] && sums[output]->n_operands && sums[output]->operands[0].input == 0)
        *rt = po_rt_of_sum(arena, sums[output]);
    return PO_OK;
}

po_status po_rt_of_chain(po_ctx *ctx, po_arena *arena, const po_graph *graph, po_value_id value,
                         po_value_id *root, const po_rt **rt) {
    int64_t dims[PO_RT_MAX_RANK];
    const po_type *t = &graph->values[value].type;
    *root = value;
    *rt = NULL;
    if (!po_type_static(t) || t->rank > PO_RT_MAX_RANK)
        return PO_OK;
    for (uint32_t i = 0; i < t->rank; i++)
        dims[i] = t->dims[i].value;
    *rt = po_rt_identity(arena, t->rank, dims);
    for (const po_node *n; *rt && (n = po_graph_producer(graph, *root));) {
        const po_rt *step;
        PO_TRY(po_rt_of_node(ctx, arena, graph, n, graph->values[*root].output, &step));
        const po_rt *longer = step ? po_rt_compose(arena, step, *rt) : NULL;
        if (!longer)
            break;
        *rt = longer;
        *root = n->in[0];
    }
    return PO_OK;
}
