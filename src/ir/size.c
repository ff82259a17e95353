/* Reads texts of lengths as polynomials, computes with these, and writes the normal form. */
#include "ir/size.h"

#include "base/num.h"
#include "base/str.h"

typedef struct term {
    int64_t coef;
    uint32_t n;
    const char *atom[PO_SIZE_DEGREE]; /* in order, as they are written */
} term;

/* Terms in order, none with coefficient 0. */
typedef struct poly {
    bool ok;
    uint32_t n;
    term t[PO_SIZE_TERMS];
} poly;

enum { MOST_NESTED = 16 };

/* --- terms --- */

static int compare_atoms(const term *a, const term *b) {
    if (a->n != b->n)
        return a->n > b->n ? -1 : 1;
    int order = 0;
    for (uint32_t i = 0; i < a->n && order == 0; i++)
        order = strcmp(a->atom[i], b->atom[i]);
    return order;
}

static void add_term(poly *p, const term *t, int64_t times) {
    term scaled = *t;
    uint32_t at = 0;
    int order = 1;
    if (!p->ok || !po_mul_i64(t->coef, times, &scaled.coef)) {
        p->ok = false;
        return;
    }
    while (at < p->n && (order = compare_atoms(&p->t[at], &scaled)) < 0)
        at++;
    if (scaled.coef == 0)
        return;
    if (at < p->n && order == 0) {
        p->ok = po_add_i64(p->t[at].coef, scaled.coef, &p->t[at].coef);
        if (p->t[at].coef == 0) {
            p->n--;
            memmove(&p->t[at], &p->t[at + 1], (p->n - at) * sizeof *p->t);
        }
    } else if (p->n == PO_SIZE_TERMS) {
        p->ok = false;
    } else {
        memmove(&p->t[at + 1], &p->t[at], (p->n - at) * sizeof *p->t);
        p->t[at] = scaled;
        p->n++;
    }
}

static void add_number(poly *p, int64_t n) {
    add_term(p, &(term){.coef = n}, 1);
}

static void add_poly(poly *p, const poly *q, int64_t times) {
    p->ok = p->ok && q->ok;
    for (uint32_t i = 0; i < q->n && p->ok; i++)
        add_term(p, &q->t[i], times);
}

static bool put_atom(term *t, const char *atom) {
    uint32_t at = t->n;
    if (t->n == PO_SIZE_DEGREE)
        return false;
    for (; at > 0 && strcmp(t->atom[at - 1], atom) > 0; at--)
        t->atom[at] = t->atom[at - 1];
    t->atom[at] = atom;
    t->n++;
    return true;
}

static poly product(const poly *a, const poly *b) {
    poly p = {.ok = a->ok && b->ok};
    for (uint32_t i = 0; i < a->n && p.ok; i++)
        for (uint32_t j = 0; j < b->n && p.ok; j++) {
            term t = a->t[i];
            p.ok = po_mul_i64(t.coef, b->t[j].coef, &t.coef);
            for (uint32_t k = 0; k < b->t[j].n && p.ok; k++)
                p.ok = put_atom(&t, b->t[j].atom[k]);
            add_term(&p, &t, 1);
        }
    return p;
}

static bool is_number(const poly *p, int64_t *n) {
    *n = p->n ? p->t[0].coef : 0;
    return p->ok && (p->n == 0 || (p->n == 1 && p->t[0].n == 0));
}

/* The one atom that it is; NULL: it is more, or a number. */
static const char *is_atom(const poly *p) {
    return p->ok && p->n == 1 && p->t[0].n == 1 && p->t[0].coef == 1 ? p->t[0].atom[0] : NULL;
}

/* --- reading --- */

static bool is_letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

/* Behind a word. */
static const char *skip_word(const char *p) {
    while (is_letter(*p) || is_digit(*p) || *p == '.' || *p == ':')
        p++;
    return p;
}

/* Behind what begins here in brackets. */
static const char *skip_closed(const char *p) {
    int depth = 0;
    for (; *p; p++) {
        depth += (*p == '(') - (*p == ')');
        if (depth == 0)
            return p + 1;
    }
    return p;
}

/* The first of these marks outside of brackets, or the end. */
static const char *find_mark(const char *p, const char *end, char mark) {
    while (p < end && *p != mark)
        p = *p == '(' ? skip_closed(p) : p + 1;
    return p < end ? p : end;
}

