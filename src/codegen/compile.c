/* Compilers as processes of their own, as many at a time as there are processors. */
#include "codegen/compile.h"

#include "base/file.h"
#include "base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

/* gcc clears up sooner: 110 MB for a library's larger files, not 220, in a tenth more of the time.
 * clang knows the words and does without. */
#define LEAN "--param ggc-min-expand=20 --param ggc-min-heapsize=32768"

enum { SAID = 1500 /* bytes of a compiler's complaint that are passed on */ };

typedef struct job {
    char **argv;
    const char *object, *log;
    pid_t pid;   /* 0: not running */
    bool reaped; /* while it is ended: what it started may still run */
} job;

typedef struct work {
    po_ctx *ctx;
    po_arena *arena;
    const po_cc_build *build;
    const char *cc;   /* NULL: not known yet */
    const char *path; /* a new file beside the result; other names start with it */
    uint32_t n;
    job *jobs;             /* the link last */
    bool done;             /* the file has been renamed */
    uint32_t sure, behind; /* optional are the files between them */
    double start;
    bool left_out;
} work;

static void pause_a_little(void) {
    struct timespec pause = {0, 2000000};
    (void)nanosleep(&pause, NULL);
}

/* Whether a compiler and the programs that it has started, which could still write files, are
 * gone. */
static bool is_gone(job *j) {
    if (!j->reaped && waitpid(j->pid, NULL, WNOHANG) != 0)
        j->reaped = true;
    return j->reaped && kill(-j->pid, 0) != 0;
}

/* Ends all compilers that still run, first so that they remove their own files; together, however
 * many there are. */
static void stop(work *w) {
    enum { PATIENCE = 500 };
    bool any = true;
    for (int i = 0; i < 2 * PATIENCE && any; i++) {
        any = false;
        for (uint32_t k = 0; k <= w->n; k++) {
            job *j = &w->jobs[k];
            if (j->pid <= 0 || is_gone(j))
                continue;
            any = true;
            if (i % PATIENCE == 0)
                (void)kill(-j->pid, i == 0 ? SIGTERM : SIGKILL);
        }
        if (any)
            pause_a_little();
    }
    for (uint32_t k = 0; k <= w->n; k++) {
        job *j = &w->jobs[k];
        if (j->pid > 0 && !j->reaped)
            (void)waitpid(j->pid, NULL, 0);
        j->pid = 0;
    }
}

/* Ends what still runs and removes what is left: on success, failure and unwinding alike. */
static void clean(void *user) {
    work *w = user;
    stop(w);
    for (uint32_t i = 0; i <= w->n; i++) {
        const job *j = &w->jobs[i];
        if (j->object != NULL)
            (void)unlink(j->object);
        if (j->log != NULL)
            (void)unlink(j->log);
    }
    if (w->path != NULL && !w->done)
        (void)unlink(w->path);
}

/* --- arguments --- */

typedef struct words {
    char **items;
    uint32_t n, cap;
} words;

static void push(work *w, words *to, const char *word) {
    char *copy = po_arena_strdup(w->arena, word);
    PO_PUSH(w->arena, to->items, to->n, to->cap, copy);
}

static void push_all(work *w, words *to, const char *text) {
    char *copy = po_arena_strdup(w->arena, text), *rest = NULL;
    for (char *t = strtok_r(copy, " ", &rest); t != NULL; t = strtok_r(NULL, " ", &rest))
        push(w, to, t);
}

static char **ended(work *w, words *to) {
    char *none = NULL;
    PO_PUSH(w->arena, to->items, to->n, to->cap, none);
    return to->items;
}

/* --- running --- */

/* The compiler's own temporary files go beside its log as well: /tmp may not be writable, and what
 * a killed compiler leaves goes with the folder. */
static char **environment(work *w, const job *j) {
    words to = {NULL, 0, 0};
    for (char **e = environ; *e != NULL; e++)
        if (strncmp(*e, "TMPDIR=", 7) != 0)
            PO_PUSH(w->arena, to.items, to.n, to.cap, *e);
    char *place = po_arena_printf(w->arena, "TMPDIR=%s", po_path_folder(w->arena, j->log));
    PO_PUSH(w->arena, to.items, to.n, to.cap, place);
    return ended(w, &to);
}

