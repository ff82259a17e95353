/* What is proved for every size is so at every size, and what holds at few sizes is not called so.
 */
#include "base/num.h"
#include "ir/size.h"
#include "ir/text.h"
#include "size_pairs.h"
#include "unit.h"
#include "verify/sizes/guard.h"
#include "verify/sizes/read.h"

#include <stdio.h>

/* --- reads of one axis --- */

/* out[out t + out_base] reads in[in t + in_base], and in[y] reads what `of` says. */
static void check_pace(po_read of, po_pace p) {
    po_paced s;
    const bool some = po_read_pace(of, p, &s);
    for (int64_t t = -30; t < 30; t++) {
        int64_t element, found;
        if (!po_read_at(of, p.in * t + p.in_base, &element))
            continue;
        assert_true(some);
        assert_true(po_read_at(s.read, p.out * t + p.out_base, &found));
        assert_int_equal(found, element);
        const int64_t q = (p.out * t + p.out_base - s.read.rho) / s.read.m;
        assert_int_equal(s.by * q + s.at, t);
    }
    /* And nothing else reads there. */
    for (int64_t y = -30; some && y < 30; y++) {
        int64_t found, element;
        if (!po_read_at(s.read, y, &found))
            continue;
        const int64_t q = (y - s.read.rho) / s.read.m, t = s.by * q + s.at;
        assert_int_equal(p.out * t + p.out_base, y);
        assert_true(po_read_at(of, p.in * t + p.in_base, &element));
        assert_int_equal(found, element);
    }
}

static void test_reads(void **state) {
    (void)state;
    for (uint64_t i = 0; i < 20000; i++) {
        int64_t r[8];
        for (uint64_t k = 0; k < 8; k++)
            r[k] = (int64_t)(po_random_u64(11, i, k) % 7);
        const po_read of = {1 + r[0] % 4, 0, 1 + r[1] % 4, r[2] - 3};
        po_read classed = of;
        classed.rho = r[3] % of.m;
        check_pace(classed, (po_pace){1 + r[4] % 4, r[5] - 3, 1 + r[6] % 4, r[7] - 3});
    }
}

/* --- bounds --- */

static void test_bounds(void **state) {
    (void)state;
    po_ctx ctx;
    po_ctx_init(&ctx);
    po_arena *arena = po_arena_create(&ctx);
    po_oracle *oracle = po_oracle_create(arena);
    const po_dim h = {-1, "H"}, half = po_size_floor(arena, h, 0, 2);
    const po_dim up = po_size_floor(arena, h, 1, 2), one = {-1, "T" PO_SIZE_POSITIVE};
    /* A window of three over what was made larger by two reads inside where it reads the map. */
    po_bounds b = {.read = {2, 0, 1, -1}, .length = po_size_times(arena, h, 2), .reads = true, h};
    assert_true(po_bounds_hold(oracle, &b, 2, -1, po_size_times(arena, h, 2)));
    b.reads = false;
    assert_false(po_bounds_hold(oracle, &b, 2, -1, po_size_times(arena, h, 2)));
    /* Twice the half of an odd length is one short. */
    b = (po_bounds){.read = PO_READ_ITSELF, .length = po_size_times(arena, half, 2)};
    assert_true(po_bounds_hold(oracle, &b, 1, 0, h));
    b.length = h;
    assert_false(po_bounds_hold(oracle, &b, 1, 0, po_size_times(arena, half, 2)));
    assert_true(po_bounds_hold(oracle, &b, 1, 0, po_size_times(arena, up, 2)));
    assert_true(po_bounds_least(oracle, one, 1));
    assert_false(po_bounds_least(oracle, one, 2));
    assert_false(po_bounds_least(oracle, h, 1));
    /* Products of what is at least 1 are, others are any number. */
    const po_dim two = {-1, "N" PO_SIZE_POSITIVE};
    assert_true(po_bounds_least(oracle, po_size_mul(arena, one, two), 1));
    assert_false(po_bounds_least(oracle, po_size_mul(arena, one, two), 2));
    assert_false(po_bounds_least(oracle, po_size_mul(arena, one, h), 1));
    /* What is known of other lengths. */
    const po_room given = {half, 1};
    assert_true(po_bounds_follow(oracle, 1, &given, (po_room){h, 2}));
    assert_false(po_bounds_follow(oracle, 1, &given, (po_room){h, 3}));
    const po_room both[] = {{h, 1}, {{-1, "W"}, 1}};
    assert_true(po_bounds_follow(oracle, 2, both, (po_room){po_size_plus(arena, h, 2), 3}));
    assert_false(po_bounds_follow(oracle, 2, both, (po_room){po_size_plus(arena, h, 2), 4}));
    /* A name that reads like the rest of a question is a name. */
    const po_bounds odd = {.read = {1, 0, 1, 0}, .length = h};
    const po_bounds plain = {.read = PO_READ_ITSELF, .length = h, .reads = true, .leaf = h};
    assert_true(po_bounds_hold(oracle, &plain, 1, 0, h));
    assert_false(po_bounds_hold(oracle, &odd, 1, 0, (po_dim){-1, "H', 1 0 'H"}));
    /* What was asked before is answered alike, and what differs in one thing is another question.
     */
    const po_bounds inside = {.read = {2, 0, 1, 0}, .length = h, .reads = true, .leaf = half};
    for (int i = 0; i < 2; i++) {
        po_bounds other = inside;
        assert_true(po_bounds_hold(oracle, &inside, 2, 0, h));
        assert_false(po_bounds_hold(oracle, &inside, 3, 0, h));
        assert_false(po_bounds_hold(oracle, &inside, 2, 2, h));
        assert_false(po_bounds_hold(oracle, &inside, 2, 0, half));
        other.read.m = 1;
        assert_true(po_bounds_hold(oracle, &other, 1, 0, h));
        assert_false(po_bounds_hold(oracle, &inside, 1, 1, half));
        other = inside;
        other.read.rho = -1;
        assert_false(po_bounds_hold(oracle, &inside, 1, -1, half));
        assert_true(po_bounds_hold(oracle, &other, 1, -1, half));
        other = inside;
        other.read.alpha = 2;
        assert_true(po_bounds_hold(oracle, &other, 2, 0, half));
        other = inside;
        other.read.beta = -1;
        assert_true(po_bounds_hold(oracle, &other, 1, -1, half));
        other = inside;
        other.leaf = up;
        assert_true(po_bounds_hold(oracle, &inside, 1, 0, half));
        assert_true(po_bounds_hold(oracle, &other, 1, 0, up));
        assert_true(po_bounds_follow(oracle, 1, &given, (po_room){h, 2}));
        assert_false(po_bounds_follow(oracle, 1, &(po_room){half, 0}, (po_room){h, 2}));
    }
    po_arena_free(arena);
}

