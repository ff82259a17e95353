/* Two tables: entries with their checksums, and the session in which each was used last. A full
 * file loses a quarter of its limit, what was not used for the longest time first. */
#include "cost/cache.h"

#include "base/folder.h"

#include <errno.h>
#include <fcntl.h>
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
    const char *refused;
    uint64_t limit;  /* bytes of the file */
    int last;        /* session's number when it was opened */
    int64_t session; /* this one's; 0: not drawn yet */
};

static const char table[] =
    "CREATE TABLE IF NOT EXISTS entry(kind TEXT NOT NULL, key BLOB NOT NULL, value BLOB NOT NULL,"
    " sum BLOB NOT NULL, PRIMARY KEY(kind, key)) WITHOUT ROWID";
/* In which session a row was used last, about; and, without a kind, the last session's number. */
static const char used_table[] =
    "CREATE TABLE IF NOT EXISTS used(kind TEXT NOT NULL, key BLOB NOT NULL, session INTEGER NOT"
    " NULL, PRIMARY KEY(kind, key)) WITHOUT ROWID";

static const char last_session[] = "SELECT coalesce(max(session), 0) FROM used WHERE kind=''";

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

static int run(sqlite3 *db, const char *text) {
    return sqlite3_exec(db, text, NULL, NULL, NULL);
}

/* Whose a file is. */
typedef struct header {
    int application, layout, tables;
} header;

static bool is_foreign(const header *h) {
    return h->tables > 0 && h->application != APPLICATION;
}

static bool is_new(const header *h) {
    return h->tables == 0 || h->layout != LAYOUT;
}

/* As of one moment, for another petopt may just be making the file; leaves the transaction open. */
static int read_header(sqlite3 *db, const char *begin, header *h) {
    int rc = run(db, begin);
    if (rc == SQLITE_OK)
        rc = read_number(db, "PRAGMA application_id", &h->application);
    if (rc == SQLITE_OK)
        rc = read_number(db, "PRAGMA user_version", &h->layout);
    if (rc == SQLITE_OK)
        rc = read_number(db, "SELECT count(*) FROM sqlite_master", &h->tables);
    return rc;
}

static int open_file(po_cache *cache, int flags, header *h) {
    int rc = sqlite3_open_v2(cache->path, &cache->db, flags, NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_busy_timeout(cache->db, BUSY_MS);
    if (rc == SQLITE_OK)
        rc = read_header(cache->db, "BEGIN", h);
    return rc == SQLITE_OK ? run(cache->db, "COMMIT") : rc;
}

static bool damaged(int rc) {
    rc &= 0xff;
    return rc == SQLITE_CORRUPT || rc == SQLITE_NOTADB || rc == SQLITE_FORMAT;
}

static int set_limit(po_cache *cache) {
    int page = 0;
    char text[100];
    int rc = read_number(cache->db, "PRAGMA page_size", &page);
    if (rc != SQLITE_OK || page <= 0)
        return rc;
    uint64_t pages = cache->limit / (uint64_t)page;
    snprintf(text, sizeof text, "PRAGMA max_page_count=%llu", (unsigned long long)pages);
    return run(cache->db, text);
}

/* A new file is its owner's alone, whatever the umask. */
static void make_file(const char *path) {
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd >= 0)
        close(fd);
}

/* Whole or not at all. What another petopt made meanwhile stays. */
static int make_table(sqlite3 *db, header *h) {
    char text[100];
    int rc = read_header(db, "BEGIN IMMEDIATE", h);
    if (rc == SQLITE_OK && is_new(h) && !is_foreign(h)) {
        snprintf(text, sizeof text, "PRAGMA application_id=%d; PRAGMA user_version=%d",
                 (int)APPLICATION, (int)LAYOUT);
        rc = run(db, "DROP TABLE IF EXISTS entry");
        if (rc == SQLITE_OK)
            rc = run(db, text);
        if (rc == SQLITE_OK)
            rc = run(db, table);
    }
    return rc == SQLITE_OK ? run(db, "COMMIT") : rc;
}

