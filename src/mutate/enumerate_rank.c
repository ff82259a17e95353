/* Ranking of what the enumeration finds: by roofline at the true sizes, each program once, not too
 * many that become the same kind of operators, and none that cannot gain. */
#include "mutate/enumerate_rank.h"

enum {
    EN_RANKED = 256,  /* found ones that are remembered until the search ends */
    EN_OF_A_KIND = 24 /* of those */
};

static const double EN_MORE_WORK = 1.3;
/* Times the work of the original, and its roofline: no operator is so much faster. */
static const double EN_MOST_WORK = 16, EN_MOST_COST = 100;

/* An operator and its operands' shapes, whatever moves lead to them. */
static po_hash operator_hash(const en_program *p, uint32_t n) {
    const en_op *op = &p->op[n];
    po_hash h = {1, op->kind};
    for (uint32_t k = 0; k < op->n_in; k++) {
        const en_shape *s = en_operand(p, n, k);
        for (uint32_t i = 0; i < s->rank; i++)
            h = po_hash_u64(h, (uint64_t)s->d[i] << 8 | i);
    }
    if (op->kind == EN_CONV || op->kind == EN_POOL)
        h = po_hash_bytes(op->stride, 2 * sizeof op->stride, h);
    return h;
}

static po_hash operators_of(const en_program *p) {
    po_hash h = {1, p->n_ops};
    for (uint32_t n = 0; n < p->n_ops; n++)
        h = po_hash_u64(h, operator_hash(p, n).lo);
    return h;
}

static bool computes(const en_op *op) {
    return op->kind == EN_CONV || op->kind == EN_MATMUL || op->kind == EN_POOL;
}

/* Those that compute, in any order. */
static uint64_t products_of(const en_program *p) {
    uint64_t sum = 0;
    for (uint32_t n = 0; n < p->n_ops; n++)
        if (computes(&p->op[n]))
            sum += operator_hash(p, n).lo;
    return sum;
}

/* Elements of the second operands of products. */
static double weights_of(const en_program *p) {
    double sum = 0;
    for (uint32_t n = 0; n < p->n_ops; n++)
        if (p->op[n].kind == EN_CONV || p->op[n].kind == EN_MATMUL)
            sum += (double)en_count(en_operand(p, n, 1));
    return sum;
}

/* What sets operators of one kind apart besides their sizes: strides, dilations, groups. */
static uint32_t nature(const en_program *p) {
    uint32_t sum = 0;
    for (uint32_t n = 0; n < p->n_ops; n++) {
        const en_op *op = &p->op[n];
        sum += 1000u * op->kind;
        if (op->kind != EN_CONV)
            continue;
        const en_shape *x = en_operand(p, n, 0);
        const en_shape *w = en_operand(p, n, 1);
        sum += 100000u * (uint32_t)(x->d[1] / w->d[1]);
        for (uint32_t m = 0; m + 2 < x->rank; m++)
            sum += (uint32_t)op->stride[m] * 10u + (uint32_t)op->dilation[m];
    }
    return sum;
}

/* An operator by what a runtime would take it for: kernel, channels of a group, whether there are
 * groups, steps, several images; not how large its maps are. */
static uint64_t operator_kind(const en_program *p, uint32_t n) {
    const en_op *op = &p->op[n];
    po_hash h = po_hash_u64((po_hash){2, op->kind}, op->n_in);
    if (op->kind != EN_CONV && op->kind != EN_MATMUL)
        return h.lo;
    const en_shape *x = en_operand(p, n, 0);
    const en_shape *w = en_operand(p, n, 1);
    h = po_hash_u64(h, (uint64_t)x->rank << 8 | w->rank);
    if (op->kind == EN_MATMUL)
        return po_hash_u64(h, (uint64_t)(x->rank > 2 && x->d[0] > 1)).lo;
    bool strided = false, dilated = false;
    for (uint32_t m = 0; m + 2 < x->rank; m++) {
        strided |= op->stride[m] > 1;
        dilated |= op->dilation[m] > 1;
    }
    for (uint32_t i = 1; i < w->rank; i++)
        h = po_hash_u64(h, (uint64_t)w->d[i]);
    return po_hash_u64(h, (uint64_t)(x->d[0] > 1) | (uint64_t)(x->d[1] > w->d[1]) << 1 |
                              (uint64_t)strided << 2 | (uint64_t)dilated << 3)
        .lo;
}

