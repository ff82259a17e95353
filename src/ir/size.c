/* Computes with lengths, and what is known of them at all sizes. */
#include "ir/size.h"

#include "base/num.h"
#include "base/str.h"
#include "ir/size_poly.h"

enum { MOST_NESTED = 16 };

static bool natural(po_arena *arena, const po_size_poly *p, int depth);

static bool natural_atom(po_arena *arena, const char *atom, int depth) {
    po_size_poly pair[2];
    int64_t n;
    if (depth == 0)
        return false;
    if (po_size_is_plain(atom))
        return true;
    if (po_size_read_floor(arena, atom, &pair[0], &n))
        return natural(arena, &pair[0], depth - 1);
    if (po_size_read_pair(arena, atom, "min", pair))
        return natural(arena, &pair[0], depth - 1) && natural(arena, &pair[1], depth - 1);
    return po_size_read_pair(arena, atom, "max", pair) &&
           (natural(arena, &pair[0], depth - 1) || natural(arena, &pair[1], depth - 1));
}

bool po_size_positive(const char *name) {
    const size_t n = strlen(name), end = strlen(PO_SIZE_POSITIVE);
    return po_size_is_plain(name) && n > end && strcmp(name + n - end, PO_SIZE_POSITIVE) == 0;
}

/* With names of at least 1 as names of at least 0, plus 1. */
static po_size_poly from_zero(const po_size_poly *p) {
    po_size_poly out = {.ok = p->ok};
    for (uint32_t i = 0; i < p->n && out.ok; i++) {
        po_size_poly t = {.ok = true};
        po_size_add_number(&t, p->t[i].coef);
        for (uint32_t k = 0; k < p->t[i].n && t.ok; k++) {
            po_size_poly factor = {.ok = true};
            po_size_add_term(&factor, &(po_size_term){.coef = 1, .n = 1, .atom = {p->t[i].atom[k]}},
                             1);
            if (po_size_positive(p->t[i].atom[k]))
                po_size_add_number(&factor, 1);
            t = po_size_product(&t, &factor);
        }
        po_size_add_poly(&out, &t, 1);
    }
    return out;
}

/* What a term is at least, times n for a floor over n: floor(P / n) lies between (P - n + 1) / n
 * and P / n. */
static void add_bound(po_size_poly *out, const po_size_term *t, const po_size_poly *inside,
                      int64_t n) {
    int64_t rest = 0;
    po_size_add_poly(out, inside, t->coef);
    out->ok = out->ok && (t->coef <= 0 || po_mul_i64(t->coef, 1 - n, &rest));
    po_size_add_number(out, rest);
}

/* A whole number that is more than -1 is at least 0. */
static bool natural_by_bounds(po_arena *arena, const po_size_poly *of) {
    enum { ROUNDS = 6 };
    po_size_poly p = *of, inside;
    int64_t scale = 1, n = 0;
    for (int round = 0; round < ROUNDS && p.ok; round++) {
        uint32_t at = 0;
        while (at < p.n &&
               !(p.t[at].n == 1 && po_size_read_floor(arena, p.t[at].atom[0], &inside, &n)))
            at++;
        if (at == p.n)
            break;
        po_size_poly next = {.ok = po_mul_i64(scale, n, &scale)};
        for (uint32_t i = 0; i < p.n && next.ok; i++)
            if (i == at)
                add_bound(&next, &p.t[i], &inside, n);
            else
                po_size_add_term(&next, &p.t[i], n);
        p = next;
    }
    p = from_zero(&p);
    for (uint32_t i = 0; i < p.n && p.ok; i++) {
        p.ok = p.t[i].n == 0 ? p.t[i].coef > -scale : p.t[i].coef > 0;
        for (uint32_t k = 0; k < p.t[i].n && p.ok; k++)
            p.ok = po_size_is_plain(p.t[i].atom[k]);
    }
    return p.ok;
}

