/* Layer and root-mean-square norms in the spellings of exporters, recognised by what they compute
 * and made single nodes (LayerNormalization, RMSNormalization), whatever the model's opset, so that
 * no other pass takes their scale away: the runtime's fused norm needs it. write_forms.c spells
 * them for the opset at the end. Measured: docs/forms.md. */
#include "rewrite/passes.h"
#include "rewrite/spelling/match.h"

#include <math.h>

/* The pieces of x -> scale * (x - mean) / sqrt(var + eps) + shift over one axis. */
typedef struct norm {
    po_value_id x;
    uint32_t axis;
    bool centred; /* the mean is subtracted (layer norm), or not (root mean square) */
    double eps;
    int64_t length;    /* of the axis; -1: not known */
    po_value_id y;     /* what the whole gives */
    po_value_id scale; /* a constant of one number or [length] with axes of 1; PO_NONE: all 1 */
    po_value_id shift; /* the same; PO_NONE: all 0 */
} norm;

static bool mean_of(const po_graph *graph, po_value_id v, po_value_id x, uint32_t *axis) {
    const po_node *n = po_made_by(graph, v, PO_OP_ReduceMean);
    return n && n->in[0] == x && po_reduced_axis(graph, n, axis);
}

/* v = x - mean(x). */
static bool centred(const po_graph *graph, po_value_id v, po_value_id *x, uint32_t *axis) {
    const po_node *n = po_made_by(graph, v, PO_OP_Sub);
    if (!n || n->n_in != 2 || !mean_of(graph, n->in[1], n->in[0], axis))
        return false;
    *x = n->in[0];
    return true;
}

/* v = u^2, v read by nothing else. */
static bool square_of(const po_graph *graph, po_value_id v, po_value_id *u) {
    const po_node *n = po_read_once(graph, v) ? po_graph_producer(graph, v) : NULL;
    double power;
    if (!n || n->n_in != 2)
        return false;
    *u = n->in[0];
    return (n->op == PO_OP_Mul && n->in[1] == n->in[0]) ||
           (n->op == PO_OP_Pow && po_scalar_constant(graph, n->in[1], &power) && power == 2);
}

/* v = sqrt(s), or its inverse where `inverse`. */
static bool root_of(const po_graph *graph, po_value_id v, bool inverse, po_value_id *s) {
    const po_node *n = po_graph_producer(graph, v);
    double c;
    if (!n)
        return false;
    if (n->op == PO_OP_Pow && po_scalar_constant(graph, n->in[1], &c)) {
        *s = n->in[0];
        return c == (inverse ? -0.5 : 0.5);
    }
    if (!inverse) {
        *s = n->in[0];
        return n->op == PO_OP_Sqrt;
    }
    if (n->op == PO_OP_Reciprocal)
        return po_read_once(graph, n->in[0]) && root_of(graph, n->in[0], false, s);
    return n->op == PO_OP_Div && po_scalar_constant(graph, n->in[0], &c) && c == 1 &&
           po_read_once(graph, n->in[1]) && root_of(graph, n->in[1], false, s);
}

/* s = mean(square of the centred or plain x) + eps, for the value u that is to be divided: fills
 * x, axis, eps. */
static bool power_of(const po_graph *graph, po_value_id s, po_value_id u, norm *m) {
    const po_node *sum = po_made_alone_by(graph, s, PO_OP_Add);
    po_value_id base, mean = PO_NONE, other;
    uint32_t axis;
    if (!sum || sum->n_in != 2)
        return false;
    for (uint32_t k = 0; k < 2; k++)
        if (po_scalar_constant(graph, sum->in[k], &m->eps))
            mean = sum->in[1 - k];
    const po_node *reduce =
        mean == PO_NONE ? NULL : po_made_alone_by(graph, mean, PO_OP_ReduceMean);
    if (!reduce || !(m->eps >= 0 && m->eps < 1) || !po_reduced_axis(graph, reduce, &m->axis) ||
        !square_of(graph, reduce->in[0], &base) || !po_same_rank(graph, s, u))
        return false;
    m->centred = centred(graph, base, &m->x, &axis) && axis == m->axis;
    if (!m->centred)
        m->x = base;
    /* What is divided is the same value, or the same difference written twice. */
    if (base == u)
        return true;
    return m->centred && centred(graph, u, &other, &axis) && other == m->x && axis == m->axis;
}

