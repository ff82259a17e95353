/* R/T by moves: what the enumeration puts before operands and after results. */
#include "mutate/enumerate.h"

#include <stdlib.h>

bool en_same(const en_shape *a, const en_shape *b) {
    if (a->rank != b->rank)
        return false;
    for (uint32_t i = 0; i < a->rank; i++)
        if (a->d[i] != b->d[i])
            return false;
    return true;
}

int64_t en_count(const en_shape *s) {
    int64_t n = 1;
    for (uint32_t i = 0; i < s->rank; i++)
        n *= s->d[i];
    return n;
}

/* --- one R/T --- */

void en_rt_start(const en_shape *in, en_rt *rt) {
    memset(rt, 0, sizeof *rt);
    rt->in = *in;
    rt->out = *in;
    for (uint32_t i = 0; i < in->rank; i++)
        if (in->d[i] > 1) {
            rt->digit[rt->n++] = (en_digit){(uint8_t)i, in->d[i], 1};
            rt->len[i] = 1;
        }
}

static uint32_t first_digit(const en_rt *rt, uint32_t axis) {
    uint32_t at = 0;
    for (uint32_t i = 0; i < axis; i++)
        at += rt->len[i];
    return at;
}

static void remove_digit(en_rt *rt, uint32_t axis, uint32_t at) {
    memmove(rt->digit + at, rt->digit + at + 1, (rt->n - at - 1u) * sizeof rt->digit[0]);
    rt->n--;
    rt->len[axis]--;
}

static bool insert_digit(en_rt *rt, uint32_t axis, uint32_t at, en_digit digit) {
    if (rt->n == EN_DIGITS)
        return false;
    memmove(rt->digit + at + 1, rt->digit + at, (size_t)(rt->n - at) * sizeof digit);
    rt->digit[at] = digit;
    rt->n++;
    rt->len[axis]++;
    return true;
}

static void remove_axis(en_rt *rt, uint32_t axis) {
    for (uint32_t i = axis; i + 1 < rt->out.rank; i++)
        rt->len[i] = rt->len[i + 1];
    rt->out.rank--;
    rt->len[rt->out.rank] = 0;
}

static bool insert_axis(en_rt *rt, uint32_t axis) {
    if (rt->out.rank == EN_RANK)
        return false;
    for (uint32_t i = rt->out.rank; i > axis; i--)
        rt->len[i] = rt->len[i - 1];
    rt->len[axis] = 0;
    rt->out.rank++;
    return true;
}

/* The digit, where an axis is a whole axis of the input; padding reaches nothing else. */
static en_digit *whole_axis(en_rt *rt, uint32_t axis) {
    en_digit *d = &rt->digit[first_digit(rt, axis)];
    if (rt->len[axis] != 1 || d->mult != 1 || d->axis >= rt->in.rank ||
        d->size != rt->in.d[d->axis] + rt->lo[d->axis] + rt->hi[d->axis])
        return NULL;
    return d;
}

static bool pad_axis(en_rt *rt, uint32_t axis, int32_t amount, bool before) {
    en_digit *d = whole_axis(rt, axis);
    if (!d || amount > 100 || rt->lo[d->axis] || rt->hi[d->axis] || rt->twice)
        return false;
    *(before ? &rt->lo[d->axis] : &rt->hi[d->axis]) = (uint8_t)amount;
    d->size += amount;
    return true;
}

/* Cuts f off an axis, its outer or inner part. f == 1: nothing (size 1). */
static bool cut(en_rt *rt, uint32_t axis, int32_t f, bool inner, uint32_t pad, en_digit *taken) {
    if (rt->len[axis] == 0)
        return false;
    uint32_t at = first_digit(rt, axis) + (inner ? rt->len[axis] - 1u : 0u);
    en_digit *d = &rt->digit[at];
    if (d->size % f != 0) {
        if (!pad || d->size < f || !pad_axis(rt, axis, f - d->size % f, pad == 2))
            return false;
    } else if (pad == 2) {
        return false; /* found with 1, which is nothing here, but may be something at other sizes */
    }
    if (d->size == f) {
        *taken = *d;
        remove_digit(rt, axis, at);
    } else if (inner) {
        *taken = (en_digit){d->axis, f, d->mult};
        d->size /= f;
        d->mult *= f;
    } else {
        d->size /= f;
        *taken = (en_digit){d->axis, f, d->mult * d->size};
    }
    return true;
}

