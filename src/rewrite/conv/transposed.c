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
static po_value_id interleave(po_deriving *d, const po_conv *c, po_value_id y) {
    return po_mk_rearrange(d, y, "n (c p..) h.. -> n c (h p)-b=t..", c->n,
                           PO_SIZES({"p", c->stride}, {"b", c->before}, {"t", c->to}));
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
    po_conv m = c;
    int64_t last[PO_MAP_AXES]; /* tap of each phase */
    for (uint32_t i = 0; i < c.n; i++) {
        m.kernel[i] = po_up_to(c.kernel[i], c.stride[i]) / c.stride[i];
        m.before[i] = m.after[i] = m.kernel[i] - 1;
        m.stride[i] = 1;
        last[i] = m.before[i] * c.stride[i];
    }
    po_value_id w =
        po_mk_rearrange(d, c.w, "(g c) o (-j p)+l.. -> (g o p..) c j..", c.n,
                        PO_SIZES({"g", &c.group}, {"j", m.kernel}, {"p", c.stride}, {"l", last}));
    po_value_id y = interleave(d, &c, po_mk_conv(d, c.x, w, PO_NONE, &m));
    return po_derive_done(d, po_mk_biased(d, y, c.b, c.n), NULL);
}

/* Side condition besides: one group, at most 64 taps. */
po_status po_derive_selective(po_deriving *d, po_node_id id) {
    po_conv c;
    if (!plain(d, id, &c) || c.group != 1 || po_conv_taps(&c) > MOST_TAPS)
        return PO_OK;
    int64_t taps[PO_MAP_AXES], at[PO_MAP_AXES] = {0}, outs = c.out, blocks = 1;
    const uint32_t n = c.n;
    for (uint32_t i = 0; i < n; i++) {
        taps[i] = po_up_to(c.kernel[i], c.stride[i]) / c.stride[i];
        outs *= c.stride[i];
        blocks *= taps[i];
    }
    if (blocks > MOST_TAPS)
        return PO_OK;
    po_derive_begin(d, id);
    /* The sum over j is what is left to do. */
    po_value_id w = po_mk_rearrange(d, c.w, "c o (j p).. -> (j.. o p..) c", n,
                                    PO_SIZES({"j", taps}, {"p", c.stride}));
    po_value_id x = po_mk_rearrange(d, c.x, "n c h.. -> n c (h..)", n, NULL);
    po_value_id t = po_mk_rearrange(d, po_mk_matmul(d, w, x), "n o (h..) -> n o h..", n,
                                    PO_SIZES({"h", c.size}));
    po_value_id part[MOST_TAPS];
    for (int64_t k = 0; k < blocks; k++) {
        int64_t before[PO_MOST_DIMS] = {0}, after[PO_MOST_DIMS] = {0};
        for (uint32_t i = 0; i < n; i++) {
            before[2 + i] = at[i];
            after[2 + i] = taps[i] - 1 - at[i];
        }
        part[k] = po_mk_slice(d, t, 1, k * outs, outs, 1);
        part[k] = po_mk_pads(d, part[k], before, after);
        po_next_index(n, taps, at);
    }
    po_value_id y = po_mk_sum(d, (uint32_t)blocks, part);
    return po_derive_done(d, po_mk_biased(d, interleave(d, &c, y), c.b, c.n), NULL);
}
