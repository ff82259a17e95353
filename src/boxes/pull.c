/* The output's index is divided into digits, larger coefficients first; the ranges of free
 * variables are then cut to where every operand's index lies inside, and the innermost becomes the
 * run. */
#include "boxes/pull.h"

#include "base/num.h"

enum { MOST_DIGITS = 24, MOST_FREE = 12 };

/* A digit of an output axis: t = (what the larger digits leave of the index) / coef. */
typedef struct digit {
    uint32_t axis, var;
    bool last; /* of its axis: nothing may be left after it */
    int64_t coef, extent;
    int64_t step[PO_SUM_MAX_FACTORS];
} digit;

typedef struct free_var {
    uint32_t var;
    int64_t extent, step[PO_SUM_MAX_FACTORS];
} free_var;

/* An operand's axis whose index may fall outside: base + the digits' part + coef * free variable
 * must lie in [0, dim). */
typedef struct check {
    int64_t base, dim, coef;
    uint32_t free; /* PO_NONE: the digits alone */
    int64_t of_digit[MOST_DIGITS];
} check;

struct po_pull {
    const po_walk *walk; /* NULL: by digits */
    uint32_t rank, n_digits, n_free, n_checks, n_factors;
    bool empty, single;
    const int64_t *base; /* of the output's axes */
    uint64_t bare;       /* output axes without digits (of the first 64) */
    int64_t start[PO_SUM_MAX_FACTORS];
    digit *digits;  /* by axis, larger coefficients first */
    free_var *free; /* the last is the innermost */
    check *checks;
};

/* Sorted by coefficient, largest first; false where they are not digits that exclude one another.
 */
static bool find_digits(po_pull *p, const po_sum *sum, const po_term *t) {
    for (uint32_t x = 0; x < sum->rank; x++) {
        uint32_t first = p->n_digits;
        for (uint32_t v = 0; v < t->n_vars; v++) {
            int64_t coef = po_index_coef(t, &t->out, x, v);
            if (coef == 0)
                continue;
            for (uint32_t i = 0; i < first; i++)
                if (p->digits[i].var == v)
                    return false;
            if (coef < 0 || p->n_digits == MOST_DIGITS)
                return false;
            uint32_t i = p->n_digits++;
            for (; i > first && p->digits[i - 1].coef < coef; i--)
                p->digits[i] = p->digits[i - 1];
            p->digits[i] = (digit){.axis = x, .var = v, .coef = coef, .extent = t->extent[v]};
        }
        int64_t reach = 0;
        for (uint32_t i = p->n_digits; i-- > first;) {
            if (p->digits[i].coef <= reach)
                return false;
            reach += p->digits[i].coef * (p->digits[i].extent - 1);
        }
        if (p->n_digits > first)
            p->digits[p->n_digits - 1].last = true;
        else
            p->bare |= (uint64_t)1 << x;
    }
    return true;
}

static bool find_free(po_pull *p, const po_term *t) {
    for (uint32_t v = 0; v < t->n_vars; v++) {
        bool fixed = t->extent[v] == 1;
        for (uint32_t i = 0; i < p->n_digits; i++)
            fixed |= p->digits[i].var == v;
        if (fixed)
            continue;
        if (p->n_free == MOST_FREE)
            return false;
        uint32_t i = p->n_free++;
        for (; i && p->free[i - 1].extent > t->extent[v]; i--)
            p->free[i] = p->free[i - 1];
        p->free[i] = (free_var){.var = v, .extent = t->extent[v]};
    }
    p->single = p->n_free == 0;
    return true;
}

/* The steps and bounds of one factor. */
static bool add_factor(po_pull *p, const po_sum *sum, const po_term *t, uint32_t k) {
    const po_index *at = &t->factor[k].at;
    const int64_t *dims = sum->operands[t->factor[k].operand].dims;
    int64_t stride = 1;
    for (uint32_t y = at->rank; y-- > 0; stride *= dims[y]) {
        int64_t least = at->base[y], most = least;
        check c = {.base = at->base[y], .dim = dims[y], .free = PO_NONE};
        uint32_t n_free = 0;
        p->start[k] += at->base[y] * stride;
        for (uint32_t i = 0; i < p->n_digits; i++) {
            c.of_digit[i] = po_index_coef(t, at, y, p->digits[i].var);
            p->digits[i].step[k] += stride * c.of_digit[i];
        }
        for (uint32_t i = 0; i < p->n_free; i++) {
            int64_t coef = po_index_coef(t, at, y, p->free[i].var);
            p->free[i].step[k] += stride * coef;
            if (coef) {
                n_free++;
                c.free = i;
                c.coef = coef;
            }
        }
        for (uint32_t v = 0; v < t->n_vars; v++) {
            int64_t reach = po_index_coef(t, at, y, v) * (t->extent[v] - 1);
            least += reach < 0 ? reach : 0;
            most += reach > 0 ? reach : 0;
        }
        if (least >= 0 && most < dims[y])
            continue;
        if (n_free > 1)
            return false;
        p->checks[p->n_checks++] = c;
    }
    return true;
}

