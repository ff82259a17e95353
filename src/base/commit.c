/* How steps are taken and taken back: what a step replaces is kept by a hard link or under another
 * name. All memory is had when a step is added, so that nothing unwinds between two of them. */
#include "base/commit.h"

#include "base/arena.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

enum { NAME_TRIES = 10000, LOCKS = 4, LOCK_SECONDS = 5 };

typedef enum step_kind { ADD, DROP, SYNC } step_kind;

typedef struct step {
    step_kind kind;
    po_writer *writer; /* ADD */
    const char *path;  /* what takes or loses this name; SYNC: the folder */
    char *aside;       /* the name under which the old file is kept; room for it beforehand */
    size_t aside_size; /* of that room */
    bool kept;         /* there is a file under that name */
    bool was_there;    /* before the step */
    bool done;
    int old;           /* ADD: the old file, to be read once it has lost its name; -1: none */
    char old_path[32]; /* by which it is found */
    dev_t device;      /* ADD: the new file */
    ino_t inode;
} step;

struct po_commit {
    po_ctx *ctx;
    po_arena *arena;
    po_file_ops ops;
    step *steps;
    uint32_t n, cap;
    int locks[LOCKS];
    uint32_t n_locks;
};

static void unlock(po_commit *c) {
    for (uint32_t i = 0; i < c->n_locks; i++)
        close(c->locks[i]);
    c->n_locks = 0;
}

static void abandon(void *user) {
    po_commit_undo(user);
}

po_commit *po_commit_create(po_ctx *ctx, po_arena *arena, const po_file_ops *ops) {
    po_commit *c = PO_NEW(arena, po_commit);
    c->ctx = ctx;
    c->arena = arena;
    c->ops = ops ? *ops : po_file_ops_system;
    po_arena_defer(arena, abandon, c);
    return c;
}

/* Nothing may unwind between two steps, so that all memory is had when they are added. */
static void push(po_commit *c, step s) {
    s.path = po_arena_strdup(c->arena, s.path);
    s.old = -1;
    if (s.kind != SYNC) {
        s.aside_size = strlen(s.path) + 64;
        s.aside = po_arena_alloc(c->arena, s.aside_size);
    }
    PO_PUSH(c->arena, c->steps, c->n, c->cap, s);
}

void po_commit_add(po_commit *c, po_writer *writer) {
    push(c, (step){.kind = ADD, .writer = writer, .path = po_writer_path(writer)});
}

void po_commit_drop(po_commit *c, const char *path) {
    push(c, (step){.kind = DROP, .path = path});
}

void po_commit_sync(po_commit *c) {
    if (c->n > 0)
        push(c, (step){.kind = SYNC, .path = po_path_folder(c->arena, c->steps[c->n - 1].path)});
}

/* --- the lock --- */

static bool same_file(int a, const struct stat *b) {
    struct stat st;
    return fstat(a, &st) == 0 && st.st_dev == b->st_dev && st.st_ino == b->st_ino;
}

static void lock_folder(po_commit *c, const char *folder) {
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct stat st;
    bool known = fd < 0 || c->n_locks == LOCKS || fstat(fd, &st) != 0;
    for (uint32_t i = 0; i < c->n_locks && !known; i++)
        known = same_file(c->locks[i], &st);
    if (known) {
        if (fd >= 0)
            close(fd);
        return;
    }
    double until = po_now() + LOCK_SECONDS;
    while (flock(fd, LOCK_EX | LOCK_NB) != 0 && (errno == EWOULDBLOCK || errno == EINTR) &&
           po_now() < until)
        (void)nanosleep(&(struct timespec){0, 2000000}, NULL);
    c->locks[c->n_locks++] = fd;
}

/* --- the steps --- */

/* Gives the old file a second name (link), or another one (rename). */
static bool set_aside(po_commit *c, step *s, bool move) {
    const char *name = po_path_name(s->path);
    int folder = (int)(name - s->path);
    for (int i = 0; i < NAME_TRIES && !s->kept; i++) {
        snprintf(s->aside, s->aside_size, "%.*s.%.100s.%ld-%d.old.tmp", folder, s->path, name,
                 (long)getpid(), i);
        if (move && access(s->aside, F_OK) == 0)
            continue;
        int rc = move ? c->ops.rename(c->ops.user, s->path, s->aside)
                      : c->ops.link(c->ops.user, s->path, s->aside);
        s->kept = rc == 0;
        if (rc != 0 && (move || errno != EEXIST))
            return false;
    }
    return s->kept;
}

