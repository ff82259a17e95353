/* Errors (the first one stays), log lines, clocks, time limits and memory guards of a context.
 * Control characters are replaced in every text that leaves it. */
#include "base/ctx.h"

#include "base/arena.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

void po_ctx_init(po_ctx *ctx) {
    memset(ctx, 0, sizeof *ctx);
    ctx->next_arena = 1;
    ctx->threads = 1;
}

/* Keeps bytes of UTF-8 sequences, replaces control characters. */
static void make_printable(char *text) {
    for (unsigned char *p = (unsigned char *)text; *p; p++)
        if (*p < 0x20 || *p == 0x7f)
            *p = '?';
}

po_status po_fail(po_ctx *ctx, po_status status, const char *format, ...) {
    if (ctx->error.status != PO_OK)
        return ctx->error.status;
    va_list args;
    va_start(args, format);
    vsnprintf(ctx->error.message, sizeof ctx->error.message, format, args);
    va_end(args);
    make_printable(ctx->error.message);
    ctx->error.status = status;
    return status;
}

void po_ctx_clear(po_ctx *ctx) {
    ctx->error.status = PO_OK;
    ctx->error.message[0] = '\0';
}

void po_log(po_ctx *ctx, const char *format, ...) {
    if (!ctx->log)
        return;
    char line[PO_MESSAGE_MAX];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    make_printable(line);
    ctx->log(ctx->log_user, line);
}

void po_step(po_ctx *ctx, double fraction, const char *format, ...) {
    if (!ctx->step)
        return;
    char what[PO_MESSAGE_MAX];
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    make_printable(what);
    ctx->step(ctx->step_user, what, fraction);
}

static double seconds_of(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

double po_now(void) {
    return seconds_of(CLOCK_MONOTONIC);
}

double po_thread_seconds(void) {
    return seconds_of(CLOCK_THREAD_CPUTIME_ID);
}

double po_process_seconds(void) {
    return seconds_of(CLOCK_PROCESS_CPUTIME_ID);
}

po_status po_ctx_poll(po_ctx *ctx) {
    if (ctx->cancel && atomic_load(ctx->cancel))
        return po_fail(ctx, PO_CANCELLED, "cancelled");
    if (ctx->deadline > 0 && po_now() > ctx->deadline)
        return po_fail(ctx, PO_TIME_LIMIT, "the time limit passed");
    return PO_OK;
}

po_limit po_limit_begin(po_ctx *ctx, double until) {
    po_limit limit = {ctx->deadline, 0};
    if (until > 0 && (limit.outer <= 0 || until < limit.outer))
        ctx->deadline = limit.own = until;
    return limit;
}

bool po_limit_end(po_ctx *ctx, const po_limit *limit, po_status *status) {
    ctx->deadline = limit->outer;
    if (*status != PO_TIME_LIMIT || limit->own <= 0 ||
        (limit->outer > 0 && po_now() >= limit->outer))
        return false;
    po_ctx_clear(ctx);
    *status = PO_OK;
    return true;
}

void po_guard_push(po_ctx *ctx, po_guard *guard) {
    guard->outer = ctx->guard;
    guard->mark = ctx->next_arena;
    ctx->guard = guard;
}

void po_guard_pop(po_ctx *ctx, po_guard *guard) {
    ctx->guard = guard->outer;
}

po_status po_guard_unwind(po_ctx *ctx, po_guard *guard) {
    po_arenas_free_since(ctx, guard->mark);
    ctx->guard = guard->outer;
    po_ctx_clear(ctx);
    return po_fail(ctx, PO_NO_MEMORY, "memory ran out");
}

const char *po_status_name(po_status status) {
    static const char *const names[] = {
        [PO_OK] = "ok",
        [PO_NOT_EQUAL] = "not equal",
        [PO_BAD_INPUT] = "bad input",
        [PO_BAD_USE] = "bad use",
        [PO_NOT_AVAILABLE] = "not available yet",
        [PO_UNSUPPORTED] = "unsupported",
        [PO_NO_MEMORY] = "out of memory",
        [PO_IO] = "input or output failed",
        [PO_RUNTIME] = "runtime failed",
        [PO_CANCELLED] = "cancelled",
        [PO_TIME_LIMIT] = "time limit",
        [PO_INTERNAL] = "internal check failed",
    };
    size_t i = (size_t)status;
    return i < sizeof names / sizeof names[0] && names[i] ? names[i] : "unknown status";
}
