/* Reading files: open, map, and find out whether they changed. */
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Files up to this size are read: they cannot change under us. */
enum { LARGEST_COPY = 4 << 20 };

static void close_fd(void *user) {
    int *fd = user;
    if (*fd >= 0)
        close(*fd);
}

po_status po_file_open(po_ctx *ctx, po_arena *arena, int folder, const char *path, int flags,
                       int *fd) {
    int *held = PO_NEW(arena, int);
    *held = -1;
    po_arena_defer(arena, close_fd, held);
    *fd = *held = openat(folder, path, flags | O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (*fd < 0)
        return po_fail(ctx, PO_IO, "%.300s: cannot be opened (%s)", path, strerror(errno));
    return PO_OK;
}

/* One component after another, none of them a symbolic link. */
static int open_walking(int folder, const char *path) {
    int at = dup(folder);
    while (at >= 0) {
        path += strspn(path, "/");
        size_t n = strcspn(path, "/");
        char part[256];
        if (n == 0 || n >= sizeof part || (n == 2 && memcmp(path, "..", 2) == 0)) {
            close(at);
            errno = n >= sizeof part ? ENAMETOOLONG : EXDEV;
            return -1;
        }
        memcpy(part, path, n);
        part[n] = '\0';
        path += n;
        bool last = path[strspn(path, "/")] == '\0';
        int next = openat(at, part,
                          O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY |
                              (last ? 0 : O_DIRECTORY));
        int why = errno;
        close(at);
        errno = why;
        if (last || next < 0)
            return next;
        at = next;
    }
    return -1;
}

int po_file_open_beneath(int folder, const char *path) {
    if (*path == '/') {
        errno = EXDEV;
        return -1;
    }
    struct open_how how = {
        .flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY,
        .resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS,
    };
    long fd;
    int tries = 0;
    do
        fd = syscall(SYS_openat2, folder, path, &how, sizeof how);
    while (fd < 0 && (errno == EAGAIN || errno == EINTR) && ++tries < 100);
    if (fd < 0 && (errno == ENOSYS || errno == EPERM || errno == EAGAIN))
        return open_walking(folder, path);
    return (int)fd;
}

typedef struct mapping {
    void *data;
    size_t size;
} mapping;

static void unmap(void *user) {
    mapping *m = user;
    if (m->data)
        munmap(m->data, m->size);
}

static const char *kind_of(mode_t mode) {
    return S_ISDIR(mode)    ? "a folder"
           : S_ISFIFO(mode) ? "a FIFO"
           : S_ISSOCK(mode) ? "a socket"
                            : "a device";
}

po_status po_file_content(po_ctx *ctx, po_arena *arena, int fd, const char *path,
                          po_content *content) {
    *content = (po_content){.path = po_arena_strdup(arena, path)};
    if (fstat(fd, &content->id) != 0)
        return po_fail(ctx, PO_IO, "%.300s: cannot be examined (%s)", path, strerror(errno));
    if (!S_ISREG(content->id.st_mode))
        return po_fail(ctx, PO_BAD_INPUT, "%.300s: is %s (want a regular file)", path,
                       kind_of(content->id.st_mode));
    content->size = (size_t)content->id.st_size;
    content->data = (const uint8_t *)"";
    if (content->size == 0)
        return PO_OK;
    if (content->size > LARGEST_COPY) {
        mapping *m = PO_NEW(arena, mapping);
        po_arena_defer(arena, unmap, m);
        void *data = mmap(NULL, content->size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (data == MAP_FAILED)
            return po_fail(ctx, PO_IO, "%.300s: cannot be mapped (%s)", path, strerror(errno));
        *m = (mapping){data, content->size};
        content->data = data;
        content->mapped = true;
        return PO_OK;
    }
    uint8_t *copy = po_arena_alloc(arena, content->size);
    for (size_t n = 0; n < content->size;) {
        ssize_t got = pread(fd, copy + n, content->size - n, (off_t)n);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return po_fail(ctx, PO_IO, "%.300s: cannot be read (%s)", path,
                           got < 0 ? strerror(errno) : "it became shorter");
        n += (size_t)got;
    }
    content->data = copy;
    return PO_OK;
}

po_status po_content_unchanged(po_ctx *ctx, const po_content *content) {
    if (!content->mapped)
        return PO_OK;
    struct stat now;
    const struct stat *then = &content->id;
    /* A file that is gone or replaced stays whole in our mapping. */
    if (stat(content->path, &now) != 0 || now.st_dev != then->st_dev || now.st_ino != then->st_ino)
        return PO_OK;
    if (now.st_size != then->st_size || now.st_mtim.tv_sec != then->st_mtim.tv_sec ||
        now.st_mtim.tv_nsec != then->st_mtim.tv_nsec)
        return po_fail(ctx, PO_IO, "%.300s: was changed while it was in use", content->path);
    return PO_OK;
}

void po_content_rest(const po_content *content) {
    union { /* the call takes no const, and writes nothing */
        const uint8_t *from;
        void *to;
    } data = {content->data};
    if (content->mapped)
        madvise(data.to, content->size, MADV_DONTNEED);
}

const char *po_path_folder(po_arena *arena, const char *path) {
    const char *slash = strrchr(path, '/');
    if (!slash)
        return ".";
    if (slash == path)
        return "/";
    return po_arena_printf(arena, "%.*s", (int)(slash - path), path);
}

const char *po_path_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

const char *po_path_from(po_arena *arena, const char *folder, const char *path) {
    char from[PATH_MAX], to[PATH_MAX];
    if (!realpath(folder, from) || !realpath(po_path_folder(arena, path), to))
        return path;
    size_t same = 0; /* what both begin with, up to the end of a name */
    for (size_t i = 0;; i++) {
        bool ends = from[i] == '\0' || from[i] == '/', other = to[i] == '\0' || to[i] == '/';
        if (ends && other)
            same = i;
        if (from[i] != to[i] || from[i] == '\0')
            break;
    }
    const char *up = "";
    for (const char *p = from + same; *p; p++)
        if (*p == '/' && p[1])
            up = po_arena_printf(arena, "../%s", up);
    const char *down = to + same + (to[same] == '/');
    return po_arena_printf(arena, "%s%s%s%s", up, down, *down ? "/" : "", po_path_name(path));
}
