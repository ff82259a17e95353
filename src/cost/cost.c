/* Describes the machine: the runtime as a child process finds it, the CPU by /proc/cpuinfo. Both
 * are part of the key of every reading, with petopt's version. */
#include "cost/cost.h"

#include "cost/isolate.h"
#include "po_config.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { PROBE_SECONDS = 60, CHUNK = 1 << 20 };

/* The value behind "name :" in a line of /proc/cpuinfo, or NULL. */
static const char *field(const char *line, const char *name) {
    size_t n = strlen(name);
    if (strncmp(line, name, n) != 0)
        return NULL;
    line += n;
    line += strspn(line, " \t");
    return *line == ':' ? line + 1 + strspn(line + 1, " \t") : NULL;
}

static void read_cpu(po_machine *m) {
    char model[80] = "unknown CPU", family[16] = "?", number[16] = "?", stepping[16] = "?";
    static const char *const names[] = {"model name", "cpu family", "model", "stepping"};
    char *const values[] = {model, family, number, stepping};
    static const size_t sizes[] = {sizeof model, sizeof family, sizeof number, sizeof stepping};
    FILE *file = fopen("/proc/cpuinfo", "re");
    char line[4096];
    while (file && fgets(line, sizeof line, file) && line[0] != '\n') /* the first CPU's */
        for (size_t i = 0; i < 4; i++) {
            const char *value = field(line, names[i]);
            if (value)
                snprintf(values[i], sizes[i], "%.*s", (int)strcspn(value, "\n"), value);
        }
    if (file)
        fclose(file);
    snprintf(m->cpu, sizeof m->cpu, "%s (%s-%s-%s)", model, family, number, stepping);
    cpu_set_t mine;
    m->cores = sched_getaffinity(0, sizeof mine, &mine) == 0 ? (uint32_t)CPU_COUNT(&mine) : 1;
    if (m->cores == 0)
        m->cores = 1;
}

static po_status probe(po_ctx *ctx, po_arena *arena, po_reply *reply, void *user) {
    po_ort *ort = NULL;
    PO_TRY(po_ort_load(ctx, arena, user, &ort));
    po_machine m;
    memset(&m, 0, sizeof m);
    m.has_runtime = true;
    snprintf(m.runtime, sizeof m.runtime, "%s", po_ort_version(ort));
    snprintf(m.library, sizeof m.library, "%s", po_ort_library(ort));
    po_reply_add(reply, &m, sizeof m);
    return PO_OK;
}

static void *writable(const char *text) { /* po_isolate's user pointer is not const */
    void *p;
    memcpy(&p, &text, sizeof p);
    return p;
}

po_status po_cost_open(po_ctx *ctx, po_arena *arena, const po_cost_options *options,
                       po_cost **out) {
    po_cost *cost = PO_NEW(arena, po_cost);
    cost->library = options->library ? po_arena_strdup(arena, options->library) : NULL;
    if (options->cache && options->cache[0] == '\0')
        cost->cache = po_cache_none(arena);
    else
        PO_TRY(po_cache_open(ctx, arena, options->cache, &cost->cache));
    po_bytes found = {NULL, 0};
    po_status status = po_isolate(ctx, arena, "looking for ONNX Runtime", PROBE_SECONDS, probe,
                                  writable(cost->library), &found);
    if (status == PO_OK && found.size == sizeof cost->machine) {
        memcpy(&cost->machine, found.data, sizeof cost->machine);
    } else if (status == PO_RUNTIME) {
        snprintf(cost->machine.missing, sizeof cost->machine.missing, "%.*s",
                 (int)sizeof cost->machine.missing - 1, ctx->error.message);
        po_ctx_clear(ctx);
    } else {
        return status;
    }
    read_cpu(&cost->machine);
    *out = cost;
    return PO_OK;
}

po_status po_cost_need_runtime(po_ctx *ctx, const po_cost *cost) {
    if (cost->machine.has_runtime)
        return PO_OK;
    return po_fail(ctx, PO_RUNTIME, "%s", cost->machine.missing);
}

po_hash po_cost_key(const po_cost *cost) {
    po_hash key = po_hash_str((po_hash){0, 0}, PO_VERSION);
    key = po_hash_str(key, cost->machine.runtime);
    key = po_hash_str(key, cost->machine.cpu);
    return po_hash_u64(key, cost->machine.cores);
}

po_status po_cost_hash_file(po_ctx *ctx, const char *path, po_hash seed, po_hash *hash) {
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return po_fail(ctx, PO_IO, "%s: %s", path, strerror(errno));
    char *chunk = malloc(CHUNK);
    *hash = seed;
    off_t at = 0;
    size_t held = 0;
    ssize_t n = chunk ? 1 : -1;
    while (n > 0 || (n < 0 && chunk && errno == EINTR)) {
        /* Not read(): a descriptor behind /proc/self/fd has its own place in the file. Hashed in
         * whole chunks, so that short reads do not show. */
        n = pread(fd, chunk + held, CHUNK - held, at);
        if (n > 0) {
            at += n;
            held += (size_t)n;
        }
        if (held == CHUNK || n == 0) {
            *hash = po_hash_bytes(chunk, held, *hash);
            held = 0;
        }
    }
    int error = errno;
    free(chunk);
    close(fd);
    if (n < 0)
        return po_fail(ctx, PO_IO, "%s: %s", path, strerror(error));
    *hash = po_hash_u64(*hash, (uint64_t)at);
    return PO_OK;
}
