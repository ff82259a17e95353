/* Writing files: buffered, hashed, under a temporary name until all is on the disk. */
#include "base/file.h"
#include "base/sha256.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define XXH_STATIC_LINKING_ONLY
#include <xxhash.h>

enum {
    BUFFER = 256 << 10,
    DIRECT = 64 << 10,       /* pieces from this size on are not copied */
    LARGEST_WRITE = 8 << 20, /* bytes a call, so that a cancelled run ends soon */
    TEMP_TRIES = 10000
};

struct po_writer {
    po_ctx *ctx;
    po_arena *arena;
    po_file_ops ops;
    const char *path; /* final name, or what to call it in messages */
    const char *temp; /* NULL once renamed, and for writers without a file */
    int fd;           /* -1: none */
    bool owned;       /* the descriptor is ours to sync and close */
    bool hashing;
    mode_t mode; /* of the file that is replaced; 0: there is none */
    po_status status;
    int error; /* errno of the first failure */
    uint64_t offset;
    uint8_t *buffer;
    size_t used;
    XXH3_state_t *hash;
    po_sha256 *sha; /* NULL: not asked for, or done */
    const char *sha_hex;
};

static int sys_open(void *user, const char *path, int flags, mode_t mode) {
    (void)user;
    return open(path, flags, mode);
}
static ssize_t sys_write(void *user, int fd, const void *data, size_t size) {
    (void)user;
    return write(fd, data, size);
}
static int sys_fsync(void *user, int fd) {
    (void)user;
    return fsync(fd);
}
static int sys_close(void *user, int fd) {
    (void)user;
    return close(fd);
}
static int sys_rename(void *user, const char *from, const char *to) {
    (void)user;
    return rename(from, to);
}
static int sys_unlink(void *user, const char *path) {
    (void)user;
    return unlink(path);
}
static int sys_link(void *user, const char *from, const char *to) {
    (void)user;
    return link(from, to);
}

const po_file_ops po_file_ops_system = {NULL,      sys_open,   sys_write,  sys_fsync,
                                        sys_close, sys_rename, sys_unlink, sys_link};

static void release(void *user) {
    po_writer *w = user;
    if (w->owned && w->fd >= 0)
        w->ops.close(w->ops.user, w->fd);
    w->fd = -1;
    if (w->temp)
        w->ops.unlink(w->ops.user, w->temp);
    w->temp = NULL;
}

static po_writer *make(po_ctx *ctx, po_arena *arena, const char *name) {
    po_writer *w = PO_NEW(arena, po_writer);
    w->ctx = ctx;
    w->arena = arena;
    w->ops = po_file_ops_system;
    w->path = po_arena_strdup(arena, name);
    w->fd = -1;
    w->buffer = po_arena_alloc(arena, BUFFER);
    return w;
}

po_writer *po_writer_on_fd(po_ctx *ctx, po_arena *arena, int fd, const char *name) {
    po_writer *w = make(ctx, arena, name);
    w->fd = fd;
    return w;
}

po_writer *po_writer_null(po_ctx *ctx, po_arena *arena) {
    return make(ctx, arena, "memory");
}

/* Follows a symbolic link to the place that is written. */
static po_status resolve(po_ctx *ctx, po_arena *arena, const char *path, const char **target,
                         mode_t *mode) {
    struct stat st;
    *target = path;
    *mode = 0;
    if (lstat(path, &st) != 0) {
        if (errno == ENOENT)
            return PO_OK;
        return po_fail(ctx, PO_IO, "%.300s: cannot be written (%s)", path, strerror(errno));
    }
    if (S_ISLNK(st.st_mode)) {
        char full[PATH_MAX];
        if (!realpath(path, full) || stat(full, &st) != 0)
            return po_fail(ctx, PO_IO, "%.300s: cannot be written (its link leads nowhere)", path);
        *target = po_arena_strdup(arena, full);
    }
    if (!S_ISREG(st.st_mode))
        return po_fail(ctx, PO_IO, "%.300s: cannot be written (it is no regular file)", path);
    *mode = st.st_mode & 07777;
    return PO_OK;
}

