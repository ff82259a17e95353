/* One R/T after another. On each axis of the tensor between them the place that the first writes
 * equals the place that the second reads:
 *     sum of p * a (the first's digits) - sum of q * b (the second's) = delta
 * The equation is cut into independent ones wherever both sides' digits nest, as radices of a
 * number do; each is then solved where one side is a single digit. */
#include "ops/move/rt.h"
#include "ops/move/rt_internal.h"

__extension__ typedef __int128 wide;

enum { MOST_PARTS = 2 * PO_RT_MAX_DIGITS, MOST_ZEROS = 2 * PO_RT_MAX_DIGITS };

/* base + sum of coef * the new form's variables */
typedef struct affine {
    int64_t base, coef[PO_RT_MAX_VARS];
} affine;

/* A piece of a digit: digit = ... + scale * piece. */
typedef struct part {
    int64_t coef, extent, scale;
    affine *digit; /* what the pieces add up to */
} part;

typedef struct side {
    part parts[MOST_PARTS]; /* from the smallest coef up */
    uint32_t n;
} side;

typedef struct composer {
    const po_rt *first, *second;
    affine a[PO_RT_MAX_DIGITS], b[PO_RT_MAX_DIGITS]; /* their digits */
    affine zero[MOST_ZEROS];                         /* sums that must be 0 */
    uint32_t n_zero;
    affine mid[PO_RT_MAX_RANK]; /* the place on each axis in between */
    affine in[PO_RT_MAX_RANK], out[PO_RT_MAX_RANK];
    int64_t lo[PO_RT_MAX_VARS], hi[PO_RT_MAX_VARS];
    uint32_t n; /* variables */
} composer;

static bool add_scaled(affine *to, int64_t scale, const affine *from, uint32_t n) {
    int64_t x;
    if (!po_mul_i64(scale, from->base, &x) || !po_add_i64(to->base, x, &to->base))
        return false;
    for (uint32_t i = 0; i < n; i++)
        if (!po_mul_i64(scale, from->coef[i], &x) || !po_add_i64(to->coef[i], x, &to->coef[i]))
            return false;
    return to->base <= po_rt_most << 8 && to->base >= -(po_rt_most << 8);
}

static bool add_to_digit(const part *p, const affine *value, uint32_t n) {
    return add_scaled(p->digit, p->scale, value, n);
}

static bool new_var(composer *c, int64_t lo, int64_t hi, uint32_t *v) {
    if (c->n == PO_RT_MAX_VARS || lo > hi)
        return false;
    c->lo[c->n] = lo;
    c->hi[c->n] = hi;
    *v = c->n++;
    return true;
}

/* p a - q b = delta: every solution is a step of (q, p) / gcd from one of them. */
static bool solve_single(composer *c, const part *p, const part *q, int64_t delta) {
    int64_t g = p->coef, h = q->coef;
    while (h) {
        int64_t r = g % h;
        g = h;
        h = r;
    }
    if (delta % g)
        return false;
    int64_t sp = p->coef / g, sq = q->coef / g, d = delta / g, a0 = 0;
    /* The inverse of sp modulo sq, by Euclid's algorithm. */
    int64_t r0 = sq, r1 = sp % sq, t0 = 0, t1 = 1;
    while (r1) {
        int64_t k = r0 / r1, r = r0 - k * r1, t = t0 - k * t1;
        r0 = r1;
        r1 = r;
        t0 = t1;
        t1 = t;
    }
    if (sq > 1) {
        wide x = (wide)(d % sq) * t0 % sq;
        a0 = (int64_t)(x < 0 ? x + sq : x);
    }
    int64_t b0 = (sp * a0 - d) / sq;
    /* 0 <= a0 + sq t < extent, 0 <= b0 + sp t < extent */
    int64_t lo = po_ceil_div(-a0, sq), hi = po_floor_div(p->extent - 1 - a0, sq);
    int64_t lo_b = po_ceil_div(-b0, sp), hi_b = po_floor_div(q->extent - 1 - b0, sp);
    uint32_t v;
    if (!new_var(c, lo > lo_b ? lo : lo_b, hi < hi_b ? hi : hi_b, &v))
        return false;
    affine a = {.base = a0}, b = {.base = b0};
    a.coef[v] = sq;
    b.coef[v] = sp;
    return add_to_digit(p, &a, c->n) && add_to_digit(q, &b, c->n);
}

