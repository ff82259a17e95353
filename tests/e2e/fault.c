/* A library to preload: makes the Nth call of a kind fail, or kills the process at it.
 *
 * FAULT=KIND:N       the Nth call fails (counted from 1), all others are served
 * FAULT=KIND:N+      the Nth call and all after it fail
 * FAULT=KIND:N!      the process is killed at the Nth call
 * KIND is `alloc` (malloc, calloc, realloc, aligned allocations: NULL, ENOMEM) or `io` (write,
 * pwrite, writev, pwritev, fsync, fdatasync, rename, ftruncate, fallocate, copy_file_range,
 * sendfile, and open for writing: ENOSPC or EIO; close: EIO, done all the same). FAULT_COUNT=FILE:
 * the number of calls of the kind is written there at exit, with the name of the last call that
 * failed and its path. Standard output and error are never touched. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

static enum { NONE, ALLOC, IO } kind;
static long nth;
static enum { ONCE, ALWAYS, KILL } mode;
static atomic_long calls;
static const char *failed = "";
static char failed_path[512];

__attribute__((constructor)) static void start(void) {
    const char *fault = getenv("FAULT");
    if (!fault)
        return;
    const char *colon = strchr(fault, ':');
    char *end = NULL;
    nth = colon ? strtol(colon + 1, &end, 10) : 0;
    if (end && *end == '+')
        mode = ALWAYS;
    else if (end && *end == '!')
        mode = KILL;
    kind = strncmp(fault, "alloc:", 6) == 0 ? ALLOC : strncmp(fault, "io:", 3) == 0 ? IO : NONE;
}

__attribute__((destructor)) static void finish(void) {
    long n = atomic_load(&calls);
    kind = NONE;
    const char *path = getenv("FAULT_COUNT");
    int fd =
        path ? (int)syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_TRUNC, 0600) : -1;
    if (fd >= 0) {
        char text[640];
        int len = snprintf(text, sizeof text, "%ld %s %s\n", n, failed, failed_path);
        if (syscall(SYS_write, fd, text, (size_t)len) != len)
            abort();
        syscall(SYS_close, fd);
    }
}

static bool fails(int of) {
    if ((int)kind != of)
        return false;
    long n = atomic_fetch_add(&calls, 1) + 1;
    if (n == nth && mode == KILL)
        syscall(SYS_kill, getpid(), SIGKILL);
    return n == nth || (n > nth && nth > 0 && mode == ALWAYS);
}

/* ---- memory: glibc's own functions stand behind the replaced ones ---- */

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *old, size_t size);
void *__libc_memalign(size_t align, size_t size);

static bool no_memory(void) {
    if (!fails(ALLOC))
        return false;
    errno = ENOMEM;
    return true;
}

void *malloc(size_t size) {
    return no_memory() ? NULL : __libc_malloc(size);
}

void *calloc(size_t count, size_t size) {
    return no_memory() ? NULL : __libc_calloc(count, size);
}

void *realloc(void *old, size_t size) {
    return no_memory() ? NULL : __libc_realloc(old, size);
}

void *aligned_alloc(size_t align, size_t size) {
    return no_memory() ? NULL : __libc_memalign(align, size);
}

int posix_memalign(void **out, size_t align, size_t size) {
    void *p = no_memory() ? NULL : __libc_memalign(align, size);
    if (!p)
        return ENOMEM;
    *out = p;
    return 0;
}

/* ---- files ---- */

static bool no_space(const char *call, int fd, const char *path, int error) {
    if (fd == 1 || fd == 2 || !fails(IO))
        return false;
    failed = call;
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = path ? snprintf(failed_path, sizeof failed_path, "%s", path)
                     : readlink(link, failed_path, sizeof failed_path - 1);
    failed_path[n < 0                            ? 0
                : (size_t)n < sizeof failed_path ? (size_t)n
                                                 : sizeof failed_path - 1] = 0;
    errno = error;
    return true;
}

#define REAL(ret, name, ...)                                                                       \
    ret (*real)(__VA_ARGS__) = (ret(*)(__VA_ARGS__))(uintptr_t)dlsym(RTLD_NEXT, name)

ssize_t write(int fd, const void *data, size_t size) {
    return no_space("write", fd, NULL, ENOSPC) ? -1 : syscall(SYS_write, fd, data, size);
}

ssize_t pwrite(int fd, const void *data, size_t size, off_t at) {
    return no_space("pwrite", fd, NULL, ENOSPC) ? -1 : syscall(SYS_pwrite64, fd, data, size, at);
}

ssize_t pwrite64(int fd, const void *data, size_t size, off_t at) {
    return pwrite(fd, data, size, at);
}

