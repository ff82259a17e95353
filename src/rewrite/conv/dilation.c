/* A dilated convolution as one without dilation over phases laid into the batch (PET, figure 1).
 *
 * Tap j of output o reads x[o + d j - before]. With o = d q + p, the phase p reads x at p plus
 * multiples of d alone, so each phase is a map of its own, of size / d, convolved without dilation.
 * Maps are padded to a multiple of d; padding that is itself a multiple of d stays the
 * convolution's. Side condition: stride 1 on the axes that are dilated. Equal everywhere; the
 * multiplications grow by the padding alone. */
#include "rewrite/deriving.h"

typedef struct phased {
    int64_t d, lead, length, pad, tail; /* zeros before the map; of a phase; of the convolution */
} phased;

static phased plan(const po_conv *c, uint32_t i) {
    phased p = {.d = c->dilation[i]};
    p.lead = c->before[i] % p.d;
    p.pad = c->before[i] / p.d;
    p.length = po_up_to(p.lead + c->size[i], p.d) / p.d;
    int64_t made = po_up_to(c->to[i], p.d) / p.d;
    p.tail = po_larger(0, made + c->kernel[i] - 1 - p.pad - p.length);
    return p;
}

po_status po_derive_phases(po_deriving *d, po_node_id id) {
    po_conv c;
    if (!po_read_conv(d->from, id, &c) || po_conv_dilation_one(&c))
        return PO_OK;
    phased p[PO_MAP_AXES];
    for (uint32_t i = 0; i < c.n; i++) {
        if (c.dilation[i] > 1 && c.stride[i] != 1)
            return PO_OK;
        p[i] = plan(&c, i);
    }
    po_derive_begin(d, id);
    int64_t before[PO_MOST_DIMS] = {0}, after[PO_MOST_DIMS] = {0};
    uint32_t n = c.n;
    po_conv flat = c;
    for (uint32_t i = 0; i < n; i++) {
        if (p[i].d == 1)
            continue;
        before[i + 2] = p[i].lead;
        after[i + 2] = p[i].length * p[i].d - p[i].lead - c.size[i];
        flat.dilation[i] = 1;
        flat.before[i] = p[i].pad;
        flat.after[i] = p[i].tail;
    }
    po_value_id x = po_mk_pads(d, c.x, before, after);
    x = po_mk_conv(d, po_mk_dealt(d, x, n, c.dilation, true), c.w, c.b, &flat);
    x = po_mk_interleaved(d, x, n, c.dilation, true);
    for (uint32_t i = 0; i < n; i++)
        x = po_mk_slice(d, x, i + 2, 0, c.to[i], 1);
    return po_derive_done(d, x, NULL);
}
