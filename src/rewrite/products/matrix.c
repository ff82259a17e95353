/* Products by a constant matrix, read; and those of flattened tokens. Exporters that know products
 * of matrices alone write Reshape, product, Reshape, where one product does, which other laws then
 * find. */
#include "rewrite/products/matrix.h"

#include "ops/recipe/recipe.h"
#include "rewrite/passes.h"

bool po_matrix_product_read(const po_graph *graph, const po_node *node,
                            po_matrix_product *product) {
    const bool gemm = node->op == PO_OP_Gemm;
    const po_tensor *w = node->n_in > 1 ? po_graph_constant(graph, node->in[1]) : NULL;
    if (!w || (!gemm && node->op != PO_OP_MatMul) || w->rank != 2 || w->dtype != PO_F32)
        return false;
    const bool rows = gemm && po_op_int(graph, node, "transB");
    *product = (po_matrix_product){.matrix = node->in[1],
                                   .bias = PO_NONE,
                                   .rows = rows,
                                   .in = w->dims[rows ? 1 : 0],
                                   .out = w->dims[rows ? 0 : 1]};
    if (!gemm)
        return true;
    if (node->n_in > 2 && node->in[2] != PO_NONE) {
        const po_tensor *b = po_graph_constant(graph, node->in[2]);
        if (!b || b->rank < 1 || b->count != product->out || b->dims[b->rank - 1] != product->out ||
            po_node_float(node, "beta", 1) != 1.0f)
            return false;
        product->bias = node->in[2];
    }
    return po_node_float(node, "alpha", 1) == 1.0f && !po_op_int(graph, node, "transA") &&
           po_op_version(graph, node) >= 7;
}

bool po_matrix_product_in_blocks(const po_matrix_product *product) {
    enum { LEAST = 16, STEP = 4 };
    return product->in >= LEAST && product->out >= LEAST && product->in % STEP == 0 &&
           product->out % STEP == 0;
}

po_value_id po_matrix_product_pointwise(po_graph *graph, po_arena *arena,
                                        const po_matrix_product *product) {
    const po_recipe *w = po_recipe_doubles(graph, arena, product->matrix);
    const char *moved = product->rows ? "o i -> o i 1 1" : "i o -> o i 1 1";
    return po_add_recipe(graph, NULL, PO_F32, po_recipe_rearrange(arena, w, moved, 0, NULL));
}

bool po_unflatten_product(po_rewriting *r, po_graph *graph, po_node_id id) {
    const po_node *back = &graph->nodes[id];
    const po_node *n = back->op == PO_OP_Reshape ? po_graph_producer(graph, back->in[0]) : NULL;
    po_matrix_product p;
    if (!n || !po_read_once(graph, back->in[0]) || !po_matrix_product_read(graph, n, &p))
        return false;
    const po_node *flat = po_made_by(graph, n->in[0], PO_OP_Reshape);
    if (!flat || po_rank_of(graph, n->in[0]) != 2 || po_dim_of(graph, flat->in[0], -1) != p.in ||
        po_dim_of(graph, back->out[0], -1) != p.out || po_rank_of(graph, flat->in[0]) < 3 ||
        !po_same_dims_but(graph, flat->in[0], back->out[0], po_rank_of(graph, flat->in[0]) - 1) ||
        !po_rearrangeable(graph, flat->in[0]))
        return false;
    const po_value_id y = back->out[0], x = flat->in[0];
    const po_type type = graph->values[y].type;
    if (p.rows) {
        const po_recipe *w = po_recipe_doubles(graph, r->scratch, p.matrix);
        w = po_recipe_transpose(r->scratch, w, (const uint32_t[]){1, 0});
        p.matrix = po_add_recipe(graph, NULL, PO_F32, w);
        if (p.matrix == PO_NONE)
            return false;
    }
    po_value_id made = po_add_op(graph, id, PO_OP_MatMul, 2, (po_value_id[]){x, p.matrix}, &type);
    if (p.bias != PO_NONE) {
        const po_value_id bias = po_add_reshaped(graph, p.bias, 1, &p.out);
        made = po_add_op(graph, id, PO_OP_Add, 2, (po_value_id[]){made, bias}, &type);
    }
    po_substitute(graph, y, made);
    return true;
}