/* Opens and makes the table. SQLITE_MISMATCH: the database is another program's. */
static int open_db(po_cache *cache) {
    header h = {0, 0, 0};
    make_file(cache->path);
    int rc = open_file(cache, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, &h);
    if (rc == SQLITE_OK && is_new(&h) && !is_foreign(&h))
        rc = make_table(cache->db, &h);
    if (rc == SQLITE_OK && is_foreign(&h))
        rc = SQLITE_MISMATCH;
    if (rc == SQLITE_OK)
        rc = run(cache->db, used_table);
    if (rc == SQLITE_OK) /* what a power cut takes away is measured again */
        rc = run(cache->db, "PRAGMA synchronous=OFF; PRAGMA temp_store=MEMORY");
    if (rc == SQLITE_OK)
        rc = set_limit(cache);
    if (rc == SQLITE_OK)
        rc = read_number(cache->db, last_session, &cache->last);
    cache->session = 0;
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
    const char *home = po_folder_home(arena);
    if (!home)
        return NULL;
    char *path = po_arena_printf(arena, "%s/.cache/petopt/cost.db", home);
    make_folder(path);
    return path;
}

po_cache *po_cache_none(po_arena *arena) {
    po_cache *cache = PO_NEW(arena, po_cache);
    cache->limit = PO_CACHE_BYTES;
    return cache;
}

