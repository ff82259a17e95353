/* Fast bilinear algorithms F(m, r) along one map axis, or along two at once: m outputs from
 * m + r - 1 products instead of m r (Winograd; Toom-Cook).
 *
 * The map is cut into tiles of n = m + r - 1 inputs every m. With tiles' elements apart, [N, n, C,
 * tiles, ..], B^T is a matrix product over n, the products are a convolution with n groups in which
 * the axis' taps are gone, A^T is a matrix product again. Nested along two axes the tables are
 * Kronecker products. With dilation d a tile takes every d-th element: the axis is then cut into
 * its d phases, and each is tiled. Side conditions: stride 1 and more than one tap on the axis, at
 * most 8 products an axis, two tiles or more. Equal everywhere; multiplications fall by n / (m r),
 * weights grow by n / r. All tables are dyadic, so exact in float32; the fractions of G are
 * quotients of exact tables, evaluated with the weights. */
#include "mutate/derive.h"
#include "ops/bilinear.h"

enum { MOST_OUTPUTS = 6, MOST_PRODUCTS = 64 };

typedef struct tiled {
    uint32_t axis;
    po_bilinear f;
    int64_t d, tiles, room; /* room: blocks of m (times d) that the padded axis holds */
} tiled;

static bool plan(const po_map_conv *c, uint32_t axis, uint32_t m, tiled *t) {
    *t = (tiled){.axis = axis, .d = c->dilation[axis]};
    if (c->stride[axis] != 1 || c->kernel[axis] < 2 || c->kernel[axis] > PO_BILINEAR_MAX ||
        !po_bilinear_make(m, (uint32_t)c->kernel[axis], &t->f))
        return false;
    t->tiles = po_up_to(c->to[axis], t->d * m) / (t->d * m);
    t->room = t->tiles + po_up_to(t->f.r - 1, m) / m;
    return m <= c->to[axis] && t->tiles * t->d > 1;
}

/* Axes as they come after padding: [N, C, then for each map axis (blocks, m, d) or (size)] and
 * where each stands. */
typedef struct layout {
    int64_t dims[PO_MOST_DIMS];
    uint32_t rank;
    uint32_t at[PO_MAP_AXES]; /* of blocks, or of the axis */
} layout;

static layout lay_out(int64_t batch, int64_t channels, uint32_t n, const int64_t *size,
                      const tiled *t, uint32_t n_t, bool made) {
    layout l = {.dims = {batch, channels}, .rank = 2};
    for (uint32_t i = 0; i < n; i++) {
        const tiled *here = NULL;
        for (uint32_t k = 0; k < n_t; k++)
            if (t[k].axis == i)
                here = &t[k];
        l.at[i] = l.rank;
        if (here) {
            l.dims[l.rank++] = made ? here->tiles : here->room;
            l.dims[l.rank++] = here->f.m;
            l.dims[l.rank++] = here->d;
        } else
            l.dims[l.rank++] = size[i];
    }
    return l;
}

/* Kronecker product of the algorithms' tables; `which`: 0 A, 1 B, 2 powers. */
static po_value_id table(po_deriving *d, const tiled *t, uint32_t n_t, int which) {
    int64_t rows = 1, columns = 1;
    double *v = PO_NEW_N(d->arena, double, 1);
    v[0] = 1;
    for (uint32_t k = 0; k < n_t; k++) {
        const po_bilinear *f = &t[k].f;
        int64_t r = which == 0 ? f->m : f->n, s = which == 2 ? f->r : f->n;
        const double *m = which == 0 ? f->a : which == 1 ? f->b : f->powers;
        double *all = PO_NEW_N(d->arena, double, rows *r *columns *s);
        for (int64_t i = 0; i < rows * r; i++)
            for (int64_t j = 0; j < columns * s; j++)
                all[i * columns * s + j] = v[i / r * columns + j / s] * m[i % r * s + j % s];
        v = all;
        rows *= r;
        columns *= s;
    }
    return po_mk_table(d, 2, (int64_t[]){rows, columns}, v);
}

