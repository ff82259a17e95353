/* The batch laid into a map axis, and a map axis cut into the batch (PET, figure 2).
 *
 * Maps stand one behind the other with a gap of zeros between, wide enough that no window sees two
 * of them and a multiple of the stride; the gap serves the map before and the one behind. Without
 * the gap only the windows at the seams are wrong: cheaper, and left to correction ("open"), where
 * the map is a whole number of strides long and the output has one row for each stride. Cutting is
 * open as well. */
#include "rewrite/deriving.h"

/* [N, C, .., L, ..] to [N / f, C, .., f L, ..] at axis i of the map, and back. */
static po_value_id lay(po_deriving *d, po_value_id x, uint32_t n, uint32_t axis, int64_t f) {
    int64_t dims[PO_MOST_DIMS], split[PO_MOST_DIMS];
    int perm[PO_MOST_DIMS];
    uint32_t rank;
    if (!po_dims_of(d->g, x, &rank, dims) || dims[0] % f != 0) {
        d->dropped = true;
        return x;
    }
    split[0] = dims[0] / f;
    split[1] = f;
    memcpy(&split[2], &dims[1], (n + 1) * sizeof *dims);
    for (uint32_t i = 0, k = 0; i < n + 3; i++) {
        if (i == 1)
            continue;
        if (i == axis + 3)
            perm[k++] = 1;
        perm[k++] = (int)i;
    }
    x = po_mk_transpose(d, po_mk_reshape(d, x, n + 3, split), perm);
    dims[0] /= f;
    dims[2 + axis] *= f;
    return po_mk_reshape(d, x, n + 2, dims);
}

static po_value_id cut(po_deriving *d, po_value_id x, uint32_t n, uint32_t axis, int64_t f) {
    int64_t dims[PO_MOST_DIMS], split[PO_MOST_DIMS];
    int perm[PO_MOST_DIMS] = {0};
    uint32_t rank;
    if (!po_dims_of(d->g, x, &rank, dims) || dims[2 + axis] % f != 0) {
        d->dropped = true;
        return x;
    }
    for (uint32_t i = 0, k = 0; i < n + 2; i++) {
        if (i == axis + 2) {
            split[k] = f;
            perm[1] = (int)k++;
        }
        split[k] = i == axis + 2 ? dims[i] / f : dims[i];
        perm[i ? i + 1 : 0] = (int)k++;
    }
    x = po_mk_transpose(d, po_mk_reshape(d, x, n + 3, split), perm);
    dims[0] *= f;
    dims[2 + axis] /= f;
    return po_mk_reshape(d, x, n + 2, dims);
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
    po_conv m = *c;
    m.batch = c->batch / f;
    m.size[i] = f * length;
    m.after[i] = po_larger(0, span - s - c->before[i]);
    po_value_id x = po_mk_pad(d, c->x, i + 2, 0, length - c->size[i]);
    x = lay(d, x, c->n, i, f);
    x = po_mk_conv(d, x, c->w, c->b, &m);
    x = po_mk_slice(d, x, i + 2, 0, f * length / s, 1);
    x = cut(d, x, c->n, i, f);
    x = po_mk_slice(d, x, i + 2, 0, c->to[i], 1);
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
    po_value_id x = cut(d, c->x, c->n, i, f);
    x = po_mk_conv(d, x, c->w, c->b, c);
    x = lay(d, x, c->n, i, f);
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
