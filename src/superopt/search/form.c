/* Atoms, bodies and sums are interned in hash tables, so that equal forms have equal numbers. Terms
 * are put in order here: equal factors merged, and bound labels named by the least of all
 * orders. */
#include "superopt/search/form_internal.h"

#include <stdlib.h>

/* --- tables --- */

const form_atom *form_atom_at(const po_forms *f, uint32_t i) {
    return (const form_atom *)(const void *)f->atoms.items + i;
}

const form_body *form_body_at(const po_forms *f, uint32_t i) {
    return (const form_body *)(const void *)f->bodies.items + i;
}

const form_sum *form_sum_at(const po_forms *f, uint32_t i) {
    return (const form_sum *)(const void *)f->sums.items + i;
}

static form_table new_table(po_arena *arena, size_t item) {
    return (form_table){.item = item, .map = po_hash_map_create(arena)};
}

po_forms *po_forms_create(po_arena *arena, bool exact, uint32_t n_classes, const int64_t *extents) {
    po_forms *f = PO_NEW(arena, po_forms);
    f->arena = arena;
    f->exact = exact;
    f->n_classes = n_classes;
    memcpy(f->extent, extents, n_classes * sizeof *extents);
    f->atoms = new_table(arena, sizeof(form_atom));
    f->bodies = new_table(arena, sizeof(form_body));
    f->sums = new_table(arena, sizeof(form_sum));
    return f;
}

/* --- what is known of parts --- */

static void add_label(form_facts *facts, form_label l) {
    if (form_height(l) == 0)
        facts->free |= (uint64_t)1 << form_class(l);
    else
        facts->bound |= (uint64_t)1 << form_class(l);
}

static void add_facts(form_facts *to, const form_facts *from) {
    to->free |= from->free;
    to->bound |= from->bound;
    to->size += from->size;
    if (from->height > to->height)
        to->height = from->height;
}

static form_facts facts_of(const po_forms *f, const form_table *t, const void *item) {
    form_facts facts = {.size = 1};
    if (t == &f->atoms) {
        const form_atom *a = item;
        for (uint32_t i = 0; i < a->n_labels; i++)
            add_label(&facts, a->label[i]);
        for (uint32_t i = 0; i < a->n_args; i++)
            add_facts(&facts, &f->sums.facts[a->arg[i]]);
        if (a->kind == FORM_MAXIMUM && form_height(a->label[0]) > facts.height)
            facts.height = form_height(a->label[0]);
    } else if (t == &f->bodies) {
        const form_body *b = item;
        facts.size += b->n_bound;
        for (uint32_t i = 0; i < b->n_factors; i++) {
            add_facts(&facts, &f->atoms.facts[b->factor[i].atom]);
            uint32_t more = (uint32_t)abs(b->factor[i].power) - 1;
            facts.size += more * f->atoms.facts[b->factor[i].atom].size;
        }
        for (uint32_t i = 0; i < b->n_bound; i++)
            if (form_height(b->bound[i]) > facts.height)
                facts.height = form_height(b->bound[i]);
    } else {
        const form_sum *s = item;
        for (uint32_t i = 0; i < s->n; i++) {
            add_facts(&facts, &f->bodies.facts[s->term[i].body]);
            facts.size += s->term[i].scale.num != 1 || s->term[i].scale.den != 1;
        }
    }
    return facts;
}

uint32_t form_intern(po_forms *f, form_table *t, const void *item) {
    po_hash key = po_hash_bytes(item, t->item, (po_hash){0});
    uint32_t i = po_hash_map_get(t->map, key);
    if (i != PO_NONE)
        return memcmp(t->items + i * t->item, item, t->item) == 0 ? i : PO_NONE;
    if (t->n == t->cap_items)
        t->items = po_arena_grow(f->arena, t->items, &t->cap_items, t->n + 1, t->item);
    memcpy(t->items + t->n * t->item, item, t->item);
    uint32_t n = t->n;
    form_facts facts = facts_of(f, t, item);
    PO_PUSH(f->arena, t->facts, n, t->cap_facts, facts);
    po_hash_map_put(t->map, key, t->n);
    return t->n++;
}

static bool form_occurs_in(const po_forms *f, uint32_t form, form_label label);

bool form_occurs(const po_forms *f, uint32_t atom, form_label label) {
    const form_atom *a = form_atom_at(f, atom);
    const form_facts *facts = &f->atoms.facts[atom];
    uint64_t bit = (uint64_t)1 << form_class(label);
    if (!((form_height(label) ? facts->bound : facts->free) & bit))
        return false;
    for (uint32_t i = 0; i < a->n_labels; i++)
        if (a->label[i] == label)
            return true;
    for (uint32_t i = 0; i < a->n_args; i++)
        if (form_occurs_in(f, a->arg[i], label))
            return true;
    return false;
}

