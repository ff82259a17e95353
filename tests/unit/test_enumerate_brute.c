/* The enumeration against a naive one: every R/T of one move on small tensors as an explicit list
 * of where each element comes from, and every program around a product, multiplied out.
 * What one finds, the other must find. And inside points, which must tell planted faults. */
#include "base/modp.h"
#include "mutate/enumerate.h"
#include "unit.h"

#include <stdlib.h>

enum { MOST = 64, LISTS = 4096 };

/* A tensor as where each element comes from. */
typedef struct moved {
    int rank, dims[5], n, from[MOST];
} moved;

static moved start(int rank, const int *dims) {
    moved m = {.rank = rank, .n = 1};
    for (int i = 0; i < rank; i++)
        m.n *= m.dims[i] = dims[i];
    for (int i = 0; i < m.n; i++)
        m.from[i] = i;
    return m;
}

static void coordinates(const moved *m, int at, int *c) {
    for (int i = m->rank; i-- > 0; at /= m->dims[i])
        c[i] = at % m->dims[i];
}

static int place_of(const moved *m, const int *c) {
    int at = 0;
    for (int i = 0; i < m->rank; i++)
        at = at * m->dims[i] + c[i];
    return at;
}

typedef struct list {
    moved *items;
    int n;
} list;

static void add(list *l, const moved *m) {
    for (int i = 0; i < l->n; i++) {
        const moved *o = &l->items[i];
        if (o->rank == m->rank && memcmp(o->dims, m->dims, sizeof(int) * (size_t)m->rank) == 0 &&
            memcmp(o->from, m->from, sizeof(int) * (size_t)m->n) == 0)
            return;
    }
    assert_true(l->n < LISTS);
    l->items[l->n++] = *m;
}

/* f of an axis, outer or inner, to the outer or inner end of another (or the same) axis. */
static void naive_take(const moved *m, list *l, int axis, int f, bool inner, int to, bool behind) {
    int d = m->dims[axis], rest = d / f;
    moved r = *m;
    r.dims[axis] = rest;
    r.dims[to] *= f;
    for (int at = 0; at < m->n; at++) {
        int c[5], taken, left;
        coordinates(m, at, c);
        taken = inner ? c[axis] % f : c[axis] / rest;
        left = inner ? c[axis] / f : c[axis] % rest;
        c[axis] = left;
        int before = r.dims[to] / f; /* of the axis, without f */
        c[to] = behind ? c[to] * f + taken : taken * before + c[to];
        r.from[place_of(&r, c)] = m->from[at];
    }
    add(l, &r);
}

static moved without_axis(const moved *m, int axis) {
    moved r = *m;
    r.rank--;
    for (int i = axis; i < r.rank; i++)
        r.dims[i] = m->dims[i + 1];
    return r;
}

static void naive_new(const moved *m, list *l, int axis, int f, bool inner, int to) {
    moved r = *m;
    int rest = m->dims[axis] / f;
    r.rank++;
    for (int i = m->rank; i > to; i--)
        r.dims[i] = m->dims[i - 1];
    r.dims[axis + (axis >= to)] = rest;
    r.dims[to] = f;
    for (int at = 0; at < m->n; at++) {
        int c[5], e[5];
        coordinates(m, at, c);
        int taken = inner ? c[axis] % f : c[axis] / rest;
        c[axis] = inner ? c[axis] / f : c[axis] % rest;
        for (int i = 0; i < r.rank; i++)
            e[i] = i < to ? c[i] : i == to ? taken : c[i - 1];
        r.from[place_of(&r, e)] = m->from[at];
    }
    add(l, &r);
}

static void naive_swap(const moved *m, list *l, int a, int b) {
    moved r = *m;
    r.dims[a] = m->dims[b];
    r.dims[b] = m->dims[a];
    for (int at = 0; at < m->n; at++) {
        int c[5], t;
        coordinates(m, at, c);
        t = c[a];
        c[a] = c[b];
        c[b] = t;
        r.from[place_of(&r, c)] = m->from[at];
    }
    add(l, &r);
}

