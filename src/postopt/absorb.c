/* Affine maps into the weights of neighbours, and past what they commute with. */
#include "postopt/affine.h"

#include <float.h>
#include <math.h>

/* --- weights as doubles --- */

typedef struct weights {
    const po_tensor *tensor; /* NULL: zeros */
    po_dtype dtype;
    uint32_t rank;
    const int64_t *dims;
    int64_t count;
    double *v; /* once filled */
} weights;

/* What questions need: the values are read once it is clear that they will be changed. */
static bool look(const po_graph *graph, po_value_id value, weights *w) {
    const po_tensor *t = po_graph_constant(graph, value);
    if (!t || (t->dtype != PO_F32 && t->dtype != PO_F64))
        return false;
    *w = (weights){t, t->dtype, t->rank, t->dims, t->count, NULL};
    return true;
}

/* A bias of n zeros where the node has none. */
static bool look_bias(const po_graph *graph, po_arena *arena, const po_node *n, uint32_t input,
                      int64_t length, po_dtype dtype, weights *bias) {
    if (n->n_in > input && n->in[input] != PO_NONE)
        return look(graph, n->in[input], bias) && bias->count == length;
    int64_t *dims = PO_NEW(arena, int64_t);
    *dims = length;
    *bias = (weights){NULL, dtype, 1, dims, length, NULL};
    return true;
}

static void fill(po_arena *arena, weights *w) {
    w->v = w->tensor ? po_tensor_doubles(arena, w->tensor) : PO_NEW_N(arena, double, w->count);
}

static void store(po_graph *graph, po_node_id node, uint32_t input, const weights *w) {
    po_value_id v = po_add_floats(graph, NULL, w->dtype, w->rank, w->dims, w->v);
    if (graph->nodes[node].n_in <= input)
        po_graph_resize_inputs(graph, node, input + 1);
    po_graph_set_input(graph, node, input, v);
}

/* Still finite once rounded: a product of extreme coefficients may not be. */
static bool fits(const weights *w) {
    for (int64_t i = 0; i < w->count; i++)
        if (!isfinite(w->v[i]) || (w->dtype == PO_F32 && fabs(w->v[i]) > (double)FLT_MAX))
            return false;
    return true;
}

static bool any(const double *v, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        if (v[i] != 0)
            return true;
    return false;
}

/* --- backwards --- */

/* Where the output channels of each operator's weights lie: the flat index is
 * ((outer * channels) + channel) * inner + rest; a transposed convolution has one such block for
 * each group. */
typedef enum layout { CONV, CONV_TRANSPOSE, COLUMNS, ROWS } layout;

static int64_t out_channels(const weights *w, layout l, int64_t group) {
    switch (l) {
    case CONV:
    case ROWS:
        return w->dims[0];
    case CONV_TRANSPOSE:
        return w->dims[1] * group;
    case COLUMNS:
        break;
    }
    return w->dims[w->rank - 1];
}

static void scale_channels(weights *w, layout l, int64_t group, const po_affine *m) {
    int64_t outer = 1, channels = w->dims[0];
    if (l == CONV_TRANSPOSE) {
        outer = w->dims[0];
        channels = w->dims[1];
    } else if (l == COLUMNS) {
        channels = w->dims[w->rank - 1];
        outer = w->count / channels;
    }
    int64_t inner = w->count / (outer * channels);
    double *v = w->v;
    for (int64_t o = 0; o < outer; o++) {
        int64_t base = l == CONV_TRANSPOSE ? o / (outer / group) * channels : 0;
        for (int64_t c = 0; c < channels; c++) {
            double a = po_affine_a(m, base + c);
            for (int64_t i = 0; i < inner; i++)
                *v++ *= a;
        }
    }
}

/* Scales the outputs of a linear operator and shifts its bias. */
static bool scale_outputs(po_graph *graph, po_arena *arena, const po_affine *m, po_node_id id,
                          layout l, bool has_bias) {
    const po_node *n = &graph->nodes[id];
    weights w, bias;
    int64_t group = l == CONV_TRANSPOSE ? po_node_int(n, "group", 1) : 1;
    if (!look(graph, n->in[1], &w) || w.rank < 2 || w.count == 0 || group < 1 || w.dims[0] % group)
        return false;
    int64_t channels = out_channels(&w, l, group);
    if (m->n != 1 && m->n != channels)
        return false;
    if (has_bias && !look_bias(graph, arena, n, 2, channels, w.dtype, &bias))
        return false;
    bool scaled = !po_affine_is_shift(m);
    if (scaled) {
        fill(arena, &w);
        scale_channels(&w, l, group, m);
    }
    if (has_bias) {
        fill(arena, &bias);
        for (int64_t c = 0; c < channels; c++)
            bias.v[c] = po_affine_a(m, c) * bias.v[c] + po_affine_b(m, c);
    }
    if ((scaled && !fits(&w)) || (has_bias && !fits(&bias)))
        return false;
    if (has_bias && (any(bias.v, channels) || bias.tensor))
        store(graph, id, 2, &bias);
    if (scaled)
        store(graph, id, 1, &w);
    return true;
}

