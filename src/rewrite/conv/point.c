/* Convolutions of single taps as matrix products over the channels, and back. Equal everywhere. */
#include "rewrite/deriving.h"

/* Side condition: kernel 1, no padding; a stride drops what it leaves out first. */
po_status po_derive_point(po_deriving *d, po_node_id id) {
    po_conv c;
    if (!po_read_conv(d->from, id, &c) || po_conv_taps(&c) != 1 || po_conv_padded(&c))
        return PO_OK;
    const bool grouped = c.group > 1;
    const po_rt_size *sizes = PO_SIZES({"g", &c.group}, {"h", c.to}, {"s", c.stride});
    po_derive_begin(d, id);
    po_value_id x = po_mk_rearrange(
        d, c.x, grouped ? "n (g c) h*s.. -> n g c (h..)" : "n c h*s.. -> n c (h..)", c.n, sizes);
    po_value_id w =
        po_mk_rearrange(d, c.w, grouped ? "(g o) c 1.. -> g o c" : "o c 1.. -> o c", c.n, sizes);
    x = po_mk_rearrange(d, po_mk_matmul(d, w, x),
                        grouped ? "n g o (h..) -> n (g o) h.." : "n o (h..) -> n o h..", c.n,
                        sizes);
    return po_derive_done(d, po_mk_biased(d, x, c.b, c.n), NULL);
}

/* x [.., M, K] times w [K, N] as a pointwise convolution of [B, K, M, 1]. Side condition: w is a
 * weight of rank 2. */
po_status po_derive_as_conv(po_deriving *d, po_node_id id) {
    const po_node *node = &d->from->nodes[id];
    int64_t x[PO_MOST_DIMS], w[PO_MOST_DIMS];
    uint32_t rx, rw;
    if (node->op != PO_OP_MatMul || !po_dims_of(d->from, node->in[0], &rx, x) ||
        !po_dims_of(d->from, node->in[1], &rw, w) || rx < 2 || rw != 2 || !d->weight[node->in[1]] ||
        d->weight[node->in[0]] || !po_rearrangeable(d->from, node->in[0]))
        return PO_OK;
    po_derive_begin(d, id);
    const po_value_id in[2] = {node->in[0], node->in[1]};
    const po_conv c = po_conv_of_one_tap(PO_F32, 2, w[0], w[1], 1);
    po_value_id a = po_mk_rearrange(d, in[0], "n.. m k -> (n..) k m 1", rx - 2, NULL);
    po_value_id v = po_mk_rearrange(d, in[1], "k o -> o k 1 1", 0, NULL);
    a = po_mk_conv(d, a, v, PO_NONE, &c);
    a = po_mk_rearrange(d, a, "(n..) o m 1 -> n.. m o", rx - 2, PO_SIZES({"n", x}));
    return po_derive_done(d, a, NULL);
}
