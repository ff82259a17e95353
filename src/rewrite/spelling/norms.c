/* Layer and root-mean-square norms in the spellings of exporters, recognised by what they compute
 * and made single nodes (LayerNormalization, RMSNormalization), whatever the model's opset, so that
 * no other pass takes their scale away: the runtime's fused norm needs it. write_forms.c spells
 * them for the opset at the end. Measured: docs/forms.md. */
#include "rewrite/pattern.h"
#include "rewrite/spelling/match.h"

/* The square of u, and u by its root, as they are spelled. */
#define POWER(u)   "Add(ReduceMean[k]((Pow(" u ", 2) | Mul(" u ", " u "))), e:number)"
#define ROOT(u)    "(Sqrt(" POWER(u) ") | Pow(" POWER(u) ", 0.5))"
#define INVERSE(u) "(Pow(" POWER(u) ", -0.5) | Reciprocal(" ROOT(u) ") | Div(1, " ROOT(u) "))"
#define NORM(u)    "(Div(" u ", " ROOT(u) ") | Mul(" u ", " INVERSE(u) "))"
/* What is divided is the same value, or the same difference written twice. */
#define CENTRED "&Sub(x, &ReduceMean[k](x))"
/* TensorFlow's: x r + (b - mean(x) r), r = s / sqrt(..). */
#define FUSED                                                                                      \
    "Add(Mul(x, r=Mul(" INVERSE(CENTRED) ", s:const)), Sub(b:const, Mul(&ReduceMean[k](x), r)))"

/* x -> scale * (x - mean) / sqrt(var + eps) + shift over one axis. */
typedef struct norm {
    po_match found; /* x, k: the axis, e: eps */
    po_value_id x;
    uint32_t axis;
    bool centred;      /* the mean is subtracted (layer norm), or not (root mean square) */
    int64_t length;    /* of the axis; -1: not known */
    po_value_id y;     /* what the whole gives */
    po_value_id scale; /* a constant of one number or [length] with axes of 1; PO_NONE: all 1 */
    po_value_id shift; /* the same; PO_NONE: all 0 */
} norm;

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
    m->scale = behind(graph, m, m->y, PO_OP_Mul, &m->y);
    m->shift = m->centred ? behind(graph, m, m->y, PO_OP_Add, &m->y) : PO_NONE;
}

/* A constant [length] over the last axis. */
static bool is_row(const po_graph *graph, const norm *m, po_value_id v) {
    const po_tensor *t = po_graph_constant(graph, v);
    return (int)m->axis == po_rank_of(graph, m->x) - 1 && t->rank == 1 && t->count == m->length;
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

static bool write_group_norm(po_graph *graph, po_arena *arena, po_node_id id, norm *m) {
    int64_t groups = po_dim_of(graph, m->x, 1);
    po_dtype dtype = graph->values[m->x].type.dtype;
    po_value_id shift = po_add_recipe(graph, NULL, dtype, po_recipe_fill(arena, 1, &groups, 0));
    po_value_id scale = po_add_recipe(graph, NULL, dtype, po_recipe_fill(arena, 1, &groups, 1));
    if (shift == PO_NONE || scale == PO_NONE)
        return false;
    po_match_value(&m->found, 's', scale);
    po_match_value(&m->found, 'b', shift);
    return po_write_for(graph, id, m->y, &m->found, "InstanceNormalization{epsilon=e}(x, s, b)");
}

static bool write_norm(po_graph *graph, po_arena *arena, po_node_id id, norm *m) {
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
    const char *text = m->centred ? "LayerNormalization{axis=-1, epsilon=e}(x, s, b)"
                                  : "RMSNormalization{axis=-1, epsilon=e}(x, s)";
    po_match_value(&m->found, 's', scale);
    po_match_value(&m->found, 'b', shift);
    if (!last) {
        po_match_value(&m->found, 'x', po_add_transpose(graph, id, m->x, rank, there, NULL));
        po_value_id y = po_write(graph, id, &m->found, text);
        po_match_value(&m->found, 'x', po_add_transpose(graph, id, y, rank, back, NULL));
        text = "x";
    }
    return po_write_for(graph, id, m->y, &m->found, text);
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

static bool find_norm(const po_graph *graph, po_arena *arena, const po_node *n, norm *m) {
    const bool fused = n->op == PO_OP_Add;
    m->centred = po_matches(graph, arena, n, fused ? FUSED : NORM(CENTRED), &m->found);
    if (!m->centred && (fused || !po_matches(graph, arena, n, NORM("x"), &m->found)))
        return false;
    const double eps = po_matched_number(&m->found, 'e');
    m->x = po_matched(&m->found, 'x');
    m->axis = (uint32_t)po_matched_number(&m->found, 'k');
    m->length = po_dim_of(graph, m->x, (int)m->axis);
    m->y = n->out[0];
    m->scale = po_matched(&m->found, 's');
    m->shift = po_matched(&m->found, 'b');
    if (!fused)
        find_scale_and_shift(graph, m);
    const bool rows = !fused || (is_row(graph, m, m->scale) && is_row(graph, m, m->shift));
    return eps >= 0 && eps < 1 && rows && accept(graph, m);
}

po_status po_find_norms(po_ctx *ctx, po_graph *graph, po_rewriting *state) {
    (void)ctx;
    if (!state->options->norms)
        return PO_OK;
    po_arena *arena = state->scratch;
    uint32_t n;
    const po_node_id *order = po_graph_order(graph, arena, &n);
    for (uint32_t k = 0; k < n; k++) {
        const po_node *node = &graph->nodes[order[k]];
        norm m;
        if (node->removed || node->n_out == 0 || node->out[0] == PO_NONE ||
            !po_is_read(graph, node->out[0]) || !po_rearrangeable(graph, node->out[0]) ||
            !find_norm(graph, arena, node, &m))
            continue;
        bool last = (int)m.axis == po_rank_of(graph, m.x) - 1;
        po_law_id rule = node->op == PO_OP_Add ? PO_LAW_NORM_FUSED
                         : last                ? PO_LAW_NORM
                                               : PO_LAW_NORM_INNER;
        if (is_group_norm(graph, &m))
            po_law_fired(state, PO_LAW_NORM_GROUP, write_group_norm(graph, arena, order[k], &m));
        else
            po_law_fired(state, rule, write_norm(graph, arena, order[k], &m));
    }
    return PO_OK;
}
