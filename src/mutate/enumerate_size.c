/* The same problem at other sizes: small ones to search at, and back to the true ones.
 *
 * Axes that must be equally long are one class (union-find over the tensors' axes). A class is
 * shrunk by what it is: maps keep their residue modulo strides and dilations and room for an
 * inside, channels and matrix sides their divisibility by 4, kernels stay. Equal lengths stay
 * equal. */
#include "mutate/enumerate.h"

enum {
    EN_KEYS = EN_SLOTS * EN_RANK,
    EN_FAR = 1 << 20,            /* a reach or stride beyond anything that is cut */
    EN_MOST_TILES = 16,          /* along one axis */
    EN_SMALL_ELEMENTS = 1 << 16, /* of all tensors, where tiles ask for larger maps */
};

typedef enum role { ROLE_FREE, ROLE_FIXED, ROLE_MAP, ROLE_BATCH, ROLE_SUM, ROLE_MADE } role;

typedef struct sizing {
    const en_program *p;
    uint16_t up[EN_KEYS];
    uint8_t role[EN_KEYS];
    int32_t size[EN_KEYS], small[EN_KEYS];
    int32_t reach, modulus; /* of maps: extent of windows, what sizes are kept modulo */
    int32_t tiled;          /* the least size of maps that leaves tiles an inside */
} sizing;

static uint32_t key(uint32_t slot, uint32_t axis) {
    return slot * EN_RANK + axis;
}

static uint32_t find(sizing *z, uint32_t k) {
    while (z->up[k] != k)
        k = z->up[k] = z->up[z->up[k]];
    return k;
}

static void unify(sizing *z, uint32_t a, uint32_t b) {
    a = find(z, a);
    b = find(z, b);
    if (a == b)
        return;
    uint32_t low = a < b ? a : b, high = a < b ? b : a;
    z->up[high] = (uint16_t)low;
    if (z->role[high] > z->role[low])
        z->role[low] = z->role[high];
}

static void is(sizing *z, uint32_t k, role r) {
    k = find(z, k);
    if (r > z->role[k])
        z->role[k] = (uint8_t)r;
}

static int32_t common(int32_t a, int32_t b) {
    while (b) {
        int32_t t = a % b;
        a = b;
        b = t;
    }
    return a > 0 ? a : 1;
}

static void window_reach(sizing *z, const en_op *op, uint32_t m, int32_t kernel) {
    int32_t extent = (kernel - 1) * op->dilation[m] + 1;
    int32_t by = op->stride[m] * op->dilation[m];
    if (extent > z->reach)
        z->reach = extent;
    z->modulus *= by / common(z->modulus, by);
}

