/* Activations in the spellings of exporters, recognised by what they compute. GELU, Mish and their
 * kind become single nodes here, whatever the model's opset, so that no other pass takes them
 * apart; write_forms.c spells them for the opset and the runtime at the end. Which form is fastest
 * was measured: docs/forms.md. */
#include "rewrite/passes.h"
#include "rewrite/spelling/match.h"

#include <math.h>

static po_value_id scaled(po_graph *graph, po_node_id place, po_value_id y, double c) {
    return po_near(c, 1) ? y : po_add_scalar(graph, place, PO_OP_Mul, y, c);
}

/* --- GELU, Mish: products of x and a function of x --- */

/* factor = a * f(..) + b with f made by this operator; its argument. */
static bool line_of(const po_graph *graph, po_arena *arena, po_value_id factor, po_op_id op,
                    po_value_id *argument, double *a, double *b) {
    po_value_id made;
    po_match_line(graph, arena, factor, &made, a, b);
    const po_node *f = po_made_alone_by(graph, made, op);
    if (!f)
        return false;
    *argument = f->in[0];
    return true;
}

/* x (1 + erf(x / sqrt 2)) / 2; also any multiple of it. */
static bool erf_gelu(const po_graph *graph, po_arena *arena, po_value_id x, po_value_id factor,
                     double *scale) {
    po_value_id u, of;
    double a, b, s, shift;
    if (!line_of(graph, arena, factor, PO_OP_Erf, &u, &a, &b) || !po_near(a, b))
        return false;
    po_match_line(graph, arena, u, &of, &s, &shift);
    if (of != x || shift != 0 || !po_near(s, M_SQRT1_2))
        return false;
    *scale = 2 * a;
    return true;
}

/* x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2; also any multiple of it. */
static bool tanh_gelu(const po_graph *graph, po_arena *arena, po_value_id x, po_value_id factor,
                      double *scale) {
    po_value_id u;
    double a, b, k[4];
    if (!line_of(graph, arena, factor, PO_OP_Tanh, &u, &a, &b) || !po_near(a, b) ||
        !po_match_cubic(graph, u, x, k))
        return false;
    const double slope = sqrt(2 / M_PI);
    if (k[0] != 0 || k[2] != 0 || !po_near(k[1], slope) || !po_near(k[3], 0.044715 * slope))
        return false;
    *scale = 2 * a;
    return true;
}

/* x tanh(log(1 + exp x)). */
static bool mish(const po_graph *graph, po_arena *arena, po_value_id x, po_value_id factor) {
    const po_node *tanh_node = po_made_alone_by(graph, factor, PO_OP_Tanh);
    if (!tanh_node)
        return false;
    const po_node *plus = po_made_alone_by(graph, tanh_node->in[0], PO_OP_Softplus);
    if (plus)
        return plus->in[0] == x;
    const po_node *log_node = po_made_alone_by(graph, tanh_node->in[0], PO_OP_Log);
    po_value_id u;
    double a, b;
    return log_node && line_of(graph, arena, log_node->in[0], PO_OP_Exp, &u, &a, &b) && u == x &&
           a == 1 && b == 1;
}

static bool product_to_node(po_graph *graph, po_node_id id, po_rewriting *state) {
    po_arena *arena = state->scratch;
    po_value_id y = graph->nodes[id].out[0], made;
    po_matched_product p;
    if (!po_is_f32(graph, y) || !po_match_product(graph, y, &p) || p.n != 2)
        return false;
    for (uint32_t k = 0; k < 2; k++) {
        po_value_id x = p.v[k], factor = p.v[1 - k];
        double scale = 1;
        if (!po_same_rank(graph, x, y))
            continue;
        if (erf_gelu(graph, arena, x, factor, &scale)) {
            made = po_add_unary(graph, id, PO_OP_Gelu, x);
            po_law_fired(state, PO_LAW_GELU_ERF, true);
        } else if (tanh_gelu(graph, arena, x, factor, &scale)) {
            made = po_add_unary(graph, id, PO_OP_Gelu, x);
            po_node_set_string(graph, graph->values[made].producer, "approximate", "tanh");
            po_law_fired(state, PO_LAW_GELU_TANH, true);
        } else if (mish(graph, arena, x, factor)) {
            made = po_add_unary(graph, id, PO_OP_Mish, x);
            po_law_fired(state, PO_LAW_MISH, true);
        } else {
            continue;
        }
        po_substitute(graph, y, scaled(graph, id, made, scale * p.c));
        return true;
    }
    return false;
}

/* --- Sigmoid --- */

