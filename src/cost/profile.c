#include "cost/profile.h"

#include "cost/isolate.h"

#include <dirent.h>
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { LEAST_RUNS = 3, MOST_RUNS = 300, PATIENCE = 600, WARM_RUNS = 2 };

/* --- the temporary folder --- */

static void remove_folder(void *user) {
    const char *folder = user;
    DIR *dir = opendir(folder);
    struct dirent *entry;
    while (dir && (entry = readdir(dir)) != NULL)
        if (entry->d_name[0] != '.')
            unlinkat(dirfd(dir), entry->d_name, 0);
    if (dir)
        closedir(dir);
    rmdir(folder);
}

static po_status make_folder(po_ctx *ctx, po_arena *arena, char **folder) {
    *folder = po_arena_printf(arena, "/tmp/petopt-%ld-XXXXXX", (long)getpid());
    if (!mkdtemp(*folder))
        return po_fail(ctx, PO_IO, "no folder for the profile under /tmp: %s", strerror(errno));
    po_arena_defer(arena, remove_folder, *folder);
    return PO_OK;
}

/* --- the child --- */

typedef struct job {
    const po_profile_spec *spec;
    const char *folder;
} job;

/* Sums of one node. */
typedef struct total {
    const char *name, *op, *provider;
    double us;
    uint32_t calls;
} total;

