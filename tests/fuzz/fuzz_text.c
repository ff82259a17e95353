/* Any text: the readers of graphs, of indexed sums and of R/T either refuse it, or what they read
 * prints as text that reads the same. */
#include "ir/text.h"
#include "ops/move/rt.h"
#include "ops/sum/sum.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool right) {
    if (!right)
        abort();
}

static void graphs(po_ctx *ctx, const char *input) {
    po_graph *graph, *again;
    po_text text, second;
    po_print_options options = {.most_items = 8, .all_data = true};
    if (po_graph_parse(ctx, input, &graph) != PO_OK) {
        po_ctx_clear(ctx);
        return;
    }
    po_text_init(&text, graph->arena);
    po_graph_print_as(&text, graph, options);
    require(po_graph_parse(ctx, text.data, &again) == PO_OK);
    require(po_graph_equal(graph, again));
    po_text_init(&second, graph->arena);
    po_graph_print_as(&second, again, options);
    require(strcmp(text.data, second.data) == 0);
}

static void sums(po_ctx *ctx, const char *input) {
    po_arena *arena = po_arena_create(ctx);
    po_scan scan;
    po_sum *sum, *again;
    po_text text;
    po_scan_init(&scan, ctx, arena, input);
    if (po_sum_parse(&scan, &sum) != PO_OK) {
        po_ctx_clear(ctx);
        return;
    }
    po_text_init(&text, arena);
    po_sum_print(&text, sum);
    po_scan_init(&scan, ctx, arena, text.data);
    require(po_sum_parse(&scan, &again) == PO_OK);
    require(po_sum_equal(sum, again));
    if (po_sum_normalize(sum) == PO_OK && po_sum_normalize(again) == PO_OK)
        require(po_sum_equal(sum, again));
}

static void moves(po_ctx *ctx, const char *input, uint32_t rank, const int64_t *dims) {
    po_arena *arena = po_arena_create(ctx);
    const po_rt *rt, *again, *back;
    po_text text;
    if (po_rt_parse(ctx, arena, input, rank, dims, &rt) != PO_OK) {
        po_ctx_clear(ctx);
        return;
    }
    po_text_init(&text, arena);
    po_rt_print(&text, rt, dims == NULL);
    require(po_rt_parse(ctx, arena, text.data, rank, dims, &again) == PO_OK);
    require(po_rt_equal(rt, again));
    again = po_rt_of_sum(arena, po_rt_sum(arena, rt));
    require(again && po_rt_equal(rt, again));
    if ((back = po_rt_invert(arena, rt)))
        require((again = po_rt_compose(arena, rt, back)) && po_rt_is_identity(again));
    po_rt_nodes(arena, rt);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    po_ctx ctx;
    po_guard guard;
    po_ctx_init(&ctx);
    char *input = malloc(size + 1);
    require(input != NULL);
    memcpy(input, data, size);
    input[size] = '\0';
    static const int64_t dims[4] = {3, 2, 8, 5};
    po_guard_push(&ctx, &guard);
    if (setjmp(guard.env) == 0) {
        graphs(&ctx, input);
        sums(&ctx, input);
        moves(&ctx, input, 0, NULL);
        moves(&ctx, input, 4, dims);
        po_guard_pop(&ctx, &guard);
        po_arenas_free_since(&ctx, 0);
    } else {
        po_guard_unwind(&ctx, &guard);
    }
    free(input);
    return 0;
}
