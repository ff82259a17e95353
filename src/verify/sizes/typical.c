/* Whether two values, whose terms are equal at the lengths that are tried, have equal terms:
 * whether all that they read can be told apart there. */
#include "base/num.h"
#include "ir/size.h"
#include "verify/sizes/internal.h"

#include <math.h>

/* What is compared: the values' digits in order, whatever axes they lie on, those of one fixed run
 * taken together; and what reads them, on both sides. */
struct po_compared {
    po_arena *arena;
    const po_names *names;
    const po_piece *part;
    uint32_t n_digits, n_reads, cap_reads, n_ties, cap_ties;
    po_dim digit[PO_MAKEUP_DIGITS];
    po_makeup_read *reads;
    po_makeup_tie *ties;
    int64_t *margin;          /* by read: how far from the ends of its leaf it must be */
    double places, arguments; /* indices that products of both may have, and what they are of */
    bool sums, means;
};

/* The digits of one side; place: by its own digits, where they are. */
static uint32_t line_up(po_arena *arena, const po_makeup *m, po_dim *digit, uint32_t *place) {
    uint32_t n = 0;
    bool fixed = false;
    for (uint32_t i = 0; i < m->n_digits; i++) {
        const po_dim size = m->digit[i].size;
        place[i] = n;
        if (size.value == 1)
            continue;
        if (size.value >= 0 && fixed) {
            digit[n - 1] = po_size_mul(arena, digit[n - 1], size);
            continue;
        }
        digit[n++] = size;
        fixed = size.value >= 0;
    }
    return n;
}

po_compared *po_compared_create(po_arena *arena, const po_names *names, const po_piece *part) {
    po_compared *r = PO_NEW(arena, po_compared);
    *r = (po_compared){.arena = arena, .names = names, .part = part, .n_digits = PO_NONE};
    return r;
}

bool po_compared_add(po_compared *r, const po_makeup *m) {
    po_dim digit[PO_MAKEUP_DIGITS];
    uint32_t place[PO_MAKEUP_DIGITS], n = line_up(r->arena, m, digit, place);
    if (r->n_digits == PO_NONE) {
        r->n_digits = n;
        memcpy(r->digit, digit, n * sizeof *digit);
    }
    if (n != r->n_digits)
        return false;
    for (uint32_t i = 0; i < n; i++)
        if (!po_dim_same(digit[i], r->digit[i]))
            return false;
    for (uint32_t i = 0; i < m->n_reads; i++) {
        po_makeup_read read = m->reads[i];
        read.digit = place[read.digit];
        PO_PUSH(r->arena, r->reads, r->n_reads, r->cap_reads, read);
    }
    for (uint32_t i = 0; i < m->n_ties; i++)
        PO_PUSH(r->arena, r->ties, r->n_ties, r->cap_ties, m->ties[i]);
    r->places += m->places;
    r->arguments += m->needed;
    r->sums |= m->sums;
    r->means |= m->means;
    return true;
}

static int64_t leaf_length(const po_compared *r, uint32_t leaf, uint32_t axis) {
    return po_names_tried(r->names, r->part->leaves[leaf]->dims[axis]);
}

static int64_t reach_of(po_read r) {
    return (r.beta < 0 ? -r.beta : r.beta) + (r.m > r.alpha ? r.m : r.alpha) - 1;
}

/* Whether more than one digit reads a leaf's axis, or all of it is added up: then what is read of a
 * place must be told from the ends, where sums of windows differ, and from places that are named.
 * *margin: how far they reach. */
static bool is_shared(const po_compared *r, uint32_t leaf, uint32_t axis, int64_t *margin) {
    uint32_t digit = PO_NONE;
    bool shared = false;
    *margin = 0;
    for (uint32_t i = 0; i < r->n_reads; i++) {
        const po_makeup_read *a = &r->reads[i];
        if (a->leaf != leaf || a->leaf_axis != axis)
            continue;
        shared |= digit != PO_NONE && digit != a->digit;
        digit = a->digit;
        *margin = reach_of(a->read) > *margin ? reach_of(a->read) : *margin;
    }
    for (uint32_t i = 0; i < r->n_ties; i++) {
        const po_makeup_tie *t = &r->ties[i];
        if (t->leaf != leaf || t->leaf_axis != axis)
            continue;
        const int64_t reach = t->place == PO_EVERY_PLACE ? reach_of(t->read) : t->place + 1;
        shared = true;
        *margin = reach > *margin ? reach : *margin;
    }
    return shared;
}

