/* Any bytes as a tensor of --check-data: refused in one sentence, or a tensor of the input's type.
 */
#include "base/arena.h"
#include "ir/text.h"
#include "pipeline/api/check_data.h"
#include "scratch.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const graphs[] = {
    "graph g (x: f32[2,3]) -> (x) {\n}\n", "graph g (x: i64[\"n\"]) -> (x) {\n}\n",
    "graph g (x: str[2]) -> (x) {\n}\n",   "graph g (x: u4[3]) -> (x) {\n}\n",
    "graph g (x: bool[]) -> (x) {\n}\n",   "graph g (x: bf16[?,2]) -> (x) {\n}\n",
};

static void require(bool right) {
    if (!right)
        abort();
}

static void read_as(po_ctx *ctx, po_arena *arena, const char *text) {
    po_graph *graph;
    const po_check_set *sets;
    uint32_t n;
    require(po_graph_parse(ctx, text, &graph) == PO_OK);
    po_status status = po_check_data_read(ctx, arena, scratch_folder(), graph, &sets, &n);
    require(status == PO_OK || status == PO_BAD_INPUT || status == PO_NO_MEMORY);
    require((status == PO_OK) == (ctx->error.message[0] == '\0'));
    if (status == PO_OK) {
        const po_tensor *t = sets[0].data[0].tensor;
        uint64_t sum = 0;
        require(n == 1 && t->dtype == graph->values[graph->inputs[0]].type.dtype);
        for (size_t i = 0; i < t->size; i++)
            sum += ((const uint8_t *)t->data)[i];
        require(sum < UINT64_MAX);
    }
    po_ctx_clear(ctx);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    po_ctx ctx;
    po_guard guard;
    char path[4096];
    po_ctx_init(&ctx);
    scratch_write("input_0.pb", data, size, path);
    po_guard_push(&ctx, &guard);
    if (setjmp(guard.env) == 0) {
        po_arena *arena = po_arena_create(&ctx);
        for (size_t i = 0; i < sizeof graphs / sizeof graphs[0]; i++)
            read_as(&ctx, arena, graphs[i]);
        po_guard_pop(&ctx, &guard);
        po_arenas_free_since(&ctx, 0);
    } else {
        po_guard_unwind(&ctx, &guard);
    }
    return 0;
}