static bool form_occurs_in(const po_forms *f, uint32_t form, form_label label) {
    const form_sum *s = form_sum_at(f, form);
    for (uint32_t i = 0; i < s->n; i++) {
        const form_body *b = form_body_at(f, s->term[i].body);
        for (uint32_t k = 0; k < b->n_factors; k++)
            if (form_occurs(f, b->factor[k].atom, label))
                return true;
    }
    return false;
}

/* --- renaming --- */

static form_label mapped(const form_map *map, form_label l) {
    for (uint32_t i = 0; i < map->n; i++)
        if (map->from[i] == l)
            return map->to[i];
    return l;
}

static bool touches(const form_facts *facts, const form_map *map) {
    for (uint32_t i = 0; i < map->n; i++) {
        uint64_t bit = (uint64_t)1 << form_class(map->from[i]);
        if ((form_height(map->from[i]) ? facts->bound : facts->free) & bit)
            return true;
    }
    return false;
}

uint32_t form_rename(po_forms *f, uint32_t form, const form_map *map) {
    if (!touches(&f->sums.facts[form], map))
        return form;
    form_sum s = *form_sum_at(f, form);
    form_build b = {0};
    for (uint32_t i = 0; i < s.n && !b.failed; i++) {
        form_body body = *form_body_at(f, s.term[i].body);
        for (uint32_t k = 0; k < body.n_factors; k++) {
            body.factor[k].atom = form_atom_rename(f, body.factor[k].atom, map);
            b.failed |= body.factor[k].atom == PO_NONE;
        }
        if (!b.failed)
            form_build_add(f, &b, &body, s.term[i].scale);
    }
    return form_build_end(f, &b);
}

uint32_t form_atom_rename(po_forms *f, uint32_t atom, const form_map *map) {
    if (!touches(&f->atoms.facts[atom], map))
        return atom;
    form_atom a = *form_atom_at(f, atom);
    for (uint32_t i = a.kind == FORM_MAXIMUM; i < a.n_labels; i++)
        a.label[i] = mapped(map, a.label[i]);
    for (uint32_t i = 0; i < a.n_args; i++) {
        a.arg[i] = form_rename(f, a.arg[i], map);
        if (a.arg[i] == PO_NONE)
            return PO_NONE;
    }
    return form_intern(f, &f->atoms, &a);
}

/* --- terms in order --- */

static void order_factors(form_body *b) {
    for (uint32_t i = 1; i < b->n_factors; i++)
        for (uint32_t k = i; k > 0 && b->factor[k].atom < b->factor[k - 1].atom; k--) {
            form_factor t = b->factor[k];
            b->factor[k] = b->factor[k - 1];
            b->factor[k - 1] = t;
        }
}

/* Equal atoms become one; what has power 0 goes. */
static void merge_factors(form_body *b) {
    uint32_t n = 0;
    order_factors(b);
    for (uint32_t i = 0; i < b->n_factors; i++) {
        if (n && b->factor[n - 1].atom == b->factor[i].atom)
            b->factor[n - 1].power += b->factor[i].power;
        else
            b->factor[n++] = b->factor[i];
        if (b->factor[n - 1].power == 0)
            n--;
    }
    for (uint32_t i = n; i < FORM_FACTORS; i++)
        b->factor[i] = (form_factor){0, 0};
    b->n_factors = n;
}

bool form_is_exp(const po_forms *f, uint32_t atom) {
    const form_atom *a = form_atom_at(f, atom);
    return a->kind == FORM_FUNCTION && a->function == PO_MU_EXP;
}

uint32_t form_scaled(po_forms *f, uint32_t form, po_rational by) {
    form_sum s = *form_sum_at(f, form);
    form_build b = {0};
    for (uint32_t i = 0; i < s.n; i++) {
        po_rational r;
        if (!po_rational_mul(s.term[i].scale, by, &r))
            return PO_NONE;
        form_build_add(f, &b, form_body_at(f, s.term[i].body), r);
    }
    return form_build_end(f, &b);
}

uint32_t form_function_atom(po_forms *f, po_mu_function function, const uint32_t *arguments) {
    form_atom a;
    memset(&a, 0, sizeof a);
    a.kind = FORM_FUNCTION;
    a.function = function;
    a.n_args = po_mu_arity(function);
    for (uint32_t i = 0; i < a.n_args; i++)
        a.arg[i] = arguments[i];
    return form_intern(f, &f->atoms, &a);
}

