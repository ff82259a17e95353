#include "onnx/onnx.h"

#include <stdio.h>

/* Longer names are cut: a message is one line. */
enum { LONGEST_NAME = 120 };

static void print_place(po_text *text, const po_place *place) {
    if (place->outer)
        print_place(text, place->outer);
    if (!place->what)
        return;
    if (text->size)
        po_text_puts(text, "/");
    po_text_puts(text, place->what);
    if (place->index >= 0)
        po_text_printf(text, "[%lld]", (long long)place->index);
    if (place->name && *place->name)
        po_text_printf(text, " '%.*s'", LONGEST_NAME, place->name);
}

static const char *describe(po_arena *arena, const po_place *place) {
    po_text text;
    po_text_init(&text, arena);
    po_text_puts(&text, "");
    if (place)
        print_place(&text, place);
    /* Of a deep place the ends tell the most. */
    if (text.size > 400)
        return po_arena_printf(arena, "%.120s ... %s", text.data, text.data + text.size - 260);
    return text.size ? text.data : "model";
}

po_status po_fail_at(po_ctx *ctx, const char *file, const po_place *place, po_status status,
                     const char *format, ...) {
    po_arena *scratch = po_arena_create(ctx);
    char reason[512];
    va_list args;
    va_start(args, format);
    vsnprintf(reason, sizeof reason, format, args);
    va_end(args);
    status = po_fail(ctx, status, "%.300s: %s: %s", file, describe(scratch, place), reason);
    po_arena_free(scratch);
    return status;
}

po_status po_fail_again_at(po_ctx *ctx, const char *file, const po_place *place) {
    po_error error = ctx->error;
    po_ctx_clear(ctx);
    return po_fail_at(ctx, file, place, error.status, "%.500s", error.message);
}

void po_warn_at(po_ctx *ctx, const char *file, const po_place *place, const char *format, ...) {
    if (!ctx->log)
        return;
    po_arena *scratch = po_arena_create(ctx);
    char reason[512];
    va_list args;
    va_start(args, format);
    vsnprintf(reason, sizeof reason, format, args);
    va_end(args);
    po_log(ctx, "%.300s: %s: %s", file, describe(scratch, place), reason);
    po_arena_free(scratch);
}
