/* Where the parts of a program stand in a block of a GPU, and what they are stored as. */
#include "superopt/gpu/internal.h"

static bool has_uses(const search_skeleton *s, uint32_t user, uint32_t node) {
    for (uint32_t k = 0; k < search_arity(&s->node[user]); k++)
        if (s->node[user].arg[k] == node)
            return true;
    return false;
}

/* A sum of products of two different values, one at least with labels that the other lacks: of
 * matrices, or of one and a vector. */
static bool is_contraction(const search_skeleton *s, uint32_t i) {
    const search_node *n = &s->node[i], *x = &s->node[n->arg[0]];
    if (n->kind != SEARCH_SUM || x->kind != SEARCH_FUNCTION || x->function != PO_MU_TIMES ||
        x->arg[0] == x->arg[1])
        return false;
    uint64_t a = s->node[x->arg[0]].labels, b = s->node[x->arg[1]].labels;
    return (a & b) >> n->class & 1 && a != b;
}

bool gpu_is_thin(const search_skeleton *s, const uint32_t operand[2]) {
    uint64_t a = s->node[operand[0]].labels, b = s->node[operand[1]].labels;
    return !(a & ~b) || !(b & ~a);
}

bool gpu_is_product(const search_problem *p, const search_skeleton *s, const search_layout *l,
                    uint32_t i, uint32_t operand[2]) {
    (void)p;
    if (l->stage[i] == SEARCH_OUTSIDE || !is_contraction(s, i) ||
        l->stage[s->node[i].arg[0]] != SEARCH_INLINE)
        return false;
    for (uint32_t k = 0; k < 2; k++)
        operand[k] = s->node[s->node[i].arg[0]].arg[k];
    return true;
}

/* Every use is as a factor of a contraction. */
static bool is_factor_only(const search_skeleton *s, uint32_t i) {
    for (uint32_t u = i + 1; u < s->n; u++) {
        if (!has_uses(s, u, i))
            continue;
        bool serves = false;
        for (uint32_t v = u + 1; v < s->n; v++)
            if (has_uses(s, v, u)) {
                serves = is_contraction(s, v) && s->node[v].arg[0] == u;
                if (!serves)
                    return false;
            }
        if (!serves)
            return false;
    }
    return i + 1 < s->n;
}

/* Whether 16 bits hold it as well as the model itself does: the model's own value, what functions
 * keep small, or made of these without adding up. */
static bool is_small(const search_problem *p, const search_skeleton *s, uint32_t i) {
    const search_node *n = &s->node[i];
    if (n->own)
        return true;
    for (uint32_t t = 0; t < p->naive->n_tensors && n->form != PO_NONE; t++)
        if (p->plain_of[t] == n->form && p->naive->tensors[t].type != PO_MU_F32)
            return true;
    if (n->kind == SEARCH_LEAF)
        return p->naive->tensors[n->tensor].type != PO_MU_F32;
    if (n->kind == SEARCH_NUMBER)
        return true;
    if (n->kind != SEARCH_FUNCTION)
        return false;
    switch (n->function) {
    case PO_MU_EXP: /* the search never loses its shift */
    case PO_MU_SIGMOID:
    case PO_MU_TANH:
    case PO_MU_ERF:
        return true;
    case PO_MU_TIMES:
    case PO_MU_PLUS:
    case PO_MU_MINUS:
    case PO_MU_MAX:
    case PO_MU_MIN:
    case PO_MU_NEGATE:
    case PO_MU_ABS:
        for (uint32_t k = 0; k < search_arity(n); k++)
            if (!is_small(p, s, n->arg[k]))
                return false;
        return true;
    case PO_MU_OVER: { /* by a norm */
        const search_node *by = &s->node[n->arg[1]];
        bool norm = by->kind == SEARCH_NUMBER ||
                    (by->kind == SEARCH_FUNCTION && by->function == PO_MU_SQRT);
        return norm && is_small(p, s, n->arg[0]);
    }
    default:
        return false;
    }
}

