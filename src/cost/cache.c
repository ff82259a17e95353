#include "cost/cache.h"

#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* In SQLite's header, so that another program's database is told from ours. */
enum { APPLICATION = 0x70657430, LAYOUT = 1, BUSY_MS = 10000 };

struct po_cache {
    sqlite3 *db; /* NULL: keeps nothing */
    const char *path;
    bool rebuilt;
    bool fixed; /* only read */
};

static const char table[] =
    "CREATE TABLE IF NOT EXISTS entry(kind TEXT NOT NULL, key BLOB NOT NULL, value BLOB NOT NULL,"
    " sum BLOB NOT NULL, PRIMARY KEY(kind, key)) WITHOUT ROWID";

static void close_db(po_cache *cache) {
    sqlite3_close(cache->db);
    cache->db = NULL;
}

static void close_later(void *user) {
    close_db(user);
}

static int read_number(sqlite3 *db, const char *pragma, int *value) {
    sqlite3_stmt *s = NULL;
    int rc = sqlite3_prepare_v2(db, pragma, -1, &s, NULL);
    if (rc == SQLITE_OK) {
        rc = sqlite3_step(s);
        *value = rc == SQLITE_ROW ? sqlite3_column_int(s, 0) : 0;
        rc = rc == SQLITE_ROW ? SQLITE_OK : rc;
    }
    sqlite3_finalize(s);
    return rc;
}