/* --- scale and shift behind --- */

/* The constant operand of the node that alone reads v, one number for each index of the axis, or
 * one for all, and *y what it gives; PO_NONE where there is none. */
static po_value_id behind(const po_graph *graph, const norm *m, po_value_id v, po_op_id op,
                          po_value_id *y) {
    const po_use *use = po_graph_sole_use(graph, v);
    const po_node *n = use ? &graph->nodes[use->node] : NULL;
    if (!n || n->n_in != 2 || use->input > 1 || n->op != op)
        return PO_NONE;
    const po_tensor *t = po_graph_constant(graph, n->in[1 - use->input]);
    int rank = po_rank_of(graph, m->x);
    if (!t || (int)t->rank > rank || t->dtype != graph->values[v].type.dtype || m->length < 1)
        return PO_NONE;
    for (uint32_t i = 0; i < t->rank; i++) {
        bool along = rank - (int)t->rank + (int)i == (int)m->axis;
        if (t->dims[i] != 1 && !(along && t->dims[i] == m->length))
            return PO_NONE;
    }
    *y = n->out[0];
    return n->in[1 - use->input];
}

static void find_scale_and_shift(const po_graph *graph, norm *m) {
    m->length = po_dim_of(graph, m->x, (int)m->axis);
    m->scale = behind(graph, m, m->y, PO_OP_Mul, &m->y);
    m->shift = m->centred ? behind(graph, m, m->y, PO_OP_Add, &m->y) : PO_NONE;
}

/* --- what they become --- */

/* The constant as [length], or that many times the number. */
static po_value_id constant_of(po_graph *graph, po_arena *arena, const norm *m, po_value_id found,
                               double otherwise) {
    po_dtype dtype = graph->values[m->x].type.dtype;
    const po_tensor *t = found == PO_NONE ? NULL : po_graph_constant(graph, found);
    if (t && t->rank == 1 && t->count == m->length)
        return found;
    if (t && t->count == m->length)
        return po_add_reshaped(graph, found, 1, &m->length);
    const po_recipe *one =
        t ? po_recipe_reshape(arena, po_recipe_doubles(graph, arena, found), 0, NULL)
          : po_recipe_number(arena, otherwise);
    return po_add_recipe(graph, NULL, dtype, po_recipe_expand(arena, one, 1, &m->length));
}

/* Group norms as exporters write them: the mean over the last of three axes, behind a Reshape and
 * without scale. The runtime's InstanceNormalization is the fastest there. */
static bool is_group_norm(const po_graph *graph, const norm *m) {
    return m->centred && m->scale == PO_NONE && m->shift == PO_NONE &&
           po_rank_of(graph, m->x) == 3 && m->axis == 2 && po_is_f32(graph, m->x) &&
           po_made_by(graph, m->x, PO_OP_Reshape) && po_dim_of(graph, m->x, 1) > 0;
}

static bool write_group_norm(po_graph *graph, po_arena *arena, po_node_id id, const norm *m) {
    int64_t groups = po_dim_of(graph, m->x, 1);
    po_dtype dtype = graph->values[m->x].type.dtype;
    po_type type = graph->values[m->y].type;
    po_value_id shift = po_add_recipe(graph, NULL, dtype, po_recipe_fill(arena, 1, &groups, 0));
    po_value_id scale = po_add_recipe(graph, NULL, dtype, po_recipe_fill(arena, 1, &groups, 1));
    if (shift == PO_NONE || scale == PO_NONE)
        return false;
    po_value_id y = po_add_op(graph, id, PO_OP_InstanceNormalization, 3,
                              (po_value_id[]){m->x, scale, shift}, &type);
    po_node_set_float(graph, graph->values[y].producer, "epsilon", (float)m->eps);
    po_substitute(graph, m->y, y);
    return true;
}