/* Everything one move makes of a matrix, by factors of 2; the identity first. */
static list naive_moves(const moved *m) {
    list l = {calloc(LISTS, sizeof(moved)), 0};
    add(&l, m);
    for (int axis = 0; axis < m->rank; axis++) {
        for (int inner = 0; inner < 2 && m->dims[axis] % 2 == 0; inner++) {
            for (int to = 0; to < m->rank; to++)
                for (int behind = 0; behind < 2; behind++)
                    naive_take(m, &l, axis, 2, inner, to, behind);
            for (int to = 0; to <= m->rank; to++)
                naive_new(m, &l, axis, 2, inner, to);
        }
        for (int to = 0; to < m->rank; to++) /* the whole axis, which stays as one of length 1 */
            for (int behind = 0; behind < 2 && to != axis; behind++) {
                list one = {calloc(1, sizeof(moved)), 0};
                naive_take(m, &one, axis, m->dims[axis], false, to, behind);
                moved less = without_axis(&one.items[0], axis);
                add(&l, &one.items[0]);
                add(&l, &less);
                free(one.items);
            }
        for (int to = axis + 1; to < m->rank; to++)
            naive_swap(m, &l, axis, to);
        if (m->dims[axis] == 1 && m->rank > 1) {
            moved less = without_axis(m, axis);
            add(&l, &less);
        }
    }
    for (int to = 0; to <= m->rank; to++) { /* an axis of length 1 */
        moved r = *m;
        r.rank++;
        for (int i = m->rank; i > to; i--)
            r.dims[i] = m->dims[i - 1];
        r.dims[to] = 1;
        add(&l, &r);
    }
    return l;
}

/* The same list of an R/T's digits. */
static moved by_digits(const en_rt *rt) {
    moved m = {.rank = rt->out.rank, .n = 1};
    int stride[EN_RANK], step = 1;
    for (int i = rt->in.rank; i-- > 0; step *= rt->in.d[i])
        stride[i] = step;
    for (int i = 0; i < m.rank; i++)
        m.n *= m.dims[i] = rt->out.d[i];
    for (int at = 0; at < m.n; at++) {
        int rest = at, from = 0;
        for (int k = rt->n; k-- > 0; rest /= rt->digit[k].size)
            from += rest % rt->digit[k].size * rt->digit[k].mult * stride[rt->digit[k].axis];
        m.from[at] = from;
    }
    return m;
}

static const en_factors by_two = {.n = 1, .f = {2}};

static void test_moves(void **state) {
    (void)state;
    static const int shapes[][2] = {{2, 4}, {4, 6}, {1, 6}, {3, 5}, {4, 1}};
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
        po_ctx ctx;
        po_ctx_init(&ctx);
        po_arena *arena = po_arena_create(&ctx);
        moved m = start(2, shapes[s]);
        list naive = naive_moves(&m), blind = {calloc(LISTS, sizeof(moved)), 0};
        en_shape in = {2, {shapes[s][0], shapes[s][1]}};
        en_rts *set = en_rts_make(en_maker_create(arena), arena, &in, &by_two, 0, 1, LISTS);
        for (uint32_t i = 0; i < set->n; i++) {
            moved one = by_digits(&set->rt[i]);
            int before = blind.n;
            add(&blind, &one);
            assert_int_equal(blind.n, before + 1); /* none twice */
        }
        assert_int_equal(blind.n, naive.n);
        for (int i = 0; i < naive.n; i++) {
            int before = blind.n;
            add(&blind, &naive.items[i]);
            assert_int_equal(blind.n, before); /* none is missing */
        }
        free(naive.items);
        free(blind.items);
        po_arena_free(arena);
    }
}

/* --- programs around x [2,4] * w [4,6]: one product and at most three R/Ts of one move --- */

static uint32_t value(int input, int at) {
    return po_mod_reduce(po_random_u64(5, (uint64_t)input, (uint64_t)at));
}

