/* Judging candidates: shapes of the end, hash, inside points. */
#include "mutate/enumerate_finder.h"

static uint64_t mix(uint64_t h, uint64_t v) {
    h = (h ^ v) * 0x9E3779B97F4A7C15u;
    return h ^ (h >> 32);
}

/* Whether a window at this place of an output's map stays within its part, wherever the map is cut
 * in one of the first so many ways. */
static bool inside(const en_problem *problem, const en_reach *r, uint32_t map, int32_t length,
                   int32_t at, uint32_t tiles) {
    for (uint32_t i = 0; i < tiles; i++) {
        int64_t part = ((int64_t)length + problem->tile[i] - 1) / problem->tile[i];
        int64_t first = at % part * r->stride[map] - (r->reach[map] + 1) / 2;
        if (first < 0 || first + r->reach[map] >= part * r->stride[map])
            return false;
    }
    return true;
}

/* A place on a map's axis: away from its ends and, where there is room, inside of the tiles that it
 * may be cut into; the smaller ones come last. */
static int32_t place(const en_problem *problem, const en_reach *r, uint32_t map, int32_t length,
                     uint64_t random) {
    int32_t away = length >= 4 ? (length + 2) / 4 : 0;
    for (uint32_t tiles = problem->n_tiles;; tiles--) {
        int32_t n = 0;
        for (int32_t at = away; at < length - away; at++)
            n += inside(problem, r, map, length, at, tiles);
        if (n == 0)
            continue;
        n = (int32_t)(random % (uint64_t)n);
        for (int32_t at = away;; at++)
            if (inside(problem, r, map, length, at, tiles) && n-- == 0)
                return at;
    }
}

/* Points away from the borders and seams of maps; the others' places are drawn at random. */
static void place_points(const en_problem *problem, int32_t point[EN_OUTS][EN_POINTS][EN_RANK]) {
    const en_program *t = &problem->target;
    bool maps = false;
    en_reach reach[EN_OUTS];
    en_reach_of(t, reach);
    for (uint32_t n = 0; n < t->n_ops; n++)
        maps |= t->op[n].kind == EN_CONV || t->op[n].kind == EN_POOL;
    for (uint32_t k = 0; k < t->n_out; k++) {
        const en_shape *s = &t->shape[t->out[k]];
        for (uint32_t i = 0; i < EN_POINTS; i++)
            for (uint32_t x = 0; x < s->rank; x++) {
                uint64_t r = po_random_u64(17, k * EN_POINTS + i, x);
                point[k][i][x] = maps && x >= 2 && x < 2 + EN_MAPS
                                     ? place(problem, &reach[k], x - 2, s->d[x], r)
                                     : (int32_t)(r % (uint64_t)s->d[x]);
            }
    }
}

/* Which element of an output is looked at next to tell how much agrees: every `step`-th, but not
 * always the same column. */
static bool sample_index(const en_shape *s, uint32_t sample, int32_t index[EN_RANK]) {
    int64_t count = en_count(s), step = count / EN_SAMPLES + 1, at = sample * step;
    if (at >= count)
        return false;
    int64_t rest = at + (int64_t)sample * 7 % step;
    if (rest >= count)
        rest = at;
    for (uint32_t i = s->rank; i-- > 0; rest /= s->d[i])
        index[i] = (int32_t)(rest % s->d[i]);
    return true;
}

void en_judge_target(en_finder *f) {
    const en_program *t = f->target;
    place_points(f->s->problem, f->point);
    en_eval_program(f->eval, t);
    for (uint32_t k = 0; k < t->n_out; k++) {
        const en_shape *s = &t->shape[t->out[k]];
        int32_t index[EN_RANK];
        for (uint32_t i = 0; i < EN_POINTS; i++)
            f->value[k][i] = en_eval_output(f->eval, k, s, f->point[k][i]);
        for (uint32_t i = 0; i < EN_SAMPLES && sample_index(s, i, index); i++)
            f->sample[k][i] = en_eval_output(f->eval, k, s, index);
    }
}