static bool write_norm(po_graph *graph, po_arena *arena, po_node_id id, const norm *m) {
    uint32_t rank = (uint32_t)po_rank_of(graph, m->x);
    bool last = m->axis == rank - 1;
    int64_t there[PO_MAX_RANK], back[PO_MAX_RANK];
    po_value_id scale = constant_of(graph, arena, m, m->scale, 1);
    po_value_id shift = m->centred ? constant_of(graph, arena, m, m->shift, 0) : PO_NONE;
    if (scale == PO_NONE || (m->centred && shift == PO_NONE))
        return false;
    /* The runtime norms the last axis; an inner one is brought there and back. */
    for (uint32_t i = 0; i < rank; i++)
        there[i] = i == rank - 1 ? m->axis : i < m->axis ? i : i + 1;
    for (uint32_t i = 0; i < rank; i++)
        back[there[i]] = i;
    po_value_id x = last ? m->x : po_add_transpose(graph, id, m->x, rank, there, NULL);
    po_type type =
        last ? graph->values[m->y].type : po_type_unranked(graph->values[m->x].type.dtype);
    po_value_id in[3] = {x, scale, shift};
    po_value_id y =
        po_add_op(graph, id, m->centred ? PO_OP_LayerNormalization : PO_OP_RMSNormalization,
                  m->centred ? 3 : 2, in, &type);
    po_node_set_int(graph, graph->values[y].producer, "axis", -1);
    po_node_set_float(graph, graph->values[y].producer, "epsilon", (float)m->eps);
    if (!last) {
        y = po_add_transpose(graph, id, y, rank, back, NULL);
        graph->values[y].type = graph->values[m->y].type;
    }
    po_substitute(graph, m->y, y);
    return true;
}

/* Shorter inner axes are not worth bringing to the end. Where the opset has no node for the norm
 * the runtime moves the transposes through what is written instead, and nothing is won. */
enum { LEAST_INNER = 16 };

static bool inner_pays(const po_graph *graph, const norm *m) {
    return m->length >= LEAST_INNER &&
           po_opset_of(graph) >= (m->centred ? PO_LAYER_NORM_SINCE : PO_RMS_NORM_SINCE);
}

static bool accept(const po_graph *graph, const norm *m) {
    const po_type *x = &graph->values[m->x].type, *y = &graph->values[m->y].type;
    return x->has_rank && y->has_rank && x->rank == y->rank && x->dtype == y->dtype &&
           m->length > 0 && x->rank <= PO_MAX_RANK &&
           (m->axis == x->rank - 1 || inner_pays(graph, m));
}

/* --- the roots of the patterns --- */

/* u / sqrt(s), u * (1 / sqrt(s)). */
static bool quotient_norm(const po_graph *graph, const po_node *n, norm *m) {
    po_value_id s;
    if (n->n_in != 2)
        return false;
    m->y = n->out[0];
    if (n->op == PO_OP_Div)
        return po_read_once(graph, n->in[1]) && root_of(graph, n->in[1], false, &s) &&
               power_of(graph, s, n->in[0], m);
    for (uint32_t k = 0; k < 2; k++)
        if (po_read_once(graph, n->in[k]) && root_of(graph, n->in[k], true, &s) &&
            power_of(graph, s, n->in[1 - k], m))
            return true;
    return false;
}

