/* Files: reading without copying, and writing so that a reader sees the old file or the new one.
 *
 * Everything that is opened or mapped here is registered with an arena, so that it goes with it. */
#ifndef PO_BASE_FILE_H
#define PO_BASE_FILE_H

#include "base/hash.h"

#include <sys/stat.h>
#include <sys/types.h>

/* --- reading --- */

/* A whole file in memory, read-only. Small files are read; larger ones are mapped: should another
 * program shorten a mapped file, touching what is gone raises SIGBUS. petopt cannot recover from
 * that; po_content_unchanged finds out about every other change. */
typedef struct po_content {
    const char *path;
    const uint8_t *data;
    size_t size;
    bool mapped;
    struct stat id; /* as it was when it was read */
} po_content;

/* Opens a file for reading, never blocking (FIFOs); `folder` is a descriptor or AT_FDCWD. The
 * descriptor is closed with the arena. PO_IO names the path. */
po_status po_file_open(po_ctx *ctx, po_arena *arena, int folder, const char *path, int flags,
                       int *fd);
/* Opens `path` below a folder such that no component leads out of it: no "..", no absolute path,
 * no symbolic link that points elsewhere. Returns a descriptor, not registered anywhere, or -1 with
 * errno (EXDEV or ELOOP: it would lead out). Kernels without openat2 get a walk that refuses every
 * symbolic link. */
int po_file_open_beneath(int folder, const char *path);
/* Reads or maps an open regular file. PO_BAD_INPUT for folders, devices and FIFOs. The content
 * lives as long as the arena; the descriptor may be closed. */
po_status po_file_content(po_ctx *ctx, po_arena *arena, int fd, const char *path,
                          po_content *content);
/* PO_IO where the file was changed or replaced by something shorter since it was read. Small files
 * that were copied are never in danger and always pass. */
po_status po_content_unchanged(po_ctx *ctx, const po_content *content);
/* Gives back the memory of a mapped file's pages until they are looked at again. */
void po_content_rest(const po_content *content);

/* --- writing --- */

/* The calls that a writer makes, so that tests can make each one fail. Each sets errno. */
typedef struct po_file_ops {
    void *user;
    int (*open)(void *user, const char *path, int flags, mode_t mode);
    ssize_t (*write)(void *user, int fd, const void *data, size_t size);
    int (*fsync)(void *user, int fd);
    int (*close)(void *user, int fd);
    int (*rename)(void *user, const char *from, const char *to);
    int (*unlink)(void *user, const char *path);
    int (*link)(void *user, const char *from, const char *to);
} po_file_ops;
extern const po_file_ops po_file_ops_system;

/* Writes one file, in order. */
typedef struct po_writer po_writer;

/* A temporary file beside `path` that takes its name in po_writer_commit. A symbolic link is
 * followed: what it points to is replaced. Whatever happens, the temporary file is gone when the
 * arena is. PO_IO where the folder is not there or the place is taken by something that is no
 * regular file. ops NULL: the system's. */
po_status po_writer_create(po_ctx *ctx, po_arena *arena, const po_file_ops *ops, const char *path,
                           po_writer **writer);
/* Whether a file could be written to `path`, as far as that shows beforehand. Nothing is left. */
po_status po_writer_try(po_ctx *ctx, const char *path);
/* Writes to a descriptor that is the caller's. */
po_writer *po_writer_on_fd(po_ctx *ctx, po_arena *arena, int fd, const char *name);
/* Only counts and, where asked, hashes. */
po_writer *po_writer_null(po_ctx *ctx, po_arena *arena);
/* Hashes what is written from here on; po_writer_hash gives the result once it is finished. */
void po_writer_hash_begin(po_writer *writer);
po_hash po_writer_hash(const po_writer *writer);
/* The same for SHA-256: hexadecimal digits once the writer is finished, else NULL. */
void po_writer_sha256_begin(po_writer *writer);
const char *po_writer_sha256(po_writer *writer);
/* Large pieces go to the file from where they lie. Failures are kept: the next call that returns a
 * status reports them. */
void po_writer_put(po_writer *writer, const void *data, size_t size);
/* Zero bytes up to a multiple of `alignment`. */
void po_writer_align(po_writer *writer, size_t alignment);
uint64_t po_writer_offset(const po_writer *writer);
po_status po_writer_status(po_writer *writer);
/* Writes out what is buffered and, for files, fsyncs and closes. */
po_status po_writer_finish(po_writer *writer);
/* Gives the finished file its name; several files take theirs together by base/commit.h. */
po_status po_writer_commit(po_writer *writer);
/* Where the file will be, links resolved. */
const char *po_writer_path(const po_writer *writer);
/* Another name in the same folder, for a file whose content names it. Before it is committed. */
void po_writer_set_name(po_writer *writer, const char *name);

/* A file that only descriptors lead to, with this content: for libraries that are to be loaded
 * whatever the folders of the machine allow. Its path, /proc/self/fd/N, is good for this process
 * and its children while the arena lives. PO_IO. */
po_status po_memory_file(po_ctx *ctx, po_arena *arena, const char *name, const void *data,
                         size_t size, const char **path);

/* The folder of a path ("." where it has none) and its last component. */
const char *po_path_folder(po_arena *arena, const char *path);
const char *po_path_name(const char *path);
/* The path as seen from a folder: "../out.onnx". Both folders exist; where they cannot be resolved,
 * the path as it is. */
const char *po_path_from(po_arena *arena, const char *folder, const char *path);

#endif
