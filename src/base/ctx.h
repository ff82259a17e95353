/* The context of one API call: its error, its memory guard, its cancel flag and time limit.
 *
 * Every internal function that can fail takes a po_ctx first and returns a po_status; the
 * message of the first failure is kept in the context. Memory is different: arenas never
 * return NULL. When memory runs out the arena unwinds to the guard of the API call, which
 * frees every arena made since and returns PO_NO_MEMORY (docs/memory.md). */
#ifndef PO_BASE_CTX_H
#define PO_BASE_CTX_H

#include "petopt.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>

typedef struct po_arena po_arena;
typedef struct po_ctx po_ctx;

/* Where an exhausted arena returns to. Lives in the frame of the API function. */
typedef struct po_guard {
    jmp_buf env;
    struct po_guard *outer;
    uint64_t mark; /* arenas with a larger serial were made under this guard */
} po_guard;

/* Called with one line, without newline, for -v output. */
typedef void (*po_log_fn)(void *user, const char *line);
/* Called with what is being tried and how far the stage under way has come, 0 to 1. */
typedef void (*po_step_fn)(void *user, const char *what, double fraction);

struct po_ctx {
    po_error error;
    po_guard *guard;
    po_arena *arenas;          /* live arenas, newest first */
    uint64_t next_arena;       /* serial for the next arena */
    const atomic_bool *cancel; /* set by the caller to stop; may be NULL */
    double deadline;           /* monotonic seconds; 0: none */
    po_log_fn log;             /* may be NULL */
    void *log_user;
    po_step_fn step; /* may be NULL */
    void *step_user;
    uint32_t threads; /* worker threads that may be used; at least 1 */
    bool in_task;     /* of a task (base/tasks.h) */
    bool lent;        /* tasks are at work: no arena of this context may be touched meanwhile */
};

/* Prepares a context: no error, no guard, no limits, one thread. */
void po_ctx_init(po_ctx *ctx);

/* Records a failure and returns its status. The first failure stays: a later one, met while
 * the first is passed upwards, does not replace it. Control characters in the formatted
 * text are replaced, so that names from a hostile model cannot drive the terminal. */
__attribute__((format(printf, 3, 4))) po_status po_fail(po_ctx *ctx, po_status status,
                                                        const char *format, ...);

/* Forgets a recorded failure: for callers that can go on without what failed. */
void po_ctx_clear(po_ctx *ctx);

/* Prints one line to the context's log, if it has one. */
__attribute__((format(printf, 2, 3))) void po_log(po_ctx *ctx, const char *format, ...);

/* Tells the context's listener, if it has one, what is being tried; fraction 0 to 1. */
__attribute__((format(printf, 3, 4))) void po_step(po_ctx *ctx, double fraction, const char *format,
                                                   ...);

/* Returns PO_CANCELLED or PO_TIME_LIMIT (recorded) where the call should stop, else PO_OK. */
po_status po_ctx_poll(po_ctx *ctx);

/* A part of a call that has a time limit of its own:
 *     po_limit limit = po_limit_begin(ctx, until);
 *     po_status status = part(ctx);
 *     bool cut = po_limit_end(ctx, &limit, &status);
 * `until` as po_now counts; 0: none but the context's, which holds whatever it says. */
typedef struct po_limit {
    double outer, own;
} po_limit;
po_limit po_limit_begin(po_ctx *ctx, double until);
/* The context's limit is again what it was. True where the part's own limit stopped it: *status is
 * PO_OK then and nothing is recorded. */
bool po_limit_end(po_ctx *ctx, const po_limit *limit, po_status *status);

/* Monotonic time in seconds. */
double po_now(void);
/* Processor time that this thread, or all of the process, has used: what else the machine does in
 * the meantime does not count. */
double po_thread_seconds(void);
double po_process_seconds(void);

/* Passes a failure on to the caller. */
#define PO_TRY(call)                                                                               \
    do {                                                                                           \
        po_status po_try_status_ = (call);                                                         \
        if (po_try_status_ != PO_OK)                                                               \
            return po_try_status_;                                                                 \
    } while (0)

/* Guards are used so, in API functions and nowhere else:
 *     po_guard guard;
 *     po_guard_push(ctx, &guard);
 *     if (setjmp(guard.env) != 0)
 *         return po_guard_unwind(ctx, &guard);
 *     ...
 *     po_guard_pop(ctx, &guard);
 */
void po_guard_push(po_ctx *ctx, po_guard *guard);
void po_guard_pop(po_ctx *ctx, po_guard *guard);
/* Frees every arena made under the guard, pops it and records PO_NO_MEMORY. */
po_status po_guard_unwind(po_ctx *ctx, po_guard *guard);

#endif
