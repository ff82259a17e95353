/* What a mutant becomes: of many that become the same operators, few need to be measured. */
#include "ops/conv_view.h"
#include "ops/rewrite.h"
#include "ops/window.h"
#include "pipeline/search/search.h"

/* A window: its extents, and whether it has steps. */
static po_hash window_hash(const po_graph *g, const po_node *node, uint32_t maps, po_hash h) {
    po_window w;
    bool strided = false, dilated = false;
    if (!po_window_of(g, node, maps, &w))
        return h;
    for (uint32_t m = 0; m < maps; m++) {
        strided |= w.stride[m] > 1;
        dilated |= w.dilation[m] > 1;
        h = po_hash_u64(h, (uint64_t)w.kernel[m]);
    }
    return po_hash_u64(h, (uint64_t)strided << 1 | (uint64_t)dilated);
}

/* An operator as a runtime picks a kernel for it, whatever the lengths of its maps: axes, whether
 * there are several images or matrices, channels of a group and whether there are several. */
static uint64_t node_kind(const po_graph *g, const po_node *node) {
    po_hash h = po_hash_u64((po_hash){0x6B696E64, 0}, node->op);
    int rank = node->n_in && node->in[0] != PO_NONE ? po_rank_of(g, node->in[0]) : 0;
    h = po_hash_u64(h, (uint64_t)rank);
    if (node->op == PO_OP_MatMul)
        return po_hash_u64(h, rank > 2 && po_dim_of(g, node->in[0], 0) > 1).lo;
    bool pool = node->op == PO_OP_AveragePool;
    if ((!po_conv_is(node) && !pool) || rank < 3)
        return h.lo;
    h = window_hash(g, node, (uint32_t)rank - 2, h);
    h = po_hash_u64(h, po_dim_of(g, node->in[0], 0) > 1);
    if (pool)
        return h.lo;
    int64_t channels = po_dim_of(g, node->in[1], 1);
    h = po_hash_u64(h, (uint64_t)channels);
    return po_hash_u64(h, po_dim_of(g, node->in[0], 1) > channels).lo;
}

uint64_t po_search_kind(po_ctx *ctx, const po_subprogram *sub, const po_graph *graph) {
    po_arena *scratch = po_arena_create(ctx);
    const bool *weight = po_weights_of(graph, scratch, sub->n_activations);
    uint64_t *known = PO_NEW_N(scratch, uint64_t, graph->n_nodes), sum = 0; /* in any order */
    uint32_t n = 0, n_known = 0;
    for (po_node_id i = 0; i < graph->n_nodes; i++) {
        const po_node *node = &graph->nodes[i];
        if (node->removed || po_reads_weights(node, weight) ||
            po_op_has(node->op, PO_OPF_MOVES_DATA))
            continue;
        uint64_t kind = node_kind(graph, node);
        uint32_t k = 0;
        while (k < n_known && known[k] != kind)
            k++;
        n++;
        if (k < n_known)
            continue;
        known[n_known++] = kind;
        sum += kind;
    }
    po_arena_free(scratch);
    return po_hash_u64((po_hash){sum, 0}, n).lo;
}
