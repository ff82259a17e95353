/* Convolutions of three map axes as those of two, over frames.
 *
 * The first map axis is taken apart: the taps along it either become channels (every output frame
 * reads its taps side by side), or make an output each, which are summed over shifted frames.
 * Equal everywhere. For maps of two axes the same gives convolutions over rows. */
#include "rewrite/deriving.h"

enum { MOST_TAPS = 8 };

/* [N, C, T, ..] to [N, T, C, ..] and back. */
static po_value_id turn(po_deriving *d, po_value_id x, uint32_t rank) {
    int perm[PO_MOST_DIMS] = {0, 2, 1};
    for (uint32_t i = 3; i < rank; i++)
        perm[i] = (int)i;
    return po_mk_transpose(d, x, perm);
}

/* [N T, O, ..] as [N, O, T, ..]. */
static po_value_id unframe(po_deriving *d, const po_conv *c, po_value_id y) {
    int64_t dims[PO_MOST_DIMS] = {c->batch, c->to[0], c->out};
    for (uint32_t i = 1; i < c->n; i++)
        dims[2 + i] = c->to[i];
    return turn(d, po_mk_reshape(d, y, c->n + 2, dims), c->n + 2);
}

static po_status by_channels(po_deriving *d, const po_conv *c) {
    po_conv f = po_conv_without_axis(c, 0);
    int64_t g = c->group, taps = c->kernel[0], dims[PO_MOST_DIMS];
    po_value_id part[MOST_TAPS];
    uint32_t n = c->n;
    po_derive_begin(d, c->node);
    po_value_id x = turn(d, c->x, n + 2);
    x = po_mk_pad(d, x, 1, c->before[0], c->after[0]);
    /* [N, T, g, 1, C/g, ..], one for each tap, joined on the axis of length 1. */
    dims[0] = c->batch;
    dims[1] = c->to[0];
    dims[2] = g;
    dims[3] = 1;
    dims[4] = c->in / g;
    for (uint32_t i = 1; i < n; i++)
        dims[4 + i] = c->size[i];
    for (int64_t k = 0; k < taps; k++) {
        part[k] = po_mk_slice(d, x, 1, k * c->dilation[0], c->to[0], c->stride[0]);
        part[k] = po_mk_reshape(d, part[k], n + 4, dims);
    }
    x = po_mk_concat(d, 3, (uint32_t)taps, part);
    dims[0] = c->batch * c->to[0];
    dims[1] = taps * c->in;
    memcpy(&dims[2], f.size, f.n * sizeof *dims);
    x = po_mk_reshape(d, x, f.n + 2, dims);
    int perm[PO_MOST_DIMS] = {0, 2, 1};
    for (uint32_t i = 3; i < n + 2; i++)
        perm[i] = (int)i;
    po_value_id w = po_mk_transpose(d, c->w, perm);
    dims[0] = c->out;
    dims[1] = taps * c->in / g;
    memcpy(&dims[2], f.kernel, f.n * sizeof *dims);
    w = po_mk_reshape(d, w, f.n + 2, dims);
    f.in = taps * c->in;
    return po_derive_done(d, unframe(d, c, po_mk_conv(d, x, w, c->b, &f)), "taps as channels");
}

static po_status by_sum(po_deriving *d, const po_conv *c) {
    po_conv f = po_conv_without_axis(c, 0);
    int64_t taps = c->kernel[0], dims[PO_MOST_DIMS];
    po_value_id part[MOST_TAPS];
    uint32_t n = c->n;
    po_derive_begin(d, c->node);
    po_value_id x = po_mk_pad(d, turn(d, c->x, n + 2), 1, c->before[0], c->after[0]);
    for (int64_t k = 0; k < taps; k++) {
        po_value_id frames = po_mk_slice(d, x, 1, k * c->dilation[0], c->to[0], c->stride[0]);
        dims[0] = c->batch * c->to[0];
        dims[1] = c->in;
        memcpy(&dims[2], f.size, f.n * sizeof *dims);
        frames = po_mk_reshape(d, frames, f.n + 2, dims);
        po_value_id w = po_mk_slice(d, c->w, 2, k, 1, 1);
        dims[0] = c->out;
        dims[1] = c->in / c->group;
        memcpy(&dims[2], f.kernel, f.n * sizeof *dims);
        w = po_mk_reshape(d, w, f.n + 2, dims);
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