static bool put(en_rt *rt, uint32_t axis, bool inner, en_digit digit) {
    return insert_digit(rt, axis, first_digit(rt, axis) + (inner ? rt->len[axis] : 0u), digit);
}

/* A part of an axis to another. */
static bool take_part(en_rt *rt, const en_move *m, int32_t f, uint32_t axis, uint32_t to) {
    en_digit digit;
    return axis < rt->out.rank && to < rt->out.rank && cut(rt, axis, f, m->side, m->pad, &digit) &&
           put(rt, to, m->place, digit);
}

static bool take(en_rt *rt, const en_move *m) {
    uint32_t axis = m->axis, to = m->to;
    if (to >= rt->out.rank || (m->g && (axis == to || !pad_axis(rt, to, m->g, false))))
        return false;
    if (m->f)
        return take_part(rt, m, m->f, axis, to);
    if (axis == to)
        return false;
    for (uint32_t n = rt->len[axis]; n; n--) { /* to the outer end in reverse, so order stays */
        uint32_t at = first_digit(rt, axis) + (m->place ? 0u : rt->len[axis] - 1u);
        en_digit digit = rt->digit[at];
        remove_digit(rt, axis, at);
        if (!put(rt, to, m->place, digit))
            return false;
    }
    if (m->drop)
        remove_axis(rt, axis);
    return true;
}

static bool stand_twice(en_rt *rt, const en_move *m) {
    en_digit *d = whole_axis(rt, m->axis);
    int32_t f = d && m->g && !m->f ? d->size / m->g : m->f, parts = f * m->g;
    if (!d || m->to == m->axis || m->to >= rt->out.rank || rt->twice || parts == 0 ||
        d->size % parts != 0 || rt->lo[d->axis] || rt->hi[d->axis] || rt->in.rank == EN_RANK)
        return false;
    rt->twice = (uint8_t)(1 + d->axis);
    rt->twice_size = f;
    rt->twice_mult = d->size / parts;
    return put(rt, m->to, false, (en_digit){rt->in.rank, f, 1});
}

static bool drop(en_rt *rt, const en_move *m) {
    bool any = false;
    for (uint32_t i = rt->out.rank; i-- > 0;)
        if (rt->len[i] == 0 && (m->to == 255 || i == m->axis) && rt->out.rank > 1) {
            remove_axis(rt, i);
            any = true;
        }
    return any;
}

static bool swap(en_rt *rt, uint32_t a, uint32_t b) {
    if (a >= b || b >= rt->out.rank)
        return false;
    en_digit digits[EN_DIGITS];
    uint8_t len[EN_RANK];
    uint32_t n = 0;
    for (uint32_t i = 0; i < rt->out.rank; i++) {
        uint32_t from = i == a ? b : i == b ? a : i;
        memcpy(digits + n, rt->digit + first_digit(rt, from), rt->len[from] * sizeof digits[0]);
        n += rt->len[from];
        len[i] = rt->len[from];
    }
    memcpy(rt->digit, digits, n * sizeof digits[0]);
    memcpy(rt->len, len, rt->out.rank);
    return true;
}

