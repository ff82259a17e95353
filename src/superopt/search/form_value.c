/* The value of forms at one point drawn at random, modulo p: equal forms have equal values, so
 * that unequal values tell forms apart without making them.
 *
 * A sum over a label is one with weights over two places, whose weights add up to the label's
 * length: so it is linear, sums exchange, and what does not hang on the label comes out of it times
 * its length. Functions are drawn at random; a maximum goes by an order that is. A free label has a
 * place by its class. */
#include "mugraph/field.h"
#include "superopt/search/form_internal.h"

#include <stdlib.h>

static const po_mu_field field = PO_MU_FIELD_P;

enum { PLACES = 2, MOST_OPEN = 64, SEED = 11 };

/* Labels bound around an atom that occur in it. */
typedef struct occurring {
    bool known;
    uint32_t n;
    form_label *label;
} occurring;

struct po_form_values {
    po_forms *f;
    po_arena *arena;
    occurring *atoms; /* by atom */
    uint32_t n_atoms;
    po_hash_map *seen; /* of values, by atom and places */
    uint64_t *values;
    uint32_t n, cap;
    uint32_t n_open; /* labels bound around what is looked at, and their places */
    form_label open[MOST_OPEN];
    uint32_t place[MOST_OPEN];
    bool too_deep;
};

/* --- what an atom hangs on --- */

static void add(po_arena *arena, occurring *o, form_label l) {
    for (uint32_t i = 0; i < o->n; i++)
        if (o->label[i] == l)
            return;
    form_label *more = PO_NEW_N(arena, form_label, o->n + 1);
    if (o->n)
        memcpy(more, o->label, o->n * sizeof *more);
    more[o->n++] = l;
    o->label = more;
}

static const occurring *occurring_in(po_form_values *v, uint32_t atom) {
    if (atom >= v->n_atoms) {
        uint32_t n = 2 * v->f->atoms.n;
        occurring *more = PO_NEW_N(v->arena, occurring, n);
        if (v->n_atoms)
            memcpy(more, v->atoms, v->n_atoms * sizeof *more);
        v->atoms = more;
        v->n_atoms = n;
    }
    if (v->atoms[atom].known)
        return &v->atoms[atom];
    occurring o = {.known = true};
    const form_atom *a = form_atom_at(v->f, atom);
    for (uint32_t i = a->kind == FORM_MAXIMUM; i < a->n_labels; i++)
        if (form_height(a->label[i]))
            add(v->arena, &o, a->label[i]);
    for (uint32_t i = 0; i < a->n_args; i++) {
        const form_sum *s = form_sum_at(v->f, a->arg[i]);
        for (uint32_t t = 0; t < s->n; t++) {
            const form_body *b = form_body_at(v->f, s->term[t].body);
            for (uint32_t k = 0; k < b->n_factors; k++) {
                const occurring inner = *occurring_in(v, b->factor[k].atom);
                for (uint32_t j = 0; j < inner.n; j++) {
                    bool bound = a->kind == FORM_MAXIMUM && a->label[0] == inner.label[j];
                    for (uint32_t x = 0; x < b->n_bound; x++)
                        bound |= b->bound[x] == inner.label[j];
                    if (!bound)
                        add(v->arena, &o, inner.label[j]);
                }
            }
        }
    }
    v->atoms[atom] = o;
    return &v->atoms[atom];
}

/* --- values --- */

static uint64_t drawn(uint64_t stream, uint64_t index) {
    return po_random_u64(SEED, stream, index) % (PO_MU_P - 1) + 1;
}

static uint64_t fraction(po_rational r) {
    return po_mu_field_mul(field, po_mu_field_i64(field, r.num),
                           po_mu_field_inverse(field, po_mu_field_i64(field, r.den)));
}

static uint64_t weight_of(const po_form_values *v, form_label l, uint32_t place) {
    int64_t extent = v->f->extent[form_class(l)];
    uint64_t first = drawn(1, (uint64_t)extent);
    return place == 0 ? first : po_mu_field_sub(field, po_mu_field_i64(field, extent), first);
}

static uint32_t place_of(const po_form_values *v, form_label l) {
    for (uint32_t i = v->n_open; i-- > 0;)
        if (v->open[i] == l)
            return v->place[i];
    return PLACES + form_class(l);
}

