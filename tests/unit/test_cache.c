/* The cost cache keeps what it is given, shares it, and neither trusts nor dies of a bad file. */
#include "cost/cost.h"
#include "test_paths.h"
#include "unit.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct fixture {
    char dir[512], path[600];
    po_ctx ctx;
    po_arena *arena;
} fixture;

static void start(fixture *f) {
    test_mkdtemp(f->dir, sizeof f->dir);
    snprintf(f->path, sizeof f->path, "%s/cost.db", f->dir);
    po_ctx_init(&f->ctx);
    f->arena = po_arena_create(&f->ctx);
}

static po_cache *reopen(fixture *f) {
    po_arena_free(f->arena);
    po_ctx_clear(&f->ctx);
    f->arena = po_arena_create(&f->ctx);
    po_cache *cache = NULL;
    assert_int_equal(po_cache_open(&f->ctx, f->arena, f->path, &cache), PO_OK);
    assert_string_equal(po_cache_path(cache), f->path);
    return cache;
}

static void finish(fixture *f) {
    po_arena_free(f->arena);
    test_rmtree(f->dir);
}

static po_hash key_of(uint64_t i) {
    return po_hash_u64((po_hash){1, 2}, i);
}

static bool has(po_cache *cache, uint64_t i, uint64_t expected) {
    uint64_t value = 0;
    return po_cache_get_fixed(cache, "test", key_of(i), &value, sizeof value) && value == expected;
}

static void what_is_put_is_got(void **state) {
    (void)state;
    fixture f;
    start(&f);
    po_cache *cache = reopen(&f);
    for (uint64_t i = 0; i < 20; i++) {
        uint64_t value = i * i;
        assert_false(has(cache, i, value));
        assert_true(po_cache_put(cache, "test", key_of(i), &value, sizeof value));
    }
    uint64_t newer = 77;
    assert_true(po_cache_put(cache, "test", key_of(3), &newer, sizeof newer));
    assert_true(po_cache_put(cache, "text", key_of(3), "hello", 5));
    cache = reopen(&f);
    for (uint64_t i = 0; i < 20; i++)
        assert_true(has(cache, i, i == 3 ? 77 : i * i));
    po_bytes text;
    assert_true(po_cache_get(cache, f.arena, "text", key_of(3), &text));
    assert_int_equal(text.size, 5);
    assert_memory_equal(text.data, "hello", 5);
    char other[6];
    assert_false(po_cache_get_fixed(cache, "text", key_of(3), other, 6)); /* another size */
    assert_false(po_cache_get(cache, f.arena, "text", key_of(4), &text));
    po_cache *nothing = po_cache_none(f.arena);
    assert_false(po_cache_put(nothing, "test", key_of(0), "x", 1));
    assert_false(po_cache_get(nothing, f.arena, "test", key_of(0), &text));
    finish(&f);
}

/* A row changed behind the cache's back is not believed. */
static void forged_rows_are_not_there(void **state) {
    (void)state;
    static const char *const forgeries[] = {
        "UPDATE entry SET value = x'0100000000000000'",
        "UPDATE entry SET kind = 'test', sum = x'00'",
        "UPDATE entry SET value = x''",
        "UPDATE entry SET key = x'00112233445566778899aabbccddeeff'",
        "UPDATE entry SET kind = 'other'",
    };
    for (size_t k = 0; k < sizeof forgeries / sizeof forgeries[0]; k++) {
        fixture f;
        start(&f);
        po_cache *cache = reopen(&f);
        uint64_t value = 5;
        assert_true(po_cache_put(cache, "test", key_of(1), &value, sizeof value));
        cache = reopen(&f);
        assert_true(has(cache, 1, 5));
        sqlite3 *db = NULL;
        assert_int_equal(sqlite3_open(f.path, &db), SQLITE_OK);
        assert_int_equal(sqlite3_exec(db, forgeries[k], NULL, NULL, NULL), SQLITE_OK);
        assert_int_equal(sqlite3_changes(db), 1);
        sqlite3_close(db);
        cache = reopen(&f);
        uint64_t got = 0;
        assert_false(po_cache_get_fixed(cache, "test", key_of(1), &got, sizeof got));
        assert_false(po_cache_get_fixed(cache, "other", key_of(1), &got, sizeof got));
        po_hash planted;
        for (int i = 0; i < 16; i++)
            ((unsigned char *)&planted)[i] = (unsigned char)(i * 17);
        assert_false(po_cache_get_fixed(cache, "test", planted, &got, sizeof got));
        finish(&f);
    }
}

