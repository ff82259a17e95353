/* Any bytes: import either refuses them in one sentence or gives a graph that keeps its invariants
 * and that export writes so that it can be read again. */
#include "export/export.h"
#include "import/import.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static po_status import(po_ctx *ctx, const uint8_t *data, size_t size, po_model **model) {
    po_guard guard;
    *model = NULL;
    po_guard_push(ctx, &guard);
    if (setjmp(guard.env) != 0)
        return po_guard_unwind(ctx, &guard);
    po_status status = po_import_bytes(ctx, data, size, model);
    po_guard_pop(ctx, &guard);
    return status;
}

static void require(bool right) {
    if (!right)
        abort();
}

/* Writes the graph, reads it back and writes it again: the same bytes. */
static void round_trip(po_ctx *ctx, const po_graph *graph) {
    int fd = memfd_create("fuzz", MFD_CLOEXEC);
    po_export_result r;
    po_export_options o = {.hash = true};
    require(po_export_fd(ctx, graph, fd, &o, &r) == PO_OK);
    uint8_t *copy = malloc(r.model_bytes ? r.model_bytes : 1);
    require(copy && pread(fd, copy, r.model_bytes, 0) == (ssize_t)r.model_bytes);
    close(fd);
    po_model *again;
    require(import(ctx, copy, r.model_bytes, &again) == PO_OK);
    require(again->graph->n_nodes == graph->n_nodes);
    require(again->graph->n_values == graph->n_values);
    po_hash hash;
    require(po_export_hash(ctx, again->graph, &hash) == PO_OK);
    require(po_hash_equal(hash, r.model_hash));
    po_model_free(again);
    free(copy);
}

/* With its functions inlined the graph keeps its invariants and can be written. */
static void inline_functions(po_ctx *ctx, const po_graph *graph) {
    po_graph *clone = po_graph_clone(ctx, graph);
    po_hash hash;
    require(po_inline_functions(ctx, clone, NULL, NULL) == PO_OK);
    require(po_graph_check(ctx, clone) == PO_OK);
    require(po_export_hash(ctx, clone, &hash) == PO_OK);
    po_graph_free(clone);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    po_ctx ctx;
    po_model *model;
    po_ctx_init(&ctx);
    po_status status = import(&ctx, data, size, &model);
    require(status == PO_OK || status == PO_BAD_INPUT || status == PO_NO_MEMORY);
    require((status == PO_OK) == (ctx.error.message[0] == '\0'));
    if (status == PO_OK) {
        require(po_graph_check(&ctx, model->graph) == PO_OK);
        round_trip(&ctx, model->graph);
        inline_functions(&ctx, model->graph);
        po_model_free(model);
    }
    require(ctx.arenas == NULL);
    return 0;
}
