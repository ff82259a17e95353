/* A dilated convolution as one without dilation over phases laid into the batch (PET, figure 1).
 *
 * Tap j of output o reads x[o + d j - before]. With o = d q + p, the phase p reads x at p plus
 * multiples of d alone, so each phase is a map of its own, of size / d, convolved without dilation.
 * Maps are padded to a multiple of d; padding that is itself a multiple of d stays the
 * convolution's. Side condition: stride 1 on the axes that are dilated. Equal everywhere; the
 * multiplications grow by the padding alone. */
#include "rewrite/deriving.h"

typedef struct phased {
    int64_t d, lead, length, pad, tail; /* zeros before the map; of a phase; of the convolution */
} phased;

static phased plan(const po_conv *c, uint32_t i) {
    phased p = {.d = c->dilation[i]};
    p.lead = c->before[i] % p.d;
    p.pad = c->before[i] / p.d;
    p.length = po_up_to(p.lead + c->size[i], p.d) / p.d;
    int64_t made = po_up_to(c->to[i], p.d) / p.d;
    p.tail = po_larger(0, made + c->kernel[i] - 1 - p.pad - p.length);
    return p;
}

po_status po_derive_phases(po_deriving *d, po_node_id id) {
    po_conv c;
    if (!po_read_conv(d->from, id, &c) || po_conv_dilation_one(&c))
        return PO_OK;
    phased p[PO_MAP_AXES];
    for (uint32_t i = 0; i < c.n; i++) {
        if (c.dilation[i] > 1 && c.stride[i] != 1)
            return PO_OK;
        p[i] = plan(&c, i);
    }
    po_derive_begin(d, id);
    /* [N, C, L d] to [N, C, L, d] to [d, N, C, L] to [d N, C, L], on all axes at once. */
    int64_t dims[PO_MOST_DIMS] = {c.batch, c.in}, before[PO_MOST_DIMS] = {0},
            after[PO_MOST_DIMS] = {0};
    int perm[PO_MOST_DIMS];
    uint32_t r = 2, n = c.n;
    int64_t phases = 1;
    po_conv flat = c;
    for (uint32_t i = 0; i < n; i++) {
        before[i + 2] = p[i].d > 1 ? p[i].lead : 0;
        after[i + 2] = p[i].d > 1 ? p[i].length * p[i].d - p[i].lead - c.size[i] : 0;
        dims[r++] = p[i].d > 1 ? p[i].length : c.size[i];
        dims[r++] = p[i].d;
        phases *= p[i].d;
        if (p[i].d > 1) {
            flat.dilation[i] = 1;
            flat.before[i] = p[i].pad;
            flat.after[i] = p[i].tail;
        }
    }
    for (uint32_t i = 0; i < n; i++) {
        perm[i] = (int)(3 + 2 * i);
        perm[n + 2 + i] = (int)(2 + 2 * i);
    }
    perm[n] = 0;
    perm[n + 1] = 1;
    po_value_id x = po_mk_pads(d, c.x, before, after);
    x = po_mk_reshape(d, x, r, dims);
    x = po_mk_transpose(d, x, perm);
    int64_t flat_dims[PO_MOST_DIMS] = {phases * c.batch, c.in};
    for (uint32_t i = 0; i < n; i++)
        flat_dims[2 + i] = dims[2 + 2 * i];
    x = po_mk_reshape(d, x, n + 2, flat_dims);
    x = po_mk_conv(d, x, c.w, c.b, &flat);
    /* And back. */
    int64_t made[PO_MOST_DIMS];
    uint32_t rank;
    if (d->dropped || !po_dims_of(d->g, x, &rank, made))
        return po_derive_done(d, x, NULL);
    uint32_t k = 0;
    for (uint32_t i = 0; i < n; i++)
        dims[k++] = p[i].d;
    dims[k++] = c.batch;
    dims[k++] = c.out;
    for (uint32_t i = 0; i < n; i++)
        dims[k++] = made[2 + i];
    x = po_mk_reshape(d, x, k, dims);
    perm[0] = (int)n;
    perm[1] = (int)n + 1;
    for (uint32_t i = 0; i < n; i++) {
        perm[2 + 2 * i] = (int)(n + 2 + i);
        perm[3 + 2 * i] = (int)i;
    }
    x = po_mk_transpose(d, x, perm);
    flat_dims[0] = c.batch;
    flat_dims[1] = c.out;
    for (uint32_t i = 0; i < n; i++)
        flat_dims[2 + i] = made[2 + i] * p[i].d;
    x = po_mk_reshape(d, x, n + 2, flat_dims);
    for (uint32_t i = 0; i < n; i++)
        x = po_mk_slice(d, x, i + 2, 0, c.to[i], 1);
    return po_derive_done(d, x, NULL);
}
