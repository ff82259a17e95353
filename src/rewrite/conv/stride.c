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
    po_derive_begin(d, id);
    int64_t before[PO_MOST_DIMS] = {0}, after[PO_MOST_DIMS] = {0}, none[PO_MOST_DIMS] = {0},
            longer[PO_MOST_DIMS] = {0};
    uint32_t n = c.n;
    po_conv one = c;
    for (uint32_t i = 0; i < n; i++) {
        int64_t s = c.stride[i];
        if (s == 1)
            continue;
        one.stride[i] = 1;
        one.kernel[i] = po_up_to(c.kernel[i], s) / s;
        before[2 + i] = c.before[i] % s;
        one.before[i] = c.before[i] / s;
        int64_t length = po_up_to(before[2 + i] + c.size[i], s);
        after[2 + i] = length - before[2 + i] - c.size[i];
        one.size[i] = length / s;
        one.after[i] = po_larger(0, c.to[i] + one.kernel[i] - 1 - one.before[i] - one.size[i]);
        longer[2 + i] = one.kernel[i] * s - c.kernel[i];
    }
    po_value_id x = po_mk_dealt(d, po_mk_pads(d, c.x, before, after), n, c.stride, false);
    po_value_id w = po_mk_dealt(d, po_mk_pads(d, c.w, none, longer), n, c.stride, false);
    x = po_mk_conv(d, x, w, c.b, &one);
    for (uint32_t i = 0; i < n; i++)
        x = po_mk_slice(d, x, 2 + i, 0, c.to[i], 1);
    return po_derive_done(d, x, NULL);
}
