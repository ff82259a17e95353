/* Fast bilinear algorithms F(m, r) along one map axis, or along two at once: m outputs from
 * m + r - 1 products instead of m r (Winograd; Toom-Cook).
 *
 * The map is cut into tiles of n inputs every m outputs. With tiles' elements apart, [N, n, C,
 * tiles, ..], B^T is a matrix product over n, the products are a convolution with n groups in which
 * the axis' taps are gone, A^T is a matrix product again. Nested along two axes the tables are
 * Kronecker products. With dilation d a tile takes every d-th element: the axis is then cut into
 * its d phases, and each is tiled. With stride s the taps fall into s phases of their own, each
 * with an algorithm for its r / s taps, side by side (a decomposition as in DWM, arXiv 2002.00552).
 * Tiles of the first of three axes go to the batch, so that the products are planes.
 *
 * Side conditions: more taps than the stride on the axis, not dilated and strided at once, at most
 * 8 products a phase, two tiles or more. Equal everywhere; multiplications fall by n / (m r),
 * weights grow by n / r. All tables are dyadic, so exact in float32; the fractions of G are
 * quotients of exact tables, evaluated with the weights. */
#include "rewrite/bilinear/tiled.h"

/* [N, C, then for each map axis (blocks, elements of a block, dilation) or (size)], and where each
 * map axis stands. */
typedef struct layout {
    int64_t dims[PO_MOST_DIMS];
    uint32_t rank;
    uint32_t at[PO_MAP_AXES];
} layout;

static layout lay_out(int64_t batch, int64_t channels, uint32_t n, const int64_t *size,
                      const po_tiled *t, uint32_t n_t, bool made) {
    layout l = {.dims = {batch, channels}, .rank = 2};
    for (uint32_t i = 0; i < n; i++) {
        const po_tiled *here = NULL;
        for (uint32_t k = 0; k < n_t; k++)
            if (t[k].axis == i)
                here = &t[k];
        l.at[i] = l.rank;
        if (here) {
            l.dims[l.rank++] = made ? here->tiles : here->room;
            l.dims[l.rank++] = made ? here->m : here->step;
            l.dims[l.rank++] = here->d;
        } else
            l.dims[l.rank++] = size[i];
    }
    return l;
}

/* x is [N, elements of a block for each tiled axis, C, three map axes]: every tile's inputs are a
 * slice of its own block and the blocks behind it. */
static po_value_id gather(po_deriving *d, po_value_id x, const po_tiled *t, uint32_t n_t) {
    for (uint32_t k = 0; k < n_t; k++) {
        uint32_t blocks = 2 + n_t + t[k].axis, n = 0;
        po_value_id part[PO_MOST_PRODUCTS];
        for (int64_t left = t[k].n, e = 0; left > 0; left -= t[k].step, e++) {
            po_value_id p = po_mk_slice(d, x, blocks, e, t[k].tiles, 1);
            part[n++] = left < t[k].step ? po_mk_slice(d, p, k + 1, 0, left, 1) : p;
        }
        x = po_mk_concat(d, k + 1, n, part);
    }
    return x;
}

/* The map padded and taken apart: [(d.. N), block elements.., C, three map axes]. */
static po_value_id take_apart(po_deriving *d, const po_conv *c, const po_tiled *t, uint32_t n_t,
                              int64_t batch) {
    int64_t before[PO_MOST_DIMS] = {0}, after[PO_MOST_DIMS] = {0}, apart[PO_MOST_DIMS];
    int perm[PO_MOST_DIMS];
    uint32_t k = 0;
    for (uint32_t i = 0; i < n_t; i++) {
        uint32_t axis = t[i].axis;
        before[2 + axis] = c->before[axis];
        after[2 + axis] = t[i].room * t[i].step * t[i].d - c->before[axis] - c->size[axis];
    }
    layout in = lay_out(c->batch, c->in, c->n, c->size, t, n_t, false);
    po_value_id x = po_mk_reshape(d, po_mk_pads(d, c->x, before, after), in.rank, in.dims);
    for (uint32_t i = 0; i < n_t; i++)
        perm[k++] = (int)in.at[t[i].axis] + 2;
    perm[k++] = 0;
    for (uint32_t i = 0; i < n_t; i++)
        perm[k++] = (int)in.at[t[i].axis] + 1;
    perm[k++] = 1;
    for (uint32_t i = 0; i < c->n; i++)
        perm[k++] = (int)in.at[i];
    x = po_mk_transpose(d, x, perm);
    apart[0] = batch;
    for (uint32_t i = 0; i < n_t; i++)
        apart[1 + i] = t[i].step;
    apart[1 + n_t] = c->in;
    for (uint32_t i = 0; i < PO_MAP_AXES; i++)
        apart[2 + n_t + i] = i < c->n ? in.dims[in.at[i]] : 1;
    return po_mk_reshape(d, x, n_t + 2 + PO_MAP_AXES, apart);
}

