/* R/T forms against index maps written out: making, composing, inverting, printing, emitting. */
#include "base/scan.h"
#include "ops/ref.h"
#include "ops/rewrite.h"
#include "ops/rt.h"
#include "rewriting.h"
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>

typedef struct fixture {
    po_ctx ctx;
    po_arena *arena;
} fixture;

static void start(fixture *f) {
    po_ctx_init(&f->ctx);
    f->arena = po_arena_create(&f->ctx);
}

static void stop(fixture *f) {
    po_arena_free(f->arena);
}

/* Where each output element comes from; -1: a zero. */
typedef struct map {
    uint32_t in_rank, out_rank;
    int64_t in_dims[PO_RT_MAX_RANK], out_dims[PO_RT_MAX_RANK];
    int64_t n_in, n_out, *from;
} map;

static int64_t product(uint32_t rank, const int64_t *dims) {
    int64_t n = 1;
    for (uint32_t i = 0; i < rank; i++)
        n *= dims[i];
    return n;
}

static void unflatten(int64_t at, uint32_t rank, const int64_t *dims, int64_t *index) {
    for (uint32_t i = rank; i-- > 0; at /= dims[i])
        index[i] = at % dims[i];
}

static int64_t flatten(uint32_t rank, const int64_t *dims, const int64_t *index) {
    int64_t at = 0;
    for (uint32_t i = 0; i < rank; i++) {
        if (index[i] < 0 || index[i] >= dims[i])
            return -1;
        at = at * dims[i] + index[i];
    }
    return at;
}

static map *new_map(po_arena *arena, uint32_t in_rank, const int64_t *in, uint32_t out_rank,
                    const int64_t *out) {
    map *m = PO_NEW(arena, map);
    m->in_rank = in_rank;
    m->out_rank = out_rank;
    memcpy(m->in_dims, in, in_rank * sizeof *in);
    memcpy(m->out_dims, out, out_rank * sizeof *out);
    m->n_in = product(in_rank, in);
    m->n_out = product(out_rank, out);
    m->from = PO_NEW_N(arena, int64_t, m->n_out);
    for (int64_t i = 0; i < m->n_out; i++)
        m->from[i] = -1;
    return m;
}

/* Every iteration of a form, one after another. */
static map *map_of(po_arena *arena, const po_rt *rt) {
    map *m = new_map(arena, rt->in_rank, rt->in_dims, rt->out_rank, rt->out_dims);
    int64_t n = 1;
    for (uint32_t i = 0; i < rt->n; i++)
        n *= rt->digits[i].extent;
    for (int64_t k = 0; k < n; k++) {
        int64_t in[PO_RT_MAX_RANK], out[PO_RT_MAX_RANK], rest = k;
        memcpy(in, rt->in_base, rt->in_rank * sizeof *in);
        memcpy(out, rt->out_base, rt->out_rank * sizeof *out);
        for (uint32_t i = 0; i < rt->n; i++) {
            const po_rt_digit *d = &rt->digits[i];
            in[d->in_axis] += d->in_coef * (rest % d->extent);
            out[d->out_axis] += d->out_coef * (rest % d->extent);
            rest /= d->extent;
        }
        int64_t from = flatten(rt->in_rank, rt->in_dims, in);
        int64_t to = flatten(rt->out_rank, rt->out_dims, out);
        if (from >= 0 && to >= 0) {
            assert_true(m->from[to] == -1); /* nothing is written twice */
            m->from[to] = from;
        }
    }
    return m;
}

static map *then(po_arena *arena, const map *a, const map *b) {
    map *m = new_map(arena, a->in_rank, a->in_dims, b->out_rank, b->out_dims);
    for (int64_t i = 0; i < m->n_out; i++)
        m->from[i] = b->from[i] < 0 ? -1 : a->from[b->from[i]];
    return m;
}

static bool same_map(const map *a, const map *b) {
    return a->in_rank == b->in_rank && a->out_rank == b->out_rank && a->n_out == b->n_out &&
           memcmp(a->in_dims, b->in_dims, a->in_rank * sizeof *a->in_dims) == 0 &&
           memcmp(a->out_dims, b->out_dims, a->out_rank * sizeof *a->out_dims) == 0 &&
           memcmp(a->from, b->from, (size_t)a->n_out * sizeof *a->from) == 0;
}

