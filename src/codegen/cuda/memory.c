/* Where tensors lie: the strides of what a block keeps, places in shared memory, places between
 * launches; places are used again once what lay there is dead. */
#include "codegen/cuda/internal.h"

enum { SHARED_ALIGN = 128, DEVICE_ALIGN = 256, MUCH = 48 * 1024, SMALL = 1024 };

/* Whether a product reads f32 whose rows lie along what is kept. */
static bool is_turned(cu *c, uint32_t tensor) {
    const po_mu *mu = c->mu;
    const po_mu_tensor *t = &mu->tensors[tensor];
    if (t->type != PO_MU_F32 || t->scope == PO_NONE)
        return false;
    for (uint32_t n = t->scope; n != PO_NONE && po_mu_inside(mu, n, t->scope);
         n = po_mu_next(mu, n)) {
        const po_mu_statement *s = &mu->nodes[n].statement;
        bool named = false, sums = false;
        cu_product p;
        if (mu->nodes[n].kind != PO_MU_STATEMENT)
            continue;
        for (uint32_t k = 0; k < s->n_in; k++)
            named |= s->in[k].tensor == tensor;
        if (!named || !cu_product_of(c, n, &p))
            continue;
        for (uint32_t side = 0; side < 2; side++) {
            const po_mu_access *a = &s->in[side ? p.b : p.a];
            for (uint32_t i = 0; i < p.n_red && a->tensor == tensor; i++)
                sums |= po_mu_coef(po_mu_last_axis(mu, a), p.red[i]) != 0;
        }
        if (!sums)
            return true;
    }
    return false;
}

void cu_layout(cu *c, uint32_t tensor) {
    const po_mu_tensor *t = &c->mu->tensors[tensor];
    cu_tensor *to = &c->tensor[tensor];
    bool own = t->place == PO_MU_SHARED;
    int64_t bytes = po_mu_bytes(t->type), stride = 1;
    to->stages = 1;
    to->origin = own ? 0 : t->origin;
    to->elements = t->floats;
    for (uint32_t x = t->rank; x-- > 0;) {
        to->least[x] = 0;
        to->count[x] = t->dims[x];
        to->stride[x] = t->stride[x];
        if (!own)
            continue;
        (void)po_mu_held(c->mu, tensor, x, &to->least[x], &to->count[x]);
        to->stride[x] = stride;
        stride *= to->count[x];
        /* Rows of an odd number of 16 bytes: eight rows' pieces of 16 bytes lie in all banks. Of
         * f32 that tensor cores take row by row: four rows' eight floats do. */
        if (x + 1 == t->rank && t->rank > 1 && stride * bytes >= INT64_C(2) * CU_PAD) {
            int64_t pieces = po_ceil_div(stride * bytes, CU_PAD);
            pieces = is_turned(c, tensor) ? pieces + (6 - pieces % 4) % 4 : pieces | 1;
            stride = pieces * CU_PAD / bytes;
        }
    }
    if (own)
        to->elements = po_ceil_div(stride * bytes, CU_PAD) * CU_PAD / bytes;
}

/* --- places --- */

static bool meet(const cu_tensor *a, int64_t at, int64_t size, const cu_tensor *b, int64_t b_size,
                 bool always) {
    return (always || (a->first <= b->last && b->first <= a->last)) && at < b->offset + b_size &&
           b->offset < at + size;
}

static int64_t size_of(const cu *c, uint32_t tensor, int64_t align) {
    const cu_tensor *t = &c->tensor[tensor];
    return po_ceil_div(t->elements * t->stages * po_mu_bytes(c->mu->tensors[tensor].type), align) *
           align;
}

/* The lowest free place for each, large ones first; those of less than `apart` bytes lie on
 * nothing that another has used. */
static int64_t place_all(cu *c, uint32_t *tensors, uint32_t n, int64_t align, int64_t apart) {
    int64_t total = 0;
    for (uint32_t i = 1; i < n; i++) {
        uint32_t t = tensors[i], at = i;
        for (; at > 0 && size_of(c, tensors[at - 1], align) < size_of(c, t, align); at--)
            tensors[at] = tensors[at - 1];
        tensors[at] = t;
    }
    for (uint32_t i = 0; i < n; i++) {
        cu_tensor *t = &c->tensor[tensors[i]];
        int64_t at = 0, size = size_of(c, tensors[i], align);
        bool alone = size < apart;
        for (uint32_t k = 0; k < i;) {
            const cu_tensor *o = &c->tensor[tensors[k]];
            int64_t o_size = size_of(c, tensors[k], align);
            if (meet(t, at, size, o, o_size, alone || o_size < apart)) {
                at = o->offset + o_size;
                k = 0;
            } else {
                k++;
            }
        }
        t->offset = at;
        total = at + size > total ? at + size : total;
    }
    return total;
}

