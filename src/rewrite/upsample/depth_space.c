/* Transposed convolutions whose windows do not overlap, as a pointwise convolution and
 * DepthToSpace; and DepthToSpace moved behind what follows it, so that two become one. */
#include "rewrite/passes.h"
#include "rewrite/upsample/split.h"

/* DepthToSpace in the order depth, column, row; its block size, or 0. */
static int64_t block_of(const po_node *n) {
    return n && n->op == PO_OP_DepthToSpace && po_node_string_is(n, "mode", "DCR", "DCR")
               ? po_node_int(n, "blocksize", 0)
               : 0;
}

/* ConvTranspose with kernel = stride = b and no padding writes each output once: with phases p, q,
 * out[o, b i + p, b j + q] = sum_c w[c, o, p, q] x[c, i, j]. */
bool po_transposed_to_pointwise(po_rewriting *r, po_graph *graph, po_node_id id) {
    po_arena *arena = r->scratch;
    po_conv c;
    if (graph->nodes[id].op != PO_OP_ConvTranspose || !po_conv_view(graph, id, &c) || c.n != 2 ||
        !c.weights || c.weights->count == 0 || (c.dtype != PO_F32 && c.dtype != PO_F64) ||
        c.group != 1 || c.kernel[0] < 2 || po_conv_padded(&c) || !po_conv_dilation_one(&c))
        return false;
    const int64_t b = c.kernel[0], in = c.in, out = c.out;
    for (uint32_t i = 0; i < 2; i++)
        if (c.kernel[i] != b || c.stride[i] != b || c.extra[i])
            return false;
    if (c.b != PO_NONE && (!c.bias || c.bias->count != out))
        return false;
    po_conv made = po_conv_pointwise(c.dtype, out * b * b, in);
    const po_recipe *v = po_recipe_rearrange(arena, po_recipe_doubles(graph, arena, c.w),
                                             "i o y x -> (y x o) i 1 1", 0, NULL);
    const po_recipe *shift = po_conv_tiled_bias(graph, arena, &c, b * b);
    po_value_id y = c.y;
    po_type type = graph->values[y].type;
    po_value_id deep = po_conv_make(graph, id, c.x, &made, v, shift);
    if (deep == PO_NONE)
        return false;
    po_substitute(graph, y, po_add_depth_to_space(graph, id, deep, b, &type));
    return true;
}

/* f(DepthToSpace(x)) = DepthToSpace(f(x)) for an f of one input that acts on each element. */
bool po_space_behind_activation(po_rewriting *r, po_graph *graph, po_node_id id) {
    (void)r;
    const po_node *n = &graph->nodes[id];
    const po_node *space =
        n->n_in == 1 && po_op_has(n->op, PO_OPF_ACTIVATION) && po_op_has(n->op, PO_OPF_ELEMENTWISE)
            ? po_made_alone_by(graph, n->in[0], PO_OP_DepthToSpace)
            : NULL;
    int64_t block = block_of(space);
    if (block < 2)
        return false;
    po_value_id y = n->out[0], x = space->in[0];
    po_type type = graph->values[y].type, deep = graph->values[x].type;
    po_graph_set_input(graph, id, 0, x);
    po_value_id inner = po_graph_add_value(graph, NULL, &deep);
    /* The node keeps its attributes and makes the deep value now. */
    po_graph_set_output(graph, id, 0, inner);
    po_value_id moved = po_add_depth_to_space(graph, id, inner, block, &type);
    po_graph_replace_uses(graph, y, moved);
    return true;
}

/* A pointwise convolution after DepthToSpace(b) is one of b * b times the channels before it, block
 * diagonal. Worth it where rounding the few channels up costs as much as the zeros do. */
bool po_space_behind_pointwise(po_rewriting *r, po_graph *graph, po_node_id id) {
    po_arena *arena = r->scratch;
    po_conv c;
    if (!po_conv_read(graph, id, &c) || !po_conv_is_pointwise(&c))
        return false;
    const po_node *space = po_made_alone_by(graph, c.x, PO_OP_DepthToSpace);
    int64_t b = block_of(space), phases = b * b;
    if (b < 2 || po_whole_blocks(phases * c.out) > po_whole_blocks(c.out) ||
        (po_dim_of(graph, space->in[0], 1) >= 0 &&
         po_dim_of(graph, space->in[0], 1) != phases * c.in))
        return false;
    po_conv made = po_conv_pointwise(c.dtype, phases * c.out, phases * c.in);
    const po_recipe *w = po_recipe_einsum(arena, "pq,oiyx->poqi", 2,
                                          (const po_recipe *[]){po_recipe_identity(arena, phases),
                                                                po_conv_weights(graph, arena, &c)});
    po_type type = graph->values[c.y].type;
    po_value_id deep = po_conv_make(graph, id, space->in[0], &made, w,
                                    po_conv_tiled_bias(graph, arena, &c, phases));
    if (deep == PO_NONE)
        return false;
    po_substitute(graph, c.y, po_add_depth_to_space(graph, id, deep, b, &type));
    return true;
}

/* The convolution that makes the value, activations in between passed over; nothing else may read
 * any of it. */
static bool conv_before(const po_graph *graph, po_value_id value, po_conv *conv) {
    while (po_read_once(graph, value)) {
        if (po_conv_made(graph, value, conv))
            return true;
        const po_node *n = po_graph_producer(graph, value);
        if (!n || n->n_in != 1 || !po_op_has(n->op, PO_OPF_ACTIVATION) ||
            !po_op_has(n->op, PO_OPF_ELEMENTWISE))
            return false;
        value = n->in[0];
    }
    return false;
}

/* DepthToSpace(b2) after DepthToSpace(b1) after a convolution: the convolution's outputs are put in
 * the order that one DepthToSpace(b1 b2) reads. */
bool po_merge_spaces(po_rewriting *r, po_graph *graph, po_node_id id) {
    po_arena *arena = r->scratch;
    const po_node *outer = &graph->nodes[id];
    int64_t b2 = block_of(outer);
    const po_node *inner =
        b2 >= 2 ? po_made_alone_by(graph, outer->in[0], PO_OP_DepthToSpace) : NULL;
    int64_t b1 = block_of(inner);
    po_conv c;
    if (b1 < 2 || !conv_before(graph, inner->in[0], &c) || c.group != 1 ||
        c.out % (b1 * b1 * b2 * b2))
        return false;
    const int64_t block = b1 * b2;
    const po_rt_size *sizes = PO_SIZES({"p", &b1}, {"q", &b1}, {"s", &b2}, {"t", &b2});
    const po_recipe *w = po_recipe_rearrange(arena, po_conv_weights(graph, arena, &c),
                                             "(p q s t o) i y x -> (p s q t o) i y x", 0, sizes);
    po_value_id weights = po_add_recipe(graph, NULL, c.dtype, w), bias = PO_NONE;
    if (c.bias)
        bias = po_add_recipe(graph, NULL, c.dtype,
                             po_recipe_rearrange(arena, po_conv_bias(graph, arena, &c),
                                                 "(p q s t o) -> (p s q t o)", 0, sizes));
    if (weights == PO_NONE || (c.bias && bias == PO_NONE))
        return false;
    po_type type = graph->values[outer->out[0]].type;
    po_value_id y = outer->out[0], x = inner->in[0];
    po_graph_set_input(graph, c.node, 1, weights);
    if (c.bias)
        po_graph_set_input(graph, c.node, 2, bias);
    po_substitute(graph, y, po_add_depth_to_space(graph, id, x, block, &type));
    return true;
}