/* Position of axis i, counted as the result's, in an operand of a smaller rank; -1: none. */
static bool relate(sizing *z, const en_op *op) {
    const en_program *p = z->p;
    const en_shape *x = &p->shape[op->in[0]], *y = &p->shape[op->out];
    switch (op->kind) {
    case EN_CONV: {
        const en_shape *w = &p->shape[op->in[1]];
        int32_t groups = x->d[1] / w->d[1];
        unify(z, key(op->out, 0), key(op->in[0], 0));
        is(z, key(op->in[0], 0), ROLE_BATCH);
        if (groups == 1) {
            unify(z, key(op->in[0], 1), key(op->in[1], 1));
            unify(z, key(op->out, 1), key(op->in[1], 0));
        } else { /* sizes of groups are tied by products: they stay */
            is(z, key(op->in[0], 1), ROLE_FIXED);
            is(z, key(op->in[1], 0), ROLE_FIXED);
            is(z, key(op->in[1], 1), ROLE_FIXED);
            unify(z, key(op->out, 1), key(op->in[1], 0));
        }
        for (uint32_t i = 2; i < x->rank; i++) {
            is(z, key(op->in[1], i), ROLE_FIXED);
            is(z, key(op->in[0], i), ROLE_MAP);
            is(z, key(op->out, i), ROLE_MADE);
            window_reach(z, op, i - 2, w->d[i]);
        }
        return true;
    }
    case EN_POOL:
        for (uint32_t i = 0; i < 2; i++)
            unify(z, key(op->out, i), key(op->in[0], i));
        is(z, key(op->in[0], 0), ROLE_BATCH);
        for (uint32_t i = 2; i < x->rank; i++) {
            is(z, key(op->in[0], i), ROLE_MAP);
            is(z, key(op->out, i), ROLE_MADE);
            window_reach(z, op, i - 2, op->window[i - 2]);
            if (p->table)
                is(z, key(p->table - 1u, i), ROLE_FIXED);
        }
        if (p->table)
            unify(z, key(p->table - 1u, 0), key(op->in[0], 1));
        return true;
    case EN_MATMUL: {
        const en_shape *b = &p->shape[op->in[1]];
        uint32_t ra = x->rank, rb = b->rank, r = y->rank;
        unify(z, key(op->in[0], ra - 1), key(op->in[1], rb - 2));
        unify(z, key(op->out, r - 2), key(op->in[0], ra - 2));
        unify(z, key(op->out, r - 1), key(op->in[1], rb - 1));
        for (uint32_t i = 0; i + 2 < r; i++) {
            uint32_t skip[2] = {r - ra, r - rb};
            for (uint32_t k = 0; k < 2; k++)
                if (i >= skip[k] && p->shape[op->in[k]].d[i - skip[k]] == y->d[i])
                    unify(z, key(op->out, i), key(op->in[k], i - skip[k]));
        }
        return true;
    }
    case EN_ADD:
        for (uint32_t i = 0; i < y->rank; i++) {
            unify(z, key(op->out, i), key(op->in[0], i));
            unify(z, key(op->out, i), key(op->in[1], i));
        }
        return true;
    case EN_CONCAT:
    case EN_SPLIT:
        for (uint32_t i = 0; i < y->rank; i++)
            if (i != op->axis) {
                for (uint32_t k = 0; k < op->n_in; k++)
                    unify(z, key(op->out, i), key(op->in[k], i));
                for (uint32_t k = 0; k < op->n_out; k++)
                    unify(z, key(op->out + k, i), key(op->in[0], i));
            }
        is(z, op->kind == EN_CONCAT ? key(op->out, op->axis) : key(op->in[0], op->axis), ROLE_SUM);
        return true;
    case EN_MOVE:
        return true; /* its view is looked at by the caller */
    default:
        return false;
    }
}

static int32_t shrunk(const sizing *z, int32_t d, role r) {
    int32_t least = 4, keep = 4;
    if (r == ROLE_BATCH)
        return d <= 4 ? d : d % 2 == 0 ? 4 : 3;
    if (r == ROLE_MAP) {
        least = z->reach + 5 > z->tiled ? z->reach + 5 : z->tiled;
        keep = z->modulus % 2 ? z->modulus * 2 : z->modulus;
    }
    if (d <= least)
        return d;
    int32_t s = least + ((d - least) % keep + keep) % keep;
    return s < d ? s : d;
}

/* Shrinks every class; classes of different lengths stay different. */
static void assign(sizing *z) {
    int32_t from[EN_KEYS], to[EN_KEYS];
    uint32_t n = 0;
    for (uint32_t k = 0; k < EN_KEYS; k++) {
        if (z->up[k] != k || z->size[k] == 0)
            continue;
        z->small[k] = z->size[k];
        if (z->role[k] != ROLE_FREE && z->role[k] != ROLE_MAP && z->role[k] != ROLE_BATCH)
            continue;
        if (z->role[k] == ROLE_BATCH) {
            z->small[k] = shrunk(z, z->size[k], ROLE_BATCH);
            continue;
        }
        uint32_t i = 0;
        while (i < n && from[i] != z->size[k])
            i++;
        if (i == n) {
            int32_t keep = z->role[k] == ROLE_MAP ? z->modulus : z->size[k] % 4 == 0 ? 4 : 2;
            int32_t s = shrunk(z, z->size[k], z->role[k]);
            for (uint32_t other = 0; other < n; other++)
                if (to[other] == s && s + keep < z->size[k]) {
                    s += keep;
                    other = UINT32_MAX; /* look again from the first */
                }
            from[n] = z->size[k];
            to[n++] = s;
        }
        z->small[k] = to[i];
    }
}