static int spawn(work *w, job *j, const char *cc) {
    char **env = environment(w, j);
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    if (posix_spawn_file_actions_init(&actions) != 0)
        return ENOMEM;
    if (posix_spawnattr_init(&attributes) != 0) {
        (void)posix_spawn_file_actions_destroy(&actions);
        return ENOMEM;
    }
    /* A group of its own, to be ended as one. */
    (void)posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
    (void)posix_spawnattr_setpgroup(&attributes, 0);
    int error = posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    if (error == 0)
        error = posix_spawn_file_actions_addopen(&actions, 1, j->log, O_WRONLY | O_CREAT | O_TRUNC,
                                                 0600);
    if (error == 0)
        error = posix_spawn_file_actions_adddup2(&actions, 1, 2);
    if (error == 0) {
        char *first = j->argv[0];
        j->argv[0] = po_arena_strdup(w->arena, cc);
        error = posix_spawnp(&j->pid, cc, &actions, &attributes, j->argv, env);
        if (error != 0) {
            j->pid = 0;
            j->argv[0] = first;
        }
    }
    (void)posix_spawnattr_destroy(&attributes);
    (void)posix_spawn_file_actions_destroy(&actions);
    return error;
}

static po_status start(work *w, job *j) {
    static const char *const known[] = {"cc", "gcc", "clang"};
    int error = ENOENT;
    if (w->cc != NULL)
        error = spawn(w, j, w->cc);
    for (size_t i = 0; i < 3 && w->cc == NULL; i++) {
        error = spawn(w, j, known[i]);
        if (error == 0)
            w->cc = known[i];
    }
    if (error != 0)
        return po_fail(w->ctx, PO_UNSUPPORTED, "C compiler '%s': %s",
                       w->cc == NULL ? "cc, gcc, clang" : w->cc, strerror(error));
    return PO_OK;
}

/* The first lines of what a compiler said. */
static const char *said(work *w, const job *j) {
    char *text = po_arena_calloc(w->arena, SAID + 1, 1);
    FILE *file = fopen(j->log, "rb");
    if (file == NULL)
        return "";
    size_t n = fread(text, 1, SAID, file);
    (void)fclose(file);
    text[n] = '\0';
    uint32_t lines = 0;
    for (char *c = text; *c != '\0'; c++)
        if (*c == '\n' && ++lines == 6)
            *c-- = '\0';
    return text;
}

static po_status ended_well(work *w, job *j, int state) {
    j->pid = 0;
    if (WIFEXITED(state) && WEXITSTATUS(state) == 0)
        return PO_OK;
    if (WIFSIGNALED(state))
        return po_fail(w->ctx, PO_UNSUPPORTED, "C compiler '%s' ended by signal %d", w->cc,
                       WTERMSIG(state));
    return po_fail(w->ctx, PO_UNSUPPORTED, "C compiler '%s' failed: %s", w->cc, said(w, j));
}

/* A file that may be left out. */
static po_status leave_out(work *w, uint32_t i, po_status status) {
    if (status != PO_UNSUPPORTED || i >= w->n || !w->build->failed)
        return status;
    po_log(w->ctx, "left out: %s", w->ctx->error.message);
    po_ctx_clear(w->ctx);
    w->build->failed[i] = true;
    return PO_OK;
}

/* What a compiler does before it comes to the text, headers among it, takes as long as this many
 * bytes: the rate of a file of two lines would be a hundredth of that of kernels. */
enum { BYTES_A_START = 4096 };

static double bytes_of(const po_cc_source *source) {
    struct stat file;
    return BYTES_A_START + (stat(source->path, &file) == 0 ? (double)file.st_size : 0);
}

/* Whether optional files, of which jobs up to `next` have been started, would not be compiled in
 * time: by the bytes of what has been, and its time. */
