/* Products: which statements are some, their loops over slices of what is added up, and copies of
 * their operands in shared memory. */
#include "codegen/cuda/internal.h"

enum {
    SLICE = 64,           /* elements of a reduced label worked at a time; half as many of f32 */
    FULL_SLICE = 6 << 10, /* bytes of both operands that a slice should have */
    WHOLE = 40 << 10,     /* that are not cut inside a loop */
    MOST_TILE = 1 << 16,  /* of an operand's copy */
    LEAST_STREAM = 512,   /* of what others read ahead */
    MOST_STREAM = 16 << 10
};

/* --- what is a product --- */

static bool has_any(const po_mu *mu, const po_mu_access *a, const uint32_t *labels, uint32_t n) {
    for (uint32_t i = 0; i < n; i++)
        if (po_mu_has(mu, a, labels[i]))
            return true;
    return false;
}

/* The factors of an expression that is a product of operands and numbers; false: it is not. */
static bool factors(const po_mu_statement *s, uint32_t *operand, uint32_t *n, double *scale) {
    uint32_t open[PO_MU_MAX_ITEMS], n_open = 0;
    *n = 0;
    *scale = 1;
    open[n_open++] = s->n_items - 1;
    while (n_open > 0) {
        const po_mu_item *it = &s->items[open[--n_open]];
        if (it->function == PO_MU_TIMES && n_open + 2 <= PO_MU_MAX_ITEMS) {
            open[n_open++] = it->b;
            open[n_open++] = it->a;
        } else if (it->function == PO_MU_CONST) {
            *scale *= it->value;
        } else if (it->function == PO_MU_NEGATE) {
            *scale = -*scale;
            open[n_open++] = it->a;
        } else if (it->function == PO_MU_OPERAND && *n < PO_MU_MAX_INPUTS) {
            operand[(*n)++] = it->a;
        } else {
            return false;
        }
    }
    return true;
}

/* Far ones first, by where the accesses say that they lie. */
static void push_far(const po_mu *mu, const po_mu_access *a, uint32_t *labels, uint32_t *n,
                     uint32_t label) {
    const po_mu_tensor *t = &mu->tensors[a->tensor];
    int64_t step[2] = {0, 0};
    uint32_t at = (*n)++;
    for (; at > 0; at--) {
        step[0] = step[1] = 0;
        for (uint32_t x = 0; x < t->rank; x++) {
            step[0] += po_mu_coef(&a->axes[x], labels[at - 1]) * t->stride[x];
            step[1] += po_mu_coef(&a->axes[x], label) * t->stride[x];
        }
        if (step[0] * step[0] >= step[1] * step[1])
            break;
        labels[at] = labels[at - 1];
    }
    labels[at] = label;
}

