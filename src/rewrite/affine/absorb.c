/* Affine maps into the weights of neighbours, and past what they commute with. */
#include "rewrite/affine/affine.h"

/* --- weights --- */

static const po_tensor *weights_of(const po_graph *graph, po_value_id value) {
    const po_tensor *t = po_graph_constant(graph, value);
    return t && (t->dtype == PO_F32 || t->dtype == PO_F64) ? t : NULL;
}

static bool has_input(const po_node *n, uint32_t input) {
    return n->n_in > input && n->in[input] != PO_NONE;
}

/* A bias of `length` numbers, or none. */
static bool takes_bias(const po_graph *graph, const po_node *n, uint32_t input, int64_t length) {
    if (!has_input(n, input))
        return true;
    const po_tensor *t = weights_of(graph, n->in[input]);
    return t && t->count == length;
}

static void set_input(po_graph *graph, po_node_id node, uint32_t input, po_value_id value) {
    if (value == PO_NONE)
        return;
    if (graph->nodes[node].n_in <= input)
        po_graph_resize_inputs(graph, node, input + 1);
    po_graph_set_input(graph, node, input, value);
}

static bool nonzero(const double *v, uint32_t n) {
    for (uint32_t i = 0; i < n; i++)
        if (v[i] != 0)
            return true;
    return false;
}

/* The node's bias times a, if it has one, plus `shift`; a and shift of rank 0 or [length], shift
 * NULL: 0. False where it cannot be stored; *value is PO_NONE where it stays as it is. */
static bool change_bias(po_graph *graph, po_arena *arena, const po_node *n, int64_t length,
                        const po_recipe *a, const po_recipe *shift, po_value_id *value) {
    po_dtype dtype = po_graph_constant(graph, n->in[1])->dtype;
    const po_recipe *b = NULL;
    int64_t dims[PO_MAX_RANK] = {length};
    uint32_t rank = 1;
    if (has_input(n, 2)) {
        b = po_recipe_doubles(graph, arena, n->in[2]);
        rank = b->rank;
        memcpy(dims, b->dims, rank * sizeof *dims);
        b = po_recipe_reshape(arena, b, 1, &length);
        if (a)
            b = po_recipe_mul(arena, a, b);
        if (shift)
            b = po_recipe_add(arena, b, shift);
    } else if (shift) {
        b = shift->rank == 0 ? po_recipe_expand(arena, shift, 1, &length) : shift;
    }
    *value = PO_NONE;
    if (!b)
        return true;
    *value = po_add_recipe(graph, NULL, dtype, po_recipe_reshape(arena, b, rank, dims));
    return *value != PO_NONE;
}

/* --- backwards --- */

/* Where the output channels of each operator's weights lie: first, second (once for each group), or
 * last. */
typedef enum layout { CONV, CONV_TRANSPOSE, COLUMNS, ROWS } layout;