static bool natural(po_arena *arena, const po_size_poly *of, int depth) {
    const po_size_poly shifted = from_zero(of), *p = shifted.ok ? &shifted : of;
    bool is = p->ok;
    for (uint32_t i = 0; i < p->n && is; i++) {
        is = p->t[i].coef >= 0;
        for (uint32_t k = 0; k < p->t[i].n && is; k++)
            is = natural_atom(arena, p->t[i].atom[k], depth);
    }
    return is || (of->ok && natural_by_bounds(arena, of));
}

/* --- arithmetic: of numbers, which most lengths are, without a polynomial --- */

static bool are_numbers(po_dim a, po_dim b) {
    return a.value >= 0 && b.value >= 0;
}

static po_dim known_length(int64_t n) {
    return n >= 0 ? PO_DIM(n) : PO_DIM_UNKNOWN;
}

static po_dim sum_of(int64_t a, int64_t b) {
    int64_t n;
    return po_add_i64(a, b, &n) ? known_length(n) : PO_DIM_UNKNOWN;
}

static po_dim product_of(int64_t a, int64_t b) {
    int64_t n;
    return po_mul_i64(a, b, &n) ? known_length(n) : PO_DIM_UNKNOWN;
}

po_dim po_size_add(po_arena *arena, po_dim a, po_dim b) {
    if (a.value == 0 || b.value == 0)
        return a.value == 0 ? b : a;
    if (are_numbers(a, b))
        return sum_of(a.value, b.value);
    po_size_poly p = po_size_read(arena, a), q = po_size_read(arena, b);
    po_size_add_poly(&p, &q, 1);
    return po_size_dim_of(arena, &p);
}

po_dim po_size_sub(po_arena *arena, po_dim a, po_dim b) {
    if (b.value == 0 || po_dim_same(a, b))
        return b.value == 0 ? a : PO_DIM(0);
    if (are_numbers(a, b))
        return known_length(a.value - b.value);
    po_size_poly p = po_size_read(arena, a), q = po_size_read(arena, b);
    po_size_add_poly(&p, &q, -1);
    return po_size_dim_of(arena, &p);
}

po_dim po_size_mul(po_arena *arena, po_dim a, po_dim b) {
    if (a.value == 0 || b.value == 0)
        return PO_DIM(0);
    if (a.value == 1 || b.value == 1)
        return a.value == 1 ? b : a;
    if (are_numbers(a, b))
        return product_of(a.value, b.value);
    po_size_poly p = po_size_read(arena, a), q = po_size_read(arena, b);
    p = po_size_product(&p, &q);
    return po_size_dim_of(arena, &p);
}

po_dim po_size_plus(po_arena *arena, po_dim a, int64_t n) {
    if (n == 0)
        return a;
    if (a.value >= 0)
        return sum_of(a.value, n);
    po_size_poly p = po_size_read(arena, a);
    po_size_add_number(&p, n);
    return po_size_dim_of(arena, &p);
}

po_dim po_size_times(po_arena *arena, po_dim a, int64_t n) {
    if (n == 1)
        return a;
    if (a.value >= 0)
        return product_of(a.value, n);
    po_size_poly p = po_size_read(arena, a), q = {.ok = p.ok};
    po_size_add_poly(&q, &p, n);
    return po_size_dim_of(arena, &q);
}

static po_dim extreme(po_arena *arena, po_dim a, po_dim b, bool least);
static po_size_poly floor_of(po_arena *arena, const po_size_poly *p, int64_t n, int depth);

/* floor((max(x, y) + c) / n) = max(floor((x + c) / n), floor((y + c) / n)), one of them a number;
 * and of min. False where the atom is neither. */
static bool floor_of_pair(po_arena *arena, const char *atom, int64_t plus, int64_t n, int depth,
                          po_size_poly *out) {
    po_size_poly pair[2];
    int64_t number;
    const bool least = po_size_read_pair(arena, atom, "min", pair);
    if (!least && !po_size_read_pair(arena, atom, "max", pair))
        return false;
    if (!po_size_is_number(&pair[0], &number) && !po_size_is_number(&pair[1], &number))
        return false;
    for (int i = 0; i < 2; i++) {
        po_size_add_number(&pair[i], plus);
        pair[i] = floor_of(arena, &pair[i], n, depth - 1);
    }
    *out = po_size_read(arena, extreme(arena, po_size_dim_of(arena, &pair[0]),
                                       po_size_dim_of(arena, &pair[1]), least));
    return out->ok;
}

