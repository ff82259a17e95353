/* Pairs of programs that agree at a position and at its neighbours along every axis, as the paper's
 * Theorem 1 asks, and differ elsewhere in the same box. The theorem is stated for one affine sum of
 * products a side with each tensor once in a product; these break it where that does not hold. */
#include "agreeing.h"
#include "rewriting.h"
#include "unit.h"

#include <math.h>
#include <stdio.h>

enum { DIM = 9, ROOM = 64, MOST_TERMS = 64 };

/* coefficient * X[by[0] * v0 + by[1] * v1 + base] */
typedef struct item {
    int64_t coefficient, by[2], base;
} item;

typedef struct side {
    uint32_t n;
    item items[MOST_TERMS];
} side;

static const po_program *program_of(po_arena *arena, const po_sum *sum, uint32_t n_inputs,
                                    const int64_t *room) {
    po_program *p = PO_NEW(arena, po_program);
    po_tensor_shape *values = PO_NEW_N(arena, po_tensor_shape, n_inputs + 1);
    po_program_step *step = PO_NEW(arena, po_program_step);
    uint32_t *numbers = PO_NEW_N(arena, uint32_t, n_inputs + 1);
    for (uint32_t i = 0; i < n_inputs; i++) {
        values[i] = (po_tensor_shape){1, room, *room};
        numbers[i] = i;
    }
    numbers[n_inputs] = n_inputs;
    values[n_inputs] = (po_tensor_shape){sum->rank, sum->dims, sum->count};
    *step = (po_program_step){sum, numbers, n_inputs, n_inputs, "sum"};
    *p = (po_program){.values = values,
                      .n_values = n_inputs + 1,
                      .n_inputs = n_inputs,
                      .steps = step,
                      .n_steps = 1,
                      .outputs = &numbers[n_inputs],
                      .n_outputs = 1,
                      .degree = po_sum_degree(sum)};
    return p;
}

static const po_program *sum_of(po_arena *arena, uint32_t rank, const side *s) {
    static const int64_t dims[2] = {DIM, DIM}, room = ROOM;
    po_sum *sum = po_sum_create(arena, rank, dims);
    uint32_t x = po_sum_input(sum, 0, 1, &room);
    for (uint32_t i = 0; i < s->n; i++) {
        if (s->items[i].coefficient == 0)
            continue;
        po_term *t = po_sum_term(sum, rank);
        po_index *at = po_term_factor(sum, t, x);
        t->scale = PO_RATIONAL(s->items[i].coefficient);
        at->base[0] = s->items[i].base;
        for (uint32_t k = 0; k < rank; k++) {
            uint32_t v = po_term_var(t, NULL, DIM);
            po_index_add(t, &t->out, k, 1, v);
            po_index_add(t, at, 0, s->items[i].by[k], v);
        }
    }
    assert_true(po_sum_check(sum));
    assert_int_equal(po_sum_normalize(sum), PO_OK);
    return program_of(arena, sum, 1, &room);
}

typedef struct verdict {
    bool equal;   /* everywhere */
    bool near;    /* at 0 and its neighbour along each axis */
    bool one_box; /* neither program is cut */
} verdict;

/* What boxes say must be what every position says. */
static verdict judge(po_ctx *ctx, po_arena *arena, const po_program *a, const po_program *b) {
    const po_tensor_shape *shape = &a->values[a->outputs[0]];
    uint32_t *x = PO_NEW_N(arena, uint32_t, shape->count),
             *y = PO_NEW_N(arena, uint32_t, shape->count);
    uint8_t *differing = PO_NEW_N(arena, uint8_t, shape->count);
    verdict v = {true, true, false};
    for (uint64_t seed = 0; seed < 2; seed++) {
        assert_int_equal(po_program_eval(ctx, arena, a, seed, &x), PO_OK);
        assert_int_equal(po_program_eval(ctx, arena, b, seed, &y), PO_OK);
        for (int64_t i = 0; i < shape->count; i++)
            differing[i] |= x[i] != y[i];
    }
    for (int64_t i = 0; i < shape->count; i++)
        v.equal &= !differing[i];
    for (uint32_t k = 0, stride = 1; k < shape->rank; k++, stride *= DIM)
        v.near &= !differing[0] && !differing[stride];
    v.one_box = po_boxes_count(po_cuts_meet(arena, po_program_cuts(arena, a, 0),
                                            po_program_cuts(arena, b, 0))) == 1;
    po_agreement got;
    po_agree_options options = {.seed = 5, .how = PO_AGREE_BOXES};
    assert_int_equal(po_agree(ctx, arena, a, b, &options, &got), PO_OK);
    const char *wrong = test_check_agreement(arena, a, &got, &differing);
    if (wrong)
        fail_msg("%s", wrong);
    return v;
}