static int64_t out_channels(const po_tensor *w, layout l, int64_t group) {
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

static const po_recipe *scale_channels(po_arena *arena, const po_recipe *w, layout l, int64_t group,
                                       const po_affine *m) {
    if (l != CONV_TRANSPOSE)
        return po_recipe_mul(arena, w,
                             po_affine_scale(arena, m, w->rank, l == COLUMNS ? w->rank - 1 : 0));
    const po_recipe *a = po_affine_scale(arena, m, 1, 0);
    int64_t in = w->dims[0], out = w->dims[1];
    const int64_t blocks[4] = {group, in / group, out, w->count / (in * out)};
    if (a->rank)
        a = po_recipe_reshape(arena, a, 4, (const int64_t[]){group, 1, out, 1});
    const po_recipe *scaled = po_recipe_mul(arena, po_recipe_reshape(arena, w, 4, blocks), a);
    return po_recipe_reshape(arena, scaled, w->rank, w->dims);
}

/* Scales the outputs of a linear operator and shifts its bias. */
static bool scale_outputs(po_graph *graph, po_arena *arena, const po_affine *m, po_node_id id,
                          layout l, bool has_bias) {
    const po_node *n = &graph->nodes[id];
    const po_tensor *w = weights_of(graph, n->in[1]);
    po_value_id weights = PO_NONE, bias = PO_NONE;
    int64_t group = l == CONV_TRANSPOSE ? po_node_int(n, "group", 1) : 1;
    if (!w || w->rank < 2 || w->count == 0 || group < 1 || w->dims[0] % group)
        return false;
    int64_t channels = out_channels(w, l, group);
    if ((m->n != 1 && m->n != channels) || (has_bias && !takes_bias(graph, n, 2, channels)))
        return false;
    if (!po_affine_is_shift(m)) {
        weights = po_add_recipe(
            graph, NULL, w->dtype,
            scale_channels(arena, po_recipe_doubles(graph, arena, n->in[1]), l, group, m));
        if (weights == PO_NONE)
            return false;
    }
    if (has_bias &&
        !change_bias(graph, arena, n, channels,
                     po_affine_is_shift(m) ? NULL : po_affine_scale(arena, m, 1, 0),
                     nonzero(m->b, m->n) ? po_affine_shift(arena, m, 1, 0) : NULL, &bias))
        return false;
    set_input(graph, id, 2, bias);
    set_input(graph, id, 1, weights);
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
    const po_tensor *scale = weights_of(graph, n->in[1]);
    po_value_id bias;
    if (!scale || scale->rank != 1 || (m->n != 1 && m->n != scale->count) ||
        !takes_bias(graph, n, 2, scale->count))
        return false;
    const po_recipe *a = po_affine_scale(arena, m, 1, 0);
    po_value_id scaled =
        po_add_recipe(graph, NULL, scale->dtype,
                      po_recipe_mul(arena, po_recipe_doubles(graph, arena, n->in[1]), a));
    if (scaled == PO_NONE ||
        !change_bias(graph, arena, n, scale->count, a, po_affine_shift(arena, m, 1, 0), &bias))
        return false;
    set_input(graph, id, 1, scaled);
    set_input(graph, id, 2, bias);
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
        shift.ra = NULL;
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

/* A number for each input channel, [groups, per, 1]: the shift or the scale. */
static const po_recipe *by_group(po_arena *arena, const po_recipe *r, int64_t group, int64_t per) {
    return po_recipe_expand(
        arena, r->rank ? po_recipe_reshape(arena, r, 3, (const int64_t[]){group, per, 1}) : r, 3,
        (const int64_t[]){group, per, 1});
}

static bool feed_conv(po_graph *graph, po_arena *arena, const po_affine *m, po_node_id id,
                      bool ask) {
    const po_node *n = &graph->nodes[id];
    const po_tensor *w = weights_of(graph, n->in[1]);
    po_value_id weights = PO_NONE, bias = PO_NONE;
    int64_t group = po_node_int(n, "group", 1);
    if ((m->axis >= 0 && m->axis != 1) || !w || w->rank < 3 || w->count == 0 || group < 1 ||
        w->dims[0] % group)
        return false;
    int64_t out = w->dims[0], per = w->dims[1], taps = w->count / (out * per);
    bool shift = !po_affine_is_scale(m);
    if ((m->n != 1 && m->n != per * group) ||
        (shift && (!unpadded(n) || !takes_bias(graph, n, 2, out))))
        return false;
    if (ask)
        return true;
    const po_recipe *v = po_recipe_reshape(arena, po_recipe_doubles(graph, arena, n->in[1]), 4,
                                           (const int64_t[]){group, out / group, per, taps});
    if (!po_affine_is_shift(m)) {
        const po_recipe *a = by_group(arena, po_affine_scale(arena, m, 1, 0), group, per);
        a = po_recipe_reshape(arena, a, 4, (const int64_t[]){group, 1, per, 1});
        weights =
            po_add_recipe(graph, NULL, w->dtype,
                          po_recipe_reshape(arena, po_recipe_mul(arena, v, a), w->rank, w->dims));
        if (weights == PO_NONE)
            return false;
    }
    if (shift) {
        /* Every tap of an input channel meets its shift. */
        const po_recipe *b = by_group(arena, po_affine_shift(arena, m, 1, 0), group, per);
        b = po_recipe_expand(arena, b, 3, (const int64_t[]){group, per, taps});
        b = po_recipe_reshape(arena, b, 3, (const int64_t[]){group, per * taps, 1});
        v = po_recipe_reshape(arena, v, 3, (const int64_t[]){group, out / group, per * taps});
        v = po_recipe_reshape(arena, po_recipe_matmul(arena, v, b), 1, &out);
        if (!change_bias(graph, arena, n, out, NULL, v, &bias))
            return false;
    }
    set_input(graph, id, 2, bias);
    set_input(graph, id, 1, weights);
    return true;
}

/* MatMul and Gemm whose second operand is constant: rows of it meet the last axis of x. */
static bool feed_matmul(po_graph *graph, po_arena *arena, const po_affine *m, po_node_id id,
                        bool ask) {
    const po_node *n = &graph->nodes[id];
    const po_tensor *w = weights_of(graph, n->in[1]);
    po_value_id weights = PO_NONE, bias = PO_NONE;
    bool gemm = n->op == PO_OP_Gemm, shift = !po_affine_is_scale(m);
    int rank = po_rank_of(graph, m->x);
    if ((m->axis >= 0 && m->axis != rank - 1) || !w || w->rank != 2 || w->count == 0)
        return false;
    if (gemm && (po_node_int(n, "transA", 0) || po_node_float(n, "beta", 1) != 1.0f ||
                 po_op_version(graph, n) < 7))
        return false;
    bool rows = gemm && po_node_int(n, "transB", 0);
    int64_t inner = rows ? w->dims[1] : w->dims[0], out = rows ? w->dims[0] : w->dims[1];
    if ((m->n != 1 && m->n != inner) || (shift && !gemm) ||
        (shift && !takes_bias(graph, n, 2, out)))
        return false;
    if (ask)
        return true;
    const po_recipe *v = po_recipe_doubles(graph, arena, n->in[1]);
    if (!po_affine_is_shift(m)) {
        weights =
            po_add_recipe(graph, NULL, w->dtype,
                          po_recipe_mul(arena, v, po_affine_scale(arena, m, 2, rows ? 1 : 0)));
        if (weights == PO_NONE)
            return false;
    }
    if (shift) {
        double alpha = (double)po_node_float(n, "alpha", 1);
        const po_recipe *b = po_recipe_expand(arena, po_affine_shift(arena, m, 1, 0), 1, &inner);
        v = rows ? po_recipe_matmul(arena, v,
                                    po_recipe_reshape(arena, b, 2, (const int64_t[]){inner, 1}))
                 : po_recipe_matmul(arena,
                                    po_recipe_reshape(arena, b, 2, (const int64_t[]){1, inner}), v);
        v = po_recipe_reshape(arena, v, 1, &out);
        if (alpha != 1)
            v = po_recipe_mul(arena, v, po_recipe_number(arena, alpha));
        if (!change_bias(graph, arena, n, out, NULL, v, &bias))
            return false;
    }
    set_input(graph, id, 2, bias);
    set_input(graph, id, 1, weights);
    return true;
}

/* Every output of a ConvTranspose that no tap reaches, or fewer at the border, would get another
 * share of the shift: only scales go in. */
static bool feed_conv_transpose(po_graph *graph, po_arena *arena, const po_affine *m, po_node_id id,
                                bool ask) {
    const po_tensor *w = weights_of(graph, graph->nodes[id].in[1]);
    if ((m->axis >= 0 && m->axis != 1) || !po_affine_is_scale(m) || !w || w->rank < 3 ||
        w->count == 0 || (m->n != 1 && m->n != w->dims[0]))
        return false;
    if (ask)
        return true;
    po_value_id weights =
        po_add_recipe(graph, NULL, w->dtype,
                      po_recipe_mul(arena, po_recipe_doubles(graph, arena, graph->nodes[id].in[1]),
                                    po_affine_scale(arena, m, w->rank, 0)));
    set_input(graph, id, 1, weights);
    return weights != PO_NONE;
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
