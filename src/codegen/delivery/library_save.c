/* Writes a built library into the user's folder. */
#include "codegen/compile.h"
#include "codegen/delivery/library.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <unistd.h>

static const char readme_start[] = "# Kernels for `";

/* After the title: the model that the library was made for, seen from DIR. */
static const char model_start[] = "\n<!-- made for ", model_end[] = " -->\n";

static void print_readme(po_text *out, const po_library *l, const char *dir, const char *model) {
    const char *name = po_path_name(model);
    po_text_printf(out,
                   "%s%s`\n%s%s%s\n`" PO_LIBRARY_NAME "` holds the operators of the domain "
                   "`" PO_KERNEL_DOMAIN "` that `%s` calls,\n%s\n",
                   readme_start, name, model_start, po_path_from(out->arena, dir, model), model_end,
                   name, l->about);
    po_text_printf(out,
                   "Python:\n\n"
                   "    options = onnxruntime.SessionOptions()\n"
                   "    options.register_custom_ops_library(\"%s/" PO_LIBRARY_NAME "\")\n"
                   "    session = onnxruntime.InferenceSession(\"%s\", options)\n\n"
                   "C:\n\n"
                   "    api->CreateSessionOptions(&options);\n"
                   "    api->RegisterCustomOpsLibrary_V2(options, \"%s/" PO_LIBRARY_NAME "\");\n"
                   "    api->CreateSession(env, \"%s\", options, &session);\n\n",
                   dir, model, dir, model);
    po_text_puts(out, "To build it again, in this folder:\n\n");
    for (uint32_t i = 0; i < l->n_files; i++)
        if (l->flags[i])
            po_text_printf(out, "    cc " PO_CC_FLAGS "%s%s -c %s\n", *l->flags[i] ? " " : "",
                           l->flags[i], l->files[i].name);
    po_text_puts(out, "    cc -shared -o " PO_LIBRARY_NAME);
    for (uint32_t i = 0; i < l->n_files; i++)
        if (l->flags[i])
            po_text_printf(out, " %.*s.o", (int)strlen(l->files[i].name) - 2, l->files[i].name);
    po_text_puts(out, " -lm\n");
    po_text_puts(out, l->more);
}

/* The one name that a folder with other contents may well have is README.md; and where it is
 * petopt's it tells whose kernels these are. */
static po_status check_readme(po_ctx *ctx, po_arena *scratch, const char *dir, const char *model) {
    char start[2 * PATH_MAX] = "";
    FILE *f = fopen(po_arena_printf(scratch, "%s/README.md", dir), "re");
    if (!f)
        return PO_OK;
    size_t n = fread(start, 1, sizeof start - 1, f);
    start[n] = '\0';
    fclose(f);
    if (strncmp(start, readme_start, sizeof readme_start - 1) != 0)
        return po_fail(ctx, PO_BAD_USE,
                       "--kernels %.300s: its README.md is not petopt's and would be lost; name a "
                       "folder of its own",
                       dir);
    if (!model)
        return PO_OK;
    /* Versions before this one told the name alone. */
    char *made_for = strstr(start, model_start), *name = start + sizeof readme_start - 1;
    char *end = made_for ? strstr(made_for, model_end) : NULL, *name_end = strstr(name, "`\n");
    const char *mine = end ? po_path_from(scratch, dir, model) : po_path_name(model);
    const char *theirs = end ? made_for + sizeof model_start - 1 : name;
    size_t length = end ? (size_t)(end - theirs) : name_end ? (size_t)(name_end - name) : 0;
    if (strlen(mine) == length && strncmp(mine, theirs, length) == 0)
        return PO_OK;
    return po_fail(ctx, PO_BAD_USE,
                   "--kernels %.300s: holds the kernels of another model (%.*s), which would lose "
                   "them; name a folder of its own",
                   dir, (int)(length < 300 ? length : 300), theirs);
}

struct po_library_saving {
    po_ctx *ctx;
    po_arena *arena;
    const po_file_ops *ops;
    const char *dir;
    bool made;    /* the folder, by this call */
    char **inner; /* folders in it, likewise */
    uint32_t n_inner, cap_inner;
    po_writer **writers;
    uint32_t n, cap;
};

/* Folders that this call made and that are empty: those of a library that was not committed. */
static void remove_folder(void *user) {
    const po_library_saving *s = user;
    for (uint32_t i = s->n_inner; i > 0; i--)
        rmdir(s->inner[i - 1]);
    if (s->made)
        rmdir(s->dir);
}

