/* Any text that is a graph: exported and imported again it is equal, or import refuses what the
 * text says in one sentence. */
#include "export/export.h"
#include "import/import.h"
#include "ir/text.h"
#include "ops/op.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool right) {
    if (!right)
        abort();
}

static void round_trip(po_ctx *ctx, const char *text) {
    po_graph *graph;
    po_model *again;
    po_export_result r, second;
    po_export_options o = {.hash = true};
    if (po_graph_parse(ctx, text, &graph) != PO_OK) {
        po_ctx_clear(ctx);
        return;
    }
    po_ops_resolve(graph);
    int fd = memfd_create("fuzz", MFD_CLOEXEC);
    po_status status = po_export_fd(ctx, graph, fd, &o, &r);
    uint8_t *copy = malloc(status == PO_OK && r.model_bytes ? r.model_bytes : 1);
    require(copy != NULL);
    if (status == PO_OK)
        require(pread(fd, copy, r.model_bytes, 0) == (ssize_t)r.model_bytes);
    close(fd);
    if (status == PO_OK && po_import_bytes(ctx, copy, r.model_bytes, &again) == PO_OK) {
        require(po_graph_check(ctx, again->graph) == PO_OK);
        require(po_graph_equal(graph, again->graph));
        fd = memfd_create("fuzz", MFD_CLOEXEC);
        require(po_export_fd(ctx, again->graph, fd, &o, &second) == PO_OK);
        close(fd);
        po_model_free(again);
    } else {
        require(ctx->error.message[0] != '\0');
    }
    po_ctx_clear(ctx);
    free(copy);
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
        round_trip(&ctx, input);
        po_guard_pop(&ctx, &guard);
        po_arenas_free_since(&ctx, 0);
    } else {
        po_guard_unwind(&ctx, &guard);
    }
    free(input);
    return 0;
}