static uint64_t powered(uint64_t base, int32_t power) {
    uint64_t x = po_mu_field_pow(field, base, (uint64_t)abs(power));
    return power < 0 ? po_mu_field_inverse(field, x) : x;
}

static uint64_t of_atom(po_form_values *v, uint32_t atom);

/* The rest of a body's sum, from the bound label `at` on. */
static uint64_t of_body(po_form_values *v, const form_body *b, uint32_t at) {
    uint64_t sum = 0;
    if (at == b->n_bound) {
        uint64_t product = 1;
        for (uint32_t k = 0; k < b->n_factors; k++)
            product = po_mu_field_mul(field, product,
                                      powered(of_atom(v, b->factor[k].atom), b->factor[k].power));
        return product;
    }
    uint32_t own = v->n_open;
    if (own == MOST_OPEN) {
        v->too_deep = true;
        return 0;
    }
    v->open[v->n_open++] = b->bound[at];
    for (uint32_t place = 0; place < PLACES; place++) {
        v->place[own] = place;
        sum = po_mu_field_add(
            field, sum,
            po_mu_field_mul(field, weight_of(v, b->bound[at], place), of_body(v, b, at + 1)));
    }
    v->n_open--;
    return sum;
}

static uint64_t of_form(po_form_values *v, uint32_t form) {
    uint64_t sum = 0;
    const form_sum *s = form_sum_at(v->f, form);
    for (uint32_t i = 0; i < s->n; i++)
        sum = po_mu_field_add(field, sum,
                              po_mu_field_mul(field, fraction(s->term[i].scale),
                                              of_body(v, form_body_at(v->f, s->term[i].body), 0)));
    return sum;
}

static uint64_t greater(uint64_t a, uint64_t b) {
    return po_random_u64(SEED, 2, a) > po_random_u64(SEED, 2, b) ? a : b;
}

static uint64_t made(po_form_values *v, const form_atom *a) {
    uint64_t x[3] = {0}, h = a->tensor;
    switch ((form_kind)a->kind) {
    case FORM_LEAF:
        for (uint32_t i = 0; i < a->n_labels; i++)
            h = po_random_u64(SEED, h, place_of(v, a->label[i]));
        return drawn(3, h);
    case FORM_NUMBER:
        memcpy(&h, &a->value, sizeof h);
        return drawn(4, h);
    case FORM_OF:
        return of_form(v, a->arg[0]);
    case FORM_MAXIMUM: {
        uint32_t own = v->n_open;
        if (own == MOST_OPEN) {
            v->too_deep = true;
            return 0;
        }
        v->open[v->n_open++] = a->label[0];
        for (uint32_t place = 0; place < PLACES; place++) {
            v->place[own] = place;
            x[place] = of_form(v, a->arg[0]);
        }
        v->n_open--;
        return greater(x[0], x[1]);
    }
    case FORM_FUNCTION:
        break;
    }
    for (uint32_t i = 0; i < a->n_args; i++)
        x[i] = of_form(v, a->arg[i]);
    if (a->function == PO_MU_MAX || a->function == PO_MU_MIN) { /* in any order */
        uint64_t first = greater(x[0], x[1]);
        return a->function == PO_MU_MAX ? first : first == x[0] ? x[1] : x[0];
    }
    h = a->function;
    for (uint32_t i = 0; i < a->n_args; i++)
        h = po_random_u64(SEED, h, x[i]);
    return drawn(5, h);
}

static uint64_t of_atom(po_form_values *v, uint32_t atom) {
    const occurring o = *occurring_in(v, atom);
    po_hash key = po_hash_u64((po_hash){7, 7}, atom);
    for (uint32_t i = 0; i < o.n; i++)
        key = po_hash_u64(key, place_of(v, o.label[i]));
    uint32_t known = po_hash_map_get(v->seen, key);
    if (known != PO_NONE)
        return v->values[known];
    uint64_t value = made(v, form_atom_at(v->f, atom));
    po_hash_map_put(v->seen, key, v->n);
    PO_PUSH(v->arena, v->values, v->n, v->cap, value);
    return value;
}

po_form_values *po_form_values_create(po_arena *arena, po_forms *f) {
    po_form_values *v = PO_NEW(arena, po_form_values);
    v->f = f;
    v->arena = arena;
    v->seen = po_hash_map_create(arena);
    return v;
}

bool po_form_value(po_form_values *v, uint32_t form, uint64_t *value) {
    *value = of_form(v, form);
    return !v->too_deep;
}
