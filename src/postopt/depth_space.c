/* Transposed convolutions whose windows do not overlap, as a pointwise convolution and
 * DepthToSpace; and DepthToSpace moved behind what follows it, so that two become one. */
#include "postopt/conv.h"
#include "postopt/passes.h"

/* The runtime's blocked layout rounds channel counts up to this many. */
enum { CHANNEL_BLOCK = 16 };

static double rounded(int64_t channels) {
    return (double)((channels + CHANNEL_BLOCK - 1) / CHANNEL_BLOCK * CHANNEL_BLOCK);
}

static po_value_id add_depth_to_space(po_graph *graph, po_node_id place, po_value_id x,
                                      int64_t block, const po_type *type) {
    po_value_id y = po_add_op(graph, place, PO_OP_DepthToSpace, 1, &x, type);
    po_node_id id = graph->values[y].producer;
    po_node_set_int(graph, id, "blocksize", block);
    if (po_op_version(graph, &graph->nodes[id]) >= 11)
        po_node_set_string(graph, id, "mode", "DCR");
    return y;
}

/* DepthToSpace in the order depth, column, row; its block size, or 0. */
static int64_t block_of(const po_node *n) {
    return n && n->op == PO_OP_DepthToSpace && po_node_string_is(n, "mode", "DCR", "DCR")
               ? po_node_int(n, "blocksize", 0)
               : 0;
}

/* ConvTranspose with kernel = stride = b and no padding writes each output once: with phases p, q,
 * out[o, b i + p, b j + q] = sum_c w[c, o, p, q] x[c, i, j]. */
static bool transpose_to_pointwise(po_graph *graph, po_arena *arena, po_node_id id) {
    const po_node *n = &graph->nodes[id];
    const po_tensor *w = n->op == PO_OP_ConvTranspose ? po_graph_constant(graph, n->in[1]) : NULL;
    const po_tensor *bias = NULL;
    uint32_t count;
    if (!w || w->rank != 4 || w->count == 0 || (w->dtype != PO_F32 && w->dtype != PO_F64) ||
        po_node_int(n, "group", 1) != 1 || w->dims[2] != w->dims[3] || w->dims[2] < 2 ||
        po_node_attr(n, "output_shape") || !po_node_string_is(n, "auto_pad", "NOTSET", "NOTSET"))
        return false;
    int64_t b = w->dims[2], in = w->dims[0], out = w->dims[1];
    const int64_t *strides = po_node_ints(n, "strides", &count);
    if (!strides || count != 2 || strides[0] != b || strides[1] != b)
        return false;
    static const char *const zero_or_one[][2] = {
        {"pads", "0"}, {"output_padding", "0"}, {"dilations", "1"}};
    for (size_t k = 0; k < 3; k++) {
        const int64_t *v = po_node_ints(n, zero_or_one[k][0], &count);
        for (uint32_t i = 0; i < count; i++)
            if (v[i] != zero_or_one[k][1][0] - '0')
                return false;
    }
    if (n->n_in > 2 && n->in[2] != PO_NONE) {
        bias = po_graph_constant(graph, n->in[2]);
        if (!bias || bias->count != out)
            return false;
    }
    po_conv made = po_conv_pointwise(w->dtype, out * b * b, in);
    double *v = PO_NEW_N(arena, double, made.out *in), *shift = PO_NEW_N(arena, double, made.out);
    for (int64_t c = 0; c < in; c++)
        for (int64_t o = 0; o < out; o++)
            for (int64_t t = 0; t < b * b; t++)
                v[(t * out + o) * in + c] = po_tensor_f64(w, (c * out + o) * b * b + t);
    for (int64_t i = 0; bias && i < made.out; i++)
        shift[i] = po_tensor_f64(bias, i % out);
    po_value_id y = n->out[0];
    po_type type = graph->values[y].type;
    po_value_id deep = po_conv_add(graph, id, n->in[0], &made, v, bias ? shift : NULL);
    po_substitute(graph, y, add_depth_to_space(graph, id, deep, b, &type));
    return true;
}

/* f(DepthToSpace(x)) = DepthToSpace(f(x)) for an f of one input that acts on each element. */
static bool behind_activation(po_graph *graph, po_node_id id) {
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
    po_value_id moved = add_depth_to_space(graph, id, inner, block, &type);
    po_graph_replace_uses(graph, y, moved);
    return true;
}

/* A pointwise convolution after DepthToSpace(b) is one of b * b times the channels before it, block
 * diagonal. Worth it where rounding the few channels up costs as much as the zeros do. */
