/* One-dimensional convolutions as two-dimensional ones of height 1 or of width 1, and back.
 *
 * Nothing is computed differently: the maps and the weights get an axis of length 1, or an axis of
 * length 1 with a kernel of length 1 and no padding goes. An axis whose kernel is 1, with stride 1
 * and no padding, is as good as a batch axis: then it goes there. */
#include "rewrite/deriving.h"

static po_status widen(po_deriving *d, const po_conv *c, uint32_t at, const char *detail) {
    const char *to = at ? "n c w -> n c w 1" : "n c w -> n c 1 w";
    po_derive_begin(d, c->node);
    po_conv wide = po_conv_with_axis(c, at);
    po_value_id x = po_mk_rearrange(d, c->x, to, 0, NULL);
    po_value_id y = po_mk_conv(d, x, po_mk_rearrange(d, c->w, to, 0, NULL), c->b, &wide);
    y = po_mk_rearrange(d, y, at ? "n c w 1 -> n c w" : "n c 1 w -> n c w", 0, NULL);
    return po_derive_done(d, y, detail);
}

/* Axis `at` into the batch. */
static po_status narrow(po_deriving *d, const po_conv *c, uint32_t at, const char *detail) {
    static const char *const maps[2][3] = {{"a h", "h a"}, {"a h w", "h a w", "h w a"}};
    const char *map = maps[c->n - 2][at], *rest = c->n == 2 ? "h" : "h w";
    const po_rt_size *sizes = PO_SIZES({"a", &c->size[at]});
    po_derive_begin(d, c->node);
    po_conv flat = po_conv_without_axis(c, at);
    const char *to = po_arena_printf(d->arena, "n c %s -> (n a) c %s", map, rest);
    po_value_id x = po_mk_rearrange(d, c->x, to, 0, NULL);
    po_value_id y = po_mk_conv(d, x, po_mk_rearrange(d, c->w, to, 0, NULL), c->b, &flat);
    const char *back = po_arena_printf(d->arena, "(n a) c %s -> n c %s", rest, map);
    return po_derive_done(d, po_mk_rearrange(d, y, back, 0, sizes), detail);
}

po_status po_derive_rank(po_deriving *d, po_node_id id) {
    po_conv c;
    if (!po_read_conv(d->from, id, &c) || c.n != 1)
        return PO_OK;
    PO_TRY(widen(d, &c, 0, "height 1"));
    return widen(d, &c, 1, "width 1");
}

po_status po_derive_fewer_axes(po_deriving *d, po_node_id id) {
    po_conv c;
    if (!po_read_conv(d->from, id, &c) || c.n < 2)
        return PO_OK;
    for (uint32_t i = 0; i < c.n; i++)
        if (c.kernel[i] == 1 && c.stride[i] == 1 && c.before[i] == 0 && c.after[i] == 0)
            PO_TRY(narrow(d, &c, i, c.size[i] > 1 ? "single taps to the batch" : "length 1"));
    return PO_OK;
}