static bool empty(const map *m) {
    for (int64_t i = 0; i < m->n_out; i++)
        if (m->from[i] >= 0)
            return false;
    return true;
}

static const char *text_of(po_arena *arena, const po_rt *rt, bool extents) {
    po_text t;
    po_text_init(&t, arena);
    po_rt_print(&t, rt, extents);
    po_text_puts(&t, "");
    return t.data;
}

/* --- random steps --- */

typedef struct maker {
    uint64_t seed, next;
} maker;

static int64_t draw(maker *m, int64_t from, int64_t to) {
    return from + (int64_t)(po_random_u64(m->seed, 1, m->next++) % (uint64_t)(to - from + 1));
}

/* A step with its map, made without R/T's arithmetic. */
static const po_rt *random_step(maker *m, po_arena *arena, uint32_t rank, const int64_t *dims,
                                map **made) {
    int64_t out[PO_RT_MAX_RANK], index[PO_RT_MAX_RANK];
    uint32_t x = (uint32_t)draw(m, 0, rank - 1);
    switch (draw(m, 0, 5)) {
    case 0: { /* Transpose */
        uint32_t perm[PO_RT_MAX_RANK];
        for (uint32_t i = 0; i < rank; i++)
            perm[i] = i;
        for (uint32_t i = rank; i-- > 1;) {
            uint32_t k = (uint32_t)draw(m, 0, i), swap = perm[i];
            perm[i] = perm[k];
            perm[k] = swap;
        }
        for (uint32_t i = 0; i < rank; i++)
            out[i] = dims[perm[i]];
        *made = new_map(arena, rank, dims, rank, out);
        for (int64_t i = 0; i < (*made)->n_out; i++) {
            int64_t at[PO_RT_MAX_RANK];
            unflatten(i, rank, out, at);
            for (uint32_t k = 0; k < rank; k++)
                index[perm[k]] = at[k];
            (*made)->from[i] = flatten(rank, dims, index);
        }
        return po_rt_transpose(arena, rank, dims, perm);
    }
    case 1: { /* split an axis */
        int64_t f = draw(m, 2, 3);
        if (rank >= 5 || dims[x] % f)
            return NULL;
        for (uint32_t i = 0, n = 0; i < rank; i++) {
            if (i == x)
                out[n++] = draw(m, 0, 1) ? f : dims[x] / f;
            out[n++] = dims[i];
            if (i == x)
                out[n - 1] = dims[x] / out[n - 2];
        }
        *made = new_map(arena, rank, dims, rank + 1, out);
        for (int64_t i = 0; i < (*made)->n_out; i++)
            (*made)->from[i] = i;
        return po_rt_reshape(arena, rank, dims, rank + 1, out);
    }
    case 2: { /* merge two axes */
        if (rank < 2 || x == 0)
            return NULL;
        for (uint32_t i = 0, n = 0; i < rank; i++)
            if (i == x)
                out[n - 1] *= dims[i];
            else
                out[n++] = dims[i];
        *made = new_map(arena, rank, dims, rank - 1, out);
        for (int64_t i = 0; i < (*made)->n_out; i++)
            (*made)->from[i] = i;
        return po_rt_reshape(arena, rank, dims, rank - 1, out);
    }
    case 3: { /* pad and crop */
        int64_t before[PO_RT_MAX_RANK] = {0}, after[PO_RT_MAX_RANK] = {0};
        before[x] = draw(m, -2, 2);
        after[x] = draw(m, -2, 2);
        memcpy(out, dims, rank * sizeof *dims);
        out[x] += before[x] + after[x];
        if (out[x] < 1)
            return NULL;
        *made = new_map(arena, rank, dims, rank, out);
        for (int64_t i = 0; i < (*made)->n_out; i++) {
            unflatten(i, rank, out, index);
            index[x] -= before[x];
            (*made)->from[i] = flatten(rank, dims, index);
        }
        return po_rt_pad(arena, rank, dims, before, after);
    }
    case 4: { /* halo */
        int64_t tiles = draw(m, 1, 3), window = draw(m, 1, 4), step = draw(m, 1, 4);
        int64_t from = draw(m, -1, 1);
        if (rank >= 5)
            return NULL;
        for (uint32_t i = 0, n = 0; i < rank; i++) {
            if (i == x)
                out[n++] = tiles;
            out[n++] = i == x ? window : dims[i];
        }
        *made = new_map(arena, rank, dims, rank + 1, out);
        for (int64_t i = 0; i < (*made)->n_out; i++) {
            int64_t at[PO_RT_MAX_RANK];
            unflatten(i, rank + 1, out, at);
            for (uint32_t k = 0; k < rank; k++)
                index[k] = k < x ? at[k] : at[k + 1];
            index[x] += at[x] * step + from;
            (*made)->from[i] = flatten(rank, dims, index);
        }
        return po_rt_tiles(arena, rank, dims, x, tiles, window, step, from);
    }
    default: { /* slice, forwards or backwards */
        int64_t step = draw(m, 1, 2), first = draw(m, 0, 1), n = (dims[x] - 1 - first) / step + 1;
        bool back = draw(m, 0, 2) == 0;
        if (first >= dims[x])
            return NULL;
        memcpy(out, dims, rank * sizeof *dims);
        out[x] = n;
        *made = new_map(arena, rank, dims, rank, out);
        for (int64_t i = 0; i < (*made)->n_out; i++) {
            unflatten(i, rank, out, index);
            index[x] = first + step * (back ? n - 1 - index[x] : index[x]);
            (*made)->from[i] = flatten(rank, dims, index);
        }
        po_rt_digit d[PO_RT_MAX_RANK];
        int64_t in_base[PO_RT_MAX_RANK] = {0}, out_base[PO_RT_MAX_RANK] = {0};
        for (uint32_t i = 0; i < rank; i++)
            d[i] = (po_rt_digit){out[i], i, i, 1, 1};
        d[x].in_coef = back ? -step : step;
        in_base[x] = first + (back ? step * (n - 1) : 0);
        return po_rt_create(arena, &(po_rt){rank, rank, rank, dims, out, in_base, out_base, d});
    }
    }
}

