/* Tasks dealt out to threads, each with a context of its own. */
#include "base/tasks.h"

#include "base/arena.h"
#include "base/str.h"

#include <pthread.h>
#include <sched.h>

enum { MOST_THREADS = 64 };

typedef struct task {
    po_status status;
    po_error error;
    const char **lines;
    uint32_t n, cap;
} task;

typedef struct crew {
    po_task_fn fn;
    void *user;
    task *tasks;
    uint32_t n;
    atomic_uint next;
} crew;

typedef struct worker {
    crew *crew;
    po_ctx ctx;
    po_arena *arena; /* of the lines */
    task *task;      /* under way */
    pthread_t thread;
    bool started;
} worker;

static void keep_line(void *user, const char *line) {
    worker *w = user;
    task *t = w->task;
    PO_PUSH(w->arena, t->lines, t->n, t->cap, po_arena_strdup(w->arena, line));
}

static void run_one(worker *w, uint32_t i) {
    po_guard guard;
    w->task = &w->crew->tasks[i];
    po_guard_push(&w->ctx, &guard);
    if (setjmp(guard.env) != 0) {
        w->task->status = po_guard_unwind(&w->ctx, &guard);
    } else {
        w->task->status = po_ctx_poll(&w->ctx);
        if (w->task->status == PO_OK)
            w->task->status = w->crew->fn(&w->ctx, w->crew->user, i);
        po_guard_pop(&w->ctx, &guard);
    }
    w->task->error = w->ctx.error;
    po_ctx_clear(&w->ctx);
}

static void *work(void *user) {
    worker *w = user;
    po_guard guard;
    po_guard_push(&w->ctx, &guard);
    if (setjmp(guard.env) != 0) {
        po_guard_unwind(&w->ctx, &guard);
        return NULL;
    }
    w->arena = po_arena_create(&w->ctx);
    for (uint32_t i; (i = atomic_fetch_add(&w->crew->next, 1)) < w->crew->n;)
        run_one(w, i);
    po_guard_pop(&w->ctx, &guard);
    return NULL;
}

static uint32_t processors(void) {
    cpu_set_t cpus;
    int count = sched_getaffinity(0, sizeof cpus, &cpus) == 0 ? CPU_COUNT(&cpus) : 1;
    return count < 1 ? 1 : count > MOST_THREADS ? MOST_THREADS : (uint32_t)count;
}

po_status po_tasks_run(po_ctx *ctx, uint32_t n, po_task_fn fn, void *user) {
    uint32_t threads = processors();
    if (ctx->in_task || n <= 1 || threads == 1) {
        for (uint32_t i = 0; i < n; i++) {
            PO_TRY(po_ctx_poll(ctx));
            PO_TRY(fn(ctx, user, i));
        }
        return PO_OK;
    }
    PO_TRY(po_ctx_poll(ctx));
    po_arena *arena = po_arena_create(ctx);
    crew c = {.fn = fn, .user = user, .tasks = PO_NEW_N(arena, task, n), .n = n};
    for (uint32_t i = 0; i < n; i++) /* where no thread has the memory to begin it */
        c.tasks[i] = (task){.status = PO_NO_MEMORY, .error = {.message = "memory ran out"}};
    threads = threads < n ? threads : n;
    worker *workers = PO_NEW_N(arena, worker, threads);
    for (uint32_t i = 0; i < threads; i++) {
        worker *w = &workers[i];
        w->crew = &c;
        po_ctx_init(&w->ctx);
        w->ctx.cancel = ctx->cancel;
        w->ctx.deadline = ctx->deadline;
        w->ctx.threads = ctx->threads;
        w->ctx.in_task = true;
        if (ctx->log) {
            w->ctx.log = keep_line;
            w->ctx.log_user = w;
        }
    }
    ctx->lent = true;
    for (uint32_t i = 1; i < threads; i++)
        workers[i].started = pthread_create(&workers[i].thread, NULL, work, &workers[i]) == 0;
    work(&workers[0]);
    for (uint32_t i = 1; i < threads; i++)
        if (workers[i].started)
            pthread_join(workers[i].thread, NULL);
    ctx->lent = false;
    po_status status = PO_OK;
    for (uint32_t i = 0; i < n && status == PO_OK; i++) {
        for (uint32_t k = 0; k < c.tasks[i].n; k++)
            po_log(ctx, "%s", c.tasks[i].lines[k]);
        if (c.tasks[i].status != PO_OK)
            status = po_fail(ctx, c.tasks[i].status, "%s", c.tasks[i].error.message);
    }
    for (uint32_t i = 0; i < threads; i++)
        po_arenas_free_since(&workers[i].ctx, 0);
    po_arena_free(arena);
    return status;
}
