/* What a naive muGraph computes, as forms over classes of labels. */
#include "superopt/search/internal.h"

#include <stdio.h>

typedef struct reading {
    search_problem *p;
    const po_mu *mu;
    uint32_t *to;            /* by label: another of its class, or itself */
    uint32_t *classes;       /* by label */
    uint32_t *plain, *exact; /* by tensor */
    bool *written;           /* by tensor */
    bool lenient;
} reading;

static uint32_t root(const reading *r, uint32_t label) {
    while (r->to[label] != label)
        label = r->to[label];
    return label;
}

static po_status refuse(const reading *r, const char *why, const char *name) {
    return po_fail(r->p->ctx, PO_UNSUPPORTED, "the search does not read muGraph '%s': %s ('%s')",
                   r->mu->name, why, name);
}

static po_status unite(reading *r, uint32_t *axes, const po_mu_access *access) {
    const po_mu_tensor *t = &r->mu->tensors[access->tensor];
    uint32_t *own = axes + (size_t)access->tensor * PO_MU_MAX_RANK;
    for (uint32_t x = 0; x < t->rank; x++) {
        const po_mu_index *i = &access->axes[x];
        if (i->n == 0 && i->offset == 0 && t->dims[x] == 1)
            continue;
        if (i->n != 1 || i->offset != 0 || i->terms[0].coef != 1 ||
            r->mu->labels[i->terms[0].label].extent != t->dims[x])
            return refuse(r, "an index that is no plain label", t->name);
        uint32_t a = root(r, i->terms[0].label), b = own[x] == PO_NONE ? a : root(r, own[x]);
        own[x] = a;
        r->to[a > b ? a : b] = a > b ? b : a;
    }
    return PO_OK;
}

static po_status find_classes(reading *r) {
    const po_mu *mu = r->mu;
    search_problem *p = r->p;
    uint32_t *axes = PO_NEW_N(p->arena, uint32_t, (size_t)mu->n_tensors * PO_MU_MAX_RANK);
    for (uint32_t i = 0; i < mu->n_tensors * PO_MU_MAX_RANK; i++)
        axes[i] = PO_NONE;
    for (uint32_t n = 0; n < mu->n_nodes; n++) {
        const po_mu_statement *s = &mu->nodes[n].statement;
        if (mu->nodes[n].kind == PO_MU_LOOP)
            return refuse(r, "it has loops already", mu->name);
        for (uint32_t k = 0; mu->nodes[n].kind == PO_MU_STATEMENT && k <= s->n_in; k++)
            PO_TRY(unite(r, axes, k < s->n_in ? &s->in[k] : &s->out));
    }
    r->classes = PO_NEW_N(p->arena, uint32_t, mu->n_labels + 1);
    for (uint32_t i = 0; i < mu->n_labels; i++) {
        if (r->to[i] != i) {
            r->classes[i] = r->classes[root(r, i)];
            continue;
        }
        if (p->n_classes == PO_FORM_CLASSES)
            return refuse(r, "too many labels", mu->name);
        p->extent[p->n_classes] = mu->labels[i].extent;
        p->name[p->n_classes] = mu->labels[i].name;
        r->classes[i] = p->n_classes++;
    }
    p->axes = PO_NEW_N(p->arena, search_axes, mu->n_tensors);
    for (uint32_t i = 0; i < mu->n_tensors; i++)
        for (uint32_t x = 0; x < PO_MU_MAX_RANK; x++) {
            uint32_t label = axes[(size_t)i * PO_MU_MAX_RANK + x];
            p->axes[i][x] = label == PO_NONE ? PO_NONE : r->classes[root(r, label)];
        }
    return PO_OK;
}

static uint32_t leaf(const reading *r, po_forms *f, uint32_t tensor) {
    const po_mu_tensor *t = &r->mu->tensors[tensor];
    uint32_t classes[PO_MU_MAX_RANK], n = 0;
    for (uint32_t x = 0; x < t->rank; x++)
        if (r->p->axes[tensor][x] != PO_NONE)
            classes[n++] = r->p->axes[tensor][x];
    return po_form_leaf(f, tensor, n, classes);
}

