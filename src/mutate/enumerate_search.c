/* PET's Algorithm 1: depth first over operators and their operands.
 *
 * Shapes are searched before programs: R/Ts stand in buckets of one result shape, and the search
 * picks buckets. Only where the shapes of a whole program meet those of the target, the R/Ts of its
 * buckets are tried one by one. The last R/T is looked for backwards, among those that lead from
 * the target's shape to what the operators made. Programs of few moves come first: level by level,
 * each level with exactly so many moves. */
#include "mutate/enumerate_finder.h"

/* --- what the factors are --- */

static void add_factor(int16_t *list, uint8_t *n, int32_t f) {
    if (f < 2 || f > 16 || *n == EN_FACTORS)
        return;
    for (uint32_t i = 0; i < *n; i++)
        if (list[i] == f)
            return;
    list[(*n)++] = (int16_t)f;
}

static void derive_factors(en_finder *f) {
    en_factors *fs = &f->factors;
    const en_program *t = f->target;
    fs->above[fs->n_above++] = 1;
    for (uint32_t n = 0; n < t->n_ops; n++) {
        const en_op *op = &t->op[n];
        const en_shape *x = &t->shape[op->in[0]];
        if (op->kind != EN_CONV)
            continue;
        const en_shape *w = &t->shape[op->in[1]];
        int32_t groups = x->d[1] / w->d[1];
        for (uint32_t m = 0; m + 2 < x->rank; m++) {
            add_factor(fs->f, &fs->n, op->dilation[m]);
            add_factor(fs->f, &fs->n, op->stride[m]);
        }
        for (int32_t d = 2; d <= 4; d++)
            if (groups % d == 0) {
                add_factor(fs->f, &fs->n, d);
                if (groups / d > 1 && groups / d <= 8 && fs->n_above < EN_FACTORS)
                    fs->above[fs->n_above++] = (int16_t)(groups / d);
            }
        for (uint32_t m = 0; m + 2 < x->rank; m++) {
            int32_t extent = (w->d[2 + m] - 1) * op->dilation[m];
            add_factor(fs->gap, &fs->n_gaps, extent);
            add_factor(fs->gap, &fs->n_gaps, op->lo[m] + op->hi[m]);
            if (op->lo[m] == 1 && fs->n_gaps < EN_FACTORS && fs->n_gaps == 0)
                fs->gap[fs->n_gaps++] = 1;
            if (extent == 2 && fs->n_gaps < EN_FACTORS)
                fs->gap[fs->n_gaps++] = 1;
        }
        if (x->d[0] > 1)
            for (int32_t d = 2; d <= 3; d++)
                if (x->d[0] % d == 0)
                    add_factor(fs->f, &fs->n, d);
    }
    if (fs->n == 0)
        add_factor(fs->f, &fs->n, 2);
}

/* Cutting maps into tiles, and batches into maps, by more than the factors above: as whole R/Ts,
 * which costs little. */
static void derive_tiles(en_finder *f) {
    const en_problem *problem = f->s->problem;
    f->factors.n_tiles = problem->n_tiles;
    memcpy(f->factors.tile, problem->tile, sizeof problem->tile);
}

static en_rts *set_of(en_finder *f, uint32_t slot) {
    if (slot < f->p.n_in)
        return f->in_set[slot];
    const en_shape *s = &f->p.shape[slot];
    for (uint32_t i = 0; i < f->n_made; i++)
        if (en_same(&f->made_set[i]->in, s))
            return f->made_set[i];
    if (f->n_made == EN_SETS)
        return NULL;
    en_rts *set = en_rts_make(f->s->maker, f->s->arena, s, &f->factors, 0, f->level ? 1 : 0,
                              f->s->most_rts / 8);
    f->made_set[f->n_made++] = set;
    return set;
}

static uint32_t end_bit(uint32_t moves, uint32_t rank, int32_t first, int32_t second) {
    uint64_t h = ((uint64_t)moves << 8 | rank) * 0x9E3779B97F4A7C15u;
    h = (h ^ (uint64_t)first << 32 ^ (uint64_t)second) * 0xD1B54A32D192ED03u;
    return (uint32_t)(h >> 40) % EN_ENDS;
}

