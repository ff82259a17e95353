/* Fast bilinear algorithms (derive_bilinear.c) with channels innermost.
 *
 * Along one of at most two map axes: x becomes [N, other axis, axis, C], so that taking tiles moves
 * rows of channels and B^T and A^T are small products on [n, C]; the products of all tiles are the
 * channels of one map [N, n C, other, tiles], whose turn to channels first the runtime joins with
 * its own change of layout. Side conditions and equality as there.
 *
 * Not in R/T's notation: that leaves out axes of length 1 and pads before it turns, and the runtime
 * joins only Transposes of rank 4 right beside a convolution with its changes of layout (a
 * classifier of bytes: 1.57 ms so, 2.2 ms in the fewest nodes). */
#include "rewrite/bilinear/tiled.h"

/* [N, C, axes] to [N, other, axis, C] and back; `axis` 0 or 1 of n. */
static po_value_id inwards(po_deriving *d, po_value_id x, uint32_t n, uint32_t axis) {
    if (n == 1)
        return po_mk_transpose(d, x, (int[]){0, 2, 1});
    return po_mk_transpose(d, x, axis ? (int[]){0, 2, 3, 1} : (int[]){0, 3, 2, 1});
}

static po_value_id outwards(po_deriving *d, po_value_id x, uint32_t n, uint32_t axis) {
    if (n == 1)
        return po_mk_transpose(d, x, (int[]){0, 2, 1});
    return po_mk_transpose(d, x, axis ? (int[]){0, 3, 1, 2} : (int[]){0, 3, 2, 1});
}

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
    int64_t rows = plane.size[0], made = plane.to[0], batch = t->d * c->batch;
    const uint32_t n = c->n; /* of [N, (other), axis, C], where the axis stands, too */
    po_value_id x = inwards(d, c->x, n, t->axis), part[PO_MOST_PRODUCTS];
    x = po_mk_pad(d, x, n, c->before[t->axis],
                  t->room * t->step * t->d - c->before[t->axis] - c->size[t->axis]);
    if (t->d > 1) {
        int64_t dims[] = {c->batch, rows, t->room * t->step, t->d, c->in};
        x = po_mk_transpose(d, po_mk_reshape(d, x, 5, dims), (int[]){3, 0, 1, 2, 4});
    }
    x = po_mk_reshape(d, x, 4, (int64_t[]){batch * rows, t->room, t->step, c->in});
    uint32_t parts = 0;
    for (int64_t left = t->n, e = 0; left > 0; left -= t->step, e++) {
        po_value_id p = po_mk_slice(d, x, 1, e, t->tiles, 1);
        part[parts++] = left < t->step ? po_mk_slice(d, p, 2, 0, left, 1) : p;
    }
    x = po_mk_concat(d, 2, parts, part);
    x = po_mk_reshape(d, x, 3, (int64_t[]){batch * rows * t->tiles, t->n, c->in});
    x = po_mk_matmul(d, po_tiled_constant(d, t, 1, PO_TILED_B), x);
    x = po_mk_reshape(d, x, 4, (int64_t[]){batch, rows, t->tiles, t->n * c->in});
    x = po_mk_transpose(d, x, (int[]){0, 3, 1, 2});
    po_value_id w = po_tiled_weights(d, c, t, 1, t->n, 2, plane.kernel);
    x = po_mk_conv(d, x, w, po_tiled_bias(d, c, t, 1, t->n), &plane);
    x = po_mk_transpose(d, x, (int[]){0, 2, 3, 1});
    x = po_mk_reshape(d, x, 3, (int64_t[]){batch * made * t->tiles, t->n, c->out});
    x = po_mk_matmul(d, po_tiled_constant(d, t, 1, PO_TILED_A), x);
    if (t->d > 1) {
        int64_t dims[] = {t->d, c->batch, made, t->tiles * t->m, c->out};
        x = po_mk_transpose(d, po_mk_reshape(d, x, 5, dims), (int[]){1, 2, 3, 0, 4});
    }
    int64_t length = t->tiles * t->m * t->d;
    if (n == 1)
        x = po_mk_reshape(d, x, 3, (int64_t[]){c->batch, length, c->out});
    else
        x = po_mk_reshape(d, x, 4, (int64_t[]){c->batch, made, length, c->out});
    x = po_mk_slice(d, x, n, 0, c->to[t->axis], 1);
    return po_derive_done(d, outwards(d, x, n, t->axis), po_tiled_name(d, t, 1));
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