/* [d.., N, m.., O, map] at the places that `at` gives, back to [N, O, map], cropped. */
static po_value_id put_together(po_deriving *d, const po_conv *c, const po_tiled *t, uint32_t n_t,
                                bool frames, po_value_id x) {
    layout out = lay_out(c->batch, c->out, c->n, c->to, t, n_t, true);
    int64_t apart[PO_MOST_DIMS], whole[PO_MOST_DIMS] = {c->batch, c->out};
    int back[PO_MOST_DIMS];
    uint32_t k = 0;
    for (uint32_t i = 0; i < n_t; i++)
        apart[k++] = t[i].d;
    back[0] = (int)k;
    apart[k++] = c->batch;
    if (frames) {
        back[out.at[0]] = (int)k;
        apart[k++] = t[0].tiles;
    }
    for (uint32_t i = 0; i < n_t; i++) {
        back[out.at[t[i].axis] + 1] = (int)k;
        back[out.at[t[i].axis] + 2] = (int)i;
        apart[k++] = t[i].m;
    }
    back[1] = (int)k;
    apart[k++] = c->out;
    for (uint32_t i = frames; i < c->n; i++) {
        back[out.at[i]] = (int)k;
        apart[k++] = out.dims[out.at[i]];
    }
    x = po_mk_transpose(d, po_mk_reshape(d, x, k, apart), back);
    memcpy(&whole[2], c->to, c->n * sizeof *whole);
    for (uint32_t i = 0; i < n_t; i++)
        whole[2 + t[i].axis] = t[i].tiles * t[i].m * t[i].d;
    x = po_mk_reshape(d, x, c->n + 2, whole);
    for (uint32_t i = 0; i < n_t; i++)
        x = po_mk_slice(d, x, 2 + t[i].axis, 0, c->to[t[i].axis], 1);
    return x;
}

/* The convolution of the products: of rank 4 at least, because runtimes are made for that. */
static po_conv plane_of(const po_conv *c, const po_tiled *t, uint32_t n_t, bool frames,
                        int64_t products) {
    po_conv plane = *c;
    for (uint32_t i = 0; i < n_t; i++) {
        uint32_t a = t[i].axis;
        plane.kernel[a] = plane.stride[a] = plane.dilation[a] = 1;
        plane.before[a] = plane.after[a] = 0;
        plane.size[a] = plane.to[a] = t[i].tiles;
    }
    if (frames)
        plane = po_conv_without_axis(&plane, 0);
    else if (c->n == 1)
        plane = po_conv_with_axis(&plane, 0);
    plane.group = products;
    return plane;
}

static po_status build(po_deriving *d, const po_conv *c, const po_tiled *t, uint32_t n_t) {
    int64_t products = 1, batch = c->batch;
    bool frames = c->n == 3 && n_t == 1 && t[0].axis == 0;
    for (uint32_t k = 0; k < n_t; k++) {
        products *= t[k].n;
        batch *= t[k].d;
    }
    if (products > PO_MOST_PRODUCTS)
        return PO_OK;
    po_derive_begin(d, c->node);
    po_conv plane = plane_of(c, t, n_t, frames, products);
    po_value_id x = gather(d, take_apart(d, c, t, n_t, batch), t, n_t);
    if (frames) {
        int64_t dims[] = {batch, t[0].n, c->in, t[0].tiles, c->size[1] * c->size[2]};
        x = po_mk_transpose(d, po_mk_reshape(d, x, 5, dims), (int[]){0, 3, 1, 2, 4});
        batch *= t[0].tiles;
    }
    int64_t dims[PO_MOST_DIMS] = {batch, products * c->in}, area = 1, made = 1;
    for (uint32_t i = 0; i < plane.n; i++) {
        dims[2 + i] = plane.size[i];
        area *= plane.size[i];
        made *= plane.to[i];
    }
    x = po_mk_reshape(d, x, 3, (int64_t[]){batch, products, c->in * area});
    x = po_mk_matmul(d, po_tiled_constant(d, t, n_t, PO_TILED_B), x);
    x = po_mk_reshape(d, x, plane.n + 2, dims);
    po_value_id w = po_tiled_weights(d, c, t, n_t, products, plane.n, plane.kernel);
    po_value_id b = po_tiled_bias(d, c, t, n_t, products);
    x = po_mk_conv(d, x, w, b, &plane);
    x = po_mk_reshape(d, x, 3, (int64_t[]){batch, products, c->out * made});
    x = po_mk_matmul(d, po_tiled_constant(d, t, n_t, PO_TILED_A), x);
    x = put_together(d, c, t, n_t, frames, x);
    return po_derive_done(d, x, po_tiled_name(d, t, n_t));
}

po_status po_derive_bilinear(po_deriving *d, po_node_id id) {
    po_conv c;
    po_tiled t[2];
    /* Products take the place of groups: with groups of its own the node would interleave both. */
    if (!po_read_conv(d->from, id, &c) || c.group != 1)
        return PO_OK;
    for (uint32_t i = 0; c.n == 3 && i < c.n; i++)
        for (int64_t m = 2; m <= PO_MOST_OUTPUTS; m += 2)
            if (po_tile(d->arena, &c, i, m, &t[0]))
                PO_TRY(build(d, &c, t, 1));
    for (int64_t m = 2; c.n > 1 && m <= PO_MOST_OUTPUTS; m += 2)
        if (po_tile(d->arena, &c, c.n - 2, m, &t[0]) && po_tile(d->arena, &c, c.n - 1, m, &t[1]))
            PO_TRY(build(d, &c, t, 2));
    return PO_OK;
}