static void mark_ends(en_finder *f) {
    memset(f->ends, 0, sizeof f->ends);
    const en_rts *set = f->last_set[0];
    for (uint32_t i = 0; i < set->n_buckets; i++) {
        const en_shape *s = &set->bucket[i].out;
        if (s->rank < 2)
            continue;
        uint32_t bit = end_bit(set->bucket[i].cost, s->rank, s->d[0], s->d[1]);
        f->ends[bit / 64] |= (uint64_t)1 << bit % 64;
    }
}

static void make_sets(en_finder *f) {
    uint32_t moves = f->level < 2 ? f->level : 2;
    if (f->set_moves == moves && f->in_set[0])
        return;
    f->set_moves = moves;
    f->n_made = 0;
    for (uint32_t i = 0; i < f->p.n_in; i++) {
        uint32_t allow = EN_ALLOW_PAD;
        allow |= i < f->s->problem->n_activations ? EN_ALLOW_TILES : EN_ALLOW_TWICE;
        f->in_set[i] = en_rts_make(f->s->maker, f->s->arena, &f->p.shape[i], &f->factors, allow,
                                   moves, f->s->most_rts);
    }
    for (uint32_t k = 0; k < f->target->n_out; k++)
        f->last_set[k] =
            en_rts_make(f->s->maker, f->s->arena, &f->target->shape[f->target->out[k]], &f->factors,
                        EN_ALLOW_PAD | EN_ALLOW_TILES, moves, f->s->most_rts);
    mark_ends(f);
}

/* --- growing --- */

static void grow(en_finder *f, uint32_t depth, uint32_t moves);

/* Leaves of what is multiplied only what the target multiplies too: groups and blocks side by side
 * need not mix. False where nothing is left. */
static bool restrict_products(const en_finder *f, en_monomials *set) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < set->n; i++) {
        bool within = false;
        for (uint32_t k = 0; k < f->target->n_out && !within; k++) {
            const en_monomials *t = &f->target->monomials[f->target->out[k]];
            for (uint32_t m = 0; m < t->n && !within; m++)
                within = (set->m[i] & ~t->m[m]) == 0;
        }
        if (within)
            set->m[n++] = set->m[i];
    }
    set->n = (uint8_t)n;
    return n > 0;
}

/* Operators that do not read one another are made in one order only. */
static bool in_order(const en_finder *f) {
    const en_program *p = &f->p;
    if (p->n_ops < 2)
        return true;
    const en_op *a = &p->op[p->n_ops - 2], *b = &p->op[p->n_ops - 1];
    for (uint32_t k = 0; k < b->n_in; k++)
        if (b->in[k] >= a->out)
            return true;
    if (a->kind != b->kind)
        return a->kind < b->kind;
    return memcmp(a->in, b->in, sizeof a->in) <= 0;
}

/* Nothing is read more often than the target reads it; what operators make is read once. */
static bool spent(const en_finder *f, uint32_t slot) {
    return f->used[slot] >= (slot < f->p.n_in ? f->uses[slot] : 1);
}

/* Adds f->p.op[n_ops], which is filled in but for its results, and goes on below. */
static void push(en_finder *f, uint32_t depth, uint32_t moves) {
    en_program *p = &f->p;
    en_op *op = &p->op[p->n_ops];
    op->out = p->n_slots;
    if (f->stop || p->n_slots + op->n_out > EN_SLOTS)
        return;
    if (!en_program_infer(p, p->n_ops)) {
        en_reject_shape(f);
        return;
    }
    if (!restrict_products(f, &p->monomials[op->out]))
        return;
    for (uint32_t k = 1; k < op->n_out; k++)
        p->monomials[op->out + k] = p->monomials[op->out];
    for (uint32_t k = 0; k < op->n_in; k++)
        if (spent(f, op->in[k]))
            return;
    bool live = false;
    for (uint32_t k = 0; k < op->n_in; k++) {
        f->used[op->in[k]]++;
        live |= f->activation[op->in[k]];
    }
    for (uint32_t k = 0; k < op->n_out; k++) {
        f->used[op->out + k] = 0;
        f->activation[op->out + k] = live;
    }
    p->n_slots = (uint8_t)(p->n_slots + op->n_out);
    p->n_ops++;
    if (in_order(f)) {
        en_op kept = *op;
        en_finish(f, depth, moves);
        grow(f, depth, moves);
        *op = kept;
    }
    p->n_ops--;
    p->n_slots = (uint8_t)(p->n_slots - op->n_out);
    for (uint32_t k = 0; k < op->n_in; k++)
        f->used[op->in[k]]--;
}

