/* Transposed convolutions, which scatter, as convolutions or products, which gather.
 *
 * Before cropping, output s q + p takes taps t = s j + p from x[q - j]: one convolution over q with
 * an output for each phase p, its kernel padded to whole strides and turned round, then the phases
 * interleaved (sub-pixel convolution). Or a product by all taps at once, shifted by j, summed for
 * each phase (EinNet's selective add). Side condition: dilation 1. Equal everywhere. */
#include "base/num.h"
#include "rewrite/deriving.h"

enum { MOST_TAPS = 64 };

/* Phases dealt out, cropped to the output's map. */
static po_value_id interleave(po_deriving *d, const po_conv *c, const int64_t *q, po_value_id y) {
    int64_t before[PO_MOST_DIMS] = {0}, after[PO_MOST_DIMS] = {0};
    for (uint32_t i = 0; i < c->n; i++) {
        before[2 + i] = -c->before[i];
        after[2 + i] = c->to[i] + c->before[i] - q[i] * c->stride[i];
    }
    return po_mk_pads(d, po_mk_interleaved(d, y, c->n, c->stride, false), before, after);
}

/* Taps in strides: w [C, O/g, k..] padded, as [g, C/g, O/g, J, s, ..]. */
static po_value_id by_strides(po_deriving *d, const po_conv *c, const int64_t *taps, bool turned) {
    int64_t none[PO_MOST_DIMS] = {0}, after[PO_MOST_DIMS] = {0};
    int64_t dims[PO_MOST_DIMS] = {c->group, c->in / c->group, c->out / c->group};
    po_value_id w;
    for (uint32_t i = 0; i < c->n; i++) {
        after[2 + i] = taps[i] * c->stride[i] - c->kernel[i];
        dims[3 + 2 * i] = taps[i];
        dims[4 + 2 * i] = c->stride[i];
    }
    w = po_mk_pads(d, c->w, none, after);
    w = po_mk_reshape(d, w, 3 + 2 * c->n, dims);
    for (uint32_t i = 0; turned && i < c->n; i++)
        if (taps[i] > 1)
            w = po_mk_slice(d, w, 3 + 2 * i, taps[i] - 1, taps[i], -1);
    return w;
}

static bool plain(const po_deriving *d, po_node_id id, po_conv *c) {
    if (!po_read_conv_transpose(d->from, id, c) || !po_conv_dilation_one(c))
        return false;
    for (uint32_t i = 0; i < c->n; i++)
        if (c->stride[i] < 1)
            return false;
    return true;
}

po_status po_derive_subpixel(po_deriving *d, po_node_id id) {
    po_conv c;
    if (!plain(d, id, &c))
        return PO_OK;
    po_derive_begin(d, id);
    int64_t taps[PO_MAP_AXES], q[PO_MAP_AXES], dims[PO_MOST_DIMS], g = c.group, phases = 1;
    int perm[PO_MOST_DIMS] = {0, 2};
    uint32_t n = c.n;
    po_conv m = c;
    for (uint32_t i = 0; i < n; i++) {
        taps[i] = po_up_to(c.kernel[i], c.stride[i]) / c.stride[i];
        q[i] = c.size[i] + taps[i] - 1;
        m.kernel[i] = taps[i];
        m.stride[i] = 1;
        m.before[i] = m.after[i] = taps[i] - 1;
        phases *= c.stride[i];
        perm[2 + i] = (int)(4 + 2 * i);
        perm[3 + n + i] = (int)(3 + 2 * i);
        dims[2 + i] = taps[i];
    }
    perm[2 + n] = 1;
    po_value_id w = po_mk_transpose(d, by_strides(d, &c, taps, true), perm);
    dims[0] = c.out * phases;
    dims[1] = c.in / g;
    w = po_mk_reshape(d, w, n + 2, dims);
    po_value_id y = po_mk_conv(d, c.x, w, PO_NONE, &m);
    return po_derive_done(d, po_mk_biased(d, interleave(d, &c, q, y), c.b, c.n), NULL);
}

/* Side condition besides: one group, at most 64 taps. */
po_status po_derive_selective(po_deriving *d, po_node_id id) {
    po_conv c;
    if (!plain(d, id, &c) || c.group != 1 || po_conv_taps(&c) > MOST_TAPS)
        return PO_OK;
    int64_t taps[PO_MAP_AXES], q[PO_MAP_AXES], area = 1, phases = 1, blocks = 1;
    uint32_t n = c.n;
    for (uint32_t i = 0; i < n; i++) {
        taps[i] = po_up_to(c.kernel[i], c.stride[i]) / c.stride[i];
        q[i] = c.size[i] + taps[i] - 1;
        area *= c.size[i];
        phases *= c.stride[i];
        blocks *= taps[i];
    }
    if (blocks > MOST_TAPS)
        return PO_OK;
    po_derive_begin(d, id);
    /* [J.., O, s.., C] rows; the sum over J is what is left to do. */
    int perm[PO_MOST_DIMS];
    for (uint32_t i = 0; i < n; i++) {
        perm[i] = (int)(3 + 2 * i);
        perm[n + 2 + i] = (int)(4 + 2 * i);
    }
    perm[n] = 0;
    perm[n + 1] = 2;
    perm[2 * n + 2] = 1;
    po_value_id w = po_mk_transpose(d, by_strides(d, &c, taps, false), perm), part[MOST_TAPS];
    w = po_mk_reshape(d, w, 2, (int64_t[]){blocks * c.out * phases, c.in});
    po_value_id x = po_mk_reshape(d, c.x, 3, (int64_t[]){c.batch, c.in, area});
    int64_t dims[PO_MOST_DIMS] = {c.batch, blocks * c.out * phases}, at[PO_MAP_AXES] = {0};
    memcpy(&dims[2], c.size, n * sizeof *dims);
    po_value_id t = po_mk_reshape(d, po_mk_matmul(d, w, x), n + 2, dims);
    for (int64_t k = 0; k < blocks; k++) {
        int64_t before[PO_MOST_DIMS] = {0}, after[PO_MOST_DIMS] = {0};
        for (uint32_t i = 0; i < n; i++) {
            before[2 + i] = at[i];
            after[2 + i] = taps[i] - 1 - at[i];
        }
        part[k] = po_mk_slice(d, t, 1, k * c.out * phases, c.out * phases, 1);
        part[k] = po_mk_pads(d, part[k], before, after);
        po_next_index(n, taps, at);
    }
    po_value_id y = po_mk_sum(d, (uint32_t)blocks, part);
    return po_derive_done(d, po_mk_biased(d, interleave(d, &c, q, y), c.b, c.n), NULL);
}
