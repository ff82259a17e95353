/* Convolutions of three map axes as those of two, over frames.
 *
 * The first map axis is taken apart: the taps along it either become channels (every output frame
 * reads its taps side by side), or make an output each, which are summed over shifted frames.
 * Equal everywhere. For maps of two axes the same gives convolutions over rows. */
#include "rewrite/deriving.h"

enum { MOST_TAPS = 8 };

/* [N T, O, ..] as [N, O, T, ..]. */
static po_value_id unframe(po_deriving *d, const po_conv *c, po_value_id y) {
    return po_mk_rearrange(d, y, "(n t) o h.. -> n o t h..", c->n - 1, PO_SIZES({"t", c->to}));
}

static po_status by_channels(po_deriving *d, const po_conv *c) {
    po_conv f = po_conv_without_axis(c, 0);
    const int64_t taps = c->kernel[0], length = c->before[0] + c->size[0] + c->after[0];
    const po_rt_size *sizes = PO_SIZES({"g", &c->group}, {"b", c->before}, {"l", &length});
    po_value_id part[MOST_TAPS];
    po_derive_begin(d, c->node);
    /* [N, T, g, 1, C/g, ..], one for each tap, joined on the axis of length 1. */
    po_value_id x = po_mk_rearrange(d, c->x, "n (g c) t h.. -> n t+b=l g 1 c h..", f.n, sizes);
    for (int64_t k = 0; k < taps; k++)
        part[k] = po_mk_slice(d, x, 1, k * c->dilation[0], c->to[0], c->stride[0]);
    x = po_mk_concat(d, 3, (uint32_t)taps, part);
    x = po_mk_rearrange(d, x, "n t g k c h.. -> (n t) (g k c) h..", f.n, NULL);
    po_value_id w = po_mk_rearrange(d, c->w, "o c k h.. -> o (k c) h..", f.n, NULL);
    f.in = taps * c->in;
    return po_derive_done(d, unframe(d, c, po_mk_conv(d, x, w, c->b, &f)), "taps as channels");
}

static po_status by_sum(po_deriving *d, const po_conv *c) {
    const po_conv f = po_conv_without_axis(c, 0);
    const int64_t taps = c->kernel[0], length = c->before[0] + c->size[0] + c->after[0];
    po_value_id part[MOST_TAPS];
    po_derive_begin(d, c->node);
    po_value_id x = po_mk_rearrange(d, c->x, "n c t h.. -> n t+b=l c h..", f.n,
                                    PO_SIZES({"b", c->before}, {"l", &length}));
    for (int64_t k = 0; k < taps; k++) {
        po_value_id frames = po_mk_slice(d, x, 1, k * c->dilation[0], c->to[0], c->stride[0]);
        frames = po_mk_rearrange(d, frames, "n t c h.. -> (n t) c h..", f.n, NULL);
        po_value_id w = po_mk_slice(d, c->w, 2, k, 1, 1);
        w = po_mk_rearrange(d, w, "o c 1 h.. -> o c h..", f.n, NULL);
        part[k] = po_mk_conv(d, frames, w, k + 1 == taps ? c->b : PO_NONE, &f);
    }
    po_value_id y = po_mk_sum(d, (uint32_t)taps, part);
    return po_derive_done(d, unframe(d, c, y), "frames summed");
}

/* Side condition: two or three map axes, 2 to 8 taps along the first. */
po_status po_derive_frames(po_deriving *d, po_node_id id) {
    po_conv c;
    if (!po_read_conv(d->from, id, &c) || c.n < 2 || c.kernel[0] < 2 || c.kernel[0] > MOST_TAPS)
        return PO_OK;
    PO_TRY(by_channels(d, &c));
    return by_sum(d, &c);
}