bool cu_product_of(cu *c, uint32_t node, cu_product *p) {
    const po_mu *mu = c->mu;
    const po_mu_statement *s = &mu->nodes[node].statement;
    uint32_t n_kept, n_reduced, *kept, *reduced, operand[PO_MU_MAX_INPUTS], n, main[2], n_main = 0;
    *p = (cu_product){0};
    if (s->combine != PO_MU_ADD || !factors(s, operand, &n, &p->scale))
        return false;
    po_mu_labels_of(mu, s, c->arena, &n_kept, &kept, &n_reduced, &reduced);
    if (n_reduced == 0 || n_reduced > CU_LABELS || n_kept > CU_LABELS)
        return false;
    for (uint32_t i = 0; i < n; i++) {
        if (!has_any(mu, &s->in[operand[i]], reduced, n_reduced))
            p->factor[p->n_factor++] = operand[i];
        else if (n_main < 2)
            main[n_main++] = operand[i];
        else
            return false;
    }
    if (n_main < 2 || main[0] == main[1])
        return false;
    /* The operand that moves with what lies side by side in what is written is the columns'. */
    const po_mu_access *a = &s->in[main[0]], *b = &s->in[main[1]];
    const po_mu_tensor *out = &mu->tensors[s->out.tensor];
    for (uint32_t i = 0; i < n_kept; i++) {
        int64_t step = 0;
        for (uint32_t x = 0; x < out->rank; x++)
            step += po_mu_coef(&s->out.axes[x], kept[i]) * out->stride[x];
        if (step == 1 && po_mu_has(mu, a, kept[i]) && !po_mu_has(mu, b, kept[i])) {
            uint32_t swap = main[0];
            main[0] = main[1];
            main[1] = swap;
            a = &s->in[main[0]];
            b = &s->in[main[1]];
            break;
        }
    }
    p->a = main[0];
    p->b = main[1];
    for (uint32_t i = 0; i < n_reduced; i++) {
        if (!po_mu_has(mu, a, reduced[i]) || !po_mu_has(mu, b, reduced[i]))
            return false;
        push_far(mu, b, p->red, &p->n_red, reduced[i]);
    }
    for (uint32_t i = 0; i < n_kept; i++) {
        bool in_a = po_mu_has(mu, a, kept[i]), in_b = po_mu_has(mu, b, kept[i]);
        if (in_a && in_b)
            p->n_batch++;
        else if (in_a)
            push_far(mu, &s->out, p->row, &p->n_row, kept[i]);
        else if (in_b)
            push_far(mu, &s->out, p->col, &p->n_col, kept[i]);
        else if (cu_count(c, node, kept[i]) > 1)
            return false;
        if (in_a && in_b && cu_count(c, node, kept[i]) > 1 &&
            mu->nodes[mu->nodes[node].parent].kind == PO_MU_LOOP)
            return false; /* several products in one block */
    }
    if (p->n_row > 0)
        return p->n_col > 0;
    /* A vector by a matrix: only where rows of the matrix lie along what is kept. */
    const po_mu_tensor *matrix = &mu->tensors[b->tensor];
    for (uint32_t i = 0; i < p->n_col; i++)
        for (uint32_t x = 0; x < matrix->rank; x++)
            if (po_mu_coef(&b->axes[x], p->col[i]) * matrix->stride[x] == 1)
                return true;
    return false;
}

/* --- slices --- */

static uint32_t innermost(const cu *c, uint32_t node, const cu_product *p) {
    const po_mu_statement *s = &c->mu->nodes[node].statement;
    uint32_t best = p->red[p->n_red - 1];
    int64_t most = 0;
    for (uint32_t i = 0; i < p->n_red; i++) {
        int64_t count = cu_count(c, node, p->red[i]);
        for (uint32_t side = 0; side < 2; side++) {
            const po_mu_access *a = &s->in[side ? p->b : p->a];
            int64_t step = 0;
            for (uint32_t x = 0; x < c->mu->tensors[a->tensor].rank; x++)
                step += po_mu_coef(&a->axes[x], p->red[i]) * c->mu->tensors[a->tensor].stride[x];
            if (step == 1)
                count *= 4;
        }
        if (count > most) {
            best = p->red[i];
            most = count;
        }
    }
    return best;
}

/* Bytes of a product's operands for one step of what is added up. */
static int64_t bytes_a_step(const cu *c, uint32_t node, const cu_product *p) {
    const po_mu_statement *s = &c->mu->nodes[node].statement;
    int64_t bytes = 0;
    for (uint32_t side = 0; side < 2; side++) {
        const po_mu_tensor *t = &c->mu->tensors[s->in[side ? p->b : p->a].tensor];
        int64_t each = po_mu_bytes(t->type);
        for (uint32_t i = 0; i < (side ? p->n_col : p->n_row); i++)
            each *= cu_count(c, node, side ? p->col[i] : p->row[i]);
        bytes += cu_is_global(t) ? each : 0;
    }
    return bytes;
}

/* Loops over slices around a product that adds up all at once: slices of some KB, so that enough
 * of memory is under way at a time. Inside a loop only what is too large is cut: slices there
 * would start the copies anew each time. */