/* one = (delta + sum of coef * many) / one.coef */
static bool solve_many(composer *c, const part *one, const part *many, uint32_t n, int64_t delta) {
    affine value = {.base = delta / one->coef};
    if (delta % one->coef)
        return false;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t v;
        affine self = {.base = 0};
        if (many[i].coef % one->coef || !new_var(c, 0, many[i].extent - 1, &v))
            return false;
        self.coef[v] = 1;
        value.coef[v] = many[i].coef / one->coef;
        if (!add_to_digit(&many[i], &self, c->n))
            return false;
    }
    return add_to_digit(one, &value, c->n);
}

static bool solve(composer *c, const part *p, uint32_t np, const part *q, uint32_t nq,
                  int64_t delta) {
    if (!np && !nq)
        return delta == 0;
    if (c->n_zero == MOST_ZEROS)
        return false;
    const part zero = {1, 1, 1, np && nq ? NULL : &c->zero[c->n_zero++]};
    p = np ? p : &zero;
    np = np ? np : 1;
    q = nq ? q : &zero;
    nq = nq ? nq : 1;
    if (np == 1 && nq == 1)
        return solve_single(c, p, q, delta);
    return np == 1 ? solve_many(c, p, q, nq, delta) : nq == 1 && solve_many(c, q, p, np, -delta);
}

/* Cuts a side at `at`: the parts below it stay within it, those above are multiples of it; a part
 * across is split. *low: how many are below. False where the digits do not nest so. */
static bool cut_side(const side *from, int64_t at, side *to, uint32_t *low, int64_t *span) {
    *span = 0;
    *low = to->n = 0;
    for (uint32_t i = 0; i < from->n; i++) {
        part p = from->parts[i];
        if (to->n + 2 > MOST_PARTS)
            return false;
        if (p.coef >= at) {
            if (p.coef % at)
                return false;
            to->parts[to->n++] = p;
            continue;
        }
        /* Below: what it reaches must leave the next higher place alone. */
        if (*span + p.coef * (p.extent - 1) >= at) {
            int64_t e = at / p.coef;
            if (at % p.coef || *span >= p.coef)
                return false;
            to->parts[to->n++] = (part){p.coef, e, p.scale, p.digit};
            p = (part){at, po_ceil_div(p.extent, e), p.scale * e, p.digit};
            *span = at - 1;
        } else {
            *span += p.coef * (p.extent - 1);
        }
        ++*low;
        to->parts[to->n++] = p;
    }
    return *span < at;
}

static int64_t next_cut(const side *s, int64_t above) {
    int64_t next = INT64_MAX;
    for (uint32_t i = 1; i < s->n; i++)
        if (s->parts[i].coef > above && s->parts[i].coef < next)
            next = s->parts[i].coef;
    return next;
}

/* delta modulo `at`, such that both sides can make up for it: the only such value, or false. */
static bool low_delta(int64_t delta, int64_t at, int64_t span_p, int64_t span_q, int64_t *low) {
    int64_t up = delta - po_floor_div(delta, at) * at, down = up - at;
    bool can_up = up <= span_p, can_down = -down <= span_q;
    *low = can_up ? up : down;
    return can_up != can_down;
}

static bool divides(const part *one, const side *many, int64_t delta) {
    for (uint32_t i = 0; i < many->n; i++)
        if (many->parts[i].coef % one->coef)
            return false;
    return delta % one->coef == 0;
}

static bool match(composer *c, side *p, side *q, int64_t delta) {
    for (;;) {
        if ((p->n == 1 && divides(&p->parts[0], q, delta)) ||
            (q->n == 1 && divides(&q->parts[0], p, delta)))
            return solve(c, p->parts, p->n, q->parts, q->n, delta);
        side low_p, low_q;
        uint32_t np = 0, nq = 0;
        int64_t at = 0, low = 0;
        bool cut = false;
        while (!cut) {
            int64_t a = next_cut(p, at), b = next_cut(q, at);
            at = a < b ? a : b;
            if (at == INT64_MAX)
                break;
            int64_t span_p, span_q;
            cut = at > 1 && cut_side(p, at, &low_p, &np, &span_p) &&
                  cut_side(q, at, &low_q, &nq, &span_q) && (np || nq) &&
                  low_delta(delta, at, span_p, span_q, &low);
        }
        if (!cut)
            return solve(c, p->parts, p->n, q->parts, q->n, delta);
        p->n = q->n = 0;
        for (uint32_t i = np; i < low_p.n; i++)
            p->parts[p->n++] = low_p.parts[i];
        for (uint32_t i = nq; i < low_q.n; i++)
            q->parts[q->n++] = low_q.parts[i];
        delta -= low;
        /* Both now hold fewer digits: at least the one whose step `at` is stays above. */
        low_p.n = np;
        low_q.n = nq;
        if (!match(c, &low_p, &low_q, low))
            return false;
    }
}