typedef struct chain {
    uint32_t n;
    const po_rt *step[6];
    map *made[6];
} chain;

static chain random_chain(maker *m, po_arena *arena, uint32_t most) {
    chain c = {0};
    int64_t dims[PO_RT_MAX_RANK];
    uint32_t rank = (uint32_t)draw(m, 1, 3), wanted = (uint32_t)draw(m, 1, most);
    for (uint32_t i = 0; i < rank; i++)
        dims[i] = draw(m, 0, 3) ? 2 * draw(m, 1, 3) : draw(m, 1, 6);
    for (int tries = 0; tries < 40 && c.n < wanted; tries++) {
        map *made = NULL;
        const po_rt *rt = random_step(m, arena, rank, dims, &made);
        if (!made || made->n_out > 3000)
            continue;
        if (!rt) {
            assert_true(empty(made));
            continue;
        }
        if (!same_map(made, map_of(arena, rt)))
            fail_msg("step '%s' is not what it should be", text_of(arena, rt, true));
        c.step[c.n] = rt;
        c.made[c.n++] = made;
        rank = rt->out_rank;
        memcpy(dims, rt->out_dims, rank * sizeof *dims);
    }
    return c;
}

/* --- tests --- */

static void chains_compose(void **state) {
    (void)state;
    enum { CHAINS = 20000 };
    uint32_t composed = 0, refused = 0, associated = 0;
    for (uint64_t seed = 1; seed <= CHAINS; seed++) {
        fixture f;
        start(&f);
        maker m = {seed, 0};
        chain c = random_chain(&m, f.arena, 5);
        const po_rt *rt = c.n ? c.step[0] : NULL;
        map *made = c.n ? c.made[0] : NULL;
        for (uint32_t i = 1; i < c.n && rt; i++) {
            made = then(f.arena, made, c.made[i]);
            const po_rt *longer = po_rt_compose(f.arena, rt, c.step[i]);
            if (longer && !same_map(made, map_of(f.arena, longer)))
                fail_msg("seed %llu: '%s' then '%s' is not '%s'", (unsigned long long)seed,
                         text_of(f.arena, rt, true), text_of(f.arena, c.step[i], true),
                         text_of(f.arena, longer, true));
            refused += !longer && !empty(made);
            composed += longer != NULL;
            rt = longer;
        }
        if (rt && c.n > 2) { /* the other way to put the parentheses */
            const po_rt *right = c.step[c.n - 1];
            for (uint32_t i = c.n - 1; i-- > 0 && right;)
                right = po_rt_compose(f.arena, c.step[i], right);
            if (right && !po_rt_equal(rt, right))
                fail_msg("seed %llu: '%s' is not '%s'", (unsigned long long)seed,
                         text_of(f.arena, rt, true), text_of(f.arena, right, true));
            if (right)
                assert_true(po_hash_equal(po_rt_hash(rt), po_rt_hash(right)));
            associated += right != NULL;
        }
        stop(&f);
    }
    printf("%u composed, %u refused, %u both ways\n", composed, refused, associated);
    assert_true(composed > CHAINS && associated > CHAINS / 4 && refused < composed / 5);
}