/* Whether a convolution of these can be the last operator and yet lead nowhere: all is read, and no
 * last R/T starts from its batch and channels. */
static bool leads_nowhere(const en_finder *f, uint32_t a, uint32_t b, const en_shape *x,
                          const en_shape *w, uint32_t moves) {
    if (f->target->n_out > 1)
        return false;
    for (uint32_t i = 0; i < f->p.n_slots; i++) {
        uint32_t used = f->used[i] + (i == a) + (i == b);
        if (i + 1 != f->p.table && used < (i < f->p.n_in ? f->uses[i] : 1))
            return false;
    }
    uint32_t bit = end_bit(moves, x->rank, x->d[0], w->d[0]);
    return !(f->ends[bit / 64] >> bit % 64 & 1);
}

typedef struct option {
    int16_t stride, dilation, lo, hi;
} option;

static void add_option(option *list, uint32_t *n, option o) {
    if (*n == EN_OPTIONS || o.lo < 0 || o.hi < 0)
        return;
    for (uint32_t i = 0; i < *n; i++)
        if (memcmp(&list[i], &o, sizeof o) == 0)
            return;
    list[(*n)++] = o;
}

/* Strides, dilations and paddings of a map axis under a kernel: those of the target, without them,
 * and paddings divided by the target's strides and dilations. */
static uint32_t options(const en_finder *f, int32_t kernel, option *list) {
    uint32_t n = 0;
    add_option(list, &n, (option){1, 1, 0, 0});
    for (uint32_t i = 0; i < f->n_windows; i++) {
        const en_op *w = &f->window[i];
        for (uint32_t m = 0; m < EN_MAPS && (w->kind == EN_CONV || f->p.table); m++) {
            if (w->stride[m] == 0)
                break;
            int16_t s[2] = {1, w->stride[m]}, d[2] = {1, w->dilation[m]};
            for (uint32_t a = 0; a < (s[1] > 1 ? 2u : 1u); a++)
                for (uint32_t b = 0; b < (d[1] > 1 && kernel > 1 ? 2u : 1u); b++) {
                    int16_t extent = (int16_t)((kernel - 1) * d[b]);
                    int16_t by = (int16_t)(w->stride[m] * w->dilation[m]);
                    int16_t half = (int16_t)(extent / 2), rest = (int16_t)(extent - half);
                    int16_t lo = (int16_t)((w->lo[m] + by - 1) / by), hi = (int16_t)(w->hi[m] / by);
                    add_option(list, &n, (option){s[a], d[b], 0, 0});
                    if (kernel == 1)
                        continue;
                    add_option(list, &n, (option){s[a], d[b], w->lo[m], w->hi[m]});
                    add_option(list, &n, (option){s[a], d[b], half, rest});
                    add_option(list, &n, (option){s[a], d[b], rest, half});
                    add_option(list, &n, (option){s[a], d[b], lo, hi});
                    add_option(list, &n, (option){s[a], d[b], lo, lo});
                    add_option(list, &n, (option){s[a], d[b], extent, 0});
                    add_option(list, &n, (option){s[a], d[b], 0, extent});
                }
        }
    }
    return n;
}

static void conv_attributes(en_finder *f, const en_shape *x, const en_shape *w, uint32_t depth,
                            uint32_t moves) {
    en_op *op = &f->p.op[f->p.n_ops];
    option list[EN_MAPS][EN_OPTIONS];
    uint32_t n[EN_MAPS] = {1, 1, 1}, at[EN_MAPS], maps = x->rank - 2u;
    bool mirrored = f->products > 1;
    for (uint32_t m = 0; m < maps; m++)
        n[m] = options(f, w->d[2 + m], list[m]);
    for (at[2] = 0; at[2] < n[2]; at[2]++)
        for (at[1] = 0; at[1] < n[1]; at[1]++)
            for (at[0] = 0; at[0] < n[0]; at[0]++) {
                bool skip = f->stop;
                for (uint32_t m = 1; m < maps; m++) /* equal kernels: the same on each axis */
                    if (w->d[2 + m] == w->d[1 + m] && x->d[2 + m] == x->d[1 + m])
                        skip |= at[m] != at[m - 1];
                    else if (mirrored && n[m] == n[m - 1])
                        skip |= at[m] != at[m - 1];
                if (skip)
                    continue;
                for (uint32_t m = 0; m < maps; m++) {
                    op->stride[m] = list[m][at[m]].stride;
                    op->dilation[m] = list[m][at[m]].dilation;
                    op->lo[m] = list[m][at[m]].lo;
                    op->hi[m] = list[m][at[m]].hi;
                }
                push(f, depth, moves);
            }
}