/* exp(a)^p * exp(b)^q = exp(p * a + q * b). */
static bool merge_exps(po_forms *f, form_body *b) {
    uint32_t total = PO_NONE, n = 0, seen = 0;
    form_body out = *b;
    for (uint32_t i = 0; i < b->n_factors; i++) {
        if (!form_is_exp(f, b->factor[i].atom)) {
            out.factor[n++] = b->factor[i];
            continue;
        }
        uint32_t arg = form_atom_at(f, b->factor[i].atom)->arg[0];
        if (b->factor[i].power != 1)
            arg = form_scaled(f, arg, PO_RATIONAL(b->factor[i].power));
        seen += b->factor[i].power != 1 ? 2 : 1;
        if (arg == PO_NONE)
            return false;
        total = total == PO_NONE ? arg : po_form_add(f, total, arg);
        if (total == PO_NONE)
            return false;
    }
    if (seen < 2)
        return true;
    out.n_factors = n;
    if (form_sum_at(f, total)->n) {
        out.factor[n] = (form_factor){form_function_atom(f, PO_MU_EXP, &total), 1};
        if (out.factor[n].atom == PO_NONE)
            return false;
        out.n_factors = n + 1;
    }
    *b = out;
    merge_factors(b);
    return true;
}

static bool occurs_in_body(const po_forms *f, const form_body *b, form_label l) {
    for (uint32_t i = 0; i < b->n_factors; i++)
        if (form_occurs(f, b->factor[i].atom, l))
            return true;
    return false;
}

/* The body with its bound labels under these names. */
static bool with_names(po_forms *f, const form_body *from, const form_label *names,
                       form_body *body) {
    form_map map = {.n = from->n_bound};
    *body = *from;
    for (uint32_t i = 0; i < from->n_bound; i++) {
        map.from[i] = from->bound[i];
        map.to[i] = names[i];
    }
    for (uint32_t i = 0; i < body->n_factors; i++) {
        body->factor[i].atom = form_atom_rename(f, body->factor[i].atom, &map);
        if (body->factor[i].atom == PO_NONE)
            return false;
    }
    order_factors(body);
    memcpy(body->bound, names, from->n_bound * sizeof *names);
    for (uint32_t i = 1; i < body->n_bound; i++)
        for (uint32_t k = i; k > 0 && body->bound[k] < body->bound[k - 1]; k--) {
            form_label t = body->bound[k];
            body->bound[k] = body->bound[k - 1];
            body->bound[k - 1] = t;
        }
    return true;
}

/* Tries all orders of bound labels of one class; keeps the least body. */
static bool least_names(po_forms *f, const form_body *from, uint32_t base, uint32_t at,
                        form_label *names, form_body *best, bool *any) {
    if (at == from->n_bound) {
        form_body body;
        if (!with_names(f, from, names, &body))
            return false;
        if (!*any || memcmp(&body, best, sizeof body) < 0)
            *best = body;
        *any = true;
        return true;
    }
    uint32_t same = 0;
    for (uint32_t i = 0; i < from->n_bound; i++)
        same += form_class(from->bound[i]) == form_class(from->bound[at]);
    for (uint32_t h = 1; h <= same; h++) {
        names[at] = form_label_of(form_class(from->bound[at]), base + h);
        bool taken = false;
        for (uint32_t i = 0; i < at; i++)
            taken |= names[i] == names[at];
        if (!taken && !least_names(f, from, base, at + 1, names, best, any))
            return false;
    }
    return true;
}

void form_build_add(po_forms *f, form_build *b, const form_body *from, po_rational scale) {
    form_body body = *from, least;
    if (b->failed || scale.num == 0)
        return;
    b->failed = true; /* until the end */
    merge_factors(&body);
    if (f->exact && !merge_exps(f, &body))
        return;
    uint32_t n = 0, height = 0;
    for (uint32_t i = 0; i < body.n_bound; i++) {
        if (occurs_in_body(f, &body, body.bound[i]))
            body.bound[n++] = body.bound[i];
        else if (!po_rational_mul(scale, PO_RATIONAL(f->extent[form_class(body.bound[i])]), &scale))
            return;
    }
    for (uint32_t i = n; i < FORM_BOUND; i++)
        body.bound[i] = 0;
    body.n_bound = n;
    for (uint32_t i = 0; i < body.n_factors; i++)
        if (f->atoms.facts[body.factor[i].atom].height > height)
            height = f->atoms.facts[body.factor[i].atom].height;
    form_label names[FORM_BOUND] = {0};
    bool any = false;
    if (height + FORM_BOUND >= FORM_TEMPORARY ||
        !least_names(f, &body, height, 0, names, &least, &any))
        return;
    uint32_t id = form_intern(f, &f->bodies, &least);
    if (id == PO_NONE)
        return;
    for (uint32_t i = 0; i < b->n; i++)
        if (b->term[i].body == id) {
            b->failed = !po_rational_add(b->term[i].scale, scale, &b->term[i].scale);
            return;
        }
    if (b->n == FORM_TERMS)
        return;
    b->term[b->n].body = id;
    b->term[b->n].unused = 0;
    b->term[b->n++].scale = scale;
    b->failed = false;
}

