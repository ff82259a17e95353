/* Candidates as files in memory that the runtime loads. */
#include "pipeline/candidates.h"

#include "import/import.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#define COPIED_AT_MOST ((uint64_t)32 << 20)

static void close_descriptor(void *user) {
    const int *fd = user;
    if (*fd >= 0)
        close(*fd);
}

void po_candidate_store_init(po_candidate_store *store, po_arena *arena) {
    *store = (po_candidate_store){.arena = arena, .known = po_map_create(arena)};
}

po_side_files po_candidate_files(const po_candidate_store *store) {
    return (po_side_files){store->n,     store->names,    store->data,
                           store->sizes, store->n_mapped, store->mapped};
}

static uint64_t weight_bytes(const po_graph *graph) {
    uint64_t sum = 0;
    for (po_value_id v = 0; v < graph->n_values; v++)
        if (graph->values[v].constant)
            sum += graph->values[v].constant->size;
    return sum;
}

static void add_weights(po_candidate_store *store, const po_weight *weights, uint32_t n) {
    for (uint32_t i = 0; i < n; i++) {
        if (po_map_get(store->known, weights[i].location) != PO_NONE)
            continue;
        po_map_put(store->known, weights[i].location, store->n);
        uint32_t names = store->n, sizes = store->n;
        PO_PUSH(store->arena, store->names, names, store->cap_names, weights[i].location);
        PO_PUSH(store->arena, store->sizes, sizes, store->cap_sizes, weights[i].size);
        PO_PUSH(store->arena, store->data, store->n, store->cap_data, weights[i].data);
    }
}

po_status po_candidate_write(po_ctx *ctx, po_candidate_store *store, const po_graph *graph,
                             po_candidate *candidate) {
    int *slot = PO_NEW(store->arena, int);
    *slot = -1;
    po_arena_defer(store->arena, close_descriptor, slot);
    int fd = *slot = memfd_create("petopt", MFD_CLOEXEC);
    if (fd < 0)
        return po_fail(ctx, PO_IO, "no memory file for a candidate (%s)", strerror(errno));
    candidate->whole = weight_bytes(graph) <= COPIED_AT_MOST;
    if (candidate->whole) {
        PO_TRY(po_export_fd(ctx, graph, fd, NULL, NULL));
    } else {
        const po_weight *weights = NULL;
        uint32_t n = 0;
        PO_TRY(po_export_split(ctx, store->arena, graph, fd, NULL, &weights, &n, NULL));
        add_weights(store, weights, n);
        store->mapped = po_import_contents(graph->model, &store->n_mapped);
    }
    /* Of the graph, not of the file: where a split model's weights lie differs from run to run. */
    PO_TRY(po_export_hash(ctx, graph, &candidate->hash));
    candidate->path = po_arena_printf(store->arena, "/proc/self/fd/%d", fd);
    return PO_OK;
}

po_status po_candidate_original(po_ctx *ctx, po_candidate_store *store, const po_graph *original,
                                const char **path) {
    po_candidate made = {.path = original->model->path};
    if (!made.path)
        PO_TRY(po_candidate_write(ctx, store, original, &made));
    *path = made.path;
    return PO_OK;
}
