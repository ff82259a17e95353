/* Recipes in index notation: sums of products against loops over every index, moves against the
 * forms that they are read as, and what must be refused. */
#include "base/hash.h"
#include "base/num.h"
#include "ops/recipe/recipe.h"
#include "unit.h"

#include <math.h>

static const double *numbers(po_ctx *ctx, po_arena *arena, const po_recipe *r) {
    po_array *a;
    assert_int_equal(po_recipe_eval(ctx, arena, NULL, r, &a), PO_OK);
    assert_int_equal(a->count, r->count);
    return a->f;
}

/* Whole numbers: sums of their products are exact in any order. */
static const po_recipe *random_recipe(po_arena *arena, uint64_t seed, uint32_t rank,
                                      const int64_t *dims) {
    int64_t count = 1;
    for (uint32_t i = 0; i < rank; i++)
        count *= dims[i];
    double *v = PO_NEW_N(arena, double, count);
    for (int64_t i = 0; i < count; i++)
        v[i] = floor(9 * po_random_unit(seed, 0, (uint64_t)i)) - 4;
    return po_recipe_literal(arena, rank, dims, v);
}

enum { LETTERS = 5, MOST_FACTORS = 3, EQUATIONS = 400 };

typedef struct drawn {
    uint64_t seed, at;
    int64_t extent[LETTERS];
    char label[MOST_FACTORS][LETTERS + 1], out[LETTERS + 1];
    uint32_t n;
} drawn;

static uint32_t draw(drawn *d, uint32_t below) {
    return (uint32_t)(po_random_unit(d->seed, 1, d->at++) * below);
}

/* Letters of `from` (a set) in a random order. */
static void draw_labels(drawn *d, unsigned from, char *labels) {
    uint32_t n = 0;
    for (unsigned left = from; left;) {
        uint32_t l = draw(d, LETTERS);
        if (left >> l & 1) {
            labels[n++] = (char)('a' + l);
            left &= ~(1U << l);
        }
    }
    labels[n] = 0;
}

static drawn draw_equation(uint64_t seed) {
    drawn d = {.seed = seed};
    unsigned all = 0;
    for (uint32_t l = 0; l < LETTERS; l++)
        d.extent[l] = 1 + draw(&d, 3);
    d.n = 1 + draw(&d, MOST_FACTORS);
    for (uint32_t i = 0; i < d.n; i++) {
        unsigned set = draw(&d, 1 << LETTERS);
        all |= set;
        draw_labels(&d, set, d.label[i]);
    }
    draw_labels(&d, all & draw(&d, 1 << LETTERS), d.out);
    return d;
}

static int64_t place_of(const drawn *d, const char *labels, const int64_t *index) {
    int64_t at = 0;
    for (; *labels; labels++)
        at = at * d->extent[*labels - 'a'] + index[*labels - 'a'];
    return at;
}

static void check_equation(po_ctx *ctx, const drawn *d) {
    po_arena *arena = po_arena_create(ctx);
    const po_recipe *in[MOST_FACTORS];
    const double *v[MOST_FACTORS];
    char *text = po_arena_strdup(arena, "");
    bool used[LETTERS] = {false};
    for (uint32_t i = 0; i < d->n; i++) {
        int64_t dims[LETTERS];
        for (uint32_t k = 0; d->label[i][k]; k++) {
            dims[k] = d->extent[d->label[i][k] - 'a'];
            used[d->label[i][k] - 'a'] = true;
        }
        in[i] = random_recipe(arena, d->seed + 7 * i, (uint32_t)strlen(d->label[i]), dims);
        v[i] = numbers(ctx, arena, in[i]);
        text = po_arena_printf(arena, "%s%s%s", text, i ? "," : "", d->label[i]);
    }
    text = po_arena_printf(arena, "%s->%s", text, d->out);
    const po_recipe *r = po_recipe_einsum(arena, text, d->n, in);
    assert_non_null(r);
    assert_int_equal(r->rank, strlen(d->out));
    double *want = PO_NEW_N(arena, double, r->count);
    int64_t index[LETTERS] = {0}, to[LETTERS], all = 1;
    for (uint32_t l = 0; l < LETTERS; l++)
        all *= to[l] = used[l] ? d->extent[l] : 1;
    for (int64_t k = 0; k < all; k++) {
        double product = 1;
        for (uint32_t i = 0; i < d->n; i++)
            product *= v[i][place_of(d, d->label[i], index)];
        want[place_of(d, d->out, index)] += product;
        po_next_index(LETTERS, to, index);
    }
    const double *got = numbers(ctx, arena, r);
    for (int64_t i = 0; i < r->count; i++)
        if (!(fabs(got[i] - want[i]) < 0.5))
            fail_msg("%s, element %d: %g, not %g", text, (int)i, got[i], want[i]);
    po_arena_free(arena);
}