po_mu_type gpu_device_type(const search_problem *p, const search_skeleton *s, uint32_t i) {
    if (s->node[i].kind == SEARCH_LEAF)
        return p->naive->tensors[s->node[i].tensor].type;
    return p->half != PO_MU_F32 && is_factor_only(s, i) ? p->half : PO_MU_F32;
}

po_mu_type gpu_shared_type(const search_problem *p, const search_skeleton *s,
                           const search_layout *l, uint32_t root, uint32_t i) {
    if (p->half == PO_MU_F32 || s->node[i].kind != SEARCH_FUNCTION)
        return PO_MU_F32;
    uint32_t operand[2];
    for (uint32_t u = i + 1; u <= root; u++)
        if (gpu_is_product(p, s, l, u, operand) && (operand[0] == i || operand[1] == i))
            return p->half;
    return PO_MU_F32;
}

static bool one_matrix(const search_problem *p, const search_skeleton *s, const search_kernel *k,
                       uint32_t sum, const uint32_t operand[2]) {
    uint64_t both = s->node[operand[0]].labels & s->node[operand[1]].labels &
                    ~((uint64_t)1 << s->node[sum].class);
    for (uint32_t c = 0; c < p->n_classes; c++)
        if ((both >> c & 1) && search_chunk_in(p, k, c, true) > 1)
            return false;
    return true;
}

/* Sums that blocks beside one another make alike would be written by all of them. */
static bool one_writer(const search_skeleton *s, const search_kernel *k, const search_layout *l) {
    for (uint32_t i = 0; i <= k->root; i++)
        for (uint32_t g = 0; g < k->n_grid && l->in_loop_sum[i]; g++)
            if (!(s->node[i].labels >> k->grid[g] & 1))
                return false;
    return true;
}

/* Blocks are not cut so small that a product is none for tensor cores. */
static bool large_enough(const search_problem *p, const search_skeleton *s, const search_kernel *k,
                         uint32_t i) {
    enum { TILE = 64 };
    uint64_t labels = s->node[i].labels;
    bool cut = false;
    for (uint32_t g = 0; g < k->n_grid; g++)
        cut |= (labels >> k->grid[g] & 1) && k->chunk[g] > 1 && k->chunk[g] < p->extent[k->grid[g]];
    return !cut || search_held(p, k, labels, true) >= TILE;
}

bool gpu_fits_blocks(const search_problem *p, const search_skeleton *s, const search_kernel *k,
                     const search_layout *l) {
    uint32_t operand[2];
    if (k->parts > 1 && !one_writer(s, k, l))
        return false;
    for (uint32_t i = 0; i <= k->root; i++)
        if (gpu_is_product(p, s, l, i, operand) &&
            (!one_matrix(p, s, k, i, operand) || !large_enough(p, s, k, i)))
            return false;
    return true;
}

bool gpu_lay(const search_problem *p, const search_skeleton *s, const search_kernel *k,
             const bool *made, search_layout *l) {
    uint32_t operand[2];
    if (!search_lay(p, s, k, made, l))
        return false;
    memset(l->fused, 0, sizeof l->fused);
    memset(l->on_tile, 0, sizeof l->on_tile);
    for (uint32_t i = 0; i <= k->root; i++) {
        if (!gpu_is_product(p, s, l, i, operand))
            continue;
        for (uint32_t a = 0; a < 2; a++) {
            const search_node *n = &s->node[operand[a]];
            if (l->stage[operand[a]] == SEARCH_INLINE)
                l->stage[operand[a]] = l->stage[i];
            bool rounded = p->half != PO_MU_F32 && gpu_device_type(p, s, operand[a]) == PO_MU_F32;
            if ((rounded || n->kind != SEARCH_LEAF) && p->half != PO_MU_F32 &&
                !is_small(p, s, operand[a]))
                return false;
        }
    }
    return true;
}
