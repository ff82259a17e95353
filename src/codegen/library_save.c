/* Writes a built library into the user's folder. */
#include "codegen/compile.h"
#include "codegen/library.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

static void print_readme(po_text *out, const po_library *l, const char *dir, const char *model) {
    const char *name = po_path_name(model);
    po_text_printf(out,
                   "# Kernels for %s\n\n"
                   "`" PO_LIBRARY_NAME "` holds the operators of the domain `" PO_KERNEL_DOMAIN
                   "` that %s calls, for ONNX\nRuntime 1.17 or later on x86-64 Linux. It has code "
                   "for AVX-512 and for AVX2 and picks by the\nprocessor that it is loaded on. The "
                   "model does not depend on it: without the library, on an older\nprocessor, or "
                   "with the library of another model it runs on the standard operators that it "
                   "carries\nfor each of these.\n\n",
                   name, name);
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
            po_text_printf(out, "    cc " PO_CC_FLAGS " %s -c %s\n", l->flags[i], l->files[i].name);
    po_text_puts(out, "    cc -shared -o " PO_LIBRARY_NAME);
    for (uint32_t i = 0; i < l->n_files; i++)
        if (l->flags[i])
            po_text_printf(out, " %.*s.o", (int)strlen(l->files[i].name) - 2, l->files[i].name);
    po_text_puts(out, " -lm\n");
}

typedef struct saving {
    po_ctx *ctx;
    po_arena *arena;
    const po_file_ops *ops;
    const char *dir;
    po_writer **writers;
    uint32_t n, cap;
} saving;

static po_status put(saving *s, const char *name, const void *data, size_t size) {
    po_writer *w;
    const char *path = po_arena_printf(s->arena, "%s/%s", s->dir, name);
    PO_TRY(po_writer_create(s->ctx, s->arena, s->ops, path, &w));
    po_writer_put(w, data, size);
    PO_TRY(po_writer_finish(w));
    PO_PUSH(s->arena, s->writers, s->n, s->cap, w);
    return PO_OK;
}

static po_status save(saving *s, const po_library *l, const char *model) {
    po_text readme;
    po_text_init(&readme, s->arena);
    print_readme(&readme, l, s->dir, model);
    for (uint32_t i = 0; i < l->n_files; i++)
        PO_TRY(put(s, l->files[i].name, l->files[i].text, strlen(l->files[i].text)));
    PO_TRY(put(s, "README.md", readme.data, readme.size));
    PO_TRY(put(s, PO_LIBRARY_NAME, l->object.data, l->object.size));
    for (uint32_t i = 0; i < s->n; i++) {
        po_status status = po_writer_commit(s->writers[i]);
        if (status == PO_OK)
            continue;
        while (i > 0)
            po_writer_withdraw(s->writers[--i]);
        return status;
    }
    return po_writer_sync_folder(s->writers[0]);
}

po_status po_library_save(po_ctx *ctx, const po_library *library, const po_file_ops *ops,
                          const char *dir, const char *model) {
    bool made = mkdir(dir, 0777) == 0;
    struct stat st;
    if (!made && errno != EEXIST)
        return po_fail(ctx, PO_IO, "%.300s: the folder cannot be made (%s)", dir, strerror(errno));
    if (!made && (stat(dir, &st) != 0 || !S_ISDIR(st.st_mode)))
        return po_fail(ctx, PO_IO, "%.300s: is no folder", dir);
    saving s = {.ctx = ctx, .arena = po_arena_create(ctx), .ops = ops, .dir = dir};
    po_status status = save(&s, library, model);
    po_arena_free(s.arena);
    if (status != PO_OK && made)
        rmdir(dir);
    return status;
}
