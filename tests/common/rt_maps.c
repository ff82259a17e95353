/* A map is a table: for each element of the output the input's, or -1. Each random step is drawn
 * with its table by plain index arithmetic, and R/T's own must be the same. */
#include "rt_maps.h"

#include "unit.h"

static int64_t product(uint32_t rank, const int64_t *dims) {
    int64_t n = 1;
    for (uint32_t i = 0; i < rank; i++)
        n *= dims[i];
    return n;
}

static void unflatten(int64_t at, uint32_t rank, const int64_t *dims, int64_t *index) {
    for (uint32_t i = rank; i-- > 0; at /= dims[i])
        index[i] = at % dims[i];
}

static int64_t flatten(uint32_t rank, const int64_t *dims, const int64_t *index) {
    int64_t at = 0;
    for (uint32_t i = 0; i < rank; i++) {
        if (index[i] < 0 || index[i] >= dims[i])
            return -1;
        at = at * dims[i] + index[i];
    }
    return at;
}

static rt_map *new_map(po_arena *arena, uint32_t in_rank, const int64_t *in, uint32_t out_rank,
                       const int64_t *out) {
    rt_map *m = PO_NEW(arena, rt_map);
    m->in_rank = in_rank;
    m->out_rank = out_rank;
    memcpy(m->in_dims, in, in_rank * sizeof *in);
    memcpy(m->out_dims, out, out_rank * sizeof *out);
    m->n_in = product(in_rank, in);
    m->n_out = product(out_rank, out);
    m->from = PO_NEW_N(arena, int64_t, m->n_out);
    for (int64_t i = 0; i < m->n_out; i++)
        m->from[i] = -1;
    return m;
}

rt_map *rt_map_of(po_arena *arena, const po_rt *rt) {
    rt_map *m = new_map(arena, rt->in_rank, rt->in_dims, rt->out_rank, rt->out_dims);
    int64_t n = 1;
    for (uint32_t i = 0; i < rt->n; i++)
        n *= rt->digits[i].extent;
    for (int64_t k = 0; k < n; k++) {
        int64_t in[PO_RT_MAX_RANK], out[PO_RT_MAX_RANK], rest = k;
        memcpy(in, rt->in_base, rt->in_rank * sizeof *in);
        memcpy(out, rt->out_base, rt->out_rank * sizeof *out);
        for (uint32_t i = 0; i < rt->n; i++) {
            const po_rt_digit *d = &rt->digits[i];
            in[d->in_axis] += d->in_coef * (rest % d->extent);
            out[d->out_axis] += d->out_coef * (rest % d->extent);
            rest /= d->extent;
        }
        int64_t from = flatten(rt->in_rank, rt->in_dims, in);
        int64_t to = flatten(rt->out_rank, rt->out_dims, out);
        if (from >= 0 && to >= 0) {
            assert_true(m->from[to] == -1); /* nothing is written twice */
            m->from[to] = from;
        }
    }
    return m;
}

rt_map *rt_then(po_arena *arena, const rt_map *a, const rt_map *b) {
    rt_map *m = new_map(arena, a->in_rank, a->in_dims, b->out_rank, b->out_dims);
    for (int64_t i = 0; i < m->n_out; i++)
        m->from[i] = b->from[i] < 0 ? -1 : a->from[b->from[i]];
    return m;
}

bool rt_same_map(const rt_map *a, const rt_map *b) {
    return a->in_rank == b->in_rank && a->out_rank == b->out_rank && a->n_out == b->n_out &&
           memcmp(a->in_dims, b->in_dims, a->in_rank * sizeof *a->in_dims) == 0 &&
           memcmp(a->out_dims, b->out_dims, a->out_rank * sizeof *a->out_dims) == 0 &&
           memcmp(a->from, b->from, (size_t)a->n_out * sizeof *a->from) == 0;
}

bool rt_empty(const rt_map *m) {
    for (int64_t i = 0; i < m->n_out; i++)
        if (m->from[i] >= 0)
            return false;
    return true;
}

const char *rt_text(po_arena *arena, const po_rt *rt, bool extents) {
    po_text t;
    po_text_init(&t, arena);
    po_rt_print(&t, rt, extents);
    po_text_puts(&t, "");
    return t.data;
}

/* --- random steps --- */

int64_t rt_draw(rt_maker *m, int64_t from, int64_t to) {
    return from + (int64_t)(po_random_u64(m->seed, 1, m->next++) % (uint64_t)(to - from + 1));
}