/* The matrix product of two moved inputs; false where the shapes do not fit. */
static bool product(const moved *a, int ia, const moved *b, int ib, moved *shape, uint32_t *out) {
    if (a->rank < 2 || b->rank < 2)
        return false;
    int m = a->dims[a->rank - 2], k = a->dims[a->rank - 1], n = b->dims[b->rank - 1], batch = 1;
    if (b->dims[b->rank - 2] != k)
        return false;
    shape->rank = a->rank > b->rank ? a->rank : b->rank;
    shape->dims[shape->rank - 2] = m;
    shape->dims[shape->rank - 1] = n;
    int da = a->rank == 3 ? a->dims[0] : 1, db = b->rank == 3 ? b->dims[0] : 1;
    if (da != db && da != 1 && db != 1)
        return false;
    batch = da > db ? da : db;
    if (shape->rank == 3)
        shape->dims[0] = batch;
    shape->n = batch * m * n;
    if (shape->n > MOST)
        return false;
    for (int g = 0; g < batch; g++)
        for (int y = 0; y < m; y++)
            for (int x = 0; x < n; x++) {
                uint32_t sum = 0;
                for (int t = 0; t < k; t++)
                    sum = po_mod_add(
                        sum, po_mod_mul(value(ia, a->from[((da > 1 ? g : 0) * m + y) * k + t]),
                                        value(ib, b->from[((db > 1 ? g : 0) * k + t) * n + x])));
                out[(g * m + y) * n + x] = sum;
            }
    return true;
}

typedef struct tally {
    int found, wrong;
} tally;

static bool count_found(void *user, const en_found *found) {
    tally *t = user;
    const en_program *p = &found->program;
    const en_rt *rts[3] = {p->view[0][0], p->view[0][1], p->last[0]};
    for (int i = 0; i < 3; i++)
        if (rts[i] && rts[i]->n_moves > 1)
            return true;
    t->found++;
    t->wrong += found->share < 1;
    return true;
}

static void make_product(en_problem *p) {
    *p = (en_problem){.n_activations = 1};
    en_program *t = &p->target;
    t->n_in = 2;
    t->n_slots = 3;
    t->n_ops = t->n_out = 1;
    t->out[0] = 2;
    t->shape[0] = (en_shape){2, {2, 4}};
    t->shape[1] = (en_shape){2, {4, 6}};
    t->monomials[0] = (en_monomials){1, {1}};
    t->monomials[1] = (en_monomials){1, {2}};
    t->op[0] = (en_op){.kind = EN_MATMUL, .n_in = 2, .n_out = 1, .in = {0, 1}, .out = 2};
    assert_true(en_program_infer(t, 0));
}

static void test_programs(void **state) {
    (void)state;
    moved x = start(2, (int[]){2, 4}), w = start(2, (int[]){4, 6}), y = start(2, (int[]){2, 6});
    list xs = naive_moves(&x), ws = naive_moves(&w), ys = naive_moves(&y);
    moved shape;
    uint32_t want[MOST], have[MOST];
    int found = 0;
    assert_true(product(&x, 0, &w, 1, &shape, want));
    for (int turned = 0; turned < 2; turned++)
        for (int i = 0; i < xs.n; i++)
            for (int k = 0; k < ws.n; k++)
                for (int l = 0; l < ys.n; l++) {
                    const moved *a = &xs.items[i], *b = &ws.items[k], *last = &ys.items[l];
                    if (!(turned ? product(b, 1, a, 0, &shape, have)
                                 : product(a, 0, b, 1, &shape, have)) ||
                        shape.rank != last->rank ||
                        memcmp(shape.dims, last->dims, sizeof(int) * (size_t)shape.rank) != 0)
                        continue;
                    bool same = true; /* last leads from y to the product's shape */
                    for (int at = 0; at < shape.n; at++)
                        same &= have[at] == want[last->from[at]];
                    found += same;
                }
    po_ctx ctx;
    po_ctx_init(&ctx);
    po_arena *arena = po_arena_create(&ctx);
    en_problem problem;
    make_product(&problem);
    tally t = {0};
    po_mutate_counts counts = {0};
    en_search search = {.arena = arena,
                        .maker = en_maker_create(arena),
                        .problem = &problem,
                        .depth = 4,
                        .moves = 3,
                        .most_rts = LISTS,
                        .budget = UINT64_MAX,
                        .found = count_found,
                        .user = &t,
                        .counts = &counts};
    en_search_run(&search);
    assert_int_equal(t.wrong, 0);
    print_message("%d programs, found by either\n", found);
    assert_true(found > 10);
    assert_int_equal(t.found, found);
    free(xs.items);
    free(ws.items);
    free(ys.items);
    po_arena_free(arena);
}