/* u / (1 + exp(-z)) = u Sigmoid(z); u = 1 for Reciprocal. */
static bool quotient_to_sigmoid(po_graph *graph, po_arena *arena, po_node_id id) {
    const po_node *n = &graph->nodes[id];
    bool division = n->op == PO_OP_Div;
    po_value_id y = n->out[0], below = n->in[division ? 1 : 0], z;
    double a, b, c = 1;
    po_affine m;
    if (!po_is_f32(graph, y) || po_opset_of(graph) < 7 ||
        !line_of(graph, arena, below, PO_OP_Exp, &z, &a, &b) || !po_near(a, b) ||
        !po_read_once(graph, z) || !po_affine_match(graph, arena, z, &m))
        return false;
    bool number = !division || po_scalar_constant(graph, n->in[0], &c);
    po_affine_derive(graph, arena, &m);
    m.ra = po_recipe_neg(arena, po_affine_scale(arena, &m, 1, 0));
    m.rb = po_recipe_neg(arena, po_affine_shift(arena, &m, 1, 0));
    for (uint32_t i = 0; i < m.n; i++) {
        if (!(m.a[i] < 0))
            return false;
        m.a[i] = -m.a[i];
        m.b[i] = m.b[i] == 0 ? 0 : -m.b[i];
    }
    if (number && !po_same_rank(graph, m.x, y))
        return false;
    po_value_id above = division ? n->in[0] : PO_NONE;
    po_value_id s = po_add_unary(graph, id, PO_OP_Sigmoid, po_affine_emit(graph, id, m.x, &m));
    if (!number) {
        po_type type = graph->values[y].type;
        s = po_add_op(graph, id, PO_OP_Mul, 2, (po_value_id[]){above, s}, &type);
    }
    po_substitute(graph, y, scaled(graph, id, s, c / a));
    return true;
}

/* The argument of a gating Sigmoid, x * Sigmoid(x / c), as a product: the runtime fuses that. */
static bool gate_argument(po_graph *graph, po_node_id id) {
    const po_node *n = &graph->nodes[id];
    const po_node *quotient = po_made_alone_by(graph, n->in[0], PO_OP_Div);
    const po_use *reader = po_graph_sole_use(graph, n->out[0]);
    double c;
    if (!quotient || !reader || !po_is_f32(graph, n->out[0]) || po_opset_of(graph) < 7 ||
        !po_scalar_constant(graph, quotient->in[1], &c) || !isfinite(1 / c) || c == 0 ||
        !po_same_rank(graph, quotient->in[0], n->in[0]))
        return false;
    const po_node *product = &graph->nodes[reader->node];
    if (product->op != PO_OP_Mul || product->in[1 - reader->input] != quotient->in[0])
        return false;
    po_value_id x = quotient->in[0];
    po_graph_set_input(graph, id, 0, po_add_scalar(graph, id, PO_OP_Mul, x, 1 / c));
    return true;
}

/* --- Softmax --- */

/* exp(x) / sum(exp(x)) over the last axis, the maximum subtracted before or not. */
static bool quotient_to_softmax(po_graph *graph, po_node_id id) {
    const po_node *n = &graph->nodes[id];
    po_value_id y = n->out[0], e = n->in[0], sum = n->in[1];
    if (n->op == PO_OP_Mul) {
        const po_node *inverse = po_made_alone_by(graph, sum, PO_OP_Reciprocal);
        if (!inverse)
            return false;
        sum = inverse->in[0];
    }
    const po_node *reduce = po_made_alone_by(graph, sum, PO_OP_ReduceSum);
    const po_node *exp_node = po_made_by(graph, e, PO_OP_Exp);
    uint32_t axis, of;
    if (!reduce || !exp_node || reduce->in[0] != e || !po_rearrangeable(graph, y) ||
        !po_reduced_axis(graph, reduce, &axis) || (int)axis != po_rank_of(graph, e) - 1 ||
        graph->values[e].n_uses != 2 || graph->values[e].n_outputs)
        return false;
    po_value_id x = exp_node->in[0];
    const po_node *sub = po_made_alone_by(graph, x, PO_OP_Sub);
    const po_node *max = sub ? po_made_by(graph, sub->in[1], PO_OP_ReduceMax) : NULL;
    if (max && max->in[0] == sub->in[0] && po_reduced_axis(graph, max, &of) && of == axis)
        x = sub->in[0];
    po_value_id made = po_add_unary(graph, id, PO_OP_Softmax, x);
    po_node_set_int(graph, graph->values[made].producer, "axis",
                    po_opset_of(graph) < 11 ? (int64_t)axis : -1);
    po_substitute(graph, y, made);
    return true;
}

/* --- clips --- */

/* Min or Max of x and a number, or Relu: x and the bound. */
static bool bounded(const po_graph *graph, const po_node *n, po_op_id op, po_value_id *x,
                    double *bound) {
    if (n->op == PO_OP_Relu && op == PO_OP_Max) {
        *x = n->in[0];
        *bound = 0;
        return true;
    }
    if (n->op != op || n->n_in != 2)
        return false;
    for (uint32_t k = 0; k < 2; k++)
        if (po_scalar_constant(graph, n->in[k], bound)) {
            *x = n->in[1 - k];
            return po_same_rank(graph, *x, n->out[0]);
        }
    return false;
}