/* The file cut and overwritten at many places: never a wrong value, and it works again. */
static void damaged_files_are_made_anew(void **state) {
    (void)state;
    fixture f;
    start(&f);
    po_cache *cache = reopen(&f);
    for (uint64_t i = 0; i < 400; i++) {
        uint64_t value = i + 1;
        assert_true(po_cache_put(cache, "test", key_of(i), &value, sizeof value));
    }
    po_arena_free(f.arena);
    f.arena = NULL;
    size_t size;
    char *whole = test_read_file(f.path, &size);
    assert_true(whole && size > 8192);
    uint32_t lost = 0;
    for (size_t at = 16; at < size; at += size / 23) {
        for (int cut = 0; cut < 2; cut++) {
            char *bad = malloc(size);
            assert_non_null(bad);
            memcpy(bad, whole, size);
            for (size_t i = at; i < size && i < at + 600; i++)
                bad[i] = (char)(i * 31);
            test_write_file(f.path, bad, cut ? at : size);
            free(bad);
            f.arena = po_arena_create(&f.ctx);
            po_ctx_clear(&f.ctx);
            po_status status = po_cache_open(&f.ctx, f.arena, f.path, &cache);
            if (status == PO_BAD_USE) { /* the mark that the file is ours was hit */
                test_write_file(f.path, whole, size);
            } else {
                assert_int_equal(status, PO_OK);
                for (uint64_t i = 0; i < 400; i++) {
                    uint64_t got = 0;
                    if (po_cache_get_fixed(cache, "test", key_of(i), &got, sizeof got))
                        assert_int_equal(got, i + 1);
                    else
                        lost++;
                }
                uint64_t fresh = 9;
                assert_true(po_cache_put(cache, "test", key_of(1000), &fresh, sizeof fresh));
                assert_true(has(cache, 1000, 9));
            }
            po_arena_free(f.arena);
            f.arena = NULL;
        }
    }
    assert_true(lost > 400);
    free(whole);
    finish(&f);
}