static uint64_t kind_of(const en_program *p) {
    uint64_t kind = p->n_ops;
    for (uint32_t n = 0; n < p->n_ops; n++)
        kind += operator_kind(p, n);
    return kind;
}

static bool before(const en_ranked *a, const en_ranked *b) {
    return a->cost != b->cost ? a->cost < b->cost : a->order < b->order;
}

/* A place at the end, or that of the worst: of all, or of its kind where there are many of it.
 * UINT32_MAX where it is worse yet. */
static uint32_t room_for(en_ranking *c, const en_ranked *r) {
    uint32_t of_kind = 0, last = c->n - 1;
    for (uint32_t i = 0; i < c->n; i++)
        if (c->best[i].kind == r->kind) {
            of_kind++;
            last = i;
        }
    if (of_kind < EN_OF_A_KIND) {
        if (c->n < EN_RANKED)
            return c->n++;
        last = c->n - 1;
    }
    return before(r, &c->best[last]) ? last : UINT32_MAX;
}

/* No gain: the same products of the same shapes, at no less; or the same with kernels or channels
 * grown by zeros; or far more work. */
static bool is_in_vain(const en_ranking *c, const en_ranked *r, double flops) {
    if (r->cost > EN_MOST_COST * c->cost || (c->flops > 0 && flops > EN_MOST_WORK * c->flops))
        return true;
    if (products_of(&r->program) == c->products)
        return r->cost >= c->cost;
    return nature(&r->program) == c->nature &&
           (flops > EN_MORE_WORK * c->flops || weights_of(&r->program) > c->weights);
}

en_ranking *en_ranking_create(po_arena *arena, const en_problem *problem) {
    en_ranking *c = PO_NEW(arena, en_ranking);
    const en_program *p = &problem->target;
    *c = (en_ranking){.arena = arena,
                      .problem = problem,
                      .original = en_program_hash(p),
                      .products = products_of(p),
                      .weights = weights_of(p),
                      .nature = nature(p),
                      .best = PO_NEW_N(arena, en_ranked, EN_RANKED)};
    double bytes;
    c->cost = en_program_cost(p, problem->n_activations, &c->flops, &bytes);
    return c;
}

bool en_rank(void *ranking, const en_found *found) {
    en_ranking *c = ranking;
    en_ranked r = {
        .order = found->order, .share = found->share, .depth = found->depth, .moves = found->moves};
    double flops, bytes;
    if (!en_lift(c->arena, &found->program, c->problem, &r.program) ||
        po_hash_equal(en_program_hash(&r.program), c->original))
        return true;
    r.cost = en_program_cost(&r.program, c->problem->n_activations, &flops, &bytes);
    if (is_in_vain(c, &r, flops))
        return true;
    r.key = po_hash_u64(po_hash_u64(operators_of(&r.program), found->share >= 1), (uint64_t)bytes);
    for (uint32_t i = 0; i < c->n; i++)
        if (po_hash_equal(c->best[i].key, r.key))
            return true;
    r.kind = kind_of(&r.program);
    uint32_t end = room_for(c, &r);
    if (end == UINT32_MAX)
        return true;
    for (; end > 0 && before(&r, &c->best[end - 1]); end--)
        c->best[end] = c->best[end - 1];
    c->best[end] = r;
    return true;
}

/* The best of each kind first, then the next of each. */
void en_rank_done(en_ranking *c) {
    for (uint32_t i = 0; i < c->n; i++) {
        c->best[i].turn = 0;
        for (uint32_t k = 0; k < i; k++)
            c->best[i].turn += c->best[k].kind == c->best[i].kind;
    }
    for (uint32_t i = 1; i < c->n; i++) {
        en_ranked r = c->best[i];
        uint32_t k = i;
        for (; k > 0 && c->best[k - 1].turn > r.turn; k--)
            c->best[k] = c->best[k - 1];
        c->best[k] = r;
    }
}
