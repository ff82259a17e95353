/* Where the parts of a program stand around a for loop: before it, inside, after; what is added up
 * over it, and what needs a running maximum for that. */
#include "superopt/search/internal.h"

static bool is_reduction(const search_node *n) {
    return n->kind == SEARCH_SUM || n->kind == SEARCH_MAXIMUM;
}

static bool is_over(const search_node *n, uint32_t class) {
    return is_reduction(n) && n->class == class;
}

/* Which summands depend on a maximum by a factor exp(-maximum) alone. */
static void find_shifts(const search_problem *p, search_skeleton *s, uint32_t maximum) {
    /* The maximum as a tensor of its own; exp(maximum) times the summand must be free of it. */
    uint32_t form[SEARCH_NODES], classes[PO_FORM_CLASSES], rank = 0, own = p->naive->n_tensors;
    for (uint32_t c = 0; c < p->n_classes; c++)
        if (s->node[maximum].labels >> c & 1)
            classes[rank++] = c;
    if (rank > PO_MU_MAX_RANK)
        return;
    for (uint32_t i = 0; i < s->n; i++) {
        const search_node *n = &s->node[i];
        form[i] = i == maximum ? po_form_leaf(p->exact, own, rank, classes)
                               : search_node_form(p, n, form);
        if (i < maximum || n->kind != SEARCH_SUM || n->class != s->node[maximum].class)
            continue;
        uint32_t up = po_form_apply(p->exact, PO_MU_EXP, &form[maximum]);
        uint32_t rest = po_form_multiply(p->exact, form[n->arg[0]], up);
        if (rest != PO_NONE && !po_form_reads(p->exact, rest, own))
            s->shifts[i] |= (uint64_t)1 << maximum;
    }
}

void search_find_shifts(const search_problem *p, search_skeleton *s) {
    for (uint32_t i = 0; i < s->n; i++)
        if (s->node[i].kind == SEARCH_MAXIMUM)
            find_shifts(p, s, i);
}

typedef struct laying {
    const search_problem *p;
    const search_skeleton *s;
    const search_kernel *k;
    search_layout *l;
    bool in[SEARCH_NODES];       /* made here */
    bool complete[SEARCH_NODES]; /* needs the end of the for loop */
    bool tainted[SEARCH_NODES];  /* by the running maximum */
    uint32_t uses[SEARCH_NODES], user[SEARCH_NODES];
} laying;

static void find_nodes(laying *z, const bool *made) {
    const search_skeleton *s = z->s;
    z->in[z->k->root] = true;
    for (uint32_t i = z->k->root + 1; i-- > 0;) {
        const search_node *n = &s->node[i];
        if (!z->in[i])
            continue;
        for (uint32_t k = 0; k < search_arity(n); k++) {
            uint32_t a = n->arg[k];
            bool twice = k > 0 && n->arg[0] == a;
            if (s->node[a].kind == SEARCH_LEAF || s->node[a].kind == SEARCH_NUMBER || made[a])
                continue;
            z->in[a] = true;
            z->uses[a] += !twice;
            z->user[a] = i;
        }
    }
}