bool en_rt_move(en_rt *rt, const en_move *m) {
    if (rt->n_moves == EN_MOVES || m->axis >= rt->out.rank)
        return false;
    rt->move[rt->n_moves++] = *m;
    int32_t second = m->g ? m->g : m->f;
    switch (m->kind) {
    case EN_TAKE:
        return take(rt, m);
    case EN_NEW: {
        en_digit digit = {0};
        if (m->to > rt->out.rank || (m->f != 1 && !cut(rt, m->axis, m->f, m->side, m->pad, &digit)))
            return false;
        return insert_axis(rt, m->to) && (m->f == 1 || put(rt, m->to, false, digit));
    }
    case EN_PAIR: /* placed first: the inner one of outers */
        return m->f && m->to != m->axis && m->to != m->axis + 1 &&
               take_part(rt, m, m->order ? m->f : second, m->axis + (m->order ? 0u : 1u), m->to) &&
               take_part(rt, m, m->order ? second : m->f, m->axis + (m->order ? 1u : 0u), m->to);
    case EN_SPREAD:
        return m->f && m->axis != m->to && m->axis != m->to + 1 &&
               take_part(rt, m, m->order ? second : m->f, m->axis, m->to + (m->order ? 1u : 0u)) &&
               take_part(rt, m, m->order ? m->f : second, m->axis, m->to + (m->order ? 0u : 1u));
    case EN_DROP:
        return drop(rt, m);
    case EN_SWAP:
        return swap(rt, m->axis, m->to);
    case EN_GAP:
        return pad_axis(rt, m->axis, m->f, m->side == 0);
    case EN_TWICE:
        return stand_twice(rt, m);
    default:
        return false;
    }
}

static uint64_t mix(uint64_t h, uint64_t v) {
    h = (h ^ v) * 0x9E3779B97F4A7C15u;
    return h ^ (h >> 29);
}

bool en_rt_finish(en_rt *rt) {
    uint32_t n = 0, at = 0;
    uint64_t h = mix(0x51ED270B, rt->in.rank);
    int64_t count = 1;
    for (uint32_t i = 0; i < rt->in.rank; i++)
        h = mix(h, (uint64_t)rt->in.d[i] << 16 | (uint64_t)rt->lo[i] << 8 | rt->hi[i]);
    h = mix(h,
            (uint64_t)rt->twice << 48 | (uint64_t)rt->twice_size << 24 | (uint64_t)rt->twice_mult);
    for (uint32_t i = 0; i < rt->out.rank; i++) {
        uint32_t begin = n;
        int64_t dim = 1;
        for (uint32_t k = 0; k < rt->len[i]; k++, at++) {
            en_digit d = rt->digit[at];
            if (d.size == 1)
                continue;
            dim *= d.size;
            en_digit *over = n > begin ? &rt->digit[n - 1] : NULL;
            if (over && over->axis == d.axis && over->mult == d.mult * d.size) {
                over->size *= d.size;
                over->mult = d.mult;
            } else {
                rt->digit[n++] = d;
            }
        }
        rt->len[i] = (uint8_t)(n - begin);
        rt->out.d[i] = (int32_t)dim;
        count *= dim;
        h = mix(h, rt->len[i]);
        for (uint32_t k = begin; k < n; k++)
            h = mix(h, (uint64_t)rt->digit[k].axis << 56 | (uint64_t)rt->digit[k].size << 28 |
                           (uint64_t)rt->digit[k].mult);
        if (dim > INT32_MAX || count > INT32_MAX)
            return false;
    }
    rt->n = (uint8_t)n;
    rt->hash = h;
    return rt->out.rank > 0;
}

bool en_rt_again(const en_rt *like, const en_shape *in, en_rt *rt) {
    en_rt_start(in, rt);
    for (uint32_t i = 0; i < like->n_moves; i++)
        if (!en_rt_move(rt, &like->move[i]) || !en_rt_finish(rt))
            return false;
    return en_rt_finish(rt);
}

bool en_rt_is_identity(const en_rt *rt) {
    if (rt->twice || !en_same(&rt->in, &rt->out))
        return false;
    uint32_t at = 0;
    for (uint32_t i = 0; i < rt->out.rank; i++) {
        if (rt->lo[i] || rt->hi[i] || rt->len[i] > 1)
            return false;
        if (rt->len[i] == 1) {
            const en_digit *d = &rt->digit[at++];
            if (d->axis != i || d->mult != 1 || d->size != rt->in.d[i])
                return false;
        }
    }
    return true;
}

