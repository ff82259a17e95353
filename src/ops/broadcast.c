/* Each array has a stride for each axis of the output, 0 where it repeats; rows are counted through
 * like an odometer, without a division. */
#include "ops/broadcast.h"

static bool shape_of(po_bcast *b, uint32_t n, const uint32_t *ranks, const int64_t *const *dims) {
    b->n = n;
    b->out_rank = 0;
    for (uint32_t k = 0; k < n; k++) {
        if (ranks[k] > PO_MAX_RANK)
            return false;
        b->out_rank = ranks[k] > b->out_rank ? ranks[k] : b->out_rank;
    }
    for (uint32_t i = 0; i < b->out_rank; i++)
        b->out_dims[i] = 1;
    for (uint32_t k = 0; k < n; k++)
        for (uint32_t i = 0; i < ranks[k]; i++) {
            int64_t *d = &b->out_dims[b->out_rank - ranks[k] + i];
            if (*d == 1)
                *d = dims[k][i];
            else if (dims[k][i] != 1 && dims[k][i] != *d)
                return false;
        }
    b->count = 1;
    for (uint32_t i = 0; i < b->out_rank; i++)
        if (!po_mul_i64(b->count, b->out_dims[i], &b->count))
            return false;
    return true;
}

/* True where axis i + 1 of all arrays continues axis i. */
static bool mergeable(const po_bcast *b, uint32_t outer, const int64_t (*stride)[PO_MAX_RANK + 1],
                      uint32_t inner) {
    for (uint32_t k = 0; k < b->n; k++)
        if (b->stride[k][outer] != stride[k][inner] * b->out_dims[inner])
            return false;
    return true;
}

bool po_bcast_dims(po_bcast *b, uint32_t n, const uint32_t *ranks, const int64_t *const *dims) {
    int64_t stride[PO_BCAST_MAX][PO_MAX_RANK + 1];
    if (n > PO_BCAST_MAX || !shape_of(b, n, ranks, dims))
        return false;
    for (uint32_t k = 0; k < n; k++) {
        int64_t s = 1;
        uint32_t skip = b->out_rank - ranks[k];
        for (uint32_t i = b->out_rank; i-- > 0;) {
            int64_t d = i >= skip ? dims[k][i - skip] : 1;
            stride[k][i] = d == 1 ? 0 : s;
            s *= d;
        }
    }
    b->rank = 0;
    for (uint32_t i = 0; i < b->out_rank && b->count; i++) {
        if (b->out_dims[i] == 1)
            continue;
        if (b->rank && mergeable(b, b->rank - 1, (const int64_t(*)[PO_MAX_RANK + 1]) stride, i)) {
            b->dims[b->rank - 1] *= b->out_dims[i];
            b->rank--;
        } else {
            b->dims[b->rank] = b->out_dims[i];
        }
        for (uint32_t k = 0; k < n; k++)
            b->stride[k][b->rank] = stride[k][i];
        b->rank++;
    }
    if (b->rank == 0) {
        b->rank = 1;
        b->dims[0] = b->count;
        for (uint32_t k = 0; k < n; k++)
            b->stride[k][0] = 0;
    }
    return true;
}

bool po_bcast_init(po_bcast *b, uint32_t n, const po_array *const *arrays) {
    uint32_t ranks[PO_BCAST_MAX];
    const int64_t *dims[PO_BCAST_MAX];
    if (n > PO_BCAST_MAX)
        return false;
    for (uint32_t k = 0; k < n; k++) {
        ranks[k] = arrays[k]->rank;
        dims[k] = arrays[k]->dims;
    }
    return po_bcast_dims(b, n, ranks, dims);
}

bool po_bcast_next(const po_bcast *b, po_bcast_row *row) {
    uint32_t last = b->rank - 1;
    if (b->count == 0)
        return false;
    if (row->n == 0) {
        row->n = b->dims[last];
        for (uint32_t k = 0; k < b->n; k++)
            row->step[k] = b->stride[k][last];
        return true;
    }
    row->at += row->n;
    if (row->at >= b->count)
        return false;
    for (uint32_t i = last; i-- > 0;) {
        for (uint32_t k = 0; k < b->n; k++)
            row->from[k] += b->stride[k][i];
        if (++row->index[i] < b->dims[i])
            return true;
        row->index[i] = 0;
        for (uint32_t k = 0; k < b->n; k++)
            row->from[k] -= b->stride[k][i] * b->dims[i];
    }
    return false;
}
