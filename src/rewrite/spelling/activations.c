/* Activations in the spellings of exporters, recognised by what they compute. GELU, Mish and their
 * kind become single nodes here, whatever the model's opset, so that no other pass takes them
 * apart; write_forms.c spells them for the opset and the runtime at the end. Which form is fastest
 * was measured: docs/forms.md. */
#include "rewrite/pattern.h"
#include "rewrite/spelling/match.h"

#include <math.h>

/* In f32, of x alone: what stands beside it does not widen it. */
static bool of_x(const po_graph *graph, const po_node *node, po_match *m) {
    return po_is_f32(graph, node->out[0]) && po_same_rank(graph, po_matched(m, 'x'), node->out[0]);
}

static bool divides(const po_graph *graph, const po_node *node, po_match *m) {
    const double c = po_matched_number(m, 'c');
    return of_x(graph, node, m) && c != 0 && isfinite(1 / c);
}

/* Over the last axis: what Softmax before opset 13 means. */
static bool last_axis(const po_graph *graph, const po_node *node, po_match *m) {
    const int axis = (int)po_matched_number(m, 'k');
    po_match_number(m, 'a', po_opset_of(graph) < 11 ? axis : -1);
    return po_rearrangeable(graph, node->out[0]) &&
           axis == po_rank_of(graph, po_matched(m, 'e')) - 1;
}

/* Min and Max broadcast. */
enum { BOUNDS_SINCE = 8 };

static bool bounds(const po_graph *graph, const po_node *node, po_match *m) {
    const double low = po_matched_number(m, 'a'), high = po_matched_number(m, 'b');
    return of_x(graph, node, m) && po_opset_of(graph) >= BOUNDS_SINCE && low <= high &&
           isfinite(low) && isfinite(high);
}

static bool part_of_x(const po_graph *graph, const po_node *node, po_match *m) {
    const double a = po_matched_number(m, 'a');
    return of_x(graph, node, m) && po_opset_of(graph) >= BOUNDS_SINCE && a >= 0 && a < 1;
}

/* The same slope everywhere. */
static bool one_slope(const po_graph *graph, const po_node *node, po_match *m) {
    const po_tensor *slope = po_graph_constant(graph, po_matched(m, 's'));
    const double a = slope->count < 1 ? NAN : po_tensor_f64(slope, 0);
    po_match_number(m, 'a', a);
    return po_is_f32(graph, node->out[0]) && isfinite(a) && po_all_equal(slope, a);
}

/* The maximum subtracted before or not. */
#define SUM "ReduceSum[k](e=Exp((Sub(x, &ReduceMax[k](x)) | x)))"

/* The runtime fuses clips, Relu and LeakyRelu into convolutions, x Sigmoid(c x) where c is a
 * factor. */
static const po_text_law laws[] = {
    {PO_LAW_GELU_ERF, "product(c, x, line(a, Erf(line(sqrt(1/2), x, 0)), a))", of_x,
     "Mul(Gelu(x), 2*a*c)"},
    {PO_LAW_GELU_TANH,
     "product(c, x, line(a, Tanh(cubic(x, 0, sqrt(2/pi), 0, 0.044715*sqrt(2/pi))), a))", of_x,
     "Mul(Gelu{approximate=tanh}(x), 2*a*c)"},
    {PO_LAW_MISH, "product(c, x, Tanh((Softplus(x) | Log(line(1, Exp(x), 1)))))", of_x,
     "Mul(Mish(x), c)"},
    {PO_LAW_GATE_ARGUMENT, "Mul(x, Sigmoid(Div(x, c:number)))", divides,
     "Mul(x, Sigmoid(Mul(x, 1/c)))"},
    {PO_LAW_SOFTMAX, "(Div(e, " SUM ") | Mul(e, Reciprocal(" SUM ")))", last_axis,
     "Softmax{axis=a}(x)"},
    {PO_LAW_CLIP,
     "(Min((Max(x, a:number) | Relu(x)), b:number) | Max(Min(x, b:number), a:number) | "
     "Relu(Min(x, b:number)))",
     bounds, "Clip(x, a, b)"},
    {PO_LAW_RELU, "Max(x, 0)", bounds, "Relu(x)"},
    {PO_LAW_LEAKY, "Max(x, line(a, x, 0))", part_of_x, "LeakyRelu{alpha=a}(x)"},
    {PO_LAW_PRELU, "PRelu(x, s:const)", one_slope, "LeakyRelu{alpha=a}(x)"},
};

/* u / (1 + exp(-z)) = u Sigmoid(z), of any multiple; z may have a factor for each channel. */
#define BELOW "line(a, Exp(z), a)"
static bool quotient_to_sigmoid(po_rewriting *r, po_graph *graph, po_node_id id) {
    const po_node *n = &graph->nodes[id];
    po_match m;
    po_affine f;
    if (!po_matches(graph, r->scratch, n,
                    "(Div(c:number, " BELOW ") | Div(u, " BELOW ") | Reciprocal(" BELOW "))", &m))
        return false;
    const po_value_id y = n->out[0], z = po_matched(&m, 'z');
    const bool scaled = po_matched(&m, 'u') != PO_NONE;
    if (!po_is_f32(graph, y) || !po_read_once(graph, z) ||
        !po_affine_match(graph, r->scratch, z, &f) || (!scaled && !po_same_rank(graph, f.x, y)))
        return false;
    po_affine_derive(graph, r->scratch, &f);
    f.ra = po_recipe_neg(r->scratch, po_affine_scale(r->scratch, &f, 1, 0));
    f.rb = po_recipe_neg(r->scratch, po_affine_shift(r->scratch, &f, 1, 0));
    for (uint32_t i = 0; i < f.n; i++) {
        if (!(f.a[i] < 0))
            return false;
        f.a[i] = -f.a[i];
        f.b[i] = f.b[i] == 0 ? 0 : -f.b[i];
    }
    if (n->op == PO_OP_Reciprocal)
        po_match_number(&m, 'c', 1);
    po_match_value(&m, 'z', po_affine_emit(graph, id, f.x, &f));
    return po_write_instead(graph, id, &m,
                            scaled ? "Mul(Mul(u, Sigmoid(z)), 1/a)" : "Mul(Sigmoid(z), c/a)");
}

po_status po_find_activations(po_ctx *ctx, po_graph *graph, po_rewriting *state) {
    (void)ctx;
    if (!state->options->activations)
        return PO_OK;
    uint32_t n;
    const po_node_id *order = po_graph_order(graph, state->scratch, &n);
    /* From the end: the whole is met before its parts. */
    for (uint32_t k = n; k-- > 0;) {
        const po_node *node = &graph->nodes[order[k]];
        if (!node->removed && node->n_out > 0 && node->out[0] != PO_NONE &&
            po_is_read(graph, node->out[0]) &&
            !po_rewrite_by_text(state, graph, order[k], laws, sizeof laws / sizeof *laws))
            po_law_fired(state, PO_LAW_SIGMOID, quotient_to_sigmoid(state, graph, order[k]));
    }
    return PO_OK;
}