static po_status add(po_commit *c, step *s) {
    struct stat st;
    s->was_there = lstat(s->path, &st) == 0;
    /* Some file systems have no second names: there is no way back then. */
    if (s->was_there) {
        set_aside(c, s, false);
        s->old = open(s->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
        snprintf(s->old_path, sizeof s->old_path, "/proc/self/fd/%d", s->old);
    }
    po_status status = po_writer_commit(s->writer);
    if (status == PO_OK && lstat(s->path, &st) == 0) {
        s->device = st.st_dev;
        s->inode = st.st_ino;
    }
    return status;
}

static po_status drop(po_commit *c, step *s) {
    struct stat st;
    s->was_there = lstat(s->path, &st) == 0;
    if (!s->was_there || set_aside(c, s, true))
        return PO_OK;
    return po_fail(c->ctx, PO_IO, "%.300s: cannot be replaced (%s)", s->path, strerror(errno));
}

static po_status sync_folder(const po_commit *c, const step *s) {
    int fd = c->ops.open(c->ops.user, s->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    const char *target = c->n > 0 ? c->steps[0].path : s->path;
    if (fd < 0)
        return po_fail(c->ctx, PO_IO, "%.300s: its folder cannot be opened (%s)", target,
                       strerror(errno));
    /* Some file systems have no fsync for folders: EINVAL. */
    int failed = c->ops.fsync(c->ops.user, fd) != 0 && errno != EINVAL ? errno : 0;
    if (c->ops.close(c->ops.user, fd) != 0 && !failed)
        failed = errno;
    return failed ? po_fail(c->ctx, PO_IO, "%.300s: its folder cannot be synced (%s)", target,
                            strerror(failed))
                  : PO_OK;
}

static po_status run_step(po_commit *c, step *s) {
    switch (s->kind) {
    case ADD:
        return add(c, s);
    case DROP:
        return drop(c, s);
    default:
        return sync_folder(c, s);
    }
}

po_status po_commit_run(po_commit *c) {
    po_arena *scratch = po_arena_child(c->arena);
    for (uint32_t i = 0; i < c->n; i++)
        if (c->steps[i].kind != SYNC)
            lock_folder(c, po_path_folder(scratch, c->steps[i].path));
    po_arena_free(scratch);
    for (uint32_t i = 0; i < c->n; i++) {
        po_status status = run_step(c, &c->steps[i]);
        c->steps[i].done = status == PO_OK;
        if (status == PO_OK)
            continue;
        po_commit_undo(c);
        return status;
    }
    return PO_OK;
}

/* The file that stands there now is the one that this commit placed: another process may have put
 * its own there. */
static bool still_ours(const step *s) {
    struct stat st;
    return lstat(s->path, &st) == 0 && st.st_dev == s->device && st.st_ino == s->inode;
}

/* False: a new file keeps its place, and the old one its second name, so that nothing is lost. */
static bool put_back(const po_commit *c, const step *s) {
    const po_file_ops *ops = &c->ops;
    if (ops->rename(ops->user, s->aside, s->path) == 0)
        return true;
    if (s->kind == DROP && ops->link(ops->user, s->aside, s->path) == 0) {
        ops->unlink(ops->user, s->aside);
        return true;
    }
    return s->kind == DROP;
}

static void forget_old(step *s) {
    if (s->kind == ADD && s->old >= 0)
        close(s->old);
    s->old = -1;
}

static bool undo(const po_commit *c, step *s) {
    bool changed = s->kind == DROP || s->done, well = true;
    if (s->kept && changed)
        well = put_back(c, s);
    else if (s->kept) /* a second name of what is still there */
        c->ops.unlink(c->ops.user, s->aside);
    else if (s->kind == ADD && s->done && !s->was_there && still_ours(s))
        c->ops.unlink(c->ops.user, s->path);
    s->kept = s->done = false;
    return well;
}

void po_commit_undo(po_commit *c) {
    /* A new file that cannot be taken back needs what was placed before it. */
    bool well = true;
    for (uint32_t i = c->n; i > 0; i--) {
        well = well && undo(c, &c->steps[i - 1]);
        forget_old(&c->steps[i - 1]);
    }
    c->n = 0;
    unlock(c);
}

const char *po_commit_replaced(const po_commit *c, const po_writer *writer) {
    for (uint32_t i = 0; i < c->n; i++)
        if (c->steps[i].writer == writer && c->steps[i].old >= 0)
            return c->steps[i].old_path;
    return NULL;
}

void po_commit_keep(po_commit *c) {
    for (uint32_t i = 0; i < c->n; i++) {
        if (c->steps[i].kept)
            c->ops.unlink(c->ops.user, c->steps[i].aside);
        forget_old(&c->steps[i]);
    }
    c->n = 0;
    unlock(c);
}