/* --- between launches --- */

po_status cu_memory_device(cu *c) {
    const po_mu *mu = c->mu;
    uint32_t n = 0, *device = PO_NEW_N(c->arena, uint32_t, mu->n_tensors + 1);
    int64_t position = 0;
    for (uint32_t t = 0; t < mu->n_tensors; t++) {
        c->tensor[t].first = INT64_MAX;
        c->tensor[t].last = -1;
    }
    for (uint32_t step = mu->first; step != PO_NONE; step = mu->nodes[step].next, position++)
        for (uint32_t i = step; i != PO_NONE && po_mu_inside(mu, i, step); i = po_mu_next(mu, i)) {
            const po_mu_statement *s = &mu->nodes[i].statement;
            if (mu->nodes[i].kind != PO_MU_STATEMENT)
                continue;
            for (uint32_t k = 0; k <= s->n_in; k++) {
                cu_tensor *t = &c->tensor[po_mu_touched(s, k)];
                t->first = position < t->first ? position : t->first;
                t->last = position;
            }
        }
    for (uint32_t t = 0; t < mu->n_tensors; t++) {
        if (cu_is_global(&mu->tensors[t]) && mu->tensors[t].floats >= INT32_MAX)
            return po_fail(c->ctx, PO_UNSUPPORTED, "muGraph '%s': tensor '%s' has %lld elements",
                           mu->name, mu->tensors[t].name, (long long)mu->tensors[t].floats);
        if (mu->tensors[t].place == PO_MU_DEVICE && c->tensor[t].last >= 0)
            device[n++] = t;
    }
    c->device = place_all(c, device, n, DEVICE_ALIGN, 0);
    return PO_OK;
}

/* --- of a block --- */

void cu_memory_shared(cu *c, uint32_t step) {
    const po_mu *mu = c->mu;
    int64_t at = 0, *position = PO_NEW_N(c->arena, int64_t, mu->n_nodes + 1);
    for (uint32_t n = step; n != PO_NONE && po_mu_inside(mu, n, step); n = po_mu_next(mu, n))
        position[n] = at++;
    for (uint32_t t = 0; t < mu->n_tensors; t++)
        if (mu->tensors[t].place == PO_MU_SHARED) {
            c->tensor[t].first = INT64_MAX;
            c->tensor[t].last = -1;
        }
    for (uint32_t n = step; n != PO_NONE && po_mu_inside(mu, n, step); n = po_mu_next(mu, n)) {
        const po_mu_statement *s = &mu->nodes[n].statement;
        if (mu->nodes[n].kind != PO_MU_STATEMENT)
            continue;
        for (uint32_t k = 0; k <= s->n_in; k++) {
            uint32_t tensor = po_mu_touched(s, k);
            cu_tensor *t = &c->tensor[tensor];
            if (mu->tensors[tensor].place != PO_MU_SHARED || t->fragment != 0)
                continue;
            /* What is copied ahead lives as long as its loop. */
            uint32_t top = t->stages > 1 || c->node[n].pipelined
                               ? mu->tensors[tensor].scope
                               : cg_below_scope(mu, n, &mu->tensors[tensor]);
            t->first = position[top] < t->first ? position[top] : t->first;
            int64_t last = position[cg_last_inside(mu, top)];
            t->last = last > t->last ? last : t->last;
        }
    }
    uint32_t n_here = 0, *here = PO_NEW_N(c->arena, uint32_t, mu->n_tensors + 1);
    for (uint32_t t = 0; t < mu->n_tensors; t++)
        if (mu->tensors[t].place == PO_MU_SHARED && c->tensor[t].last >= 0)
            here[n_here++] = t;
    /* What lies where something else lay costs a barrier: only where room is short. */
    c->shared = place_all(c, here, n_here, SHARED_ALIGN, INT64_MAX);
    if (c->shared > MUCH)
        c->shared = place_all(c, here, n_here, SHARED_ALIGN, SMALL);
}