static void slice(cu *c, uint32_t node) {
    cu_product p;
    if (!cu_product_of(c, node, &p))
        return;
    const po_mu_statement *s = &c->mu->nodes[node].statement;
    uint32_t parent = c->mu->nodes[node].parent;
    int64_t all = 1, step = bytes_a_step(c, node, &p);
    for (uint32_t i = 0; i < p.n_red; i++)
        all *= cu_count(c, node, p.red[i]);
    int64_t size = c->mu->tensors[s->in[p.a].tensor].type == PO_MU_F32 ? SLICE / 2 : SLICE;
    bool inside = c->mu->nodes[parent].kind == PO_MU_LOOP && c->mu->nodes[parent].loop == PO_MU_FOR;
    if (all <= size || !s->fresh || step == 0 || (inside && all * step <= WHOLE))
        return;
    uint32_t last = innermost(c, node, &p);
    while (step * size < FULL_SLICE && size * 4 <= cu_count(c, node, last))
        size *= 2;
    for (uint32_t i = 0; i < p.n_red; i++) {
        if (p.red[i] == last || po_mu_binder(c->mu, node, p.red[i]) != PO_NONE ||
            cu_count(c, node, p.red[i]) <= 1)
            continue;
        (void)cu_wrap(c->mu, node, c->mu->nodes[node].next, PO_MU_FOR, p.red[i], 1);
    }
    if (po_mu_binder(c->mu, node, last) == PO_NONE && cu_count(c, node, last) > size)
        (void)cu_wrap(c->mu, node, c->mu->nodes[node].next, PO_MU_FOR, last, size);
}

/* Whether something inside one node reads or writes what is written inside another. */
static bool hangs_on(const cu *c, uint32_t node, uint32_t on) {
    const po_mu *mu = c->mu;
    for (uint32_t n = node; n != PO_NONE && po_mu_inside(mu, n, node); n = po_mu_next(mu, n)) {
        const po_mu_statement *s = &mu->nodes[n].statement;
        if (mu->nodes[n].kind != PO_MU_STATEMENT)
            continue;
        for (uint32_t k = 0; k <= s->n_in; k++)
            if (cu_writes(c, on, po_mu_touched(s, k)))
                return true;
    }
    return false;
}

/* Loops over the same slices become one: what both read is copied once. The second may stand
 * further down, behind what neither of the two has to do with. */
static void join(cu *c, uint32_t parent) {
    po_mu *mu = c->mu;
    for (uint32_t n = mu->nodes[parent].first; n != PO_NONE; n = mu->nodes[n].next) {
        if (mu->nodes[n].kind != PO_MU_LOOP)
            continue;
        for (uint32_t m = mu->nodes[n].next, next; m != PO_NONE; m = next) {
            next = mu->nodes[m].next;
            bool like = mu->nodes[n].loop == PO_MU_FOR && mu->nodes[m].kind == PO_MU_LOOP &&
                        mu->nodes[m].loop == PO_MU_FOR &&
                        mu->nodes[m].label == mu->nodes[n].label &&
                        po_mu_chunk(mu, m) == po_mu_chunk(mu, n);
            for (uint32_t k = n; like && k != m; k = mu->nodes[k].next)
                like = !hangs_on(c, m, k) && !hangs_on(c, k, m);
            if (!like)
                continue;
            cu_detach(mu, m);
            for (uint32_t k; (k = mu->nodes[m].first) != PO_NONE;) {
                cu_detach(mu, k);
                cu_attach(mu, n, PO_NONE, k);
            }
            for (uint32_t t = 0; t < mu->n_tensors; t++)
                if (mu->tensors[t].scope == m)
                    mu->tensors[t].scope = n;
        }
        join(c, n);
    }
}

/* A copy that only products read is left to cu_stage, which sees how they go through it. */
static void forward(cu *c, uint32_t node) {
    po_mu *mu = c->mu;
    const po_mu_statement *s = &mu->nodes[node].statement;
    uint32_t step = po_mu_step_of(mu, node), tensor = s->out.tensor;
    const po_mu_tensor *t = &mu->tensors[tensor];
    if (s->combine != PO_MU_SET || s->n_in != 1 || s->n_items != 1 || t->place != PO_MU_SHARED ||
        !cu_is_global(&mu->tensors[s->in[0].tensor]) ||
        mu->tensors[s->in[0].tensor].type != t->type || cu_leaves(c, &s->in[0]) ||
        cu_writes(c, step, s->in[0].tensor))
        return;
    for (uint32_t n = step; n != PO_NONE && po_mu_inside(mu, n, step); n = po_mu_next(mu, n)) {
        const po_mu_statement *o = &mu->nodes[n].statement;
        cu_product p;
        if (mu->nodes[n].kind != PO_MU_STATEMENT || n == node)
            continue;
        if (o->out.tensor == tensor)
            return;
        for (uint32_t k = 0; k < o->n_in; k++)
            if (o->in[k].tensor == tensor &&
                (!po_mu_same_access(mu, &o->in[k], &s->out) || !cu_product_of(c, n, &p)))
                return;
    }
    po_mu_access to = s->out, from = s->in[0];
    for (uint32_t n = step; n != PO_NONE && po_mu_inside(mu, n, step); n = po_mu_next(mu, n))
        if (mu->nodes[n].kind == PO_MU_STATEMENT && n != node)
            cu_replace(mu, n, &to, &from);
    cu_detach(mu, node);
    mu->nodes[node].kind = PO_MU_STEP; /* no statement any more */
}

