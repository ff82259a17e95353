/* Channel gates, x * s with s [1, C, 1, 1] computed at run time, taken into the weights of the
 * convolution behind them: the large map is then not touched for the gate's sake. */
#include "rewrite/passes.h"
#include "rewrite/upsample/split.h"

/* y = x * s; s is [1, C, 1, 1] and not constant. */
typedef struct gated {
    po_value_id x, s;
    int64_t channels;
} gated;

static bool read_gated(const po_graph *graph, po_value_id y, gated *g) {
    const po_node *n = po_made_by(graph, y, PO_OP_Mul);
    for (uint32_t k = 0; n && n->n_in == 2 && k < 2; k++) {
        po_value_id x = n->in[k], s = n->in[1 - k];
        uint32_t rank;
        const po_dim *d = po_static_dims(graph, s, &rank);
        if (!d || rank != 4 || d[0].value != 1 || d[2].value != 1 || d[3].value != 1 ||
            po_graph_constant(graph, s) || po_rank_of(graph, x) != 4 ||
            po_dim_of(graph, x, 0) != 1 || po_dim_of(graph, x, 1) != d[1].value ||
            (po_dim_of(graph, x, 2) == 1 && po_dim_of(graph, x, 3) == 1))
            continue;
        *g = (gated){x, s, d[1].value};
        return true;
    }
    return false;
}

/* Since opset 7 broadcasting has no attributes. */
static bool plain_conv(const po_graph *graph, po_node_id id, po_conv *c) {
    return po_model_opset(graph->model, "") >= 7 && po_conv_read(graph, id, c) && c->group == 1;
}

static bool conv_of_gated(const po_graph *graph, po_node_id id, po_conv *c, gated *g) {
    return plain_conv(graph, id, c) && read_gated(graph, c->x, g) && g->channels == c->in;
}

/* conv(W2; s * conv1x1(W1; v)) = conv(W2 diag(s) W1; v): weights [out, in, kh, kw] from the C
 * values of s by one small product. Worth it where v has few channels beside the C between. */
bool po_gate_between(po_rewriting *r, po_graph *graph, po_node_id id) {
    po_arena *arena = r->scratch;
    po_conv conv, inner;
    gated gate;
    const po_conv *c = &conv;
    const gated *g = &gate;
    if (!conv_of_gated(graph, id, &conv, &gate) || !po_conv_made(graph, g->x, &inner) ||
        !po_conv_is_pointwise(&inner) || inner.bias || inner.dtype != c->dtype ||
        3 * inner.in > inner.out)
        return false;
    int64_t taps = c->kernel[0] * c->kernel[1];
    po_value_id left = po_add_recipe(graph, NULL, c->dtype,
                                     po_recipe_rearrange(arena, po_conv_weights(graph, arena, c),
                                                         "o i y x -> (o y x) i", 0, NULL));
    if (left == PO_NONE)
        return false;
    po_value_id w1 = po_add_reshaped(graph, inner.w, 2, (const int64_t[]){c->in, inner.in});
    po_node_id at = c->node;
    po_type t2 = po_type_tensor_i64(graph->arena, c->dtype, 2, (int64_t[]){c->in, inner.in});
    po_value_id s = po_add_reshape(graph, at, g->s, 2, (int64_t[]){c->in, 1});
    po_value_id scaled = po_add_op(graph, at, PO_OP_Mul, 2, (po_value_id[]){s, w1}, &t2);
    po_type t3 =
        po_type_tensor_i64(graph->arena, c->dtype, 2, (int64_t[]){c->out * taps, inner.in});
    po_value_id product = po_add_op(graph, at, PO_OP_MatMul, 2, (po_value_id[]){left, scaled}, &t3);
    po_value_id w = product;
    if (taps > 1) {
        w = po_add_reshape(graph, at, product, 3, (int64_t[]){c->out, taps, inner.in});
        po_type t4 =
            po_type_tensor_i64(graph->arena, c->dtype, 3, (int64_t[]){c->out, inner.in, taps});
        w = po_add_transpose(graph, at, w, 3, (int64_t[]){0, 2, 1}, &t4);
    }
    w = po_add_reshape(graph, at, w, 4, (int64_t[]){c->out, inner.in, c->kernel[0], c->kernel[1]});
    po_conv made = *c;
    made.in = inner.in;
    po_value_id y = po_conv_add(graph, at, inner.x, &made, w, c->b);
    graph->values[y].type = graph->values[c->y].type;
    po_substitute(graph, c->y, y);
    return true;
}

/* conv(W; s * x) = conv(W * s; x), where the blocked layout would round few channels up so far that
 * it is no faster. */
bool po_gate_before(po_rewriting *r, po_graph *graph, po_node_id id) {
    po_conv conv;
    gated gate;
    const po_conv *c = &conv;
    const gated *g = &gate;
    (void)r;
    if (!conv_of_gated(graph, id, &conv, &gate) || c->kernel[0] * c->kernel[1] < 2 ||
        !po_read_once(graph, c->x) ||
        (double)(po_whole_blocks(c->in) * po_whole_blocks(c->out)) * po_numbers.unblocked_speed <=
            (double)(c->in * c->out))
        return false;
    int64_t dims[4] = {c->out, c->in, c->kernel[0], c->kernel[1]};
    po_type type = po_type_tensor_i64(graph->arena, c->dtype, 4, dims);
    po_value_id plain = graph->nodes[c->node].in[1];
    po_value_id w = po_add_op(graph, c->node, PO_OP_Mul, 2, (po_value_id[]){plain, g->s}, &type);
    po_value_id y = po_conv_add(graph, c->node, g->x, c, w, c->b);
    graph->values[y].type = graph->values[c->y].type;
    po_substitute(graph, c->y, y);
    return true;
}

bool po_gated_narrow(const po_graph *graph, po_value_id y) {
    gated g;
    po_conv inner;
    return read_gated(graph, y, &g) && po_conv_made(graph, g.x, &inner) &&
           po_conv_is_pointwise(&inner) && !inner.bias && 3 * inner.in <= inner.out;
}

/* conv(gated + upsampled): both sides have a cheaper form of their own. Of one shape: where one
 * broadcasts the sum does not distribute. The sum may have other
 * readers: what the convolution saves is more than the sum costs. */
bool po_distribute_gated(po_rewriting *r, po_graph *graph, po_node_id id) {
    po_conv c;
    (void)r;
    if (!plain_conv(graph, id, &c) || c.kernel[0] < 2)
        return false;
    const po_node *sum = po_made_by(graph, c.x, PO_OP_Add);
    if (!sum || sum->n_in != 2)
        return false;
    for (uint32_t k = 0; k < 2; k++) {
        po_value_id x;
        int64_t factor;
        if (!po_gated_narrow(graph, sum->in[k]) ||
            !po_upsampled(graph, sum->in[1 - k], &x, &factor) ||
            !po_same_dims(graph, sum->in[0], sum->in[1]))
            continue;
        const po_value_id parts[2] = {sum->in[k], sum->in[1 - k]};
        return po_distribute_conv(graph, &c, parts);
    }
    return false;
}
