/* Accesses as C: the pointer to an element, and the condition that an index lies inside. Also
 * whether different values of labels always reach different elements. */
#include "codegen/cpu/printer.h"
#include "ir/size.h"

int64_t cg_step_of(const cg *g, const po_mu_access *access, uint32_t label) {
    const po_mu_tensor *t = &g->mu->tensors[access->tensor];
    int64_t step = 0;
    for (uint32_t a = 0; a < t->rank; a++)
        for (uint32_t i = 0; i < access->axes[a].n; i++)
            if (access->axes[a].terms[i].label == label)
                step += access->axes[a].terms[i].coef * t->stride[a];
    return step;
}

/* Whether a digit's base is as long as what lies below it at all sizes. */
static bool is_base(const cg *g, const po_mu_access *access, uint32_t axis, uint32_t label) {
    return po_mu_open_coef_of(g->open, &access->axes[axis], label).symbol != NULL;
}

static bool is_open_step(const cg *g, const po_mu_access *access, uint32_t label) {
    for (uint32_t a = 0; a < g->mu->tensors[access->tensor].rank; a++)
        if (po_mu_coef(&access->axes[a], label) != 0 &&
            (g->open->stride[access->tensor][a].value < 0 || is_base(g, access, a, label)))
            return true;
    return false;
}

/* Adds times * coefficient * stride. */
static void add_step(cg *g, cg_terms *t, const po_mu_access *access, uint32_t axis, uint32_t label,
                     int64_t times) {
    const po_dim stride = g->open->stride[access->tensor][axis];
    const po_dim coef = po_mu_open_coef_of(g->open, &access->axes[axis], label);
    if (coef.symbol)
        cg_terms_add(g, t, times, po_size_mul(g->arena, stride, coef));
    else
        cg_terms_add(g, t, times * coef.value, stride);
}

const char *cg_step_text(cg *g, const po_mu_access *access, uint32_t label) {
    if (!is_open_step(g, access, label))
        return po_arena_printf(g->arena, "%lld", (long long)cg_step_of(g, access, label));
    cg_terms t = cg_terms_start(g);
    for (uint32_t a = 0; a < g->mu->tensors[access->tensor].rank; a++)
        add_step(g, &t, access, a, label, 1);
    return po_arena_printf(g->arena, "(0%s)", cg_terms_text(g, &t));
}

/* Adds " + step * (name - start)". */
static void add_term(cg *g, po_text *text, const po_mu_access *access, uint32_t label) {
    const char *name = g->value[label].name, *start = g->span[label].start;
    const int64_t step = cg_step_of(g, access, label);
    if (name == NULL || step == 0)
        return;
    if (start != NULL && po_mu_local(g->mu, access->tensor, label)) {
        if (strcmp(name, start) == 0)
            return;
        po_text_printf(text, " + %s * (%s - %s)", cg_step_text(g, access, label), name, start);
        return;
    }
    if (step == 1)
        po_text_printf(text, " + %s", name);
    else
        po_text_printf(text, " + %s * %s", cg_step_text(g, access, label), name);
}

/* Labels of an access, each once, ascending. */
static uint32_t labels_of(const cg *g, const po_mu_access *access, uint32_t *labels) {
    const po_mu_tensor *t = &g->mu->tensors[access->tensor];
    uint32_t n = 0;
    for (uint32_t a = 0; a < t->rank; a++)
        for (uint32_t i = 0; i < access->axes[a].n; i++) {
            uint32_t label = access->axes[a].terms[i].label, at = n;
            while (at > 0 && labels[at - 1] > label)
                at--;
            if (at > 0 && labels[at - 1] == label)
                continue;
            memmove(labels + at + 1, labels + at, (n - at) * sizeof *labels);
            labels[at] = label;
            n++;
        }
    return n;
}

static uint32_t *label_room(cg *g, const po_mu_access *access) {
    const po_mu_tensor *t = &g->mu->tensors[access->tensor];
    size_t n = 1;
    for (uint32_t a = 0; a < t->rank; a++)
        n += access->axes[a].n;
    return PO_NEW_N(g->arena, uint32_t, n + 1);
}

/* The parameter that stands for a number of floats. */
static const char *parameter_of(cg *g, uint32_t tensor, const char *text) {
    cg_offsets *o = g->offsets;
    uint32_t i = 0;
    while (i < o->n && (o->list[i].tensor != tensor || strcmp(o->list[i].text, text) != 0))
        i++;
    if (i == o->n)
        PO_PUSH(g->arena, o->list, o->n, o->cap, ((cg_offset){tensor, text}));
    return po_arena_printf(g->arena, " + o_%u", i);
}

