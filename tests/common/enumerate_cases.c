/* Each case is a text with a predicate that knows the better form by its operators, their
 * attributes and the shapes that they read. */
#include "enumerate_cases.h"
#include "ops/rewrite.h"
#include "rewriting.h"

static uint32_t count(const po_graph *g, po_op_id op) {
    uint32_t n = 0;
    for (po_node_id i = 0; i < g->n_nodes; i++)
        n += !g->nodes[i].removed && g->nodes[i].op == op;
    return n;
}

static const po_node *only(const po_graph *g, po_op_id op) {
    for (po_node_id i = 0; i < g->n_nodes; i++)
        if (!g->nodes[i].removed && g->nodes[i].op == op)
            return count(g, op) == 1 ? &g->nodes[i] : NULL;
    return NULL;
}

static int64_t dim(const po_graph *g, po_value_id v, int axis) {
    return po_dim_of(g, v, axis);
}

static bool all_ones(const po_node *n, const char *name) {
    uint32_t k;
    const int64_t *v = po_node_ints(n, name, &k);
    for (uint32_t i = 0; v && i < k; i++)
        if (v[i] != 1)
            return false;
    return true;
}

static bool dilation_phases(const po_graph *g) {
    const po_node *c = only(g, PO_OP_Conv);
    return c && all_ones(c, "dilations") && dim(g, c->in[0], 0) == 4 && dim(g, c->in[1], 2) == 3 &&
           dim(g, c->in[1], 3) == 3;
}

static bool dilation_phases_1d(const po_graph *g) {
    const po_node *c = only(g, PO_OP_Conv);
    return c && all_ones(c, "dilations") && dim(g, c->in[0], 0) == 2;
}

/* Batch 2 merged into height or width: one image. */
static bool spatial_merge(const po_graph *g) {
    const po_node *c = only(g, PO_OP_Conv);
    return c && dim(g, c->in[0], 0) == 1 && dim(g, c->in[0], 2) * dim(g, c->in[0], 3) == 128;
}

static bool spatial_merge_gap(const po_graph *g) {
    const po_node *c = only(g, PO_OP_Conv);
    return c && dim(g, c->in[0], 0) == 1 && dim(g, c->in[0], 2) * dim(g, c->in[0], 3) > 128;
}

static bool fewer_groups(const po_graph *g) {
    const po_node *c = only(g, PO_OP_Conv);
    return c && po_node_int(c, "group", 1) == 2;
}

static bool no_groups(const po_graph *g) {
    const po_node *c = only(g, PO_OP_Conv);
    return c && po_node_int(c, "group", 1) == 1 && dim(g, c->in[1], 1) == dim(g, c->in[0], 1);
}

static bool one_conv_and_split(const po_graph *g) {
    return count(g, PO_OP_Conv) == 1 && count(g, PO_OP_Split) == 1;
}

static bool one_matmul_and_split(const po_graph *g) {
    return count(g, PO_OP_MatMul) == 1 && count(g, PO_OP_Split) == 1;
}

static bool no_moves(const po_graph *g) {
    return count(g, PO_OP_Transpose) == 0 && count(g, PO_OP_Reshape) == 0;
}

static bool one_move(const po_graph *g) {
    return count(g, PO_OP_Transpose) <= 1;
}

static bool conv_of_two_maps(const po_graph *g) {
    const po_node *c = only(g, PO_OP_Conv);
    return c && po_rank_of(g, c->in[0]) == 4;
}

static bool conv_as_matmul(const po_graph *g) {
    return count(g, PO_OP_MatMul) == 1 && count(g, PO_OP_Conv) == 0;
}

static bool unit_stride(const po_graph *g) {
    const po_node *c = only(g, PO_OP_Conv);
    return c && all_ones(c, "strides") && dim(g, c->in[1], -1) == 2;
}

static bool sum_of_convs(const po_graph *g) {
    return count(g, PO_OP_Conv) == 2 && count(g, PO_OP_Concat) == 0 && count(g, PO_OP_Add) == 1;
}

static bool small_product_first(const po_graph *g) {
    for (po_node_id i = 0; i < g->n_nodes; i++)
        if (!g->nodes[i].removed && g->nodes[i].op == PO_OP_MatMul &&
            g->nodes[i].in[0] != g->inputs[0] && g->nodes[i].in[1] != g->inputs[0])
            return count(g, PO_OP_MatMul) == 2;
    return false;
}

static bool one_matmul(const po_graph *g) {
    return count(g, PO_OP_MatMul) == 1 && count(g, PO_OP_Add) == 1;
}

static bool pool_first(const po_graph *g) {
    const po_node *p = only(g, PO_OP_AveragePool);
    return p && p->in[0] == g->inputs[0];
}