static void note_number(search_problem *p, double value) {
    for (uint32_t i = 0; i < p->n_numbers; i++)
        if (p->number[i] == value)
            return;
    if (p->n_numbers < SEARCH_NUMBERS)
        p->number[p->n_numbers++] = value;
}

static uint32_t value_of(const reading *r, const po_mu_statement *s, po_forms *f,
                         const uint32_t *forms) {
    uint32_t value[PO_MU_MAX_ITEMS];
    for (uint32_t i = 0; i < s->n_items; i++) {
        const po_mu_item *m = &s->items[i];
        if (m->function == PO_MU_CONST) {
            note_number(r->p, m->value);
            value[i] = po_form_number(f, m->value);
            continue;
        }
        if (m->function == PO_MU_OPERAND) {
            uint32_t tensor = s->in[m->a].tensor;
            po_mu_place place = r->mu->tensors[tensor].place;
            value[i] =
                place == PO_MU_INPUT || place == PO_MU_WEIGHT ? leaf(r, f, tensor) : forms[tensor];
            continue;
        }
        uint32_t x[3] = {value[m->a], value[m->b], value[m->c]};
        value[i] = po_form_apply(f, m->function, x);
    }
    return value[s->n_items - 1];
}

static po_status statement(reading *r, const po_mu_statement *s) {
    search_problem *p = r->p;
    uint32_t n_kept, n_reduced, *kept, *reduced;
    uint64_t seen = 0;
    po_mu_labels_of(r->mu, s, p->arena, &n_kept, &kept, &n_reduced, &reduced);
    for (uint32_t i = 0; i < n_kept + n_reduced; i++) {
        uint32_t c = r->classes[i < n_kept ? kept[i] : reduced[i - n_kept]];
        if (seen >> c & 1)
            return refuse(r, "an axis is used twice in one statement", p->name[c]);
        seen |= (uint64_t)1 << c;
    }
    for (uint32_t side = 0; side < 2; side++) {
        po_forms *f = side ? p->exact : p->plain;
        uint32_t *forms = side ? r->exact : r->plain;
        uint32_t v = value_of(r, s, f, forms);
        for (uint32_t i = 0; i < n_reduced; i++)
            v = s->combine == PO_MU_MAXIMUM ? po_form_maximum(f, v, r->classes[reduced[i]])
                                            : po_form_sum(f, v, r->classes[reduced[i]]);
        if (s->combine != PO_MU_SET && !s->fresh)
            return refuse(r, "a sum that goes on", r->mu->tensors[s->out.tensor].name);
        if (v == PO_NONE && !r->lenient)
            return refuse(r, "no form for it", r->mu->tensors[s->out.tensor].name);
        forms[s->out.tensor] = v;
    }
    if (r->written[s->out.tensor])
        return refuse(r, "it is written twice", r->mu->tensors[s->out.tensor].name);
    r->written[s->out.tensor] = true;
    return PO_OK;
}

/* An order of the classes in which they stand in the tensors, as far as these agree. */
static void order_classes(search_problem *p) {
    bool done[PO_FORM_CLASSES] = {false};
    for (uint32_t at = 0; at < p->n_classes; at++) {
        uint32_t best = PO_NONE, best_before = PO_NONE;
        for (uint32_t c = 0; c < p->n_classes; c++) {
            uint32_t before = 0;
            for (uint32_t i = 0; i < p->naive->n_tensors && !done[c]; i++) {
                po_mu_place place = p->naive->tensors[i].place;
                bool counts = place == PO_MU_INPUT || place == PO_MU_WEIGHT ||
                              place == PO_MU_OUTPUT || place == PO_MU_DEVICE;
                for (uint32_t x = 0; counts && x < p->naive->tensors[i].rank; x++)
                    for (uint32_t y = x + 1; y < p->naive->tensors[i].rank; y++)
                        before +=
                            p->axes[i][y] == c && p->axes[i][x] != PO_NONE && !done[p->axes[i][x]];
            }
            if (!done[c] && (best == PO_NONE || before < best_before)) {
                best = c;
                best_before = before;
            }
        }
        done[best] = true;
        p->place[best] = at;
    }
}

