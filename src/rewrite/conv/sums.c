/* Convolutions composed and distributed: consecutive ones, sums of them, over Concat and Add.
 *
 * K2 (K1 x) = (K2 K1) x where one of them is pointwise; sum of K_i x = (sum of K_i) x; K (a, b) =
 * K_a a + K_b b, and back; K a + K b = K (a + b). A bias is carried along. Equal everywhere but for
 * a padded convolution behind one with a bias, which is not proposed. */
#include "ops/conv_view.h"
#include "rewrite/deriving.h"

static bool conv_of(const po_deriving *d, po_value_id v, po_conv *c) {
    const po_node *n = po_made_by_conv(d->from, v);
    return n && po_read_conv(d->from, (po_node_id)(n - d->from->nodes), c);
}

/* The bias of K2 (K1 x + b1) + b2: sums over taps of K2 times b1. */
static po_value_id carried(po_deriving *d, po_value_id w2, int64_t out, int64_t in, int64_t taps,
                           po_value_id b1, po_value_id b2) {
    po_value_id b = b2;
    if (b1 != PO_NONE) {
        double *ones = PO_NEW_N(d->arena, double, taps);
        for (int64_t i = 0; i < taps; i++)
            ones[i] = 1;
        b = po_mk_reshape(d, w2, 2, (int64_t[]){out * in, taps});
        b = po_mk_matmul(d, b, po_mk_table(d, 2, (int64_t[]){taps, 1}, ones));
        b = po_mk_reshape(d, b, 2, (int64_t[]){out, in});
        b = po_mk_matmul(d, b, po_mk_reshape(d, b1, 2, (int64_t[]){in, 1}));
        b = po_mk_reshape(d, b, 1, &out);
        if (b2 != PO_NONE)
            b = po_mk_binary(d, PO_OP_Add, b, b2);
    }
    return b;
}

static bool weights_ready(const po_deriving *d, const po_conv *c) {
    return d->weight[c->w] && (c->b == PO_NONE || d->weight[c->b]);
}

/* Side conditions: one of the two pointwise, both of one group, and fewer multiplications than both
 * have where the first has no other reader. */
po_status po_derive_compose(po_deriving *d, po_node_id id) {
    po_conv c, e; /* c of e */
    if (!po_read_conv(d->from, id, &c) || !conv_of(d, c.x, &e) || c.group != 1 || e.group != 1 ||
        !weights_ready(d, &c) || !weights_ready(d, &e))
        return PO_OK;
    int64_t dims[PO_MOST_DIMS] = {c.out, e.in};
    if (po_conv_is_pointwise(&c)) {
        double then = po_conv_work(&e) / (double)e.out * (double)c.out;
        if (then >= po_conv_work(&c) + po_conv_work(&e))
            return PO_OK;
        po_derive_begin(d, id);
        int64_t taps = po_conv_taps(&e);
        po_value_id k = po_mk_reshape(d, c.w, 2, (int64_t[]){c.out, c.in});
        po_value_id w = po_mk_reshape(d, e.w, 2, (int64_t[]){e.out, e.in * taps});
        memcpy(&dims[2], e.kernel, c.n * sizeof *dims);
        w = po_mk_reshape(d, po_mk_matmul(d, k, w), c.n + 2, dims);
        po_value_id b = carried(d, c.w, c.out, c.in, 1, e.b, c.b);
        return po_derive_done(d, po_mk_conv(d, e.x, w, b, &e), "pointwise behind");
    }
    if (po_conv_is_pointwise(&e) && (e.b == PO_NONE || !po_conv_padded(&c))) {
        double then = po_conv_work(&c) / (double)c.in * (double)e.in;
        if (then >= po_conv_work(&c) + po_conv_work(&e))
            return PO_OK;
        po_derive_begin(d, id);
        int64_t taps = po_conv_taps(&c);
        po_value_id w = po_mk_reshape(d, c.w, 3, (int64_t[]){c.out, c.in, taps});
        w = po_mk_transpose(d, w, (int[]){0, 2, 1});
        w = po_mk_matmul(d, w, po_mk_reshape(d, e.w, 2, (int64_t[]){e.out, e.in}));
        w = po_mk_transpose(d, w, (int[]){0, 2, 1});
        memcpy(&dims[2], c.kernel, c.n * sizeof *dims);
        w = po_mk_reshape(d, w, c.n + 2, dims);
        po_value_id b = carried(d, c.w, c.out, c.in, taps, e.b, c.b);
        return po_derive_done(d, po_mk_conv(d, e.x, w, b, &c), "pointwise before");
    }
    return PO_OK;
}