static bool one_conv_groups(const po_graph *g) {
    const po_node *c = only(g, PO_OP_Conv);
    return c && po_node_int(c, "group", 1) == 2 && count(g, PO_OP_Split) == 1;
}

static bool one_conv(const po_graph *g) {
    const po_node *c = only(g, PO_OP_Conv);
    return c && count(g, PO_OP_Add) == 0;
}

static bool one_conv_and_sum(const po_graph *g) {
    return count(g, PO_OP_Conv) == 1 && count(g, PO_OP_Add) == 1;
}

const enumerate_case enumerate_cases[] = {
    {"dilation to phases",
     "pir 1 ir_version=8 opset=17\n"
     "graph g (x: f32[1,4,8,8], w: f32[4,4,3,3]) -> (y) {\n"
     "  y = Conv(x, w) {dilations=[2,2], pads=[2,2,2,2]}\n}\n",
     1, false, dilation_phases},
    {"dilation to phases, 1-D, padded to divide",
     "pir 1 ir_version=8 opset=17\n"
     "graph g (x: f32[1,4,13], w: f32[4,4,3]) -> (y) {\n"
     "  y = Conv(x, w) {dilations=[2], pads=[2,2]}\n}\n",
     1, false, dilation_phases_1d},
    {"spatial merge, seam to be corrected",
     "pir 1 ir_version=8 opset=17\n"
     "graph g (x: f32[2,4,8,8], w: f32[4,4,3,3]) -> (y) {\n"
     "  y = Conv(x, w) {pads=[1,1,1,1]}\n}\n",
     1, true, spatial_merge},
    {"spatial merge with a gap of zeros",
     "pir 1 ir_version=8 opset=17\n"
     "graph g (x: f32[2,4,8,8], w: f32[4,4,3,3]) -> (y) {\n"
     "  y = Conv(x, w) {pads=[1,1,1,1]}\n}\n",
     1, false, spatial_merge_gap},
    {"group merge, by two",
     "pir 1 ir_version=8 opset=17\n"
     "graph g (x: f32[1,8,6,6], w: f32[8,2,3,3]) -> (y) {\n"
     "  y = Conv(x, w) {group=4, pads=[1,1,1,1]}\n}\n",
     1, false, fewer_groups},
    {"group merge, to one",
     "pir 1 ir_version=8 opset=17\n"
     "graph g (x: f32[1,6,6,6], w: f32[4,3,3,3]) -> (y) {\n"
     "  y = Conv(x, w) {group=2, pads=[1,1,1,1]}\n}\n",
     1, false, no_groups},
    {"parallel merge",
     "pir 1 ir_version=8 opset=17\n"
     "graph g (x: f32[1,4,6,6], w1: f32[3,4,3,3], w2: f32[5,4,3,3]) -> (y, z) {\n"
     "  y = Conv(x, w1) {pads=[1,1,1,1]}\n  z = Conv(x, w2) {pads=[1,1,1,1]}\n}\n",
     1, false, one_conv_and_split},
    {"parallel convolutions of two inputs as groups",
     "pir 1 ir_version=8 opset=17\n"
     "graph g (x1: f32[1,4,6,6], x2: f32[1,4,6,6], w1: f32[3,4,3,3], w2: f32[3,4,3,3]) -> (y, z) "
     "{\n  y = Conv(x1, w1) {pads=[1,1,1,1]}\n  z = Conv(x2, w2) {pads=[1,1,1,1]}\n}\n",
     2, false, one_conv_groups},
    {"R/T cancellation around a product",
     "pir 1 ir_version=8 opset=17\n"
     "graph g (x: f32[6,5], w: f32[5,7]) -> (y) {\n"
     "  a = Transpose(x) {perm=[1,0]}\n  b = Transpose(w) {perm=[1,0]}\n"
     "  c = MatMul(b, a)\n  y = Transpose(c) {perm=[1,0]}\n}\n",
     1, false, no_moves},
    {"R/T composition",
     "pir 1 ir_version=8 opset=17\n"
     "graph g (x: f32[2,3,4,5]) -> (y) {\n"
     "  a = Transpose(x) {perm=[0,2,1,3]}\n  b = Transpose(a) {perm=[0,3,2,1]}\n"
     "  y = Transpose(b) {perm=[0,2,1,3]}\n}\n",
     1, false, one_move},
    {"1-D convolution as 2-D",
     "pir 1 ir_version=8 opset=17\n"
     "graph g (x: f32[2,4,9], w: f32[3,4,3]) -> (y) {\n"
     "  y = Conv(x, w) {pads=[1,1]}\n}\n",
     1, false, conv_of_two_maps},
    {"3-D convolution of one frame as 2-D",
     "pir 1 ir_version=8 opset=17\n"
     "graph g (x: f32[1,4,3,6,6], w: f32[5,4,1,3,3]) -> (y) {\n"
     "  y = Conv(x, w) {pads=[0,1,1,0,1,1]}\n}\n",
     1, false, conv_of_two_maps},
    {"1x1 convolution as product",
     "pir 1 ir_version=8 opset=17\n"
     "graph g (x: f32[1,4,5,6], w: f32[7,4,1,1]) -> (y) {\n  y = Conv(x, w)\n}\n",
     1, false, conv_as_matmul},
    {"strided to phases, 1-D",
     "pir 1 ir_version=8 opset=17\n"
     "graph g (x: f32[1,4,12], w: f32[3,4,3]) -> (y) {\n"
     "  y = Conv(x, w) {strides=[2], pads=[1,1]}\n}\n",
     1, false, unit_stride},
    {"strided to phases, 2-D",
     "pir 1 ir_version=8 opset=17\n"
     "graph g (x: f32[1,3,8,8], w: f32[4,3,3,3]) -> (y) {\n"
     "  y = Conv(x, w) {strides=[2,2], pads=[1,1,1,1]}\n}\n",
     1, false, unit_stride},
    {"convolution over Concat",
     "pir 1 ir_version=8 opset=17\n"
     "graph g (x1: f32[1,3,6,6], x2: f32[1,5,6,6], w: f32[4,8,3,3]) -> (y) {\n"
     "  x = Concat(x1, x2) {axis=1}\n  y = Conv(x, w) {pads=[1,1,1,1]}\n}\n",
     2, false, sum_of_convs},
    {"sum of convolutions as one",
     "pir 1 ir_version=8 opset=17\n"
     "graph g (x1: f32[1,3,6,6], x2: f32[1,5,6,6], w1: f32[4,3,3,3], w2: f32[4,5,3,3]) -> (y) {\n"
     "  a = Conv(x1, w1) {pads=[1,1,1,1]}\n  b = Conv(x2, w2) {pads=[1,1,1,1]}\n"
     "  y = Add(a, b)\n}\n",
     2, false, one_conv},
    {"sum of convolutions as one, a residual between them",
     "pir 1 ir_version=8 opset=17\n"
     "graph g (x1: f32[1,3,6,6], x2: f32[1,5,6,6], r: f32[1,4,6,6], w1: f32[4,3,3,3], "
     "w2: f32[4,5,3,3]) -> (y) {\n"
     "  a = Conv(x1, w1) {pads=[1,1,1,1]}\n  s = Add(a, r)\n"
     "  b = Conv(x2, w2) {pads=[1,1,1,1]}\n  y = Add(s, b)\n}\n",
     3, false, one_conv_and_sum},
    {"matmul concatenation",
     "pir 1 ir_version=8 opset=17\n"
     "graph g (x: f32[6,8], w1: f32[8,4], w2: f32[8,4], w3: f32[8,4]) -> (q, k, v) {\n"
     "  q = MatMul(x, w1)\n  k = MatMul(x, w2)\n  v = MatMul(x, w3)\n}\n",
     1, false, one_matmul_and_split},
    {"associativity",
     "pir 1 ir_version=8 opset=17\n"
     "graph g (x: f32[16,8], a: f32[8,8], b: f32[8,4]) -> (y) {\n"
     "  t = MatMul(x, a)\n  y = MatMul(t, b)\n}\n",
     1, false, small_product_first},
    {"distribution",
     "pir 1 ir_version=8 opset=17\n"
     "graph g (x: f32[6,8], a: f32[8,4], b: f32[8,4]) -> (y) {\n"
     "  s = MatMul(x, a)\n  t = MatMul(x, b)\n  y = Add(s, t)\n}\n",
     1, false, one_matmul},
    {"pool before an expanding 1x1 convolution",
     "pir 1 ir_version=8 opset=17\n"
     "graph g (x: f32[1,4,8,8], w: f32[8,4,1,1]) -> (y) {\n"
     "  t = Conv(x, w)\n  y = AveragePool(t) {kernel_shape=[2,2], strides=[2,2]}\n}\n",
     1, false, pool_first},
};
const uint32_t n_enumerate_cases = sizeof enumerate_cases / sizeof *enumerate_cases;

po_subprogram enumerate_subprogram(po_ctx *ctx, const enumerate_case *c) {
    po_graph *g = test_graph(ctx, c->text);
    return (po_subprogram){
        .graph = g, .n_activations = c->n_activations, .signature = po_graph_hash(g)};
}
