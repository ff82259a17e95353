/* Degrees: what is known of a tensor's elements as quotients of polynomials in weights, inputs and
 * symbols. docs/proof.md has the argument that makes a bound on missed differences of them. */
#include "verify/proof/internal.h"

#include <math.h>

/* Constant denominators of at most this many elements become common ones. */
enum { MOST_COMMON = 4096 };

/* What a and b have in common; the degree is left to the caller. */
static po_pbound common(po_pbound a, const po_pbound *b) {
    a.newest = b->newest > a.newest ? b->newest : a.newest;
    a.own = a.own || b->own;
    if (a.form >= PO_FORM_MONOMIAL && b->form >= PO_FORM_MONOMIAL)
        a.form = PO_FORM_MONOMIAL;
    else if (a.form != b->form || !po_hash_equal(a.shift, b->shift))
        a.form = PO_FORM_OTHER;
    return a;
}

static po_psize plus(po_psize a, double times, po_psize b) {
    return (po_psize){a.degree + times * b.degree, a.terms + times * b.terms};
}

po_psize po_psize_larger(po_psize a, po_psize b) {
    return (po_psize){fmax(a.degree, b.degree), fmax(a.terms, b.terms)};
}

static po_psize under_size(const po_pbound *b) {
    return b->under ? b->under->size : (po_psize){0, 0};
}

po_psize po_pb_total(const po_pbound *b) {
    return plus(under_size(b), b->own ? 2 : 1, b->size);
}

po_pbound po_pb_symbol(po_prun *run) {
    return (po_pbound){.size = {1, 0}, .form = PO_FORM_FRESH, .newest = ++run->stamps};
}

po_pbound po_pb_constant(double degree) {
    return (po_pbound){.size = {degree, 0}, .form = PO_FORM_MONOMIAL};
}

po_pbound po_pb_numbers(double bits) {
    return (po_pbound){.size = {0, bits}, .form = PO_FORM_MONOMIAL};
}

/* --- common denominators --- */

/* Sorted lists of atoms; powers added, or the larger of both. */
static const po_punder *join(po_prun *run, const po_punder *a, const po_punder *b, bool add) {
    if (!a || !b || (a == b && !add))
        return a ? a : b;
    po_punder *u = PO_NEW(run->arena, po_punder);
    po_pfactor *list = PO_NEW_N(run->arena, po_pfactor, a->n + b->n);
    for (uint32_t i = 0, k = 0; i < a->n || k < b->n;) {
        const po_pfactor *x = i < a->n ? &a->factors[i] : NULL;
        const po_pfactor *y = k < b->n ? &b->factors[k] : NULL;
        po_pfactor f = x && (!y || x->atom <= y->atom) ? *x : *y;
        if (x && y && x->atom == y->atom)
            f.power = add ? x->power + y->power : fmax(x->power, y->power);
        i += x && x->atom == f.atom;
        k += y && y->atom == f.atom;
        u->size = plus(u->size, f.power, run->atoms[f.atom]);
        list[u->n++] = f;
    }
    u->factors = list;
    return u;
}

static const po_punder *raise(po_prun *run, const po_punder *a, double power) {
    if (!a || power == 1)
        return a;
    po_punder *u = PO_NEW(run->arena, po_punder);
    po_pfactor *list = po_arena_memdup(run->arena, a->factors, a->n * sizeof *list);
    for (uint32_t i = 0; i < a->n; i++)
        list[i].power *= power;
    *u = (po_punder){a->n, list, plus((po_psize){0, 0}, power, a->size)};
    return u;
}

static const po_punder *new_atom(po_prun *run, po_psize size) {
    po_punder *u = PO_NEW(run->arena, po_punder);
    po_pfactor *f = PO_NEW(run->arena, po_pfactor);
    *f = (po_pfactor){run->n_atoms, 1};
    PO_PUSH(run->arena, run->atoms, run->n_atoms, run->cap_atoms, size);
    *u = (po_punder){1, f, size};
    return u;
}

/* --- sums and products --- */

