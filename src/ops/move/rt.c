/* R/T forms: the normal form, and what can be asked of one. */
#include "ops/move/rt.h"

#include "ops/move/rt_internal.h"

typedef struct maker {
    po_rt rt; /* its arrays are the ones below */
    int64_t in_dims[PO_RT_MAX_RANK], out_dims[PO_RT_MAX_RANK];
    int64_t in_base[PO_RT_MAX_RANK], out_base[PO_RT_MAX_RANK];
    po_rt_digit d[PO_RT_MAX_VARS];
} maker;

bool po_rt_range(uint32_t n, const int64_t *lo, const int64_t *hi, const int64_t *coef,
                 int64_t base, int64_t *least, int64_t *most) {
    *least = *most = base;
    for (uint32_t i = 0; i < n; i++) {
        int64_t a, b;
        if (!po_mul_i64(coef[i], coef[i] < 0 ? hi[i] : lo[i], &a) ||
            !po_mul_i64(coef[i], coef[i] < 0 ? lo[i] : hi[i], &b) ||
            !po_add_i64(*least, a, least) || !po_add_i64(*most, b, most))
            return false;
    }
    return true;
}

bool po_rt_narrow(uint32_t n, int64_t *lo, int64_t *hi, const int64_t *coef, int64_t base,
                  int64_t least, int64_t most, bool *changed) {
    int64_t low, high;
    if (!po_rt_range(n, lo, hi, coef, base, &low, &high))
        return true;
    if (low > most || high < least)
        return false;
    for (uint32_t i = 0; i < n; i++) {
        int64_t c = coef[i], from, to;
        if (!c)
            continue;
        /* What the others can add at most and at least. */
        int64_t others_low = low - (c < 0 ? c * hi[i] : c * lo[i]);
        int64_t others_high = high - (c < 0 ? c * lo[i] : c * hi[i]);
        if (c > 0) {
            from = po_ceil_div(least - others_high, c);
            to = po_floor_div(most - others_low, c);
        } else {
            from = po_ceil_div(others_low - most, -c);
            to = po_floor_div(others_high - least, -c);
        }
        if (from > lo[i] || to < hi[i]) {
            lo[i] = from > lo[i] ? from : lo[i];
            hi[i] = to < hi[i] ? to : hi[i];
            *changed = true;
            if (lo[i] > hi[i] || !po_rt_range(n, lo, hi, coef, base, &low, &high))
                return false;
        }
    }
    return true;
}

static bool small(int64_t x) {
    return x >= -po_rt_most && x <= po_rt_most;
}

/* Dims whose product cannot overflow, none of them 0. */
static bool good_dims(uint32_t rank, const int64_t *dims, const int64_t *base) {
    int64_t count = 1;
    for (uint32_t i = 0; i < rank; i++)
        if (dims[i] < 1 || !po_mul_i64(count, dims[i], &count) || count > po_rt_most ||
            !small(base[i]))
            return false;
    return true;
}

static void drop_digit(maker *m, uint32_t i) {
    m->rt.n--;
    memmove(&m->d[i], &m->d[i + 1], (m->rt.n - i) * sizeof *m->d);
}

/* The digit counts from the other end. */
static void flip(maker *m, po_rt_digit *d) {
    m->in_base[d->in_axis] += d->in_coef * (d->extent - 1);
    m->out_base[d->out_axis] += d->out_coef * (d->extent - 1);
    d->in_coef = -d->in_coef;
    d->out_coef = -d->out_coef;
}

static bool narrow_axes(maker *m, int64_t *lo, int64_t *hi, bool out, bool *changed) {
    uint32_t rank = out ? m->rt.out_rank : m->rt.in_rank;
    for (uint32_t x = 0; x < rank; x++) {
        int64_t coef[PO_RT_MAX_VARS];
        for (uint32_t i = 0; i < m->rt.n; i++) {
            const po_rt_digit *d = &m->d[i];
            coef[i] =
                out ? (d->out_axis == x ? d->out_coef : 0) : (d->in_axis == x ? d->in_coef : 0);
        }
        if (!po_rt_narrow(m->rt.n, lo, hi, coef, out ? m->out_base[x] : m->in_base[x], 0,
                          (out ? m->out_dims[x] : m->in_dims[x]) - 1, changed))
            return false;
    }
    return true;
}

