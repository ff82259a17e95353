/* Compiles the sources of a library, and keeps what comes out in memory. */
#include "base/folder.h"
#include "codegen/compile.h"
#include "codegen/delivery/library.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

typedef struct building {
    po_ctx *ctx;
    po_arena *arena;
    const po_library_parts *parts;
    const po_library_sources *sources; /* without what was left out */
    po_library *library;
    po_hash version; /* of the compiler, where objects are kept */
} building;

void po_library_add(po_library_sources *s, const char *name, const char *text, const char *flags) {
    uint32_t n = s->n, m = s->n;
    PO_PUSH(s->arena, s->flags, n, s->cap_flags, flags);
    PO_PUSH(s->arena, s->optional, m, s->cap_optional, false);
    PO_PUSH(s->arena, s->files, s->n, s->cap, ((po_library_file){name, text}));
}

static po_hash hash_sources(const building *b) {
    po_hash hash = {0, 0};
    const po_library_sources *s = b->sources;
    for (uint32_t i = 0; i < s->n; i++) {
        hash = po_hash_str(po_hash_str(hash, s->files[i].name), s->files[i].text);
        hash = po_hash_str(hash, s->flags[i]);
    }
    return hash;
}

static po_status write_temporary(building *b, po_arena *temporary, const char *folder,
                                 const po_library_file *file, const char **path) {
    char *name = po_arena_printf(temporary, "%s/%s", folder, file->name);
    *path = name;
    FILE *f = fopen(name, "we");
    bool written = f && fputs(file->text, f) != EOF;
    if (!f || fclose(f) != 0 || !written)
        return po_fail(b->ctx, PO_IO, "%.300s: cannot be written (%s)", name, strerror(errno));
    return PO_OK;
}

/* What is delivered where optional files were left out. */
static void leave_out(building *b) {
    const po_library_sources *from = b->sources;
    po_library_sources *to = PO_NEW(b->arena, po_library_sources);
    *to = (po_library_sources){.arena = b->arena};
    for (uint32_t i = 0; i < from->n; i++) {
        const char *flags = from->flags[i];
        if (i == 0)
            flags =
                po_arena_printf(b->arena, "%s%s%s", flags, *flags ? " " : "", b->parts->without);
        if (!from->optional[i])
            po_library_add(to, from->files[i].name, from->files[i].text, flags);
    }
    b->sources = to;
    b->library->partly = true;
}

static po_status add(building *b, po_arena *temporary, const char *folder, uint32_t i,
                     po_cc_source *sources, uint32_t *n) {
    const po_library_sources *s = b->sources;
    const char *path;
    if (strchr(s->files[i].name, '/'))
        return PO_OK;
    PO_TRY(write_temporary(b, temporary, folder, &s->files[i], &path));
    if (s->flags[i])
        sources[(*n)++] = (po_cc_source){
            .path = path, .flags = s->flags[i], .optional = s->optional[i] && b->parts->without};
    return PO_OK;
}

static po_status compile(building *b, po_arena *temporary, const char **so_path) {
    const char *folder;
    PO_TRY(po_folder_temporary(b->ctx, temporary, &folder));
    const po_library_sources *s = b->sources;
    po_cc_source *sources = PO_NEW_N(temporary, po_cc_source, s->n);
    uint32_t n = 0;
    for (int optional = 0; optional < 2; optional++)
        for (uint32_t i = 1; i < s->n; i++)
            if (s->optional[i] == (optional == 1))
                PO_TRY(add(b, temporary, folder, i, sources, &n));
    PO_TRY(add(b, temporary, folder, 0, sources, &n));
    char *so = po_arena_printf(temporary, "%s/" PO_LIBRARY_NAME, folder);
    *so_path = so;
    const double start = po_now();
    bool left_out = false;
    po_cc_build of = {.cc = b->parts->cc,
                      .sources = sources,
                      .n = n,
                      .include_dir = folder,
                      .so_path = so,
                      .until = b->parts->until,
                      .without = b->parts->without,
                      .left_out = &left_out};
    PO_TRY(po_cc_build_library(b->ctx, &of));
    if (left_out)
        leave_out(b);
    po_log(b->ctx, "library of %u files compiled in %.2f s%s", n, po_now() - start,
           left_out ? ", but for those that this machine does not run" : "");
    return PO_OK;
}

/* Copies the object to where only descriptors lead. */
static po_status keep_object(building *b, po_bytes object) {
    PO_TRY(po_memory_file(b->ctx, b->arena, PO_LIBRARY_NAME, object.data, object.size,
                          &b->library->path));
    b->library->object.data = po_arena_memdup(b->arena, object.data, object.size);
    b->library->object.size = object.size;
    return PO_OK;
}

/* Sources, flags, and the compiler as it tells of itself: another version is another object. */
static po_status object_key(building *b, po_hash *key) {
    PO_TRY(po_cc_check(b->ctx, b->parts->cc, &b->version));
    *key = po_hash_str(hash_sources(b), PO_CC_FLAGS);
    *key = po_hash_str(*key, b->parts->cc ? b->parts->cc : "");
    *key = po_hash_u64(po_hash_u64(*key, b->version.lo), b->version.hi);
    return PO_OK;
}

static po_status build(building *b, po_arena *temporary) {
    const po_object_store *store = b->parts->store;
    const char *so_path = NULL;
    po_hash key = {0, 0};
    po_bytes known;
    if (store)
        PO_TRY(object_key(b, &key));
    if (store && store->find(store->user, temporary, key, &known))
        return keep_object(b, known);
    PO_TRY(compile(b, temporary, &so_path));
    int fd;
    po_content object;
    PO_TRY(po_file_open(b->ctx, temporary, AT_FDCWD, so_path, O_RDONLY, &fd));
    PO_TRY(po_file_content(b->ctx, temporary, fd, so_path, &object));
    PO_TRY(keep_object(b, (po_bytes){(const char *)object.data, object.size}));
    if (store && !b->library->partly)
        store->keep(store->user, key, b->library->object);
    return PO_OK;
}

po_status po_library_compile(po_ctx *ctx, po_arena *arena, const po_library_parts *parts,
                             const po_library **out) {
    po_library *library = PO_NEW(arena, po_library);
    building b = {
        .ctx = ctx, .arena = arena, .parts = parts, .sources = parts->sources, .library = library};
    po_arena *temporary = po_arena_create(ctx);
    po_status status = build(&b, temporary);
    po_arena_free(temporary);
    PO_TRY(status);
    library->files = b.sources->files;
    library->flags = b.sources->flags;
    library->n_files = b.sources->n;
    library->about = library->partly ? parts->about_without : parts->about;
    library->more = parts->more;
    library->hash = po_hash_u64(po_hash_u64(hash_sources(&b), b.version.lo), b.version.hi);
    *out = library;
    return PO_OK;
}