/* --- all of them --- */

enum { FIRST_TABLE = 1 << 8, EN_MOST_WHOLE = 16 };

/* Its place in the order: moves, then shape, then as it was made. */
typedef struct ranked {
    uint32_t head; /* moves and rank */
    int32_t d[EN_RANK];
    uint32_t index;
} ranked;

struct en_maker {
    po_arena *arena;
    en_rt *rt;
    uint32_t n, cap, limit;
    uint32_t *table; /* by hash: 1 + index */
    uint32_t mask, cap_table;
    ranked *order;
    uint32_t cap_order;
};

en_maker *en_maker_create(po_arena *arena) {
    en_maker *mk = PO_NEW(arena, en_maker);
    mk->arena = arena;
    return mk;
}

/* The R/T of this hash, or the place for it. */
static uint32_t *entry_of(const en_maker *mk, uint64_t hash) {
    uint32_t at = (uint32_t)hash & mk->mask;
    while (mk->table[at] && mk->rt[mk->table[at] - 1].hash != hash)
        at = (at + 1) & mk->mask;
    return &mk->table[at];
}

static void set_table(en_maker *mk, uint32_t size) {
    mk->table = po_arena_grow(mk->arena, mk->table, &mk->cap_table, size, sizeof *mk->table);
    mk->mask = size - 1;
    memset(mk->table, 0, size * sizeof *mk->table);
    for (uint32_t i = 0; i < mk->n; i++)
        *entry_of(mk, mk->rt[i].hash) = i + 1;
}

static void start(en_maker *mk, const en_shape *in, uint32_t limit) {
    en_rt identity;
    en_rt_start(in, &identity);
    en_rt_finish(&identity);
    mk->n = 0;
    mk->limit = limit;
    PO_PUSH(mk->arena, mk->rt, mk->n, mk->cap, identity);
    set_table(mk, FIRST_TABLE);
}

static void try_move(en_maker *mk, const en_rt *from, en_move m) {
    if (mk->n >= mk->limit)
        return;
    en_rt rt = *from;
    if (!en_rt_move(&rt, &m) || !en_rt_finish(&rt))
        return;
    uint32_t *entry = entry_of(mk, rt.hash);
    if (*entry)
        return;
    PO_PUSH(mk->arena, mk->rt, mk->n, mk->cap, rt);
    *entry = mk->n;
    if (2 * mk->n > mk->mask)
        set_table(mk, 2 * (mk->mask + 1));
}

/* Whether f can be cut off the axis so many times: nothing else needs to be tried where not. */
static bool can_cut(const en_rt *from, uint8_t axis, const en_move *m, uint32_t times) {
    en_rt rt = *from;
    en_digit taken;
    for (uint32_t i = 0; i < times; i++)
        if (!cut(&rt, axis, m->f, m->side, m->pad, &taken))
            return false;
    return true;
}

static void moves_of_factor(en_maker *mk, const en_rt *from, uint8_t axis, int16_t f, bool pads) {
    uint8_t rank = from->out.rank;
    bool fits = from->out.d[axis] % f == 0;
    const uint8_t first = pads ? 1 : 0, last = !fits && pads ? 2 : first;
    for (uint8_t pad = first; pad <= last && (fits || pads); pad++)
        for (uint8_t side = 0; side < 2; side++) {
            en_move m = {.axis = axis, .side = side, .pad = pad, .f = f};
            if (!can_cut(from, axis, &m, 1))
                continue;
            bool next = axis + 1 < rank && can_cut(from, (uint8_t)(axis + 1), &m, 1);
            bool twice = can_cut(from, axis, &m, 2);
            for (m.place = 0; m.place < 2; m.place++)
                for (m.to = 0; m.to < rank; m.to++) {
                    m.kind = EN_TAKE;
                    m.order = 0;
                    try_move(mk, from, m);
                    for (m.order = 0; m.order < 2; m.order++) {
                        m.kind = EN_PAIR;
                        if (next)
                            try_move(mk, from, m);
                        m.kind = EN_SPREAD;
                        if (twice && m.to + 1 < rank)
                            try_move(mk, from, m);
                    }
                }
            m.kind = EN_NEW;
            m.place = m.order = 0;
            for (m.to = 0; m.to <= rank; m.to++)
                try_move(mk, from, m);
        }
}