static bool is_plain(const char *name) {
    return is_letter(name[0]) && *skip_word(name) == '\0' && strcmp(name, "floor") != 0 &&
           strcmp(name, "min") != 0 && strcmp(name, "max") != 0;
}

static const char *read_atom(po_arena *arena, const char **at) {
    const char *from = *at, *to = is_letter(*from) ? skip_word(from) : from;
    if (to > from && *to == '(')
        to = skip_closed(to);
    *at = to;
    return to > from ? po_arena_printf(arena, "%.*s", (int)(to - from), from) : NULL;
}

static bool read_term(po_arena *arena, const char **at, term *t) {
    bool first = true;
    *t = (term){.coef = 1};
    do {
        if (!first)
            ++*at;
        if (first && is_digit(**at)) {
            t->coef = 0;
            for (; is_digit(**at); ++*at)
                if (!po_mul_i64(t->coef, 10, &t->coef) ||
                    !po_add_i64(t->coef, **at - '0', &t->coef))
                    return false;
        } else {
            const char *atom = read_atom(arena, at);
            if (!atom || !put_atom(t, atom))
                return false;
        }
        first = false;
    } while (**at == '*');
    return true;
}

/* What is written in [p, end). */
static poly read_text(po_arena *arena, const char *p, const char *end) {
    poly out = {.ok = p < end};
    while (p < end && out.ok) {
        int64_t sign = 1;
        term t;
        for (; p < end && (*p == ' ' || *p == '+' || *p == '-'); p++)
            sign = *p == '-' ? -1 : sign;
        out.ok = read_term(arena, &p, &t);
        if (out.ok)
            add_term(&out, &t, sign);
    }
    out.ok = out.ok && p == end;
    return out;
}

static poly read_dim(po_arena *arena, po_dim d) {
    poly p = {.ok = d.value >= 0 || d.symbol};
    if (d.value >= 0) {
        add_number(&p, d.value);
    } else if (po_size_made(d.symbol)) {
        size_t n = strlen(d.symbol);
        p = n > 2 && d.symbol[n - 1] == ')' ? read_text(arena, d.symbol + 1, d.symbol + n - 1)
                                            : (poly){0};
    } else if (d.symbol && is_plain(d.symbol)) {
        add_term(&p, &(term){.coef = 1, .n = 1, .atom = {d.symbol}}, 1);
    } else {
        p.ok = false;
    }
    return p;
}

/* --- writing --- */

static const char *write_poly(po_arena *arena, const poly *p) {
    po_text text;
    po_text_init(&text, arena);
    for (uint32_t i = 0; i < p->n; i++) {
        const term *t = &p->t[i];
        int64_t coef = t->coef;
        if (i > 0)
            po_text_puts(&text, coef < 0 ? " - " : " + ");
        else if (coef < 0)
            po_text_puts(&text, "-");
        uint64_t size = coef < 0 ? 0 - (uint64_t)coef : (uint64_t)coef;
        if (size != 1 || t->n == 0)
            po_text_printf(&text, "%llu", (unsigned long long)size);
        for (uint32_t k = 0; k < t->n; k++)
            po_text_printf(&text, "%s%s", k > 0 || size != 1 ? "*" : "", t->atom[k]);
    }
    if (p->n == 0)
        po_text_puts(&text, "0");
    return text.data;
}

static po_dim dim_of(po_arena *arena, const poly *p) {
    int64_t n;
    if (is_number(p, &n))
        return n >= 0 ? PO_DIM(n) : PO_DIM_UNKNOWN;
    if (!p->ok)
        return PO_DIM_UNKNOWN;
    const char *atom = is_atom(p);
    if (atom && is_plain(atom))
        return (po_dim){-1, atom};
    const char *text = write_poly(arena, p);
    return strlen(text) + 2 > PO_SIZE_TEXT ? PO_DIM_UNKNOWN
                                           : (po_dim){-1, po_arena_printf(arena, "(%s)", text)};
}

/* --- what is inside of floor, min, max --- */

/* "word(first<mark>second)": both parts; false where the atom is not of that word. */
static bool parts_of(const char *atom, const char *word, char mark, const char *part[2][2]) {
    const size_t n = strlen(word);
    if (strncmp(atom, word, n) != 0 || atom[n] != '(')
        return false;
    const char *from = atom + n + 1, *end = atom + strlen(atom) - 1;
    const char *at = find_mark(from, end, mark);
    if (at == end)
        return false;
    part[0][0] = from;
    part[0][1] = at;
    part[1][0] = at[1] == ' ' ? at + 2 : at + 1;
    part[1][1] = end;
    return true;
}