typedef struct entry {
    map *m;
    const po_rt *rt;
    struct entry *next;
} entry;

/* Forms that move elements equally are equal: chains that happen to agree are looked for. */
static void forms_are_canonical(void **state) {
    (void)state;
    enum { CHAINS = 30000, BUCKETS = 4096 };
    fixture f;
    start(&f);
    entry **bucket = PO_NEW_N(f.arena, entry *, BUCKETS);
    uint32_t met = 0, unequal = 0;
    for (uint64_t seed = 1; seed <= CHAINS; seed++) {
        maker m = {seed + 900000, 0};
        chain c = random_chain(&m, f.arena, 4);
        const po_rt *rt = c.n ? c.step[0] : NULL;
        for (uint32_t i = 1; i < c.n && rt; i++)
            rt = po_rt_compose(f.arena, rt, c.step[i]);
        if (!rt)
            continue;
        map *made = map_of(f.arena, rt);
        if (made->n_out > 400)
            continue;
        po_hash h = po_hash_bytes(made->from, (size_t)made->n_out * sizeof *made->from,
                                  (po_hash){made->in_rank, made->out_rank});
        entry *e = bucket[h.lo % BUCKETS];
        while (e && !same_map(e->m, made))
            e = e->next;
        if (e) {
            met++;
            if (!po_rt_equal(e->rt, rt) && unequal++ < 8)
                printf("  '%s' and '%s'\n", text_of(f.arena, e->rt, true),
                       text_of(f.arena, rt, true));
        } else {
            e = PO_NEW(f.arena, entry);
            *e = (entry){made, rt, bucket[h.lo % BUCKETS]};
            bucket[h.lo % BUCKETS] = e;
        }
    }
    printf("%u pairs that move alike, %u of them with two forms\n", met, unequal);
    /* What remains: both ends of an axis cut through the digits of one group. */
    assert_true(met > 5000 && unequal <= met / 1000);
    stop(&f);
}

