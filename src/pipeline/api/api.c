/* Runs the body of an API call under a guard, which frees its arenas however it ends, and copies
 * its error to the caller. Also cancel flags and the version. */
#include "pipeline/api/api.h"

#include "po_config.h"

#include <stdio.h>
#include <stdlib.h>

const char *po_version(void) {
    return PO_VERSION;
}

po_status po_api_error(po_error *error, po_status status, const char *format, ...) {
    if (error) {
        va_list args;
        va_start(args, format);
        vsnprintf(error->message, sizeof error->message, format, args);
        va_end(args);
        error->status = status;
    }
    return status;
}

po_status po_api_call(po_ctx *ctx, po_api_body body, void *args, po_error *error) {
    po_guard guard;
    po_guard_push(ctx, &guard);
    po_status status;
    if (setjmp(guard.env) != 0) {
        status = po_guard_unwind(ctx, &guard);
    } else {
        status = body(ctx, args);
        po_arenas_free_since(ctx, guard.mark);
        po_guard_pop(ctx, &guard);
    }
    if (status != PO_OK && ctx->error.status == PO_OK)
        po_fail(ctx, status, "%s", po_status_name(status));
    if (error) {
        if (status == PO_OK)
            memset(error, 0, sizeof *error);
        else
            *error = ctx->error;
        error->status = status;
    }
    return status;
}

void po_api_context(po_ctx *ctx, const po_callbacks *callbacks) {
    po_ctx_init(ctx);
    if (!callbacks)
        return;
    ctx->log = callbacks->log;
    ctx->log_user = callbacks->user;
    if (callbacks->cancel)
        ctx->cancel = &callbacks->cancel->raised;
}

po_cancel *po_cancel_create(void) {
    po_cancel *cancel = malloc(sizeof *cancel);
    if (cancel)
        atomic_init(&cancel->raised, false);
    return cancel;
}

void po_cancel_raise(po_cancel *cancel) {
    atomic_store(&cancel->raised, true);
}

void po_cancel_free(po_cancel *cancel) {
    free(cancel);
}

void po_string_free(char *text) {
    free(text);
}