static bool read_floor(po_arena *arena, const char *atom, poly *inside, int64_t *n) {
    const char *part[2][2];
    if (!parts_of(atom, "floor", '/', part))
        return false;
    if (*part[0][0] == '(' && skip_closed(part[0][0]) == part[0][1]) {
        part[0][0]++;
        part[0][1]--;
    }
    *inside = read_text(arena, part[0][0], part[0][1]);
    poly by = read_text(arena, part[1][0], part[1][1]);
    return inside->ok && is_number(&by, n) && *n > 0;
}

static bool read_pair(po_arena *arena, const char *atom, const char *word, poly pair[2]) {
    const char *part[2][2];
    if (!parts_of(atom, word, ',', part))
        return false;
    for (uint32_t i = 0; i < 2; i++)
        pair[i] = read_text(arena, part[i][0], part[i][1]);
    return pair[0].ok && pair[1].ok;
}

static bool natural(po_arena *arena, const poly *p, int depth);

static bool natural_atom(po_arena *arena, const char *atom, int depth) {
    poly pair[2];
    int64_t n;
    if (depth == 0)
        return false;
    if (is_plain(atom))
        return true;
    if (read_floor(arena, atom, &pair[0], &n))
        return natural(arena, &pair[0], depth - 1);
    if (read_pair(arena, atom, "min", pair))
        return natural(arena, &pair[0], depth - 1) && natural(arena, &pair[1], depth - 1);
    return read_pair(arena, atom, "max", pair) &&
           (natural(arena, &pair[0], depth - 1) || natural(arena, &pair[1], depth - 1));
}

bool po_size_positive(const char *name) {
    const size_t n = strlen(name), end = strlen(PO_SIZE_POSITIVE);
    return is_plain(name) && n > end && strcmp(name + n - end, PO_SIZE_POSITIVE) == 0;
}

/* With names of at least 1 as names of at least 0, plus 1. */
static poly from_zero(const poly *p) {
    poly out = {.ok = p->ok};
    for (uint32_t i = 0; i < p->n && out.ok; i++) {
        poly t = {.ok = true};
        add_number(&t, p->t[i].coef);
        for (uint32_t k = 0; k < p->t[i].n && t.ok; k++) {
            poly factor = {.ok = true};
            add_term(&factor, &(term){.coef = 1, .n = 1, .atom = {p->t[i].atom[k]}}, 1);
            if (po_size_positive(p->t[i].atom[k]))
                add_number(&factor, 1);
            t = product(&t, &factor);
        }
        add_poly(&out, &t, 1);
    }
    return out;
}

/* What a term is at least, times n for a floor over n: floor(P / n) lies between (P - n + 1) / n
 * and P / n. */
static void add_bound(poly *out, const term *t, const poly *inside, int64_t n) {
    int64_t rest = 0;
    add_poly(out, inside, t->coef);
    out->ok = out->ok && (t->coef <= 0 || po_mul_i64(t->coef, 1 - n, &rest));
    add_number(out, rest);
}

/* A whole number that is more than -1 is at least 0. */
static bool natural_by_bounds(po_arena *arena, const poly *of) {
    enum { ROUNDS = 6 };
    poly p = *of, inside;
    int64_t scale = 1, n = 0;
    for (int round = 0; round < ROUNDS && p.ok; round++) {
        uint32_t at = 0;
        while (at < p.n && !(p.t[at].n == 1 && read_floor(arena, p.t[at].atom[0], &inside, &n)))
            at++;
        if (at == p.n)
            break;
        poly next = {.ok = po_mul_i64(scale, n, &scale)};
        for (uint32_t i = 0; i < p.n && next.ok; i++)
            if (i == at)
                add_bound(&next, &p.t[i], &inside, n);
            else
                add_term(&next, &p.t[i], n);
        p = next;
    }
    p = from_zero(&p);
    for (uint32_t i = 0; i < p.n && p.ok; i++) {
        p.ok = p.t[i].n == 0 ? p.t[i].coef > -scale : p.t[i].coef > 0;
        for (uint32_t k = 0; k < p.t[i].n && p.ok; k++)
            p.ok = is_plain(p.t[i].atom[k]);
    }
    return p.ok;
}