static void inverses_undo(void **state) {
    (void)state;
    uint32_t inverted = 0, missed = 0, identities = 0;
    for (uint64_t seed = 1; seed <= 20000; seed++) {
        fixture f;
        start(&f);
        maker m = {seed + 5000000, 0};
        chain c = random_chain(&m, f.arena, 3);
        const po_rt *rt = c.n ? c.step[0] : NULL;
        for (uint32_t i = 1; i < c.n && rt; i++)
            rt = po_rt_compose(f.arena, rt, c.step[i]);
        if (rt) {
            map *made = map_of(f.arena, rt);
            bool identity =
                made->in_rank == made->out_rank &&
                memcmp(made->in_dims, made->out_dims, made->in_rank * sizeof *made->in_dims) == 0;
            uint32_t *copies = PO_NEW_N(f.arena, uint32_t, made->n_in);
            bool all = true, no_zero = true, once = true;
            for (int64_t i = 0; i < made->n_out; i++) {
                identity &= made->from[i] == i;
                no_zero &= made->from[i] >= 0;
                if (made->from[i] >= 0)
                    once &= !copies[made->from[i]]++;
            }
            for (int64_t i = 0; i < made->n_in; i++)
                all &= copies[i] != 0;
            assert_int_equal(po_rt_is_identity(rt), identity);
            if (po_rt_is_bijection(rt) != (all && no_zero && once))
                fail_msg("'%s' is%s a bijection", text_of(f.arena, rt, true),
                         all && no_zero && once ? "" : " not");
            const po_rt *back = po_rt_invert(f.arena, rt);
            if (back) {
                map *round = then(f.arena, made, map_of(f.arena, back));
                for (int64_t i = 0; i < round->n_out; i++)
                    if (round->from[i] != i)
                        fail_msg("'%s' is not undone by '%s'", text_of(f.arena, rt, true),
                                 text_of(f.arena, back, true));
            }
            if (all && once && !back)
                fail_msg("'%s' has no inverse", text_of(f.arena, rt, true));
            identities += identity;
            inverted += back != NULL;
            missed += all && !back;
        }
        stop(&f);
    }
    printf("%u inverted, %u that lose nothing were not, %u identities\n", inverted, missed,
           identities);
    /* Missed: windows that overlap unevenly, of which no one copy is the natural one. */
    assert_true(inverted > 4000 && identities > 100 && missed < inverted / 20);
}

static void text_parses_back(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 10000; seed++) {
        fixture f;
        start(&f);
        maker m = {seed + 7000000, 0};
        chain c = random_chain(&m, f.arena, 3);
        const po_rt *rt = c.n ? c.step[0] : NULL, *back = NULL;
        for (uint32_t i = 1; i < c.n && rt; i++)
            rt = po_rt_compose(f.arena, rt, c.step[i]);
        for (int stated = 0; rt && stated < 2; stated++) {
            const char *text = text_of(f.arena, rt, stated != 0);
            if (po_rt_parse(&f.ctx, f.arena, text, rt->in_rank, stated ? NULL : rt->in_dims,
                            &back) != PO_OK)
                fail_msg("'%s': %s", text, f.ctx.error.message);
            if (!po_rt_equal(rt, back))
                fail_msg("'%s' became '%s'", text, text_of(f.arena, back, true));
        }
        stop(&f);
    }
}

/* Nodes compute what the form says, no more of them than were counted, and lead back to it. */
static void emitted_nodes_move_alike(void **state) {
    (void)state;
    uint32_t emitted = 0, back = 0, refused = 0, nodes = 0;
    for (uint64_t seed = 1; seed <= 6000; seed++) {
        fixture f;
        start(&f);
        maker m = {seed + 3000000, 0};
        chain c = random_chain(&m, f.arena, 4);
        const po_rt *rt = c.n ? c.step[0] : NULL;
        for (uint32_t i = 1; i < c.n && rt; i++)
            rt = po_rt_compose(f.arena, rt, c.step[i]);
        if (rt) {
            po_model model = {
                .ir_version = 8, .opsets = &(po_opset){"", draw(&m, 0, 1) ? 17 : 9}, .n_opsets = 1};
            po_graph *g = po_graph_create(&f.ctx, &model, "moves");
            po_type type = po_type_tensor_i64(g->arena, PO_F32, rt->in_rank, rt->in_dims);
            po_value_id x = po_graph_add_input(g, "x", &type), y = po_rt_emit(g, PO_NONE, x, rt);
            bool old = model.opsets[0].version < 11;
            if (y == PO_NONE) {
                refused++;
                assert_true(old || po_rt_nodes(f.arena, rt) == PO_NONE);
            } else {
                if (!old)
                    assert_int_equal(g->n_live, po_rt_nodes(f.arena, rt));
                po_value_id root;
                const po_rt *again;
                nodes += g->n_live;
                emitted++;
                assert_int_equal(po_rt_of_chain(&f.ctx, f.arena, g, y, &root, &again), PO_OK);
                if (root == x) {
                    back++;
                    if (!po_rt_equal(again, rt))
                        fail_msg("'%s' came back as '%s'", text_of(f.arena, rt, true),
                                 text_of(f.arena, again, true));
                }
                if (y == x)
                    y = po_add_op(g, PO_NONE, PO_OP_Identity, 1, &x, &type);
                po_graph_add_output(g, y);
                assert_int_equal(po_infer_graph(&f.ctx, g, false), PO_OK);
                map *made = map_of(f.arena, rt);
                po_array *in, *out;
                assert_int_equal(
                    po_array_create(&f.ctx, f.arena, PO_F32, rt->in_rank, rt->in_dims, &in), PO_OK);
                for (int64_t i = 0; i < in->count; i++)
                    in->f[i] = (double)(i + 1);
                if (po_ref_graph(&f.ctx, f.arena, g, (const po_array *const *)&in, &out, false) !=
                    PO_OK)
                    fail_msg("'%s': %s", text_of(f.arena, rt, true), f.ctx.error.message);
                assert_int_equal(out->rank, rt->out_rank);
                for (uint32_t i = 0; i < out->rank; i++)
                    assert_true(out->dims[i] == rt->out_dims[i]);
                for (int64_t i = 0; i < out->count; i++)
                    if ((int64_t)out->f[i] != made->from[i] + 1)
                        fail_msg("seed %llu: '%s' is emitted wrongly", (unsigned long long)seed,
                                 text_of(f.arena, rt, true));
            }
            po_graph_free(g);
        }
        stop(&f);
    }
    printf("%u emitted in %u nodes, %u read back, %u refused\n", emitted, nodes, back, refused);
    assert_true(emitted > 3000 && back > emitted * 9 / 10 && refused < emitted / 10);
}