static void other_files_are_left_alone(void **state) {
    (void)state;
    fixture f;
    start(&f);
    po_cache *cache = NULL;
    test_write_text(f.path, "my thesis, the only copy");
    assert_int_equal(po_cache_open(&f.ctx, f.arena, f.path, &cache), PO_BAD_USE);
    size_t size;
    char *text = test_read_file(f.path, &size);
    assert_int_equal(size, 24);
    free(text);
    unlink(f.path);
    sqlite3 *db = NULL;
    assert_int_equal(sqlite3_open(f.path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, "CREATE TABLE entry(x)", NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
    po_ctx_clear(&f.ctx);
    assert_int_equal(po_cache_open(&f.ctx, f.arena, f.path, &cache), PO_BAD_USE);
    po_ctx_clear(&f.ctx);
    char nowhere[700];
    snprintf(nowhere, sizeof nowhere, "%s/none/cost.db", f.dir);
    assert_int_equal(po_cache_open(&f.ctx, f.arena, nowhere, &cache), PO_IO);
    finish(&f);
}

static void processes_share_it(void **state) {
    (void)state;
    enum { WRITERS = 4, EACH = 60 };
    fixture f;
    start(&f);
    reopen(&f);
    po_arena_free(f.arena);
    pid_t pids[WRITERS];
    for (int w = 0; w < WRITERS; w++) {
        pids[w] = fork();
        if (pids[w] == 0) {
            po_arena *arena = po_arena_create(&f.ctx);
            po_cache *cache = NULL;
            int bad = po_cache_open(&f.ctx, arena, f.path, &cache) != PO_OK;
            for (uint64_t i = 0; i < EACH && !bad; i++) {
                uint64_t value = (uint64_t)w * EACH + i;
                bad = !po_cache_put(cache, "test", key_of(value), &value, sizeof value);
            }
            _exit(bad);
        }
    }
    for (int w = 0; w < WRITERS; w++) {
        int how = 0;
        assert_int_equal(waitpid(pids[w], &how, 0), pids[w]);
        assert_true(WIFEXITED(how) && WEXITSTATUS(how) == 0);
    }
    f.arena = po_arena_create(&f.ctx);
    po_cache *cache = reopen(&f);
    for (uint64_t i = 0; i < WRITERS * EACH; i++)
        assert_true(has(cache, i, i));
    finish(&f);
}

static void the_service_knows_machine_and_runtime(void **state) {
    (void)state;
    fixture f;
    start(&f);
    po_cost *cost = NULL, *without = NULL;
    po_cost_options options = {NULL, f.path};
    assert_int_equal(po_cost_open(&f.ctx, f.arena, &options, &cost), PO_OK);
    assert_true(cost->machine.has_runtime);
    assert_true(cost->machine.runtime[0] == '1');
    assert_true(cost->machine.cores >= 1 && cost->machine.cpu[0] != '\0');
    assert_int_equal(po_cost_need_runtime(&f.ctx, cost), PO_OK);
    options = (po_cost_options){"/nowhere/libonnxruntime.so", ""};
    assert_int_equal(po_cost_open(&f.ctx, f.arena, &options, &without), PO_OK);
    assert_false(without->machine.has_runtime);
    assert_int_equal(po_cost_need_runtime(&f.ctx, without), PO_RUNTIME);
    assert_non_null(strstr(f.ctx.error.message, "/nowhere/libonnxruntime.so"));
    assert_false(po_hash_equal(po_cost_key(cost), po_cost_key(without)));
    po_ctx_clear(&f.ctx);

    char a[600], b[600];
    snprintf(a, sizeof a, "%s/a", f.dir);
    snprintf(b, sizeof b, "%s/b", f.dir);
    size_t n = (5 << 20) + 3;
    char *bytes = calloc(n, 1);
    assert_non_null(bytes);
    test_write_file(a, bytes, n);
    po_hash first, again, changed;
    assert_int_equal(po_cost_hash_file(&f.ctx, a, (po_hash){0, 0}, &first), PO_OK);
    assert_int_equal(po_cost_hash_file(&f.ctx, a, (po_hash){0, 0}, &again), PO_OK);
    assert_true(po_hash_equal(first, again));
    bytes[n - 1] = 1;
    test_write_file(b, bytes, n);
    assert_int_equal(po_cost_hash_file(&f.ctx, b, (po_hash){0, 0}, &changed), PO_OK);
    assert_false(po_hash_equal(first, changed));
    test_write_file(b, bytes, n - 1);
    assert_int_equal(po_cost_hash_file(&f.ctx, b, (po_hash){0, 0}, &changed), PO_OK);
    assert_false(po_hash_equal(first, changed));
    assert_int_equal(po_cost_hash_file(&f.ctx, "/nowhere/x", (po_hash){0, 0}, &changed), PO_IO);
    free(bytes);
    finish(&f);
}

/* Whoever can write the file can make its checksums add up: it must be this user's alone. */
static void others_may_not_write_it(void **state) {
    (void)state;
    fixture f;
    po_cache *cache;
    start(&f);
    char link_path[700], folder[600];
    uint64_t value = 7;
    assert_true(po_cache_put(reopen(&f), "test", key_of(1), &value, sizeof value));
    struct stat st;
    assert_int_equal(stat(f.path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    static const mode_t modes[] = {0660, 0602, 0622};
    for (int i = 0; i < 3; i++) {
        assert_int_equal(chmod(f.path, modes[i]), 0);
        po_ctx_clear(&f.ctx);
        assert_int_equal(po_cache_open(&f.ctx, f.arena, f.path, &cache), PO_BAD_USE);
        assert_non_null(strstr(f.ctx.error.message, "it can be written by others (chmod go-w"));
    }
    assert_int_equal(chmod(f.path, 0644), 0);
    assert_true(has(reopen(&f), 1, 7));
    assert_int_equal(chmod(f.dir, 01777), 0);
    po_ctx_clear(&f.ctx);
    assert_int_equal(po_cache_open(&f.ctx, f.arena, f.path, &cache), PO_BAD_USE);
    assert_non_null(strstr(f.ctx.error.message, "its folder can be written by others"));
    /* A link from a good folder into a bad one. */
    snprintf(folder, sizeof folder, "%s/good", f.dir);
    snprintf(link_path, sizeof link_path, "%s/cost.db", folder);
    assert_int_equal(mkdir(folder, 0700), 0);
    assert_int_equal(symlink(f.path, link_path), 0);
    po_ctx_clear(&f.ctx);
    assert_int_equal(po_cache_open(&f.ctx, f.arena, link_path, &cache), PO_BAD_USE);
    assert_int_equal(chmod(f.dir, 0700), 0);
    po_ctx_clear(&f.ctx);
    assert_int_equal(po_cache_open(&f.ctx, f.arena, link_path, &cache), PO_OK);
    assert_true(has(cache, 1, 7));
    if (geteuid() == 0) {
        assert_int_equal(chown(f.path, 65534, 65534), 0);
        assert_int_equal(po_cache_open(&f.ctx, f.arena, f.path, &cache), PO_BAD_USE);
        assert_non_null(strstr(f.ctx.error.message, "it belongs to another user (65534)"));
    }
    finish(&f);
}

/* It grows no further than it may; what was not used for the longest time goes first. */
static void it_stays_below_its_limit(void **state) {
    (void)state;
    enum { LIMIT = 1 << 20, ROW = 20000, ROWS = 400, LIKED = 3 };
    fixture f;
    start(&f);
    char *row = calloc(1, ROW);
    for (uint64_t i = 0; i < ROWS; i++) {
        po_cache *cache = reopen(&f);
        po_bytes value;
        po_cache_limit(cache, LIMIT);
        memcpy(row, &i, sizeof i);
        assert_true(po_cache_put(cache, "code", key_of(i), row, ROW));
        assert_true(po_cache_get(cache, f.arena, "code", key_of(i), &value));
        assert_true(i < LIKED || po_cache_get(cache, f.arena, "code", key_of(LIKED), &value));
    }
    struct stat st;
    assert_int_equal(stat(f.path, &st), 0);
    assert_true(st.st_size <= LIMIT && st.st_size > LIMIT / 2);
    po_cache *cache = reopen(&f);
    po_bytes value;
    assert_false(po_cache_get(cache, f.arena, "code", key_of(0), &value));
    assert_true(po_cache_get(cache, f.arena, "code", key_of(LIKED), &value));
    assert_true(po_cache_get(cache, f.arena, "code", key_of(ROWS - 10), &value));
    /* What can never fit drives nothing out. */
    po_cache_limit(cache, LIMIT);
    char *huge = calloc(1, 2 * LIMIT);
    assert_false(po_cache_put(cache, "code", key_of(ROWS), huge, 2 * LIMIT));
    assert_true(po_cache_get(cache, f.arena, "code", key_of(LIKED), &value));
    free(huge);
    free(row);
    finish(&f);
}

/* Opens the file as soon as the pipe's other end is closed; never returns. */
static void open_when_told(fixture *f, int from) {
    char nothing;
    po_cache *cache = NULL;
    if (read(from, &nothing, 1) != 0)
        _exit(2);
    bool opened = po_cache_open(&f->ctx, f->arena, f->path, &cache) == PO_OK;
    _exit(opened && po_cache_path(cache) ? 0 : 1);
}

/* Several at once on a file that none of them finds there. */
static void many_make_it_at_once(void **state) {
    (void)state;
    enum { ROUNDS = 60, OPENERS = 4 };
    fixture f;
    start(&f);
    for (int round = 0; round < ROUNDS; round++) {
        int ends[2], status;
        pid_t child[OPENERS];
        assert_int_equal(pipe(ends), 0);
        for (int i = 0; i < OPENERS; i++) {
            child[i] = fork();
            assert_true(child[i] >= 0);
            if (child[i] == 0) {
                close(ends[1]);
                open_when_told(&f, ends[0]);
            }
        }
        close(ends[0]);
        close(ends[1]);
        for (int i = 0; i < OPENERS; i++) {
            assert_int_equal(waitpid(child[i], &status, 0), child[i]);
            assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
        }
        assert_int_equal(remove(f.path), 0);
    }
    finish(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_put_is_got),
        cmocka_unit_test(forged_rows_are_not_there),
        cmocka_unit_test(damaged_files_are_made_anew),
        cmocka_unit_test(other_files_are_left_alone),
        cmocka_unit_test(processes_share_it),
        cmocka_unit_test(the_service_knows_machine_and_runtime),
        cmocka_unit_test(others_may_not_write_it),
        cmocka_unit_test(it_stays_below_its_limit),
        cmocka_unit_test(many_make_it_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
