/* The loop nest of a term. Every axis of the output and of the operands bounds the iterations by
 * lo <= base + sum of coef * t <= hi. At each level the range of its variable is cut to what can
 * still meet every bound that it appears in, given what the variables further in may add; at a
 * bound's last variable that is exact, so that the innermost loop needs no test. */
#include "ops/sum/walk.h"

#include "base/num.h"

typedef struct bound {
    int64_t base, lo, hi;
    int64_t out_axis; /* by_point: both ends are the point's index on this axis; else -1 */
    bool constant;    /* has no variable: tested before the loops */
} bound;

/* A bound at a level where its variable has a coefficient. */
typedef struct touch {
    uint32_t bound;
    int64_t coef;
    int64_t least, most; /* what the variables further in may add */
} touch;

struct po_walk {
    uint32_t n_levels, n_slots, n_bounds;
    bool empty; /* nothing is visited */
    bound *bounds;
    int64_t *extent; /* by level */
    uint32_t *n_touches;
    touch **touches;
    int64_t start[PO_SUM_MAX_FACTORS + 1];
    int64_t *step; /* by level and slot */
};

typedef struct state {
    const po_walk *walk;
    const int64_t *point;
    po_stretch_fn fn;
    void *user;
    int64_t sum[PO_SUM_MAX_AXES]; /* of each bound, over the levels outside */
    int64_t at[PO_SUM_MAX_FACTORS + 1];
} state;

/* How many of the term's tensors are read or written with a stride when this variable runs. */
static uint32_t strided(const po_sum *sum, const po_term *term, uint32_t v) {
    uint32_t n = 0;
    for (uint32_t slot = 0; slot <= term->n_factors; slot++) {
        const po_index *index = slot ? &term->factor[slot - 1].at : &term->out;
        const int64_t *dims = slot ? sum->operands[term->factor[slot - 1].operand].dims : sum->dims;
        int64_t stride = 1, step = 0;
        for (uint32_t x = index->rank; x-- > 0; stride *= dims[x])
            step += stride * po_index_coef(term, index, x, v);
        n += step != 0 && step != 1;
    }
    return n;
}

/* Whole tensors: the innermost loop is long and runs through memory in order. */
static uint32_t choose_innermost(const po_sum *sum, const po_term *term) {
    enum { LONG = 16 };
    uint32_t best = 0;
    for (uint32_t v = 1; v < term->n_vars; v++) {
        int64_t a = term->extent[v], b = term->extent[best];
        bool both_long = a >= LONG && b >= LONG;
        uint32_t x = strided(sum, term, v), y = strided(sum, term, best);
        if (both_long && x != y ? x < y : a >= b)
            best = v;
    }
    return best;
}

/* By point: those variables first that the output fixes, larger coefficients before smaller ones,
 * so that each digit has one choice. */
static void choose_order(const po_sum *sum, const po_term *term, bool by_point, uint32_t *order) {
    uint32_t n = 0;
    int64_t weight[PO_SUM_MAX_VARS];
    for (uint32_t v = 0; v < term->n_vars; v++) {
        weight[v] = 0;
        for (uint32_t x = 0; by_point && x < term->out.rank; x++) {
            int64_t c = po_index_coef(term, &term->out, x, v);
            c = c < 0 ? -c : c;
            weight[v] = c > weight[v] ? c : weight[v];
        }
        uint32_t i = n++;
        for (; i && weight[order[i - 1]] < weight[v]; i--)
            order[i] = order[i - 1];
        order[i] = v;
    }
    if (by_point || n == 0)
        return;
    uint32_t last = choose_innermost(sum, term);
    memmove(&order[last], &order[last + 1], (n - 1 - last) * sizeof *order);
    order[n - 1] = last;
}

typedef struct builder {
    po_arena *arena;
    const po_term *term;
    po_walk *walk;
    const uint32_t *order;
    uint32_t *cap_touches;
} builder;

static void add_bound(builder *b, const po_index *index, uint32_t axis, int64_t dim,
                      bool is_point) {
    po_walk *w = b->walk;
    int64_t least = index->base[axis], most = least;
    for (uint32_t v = 0; v < b->term->n_vars; v++) {
        int64_t reach = po_index_coef(b->term, index, axis, v) * (b->term->extent[v] - 1);
        least += reach < 0 ? reach : 0;
        most += reach > 0 ? reach : 0;
    }
    if (most < 0 || least >= dim)
        w->empty = true;
    if (!is_point && least >= 0 && most < dim)
        return;
    uint32_t id = w->n_bounds++;
    w->bounds[id] = (bound){index->base[axis], 0, dim - 1, is_point ? (int64_t)axis : -1, true};
    least = most = 0;
    for (uint32_t level = b->term->n_vars; level-- > 0;) {
        int64_t c = po_index_coef(b->term, index, axis, b->order[level]);
        if (c == 0)
            continue;
        touch t = {id, c, least, most};
        w->bounds[id].constant = false;
        PO_PUSH(b->arena, w->touches[level], w->n_touches[level], b->cap_touches[level], t);
        int64_t reach = c * (b->term->extent[b->order[level]] - 1);
        least += reach < 0 ? reach : 0;
        most += reach > 0 ? reach : 0;
    }
}

