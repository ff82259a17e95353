/* Accesses as C: the pointer to an element, and the condition that an index lies inside. Also
 * whether different values of labels always reach different elements. */
#include "codegen/cpu/printer.h"

int64_t cg_step_of(const cg *g, const po_mu_access *access, uint32_t label) {
    const po_mu_tensor *t = &g->mu->tensors[access->tensor];
    int64_t step = 0;
    for (uint32_t a = 0; a < t->rank; a++)
        for (uint32_t i = 0; i < access->axes[a].n; i++)
            if (access->axes[a].terms[i].label == label)
                step += access->axes[a].terms[i].coef * t->stride[a];
    return step;
}

/* Adds " + step * (name - start)". */
static void add_term(cg *g, po_text *text, uint32_t tensor, uint32_t label, int64_t step) {
    const char *name = g->value[label].name, *start = g->span[label].start;
    if (name == NULL || step == 0)
        return;
    if (start != NULL && po_mu_local(g->mu, tensor, label)) {
        if (strcmp(name, start) == 0)
            return;
        po_text_printf(text, " + %lld * (%s - %s)", (long long)step, name, start);
        return;
    }
    if (step == 1)
        po_text_printf(text, " + %s", name);
    else
        po_text_printf(text, " + %lld * %s", (long long)step, name);
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

const char *cg_base(cg *g, const po_mu_access *access) {
    const po_mu_tensor *t = &g->mu->tensors[access->tensor];
    int64_t number = t->origin;
    for (uint32_t a = 0; a < t->rank; a++) {
        int64_t least, count;
        (void)po_mu_held(g->mu, access->tensor, a, &least, &count);
        number += (access->axes[a].offset - least) * t->stride[a];
    }
    po_text text;
    po_text_init(&text, g->arena);
    po_text_puts(&text, g->tensor[access->tensor].name);
    uint32_t *labels = label_room(g, access);
    uint32_t n = labels_of(g, access, labels);
    for (uint32_t i = 0; i < n; i++)
        if (!g->value[labels[i]].inner)
            add_term(g, &text, access->tensor, labels[i], cg_step_of(g, access, labels[i]));
    if (number != 0)
        po_text_printf(&text, " %c %lld", number < 0 ? '-' : '+',
                       (long long)(number < 0 ? -number : number));
    return text.data;
}

const char *cg_rest(cg *g, const po_mu_access *access, int64_t *number) {
    po_text text;
    po_text_init(&text, g->arena);
    po_text_puts(&text, "");
    uint32_t *labels = label_room(g, access);
    uint32_t n = labels_of(g, access, labels);
    *number = 0;
    for (uint32_t i = 0; i < n; i++) {
        int64_t step = cg_step_of(g, access, labels[i]);
        if (g->value[labels[i]].inner)
            add_term(g, &text, access->tensor, labels[i], step);
        *number += step * g->value[labels[i]].add;
    }
    return text.data == NULL ? "" : text.data;
}

bool cg_leaves(const cg *g, const po_mu_access *access, uint32_t axis) {
    const po_mu_index *x = &access->axes[axis];
    int64_t least = x->offset, most = x->offset;
    for (uint32_t i = 0; i < x->n; i++) {
        const cg_value *v = &g->value[x->terms[i].label];
        int64_t c = x->terms[i].coef;
        least += c * (c > 0 ? v->least : v->most);
        most += c * (c > 0 ? v->most : v->least);
    }
    return least < 0 || most >= g->mu->tensors[access->tensor].dims[axis];
}

const char *cg_inside(cg *g, const po_mu_access *access, uint32_t axis) {
    const po_mu_tensor *t = &g->mu->tensors[access->tensor];
    const po_mu_index *x = &access->axes[axis];
    int64_t number = x->offset;
    po_text text;
    po_text_init(&text, g->arena);
    po_text_puts(&text, "(unsigned long)(0");
    for (uint32_t i = 0; i < x->n; i++) {
        const cg_value *v = &g->value[x->terms[i].label];
        number += x->terms[i].coef * v->add;
        if (v->name != NULL)
            po_text_printf(&text, " + %lld * %s", (long long)x->terms[i].coef, v->name);
    }
    po_text_printf(&text, " + (%lld)) < %lldul", (long long)number, (long long)t->dims[axis]);
    return text.data;
}

/* How far a label runs while one copy of a tensor lives. */
static int64_t steps_of(const cg *g, uint32_t tensor, uint32_t label) {
    bool local = g->span[label].full > 0 && po_mu_local(g->mu, tensor, label);
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
                    reach += other * steps_of(g, access->tensor, term.label);
            }
            apart |= coef != 0 && (coef < 0 ? -coef : coef) > reach;
        }
        if (any && !apart && steps_of(g, access->tensor, label) > 0)
            return false;
    }
    return true;
}