static void test_random_einsums(void **state) {
    (void)state;
    po_ctx ctx;
    po_ctx_init(&ctx);
    for (uint64_t seed = 0; seed < EQUATIONS; seed++) {
        const drawn d = draw_equation(seed);
        check_equation(&ctx, &d);
    }
}

/* What recipes are made of has to be what they always were. */
static void check_operators(const po_recipe *r) {
    if (r->kind != PO_RECIPE_OP)
        return;
    assert_true(r->op == PO_OP_MatMul || r->op == PO_OP_Mul || r->op == PO_OP_Reshape ||
                r->op == PO_OP_Transpose || r->op == PO_OP_ReduceSum);
    for (uint32_t i = 0; i < r->n_in; i++)
        check_operators(r->in[i]);
}

static void test_operators(void **state) {
    (void)state;
    po_ctx ctx;
    po_ctx_init(&ctx);
    po_arena *arena = po_arena_create(&ctx);
    const po_recipe *w = random_recipe(arena, 1, 3, (const int64_t[]){4, 3, 2});
    const po_recipe *v = random_recipe(arena, 2, 2, (const int64_t[]){3, 5});
    const po_recipe *s = random_recipe(arena, 3, 1, (const int64_t[]){4});
    const po_recipe *composed =
        po_recipe_einsum(arena, "ojt,jc,o->otc", 3, (const po_recipe *[]){w, v, s});
    assert_int_equal(composed->op, PO_OP_Mul); /* a factor for each row takes no product */
    check_operators(composed);
    check_operators(po_recipe_einsum(arena, "ojt->jo", 1, &w));
    /* In place, nothing is moved. */
    assert_ptr_equal(po_recipe_einsum(arena, "ojt->ojt", 1, &w), w);
    po_arena_free(arena);
}