/* The nodes around the loop; false where something inside needs its end. */
static bool around_loop(laying *z) {
    uint32_t loop = z->k->loop;
    z->l->shift = PO_NONE;
    for (uint32_t i = 0; i <= z->k->root; i++) {
        const search_node *n = &z->s->node[i];
        if (!z->in[i])
            continue;
        /* A block sees its own chunk of a grid's label only. */
        for (uint32_t g = 0; g < z->k->n_grid; g++)
            if (is_over(n, z->k->grid[g]))
                return false;
        bool inside = loop != PO_NONE && ((n->labels >> loop & 1) || is_over(n, loop));
        bool needs_end = false;
        for (uint32_t k = 0; k < search_arity(n); k++) {
            uint32_t a = n->arg[k];
            if (!z->in[a])
                continue;
            z->tainted[i] |= z->tainted[a] || a == z->l->shift;
            needs_end |= z->complete[a];
            if (inside && z->complete[a] && a != z->l->shift)
                return false;
        }
        z->l->stage[i] = inside ? SEARCH_INSIDE : needs_end ? SEARCH_AFTER : SEARCH_BEFORE;
        if (!inside)
            z->complete[i] = needs_end;
        if (loop == PO_NONE || !is_over(n, loop))
            continue;
        z->complete[i] = true;
        z->l->in_loop_sum[i] = true;
        if (z->tainted[i]) {
            if (n->kind != SEARCH_SUM || !(z->s->shifts[i] >> z->l->shift & 1) ||
                !search_admits(z->p, SEARCH_LAW_RESCALED))
                return false;
            z->l->rescaled[i] = true;
        } else if (n->kind == SEARCH_MAXIMUM && z->l->shift == PO_NONE) {
            z->l->shift = i;
        }
    }
    /* What the running maximum was in must be gone after the loop. */
    return loop == PO_NONE || !(z->s->node[z->k->root].labels >> loop & 1) ||
           z->l->shift == PO_NONE;
}

static void join_statements(laying *z) {
    const search_skeleton *s = z->s;
    for (uint32_t i = 0; i < z->k->root; i++) {
        const search_node *n = &s->node[i];
        if (!z->in[i] || n->kind != SEARCH_FUNCTION || z->uses[i] != 1)
            continue;
        const search_node *user = &s->node[z->user[i]];
        uint64_t space = user->labels;
        if (is_reduction(user))
            space = s->node[user->arg[0]].labels;
        if (z->l->stage[i] == z->l->stage[z->user[i]] && space == n->labels)
            z->l->stage[i] = SEARCH_INLINE;
    }
    for (uint32_t i = 0; i <= z->k->root; i++) {
        const search_node *n = &s->node[i];
        double most = 0;
        uint32_t best = PO_NONE;
        if (!z->in[i] || n->kind != SEARCH_FUNCTION || z->l->stage[i] == SEARCH_INLINE)
            continue;
        for (uint32_t a = 0; a < i; a++) {
            const search_node *from = &s->node[a];
            uint32_t user = z->user[a];
            if (!z->in[a] || from->kind != SEARCH_SUM || z->uses[a] != 1 || z->l->in_loop_sum[a] ||
                z->l->stage[a] != z->l->stage[i] || from->labels != n->labels)
                continue;
            while (user != i && z->l->stage[user] == SEARCH_INLINE)
                user = z->user[user];
            double size = search_elements(z->p, s->node[from->arg[0]].labels);
            bool reduced;
            uint32_t lane = search_lane(z->p, s, z->l, a, &reduced);
            if (user == i && size > most && lane != PO_NONE && !reduced) {
                most = size;
                best = a;
            }
        }
        if (best != PO_NONE) {
            z->l->fused[i] = true;
            z->l->tile[i] = best;
            z->l->on_tile[best] = true;
        }
    }
}

/* The first of the statements' nodes that a node is part of. */
static uint32_t statement_of(const laying *z, uint32_t i) {
    while (z->l->stage[i] == SEARCH_INLINE)
        i = z->user[i];
    return i;
}

/* Whether the last that reads a node is i's own statement, which reads it element by element. */
static bool ends_with(const laying *z, uint32_t node, uint32_t i) {
    bool any = false;
    for (uint32_t u = node + 1; u <= z->k->root; u++)
        for (uint32_t k = 0; z->in[u] && k < search_arity(&z->s->node[u]); k++) {
            if (z->s->node[u].arg[k] != node)
                continue;
            const uint32_t at = statement_of(z, u);
            any |= at == i;
            if (at > i || z->l->stage[at] != z->l->stage[i] || z->l->on_tile[at])
                return false;
        }
    return any;
}