/* floor(p / n) = what n divides, and floor of the rest. */
static po_size_poly floor_of(po_arena *arena, const po_size_poly *p, int64_t n, int depth) {
    po_size_poly whole = {.ok = p->ok && depth > 0}, rest = {.ok = true}, inside;
    int64_t common = n, number, inner;
    for (uint32_t i = 0; i < p->n && whole.ok; i++) {
        const po_size_term *t = &p->t[i];
        const int64_t left = ((t->coef % n) + n) % n;
        po_size_term unit = *t;
        unit.coef = 1;
        po_size_add_term(&whole, &unit, (t->coef - left) / n);
        po_size_add_term(&rest, &unit, left);
        if (t->n > 0)
            common = po_gcd_i64(common, left);
    }
    if (!whole.ok || !rest.ok || po_size_is_number(&rest, &number))
        return whole;
    /* floor((g x + c) / (g m)) = floor((x + floor(c / g)) / m) */
    po_size_poly less = {.ok = true};
    for (uint32_t i = 0; i < rest.n; i++) {
        po_size_term unit = rest.t[i];
        unit.coef = 1;
        po_size_add_term(&less, &unit, rest.t[i].coef / common);
    }
    n /= common;
    if (n == 1) {
        po_size_add_poly(&whole, &less, 1);
        return whole;
    }
    /* floor((floor(x / k) + c) / n) = floor((x + c k) / (k n)) */
    const po_size_term *first = &less.t[0];
    const bool alone =
        less.n <= 2 && first->n == 1 && first->coef == 1 && (less.n == 1 || less.t[1].n == 0);
    int64_t plus = less.n == 2 ? less.t[1].coef : 0, by;
    if (alone && floor_of_pair(arena, first->atom[0], plus, n, depth, &inside)) {
        po_size_add_poly(&whole, &inside, 1);
        return whole;
    }
    if (alone && po_size_read_floor(arena, first->atom[0], &inside, &inner)) {
        if (po_mul_i64(plus, inner, &plus) && po_mul_i64(inner, n, &by)) {
            po_size_add_number(&inside, plus);
            po_size_poly flat = floor_of(arena, &inside, by, depth - 1);
            po_size_add_poly(&whole, &flat, 1);
            return whole;
        }
    }
    const char *text = po_size_text_of(arena, &less);
    const char *atom = po_arena_printf(arena, less.n == 1 ? "floor(%s/%lld)" : "floor((%s)/%lld)",
                                       text, (long long)n);
    po_size_add_term(&whole, &(po_size_term){.coef = 1, .n = 1, .atom = {atom}}, 1);
    return whole;
}

po_dim po_size_floor(po_arena *arena, po_dim a, int64_t plus, int64_t n) {
    if (n < 1 || (n == 1 && plus == 0))
        return n < 1 ? PO_DIM_UNKNOWN : a;
    int64_t sum;
    if (a.value >= 0)
        return po_add_i64(a.value, plus, &sum) ? known_length(po_floor_div(sum, n))
                                               : PO_DIM_UNKNOWN;
    po_size_poly p = po_size_read(arena, a);
    po_size_add_number(&p, plus);
    p = floor_of(arena, &p, n, MOST_NESTED);
    return po_size_dim_of(arena, &p);
}

/* Takes the atoms of `by` out of a term. */
static bool divide_term(const po_size_term *t, const po_size_term *by, po_size_term *out) {
    if (by->coef == 0 || t->coef % by->coef != 0)
        return false;
    *out = (po_size_term){.coef = t->coef / by->coef};
    uint32_t k = 0;
    for (uint32_t i = 0; i < t->n; i++)
        if (k < by->n && strcmp(t->atom[i], by->atom[k]) == 0)
            k++;
        else
            po_size_put_atom(out, t->atom[i]);
    return k == by->n;
}

