/* Convolutions cut by their taps.
 *
 * y[o] is the sum over taps t of w[t] x[o s - before + d t]: a product by all taps at once, each
 * shifted to its place and summed (EinNet's convolution to matrix product and offset add). With
 * blocks of taps for single ones, a large kernel becomes several small ones of the same map, whose
 * outputs are summed at offsets (a 5x5 kernel as four of 3x3). Equal everywhere. */
#include "base/num.h"
#include "rewrite/deriving.h"

enum { MOST_TAPS = 64, BLOCK = 3, MOST_BLOCKS = 9 };

/* The map padded as the convolution pads it, so that no tap falls outside. */
static po_value_id padded(po_deriving *d, po_value_id v, const po_conv *c) {
    int64_t before[PO_MOST_DIMS] = {0}, after[PO_MOST_DIMS] = {0};
    memcpy(&before[2], c->before, c->n * sizeof *before);
    memcpy(&after[2], c->after, c->n * sizeof *after);
    return po_mk_pads(d, v, before, after);
}

/* [O, C, taps] to [taps O, C]: every tap's matrix below the other. */
static po_value_id tap_rows(po_deriving *d, const po_conv *c, int64_t taps) {
    po_value_id w = po_mk_reshape(d, c->w, 3, (int64_t[]){c->out, c->in, taps});
    w = po_mk_transpose(d, w, (int[]){2, 0, 1});
    return po_mk_reshape(d, w, 2, (int64_t[]){taps * c->out, c->in});
}

/* Side condition: one group, more than one tap. */
po_status po_derive_taps(po_deriving *d, po_node_id id) {
    po_conv c;
    int64_t taps;
    if (!po_read_conv(d->from, id, &c) || c.group != 1 || (taps = po_conv_taps(&c)) < 2 ||
        taps > MOST_TAPS)
        return PO_OK;
    for (int as_matmul = 0; as_matmul < 2; as_matmul++) {
        po_derive_begin(d, id);
        int64_t dims[PO_MOST_DIMS] = {taps * c.out, c.in}, all = 1;
        for (uint32_t i = 0; i < c.n; i++) {
            all *= c.size[i];
            dims[2 + i] = 1;
        }
        po_value_id w = tap_rows(d, &c, taps), t, part[MOST_TAPS];
        if (as_matmul) {
            t = po_mk_reshape(d, c.x, 3, (int64_t[]){c.batch, c.in, all});
            t = po_mk_matmul(d, w, t);
        } else {
            po_conv point = c;
            for (uint32_t i = 0; i < c.n; i++) {
                point.kernel[i] = point.stride[i] = point.dilation[i] = 1;
                point.before[i] = point.after[i] = 0;
            }
            t = po_mk_conv(d, c.x, po_mk_reshape(d, w, c.n + 2, dims), PO_NONE, &point);
        }
        dims[0] = c.batch;
        dims[1] = taps * c.out;
        memcpy(&dims[2], c.size, c.n * sizeof *dims);
        t = padded(d, po_mk_reshape(d, t, c.n + 2, dims), &c);
        int64_t at[PO_MAP_AXES] = {0};
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
    /* [O, C, (p q) ..] to [p .. O, C, q ..]. */
    int64_t after[PO_MOST_DIMS] = {0}, none[PO_MOST_DIMS] = {0}, dims[PO_MOST_DIMS];
    int perm[PO_MOST_DIMS];
    uint32_t r = 2, n = c.n;
    dims[0] = c.out;
    dims[1] = c.in;
    for (uint32_t i = 0; i < n; i++) {
        after[2 + i] = pieces[i] * small.kernel[i] - c.kernel[i];
        dims[r++] = pieces[i];
        dims[r++] = small.kernel[i];
        perm[i] = (int)(2 + 2 * i);
        perm[n + 2 + i] = (int)(3 + 2 * i);
        /* One convolution makes all blocks' outputs: its map reaches as far as the last shift. */
        int64_t shift = (pieces[i] - 1) * BLOCK * c.dilation[i] / c.stride[i];
        int64_t reach =
            (c.to[i] + shift - 1) * c.stride[i] + c.dilation[i] * (small.kernel[i] - 1) + 1;
        small.after[i] = po_larger(0, reach - c.before[i] - c.size[i]);
    }
    perm[n] = 0;
    perm[n + 1] = 1;
    po_value_id w = po_mk_pads(d, c.w, none, after), part[MOST_BLOCKS];
    w = po_mk_reshape(d, w, r, dims);
    w = po_mk_transpose(d, w, perm);
    dims[0] = count * c.out;
    memcpy(&dims[2], small.kernel, n * sizeof *dims);
    w = po_mk_reshape(d, w, n + 2, dims);
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