/* --- pairs --- */

/* The text with numbers for the names. */
static void with_numbers(const char *text, const int64_t *length, char *out, size_t size) {
    static const char names[] = "NTHW";
    size_t n = 0;
    for (const char *p = text; *p && n + 16 < size; p++) {
        const char *name = p[0] == '"' && p[1] && p[2] == '"' ? strchr(names, p[1]) : NULL;
        if (name) {
            n += (size_t)snprintf(out + n, size - n, "%lld", (long long)length[name - names]);
            p += 2;
        } else {
            out[n++] = *p;
        }
    }
    out[n] = '\0';
}

static void test_equal_at_every_size(void **state) {
    (void)state;
    static const int64_t sizes[][4] = {{1, 1, 1, 1}, {2, 2, 2, 3}, {3, 5, 4, 1}, {1, 3, 5, 6},
                                       {2, 9, 7, 2}, {1, 7, 3, 9}, {4, 1, 1, 8}};
    po_ctx ctx;
    po_ctx_init(&ctx);
    uint32_t missed = 0;
    for (size_table table = SIZES_EQUAL; table <= SIZES_FROM_ONE; table++)
        for (uint32_t i = 0; i < size_pairs_of(table).n; i++) {
            const size_pair *p = &size_pairs_of(table).row[i];
            po_proof_report r = size_pair_prove(&ctx, p, p->in);
            if (!r.every_size || r.spaced != 1 || r.positive != (table == SIZES_FROM_ONE)) {
                print_message("%s: %s\n", p->name, r.every_size ? "of other lengths" : r.why);
                missed++;
            }
            for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
                char in[256];
                with_numbers(p->in, sizes[k], in, sizeof in);
                r = size_pair_prove(&ctx, p, in);
                if (!r.proved)
                    print_message("%s at size %zu: %s\n", p->name, k, r.why);
                assert_true(r.proved);
            }
        }
    assert_int_equal(missed, 0);
}

static void test_equal_at_few_sizes(void **state) {
    (void)state;
    po_ctx ctx;
    po_ctx_init(&ctx);
    uint32_t fooled = 0, equal_where_tried = 0, n = 0;
    for (size_table table = SIZES_FROM_ONE; table < SIZE_TABLES; table++)
        for (uint32_t i = 0; i < size_pairs_of(table).n; i++, n++) {
            const size_pair *p = &size_pairs_of(table).row[i];
            const po_proof_report r = size_pair_prove(&ctx, p, p->in);
            equal_where_tried += r.proved != 0;
            if (size_pair_fooled(table, &r)) {
                print_message("%s: fooled\n", p->name);
                fooled++;
            }
        }
    print_message("%u of %u are proved at the sizes tried\n", equal_where_tried, n);
    assert_int_equal(fooled, 0);
    assert_in_range(equal_where_tried, n / 2, n);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reads),
        cmocka_unit_test(test_bounds),
        cmocka_unit_test(test_equal_at_every_size),
        cmocka_unit_test(test_equal_at_few_sizes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