static void test_refused_einsums(void **state) {
    (void)state;
    po_ctx ctx;
    po_ctx_init(&ctx);
    po_arena *arena = po_arena_create(&ctx);
    const po_recipe *in[2] = {random_recipe(arena, 1, 2, (const int64_t[]){2, 3}),
                              random_recipe(arena, 2, 2, (const int64_t[]){3, 4})};
    assert_non_null(po_recipe_einsum(arena, "ij,jk->ik", 2, in));
    static const char *const bad[] = {
        "ij,jk->il",    /* unknown label */
        "ij,ki->jk",    /* sizes that do not fit */
        "ijk,kl->ijl",  /* another rank */
        "i,ij->j",      /* the same */
        "ii,ik->k",     /* twice in one operand */
        "ij,jk->ii",    /* twice in the result */
        "ij->ij",       /* operands left over */
        "ij,jk,kl->il", /* too few */
        "ij,jk",        /* no result */
        "iJ,Jk->ik",    /* no letter */
        "ij,jk->i k",
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (po_recipe_einsum(arena, bad[i], 2, in))
            fail_msg("%s was taken", bad[i]);
    po_arena_free(arena);
}

/* --- moves --- */

static void test_rearranged(void **state) {
    (void)state;
    po_ctx ctx;
    po_ctx_init(&ctx);
    po_arena *arena = po_arena_create(&ctx);
    const int64_t phases[2] = {2, 3};
    const po_recipe *w = random_recipe(arena, 1, 4, (const int64_t[]){2, 3, 4, 6});
    const po_recipe *r =
        po_recipe_rearrange(arena, w, "o i (y p).. -> (p.. o) i y..", 2, PO_SIZES({"p", phases}));
    assert_non_null(r);
    assert_int_equal(r->rank, 4);
    assert_int_equal(r->dims[0], 12);
    const double *from = numbers(&ctx, arena, w), *to = numbers(&ctx, arena, r);
    for (int o = 0; o < 2; o++)
        for (int i = 0; i < 3; i++)
            for (int y = 0; y < 4; y++)
                for (int x = 0; x < 6; x++)
                    assert_true(
                        to[((((y % 2 * 3 + x % 3) * 2 + o) * 3 + i) * 2 + y / 2) * 2 + x / 3] ==
                        from[((o * 3 + i) * 4 + y) * 6 + x]);
    /* An axis of length 1 more, and nothing at all. */
    r = po_recipe_rearrange(arena, w, "o i y x -> o i y x 1", 0, NULL);
    assert_int_equal(r->rank, 5);
    assert_int_equal(r->op, PO_OP_Reshape);
    assert_ptr_equal(po_recipe_rearrange(arena, w, "o i y.. -> o i y..", 2, NULL), w);
    po_arena_free(arena);
}

static void test_refused_moves(void **state) {
    (void)state;
    po_ctx ctx;
    po_ctx_init(&ctx);
    po_arena *arena = po_arena_create(&ctx);
    const int64_t two[1] = {2}, four[1] = {4};
    const po_recipe *w = random_recipe(arena, 1, 2, (const int64_t[]){6, 3});
    assert_non_null(po_recipe_rearrange(arena, w, "(a b) c -> b a c", 0, PO_SIZES({"b", two})));
    static const char *const bad[] = {
        "(a b) c -> b a d",     /* unknown label */
        "(a b) c -> b a",       /* one is lost */
        "a b c -> a b c",       /* another rank */
        "(a b) c -> (a b) c+b", /* not a bijection */
        "(a b) c-z -> a b c",   /* a number without a value */
        "(a e) c -> a e c",     /* sizes not stated */
        "(a b c -> a b c",
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (po_recipe_rearrange(arena, w, bad[i], 0, PO_SIZES({"b", two})))
            fail_msg("%s was taken", bad[i]);
    assert_null(po_recipe_rearrange(arena, w, "(a b) c -> b a c", 0, PO_SIZES({"b", four})));
    po_arena_free(arena);
}

static void test_names(void **state) {
    (void)state;
    static const struct {
        const char *names, *text;
    } same[] = {
        {"n c (h p).. -> (p.. n) c h..", "n c (h 2) (w 3) -> (2 3 n) c h w"},
        {"n c (h p)-b.. -> (p.. n) c h..", "n c (h:3 2)-1 w:6 -> (2 n) c h w"},
        {"n c h w -> n c h+o=l w", "n c h w -> n c h+1=9 w"},
        {"n c h w -> n (c*l h) w", "n c h w -> n (c*9 h) w"},
    };
    const int64_t p[2][2] = {{2, 3}, {2, 1}}, b[2] = {1, 0}, o = 1, l = 9, h[2] = {3, 6};
    const int64_t dims[4] = {1, 2, 6, 6}, whole[4] = {1, 2, 4, 6};
    po_ctx ctx;
    po_ctx_init(&ctx);
    po_arena *arena = po_arena_create(&ctx);
    for (size_t i = 0; i < sizeof same / sizeof *same; i++) {
        const int64_t *d = i == 1 ? whole : dims;
        const po_rt *want;
        const po_rt *got = po_rt_of_names(arena, same[i].names, 2,
                                          PO_SIZES({"p", p[i == 1]}, {"b", b}, {"o", &o}, {"l", &l},
                                                   {i == 1 ? "h" : "unused", h}),
                                          4, d);
        assert_int_equal(po_rt_parse(&ctx, arena, same[i].text, 4, d, &want), PO_OK);
        assert_non_null(got);
        assert_true(po_rt_equal(got, want));
    }
    po_arena_free(arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_einsums),  cmocka_unit_test(test_operators),
        cmocka_unit_test(test_refused_einsums), cmocka_unit_test(test_rearranged),
        cmocka_unit_test(test_refused_moves),   cmocka_unit_test(test_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