po_dim po_size_divide(po_arena *arena, po_dim a, po_dim b) {
    if (b.value == 1)
        return a;
    po_size_poly p = po_size_read(arena, a), q = po_size_read(arena, b),
                 out = {.ok = p.ok && q.ok && q.n == 1};
    for (uint32_t i = 0; i < p.n && out.ok; i++) {
        po_size_term t;
        out.ok = divide_term(&p.t[i], &q.t[0], &t);
        if (out.ok)
            po_size_add_term(&out, &t, 1);
    }
    return po_size_dim_of(arena, &out);
}

/* Which of the two always is the smaller one: 0, 1, or -1. */
static int smaller(po_arena *arena, const po_size_poly *p, const po_size_poly *q) {
    for (int i = 0; i < 2; i++) {
        po_size_poly difference = i ? *p : *q;
        po_size_add_poly(&difference, i ? q : p, -1);
        if (natural(arena, &difference, MOST_NESTED))
            return i;
    }
    return -1;
}

static po_dim extreme(po_arena *arena, po_dim a, po_dim b, bool least) {
    if (po_dim_same(a, b))
        return a;
    if (are_numbers(a, b))
        return (a.value < b.value) == least ? a : b;
    po_size_poly p = po_size_read(arena, a), q = po_size_read(arena, b), pair[2];
    if (!p.ok || !q.ok)
        return PO_DIM_UNKNOWN;
    int which = smaller(arena, &p, &q);
    if (which >= 0)
        return (which == 0) == least ? a : b;
    const char *word = least ? "min" : "max", *x = po_size_text_of(arena, &p);
    const char *y = po_size_text_of(arena, &q);
    /* Of what is the least of both already. */
    for (int i = 0; i < 2; i++) {
        const char *atom = po_size_is_atom(i ? &q : &p), *other = i ? x : y;
        if (!atom || !po_size_read_pair(arena, atom, word, pair))
            continue;
        for (int k = 0; k < 2; k++) {
            int64_t n, m;
            if (strcmp(po_size_text_of(arena, &pair[k]), other) == 0)
                return i ? b : a;
            if (!po_size_is_number(i ? &p : &q, &n) || !po_size_is_number(&pair[k], &m))
                continue;
            /* Two numbers are one. */
            return (m < n) == least
                       ? (i ? b : a)
                       : extreme(arena, po_size_dim_of(arena, &pair[1 - k]), PO_DIM(n), least);
        }
    }
    const bool turned = strcmp(x, y) > 0;
    const char *atom = po_arena_printf(arena, "%s(%s, %s)", word, turned ? y : x, turned ? x : y);
    po_size_poly out = {.ok = true};
    po_size_add_term(&out, &(po_size_term){.coef = 1, .n = 1, .atom = {atom}}, 1);
    return po_size_dim_of(arena, &out);
}

po_dim po_size_min(po_arena *arena, po_dim a, po_dim b) {
    return extreme(arena, a, b, true);
}

po_dim po_size_max(po_arena *arena, po_dim a, po_dim b) {
    return extreme(arena, a, b, false);
}

/* --- questions --- */

bool po_size_natural(po_arena *arena, po_dim a) {
    if (a.value >= 0)
        return true;
    po_size_poly p = po_size_read(arena, a);
    return natural(arena, &p, MOST_NESTED);
}

bool po_size_bounded_by(po_arena *arena, po_dim b, po_dim a) {
    po_size_poly p = po_size_read(arena, b), q = po_size_read(arena, a), pair[2];
    const char *atom = po_size_is_atom(&p);
    if (!q.ok || !atom || !po_size_read_pair(arena, atom, "min", pair))
        return false;
    const char *whole = po_size_text_of(arena, &q);
    for (int i = 0; i < 2; i++) {
        int64_t bound;
        if (po_size_is_number(&pair[i], &bound) && bound > 0 &&
            strcmp(po_size_text_of(arena, &pair[1 - i]), whole) == 0)
            return true;
    }
    return false;
}