static void product(en_finder *f, uint8_t kind, uint32_t a, uint32_t b, uint32_t depth,
                    uint32_t moves) {
    en_program *p = &f->p;
    uint32_t n = p->n_ops;
    en_monomials set;
    if (spent(f, a) || spent(f, b) ||
        !en_monomials_product(&p->monomials[a], &p->monomials[b], &set) ||
        !restrict_products(f, &set))
        return;
    const en_rts *sa = set_of(f, a), *sb = set_of(f, b);
    if (!sa || !sb)
        return;
    /* The second operand, mostly a weight, is left alone first. */
    for (uint32_t still = 0; still <= moves; still++)
        for (uint32_t i = 0; i < sa->n_buckets && !f->stop; i++) {
            const en_bucket *x = &sa->bucket[i];
            if (x->cost + still > moves)
                break;
            uint32_t deeper = depth + 1 + (x->cost > 0) + (still > 0);
            if (deeper > f->depth)
                continue;
            if (kind == EN_CONV ? x->out.rank < 3 || x->out.rank > 2 + EN_MAPS : x->out.rank < 2)
                continue;
            for (uint32_t k = sb->of_cost[still]; k < sb->of_cost[still + 1] && !f->stop; k++) {
                const en_bucket *w = &sb->bucket[k];
                if (kind == EN_CONV ? w->out.rank != x->out.rank || x->out.d[1] % w->out.d[1] != 0
                                    : w->out.rank < 2 ||
                                          x->out.d[x->out.rank - 1] != w->out.d[w->out.rank - 2]) {
                    en_reject_shape(f);
                    continue;
                }
                uint32_t left = moves - x->cost - still;
                if (kind == EN_CONV && leads_nowhere(f, a, b, &x->out, &w->out, left)) {
                    en_reject_shape(f);
                    continue;
                }
                uint32_t edges = f->n_edges;
                p->op[n] = (en_op){.kind = kind, .n_in = 2, .n_out = 1};
                p->op[n].in[0] = (uint8_t)a;
                p->op[n].in[1] = (uint8_t)b;
                p->view[n][0] = x->cost ? &sa->rt[x->first] : NULL;
                p->view[n][1] = w->cost ? &sb->rt[w->first] : NULL;
                if (x->cost)
                    f->edges[f->n_edges++] = (en_edge){(uint8_t)n, 0, sa, x};
                if (w->cost)
                    f->edges[f->n_edges++] = (en_edge){(uint8_t)n, 1, sb, w};
                if (kind == EN_CONV)
                    conv_attributes(f, &x->out, &w->out, deeper, left);
                else
                    push(f, deeper, left);
                f->n_edges = edges;
                p->view[n][0] = p->view[n][1] = NULL;
            }
        }
}

/* Tensors that could stand beside one another: of one rank, weights or activations alike. */
static bool alike(const en_finder *f, uint32_t a, uint32_t b) {
    return f->p.shape[a].rank == f->p.shape[b].rank && f->activation[a] == f->activation[b] &&
           __builtin_popcount(f->p.monomials[a].m[0]) == __builtin_popcount(f->p.monomials[b].m[0]);
}

/* Whether operands of a CONCAT are of different lengths along its axis. */
static uint32_t unequal(const en_program *p, const en_op *op) {
    for (uint32_t k = 1; k < op->n_in; k++)
        if (p->shape[op->in[k]].d[op->axis] != p->shape[op->in[0]].d[op->axis])
            return 1;
    return 0;
}

