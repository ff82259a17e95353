/* What may be computed on the way to a form. */
#include "superopt/search/form_internal.h"

typedef struct closing {
    po_forms *f;
    po_arena *arena;
    po_closure *c;
    uint32_t cap, limit;
    po_hash_map *seen;
    bool full;
} closing;

static void push(closing *z, uint32_t form) {
    po_hash key = po_hash_u64((po_hash){0}, form);
    if (form == PO_NONE || form_sum_at(z->f, form)->n == 0 ||
        po_hash_map_get(z->seen, key) != PO_NONE)
        return;
    if (z->c->n == z->limit) {
        z->full = true;
        return;
    }
    po_hash_map_put(z->seen, key, z->c->n);
    PO_PUSH(z->arena, z->c->forms, z->c->n, z->cap, form);
}

static void push_body(closing *z, const form_body *body, po_rational scale) {
    form_build b = {0};
    form_build_add(z->f, &b, body, scale);
    push(z, form_build_end(z->f, &b));
}

/* The body with bound labels (a bit each) free, as long as no name is there already. */
static bool opened(po_forms *f, const form_body *from, uint32_t open, form_body *to) {
    form_map map = {0};
    uint32_t n = 0;
    *to = *from;
    for (uint32_t i = 0; i < from->n_bound; i++) {
        if (!(open >> i & 1)) {
            to->bound[n++] = from->bound[i];
            continue;
        }
        map.from[map.n] = from->bound[i];
        map.to[map.n] = form_label_of(form_class(from->bound[i]), 0);
        for (uint32_t k = 0; k < map.n; k++)
            if (map.to[k] == map.to[map.n])
                return false;
        for (uint32_t k = 0; k < from->n_factors; k++)
            if (form_occurs(f, from->factor[k].atom, map.to[map.n]))
                return false;
        map.n++;
    }
    for (uint32_t i = n; i < FORM_BOUND; i++)
        to->bound[i] = 0;
    to->n_bound = n;
    for (uint32_t i = 0; i < to->n_factors; i++) {
        to->factor[i].atom = form_atom_rename(f, to->factor[i].atom, &map);
        if (to->factor[i].atom == PO_NONE)
            return false;
    }
    return true;
}

static uint32_t bound_in(const po_forms *f, const form_body *b, uint32_t atom) {
    uint32_t bits = 0;
    for (uint32_t i = 0; i < b->n_bound; i++)
        if (form_occurs(f, atom, b->bound[i]))
            bits |= 1u << i;
    return bits;
}

/* Arguments of the factors, every label open that is bound around them. */
static void inside(closing *z, const form_body *body) {
    for (uint32_t i = 0; i < body->n_factors; i++) {
        form_body one = {.n_bound = body->n_bound, .n_factors = 1}, open;
        memcpy(one.bound, body->bound, sizeof one.bound);
        one.factor[0] = (form_factor){body->factor[i].atom, 1};
        uint32_t bits = bound_in(z->f, &one, one.factor[0].atom), n = 0;
        for (uint32_t k = 0; k < body->n_bound; k++)
            if (bits >> k & 1)
                one.bound[n++] = body->bound[k];
        one.n_bound = n;
        if (!opened(z->f, &one, (1u << n) - 1, &open))
            continue;
        form_atom a = *form_atom_at(z->f, open.factor[0].atom);
        if (a.kind != FORM_OF)
            push_body(z, &open, PO_RATIONAL(1));
        if (a.kind == FORM_MAXIMUM) {
            /* Its argument by way of a body that binds the label. */
            form_map map = {1, {a.label[0]}, {form_label_of(form_class(a.label[0]), 0)}};
            form_sum s = *form_sum_at(z->f, a.arg[0]);
            form_build b = {0};
            for (uint32_t k = 0; k < s.n; k++) {
                form_body term = *form_body_at(z->f, s.term[k].body);
                for (uint32_t j = 0; j < term.n_factors; j++) {
                    b.failed |= form_occurs(z->f, term.factor[j].atom, map.to[0]);
                    term.factor[j].atom = form_atom_rename(z->f, term.factor[j].atom, &map);
                    b.failed |= term.factor[j].atom == PO_NONE;
                }
                if (!b.failed)
                    form_build_add(z->f, &b, &term, s.term[k].scale);
            }
            push(z, form_build_end(z->f, &b));
            continue;
        }
        for (uint32_t k = 0; k < a.n_args; k++)
            push(z, a.arg[k]);
    }
}

