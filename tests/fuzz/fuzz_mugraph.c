/* Any text: the reader of muGraphs either refuses it, or what it reads prints as text that reads
 * the same. */
#include "mugraph/mugraph.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool right) {
    if (!right)
        abort();
}

static void mugraphs(po_ctx *ctx, const char *input) {
    po_arena *arena = po_arena_create(ctx);
    po_mu *mu, *again;
    po_text first, second;
    if (po_mu_parse(ctx, arena, input, &mu) != PO_OK) {
        po_ctx_clear(ctx);
        return;
    }
    po_text_init(&first, arena);
    po_text_init(&second, arena);
    po_mu_print(&first, mu);
    require(po_mu_parse(ctx, arena, first.data, &again) == PO_OK);
    po_mu_print(&second, again);
    require(strcmp(first.data, second.data) == 0);
    require(po_mu_equal(mu, again));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    po_ctx ctx;
    po_guard guard;
    po_ctx_init(&ctx);
    char *input = malloc(size + 1);
    require(input != NULL);
    memcpy(input, data, size);
    input[size] = '\0';
    po_guard_push(&ctx, &guard);
    if (setjmp(guard.env) == 0) {
        mugraphs(&ctx, input);
        po_guard_pop(&ctx, &guard);
        po_arenas_free_since(&ctx, 0);
    } else {
        po_guard_unwind(&ctx, &guard);
    }
    free(input);
    return 0;
}
