/* Tile and Expand. */
#include "ir/size.h"
#include "ops/rule.h"

/* --- Tile --- */

/* Opset 1: a count and an axis as scalars. */
static po_status infer_tile_1(po_infer *infer, const po_type *in) {
    const int64_t *tiles, *axis;
    int64_t n_tiles, n_axis;
    uint32_t k;
    po_dim *dims = po_rule_out(infer, 0, in->dtype, in->rank);
    if (po_rule_ints(infer, NULL, 1, &tiles, &n_tiles) != PO_KNOWN || n_tiles != 1 ||
        po_rule_ints(infer, NULL, 2, &axis, &n_axis) != PO_KNOWN || n_axis != 1)
        return PO_OK;
    PO_TRY(po_rule_axis(infer->ctx, infer->node, axis[0], in->rank, &k));
    memcpy(dims, in->dims, in->rank * sizeof *dims);
    if (tiles[0] < 0)
        return po_rule_bad(infer->ctx, infer->node, "tiles is negative");
    dims[k] = po_size_mul(infer->arena, dims[k], PO_DIM(tiles[0]));
    return PO_OK;
}

po_status po_infer_tile(po_infer *infer) {
    const po_type *in = po_rule_ranked(infer, 0);
    po_infer_set_unranked(infer, 0, po_infer_dtype(infer, 0));
    if (!in)
        return PO_OK;
    if (infer->opset < 6)
        return infer_tile_1(infer, in);
    const po_contents *repeats = po_rule_contents(infer, 1);
    po_dim *dims = po_rule_out(infer, 0, in->dtype, in->rank);
    if (!repeats)
        return PO_OK;
    if (repeats->n != in->rank)
        return po_rule_bad(infer->ctx, infer->node, "repeats has %u items for rank %u", repeats->n,
                           in->rank);
    for (uint32_t k = 0; k < in->rank; k++) {
        const int64_t r = repeats->values[k];
        if (repeats->exact[k] && r < 0)
            return po_rule_bad(infer->ctx, infer->node, "repeats of axis %u is negative (%lld)", k,
                               (long long)r);
        dims[k] = po_size_mul(infer->arena, in->dims[k],
                              repeats->exact[k] ? PO_DIM(r) : (po_dim){-1, repeats->symbols[k]});
    }
    return PO_OK;
}

po_status po_ref_tile(po_ref *ref) {
    PO_TRY(po_rule_outputs(ref));
    const po_array *in = ref->in[0], *out = ref->out[0];
    const int64_t *maps[PO_MAX_RANK] = {NULL};
    for (uint32_t k = 0; k < out->rank; k++) {
        int64_t *map = PO_NEW_N(ref->arena, int64_t, out->dims[k]);
        for (int64_t o = 0; o < out->dims[k]; o++)
            map[o] = o % in->dims[k];
        maps[k] = map;
    }
    po_move_mapped(out, in, maps, NULL);
    return PO_OK;
}

/* --- Expand --- */

po_status po_infer_expand(po_infer *infer) {
    const po_type *in = po_rule_ranked(infer, 0), *length = po_rule_ranked(infer, 1);
    const po_contents *shape = po_rule_contents(infer, 1);
    po_infer_set_unranked(infer, 0, po_infer_dtype(infer, 0));
    if (!in)
        return PO_OK;
    if (!shape) {
        if (length && length->rank == 1 && length->dims[0].value >= 0 &&
            length->dims[0].value <= PO_MAX_RANK) {
            uint32_t n = (uint32_t)length->dims[0].value;
            po_rule_out(infer, 0, in->dtype, n > in->rank ? n : in->rank);
        }
        return PO_OK;
    }
    uint32_t rank = shape->n > in->rank ? shape->n : in->rank;
    po_dim *dims = po_rule_out(infer, 0, in->dtype, rank);
    for (uint32_t k = 0; k < rank; k++) {
        po_dim a = PO_DIM(1), b = PO_DIM(1);
        if (k >= rank - in->rank)
            a = in->dims[k - (rank - in->rank)];
        if (k >= rank - shape->n) {
            uint32_t i = k - (rank - shape->n);
            b = shape->exact[i] ? PO_DIM(shape->values[i]) : (po_dim){-1, shape->symbols[i]};
            /* The runtime reads -1 as "as it is". */
            if (shape->exact[i] && shape->values[i] == -1)
                b = PO_DIM(1);
            else if (shape->exact[i] && shape->values[i] < 0)
                return po_rule_bad(infer->ctx, infer->node, "item %u of shape is negative", i);
        }
        PO_TRY(po_rule_broadcast_dim(infer, a, b, &dims[k]));
    }
    const po_partial *p = infer->partial[0];
    int64_t n = rank == 0 ? 1 : rank == 1 ? dims[0].value : -1;
    if (p && n >= 0 && n <= 64 && (p->n == 1 || (int64_t)p->n == n)) {
        po_dim *items = PO_NEW_N(infer->arena, po_dim, n);
        for (int64_t i = 0; i < n; i++)
            items[i] = p->items[p->n == 1 ? 0 : i];
        po_infer_set_partial(infer, 0, (uint32_t)n, items);
    }
    return PO_OK;
}

po_status po_ref_expand(po_ref *ref) {
    PO_TRY(po_rule_outputs(ref));
    const po_array *in = ref->in[0], *out = ref->out[0];
    int64_t from[PO_MAX_RANK], strides[PO_MAX_RANK] = {0};
    po_rule_strides(in->rank, in->dims, from);
    for (uint32_t k = 0; k < in->rank; k++)
        if (in->dims[k] != 1)
            strides[out->rank - in->rank + k] = from[k];
    po_move(po_rule_data(out), po_rule_data(in), po_rule_width(in), out->rank, out->dims, 0,
            strides);
    return PO_OK;
}

/* --- attributes --- */
