/* A child process, what it sends, and what becomes of it. */
#include "cost/isolate.h"

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

/* What goes through the pipe: frames of a header and its bytes. */
typedef enum frame_kind { FRAME_DATA = 1, FRAME_LOG, FRAME_END } frame_kind;
typedef struct frame {
    uint32_t kind;
    uint32_t status; /* FRAME_END */
    uint64_t size;
} frame;

enum { TICK_MS = 50, EXIT_PIPE = 112 };

struct po_reply {
    int fd;
};

/* --- the child --- */

static void write_all(int fd, const void *data, size_t size) {
    const char *at = data;
    while (size > 0) {
        ssize_t n = write(fd, at, size);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            _exit(EXIT_PIPE); /* nobody listens any more */
        at += n;
        size -= (size_t)n;
    }
}

static void send_frame(int fd, frame_kind kind, po_status status, const void *data, size_t size) {
    frame head = {(uint32_t)kind, (uint32_t)status, size};
    write_all(fd, &head, sizeof head);
    write_all(fd, data, size);
}

void po_reply_add(po_reply *reply, const void *data, size_t size) {
    send_frame(reply->fd, FRAME_DATA, PO_OK, data, size);
}

void po_reply_log(po_reply *reply, const char *format, ...) {
    char line[PO_MESSAGE_MAX];
    va_list args;
    va_start(args, format);
    int n = vsnprintf(line, sizeof line, format, args);
    va_end(args);
    if (n > 0)
        send_frame(reply->fd, FRAME_LOG, PO_OK, line, strlen(line));
}

static void settle_child(pid_t parent) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(EXIT_PIPE); /* the caller was gone before the line above */
    /* The caller's handlers are not ours; Ctrl-C is the caller's to decide about. */
    for (int s = 1; s < NSIG; s++)
        signal(s, SIG_DFL);
    signal(SIGINT, SIG_IGN);
    signal(SIGPIPE, SIG_IGN);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    struct rlimit no_core = {0, 0};
    setrlimit(RLIMIT_CORE, &no_core);
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (null >= 0) {
        dup2(null, 0);
        dup2(null, 1);
        dup2(null, 2);
        if (null > 2)
            close(null);
    }
}

__attribute__((noreturn)) static void run_child(const po_ctx *outer, int fd, pid_t parent,
                                                po_child_fn fn, void *user) {
    settle_child(parent);
    /* On the heap: what follows setjmp must not live in this frame's registers. */
    struct {
        po_ctx ctx;
        po_guard guard;
        po_reply reply;
    } *me = calloc(1, sizeof *me);
    if (!me)
        _exit(EXIT_PIPE);
    po_ctx_init(&me->ctx);
    me->ctx.deadline = outer->deadline;
    me->ctx.threads = outer->threads;
    me->reply.fd = fd;
    po_guard_push(&me->ctx, &me->guard);
    po_status status;
    if (setjmp(me->guard.env) != 0) {
        status = po_guard_unwind(&me->ctx, &me->guard);
    } else {
        po_arena *arena = po_arena_create(&me->ctx);
        status = fn(&me->ctx, arena, &me->reply, user);
        if (status != PO_OK && me->ctx.error.status == PO_OK)
            po_fail(&me->ctx, status, "%s", po_status_name(status));
    }
    const char *message = me->ctx.error.message;
    send_frame(fd, FRAME_END, status, message, status == PO_OK ? 0 : strlen(message));
    _exit(0); /* neither the caller's exit handlers nor the runtime's destructors run */
}

/* --- the caller --- */

typedef struct collected {
    char *data;
    size_t size, capacity;
} collected;

static void free_collected(void *user) {
    free(((collected *)user)->data);
}

static bool collect(collected *c, const char *data, size_t size) {
    if (size > c->capacity - c->size) {
        size_t capacity = c->capacity ? c->capacity : 4096;
        while (capacity - c->size < size) {
            if (capacity > SIZE_MAX / 4)
                return false;
            capacity *= 2;
        }
        char *grown = realloc(c->data, capacity);
        if (!grown)
            return false;
        c->data = grown;
        c->capacity = capacity;
    }
    memcpy(c->data + c->size, data, size);
    c->size += size;
    return true;
}

/* Takes whole frames off the front of `raw`. Sets *end once FRAME_END was seen. False: the bytes
 * make no sense or memory ran out. */
static bool take_frames(po_ctx *ctx, collected *raw, collected *data, bool *end, po_status *status,
                        char *message) {
    size_t at = 0;
    while (!*end && raw->size - at >= sizeof(frame)) {
        frame head;
        memcpy(&head, raw->data + at, sizeof head);
        if (head.size > raw->size - at - sizeof head)
            break;
        const char *bytes = raw->data + at + sizeof head;
        size_t shown = head.size < PO_MESSAGE_MAX - 1 ? (size_t)head.size : PO_MESSAGE_MAX - 1;
        switch (head.kind) {
        case FRAME_DATA:
            if (!collect(data, bytes, (size_t)head.size))
                return false;
            break;
        case FRAME_LOG:
            po_log(ctx, "%.*s", (int)shown, bytes);
            break;
        case FRAME_END:
            memcpy(message, bytes, shown);
            message[shown] = '\0';
            *status = (po_status)head.status;
            *end = true;
            break;
        default:
            return false;
        }
        at += sizeof head + (size_t)head.size;
    }
    if (at > 0)
        memmove(raw->data, raw->data + at, raw->size - at);
    raw->size -= at;
    return true;
}

