/* Forms of elements and numbers, and their arithmetic. */
#include "superopt/search/form_internal.h"

#include <math.h>

/* --- atoms as forms --- */

static uint32_t single(po_forms *f, uint32_t atom, int32_t power) {
    form_body body;
    form_build b = {0};
    if (atom == PO_NONE)
        return PO_NONE;
    memset(&body, 0, sizeof body);
    body.n_factors = 1;
    body.factor[0] = (form_factor){atom, power};
    form_build_add(f, &b, &body, PO_RATIONAL(1));
    return form_build_end(f, &b);
}

uint32_t po_form_leaf(po_forms *f, uint32_t tensor, uint32_t rank, const uint32_t *classes) {
    form_atom a;
    memset(&a, 0, sizeof a);
    a.kind = FORM_LEAF;
    a.tensor = tensor;
    a.n_labels = rank;
    for (uint32_t i = 0; i < rank; i++)
        a.label[i] = form_label_of(classes[i], 0);
    return single(f, form_intern(f, &f->atoms, &a), 1);
}

/* A fraction of small numbers, by halving; false for any other. */
static bool fraction(double value, po_rational *r) {
    int64_t den = 1;
    while (den < (int64_t)1 << 30 && value != floor(value)) {
        value *= 2;
        den *= 2;
    }
    return value == floor(value) && fabs(value) < (double)((int64_t)1 << 31) &&
           po_rational_make((int64_t)value, den, r);
}

uint32_t po_form_number(po_forms *f, double value) {
    po_rational r;
    form_body body;
    form_build b = {0};
    memset(&body, 0, sizeof body);
    if (fraction(value, &r)) {
        form_build_add(f, &b, &body, r);
        return form_build_end(f, &b);
    }
    form_atom a;
    memset(&a, 0, sizeof a);
    a.kind = FORM_NUMBER;
    a.value = value;
    return single(f, form_intern(f, &f->atoms, &a), 1);
}

/* --- arithmetic --- */

uint32_t po_form_add(po_forms *f, uint32_t a, uint32_t b) {
    form_build to = {0};
    if (a == PO_NONE || b == PO_NONE)
        return PO_NONE;
    for (uint32_t side = 0; side < 2; side++) {
        form_sum s = *form_sum_at(f, side ? b : a);
        for (uint32_t i = 0; i < s.n; i++) {
            form_body body = *form_body_at(f, s.term[i].body);
            form_build_add(f, &to, &body, s.term[i].scale);
        }
    }
    return form_build_end(f, &to);
}

uint32_t po_form_subtract(po_forms *f, uint32_t a, uint32_t b) {
    return b == PO_NONE ? b : po_form_add(f, a, form_scaled(f, b, PO_RATIONAL(-1)));
}

/* The factors of both, and their bound labels under names that nothing inside has. */
static bool join(po_forms *f, const form_body *a, const form_body *b, form_body *to) {
    const form_body *both[2] = {a, b};
    memset(to, 0, sizeof *to);
    if (a->n_bound + b->n_bound > FORM_BOUND || a->n_factors + b->n_factors > FORM_FACTORS)
        return false;
    for (uint32_t side = 0; side < 2; side++) {
        const form_body *from = both[side];
        form_map map = {.n = from->n_bound};
        for (uint32_t i = 0; i < from->n_bound; i++) {
            map.from[i] = from->bound[i];
            map.to[i] = form_label_of(form_class(from->bound[i]), FORM_TEMPORARY + to->n_bound);
            to->bound[to->n_bound++] = map.to[i];
        }
        for (uint32_t i = 0; i < from->n_factors; i++) {
            form_factor x = from->factor[i];
            x.atom = form_atom_rename(f, x.atom, &map);
            if (x.atom == PO_NONE)
                return false;
            to->factor[to->n_factors++] = x;
        }
    }
    return true;
}

