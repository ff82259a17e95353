/* The last spelling of activations and norms: single nodes that the model's opset does not have
 * are written out in the form that the runtime fuses; operators that it runs badly are written with
 * others. Runs once, after everything that might take the forms apart. The figures behind each
 * choice: docs/forms.md. */
#include "base/num.h"
#include "ops/conv_view.h"
#include "rewrite/passes.h"
#include "rewrite/spelling/match.h"

#include <math.h>

static void replace(po_graph *graph, po_node_id id, po_value_id by) {
    po_substitute(graph, graph->nodes[id].out[0], by);
}

/* --- activations --- */

/* (x * (erf(x / sqrt 2) + 1)) * 0.5: the division and this order are what is fused. */
static bool write_erf_gelu(po_graph *graph, po_node_id id, po_value_id x) {
    po_value_id e =
        po_add_unary(graph, id, PO_OP_Erf, po_add_scalar(graph, id, PO_OP_Div, x, M_SQRT2));
    po_value_id product =
        po_add_pair(graph, id, PO_OP_Mul, x, po_add_scalar(graph, id, PO_OP_Add, e, 1));
    replace(graph, id, po_add_scalar(graph, id, PO_OP_Mul, product, 0.5));
    return true;
}

/* (0.5 * x) * (tanh((x + 0.044715 x^3) * sqrt(2 / pi)) + 1), the cube as a power. */
static bool write_tanh_gelu(po_graph *graph, po_node_id id, po_value_id x) {
    po_value_id cube = po_add_scalar(graph, id, PO_OP_Pow, x, 3);
    po_value_id bent = po_add_scalar(graph, id, PO_OP_Mul, cube, 0.044715);
    po_value_id sum = po_add_pair(graph, id, PO_OP_Add, x, bent);
    po_value_id t = po_add_scalar(graph, id, PO_OP_Mul, sum, sqrt(2 / M_PI));
    t = po_add_scalar(graph, id, PO_OP_Add, po_add_unary(graph, id, PO_OP_Tanh, t), 1);
    replace(graph, id,
            po_add_pair(graph, id, PO_OP_Mul, po_add_scalar(graph, id, PO_OP_Mul, x, 0.5), t));
    return true;
}

bool po_write_gelu(po_rewriting *r, po_graph *graph, po_node_id id) {
    if (!r->options->activations || graph->nodes[id].op != PO_OP_Gelu)
        return false;
    const po_node *n = &graph->nodes[id];
    if (po_opset_of(graph) >= PO_GELU_SINCE || !po_is_f32(graph, n->out[0]))
        return false;
    return po_node_string_is(n, "approximate", "tanh", "none")
               ? write_tanh_gelu(graph, id, n->in[0])
               : write_erf_gelu(graph, id, n->in[0]);
}

/* x tanh(log(1 + e)) = x n / (n + 2) with e = exp x, n = e (e + 2): exact for small x too, where
 * 1 + e would lose what e holds. Above 20 the quotient is 1 in float. */
bool po_write_mish(po_rewriting *r, po_graph *graph, po_node_id id) {
    if (!r->options->activations || graph->nodes[id].op != PO_OP_Mish)
        return false;
    const po_node *node = &graph->nodes[id];
    po_value_id x = node->in[0];
    if (!po_is_f32(graph, node->out[0]))
        return false;
    po_value_id e = po_add_unary(graph, id, PO_OP_Exp, po_add_clip(graph, id, x, -INFINITY, 20));
    po_value_id n = po_add_pair(graph, id, PO_OP_Mul, e, po_add_scalar(graph, id, PO_OP_Add, e, 2));
    po_value_id q = po_add_pair(graph, id, PO_OP_Div, n, po_add_scalar(graph, id, PO_OP_Add, n, 2));
    replace(graph, id, po_add_pair(graph, id, PO_OP_Mul, x, q));
    return true;
}

/* A slope for each channel behind a convolution: a x + (1 - a) relu(x) stays in the blocked layout,
 * which the operator itself leaves. */