po_status po_writer_create(po_ctx *ctx, po_arena *arena, const po_file_ops *ops, const char *path,
                           po_writer **writer) {
    const char *target;
    mode_t mode;
    PO_TRY(resolve(ctx, arena, path, &target, &mode));
    po_writer *w = make(ctx, arena, target);
    if (ops)
        w->ops = *ops;
    w->mode = mode;
    w->owned = true;
    po_arena_defer(arena, release, w);
    const char *folder = po_path_folder(arena, target);
    for (int i = 0; i < TEMP_TRIES && w->fd < 0; i++) {
        /* The name of the output is in it, so that a file left by a killed run explains itself. */
        const char *temp = po_arena_printf(arena, "%s/.%.100s.%ld-%d.tmp", folder,
                                           po_path_name(target), (long)getpid(), i);
        w->fd = w->ops.open(w->ops.user, temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (w->fd >= 0)
            w->temp = temp;
        else if (errno != EEXIST)
            break;
    }
    if (w->fd < 0)
        return po_fail(ctx, PO_IO, "%.300s: no file can be made in its folder (%s)", path,
                       strerror(errno));
    *writer = w;
    return PO_OK;
}

void po_writer_hash_begin(po_writer *w) {
    w->hash = po_arena_alloc(w->arena, sizeof *w->hash + 64);
    w->hash = (XXH3_state_t *)(((uintptr_t)w->hash + 63) & ~(uintptr_t)63);
    XXH3_INITSTATE(w->hash);
    XXH3_128bits_reset(w->hash);
    w->hashing = true;
}

po_hash po_writer_hash(const po_writer *w) {
    if (!w->hashing)
        return (po_hash){0, 0};
    XXH128_hash_t h = XXH3_128bits_digest(w->hash);
    return (po_hash){h.low64, h.high64};
}

void po_writer_sha256_begin(po_writer *w) {
    w->sha = po_sha256_begin(w->arena);
}

const char *po_writer_sha256(po_writer *w) {
    if (w->sha && w->used == 0) {
        char *hex = po_arena_alloc(w->arena, PO_SHA256_HEX);
        po_sha256_end(w->sha, hex);
        w->sha_hex = hex;
        w->sha = NULL;
    }
    return w->sha_hex;
}

static void broken(po_writer *w, po_status status, int error) {
    if (w->status == PO_OK) {
        w->status = status;
        w->error = error;
    }
}

/* Straight to the descriptor. A mapped file that became shorter gives EFAULT here, no signal. */
static void write_out(po_writer *w, const uint8_t *data, size_t size) {
    if (w->hashing)
        XXH3_128bits_update(w->hash, data, size);
    if (w->sha)
        po_sha256_add(w->sha, data, size);
    while (size && w->fd >= 0 && w->status == PO_OK) {
        if (w->ctx->cancel && atomic_load(w->ctx->cancel)) {
            broken(w, PO_CANCELLED, 0);
            return;
        }
        size_t piece = size < LARGEST_WRITE ? size : LARGEST_WRITE;
        ssize_t n = w->ops.write(w->ops.user, w->fd, data, piece);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) {
            broken(w, PO_IO, n < 0 ? errno : ENOSPC);
            return;
        }
        data += n;
        size -= (size_t)n;
    }
}

static void flush(po_writer *w) {
    write_out(w, w->buffer, w->used);
    w->used = 0;
}

void po_writer_put(po_writer *w, const void *data, size_t size) {
    if (size == 0 || w->status != PO_OK)
        return;
    w->offset += size;
    if (size >= DIRECT || w->used + size > BUFFER)
        flush(w);
    if (size >= DIRECT) {
        write_out(w, data, size);
        return;
    }
    memcpy(w->buffer + w->used, data, size);
    w->used += size;
}

void po_writer_align(po_writer *w, size_t alignment) {
    static const uint8_t zeros[4096];
    size_t over = (size_t)(w->offset % alignment);
    for (size_t left = over ? alignment - over : 0; left;) {
        size_t n = left < sizeof zeros ? left : sizeof zeros;
        po_writer_put(w, zeros, n);
        left -= n;
    }
}

uint64_t po_writer_offset(const po_writer *w) {
    return w->offset;
}

const char *po_writer_path(const po_writer *w) {
    return w->path;
}

void po_writer_set_name(po_writer *w, const char *name) {
    w->path =
        po_arena_printf(w->arena, "%.*s%s", (int)(po_path_name(w->path) - w->path), w->path, name);
}

po_status po_writer_status(po_writer *w) {
    if (w->status == PO_OK)
        return PO_OK;
    if (w->status == PO_CANCELLED)
        return po_fail(w->ctx, PO_CANCELLED, "cancelled");
    return po_fail(w->ctx, w->status, "%.300s: writing failed (%s)", w->path, strerror(w->error));
}

po_status po_writer_finish(po_writer *w) {
    flush(w);
    if (!w->owned)
        return po_writer_status(w);
    if (w->status == PO_OK && w->mode && fchmod(w->fd, w->mode) != 0)
        broken(w, PO_IO, errno);
    if (w->status == PO_OK && w->ops.fsync(w->ops.user, w->fd) != 0)
        broken(w, PO_IO, errno);
    /* After close fails the descriptor is gone all the same. */
    int fd = w->fd;
    w->fd = -1;
    if (w->ops.close(w->ops.user, fd) != 0)
        broken(w, PO_IO, errno);
    return po_writer_status(w);
}

po_status po_writer_try(po_ctx *ctx, const char *path) {
    po_writer *w;
    po_arena *arena = po_arena_create(ctx);
    po_status status = po_writer_create(ctx, arena, NULL, path, &w);
    if (status == PO_OK)
        status = po_writer_finish(w);
    po_arena_free(arena);
    return status;
}

po_status po_writer_commit(po_writer *w) {
    PO_TRY(po_writer_status(w));
    if (w->ops.rename(w->ops.user, w->temp, w->path) != 0) {
        broken(w, PO_IO, errno);
        return po_writer_status(w);
    }
    w->temp = NULL;
    return PO_OK;
}

static void close_descriptor(void *user) {
    close(*(int *)user);
}

po_status po_memory_file(po_ctx *ctx, po_arena *arena, const char *name, const void *data,
                         size_t size, const char **path) {
    int *fd = PO_NEW(arena, int);
    *fd = memfd_create(name, MFD_CLOEXEC);
    if (*fd < 0)
        return po_fail(ctx, PO_IO, "no memory file for %s (%s)", name, strerror(errno));
    po_arena_defer(arena, close_descriptor, fd);
    po_writer *w = po_writer_on_fd(ctx, arena, *fd, "a file in memory");
    po_writer_put(w, data, size);
    PO_TRY(po_writer_finish(w));
    *path = po_arena_printf(arena, "/proc/self/fd/%d", *fd);
    return PO_OK;
}