static uint64_t draw(uint64_t seed, uint64_t *n, uint64_t below) {
    return po_random_u64(seed, 6, (*n)++) % below;
}

/* The second side reads at 0, and at 1 along each axis, what the first one does, by other items:
 * each of its items takes its base, and where it stands a step on, from items drawn apart. */
static void test_neighbours_permuted(void **state) {
    (void)state;
    int fooled = 0, tried = 0;
    for (uint64_t seed = 0; seed < 3000; seed++) {
        po_ctx ctx;
        po_ctx_init(&ctx);
        po_arena *arena = po_arena_create(&ctx);
        uint64_t n = 0;
        uint32_t rank = 1 + (uint32_t)draw(seed, &n, 2), perm[3][3];
        side a = {.n = 2 + (uint32_t)draw(seed, &n, 2)}, b = {.n = a.n};
        for (uint32_t k = 0; k < 3; k++) {
            for (uint32_t i = 0; i < a.n; i++)
                perm[k][i] = i;
            for (uint32_t i = a.n; i-- > 1;) {
                uint32_t j = (uint32_t)draw(seed, &n, i + 1), keep = perm[k][i];
                perm[k][i] = perm[k][j];
                perm[k][j] = keep;
            }
        }
        for (uint32_t i = 0; i < a.n; i++)
            a.items[i] = (item){1,
                                {(int64_t)draw(seed, &n, 3), (int64_t)draw(seed, &n, 3)},
                                20 + (int64_t)draw(seed, &n, 4)};
        for (uint32_t i = 0; i < a.n; i++) {
            item *to = &b.items[i];
            *to = (item){1, {0, 0}, a.items[perm[2][i]].base};
            for (uint32_t k = 0; k < rank; k++) {
                const item *from = &a.items[perm[k][i]];
                to->by[k] = from->base + from->by[k] - to->base;
            }
        }
        verdict v = judge(&ctx, arena, sum_of(arena, rank, &a), sum_of(arena, rank, &b));
        if (v.one_box) {
            assert_true(v.near);
            tried++;
            fooled += !v.equal;
        }
        po_arena_free(arena);
    }
    printf("%d pairs in one box, of which %d agree at the neighbours alone\n", tried, fooled);
    assert_true(fooled > 500);
}

/* Terms of q different motions can vanish together at q - 1 neighbours and no further: with motions
 * a_i, the products over j < k, both unlike i, of z^a_k - z^a_j as polynomials in the index z. */
static void vanishing(uint32_t q, const int64_t *motions, side *plus, side *minus) {
    plus->n = minus->n = 0;
    for (uint32_t i = 0; i < q; i++) {
        int64_t polynomial[ROOM] = {0}, next[ROOM];
        polynomial[0] = i % 2 ? -1 : 1;
        for (uint32_t j = 0; j < q; j++)
            for (uint32_t k = j + 1; k < q; k++) {
                if (j == i || k == i)
                    continue;
                for (int64_t e = 0; e < ROOM; e++)
                    next[e] = (e >= motions[k] ? polynomial[e - motions[k]] : 0) -
                              (e >= motions[j] ? polynomial[e - motions[j]] : 0);
                memcpy(polynomial, next, sizeof polynomial);
            }
        for (int64_t e = 0; e < ROOM; e++) {
            if (polynomial[e] == 0)
                continue;
            side *to = polynomial[e] > 0 ? plus : minus;
            assert_true(to->n < MOST_TERMS);
            to->items[to->n++] =
                (item){polynomial[e] > 0 ? polynomial[e] : -polynomial[e], {motions[i], 0}, e};
        }
    }
}