/* Makes the folder that a file inside DIR is in; what was made goes again without a commit. */
static po_status make_inner_folder(po_library_saving *s, const char *name) {
    const char *slash = strrchr(name, '/');
    if (!slash)
        return PO_OK;
    char *path = po_arena_printf(s->arena, "%s/%.*s", s->dir, (int)(slash - name), name);
    if (mkdir(path, 0777) == 0) {
        PO_PUSH(s->arena, s->inner, s->n_inner, s->cap_inner, path);
        return PO_OK;
    }
    struct stat st;
    if (errno != EEXIST || stat(path, &st) != 0 || !S_ISDIR(st.st_mode))
        return po_fail(s->ctx, PO_IO, "%.300s: the folder cannot be made", path);
    return PO_OK;
}

static po_status put(po_library_saving *s, const char *name, const void *data, size_t size) {
    po_writer *w;
    const char *path = po_arena_printf(s->arena, "%s/%s", s->dir, name);
    PO_TRY(make_inner_folder(s, name));
    PO_TRY(po_writer_create(s->ctx, s->arena, s->ops, path, &w));
    po_writer_put(w, data, size);
    PO_TRY(po_writer_finish(w));
    PO_PUSH(s->arena, s->writers, s->n, s->cap, w);
    return PO_OK;
}

static po_status make_folder(po_library_saving *s) {
    struct stat st;
    s->made = mkdir(s->dir, 0777) == 0;
    if (s->made)
        return PO_OK;
    if (errno != EEXIST)
        return po_fail(s->ctx, PO_IO, "%.300s: the folder cannot be made (%s)", s->dir,
                       strerror(errno));
    if (stat(s->dir, &st) != 0 || !S_ISDIR(st.st_mode))
        return po_fail(s->ctx, PO_IO, "%.300s: is no folder", s->dir);
    return PO_OK;
}

po_status po_library_begin(po_ctx *ctx, po_arena *arena, const po_library *library,
                           const po_file_ops *ops, const char *dir, const char *model,
                           po_library_saving **saving) {
    po_library_saving *s = PO_NEW(arena, po_library_saving);
    *s = (po_library_saving){.ctx = ctx, .arena = arena, .ops = ops, .dir = dir};
    /* Deferred before the writers' own: the temporary files are gone when it is called. */
    po_arena_defer(arena, remove_folder, s);
    PO_TRY(make_folder(s));
    PO_TRY(check_readme(ctx, arena, dir, model)); /* it may have come while petopt was at work */
    po_text readme;
    po_text_init(&readme, arena);
    print_readme(&readme, library, dir, model);
    for (uint32_t i = 0; i < library->n_files; i++)
        PO_TRY(
            put(s, library->files[i].name, library->files[i].text, strlen(library->files[i].text)));
    PO_TRY(put(s, "README.md", readme.data, readme.size));
    PO_TRY(put(s, PO_LIBRARY_NAME, library->object.data, library->object.size));
    *saving = s;
    return PO_OK;
}

void po_library_join(const po_library_saving *s, po_commit *commit) {
    for (uint32_t i = 0; i < s->n; i++)
        po_commit_add(commit, s->writers[i]);
    po_commit_sync(commit);
}

po_status po_library_save(po_ctx *ctx, const po_library *library, const po_file_ops *ops,
                          const char *dir, const char *model) {
    po_library_saving *saving;
    po_arena *arena = po_arena_create(ctx);
    po_status status = po_library_begin(ctx, arena, library, ops, dir, model, &saving);
    if (status == PO_OK) {
        po_commit *commit = po_commit_create(ctx, arena, ops);
        po_library_join(saving, commit);
        status = po_commit_run(commit);
        if (status == PO_OK)
            po_commit_keep(commit);
    }
    po_arena_free(arena);
    return status;
}

po_status po_library_check_folder(po_ctx *ctx, const char *dir, const char *model) {
    struct stat st;
    po_arena *scratch = po_arena_create(ctx);
    po_status status = PO_OK;
    if (stat(dir, &st) == 0) {
        if (!S_ISDIR(st.st_mode))
            status = po_fail(ctx, PO_BAD_USE, "--kernels %.300s: is no folder", dir);
        else if (access(dir, W_OK | X_OK) != 0)
            status = po_fail(ctx, PO_BAD_USE, "--kernels %.300s: cannot be written to (%s)", dir,
                             strerror(errno));
        else
            status = check_readme(ctx, scratch, dir, model);
    } else if (errno != ENOENT) {
        status = po_fail(ctx, PO_BAD_USE, "--kernels %.300s: %s", dir, strerror(errno));
    } else {
        size_t n = strlen(dir);
        while (n > 1 && dir[n - 1] == '/')
            n--;
        const char *parent = po_path_folder(scratch, po_arena_printf(scratch, "%.*s", (int)n, dir));
        if (access(parent, W_OK | X_OK) != 0)
            status = po_fail(ctx, PO_BAD_USE, "--kernels %.300s: the folder cannot be made (%s)",
                             dir, strerror(errno));
    }
    po_arena_free(scratch);
    return status;
}