void cu_slice(cu *c) {
    uint32_t n_nodes = c->mu->n_nodes;
    for (uint32_t n = 0; n < n_nodes; n++)
        if (c->mu->nodes[n].kind == PO_MU_STATEMENT)
            forward(c, n);
    for (uint32_t n = 0; n < n_nodes; n++)
        if (c->mu->nodes[n].kind == PO_MU_STATEMENT)
            slice(c, n);
    for (uint32_t s = c->mu->first; s != PO_NONE; s = c->mu->nodes[s].next)
        join(c, s);
}

/* --- copies --- */

/* The innermost loop around a node that moves what an access reads; the step where none does. */
static uint32_t mover(const po_mu *mu, uint32_t node, const po_mu_access *access) {
    uint32_t at = mu->nodes[node].parent;
    while (mu->nodes[at].kind == PO_MU_LOOP && mu->nodes[at].loop != PO_MU_GRID &&
           !po_mu_has(mu, access, mu->nodes[at].label))
        at = mu->nodes[at].parent;
    return at;
}

typedef struct staged {
    uint32_t loop;
    po_mu_access from, to;
} staged;

static int64_t step_of(const po_mu *mu, const po_mu_access *a, uint32_t label) {
    int64_t step = 0;
    for (uint32_t x = 0; x < mu->tensors[a->tensor].rank; x++)
        step += po_mu_coef(&a->axes[x], label) * mu->tensors[a->tensor].stride[x];
    return step < 0 ? -step : step;
}

/* The copy of what a product reads from memory, made at the start of the loop that moves it. */
static void stage(cu *c, uint32_t node, uint32_t operand, staged **known, uint32_t *n_known,
                  uint32_t *cap) {
    po_mu *mu = c->mu;
    po_mu_access from = mu->nodes[node].statement.in[operand];
    const po_mu_tensor *t = &mu->tensors[from.tensor];
    uint32_t labels[PO_MU_MAX_RANK], n = 0;
    int64_t bytes = po_mu_bytes(t->type), dims[PO_MU_MAX_RANK];
    if (!cu_is_global(t) || cu_writes(c, po_mu_step_of(mu, node), from.tensor))
        return;
    for (uint32_t l = 0; l < mu->n_labels; l++) {
        int64_t count = cu_count(c, node, l);
        uint32_t binder = po_mu_binder(mu, node, l);
        /* A label that a loop binds stays, or what adds up would not know its first chunk. */
        bool bound = binder != PO_NONE && mu->nodes[binder].loop == PO_MU_FOR;
        if (!po_mu_has(mu, &from, l) || (count <= 1 && !bound))
            continue;
        if (n == PO_MU_MAX_RANK || step_of(mu, &from, l) == 0)
            return;
        bytes *= count;
        if (bytes > MOST_TILE)
            return;
        uint32_t at = n++;
        for (; at > 0 && step_of(mu, &from, labels[at - 1]) < step_of(mu, &from, l); at--)
            labels[at] = labels[at - 1];
        labels[at] = l;
    }
    if (n == 0)
        return;
    uint32_t loop = mover(mu, node, &from);
    for (uint32_t i = 0; i < *n_known; i++)
        if ((*known)[i].loop == loop && po_mu_same_access(mu, &(*known)[i].from, &from)) {
            mu->nodes[node].statement.in[operand] = (*known)[i].to;
            return;
        }
    for (uint32_t i = 0; i < n; i++)
        dims[i] = mu->labels[labels[i]].extent;
    uint32_t tile =
        po_mu_add_tensor(mu, po_arena_printf(c->arena, "%s.tile", t->name), PO_MU_SHARED, n, dims);
    mu->tensors[tile].type = mu->tensors[from.tensor].type;
    mu->tensors[tile].scope = loop;
    po_mu_access to = po_mu_access_of(mu, tile);
    for (uint32_t i = 0; i < n; i++)
        po_mu_at(mu, &to, i, 1, labels[i]);
    uint32_t copy = po_mu_add_statement(mu, loop, PO_MU_SET);
    mu->nodes[copy].statement.out = to;
    (void)po_mu_item_of(mu, copy, PO_MU_OPERAND, po_mu_operand(mu, copy, from), 0, 0);
    cu_detach(mu, copy);
    cu_attach(mu, loop, mu->nodes[loop].first, copy);
    mu->nodes[node].statement.in[operand] = to;
    staged one = {loop, from, to};
    PO_PUSH(c->arena, *known, *n_known, *cap, one);
    PO_PUSH(c->arena, c->staged, c->n_staged, c->cap_staged, tile);
}