/* What is made element by element stands where the last of what it is made of stood. */
static void write_over(laying *z) {
    const search_skeleton *s = z->s;
    for (uint32_t i = 0; i <= z->k->root; i++)
        z->l->over[i] = PO_NONE;
    for (uint32_t i = 0; i < z->k->root; i++) {
        if (!z->in[i] || s->node[i].kind != SEARCH_FUNCTION || z->l->stage[i] == SEARCH_INLINE ||
            z->l->fused[i] || z->l->on_tile[i])
            continue;
        for (uint32_t a = 0; a < i && z->l->over[i] == PO_NONE; a++)
            if (z->in[a] && z->l->stage[a] == z->l->stage[i] && !z->l->in_loop_sum[a] &&
                !z->l->on_tile[a] && s->node[a].labels == s->node[i].labels && ends_with(z, a, i))
                z->l->over[i] = a;
    }
}

bool search_lay(const search_problem *p, const search_skeleton *s, const search_kernel *k,
                const bool *made, search_layout *l) {
    laying z = {.p = p, .s = s, .k = k, .l = l};
    memset(l, 0, sizeof *l);
    find_nodes(&z, made);
    if (!around_loop(&z))
        return false;
    join_statements(&z);
    write_over(&z);
    return true;
}

/* --- lanes --- */

/* The class of the last axis of what a node is. */
static uint32_t last_axis(const search_problem *p, const search_skeleton *s, uint32_t i) {
    const search_node *n = &s->node[i];
    uint32_t best = PO_NONE;
    if (n->kind == SEARCH_LEAF) {
        const po_mu_tensor *t = &p->naive->tensors[n->tensor];
        return t->rank ? p->axes[n->tensor][t->rank - 1] : PO_NONE;
    }
    if (i + 1 == s->n) {
        const po_mu_tensor *t = &p->naive->tensors[p->target];
        return t->rank ? p->axes[p->target][t->rank - 1] : PO_NONE;
    }
    for (uint32_t c = 0; c < p->n_classes; c++)
        if ((n->labels >> c & 1) && (best == PO_NONE || p->place[c] > p->place[best]))
            best = c;
    return best;
}

int64_t search_panel(const search_problem *p, uint32_t class) {
    for (int64_t panel = p->panel; panel >= PO_MU_VECTOR; panel -= PO_MU_VECTOR)
        if (p->extent[class] % panel == 0)
            return panel;
    return 0;
}

bool search_is_packed(const search_problem *p, const search_skeleton *s, uint32_t sum,
                      uint32_t operand, uint32_t lane) {
    const search_node *n = &s->node[sum], *o = &s->node[operand];
    if (n->kind != SEARCH_SUM || o->kind != SEARCH_LEAF || lane == PO_NONE ||
        p->naive->tensors[o->tensor].place != PO_MU_WEIGHT || lane == n->class)
        return false;
    const search_node *product = &s->node[n->arg[0]];
    return product->kind == SEARCH_FUNCTION && product->function == PO_MU_TIMES &&
           (product->arg[0] == operand) != (product->arg[1] == operand) &&
           (o->labels >> lane & 1) && (o->labels >> n->class & 1) && search_panel(p, lane) > 0;
}

bool search_is_turned(const search_problem *p, const search_skeleton *s, uint32_t sum,
                      uint32_t operand, uint32_t lane) {
    enum { ENOUGH = 16 /* rows of the other operand that read a copy */ };
    const search_node *n = &s->node[sum], *o = &s->node[operand];
    if (p->gpu || n->kind != SEARCH_SUM || o->kind != SEARCH_LEAF || lane == PO_NONE ||
        lane == n->class || p->naive->tensors[o->tensor].place != PO_MU_INPUT ||
        !(o->labels >> lane & 1) || last_axis(p, s, operand) != n->class)
        return false;
    const search_node *product = &s->node[n->arg[0]];
    if (product->kind != SEARCH_FUNCTION || product->function != PO_MU_TIMES ||
        (product->arg[0] == operand) == (product->arg[1] == operand))
        return false;
    const uint32_t other = product->arg[product->arg[0] == operand];
    return search_elements(p, s->node[other].labels & ~o->labels) >= ENOUGH;
}