static bool scale_gemm(po_graph *graph, po_arena *arena, const po_affine *m, po_node_id id) {
    const po_node *n = &graph->nodes[id];
    bool rows = po_node_int(n, "transB", 0) != 0;
    /* beta other than 1 would have to be undone in the bias. */
    if (po_node_float(n, "beta", 1) != 1.0f || po_op_version(graph, n) < 7)
        return false;
    return scale_outputs(graph, arena, m, id, rows ? ROWS : COLUMNS, true);
}

/* LayerNormalization and its kind: scale and bias over the last axis alone. */
static bool scale_norm(po_graph *graph, po_arena *arena, const po_affine *m, po_node_id id) {
    const po_node *n = &graph->nodes[id];
    weights scale, bias;
    if (!look(graph, n->in[1], &scale) || scale.rank != 1 || (m->n != 1 && m->n != scale.count) ||
        !look_bias(graph, arena, n, 2, scale.count, scale.dtype, &bias))
        return false;
    fill(arena, &scale);
    fill(arena, &bias);
    for (int64_t i = 0; i < scale.count; i++) {
        scale.v[i] *= po_affine_a(m, i);
        bias.v[i] = po_affine_a(m, i) * bias.v[i] + po_affine_b(m, i);
    }
    if (!fits(&scale) || !fits(&bias))
        return false;
    store(graph, id, 1, &scale);
    store(graph, id, 2, &bias);
    return true;
}

bool po_affine_absorb_back(po_graph *graph, po_arena *arena, const po_affine *m) {
    po_node_id id = graph->values[m->x].producer;
    if (id == PO_NONE || !po_read_once(graph, m->x))
        return false;
    const po_node *n = &graph->nodes[id];
    int rank = po_rank_of(graph, m->x);
    bool channels = m->axis < 0 || m->axis == 1, last = m->axis < 0 || m->axis == rank - 1;
    switch ((po_op)n->op) {
    case PO_OP_Conv:
        if (!channels || !scale_outputs(graph, arena, m, id, CONV, true))
            return false;
        break;
    case PO_OP_ConvTranspose:
        if (!channels || !scale_outputs(graph, arena, m, id, CONV_TRANSPOSE, true))
            return false;
        break;
    case PO_OP_Gemm:
        if (!last || !scale_gemm(graph, arena, m, id))
            return false;
        break;
    case PO_OP_LayerNormalization:
        if (!last || (n->n_out > 1 && n->out[1] != PO_NONE) || !scale_norm(graph, arena, m, id))
            return false;
        break;
    case PO_OP_MatMul: {
        /* Only the scale: a lone shift is what is there already. */
        if (!last || po_affine_is_shift(m) || po_rank_of(graph, n->in[1]) != 2 ||
            !scale_outputs(graph, arena, m, id, COLUMNS, false))
            return false;
        po_affine shift = *m;
        shift.a = PO_NEW_N(arena, double, m->n);
        for (uint32_t i = 0; i < m->n; i++)
            shift.a[i] = 1;
        po_value_id y = po_affine_emit(graph, m->first, m->x, &shift);
        po_substitute(graph, m->y, y);
        return true;
    }
    default:
        return false;
    }
    po_substitute(graph, m->y, m->x);
    return true;
}

/* --- ahead --- */

static bool unpadded(const po_node *n) {
    uint32_t count;
    const int64_t *pads = po_node_ints(n, "pads", &count);
    for (uint32_t i = 0; i < count; i++)
        if (pads[i] != 0)
            return false;
    return po_node_string_is(n, "auto_pad", "NOTSET", "NOTSET") ||
           po_node_string_is(n, "auto_pad", "VALID", "NOTSET");
}

static bool feed_conv(po_graph *graph, po_arena *arena, const po_affine *m, po_node_id id,
                      bool ask) {
    const po_node *n = &graph->nodes[id];
    weights w, bias;
    int64_t group = po_node_int(n, "group", 1);
    if ((m->axis >= 0 && m->axis != 1) || !look(graph, n->in[1], &w) || w.rank < 3 ||
        w.count == 0 || group < 1 || w.dims[0] % group)
        return false;
    int64_t out = w.dims[0], per = w.dims[1], taps = w.count / (out * per);
    bool shift = !po_affine_is_scale(m);
    if ((m->n != 1 && m->n != per * group) ||
        (shift && (!unpadded(n) || !look_bias(graph, arena, n, 2, out, w.dtype, &bias))))
        return false;
    if (ask)
        return true;
    fill(arena, &w);
    if (shift)
        fill(arena, &bias);
    for (int64_t o = 0; o < out; o++)
        for (int64_t c = 0; c < per; c++) {
            int64_t in = o / (out / group) * per + c;
            for (int64_t t = 0; t < taps; t++) {
                double *v = &w.v[(o * per + c) * taps + t];
                if (shift)
                    bias.v[o] += *v * po_affine_b(m, in);
                *v *= po_affine_a(m, in);
            }
        }
    if (!fits(&w) || (shift && !fits(&bias)))
        return false;
    if (shift)
        store(graph, id, 2, &bias);
    if (!po_affine_is_shift(m))
        store(graph, id, 1, &w);
    return true;
}