static void add_part(side *s, int64_t coef, int64_t extent, affine *digit) {
    /* A digit that runs backwards counts from its other end. */
    part p = {coef < 0 ? -coef : coef, extent, coef < 0 ? -1 : 1, digit};
    if (coef < 0)
        digit->base = extent - 1;
    uint32_t k = s->n++;
    for (; k && s->parts[k - 1].coef > p.coef; k--)
        s->parts[k] = s->parts[k - 1];
    s->parts[k] = p;
}

static bool match_axis(composer *c, uint32_t axis) {
    side p = {.n = 0}, q = {.n = 0};
    int64_t delta = c->second->in_base[axis] - c->first->out_base[axis];
    for (uint32_t i = 0; i < c->first->n; i++) {
        const po_rt_digit *d = &c->first->digits[i];
        if (d->out_axis == axis)
            add_part(&p, d->out_coef, d->extent, &c->a[i]);
    }
    for (uint32_t i = 0; i < c->second->n; i++) {
        const po_rt_digit *d = &c->second->digits[i];
        if (d->in_axis != axis)
            continue;
        add_part(&q, d->in_coef, d->extent, &c->b[i]);
        if (d->in_coef < 0)
            delta += d->in_coef * (d->extent - 1);
    }
    return match(c, &p, &q, delta);
}

static bool sum_axes(composer *c) {
    const po_rt *f = c->first, *s = c->second;
    for (uint32_t x = 0; x < f->in_rank; x++)
        c->in[x].base = f->in_base[x];
    for (uint32_t x = 0; x < s->in_rank; x++)
        c->mid[x].base = s->in_base[x];
    for (uint32_t x = 0; x < s->out_rank; x++)
        c->out[x].base = s->out_base[x];
    for (uint32_t i = 0; i < f->n; i++)
        if (!add_scaled(&c->in[f->digits[i].in_axis], f->digits[i].in_coef, &c->a[i], c->n))
            return false;
    for (uint32_t i = 0; i < s->n; i++)
        if (!add_scaled(&c->mid[s->digits[i].in_axis], s->digits[i].in_coef, &c->b[i], c->n) ||
            !add_scaled(&c->out[s->digits[i].out_axis], s->digits[i].out_coef, &c->b[i], c->n))
            return false;
    return true;
}

static bool narrow(composer *c, const affine *x, int64_t extent, bool *changed) {
    return po_rt_narrow(c->n, c->lo, c->hi, x->coef, x->base, 0, extent - 1, changed);
}

static bool narrow_all(composer *c) {
    const po_rt *f = c->first, *s = c->second;
    for (bool changed = true; changed;) {
        changed = false;
        for (uint32_t i = 0; i < f->n; i++)
            if (!narrow(c, &c->a[i], f->digits[i].extent, &changed))
                return false;
        for (uint32_t i = 0; i < s->n; i++)
            if (!narrow(c, &c->b[i], s->digits[i].extent, &changed))
                return false;
        for (uint32_t i = 0; i < c->n_zero; i++)
            if (!narrow(c, &c->zero[i], 1, &changed))
                return false;
        for (uint32_t x = 0; x < f->in_rank; x++)
            if (!narrow(c, &c->in[x], f->in_dims[x], &changed))
                return false;
        for (uint32_t x = 0; x < s->in_rank; x++)
            if (!narrow(c, &c->mid[x], s->in_dims[x], &changed))
                return false;
        for (uint32_t x = 0; x < s->out_rank; x++)
            if (!narrow(c, &c->out[x], s->out_dims[x], &changed))
                return false;
    }
    return true;
}

/* Whether `x` outside [0, extent) always puts `axis`, a multiple of it and a rest, outside [0,
 * dim): then the axis' own bounds say all that x's do. */
