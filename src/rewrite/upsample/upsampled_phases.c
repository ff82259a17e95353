/* A convolution over nearest upsampling as one of the small map with an output for each phase.
 *
 * Upsampled by f, tap t of output f q + p reads the small map at q + floor((p + t - before) / f):
 * taps that meet there are summed (a product of the weights by a table along the axis), and the
 * phases are interleaved. Floor is right beyond the borders too, so it is equal everywhere. Phases
 * may begin some rows early, which are cropped, where that makes the small kernel shorter. Side
 * conditions: whole factors that repeat elements, stride and dilation 1 on the upsampled axes. */
#include "base/num.h"
#include "rewrite/deriving.h"
#include "rewrite/upsample/split.h"

enum { MOST_FACTOR = 64 };

/* Whole factors of a nearest Resize or Upsample, [N, C, map]. */
static bool read_upsampling(const po_graph *g, const po_conv *c, po_value_id *x, int64_t *factor) {
    const po_node *n = po_graph_producer(g, c->x);
    if (!n || (n->op != PO_OP_Resize && n->op != PO_OP_Upsample) ||
        po_rank_of(g, n->in[0]) != (int)c->n + 2 || !po_repeats(g, n, c->n + 2, factor) ||
        factor[0] != 1 || factor[1] != 1)
        return false;
    *x = n->in[0];
    return true;
}

/* Along one axis, with R = r + shift = f j + p for output row r: tap t reads row
 * floor((R - shift + t - pad) / f) of the small map, that is j + floor((p - shift + t - pad) / f).
 */
static int64_t offset(int64_t f, int64_t shift, int64_t pad, int64_t phase, int64_t tap) {
    return po_floor_div(phase - shift + tap - pad, f);
}

/* Of the small kernel that holds the taps of all phases. */
static int64_t length_of(int64_t f, int64_t shift, int64_t kernel, int64_t pad) {
    return offset(f, shift, pad, f - 1, kernel - 1) - offset(f, shift, pad, 0, 0) + 1;
}

/* Which tap of the small kernel each tap meets in each phase: [f, length, kernel] of 0 and 1. */
static const double *phase_taps(po_arena *arena, int64_t f, int64_t shift, int64_t kernel,
                                int64_t pad) {
    const int64_t first = offset(f, shift, pad, 0, 0), length = length_of(f, shift, kernel, pad);
    double *meets = PO_NEW_N(arena, double, f *length *kernel);
    for (int64_t p = 0; p < f; p++)
        for (int64_t t = 0; t < kernel; t++)
            meets[(p * length + offset(f, shift, pad, p, t) - first) * kernel + t] = 1;
    return meets;
}

typedef struct phased {
    po_conv made; /* the window of the small map */
    int64_t shift[PO_MAP_AXES], all;
} phased;

/* False where an axis does not allow it. Where the size stays, the shift is the one that makes the
 * small kernel shortest. */
static bool plan(const po_conv *c, const int64_t *f, phased *p) {
    *p = (phased){.made = *c, .all = 1};
    for (uint32_t i = 0; i < c->n; i++) {
        const int64_t k = c->kernel[i], pad = c->before[i];
        const bool same = pad + c->after[i] == k - 1;
        if (f[i] == 1)
            continue;
        if (c->stride[i] != 1 || c->dilation[i] != 1 || f[i] > MOST_FACTOR ||
            (!same && c->to[i] < 1))
            return false;
        p->all *= f[i];
        for (int64_t s = 1; same && s < f[i]; s++)
            if (length_of(f[i], s, k, pad) < length_of(f[i], p->shift[i], k, pad))
                p->shift[i] = s;
        p->made.kernel[i] = length_of(f[i], p->shift[i], k, pad);
        p->made.before[i] = -offset(f[i], p->shift[i], pad, 0, 0);
        /* Groups of f outputs: one more than pixels where there is a shift. */
        const int64_t more =
            same ? p->shift[i] > 0 : po_up_to(c->to[i], f[i]) / f[i] - c->size[i] / f[i];
        p->made.after[i] = more + p->made.kernel[i] - 1 - p->made.before[i];
        if (same && (p->made.before[i] < 0 || p->made.after[i] < 0))
            return false;
        p->made.after[i] = po_larger(0, p->made.after[i]);
    }
    return p->all > 1;
}

/* In place: one factor and the same size, so that phases tile the output; a smaller kernel. */
static bool pays(const po_conv *c, const int64_t *f, const phased *p) {
    return c->n == 2 && f[0] == f[1] && po_conv_keeps_size(c) &&
           po_conv_taps(&p->made) < po_conv_taps(c);
}

/* Phases put in their places, also where shapes are open. */
static po_value_id placed(po_deriving *d, const po_conv *c, const int64_t *f, const phased *p,
                          po_value_id y) {
    const po_type open = po_type_unranked(c->dtype), *type = &d->from->values[c->y].type;
    const int64_t shift = p->shift[0];
    if (d->weight)
        return po_mk_rearrange(d, y,
                               c->group == 1 ? "n (p.. o) h.. -> n o (h p)-s=t.."
                                             : "n (o p..) h.. -> n o (h p)-s=t..",
                               c->n, PO_SIZES({"p", f}, {"s", p->shift}, {"t", c->to}));
    y = po_add_depth_to_space(d->g, d->place, y, f[0], &open);
    return shift ? po_add_crop(d->g, d->place, y, shift, shift - f[0], type) : y;
}

po_status po_upsampled_phases(po_deriving *d, po_node_id id) {
    po_conv c;
    po_value_id x;
    int64_t factor[2 + PO_MAP_AXES], *f = &factor[2];
    phased p;
    if (!po_conv_at(d, id, &c) || !read_upsampling(d->from, &c, &x, factor) || !plan(&c, f, &p) ||
        (!d->weight && (!po_conv_ready(d, &c) || !pays(&c, f, &p))))
        return PO_OK;
    po_derive_begin(d, id);
    po_value_id w = c.w;
    for (uint32_t i = c.n; i-- > 0;)
        if (f[i] > 1)
            w = po_mk_along(d, w, 2 + i, f[i] * p.made.kernel[i],
                            phase_taps(d->arena, f[i], p.shift[i], c.kernel[i], c.before[i]));
    w = po_mk_rearrange(
        d, w, c.group == 1 ? "o c (p k).. -> (p.. o) c k.." : "o c (p k).. -> (o p..) c k..", c.n,
        PO_SIZES({"p", f}));
    const bool inside = c.b != PO_NONE && c.group == 1;
    po_value_id b = PO_NONE, *each = PO_NEW_N(d->arena, po_value_id, p.all);
    for (int64_t k = 0; k < p.all; k++)
        each[k] = c.b;
    if (inside)
        b = po_mk_concat(d, 0, (uint32_t)p.all, each);
    po_value_id y = placed(d, &c, f, &p, po_mk_conv(d, x, w, b, &p.made));
    return po_derive_done(d, inside ? y : po_mk_biased(d, y, c.b, c.n), NULL);
}