static bool resize_views(po_arena *arena, const en_program *from, en_program *p, uint32_t n) {
    for (uint32_t k = 0; k < p->op[n].n_in; k++) {
        if (!from->view[n][k])
            continue;
        en_rt *rt = PO_NEW(arena, en_rt);
        p->view[n][k] = rt;
        if (!en_rt_again(from->view[n][k], &p->shape[p->op[n].in[k]], rt))
            return false;
    }
    return true;
}

/* --- tiles --- */

void en_reach_of(const en_program *p, en_reach reach[EN_OUTS]) {
    en_reach of[EN_SLOTS];
    for (uint32_t i = 0; i < EN_SLOTS; i++)
        of[i] = (en_reach){.stride = {1, 1, 1}};
    for (uint32_t n = 0; n < p->n_ops; n++) {
        const en_op *op = &p->op[n];
        en_reach r = of[op->in[0]];
        for (uint32_t k = 1; k < op->n_in; k++)
            for (uint32_t m = 0; m < EN_MAPS; m++)
                if (of[op->in[k]].reach[m] > r.reach[m])
                    r.reach[m] = of[op->in[k]].reach[m];
        bool window = op->kind == EN_CONV || op->kind == EN_POOL;
        const en_shape *w = &p->shape[op->in[1]];
        for (uint32_t m = 0; window && m + 2u < p->shape[op->out].rank; m++) {
            int32_t kernel = op->kind == EN_CONV ? w->d[2 + m] : op->window[m];
            int64_t far = r.reach[m] + (int64_t)(kernel - 1) * op->dilation[m] * r.stride[m];
            int64_t stride = (int64_t)r.stride[m] * op->stride[m];
            r.reach[m] = (int32_t)(far < EN_FAR ? far : EN_FAR);
            r.stride[m] = (int32_t)(stride < EN_FAR ? stride : EN_FAR);
        }
        for (uint32_t k = 0; k < op->n_out; k++)
            of[op->out + k] = r;
    }
    for (uint32_t k = 0; k < p->n_out; k++)
        reach[k] = of[p->out[k]];
}

/* Whether an output's axis of this length can be cut in `f`: half of a part is its inside, at
 * least. */
static bool leaves_inside(const en_reach *r, uint32_t map, int32_t length, int32_t f) {
    int64_t part = ((int64_t)length + f - 1) / f;
    return r->reach[map] > 0 && part >= 2 && part * r->stride[map] >= 2 * r->reach[map];
}

void en_set_tiles(en_problem *problem) {
    const en_program *t = &problem->target;
    en_reach reach[EN_OUTS];
    en_reach_of(t, reach);
    problem->n_tiles = 0;
    for (int16_t f = 2; f <= EN_MOST_TILES; f++) {
        bool fits = false;
        for (uint32_t k = 0; k < t->n_out; k++) {
            const en_shape *s = &t->shape[t->out[k]];
            for (uint32_t i = 2; i < s->rank && i < 2 + EN_MAPS; i++)
                fits |= leaves_inside(&reach[k], i - 2, s->d[i], f) &&
                        (s->d[i] % f == 0 || (f & (f - 1)) == 0);
        }
        if (fits && problem->n_tiles < EN_TILES)
            problem->tile[problem->n_tiles++] = f;
    }
}

/* --- shrinking --- */

