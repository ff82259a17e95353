/* Convolutions as derivations see them. */
#include "ops/conv_view.h"
#include "rewrite/deriving.h"

static bool all_known(const po_graph *g, const po_conv *c) {
    for (uint32_t i = 0; i < c->n; i++)
        if (c->size[i] < 1 || c->to[i] < 1)
            return false;
    return c->batch > 0 && po_rearrangeable(g, c->x);
}

bool po_read_conv(const po_graph *g, po_node_id id, po_conv *c) {
    return po_conv_is(&g->nodes[id]) && po_conv_view(g, id, c) && all_known(g, c) &&
           po_conv_fits(c);
}

bool po_read_conv_transpose(const po_graph *g, po_node_id id, po_conv *c) {
    return g->nodes[id].op == PO_OP_ConvTranspose && po_conv_view(g, id, c) && all_known(g, c);
}