/* Min(Max(x, low), high) and its kind as Clip, Max(x, 0) as Relu, Max(x, a x) as LeakyRelu: the
 * runtime fuses these into convolutions. */
static void bounds_to_clip(po_graph *graph, po_node_id id, po_rewriting *state) {
    const po_node *n = &graph->nodes[id];
    po_op_id other = n->op == PO_OP_Min ? PO_OP_Max : PO_OP_Min;
    po_value_id y = n->out[0], inner = PO_NONE, x = PO_NONE, made;
    double bound, low, high;
    if (!po_is_f32(graph, y) || po_opset_of(graph) < 8)
        return;
    bool by_number = bounded(graph, n, n->op == PO_OP_Min ? PO_OP_Min : PO_OP_Max, &inner, &bound);
    const po_node *m =
        by_number && po_read_once(graph, inner) ? po_graph_producer(graph, inner) : NULL;
    if (m && bounded(graph, m, other, &x, &high)) {
        low = other == PO_OP_Max ? high : bound;
        high = other == PO_OP_Max ? bound : high;
        if (!(low <= high) || !isfinite(low) || !isfinite(high))
            return;
        made = po_add_clip(graph, id, x, low, high);
        po_law_fired(state, PO_LAW_CLIP, true);
    } else if (by_number && n->op == PO_OP_Max && bound == 0) {
        made = po_add_unary(graph, id, PO_OP_Relu, inner);
        po_law_fired(state, PO_LAW_RELU, true);
    } else if (n->op == PO_OP_Max && n->n_in == 2) {
        double a = -1, b = 0;
        po_value_id of = PO_NONE;
        for (uint32_t k = 0; k < 2 && of == PO_NONE; k++) {
            po_match_line(graph, state->scratch, n->in[k], &of, &a, &b);
            if (of != n->in[1 - k] || n->in[k] == of || b != 0 || !(a >= 0 && a <= 1))
                of = PO_NONE;
        }
        if (of == PO_NONE)
            return;
        made = po_add_unary(graph, id, PO_OP_LeakyRelu, of);
        po_node_set_float(graph, graph->values[made].producer, "alpha", (float)a);
        po_law_fired(state, PO_LAW_LEAKY, true);
    } else {
        return;
    }
    po_substitute(graph, y, made);
}

/* PRelu with the same slope everywhere: LeakyRelu, which the runtime fuses. */
static bool prelu_to_leaky(po_graph *graph, po_node_id id) {
    const po_node *n = &graph->nodes[id];
    const po_tensor *slope = po_graph_constant(graph, n->in[1]);
    if (!slope || !po_is_f32(graph, n->out[0]) || slope->count < 1)
        return false;
    double a = po_tensor_f64(slope, 0);
    if (!po_all_equal(slope, a) || !isfinite(a))
        return false;
    po_value_id made = po_add_unary(graph, id, PO_OP_LeakyRelu, n->in[0]);
    po_node_set_float(graph, graph->values[made].producer, "alpha", (float)a);
    po_substitute(graph, graph->nodes[id].out[0], made);
    return true;
}

po_status po_find_activations(po_ctx *ctx, po_graph *graph, po_rewriting *state) {
    (void)ctx;
    if (!state->options->activations)
        return PO_OK;
    po_arena *arena = state->scratch;
    uint32_t n;
    const po_node_id *order = po_graph_order(graph, arena, &n);
    /* From the end: the whole is met before its parts. */
    for (uint32_t k = n; k-- > 0;) {
        po_node_id id = order[k];
        const po_node *node = &graph->nodes[id];
        if (node->removed || node->n_out == 0 || node->out[0] == PO_NONE ||
            !po_is_read(graph, node->out[0]))
            continue;
        switch ((po_op)node->op) {
        case PO_OP_Mul:
            if (!product_to_node(graph, id, state))
                po_law_fired(state, PO_LAW_SOFTMAX, quotient_to_softmax(graph, id));
            break;
        case PO_OP_Div:
            (void)(product_to_node(graph, id, state) ||
                   po_law_fired(state, PO_LAW_SIGMOID, quotient_to_sigmoid(graph, arena, id)) ||
                   po_law_fired(state, PO_LAW_SOFTMAX, quotient_to_softmax(graph, id)));
            break;
        case PO_OP_Reciprocal:
            po_law_fired(state, PO_LAW_SIGMOID, quotient_to_sigmoid(graph, arena, id));
            break;
        case PO_OP_Sigmoid:
            po_law_fired(state, PO_LAW_GATE_ARGUMENT, gate_argument(graph, id));
            break;
        case PO_OP_Min:
        case PO_OP_Max:
        case PO_OP_Relu:
            bounds_to_clip(graph, id, state);
            break;
        case PO_OP_PRelu:
            po_law_fired(state, PO_LAW_PRELU, prelu_to_leaky(graph, id));
            break;
        default:
            break;
        }
    }
    return PO_OK;
}
