/* The naive muGraph itself as a program without loops, for where forms are too large for the
 * algebra, or lead to nothing better. */
#include "superopt/search/internal.h"

typedef struct taking {
    const search_problem *p;
    search_skeleton *s;
    uint32_t *node; /* by tensor: that makes it; PO_NONE */
    bool full;
} taking;

static bool same(const search_node *a, const search_node *b) {
    return a->kind == b->kind && a->function == b->function && a->class == b->class &&
           a->tensor == b->tensor && a->value == b->value &&
           memcmp(a->arg, b->arg, sizeof a->arg) == 0;
}

static uint32_t add(taking *t, search_node n) {
    for (uint32_t k = 0; k < search_arity(&n) && n.kind == SEARCH_FUNCTION; k++)
        n.labels |= t->s->node[n.arg[k]].labels;
    n.form = PO_NONE;
    for (uint32_t i = 0; i < t->s->n; i++)
        if (same(&t->s->node[i], &n))
            return i;
    if (t->s->n == SEARCH_NODES) {
        t->full = true;
        return 0;
    }
    t->s->node[t->s->n] = n;
    return t->s->n++;
}

static uint64_t axes_of(const search_problem *p, uint32_t tensor) {
    uint64_t labels = 0;
    for (uint32_t x = 0; x < p->naive->tensors[tensor].rank; x++)
        if (p->axes[tensor][x] != PO_NONE)
            labels |= (uint64_t)1 << p->axes[tensor][x];
    return labels;
}

static uint32_t value_of(taking *t, const po_mu_statement *s) {
    uint32_t value[PO_MU_MAX_ITEMS];
    for (uint32_t i = 0; i < s->n_items && !t->full; i++) {
        const po_mu_item *m = &s->items[i];
        search_node n = {.kind = SEARCH_FUNCTION, .function = m->function};
        if (m->function == PO_MU_CONST) {
            value[i] = add(t, (search_node){.kind = SEARCH_NUMBER, .value = m->value});
            continue;
        }
        if (m->function == PO_MU_OPERAND) {
            uint32_t tensor = s->in[m->a].tensor;
            value[i] = t->node[tensor];
            if (value[i] == PO_NONE)
                value[i] = add(t, (search_node){.kind = SEARCH_LEAF,
                                                .tensor = tensor,
                                                .labels = axes_of(t->p, tensor)});
            continue;
        }
        uint32_t x[3] = {m->a, m->b, m->c};
        for (uint32_t k = 0; k < po_mu_arity(m->function); k++)
            n.arg[k] = value[x[k]];
        value[i] = add(t, n);
    }
    return t->full ? 0 : value[s->n_items - 1];
}

static void statement(taking *t, const po_mu_statement *s) {
    const search_problem *p = t->p;
    uint32_t v = value_of(t, s);
    uint64_t kept = axes_of(p, s->out.tensor), all = t->s->node[v].labels;
    for (uint32_t c = 0; c < p->n_classes && s->combine != PO_MU_SET && !t->full; c++)
        if ((all & ~kept) >> c & 1) {
            all &= ~((uint64_t)1 << c);
            v = add(t, (search_node){.kind = s->combine == PO_MU_ADD ? SEARCH_SUM : SEARCH_MAXIMUM,
                                     .class = c,
                                     .arg = {v, 0, 0},
                                     .labels = all});
        }
    /* What is said of each element must be said by the value: a sum over a label that no operand
     * has would be a product. */
    t->full |= all != kept;
    t->node[s->out.tensor] = v;
    if (!t->full && p->naive->tensors[s->out.tensor].type != PO_MU_F32)
        t->s->node[v].own = true;
}

bool search_naive(const search_problem *p, search_skeleton *s) {
    taking t = {.p = p, .s = s, .node = PO_NEW_N(p->arena, uint32_t, p->naive->n_tensors + 1)};
    const po_mu *mu = p->naive;
    *s = (search_skeleton){.naive = true};
    for (uint32_t i = 0; i < mu->n_tensors; i++)
        t.node[i] = PO_NONE;
    for (uint32_t n = po_mu_next(mu, PO_NONE); n != PO_NONE && !t.full; n = po_mu_next(mu, n))
        if (mu->nodes[n].kind == PO_MU_STATEMENT)
            statement(&t, &mu->nodes[n].statement);
    if (!t.full)
        search_find_shifts(p, s);
    /* The last node is the target's, and one that does something. */
    return !t.full && s->n > 0 && t.node[p->target] == s->n - 1 &&
           s->node[s->n - 1].kind != SEARCH_LEAF && s->node[s->n - 1].kind != SEARCH_NUMBER;
}
