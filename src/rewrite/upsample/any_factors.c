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
    /* w [O, C, k..] becomes [O, C, (f J)..] axis by axis, then [O, f.., C, J..]. */
    uint32_t n = c.n;
    int64_t dims[PO_MOST_DIMS] = {c.out, c.in / c.group}, phases = 1;
    int64_t apart[PO_MOST_DIMS] = {c.out, c.in / c.group};
    int perm[PO_MOST_DIMS] = {0};
    po_conv m = c;
    po_value_id w = c.w;
    for (uint32_t i = 0; i < n; i++) {
        if (f[i] > 1) {
            int64_t low, taps;
            const double *t =
                po_phase_taps(d->arena, f[i], 0, c.kernel[i], c.before[i], &low, &taps);
            w = po_mk_along(d, w, 2 + i, f[i] * taps, t);
            m.kernel[i] = taps;
            m.size[i] = c.size[i] / f[i];
            m.before[i] = -low;
            m.to[i] = po_up_to(c.to[i], f[i]) / f[i];
            m.after[i] = po_larger(0, m.to[i] + taps - 1 - m.before[i] - m.size[i]);
        }
        apart[2 + 2 * i] = f[i];
        apart[3 + 2 * i] = dims[2 + i] = m.kernel[i];
        perm[1 + i] = (int)(2 + 2 * i);
        perm[2 + n + i] = (int)(3 + 2 * i);
        phases *= f[i];
    }
    perm[1 + n] = 1;
    w = po_mk_transpose(d, po_mk_reshape(d, w, 2 + 2 * n, apart), perm);
    dims[0] = c.out * phases;
    w = po_mk_reshape(d, w, n + 2, dims);
    po_value_id y = po_mk_interleaved(d, po_mk_conv(d, x, w, PO_NONE, &m), n, f, false);
    for (uint32_t i = 0; i < n; i++)
        y = po_mk_slice(d, y, 2 + i, 0, c.to[i], 1);
    return po_derive_done(d, po_mk_biased(d, y, c.b, n), NULL);
}