po_status po_cache_open(po_ctx *ctx, po_arena *arena, const char *path, po_cache **out) {
    po_cache *cache = po_cache_none(arena);
    *out = cache;
    cache->path = path ? po_arena_strdup(arena, path) : default_path(arena);
    if (!cache->path)
        return PO_OK;
    const char *why = po_cache_distrust(arena, cache->path);
    if (why && path)
        return po_fail(ctx, PO_BAD_USE, "%s: the cost cache is not used: %s", path, why);
    if (why) {
        cache->refused =
            po_arena_printf(arena, "the cost cache %s is not used: %s", cache->path, why);
        cache->path = NULL;
        po_log(ctx, "%s", cache->refused);
        return PO_OK;
    }
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
    header h = {0, 0, 0};
    cache->path = po_arena_strdup(arena, path);
    cache->fixed = cache->rebuilt = true;
    po_arena_defer(arena, close_later, cache);
    if (access(path, R_OK) != 0)
        return po_fail(ctx, PO_IO, "%s: %s", path, strerror(errno));
    int rc = open_file(cache, SQLITE_OPEN_READONLY, &h);
    if (rc != SQLITE_OK || h.application != APPLICATION || h.layout != LAYOUT)
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

/* Runs a statement about one row, without results. */
static int about_row(sqlite3 *db, const char *text, const char *kind, po_hash key, int64_t number) {
    sqlite3_stmt *s = NULL;
    int rc = sqlite3_prepare_v2(db, text, -1, &s, NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_bind_text(s, 1, kind, -1, SQLITE_STATIC);
    if (rc == SQLITE_OK)
        rc = sqlite3_bind_blob(s, 2, &key, sizeof key, SQLITE_STATIC);
    if (rc == SQLITE_OK)
        rc = sqlite3_bind_int64(s, 3, number);
    if (rc == SQLITE_OK)
        rc = sqlite3_step(s);
    int end = sqlite3_finalize(s);
    return rc == SQLITE_DONE ? end : rc;
}

static const char set_used[] = "INSERT OR REPLACE INTO used(kind, key, session) VALUES(?,?,?)";

/* This session's number, drawn when it first has something to say. */
static int draw_session(po_cache *cache) {
    int last = 0;
    if (cache->session > 0)
        return SQLITE_OK;
    int rc = read_number(cache->db, last_session, &last);
    cache->session = (int64_t)last + 1;
    return rc != SQLITE_OK ? rc
                           : about_row(cache->db, set_used, "", (po_hash){0, 0}, cache->session);
}

/* What was used lately says so once in a while: a write for every reading would cost more than the
 * order is worth. */
static void touch(po_cache *cache, const char *kind, po_hash key, int64_t session) {
    enum { LATELY = 32 };
    if (cache->last - session >= LATELY && draw_session(cache) == SQLITE_OK)
        about_row(cache->db, set_used, kind, key, cache->session);
}

/* Steps through the one row of a query. Returns SQLite's answer. *session: in which it was used
 * last. */
static int look_up(po_cache *cache, po_arena *arena, const char *kind, po_hash key, void *fixed,
                   size_t size, po_bytes *value, bool *found, int64_t *session) {
    sqlite3_stmt *s = NULL;
    *found = false;
    /* What is only read may come from a version that knew no sessions. */
    const char *text =
        cache->fixed ? "SELECT value, sum, 1 FROM entry WHERE kind=? AND key=?"
                     : "SELECT value, sum, (SELECT session FROM used WHERE kind=?1 AND key=?2)"
                       " FROM entry WHERE kind=?1 AND key=?2";
    int rc = sqlite3_prepare_v2(cache->db, text, -1, &s, NULL);
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
        *session = sqlite3_column_int64(s, 2);
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
    int64_t session = 0;
    if (damaged(look_up(cache, arena, kind, key, fixed, size, value, &found, &session)))
        rebuild(cache);
    else if (found && !cache->fixed)
        touch(cache, kind, key, session);
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

/* Row and use, or neither. */
static int store_used(po_cache *cache, const char *kind, po_hash key, const void *value,
                      size_t size) {
    int rc = run(cache->db, "BEGIN IMMEDIATE");
    if (rc != SQLITE_OK)
        return rc;
    rc = draw_session(cache);
    if (rc == SQLITE_OK)
        rc = store(cache, kind, key, value, size);
    if (rc == SQLITE_OK)
        rc = about_row(cache->db, set_used, kind, key, cache->session);
    if (rc == SQLITE_OK)
        rc = run(cache->db, "COMMIT");
    if (rc != SQLITE_OK) {
        cache->session = 0; /* it may not have been kept */
        run(cache->db, "ROLLBACK");
    }
    return rc;
}

/* The file is as large as it may be; not the disk is full. */
static bool at_limit(po_cache *cache, size_t more) {
    int pages = 0, page = 0;
    return read_number(cache->db, "PRAGMA page_count", &pages) == SQLITE_OK &&
           read_number(cache->db, "PRAGMA page_size", &page) == SQLITE_OK &&
           (uint64_t)pages * (uint64_t)page + more + (1 << 16) >= cache->limit;
}

/* Drops the rows that were not used for the longest time. */
static int evict(po_cache *cache) {
    sqlite3_stmt *s = NULL;
    int rc = sqlite3_prepare_v2(
        cache->db,
        "DELETE FROM entry WHERE (kind, key) IN (SELECT kind, key FROM (SELECT e.kind, e.key,"
        " sum(length(e.value) + 200) OVER (ORDER BY coalesce(u.session, 0), e.kind, e.key) AS total"
        " FROM entry e LEFT JOIN used u ON u.kind = e.kind AND u.key = e.key) WHERE total <= ?)",
        -1, &s, NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_bind_int64(s, 1, (sqlite3_int64)(cache->limit / 4));
    if (rc == SQLITE_OK)
        rc = sqlite3_step(s);
    int end = sqlite3_finalize(s);
    if (rc != SQLITE_DONE || end != SQLITE_OK)
        return rc == SQLITE_DONE ? end : rc;
    return sqlite3_exec(cache->db,
                        "DELETE FROM used WHERE kind <> '' AND NOT EXISTS (SELECT 1 FROM entry e"
                        " WHERE e.kind = used.kind AND e.key = used.key)",
                        NULL, NULL, NULL);
}

bool po_cache_put(po_cache *cache, const char *kind, po_hash key, const void *value, size_t size) {
    if (!cache->db || cache->fixed)
        return false;
    int rc = store_used(cache, kind, key, value, size);
    if (damaged(rc) && rebuild(cache))
        rc = store_used(cache, kind, key, value, size);
    /* The first that go are small where the last are large: a few times, until there is room. */
    for (int i = 0; i < 4 && rc == SQLITE_FULL && size < cache->limit / 2; i++) {
        if (!at_limit(cache, size) || evict(cache) != SQLITE_OK)
            break;
        rc = store_used(cache, kind, key, value, size);
    }
    return rc == SQLITE_OK;
}

const char *po_cache_refused(const po_cache *cache) {
    return cache->refused;
}

void po_cache_limit(po_cache *cache, uint64_t bytes) {
    cache->limit = bytes;
    if (cache->db)
        set_limit(cache);
}
