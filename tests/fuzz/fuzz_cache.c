/* Cost caches: any bytes as the file itself, then any row in a file of ours. What is not whole
 * counts as not there; what is put comes back. */
#include "base/arena.h"
#include "cost/cache.h"
#include "scratch.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool right) {
    if (!right)
        abort();
}

/* Reads rows of every size that readers ask for. */
static void read_all(po_cache *cache, po_arena *arena, const char *kind, po_hash key) {
    po_bytes value;
    char fixed[64];
    po_cache_get(cache, arena, kind, key, &value);
    po_cache_get_fixed(cache, kind, key, fixed, sizeof fixed);
    po_cache_get_fixed(cache, kind, key, fixed, 8);
}

static void as_file(po_ctx *ctx, po_arena *arena, const uint8_t *data, size_t size) {
    static const po_hash key = {1, 2};
    char path[4096];
    po_cache *cache;
    scratch_write("file.db", data, size, path);
    if (po_cache_open_read(ctx, arena, path, &cache) == PO_OK)
        read_all(cache, arena, "cost", key);
    po_ctx_clear(ctx);
    if (po_cache_open(ctx, arena, path, &cache) == PO_OK) {
        read_all(cache, arena, "cost", key);
        if (po_cache_put(cache, "cost", key, data, size < 64 ? size : 64)) {
            po_bytes value;
            require(po_cache_get(cache, arena, "cost", key, &value));
            require(value.size == (size < 64 ? size : 64));
            require(value.size == 0 || memcmp(value.data, data, value.size) == 0);
        }
    }
    po_ctx_clear(ctx);
}

/* The first bytes say how the row is stored, the others are its value. */
static void forge(const char *path, po_hash key, const uint8_t *data, size_t size) {
    sqlite3 *db = NULL;
    sqlite3_stmt *s = NULL;
    require(sqlite3_open(path, &db) == SQLITE_OK);
    require(sqlite3_prepare_v2(db, "UPDATE entry SET value=?, sum=? WHERE key=?", -1, &s, NULL) ==
            SQLITE_OK);
    int n = (int)(size - 2);
    for (int column = 1; column <= 2; column++) {
        int from = column == 1 ? 0 : n / 2;
        switch (data[column - 1] % 4) {
        case 0:
            sqlite3_bind_blob(s, column, data + 2 + from, n - from, SQLITE_STATIC);
            break;
        case 1:
            sqlite3_bind_text(s, column, (const char *)data + 2 + from, n - from, SQLITE_STATIC);
            break;
        case 2:
            sqlite3_bind_int64(s, column, n);
            break;
        default:
            sqlite3_bind_zeroblob(s, column, data[column - 1]);
        }
    }
    sqlite3_bind_blob(s, 3, &key, sizeof key, SQLITE_STATIC);
    sqlite3_step(s);
    sqlite3_finalize(s);
    sqlite3_close(db);
}

static void as_row(po_ctx *ctx, po_arena *arena, const uint8_t *data, size_t size) {
    static const po_hash key = {3, 4};
    po_cache *cache;
    char path[4096];
    snprintf(path, sizeof path, "%s/row.db", scratch_folder());
    require(po_cache_open(ctx, arena, path, &cache) == PO_OK);
    require(po_cache_put(cache, "cost", key, data, size));
    po_bytes value;
    require(po_cache_get(cache, arena, "cost", key, &value) && value.size == size);
    if (size < 3)
        return;
    forge(path, key, data, size);
    read_all(cache, arena, "cost", key);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    po_ctx ctx;
    po_guard guard;
    po_ctx_init(&ctx);
    if (size == 0 || size > 1 << 16)
        return 0;
    po_guard_push(&ctx, &guard);
    if (setjmp(guard.env) == 0) {
        po_arena *arena = po_arena_create(&ctx);
        as_file(&ctx, arena, data, size);
        as_row(&ctx, arena, data, size);
        po_guard_pop(&ctx, &guard);
        po_arenas_free_since(&ctx, 0);
    } else {
        po_guard_unwind(&ctx, &guard);
    }
    return 0;
}