/* Leaves out the ends of each digit that no element comes from or goes to, and digits of a single
 * value. False where nothing is left. */
static bool trim(maker *m) {
    int64_t lo[PO_RT_MAX_VARS], hi[PO_RT_MAX_VARS];
    for (uint32_t i = 0; i < m->rt.n; i++) {
        lo[i] = 0;
        hi[i] = m->d[i].extent - 1;
    }
    for (bool changed = true; changed;) {
        changed = false;
        if (!narrow_axes(m, lo, hi, false, &changed) || !narrow_axes(m, lo, hi, true, &changed))
            return false;
    }
    for (uint32_t i = m->rt.n; i-- > 0;) {
        po_rt_digit *d = &m->d[i];
        m->in_base[d->in_axis] += d->in_coef * lo[i];
        m->out_base[d->out_axis] += d->out_coef * lo[i];
        d->extent = hi[i] - lo[i] + 1;
        if (d->extent == 1)
            drop_digit(m, i);
    }
    return true;
}

/* Two digits that always stand together are one. */
static bool merge_once(maker *m) {
    for (uint32_t i = 0; i < m->rt.n; i++)
        for (uint32_t k = 0; k < m->rt.n; k++) {
            const po_rt_digit *a = &m->d[i];
            po_rt_digit *b = &m->d[k];
            int64_t in, out, extent;
            if (i == k || a->in_axis != b->in_axis || a->out_axis != b->out_axis ||
                !po_mul_i64(b->in_coef, b->extent, &in) || in != a->in_coef ||
                !po_mul_i64(b->out_coef, b->extent, &out) || out != a->out_coef ||
                !po_mul_i64(b->extent, a->extent, &extent))
                continue;
            b->extent = extent;
            drop_digit(m, i);
            return true;
        }
    return false;
}

static bool before(const po_rt_digit *a, const po_rt_digit *b) {
    return a->out_axis != b->out_axis ? a->out_axis < b->out_axis : a->out_coef > b->out_coef;
}

/* By output axis and from the largest step down; false where two iterations may write the same
 * element. */
static bool sort(maker *m) {
    for (uint32_t i = 1; i < m->rt.n; i++) {
        po_rt_digit d = m->d[i];
        uint32_t k = i;
        for (; k && before(&d, &m->d[k - 1]); k--)
            m->d[k] = m->d[k - 1];
        m->d[k] = d;
    }
    int64_t reach = 0;
    for (uint32_t i = m->rt.n; i-- > 0;) {
        if (i + 1 == m->rt.n || m->d[i + 1].out_axis != m->d[i].out_axis)
            reach = 0;
        if (m->d[i].out_coef <= reach)
            return false;
        reach += m->d[i].out_coef * (m->d[i].extent - 1);
    }
    return true;
}

static bool in_reach(const maker *m) {
    int64_t lo[PO_RT_MAX_VARS] = {0}, hi[PO_RT_MAX_VARS], in[PO_RT_MAX_VARS], out[PO_RT_MAX_VARS];
    int64_t least, most;
    for (uint32_t i = 0; i < m->rt.n; i++) {
        const po_rt_digit *d = &m->d[i];
        if (!small(d->in_coef) || !small(d->out_coef) || !d->in_coef || !d->out_coef ||
            d->extent < 1 || d->extent > po_rt_most || d->in_axis >= m->rt.in_rank ||
            d->out_axis >= m->rt.out_rank)
            return false;
        hi[i] = d->extent - 1;
        in[i] = d->in_coef < 0 ? -d->in_coef : d->in_coef;
        out[i] = d->out_coef < 0 ? -d->out_coef : d->out_coef;
    }
    return po_rt_range(m->rt.n, lo, hi, in, 0, &least, &most) && most <= po_rt_most << 8 &&
           po_rt_range(m->rt.n, lo, hi, out, 0, &least, &most) && most <= po_rt_most << 8;
}

