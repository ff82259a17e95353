/* Lengths as expressions: their normal forms, and what they are at every length against the same
 * computed with numbers. */
#include "base/hash.h"
#include "ir/size.h"
#include "unit.h"

#include <stdio.h>

enum { NAMES = 3, MOST = 7, TREES = 20000, DEPTH = 4 };

static const char *const names[NAMES] = {"N", "past", "x.y"};

static po_dim name(const char *symbol) {
    return (po_dim){-1, symbol};
}

static bool length_of(void *user, const char *symbol, int64_t *length) {
    const int64_t *at = user;
    for (int i = 0; i < NAMES; i++)
        if (strcmp(symbol, names[i]) == 0) {
            *length = at[i];
            return true;
        }
    return false;
}

static void check(po_dim d, const char *text) {
    if (!text)
        assert_true(d.value < 0 && !d.symbol);
    else if (d.value >= 0)
        assert_string_equal("a number", text);
    else
        assert_string_equal(d.symbol ? d.symbol : "unknown", text);
}

static void normal_forms(void **state) {
    (void)state;
    po_ctx ctx;
    po_ctx_init(&ctx);
    po_arena *a = po_arena_create(&ctx);
    const po_dim n = name("N"), p = name("past"), h = name("H");
    check(po_size_add(a, n, PO_DIM(0)), "N");
    check(po_size_plus(a, p, 1), "(past + 1)");
    check(po_size_plus(a, po_size_plus(a, p, 1), -1), "past");
    check(po_size_add(a, po_size_plus(a, p, 1), n), "(N + past + 1)");
    check(po_size_mul(a, po_size_plus(a, p, 1), n), "(N*past + N)");
    check(po_size_sub(a, po_size_times(a, n, 3), n), "(2*N)");
    assert_int_equal(po_size_sub(a, n, n).value, 0);
    /* Windows that halve, three times. */
    po_dim half = po_size_plus(a, po_size_floor(a, h, -1, 2), 1);
    check(half, "(floor((H + 1)/2))");
    half = po_size_plus(a, po_size_floor(a, half, -1, 2), 1);
    half = po_size_plus(a, po_size_floor(a, half, -1, 2), 1);
    check(half, "(floor((H + 7)/8))");
    check(po_size_floor(a, po_size_times(a, h, 6), 5, 4), "(H + floor(H/2) + 1)");
    check(po_size_floor(a, po_size_times(a, h, 6), 5, 3), "(2*H + 1)");
    check(po_size_floor(a, h, 0, 1), "H");
    /* Pools that leave one place at least, three times: no longer than once. */
    half = h;
    for (int i = 0; i < 3; i++)
        half = po_size_max(a, PO_DIM(1), po_size_floor(a, half, 0, 2));
    check(half, "(max(1, floor(H/8)))");
    check(po_size_floor(a, po_size_max(a, PO_DIM(1), h), 1, 2), "(max(1, floor((H + 1)/2)))");
    check(po_size_floor(a, po_size_min(a, PO_DIM(9), h), 1, 2), "(min(5, floor((H + 1)/2)))");
    check(po_size_floor(a, h, 0, 0), NULL);
    /* What broadcasts, and what is cut off a table. */
    const po_dim rows = po_size_min(a, PO_DIM(512), n);
    check(rows, "(min(512, N))");
    check(po_size_min(a, rows, n), "(min(512, N))");
    assert_true(po_size_bounded_by(a, rows, n));
    assert_false(po_size_bounded_by(a, n, rows) || po_size_bounded_by(a, rows, p));
    assert_false(po_size_bounded_by(a, po_size_min(a, p, n), n));
    check(po_size_min(a, po_size_plus(a, n, 2), n), "N");
    check(po_size_min(a, PO_DIM(600), rows), "(min(512, N))");
    check(po_size_min(a, rows, PO_DIM(40)), "(min(40, N))");
    check(po_size_max(a, po_size_plus(a, n, 2), n), "(N + 2)");
    check(po_size_max(a, po_size_plus(a, n, -2), PO_DIM(0)), "(max(0, N - 2))");
    /* Quotients. */
    check(po_size_divide(a, po_size_mul(a, po_size_times(a, n, 12), p), po_size_times(a, p, 4)),
          "(3*N)");
    check(po_size_divide(a, po_size_plus(a, po_size_times(a, p, 2), 2), PO_DIM(2)), "(past + 1)");
    check(po_size_divide(a, p, n), NULL);
    check(po_size_divide(a, po_size_times(a, n, 3), PO_DIM(2)), NULL);
    check(po_size_divide(a, n, po_size_plus(a, p, 1)), NULL);
    /* What is no plain word stands alone. */
    check(po_size_plus(a, name("past + 1"), 0), "past + 1");
    check(po_size_plus(a, name("past + 1"), 1), NULL);
    check(po_size_plus(a, name("min"), 1), NULL);
    check(po_size_add(a, PO_DIM_UNKNOWN, n), NULL);
    check(po_size_plus(a, PO_DIM(3), -4), NULL);
    check(po_size_sub(a, PO_DIM(3), PO_DIM(4)), NULL);
    check(po_size_floor(a, PO_DIM(3), -4, 2), NULL);
    check(po_size_add(a, PO_DIM(INT64_MAX), PO_DIM(1)), NULL);
    check(po_size_mul(a, PO_DIM(INT64_MAX), PO_DIM(2)), NULL);
    check(po_size_plus(a, name("(broken"), 1), NULL);
    check(po_size_plus(a, name("()"), 1), NULL);
    check(po_size_plus(a, name("(N + )"), 1), NULL);
    check(po_size_plus(a, name("(9223372036854775807)"), 1), NULL);
    /* Too many terms, and factors. */
    po_dim sum = n, product = n;
    for (char i = 0; i < 9; i++) {
        sum = po_size_add(a, sum, name(po_arena_printf(a, "d%d", i)));
        product = po_size_mul(a, product, name(po_arena_printf(a, "d%d", i)));
    }
    check(sum, NULL);
    check(product, NULL);
    po_arena_free(a);
}