typedef struct example {
    const char *text;
    int64_t dims[5]; /* up to a 0 */
    uint32_t nodes;
} example;

static void design_examples(void **state) {
    (void)state;
    static const example examples[] = {
        {"n c (h 2) w -> (2 n) c h w", {2, 32, 56, 56}, 3},
        {"n c h w -> n h w c", {2, 3, 8, 8}, 1},
        {"n c h w -> c (n*15 h)=30 w", {2, 3, 14, 14}, 3},
        {"n c h w -> c (n*15 h) w", {2, 3, 14, 14}, 4},
        {"n c (t:2*4 h:6)-1 w -> (n t) c h w", {3, 2, 8, 5}, 4},
        {"n c h*2+1 w -> n c h w", {1, 2, 6, 4}, 1},
        {"n c h w -> n c h+1=16 w", {1, 2, 14, 4}, 1},
        {"n -h:4+3 -> n h", {2, 4}, 1},
        {"n (2 i:2 c) h w -> n c (h 2) (w i)", {1, 12, 2, 2}, 1},
        {"n (c 2 i:2) h w -> n c (h 2) (w i)", {1, 12, 2, 2}, 1},
        {"n c (h 2) (w i:2) -> n (2 i c) h w", {1, 3, 4, 4}, 1},
        {"1 n (c 2) -> n c 2", {1, 4, 6}, 1},
        {"n c h -> (n c h)", {2, 3, 4}, 1},
        {"n c -> n c", {2, 3}, 0},
    };
    for (size_t k = 0; k < sizeof examples / sizeof *examples; k++) {
        fixture f;
        start(&f);
        uint32_t rank = 0;
        while (rank < 5 && examples[k].dims[rank])
            rank++;
        const po_rt *rt = NULL;
        po_status s = po_rt_parse(&f.ctx, f.arena, examples[k].text, rank, examples[k].dims, &rt);
        if (s != PO_OK)
            fail_msg("'%s': %s", examples[k].text, f.ctx.error.message);
        if (s == PO_OK) {
            uint32_t nodes = po_rt_nodes(f.arena, rt);
            if (nodes != examples[k].nodes)
                fail_msg("'%s' takes %u nodes, not %u", examples[k].text, nodes, examples[k].nodes);
        }
        stop(&f);
    }
}