static bool natural(po_arena *arena, const poly *of, int depth) {
    const poly shifted = from_zero(of), *p = shifted.ok ? &shifted : of;
    bool is = p->ok;
    for (uint32_t i = 0; i < p->n && is; i++) {
        is = p->t[i].coef >= 0;
        for (uint32_t k = 0; k < p->t[i].n && is; k++)
            is = natural_atom(arena, p->t[i].atom[k], depth);
    }
    return is || (of->ok && natural_by_bounds(arena, of));
}

/* --- arithmetic --- */

po_dim po_size_add(po_arena *arena, po_dim a, po_dim b) {
    if (a.value == 0 || b.value == 0)
        return a.value == 0 ? b : a;
    poly p = read_dim(arena, a), q = read_dim(arena, b);
    add_poly(&p, &q, 1);
    return dim_of(arena, &p);
}

po_dim po_size_sub(po_arena *arena, po_dim a, po_dim b) {
    if (b.value == 0 || po_dim_same(a, b))
        return b.value == 0 ? a : PO_DIM(0);
    poly p = read_dim(arena, a), q = read_dim(arena, b);
    add_poly(&p, &q, -1);
    return dim_of(arena, &p);
}

po_dim po_size_mul(po_arena *arena, po_dim a, po_dim b) {
    if (a.value == 0 || b.value == 0)
        return PO_DIM(0);
    if (a.value == 1 || b.value == 1)
        return a.value == 1 ? b : a;
    poly p = read_dim(arena, a), q = read_dim(arena, b);
    p = product(&p, &q);
    return dim_of(arena, &p);
}

po_dim po_size_plus(po_arena *arena, po_dim a, int64_t n) {
    if (n == 0)
        return a;
    poly p = read_dim(arena, a);
    add_number(&p, n);
    return dim_of(arena, &p);
}

po_dim po_size_times(po_arena *arena, po_dim a, int64_t n) {
    if (n == 1)
        return a;
    poly p = read_dim(arena, a), q = {.ok = p.ok};
    add_poly(&q, &p, n);
    return dim_of(arena, &q);
}

static po_dim extreme(po_arena *arena, po_dim a, po_dim b, bool least);
static poly floor_of(po_arena *arena, const poly *p, int64_t n, int depth);

/* floor((max(x, y) + c) / n) = max(floor((x + c) / n), floor((y + c) / n)), one of them a number;
 * and of min. False where the atom is neither. */
static bool floor_of_pair(po_arena *arena, const char *atom, int64_t plus, int64_t n, int depth,
                          poly *out) {
    poly pair[2];
    int64_t number;
    const bool least = read_pair(arena, atom, "min", pair);
    if (!least && !read_pair(arena, atom, "max", pair))
        return false;
    if (!is_number(&pair[0], &number) && !is_number(&pair[1], &number))
        return false;
    for (int i = 0; i < 2; i++) {
        add_number(&pair[i], plus);
        pair[i] = floor_of(arena, &pair[i], n, depth - 1);
    }
    *out = read_dim(arena, extreme(arena, dim_of(arena, &pair[0]), dim_of(arena, &pair[1]), least));
    return out->ok;
}