const char *cg_base(cg *g, const po_mu_access *access) {
    const po_mu_tensor *t = &g->mu->tensors[access->tensor];
    cg_terms number = cg_terms_start(g);
    cg_terms_add(g, &number, 1, g->open->origin[access->tensor]);
    for (uint32_t a = 0; a < t->rank; a++) {
        int64_t least;
        po_dim count;
        (void)po_mu_open_held(g->open, access->tensor, a, &least, &count);
        cg_terms_add(g, &number, access->axes[a].offset - least,
                     g->open->stride[access->tensor][a]);
    }
    po_text text;
    po_text_init(&text, g->arena);
    po_text_puts(&text, g->tensor[access->tensor].name);
    uint32_t *labels = label_room(g, access);
    uint32_t n = labels_of(g, access, labels);
    for (uint32_t i = 0; i < n; i++)
        if (!g->value[labels[i]].inner)
            add_term(g, &text, access, labels[i]);
    const char *from = cg_terms_text(g, &number);
    po_text_puts(&text, g->offsets ? parameter_of(g, access->tensor, from) : from);
    return text.data;
}

const char *cg_rest(cg *g, const po_mu_access *access) {
    const po_mu_tensor *t = &g->mu->tensors[access->tensor];
    po_text text;
    po_text_init(&text, g->arena);
    po_text_puts(&text, "");
    uint32_t *labels = label_room(g, access);
    uint32_t n = labels_of(g, access, labels);
    cg_terms number = cg_terms_start(g);
    for (uint32_t i = 0; i < n; i++) {
        if (g->value[labels[i]].inner)
            add_term(g, &text, access, labels[i]);
        for (uint32_t a = 0; a < t->rank; a++)
            add_step(g, &number, access, a, labels[i], g->value[labels[i]].add);
    }
    po_text_puts(&text, cg_terms_text(g, &number));
    return text.data == NULL ? "" : text.data;
}

bool cg_leaves(cg *g, const po_mu_access *access, uint32_t axis) {
    const po_mu_index *x = &access->axes[axis];
    int64_t least = x->offset, most = x->offset;
    bool open = g->open->dim[access->tensor][axis].value < 0;
    for (uint32_t i = 0; i < x->n; i++)
        open |= po_mu_open_label(g->open, x->terms[i].label);
    if (open)
        return po_mu_open_leaves(g->open, access, axis);
    for (uint32_t i = 0; i < x->n; i++) {
        const cg_value *v = &g->value[x->terms[i].label];
        int64_t c = x->terms[i].coef;
        least += c * (c > 0 ? v->least : v->most);
        most += c * (c > 0 ? v->most : v->least);
    }
    return least < 0 || most >= g->mu->tensors[access->tensor].dims[axis];
}

const char *cg_inside(cg *g, const po_mu_access *access, uint32_t axis) {
    const po_mu_index *x = &access->axes[axis];
    int64_t number = x->offset;
    po_text text;
    po_text_init(&text, g->arena);
    po_text_puts(&text, "(unsigned long)(0");
    for (uint32_t i = 0; i < x->n; i++) {
        const cg_value *v = &g->value[x->terms[i].label];
        const po_dim coef = po_mu_open_coef(g->open, x, i);
        if (coef.symbol) {
            po_text_printf(&text, " + %s * (%s + (%lld))", cg_length(g, coef),
                           v->name ? v->name : "0", (long long)v->add);
            continue;
        }
        number += x->terms[i].coef * v->add;
        if (v->name != NULL)
            po_text_printf(&text, " + %lld * %s", (long long)x->terms[i].coef, v->name);
    }
    po_text_printf(&text, " + (%lld)) < (unsigned long)%s", (long long)number,
                   cg_length(g, g->open->dim[access->tensor][axis]));
    return text.data;
}

/* How far a label runs while one copy of a tensor lives. */
static int64_t steps_of(const cg *g, uint32_t tensor, uint32_t label) {
    enum { ANY = 1 << 30 };
    bool local = g->span[label].full > 0 && po_mu_local(g->mu, tensor, label);
    if (po_mu_open_label(g->open, label) && !(local && g->span[label].start != NULL))
        return ANY;
    return (local ? g->span[label].full : g->mu->labels[label].extent) - 1;
}

bool cg_is_apart(const cg *g, const po_mu_access *access) {
    const po_mu_tensor *t = &g->mu->tensors[access->tensor];
    for (uint32_t label = 0; label < g->mu->n_labels; label++) {
        /* Some axis steps further by this label than all that step less there can make up. */
        bool any = false, apart = false;
        for (uint32_t a = 0; a < t->rank; a++) {
            int64_t coef = po_mu_coef(&access->axes[a], label), reach = 0;
            any |= coef != 0;
            for (uint32_t i = 0; i < access->axes[a].n; i++) {
                po_mu_term term = access->axes[a].terms[i];
                int64_t other = term.coef < 0 ? -term.coef : term.coef;
                int64_t own = coef < 0 ? -coef : coef;
                if (other < own || (other == own && term.label < label))
                    reach += other * (is_base(g, access, a, label)
                                          ? g->mu->labels[term.label].extent - 1
                                          : steps_of(g, access->tensor, term.label));
            }
            apart |= coef != 0 && (coef < 0 ? -coef : coef) > reach;
        }
        if (any && !apart && steps_of(g, access->tensor, label) > 0)
            return false;
    }
    return true;
}