static void bad_texts_are_refused(void **state) {
    (void)state;
    static const char *const bad[] = {
        "",
        "n",
        "n ->",
        "n -> c",
        "n -> n n",
        "n n -> n n",
        "(h 4) -> h 4",
        "n -> n*0",
        "n:4 -> n c",
        "n:99999999999999 -> n",
        "(n -> n",
        "n -> (n",
        "n +  -> n",
        "h:3*2 -> h 2",
        "n-9 -> n",
        "(a b) -> a b",
        "n:0 -> n",
        "n=7 -> n",
        "-3 -> 3",
        "n -> n*99999999999999999",
        "n -> n=0",
        "n -> n+1=1",
        "h -> h-6",
    };
    for (size_t k = 0; k < sizeof bad / sizeof *bad; k++) {
        fixture f;
        start(&f);
        const po_rt *rt;
        int64_t dims[1] = {6};
        if (po_rt_parse(&f.ctx, f.arena, bad[k], 1, dims, &rt) == PO_OK)
            fail_msg("'%s' parsed as '%s'", bad[k], text_of(f.arena, rt, true));
        assert_true(f.ctx.error.message[0] != '\0');
        stop(&f);
    }
}

/* Texts that were hurt: no crash, and what parses prints and parses back. */
static void hurt_texts(void **state) {
    (void)state;
    static const char alphabet[] = "nchwt 0123456789()*+-=:>_";
    uint32_t parsed = 0;
    for (uint64_t seed = 1; seed <= 40000; seed++) {
        fixture f;
        start(&f);
        maker m = {seed, 0};
        char text[] = "n c (t:2*4 h:6)-1 w -> (n t) c h+1=9 w";
        for (int64_t k = draw(&m, 1, 4); k > 0; k--)
            text[draw(&m, 0, sizeof text - 2)] = alphabet[draw(&m, 0, sizeof alphabet - 2)];
        const po_rt *rt, *back;
        int64_t dims[4] = {3, 2, 8, 5};
        if (po_rt_parse(&f.ctx, f.arena, text, 4, dims, &rt) == PO_OK) {
            parsed++;
            if (po_rt_parse(&f.ctx, f.arena, text_of(f.arena, rt, false), 4, dims, &back) !=
                    PO_OK ||
                !po_rt_equal(rt, back))
                fail_msg("'%s' does not come back: %s", text, text_of(f.arena, rt, false));
        }
        stop(&f);
    }
    assert_true(parsed > 1000);
}

/* A form that was changed is another one. */
static void changes_are_seen(void **state) {
    (void)state;
    uint32_t seen = 0, changes = 0;
    for (uint64_t seed = 1; seed <= 4000; seed++) {
        fixture f;
        start(&f);
        maker m = {seed + 11000000, 0};
        chain c = random_chain(&m, f.arena, 1);
        if (c.n && c.step[0]->n) {
            po_rt rt = *c.step[0];
            po_rt_digit d[PO_RT_MAX_DIGITS];
            int64_t base[PO_RT_MAX_RANK];
            memcpy(d, rt.digits, rt.n * sizeof *d);
            memcpy(base, rt.in_base, rt.in_rank * sizeof *base);
            rt.digits = d;
            rt.in_base = base;
            uint32_t k = (uint32_t)draw(&m, 0, rt.n - 1);
            switch (draw(&m, 0, 3)) {
            case 0:
                base[draw(&m, 0, rt.in_rank - 1)]++;
                break;
            case 1:
                d[k].extent--;
                break;
            case 2:
                d[k].in_coef++;
                d[k].in_coef += d[k].in_coef == 0;
                break;
            default:
                d[k].out_coef++;
            }
            const po_rt *other = po_rt_create(f.arena, &rt);
            if (other) {
                bool alike = same_map(map_of(f.arena, other), c.made[0]);
                assert_int_equal(po_rt_equal(other, c.step[0]), alike);
                changes++;
                seen += !alike;
            }
        }
        stop(&f);
    }
    assert_true(changes > 1000 && seen > changes * 9 / 10);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(chains_compose),
        cmocka_unit_test(forms_are_canonical),
        cmocka_unit_test(inverses_undo),
        cmocka_unit_test(text_parses_back),
        cmocka_unit_test(emitted_nodes_move_alike),
        cmocka_unit_test(design_examples),
        cmocka_unit_test(bad_texts_are_refused),
        cmocka_unit_test(hurt_texts),
        cmocka_unit_test(changes_are_seen),
    };
    return cmocka_run_group_tests_name("rt", tests, NULL, NULL);
}
