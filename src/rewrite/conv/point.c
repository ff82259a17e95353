/* Convolutions of single taps as matrix products over the channels, and back. Equal everywhere. */
#include "rewrite/deriving.h"

/* Side condition: kernel 1, no padding; a stride drops what it leaves out first. */
po_status po_derive_point(po_deriving *d, po_node_id id) {
    po_conv c;
    if (!po_read_conv(d->from, id, &c) || po_conv_taps(&c) != 1 || po_conv_padded(&c))
        return PO_OK;
    int64_t area = 1, g = c.group, dims[PO_MOST_DIMS] = {c.batch, c.out};
    for (uint32_t i = 0; i < c.n; i++) {
        area *= c.to[i];
        dims[2 + i] = c.to[i];
    }
    po_derive_begin(d, id);
    po_value_id x = c.x, w = c.w;
    for (uint32_t i = 0; i < c.n; i++)
        x = po_mk_slice(d, x, i + 2, 0, c.to[i], c.stride[i]);
    if (g == 1) {
        x = po_mk_reshape(d, x, 3, (int64_t[]){c.batch, c.in, area});
        w = po_mk_reshape(d, w, 2, (int64_t[]){c.out, c.in});
    } else {
        x = po_mk_reshape(d, x, 4, (int64_t[]){c.batch, g, c.in / g, area});
        w = po_mk_reshape(d, w, 3, (int64_t[]){g, c.out / g, c.in / g});
    }
    x = po_mk_reshape(d, po_mk_matmul(d, w, x), c.n + 2, dims);
    return po_derive_done(d, po_mk_biased(d, x, c.b, c.n), NULL);
}

/* x [.., M, K] times w [K, N] as a pointwise convolution of [B, K, M, 1]. Side condition: w is a
 * weight of rank 2. */
po_status po_derive_as_conv(po_deriving *d, po_node_id id) {
    const po_node *node = &d->from->nodes[id];
    int64_t x[PO_MOST_DIMS], w[PO_MOST_DIMS], y[PO_MOST_DIMS];
    uint32_t rx, rw, ry;
    if (node->op != PO_OP_MatMul || !po_dims_of(d->from, node->in[0], &rx, x) ||
        !po_dims_of(d->from, node->in[1], &rw, w) || !po_dims_of(d->from, node->out[0], &ry, y) ||
        rx < 2 || rw != 2 || !d->weight[node->in[1]] || d->weight[node->in[0]] ||
        !po_rearrangeable(d->from, node->in[0]))
        return PO_OK;
    int64_t batch = 1, m = x[rx - 2], k = w[0], n = w[1];
    for (uint32_t i = 0; i + 2 < rx; i++)
        batch *= x[i];
    po_derive_begin(d, id);
    po_conv c = {.n = 2, .group = 1, .kernel = {1, 1}, .stride = {1, 1}, .dilation = {1, 1}};
    po_value_id a = po_mk_reshape(d, node->in[0], 3, (int64_t[]){batch, m, k});
    a = po_mk_transpose(d, a, (int[]){0, 2, 1});
    a = po_mk_reshape(d, a, 4, (int64_t[]){batch, k, m, 1});
    po_value_id v = po_mk_transpose(d, node->in[1], (int[]){1, 0});
    v = po_mk_reshape(d, v, 4, (int64_t[]){n, k, 1, 1});
    a = po_mk_conv(d, a, v, PO_NONE, &c);
    a = po_mk_reshape(d, a, 3, (int64_t[]){batch, n, m});
    a = po_mk_transpose(d, a, (int[]){0, 2, 1});
    return po_derive_done(d, po_mk_reshape(d, a, ry, y), NULL);
}
