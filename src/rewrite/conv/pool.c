/* Average pools as convolutions, and behind convolutions inside them.
 *
 * A pool is a depthwise convolution by ones, divided by the number of elements that each window
 * counts (a table where padding is left out of it). A pool without padding composes with the
 * convolution before it into one of a larger kernel and stride. (Pools before pointwise
 * convolutions: rewrite/conv/compose.c.) */
#include "ops/conv_view.h"
#include "rewrite/deriving.h"

/* An average pool as a depthwise convolution's lists. */
static bool read_pool(const po_graph *g, po_node_id id, po_conv *c, bool *counts_pads) {
    const po_node *n = &g->nodes[id];
    int64_t x[PO_MOST_DIMS], y[PO_MOST_DIMS];
    uint32_t rx, ry;
    if (n->op != PO_OP_AveragePool || !po_rearrangeable(g, n->in[0]) ||
        !po_dims_of(g, n->in[0], &rx, x) || !po_dims_of(g, n->out[0], &ry, y) || rx < 3 ||
        rx > 2 + PO_MAP_AXES || ry != rx)
        return false;
    *c = (po_conv){.node = id,
                   .x = n->in[0],
                   .w = PO_NONE,
                   .b = PO_NONE,
                   .y = n->out[0],
                   .n = rx - 2,
                   .batch = x[0],
                   .in = x[1],
                   .out = x[1],
                   .group = x[1]};
    for (uint32_t i = 0; i < c->n; i++) {
        c->size[i] = x[2 + i];
        c->to[i] = y[2 + i];
    }
    *counts_pads = po_op_int(g, n, "count_include_pad") != 0;
    return po_conv_window(g, n, c);
}

/* How many elements of the map every window sees: [1, 1, map]. */
static po_value_id counts_of(po_deriving *d, const po_conv *c) {
    int64_t dims[PO_MOST_DIMS] = {1, 1}, all = 1;
    for (uint32_t i = 0; i < c->n; i++) {
        dims[2 + i] = c->to[i];
        all *= c->to[i];
    }
    double *v = PO_NEW_N(d->arena, double, all);
    for (int64_t at = 0; at < all; at++) {
        int64_t rest = at;
        v[at] = 1;
        for (uint32_t i = c->n; i-- > 0;) {
            int64_t o = rest % c->to[i], seen = 0;
            rest /= c->to[i];
            for (int64_t k = 0; k < c->kernel[i]; k++) {
                int64_t from = o * c->stride[i] + k * c->dilation[i] - c->before[i];
                seen += from >= 0 && from < c->size[i];
            }
            v[at] *= (double)seen;
        }
        if (v[at] == 0)
            d->dropped = true;
    }
    return po_mk_table(d, c->n + 2, dims, v);
}

po_status po_derive_pool(po_deriving *d, po_node_id id) {
    po_conv c;
    bool counts_pads;
    if (!read_pool(d->from, id, &c, &counts_pads))
        return PO_OK;
    po_derive_begin(d, id);
    int64_t dims[PO_MOST_DIMS] = {c.out, 1}, taps = po_conv_taps(&c);
    memcpy(&dims[2], c.kernel, c.n * sizeof *dims);
    double *ones = PO_NEW_N(d->arena, double, c.out *taps);
    for (int64_t i = 0; i < c.out * taps; i++)
        ones[i] = 1;
    po_value_id y = po_mk_conv(d, c.x, po_mk_table(d, c.n + 2, dims, ones), PO_NONE, &c);
    bool even = counts_pads || !po_conv_padded(&c);
    po_value_id by = even ? po_mk_scalar(d, (double)taps) : counts_of(d, &c);
    return po_derive_done(d, po_mk_binary(d, PO_OP_Div, y, by), NULL);
}

/* A pool of a convolution as one convolution. Side conditions: neither dilated nor grouped, the
 * pool without padding. Kernel k + s (q - 1), stride s times the pool's. */
po_status po_derive_pool_into_conv(po_deriving *d, po_node_id id) {
    po_conv p, c;
    bool counts_pads;
    const po_node *made;
    if (!read_pool(d->from, id, &p, &counts_pads) || po_conv_padded(&p) ||
        !po_conv_dilation_one(&p) || !(made = po_made_by_conv(d->from, p.x)) ||
        !po_read_conv(d->from, (po_node_id)(made - d->from->nodes), &c) || c.group != 1 ||
        !po_conv_dilation_one(&c))
        return PO_OK;
    po_derive_begin(d, id);
    /* The kernel by a table along each axis: row t' has tap t at t' = t + s j for every j < q. */
    po_conv m = c;
    po_value_id w = c.w;
    for (uint32_t i = 0; i < c.n; i++) {
        int64_t k = c.kernel[i], s = c.stride[i], q = p.kernel[i], wide = k + s * (q - 1);
        double *t = PO_NEW_N(d->arena, double, wide *k);
        for (int64_t j = 0; j < q; j++)
            for (int64_t a = 0; a < k; a++)
                t[(a + s * j) * k + a] += 1;
        w = po_mk_along(d, w, 2 + i, wide, t);
        m.kernel[i] = wide;
        m.stride[i] = s * p.stride[i];
        m.after[i] = po_larger(0, (p.to[i] - 1) * m.stride[i] + wide - c.before[i] - c.size[i]);
    }
    w = po_mk_binary(d, PO_OP_Div, w, po_mk_scalar(d, (double)po_conv_taps(&p)));
    return po_derive_done(d, po_mk_conv(d, c.x, w, c.b, &m), NULL);
}
