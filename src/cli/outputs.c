/* What a command writes beside the model: standard output, and the files of --json and --report. A
 * run that fails has written nothing: files are given their names before anything is printed, and
 * lose them again where printing fails. */
#include "cli/cli.h"

#include "base/commit.h"

#include <errno.h>
#include <stdlib.h>

struct po_outputs {
    po_ctx ctx;
    po_arena *arena;
    po_commit *commit;
    bool model; /* one is written with it */
};

/* --- standard output --- */

/* Why it failed first; 0: it did not. */
static int output_failure;

bool po_say(const char *text) {
    errno = 0;
    bool well = text == NULL || fputs(text, stdout) != EOF;
    well = fflush(stdout) == 0 && well && !ferror(stdout);
    if (!well && output_failure == 0)
        output_failure = errno != 0 ? errno : EIO;
    return output_failure == 0;
}

/* --- files --- */

/* Before the run what can be known before it. */
static po_status check_places(po_ctx *ctx, const po_cli *cli) {
    const char *paths[] = {cli->out, cli->json, cli->report};
    for (int i = 0; i < 3; i++) {
        for (int k = 0; k < i; k++)
            if (paths[i] && paths[k] && strcmp(paths[i], paths[k]) == 0)
                return po_fail(ctx, PO_BAD_USE, "%.300s: is named for two outputs", paths[i]);
        if (i > 0 && paths[i]) /* the model is the library's to try */
            PO_TRY(po_writer_try(ctx, paths[i]));
    }
    return PO_OK;
}

typedef po_status (*body)(po_outputs *o, const void *args);

/* Runs what may unwind. */
static po_status guarded(po_outputs *o, body fn, const void *args) {
    po_guard guard;
    po_guard_push(&o->ctx, &guard);
    if (setjmp(guard.env) != 0)
        return po_guard_unwind(&o->ctx, &guard);
    po_status status = fn(o, args);
    po_guard_pop(&o->ctx, &guard);
    return status;
}

static po_status begin(po_outputs *o, const void *args) {
    uint64_t mark = o->ctx.next_arena;
    PO_TRY(check_places(&o->ctx, args));
    po_arenas_free_since(&o->ctx, mark);
    o->arena = po_arena_create(&o->ctx);
    o->commit = po_commit_create(&o->ctx, o->arena, NULL);
    return PO_OK;
}

int po_outputs_begin(const po_cli *cli, po_outputs **out) {
    po_outputs *o = calloc(1, sizeof *o);
    if (!o)
        return po_complain(PO_NO_MEMORY, "memory ran out");
    po_ctx_init(&o->ctx);
    o->model = cli->out != NULL;
    po_status status = guarded(o, begin, cli);
    int code = status == PO_OK ? PO_EXIT_OK : po_complain(status, o->ctx.error.message);
    *out = o;
    if (status != PO_OK)
        po_outputs_free(o);
    return code;
}

typedef struct file {
    const char *path, *data;
    size_t size;
} file;

static po_status add(po_outputs *o, const void *args) {
    const file *f = args;
    po_writer *writer;
    if (!f->data)
        return po_fail(&o->ctx, PO_NO_MEMORY, "memory ran out");
    PO_TRY(po_writer_create(&o->ctx, o->arena, NULL, f->path, &writer));
    po_writer_put(writer, f->data, f->size);
    PO_TRY(po_writer_finish(writer));
    po_commit_add(o->commit, writer);
    return PO_OK;
}

void po_outputs_add(po_outputs *o, const char *path, const char *data, size_t size) {
    if (path && o->ctx.error.status == PO_OK)
        guarded(o, add, &(file){path, data, size});
}

static po_status place(po_outputs *o, const void *args) {
    (void)args;
    return po_commit_run(o->commit);
}

bool po_outputs_place(po_outputs *o) {
    return o->ctx.error.status == PO_OK && !po_signal_short_file() &&
           guarded(o, place, NULL) == PO_OK;
}

int po_outputs_end(po_outputs *o, po_status status, const char *message) {
    po_say(NULL);
    if (o && o->ctx.error.status != PO_OK)
        return po_complain(o->ctx.error.status, o->ctx.error.message);
    if (po_signal_short_file())
        return po_complain(PO_IO, "");
    if (output_failure == EPIPE && !(o && o->model))
        return PO_EXIT_BAD; /* who reads has had enough, and knows */
    if (output_failure != 0)
        return po_complain_use("writing to standard output failed: %s", strerror(output_failure));
    if (status != PO_OK)
        return po_complain(status, message);
    if (o)
        po_commit_keep(o->commit);
    return PO_EXIT_OK;
}

void po_outputs_free(po_outputs *o) {
    po_arenas_free_since(&o->ctx, 0);
    free(o);
}
