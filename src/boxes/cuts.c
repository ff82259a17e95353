/* Where the boxes of a sum's output begin. For each axis of the output one variable of each term
 * is the one that moves: the output's index is offset + coef * moving, the offsets being what the
 * other variables of the axis add up to. A run must not cross where an offset's positions begin or
 * end, nor where an operand's index crosses its bounds or a cut of the operand. */
#include "base/num.h"
#include "boxes/boxes.h"

#include <stdlib.h>

enum { MOST_OFFSETS = 4096, MOST_CUTS = 1 << 16, MOST_PRODUCT = 1 << 20 };

typedef struct axis {
    int64_t dim, step;
    bool everywhere;
    int64_t *at;
    uint32_t n, cap;
} axis;

/* One axis under one term. */
typedef struct motion {
    uint32_t var; /* PO_NONE: the term stays at one position (offsets[0]) */
    int64_t coef, extent;
    int64_t *offsets;
    uint32_t n;
} motion;

typedef struct cutter {
    po_arena *arena;
    const po_sum *sum;
    const po_term *term;
    axis *axes;
    motion *motions;
} cutter;

static int by_value(const void *a, const void *b) {
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static uint32_t sort_unique(int64_t *v, uint32_t n) {
    uint32_t kept = 0;
    if (n)
        qsort(v, n, sizeof *v, by_value);
    for (uint32_t i = 0; i < n; i++)
        if (!kept || v[kept - 1] != v[i])
            v[kept++] = v[i];
    return kept;
}

/* Parts position `upper` of an axis from position `upper - size`, between which no position of
 * their residue class lies. */
static void add_cut(cutter *c, uint32_t x, int64_t upper, int64_t size) {
    axis *a = &c->axes[x];
    int64_t at = upper;
    if (upper - size < 0 || upper >= a->dim || a->everywhere)
        return;
    if (a->n == MOST_CUTS) {
        a->n = sort_unique(a->at, a->n);
        if (a->n > MOST_CUTS / 2) {
            a->everywhere = true;
            return;
        }
    }
    PO_PUSH(c->arena, a->at, a->n, a->cap, at);
}

/* The step becomes a multiple of `step`. */
static void widen_step(axis *a, int64_t step) {
    int64_t g = po_gcd_i64(a->step, step);
    if (!po_mul_i64(a->step / g, step, &a->step) || a->step >= a->dim)
        a->everywhere = true;
}

/* All different sums of base + coef * t over the variables that `skip` does not name. NULL where
 * there are too many. */
static int64_t *sums_of(const cutter *c, const po_index *index, uint32_t x, uint32_t skip,
                        uint32_t *n) {
    int64_t room = 1;
    for (uint32_t v = 0; v < c->term->n_vars && room < MOST_OFFSETS; v++)
        if (v != skip && po_index_coef(c->term, index, x, v) && c->term->extent[v] <= MOST_OFFSETS)
            room *= c->term->extent[v];
    int64_t *sums = PO_NEW_N(c->arena, int64_t, room < MOST_OFFSETS ? room : MOST_OFFSETS);
    *n = 1;
    sums[0] = index->base[x];
    for (uint32_t v = 0; v < c->term->n_vars; v++) {
        int64_t coef = po_index_coef(c->term, index, x, v), extent = c->term->extent[v];
        if (coef == 0 || v == skip || extent == 1)
            continue;
        if (extent > MOST_OFFSETS || *n * extent > MOST_OFFSETS)
            return NULL;
        uint32_t before = *n;
        for (int64_t t = 1; t < extent; t++)
            for (uint32_t i = 0; i < before; i++)
                sums[(*n)++] = sums[i] + coef * t;
        *n = sort_unique(sums, *n);
    }
    return sums;
}

static bool in_other_axis(const po_sum *sum, const po_term *t, uint32_t x, uint32_t v) {
    for (uint32_t y = 0; y < sum->rank; y++)
        if (y != x && po_index_coef(t, &t->out, y, v))
            return true;
    return false;
}

/* Whether the axis's digits do not overlap: every coefficient reaches past all smaller ones. */
static bool nested(const po_term *t, uint32_t x, uint32_t smallest) {
    for (uint32_t v = 0; v < t->n_vars; v++) {
        int64_t coef = po_index_coef(t, &t->out, x, v), reach = 0;
        if (coef == 0 || t->extent[v] == 1 || v == smallest)
            continue;
        for (uint32_t w = 0; w < t->n_vars; w++) {
            int64_t below = po_index_coef(t, &t->out, x, w);
            if (w != v && (below < coef || (below == coef && w > v)))
                reach += below * (t->extent[w] - 1);
        }
        if (coef <= reach)
            return false;
    }
    return true;
}

bool po_cuts_moving(const po_sum *sum, const po_term *t, uint32_t x, uint32_t *var) {
    uint32_t smallest = PO_NONE, largest = PO_NONE, n = 0;
    bool negative = false, shared = false;
    for (uint32_t v = 0; v < t->n_vars; v++) {
        int64_t coef = po_index_coef(t, &t->out, x, v);
        if (coef == 0 || t->extent[v] == 1)
            continue;
        n++;
        negative |= coef < 0;
        shared |= in_other_axis(sum, t, x, v);
        if (smallest == PO_NONE || coef < po_index_coef(t, &t->out, x, smallest))
            smallest = v;
        if (largest == PO_NONE || coef > po_index_coef(t, &t->out, x, largest))
            largest = v;
    }
    *var = n <= 1 || nested(t, x, smallest) ? smallest : largest;
    return !shared && (!negative || n == 1);
}

/* Finds the moving variable of an axis and cuts at the ends of what it covers. */
static void find_motion(cutter *c, uint32_t x) {
    const po_term *t = c->term;
    motion *m = &c->motions[x];
    *m = (motion){.var = PO_NONE, .coef = 1, .extent = 1};
    if (!po_cuts_moving(c->sum, t, x, &m->var)) {
        m->var = PO_NONE;
        c->axes[x].everywhere = true;
        return;
    }
    m->offsets = sums_of(c, &t->out, x, m->var, &m->n);
    if (!m->offsets) {
        c->axes[x].everywhere = true;
        return;
    }
    if (m->var != PO_NONE) {
        m->coef = po_index_coef(t, &t->out, x, m->var);
        m->extent = t->extent[m->var];
        widen_step(&c->axes[x], m->coef < 0 ? -m->coef : m->coef);
    }
    for (uint32_t i = 0; i < m->n; i++) {
        int64_t end = m->offsets[i] + m->coef * (m->extent - 1);
        int64_t size = m->coef < 0 ? -m->coef : m->coef;
        add_cut(c, x, m->coef < 0 ? end : m->offsets[i], size);
        add_cut(c, x, (m->coef < 0 ? m->offsets[i] : end) + size, size);
    }
}

/* Cuts axis x where q + d * moving reaches `position`. */
static void cut_crossing(cutter *c, uint32_t x, int64_t d, int64_t q, int64_t position) {
    const motion *m = &c->motions[x];
    /* Where the index is on the far side for the first time as the variable grows. */
    int64_t first = d > 0 ? po_ceil_div(position - q, d) : po_floor_div(q - position, -d) + 1;
    if (first <= 0 || first >= m->extent)
        return;
    for (uint32_t i = 0; i < m->n; i++) {
        int64_t v = m->offsets[i] + m->coef * first;
        add_cut(c, x, m->coef > 0 ? v : v - m->coef, m->coef > 0 ? m->coef : -m->coef);
    }
}

/* What one axis of an operand asks for. `cuts`: of the operand's axis, or NULL. */
static void cut_for_axis(cutter *c, const po_index *index, uint32_t y, int64_t dim,
                         const po_axis_cuts *cuts, bool table) {
    const po_term *t = c->term;
    uint32_t moving = PO_NONE, n = 0;
    int64_t least = index->base[y], most = least;
    for (uint32_t v = 0; v < t->n_vars; v++) {
        int64_t reach = po_index_coef(t, index, y, v) * (t->extent[v] - 1);
        least += reach < 0 ? reach : 0;
        most += reach > 0 ? reach : 0;
    }
    for (uint32_t x = 0; x < c->sum->rank; x++)
        if (c->motions[x].var != PO_NONE && po_index_coef(t, index, y, c->motions[x].var)) {
            moving = x;
            n++;
        }
    bool plain = least >= 0 && most < dim && (!cuts || (cuts->n == 1 && cuts->step == 1));
    if (n == 0 || (plain && !table))
        return;
    uint32_t n_sums = 0;
    int64_t *sums = n == 1 && !table ? sums_of(c, index, y, c->motions[moving].var, &n_sums) : NULL;
    const motion *m = &c->motions[moving];
    uint64_t positions = cuts ? cuts->n + 1 : 2;
    if (!sums || (uint64_t)n_sums * m->n * positions > MOST_PRODUCT) {
        for (uint32_t x = 0; x < c->sum->rank; x++)
            if (c->motions[x].var != PO_NONE && po_index_coef(t, index, y, c->motions[x].var))
                c->axes[x].everywhere = true;
        return;
    }
    int64_t d = po_index_coef(t, index, y, m->var), step;
    for (uint32_t i = 0; i < n_sums; i++)
        for (uint32_t k = 0; k < positions; k++)
            cut_crossing(c, moving, d, sums[i], cuts ? cuts->at[k] : k ? dim : 0);
    if (cuts && cuts->step > 1) {
        /* The operand's index must stay in its residue class. */
        int64_t size = m->coef < 0 ? -m->coef : m->coef;
        if (po_mul_i64(size, cuts->step / po_gcd_i64(cuts->step, d), &step))
            widen_step(&c->axes[moving], step);
        else
            c->axes[moving].everywhere = true;
    }
}

static const po_cuts *finish(po_arena *arena, uint32_t rank, axis *axes) {
    po_cuts *cuts = PO_NEW(arena, po_cuts);
    po_axis_cuts *out = PO_NEW_N(arena, po_axis_cuts, rank);
    cuts->rank = rank;
    cuts->axis = out;
    for (uint32_t x = 0; x < rank; x++) {
        axis *a = &axes[x];
        uint32_t n = a->everywhere ? 0 : sort_unique(a->at, a->n);
        int64_t *at = PO_NEW_N(arena, int64_t, n + 2);
        if (n)
            memcpy(at + 1, a->at, n * sizeof *at);
        at[n + 1] = a->dim;
        int64_t step = a->everywhere ? a->dim : a->step;
        out[x] = (po_axis_cuts){a->dim, step > 0 ? step : 1, n + 1, at};
    }
    return cuts;
}

const po_cuts *po_cuts_of(po_arena *arena, const po_sum *sum, const po_cuts *const *input) {
    axis *axes = PO_NEW_N(arena, axis, sum->rank);
    motion *motions = PO_NEW_N(arena, motion, sum->rank);
    for (uint32_t x = 0; x < sum->rank; x++)
        axes[x] = (axis){.dim = sum->dims[x], .step = 1};
    for (uint32_t i = 0; i < sum->n_terms; i++) {
        cutter c = {arena, sum, &sum->terms[i], axes, motions};
        bool empty = false;
        for (uint32_t v = 0; v < c.term->n_vars; v++)
            empty |= c.term->extent[v] == 0;
        if (empty)
            continue;
        for (uint32_t x = 0; x < sum->rank; x++)
            find_motion(&c, x);
        for (uint32_t k = 0; k < c.term->n_factors; k++) {
            const po_operand *op = &sum->operands[c.term->factor[k].operand];
            bool table = op->kind == PO_OPERAND_TABLE;
            const po_cuts *cuts = table || !input ? NULL : input[op->input];
            for (uint32_t y = 0; y < op->rank; y++)
                cut_for_axis(&c, &c.term->factor[k].at, y, op->dims[y],
                             cuts ? &cuts->axis[y] : NULL, table);
        }
    }
    return finish(arena, sum->rank, axes);
}

const po_cuts *po_cuts_everywhere(po_arena *arena, uint32_t rank, const int64_t *dims) {
    axis *axes = PO_NEW_N(arena, axis, rank);
    for (uint32_t x = 0; x < rank; x++)
        axes[x] = (axis){.dim = dims[x], .step = 1, .everywhere = true};
    return finish(arena, rank, axes);
}

const po_cuts *po_cuts_meet(po_arena *arena, const po_cuts *a, const po_cuts *b) {
    axis *axes = PO_NEW_N(arena, axis, a->rank);
    for (uint32_t x = 0; x < a->rank; x++) {
        const po_axis_cuts *p = &a->axis[x], *q = &b->axis[x];
        axes[x] = (axis){.dim = p->dim, .step = p->step, .n = p->n + q->n};
        widen_step(&axes[x], q->step);
        axes[x].at = PO_NEW_N(arena, int64_t, axes[x].n);
        memcpy(axes[x].at, p->at, p->n * sizeof *p->at);
        memcpy(axes[x].at + p->n, q->at, q->n * sizeof *q->at);
        /* Both begin with 0, which finish adds itself. */
        axes[x].n = sort_unique(axes[x].at, axes[x].n) - 1;
        axes[x].at++;
    }
    return finish(arena, a->rank, axes);
}
