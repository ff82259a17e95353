/* Reshapes to shapes that are computed from lengths: where each length is a number, or one that the
 * input has at the same place, a Reshape can be told so, and nothing is left to compute. And
 * lengths that an input of the graph has are read of it, so that what they were read of before has
 * a reader less. */
#include "ops/recipe/recipe.h"
#include "rewrite/passes.h"

bool po_copy_lengths(po_rewriting *r, po_graph *graph, po_node_id id) {
    (void)r;
    const po_node *n = &graph->nodes[id];
    int64_t shape[PO_MAX_RANK];
    if (n->op != PO_OP_Reshape || n->n_in != 2 || n->in[0] == PO_NONE || n->in[1] == PO_NONE ||
        po_graph_constant(graph, n->in[1]))
        return false;
    const po_type *x = &graph->values[n->in[0]].type, *y = &graph->values[n->out[0]].type;
    if (!po_told_shape(x, y, PO_NONE, shape))
        return false;
    /* A length of 0 that was told as such is one that is copied. */
    if (po_op_int(graph, n, "allowzero"))
        po_node_set_int(graph, id, "allowzero", 0);
    po_graph_set_input(graph, id, 1, po_add_i64s(graph, NULL, y->rank, shape));
    return true;
}

/* An input of the graph that is as long along an axis; PO_NONE. */
static po_value_id input_as_long(const po_graph *graph, po_dim length, uint32_t *axis) {
    for (uint32_t i = 0; i < graph->n_inputs; i++) {
        const po_type *t = &graph->values[graph->inputs[i]].type;
        for (uint32_t d = 0; t->kind == PO_TYPE_TENSOR && t->has_rank && d < t->rank; d++)
            if (po_dim_same(t->dims[d], length)) {
                *axis = d;
                return graph->inputs[i];
            }
    }
    return PO_NONE;
}

bool po_lengths_of_input(po_rewriting *r, po_graph *graph, po_node_id id) {
    (void)r;
    const po_node *n = &graph->nodes[id];
    const po_node *shape = n->op == PO_OP_Gather ? po_made_by(graph, n->in[0], PO_OP_Shape) : NULL;
    const po_tensor *index = shape ? po_graph_constant(graph, n->in[1]) : NULL;
    const po_partial *p = index ? graph->values[n->out[0]].partial : NULL;
    if (graph->parent || !p || p->n != 1 || index->count != 1 || index->rank > 1 ||
        p->items[0].value >= 0 || graph->values[shape->in[0]].is_input)
        return false;
    uint32_t axis;
    const po_value_id input = input_as_long(graph, p->items[0], &axis);
    if (input == PO_NONE)
        return false;
    const int64_t rank = po_rank_of(graph, input), at = axis;
    const po_type list = po_type_tensor_i64(graph->arena, PO_I64, 1, &rank);
    po_value_id place = po_add_i64s(graph, NULL, 1, &at);
    if (index->rank == 0)
        place = po_add_reshaped(graph, place, 0, NULL);
    po_graph_set_input(graph, id, 0, po_add_op(graph, id, PO_OP_Shape, 1, &input, &list));
    po_graph_set_input(graph, id, 1, place);
    return true;
}