/* All parts of a product, with every choice of what is summed already. */
static void parts(closing *z, const form_body *body, po_rational scale) {
    int32_t keep[FORM_FACTORS] = {0};
    bool plain = scale.num == 1 && scale.den == 1;
    for (;;) {
        /* The next choice of powers. */
        uint32_t i = 0;
        for (; i < body->n_factors; i++) {
            int32_t power = body->factor[i].power, step = power > 0 ? 1 : -1;
            if (keep[i] != power) {
                keep[i] += step;
                break;
            }
            keep[i] = 0;
        }
        if (i == body->n_factors)
            return;
        form_body part = {.n_bound = body->n_bound};
        memcpy(part.bound, body->bound, sizeof part.bound);
        uint32_t must = 0, all = 0;
        bool above = false;
        for (uint32_t k = 0; k < body->n_factors; k++) {
            uint32_t bits = bound_in(z->f, body, body->factor[k].atom);
            if (keep[k] != body->factor[k].power)
                must |= bits;
            if (keep[k] == 0)
                continue;
            above |= keep[k] > 0;
            all |= bits;
            part.factor[part.n_factors++] = (form_factor){body->factor[k].atom, keep[k]};
        }
        must &= all;
        if (!above)
            continue;
        for (uint32_t open = 0; open < 1u << body->n_bound; open++) {
            form_body to;
            if ((open & must) != must || (open & ~all))
                continue;
            /* A label that no part has is not summed here. */
            form_body there = part;
            uint32_t n = 0, bits = 0;
            for (uint32_t k = 0; k < part.n_bound; k++)
                if (all >> k & 1) {
                    bits |= (open >> k & 1) << n;
                    there.bound[n++] = part.bound[k];
                }
            for (uint32_t k = n; k < FORM_BOUND; k++)
                there.bound[k] = 0;
            there.n_bound = n;
            if (!opened(z->f, &there, bits, &to))
                continue;
            push_body(z, &to, PO_RATIONAL(1));
            if (!plain)
                push_body(z, &to, scale);
        }
    }
}

/* Some terms of a sum, without some of what they have in common. */
static void share(closing *z, const form_sum *s, uint32_t terms) {
    form_factor common[FORM_FACTORS];
    uint32_t n_common = 0, first = PO_NONE;
    for (uint32_t i = s->n; i-- > 0;)
        if (terms >> i & 1)
            first = i;
    const form_body *body = form_body_at(z->f, s->term[first].body);
    bool same = true;
    for (uint32_t k = 0; k < body->n_factors; k++) {
        bool all = true;
        for (uint32_t i = 0; i < s->n; i++) {
            const form_body *b = form_body_at(z->f, s->term[i].body);
            bool there = !(terms >> i & 1);
            for (uint32_t j = 0; j < b->n_factors; j++)
                there |= b->factor[j].atom == body->factor[k].atom &&
                         b->factor[j].power == body->factor[k].power &&
                         !bound_in(z->f, b, b->factor[j].atom);
            all &= there;
        }
        if (all)
            common[n_common++] = body->factor[k];
    }
    for (uint32_t i = 0; i < s->n; i++)
        if (terms >> i & 1)
            same &= s->term[i].scale.num == s->term[first].scale.num &&
                    s->term[i].scale.den == s->term[first].scale.den;
    same &= s->term[first].scale.num != 1 || s->term[first].scale.den != 1;
    for (uint32_t drop = 0; drop < 1u << n_common; drop++)
        for (uint32_t plain = 0; plain <= same; plain++) {
            form_build b = {0};
            for (uint32_t i = 0; i < s->n; i++) {
                if (!(terms >> i & 1))
                    continue;
                form_body term = *form_body_at(z->f, s->term[i].body);
                for (uint32_t k = 0; k < n_common; k++)
                    for (uint32_t j = 0; j < term.n_factors; j++)
                        if ((drop >> k & 1) && term.factor[j].atom == common[k].atom)
                            term.factor[j].power = 0;
                form_build_add(z->f, &b, &term, plain ? PO_RATIONAL(1) : s->term[i].scale);
            }
            push(z, form_build_end(z->f, &b));
        }
}

/* The sum before a label that all terms bind is summed. */
static void unsummed(closing *z, const form_sum *s) {
    for (uint32_t c = 0; c < z->f->n_classes; c++) {
        form_build b = {0};
        for (uint32_t i = 0; i < s->n && !b.failed; i++) {
            form_body body = *form_body_at(z->f, s->term[i].body), open;
            uint32_t bits = 0;
            for (uint32_t k = 0; k < body.n_bound; k++)
                if (form_class(body.bound[k]) == c && !bits)
                    bits = 1u << k;
            if (!bits || !opened(z->f, &body, bits, &open))
                b.failed = true;
            else
                form_build_add(z->f, &b, &open, s->term[i].scale);
        }
        push(z, form_build_end(z->f, &b));
    }
}