static bool value_of(po_arena *arena, const po_size_poly *p, po_size_length_fn length, void *user,
                     int depth, int64_t *value);

static bool value_of_atom(po_arena *arena, const char *atom, po_size_length_fn length, void *user,
                          int depth, int64_t *value) {
    po_size_poly pair[2];
    int64_t n, second;
    if (depth == 0)
        return false;
    if (po_size_is_plain(atom))
        return length(user, atom, value);
    if (po_size_read_floor(arena, atom, &pair[0], &n)) {
        if (!value_of(arena, &pair[0], length, user, depth - 1, value))
            return false;
        *value = (*value - ((*value % n) + n) % n) / n;
        return true;
    }
    bool least = po_size_read_pair(arena, atom, "min", pair);
    if ((!least && !po_size_read_pair(arena, atom, "max", pair)) ||
        !value_of(arena, &pair[0], length, user, depth - 1, value) ||
        !value_of(arena, &pair[1], length, user, depth - 1, &second))
        return false;
    *value = (second < *value) == least ? second : *value;
    return true;
}

static bool value_of(po_arena *arena, const po_size_poly *p, po_size_length_fn length, void *user,
                     int depth, int64_t *value) {
    bool known = p->ok;
    *value = 0;
    for (uint32_t i = 0; i < p->n && known; i++) {
        int64_t po_size_product = p->t[i].coef, factor;
        for (uint32_t k = 0; k < p->t[i].n && known; k++)
            known = value_of_atom(arena, p->t[i].atom[k], length, user, depth, &factor) &&
                    po_mul_i64(po_size_product, factor, &po_size_product);
        known = known && po_add_i64(*value, po_size_product, value);
    }
    return known;
}

bool po_size_at(po_arena *arena, po_dim a, po_size_length_fn length, void *user, int64_t *value) {
    *value = a.value;
    if (a.value >= 0)
        return true;
    po_size_poly p = po_size_read(arena, a);
    return value_of(arena, &p, length, user, MOST_NESTED, value);
}

/* --- in other words --- */

static bool build_poly(po_arena *arena, const po_size_poly *p, const po_size_builder *b, int depth,
                       uint32_t *out);

static bool build_term(po_arena *arena, const po_size_term *t, const po_size_builder *b, int depth,
                       uint32_t *out) {
    po_size_poly inside;
    int64_t by;
    if (depth == 0)
        return false;
    if (t->n == 1 && po_size_read_floor(arena, t->atom[0], &inside, &by)) {
        uint32_t of;
        if (!build_poly(arena, &inside, b, depth - 1, &of))
            return false;
        *out = b->quotient(b->user, of, by);
        return true;
    }
    po_size_poly whole = {.ok = true};
    po_size_term unit = *t;
    unit.coef = 1;
    po_size_add_term(&whole, &unit, 1);
    *out = b->name(b->user, po_size_text_of(arena, &whole));
    return true;
}

static bool build_poly(po_arena *arena, const po_size_poly *p, const po_size_builder *b, int depth,
                       uint32_t *out) {
    int64_t offset = 0, coefs[PO_SIZE_TERMS];
    uint32_t n = 0, parts[PO_SIZE_TERMS];
    for (uint32_t i = 0; i < p->n; i++) {
        if (p->t[i].n == 0) {
            offset = p->t[i].coef;
            continue;
        }
        coefs[n] = p->t[i].coef;
        if (!build_term(arena, &p->t[i], b, depth, &parts[n++]))
            return false;
    }
    *out = b->sum(b->user, offset, n, coefs, parts);
    return p->ok;
}

bool po_size_build(po_arena *arena, po_dim a, const po_size_builder *build, uint32_t *out) {
    po_size_poly p = po_size_read(arena, a);
    return p.ok && build_poly(arena, &p, build, MOST_NESTED, out);
}