/* floor(p / n) = what n divides, and floor of the rest. */
static poly floor_of(po_arena *arena, const poly *p, int64_t n, int depth) {
    poly whole = {.ok = p->ok && depth > 0}, rest = {.ok = true}, inside;
    int64_t common = n, number, inner;
    for (uint32_t i = 0; i < p->n && whole.ok; i++) {
        const term *t = &p->t[i];
        const int64_t left = ((t->coef % n) + n) % n;
        term unit = *t;
        unit.coef = 1;
        add_term(&whole, &unit, (t->coef - left) / n);
        add_term(&rest, &unit, left);
        if (t->n > 0)
            common = po_gcd_i64(common, left);
    }
    if (!whole.ok || !rest.ok || is_number(&rest, &number))
        return whole;
    /* floor((g x + c) / (g m)) = floor((x + floor(c / g)) / m) */
    poly less = {.ok = true};
    for (uint32_t i = 0; i < rest.n; i++) {
        term unit = rest.t[i];
        unit.coef = 1;
        add_term(&less, &unit, rest.t[i].coef / common);
    }
    n /= common;
    if (n == 1) {
        add_poly(&whole, &less, 1);
        return whole;
    }
    /* floor((floor(x / k) + c) / n) = floor((x + c k) / (k n)) */
    const term *first = &less.t[0];
    const bool alone =
        less.n <= 2 && first->n == 1 && first->coef == 1 && (less.n == 1 || less.t[1].n == 0);
    int64_t plus = less.n == 2 ? less.t[1].coef : 0, by;
    if (alone && floor_of_pair(arena, first->atom[0], plus, n, depth, &inside)) {
        add_poly(&whole, &inside, 1);
        return whole;
    }
    if (alone && read_floor(arena, first->atom[0], &inside, &inner)) {
        if (po_mul_i64(plus, inner, &plus) && po_mul_i64(inner, n, &by)) {
            add_number(&inside, plus);
            poly flat = floor_of(arena, &inside, by, depth - 1);
            add_poly(&whole, &flat, 1);
            return whole;
        }
    }
    const char *text = write_poly(arena, &less);
    const char *atom = po_arena_printf(arena, less.n == 1 ? "floor(%s/%lld)" : "floor((%s)/%lld)",
                                       text, (long long)n);
    add_term(&whole, &(term){.coef = 1, .n = 1, .atom = {atom}}, 1);
    return whole;
}

po_dim po_size_floor(po_arena *arena, po_dim a, int64_t plus, int64_t n) {
    if (n < 1 || (n == 1 && plus == 0))
        return n < 1 ? PO_DIM_UNKNOWN : a;
    poly p = read_dim(arena, a);
    add_number(&p, plus);
    p = floor_of(arena, &p, n, MOST_NESTED);
    return dim_of(arena, &p);
}

/* Takes the atoms of `by` out of a term. */
static bool divide_term(const term *t, const term *by, term *out) {
    if (by->coef == 0 || t->coef % by->coef != 0)
        return false;
    *out = (term){.coef = t->coef / by->coef};
    uint32_t k = 0;
    for (uint32_t i = 0; i < t->n; i++)
        if (k < by->n && strcmp(t->atom[i], by->atom[k]) == 0)
            k++;
        else
            put_atom(out, t->atom[i]);
    return k == by->n;
}

po_dim po_size_divide(po_arena *arena, po_dim a, po_dim b) {
    if (b.value == 1)
        return a;
    poly p = read_dim(arena, a), q = read_dim(arena, b), out = {.ok = p.ok && q.ok && q.n == 1};
    for (uint32_t i = 0; i < p.n && out.ok; i++) {
        term t;
        out.ok = divide_term(&p.t[i], &q.t[0], &t);
        if (out.ok)
            add_term(&out, &t, 1);
    }
    return dim_of(arena, &out);
}

/* Which of the two always is the smaller one: 0, 1, or -1. */
static int smaller(po_arena *arena, const poly *p, const poly *q) {
    for (int i = 0; i < 2; i++) {
        poly difference = i ? *p : *q;
        add_poly(&difference, i ? q : p, -1);
        if (natural(arena, &difference, MOST_NESTED))
            return i;
    }
    return -1;
}

static po_dim extreme(po_arena *arena, po_dim a, po_dim b, bool least) {
    if (po_dim_same(a, b))
        return a;
    poly p = read_dim(arena, a), q = read_dim(arena, b), pair[2];
    if (!p.ok || !q.ok)
        return PO_DIM_UNKNOWN;
    int which = smaller(arena, &p, &q);
    if (which >= 0)
        return (which == 0) == least ? a : b;
    const char *word = least ? "min" : "max", *x = write_poly(arena, &p);
    const char *y = write_poly(arena, &q);
    /* Of what is the least of both already. */
    for (int i = 0; i < 2; i++) {
        const char *atom = is_atom(i ? &q : &p), *other = i ? x : y;
        if (!atom || !read_pair(arena, atom, word, pair))
            continue;
        for (int k = 0; k < 2; k++) {
            int64_t n, m;
            if (strcmp(write_poly(arena, &pair[k]), other) == 0)
                return i ? b : a;
            if (!is_number(i ? &p : &q, &n) || !is_number(&pair[k], &m))
                continue;
            /* Two numbers are one. */
            return (m < n) == least ? (i ? b : a)
                                    : extreme(arena, dim_of(arena, &pair[1 - k]), PO_DIM(n), least);
        }
    }
    const bool turned = strcmp(x, y) > 0;
    const char *atom = po_arena_printf(arena, "%s(%s, %s)", word, turned ? y : x, turned ? x : y);
    poly out = {.ok = true};
    add_term(&out, &(term){.coef = 1, .n = 1, .atom = {atom}}, 1);
    return dim_of(arena, &out);
}

