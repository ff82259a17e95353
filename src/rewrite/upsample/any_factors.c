/* A convolution over nearest upsampling as one of the small map with an output for each phase.
 *
 * Upsampled by f, tap t of output f q + p reads the small map at q + floor((p + t - before) / f):
 * taps that meet there are summed (a product of the weights by a table along the axis), and the
 * phases are interleaved. Floor is right beyond the borders too, so it is equal everywhere. Side
 * conditions: whole factors that repeat elements, stride and dilation 1 on the upsampled axes. */
#include "rewrite/deriving.h"
#include "rewrite/upsample/split.h"

enum { MOST_FACTOR = 8 };

/* Whole factors of a nearest Resize or Upsample of map axes. */
static bool read_upsampling(const po_graph *g, po_value_id v, uint32_t n, po_value_id *x,
                            int64_t factor[PO_MAP_AXES]) {
    const po_node *node = po_graph_producer(g, v);
    int64_t f[PO_MAP_AXES + 2];
    if (!node || (node->op != PO_OP_Resize && node->op != PO_OP_Upsample) ||
        po_rank_of(g, node->in[0]) != (int)n + 2 || !po_repeats(g, node, n + 2, f) || f[0] != 1 ||
        f[1] != 1)
        return false;
    bool more = false;
    for (uint32_t i = 0; i < n; i++) {
        factor[i] = f[2 + i];
        if (factor[i] > MOST_FACTOR)
            return false;
        more = more || factor[i] > 1;
    }
    *x = node->in[0];
    return more;
}

po_status po_derive_upsample(po_deriving *d, po_node_id id) {
    po_conv c;
    po_value_id x;
    int64_t f[PO_MAP_AXES];
    if (!po_read_conv(d->from, id, &c) || !read_upsampling(d->from, c.x, c.n, &x, f))
        return PO_OK;
    for (uint32_t i = 0; i < c.n; i++)
        if (f[i] > 1 && (c.stride[i] != 1 || c.dilation[i] != 1))
            return PO_OK;
    po_derive_begin(d, id);
    po_conv m = c;
    po_value_id w = c.w;
    for (uint32_t i = 0; i < c.n; i++) {
        if (f[i] == 1)
            continue;
        int64_t low, taps;
        const double *t = po_phase_taps(d->arena, f[i], 0, c.kernel[i], c.before[i], &low, &taps);
        w = po_mk_along(d, w, 2 + i, f[i] * taps, t);
        m.kernel[i] = taps;
        m.before[i] = -low;
        m.after[i] = po_larger(0, po_up_to(c.to[i], f[i]) / f[i] + taps - 1 - m.before[i] -
                                      c.size[i] / f[i]);
    }
    w = po_mk_rearrange(d, w, "o c (p k).. -> (o p..) c k..", c.n, PO_SIZES({"p", f}));
    po_value_id y =
        po_mk_rearrange(d, po_mk_conv(d, x, w, PO_NONE, &m), "n (o p..) h.. -> n o (h p)=t..", c.n,
                        PO_SIZES({"p", f}, {"t", c.to}));
    return po_derive_done(d, po_mk_biased(d, y, c.b, c.n), NULL);
}