static bool takes_too_long(const work *w, uint32_t next) {
    double bytes = 0, done = 0;
    if (w->build->until <= 0 || w->sure == w->behind || next < w->sure)
        return false;
    for (uint32_t i = 0; i < w->behind; i++) {
        const double size = bytes_of(&w->build->sources[i]);
        const bool ended = i < next && w->jobs[i].pid == 0;
        if (i < w->sure && !ended)
            return false;
        bytes += size;
        done += ended ? size : 0;
    }
    return done < bytes &&
           w->start + (po_now() - w->start) * bytes / (done > 0 ? done : 1) > w->build->until;
}

/* Runs jobs [from, to), at most `most` at a time. */
static po_status run(work *w, uint32_t from, uint32_t to, uint32_t most) {
    uint32_t next = from, running = 0, done = 0;
    while (next < to || running > 0) {
        PO_TRY(po_ctx_poll(w->ctx));
        while (next < to && running < most) {
            PO_TRY(start(w, &w->jobs[next++]));
            running++;
        }
        bool any = false;
        for (uint32_t i = from; i < next; i++) {
            int state = 0;
            job *j = &w->jobs[i];
            if (j->pid == 0)
                continue;
            pid_t pid = waitpid(j->pid, &state, WNOHANG);
            if (pid == 0 || (pid < 0 && errno == EINTR))
                continue;
            any = true;
            running--;
            if (pid < 0) {
                j->pid = 0;
                return po_fail(w->ctx, PO_INTERNAL, "C compiler '%s': %s", w->cc, strerror(errno));
            }
            PO_TRY(leave_out(w, i, ended_well(w, j, state)));
            done++;
            if (i < w->n && w->build->told)
                w->build->told(w->build->user, done);
        }
        if (any && from == 0 && to == w->behind && takes_too_long(w, next)) {
            stop(w);
            w->left_out = true;
            return PO_OK;
        }
        if (!any)
            pause_a_little();
    }
    return PO_OK;
}

/* Compilers take all processors, however few threads the model will run on. */
static uint32_t at_a_time(void) {
    cpu_set_t cpus;
    return sched_getaffinity(0, sizeof cpus, &cpus) == 0 && CPU_COUNT(&cpus) > 0
               ? (uint32_t)CPU_COUNT(&cpus)
               : 1;
}

/* What every command starts with; the file's own flags are the same for its header. */
static words command(work *w, const char *flags) {
    words to = {NULL, 0, 0};
    push(w, &to, "cc");
    push_all(w, &to, PO_CC_FLAGS " -w " LEAN);
    if (flags != NULL)
        push_all(w, &to, flags);
    return to;
}

static char **compile_command(work *w, const po_cc_source *source, const char *object) {
    words to = command(w, source->flags);
    if (source->header != NULL) {
        push(w, &to, "-include");
        push(w, &to, source->header);
    }
    if (w->left_out)
        push_all(w, &to, w->build->without);
    if (w->build->include_dir != NULL) {
        push(w, &to, "-I");
        push(w, &to, w->build->include_dir);
    }
    push(w, &to, "-c");
    push(w, &to, source->path);
    push(w, &to, "-o");
    push(w, &to, object);
    return ended(w, &to);
}

static char **link_command(work *w, uint32_t *n) {
    words to = {NULL, 0, 0};
    push(w, &to, "cc");
    push_all(w, &to, "-shared -o");
    push(w, &to, w->path);
    *n = 0;
    for (uint32_t i = 0; i < w->n; i++) {
        if ((w->build->failed && w->build->failed[i]) ||
            (w->left_out && i >= w->sure && i < w->behind))
            continue;
        push(w, &to, w->jobs[i].object);
        ++*n;
    }
    push(w, &to, "-lm");
    return ended(w, &to);
}

static void prepare(work *w, uint32_t from, uint32_t to) {
    for (uint32_t i = from; i < to; i++) {
        job *j = &w->jobs[i];
        j->object = po_arena_printf(w->arena, "%s.%u.o", w->path, i);
        j->log = po_arena_printf(w->arena, "%s.%u.log", w->path, i);
        j->argv = compile_command(w, &w->build->sources[i], j->object);
    }
}

