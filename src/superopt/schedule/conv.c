/* Finds a convolution in a naive step: the lane of the outputs, the channels, the window axes (two
 * of the map at most, and one of frames), and the weights' axes that go with them. */
#include "superopt/schedule/conv.h"

static bool lone_label(const po_mu_index *index, uint32_t label) {
    return index->n == 1 && index->terms[0].label == label && index->terms[0].coef == 1;
}

/* An axis whose index is a kept label, a reduced one with the dilation, or both. */
static bool window_axis(const po_mu *mu, const po_naive_step *n, const po_mu_index *index,
                        po_conv_axis *to) {
    if (index->n > 2)
        return false;
    *to = (po_conv_axis){.at = PO_NONE, .tap = PO_NONE, .apart = 1, .stride = 1};
    for (uint32_t i = 0; i < index->n; i++) {
        po_mu_term term = index->terms[i];
        bool reduced = po_is_reduced(mu, n, term.label);
        if (term.coef < 1 || (reduced ? to->tap : to->at) != PO_NONE)
            return false;
        *(reduced ? &to->tap : &to->at) = term.label;
        *(reduced ? &to->apart : &to->stride) = term.coef;
    }
    to->length = po_mu_extent(mu, to->at);
    to->taps = po_mu_extent(mu, to->tap);
    return true;
}

/* Weights that are computed at run time are copied to panels: each number of the outputs, inputs
 * and taps is an element inside the tensor. */
static bool find_values(const po_mu *mu, const po_mu_conv *v, const uint32_t inner[4]) {
    const po_mu_access *b = &v->n.s->in[v->n.b];
    const po_mu_tensor *t = &mu->tensors[b->tensor];
    if ((t->place != PO_MU_DEVICE && t->place != PO_MU_INPUT) || !po_mu_has(mu, b, v->k))
        return false;
    for (uint32_t x = 0; x < t->rank; x++) {
        int64_t least, most;
        po_mu_range(mu, b, x, &least, &most);
        if (least < 0 || most >= t->dims[x])
            return false;
        for (uint32_t i = 0; i < b->axes[x].n; i++) {
            bool known = b->axes[x].terms[i].label == v->k;
            for (uint32_t k = 0; k < 4; k++)
                known |= b->axes[x].terms[i].label == inner[k];
            if (!known)
                return false;
        }
    }
    return true;
}

/* Each label of the input along one axis of the weight. */
static bool find_weights(const po_mu *mu, po_mu_conv *v) {
    const po_mu_access *b = &v->n.s->in[v->n.b];
    uint32_t rank = mu->tensors[b->tensor].rank;
    const uint32_t inner[] = {v->c, v->frames.tap, v->map[0].tap, v->map[1].tap};
    v->values = mu->tensors[b->tensor].place != PO_MU_WEIGHT;
    if (v->values)
        return find_values(mu, v, inner);
    if (rank >= PO_MU_MAX_RANK)
        return false;
    v->w_k = po_access_axis(mu, b, v->k);
    if (v->w_k == PO_NONE || !lone_label(&b->axes[v->w_k], v->k) || b->axes[v->w_k].offset != 0)
        return false;
    v->n_w_order = 0;
    for (uint32_t i = 0; i < 4; i++) {
        uint32_t axis = inner[i] == PO_NONE ? PO_NONE : po_access_axis(mu, b, inner[i]);
        if (inner[i] != PO_NONE && (axis == PO_NONE || b->axes[axis].n != 1))
            return false;
        if (axis != PO_NONE)
            v->w_order[v->n_w_order++] = axis;
    }
    for (uint32_t x = 0; x < rank; x++) {
        if (x == v->w_k || b->axes[x].n)
            continue;
        memmove(&v->w_order[1], v->w_order, v->n_w_order++ * sizeof *v->w_order);
        v->w_order[0] = x;
    }
    return v->n_w_order + 1 == rank;
}

bool po_conv_alike(const po_conv_axis *a, const po_conv_axis *b) {
    return a->taps == b->taps && a->stride == b->stride;
}

/* Each phase of a stride has a tap, and positions beside one another. */
static bool stride_fits(const po_conv_axis *axis) {
    return axis->stride == 1 || (axis->apart == 1 && axis->stride <= axis->taps);
}

bool po_conv_of(const po_mu *mu, uint32_t step, po_mu_conv *v) {
    if (!po_naive_step_of(mu, step, &v->n) || !v->n.product)
        return false;
    const po_mu_access *a = &v->n.s->in[v->n.a], *o = v->n.out;
    uint32_t rank = mu->tensors[a->tensor].rank, found = 0;
    po_conv_axis axes[3];
    if ((mu->tensors[a->tensor].place != PO_MU_DEVICE &&
         mu->tensors[a->tensor].place != PO_MU_INPUT) ||
        rank < 2)
        return false;
    const po_mu_index *last = po_mu_last_axis(mu, a);
    v->c = last->n == 1 && lone_label(last, last->terms[0].label) ? last->terms[0].label : PO_NONE;
    v->k = v->n.lane;
    if (v->c == PO_NONE || !po_is_reduced(mu, &v->n, v->c))
        return false;
    for (uint32_t i = 0; i + 1 < rank; i++) {
        if (a->axes[i].n == 0)
            continue;
        if (found == 3 || !window_axis(mu, &v->n, &a->axes[i], &axes[found]))
            return false;
        axes[found++].axis = i;
    }
    if (found == 0)
        return false;
    v->frames.axis = v->frames.tap = v->frames.at = PO_NONE;
    v->frames.length = v->frames.taps = 1;
    v->map[0] = (po_conv_axis){.at = PO_NONE,
                               .tap = PO_NONE,
                               .axis = PO_NONE,
                               .length = 1,
                               .taps = 1,
                               .apart = 1,
                               .stride = 1};
    for (uint32_t i = 0; i < found; i++) {
        bool frame = i + 2 < found;
        *(frame ? &v->frames : &v->map[i + 2 - found]) = axes[i];
        if (!frame &&
            (!stride_fits(&axes[i]) || axes[i].length < 2 || axes[i].apart > axes[i].length ||
             (axes[i].taps == 1 && a->axes[axes[i].axis].offset != 0)))
            return false;
    }
    for (uint32_t i = 0; i < mu->tensors[o->tensor].rank; i++)
        if (o->axes[i].n > 1)
            return false;
    v->outputs = po_mu_extent(mu, v->k);
    v->inputs = po_mu_extent(mu, v->c);
    return find_weights(mu, v) && v->map[0].apart * v->map[1].apart <= 256 &&
           (v->inputs % PO_MU_VECTOR == 0 || (v->inputs < 64 && v->inputs >= 8)) &&
           (v->outputs % PO_MU_VECTOR == 0 || (v->outputs < 64 && v->outputs >= 8));
}
