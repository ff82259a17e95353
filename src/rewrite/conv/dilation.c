/* A dilated convolution as one without dilation over phases laid into the batch (PET, figure 1).
 *
 * Tap j of output o reads x[o + d j - before]. With o = d q + p, the phase p reads x at p plus
 * multiples of d alone, so each phase is a map of its own, of size / d, convolved without dilation.
 * Maps are padded to a multiple of d; padding that is itself a multiple of d stays the
 * convolution's. Side condition: stride 1 on the axes that are dilated. Equal everywhere; the
 * multiplications grow by the padding alone. */
#include "rewrite/deriving.h"

po_status po_derive_phases(po_deriving *d, po_node_id id) {
    po_conv c;
    if (!po_read_conv(d->from, id, &c) || po_conv_dilation_one(&c))
        return PO_OK;
    po_conv flat = c;
    int64_t lead[PO_MAP_AXES], length[PO_MAP_AXES]; /* zeros before the map; of a phase */
    for (uint32_t i = 0; i < c.n; i++) {
        const int64_t p = c.dilation[i];
        lead[i] = c.before[i] % p;
        length[i] = po_up_to(lead[i] + c.size[i], p) / p;
        if (p == 1)
            continue;
        if (c.stride[i] != 1)
            return PO_OK;
        flat.dilation[i] = 1;
        flat.before[i] = c.before[i] / p;
        flat.after[i] =
            po_larger(0, po_up_to(c.to[i], p) / p + c.kernel[i] - 1 - flat.before[i] - length[i]);
    }
    po_derive_begin(d, id);
    po_value_id x = po_mk_rearrange(d, c.x, "n c (h p)-b.. -> (p.. n) c h..", c.n,
                                    PO_SIZES({"h", length}, {"p", c.dilation}, {"b", lead}));
    x = po_mk_conv(d, x, c.w, c.b, &flat);
    x = po_mk_rearrange(d, x, "(p.. n) c h.. -> n c (h p)=t..", c.n,
                        PO_SIZES({"p", c.dilation}, {"t", c.to}));
    return po_derive_done(d, x, NULL);
}
