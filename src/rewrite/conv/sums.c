/* Convolutions composed and distributed: consecutive ones, sums of them, over Concat and Add.
 *
 * K2 (K1 x) = (K2 K1) x where one of them is pointwise; sum of K_i x = (sum of K_i) x; K (a, b) =
 * K_a a + K_b b, and back; K a + K b = K (a + b). A bias is carried along. Equal everywhere but for
 * a padded convolution behind one with a bias, which is not proposed. */
#include "ops/conv_view.h"
#include "rewrite/deriving.h"

/* The sum of convolutions that each make what c does. */
static po_status sum_up(po_deriving *d, const po_conv *c, uint32_t n, po_value_id *y) {
    po_value_id sum = y[0];
    for (uint32_t k = 0; k < n; k++) {
        sum = k ? po_mk_binary(d, PO_OP_Add, sum, y[k]) : sum;
        if (d->in_place) /* where shapes are open it is not known from theirs */
            d->g->values[sum].type = d->g->values[y[k]].type = d->from->values[c->y].type;
    }
    return po_derive_done(d, sum, NULL);
}

po_status po_derive_parts(po_deriving *d, const po_conv *c, uint32_t n, const po_value_id *parts,
                          const int64_t *channels) {
    po_value_id *y = PO_NEW_N(d->arena, po_value_id, n);
    int64_t at = 0;
    po_derive_begin(d, c->node);
    for (uint32_t k = 0; k < n; at += channels[k++])
        y[k] = po_mk_slice(d, c->w, 1, at, channels[k], 1);
    for (uint32_t k = 0; k < n; k++)
        y[k] = po_mk_conv(d, parts[k], y[k], k + 1 == n ? c->b : PO_NONE, c);
    return sum_up(d, c, n, y);
}

po_status po_derive_terms(po_deriving *d, const po_conv *c, const po_value_id terms[2]) {
    po_value_id y[2];
    po_derive_begin(d, c->node);
    for (uint32_t k = 0; k < 2; k++)
        y[k] = po_mk_conv(d, terms[k], c->w, k ? c->b : PO_NONE, c);
    return sum_up(d, c, 2, y);
}

/* Side condition: one group, channels. */
po_status po_derive_over_concat(po_deriving *d, po_node_id id) {
    enum { MOST = 8 };
    po_conv c;
    const po_node *n;
    int64_t channels[MOST];
    if (!po_read_conv(d->from, id, &c) || c.group != 1 ||
        !(n = po_made_by(d->from, c.x, PO_OP_Concat)) || po_node_int(n, "axis", 0) != 1 ||
        n->n_in < 2 || n->n_in > MOST)
        return PO_OK;
    for (uint32_t k = 0; k < n->n_in; k++)
        channels[k] = po_dim_of(d->from, n->in[k], 1);
    return po_derive_parts(d, &c, n->n_in, n->in, channels);
}

static po_value_id sum_of(po_deriving *d, po_value_id a, po_value_id b) {
    return a == PO_NONE ? b : b == PO_NONE ? a : po_mk_binary(d, PO_OP_Add, a, b);
}

/* Sums of two convolutions: of one tensor, by one kernel, or of two tensors over Concat; and of a
 * convolution and its own input, which is a convolution by the unit. Of two tensors they have one
 * shape: a map of one row would be spread over the other's before the convolution, not behind. */
po_status po_derive_conv_sum(po_deriving *d, po_node_id id) {
    const po_node *n = &d->from->nodes[id];
    po_conv a, b;
    if (n->op != PO_OP_Add)
        return PO_OK;
    bool first = po_conv_making(d, n->in[0], &a), second = po_conv_making(d, n->in[1], &b);
    if (first && second && a.x == b.x && a.group == b.group && a.n == b.n && a.out == b.out) {
        po_conv all = a;
        if (!po_derive_join(&all, &b))
            return PO_OK;
        po_derive_begin(d, id);
        po_value_id w = po_mk_binary(d, PO_OP_Add, po_derive_widened(d, &all, &a),
                                     po_derive_widened(d, &all, &b));
        return po_derive_done(d, po_mk_conv(d, a.x, w, sum_of(d, a.b, b.b), &all), "one tensor");
    }
    if (first && second && a.w == b.w && a.group == b.group && po_conv_same_windows(&a, &b) &&
        po_same_dims(d->from, a.x, b.x)) {
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
    return po_read_conv(d->from, id, &c) && (n = po_made_by(d->from, c.x, PO_OP_Add)) &&
                   po_same_dims(d->from, n->in[0], n->in[1])
               ? po_derive_terms(d, &c, n->in)
               : PO_OK;
}
