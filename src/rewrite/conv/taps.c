/* Convolutions cut by their taps.
 *
 * y[o] is the sum over taps t of w[t] x[o s - before + d t]: a product by all taps at once, each
 * shifted to its place and summed (EinNet's convolution to matrix product and offset add). With
 * blocks of taps for single ones, a large kernel becomes several small ones of the same map, whose
 * outputs are summed at offsets (a 5x5 kernel as four of 3x3). Equal everywhere. */
#include "base/num.h"
#include "rewrite/deriving.h"

enum { MOST_TAPS = 64, BLOCK = 3, MOST_BLOCKS = 9 };

/* Side condition: one group, more than one tap. */
po_status po_derive_taps(po_deriving *d, po_node_id id) {
    po_conv c;
    int64_t taps;
    if (!po_read_conv(d->from, id, &c) || c.group != 1 || (taps = po_conv_taps(&c)) < 2 ||
        taps > MOST_TAPS)
        return PO_OK;
    for (int as_matmul = 0; as_matmul < 2; as_matmul++) {
        po_derive_begin(d, id);
        po_value_id t, w, part[MOST_TAPS];
        int64_t at[PO_MAP_AXES] = {0}, length[PO_MAP_AXES];
        for (uint32_t i = 0; i < c.n; i++)
            length[i] = c.before[i] + c.size[i] + c.after[i];
        /* Every tap's matrix below the other. */
        if (as_matmul) {
            t = po_mk_rearrange(d, c.x, "n c h.. -> n c (h..)", c.n, NULL);
            w = po_mk_rearrange(d, c.w, "o c k.. -> (k.. o) c", c.n, NULL);
            t = po_mk_matmul(d, w, t);
        } else {
            const po_conv point = po_conv_of_one_tap(c.dtype, c.n, c.in, taps * c.out, 1);
            w = po_mk_rearrange(d, c.w, "o c k.. -> (k.. o) c 1..", c.n, NULL);
            t = po_mk_conv(d, c.x, w, PO_NONE, &point);
        }
        /* Padded as the convolution pads its map, so that no tap falls outside. */
        t = po_mk_rearrange(d, t, as_matmul ? "n o (h..) -> n o h+b=l.." : "n o h.. -> n o h+b=l..",
                            c.n, PO_SIZES({"h", c.size}, {"b", c.before}, {"l", length}));
        for (int64_t k = 0; k < taps; k++) {
            part[k] = po_mk_slice(d, t, 1, k * c.out, c.out, 1);
            for (uint32_t i = 0; i < c.n; i++)
                part[k] =
                    po_mk_slice(d, part[k], i + 2, at[i] * c.dilation[i], c.to[i], c.stride[i]);
            po_next_index(c.n, c.kernel, at);
        }
        po_value_id y = po_mk_biased(d, po_mk_sum(d, (uint32_t)taps, part), c.b, c.n);
        PO_TRY(po_derive_done(d, y, as_matmul ? "matrix product" : "pointwise convolution"));
    }
    return PO_OK;
}

/* Side condition: some kernel longer than 3; a block's shift is a whole number of strides. */
po_status po_derive_blocks(po_deriving *d, po_node_id id) {
    po_conv c;
    if (!po_read_conv(d->from, id, &c) || c.group != 1)
        return PO_OK;
    int64_t pieces[PO_MAP_AXES], count = 1;
    po_conv small = c;
    for (uint32_t i = 0; i < c.n; i++) {
        pieces[i] = po_up_to(c.kernel[i], BLOCK) / BLOCK;
        if (c.kernel[i] > BLOCK && BLOCK * c.dilation[i] % c.stride[i] != 0)
            return PO_OK;
        if (c.kernel[i] > BLOCK)
            small.kernel[i] = BLOCK;
        else
            pieces[i] = 1;
        count *= pieces[i];
    }
    if (count < 2 || count > MOST_BLOCKS)
        return PO_OK;
    po_derive_begin(d, id);
    const uint32_t n = c.n;
    for (uint32_t i = 0; i < n; i++) {
        /* One convolution makes all blocks' outputs: its map reaches as far as the last shift. */
        int64_t shift = (pieces[i] - 1) * BLOCK * c.dilation[i] / c.stride[i];
        int64_t reach =
            (c.to[i] + shift - 1) * c.stride[i] + c.dilation[i] * (small.kernel[i] - 1) + 1;
        small.after[i] = po_larger(0, reach - c.before[i] - c.size[i]);
    }
    po_value_id part[MOST_BLOCKS];
    po_value_id w = po_mk_rearrange(d, c.w, "o c (p k).. -> (p.. o) c k..", n,
                                    PO_SIZES({"p", pieces}, {"k", small.kernel}));
    po_value_id t = po_mk_conv(d, c.x, w, PO_NONE, &small);
    int64_t at[PO_MAP_AXES] = {0};
    for (int64_t k = 0; k < count; k++) {
        part[k] = po_mk_slice(d, t, 1, k * c.out, c.out, 1);
        for (uint32_t i = 0; i < n; i++)
            part[k] = po_mk_slice(d, part[k], i + 2, at[i] * BLOCK * c.dilation[i] / c.stride[i],
                                  c.to[i], 1);
        po_next_index(n, pieces, at);
    }
    po_value_id y = po_mk_biased(d, po_mk_sum(d, (uint32_t)count, part), c.b, c.n);
    return po_derive_done(d, y, NULL);
}