/* Whether the operand stands there already. One tensor alone may stand there as often as the target
 * reads it: as channels, which then are groups of equal content. */
static bool stands(const en_finder *f, const en_op *op, uint32_t slot) {
    uint32_t same = 0;
    for (uint32_t k = 0; k < op->n_in; k++)
        same += op->in[k] == slot;
    return same > 0 && (same < op->n_in || slot >= f->p.n_in || !f->activation[slot] ||
                        f->used[slot] + same >= f->uses[slot]);
}

static void concat(en_finder *f, en_op op, uint32_t from, uint32_t depth, uint32_t moves) {
    en_program *p = &f->p;
    bool twice = op.n_in >= 2 && op.in[0] == op.in[1];
    uint32_t rank = op.n_in >= 2 ? p->shape[op.in[0]].rank : 0;
    for (op.axis = twice; op.axis < (twice ? 2 : rank); op.axis++)
        for (op.how = EN_CLOSE; op.how < EN_EVEN + unequal(p, &op); op.how++) {
            p->op[p->n_ops] = op;
            push(f, depth + 1, moves);
        }
    op.axis = 0;
    if (op.n_in >= 2 && !twice && f->stacks) {
        op.how = EN_STACKED;
        p->op[p->n_ops] = op;
        push(f, depth + 1, moves);
    }
    op.how = EN_CLOSE;
    for (uint32_t i = from; i < p->n_slots && op.n_in < EN_ARGS; i++)
        if (!spent(f, i) && !stands(f, &op, i) &&
            (op.n_in == 0 || (alike(f, op.in[0], i) && (!twice || op.in[0] == i)))) {
            op.in[op.n_in++] = (uint8_t)i;
            concat(f, op, i, depth, moves);
            op.n_in--;
        }
}

/* Into parts as long as the target's outputs, or as other inputs. */
static void split(en_finder *f, uint32_t slot, uint32_t depth, uint32_t moves) {
    en_program *p = &f->p;
    const en_program *t = f->target;
    const en_shape *s = &p->shape[slot];
    en_op op = {.kind = EN_SPLIT, .n_in = 1, .in = {(uint8_t)slot}};
    for (op.axis = 0; op.axis < s->rank; op.axis++) {
        if (slot >= p->n_in && t->n_out > 1) {
            int32_t rest = s->d[op.axis], longest = 0;
            op.n_out = t->n_out;
            op.like_axis = 255;
            for (uint32_t k = 0; k < t->n_out; k++) {
                const en_shape *part = &t->shape[t->out[k]];
                op.like[k] = (uint8_t)k;
                op.size[k] = op.axis < part->rank ? part->d[op.axis] : 0;
                rest -= op.size[k];
                longest = op.size[k] > longest ? op.size[k] : longest;
            }
            bool even = rest > 0 && longest * op.n_out == s->d[op.axis];
            bool stacked = op.axis == 0 && f->stacks && op.n_out == s->d[0];
            for (op.how = EN_CLOSE; op.how <= EN_STACKED; op.how++)
                if (op.how == EN_CLOSE ? rest == 0 : op.how == EN_EVEN ? even : stacked) {
                    p->op[p->n_ops] = op;
                    push(f, depth + 1, moves);
                }
        }
        if (slot >= p->n_in)
            continue;
        op.n_out = 2;
        op.how = EN_CLOSE;
        for (uint8_t a = 0; a < p->n_in; a++)
            for (uint8_t b = (uint8_t)(a + 1); b < p->n_in; b++)
                for (op.like_axis = 0;
                     a != slot && b != slot && alike(f, a, b) && op.like_axis < p->shape[a].rank;
                     op.like_axis++) {
                    op.like[0] = a;
                    op.like[1] = b;
                    op.size[0] = p->shape[a].d[op.like_axis];
                    op.size[1] = p->shape[b].d[op.like_axis];
                    if (op.size[0] + op.size[1] != s->d[op.axis])
                        continue;
                    p->op[p->n_ops] = op;
                    push(f, depth + 1, moves);
                }
    }
}