struct en_checker {
    const en_program *target;
    en_eval *eval;
    int32_t point[EN_OUTS][EN_POINTS][EN_RANK];
    uint32_t value[EN_OUTS][EN_POINTS];
};

en_checker *en_checker_create(po_arena *arena, const en_problem *problem) {
    en_checker *c = PO_NEW(arena, en_checker);
    const en_program *t = c->target = &problem->target;
    c->eval = en_eval_create(arena, t, false);
    place_points(problem, c->point);
    en_eval_program(c->eval, t);
    for (uint32_t k = 0; k < t->n_out; k++)
        for (uint32_t i = 0; i < EN_POINTS; i++)
            c->value[k][i] = en_eval_output(c->eval, k, &t->shape[t->out[k]], c->point[k][i]);
    return c;
}

bool en_agrees(en_checker *c, const en_program *program) {
    const en_program *t = c->target;
    en_eval_program(c->eval, program);
    for (uint32_t i = 0; i < EN_POINTS; i++)
        for (uint32_t k = 0; k < t->n_out; k++)
            if (en_eval_output(c->eval, k, &t->shape[t->out[k]], c->point[k][i]) != c->value[k][i])
                return false;
    return true;
}

static int compare_bucket(const en_bucket *b, uint32_t cost, const en_shape *s) {
    if (b->cost != cost)
        return b->cost < cost ? -1 : 1;
    if (b->out.rank != s->rank)
        return b->out.rank < s->rank ? -1 : 1;
    for (uint32_t i = 0; i < s->rank; i++)
        if (b->out.d[i] != s->d[i])
            return b->out.d[i] < s->d[i] ? -1 : 1;
    return 0;
}

static const en_bucket *find_bucket(const en_rts *set, uint32_t cost, const en_shape *s) {
    uint32_t low = 0, high = set->n_buckets;
    while (low < high) {
        uint32_t mid = (low + high) / 2;
        int c = compare_bucket(&set->bucket[mid], cost, s);
        if (c == 0)
            return &set->bucket[mid];
        if (c < 0)
            low = mid + 1;
        else
            high = mid;
    }
    return NULL;
}

/* Whether the program was judged before. */
static bool known(en_finder *f, uint64_t a, uint64_t b) {
    if (2 * (f->n_seen + 1) > f->mask + 1) {
        if (f->mask + 1 >= EN_MOST_SEEN)
            return false;
        en_seen *old = f->table;
        uint32_t n = f->mask + 1;
        f->mask = 2 * n - 1;
        f->table = PO_NEW_N(f->s->arena, en_seen, 2 * (size_t)n);
        for (uint32_t i = 0; i < n; i++) {
            if (!(old[i].lo | old[i].hi))
                continue;
            uint32_t at = (uint32_t)old[i].lo & f->mask;
            while (f->table[at].lo | f->table[at].hi)
                at = (at + 1) & f->mask;
            f->table[at] = old[i];
        }
    }
    uint32_t at = (uint32_t)a & f->mask;
    for (; f->table[at].lo | f->table[at].hi; at = (at + 1) & f->mask)
        if (f->table[at].lo == a && f->table[at].hi == b)
            return true;
    f->table[at] = (en_seen){a, b};
    f->n_seen++;
    return false;
}

/* From positions spread over the outputs, all of them where they are few. */
static double share_of(en_finder *f) {
    double agree = 0, all = 0;
    for (uint32_t k = 0; k < f->target->n_out; k++) {
        const en_shape *s = &f->target->shape[f->target->out[k]];
        int32_t index[EN_RANK];
        for (uint32_t i = 0; i < EN_SAMPLES && sample_index(s, i, index); i++) {
            agree += en_eval_output(f->eval, k, s, index) == f->sample[k][i];
            all += 1;
        }
    }
    return all > 0 ? agree / all : 0;
}

