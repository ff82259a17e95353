/* Finds such a layer from its Relu upwards, static shapes and constant weights required, and states
 * it as an outline, to become one call. */
#include "dense.h"

#include "ops/rewrite.h"

bool dense_at(const po_graph *g, po_node_id relu, dense *found) {
    const po_node *r = &g->nodes[relu];
    if (r->removed || r->op != PO_OP_Relu)
        return false;
    const po_node *add = po_made_alone_by(g, r->in[0], PO_OP_Add);
    const po_node *product = add ? po_made_alone_by(g, add->in[0], PO_OP_MatMul) : NULL;
    uint32_t rank_x, rank_w;
    const po_dim *x = product ? po_static_dims(g, product->in[0], &rank_x) : NULL;
    const po_dim *w = product ? po_static_dims(g, product->in[1], &rank_w) : NULL;
    if (!x || !w || rank_x != 2 || rank_w != 2 || !po_graph_constant(g, product->in[1]) ||
        !po_graph_constant(g, add->in[1]))
        return false;
    *found =
        (dense){.nodes = {relu, (po_node_id)(add - g->nodes), (po_node_id)(product - g->nodes)},
                .in = {product->in[0], product->in[1], add->in[1]},
                .out = {r->out[0]},
                .d = {x[0].value, x[1].value, w[1].value},
                .name = r->name};
    return true;
}

po_outline dense_outline(const dense *layer, const char *name) {
    return (po_outline){.domain = PO_KERNEL_DOMAIN,
                        .name = name,
                        .node_name = layer->name,
                        .n_nodes = 3,
                        .n_in = 3,
                        .n_out = 1,
                        .nodes = layer->nodes,
                        .in = layer->in,
                        .out = layer->out};
}
