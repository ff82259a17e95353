/* Groups of convolutions merged, split, and made.
 *
 * f neighbouring groups are one group whose weights are zero across (a product by the unit matrix).
 * A grouped convolution is one convolution for each group. Convolutions of several tensors of one
 * shape are one with a group for each, outputs padded to the most of them. Equal everywhere;
 * merging multiplies the work by f, padding by the zeros. */
#include "ops/conv_view.h"
#include "rewrite/deriving.h"

enum { MOST_FACTORS = 64, MOST_PARTS = 8 };

static po_status merge(po_deriving *d, const po_conv *c, int64_t f) {
    int64_t g = c->group, ci = c->in / g, co = c->out / g, taps = po_conv_taps(c);
    po_derive_begin(d, c->node);
    double *unit = PO_NEW_N(d->arena, double, f *f);
    for (int64_t i = 0; i < f; i++)
        unit[i * f + i] = 1;
    po_value_id eye = po_mk_table(d, 6, (int64_t[]){1, f, 1, f, 1, 1}, unit);
    po_value_id w = po_mk_reshape(d, c->w, 6, (int64_t[]){g / f, f, co, 1, ci, taps});
    w = po_mk_binary(d, PO_OP_Mul, w, eye);
    int64_t dims[PO_MOST_DIMS] = {c->out, f * ci};
    memcpy(&dims[2], c->kernel, c->n * sizeof *dims);
    po_conv m = *c;
    m.group = g / f;
    po_value_id y = po_mk_conv(d, c->x, po_mk_reshape(d, w, c->n + 2, dims), c->b, &m);
    return po_derive_done(d, y, po_arena_printf(d->arena, "by %lld", (long long)f));
}

/* Side condition: at least two groups. */
po_status po_derive_group_merge(po_deriving *d, po_node_id id) {
    po_conv c;
    if (!po_read_conv(d->from, id, &c) || c.group < 2)
        return PO_OK;
    for (int64_t f = 2; f <= c.group && f <= MOST_FACTORS; f++)
        if (c.group % f == 0)
            PO_TRY(merge(d, &c, f));
    return PO_OK;
}

/* Side condition: 2 to 8 parts of equal numbers of groups. */
po_status po_derive_group_split(po_deriving *d, po_node_id id) {
    po_conv c;
    if (!po_read_conv(d->from, id, &c) || c.group < 2)
        return PO_OK;
    for (int64_t parts = 2; parts <= MOST_PARTS; parts++) {
        if (c.group % parts != 0)
            continue;
        po_derive_begin(d, id);
        po_conv m = c;
        int64_t ins[MOST_PARTS], outs[MOST_PARTS];
        po_value_id x[MOST_PARTS], w[MOST_PARTS], b[MOST_PARTS], y[MOST_PARTS];
        m.group = c.group / parts;
        for (int64_t k = 0; k < parts; k++) {
            ins[k] = c.in / parts;
            outs[k] = c.out / parts;
        }
        po_mk_split(d, c.x, 1, (uint32_t)parts, ins, x);
        po_mk_split(d, c.w, 0, (uint32_t)parts, outs, w);
        if (c.b != PO_NONE)
            po_mk_split(d, c.b, 0, (uint32_t)parts, outs, b);
        for (int64_t k = 0; k < parts; k++)
            y[k] = po_mk_conv(d, x[k], w[k], c.b == PO_NONE ? PO_NONE : b[k], &m);
        PO_TRY(po_derive_done(d, po_mk_concat(d, 1, (uint32_t)parts, y),
                              po_arena_printf(d->arena, "in %lld", (long long)parts)));
    }
    return PO_OK;
}

static bool alike(const po_conv *a, const po_conv *b) {
    return a->batch == b->batch && a->in == b->in && a->group == 1 && b->group == 1 &&
           (a->b == PO_NONE) == (b->b == PO_NONE) && po_conv_same_windows(a, b) &&
           memcmp(a->size, b->size, sizeof a->size) == 0;
}

/* True where the value can be read before the subprogram runs: an input or a constant. */
static bool ready(const po_deriving *d, po_value_id v) {
    return v == PO_NONE || d->weight[v] || d->from->values[v].producer == PO_NONE;
}

static bool read_ready(const po_deriving *d, po_node_id id, po_conv *c) {
    return po_read_conv(d->from, id, c) && c->group == 1 && ready(d, c->x) && ready(d, c->w) &&
           ready(d, c->b);
}

static bool reads_one_of(const po_conv *part, uint32_t n) {
    for (uint32_t k = 0; k < n; k++)
        if (part[k].x == part[n].x)
            return true;
    return false;
}

/* Those that read the same tensor are better merged than given a group each, with the tensor twice
 * and zeros up to the widest. Side conditions: different tensors that are inputs of the subprogram,
 * equal windows. */
po_status po_derive_group_join(po_deriving *d, po_node_id id) {
    po_conv part[MOST_PARTS];
    if (!read_ready(d, id, &part[0]))
        return PO_OK;
    uint32_t n = 1;
    int64_t most = part[0].out;
    for (po_node_id other = 0; other < d->from->n_nodes && n < MOST_PARTS; other++) {
        if (other == id || d->from->nodes[other].removed || !po_conv_is(&d->from->nodes[other]) ||
            !read_ready(d, other, &part[n]) || !alike(&part[0], &part[n]) || reads_one_of(part, n))
            continue;
        if (other < id)
            return PO_OK; /* found from there */
        most = po_larger(most, part[n].out);
        n++;
    }
    if (n < 2)
        return PO_OK;
    po_derive_begin(d, id);
    po_value_id x[MOST_PARTS], w[MOST_PARTS], b[MOST_PARTS];
    po_conv m = part[0];
    for (uint32_t k = 0; k < n; k++) {
        x[k] = part[k].x;
        w[k] = po_mk_pad(d, part[k].w, 0, 0, most - part[k].out);
        b[k] = part[k].b == PO_NONE ? PO_NONE : po_mk_pad(d, part[k].b, 0, 0, most - part[k].out);
    }
    m.group = n;
    po_value_id bias = m.b == PO_NONE ? PO_NONE : po_mk_concat(d, 0, n, b);
    po_value_id y = po_mk_conv(d, po_mk_concat(d, 1, n, x), po_mk_concat(d, 0, n, w), bias, &m);
    for (uint32_t k = 0; k < n && !d->dropped; k++)
        po_derive_replace(d, part[k].y, po_mk_slice(d, y, 1, k * most, part[k].out, 1));
    return po_derive_end(d, po_arena_printf(d->arena, "%u", n));
}