po_pull *po_pull_create(po_arena *arena, const po_sum *sum, const po_term *t) {
    po_pull *p = PO_NEW(arena, po_pull);
    uint32_t axes = 0;
    for (uint32_t k = 0; k < t->n_factors; k++)
        axes += t->factor[k].at.rank;
    *p = (po_pull){
        .rank = sum->rank,
        .n_factors = t->n_factors,
        .base = t->out.base,
        .digits = PO_NEW_N(arena, digit, t->n_vars < MOST_DIGITS ? t->n_vars + 1 : MOST_DIGITS),
        .free = PO_NEW_N(arena, free_var, MOST_FREE),
        .checks = PO_NEW_N(arena, check, axes)};
    for (uint32_t v = 0; v < t->n_vars; v++)
        p->empty |= t->extent[v] == 0;
    bool good = sum->rank <= 64 && find_digits(p, sum, t) && find_free(p, t);
    for (uint32_t k = 0; k < t->n_factors && good; k++)
        good = add_factor(p, sum, t, k);
    if (!good) {
        p->single = false;
        p->walk = po_walk_create(arena, sum, t, true);
    }
    return p;
}

bool po_pull_single(const po_pull *pull) {
    return pull->single;
}

/* 32-bit divisions are a good deal faster. */
static int64_t quotient(int64_t a, int64_t b) {
    if (b == 1)
        return a;
    if ((uint64_t)a <= UINT32_MAX && (uint64_t)b <= UINT32_MAX)
        return (int64_t)((uint32_t)a / (uint32_t)b);
    return a / b;
}

static bool read_digits(const po_pull *p, const int64_t *index, int64_t *t) {
    int64_t left = 0;
    for (uint64_t bare = p->bare; bare; bare &= bare - 1) {
        int x = __builtin_ctzll(bare);
        if (index[x] != p->base[x])
            return false;
    }
    for (uint32_t i = 0; i < p->n_digits; i++) {
        const digit *d = &p->digits[i];
        if (i == 0 || p->digits[i - 1].last)
            left = index[d->axis] - p->base[d->axis];
        if (left < 0)
            return false;
        t[i] = quotient(left, d->coef);
        if (t[i] >= d->extent)
            return false;
        left -= t[i] * d->coef;
        if (d->last && left)
            return false;
    }
    return true;
}

/* Cuts the ranges of the free variables to what the checks leave. */
static bool cut_ranges(const po_pull *p, const int64_t *t, int64_t *first, int64_t *last) {
    for (uint32_t i = 0; i < p->n_checks; i++) {
        const check *c = &p->checks[i];
        int64_t at = c->base;
        for (uint32_t k = 0; k < p->n_digits; k++)
            at += c->of_digit[k] * t[k];
        if (c->free == PO_NONE) {
            if (at < 0 || at >= c->dim)
                return false;
            continue;
        }
        /* 0 <= at + coef * t < dim */
        int64_t from, to;
        if (c->coef == 1) {
            from = -at;
            to = c->dim - 1 - at;
        } else if (c->coef > 0) {
            from = po_ceil_div(-at, c->coef);
            to = po_floor_div(c->dim - 1 - at, c->coef);
        } else {
            from = po_ceil_div(at - (c->dim - 1), -c->coef);
            to = po_floor_div(at, -c->coef);
        }
        first[c->free] = from > first[c->free] ? from : first[c->free];
        last[c->free] = to < last[c->free] ? to : last[c->free];
        if (first[c->free] > last[c->free])
            return false;
    }
    return true;
}

void po_pull_run(const po_pull *p, const int64_t *index, po_stretch_fn fn, void *user) {
    int64_t t[MOST_DIGITS], first[MOST_FREE] = {0}, last[MOST_FREE], at[MOST_FREE];
    po_stretch run;
    if (p->walk) {
        po_walk_run(p->walk, index, fn, user);
        return;
    }
    if (p->empty || !read_digits(p, index, t))
        return;
    for (uint32_t i = 0; i < p->n_free; i++)
        last[i] = p->free[i].extent - 1;
    if (p->n_checks && !cut_ranges(p, t, first, last))
        return;
    for (uint32_t k = 0; k < p->n_factors; k++) {
        run.at[k + 1] = p->start[k];
        run.step[k + 1] = 0;
        for (uint32_t i = 0; i < p->n_digits; i++)
            run.at[k + 1] += p->digits[i].step[k] * t[i];
        for (uint32_t i = 0; i < p->n_free; i++)
            run.at[k + 1] += p->free[i].step[k] * first[i];
    }
    run.n = 1;
    if (p->n_free == 0) {
        fn(user, &run);
        return;
    }
    uint32_t inner = p->n_free - 1;
    run.n = last[inner] - first[inner] + 1;
    for (uint32_t k = 0; k < p->n_factors; k++)
        run.step[k + 1] = p->free[inner].step[k];
    memcpy(at, first, inner * sizeof *at);
    for (;;) {
        fn(user, &run);
        uint32_t i = inner;
        while (i-- > 0) {
            int64_t by = at[i]++ < last[i] ? 1 : first[i] - last[i];
            for (uint32_t k = 0; k < p->n_factors; k++)
                run.at[k + 1] += p->free[i].step[k] * by;
            if (by == 1)
                break;
            at[i] = first[i];
        }
        if (i == PO_NONE)
            return;
    }
}
