#include "pipeline/candidates.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

static void close_descriptor(void *user) {
    const int *fd = user;
    if (*fd >= 0)
        close(*fd);
}

po_status po_candidate_write(po_ctx *ctx, po_arena *arena, const po_graph *graph, const char **path,
                             po_hash *hash) {
    int *slot = PO_NEW(arena, int);
    *slot = -1;
    po_arena_defer(arena, close_descriptor, slot);
    int fd = *slot = memfd_create("petopt", MFD_CLOEXEC);
    if (fd < 0)
        return po_fail(ctx, PO_IO, "no memory file for a candidate (%s)", strerror(errno));
    po_export_options options = {.hash = true};
    po_export_result result;
    PO_TRY(po_export_fd(ctx, graph, fd, &options, &result));
    *path = po_arena_printf(arena, "/proc/self/fd/%d", fd);
    *hash = result.model_hash;
    return PO_OK;
}