/* --- planted faults --- */

static void make_conv(en_problem *p) {
    *p = (en_problem){.n_activations = 1};
    en_program *t = &p->target;
    t->n_in = 2;
    t->n_slots = 3;
    t->n_ops = t->n_out = 1;
    t->out[0] = 2;
    t->shape[0] = (en_shape){4, {2, 4, 8, 8}};
    t->shape[1] = (en_shape){4, {4, 2, 3, 3}};
    t->monomials[0] = (en_monomials){1, {1}};
    t->monomials[1] = (en_monomials){1, {2}};
    t->op[0] = (en_op){.kind = EN_CONV,
                       .n_in = 2,
                       .n_out = 1,
                       .in = {0, 1},
                       .out = 2,
                       .stride = {1, 1},
                       .dilation = {1, 1},
                       .lo = {1, 1},
                       .hi = {1, 1}};
    assert_true(en_program_infer(t, 0));
}

static void test_planted(void **state) {
    (void)state;
    po_ctx ctx;
    po_ctx_init(&ctx);
    po_arena *arena = po_arena_create(&ctx);
    en_problem problem;
    make_conv(&problem);
    en_checker *checker = en_checker_create(arena, &problem);
    en_program good = problem.target, bad = good;
    assert_true(en_agrees(checker, &good));
    bad.op[0].lo[1] = 0, bad.op[0].hi[1] = 2; /* shifted by one */
    assert_true(en_program_infer(&bad, 0));
    assert_false(en_agrees(checker, &bad));
    bad = good;
    bad.op[0].dilation[0] = 2, bad.op[0].lo[0] = bad.op[0].hi[0] = 2;
    assert_true(en_program_infer(&bad, 0));
    assert_false(en_agrees(checker, &bad));

    static const struct {
        const char *what;
        en_move move;
        bool last, same;
    } planted[] = {
        {"channels of x in another order",
         {.kind = EN_TAKE, .axis = 1, .to = 1, .f = 2, .place = 1},
         false,
         false},
        {"height and width of x exchanged", {.kind = EN_SWAP, .axis = 2, .to = 3}, false, false},
        {"rows of x in two phases",
         {.kind = EN_TAKE, .axis = 2, .to = 2, .f = 2, .side = 1},
         false,
         false},
        {"columns of the result rotated in blocks",
         {.kind = EN_TAKE, .axis = 3, .to = 3, .f = 2, .place = 1},
         true,
         false},
        {"batches exchanged by nothing: a split put back",
         {.kind = EN_TAKE, .axis = 0, .to = 0, .f = 2},
         false,
         true},
    };
    for (size_t i = 0; i < sizeof planted / sizeof *planted; i++) {
        en_rt rt;
        bad = good;
        en_rt_start(planted[i].last ? &good.shape[2] : &good.shape[0], &rt);
        assert_true(en_rt_move(&rt, &planted[i].move) && en_rt_finish(&rt));
        if (planted[i].last)
            bad.last[0] = &rt;
        else
            bad.view[0][0] = &rt;
        assert_true(en_program_infer(&bad, 0));
        assert_int_equal(en_rt_is_identity(&rt), planted[i].same);
        if (en_agrees(checker, &bad) != planted[i].same)
            fail_msg("%s: not told", planted[i].what);
    }
    po_arena_free(arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_moves),
                                       cmocka_unit_test(test_programs),
                                       cmocka_unit_test(test_planted)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