po_dim po_size_min(po_arena *arena, po_dim a, po_dim b) {
    return extreme(arena, a, b, true);
}

po_dim po_size_max(po_arena *arena, po_dim a, po_dim b) {
    return extreme(arena, a, b, false);
}

/* --- questions --- */

bool po_size_natural(po_arena *arena, po_dim a) {
    poly p = read_dim(arena, a);
    return natural(arena, &p, MOST_NESTED);
}

bool po_size_bounded_by(po_arena *arena, po_dim b, po_dim a) {
    poly p = read_dim(arena, b), q = read_dim(arena, a), pair[2];
    const char *atom = is_atom(&p);
    if (!q.ok || !atom || !read_pair(arena, atom, "min", pair))
        return false;
    const char *whole = write_poly(arena, &q);
    for (int i = 0; i < 2; i++) {
        int64_t bound;
        if (is_number(&pair[i], &bound) && bound > 0 &&
            strcmp(write_poly(arena, &pair[1 - i]), whole) == 0)
            return true;
    }
    return false;
}

static bool value_of(po_arena *arena, const poly *p, po_size_length_fn length, void *user,
                     int depth, int64_t *value);

static bool value_of_atom(po_arena *arena, const char *atom, po_size_length_fn length, void *user,
                          int depth, int64_t *value) {
    poly pair[2];
    int64_t n, second;
    if (depth == 0)
        return false;
    if (is_plain(atom))
        return length(user, atom, value);
    if (read_floor(arena, atom, &pair[0], &n)) {
        if (!value_of(arena, &pair[0], length, user, depth - 1, value))
            return false;
        *value = (*value - ((*value % n) + n) % n) / n;
        return true;
    }
    bool least = read_pair(arena, atom, "min", pair);
    if ((!least && !read_pair(arena, atom, "max", pair)) ||
        !value_of(arena, &pair[0], length, user, depth - 1, value) ||
        !value_of(arena, &pair[1], length, user, depth - 1, &second))
        return false;
    *value = (second < *value) == least ? second : *value;
    return true;
}

static bool value_of(po_arena *arena, const poly *p, po_size_length_fn length, void *user,
                     int depth, int64_t *value) {
    bool known = p->ok;
    *value = 0;
    for (uint32_t i = 0; i < p->n && known; i++) {
        int64_t product = p->t[i].coef, factor;
        for (uint32_t k = 0; k < p->t[i].n && known; k++)
            known = value_of_atom(arena, p->t[i].atom[k], length, user, depth, &factor) &&
                    po_mul_i64(product, factor, &product);
        known = known && po_add_i64(*value, product, value);
    }
    return known;
}

bool po_size_at(po_arena *arena, po_dim a, po_size_length_fn length, void *user, int64_t *value) {
    poly p = read_dim(arena, a);
    return value_of(arena, &p, length, user, MOST_NESTED, value);
}

/* --- in other words --- */

static bool build_poly(po_arena *arena, const poly *p, const po_size_builder *b, int depth,
                       uint32_t *out);

static bool build_term(po_arena *arena, const term *t, const po_size_builder *b, int depth,
                       uint32_t *out) {
    poly inside;
    int64_t by;
    if (depth == 0)
        return false;
    if (t->n == 1 && read_floor(arena, t->atom[0], &inside, &by)) {
        uint32_t of;
        if (!build_poly(arena, &inside, b, depth - 1, &of))
            return false;
        *out = b->quotient(b->user, of, by);
        return true;
    }
    poly whole = {.ok = true};
    term unit = *t;
    unit.coef = 1;
    add_term(&whole, &unit, 1);
    *out = b->name(b->user, write_poly(arena, &whole));
    return true;
}

static bool build_poly(po_arena *arena, const poly *p, const po_size_builder *b, int depth,
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
    poly p = read_dim(arena, a);
    return p.ok && build_poly(arena, &p, build, MOST_NESTED, out);
}
