/* Reads and makes Conv nodes with constant weights, in f32 or f64; weights and biases are handed on
 * as recipes. */
#include "rewrite/conv/conv.h"
#include "ops/conv_view.h"

bool po_conv_read_maps(const po_graph *graph, po_node_id node, uint32_t maps, po_conv *conv) {
    po_conv c;
    if (!po_conv_is(&graph->nodes[node]) || !po_conv_view(graph, node, &c) || c.n != maps ||
        !c.weights || c.weights->count == 0 || (c.dtype != PO_F32 && c.dtype != PO_F64))
        return false;
    if (c.b != PO_NONE && (!c.bias || c.bias->dtype != c.dtype || c.bias->count != c.out))
        return false;
    *conv = c;
    return true;
}

bool po_conv_read(const po_graph *graph, po_node_id node, po_conv *conv) {
    return po_conv_read_maps(graph, node, 2, conv);
}

bool po_conv_made(const po_graph *graph, po_value_id value, po_conv *conv) {
    return value != PO_NONE && graph->values[value].producer != PO_NONE &&
           po_conv_read(graph, graph->values[value].producer, conv);
}

bool po_conv_keeps_size(const po_conv *c) {
    const int64_t p = c->before[0];
    return c->group == 1 && c->kernel[0] == c->kernel[1] && c->kernel[0] == 2 * p + 1 && p > 0 &&
           c->before[1] == p && c->after[0] == p && c->after[1] == p && po_conv_stride_one(c) &&
           po_conv_dilation_one(c);
}

const po_recipe *po_conv_weights(const po_graph *graph, po_arena *arena, const po_conv *conv) {
    return po_recipe_doubles(graph, arena, conv->w);
}

const po_recipe *po_conv_bias(const po_graph *graph, po_arena *arena, const po_conv *conv) {
    return conv->bias
               ? po_recipe_reshape(arena, po_recipe_doubles(graph, arena, conv->b), 1, &conv->out)
               : NULL;
}

const po_recipe *po_conv_tiled_bias(const po_graph *graph, po_arena *arena, const po_conv *conv,
                                    int64_t times) {
    if (!conv->bias)
        return NULL;
    const int64_t all = times * conv->out;
    return po_recipe_reshape(arena,
                             po_recipe_expand(arena, po_conv_bias(graph, arena, conv), 2,
                                              (const int64_t[]){times, conv->out}),
                             1, &all);
}

po_value_id po_conv_add(po_graph *graph, po_node_id place, po_value_id x, const po_conv *like,
                        po_value_id w, po_value_id bias) {
    const po_type type = po_type_unranked(like->dtype);
    return po_add_conv(graph, place, x, w, bias, like, &type);
}

po_value_id po_conv_make(po_graph *graph, po_node_id place, po_value_id x, const po_conv *like,
                         const po_recipe *w, const po_recipe *bias) {
    po_arena *scratch = po_arena_child(graph->arena);
    const int64_t dims[4] = {like->out, like->in / like->group, like->kernel[0], like->kernel[1]};
    po_value_id weights =
        po_add_recipe(graph, NULL, like->dtype, po_recipe_reshape(scratch, w, 4, dims));
    po_value_id shift = bias ? po_add_recipe(graph, NULL, like->dtype, bias) : PO_NONE;
    po_arena_free(scratch);
    return weights == PO_NONE || (bias && shift == PO_NONE)
               ? PO_NONE
               : po_conv_add(graph, place, x, like, weights, shift);
}

po_conv po_conv_pointwise(po_dtype dtype, int64_t out, int64_t in) {
    return po_conv_of_one_tap(dtype, 2, in, out, 1);
}

po_value_id po_conv_each(po_graph *graph, po_arena *arena, po_node_id place, po_value_id x,
                         const po_conv *window, int64_t channels, const po_taps *taps,
                         po_value_id bias) {
    po_conv like = *window;
    like.group = like.in = like.out = channels;
    const int64_t dims[4] = {channels, 1, like.kernel[0], like.kernel[1]};
    const int64_t each = dims[2] * dims[3];
    double *numbers = PO_NEW_N(arena, double, channels *each);
    for (int64_t i = 0; i < channels * each; i++)
        numbers[i] = taps->of[i % each];
    const po_recipe *w = po_recipe_literal(arena, 4, dims, numbers);
    if (taps->over > 0)
        w = po_recipe_div(arena, w, po_recipe_number(arena, taps->over));
    po_value_id weights = po_add_recipe(graph, NULL, like.dtype, w);
    return weights == PO_NONE ? PO_NONE : po_conv_add(graph, place, x, &like, weights, bias);
}