/* All files, but for optional ones that there is no time for. */
static po_status compile_all(work *w) {
    const po_cc_source *sources = w->build->sources;
    w->sure = w->behind = w->n;
    for (uint32_t i = w->n; i-- > 0;)
        if (sources[i].optional)
            w->sure = i;
    for (uint32_t i = w->sure; i < w->n; i++)
        if (sources[i].optional)
            w->behind = i + 1;
    w->start = po_now();
    prepare(w, 0, w->behind);
    PO_TRY(run(w, 0, w->behind, at_a_time()));
    if (w->build->left_out)
        *w->build->left_out = w->left_out;
    prepare(w, w->behind, w->n);
    return run(w, w->behind, w->n, at_a_time());
}

static po_status library(work *w) {
    const char *so_path = w->build->so_path;
    char *path = po_arena_printf(w->arena, "%s.XXXXXX", so_path);
    int fd = mkstemp(path);
    if (fd < 0)
        return po_fail(w->ctx, PO_IO, "cannot write '%s': %s", so_path, strerror(errno));
    (void)close(fd);
    w->path = path;
    malloc_trim(0); /* what was freed here would lie beside what compilers hold */
    PO_TRY(compile_all(w));
    uint32_t n;
    w->jobs[w->n].argv = link_command(w, &n);
    w->jobs[w->n].log = po_arena_printf(w->arena, "%s.log", path);
    if (n == 0)
        return po_fail(w->ctx, PO_UNSUPPORTED, "C compiler '%s': no file compiles", w->cc);
    PO_TRY(run(w, w->n, w->n + 1, 1));
    /* mkstemp made it for its owner alone. */
    mode_t mask = umask(0);
    (void)umask(mask);
    (void)chmod(path, 0755 & ~mask);
    if (rename(path, so_path) != 0)
        return po_fail(w->ctx, PO_IO, "cannot write '%s': %s", so_path, strerror(errno));
    w->done = true;
    return PO_OK;
}

static work *work_of(po_ctx *ctx, const po_cc_build *build, uint32_t n) {
    po_arena *arena = po_arena_create(ctx);
    work *w = PO_NEW(arena, work);
    *w = (work){.ctx = ctx,
                .arena = arena,
                .build = build,
                .cc = build->cc,
                .n = n,
                .jobs = PO_NEW_N(arena, job, n + 1)};
    po_arena_defer(arena, clean, w);
    return w;
}

po_status po_cc_build_library(po_ctx *ctx, const po_cc_build *build) {
    work *w = work_of(ctx, build, build->n);
    po_status status = library(w);
    po_arena_free(w->arena);
    return status;
}

po_status po_cc_library(po_ctx *ctx, const char *cc, const po_cc_source *sources, uint32_t n,
                        const char *include_dir, const char *so_path) {
    po_cc_build build = {
        .cc = cc, .sources = sources, .n = n, .include_dir = include_dir, .so_path = so_path};
    return po_cc_build_library(ctx, &build);
}

po_status po_cc_header(po_ctx *ctx, const char *cc, const char *path, const char *flags) {
    po_cc_build build = {.cc = cc};
    work *w = work_of(ctx, &build, 0);
    words to = command(w, flags);
    char *made = po_arena_printf(w->arena, "%s.gch", path);
    push_all(w, &to, "-x c-header");
    push(w, &to, path);
    push(w, &to, "-o");
    push(w, &to, made);
    w->path = made;
    w->jobs[0].argv = ended(w, &to);
    w->jobs[0].log = po_arena_printf(w->arena, "%s.log", path);
    po_status status = run(w, 0, 1, 1);
    w->done = status == PO_OK;
    if (status == PO_UNSUPPORTED) {
        po_log(ctx, "headers are read as text: %s", ctx->error.message);
        po_ctx_clear(ctx);
        status = PO_OK;
    }
    po_arena_free(w->arena);
    return status;
}