/* Waits for the child, which ended or was killed. -1: someone else has reaped it. */
static int reap(pid_t pid) {
    int how = 0;
    while (waitpid(pid, &how, 0) < 0)
        if (errno != EINTR)
            return -1;
    return how;
}

static po_status died(po_ctx *ctx, const char *what, int how) {
    if (how >= 0 && WIFSIGNALED(how))
        return po_fail(ctx, PO_RUNTIME, "%s: the runtime's process was ended by signal %d (%s)",
                       what, WTERMSIG(how),
                       WTERMSIG(how) == SIGKILL ? "killed, perhaps for memory" : "crashed");
    return po_fail(ctx, PO_RUNTIME, "%s: the runtime's process ended without an answer (code %d)",
                   what, how >= 0 && WIFEXITED(how) ? WEXITSTATUS(how) : -1);
}

/* Reads until the child has said its last. Returns what to report; *alive: it must be killed. */
static po_status listen_to(po_ctx *ctx, const char *what, double seconds, int fd, pid_t pid,
                           collected *raw, collected *data, bool *reaped) {
    char buffer[1 << 16];
    char message[PO_MESSAGE_MAX];
    double until = seconds > 0 ? po_now() + seconds : 0;
    bool end = false;
    po_status status = PO_OK;
    int how = -1;
    while (!end) {
        PO_TRY(po_ctx_poll(ctx));
        if (until > 0 && po_now() > until)
            return po_fail(ctx, PO_RUNTIME, "%s: no answer within %.0f s", what, seconds);
        struct pollfd waited = {.fd = fd, .events = POLLIN};
        int ready = poll(&waited, 1, TICK_MS);
        if (ready < 0 && errno != EINTR)
            return po_fail(ctx, PO_IO, "%s: poll failed: %s", what, strerror(errno));
        if (ready <= 0) {
            /* A sibling process may hold the pipe open: ask for the child itself. */
            if (!*reaped) {
                pid_t gone = waitpid(pid, &how, WNOHANG);
                *reaped = gone == pid || (gone < 0 && errno == ECHILD);
                how = gone == pid ? how : -1;
            } else {
                return died(ctx, what, how); /* dead, and the pipe is drained */
            }
            continue;
        }
        ssize_t n = read(fd, buffer, sizeof buffer);
        if (n < 0 && (errno == EINTR || errno == EAGAIN))
            continue;
        if (n < 0) /* the child may be waiting for room in the pipe: it is not waited for */
            return po_fail(ctx, PO_IO, "%s: its answer cannot be read (%s)", what, strerror(errno));
        if (n == 0) {
            if (!*reaped) {
                how = reap(pid);
                *reaped = true;
            }
            return died(ctx, what, how);
        }
        if (!collect(raw, buffer, (size_t)n) ||
            !take_frames(ctx, raw, data, &end, &status, message))
            return po_fail(ctx, PO_NO_MEMORY, "%s: memory ran out", what);
    }
    return status == PO_OK ? PO_OK : po_fail(ctx, status, "%s", message);
}

po_status po_isolate(po_ctx *ctx, po_arena *arena, const char *what, double seconds, po_child_fn fn,
                     void *user, po_bytes *data) {
    /* Made before the fork: from there on nothing here may unwind. */
    collected *raw = PO_NEW(arena, collected), *sent = PO_NEW(arena, collected);
    po_arena_defer(arena, free_collected, raw);
    po_arena_defer(arena, free_collected, sent);
    PO_TRY(po_ctx_poll(ctx));
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0)
        return po_fail(ctx, PO_IO, "%s: no pipe: %s", what, strerror(errno));
    pid_t parent = getpid();
#ifdef __GLIBC__
    malloc_trim(0); /* the child holds what is held here */
#endif
    pid_t pid = fork();
    if (pid < 0) {
        po_status status = po_fail(ctx, PO_IO, "%s: no process: %s", what, strerror(errno));
        close(ends[0]);
        close(ends[1]);
        return status;
    }
    if (pid == 0) {
        close(ends[0]);
        /* The standard descriptors may be closed in the caller: keep the pipe clear of them. */
        int fd = ends[1] > 2 ? ends[1] : fcntl(ends[1], F_DUPFD_CLOEXEC, 3);
        if (fd < 0)
            _exit(EXIT_PIPE);
        run_child(ctx, fd, parent, fn, user);
    }
    close(ends[1]);
    bool reaped = false;
    po_status status = listen_to(ctx, what, seconds, ends[0], pid, raw, sent, &reaped);
    if (!reaped) {
        kill(pid, SIGKILL); /* it has nothing more to say, or must stop */
        reap(pid);
    }
    close(ends[0]);
    if (data)
        *data = (po_bytes){sent->data, sent->size};
    return status;
}