uint32_t po_form_multiply(po_forms *f, uint32_t a, uint32_t b) {
    form_build to = {0};
    if (a == PO_NONE || b == PO_NONE)
        return PO_NONE;
    form_sum x = *form_sum_at(f, a), y = *form_sum_at(f, b);
    for (uint32_t i = 0; i < x.n; i++)
        for (uint32_t k = 0; k < y.n; k++) {
            form_body u = *form_body_at(f, x.term[i].body), v = *form_body_at(f, y.term[k].body), w;
            po_rational scale;
            if (!join(f, &u, &v, &w) || !po_rational_mul(x.term[i].scale, y.term[k].scale, &scale))
                return PO_NONE;
            form_build_add(f, &to, &w, scale);
        }
    return form_build_end(f, &to);
}

static bool binds(const po_forms *f, const form_body *b, uint32_t atom) {
    for (uint32_t i = 0; i < b->n_bound; i++)
        if (form_occurs(f, atom, b->bound[i]))
            return true;
    return false;
}

/* A factor that all terms of a sum have alike, outside what they bind. */
static bool common_factor(const po_forms *f, const form_sum *s, form_factor *found) {
    const form_body *first = form_body_at(f, s->term[0].body);
    for (uint32_t i = 0; i < first->n_factors; i++) {
        form_factor x = first->factor[i];
        bool all = !binds(f, first, x.atom);
        for (uint32_t k = 1; k < s->n && all; k++) {
            const form_body *b = form_body_at(f, s->term[k].body);
            all = false;
            for (uint32_t j = 0; j < b->n_factors; j++)
                all |= b->factor[j].atom == x.atom && b->factor[j].power == x.power &&
                       !binds(f, b, x.atom);
        }
        *found = x;
        if (all)
            return true;
    }
    return false;
}

/* The addends that the exponents of all terms have in common, outside what they bind: a form. */
static uint32_t common_exponent(po_forms *f, const form_sum *s) {
    form_build b = {0};
    uint32_t args[FORM_TERMS];
    for (uint32_t i = 0; i < s->n; i++) {
        const form_body *body = form_body_at(f, s->term[i].body);
        args[i] = PO_NONE;
        for (uint32_t k = 0; k < body->n_factors; k++)
            if (form_is_exp(f, body->factor[k].atom))
                args[i] = form_atom_at(f, body->factor[k].atom)->arg[0];
        if (args[i] == PO_NONE)
            return PO_NONE;
    }
    form_sum first = *form_sum_at(f, args[0]);
    for (uint32_t t = 0; t < first.n; t++) {
        form_body addend = *form_body_at(f, first.term[t].body);
        bool all = true;
        for (uint32_t i = 0; i < s->n && all; i++) {
            const form_sum *other = form_sum_at(f, args[i]);
            const form_body *body = form_body_at(f, s->term[i].body);
            all = false;
            for (uint32_t k = 0; k < other->n; k++)
                all |= other->term[k].body == first.term[t].body &&
                       other->term[k].scale.num == first.term[t].scale.num &&
                       other->term[k].scale.den == first.term[t].scale.den;
            for (uint32_t k = 0; k < addend.n_factors && all; k++)
                all = !binds(f, body, addend.factor[k].atom);
        }
        if (all)
            form_build_add(f, &b, &addend, first.term[t].scale);
    }
    return b.n ? form_build_end(f, &b) : PO_NONE;
}

/* 1 / form. */
static uint32_t inverse(po_forms *f, uint32_t form) {
    form_sum s = *form_sum_at(f, form);
    po_rational r;
    form_factor common;
    if (s.n == 0)
        return PO_NONE;
    form_body body = *form_body_at(f, s.term[0].body);
    if (!po_rational_make(s.term[0].scale.den, s.term[0].scale.num, &r))
        return PO_NONE;
    if (s.n == 1 && body.n_bound == 0) {
        form_build b = {0};
        for (uint32_t i = 0; i < body.n_factors; i++)
            body.factor[i].power = -body.factor[i].power;
        form_build_add(f, &b, &body, r);
        return form_build_end(f, &b);
    }
    if (r.num != 1 || r.den != 1) {
        uint32_t rest = form_scaled(f, form, r);
        rest = rest == PO_NONE ? rest : inverse(f, rest);
        return rest == PO_NONE ? rest : form_scaled(f, rest, r);
    }
    if (common_factor(f, &s, &common)) {
        uint32_t out = single(f, common.atom, -common.power);
        uint32_t rest = po_form_multiply(f, form, out);
        return rest == PO_NONE ? rest : po_form_multiply(f, out, inverse(f, rest));
    }
    uint32_t shift = f->exact ? common_exponent(f, &s) : PO_NONE;
    if (shift != PO_NONE) {
        uint32_t minus = form_scaled(f, shift, PO_RATIONAL(-1));
        uint32_t out = po_form_apply(f, PO_MU_EXP, &minus);
        uint32_t rest = po_form_multiply(f, form, out);
        return rest == PO_NONE ? rest : po_form_multiply(f, out, inverse(f, rest));
    }
    form_atom a;
    memset(&a, 0, sizeof a);
    a.kind = FORM_OF;
    a.n_args = 1;
    a.arg[0] = form;
    return single(f, form_intern(f, &f->atoms, &a), -1);
}