/* w [O, C/g, k..] to [n O, C/g, k.. with 1 on the tiled axes]. */
static po_value_id weights(po_deriving *d, const po_map_conv *c, const po_map_conv *plane,
                           const tiled *t, uint32_t n_t, int64_t products) {
    int64_t dims[PO_MOST_DIMS] = {c->out, c->in / c->group}, taps = 1, rest = c->in / c->group;
    int perm[PO_MOST_DIMS], k = 0;
    memcpy(&dims[2], c->kernel, c->n * sizeof *dims);
    double *scale = PO_NEW_N(d->arena, double, products);
    scale[0] = 1;
    int64_t rows = 1;
    for (uint32_t i = 0; i < n_t; i++) {
        taps *= c->kernel[t[i].axis];
        perm[k++] = (int)(2 + t[i].axis);
        for (int64_t p = rows * t[i].f.n; p-- > 0;)
            scale[p] = scale[p / t[i].f.n] * t[i].f.scale[p % t[i].f.n];
        rows *= t[i].f.n;
    }
    perm[k++] = 0;
    perm[k++] = 1;
    for (uint32_t i = 0; i < c->n; i++)
        if (plane->kernel[i] == c->kernel[i]) {
            perm[k++] = (int)(2 + i);
            rest *= c->kernel[i];
        }
    po_value_id w = po_mk_transpose(d, c->w, perm);
    w = po_mk_reshape(d, w, 2, (int64_t[]){taps, c->out * rest});
    w = po_mk_matmul(d, table(d, t, n_t, 2), w);
    w = po_mk_binary(d, PO_OP_Div, w, po_mk_table(d, 2, (int64_t[]){products, 1}, scale));
    dims[0] = products * c->out;
    memcpy(&dims[2], plane->kernel, c->n * sizeof *dims);
    return po_mk_reshape(d, w, c->n + 2, dims);
}

/* Every tile's element (j of each tiled axis): slices of the blocks, side by side. */
static po_value_id gather(po_deriving *d, po_value_id x, const tiled *t, uint32_t n_t) {
    /* x is [m.. of each tiled axis, N, C, d.. , map axes with blocks], leading axes first. */
    for (uint32_t k = 0; k < n_t; k++) {
        int64_t dims[PO_MOST_DIMS];
        uint32_t rank;
        if (!po_dims_of(d->g, x, &rank, dims)) {
            d->dropped = true;
            return x;
        }
        uint32_t blocks = rank - 3 + t[k].axis; /* the caller puts map axes last, three of them */
        po_value_id part[PO_BILINEAR_MAX];
        uint32_t n = 0;
        for (int64_t left = t[k].f.n, e = 0; left > 0; left -= t[k].f.m, e++) {
            po_value_id p = po_mk_slice(d, x, blocks, e, t[k].tiles, 1);
            part[n++] = left < t[k].f.m ? po_mk_slice(d, p, k + 1, 0, left, 1) : p;
        }
        x = po_mk_concat(d, k + 1, n, part);
    }
    return x;
}

