/* Reads and makes Conv nodes with constant weights of rank 4, in f32 or f64, whose pads are stated
 * or none; weights and biases are handed on as recipes. */
#include "postopt/conv.h"

static bool take(const po_node *n, const char *name, int64_t *values, uint32_t count) {
    uint32_t found;
    const int64_t *v = po_node_ints(n, name, &found);
    if (!v)
        return true; /* the defaults stay */
    if (found != count)
        return false;
    memcpy(values, v, count * sizeof *v);
    return true;
}

bool po_conv_read(const po_graph *graph, po_node_id node, po_conv *conv) {
    const po_node *n = &graph->nodes[node];
    if (n->removed || n->op != PO_OP_Conv || n->n_in < 2)
        return false;
    po_conv c = {.node = node,
                 .x = n->in[0],
                 .y = n->out[0],
                 .w_id = n->in[1],
                 .bias_id = PO_NONE,
                 .group = po_node_int(n, "group", 1),
                 .stride = {1, 1},
                 .dilation = {1, 1}};
    c.w = po_graph_constant(graph, n->in[1]);
    if (!c.w || c.w->rank != 4 || c.w->count == 0 || (c.w->dtype != PO_F32 && c.w->dtype != PO_F64))
        return false;
    if (n->n_in > 2 && n->in[2] != PO_NONE) {
        c.bias_id = n->in[2];
        c.bias = po_graph_constant(graph, c.bias_id);
        if (!c.bias || c.bias->dtype != c.w->dtype || c.bias->count != c.w->dims[0])
            return false;
    }
    c.dtype = c.w->dtype;
    c.out = c.w->dims[0];
    c.in = c.w->dims[1] * c.group;
    c.kernel[0] = c.w->dims[2];
    c.kernel[1] = c.w->dims[3];
    if (c.group < 1 || c.out % c.group || !take(n, "strides", c.stride, 2) ||
        !take(n, "dilations", c.dilation, 2))
        return false;
    if (po_node_string_is(n, "auto_pad", "NOTSET", "NOTSET")) {
        if (!take(n, "pads", c.pad, 4))
            return false;
    } else if (!po_node_string_is(n, "auto_pad", "VALID", "NOTSET")) {
        return false;
    }
    *conv = c;
    return true;
}

bool po_conv_made(const po_graph *graph, po_value_id value, po_conv *conv) {
    return value != PO_NONE && graph->values[value].producer != PO_NONE &&
           po_conv_read(graph, graph->values[value].producer, conv);
}

static bool ones(const int64_t *v) {
    return v[0] == 1 && v[1] == 1;
}

static bool unpadded(const po_conv *c) {
    return c->pad[0] == 0 && c->pad[1] == 0 && c->pad[2] == 0 && c->pad[3] == 0;
}

bool po_conv_is_pointwise(const po_conv *c) {
    return c->group == 1 && ones(c->kernel) && ones(c->stride) && unpadded(c);
}

const po_recipe *po_conv_weights(const po_graph *graph, po_arena *arena, const po_conv *conv) {
    return po_recipe_doubles(graph, arena, conv->w_id);
}

const po_recipe *po_conv_bias(const po_graph *graph, po_arena *arena, const po_conv *conv) {
    return conv->bias ? po_recipe_reshape(arena, po_recipe_doubles(graph, arena, conv->bias_id), 1,
                                          &conv->out)
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
    po_value_id in[3] = {x, w, bias};
    po_type type = po_type_unranked(like->dtype);
    po_value_id y = po_add_op(graph, place, PO_OP_Conv, bias == PO_NONE ? 2 : 3, in, &type);
    po_node_id id = graph->values[y].producer;
    if (like->group != 1)
        po_node_set_int(graph, id, "group", like->group);
    po_node_set_ints(graph, id, "kernel_shape", 2, like->kernel);
    po_node_set_ints(graph, id, "strides", 2, like->stride);
    po_node_set_ints(graph, id, "dilations", 2, like->dilation);
    po_node_set_ints(graph, id, "pads", 4, like->pad);
    return y;
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
    return (po_conv){.node = PO_NONE,
                     .x = PO_NONE,
                     .y = PO_NONE,
                     .w_id = PO_NONE,
                     .bias_id = PO_NONE,
                     .dtype = dtype,
                     .group = 1,
                     .out = out,
                     .in = in,
                     .kernel = {1, 1},
                     .stride = {1, 1},
                     .dilation = {1, 1}};
}