uint32_t po_form_divide(po_forms *f, uint32_t a, uint32_t b) {
    return a == PO_NONE || b == PO_NONE ? PO_NONE : po_form_multiply(f, a, inverse(f, b));
}

uint32_t po_form_apply(po_forms *f, po_mu_function function, const uint32_t *x) {
    for (uint32_t i = 0; i < po_mu_arity(function); i++)
        if (x[i] == PO_NONE)
            return PO_NONE;
    switch (function) {
    case PO_MU_PLUS:
        return po_form_add(f, x[0], x[1]);
    case PO_MU_MINUS:
        return po_form_subtract(f, x[0], x[1]);
    case PO_MU_TIMES:
        return po_form_multiply(f, x[0], x[1]);
    case PO_MU_OVER:
        return po_form_divide(f, x[0], x[1]);
    case PO_MU_NEGATE:
        return form_scaled(f, x[0], PO_RATIONAL(-1));
    case PO_MU_EXP:
        if (f->exact && form_sum_at(f, x[0])->n == 0)
            return po_form_number(f, 1);
        break;
    case PO_MU_MAX:
    case PO_MU_MIN:
        if (x[0] == x[1])
            return x[0];
        if (x[0] > x[1]) {
            uint32_t turned[2] = {x[1], x[0]};
            return single(f, form_function_atom(f, function, turned), 1);
        }
        break;
    case PO_MU_CONST:
    case PO_MU_OPERAND:
        return PO_NONE;
    default:
        break;
    }
    return single(f, form_function_atom(f, function, x), 1);
}

uint32_t po_form_sum(po_forms *f, uint32_t a, uint32_t class) {
    form_build b = {0};
    if (a == PO_NONE)
        return a;
    form_sum s = *form_sum_at(f, a);
    form_map map = {1, {form_label_of(class, 0)}, {form_label_of(class, FORM_TEMPORARY)}};
    for (uint32_t i = 0; i < s.n; i++) {
        form_body body = *form_body_at(f, s.term[i].body);
        if (body.n_bound == FORM_BOUND)
            return PO_NONE;
        for (uint32_t k = 0; k < body.n_factors; k++) {
            body.factor[k].atom = form_atom_rename(f, body.factor[k].atom, &map);
            if (body.factor[k].atom == PO_NONE)
                return PO_NONE;
        }
        body.bound[body.n_bound++] = map.to[0];
        form_build_add(f, &b, &body, s.term[i].scale);
    }
    return form_build_end(f, &b);
}

uint32_t po_form_maximum(po_forms *f, uint32_t a, uint32_t class) {
    if (a == PO_NONE || !(po_form_labels(f, a) >> class & 1))
        return a;
    form_map map = {
        1, {form_label_of(class, 0)}, {form_label_of(class, f->sums.facts[a].height + 1)}};
    form_atom atom;
    memset(&atom, 0, sizeof atom);
    atom.kind = FORM_MAXIMUM;
    atom.n_labels = 1;
    atom.label[0] = map.to[0];
    atom.n_args = 1;
    atom.arg[0] = form_rename(f, a, &map);
    return atom.arg[0] == PO_NONE ? PO_NONE : single(f, form_intern(f, &f->atoms, &atom), 1);
}