bool po_write_prelu(po_rewriting *r, po_graph *graph, po_node_id id) {
    if (!r->options->activations || graph->nodes[id].op != PO_OP_PRelu)
        return false;
    const po_node *n = &graph->nodes[id];
    po_value_id x = n->in[0];
    const po_tensor *slope = po_graph_constant(graph, n->in[1]);
    int64_t channels = po_dim_of(graph, x, 1);
    if (!slope || !po_is_f32(graph, n->out[0]) || po_rank_of(graph, x) != 4 || slope->rank < 3 ||
        slope->rank > 4 || slope->count != channels || channels < 1 ||
        slope->dims[slope->rank - 3] != channels || !po_made_by_conv(graph, x))
        return false;
    int64_t dims[3] = {channels, 1, 1};
    /* For a positive x the two shares must add up to it within rounding. */
    for (int64_t i = 0; i < channels; i++)
        if (!(fabs(po_tensor_f64(slope, i)) <= 4))
            return false;
    po_arena *arena = po_arena_child(graph->arena);
    const po_recipe *a =
        po_recipe_reshape(arena, po_recipe_doubles(graph, arena, n->in[1]), 3, dims);
    po_value_id below = po_add_recipe(graph, NULL, PO_F32, a);
    po_value_id share =
        po_add_recipe(graph, NULL, PO_F32, po_recipe_sub(arena, po_recipe_number(arena, 1), a));
    po_arena_free(arena);
    if (below == PO_NONE || share == PO_NONE)
        return false;
    /* One call a statement: the order in which arguments are evaluated is the compiler's choice,
     * and names are given in the order of the calls. */
    po_value_id falling = po_add_pair(graph, id, PO_OP_Mul, x, below);
    po_value_id rising =
        po_add_pair(graph, id, PO_OP_Mul, po_add_unary(graph, id, PO_OP_Relu, x), share);
    replace(graph, id, po_add_pair(graph, id, PO_OP_Add, falling, rising));
    return true;
}

/* The runtime turns every axis but the last one there and back. Over a short axis in front of long
 * rows the parts are faster, each of which works along the rows. */
enum { LONGEST_SUM = 64, LEAST_ROWS = 64, AXIS_SOFTMAX_SINCE = 13 };

bool po_write_softmax(po_rewriting *r, po_graph *graph, po_node_id id) {
    if (!r->options->activations || graph->nodes[id].op != PO_OP_Softmax)
        return false;
    const po_node *n = &graph->nodes[id];
    po_value_id x = n->in[0];
    uint32_t rank;
    const po_dim *d = po_static_dims(graph, x, &rank);
    int64_t axis = po_node_int(n, "axis", -1), rows = 1;
    if (!d || po_opset_of(graph) < AXIS_SOFTMAX_SINCE || !po_is_f32(graph, x))
        return false;
    axis += axis < 0 ? rank : 0;
    if (axis < 0 || axis >= (int64_t)rank || d[axis].value > LONGEST_SUM)
        return false;
    for (uint32_t i = (uint32_t)axis + 1; i < rank; i++)
        if (!po_mul_i64(rows, d[i].value, &rows))
            return false;
    if (rows < LEAST_ROWS)
        return false;
    po_value_id most = po_add_reduction(graph, id, PO_OP_ReduceMax, x, axis);
    po_value_id e = po_add_unary(graph, id, PO_OP_Exp, po_add_pair(graph, id, PO_OP_Sub, x, most));
    po_value_id sum = po_add_reduction(graph, id, PO_OP_ReduceSum, e, axis);
    replace(graph, id, po_add_pair(graph, id, PO_OP_Div, e, sum));
    return true;
}

/* --- powers --- */

/* True where a reader makes this power part of a pattern that the runtime fuses: a mean over the
 * last axis, the bend of a GELU. */
static bool awaited(const po_graph *graph, po_value_id y, double power) {
    for (uint32_t i = 0; i < graph->values[y].n_uses; i++) {
        po_use use = graph->values[y].uses[i];
        const po_node *r = &graph->nodes[use.node];
        uint32_t axis;
        if (use.input == PO_USE_CAPTURE)
            continue;
        if (power == 2 && r->op == PO_OP_ReduceMean)
            return !po_reduced_axis(graph, r, &axis) || (int)axis == po_rank_of(graph, y) - 1;
        if (power == 3 && r->op == PO_OP_Mul)
            return true;
    }
    return false;
}