po_status search_problem_of(po_ctx *ctx, po_arena *arena, const po_mu *naive, bool lenient,
                            search_problem *p) {
    *p = (search_problem){.ctx = ctx, .arena = arena, .naive = naive, .panel = 64};
    reading r = {.p = p, .mu = naive, .lenient = lenient};
    r.to = PO_NEW_N(arena, uint32_t, naive->n_labels + 1);
    for (uint32_t i = 0; i < naive->n_labels; i++)
        r.to[i] = i;
    p->target = PO_NONE;
    for (uint32_t i = 0; i < naive->n_tensors; i++) {
        if (naive->tensors[i].place == PO_MU_TABLE)
            return refuse(&r, "a table of numbers", naive->tensors[i].name);
        if (naive->tensors[i].place != PO_MU_OUTPUT)
            continue;
        if (p->target != PO_NONE)
            return refuse(&r, "a second output", naive->tensors[i].name);
        p->target = i;
    }
    PO_TRY(find_classes(&r));
    p->plain = po_forms_create(arena, false, p->n_classes, p->extent);
    p->exact = po_forms_create(arena, true, p->n_classes, p->extent);
    r.written = PO_NEW_N(arena, bool, naive->n_tensors + 1);
    r.plain = PO_NEW_N(arena, uint32_t, naive->n_tensors);
    r.exact = PO_NEW_N(arena, uint32_t, naive->n_tensors);
    for (uint32_t i = 0; i < naive->n_tensors; i++)
        r.plain[i] = r.exact[i] = PO_NONE;
    for (uint32_t n = po_mu_next(naive, PO_NONE); n != PO_NONE; n = po_mu_next(naive, n))
        if (naive->nodes[n].kind == PO_MU_STATEMENT)
            PO_TRY(statement(&r, &naive->nodes[n].statement));
    p->plain_of = r.plain;
    p->plain_target = r.plain[p->target];
    p->exact_target = r.exact[p->target];
    order_classes(p);
    return PO_OK;
}

/* Lengths that differ, so that axes are told apart; multiples of a vector stay such, several for
 * loops that work in vectors. */
static int64_t shorter(const search_problem *p, uint32_t class) {
    int64_t extent = p->extent[class], vectors = p->gpu ? 1 : 2;
    int64_t to = extent % PO_MU_VECTOR == 0 ? vectors * PO_MU_VECTOR : 4 + class % 4;
    return extent < to ? extent : to;
}

search_problem *search_shrunk(const search_problem *p) {
    search_problem *q = PO_NEW(p->arena, search_problem);
    po_mu *mu = PO_NEW(p->arena, po_mu);
    *q = *p;
    *mu = *p->naive;
    mu->arena = p->arena;
    mu->labels = po_arena_memdup(p->arena, mu->labels, mu->n_labels * sizeof *mu->labels);
    mu->tensors = po_arena_memdup(p->arena, mu->tensors, mu->n_tensors * sizeof *mu->tensors);
    q->naive = mu;
    q->panel = PO_MU_VECTOR;
    for (uint32_t c = 0; c < p->n_classes; c++)
        q->extent[c] = shorter(p, c);
    for (uint32_t i = 0; i < mu->n_tensors; i++) {
        for (uint32_t x = 0; x < mu->tensors[i].rank; x++)
            if (p->axes[i][x] != PO_NONE)
                mu->tensors[i].dims[x] = q->extent[p->axes[i][x]];
    }
    for (uint32_t n = 0; n < mu->n_nodes; n++) {
        const po_mu_statement *s = &mu->nodes[n].statement;
        for (uint32_t k = 0; mu->nodes[n].kind == PO_MU_STATEMENT && k <= s->n_in; k++) {
            const po_mu_access *a = k < s->n_in ? &s->in[k] : &s->out;
            for (uint32_t x = 0; x < mu->tensors[a->tensor].rank; x++)
                if (a->axes[x].n)
                    mu->labels[a->axes[x].terms[0].label].extent = q->extent[p->axes[a->tensor][x]];
        }
    }
    for (uint32_t i = 0; i < mu->n_tensors; i++)
        po_mu_layout(mu, i, 1, 0);
    return q;
}