static void grow(en_finder *f, uint32_t depth, uint32_t moves) {
    en_program *p = &f->p;
    uint32_t n = p->n_slots, unused = 0;
    for (uint32_t i = 0; i < n; i++)
        unused += f->used[i] == 0 && i + 1 != p->table;
    if (f->stop || depth >= f->depth || p->n_ops == EN_OPS ||
        unused > f->target->n_out + (f->depth - depth) * (EN_ARGS - 1))
        return;
    for (uint32_t a = 0; a < n; a++)
        for (uint32_t b = 0; b < n; b++) {
            if (a == b)
                continue;
            if (f->kinds >> EN_CONV & 1)
                product(f, EN_CONV, a, b, depth, moves);
            if (f->kinds >> EN_MATMUL & 1)
                product(f, EN_MATMUL, a, b, depth, moves);
            if ((f->kinds >> EN_ADD & 1) && a < b && en_same(&p->shape[a], &p->shape[b])) {
                p->op[p->n_ops] =
                    (en_op){.kind = EN_ADD, .n_in = 2, .n_out = 1, .in = {(uint8_t)a, (uint8_t)b}};
                push(f, depth + 1, moves);
            }
        }
    if (f->kinds >> EN_CONCAT & 1)
        concat(f, (en_op){.kind = EN_CONCAT, .n_out = 1}, 0, depth, moves);
    if (f->kinds >> EN_SPLIT & 1)
        for (uint32_t a = 0; a < n; a++)
            if (!f->used[a])
                split(f, a, depth, moves);
    for (uint32_t i = 0; i < f->n_windows; i++)
        for (uint32_t a = 0; a < n && f->window[i].kind == EN_POOL; a++) {
            p->op[p->n_ops] = f->window[i];
            p->op[p->n_ops].in[0] = (uint8_t)a;
            if (p->shape[a].rank >= 3)
                push(f, depth + 1, moves);
        }
}

static void look_at_target(en_finder *f) {
    const en_program *t = f->target;
    for (uint32_t n = 0; n < t->n_ops; n++) {
        for (uint32_t k = 0; k < t->op[n].n_in; k++)
            if (t->op[n].in[k] < t->n_in)
                f->uses[t->op[n].in[k]]++;
        f->kinds |= 1u << t->op[n].kind;
        f->products += t->op[n].kind == EN_CONV || t->op[n].kind == EN_MATMUL;
        if (t->op[n].kind == EN_CONV || t->op[n].kind == EN_POOL) {
            en_op w = t->op[n];
            memset(w.in, 0, sizeof w.in);
            w.out = 0;
            f->window[f->n_windows++] = w;
        }
    }
    f->stacks = f->kinds >> EN_MATMUL & 1; /* what has batches of any rank */
    if (t->table) {
        f->kinds |= 1u << EN_CONV;
        f->uses[t->table - 1] = 1;
    }
    if (f->kinds >> EN_CONV & 1 && f->products)
        f->kinds |= 1u << EN_MATMUL;
    bool several = t->n_out > 1;
    for (uint32_t k = 0; k < t->n_out; k++)
        several |= t->monomials[t->out[k]].n > 1;
    if (several || f->products > 1)
        f->kinds |= 1u << EN_ADD | 1u << EN_CONCAT | 1u << EN_SPLIT;
}

void en_search_run(en_search *s) {
    en_finder *f = PO_NEW(s->arena, en_finder);
    f->s = s;
    f->target = &s->problem->target;
    f->mask = EN_SEEN - 1;
    f->table = PO_NEW_N(s->arena, en_seen, EN_SEEN);
    f->p = *f->target;
    f->p.n_ops = 0;
    f->p.n_slots = f->p.n_in;
    memset(f->p.view, 0, sizeof f->p.view);
    memset(f->p.last, 0, sizeof f->p.last);
    for (uint32_t i = 0; i < f->p.n_in; i++)
        f->activation[i] = i < s->problem->n_activations;
    f->eval = en_eval_create(s->arena, &f->p, true);
    look_at_target(f);
    derive_factors(f);
    derive_tiles(f);
    en_judge_target(f);
    for (f->level = 0; f->level <= s->moves && !f->stop; f->level++) {
        make_sets(f);
        /* Of several products there are many programs: the short ones first. */
        for (f->depth = f->products > 1 ? 2 : s->depth; f->depth <= s->depth && !f->stop;
             f->depth++) {
            en_finish(f, 0, f->level);
            grow(f, 0, f->level);
        }
    }
}
