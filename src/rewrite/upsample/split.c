/* Laws of conv/sums.c in place; Slice and DepthToSpace as the model's opset has them. */
#include "rewrite/upsample/split.h"

#include "rewrite/deriving.h"

static po_deriving in_place(po_graph *graph) {
    return (po_deriving){
        .ctx = po_arena_ctx(graph->arena), .arena = graph->arena, .from = graph, .in_place = graph};
}

bool po_split_conv(po_graph *graph, const po_conv *conv, uint32_t n, const po_value_id *parts,
                   const int64_t *channels) {
    po_deriving d = in_place(graph);
    return po_derive_parts(&d, conv, n, parts, channels) == PO_OK && d.done;
}

bool po_distribute_conv(po_graph *graph, const po_conv *conv, const po_value_id terms[2]) {
    po_deriving d = in_place(graph);
    return po_derive_terms(&d, conv, terms) == PO_OK && d.done;
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