bool po_write_power(po_rewriting *r, po_graph *graph, po_node_id id) {
    if (!r->options->activations || graph->nodes[id].op != PO_OP_Pow)
        return false;
    const po_node *n = &graph->nodes[id];
    po_value_id x = n->in[0], y = n->out[0], made;
    double power;
    if (n->n_in != 2 || po_opset_of(graph) < 7 || !po_rearrangeable(graph, y) ||
        graph->values[x].type.dtype != graph->values[y].type.dtype || !po_same_rank(graph, x, y) ||
        !po_scalar_constant(graph, n->in[1], &power) || awaited(graph, y, power))
        return false;
    if (power == 2) {
        made = po_add_pair(graph, id, PO_OP_Mul, x, x);
    } else if (power == 3) {
        made = po_add_pair(graph, id, PO_OP_Mul, po_add_pair(graph, id, PO_OP_Mul, x, x), x);
    } else if (power == 4) {
        made = po_add_pair(graph, id, PO_OP_Mul, x, x);
        made = po_add_pair(graph, id, PO_OP_Mul, made, made);
    } else if (power == -1) {
        made = po_add_unary(graph, id, PO_OP_Reciprocal, x);
    } else if (power == -2) {
        made = po_add_unary(graph, id, PO_OP_Reciprocal, po_add_pair(graph, id, PO_OP_Mul, x, x));
    } else if (power == 0.5) {
        made = po_add_unary(graph, id, PO_OP_Sqrt, x);
    } else if (power == -0.5) {
        made = po_add_unary(graph, id, PO_OP_Reciprocal, po_add_unary(graph, id, PO_OP_Sqrt, x));
    } else if (power == 1.5) {
        made = po_add_pair(graph, id, PO_OP_Mul, x, po_add_unary(graph, id, PO_OP_Sqrt, x));
    } else {
        return false;
    }
    po_substitute(graph, y, made);
    return true;
}

/* --- norms --- */

/* Between transposes the runtime would move these through the norm, whose axis is then no longer
 * the last one, and fuse nothing. As rows of a matrix the norm stays what it is. */
static bool as_matrix(const po_graph *graph, po_value_id x, int64_t dims[2]) {
    uint32_t rank;
    const po_dim *d = po_static_dims(graph, x, &rank);
    if (!d || rank < 3 || !po_made_by(graph, x, PO_OP_Transpose))
        return false;
    dims[0] = 1;
    for (uint32_t i = 0; i + 1 < rank; i++)
        if (!po_mul_i64(dims[0], d[i].value, &dims[0]))
            return false;
    dims[1] = d[rank - 1].value;
    return true;
}

/* (x - mean) / sqrt(mean((x - mean)^2) + eps) * scale + shift; without the mean for the root mean
 * square. Square as a power, division by the root: only this is fused. */
bool po_write_norm(po_rewriting *r, po_graph *graph, po_node_id id) {
    const po_op_id op = graph->nodes[id].op;
    if (!r->options->norms || (op != PO_OP_LayerNormalization && op != PO_OP_RMSNormalization))
        return false;
    const po_node *n = &graph->nodes[id];
    bool centred = n->op == PO_OP_LayerNormalization;
    po_value_id x = n->in[0], scale = n->in[1], shift = n->n_in > 2 ? n->in[2] : PO_NONE;
    double eps = (double)po_node_float(n, "epsilon", 1e-5f);
    if (po_opset_of(graph) >= (centred ? PO_LAYER_NORM_SINCE : PO_RMS_NORM_SINCE))
        return false;
    po_type type = graph->values[x].type;
    int64_t matrix[2];
    bool flat = as_matrix(graph, x, matrix);
    if (flat)
        x = po_add_reshape(graph, id, x, 2, matrix);
    if (centred)
        x = po_add_pair(graph, id, PO_OP_Sub, x,
                        po_add_reduction(graph, id, PO_OP_ReduceMean, x, -1));
    po_value_id power = po_add_scalar(graph, id, PO_OP_Pow, x, 2);
    po_value_id sum = po_add_reduction(graph, id, PO_OP_ReduceMean, power, -1);
    sum = po_add_scalar(graph, id, PO_OP_Add, sum, eps);
    po_value_id y = po_add_pair(graph, id, PO_OP_Div, x, po_add_unary(graph, id, PO_OP_Sqrt, sum));
    y = po_add_pair(graph, id, PO_OP_Mul, y, scale);
    if (shift != PO_NONE)
        y = po_add_pair(graph, id, PO_OP_Add, y, shift);
    if (flat) {
        int64_t dims[PO_MAX_RANK];
        for (uint32_t i = 0; i < type.rank; i++)
            dims[i] = type.dims[i].value;
        y = po_add_reshape(graph, id, y, type.rank, dims);
    }
    replace(graph, id, y);
    return true;
}
