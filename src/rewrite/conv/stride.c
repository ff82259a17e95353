/* A strided convolution as one of stride 1 over phases laid into channels (space to depth).
 *
 * With o s + t = s (o + j) + p for t = s j + p, the taps of phase p read the map's phase p at
 * stride 1: the phases are channels, the kernel is padded to whole strides. Padding that is a
 * multiple of the stride stays the convolution's. Side condition: dilation 1 on the strided axes.
 * Equal everywhere; the multiplications grow by the padding of the kernel. */
#include "rewrite/deriving.h"

po_status po_derive_stride(po_deriving *d, po_node_id id) {
    po_conv c;
    if (!po_read_conv(d->from, id, &c) || po_conv_stride_one(&c))
        return PO_OK;
    for (uint32_t i = 0; i < c.n; i++)
        if (c.stride[i] > 1 && c.dilation[i] != 1)
            return PO_OK;
    po_conv one = c;
    int64_t lead[PO_MAP_AXES];
    for (uint32_t i = 0; i < c.n; i++) {
        const int64_t s = c.stride[i];
        lead[i] = 0;
        if (s == 1)
            continue;
        lead[i] = c.before[i] % s;
        one.stride[i] = 1;
        one.kernel[i] = po_up_to(c.kernel[i], s) / s;
        one.before[i] = c.before[i] / s;
        one.size[i] = po_up_to(lead[i] + c.size[i], s) / s;
        one.after[i] = po_larger(0, c.to[i] + one.kernel[i] - 1 - one.before[i] - one.size[i]);
    }
    po_derive_begin(d, id);
    static const char to_channels[] = "n c (h p)-b.. -> n (c p..) h..";
    static const int64_t none[PO_MAP_AXES] = {0};
    po_value_id x = po_mk_rearrange(d, c.x, to_channels, c.n,
                                    PO_SIZES({"h", one.size}, {"p", c.stride}, {"b", lead}));
    po_value_id w = po_mk_rearrange(d, c.w, to_channels, c.n,
                                    PO_SIZES({"h", one.kernel}, {"p", c.stride}, {"b", none}));
    x = po_mk_conv(d, x, w, c.b, &one);
    return po_derive_done(
        d, po_mk_rearrange(d, x, "n c h.. -> n c h=t..", c.n, PO_SIZES({"t", c.to})), NULL);
}