uint32_t form_build_end(po_forms *f, form_build *b) {
    form_sum s;
    memset(&s, 0, sizeof s);
    if (b->failed)
        return PO_NONE;
    for (uint32_t i = 0; i < b->n; i++) {
        if (b->term[i].scale.num == 0)
            continue;
        uint32_t k = s.n++;
        for (; k > 0 && b->term[i].body < s.term[k - 1].body; k--)
            s.term[k] = s.term[k - 1];
        s.term[k] = b->term[i];
    }
    return form_intern(f, &f->sums, &s);
}

/* --- looking --- */

uint64_t po_form_labels(const po_forms *f, uint32_t a) {
    return f->sums.facts[a].free;
}

uint32_t po_form_size(const po_forms *f, uint32_t a) {
    return f->sums.facts[a].size;
}

uint32_t po_forms_count(const po_forms *f) {
    return f->sums.n;
}

bool po_form_is_number(const po_forms *f, uint32_t a, double *value) {
    const form_sum *s = form_sum_at(f, a);
    *value = 0;
    if (s->n == 0)
        return true;
    const form_body *b = form_body_at(f, s->term[0].body);
    *value = po_rational_f64(s->term[0].scale);
    if (s->n == 1 && b->n_factors == 0)
        return true;
    const form_atom *atom = form_atom_at(f, b->factor[0].atom);
    if (s->n > 1 || b->n_factors > 1 || b->factor[0].power != 1 || atom->kind != FORM_NUMBER ||
        *value != 1)
        return false;
    *value = atom->value;
    return true;
}

bool po_form_is_rational(const po_forms *f, uint32_t a, po_rational *value) {
    const form_sum *s = form_sum_at(f, a);
    if (s->n != 1 || form_body_at(f, s->term[0].body)->n_factors != 0)
        return false;
    *value = s->term[0].scale;
    return true;
}

/* The atom that the form is, with nothing around it; NULL. */
static const form_atom *lone_atom(const po_forms *f, uint32_t a) {
    const form_sum *s = form_sum_at(f, a);
    const form_body *b = s->n == 1 ? form_body_at(f, s->term[0].body) : NULL;
    if (!b || b->n_factors != 1 || b->n_bound || b->factor[0].power != 1 ||
        s->term[0].scale.num != 1 || s->term[0].scale.den != 1)
        return NULL;
    return form_atom_at(f, b->factor[0].atom);
}

bool po_form_is_leaf(const po_forms *f, uint32_t a, uint32_t *tensor) {
    const form_atom *atom = lone_atom(f, a);
    if (!atom)
        return false;
    *tensor = atom->tensor;
    return atom->kind == FORM_LEAF;
}

bool po_form_is_function(const po_forms *f, uint32_t a, po_mu_function *function,
                         uint32_t arguments[3]) {
    const form_atom *atom = lone_atom(f, a);
    if (!atom || atom->kind != FORM_FUNCTION)
        return false;
    *function = (po_mu_function)atom->function;
    memcpy(arguments, atom->arg, sizeof atom->arg);
    return true;
}

bool po_form_reads(const po_forms *f, uint32_t a, uint32_t tensor) {
    const form_sum *s = form_sum_at(f, a);
    for (uint32_t i = 0; i < s->n; i++) {
        const form_body *b = form_body_at(f, s->term[i].body);
        for (uint32_t k = 0; k < b->n_factors; k++) {
            const form_atom *atom = form_atom_at(f, b->factor[k].atom);
            if (atom->kind == FORM_LEAF && atom->tensor == tensor)
                return true;
            for (uint32_t j = 0; j < atom->n_args; j++)
                if (po_form_reads(f, atom->arg[j], tensor))
                    return true;
        }
    }
    return false;
}
