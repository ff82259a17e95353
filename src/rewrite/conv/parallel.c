/* Convolutions of one tensor as a single one with all their outputs (PET, TASO).
 *
 * Kernels of different sizes are padded with zeros to a common one: with `before` zeros in front of
 * the map, tap t of output o lies at o s - before + d t, so a kernel moves by (most - before) / d
 * taps inside the common one. Side conditions: one group, equal strides, equal output maps, equal
 * dilation on axes where a kernel is longer than 1, whole shifts. Equal everywhere; the
 * multiplications grow by the zeros. */
#include "ops/conv_view.h"
#include "rewrite/deriving.h"

enum { MOST = 16 };

bool po_derive_join(po_conv *all, const po_conv *c) {
    po_conv m = *all;
    for (uint32_t i = 0; i < m.n; i++) {
        if (m.stride[i] != c->stride[i] || m.to[i] != c->to[i])
            return false;
        if (m.kernel[i] == 1)
            m.dilation[i] = c->dilation[i];
        else if (c->kernel[i] != 1 && c->dilation[i] != m.dilation[i])
            return false;
        int64_t d = m.dilation[i], most = po_larger(m.before[i], c->before[i]);
        int64_t here = most - m.before[i], there = most - c->before[i];
        if (here % d != 0 || there % d != 0)
            return false;
        m.kernel[i] = po_larger(here / d + m.kernel[i], there / d + c->kernel[i]);
        m.before[i] = most;
        int64_t reach = (m.to[i] - 1) * m.stride[i] + d * (m.kernel[i] - 1) + 1;
        m.after[i] = po_larger(0, reach - most - m.size[i]);
    }
    *all = m;
    return true;
}

po_value_id po_derive_widened(po_deriving *d, const po_conv *all, const po_conv *c) {
    int64_t before[PO_MOST_DIMS] = {0}, after[PO_MOST_DIMS] = {0};
    for (uint32_t i = 0; i < c->n; i++) {
        before[i + 2] = (all->before[i] - c->before[i]) / all->dilation[i];
        after[i + 2] = all->kernel[i] - c->kernel[i] - before[i + 2];
    }
    return po_mk_pads(d, c->w, before, after);
}

static po_status merge(po_deriving *d, const po_conv *all, const po_conv *part, uint32_t n) {
    po_derive_begin(d, part[0].node);
    po_value_id w[MOST], b[MOST], y[MOST];
    int64_t outs[MOST];
    bool biased = false;
    for (uint32_t k = 0; k < n; k++)
        biased = biased || part[k].b != PO_NONE;
    for (uint32_t k = 0; k < n; k++) {
        w[k] = po_derive_widened(d, all, &part[k]);
        outs[k] = part[k].out;
        b[k] = part[k].b != PO_NONE || !biased ? part[k].b : po_mk_zeros(d, 1, &outs[k]);
    }
    po_value_id bias = biased ? po_mk_concat(d, 0, n, b) : PO_NONE;
    po_value_id joined = po_mk_conv(d, part[0].x, po_mk_concat(d, 0, n, w), bias, all);
    po_mk_split(d, joined, 1, n, outs, y);
    for (uint32_t k = 0; k < n && !d->dropped; k++)
        po_derive_replace(d, part[k].y, y[k]);
    return po_derive_end(d, po_arena_printf(d->arena, "%u", n));
}

po_status po_derive_parallel(po_deriving *d, po_node_id id) {
    po_conv part[MOST], all, c;
    if (!po_read_conv(d->from, id, &all) || all.group != 1 || !po_conv_ready(d, &all))
        return PO_OK;
    part[0] = all;
    uint32_t n = 1;
    const po_value *x = &d->from->values[all.x];
    for (uint32_t i = 0; i < x->n_uses && n < MOST; i++) {
        po_node_id other = x->uses[i].node;
        if (other == id || x->uses[i].input != 0 || !po_read_conv(d->from, other, &c) ||
            c.group != 1 || c.n != all.n || !po_conv_ready(d, &c))
            continue;
        if (other < id && po_conv_is(&d->from->nodes[other])) {
            po_conv earlier = c;
            if (po_derive_join(&earlier, &part[0]))
                return PO_OK; /* found from there */
        }
        if (po_derive_join(&all, &c)) {
            all.out += c.out;
            part[n++] = c;
        }
    }
    return n > 1 ? merge(d, &all, part, n) : PO_OK;
}
