/* A library to preload: makes the Nth call of a kind fail, or kills the process at it.
 *
 * FAULT=KIND:N       the Nth call fails (counted from 1), all others are served
 * FAULT=KIND:N+      the Nth call and all after it fail
 * FAULT=KIND:N!      the process is killed at the Nth call
 * FAULT=cut:N      at the Nth call of kind `io` the file FAULT_CUT loses all but 5,000 bytes
 * KIND is
 *   alloc   malloc, calloc, realloc, aligned allocations: NULL, ENOMEM
 *   io      write, pwrite, writev, pwritev, fsync, fdatasync, rename, link, ftruncate, fallocate,
 *           copy_file_range, sendfile, and open for writing: ENOSPC or EIO; close: EIO, done all
 * the same rename  rename and link alone read    read, pread, and open for reading: EIO map mmap,
 * memfd_create, mkdir, mkdtemp: ENOMEM, EMFILE or ENOSPC task    pthread_create, fork, posix_spawn,
 * pipe: EAGAIN or EMFILE stdio   fopen, fdopen, fwrite, fputs, fread, fflush, fclose: EIO
 * FAULT_COUNT=FILE: the number of calls of the kind is written there at exit, with the name of the
 * last call that failed and its path. Standard output and error are never touched. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

typedef enum kind_of_call { NONE, ALLOC, IO, RENAME, READ, MAP, TASK, STDIO, CUT } kind_of_call;
static const char *const kinds[] = {[NONE] = "none:",     [ALLOC] = "alloc:", [IO] = "io:",
                                    [RENAME] = "rename:", [READ] = "read:",   [MAP] = "map:",
                                    [TASK] = "task:",     [STDIO] = "stdio:", [CUT] = "cut:"};
static kind_of_call kind;
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
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strncmp(fault, kinds[i], strlen(kinds[i])) == 0)
            kind = (kind_of_call)i;
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

static bool fails(kind_of_call of) {
    if (kind != of && (kind != CUT || of != IO))
        return false;
    long n = atomic_fetch_add(&calls, 1) + 1;
    if (kind == CUT) {
        if (n == nth)
            syscall(SYS_truncate, getenv("FAULT_CUT"), 5000L);
        return false;
    }
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

static bool fails_as(kind_of_call of, const char *call, int fd, const char *path, int error) {
    if (fd == 1 || fd == 2 || !fails(of))
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

static bool no_space(const char *call, int fd, const char *path, int error) {
    return fails_as(IO, call, fd, path, error);
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

static bool no_name(const char *call, const char *to) {
    return no_space(call, -1, to, EIO) || fails_as(RENAME, call, -1, to, EIO);
}

int link(const char *from, const char *to) {
    return no_name("link", to) ? -1 : (int)syscall(SYS_link, from, to);
}

int rename(const char *from, const char *to) {
    return no_name("rename", to) ? -1 : (int)syscall(SYS_rename, from, to);
}

int renameat(int from_dir, const char *from, int to_dir, const char *to) {
    return no_name("renameat", to) ? -1
                                   : (int)syscall(SYS_renameat2, from_dir, from, to_dir, to, 0);
}

int renameat2(int from_dir, const char *from, int to_dir, const char *to, unsigned flags) {
    return no_name("renameat2", to)
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
    if (writes(flags) ? no_space("openat", -1, path, ENOSPC)
                      : fails_as(READ, "openat", -1, path, EIO))
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

/* ---- reading ---- */

ssize_t read(int fd, void *data, size_t size) {
    return fd > 2 && fails_as(READ, "read", fd, NULL, EIO) ? -1 : syscall(SYS_read, fd, data, size);
}

ssize_t pread(int fd, void *data, size_t size, off_t at) {
    return fails_as(READ, "pread", fd, NULL, EIO) ? -1 : syscall(SYS_pread64, fd, data, size, at);
}

ssize_t pread64(int fd, void *data, size_t size, off_t at) {
    return pread(fd, data, size, at);
}

/* ---- memory files, maps, folders ---- */

void *mmap(void *at, size_t size, int prot, int flags, int fd, off_t offset) {
    if (fails_as(MAP, "mmap", fd > 2 ? fd : -1, fd > 2 ? NULL : "", ENOMEM))
        return MAP_FAILED;
    return (void *)syscall(SYS_mmap, at, size, prot, flags, fd, offset);
}

void *mmap64(void *at, size_t size, int prot, int flags, int fd, off_t offset) {
    return mmap(at, size, prot, flags, fd, offset);
}

int memfd_create(const char *name, unsigned flags) {
    return fails_as(MAP, "memfd_create", -1, name, EMFILE)
               ? -1
               : (int)syscall(SYS_memfd_create, name, flags);
}

int mkdir(const char *path, mode_t mode_of) {
    return fails_as(MAP, "mkdir", -1, path, ENOSPC) ? -1 : (int)syscall(SYS_mkdir, path, mode_of);
}

char *mkdtemp(char *template) {
    REAL(char *, "mkdtemp", char *);
    return fails_as(MAP, "mkdtemp", -1, template, ENOSPC) ? NULL : real(template);
}

/* ---- threads and processes ---- */

int pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *), void *arg) {
    REAL(int, "pthread_create", pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
    return fails_as(TASK, "pthread_create", -1, "", EAGAIN) ? EAGAIN : real(thread, attr, run, arg);
}

pid_t fork(void) {
    REAL(pid_t, "fork", void);
    return fails_as(TASK, "fork", -1, "", EAGAIN) ? -1 : real();
}

int posix_spawnp(pid_t *pid, const char *file, const posix_spawn_file_actions_t *actions,
                 const posix_spawnattr_t *attr, char *const argv[], char *const env[]) {
    REAL(int, "posix_spawnp", pid_t *, const char *, const posix_spawn_file_actions_t *,
         const posix_spawnattr_t *, char *const[], char *const[]);
    return fails_as(TASK, "posix_spawnp", -1, file, EAGAIN)
               ? EAGAIN
               : real(pid, file, actions, attr, argv, env);
}

int pipe2(int ends[2], int flags) {
    return fails_as(TASK, "pipe2", -1, "", EMFILE) ? -1 : (int)syscall(SYS_pipe2, ends, flags);
}

/* ---- streams ---- */

static bool stream_fails(const char *call, FILE *f) {
    return f != stdout && f != stderr && fails_as(STDIO, call, -1, "", EIO);
}

FILE *fopen(const char *path, const char *how) {
    REAL(FILE *, "fopen", const char *, const char *);
    return fails_as(STDIO, "fopen", -1, path, EIO) ? NULL : real(path, how);
}

FILE *fopen64(const char *path, const char *how) {
    return fopen(path, how);
}

size_t fwrite(const void *data, size_t size, size_t n, FILE *f) {
    REAL(size_t, "fwrite", const void *, size_t, size_t, FILE *);
    return stream_fails("fwrite", f) ? 0 : real(data, size, n, f);
}

size_t fread(void *data, size_t size, size_t n, FILE *f) {
    REAL(size_t, "fread", void *, size_t, size_t, FILE *);
    return stream_fails("fread", f) ? 0 : real(data, size, n, f);
}

int fputs(const char *text, FILE *f) {
    REAL(int, "fputs", const char *, FILE *);
    return stream_fails("fputs", f) ? EOF : real(text, f);
}

int fclose(FILE *f) {
    REAL(int, "fclose", FILE *);
    bool lost = stream_fails("fclose", f);
    int rc = real(f);
    if (lost)
        errno = EIO;
    return lost ? EOF : rc;
}
