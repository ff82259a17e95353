/* Lengths as polynomials: their terms, and the text of the normal form, read and written. */
#include "ir/size_poly.h"

#include "base/num.h"
#include "base/str.h"

/* --- terms --- */

static int compare_atoms(const po_size_term *a, const po_size_term *b) {
    if (a->n != b->n)
        return a->n > b->n ? -1 : 1;
    int order = 0;
    for (uint32_t i = 0; i < a->n && order == 0; i++)
        order = strcmp(a->atom[i], b->atom[i]);
    return order;
}

void po_size_add_term(po_size_poly *p, const po_size_term *t, int64_t times) {
    po_size_term scaled = *t;
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

void po_size_add_number(po_size_poly *p, int64_t n) {
    po_size_add_term(p, &(po_size_term){.coef = n}, 1);
}

void po_size_add_poly(po_size_poly *p, const po_size_poly *q, int64_t times) {
    p->ok = p->ok && q->ok;
    for (uint32_t i = 0; i < q->n && p->ok; i++)
        po_size_add_term(p, &q->t[i], times);
}

bool po_size_put_atom(po_size_term *t, const char *atom) {
    uint32_t at = t->n;
    if (t->n == PO_SIZE_DEGREE)
        return false;
    for (; at > 0 && strcmp(t->atom[at - 1], atom) > 0; at--)
        t->atom[at] = t->atom[at - 1];
    t->atom[at] = atom;
    t->n++;
    return true;
}

po_size_poly po_size_product(const po_size_poly *a, const po_size_poly *b) {
    po_size_poly p = {.ok = a->ok && b->ok};
    for (uint32_t i = 0; i < a->n && p.ok; i++)
        for (uint32_t j = 0; j < b->n && p.ok; j++) {
            po_size_term t = a->t[i];
            p.ok = po_mul_i64(t.coef, b->t[j].coef, &t.coef);
            for (uint32_t k = 0; k < b->t[j].n && p.ok; k++)
                p.ok = po_size_put_atom(&t, b->t[j].atom[k]);
            po_size_add_term(&p, &t, 1);
        }
    return p;
}

bool po_size_is_number(const po_size_poly *p, int64_t *n) {
    *n = p->n ? p->t[0].coef : 0;
    return p->ok && (p->n == 0 || (p->n == 1 && p->t[0].n == 0));
}

const char *po_size_is_atom(const po_size_poly *p) {
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

bool po_size_is_plain(const char *name) {
    return is_letter(name[0]) && *skip_word(name) == '\0' && strcmp(name, "floor") != 0 &&
           strcmp(name, "min") != 0 && strcmp(name, "max") != 0;
}

static const char *copied(po_arena *arena, const char *from, const char *to) {
    const size_t n = (size_t)(to - from);
    char *text = PO_NEW_N(arena, char, n + 1);
    memcpy(text, from, n);
    text[n] = '\0';
    return text;
}

static const char *read_atom(po_arena *arena, const char **at) {
    const char *from = *at, *to = is_letter(*from) ? skip_word(from) : from;
    if (to > from && *to == '(')
        to = skip_closed(to);
    *at = to;
    return to > from ? copied(arena, from, to) : NULL;
}

static bool read_term(po_arena *arena, const char **at, po_size_term *t) {
    bool first = true;
    *t = (po_size_term){.coef = 1};
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
            if (!atom || !po_size_put_atom(t, atom))
                return false;
        }
        first = false;
    } while (**at == '*');
    return true;
}

/* What is written in [p, end). */
static po_size_poly read_text(po_arena *arena, const char *p, const char *end) {
    po_size_poly out = {.ok = p < end};
    while (p < end && out.ok) {
        int64_t sign = 1;
        po_size_term t;
        for (; p < end && (*p == ' ' || *p == '+' || *p == '-'); p++)
            sign = *p == '-' ? -1 : sign;
        out.ok = read_term(arena, &p, &t);
        if (out.ok)
            po_size_add_term(&out, &t, sign);
    }
    out.ok = out.ok && p == end;
    return out;
}

po_size_poly po_size_read(po_arena *arena, po_dim d) {
    po_size_poly p = {.ok = d.value >= 0 || d.symbol};
    if (d.value >= 0) {
        po_size_add_number(&p, d.value);
    } else if (po_size_made(d.symbol)) {
        size_t n = strlen(d.symbol);
        p = n > 2 && d.symbol[n - 1] == ')' ? read_text(arena, d.symbol + 1, d.symbol + n - 1)
                                            : (po_size_poly){0};
    } else if (d.symbol && po_size_is_plain(d.symbol)) {
        po_size_add_term(&p, &(po_size_term){.coef = 1, .n = 1, .atom = {d.symbol}}, 1);
    } else {
        p.ok = false;
    }
    return p;
}

/* --- writing --- */

const char *po_size_text_of(po_arena *arena, const po_size_poly *p) {
    po_text text;
    po_text_init(&text, arena);
    for (uint32_t i = 0; i < p->n; i++) {
        const po_size_term *t = &p->t[i];
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

po_dim po_size_dim_of(po_arena *arena, const po_size_poly *p) {
    int64_t n;
    if (po_size_is_number(p, &n))
        return n >= 0 ? PO_DIM(n) : PO_DIM_UNKNOWN;
    if (!p->ok)
        return PO_DIM_UNKNOWN;
    const char *atom = po_size_is_atom(p);
    if (atom && po_size_is_plain(atom))
        return (po_dim){-1, atom};
    const char *text = po_size_text_of(arena, p);
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

bool po_size_read_floor(po_arena *arena, const char *atom, po_size_poly *inside, int64_t *n) {
    const char *part[2][2];
    if (!parts_of(atom, "floor", '/', part))
        return false;
    if (*part[0][0] == '(' && skip_closed(part[0][0]) == part[0][1]) {
        part[0][0]++;
        part[0][1]--;
    }
    *inside = read_text(arena, part[0][0], part[0][1]);
    po_size_poly by = read_text(arena, part[1][0], part[1][1]);
    return inside->ok && po_size_is_number(&by, n) && *n > 0;
}

bool po_size_read_pair(po_arena *arena, const char *atom, const char *word, po_size_poly pair[2]) {
    const char *part[2][2];
    if (!parts_of(atom, word, ',', part))
        return false;
    for (uint32_t i = 0; i < 2; i++)
        pair[i] = read_text(arena, part[i][0], part[i][1]);
    return pair[0].ok && pair[1].ok;
}