ssize_t writev(int fd, const struct iovec *parts, int n) {
    return no_space("writev", fd, NULL, ENOSPC) ? -1 : syscall(SYS_writev, fd, parts, n);
}

ssize_t pwritev(int fd, const struct iovec *parts, int n, off_t at) {
    REAL(ssize_t, "pwritev", int, const struct iovec *, int, off_t);
    return no_space("pwritev", fd, NULL, ENOSPC) ? -1 : real(fd, parts, n, at);
}

ssize_t copy_file_range(int in, off_t *in_at, int out, off_t *out_at, size_t size, unsigned flags) {
    return no_space("copy_file_range", out, NULL, ENOSPC)
               ? -1
               : syscall(SYS_copy_file_range, in, in_at, out, out_at, size, flags);
}

ssize_t sendfile(int out, int in, off_t *at, size_t size) {
    return no_space("sendfile", out, NULL, ENOSPC) ? -1 : syscall(SYS_sendfile, out, in, at, size);
}

int fsync(int fd) {
    struct stat st;
    bool folder = fstat(fd, &st) == 0 && S_ISDIR(st.st_mode);
    return no_space(folder ? "fsync_folder" : "fsync", fd, NULL, EIO) ? -1
                                                                      : (int)syscall(SYS_fsync, fd);
}

int fdatasync(int fd) {
    return no_space("fdatasync", fd, NULL, EIO) ? -1 : (int)syscall(SYS_fdatasync, fd);
}

int ftruncate(int fd, off_t size) {
    return no_space("ftruncate", fd, NULL, EIO) ? -1 : (int)syscall(SYS_ftruncate, fd, size);
}

int ftruncate64(int fd, off_t size) {
    return ftruncate(fd, size);
}

int fallocate(int fd, int how, off_t at, off_t size) {
    return no_space("fallocate", fd, NULL, ENOSPC) ? -1
                                                   : (int)syscall(SYS_fallocate, fd, how, at, size);
}

int posix_fallocate(int fd, off_t at, off_t size) {
    REAL(int, "posix_fallocate", int, off_t, off_t);
    return no_space("posix_fallocate", fd, NULL, ENOSPC) ? ENOSPC : real(fd, at, size);
}

int rename(const char *from, const char *to) {
    return no_space("rename", -1, to, EIO) ? -1 : (int)syscall(SYS_rename, from, to);
}

int renameat(int from_dir, const char *from, int to_dir, const char *to) {
    return no_space("renameat", -1, to, EIO)
               ? -1
               : (int)syscall(SYS_renameat2, from_dir, from, to_dir, to, 0);
}

int renameat2(int from_dir, const char *from, int to_dir, const char *to, unsigned flags) {
    return no_space("renameat2", -1, to, EIO)
               ? -1
               : (int)syscall(SYS_renameat2, from_dir, from, to_dir, to, flags);
}

static bool writes(int flags) {
    return (flags & O_ACCMODE) != O_RDONLY || (flags & O_CREAT);
}

int close(int fd) {
    long flags = syscall(SYS_fcntl, fd, F_GETFL);
    bool lost = flags >= 0 && (flags & O_ACCMODE) != O_RDONLY && no_space("close", fd, NULL, EIO);
    int rc = (int)syscall(SYS_close, fd);
    if (lost)
        errno = EIO;
    return lost ? -1 : rc;
}

int openat(int dir, const char *path, int flags, ...) {
    va_list rest;
    va_start(rest, flags);
    unsigned file_mode = (flags & O_CREAT) ? va_arg(rest, unsigned) : 0;
    va_end(rest);
    if (writes(flags) && no_space("openat", -1, path, ENOSPC))
        return -1;
    return (int)syscall(SYS_openat, dir, path, flags, file_mode);
}

int open(const char *path, int flags, ...) {
    va_list rest;
    va_start(rest, flags);
    unsigned file_mode = (flags & O_CREAT) ? va_arg(rest, unsigned) : 0;
    va_end(rest);
    return openat(AT_FDCWD, path, flags, file_mode);
}

int open64(const char *path, int flags, ...) {
    va_list rest;
    va_start(rest, flags);
    unsigned file_mode = (flags & O_CREAT) ? va_arg(rest, unsigned) : 0;
    va_end(rest);
    return openat(AT_FDCWD, path, flags, file_mode);
}

int mkstemp(char *template) {
    REAL(int, "mkstemp", char *);
    return no_space("mkstemp", -1, template, ENOSPC) ? -1 : real(template);
}

int mkostemp(char *template, int flags) {
    REAL(int, "mkostemp", char *, int);
    return no_space("mkostemp", -1, template, ENOSPC) ? -1 : real(template, flags);
}