/* Merges with zeros between what is merged. */
static void moves_with_gap(en_maker *mk, const en_rt *from, const en_factors *factors,
                           uint8_t axis) {
    for (uint32_t i = 0; i < factors->n_gaps; i++)
        for (uint8_t to = 0; to < from->out.rank; to++) {
            en_move m = {.kind = EN_TAKE, .axis = axis, .to = to, .g = factors->gap[i]};
            try_move(mk, from, m);
            for (uint32_t k = 0; k < factors->n; k++) {
                m.f = factors->f[k];
                if (from->out.d[axis] % m.f == 0)
                    for (m.side = 0; m.side < 2; m.side++)
                        try_move(mk, from, m);
            }
        }
}

static void moves_of(en_maker *mk, const en_rt *from, const en_factors *factors, uint32_t allow) {
    uint8_t rank = from->out.rank;
    for (uint8_t axis = 0; axis < rank; axis++) {
        for (uint32_t i = 0; i < factors->n; i++)
            moves_of_factor(mk, from, axis, factors->f[i], (allow & EN_ALLOW_PAD) != 0);
        en_move m = {.kind = EN_TAKE, .axis = axis};
        for (m.drop = 0; m.drop < 2; m.drop++)
            for (m.place = 0; m.place < 2; m.place++)
                for (m.to = 0; m.to < rank; m.to++)
                    try_move(mk, from, m);
        for (uint8_t to = (uint8_t)(axis + 1); to < rank; to++)
            try_move(mk, from, (en_move){.kind = EN_SWAP, .axis = axis, .to = to});
        /* All of an axis, where that is not too much: what is small here may be large elsewhere. */
        uint32_t whole = from->out.d[axis] <= EN_MOST_WHOLE;
        if (from->len[axis] == 0)
            try_move(mk, from, (en_move){.kind = EN_DROP, .axis = axis});
        if ((allow & EN_ALLOW_PAD) && from->out.d[axis] > 1)
            moves_with_gap(mk, from, factors, axis);
        if (allow & EN_ALLOW_PAD)
            for (uint32_t i = 0; i < factors->n_gaps; i++)
                for (uint8_t side = 0; side < 2; side++)
                    try_move(mk, from,
                             (en_move){
                                 .kind = EN_GAP, .axis = axis, .side = side, .f = factors->gap[i]});
        if (allow & EN_ALLOW_TWICE)
            for (uint32_t i = 0; i < factors->n + whole; i++)
                for (uint32_t k = 0; k < factors->n_above; k++)
                    for (uint8_t to = 0; to < rank; to++)
                        try_move(mk, from,
                                 (en_move){.kind = EN_TWICE,
                                           .axis = axis,
                                           .to = to,
                                           .f = i < factors->n ? factors->f[i] : 0,
                                           .g = factors->above[k]});
    }
    try_move(mk, from, (en_move){.kind = EN_DROP, .to = 255});
    for (uint8_t to = 0; to <= rank; to++)
        try_move(mk, from, (en_move){.kind = EN_NEW, .to = to, .f = 1});
}

/* Maps cut into tiles along one axis or two, tiles as images or below one another; images of a
 * batch side by side as tiles of one. Zeros fill what does not divide, which it may do at other
 * sizes. */
