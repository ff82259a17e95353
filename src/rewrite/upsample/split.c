/* A convolution over two parts of its channels as a sum by slices of its weights, one over a sum as
 * a sum of two; Slice and DepthToSpace as the model's opset has them. */
#include "rewrite/upsample/split.h"

static void add_results(po_graph *graph, const po_conv *conv, uint32_t n,
                        const po_value_id *results) {
    po_type type = graph->values[conv->y].type;
    po_value_id sum = results[0];
    for (uint32_t k = 0; k < n; k++)
        graph->values[results[k]].type = type;
    for (uint32_t k = 1; k < n; k++)
        sum = po_add_op(graph, conv->node, PO_OP_Add, 2, (po_value_id[]){sum, results[k]}, &type);
    po_substitute(graph, conv->y, sum);
}

bool po_split_conv(po_graph *graph, po_arena *arena, const po_conv *conv, uint32_t n,
                   const po_value_id *parts, const int64_t *channels) {
    const po_recipe *w = po_conv_weights(graph, arena, conv);
    po_value_id *weights = PO_NEW_N(arena, po_value_id, n);
    po_value_id *results = PO_NEW_N(arena, po_value_id, n);
    int64_t from = 0;
    for (uint32_t k = 0; k < n; k++) {
        weights[k] = po_add_recipe(graph, NULL, conv->dtype,
                                   po_recipe_slice(arena, w, 1, from, from + channels[k]));
        if (weights[k] == PO_NONE)
            return false;
        from += channels[k];
    }
    for (uint32_t k = 0; k < n; k++) {
        po_conv part = *conv;
        part.in = channels[k];
        results[k] = po_conv_add(graph, conv->node, parts[k], &part, weights[k],
                                 k + 1 == n ? conv->b : PO_NONE);
    }
    add_results(graph, conv, n, results);
    return true;
}

void po_distribute_conv(po_graph *graph, const po_conv *conv, const po_value_id parts[2]) {
    po_value_id a = po_conv_add(graph, conv->node, parts[0], conv, conv->w, PO_NONE);
    po_value_id b = po_conv_add(graph, conv->node, parts[1], conv, conv->w, conv->b);
    add_results(graph, conv, 2, (po_value_id[]){a, b});
}

po_value_id po_add_crop(po_graph *graph, po_node_id place, po_value_id x, int64_t begin,
                        int64_t end, const po_type *type) {
    return po_add_slice(graph, place, x, 2, (const int64_t[]){2, 3},
                        (const int64_t[]){begin, begin}, (const int64_t[]){end, end}, NULL, type);
}

po_value_id po_add_depth_to_space(po_graph *graph, po_node_id place, po_value_id x, int64_t block,
                                  const po_type *type) {
    po_value_id y = po_add_op(graph, place, PO_OP_DepthToSpace, 1, &x, type);
    po_node_id id = graph->values[y].producer;
    po_node_set_int(graph, id, "blocksize", block);
    if (po_op_version(graph, &graph->nodes[id]) >= 11)
        po_node_set_string(graph, id, "mode", "DCR");
    return y;
}