/* Over both denominators: each numerator is raised by what the other's has more. */
static po_pbound over_both(po_prun *run, const po_pbound *a, const po_pbound *b, bool crossed) {
    po_pbound s = common(*a, b);
    s.under = join(run, a->under, b->under, false);
    po_psize x = plus(plus(a->size, 1, under_size(&s)), -1, under_size(a));
    po_psize y = plus(plus(b->size, 1, under_size(&s)), -1, under_size(b));
    s.size = crossed && s.own ? plus(x, 1, y) : po_psize_larger(x, y);
    s.size.terms += crossed;
    return s;
}

po_pbound po_pb_either(po_prun *run, const po_pbound *a, const po_pbound *b) {
    return over_both(run, a, b, false);
}

po_pbound po_pb_sum(po_prun *run, const po_pbound *a, const po_pbound *b) {
    po_pbound s = over_both(run, a, b, true);
    s.form = PO_FORM_OTHER;
    return s;
}

po_pbound po_pb_product(po_prun *run, const po_pbound *a, const po_pbound *b) {
    po_pbound p = common(*a, b);
    p.under = join(run, a->under, b->under, true);
    p.size = plus(a->size, 1, b->size);
    p.form = p.form == PO_FORM_MONOMIAL ? p.form : PO_FORM_OTHER;
    return p;
}

po_pbound po_pb_power(po_prun *run, const po_pbound *a, double power) {
    po_pbound p = *a;
    p.size = plus((po_psize){0, 0}, power, a->size);
    p.under = raise(run, a->under, power);
    p.form = a->form >= PO_FORM_MONOMIAL ? PO_FORM_MONOMIAL : PO_FORM_OTHER;
    return p;
}

po_pbound po_pb_moved(const po_pbound *a) {
    po_pbound m = *a;
    m.form = m.form == PO_FORM_FRESH ? PO_FORM_MONOMIAL : m.form;
    return m;
}

po_pbound po_pb_several(const po_pbound *a, double n) {
    po_pbound s = *a;
    if (s.own)
        s.size = plus((po_psize){0, 0}, fmax(1, n), s.size);
    s.size.terms += 2 * log2(fmax(1, n));
    s.form = PO_FORM_OTHER;
    return s;
}

po_pbound po_pb_around(po_prun *run, const po_pbound *a) {
    po_pbound s = *a;
    s.size = po_psize_larger(a->size, plus((po_psize){1, 0}, 1, under_size(a)));
    s.size.terms += 2;
    s.form = PO_FORM_OTHER;
    s.newest = ++run->stamps;
    return s;
}

/* --- quotients --- */

void po_pb_shifted(po_ptensor *out, po_ptensor *pivot) {
    po_pbound *b = &out->bound;
    if (b->size.degree > 1 || b->own || b->under)
        return;
    b->pivot = pivot->bound.form == PO_FORM_SHIFTED ? pivot->bound.pivot : po_pt_print(pivot);
    b->form = PO_FORM_SHIFTED;
    b->shift = po_pt_print(out);
}

/* A symbol may be shifted in one way only to count as a variable. */
static bool is_only_shift(po_prun *run, const po_pbound *b) {
    uint32_t i = po_hash_map_get(run->poles, b->pivot);
    if (i != PO_NONE)
        return po_hash_equal(run->shifts[i], b->shift);
    po_hash_map_put(run->poles, b->pivot, run->n_shifts);
    PO_PUSH(run->arena, run->shifts, run->n_shifts, run->cap_shifts, b->shift);
    return true;
}

po_pbound po_pb_inverse(po_prun *run, const po_ptensor *of) {
    const po_pbound *b = &of->bound;
    po_pbound inverse = {.size = b->size, .form = PO_FORM_MONOMIAL, .newest = b->newest};
    if (!b->under && !b->own &&
        (b->form >= PO_FORM_MONOMIAL ||
         (b->form == PO_FORM_SHIFTED && b->size.degree <= 1 && is_only_shift(run, b))))
        return inverse;
    inverse.form = PO_FORM_OTHER;
    if (of->constant && !b->own && of->count <= MOST_COMMON) {
        double n = (double)of->count;
        inverse.under = new_atom(run, plus((po_psize){0, 0}, n, b->size));
        inverse.size = plus(under_size(b), n > 0 ? n - 1 : 0, b->size);
        return inverse;
    }
    inverse.own = true;
    inverse.size = plus(b->size, 1, under_size(b));
    return inverse;
}
