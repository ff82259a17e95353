/* The tables of several axes are one table, by the Kronecker product. Weights are transformed by
 * nodes that run when the model is written. */
#include "rewrite/bilinear/tiled.h"

#include "ops/sum/bilinear.h"

enum { MOST_STRIDE = 4 };

bool po_tile(po_arena *arena, const po_conv *c, uint32_t axis, int64_t m, po_tiled *t) {
    int64_t s = c->stride[axis];
    po_bilinear f;
    *t = (po_tiled){.axis = axis, .m = m, .r = c->kernel[axis], .d = c->dilation[axis]};
    t->n = s * (m - 1) + t->r;
    if (s > MOST_STRIDE || t->r <= s || (s > 1 && t->d > 1) || t->n > PO_MOST_PRODUCTS ||
        m > c->to[axis] || m + (t->r + s - 1) / s - 1 > PO_BILINEAR_STEADY ||
        !po_bilinear_make(arena, PO_POINTS_DYADIC, (uint32_t)m, (uint32_t)t->r, (uint32_t)s, &f))
        return false;
    t->a = f.a;
    t->b = f.b;
    t->powers = f.powers;
    t->scale = f.scale;
    t->one = f.one;
    t->step = m * s;
    t->tiles = po_up_to(c->to[axis], t->d * m) / (t->d * m);
    t->room = t->tiles + po_up_to(t->r - s, t->step) / t->step;
    return t->tiles * t->d > 1;
}

po_value_id po_tiled_constant(po_deriving *d, const po_tiled *t, uint32_t n_t,
                              po_tiled_table which) {
    int64_t rows = 1, columns = 1;
    double *v = PO_NEW_N(d->arena, double, 1);
    v[0] = 1;
    for (uint32_t k = 0; k < n_t; k++) {
        int64_t r = which == PO_TILED_A ? t[k].m : t[k].n,
                s = which == PO_TILED_POWERS ? t[k].r : t[k].n;
        const double *m = which == PO_TILED_A ? t[k].a : which == PO_TILED_B ? t[k].b : t[k].powers;
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

po_value_id po_tiled_weights(po_deriving *d, const po_conv *c, const po_tiled *t, uint32_t n_t,
                             int64_t products, uint32_t rank, const int64_t *kernel) {
    int64_t dims[PO_MOST_DIMS] = {products * c->out, c->in}, rows = 1;
    int64_t tiled[PO_MAP_AXES], rest[PO_MAP_AXES];
    double *scale = PO_NEW_N(d->arena, double, products);
    scale[0] = 1;
    for (uint32_t i = 0; i < c->n; i++) {
        tiled[i] = 1;
        rest[i] = c->kernel[i];
    }
    for (uint32_t i = 0; i < n_t; i++) {
        tiled[t[i].axis] = t[i].r;
        rest[t[i].axis] = 1;
        for (int64_t p = rows * t[i].n; p-- > 0;)
            scale[p] = scale[p / t[i].n] * t[i].scale[p % t[i].n];
        rows *= t[i].n;
    }
    po_value_id w = po_mk_rearrange(d, c->w, "o c (t k).. -> (t..) (o c k..)", c->n,
                                    PO_SIZES({"t", tiled}, {"k", rest}));
    w = po_mk_matmul(d, po_tiled_constant(d, t, n_t, PO_TILED_POWERS), w);
    w = po_mk_binary(d, PO_OP_Div, w, po_mk_table(d, 2, (int64_t[]){products, 1}, scale));
    memcpy(&dims[2], kernel, rank * sizeof *dims);
    return po_mk_reshape(d, w, rank + 2, dims);
}

po_value_id po_tiled_bias(po_deriving *d, const po_conv *c, const po_tiled *t, uint32_t n_t,
                          int64_t products) {
    int64_t one = 0;
    if (c->b == PO_NONE)
        return PO_NONE;
    for (uint32_t k = 0; k < n_t; k++)
        one = one * t[k].n + t[k].one;
    return po_mk_pad(d, c->b, 0, one * c->out, (products - 1 - one) * c->out);
}

const char *po_tiled_name(po_deriving *d, const po_tiled *t, uint32_t n_t) {
    const char *name = "";
    for (uint32_t k = 0; k < n_t; k++)
        name = po_arena_printf(d->arena, "%s%sF(%lld,%lld) along axis %u", name, k ? ", " : "",
                               (long long)t[k].m, (long long)t[k].r, t[k].axis);
    return name;
}