/* K over Concat as a sum, one convolution for each part. Side condition: one group, channels. */
po_status po_derive_over_concat(po_deriving *d, po_node_id id) {
    enum { MOST = 8 };
    po_conv c;
    const po_node *n;
    if (!po_read_conv(d->from, id, &c) || c.group != 1 ||
        !(n = po_made_by(d->from, c.x, PO_OP_Concat)) || po_node_int(n, "axis", 0) != 1 ||
        n->n_in < 2 || n->n_in > MOST)
        return PO_OK;
    po_derive_begin(d, id);
    po_value_id y[MOST];
    int64_t at = 0;
    for (uint32_t k = 0; k < n->n_in; k++) {
        int64_t channels = po_dim_of(d->from, n->in[k], 1);
        po_value_id w = po_mk_slice(d, c.w, 1, at, channels, 1);
        y[k] = po_mk_conv(d, n->in[k], w, k + 1 == n->n_in ? c.b : PO_NONE, &c);
        at += channels;
    }
    return po_derive_done(d, po_mk_sum(d, n->n_in, y), NULL);
}

static po_value_id sum_of(po_deriving *d, po_value_id a, po_value_id b) {
    return a == PO_NONE ? b : b == PO_NONE ? a : po_mk_binary(d, PO_OP_Add, a, b);
}

/* Sums of two convolutions: of one tensor, by one kernel, or of two tensors over Concat; and of a
 * convolution and its own input, which is a convolution by the unit. */
po_status po_derive_conv_sum(po_deriving *d, po_node_id id) {
    const po_node *n = &d->from->nodes[id];
    po_conv a, b;
    if (n->op != PO_OP_Add)
        return PO_OK;
    bool first = conv_of(d, n->in[0], &a), second = conv_of(d, n->in[1], &b);
    if (first && second && a.x == b.x && a.group == b.group && a.n == b.n && a.out == b.out) {
        po_conv all = a;
        if (!po_derive_join(&all, &b))
            return PO_OK;
        po_derive_begin(d, id);
        po_value_id w = po_mk_binary(d, PO_OP_Add, po_derive_widened(d, &all, &a),
                                     po_derive_widened(d, &all, &b));
        return po_derive_done(d, po_mk_conv(d, a.x, w, sum_of(d, a.b, b.b), &all), "one tensor");
    }
    if (first && second && a.w == b.w && a.group == b.group && po_conv_same_windows(&a, &b)) {
        po_derive_begin(d, id);
        po_value_id x = po_mk_binary(d, PO_OP_Add, a.x, b.x);
        return po_derive_done(d, po_mk_conv(d, x, a.w, sum_of(d, a.b, b.b), &a), "one kernel");
    }
    if (first && second && a.group == 1 && b.group == 1 && po_conv_same_windows(&a, &b) &&
        a.out == b.out) {
        po_derive_begin(d, id);
        po_value_id x = po_mk_concat(d, 1, 2, (po_value_id[]){a.x, b.x});
        po_value_id w = po_mk_concat(d, 1, 2, (po_value_id[]){a.w, b.w});
        return po_derive_done(d, po_mk_conv(d, x, w, sum_of(d, a.b, b.b), &a), "over channels");
    }
    for (int swap = 0; swap < 2; swap++) {
        if (!(swap ? second : first))
            continue;
        po_conv c = swap ? b : a;
        if (n->in[1 - swap] != c.x || !po_conv_stride_one(&c))
            continue;
        int64_t ci = c.in / c.group, taps = po_conv_taps(&c), at = 0;
        bool inside = c.in == c.out;
        int64_t dims[PO_MOST_DIMS] = {c.out, ci};
        for (uint32_t i = 0; i < c.n; i++) {
            int64_t tap = c.before[i] / c.dilation[i];
            inside = inside && c.before[i] % c.dilation[i] == 0 && tap < c.kernel[i];
            at = at * c.kernel[i] + tap;
            dims[2 + i] = c.kernel[i];
        }
        if (!inside)
            continue;
        po_derive_begin(d, id);
        double *unit = PO_NEW_N(d->arena, double, c.out *ci *taps);
        for (int64_t o = 0; o < c.out; o++)
            unit[(o * ci + o % ci) * taps + at] = 1;
        po_value_id w = po_mk_binary(d, PO_OP_Add, c.w, po_mk_table(d, c.n + 2, dims, unit));
        return po_derive_done(d, po_mk_conv(d, c.x, w, c.b, &c), "of its own input");
    }
    return PO_OK;
}

/* K (a + b) as K a + K b where both are made smaller by what comes before (seen by later rounds).
 */
po_status po_derive_over_add(po_deriving *d, po_node_id id) {
    po_conv c;
    const po_node *n;
    if (!po_read_conv(d->from, id, &c) || !(n = po_made_by(d->from, c.x, PO_OP_Add)))
        return PO_OK;
    int64_t x[PO_MOST_DIMS], y[PO_MOST_DIMS];
    uint32_t rx, ry;
    if (!po_dims_of(d->from, n->in[0], &rx, x) || !po_dims_of(d->from, n->in[1], &ry, y) ||
        rx != ry || memcmp(x, y, rx * sizeof *x) != 0)
        return PO_OK;
    po_derive_begin(d, id);
    po_value_id part[2] = {po_mk_conv(d, n->in[0], c.w, PO_NONE, &c),
                           po_mk_conv(d, n->in[1], c.w, c.b, &c)};
    return po_derive_done(d, po_mk_sum(d, 2, part), NULL);
}
