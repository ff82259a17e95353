/* What lies round the elements of a scheduled muGraph's tensors: rings, pitches. */
#include "superopt/schedule/internal.h"

#include <math.h>

/* Rows of such a length fall on few sets of the cache. */
enum { ALIASING = 256, GAP = 16 };

static void ring_for(po_mu *mu, const po_mu_statement *s, const po_mu_access *in) {
    po_mu_tensor *t = &mu->tensors[in->tensor];
    if (t->place != PO_MU_DEVICE || s->combine == PO_MU_SET)
        return;
    for (uint32_t x = 0; x < t->rank; x++) {
        int64_t least, most;
        po_mu_range(mu, in, x, &least, &most);
        if (-least > t->before[x])
            t->before[x] = -least;
        if (most - t->dims[x] + 1 > t->after[x])
            t->after[x] = most - t->dims[x] + 1;
        if ((least < 0 || most >= t->dims[x]) && s->combine == PO_MU_MAXIMUM)
            t->fill = -(double)INFINITY;
    }
}

static void rename(po_mu *mu, const uint32_t *to) {
    for (uint32_t n = 0; n < mu->n_nodes; n++) {
        po_mu_statement *s = &mu->nodes[n].statement;
        if (mu->nodes[n].kind != PO_MU_STATEMENT)
            continue;
        s->out.tensor = to[s->out.tensor];
        for (uint32_t i = 0; i < s->n_in; i++)
            s->in[i].tensor = to[s->in[i].tensor];
    }
}

/* Tensors that nothing uses any more go. */
static void drop_unused(po_schedule *s) {
    po_mu *mu = s->mu;
    uint32_t *to = PO_NEW_N(s->arena, uint32_t, mu->n_tensors), n = 0;
    bool *used = PO_NEW_N(s->arena, bool, mu->n_tensors);
    for (uint32_t i = 0; i < mu->n_nodes; i++) {
        const po_mu_statement *st = &mu->nodes[i].statement;
        if (mu->nodes[i].kind != PO_MU_STATEMENT)
            continue;
        used[st->out.tensor] = true;
        for (uint32_t k = 0; k < st->n_in; k++)
            used[st->in[k].tensor] = true;
    }
    for (uint32_t i = 0; i < mu->n_tensors; i++) {
        to[i] = n;
        if (used[i])
            mu->tensors[n++] = mu->tensors[i];
    }
    rename(mu, to);
    for (uint32_t i = 0; i < s->n_packed; i++)
        s->packed[i].tensor = to[s->packed[i].tensor];
    for (uint32_t i = 0; i < s->naive->n_tensors; i++)
        if (s->tensor[i] != PO_NONE)
            s->tensor[i] = used[s->tensor[i]] ? to[s->tensor[i]] : PO_NONE;
    mu->n_tensors = n;
}

void po_schedule_lay(po_mu *mu, uint32_t tensor) {
    const po_mu_tensor *t = &mu->tensors[tensor];
    int64_t last = t->rank ? t->dims[t->rank - 1] : 1;
    po_mu_layout(mu, tensor, last >= PO_MU_VECTOR ? PO_MU_VECTOR : 1,
                 last % ALIASING == 0 ? GAP : 0);
}

void po_schedule_finish(po_schedule *s) {
    po_mu *mu = s->mu;
    bool *twin_of = PO_NEW_N(s->arena, bool, mu->n_tensors);
    for (uint32_t i = 0; i < s->naive->n_tensors; i++)
        if (s->tensor[i] != PO_NONE)
            twin_of[s->tensor[i]] = true;
    /* What a scheduler lays out itself is left alone. */
    for (uint32_t n = 0; n < mu->n_nodes; n++) {
        const po_mu_statement *st = &mu->nodes[n].statement;
        for (uint32_t i = 0; mu->nodes[n].kind == PO_MU_STATEMENT && i < st->n_in; i++)
            if (twin_of[st->in[i].tensor])
                ring_for(mu, st, &st->in[i]);
    }
    for (uint32_t i = 0; i < s->naive->n_tensors; i++) {
        uint32_t twin = s->tensor[i];
        if (twin == PO_NONE || mu->tensors[twin].place != PO_MU_DEVICE)
            continue;
        po_schedule_lay(mu, twin);
    }
    for (uint32_t i = 0; i < mu->n_tensors; i++)
        if (mu->tensors[i].place == PO_MU_REGISTER)
            po_mu_layout(mu, i, 1, 0);
    drop_unused(s);
}