static void moves_of_tiles(en_maker *mk, const en_rt *from, const en_factors *factors) {
    uint8_t rank = from->out.rank;
    int32_t batch = from->out.d[0];
    for (uint32_t i = 0; i < factors->n_tiles; i++) {
        en_move m = {.pad = 1, .tile = 1, .f = factors->tile[i]};
        for (uint8_t axis = 2; axis < rank; axis++) {
            for (uint8_t to = 0; to < rank; to++) {
                m.kind = EN_TAKE;
                m.axis = axis;
                m.to = to;
                m.side = 0;
                m.place = to == 0;
                if (to != 1 && to != axis)
                    try_move(mk, from, m);
            }
            m.axis = 0;
            m.to = axis;
            m.side = 1;
            m.place = 0;
            if (batch % m.f == 0)
                try_move(mk, from, m);
        }
        for (uint32_t k = 0; k < factors->n_tiles; k++)
            for (uint8_t axis = 2; axis + 1 < rank; axis++) {
                en_move two = m;
                two.g = factors->tile[k];
                two.kind = EN_PAIR;
                two.axis = axis;
                two.to = two.side = 0;
                two.place = 1;
                try_move(mk, from, two);
                two.kind = EN_SPREAD;
                two.axis = two.place = 0;
                two.to = axis;
                two.side = 1;
                if (batch % (two.f * two.g) == 0)
                    try_move(mk, from, two);
            }
    }
}

static int by_cost_and_shape(const void *a, const void *b) {
    const ranked *x = a, *y = b;
    if (x->head != y->head)
        return x->head < y->head ? -1 : 1;
    for (uint32_t i = 0; i < (x->head & 255); i++)
        if (x->d[i] != y->d[i])
            return x->d[i] < y->d[i] ? -1 : 1;
    return x->index < y->index ? -1 : 1;
}

static en_rts *sorted(en_maker *mk, po_arena *arena) {
    mk->order = po_arena_grow(mk->arena, mk->order, &mk->cap_order, mk->n, sizeof *mk->order);
    for (uint32_t i = 0; i < mk->n; i++) {
        const en_rt *rt = &mk->rt[i];
        mk->order[i] = (ranked){.head = (uint32_t)rt->n_moves << 8 | rt->out.rank, .index = i};
        memcpy(mk->order[i].d, rt->out.d, sizeof mk->order[i].d);
    }
    qsort(mk->order, mk->n, sizeof *mk->order, by_cost_and_shape);
    en_rts *set = PO_NEW(arena, en_rts);
    set->n = mk->n;
    set->rt = po_arena_alloc(arena, mk->n * sizeof *set->rt);
    uint32_t cap = 0;
    for (uint32_t i = 0; i < mk->n; i++) {
        const en_rt *rt = &mk->rt[mk->order[i].index];
        set->rt[i] = *rt;
        en_bucket *b = set->n_buckets ? &set->bucket[set->n_buckets - 1] : NULL;
        if (!b || b->cost != rt->n_moves || !en_same(&b->out, &rt->out)) {
            en_bucket fresh = {rt->n_moves, rt->out, i, 0};
            PO_PUSH(arena, set->bucket, set->n_buckets, cap, fresh);
            b = &set->bucket[set->n_buckets - 1];
        }
        b->n++;
    }
    for (uint32_t cost = 0, at = 0; cost < EN_MOVES + 2; cost++) {
        while (at < set->n_buckets && set->bucket[at].cost < cost)
            at++;
        set->of_cost[cost] = at;
    }
    return set;
}

en_rts *en_rts_make(en_maker *mk, po_arena *arena, const en_shape *in, const en_factors *factors,
                    uint32_t allow, uint32_t most, uint32_t limit) {
    start(mk, in, limit);
    uint32_t begin = 0;
    for (uint32_t level = 0; level < most; level++) {
        uint32_t end = mk->n;
        for (; begin < end && mk->n < mk->limit; begin++) {
            en_rt from = mk->rt[begin]; /* the array may move */
            if (!from.move[0].tile)
                moves_of(mk, &from, factors, allow);
        }
        if (level == 0 && allow & EN_ALLOW_TILES && in->rank > 2) {
            en_rt from = mk->rt[0];
            uint32_t others = mk->n;
            mk->limit = UINT32_MAX;
            moves_of_tiles(mk, &from, factors);
            mk->limit = limit + mk->n - others; /* beside, not instead of, the others */
        }
    }
    en_rts *set = sorted(mk, arena);
    set->in = *in;
    return set;
}