static bool implied_by(const composer *c, const affine *x, int64_t extent, const affine *axis,
                       int64_t dim) {
    int64_t r = 0, rest[PO_RT_MAX_VARS], base, least, most;
    for (uint32_t v = 0; v < c->n && !r; v++)
        if (x->coef[v] && axis->coef[v] % x->coef[v] == 0)
            r = axis->coef[v] / x->coef[v];
    if (!r)
        return false;
    for (uint32_t v = 0; v < c->n; v++)
        rest[v] = axis->coef[v] - r * x->coef[v];
    base = axis->base - r * x->base;
    if (!po_rt_range(c->n, c->lo, c->hi, rest, base, &least, &most))
        return false;
    if (r < 0) { /* the same of -r * (extent - 1 - x) */
        least += r * (extent - 1);
        most += r * (extent - 1);
        r = -r;
    }
    return least + r * extent >= dim && most - r < 0;
}

/* Whether x lies in [0, extent) wherever the axes of input and output are within their bounds. */
static bool holds(const composer *c, const affine *x, int64_t extent) {
    int64_t least, most;
    if (po_rt_range(c->n, c->lo, c->hi, x->coef, x->base, &least, &most) && least >= 0 &&
        most < extent)
        return true;
    for (uint32_t i = 0; i < c->first->in_rank; i++)
        if (implied_by(c, x, extent, &c->in[i], c->first->in_dims[i]))
            return true;
    for (uint32_t i = 0; i < c->second->out_rank; i++)
        if (implied_by(c, x, extent, &c->out[i], c->second->out_dims[i]))
            return true;
    return false;
}

static bool all_hold(const composer *c) {
    for (uint32_t i = 0; i < c->first->n; i++)
        if (!holds(c, &c->a[i], c->first->digits[i].extent))
            return false;
    for (uint32_t i = 0; i < c->second->n; i++)
        if (!holds(c, &c->b[i], c->second->digits[i].extent))
            return false;
    for (uint32_t i = 0; i < c->n_zero; i++)
        if (!holds(c, &c->zero[i], 1))
            return false;
    for (uint32_t x = 0; x < c->second->in_rank; x++)
        if (!holds(c, &c->mid[x], c->second->in_dims[x]))
            return false;
    return true;
}

static bool sole(const affine *axes, uint32_t rank, uint32_t v, uint32_t *axis, int64_t *coef) {
    *coef = 0;
    for (uint32_t x = 0; x < rank; x++)
        if (axes[x].coef[v]) {
            if (*coef)
                return false;
            *axis = x;
            *coef = axes[x].coef[v];
        }
    return *coef != 0;
}

static const po_rt *finish(po_arena *arena, const composer *c) {
    po_rt_digit d[PO_RT_MAX_VARS];
    int64_t in[PO_RT_MAX_RANK], out[PO_RT_MAX_RANK];
    uint32_t n = 0;
    for (uint32_t x = 0; x < c->first->in_rank; x++)
        in[x] = c->in[x].base;
    for (uint32_t x = 0; x < c->second->out_rank; x++)
        out[x] = c->out[x].base;
    for (uint32_t v = 0; v < c->n; v++) {
        for (uint32_t x = 0; x < c->first->in_rank; x++)
            in[x] += c->in[x].coef[v] * c->lo[v];
        for (uint32_t x = 0; x < c->second->out_rank; x++)
            out[x] += c->out[x].coef[v] * c->lo[v];
        if (c->lo[v] == c->hi[v])
            continue;
        d[n].extent = c->hi[v] - c->lo[v] + 1;
        if (!sole(c->in, c->first->in_rank, v, &d[n].in_axis, &d[n].in_coef) ||
            !sole(c->out, c->second->out_rank, v, &d[n].out_axis, &d[n].out_coef))
            return NULL;
        n++;
    }
    return po_rt_create(arena, &(po_rt){c->first->in_rank, c->second->out_rank, n,
                                        c->first->in_dims, c->second->out_dims, in, out, d});
}

const po_rt *po_rt_compose(po_arena *arena, const po_rt *first, const po_rt *second) {
    if (first->out_rank != second->in_rank ||
        memcmp(first->out_dims, second->in_dims, first->out_rank * sizeof *first->out_dims) != 0)
        return NULL;
    po_arena *scratch = po_arena_child(arena);
    composer *c = PO_NEW(scratch, composer);
    c->first = first;
    c->second = second;
    const po_rt *rt = NULL;
    bool ok = true;
    for (uint32_t x = 0; x < first->out_rank && ok; x++)
        ok = match_axis(c, x);
    if (ok && sum_axes(c) && narrow_all(c) && all_hold(c))
        rt = finish(arena, c);
    po_arena_free(scratch);
    return rt;
}