/* Everything is chosen. */
static void judge(en_finder *f, po_hash skeleton, uint32_t depth) {
    po_mutate_counts *c = f->s->counts;
    c->judged++;
    en_spend(f, EN_POINT_WORK);
    uint64_t a = skeleton.lo, b = skeleton.hi;
    for (uint32_t i = 0; i < f->n_edges; i++) {
        uint64_t h = f->p.view[f->edges[i].op][f->edges[i].arg]->hash;
        a = mix(a, h);
        b = mix(b + 0x632BE59B, h);
    }
    for (uint32_t k = 0; k < f->p.n_out; k++) {
        uint64_t h = f->p.last[k] ? f->p.last[k]->hash : k;
        a = mix(a, h);
        b = mix(b + 0x632BE59B, h);
    }
    if (known(f, a, b)) {
        c->by_hash++;
        return;
    }
    for (uint32_t i = 0; i < EN_POINTS; i++)
        for (uint32_t k = 0; k < f->p.n_out; k++)
            if (en_eval_output(f->eval, k, &f->target->shape[f->target->out[k]], f->point[k][i]) !=
                f->value[k][i]) {
                c->by_points++;
                return;
            }
    en_found found = {.program = f->p, .order = c->judged};
    found.depth = (uint8_t)depth;
    found.moves = (uint8_t)f->level;
    found.share = share_of(f);
    if (!f->s->found(f->s->user, &found))
        f->stop = true;
}

/* The R/Ts of the buckets, one edge after the other, then the last one's. */
static void try_edges(en_finder *f, uint32_t at, const en_bucket *last, po_hash skeleton,
                      uint32_t depth) {
    if (f->stop)
        return;
    if (at < f->n_edges) {
        const en_edge *e = &f->edges[at];
        for (uint32_t i = 0; i < e->bucket->n && !f->stop; i++) {
            f->p.view[e->op][e->arg] = &e->set->rt[e->bucket->first + i];
            en_eval_view(f->eval, e->op, e->arg);
            en_eval_changed(f->eval, e->op);
            try_edges(f, at + 1, last, skeleton, depth);
        }
        return;
    }
    if (!last) {
        judge(f, skeleton, depth);
        return;
    }
    for (uint32_t i = 0; i < last->n && !f->stop; i++) {
        f->p.last[0] = &f->last_set[0]->rt[last->first + i];
        judge(f, skeleton, depth);
    }
    f->p.last[0] = NULL;
}

static bool covers(const en_monomials *have, const en_monomials *want) {
    uint32_t k = 0;
    for (uint32_t i = 0; i < want->n; i++) {
        while (k < have->n && have->m[k] < want->m[i])
            k++;
        if (k == have->n || have->m[k] != want->m[i])
            return false;
    }
    return true;
}

/* Tries the program as it stands, with `moves` left for the last R/T. */
void en_finish(en_finder *f, uint32_t depth, uint32_t moves) {
    en_program *p = &f->p;
    const en_program *t = f->target;
    uint32_t unused[EN_SLOTS], n = 0;
    for (uint32_t i = 0; i < p->n_slots; i++)
        if (!f->used[i] && i + 1 != p->table)
            unused[n++] = i;
    if (n != t->n_out || (moves && (t->n_out > 1 || depth >= f->depth)))
        return;
    const en_bucket *last = NULL;
    for (uint32_t k = 0; k < n; k++) {
        const en_shape *s = &p->shape[unused[k]];
        if (!covers(&p->monomials[unused[k]], &t->monomials[t->out[k]]))
            return;
        if (moves)
            last = find_bucket(f->last_set[0], moves, s);
        if (moves ? !last : !en_same(s, &t->shape[t->out[k]])) {
            en_reject_shape(f);
            return;
        }
        p->out[k] = (uint8_t)unused[k];
        p->last[k] = NULL;
    }
    p->n_out = t->n_out;
    for (uint32_t i = 0; i < f->n_edges; i++) /* for the shapes; each is set anew below */
        p->view[f->edges[i].op][f->edges[i].arg] = &f->edges[i].set->rt[f->edges[i].bucket->first];
    en_eval_program(f->eval, p);
    en_program bare = *p;
    for (uint32_t i = 0; i < f->n_edges; i++)
        bare.view[f->edges[i].op][f->edges[i].arg] = NULL;
    try_edges(f, 0, last, en_program_hash(&bare), depth + (moves > 0));
}