static bool behind_pointwise(po_graph *graph, po_arena *arena, po_node_id id) {
    po_conv c;
    if (!po_conv_read(graph, id, &c) || !po_conv_is_pointwise(&c))
        return false;
    const po_node *space = po_made_alone_by(graph, c.x, PO_OP_DepthToSpace);
    int64_t b = block_of(space), phases = b * b;
    if (b < 2 || rounded(phases * c.out) > rounded(c.out) ||
        (po_dim_of(graph, space->in[0], 1) >= 0 &&
         po_dim_of(graph, space->in[0], 1) != phases * c.in))
        return false;
    po_conv made = po_conv_pointwise(c.dtype, phases * c.out, phases * c.in);
    double *w = PO_NEW_N(arena, double, made.out *made.in), *shift = NULL;
    const double *v = po_conv_weights(arena, &c), *bias = po_conv_bias(arena, &c);
    for (int64_t p = 0; p < phases; p++)
        for (int64_t o = 0; o < c.out; o++)
            memcpy(&w[(p * c.out + o) * made.in + p * c.in], &v[o * c.in],
                   (size_t)c.in * sizeof *v);
    if (c.bias) {
        shift = PO_NEW_N(arena, double, made.out);
        for (int64_t i = 0; i < made.out; i++)
            shift[i] = bias[i % c.out];
    }
    po_type type = graph->values[c.y].type;
    po_value_id deep = po_conv_add(graph, id, space->in[0], &made, w, shift);
    po_substitute(graph, c.y, add_depth_to_space(graph, id, deep, b, &type));
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
static bool merge_spaces(po_graph *graph, po_arena *arena, po_node_id id) {
    const po_node *outer = &graph->nodes[id];
    int64_t b2 = block_of(outer);
    const po_node *inner =
        b2 >= 2 ? po_made_alone_by(graph, outer->in[0], PO_OP_DepthToSpace) : NULL;
    int64_t b1 = block_of(inner);
    po_conv c;
    if (b1 < 2 || !conv_before(graph, inner->in[0], &c) || c.group != 1 ||
        c.out % (b1 * b1 * b2 * b2))
        return false;
    int64_t depth = c.out / (b1 * b1 * b2 * b2), block = b1 * b2;
    int64_t row = c.in * c.kernel[0] * c.kernel[1];
    const double *w = po_conv_weights(arena, &c), *bias = po_conv_bias(arena, &c);
    double *w2 = PO_NEW_N(arena, double, c.out *row), *bias2 = PO_NEW_N(arena, double, c.out);
    for (int64_t i = 0; i < c.out; i++) {
        int64_t d = i % depth, rest = i / depth;
        int64_t q2 = rest % b2, p2 = rest / b2 % b2, q1 = rest / (b2 * b2) % b1;
        int64_t p1 = rest / (b2 * b2 * b1);
        int64_t to = ((p1 * b2 + p2) * block + q1 * b2 + q2) * depth + d;
        memcpy(&w2[to * row], &w[i * row], (size_t)row * sizeof *w);
        bias2[to] = bias[i];
    }
    po_type type = graph->values[outer->out[0]].type;
    po_value_id y = outer->out[0], x = inner->in[0];
    po_graph_set_input(graph, c.node, 1, po_add_floats(graph, NULL, c.dtype, 4, c.w->dims, w2));
    if (c.bias)
        po_graph_set_input(graph, c.node, 2, po_add_floats(graph, NULL, c.dtype, 1, &c.out, bias2));
    po_substitute(graph, y, add_depth_to_space(graph, id, x, block, &type));
    return true;
}

po_status po_move_depth_to_space(po_ctx *ctx, po_graph *graph, po_postopt_state *state) {
    (void)ctx;
    if (!(state->options->algebra & PO_ALGEBRA_DEPTH_SPACE))
        return PO_OK;
    uint32_t n;
    const po_node_id *order = po_graph_order(graph, state->scratch, &n);
    for (uint32_t k = 0; k < n; k++) {
        if (graph->nodes[order[k]].removed || graph->nodes[order[k]].n_out == 0)
            continue;
        state->counts->composed += transpose_to_pointwise(graph, state->scratch, order[k]) ||
                                   behind_activation(graph, order[k]) ||
                                   behind_pointwise(graph, state->scratch, order[k]) ||
                                   merge_spaces(graph, state->scratch, order[k]);
    }
    return PO_OK;
}