/* Whether an access moves by pieces that asynchronous copies take: some label by single elements,
 * everything else by at least four bytes. */
static bool is_wide(const cu *c, uint32_t node, const po_mu_access *a) {
    const po_mu *mu = c->mu;
    const po_mu_tensor *t = &mu->tensors[a->tensor];
    int64_t least = 4 / po_mu_bytes(t->type), at = t->origin;
    bool along = false;
    for (uint32_t x = 0; x < t->rank; x++)
        at += a->axes[x].offset * t->stride[x];
    for (uint32_t l = 0; l < mu->n_labels; l++) {
        int64_t step = step_of(mu, a, l), count = cu_count(c, node, l);
        along |= step == 1 && count % least == 0 && mu->labels[l].extent % least == 0;
        if (step > 1 && step % least != 0 && mu->labels[l].extent > 1)
            return false;
    }
    return along && at % least == 0;
}

/* What other statements of a FOR loop read of memory chunk by chunk is copied ahead too. */
static bool streams(const cu *c, uint32_t node, uint32_t operand) {
    const po_mu *mu = c->mu;
    const po_mu_access *a = &mu->nodes[node].statement.in[operand];
    const po_mu_tensor *t = &mu->tensors[a->tensor];
    uint32_t loop = mover(mu, node, a);
    if (!cu_is_global(t) || mu->nodes[loop].kind != PO_MU_LOOP ||
        mu->nodes[loop].loop != PO_MU_FOR || !po_mu_has(mu, a, mu->nodes[loop].label) ||
        cu_leaves(c, a) || !is_wide(c, node, a))
        return false;
    const po_mu_statement *s = &mu->nodes[node].statement;
    if (s->combine == PO_MU_SET && s->n_in == 1 && s->n_items == 1 &&
        mu->tensors[s->out.tensor].place == PO_MU_SHARED &&
        mu->tensors[s->out.tensor].type == t->type)
        return false; /* is a copy itself */
    int64_t bytes = po_mu_bytes(t->type);
    for (uint32_t l = 0; l < mu->n_labels; l++)
        bytes *= po_mu_has(mu, a, l) ? cu_count(c, node, l) : 1;
    return bytes >= LEAST_STREAM && bytes <= MOST_STREAM;
}

void cu_stage(cu *c, uint32_t step) {
    staged *known = NULL;
    uint32_t n_known = 0, cap = 0, n_nodes = c->mu->n_nodes;
    for (uint32_t n = 0; n < n_nodes; n++) {
        cu_product p;
        if (c->mu->nodes[n].kind != PO_MU_STATEMENT || !po_mu_inside(c->mu, n, step))
            continue;
        if (cu_product_of(c, n, &p)) {
            stage(c, n, p.a, &known, &n_known, &cap);
            stage(c, n, p.b, &known, &n_known, &cap);
            continue;
        }
        for (uint32_t k = 0; k < c->mu->nodes[n].statement.n_in; k++)
            if (streams(c, n, k))
                stage(c, n, k, &known, &n_known, &cap);
    }
}
