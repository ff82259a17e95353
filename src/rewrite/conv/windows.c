/* Convolutions as products by the windows of the map, gathered side by side.
 *
 * A product's long sums can be dealt over the multiprocessors; a convolution's are one block's
 * each, so that a small map leaves a GPU idle (docs/cuda-cost.md). Equal everywhere. */
#include "base/num.h"
#include "rewrite/deriving.h"

/* The places in the padded map, row by row, that each tap reads for each place of the output. */
static po_value_id places_read(po_deriving *d, const po_conv *c, const int64_t *length) {
    int64_t dims[2 * PO_MAP_AXES], at[2 * PO_MAP_AXES] = {0}, count = 1;
    for (uint32_t i = 0; i < c->n; i++) {
        dims[i] = c->kernel[i];
        dims[c->n + i] = c->to[i];
        count *= c->kernel[i] * c->to[i];
    }
    int64_t *place = PO_NEW_N(d->arena, int64_t, count);
    for (int64_t k = 0; k < count; k++, po_next_index(2 * c->n, dims, at))
        for (uint32_t i = 0; i < c->n; i++)
            place[k] = place[k] * length[i] + at[i] * c->dilation[i] + at[c->n + i] * c->stride[i];
    return po_mk_indices(d, 2 * c->n, dims, place);
}

/* Side condition: more than one tap. */
po_status po_derive_windows(po_deriving *d, po_node_id id) {
    po_conv c;
    if (!po_read_conv(d->from, id, &c) || po_conv_taps(&c) < 2)
        return PO_OK;
    int64_t before[2 + PO_MAP_AXES] = {0}, after[2 + PO_MAP_AXES] = {0}, length[PO_MAP_AXES];
    int64_t map = 1, places = 1;
    for (uint32_t i = 0; i < c.n; i++) {
        before[2 + i] = c.before[i];
        after[2 + i] = c.after[i];
        length[i] = c.before[i] + c.size[i] + c.after[i];
        map *= length[i];
        places *= c.to[i];
    }
    const int64_t deep = c.in / c.group * po_conv_taps(&c), out = c.out / c.group;
    const bool grouped = c.group > 1;
    po_derive_begin(d, id);
    po_value_id x = po_mk_pads(d, c.x, before, after);
    x = po_mk_reshape(d, x, 3, (int64_t[]){c.batch, c.in, map});
    x = po_mk_gather(d, x, 2, places_read(d, &c, length));
    x = grouped ? po_mk_reshape(d, x, 4, (int64_t[]){c.batch, c.group, deep, places})
                : po_mk_reshape(d, x, 3, (int64_t[]){c.batch, deep, places});
    po_value_id w = grouped ? po_mk_reshape(d, c.w, 3, (int64_t[]){c.group, out, deep})
                            : po_mk_reshape(d, c.w, 2, (int64_t[]){c.out, deep});
    int64_t to[2 + PO_MAP_AXES] = {c.batch, c.out};
    memcpy(to + 2, c.to, c.n * sizeof *to);
    x = po_mk_reshape(d, po_mk_matmul(d, w, x), 2 + c.n, to);
    return po_derive_done(d, po_mk_biased(d, x, c.b, c.n), NULL);
}