static void test_vanishing_far(void **state) {
    (void)state;
    static const int64_t motions[][4] = {{0, 1, 2, 3}, {0, 1, 3, 4}, {1, 2, 4, 5}, {0, 2, 3, 5}};
    for (uint32_t q = 3; q <= 4; q++)
        for (size_t i = 0; i < sizeof motions / sizeof *motions; i++) {
            po_ctx ctx;
            po_ctx_init(&ctx);
            po_arena *arena = po_arena_create(&ctx);
            side plus, minus;
            vanishing(q, motions[i], &plus, &minus);
            const po_program *a = sum_of(arena, 1, &plus), *b = sum_of(arena, 1, &minus);
            po_program_points *p, *r;
            assert_int_equal(po_program_points_create(arena, a, &p), PO_OK);
            assert_int_equal(po_program_points_create(arena, b, &r), PO_OK);
            po_program_points_reset(p, 3);
            po_program_points_reset(r, 3);
            for (int64_t v = 0; v < DIM; v++) {
                bool same = po_program_points_eval(p, 0, &v) == po_program_points_eval(r, 0, &v);
                /* So many agree that q positions are not too many to test. */
                if (v < (int64_t)q - 1)
                    assert_true(same);
                if (v == (int64_t)q - 1)
                    assert_false(same);
            }
            verdict got = judge(&ctx, arena, a, b);
            assert_true(got.one_box && !got.equal);
            po_arena_free(arena);
        }
}

/* One term a side; the same tensor twice in a product, so that its factors may trade places. */
static const po_program *square_of(po_arena *arena, const item *f) {
    static const int64_t dims[1] = {DIM}, room = ROOM;
    po_sum *sum = po_sum_create(arena, 1, dims);
    uint32_t x = po_sum_input(sum, 0, 1, &room);
    po_term *t = po_sum_term(sum, 1);
    uint32_t v = po_term_var(t, NULL, DIM);
    po_index_add(t, &t->out, 0, 1, v);
    for (int k = 0; k < 2; k++) {
        po_index *at = po_term_factor(sum, t, x);
        at->base[0] = f[k].base;
        po_index_add(t, at, 0, f[k].by[0], v);
    }
    assert_int_equal(po_sum_normalize(sum), PO_OK);
    return program_of(arena, sum, 1, &room);
}

static void test_product_with_itself(void **state) {
    (void)state;
    po_ctx ctx;
    po_ctx_init(&ctx);
    po_arena *arena = po_arena_create(&ctx);
    /* x[v] x[v+1] and x[2v] x[1] */
    verdict v = judge(&ctx, arena, square_of(arena, (item[]){{1, {1}, 0}, {1, {1}, 1}}),
                      square_of(arena, (item[]){{1, {2}, 0}, {1, {0}, 1}}));
    assert_true(v.near && !v.equal && v.one_box);
    po_arena_free(arena);
}

/* Numbers that are 1 at the first positions are no free variables. */
static void test_constants(void **state) {
    (void)state;
    po_ctx ctx;
    po_ctx_init(&ctx);
    po_arena *arena = po_arena_create(&ctx);
    po_graph *a = test_graph(&ctx, "graph g (x: f32[6]) -> (y) { y = Identity(x) }");
    po_graph *b = test_graph(&ctx, "graph g (x: f32[6]) -> (y) {"
                                   " c = f32[6] {1.0, 1.0, 1.0, 1.0, 3.0, 1.0}\n y = Mul(x, c) }");
    const po_program *p, *q;
    assert_int_equal(po_program_of(&ctx, arena, a, &p), PO_OK);
    assert_int_equal(po_program_of(&ctx, arena, b, &q), PO_OK);
    verdict v = judge(&ctx, arena, p, q);
    assert_true(v.near && !v.equal && !v.one_box);
    po_graph_free(a);
    po_graph_free(b);
    po_arena_free(arena);
}

/* Fractions are meant by what they round to; no two numbers a power of 2^31 apart are one. */
static void test_residues_of_constants(void **state) {
    (void)state;
    uint32_t third = po_mod_inverse(3);
    assert_int_equal(po_program_constant((float)(1.0 / 3), PO_F32), third);
    assert_int_equal(po_program_constant(1.0 / 3, PO_F64), third);
    assert_int_not_equal(po_program_constant((float)(1.0 / 3), PO_F64), third);
    assert_int_not_equal(po_program_constant(nextafterf((float)(1.0 / 3), 1), PO_F32), third);
    assert_int_equal(po_program_constant(-0.0, PO_F32), 0);
    assert_int_equal(po_mod_add(po_program_constant(0.1234567f, PO_F32),
                                po_program_constant(-0.1234567f, PO_F32)),
                     0);
    for (int i = -40; i <= 40; i++)
        for (int k = i + 1; k <= 40; k++)
            assert_int_not_equal(po_program_constant(ldexp(1, i), PO_F32),
                                 po_program_constant(ldexp(1, k), PO_F32));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_neighbours_permuted),   cmocka_unit_test(test_vanishing_far),
        cmocka_unit_test(test_product_with_itself),   cmocka_unit_test(test_constants),
        cmocka_unit_test(test_residues_of_constants),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
