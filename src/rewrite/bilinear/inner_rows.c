/* Fast bilinear algorithms (derive_bilinear.c) with channels innermost.
 *
 * Along one of at most two map axes: x becomes [N, other axis, axis, C], so that taking tiles moves
 * rows of channels and B^T and A^T are small products on [n, C]; the products of all tiles are the
 * channels of one map [N, n C, other, tiles], whose turn to channels first the runtime joins with
 * its own change of layout. Side conditions and equality as there. */
#include "rewrite/bilinear/tiled.h"

/* The products' convolution over [other, tiles]. */
static po_conv plane_of(const po_conv *c, const po_tiled *t) {
    po_conv p = {.node = c->node,
                 .n = 2,
                 .group = t->n,
                 .size = {1, t->tiles},
                 .to = {1, t->tiles},
                 .kernel = {1, 1},
                 .stride = {1, 1},
                 .dilation = {1, 1}};
    if (c->n == 2) {
        uint32_t o = 1 - t->axis;
        p.size[0] = c->size[o];
        p.to[0] = c->to[o];
        p.kernel[0] = c->kernel[o];
        p.stride[0] = c->stride[o];
        p.dilation[0] = c->dilation[o];
        p.before[0] = c->before[o];
        p.after[0] = c->after[o];
    }
    return p;
}

static po_status build(po_deriving *d, const po_conv *c, const po_tiled *t) {
    po_derive_begin(d, c->node);
    po_conv plane = plane_of(c, t);
    const int64_t rows = plane.size[0], made = plane.to[0];
    /* y is the other axis, of length 1 where there is none. */
    const char *y = c->n == 1 ? "1" : "y", *before = c->n == 2 && t->axis == 1 ? "y" : "",
               *behind = c->n == 2 && t->axis == 0 ? "y" : "";
    const po_rt_size *blocks =
        PO_SIZES({"r", &t->room}, {"s", &t->step}, {"d", &t->d}, {"b", &c->before[t->axis]});
    const char *apart =
        po_arena_printf(d->arena, "n c %s (r s d)-b %s -> (d n %s) r s c", before, behind, y);
    po_value_id x = po_mk_rearrange(d, c->x, apart, 0, blocks), part[PO_MOST_PRODUCTS];
    uint32_t parts = 0;
    for (int64_t left = t->n, e = 0; left > 0; left -= t->step, e++) {
        po_value_id p = po_mk_slice(d, x, 1, e, t->tiles, 1);
        part[parts++] = left < t->step ? po_mk_slice(d, p, 2, 0, left, 1) : p;
    }
    x = po_mk_rearrange(d, po_mk_concat(d, 2, parts, part), "m t k c -> (m t) k c", 0, NULL);
    x = po_mk_matmul(d, po_tiled_constant(d, t, 1, PO_TILED_B), x);
    x = po_mk_rearrange(d, x, "(m y t) k c -> m (k c) y t", 0,
                        PO_SIZES({"y", &rows}, {"t", &t->tiles}));
    po_value_id w = po_tiled_weights(d, c, t, 1, t->n, 2, plane.kernel);
    x = po_mk_conv(d, x, w, po_tiled_bias(d, c, t, 1, t->n), &plane);
    x = po_mk_rearrange(d, x, "m (k c) y t -> (m y t) k c", 0, PO_SIZES({"k", &t->n}));
    x = po_mk_matmul(d, po_tiled_constant(d, t, 1, PO_TILED_A), x);
    const char *together =
        po_arena_printf(d->arena, "(d n %s t) m c -> n c %s (t m d)=l %s", y, before, behind);
    x = po_mk_rearrange(
        d, x, together, 0,
        PO_SIZES({"d", &t->d}, {"y", &made}, {"t", &t->tiles}, {"l", &c->to[t->axis]}));
    return po_derive_done(d, x, po_tiled_name(d, t, 1));
}

po_status po_derive_rows(po_deriving *d, po_node_id id) {
    static const int64_t outputs[] = {2, 3, 4, 6};
    po_conv c;
    po_tiled t;
    if (!po_read_conv(d->from, id, &c) || c.group != 1 || c.n > 2)
        return PO_OK;
    for (uint32_t i = 0; i < c.n; i++)
        for (uint32_t k = 0; k < sizeof outputs / sizeof *outputs; k++)
            if (po_tile(d->arena, &c, i, outputs[k], &t))
                PO_TRY(build(d, &c, &t));
    return PO_OK;
}