/* x r + (shift - mean r), r = scale / sqrt(s): TensorFlow's. */
static bool fused_norm(const po_graph *graph, const po_node *n, norm *m) {
    for (uint32_t k = 0; k < 2 && n->n_in == 2; k++) {
        const po_node *product = po_made_alone_by(graph, n->in[k], PO_OP_Mul);
        const po_node *rest = po_made_alone_by(graph, n->in[1 - k], PO_OP_Sub);
        const po_node *offset = rest ? po_made_alone_by(graph, rest->in[1], PO_OP_Mul) : NULL;
        const po_tensor *shift = rest ? po_graph_constant(graph, rest->in[0]) : NULL;
        if (!product || !offset || !shift)
            continue;
        for (uint32_t i = 0; i < 2; i++) {
            po_value_id x = product->in[i], r = product->in[1 - i], s, inverse;
            uint32_t j = offset->in[0] == r ? 0 : 1, axis;
            const po_node *scaled = po_made_by(graph, r, PO_OP_Mul);
            if (!scaled || offset->in[j] != r || !mean_of(graph, offset->in[1 - j], x, &axis) ||
                graph->values[r].n_uses != 2 || graph->values[r].n_outputs)
                continue;
            uint32_t c = po_graph_constant(graph, scaled->in[0]) ? 0 : 1;
            const po_tensor *scale = po_graph_constant(graph, scaled->in[c]);
            inverse = scaled->in[1 - c];
            if (!scale || !po_read_once(graph, inverse) || !root_of(graph, inverse, true, &s))
                continue;
            /* The square's base must be x - mean(x) itself. */
            const po_node *sum = po_made_alone_by(graph, s, PO_OP_Add);
            if (!sum)
                continue;
            po_value_id mean = po_graph_constant(graph, sum->in[0]) ? sum->in[1] : sum->in[0];
            const po_node *reduce = po_made_alone_by(graph, mean, PO_OP_ReduceMean);
            po_value_id base;
            if (!reduce || !square_of(graph, reduce->in[0], &base) ||
                !power_of(graph, s, base, m) || !m->centred || m->x != x || m->axis != axis)
                continue;
            int64_t length = po_dim_of(graph, x, (int)axis);
            if ((int)axis != po_rank_of(graph, x) - 1 || scale->rank != 1 || shift->rank != 1 ||
                scale->count != length || shift->count != length || length < 1)
                continue;
            m->y = n->out[0];
            m->length = length;
            m->scale = scaled->in[c];
            m->shift = rest->in[0];
            return true;
        }
    }
    return false;
}

po_status po_find_norms(po_ctx *ctx, po_graph *graph, po_rewriting *state) {
    (void)ctx;
    if (!state->options->norms || po_opset_of(graph) < 7)
        return PO_OK;
    po_arena *arena = state->scratch;
    uint32_t n;
    const po_node_id *order = po_graph_order(graph, arena, &n);
    for (uint32_t k = 0; k < n; k++) {
        const po_node *node = &graph->nodes[order[k]];
        if (node->removed || node->n_out == 0 || node->out[0] == PO_NONE ||
            !po_is_read(graph, node->out[0]) || !po_rearrangeable(graph, node->out[0]))
            continue;
        norm m = {0};
        if (node->op == PO_OP_Add) {
            if (!fused_norm(graph, node, &m))
                continue;
        } else if ((node->op == PO_OP_Div || node->op == PO_OP_Mul) &&
                   quotient_norm(graph, node, &m)) {
            find_scale_and_shift(graph, &m);
        } else {
            continue;
        }
        if (!accept(graph, &m))
            continue;
        bool fused = node->op == PO_OP_Add, last = (int)m.axis == po_rank_of(graph, m.x) - 1;
        po_law_id rule = fused ? PO_LAW_NORM_FUSED : last ? PO_LAW_NORM : PO_LAW_NORM_INNER;
        if (is_group_norm(graph, &m))
            po_law_fired(state, PO_LAW_NORM_GROUP, write_group_norm(graph, arena, order[k], &m));
        else
            po_law_fired(state, rule, write_norm(graph, arena, order[k], &m));
    }
    return PO_OK;
}
