/* The batch laid into a map axis, and a map axis cut into the batch (PET, figure 2).
 *
 * Maps stand one behind the other with a gap of zeros between, wide enough that no window sees two
 * of them and a multiple of the stride; the gap serves the map before and the one behind. Without
 * the gap only the windows at the seams are wrong: cheaper, and left to correction ("open"), where
 * the map is a whole number of strides long and the output has one row for each stride. Cutting is
 * open as well. */
#include "rewrite/deriving.h"

/* f on map axis i, 1 on the others. */
static const int64_t *only(po_deriving *d, uint32_t i, int64_t f) {
    int64_t *list = PO_NEW_N(d->arena, int64_t, PO_MAP_AXES);
    for (uint32_t k = 0; k < PO_MAP_AXES; k++)
        list[k] = k == i ? f : 1;
    return list;
}

/* Neighbours of the batch one behind the other along a map axis; and back, cropped. Lengths are
 * those of one, behind which there are zeros. */
static po_value_id lay(po_deriving *d, po_value_id x, uint32_t n, const int64_t *f,
                       const int64_t *length) {
    return po_mk_rearrange(d, x, "(n f..) c h.. -> n c (f h)..", n,
                           PO_SIZES({"f", f}, {"h", length}));
}

static po_value_id cut(po_deriving *d, po_value_id x, uint32_t n, const int64_t *f,
                       const int64_t *length, const int64_t *to) {
    return po_mk_rearrange(d, x, "n c (f h).. -> (n f..) c h=t..", n,
                           PO_SIZES({"f", f}, {"h", length}, {"t", to}));
}

static po_status merge(po_deriving *d, const po_conv *c, uint32_t i, int64_t f, bool open) {
    int64_t s = c->stride[i], span = c->dilation[i] * (c->kernel[i] - 1) + 1;
    /* What a window reaches beyond its map; `after` may hold more than any window sees. */
    int64_t reach = (c->to[i] - 1) * s + span - c->before[i] - c->size[i];
    int64_t gap = open ? 0 : po_larger(po_larger(c->before[i], reach), 0);
    int64_t length = po_up_to(c->size[i] + gap, s);
    if (open && (length != c->size[i] || length / s != c->to[i]))
        return PO_OK;
    if (length / s < c->to[i])
        length = c->to[i] * s;
    po_derive_begin(d, c->node);
    const int64_t *times = only(d, i, f);
    po_conv each = *c, m = *c;
    each.size[i] = length;
    each.to[i] = length / s;
    m.after[i] = po_larger(0, span - s - c->before[i]);
    po_value_id x = lay(d, c->x, c->n, times, each.size);
    x = po_mk_conv(d, x, c->w, c->b, &m);
    x = cut(d, x, c->n, times, each.to, c->to);
    return po_derive_done(d, x,
                          po_arena_printf(d->arena, "%lld along axis %u%s", (long long)f, i,
                                          open ? ", seams open" : ""));
}

/* The map cut in f pieces that know nothing of one another. */
static po_status split(po_deriving *d, const po_conv *c, uint32_t i, int64_t f) {
    int64_t s = c->stride[i];
    if (c->size[i] % (f * s) != 0 || c->to[i] != c->size[i] / s || c->kernel[i] == 1)
        return PO_OK;
    po_derive_begin(d, c->node);
    const int64_t *pieces = only(d, i, f);
    po_conv piece = *c;
    piece.size[i] /= f;
    piece.to[i] /= f;
    po_value_id x = cut(d, c->x, c->n, pieces, piece.size, piece.size);
    x = lay(d, po_mk_conv(d, x, c->w, c->b, c), c->n, pieces, piece.to);
    return po_derive_done(
        d, x, po_arena_printf(d->arena, "%lld of axis %u, seams open", (long long)f, i));
}

/* Side condition: a batch of at least 2. */
po_status po_derive_batch_merge(po_deriving *d, po_node_id id) {
    po_conv c;
    if (!po_read_conv(d->from, id, &c) || c.batch < 2)
        return PO_OK;
    for (uint32_t i = 0; i < c.n; i++)
        for (int64_t f = 2; f <= c.batch; f++)
            if (c.batch % f == 0 && (f == c.batch || f == 2)) {
                PO_TRY(merge(d, &c, i, f, false));
                PO_TRY(merge(d, &c, i, f, true));
            }
    return PO_OK;
}

/* Side condition: pieces of whole strides. */
po_status po_derive_batch_split(po_deriving *d, po_node_id id) {
    po_conv c;
    if (!po_read_conv(d->from, id, &c))
        return PO_OK;
    for (uint32_t i = 0; i < c.n; i++)
        for (int64_t f = 2; f <= 4; f++)
            PO_TRY(split(d, &c, i, f));
    return PO_OK;
}