/* Opens the file and reads whose it is. */
static int open_file(po_cache *cache, int flags, int *application, int *layout) {
    int rc = sqlite3_open_v2(cache->path, &cache->db, flags, NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_busy_timeout(cache->db, BUSY_MS);
    if (rc == SQLITE_OK)
        rc = read_number(cache->db, "PRAGMA application_id", application);
    if (rc == SQLITE_OK)
        rc = read_number(cache->db, "PRAGMA user_version", layout);
    return rc;
}

static bool damaged(int rc) {
    rc &= 0xff;
    return rc == SQLITE_CORRUPT || rc == SQLITE_NOTADB || rc == SQLITE_FORMAT;
}

/* Opens and makes the table. SQLITE_MISMATCH: the database is another program's. */
static int open_db(po_cache *cache) {
    int application = 0, layout = 0, tables = 0;
    int rc = open_file(cache, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, &application, &layout);
    if (rc == SQLITE_OK)
        rc = read_number(cache->db, "SELECT count(*) FROM sqlite_master", &tables);
    if (rc == SQLITE_OK && tables > 0 && application != APPLICATION)
        rc = SQLITE_MISMATCH;
    if (rc == SQLITE_OK && tables > 0 && layout != LAYOUT)
        rc = sqlite3_exec(cache->db, "DROP TABLE IF EXISTS entry", NULL, NULL, NULL);
    if (rc == SQLITE_OK && (tables == 0 || layout != LAYOUT)) {
        char text[100];
        snprintf(text, sizeof text, "PRAGMA application_id=%d; PRAGMA user_version=%d",
                 (int)APPLICATION, (int)LAYOUT);
        rc = sqlite3_exec(cache->db, text, NULL, NULL, NULL);
        if (rc == SQLITE_OK)
            rc = sqlite3_exec(cache->db, table, NULL, NULL, NULL);
    }
    if (rc == SQLITE_OK) /* what a power cut takes away is measured again */
        rc = sqlite3_exec(cache->db, "PRAGMA synchronous=OFF", NULL, NULL, NULL);
    if (rc != SQLITE_OK)
        close_db(cache);
    return rc;
}

/* Throws a damaged file away and starts a new one, once. */
static bool rebuild(po_cache *cache) {
    close_db(cache);
    if (cache->rebuilt)
        return false;
    cache->rebuilt = true;
    char journal[4200];
    snprintf(journal, sizeof journal, "%s-journal", cache->path);
    unlink(cache->path);
    unlink(journal);
    return open_db(cache) == SQLITE_OK;
}

/* Nothing, or a file that starts as SQLite's do: anything else is not ours to throw away. */
static bool may_replace(const char *path) {
    static const char magic[16] = "SQLite format 3";
    char head[16];
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT;
    ssize_t n = read(fd, head, sizeof head);
    close(fd);
    return n == 0 || (n == (ssize_t)sizeof head && memcmp(head, magic, sizeof head) == 0);
}

static void make_folder(char *path) {
    for (char *p = path + 1; *p; p++) {
        if (*p != '/')
            continue;
        *p = '\0';
        mkdir(path, 0700); /* whether it is there shows when the file is opened */
        *p = '/';
    }
}

static const char *default_path(po_arena *arena) {
    char buffer[4096];
    struct passwd entry, *found = NULL;
    if (getpwuid_r(getuid(), &entry, buffer, sizeof buffer, &found) != 0 || !found ||
        found->pw_dir[0] != '/')
        return NULL;
    char *path = po_arena_printf(arena, "%s/.cache/petopt/cost.db", found->pw_dir);
    make_folder(path);
    return path;
}

po_cache *po_cache_none(po_arena *arena) {
    return PO_NEW(arena, po_cache);
}

po_status po_cache_open(po_ctx *ctx, po_arena *arena, const char *path, po_cache **out) {
    po_cache *cache = po_cache_none(arena);
    *out = cache;
    cache->path = path ? po_arena_strdup(arena, path) : default_path(arena);
    if (!cache->path)
        return PO_OK;
    po_arena_defer(arena, close_later, cache);
    int rc = open_db(cache);
    if (damaged(rc) && (!path || may_replace(path))) {
        po_log(ctx, "the cost cache %s is damaged and is made anew", cache->path);
        rc = rebuild(cache) ? SQLITE_OK : SQLITE_CANTOPEN;
    }
    if (rc == SQLITE_OK)
        return PO_OK;
    const char *shown = cache->path;
    cache->path = NULL;
    if (!path) {
        po_log(ctx, "the cost cache %s cannot be used (%s)", shown, sqlite3_errstr(rc));
        return PO_OK;
    }
    if (damaged(rc) || rc == SQLITE_MISMATCH)
        return po_fail(ctx, PO_BAD_USE, "%s: this file is not a cost cache; it was left as it is",
                       path);
    return po_fail(ctx, PO_IO, "%s: the cost cache cannot be opened: %s", path, sqlite3_errstr(rc));
}

po_status po_cache_open_read(po_ctx *ctx, po_arena *arena, const char *path, po_cache **out) {
    po_cache *cache = po_cache_none(arena);
    int application = 0, layout = 0;
    cache->path = po_arena_strdup(arena, path);
    cache->fixed = cache->rebuilt = true;
    po_arena_defer(arena, close_later, cache);
    if (access(path, R_OK) != 0)
        return po_fail(ctx, PO_IO, "%s: %s", path, strerror(errno));
    int rc = open_file(cache, SQLITE_OPEN_READONLY, &application, &layout);
    if (rc != SQLITE_OK || application != APPLICATION || layout != LAYOUT)
        return po_fail(ctx, PO_BAD_USE, "%s: this file is not a cost cache of this petopt", path);
    *out = cache;
    return PO_OK;
}

const char *po_cache_path(const po_cache *cache) {
    return cache->path;
}

static po_hash checksum(const char *kind, po_hash key, const void *value, size_t size) {
    po_hash sum = po_hash_str((po_hash){0x636f7374, LAYOUT}, kind);
    sum = po_hash_u64(po_hash_u64(sum, key.lo), key.hi);
    return po_hash_bytes(value, size, sum);
}

/* Steps through the one row of a query, hands it to `take`. Returns SQLite's answer. */
static int look_up(po_cache *cache, po_arena *arena, const char *kind, po_hash key, void *fixed,
                   size_t size, po_bytes *value, bool *found) {
    sqlite3_stmt *s = NULL;
    *found = false;
    int rc = sqlite3_prepare_v2(cache->db, "SELECT value, sum FROM entry WHERE kind=? AND key=?",
                                -1, &s, NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_bind_text(s, 1, kind, -1, SQLITE_STATIC);
    if (rc == SQLITE_OK)
        rc = sqlite3_bind_blob(s, 2, &key, sizeof key, SQLITE_STATIC);
    if (rc == SQLITE_OK)
        rc = sqlite3_step(s);
    char *copy = NULL;
    size_t n = 0;
    if (rc == SQLITE_ROW) {
        const void *data = sqlite3_column_blob(s, 0);
        n = (size_t)sqlite3_column_bytes(s, 0);
        po_hash sum = checksum(kind, key, data, n);
        bool whole = sqlite3_column_bytes(s, 1) == (int)sizeof sum &&
                     memcmp(sqlite3_column_blob(s, 1), &sum, sizeof sum) == 0;
        if (whole && fixed && n == size) {
            memcpy(fixed, data, size);
            *found = true;
        } else if (whole && value) {
            copy = malloc(n ? n : 1); /* the arena may unwind: not while the statement is open */
            if (copy)
                memcpy(copy, data, n);
        }
        rc = SQLITE_DONE;
    }
    sqlite3_finalize(s);
    if (copy) {
        po_arena_defer(arena, free, copy);
        *value = (po_bytes){copy, n};
        *found = true;
    }
    return rc;
}

static bool get(po_cache *cache, po_arena *arena, const char *kind, po_hash key, void *fixed,
                size_t size, po_bytes *value) {
    if (!cache->db)
        return false;
    bool found;
    if (damaged(look_up(cache, arena, kind, key, fixed, size, value, &found)))
        rebuild(cache);
    return found;
}

bool po_cache_get(po_cache *cache, po_arena *arena, const char *kind, po_hash key,
                  po_bytes *value) {
    return get(cache, arena, kind, key, NULL, 0, value);
}

bool po_cache_get_fixed(po_cache *cache, const char *kind, po_hash key, void *value, size_t size) {
    return get(cache, NULL, kind, key, value, size, NULL);
}

static int store(po_cache *cache, const char *kind, po_hash key, const void *value, size_t size) {
    po_hash sum = checksum(kind, key, value, size);
    sqlite3_stmt *s = NULL;
    int rc = sqlite3_prepare_v2(
        cache->db, "INSERT OR REPLACE INTO entry(kind, key, value, sum) VALUES(?,?,?,?)", -1, &s,
        NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_bind_text(s, 1, kind, -1, SQLITE_STATIC);
    if (rc == SQLITE_OK)
        rc = sqlite3_bind_blob(s, 2, &key, sizeof key, SQLITE_STATIC);
    if (rc == SQLITE_OK)
        rc = sqlite3_bind_blob64(s, 3, value, size, SQLITE_STATIC);
    if (rc == SQLITE_OK)
        rc = sqlite3_bind_blob(s, 4, &sum, sizeof sum, SQLITE_STATIC);
    if (rc == SQLITE_OK)
        rc = sqlite3_step(s);
    int end = sqlite3_finalize(s);
    return rc == SQLITE_DONE ? end : rc;
}

bool po_cache_put(po_cache *cache, const char *kind, po_hash key, const void *value, size_t size) {
    if (!cache->db || cache->fixed)
        return false;
    int rc = store(cache, kind, key, value, size);
    if (damaged(rc) && rebuild(cache))
        rc = store(cache, kind, key, value, size);
    return rc == SQLITE_OK;
}