const po_rt *po_rt_create(po_arena *arena, const po_rt *parts) {
    maker m;
    if (parts->in_rank > PO_RT_MAX_RANK || parts->out_rank > PO_RT_MAX_RANK ||
        parts->n > PO_RT_MAX_VARS || !good_dims(parts->in_rank, parts->in_dims, parts->in_base) ||
        !good_dims(parts->out_rank, parts->out_dims, parts->out_base))
        return NULL;
    m.rt = *parts;
    for (uint32_t i = 0; i < parts->in_rank; i++) {
        m.in_dims[i] = parts->in_dims[i];
        m.in_base[i] = parts->in_base[i];
    }
    for (uint32_t i = 0; i < parts->out_rank; i++) {
        m.out_dims[i] = parts->out_dims[i];
        m.out_base[i] = parts->out_base[i];
    }
    for (uint32_t i = 0; i < parts->n; i++)
        m.d[i] = parts->digits[i];
    if (!in_reach(&m))
        return NULL;
    for (uint32_t i = 0; i < m.rt.n; i++)
        if (m.d[i].out_coef < 0)
            flip(&m, &m.d[i]);
    do {
        if (!trim(&m))
            return NULL;
    } while (merge_once(&m));
    if (!sort(&m) || m.rt.n > PO_RT_MAX_DIGITS)
        return NULL;
    po_rt *rt = PO_NEW(arena, po_rt);
    *rt = m.rt;
    rt->in_dims = po_arena_memdup(arena, m.in_dims, m.rt.in_rank * sizeof *m.in_dims);
    rt->in_base = po_arena_memdup(arena, m.in_base, m.rt.in_rank * sizeof *m.in_base);
    rt->out_dims = po_arena_memdup(arena, m.out_dims, m.rt.out_rank * sizeof *m.out_dims);
    rt->out_base = po_arena_memdup(arena, m.out_base, m.rt.out_rank * sizeof *m.out_base);
    rt->digits = po_arena_memdup(arena, m.d, m.rt.n * sizeof *m.d);
    return rt;
}

/* --- makers --- */

static const int64_t no_base[PO_RT_MAX_RANK];

const po_rt *po_rt_identity(po_arena *arena, uint32_t rank, const int64_t *dims) {
    uint32_t perm[PO_RT_MAX_RANK];
    for (uint32_t i = 0; i < rank && i < PO_RT_MAX_RANK; i++)
        perm[i] = i;
    return po_rt_transpose(arena, rank, dims, perm);
}

const po_rt *po_rt_transpose(po_arena *arena, uint32_t rank, const int64_t *dims,
                             const uint32_t *perm) {
    po_rt_digit d[PO_RT_MAX_RANK];
    int64_t out[PO_RT_MAX_RANK];
    bool seen[PO_RT_MAX_RANK] = {false};
    if (rank > PO_RT_MAX_RANK)
        return NULL;
    for (uint32_t i = 0; i < rank; i++) {
        if (perm[i] >= rank || seen[perm[i]])
            return NULL;
        seen[perm[i]] = true;
        out[i] = dims[perm[i]];
        d[i] = (po_rt_digit){out[i], perm[i], i, 1, 1};
    }
    return po_rt_create(arena, &(po_rt){rank, rank, rank, dims, out, no_base, no_base, d});
}