/* --- random expressions, beside the same numbers --- */

typedef struct tree {
    po_arena *arena;
    uint64_t seed, index;
    int64_t at[NAMES];
} tree;

static uint32_t draw(tree *t, uint32_t n) {
    return (uint32_t)(po_random_u64(t->seed, 7, t->index++) % n);
}

/* Of numbers all is known but what is below 0. */
static bool is_known(po_dim d, bool numbers, int64_t value) {
    if (numbers && value >= 0)
        assert_int_equal(d.value, value);
    return d.value >= 0 || d.symbol;
}

/* False: the number below 0, which no length is, or the expression unknown. */
static bool grow(tree *t, int depth, po_dim *d, int64_t *value) {
    po_dim b;
    int64_t v, c = (int64_t)draw(t, 9) - 3;
    const uint32_t what = depth == 0 ? draw(t, 2) : draw(t, 10);
    if (what == 0) {
        *value = draw(t, 6);
        *d = PO_DIM(*value);
        return true;
    }
    if (what <= 2) {
        uint32_t i = draw(t, NAMES);
        *d = name(names[i]);
        *value = t->at[i];
        return true;
    }
    if (!grow(t, depth - 1, d, value))
        return false;
    bool numbers = d->value >= 0;
    if (what == 3) {
        *d = po_size_plus(t->arena, *d, c);
        *value += c;
    } else if (what == 4) {
        *d = po_size_times(t->arena, *d, c < 0 ? -c : c);
        *value *= c < 0 ? -c : c;
    } else if (what == 5) {
        int64_t by = 1 + (int64_t)draw(t, 5), sum = *value + c;
        *d = po_size_floor(t->arena, *d, c, by);
        *value = (sum - ((sum % by) + by) % by) / by;
    } else {
        if (!grow(t, depth - 1, &b, &v))
            return false;
        numbers = numbers && b.value >= 0;
        if (what == 6) {
            *d = po_size_add(t->arena, *d, b);
            *value += v;
        } else if (what == 7) {
            *d = po_size_mul(t->arena, *d, b);
            *value *= v;
        } else if (what == 8) {
            *d = po_size_min(t->arena, *d, b);
            *value = v < *value ? v : *value;
        } else {
            *d = po_size_max(t->arena, *d, b);
            *value = v > *value ? v : *value;
        }
    }
    return is_known(*d, numbers, *value);
}

static void expressions_are_what_they_say(void **state) {
    (void)state;
    po_ctx ctx;
    po_ctx_init(&ctx);
    int open = 0, natural = 0;
    for (uint64_t seed = 0; seed < TREES; seed++) {
        po_arena *arena = po_arena_create(&ctx);
        for (int64_t at = 0; at < MOST; at++) {
            tree t = {arena, seed, 0, {at, 0, 0}};
            for (int i = 1; i < NAMES; i++)
                t.at[i] = (int64_t)(po_random_u64(seed, 11, (uint64_t)(at * NAMES + i)) % MOST);
            po_dim d;
            int64_t want, found;
            if (!grow(&t, DEPTH, &d, &want))
                continue;
            assert_true(po_size_at(arena, d, length_of, t.at, &found));
            if (found != want)
                printf("seed %llu: %s is %lld, not %lld\n", (unsigned long long)seed,
                       d.symbol ? d.symbol : "a number", (long long)found, (long long)want);
            assert_int_equal(found, want);
            open += d.value < 0;
            if (po_size_natural(arena, d)) {
                assert_true(want >= 0);
                natural++;
            }
            /* The text is the normal form: read and written again it is the same. */
            if (po_size_made(d.symbol)) {
                po_dim again = po_size_plus(arena, po_size_plus(arena, d, 1), -1);
                if (again.symbol) /* else there was no room for one more */
                    assert_string_equal(again.symbol, d.symbol);
            }
        }
        po_arena_free(arena);
    }
    assert_true(open > TREES && natural > TREES);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(normal_forms),
                                       cmocka_unit_test(expressions_are_what_they_say)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
