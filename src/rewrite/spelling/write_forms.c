/* The last spelling of activations and norms: single nodes that the model's opset does not have
 * are written out in the form that the runtime fuses; operators that it runs badly are written with
 * others. Runs once, after everything that might take the forms apart. The figures behind each
 * choice: docs/forms.md. */
#include "base/num.h"
#include "ops/conv_view.h"
#include "rewrite/pattern.h"
#include "rewrite/spelling/match.h"

#include <math.h>

/* --- activations --- */

/* The letters of what is written: x is what the node reads. */
static po_match reads(const po_graph *graph, po_node_id id) {
    po_match m = {0};
    po_match_value(&m, 'x', graph->nodes[id].in[0]);
    return m;
}

/* The division and this order are what is fused; the cube as a power. */
bool po_write_gelu(po_rewriting *r, po_graph *graph, po_node_id id) {
    const po_node *n = &graph->nodes[id];
    if (!r->options->activations || n->op != PO_OP_Gelu || po_opset_of(graph) >= PO_GELU_SINCE ||
        !po_is_f32(graph, n->out[0]))
        return false;
    const po_match m = reads(graph, id);
    return po_write_instead(
        graph, id, &m,
        po_node_string_is(n, "approximate", "tanh", "none")
            ? "t = Add(Tanh(Mul(Add(x, Mul(Pow(x, 3), 0.044715)), sqrt(2/pi))), 1); "
              "Mul(Mul(x, 0.5), t)"
            : "Mul(Mul(x, Add(Erf(Div(x, sqrt(2))), 1)), 0.5)");
}

/* x tanh(log(1 + e)) = x n / (n + 2) with e = exp x, n = e (e + 2): exact for small x too, where
 * 1 + e would lose what e holds. Above 20 the quotient is 1 in float. */
bool po_write_mish(po_rewriting *r, po_graph *graph, po_node_id id) {
    const po_match m = reads(graph, id);
    return r->options->activations && graph->nodes[id].op == PO_OP_Mish &&
           po_is_f32(graph, graph->nodes[id].out[0]) &&
           po_write_instead(
               graph, id, &m,
               "e = Exp(Clip(x, -inf, 20)); n = Mul(e, Add(e, 2)); Mul(x, Div(n, Add(n, 2)))");
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
    po_match m = reads(graph, id);
    po_match_value(&m, 'b', below);
    po_match_value(&m, 's', share);
    return po_write_instead(graph, id, &m, "Add(Mul(x, b), Mul(Relu(x), s))");
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
    po_match m = reads(graph, id);
    po_match_number(&m, 'k', (double)axis);
    return po_write_instead(graph, id, &m,
                            "e = Exp(Sub(x, ReduceMax[k](x))); Div(e, ReduceSum[k](e))");
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
    static const struct {
        double power;
        const char *text;
    } powers[] = {{2, "Mul(x, x)"},
                  {3, "Mul(Mul(x, x), x)"},
                  {4, "s = Mul(x, x); Mul(s, s)"},
                  {-1, "Reciprocal(x)"},
                  {-2, "Reciprocal(Mul(x, x))"},
                  {0.5, "Sqrt(x)"},
                  {-0.5, "Reciprocal(Sqrt(x))"},
                  {1.5, "Mul(x, Sqrt(x))"}};
    const po_node *n = &graph->nodes[id];
    if (!r->options->activations || n->op != PO_OP_Pow || n->n_in != 2 || po_opset_of(graph) < 7)
        return false;
    const po_value_id x = n->in[0], y = n->out[0];
    double power;
    if (!po_rearrangeable(graph, y) || graph->values[x].type.dtype != graph->values[y].type.dtype ||
        !po_same_rank(graph, x, y) || !po_scalar_constant(graph, n->in[1], &power) ||
        awaited(graph, y, power))
        return false;
    const po_match m = reads(graph, id);
    for (size_t i = 0; i < sizeof powers / sizeof *powers; i++)
        if (power == powers[i].power)
            return po_write_instead(graph, id, &m, powers[i].text);
    return false;
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
#define SCALED "Mul(Div(x, Sqrt(Add(ReduceMean[-1](Pow(x, 2)), e))), s)"
bool po_write_norm(po_rewriting *r, po_graph *graph, po_node_id id) {
    const po_node *n = &graph->nodes[id];
    const bool centred = n->op == PO_OP_LayerNormalization;
    if (!r->options->norms || (!centred && n->op != PO_OP_RMSNormalization) ||
        po_opset_of(graph) >= (centred ? PO_LAYER_NORM_SINCE : PO_RMS_NORM_SINCE))
        return false;
    const po_type type = graph->values[n->in[0]].type;
    const bool shifted = n->n_in > 2 && n->in[2] != PO_NONE;
    po_match m = reads(graph, id);
    po_match_value(&m, 's', n->in[1]);
    po_match_value(&m, 'b', shifted ? n->in[2] : PO_NONE);
    po_match_number(&m, 'e', (double)po_node_float(n, "epsilon", 1e-5f));
    int64_t dims[PO_MAX_RANK];
    const bool flat = as_matrix(graph, n->in[0], dims);
    if (flat)
        po_match_value(&m, 'x', po_add_reshape(graph, id, n->in[0], 2, dims));
    po_value_id y = po_write(graph, id, &m,
                             !centred  ? SCALED
                             : shifted ? "x = Sub(x, ReduceMean[-1](x)); Add(" SCALED ", b)"
                                       : "x = Sub(x, ReduceMean[-1](x)); " SCALED);
    for (uint32_t i = 0; flat && i < type.rank; i++)
        dims[i] = type.dims[i].value;
    if (flat)
        y = po_add_reshape(graph, id, y, type.rank, dims);
    po_substitute(graph, graph->nodes[id].out[0], y);
    return true;
}
