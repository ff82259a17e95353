/* Arenas that are used many times over. */
#include "base/arena.h"
#include "unit.h"

enum { ROUNDS = 40, PIECES = 300 };

static void count(void *user) {
    ++*(int *)user;
}

/* Sizes of one round: small ones, and some that have blocks of their own. */
static size_t size_of(int round, int i) {
    return i % 50 == 49 ? (size_t)(1 + (round * 7 + i) % 5) << 18 : (size_t)(i * 13 % 700);
}

static void fill(po_arena *arena, int round) {
    unsigned char *piece[PIECES];
    for (int i = 0; i < PIECES; i++) {
        size_t size = size_of(round, i);
        piece[i] = i % 2 ? po_arena_calloc(arena, size, 1) : po_arena_alloc(arena, size);
        assert_int_equal((uintptr_t)piece[i] % _Alignof(max_align_t), 0);
        for (size_t at = 0; i % 2 && at < size; at++)
            assert_int_equal(piece[i][at], 0); /* whatever stood there before */
        memset(piece[i], 1 + i % 250, size);
    }
    for (int i = 0; i < PIECES; i++) /* nothing lies on anything else */
        for (size_t at = 0, size = size_of(round, i); at < size; at += 61)
            assert_int_equal(piece[i][at], 1 + i % 250);
}

static void test_reset(void **state) {
    (void)state;
    po_ctx ctx;
    po_ctx_init(&ctx);
    po_arena *arena = po_arena_create(&ctx);
    int ran = 0;
    for (int round = 0; round < ROUNDS; round++) {
        fill(arena, round);
        po_arena_defer(arena, count, &ran);
        assert_int_equal(ran, round);
        po_arena_reset(arena);
        assert_int_equal(ran, round + 1);
    }
    po_arena_free(arena);
    assert_int_equal(ran, ROUNDS);
    assert_null(ctx.arenas);
}

/* What was taken back is handed out again. */
static void test_same_memory(void **state) {
    (void)state;
    po_ctx ctx;
    po_ctx_init(&ctx);
    po_arena *arena = po_arena_create(&ctx);
    void *small = po_arena_alloc(arena, 100), *large = po_arena_alloc(arena, 1 << 20);
    po_arena_reset(arena);
    assert_ptr_equal(po_arena_alloc(arena, 1 << 20), large);
    assert_ptr_equal(po_arena_alloc(arena, 100), small);
    po_arena_free(arena);
}

static void add_up(void *user, const void *data, size_t size) {
    size_t *sum = user;
    assert_int_equal(*(const unsigned char *)data, 7);
    *sum += size;
}

/* Loose blocks go before the rest does. */
static void test_loose(void **state) {
    (void)state;
    po_ctx ctx;
    po_ctx_init(&ctx);
    po_arena *arena = po_arena_create(&ctx);
    for (int round = 0; round < 3; round++) {
        char *kept = po_arena_strdup(arena, "kept");
        for (size_t size = 1000; size <= 1024000; size *= 4) {
            unsigned char *data = po_arena_loose(arena, size);
            for (size_t i = 0; i < size; i++)
                assert_int_equal(data[i], 0);
            memset(data, 7, size);
        }
        size_t sum = 0;
        po_arena_visit_loose(arena, add_up, &sum);
        assert_int_equal(sum, 1000 * (1 + 4 + 16 + 64 + 256 + 1024));
        if (round == 0)
            po_arena_drop_loose(arena); /* else what was taken back is handed out again */
        assert_string_equal(kept, "kept");
        if (round > 0)
            po_arena_reset(arena);
        sum = 0;
        po_arena_visit_loose(arena, add_up, &sum);
        assert_int_equal(sum, 0);
    }
    po_arena_free(arena);
}

/* What is owned goes with its owner, and may go before. */
static void test_own(void **state) {
    (void)state;
    po_ctx ctx;
    po_ctx_init(&ctx);
    po_arena *arena = po_arena_create(&ctx);
    int ran = 0;
    for (int round = 0; round < 2; round++) {
        po_arena *others[5];
        for (int i = 0; i < 5; i++) {
            others[i] = po_arena_create(&ctx);
            po_arena_defer(others[i], count, &ran);
            po_arena_own(arena, others[i]);
        }
        po_arena_own(others[1], po_arena_create(&ctx));
        assert_ptr_equal(ctx.arenas, arena);  /* a guard frees the owner alone */
        static const int early[] = {0, 4, 2}; /* the first, the last and one between */
        for (int i = 0; i < 3; i++)
            po_arena_free(others[early[i]]);
        assert_int_equal(ran, 5 * round + 3);
        if (round == 0)
            po_arena_reset(arena);
        else
            po_arenas_free_since(&ctx, 0);
        assert_int_equal(ran, 5 * round + 5);
    }
    assert_null(ctx.arenas);
}

/* What is held stays until the last one that holds it goes, and is freed once. */
static void test_hold(void **state) {
    (void)state;
    po_ctx ctx;
    po_ctx_init(&ctx);
    for (int round = 0; round < 3; round++) {
        int ran = 0;
        po_arena *first = po_arena_create(&ctx), *second = po_arena_create(&ctx);
        po_arena *third = po_arena_create(&ctx);
        char *text = po_arena_strdup(first, "still there");
        po_arena_defer(first, count, &ran);
        po_arena_hold(second, first);
        po_arena_hold(second, first);
        po_arena_hold(third, second);
        if (round < 2) { /* before those that hold it */
            po_arena_free(first);
            po_arena_free(second);
            assert_int_equal(ran, 0);
            assert_string_equal(text, "still there");
            if (round == 0)
                po_arena_reset(third);
            else
                po_arena_free(third);
            assert_int_equal(ran, 1);
        }
        po_arenas_free_since(&ctx, 0);
        assert_int_equal(ran, 1);
        assert_null(ctx.arenas);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reset), cmocka_unit_test(test_same_memory),
        cmocka_unit_test(test_loose), cmocka_unit_test(test_own), cmocka_unit_test(test_hold)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