const po_rt *po_rt_reshape(po_arena *arena, uint32_t in_rank, const int64_t *in_dims,
                           uint32_t out_rank, const int64_t *out_dims) {
    po_rt_digit d[PO_RT_MAX_VARS];
    uint32_t n = 0, i = in_rank, o = out_rank;
    int64_t in_count = 1, out_count = 1;
    if (in_rank > PO_RT_MAX_RANK || out_rank > PO_RT_MAX_RANK ||
        !good_dims(in_rank, in_dims, no_base) || !good_dims(out_rank, out_dims, no_base))
        return NULL;
    for (uint32_t k = 0; k < in_rank; k++)
        in_count *= in_dims[k];
    for (uint32_t k = 0; k < out_rank; k++)
        out_count *= out_dims[k];
    if (in_count != out_count)
        return NULL;
    /* From the last axes on: what is left of either axis is cut by what is left of the other. */
    int64_t in_left = 1, out_left = 1, in_coef = 1, out_coef = 1;
    for (;;) {
        for (; in_left == 1 && i; in_coef = 1)
            in_left = in_dims[--i];
        for (; out_left == 1 && o; out_coef = 1)
            out_left = out_dims[--o];
        if (in_left == 1 && out_left == 1)
            break;
        int64_t e = in_left < out_left ? in_left : out_left;
        if (in_left % e || out_left % e || n == PO_RT_MAX_VARS)
            return NULL;
        d[n++] = (po_rt_digit){e, i, o, in_coef, out_coef};
        in_left /= e;
        out_left /= e;
        in_coef *= e;
        out_coef *= e;
    }
    return po_rt_create(arena,
                        &(po_rt){in_rank, out_rank, n, in_dims, out_dims, no_base, no_base, d});
}

const po_rt *po_rt_pad(po_arena *arena, uint32_t rank, const int64_t *dims, const int64_t *before_,
                       const int64_t *after) {
    po_rt_digit d[PO_RT_MAX_RANK];
    int64_t out[PO_RT_MAX_RANK];
    if (rank > PO_RT_MAX_RANK)
        return NULL;
    for (uint32_t i = 0; i < rank; i++) {
        if (!po_add_i64(dims[i], before_[i], &out[i]) || !po_add_i64(out[i], after[i], &out[i]))
            return NULL;
        d[i] = (po_rt_digit){dims[i], i, i, 1, 1};
    }
    return po_rt_create(arena, &(po_rt){rank, rank, rank, dims, out, no_base, before_, d});
}

const po_rt *po_rt_tiles(po_arena *arena, uint32_t rank, const int64_t *dims, uint32_t axis,
                         int64_t tiles, int64_t window, int64_t step, int64_t from) {
    po_rt_digit d[PO_RT_MAX_RANK + 1];
    int64_t out[PO_RT_MAX_RANK + 1], base[PO_RT_MAX_RANK] = {0};
    if (rank >= PO_RT_MAX_RANK || axis >= rank)
        return NULL;
    uint32_t n = 0;
    for (uint32_t i = 0; i < rank; i++) {
        if (i == axis) {
            d[n] = (po_rt_digit){tiles, i, n, step, 1};
            out[n++] = tiles;
        }
        d[n] = (po_rt_digit){i == axis ? window : dims[i], i, n, 1, 1};
        out[n] = d[n].extent;
        n++;
    }
    base[axis] = from;
    return po_rt_create(arena, &(po_rt){rank, rank + 1, n, dims, out, base, no_base, d});
}

/* --- questions --- */

static bool same(const int64_t *a, const int64_t *b, uint32_t n) {
    return n == 0 || memcmp(a, b, n * sizeof *a) == 0;
}

bool po_rt_equal(const po_rt *a, const po_rt *b) {
    if (a->in_rank != b->in_rank || a->out_rank != b->out_rank || a->n != b->n ||
        !same(a->in_dims, b->in_dims, a->in_rank) || !same(a->in_base, b->in_base, a->in_rank) ||
        !same(a->out_dims, b->out_dims, a->out_rank) ||
        !same(a->out_base, b->out_base, a->out_rank))
        return false;
    for (uint32_t i = 0; i < a->n; i++) {
        const po_rt_digit *d = &a->digits[i], *e = &b->digits[i];
        if (d->extent != e->extent || d->in_axis != e->in_axis || d->out_axis != e->out_axis ||
            d->in_coef != e->in_coef || d->out_coef != e->out_coef)
            return false;
    }
    return true;
}