enum { MOST_TERMS = 6 };

static void of_form(closing *z, uint32_t form) {
    form_sum s = *form_sum_at(z->f, form);
    for (uint32_t i = 0; i < s.n; i++) {
        form_body body = *form_body_at(z->f, s.term[i].body);
        if (s.term[i].scale.den != 1 || (s.term[i].scale.num != 1 && s.term[i].scale.num != -1)) {
            form_body none;
            memset(&none, 0, sizeof none);
            push_body(z, &none, s.term[i].scale);
        }
        inside(z, &body);
        if (s.n == 1)
            parts(z, &body, s.term[0].scale);
    }
    if (s.n < 2)
        return;
    unsummed(z, &s);
    if (s.n > MOST_TERMS)
        return;
    for (uint32_t terms = 1; terms < 1u << s.n; terms++)
        share(z, &s, terms);
}

void po_form_close(po_forms *f, po_arena *arena, uint32_t target, uint32_t limit, po_closure *c,
                   bool *full) {
    closing z = {.f = f, .arena = arena, .c = c, .limit = limit};
    z.seen = po_hash_map_create(arena);
    *c = (po_closure){0};
    push(&z, target);
    for (uint32_t i = 0; i < c->n; i++)
        of_form(&z, c->forms[i]);
    *full = z.full;
    for (uint32_t i = 1; i < c->n; i++) {
        uint32_t form = c->forms[i], k = i;
        for (; k > 0 && po_form_size(f, form) < po_form_size(f, c->forms[k - 1]); k--)
            c->forms[k] = c->forms[k - 1];
        c->forms[k] = form;
    }
}

/* --- for people --- */

static void print_label(po_text *text, form_label l) {
    po_text_printf(text, "%c", 'a' + (char)(form_class(l) % 26));
    for (uint32_t i = 0; i < form_height(l) && i < 4; i++)
        po_text_puts(text, "'");
}

static void print_atom(const po_forms *f, uint32_t atom, po_text *text) {
    const form_atom *a = form_atom_at(f, atom);
    static const char *const names[PO_MU_FUNCTIONS] = {
#define PO_MU_FUNCTION(id, name, arity, flops, what) [PO_MU_##id] = name,
#include "mugraph/functions.def"
#undef PO_MU_FUNCTION
    };
    switch ((form_kind)a->kind) {
    case FORM_LEAF:
        po_text_printf(text, "t%u[", a->tensor);
        for (uint32_t i = 0; i < a->n_labels; i++)
            print_label(text, a->label[i]);
        po_text_puts(text, "]");
        return;
    case FORM_NUMBER:
        po_text_printf(text, "%.9g", a->value);
        return;
    case FORM_OF:
    case FORM_FUNCTION:
        po_text_puts(text, a->kind == FORM_OF ? "" : names[a->function]);
        break;
    case FORM_MAXIMUM:
        po_text_puts(text, "max_");
        print_label(text, a->label[0]);
        break;
    }
    po_text_puts(text, "(");
    for (uint32_t i = 0; i < a->n_args; i++) {
        po_text_puts(text, i ? ", " : "");
        po_form_print(f, a->arg[i], text);
    }
    po_text_puts(text, ")");
}

void po_form_print(const po_forms *f, uint32_t a, po_text *text) {
    const form_sum *s = form_sum_at(f, a);
    if (s->n == 0)
        po_text_puts(text, "0");
    for (uint32_t i = 0; i < s->n; i++) {
        const form_body *b = form_body_at(f, s->term[i].body);
        po_rational r = s->term[i].scale;
        po_text_puts(text, i ? " + " : "");
        if (r.num != 1 || r.den != 1 || b->n_factors == 0)
            po_text_printf(text, "%lld", (long long)r.num);
        if (r.den != 1)
            po_text_printf(text, "/%lld", (long long)r.den);
        for (uint32_t k = 0; k < b->n_bound; k++) {
            po_text_puts(text, " sum_");
            print_label(text, b->bound[k]);
        }
        for (uint32_t k = 0; k < b->n_factors; k++) {
            po_text_puts(text, " ");
            print_atom(f, b->factor[k].atom, text);
            if (b->factor[k].power != 1)
                po_text_printf(text, "^%d", b->factor[k].power);
        }
    }
}
