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

/* Of each map axis; one that is not tiled has tiles of one element. */
typedef struct axes {
    int64_t room[PO_MAP_AXES], step[PO_MAP_AXES], d[PO_MAP_AXES], before[PO_MAP_AXES];
    int64_t tiles[PO_MAP_AXES], m[PO_MAP_AXES];
} axes;

static axes axes_of(const po_conv *c, const po_tiled *t, uint32_t n_t) {
    axes a;
    for (uint32_t i = 0; i < c->n; i++) {
        a.room[i] = c->size[i];
        a.tiles[i] = c->to[i];
        a.step[i] = a.d[i] = a.m[i] = 1;
        a.before[i] = 0;
    }
    for (uint32_t k = 0; k < n_t; k++) {
        const uint32_t i = t[k].axis;
        a.room[i] = t[k].room;
        a.step[i] = t[k].step;
        a.d[i] = t[k].d;
        a.before[i] = c->before[i];
        a.tiles[i] = t[k].tiles;
        a.m[i] = t[k].m;
    }
    return a;
}

/* x is [N, elements of a block for each axis, C, blocks]: every tile's inputs are a slice of its
 * own block and the blocks behind it. */
static po_value_id gather(po_deriving *d, po_value_id x, uint32_t n, const po_tiled *t) {
    const uint32_t elements = 1 + t->axis, blocks = 2 + n + t->axis;
    po_value_id part[PO_MOST_PRODUCTS];
    uint32_t parts = 0;
    for (int64_t left = t->n, e = 0; left > 0; left -= t->step, e++) {
        po_value_id p = po_mk_slice(d, x, blocks, e, t->tiles, 1);
        part[parts++] = left < t->step ? po_mk_slice(d, p, elements, 0, left, 1) : p;
    }
    return po_mk_concat(d, elements, parts, part);
}

/* The convolution of the products. */
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
    plane.group = products;
    return plane;
}

static po_status build(po_deriving *d, const po_conv *c, const po_tiled *t, uint32_t n_t) {
    int64_t products = 1;
    const bool frames = c->n == 3 && n_t == 1 && t[0].axis == 0;
    for (uint32_t k = 0; k < n_t; k++)
        products *= t[k].n;
    if (products > PO_MOST_PRODUCTS)
        return PO_OK;
    po_derive_begin(d, c->node);
    const axes a = axes_of(c, t, n_t);
    const po_conv plane = plane_of(c, t, n_t, frames, products);
    po_value_id x =
        po_mk_rearrange(d, c->x, "n c (r s d)-b.. -> (d.. n) s.. c r..", c->n,
                        PO_SIZES({"r", a.room}, {"s", a.step}, {"d", a.d}, {"b", a.before}));
    for (uint32_t k = 0; k < n_t; k++)
        x = gather(d, x, c->n, &t[k]);
    x = po_mk_rearrange(
        d, x, frames ? "n s.. c t y x -> (n t) (s..) (c y x)" : "n s.. c h.. -> n (s..) (c h..)",
        c->n, NULL);
    x = po_mk_matmul(d, po_tiled_constant(d, t, n_t, PO_TILED_B), x);
    x = po_mk_rearrange(d, x, "n p (c h..) -> n (p c) h..", plane.n, PO_SIZES({"h", plane.size}));
    po_value_id w = po_tiled_weights(d, c, t, n_t, products, plane.n, plane.kernel);
    po_value_id b = po_tiled_bias(d, c, t, n_t, products);
    x = po_mk_conv(d, x, w, b, &plane);
    x = po_mk_rearrange(d, x, "n (p c) h.. -> n p (c h..)", plane.n, PO_SIZES({"p", &products}));
    x = po_mk_matmul(d, po_tiled_constant(d, t, n_t, PO_TILED_A), x);
    x = po_mk_rearrange(d, x,
                        frames ? "(d n t) m (c y x) -> n c (t m d)=l y x"
                               : "(d.. n) (m..) (c t..) -> n c (t m d)=l..",
                        c->n,
                        PO_SIZES({"d", a.d}, {"m", a.m}, {"t", a.tiles}, {"l", c->to},
                                 {"y", &c->to[1]}, {"x", &c->to[2]}));
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
