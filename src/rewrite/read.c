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

bool po_conv_at(const po_deriving *d, po_node_id id, po_conv *c) {
    return d->weight ? po_read_conv(d->from, id, c)
                     : po_conv_is(&d->from->nodes[id]) && po_conv_view(d->from, id, c) &&
                           po_rearrangeable(d->from, c->x);
}

bool po_conv_making(const po_deriving *d, po_value_id v, po_conv *c) {
    const po_node *n = po_made_by_conv(d->from, v);
    return n && po_conv_at(d, (po_node_id)(n - d->from->nodes), c);
}

static bool is_weight(const po_deriving *d, po_value_id v) {
    return d->weight ? d->weight[v] : po_graph_constant(d->from, v) != NULL;
}

bool po_conv_ready(const po_deriving *d, const po_conv *c) {
    return is_weight(d, c->w) && (c->b == PO_NONE || is_weight(d, c->b));
}