/* MatMul and Gemm whose second operand is constant: rows of it meet the last axis of x. */
static bool feed_matmul(po_graph *graph, po_arena *arena, const po_affine *m, po_node_id id,
                        bool ask) {
    const po_node *n = &graph->nodes[id];
    weights w, bias;
    bool gemm = n->op == PO_OP_Gemm, shift = !po_affine_is_scale(m);
    int rank = po_rank_of(graph, m->x);
    if ((m->axis >= 0 && m->axis != rank - 1) || !look(graph, n->in[1], &w) || w.rank != 2 ||
        w.count == 0)
        return false;
    if (gemm && (po_node_int(n, "transA", 0) || po_node_float(n, "beta", 1) != 1.0f ||
                 po_op_version(graph, n) < 7))
        return false;
    bool rows = gemm && po_node_int(n, "transB", 0);
    int64_t inner = rows ? w.dims[1] : w.dims[0], out = rows ? w.dims[0] : w.dims[1];
    if ((m->n != 1 && m->n != inner) || (shift && !gemm) ||
        (shift && !look_bias(graph, arena, n, 2, out, w.dtype, &bias)))
        return false;
    if (ask)
        return true;
    fill(arena, &w);
    if (shift)
        fill(arena, &bias);
    double alpha = gemm ? (double)po_node_float(n, "alpha", 1) : 1;
    for (int64_t r = 0; r < w.dims[0]; r++) {
        double *row = &w.v[r * w.dims[1]];
        for (int64_t i = 0; i < w.dims[1]; i++) {
            int64_t k = rows ? i : r, o = rows ? r : i;
            if (shift)
                bias.v[o] += alpha * row[i] * po_affine_b(m, k);
            row[i] *= po_affine_a(m, k);
        }
    }
    if (!fits(&w) || (shift && !fits(&bias)))
        return false;
    if (shift)
        store(graph, id, 2, &bias);
    if (!po_affine_is_shift(m))
        store(graph, id, 1, &w);
    return true;
}

/* Every output of a ConvTranspose that no tap reaches, or fewer at the border, would get another
 * share of the shift: only scales go in. */
static bool feed_conv_transpose(po_graph *graph, po_arena *arena, const po_affine *m, po_node_id id,
                                bool ask) {
    weights w;
    if ((m->axis >= 0 && m->axis != 1) || !po_affine_is_scale(m) ||
        !look(graph, graph->nodes[id].in[1], &w) || w.rank < 3 || w.count == 0 ||
        (m->n != 1 && m->n != w.dims[0]))
        return false;
    if (ask)
        return true;
    fill(arena, &w);
    int64_t inner = w.count / w.dims[0];
    for (int64_t i = 0; i < w.count; i++)
        w.v[i] *= po_affine_a(m, i / inner);
    if (!fits(&w))
        return false;
    store(graph, id, 1, &w);
    return true;
}

bool po_affine_absorb_ahead(po_graph *graph, po_arena *arena, const po_affine *m, po_use use,
                            bool ask) {
    if (use.input != 0)
        return false;
    bool done;
    switch ((po_op)graph->nodes[use.node].op) {
    case PO_OP_Conv:
        done = feed_conv(graph, arena, m, use.node, ask);
        break;
    case PO_OP_ConvTranspose:
        done = feed_conv_transpose(graph, arena, m, use.node, ask);
        break;
    case PO_OP_MatMul:
    case PO_OP_Gemm:
        done = feed_matmul(graph, arena, m, use.node, ask);
        break;
    default:
        return false;
    }
    if (done && !ask)
        po_graph_set_input(graph, use.node, 0, m->x);
    return done;
}

/* --- past --- */

/* A mean of inputs without padding, or over what is inside: an affine map goes through it. */
static bool averages(const po_graph *graph, const po_node *n) {
    switch ((po_op)n->op) {
    case PO_OP_GlobalAveragePool:
        return true;
    case PO_OP_AveragePool:
        return unpadded(n) ? po_node_int(n, "ceil_mode", 0) == 0
                           : po_op_int(graph, n, "count_include_pad") == 0 &&
                                 po_node_int(n, "ceil_mode", 0) == 0;
    default:
        return false;
    }
}

bool po_affine_pass(po_graph *graph, po_arena *arena, const po_affine *m, po_use use) {
    (void)arena;
    const po_node *n = &graph->nodes[use.node];
    if (use.input != 0 || (m->axis >= 0 && m->axis != 1) || !averages(graph, n))
        return false;
    po_value_id out = n->out[0];
    if (graph->values[out].n_outputs)
        return false;
    po_graph_set_input(graph, use.node, 0, m->x);
    /* The mapped value takes over every reader of the mean but the map itself. */
    po_type type = graph->values[out].type;
    po_value_id mean = po_graph_add_value(graph, NULL, &type);
    po_graph_set_output(graph, use.node, 0, mean);
    po_value_id mapped = po_affine_emit(graph, use.node, mean, m);
    po_graph_replace_uses(graph, out, mapped);
    return true;
}