static const char *text_of(json_t *object, const char *key) {
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

/* "conv1_kernel_time" is the time of node conv1. NULL: another kind of event. */
static const char *node_name(po_arena *arena, json_t *event) {
    static const char suffix[] = "_kernel_time";
    const char *name = text_of(event, "name");
    size_t n = strlen(name), k = sizeof suffix - 1;
    if (strcmp(text_of(event, "cat"), "Node") != 0 || n < k || strcmp(name + n - k, suffix) != 0)
        return NULL;
    char *copy = po_arena_strdup(arena, name);
    copy[n - k] = '\0';
    return copy;
}

/* Reads the profile: events in order of time; those of the first runs are left out. */
static po_status sum_up(po_ctx *ctx, po_arena *arena, const char *path, double after_us,
                        total **totals, uint32_t *n) {
    json_error_t error;
    json_t *events = json_load_file(path, 0, &error);
    if (!json_is_array(events))
        return po_fail(ctx, PO_RUNTIME, "the runtime's profile cannot be read: %s", error.text);
    po_map *index = po_map_create(arena);
    uint32_t capacity = 0;
    *totals = NULL;
    *n = 0;
    size_t i;
    json_t *event;
    json_array_foreach(events, i, event) {
        if (json_number_value(json_object_get(event, "ts")) < after_us)
            continue;
        const char *name = node_name(arena, event);
        if (!name)
            continue;
        uint32_t at = po_map_get(index, name);
        if (at == PO_NONE) {
            json_t *args = json_object_get(event, "args");
            total t = {name, po_arena_strdup(arena, text_of(args, "op_name")),
                       po_arena_strdup(arena, text_of(args, "provider")), 0, 0};
            at = *n;
            PO_PUSH(arena, *totals, *n, capacity, t);
            po_map_put(index, name, at);
        }
        (*totals)[at].us += json_number_value(json_object_get(event, "dur"));
        (*totals)[at].calls++;
    }
    return PO_OK; /* the child ends: what jansson holds goes with it */
}

static void send_text(po_reply *reply, const char *text) {
    po_reply_add(reply, text, strlen(text) + 1);
}

static po_status profile_in_child(po_ctx *ctx, po_arena *arena, po_reply *reply, void *user) {
    const job *j = user;
    const po_profile_spec *spec = j->spec;
    po_ort *ort = NULL;
    po_session *session = NULL;
    const po_datum *inputs = NULL;
    po_run *run = NULL;
    po_session_options options = {.kernels = spec->kernels,
                                  .files = spec->files,
                                  .profile = po_arena_printf(arena, "%s/p", j->folder)};
    PO_TRY(po_ort_open(ctx, arena, &(po_ort_options){spec->library, spec->threads}, &ort));
    double opened = po_now();
    PO_TRY(po_session_open(ctx, arena, ort, spec->model, &options, &session));
    PO_TRY(po_feed_order(ctx, arena, session, spec->feed, &inputs));
    PO_TRY(po_run_prepare(ctx, session, inputs, &run));
    PO_TRY(po_run_repeat(ctx, run, WARM_RUNS));
    double start = po_now(), until = start + (spec->seconds > 0 ? spec->seconds : 2);
    uint32_t runs = 0;
    while (runs < LEAST_RUNS || (runs < MOST_RUNS && po_now() < until)) {
        PO_TRY(po_run_repeat(ctx, run, 1));
        runs++;
    }
    const char *path = NULL;
    PO_TRY(po_session_end_profile(ctx, arena, session, &path));
    total *totals = NULL;
    uint32_t n = 0;
    /* Timestamps count from when the session began to be made. */
    PO_TRY(sum_up(ctx, arena, path, 1e6 * (start - opened) - 1000, &totals, &n));
    po_reply_add(reply, &n, sizeof n);
    po_reply_add(reply, &runs, sizeof runs);
    for (uint32_t i = 0; i < n; i++) {
        po_reply_add(reply, &totals[i].us, sizeof totals[i].us);
        po_reply_add(reply, &totals[i].calls, sizeof totals[i].calls);
        send_text(reply, totals[i].name);
        send_text(reply, totals[i].op);
        send_text(reply, totals[i].provider);
    }
    return PO_OK;
}

/* --- the caller --- */

static bool take(po_bytes *from, void *to, size_t size) {
    if (from->size < size)
        return false;
    memcpy(to, from->data, size);
    *from = (po_bytes){from->data + size, from->size - size};
    return true;
}

static bool take_text(po_bytes *from, po_arena *arena, const char **text) {
    size_t n = strnlen(from->data, from->size);
    if (n == from->size)
        return false;
    *text = po_arena_strdup(arena, from->data);
    *from = (po_bytes){from->data + n + 1, from->size - n - 1};
    return true;
}

static int longest_first(const void *a, const void *b) {
    const po_profile_row *x = a, *y = b;
    if (x->seconds != y->seconds)
        return x->seconds < y->seconds ? 1 : -1;
    return strcmp(x->name, y->name);
}

po_status po_profile_model(po_ctx *ctx, po_arena *arena, const po_profile_spec *spec,
                           po_profile *profile) {
    po_arena *scratch = po_arena_create(ctx);
    job j = {spec, NULL};
    char *folder = NULL;
    po_bytes data = {NULL, 0};
    po_status status = make_folder(ctx, scratch, &folder);
    j.folder = folder;
    if (status == PO_OK)
        status = po_isolate(ctx, scratch, "profiling", spec->seconds + PATIENCE, profile_in_child,
                            &j, &data);
    memset(profile, 0, sizeof *profile);
    bool whole = status == PO_OK && take(&data, &profile->n, sizeof profile->n) &&
                 take(&data, &profile->runs, sizeof profile->runs) && profile->runs > 0;
    if (whole)
        profile->rows = PO_NEW_N(arena, po_profile_row, profile->n);
    for (uint32_t i = 0; i < profile->n && whole; i++) {
        po_profile_row *row = &profile->rows[i];
        double us = 0;
        uint32_t calls = 0;
        whole = take(&data, &us, sizeof us) && take(&data, &calls, sizeof calls) &&
                take_text(&data, arena, &row->name) && take_text(&data, arena, &row->op) &&
                take_text(&data, arena, &row->provider);
        row->seconds = 1e-6 * us / profile->runs;
        row->calls = (calls + profile->runs / 2) / profile->runs;
        profile->seconds += row->seconds;
    }
    po_arena_free(scratch);
    PO_TRY(status);
    if (!whole)
        return po_fail(ctx, PO_INTERNAL, "profiling: half an answer came back");
    qsort(profile->rows, profile->n, sizeof *profile->rows, longest_first);
    return PO_OK;
}