po_hash po_rt_hash(const po_rt *rt) {
    po_hash h = po_hash_u64((po_hash){0}, rt->in_rank);
    h = po_hash_u64(h, rt->out_rank);
    for (uint32_t i = 0; i < rt->in_rank; i++)
        h = po_hash_u64(po_hash_u64(h, (uint64_t)rt->in_dims[i]), (uint64_t)rt->in_base[i]);
    for (uint32_t i = 0; i < rt->out_rank; i++)
        h = po_hash_u64(po_hash_u64(h, (uint64_t)rt->out_dims[i]), (uint64_t)rt->out_base[i]);
    for (uint32_t i = 0; i < rt->n; i++) {
        const po_rt_digit *d = &rt->digits[i];
        h = po_hash_u64(h, (uint64_t)d->extent);
        h = po_hash_u64(h, (uint64_t)d->in_axis << 32 | d->out_axis);
        h = po_hash_u64(po_hash_u64(h, (uint64_t)d->in_coef), (uint64_t)d->out_coef);
    }
    return h;
}

/* Each element of one side belongs to exactly one iteration: its digits are the radices of each
 * axis, none left out. */
static bool covers(const po_rt *rt, bool out) {
    uint32_t rank = out ? rt->out_rank : rt->in_rank;
    for (uint32_t x = 0; x < rank; x++) {
        int64_t place = 1, low = out ? rt->out_base[x] : rt->in_base[x];
        for (bool found = true; found;) {
            found = false;
            for (uint32_t i = 0; i < rt->n; i++) {
                const po_rt_digit *d = &rt->digits[i];
                int64_t c = out ? d->out_coef : d->in_coef;
                if ((out ? d->out_axis : d->in_axis) != x || (c < 0 ? -c : c) != place)
                    continue;
                low += c < 0 ? c * (d->extent - 1) : 0;
                place *= d->extent;
                found = true;
                break;
            }
        }
        /* A digit that was passed over would reach beyond the length. */
        if (place != (out ? rt->out_dims[x] : rt->in_dims[x]) || low != 0)
            return false;
    }
    int64_t inside = 1, all = 1;
    for (uint32_t i = 0; i < rt->n; i++)
        inside *= rt->digits[i].extent;
    for (uint32_t x = 0; x < rank; x++)
        all *= out ? rt->out_dims[x] : rt->in_dims[x];
    return inside == all;
}

bool po_rt_is_identity(const po_rt *rt) {
    if (rt->in_rank != rt->out_rank || !same(rt->in_dims, rt->out_dims, rt->in_rank) ||
        !same(rt->in_base, rt->out_base, rt->in_rank))
        return false;
    for (uint32_t i = 0; i < rt->n; i++)
        if (rt->digits[i].in_axis != rt->digits[i].out_axis ||
            rt->digits[i].in_coef != rt->digits[i].out_coef)
            return false;
    return covers(rt, false);
}

bool po_rt_is_bijection(const po_rt *rt) {
    return covers(rt, false) && covers(rt, true);
}

/* Of windows that overlap, one copy of each element: every digit but the largest is cut to the
 * step of the next one above. */
static void take_once(maker *m) {
    for (uint32_t i = 0; i < m->rt.n; i++) {
        int64_t above = INT64_MAX, c = m->d[i].in_coef < 0 ? -m->d[i].in_coef : m->d[i].in_coef;
        for (uint32_t k = 0; k < m->rt.n; k++) {
            int64_t a = m->d[k].in_coef < 0 ? -m->d[k].in_coef : m->d[k].in_coef;
            if (k != i && m->d[k].in_axis == m->d[i].in_axis && a > c && a < above)
                above = a;
        }
        if (above == INT64_MAX || above / c >= m->d[i].extent)
            continue;
        /* The window starts before its tile by as much as the axis' base says. */
        int64_t base = m->in_base[m->d[i].in_axis], skip = base < 0 ? -base / c : 0;
        if (skip + above / c > m->d[i].extent)
            skip = m->d[i].extent - above / c;
        m->in_base[m->d[i].in_axis] += m->d[i].in_coef * skip;
        m->out_base[m->d[i].out_axis] += m->d[i].out_coef * skip;
        m->d[i].extent = above / c;
    }
}

