/* One-dimensional convolutions as two-dimensional ones of height 1 or of width 1, and back.
 *
 * Nothing is computed differently: the maps and the weights get an axis of length 1, or an axis of
 * length 1 with a kernel of length 1 and no padding goes. An axis whose kernel is 1, with stride 1
 * and no padding, is as good as a batch axis: then it goes there. */
#include "rewrite/deriving.h"

static po_value_id with_axis(po_deriving *d, po_value_id v, uint32_t axis) {
    int64_t dims[PO_MOST_DIMS];
    uint32_t rank;
    if (!po_dims_of(d->g, v, &rank, dims)) {
        d->dropped = true;
        return v;
    }
    memmove(&dims[axis + 1], &dims[axis], (rank - axis) * sizeof *dims);
    dims[axis] = 1;
    return po_mk_reshape(d, v, rank + 1, dims);
}

static po_status widen(po_deriving *d, const po_conv *c, uint32_t at, const char *detail) {
    po_derive_begin(d, c->node);
    po_conv wide = po_conv_with_axis(c, at);
    po_value_id x = with_axis(d, c->x, 2 + at), w = with_axis(d, c->w, 2 + at);
    po_value_id y = po_mk_conv(d, x, w, c->b, &wide);
    int64_t dims[PO_MOST_DIMS] = {c->batch, c->out, c->to[0]};
    return po_derive_done(d, po_mk_reshape(d, y, 3, dims), detail);
}

/* Axis `at` into the batch. */
static po_status narrow(po_deriving *d, const po_conv *c, uint32_t at, const char *detail) {
    po_derive_begin(d, c->node);
    po_conv flat = po_conv_without_axis(c, at);
    uint32_t n = c->n;
    int64_t dims[PO_MOST_DIMS], wd[PO_MOST_DIMS] = {c->out, c->in / c->group};
    int perm[PO_MOST_DIMS] = {0, 2 + (int)at, 1}, back[PO_MOST_DIMS] = {0, 2};
    dims[0] = c->batch * c->size[at];
    dims[1] = c->in;
    back[2 + at] = 1;
    for (uint32_t i = 0, k = 0; i < n; i++) {
        if (i == at)
            continue;
        perm[3 + k] = 2 + (int)i;
        back[2 + i] = 3 + (int)k;
        dims[2 + k] = c->size[i];
        wd[2 + k] = c->kernel[i];
        k++;
    }
    po_value_id x = c->x;
    if (c->size[at] > 1)
        x = po_mk_transpose(d, x, perm);
    x = po_mk_reshape(d, x, n + 1, dims);
    x = po_mk_conv(d, x, po_mk_reshape(d, c->w, n + 1, wd), c->b, &flat);
    if (c->size[at] > 1) {
        dims[0] = c->batch;
        dims[1] = c->size[at];
        dims[2] = c->out;
        for (uint32_t i = 0, k = 0; i < n; i++)
            if (i != at)
                dims[3 + k++] = c->to[i];
        x = po_mk_reshape(d, x, n + 2, dims);
        x = po_mk_transpose(d, x, back);
    } else {
        dims[0] = c->batch;
        dims[1] = c->out;
        memcpy(&dims[2], c->to, n * sizeof *dims);
        x = po_mk_reshape(d, x, n + 2, dims);
    }
    return po_derive_done(d, x, detail);
}

po_status po_derive_rank(po_deriving *d, po_node_id id) {
    po_conv c;
    if (!po_read_conv(d->from, id, &c) || c.n != 1)
        return PO_OK;
    PO_TRY(widen(d, &c, 0, "height 1"));
    return widen(d, &c, 1, "width 1");
}

po_status po_derive_fewer_axes(po_deriving *d, po_node_id id) {
    po_conv c;
    if (!po_read_conv(d->from, id, &c) || c.n < 2)
        return PO_OK;
    for (uint32_t i = 0; i < c.n; i++)
        if (c.kernel[i] == 1 && c.stride[i] == 1 && c.before[i] == 0 && c.after[i] == 0)
            PO_TRY(narrow(d, &c, i, c.size[i] > 1 ? "single taps to the batch" : "length 1"));
    return PO_OK;
}