/* All that is read of place y along a digit is inside of its leaf, and apart. */
static bool is_typical(const po_compared *r, uint32_t digit, int64_t y) {
    for (uint32_t i = 0; i < r->n_reads; i++) {
        const po_makeup_read *a = &r->reads[i];
        int64_t x, z;
        if (a->digit != digit || !po_read_at(a->read, y, &x))
            continue;
        if (x < r->margin[i] || x >= leaf_length(r, a->leaf, a->leaf_axis) - r->margin[i])
            return false;
        for (uint32_t k = 0; k < i; k++) {
            const po_makeup_read *b = &r->reads[k];
            if (b->digit == digit && b->leaf == a->leaf && b->leaf_axis == a->leaf_axis &&
                po_read_at(b->read, y, &z) && z == x &&
                (a->absent != b->absent || !po_read_along(a->read, b->read)))
                return false;
        }
    }
    return true;
}

/* There is such a place of every class of places. */
static bool has_typical(const po_compared *r, uint32_t digit, int64_t length) {
    enum { MOST_CLASSES = 4096 };
    int64_t classes = 1;
    for (uint32_t i = 0; i < r->n_reads; i++)
        if (r->reads[i].digit == digit) {
            const int64_t m = r->reads[i].read.m;
            classes = classes / po_gcd_i64(classes, m) * m;
            if (classes > MOST_CLASSES)
                return false;
        }
    for (int64_t c = 0; c < classes; c++) {
        int64_t y = c;
        while (y < length && !is_typical(r, digit, y))
            y += classes;
        if (y >= length)
            return false;
    }
    return true;
}

/* A leaf's axis has a place for each index that a product may have there: those that are added up,
 * the digits that read it, and what lies about them. */
static bool has_room(const po_compared *r, uint32_t leaf, uint32_t axis) {
    double needed = fmax(r->places, r->arguments);
    int64_t margin;
    if (!is_shared(r, leaf, axis, &margin))
        return true;
    for (uint32_t d = 0; d < r->n_digits; d++) {
        bool reads_it = false;
        for (uint32_t i = 0; i < r->n_reads; i++)
            reads_it |=
                r->reads[i].leaf == leaf && r->reads[i].leaf_axis == axis && r->reads[i].digit == d;
        needed += reads_it;
    }
    return (double)leaf_length(r, leaf, axis) >= needed + 4 * (double)margin;
}

/* The assignment that is tried tells all terms of both sides apart. */
bool po_compared_apart(po_compared *r, const char **why) {
    /* A length that is a number in one model must not make a mean of a sum. */
    *why = "it has both sums and means over open axes";
    if (r->sums && r->means)
        return false;
    *why = "the lengths that are tried are too small";
    r->margin = PO_NEW_N(r->arena, int64_t, r->n_reads);
    for (uint32_t i = 0; i < r->n_reads; i++) {
        const po_makeup_read *a = &r->reads[i];
        if (!is_shared(r, a->leaf, a->leaf_axis, &r->margin[i]))
            r->margin[i] = 0;
        if (!has_room(r, a->leaf, a->leaf_axis))
            return false;
    }
    for (uint32_t i = 0; i < r->n_ties; i++)
        if (!has_room(r, r->ties[i].leaf, r->ties[i].leaf_axis))
            return false;
    for (uint32_t d = 0; d < r->n_digits; d++)
        if (r->digit[d].value < 0) {
            const int64_t length = po_names_tried(r->names, r->digit[d]);
            if (length < 1 || !has_typical(r, d, length))
                return false;
        }
    return true;
}