/* The tiled axes' d phases go into the batch with N; [N, m.., d.., C, map] throughout. */
static po_status build(po_deriving *d, const po_map_conv *c, const tiled *t, uint32_t n_t) {
    uint32_t n = c->n;
    po_derive_begin(d, c->node);
    int64_t before[PO_MOST_DIMS] = {0}, after[PO_MOST_DIMS] = {0}, products = 1, phases = 1;
    po_map_conv plane = *c;
    for (uint32_t k = 0; k < n_t; k++) {
        uint32_t i = t[k].axis;
        before[2 + i] = c->before[i];
        after[2 + i] = t[k].room * t[k].f.m * t[k].d - c->before[i] - c->size[i];
        plane.kernel[i] = plane.dilation[i] = 1;
        plane.before[i] = plane.after[i] = 0;
        products *= t[k].f.n;
        phases *= t[k].d;
    }
    if (products > MOST_PRODUCTS) {
        d->dropped = true;
        return po_derive_end(d, NULL);
    }
    po_value_id x = po_mk_pads(d, c->x, before, after);
    layout in = lay_out(c->batch, c->in, n, c->size, t, n_t, false);
    x = po_mk_reshape(d, x, in.rank, in.dims);
    /* [N, C, (blocks, m, d)..] to [(d.. N), m.., C, map]: three map axes, some of length 1. */
    int perm[PO_MOST_DIMS];
    uint32_t k = 0;
    int64_t apart[PO_MOST_DIMS];
    for (uint32_t i = 0; i < n_t; i++)
        perm[k++] = (int)in.at[t[i].axis] + 2;
    perm[k++] = 0;
    for (uint32_t i = 0; i < n_t; i++)
        perm[k++] = (int)in.at[t[i].axis] + 1;
    perm[k++] = 1;
    for (uint32_t i = 0; i < n; i++)
        perm[k++] = (int)in.at[i];
    x = po_mk_transpose(d, x, perm);
    apart[0] = phases * c->batch;
    for (uint32_t i = 0; i < n_t; i++)
        apart[1 + i] = t[i].f.m;
    apart[1 + n_t] = c->in;
    for (uint32_t i = 0; i < PO_MAP_AXES; i++)
        apart[2 + n_t + i] = i < n ? in.dims[in.at[i]] : 1;
    x = po_mk_reshape(d, x, n_t + 2 + PO_MAP_AXES, apart);
    x = gather(d, x, t, n_t);
    /* B, products, A. */
    int64_t dims[PO_MOST_DIMS] = {phases * c->batch, products * c->in}, area = 1;
    for (uint32_t i = 0; i < n; i++)
        dims[2 + i] = c->size[i];
    for (uint32_t i = 0; i < n_t; i++)
        dims[2 + t[i].axis] = t[i].tiles;
    for (uint32_t i = 0; i < n; i++)
        area *= dims[2 + i];
    x = po_mk_reshape(d, x, 3, (int64_t[]){phases * c->batch, products, c->in * area});
    x = po_mk_matmul(d, table(d, t, n_t, 1), x);
    plane.group = products * c->group;
    x = po_mk_reshape(d, x, n + 2, dims);
    po_value_id w = weights(d, c, &plane, t, n_t, products), bias = PO_NONE;
    if (c->b != PO_NONE) {
        /* Every output takes the product of point 1 once, on each axis. */
        int64_t one = 0;
        for (uint32_t i = 0; i < n_t; i++)
            one = one * t[i].f.n + t[i].f.one;
        bias = po_mk_pad(d, c->b, 0, one * c->out, (products - 1 - one) * c->out);
    }
    x = po_mk_conv(d, x, w, bias, &plane);
    area = 1;
    for (uint32_t i = 0; i < n; i++)
        area *=
            plane.kernel[i] == c->kernel[i] && dims[2 + i] == c->size[i] ? c->to[i] : dims[2 + i];
    x = po_mk_reshape(d, x, 3, (int64_t[]){phases * c->batch, products, c->out * area});
    x = po_mk_matmul(d, table(d, t, n_t, 0), x);
    /* [(d.. N), m.., O, map] back to [N, O, (tiles, m, d)..]. */
    layout out = lay_out(c->batch, c->out, n, c->to, t, n_t, true);
    int back[PO_MOST_DIMS];
    k = 0;
    for (uint32_t i = 0; i < n_t; i++)
        apart[k++] = t[i].d;
    apart[k++] = c->batch;
    for (uint32_t i = 0; i < n_t; i++)
        apart[k++] = t[i].f.m;
    apart[k++] = c->out;
    for (uint32_t i = 0; i < n; i++)
        apart[k++] = out.dims[out.at[i]];
    x = po_mk_reshape(d, x, k, apart);
    back[0] = (int)n_t;
    back[1] = (int)(2 * n_t + 1);
    for (uint32_t i = 0; i < n; i++)
        back[out.at[i]] = (int)(2 * n_t + 2 + i);
    for (uint32_t i = 0; i < n_t; i++) {
        back[out.at[t[i].axis] + 1] = (int)(n_t + 1 + i);
        back[out.at[t[i].axis] + 2] = (int)i;
    }
    x = po_mk_transpose(d, x, back);
    int64_t whole[PO_MOST_DIMS] = {c->batch, c->out};
    memcpy(&whole[2], c->to, n * sizeof *whole);
    for (uint32_t i = 0; i < n_t; i++)
        whole[2 + t[i].axis] = t[i].tiles * t[i].f.m * t[i].d;
    x = po_mk_reshape(d, x, n + 2, whole);
    for (uint32_t i = 0; i < n_t; i++)
        x = po_mk_slice(d, x, 2 + t[i].axis, 0, c->to[t[i].axis], 1);
    const char *detail =
        po_arena_printf(d->arena, "F(%u,%u) along axis %u", t[0].f.m, t[0].f.r, t[0].axis);
    if (n_t > 1)
        detail = po_arena_printf(d->arena, "%s, F(%u,%u) along axis %u", detail, t[1].f.m, t[1].f.r,
                                 t[1].axis);
    return po_derive_done(d, x, detail);
}

po_status po_derive_bilinear(po_deriving *d, po_node_id id) {
    po_map_conv c;
    tiled t[2];
    /* Products take the place of groups: with groups of its own the node would interleave both. */
    if (!po_read_map_conv(d->from, id, &c) || c.group != 1)
        return PO_OK;
    for (uint32_t i = 0; i < c.n; i++)
        for (uint32_t m = 2; m <= MOST_OUTPUTS; m++)
            if (plan(&c, i, m, &t[0]))
                PO_TRY(build(d, &c, t, 1));
    for (uint32_t i = 0; i + 1 < c.n; i++)
        for (uint32_t m = 2; m <= MOST_OUTPUTS; m += 2)
            if (plan(&c, c.n - 2, m, &t[0]) && plan(&c, c.n - 1, m, &t[1]) && i == 0)
                PO_TRY(build(d, &c, t, 2));
    return PO_OK;
}