/* A step with its map, made without R/T's arithmetic. */
static const po_rt *random_step(rt_maker *m, po_arena *arena, uint32_t rank, const int64_t *dims,
                                rt_map **made) {
    int64_t out[PO_RT_MAX_RANK], index[PO_RT_MAX_RANK];
    uint32_t x = (uint32_t)rt_draw(m, 0, rank - 1);
    switch (rt_draw(m, 0, 5)) {
    case 0: { /* Transpose */
        uint32_t perm[PO_RT_MAX_RANK];
        for (uint32_t i = 0; i < rank; i++)
            perm[i] = i;
        for (uint32_t i = rank; i-- > 1;) {
            uint32_t k = (uint32_t)rt_draw(m, 0, i), swap = perm[i];
            perm[i] = perm[k];
            perm[k] = swap;
        }
        for (uint32_t i = 0; i < rank; i++)
            out[i] = dims[perm[i]];
        *made = new_map(arena, rank, dims, rank, out);
        for (int64_t i = 0; i < (*made)->n_out; i++) {
            int64_t at[PO_RT_MAX_RANK];
            unflatten(i, rank, out, at);
            for (uint32_t k = 0; k < rank; k++)
                index[perm[k]] = at[k];
            (*made)->from[i] = flatten(rank, dims, index);
        }
        return po_rt_transpose(arena, rank, dims, perm);
    }
    case 1: { /* split an axis */
        int64_t f = rt_draw(m, 2, 3);
        if (rank >= 5 || dims[x] % f)
            return NULL;
        for (uint32_t i = 0, n = 0; i < rank; i++) {
            if (i == x)
                out[n++] = rt_draw(m, 0, 1) ? f : dims[x] / f;
            out[n++] = dims[i];
            if (i == x)
                out[n - 1] = dims[x] / out[n - 2];
        }
        *made = new_map(arena, rank, dims, rank + 1, out);
        for (int64_t i = 0; i < (*made)->n_out; i++)
            (*made)->from[i] = i;
        return po_rt_reshape(arena, rank, dims, rank + 1, out);
    }
    case 2: { /* merge two axes */
        if (rank < 2 || x == 0)
            return NULL;
        for (uint32_t i = 0, n = 0; i < rank; i++)
            if (i == x)
                out[n - 1] *= dims[i];
            else
                out[n++] = dims[i];
        *made = new_map(arena, rank, dims, rank - 1, out);
        for (int64_t i = 0; i < (*made)->n_out; i++)
            (*made)->from[i] = i;
        return po_rt_reshape(arena, rank, dims, rank - 1, out);
    }
    case 3: { /* pad and crop */
        int64_t before[PO_RT_MAX_RANK] = {0}, after[PO_RT_MAX_RANK] = {0};
        before[x] = rt_draw(m, -2, 2);
        after[x] = rt_draw(m, -2, 2);
        memcpy(out, dims, rank * sizeof *dims);
        out[x] += before[x] + after[x];
        if (out[x] < 1)
            return NULL;
        *made = new_map(arena, rank, dims, rank, out);
        for (int64_t i = 0; i < (*made)->n_out; i++) {
            unflatten(i, rank, out, index);
            index[x] -= before[x];
            (*made)->from[i] = flatten(rank, dims, index);
        }
        return po_rt_pad(arena, rank, dims, before, after);
    }
    case 4: { /* halo */
        int64_t tiles = rt_draw(m, 1, 3), window = rt_draw(m, 1, 4), step = rt_draw(m, 1, 4);
        int64_t from = rt_draw(m, -1, 1);
        if (rank >= 5)
            return NULL;
        for (uint32_t i = 0, n = 0; i < rank; i++) {
            if (i == x)
                out[n++] = tiles;
            out[n++] = i == x ? window : dims[i];
        }
        *made = new_map(arena, rank, dims, rank + 1, out);
        for (int64_t i = 0; i < (*made)->n_out; i++) {
            int64_t at[PO_RT_MAX_RANK];
            unflatten(i, rank + 1, out, at);
            for (uint32_t k = 0; k < rank; k++)
                index[k] = k < x ? at[k] : at[k + 1];
            index[x] += at[x] * step + from;
            (*made)->from[i] = flatten(rank, dims, index);
        }
        return po_rt_tiles(arena, rank, dims, x, tiles, window, step, from);
    }
    default: { /* slice, forwards or backwards */
        int64_t step = rt_draw(m, 1, 2), first = rt_draw(m, 0, 1),
                n = (dims[x] - 1 - first) / step + 1;
        bool back = rt_draw(m, 0, 2) == 0;
        if (first >= dims[x])
            return NULL;
        memcpy(out, dims, rank * sizeof *dims);
        out[x] = n;
        *made = new_map(arena, rank, dims, rank, out);
        for (int64_t i = 0; i < (*made)->n_out; i++) {
            unflatten(i, rank, out, index);
            index[x] = first + step * (back ? n - 1 - index[x] : index[x]);
            (*made)->from[i] = flatten(rank, dims, index);
        }
        po_rt_digit d[PO_RT_MAX_RANK];
        int64_t in_base[PO_RT_MAX_RANK] = {0}, out_base[PO_RT_MAX_RANK] = {0};
        for (uint32_t i = 0; i < rank; i++)
            d[i] = (po_rt_digit){out[i], i, i, 1, 1};
        d[x].in_coef = back ? -step : step;
        in_base[x] = first + (back ? step * (n - 1) : 0);
        return po_rt_create(arena, &(po_rt){rank, rank, rank, dims, out, in_base, out_base, d});
    }
    }
}

rt_chain rt_random_chain(rt_maker *m, po_arena *arena, uint32_t most) {
    rt_chain c = {0};
    int64_t dims[PO_RT_MAX_RANK];
    uint32_t rank = (uint32_t)rt_draw(m, 1, 3), wanted = (uint32_t)rt_draw(m, 1, most);
    for (uint32_t i = 0; i < rank; i++)
        dims[i] = rt_draw(m, 0, 3) ? 2 * rt_draw(m, 1, 3) : rt_draw(m, 1, 6);
    for (int tries = 0; tries < 40 && c.n < wanted; tries++) {
        rt_map *made = NULL;
        const po_rt *rt = random_step(m, arena, rank, dims, &made);
        if (!made || made->n_out > 3000)
            continue;
        if (!rt) {
            assert_true(rt_empty(made));
            continue;
        }
        if (!rt_same_map(made, rt_map_of(arena, rt)))
            fail_msg("step '%s' is not what it should be", rt_text(arena, rt, true));
        c.step[c.n] = rt;
        c.made[c.n++] = made;
        rank = rt->out_rank;
        memcpy(dims, rt->out_dims, rank * sizeof *dims);
    }
    return c;
}
