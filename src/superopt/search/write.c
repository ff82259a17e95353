/* A class of labels is one axis, and axes stand in the order of the classes' places. A tensor from
 * outside has one twin, made when it is first used. */
#include "superopt/search/write.h"

static void at_times(const search_writer *w, po_mu_access *access, uint32_t axis, int64_t times,
                     uint32_t class) {
    const po_for_label *f = &w->label[class];
    for (uint32_t i = 0; i < f->n; i++)
        po_mu_at(w->to->mu, access, axis, times * f->terms[i].coef, f->terms[i].label);
}

void search_at(const search_writer *w, po_mu_access *access, uint32_t axis, uint32_t class) {
    at_times(w, access, axis, 1, class);
}

uint32_t search_classes_of(const search_problem *p, uint64_t labels, uint32_t *classes) {
    uint32_t n = 0;
    for (uint32_t place = 0; place < p->n_classes; place++)
        for (uint32_t c = 0; c < p->n_classes; c++)
            if (p->place[c] == place && (labels >> c & 1))
                classes[n++] = c;
    return n;
}

uint32_t search_tensor(search_writer *w, const char *name, po_mu_place place, uint64_t labels,
                       uint32_t scope) {
    uint32_t classes[PO_FORM_CLASSES], n = search_classes_of(w->p, labels, classes);
    int64_t dims[PO_MU_MAX_RANK] = {1};
    for (uint32_t i = 0; i < n && i < PO_MU_MAX_RANK; i++)
        dims[i] = w->p->extent[classes[i]];
    uint32_t id = po_mu_add_tensor(w->to->mu, name, place, n ? n : 1, dims);
    w->to->mu->tensors[id].scope = scope;
    return id;
}

po_mu_access search_access(search_writer *w, uint32_t tensor, uint64_t labels) {
    uint32_t classes[PO_FORM_CLASSES], n = search_classes_of(w->p, labels, classes);
    po_mu_access a = po_mu_access_of(w->to->mu, tensor);
    for (uint32_t i = 0; i < n; i++)
        search_at(w, &a, i, classes[i]);
    return a;
}

/* INPUT, OUTPUT, and weights that are read as they are. */
static uint32_t border(search_writer *w, uint32_t naive) {
    const po_mu_tensor *t = &w->p->naive->tensors[naive];
    if (w->view)
        return po_twin(w->to, w->view[naive].tensor);
    if (t->place == PO_MU_WEIGHT && !w->as_is)
        return po_twin(w->to, naive);
    if (w->leaf[naive] == PO_NONE) {
        w->leaf[naive] = po_mu_add_tensor(w->to->mu, t->name, w->to->lone ? PO_MU_DEVICE : t->place,
                                          t->rank, t->dims);
        w->to->mu->tensors[w->leaf[naive]].number = t->number;
        w->to->mu->tensors[w->leaf[naive]].type = t->type;
    }
    return w->leaf[naive];
}

po_mu_access search_border_access(search_writer *w, uint32_t naive) {
    const uint32_t twin = border(w, naive);
    po_mu_access a = po_mu_access_of(w->to->mu, twin);
    for (uint32_t x = 0; w->view && x < w->to->mu->tensors[twin].rank; x++)
        po_mu_at(w->to->mu, &a, x, w->view[naive].from[x], PO_NONE);
    for (uint32_t x = 0; x < w->p->naive->tensors[naive].rank; x++) {
        const po_mu_view *view = w->view ? &w->view[naive] : NULL;
        if (w->p->axes[naive][x] != PO_NONE)
            at_times(w, &a, view ? view->axis[x] : x, view ? view->times[x] : 1,
                     w->p->axes[naive][x]);
    }
    return a;
}

uint32_t search_number(search_writer *w, uint32_t statement, const search_node *n) {
    double over, under;
    const bool product = search_is_product(w->p, n, &over, &under);
    if (!product && !search_is_fraction(w->p, n, &over, &under))
        return po_mu_constant(w->to->mu, statement, n->value);
    uint32_t a = po_mu_constant(w->to->mu, statement, over);
    uint32_t b = po_mu_constant(w->to->mu, statement, under);
    return po_mu_item_of(w->to->mu, statement, product ? PO_MU_TIMES : PO_MU_OVER, a, b, 0);
}