const po_rt *po_rt_invert(po_arena *arena, const po_rt *rt) {
    maker m;
    m.rt = *rt;
    memcpy(m.in_base, rt->in_base, rt->in_rank * sizeof *m.in_base);
    memcpy(m.out_base, rt->out_base, rt->out_rank * sizeof *m.out_base);
    memcpy(m.d, rt->digits, rt->n * sizeof *m.d);
    take_once(&m);
    for (uint32_t i = 0; i < rt->n; i++) {
        po_rt_digit d = m.d[i];
        m.d[i] = (po_rt_digit){d.extent, d.out_axis, d.in_axis, d.out_coef, d.in_coef};
    }
    const po_rt *back = po_rt_create(arena, &(po_rt){rt->out_rank, rt->in_rank, rt->n, rt->out_dims,
                                                     rt->in_dims, m.out_base, m.in_base, m.d});
    if (!back)
        return NULL;
    /* Exact by construction of the composition: nothing else need be shown. */
    const po_rt *round = po_rt_compose(arena, rt, back);
    return round && po_rt_is_identity(round) ? back : NULL;
}

/* --- sums --- */

po_sum *po_rt_sum(po_arena *arena, const po_rt *rt) {
    po_sum *sum = po_sum_create(arena, rt->out_rank, rt->out_dims);
    uint32_t in = po_sum_input(sum, 0, rt->in_rank, rt->in_dims);
    po_term *t = po_sum_term(sum, rt->n);
    po_index *at = po_term_factor(sum, t, in);
    for (uint32_t i = 0; i < rt->n; i++) {
        const po_rt_digit *d = &rt->digits[i];
        uint32_t v = po_term_var(t, NULL, d->extent);
        po_index_add(t, at, d->in_axis, d->in_coef, v);
        po_index_add(t, &t->out, d->out_axis, d->out_coef, v);
    }
    for (uint32_t x = 0; x < rt->in_rank; x++)
        at->base[x] = rt->in_base[x];
    for (uint32_t x = 0; x < rt->out_rank; x++)
        t->out.base[x] = rt->out_base[x];
    return sum;
}

/* The one axis that a variable moves. */
static bool sole_axis(const po_term *t, const po_index *index, uint32_t var, uint32_t *axis,
                      int64_t *coef) {
    *coef = 0;
    for (uint32_t x = 0; x < index->rank; x++) {
        int64_t c = po_index_coef(t, index, x, var);
        if (!c)
            continue;
        if (*coef)
            return false;
        *coef = c;
        *axis = x;
    }
    return *coef != 0;
}

const po_rt *po_rt_of_sum(po_arena *arena, const po_sum *sum) {
    po_rt_digit d[PO_RT_MAX_VARS];
    if (sum->n_terms != 1)
        return NULL;
    const po_term *t = &sum->terms[0];
    if (t->n_factors != 1 || t->scale.num != 1 || t->scale.den != 1 || t->n_vars > PO_RT_MAX_VARS ||
        sum->operands[t->factor[0].operand].kind != PO_OPERAND_INPUT)
        return NULL;
    const po_operand *in = &sum->operands[t->factor[0].operand];
    uint32_t n = 0;
    for (uint32_t v = 0; v < t->n_vars; v++) {
        if (t->extent[v] == 1)
            continue;
        d[n].extent = t->extent[v];
        if (!sole_axis(t, &t->factor[0].at, v, &d[n].in_axis, &d[n].in_coef) ||
            !sole_axis(t, &t->out, v, &d[n].out_axis, &d[n].out_coef))
            return NULL;
        n++;
    }
    return po_rt_create(arena, &(po_rt){in->rank, sum->rank, n, in->dims, sum->dims,
                                        t->factor[0].at.base, t->out.base, d});
}