static void add_slot(builder *b, uint32_t slot, const po_index *index, const int64_t *dims,
                     bool is_point) {
    int64_t stride = 1;
    for (uint32_t i = index->rank; i-- > 0; stride *= dims[i]) {
        b->walk->start[slot] += index->base[i] * stride;
        for (uint32_t level = 0; level < b->term->n_vars; level++)
            b->walk->step[level * b->walk->n_slots + slot] +=
                stride * po_index_coef(b->term, index, i, b->order[level]);
    }
    for (uint32_t i = 0; i < index->rank; i++)
        add_bound(b, index, i, dims[i], is_point);
}

po_walk *po_walk_create(po_arena *arena, const po_sum *sum, const po_term *term, bool by_point) {
    po_walk *w = PO_NEW(arena, po_walk);
    uint32_t order[PO_SUM_MAX_VARS], n = term->n_vars;
    builder b = {arena, term, w, order, PO_NEW_N(arena, uint32_t, n)};
    choose_order(sum, term, by_point, order);
    w->n_levels = n;
    w->n_slots = term->n_factors + 1;
    w->bounds = PO_NEW_N(arena, bound, PO_SUM_MAX_AXES);
    w->extent = PO_NEW_N(arena, int64_t, n);
    w->n_touches = PO_NEW_N(arena, uint32_t, n);
    w->touches = PO_NEW_N(arena, touch *, n);
    w->step = PO_NEW_N(arena, int64_t, (size_t)n * w->n_slots);
    for (uint32_t i = 0; i < n; i++) {
        w->extent[i] = term->extent[order[i]];
        w->empty |= w->extent[i] == 0;
    }
    if (w->empty)
        return w;
    add_slot(&b, 0, &term->out, sum->dims, by_point);
    for (uint32_t k = 0; k < term->n_factors; k++)
        add_slot(&b, k + 1, &term->factor[k].at, sum->operands[term->factor[k].operand].dims,
                 false);
    return w;
}

/* The part of a level's variable's range that can still meet the bounds. */
static void cut_range(const state *s, uint32_t level, int64_t *first, int64_t *last) {
    const po_walk *w = s->walk;
    *first = 0;
    *last = w->extent[level] - 1;
    for (uint32_t i = 0; i < w->n_touches[level]; i++) {
        const touch *t = &w->touches[level][i];
        const bound *b = &w->bounds[t->bound];
        bool fixed = b->out_axis >= 0;
        int64_t lo = fixed ? s->point[b->out_axis] : b->lo, hi = fixed ? lo : b->hi;
        /* lo - most <= sum + coef * t <= hi - least */
        lo -= s->sum[t->bound] + t->most;
        hi -= s->sum[t->bound] + t->least;
        int64_t from, to;
        if (t->coef > 0) {
            from = po_ceil_div(lo, t->coef);
            to = po_floor_div(hi, t->coef);
        } else {
            from = po_ceil_div(-hi, -t->coef);
            to = po_floor_div(-lo, -t->coef);
        }
        *first = from > *first ? from : *first;
        *last = to < *last ? to : *last;
    }
}

static void move_by(state *s, uint32_t level, int64_t steps) {
    const po_walk *w = s->walk;
    for (uint32_t i = 0; i < w->n_touches[level]; i++)
        s->sum[w->touches[level][i].bound] += w->touches[level][i].coef * steps;
    for (uint32_t k = 0; k < w->n_slots; k++)
        s->at[k] += w->step[level * w->n_slots + k] * steps;
}

static void visit(state *s, uint32_t level) {
    const po_walk *w = s->walk;
    po_stretch run = {.n = 1};
    if (w->n_levels == 0) {
        memcpy(run.at, s->at, sizeof run.at);
        s->fn(s->user, &run);
        return;
    }
    int64_t first, last;
    cut_range(s, level, &first, &last);
    if (first > last)
        return;
    if (level + 1 == w->n_levels) {
        run.n = last - first + 1;
        for (uint32_t k = 0; k < w->n_slots; k++) {
            run.step[k] = w->step[level * w->n_slots + k];
            run.at[k] = s->at[k] + first * run.step[k];
        }
        s->fn(s->user, &run);
        return;
    }
    move_by(s, level, first);
    for (int64_t t = first; t <= last; t++) {
        visit(s, level + 1);
        move_by(s, level, 1);
    }
    move_by(s, level, -(last + 1));
}

void po_walk_run(const po_walk *walk, const int64_t *point, po_stretch_fn fn, void *user) {
    if (walk->empty)
        return;
    state s = {.walk = walk, .point = point, .fn = fn, .user = user};
    for (uint32_t i = 0; i < walk->n_bounds; i++) {
        const bound *b = &walk->bounds[i];
        s.sum[i] = b->base;
        if (b->constant && b->out_axis >= 0 && b->base != point[b->out_axis])
            return;
    }
    memcpy(s.at, walk->start, sizeof s.at);
    visit(&s, 0);
}