/* Whether the rows of a block's part of a tensor, along the class that is added up, lie at least
 * twice as far apart as they are long. */
static bool lies_apart(const search_problem *p, const search_kernel *k, uint32_t tensor,
                       uint32_t class) {
    const po_mu_tensor *t = &p->naive->tensors[tensor];
    int64_t length = 1, step = 1;
    for (uint32_t x = t->rank; x-- > 0 && p->axes[tensor][x] != class;) {
        const uint32_t c = p->axes[tensor][x];
        step *= t->dims[x];
        length *= c == PO_NONE ? 1 : search_chunk_in(p, k, c, true);
    }
    return step >= 2 * length && length >= PO_MU_VECTOR;
}

uint32_t search_copied(const search_problem *p, const search_skeleton *s, const search_kernel *k,
                       const search_layout *l, uint32_t sum, uint32_t lane, bool *turned) {
    enum { ENOUGH = 24 /* rows of the other operand that read a copy */ };
    const search_node *n = &s->node[sum], *x = &s->node[n->arg[0]];
    *turned = false;
    if (n->kind != SEARCH_SUM || x->kind != SEARCH_FUNCTION || lane == PO_NONE || p->gpu)
        return PO_NONE;
    for (uint32_t a = 0; a < search_arity(x); a++) {
        const uint32_t operand = x->arg[a], other = x->arg[a == 0];
        const search_node *o = &s->node[operand];
        *turned = search_is_turned(p, s, sum, operand, lane);
        if (*turned)
            return operand;
        if (o->kind != SEARCH_LEAF || !(o->labels >> lane & 1) || !(o->labels >> n->class & 1) ||
            p->naive->tensors[o->tensor].place != PO_MU_INPUT || search_arity(x) != 2)
            continue;
        const bool inside = k->loop != PO_NONE && (o->labels >> k->loop & 1);
        const uint64_t rows = s->node[other].labels & ~o->labels;
        if ((k->staged && l->stage[sum] == SEARCH_INSIDE && lane == k->loop) ||
            (last_axis(p, s, operand) == lane && lies_apart(p, k, o->tensor, n->class) &&
             search_held(p, k, rows, inside) >= ENOUGH))
            return operand;
    }
    return PO_NONE;
}

/* Whether the class lies in neighbouring elements wherever the statement has it. */
static bool is_lane(const search_problem *p, const search_skeleton *s, const search_layout *l,
                    uint32_t statement, uint32_t i, uint32_t class, bool *any) {
    const search_node *n = &s->node[i];
    for (uint32_t k = 0; k < search_arity(n); k++) {
        uint32_t a = n->arg[k];
        const search_node *from = &s->node[a];
        if (l->stage[a] == SEARCH_INLINE) {
            if (!is_lane(p, s, l, statement, a, class, any))
                return false;
            continue;
        }
        if (!(from->labels >> class & 1))
            continue;
        if (last_axis(p, s, a) != class && !search_is_packed(p, s, statement, a, class) &&
            !search_is_turned(p, s, statement, a, class))
            return false;
        *any = true;
    }
    return true;
}

enum { SHORT = 8 };

uint32_t search_lane(const search_problem *p, const search_skeleton *s, const search_layout *l,
                     uint32_t i, bool *reduced) {
    const search_node *n = &s->node[i];
    uint32_t kept = last_axis(p, s, i);
    bool any = false;
    *reduced = false;
    if (kept != PO_NONE && p->extent[kept] >= SHORT && is_lane(p, s, l, i, i, kept, &any) && any)
        return kept;
    any = false;
    if (is_reduction(n) && p->extent[n->class] >= SHORT && is_lane(p, s, l, i, i, n->class, &any) &&
        any) {
        *reduced = true;
        return n->class;
    }
    return PO_NONE;
}
