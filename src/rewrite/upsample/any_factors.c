/* A convolution over nearest upsampling as one of the small map with an output for each phase.
 *
 * Upsampled by f, tap t of output f q + p reads the small map at q + floor((p + t - before) / f):
 * taps that meet there are summed (a product of the weights by a table along the axis), and the
 * phases are interleaved. Floor is right beyond the borders too, so it is equal everywhere. Side
 * conditions: whole factors that repeat elements, stride and dilation 1 on the upsampled axes. */
#include "base/num.h"
#include "rewrite/deriving.h"

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
    memcpy(&dims[2], c.kernel, n * sizeof *dims);
    po_value_id w = c.w;
    for (uint32_t i = 0; i < n; i++) {
        int64_t k = c.kernel[i], low = po_floor_div(-c.before[i], f[i]),
                high = po_floor_div(f[i] + k - 2 - c.before[i], f[i]), taps = high - low + 1;
        int64_t lead = 1, tail = 1;
        for (uint32_t a = 0; a < 2 + i; a++)
            lead *= dims[a];
        for (uint32_t a = 3 + i; a < n + 2; a++)
            tail *= dims[a];
        if (f[i] > 1) {
            double *t = PO_NEW_N(d->arena, double, f[i] * taps * k);
            for (int64_t p = 0; p < f[i]; p++)
                for (int64_t r = 0; r < k; r++)
                    t[(p * taps + po_floor_div(p + r - c.before[i], f[i]) - low) * k + r] = 1;
            w = po_mk_reshape(d, w, 3, (int64_t[]){lead, k, tail});
            w = po_mk_matmul(d, po_mk_table(d, 2, (int64_t[]){f[i] * taps, k}, t), w);
            dims[2 + i] = f[i] * taps;
            m.kernel[i] = taps;
            m.size[i] = c.size[i] / f[i];
            m.before[i] = -low;
            m.to[i] = po_up_to(c.to[i], f[i]) / f[i];
            m.after[i] = m.to[i] + taps - 1 - m.before[i] - m.size[i];
            if (m.after[i] < 0)
                m.after[i] = 0;
        }
        apart[2 + 2 * i] = f[i];
        apart[3 + 2 * i] = m.kernel[i];
        perm[1 + i] = (int)(2 + 2 * i);
        perm[2 + n + i] = (int)(3 + 2 * i);
        phases *= f[i];
    }
    perm[1 + n] = 1;
    w = po_mk_transpose(d, po_mk_reshape(d, w, 2 + 2 * n, apart), perm);
    dims[0] = c.out * phases;
    dims[1] = c.in / c.group;
    memcpy(&dims[2], m.kernel, n * sizeof *dims);
    w = po_mk_reshape(d, w, n + 2, dims);
    po_value_id y = po_mk_conv(d, x, w, PO_NONE, &m);
    int64_t made[PO_MOST_DIMS];
    uint32_t rank;
    if (d->dropped || !po_dims_of(d->g, y, &rank, made))
        return po_derive_end(d, NULL);
    /* [N, O, f.., Q..] to [N, O, (Q f)..]. */
    int64_t split[PO_MOST_DIMS] = {c.batch, c.out};
    int back[PO_MOST_DIMS] = {0, 1};
    for (uint32_t i = 0; i < n; i++) {
        split[2 + i] = f[i];
        split[2 + n + i] = made[2 + i];
        back[2 + 2 * i] = (int)(2 + n + i);
        back[3 + 2 * i] = (int)(2 + i);
        made[2 + i] *= f[i];
    }
    made[1] = c.out;
    y = po_mk_transpose(d, po_mk_reshape(d, y, 2 + 2 * n, split), back);
    y = po_mk_reshape(d, y, n + 2, made);
    for (uint32_t i = 0; i < n; i++)
        y = po_mk_slice(d, y, 2 + i, 0, c.to[i], 1);
    if (c.b != PO_NONE)
        y = po_mk_binary(d, PO_OP_Add, y, po_mk_bias_on(d, c.b, n));
    return po_derive_done(d, y, NULL);
}