/* The problem at the sizes that were assigned; false where they do not fit one another. */
static bool resize(sizing *z, const en_problem *from, en_problem *small, po_arena *arena) {
    const en_program *p = z->p;
    *small = *from;
    en_program *q = &small->target;
    for (uint32_t s = 0; s < p->n_in; s++)
        for (uint32_t i = 0; i < p->shape[s].rank; i++) {
            uint32_t k = find(z, key(s, i));
            if (z->role[k] == ROLE_SUM)
                return false;
            q->shape[s].d[i] = z->small[k];
        }
    for (uint32_t n = 0; n < q->n_ops; n++) {
        en_op *op = &q->op[n];
        for (uint32_t k = 0; op->kind == EN_SPLIT && k < op->n_out; k++)
            op->size[k] = z->small[find(z, key(op->out + k, op->axis))];
        if (!resize_views(arena, p, q, n) || !en_program_infer(q, n))
            return false;
    }
    /* Nothing that had an extent may have lost it. */
    for (uint32_t s = 0; s < p->n_slots; s++)
        if (q->shape[s].rank != p->shape[s].rank)
            return false;
    return true;
}

static bool start(sizing *z, const en_program *p) {
    *z = (sizing){.p = p, .modulus = 1};
    for (uint32_t k = 0; k < EN_KEYS; k++)
        z->up[k] = (uint16_t)k;
    for (uint32_t s = 0; s < p->n_slots; s++)
        for (uint32_t i = 0; i < p->shape[s].rank; i++) {
            z->size[key(s, i)] = p->shape[s].d[i];
            if (p->shape[s].d[i] <= 3)
                z->role[key(s, i)] = ROLE_FIXED;
        }
    for (uint32_t n = 0; n < p->n_ops; n++) {
        const en_op *op = &p->op[n];
        if (!relate(z, op))
            return false;
        for (uint32_t k = 0; k < op->n_in; k++)
            if (p->view[n][k])
                return false;
        if (op->kind == EN_MOVE)
            return false;
    }
    return true;
}

int64_t en_elements(const en_problem *p) {
    int64_t n = 0;
    for (uint32_t i = 0; i < p->target.n_slots; i++)
        n += en_count(&p->target.shape[i]);
    return n;
}

bool en_shrink(const en_problem *from, en_problem *small, po_arena *arena) {
    sizing *z = PO_NEW(arena, sizing);
    if (!start(z, &from->target))
        return false;
    /* As many tiles as small maps have room for. */
    for (uint8_t tiles = from->n_tiles;; tiles--) {
        int64_t part = ((int64_t)z->reach + z->modulus) / z->modulus * z->modulus;
        int64_t tiled = tiles ? from->tile[tiles - 1] * part : 0;
        z->tiled = (int32_t)(tiled < EN_FAR ? tiled : EN_FAR);
        assign(z);
        if (!resize(z, from, small, arena))
            return false;
        small->n_tiles = tiles;
        if (tiles == 0 || en_elements(small) <= EN_SMALL_ELEMENTS)
            return true;
    }
}

bool en_lift(po_arena *arena, const en_program *found, const en_problem *to, en_program *program) {
    const en_program *target = &to->target;
    *program = *found;
    memcpy(program->shape, target->shape, target->n_in * sizeof target->shape[0]);
    for (uint32_t n = 0; n < program->n_ops; n++) {
        en_op *op = &program->op[n];
        for (uint32_t k = 0; op->kind == EN_SPLIT && k < op->n_out; k++) {
            const en_shape *like = op->like_axis == 255 ? &target->shape[target->out[op->like[k]]]
                                                        : &program->shape[op->like[k]];
            uint32_t axis = op->like_axis == 255 ? op->axis : op->like_axis;
            if (axis >= like->rank)
                return false;
            op->size[k] = like->d[axis];
        }
        if (!resize_views(arena, found, program, n) || !en_program_infer(program, n))
            return false;
    }
    for (uint32_t k = 0; k < program->n_out; k++) {
        const en_shape *want = &target->shape[target->out[k]];
        const en_shape *have = &program->shape[program->out[k]];
        if (found->last[k]) {
            en_rt *rt = PO_NEW(arena, en_rt);
            program->last[k] = rt;
            if (!en_rt_again(found->last[k], want, rt))
                return false;
            want = &rt->out;
        }
        if (!en_same(want, have))
            return false;
    }
    return true;
}
