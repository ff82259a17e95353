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

static bool unpadded(const po_node *n) {
    uint32_t count;
    const int64_t *pads = po_node_ints(n, "pads", &count);
    for (uint32_t i = 0; i < count; i++)
        if (pads[i] != 0)
            return false;
    return po_node_string_is(n, "auto_pad", "NOTSET", "NOTSET") ||
           po_node_string_is(n, "auto_pad", "VALID", "NOTSET");
}

/* Weights of a linear operator as [groups, .., .., taps] with its channels on two of these axes;
 * of a norm, its scale. */
typedef struct layer {
    const po_node *node;
    const po_tensor *w;
    int64_t dims[4];
    uint32_t in_at, out_at; /* which axis has the channels of a group; in_at 0: no sum over them */
    int64_t in, out;        /* channels of all groups */
    bool map;               /* channels are axis 1 of the tensors; else the last one */
    bool biased;            /* may have a bias */
    bool takes_shift;       /* every output meets the same sum of what is added to its input */
    double alpha;
} layer;

/* Every output of a ConvTranspose that no tap reaches, or fewer at the border, would get another
 * share of a shift; so would those of padded convolutions. */
static bool read_layer(const po_graph *graph, po_node_id id, layer *l) {
    const po_node *n = &graph->nodes[id];
    const po_tensor *w = n->n_in > 1 ? weights_of(graph, n->in[1]) : NULL;
    const bool transposed = n->op == PO_OP_ConvTranspose;
    if (!w || w->count == 0)
        return false;
    *l = (layer){.node = n, .w = w, .in_at = 2, .out_at = 1, .biased = true, .alpha = 1};
    int64_t group = 1;
    switch ((po_op)n->op) {
    case PO_OP_Conv:
    case PO_OP_ConvTranspose:
        group = po_node_int(n, "group", 1);
        if (w->rank < 3 || group < 1 || w->dims[0] % group)
            return false;
        l->map = true;
        l->takes_shift = !transposed && unpadded(n);
        break;
    case PO_OP_Gemm:
        /* beta other than 1 would have to be undone in the bias. */
        if (w->rank != 2 || po_node_float(n, "beta", 1) != 1.0f || po_op_version(graph, n) < 7)
            return false;
        l->takes_shift = true;
        l->alpha = (double)po_node_float(n, "alpha", 1);
        break;
    case PO_OP_MatMul:
        l->biased = false;
        if (w->rank != 2)
            return false;
        break;
    case PO_OP_LayerNormalization:
        l->in_at = 0;
        if (w->rank != 1 || (n->n_out > 1 && n->out[1] != PO_NONE))
            return false;
        break;
    default:
        return false;
    }
    l->dims[0] = group;
    l->dims[1] = w->dims[0] / group;
    l->dims[2] = w->rank > 1 ? w->dims[1] : 1;
    l->dims[3] = w->count / (w->dims[0] * l->dims[2]);
    if (transposed || n->op == PO_OP_MatMul ||
        (n->op == PO_OP_Gemm && !po_node_int(n, "transB", 0))) {
        l->in_at = 1;
        l->out_at = 2;
    }
    l->in = group * l->dims[l->in_at];
    l->out = group * l->dims[l->out_at];
    return true;
}

/* The map is one of these channels, of a value of that rank. */
static bool meets(const po_affine *m, const layer *l, int64_t channels, int rank) {
    return (m->axis < 0 || m->axis == (l->map ? 1 : rank - 1)) && (m->n == 1 || m->n == channels);
}

/* No bias, or one number for each output; that of a Gemm may be a column, one for each row. */
static bool bias_fits(const po_graph *graph, const layer *l) {
    if (!has_input(l->node, 2))
        return true;
    const po_tensor *t = weights_of(graph, l->node->in[2]);
    return t && t->count == l->out && (l->out == 1 || t->dims[t->rank - 1] == l->out);
}

static void set_input(po_graph *graph, po_node_id node, uint32_t input, po_value_id value) {
    if (value == PO_NONE)
        return;
    if (graph->nodes[node].n_in <= input)
        po_graph_resize_inputs(graph, node, input + 1);
    po_graph_set_input(graph, node, input, value);
}

static const po_recipe *weights(const po_graph *graph, po_arena *arena, const layer *l) {
    return po_recipe_reshape(arena, po_recipe_doubles(graph, arena, l->node->in[1]), 4, l->dims);
}

/* The weights times a, which is of rank 0 or of the channels along that axis; PO_NONE where they
 * cannot be stored. */
static po_value_id scaled(po_graph *graph, po_arena *arena, const layer *l, const po_recipe *a,
                          uint32_t at) {
    int64_t dims[4] = {l->dims[0], 1, 1, 1};
    dims[at] = l->dims[at];
    const po_recipe *w = po_recipe_mul(arena, weights(graph, arena, l),
                                       a->rank ? po_recipe_reshape(arena, a, 4, dims) : a);
    return po_add_recipe(graph, NULL, l->w->dtype,
                         po_recipe_reshape(arena, w, l->w->rank, l->w->dims));
}

/* What adding b to the inputs, of rank 0 or [in], adds to each output. */
static const po_recipe *sum_of(const po_graph *graph, po_arena *arena, const layer *l,
                               const po_recipe *b) {
    const int64_t group = l->dims[0], per = l->dims[l->in_at], taps = l->dims[3];
    const po_recipe *w = weights(graph, arena, l);
    if (l->in_at == 1)
        w = po_recipe_transpose(arena, w, (const uint32_t[]){0, 2, 1, 3});
    /* Every tap of an input channel meets its shift. */
    if (b->rank)
        b = po_recipe_reshape(arena, b, 3, (const int64_t[]){group, per, 1});
    b = po_recipe_expand(arena, b, 3, (const int64_t[]){group, per, taps});
    b = po_recipe_reshape(arena, b, 3, (const int64_t[]){group, per * taps, 1});
    w = po_recipe_reshape(arena, w, 3, (const int64_t[]){group, l->out / group, per * taps});
    w = po_recipe_reshape(arena, po_recipe_matmul(arena, w, b), 1, &l->out);
    return l->alpha != 1 ? po_recipe_mul(arena, w, po_recipe_number(arena, l->alpha)) : w;
}

/* The bias times a, if there is one, plus `shift`; both of rank 0 or [out], or NULL: 1, 0. False
 * where it cannot be stored; *value is PO_NONE where it stays as it is. */
static bool change_bias(po_graph *graph, po_arena *arena, const layer *l, const po_recipe *a,
                        const po_recipe *shift, po_value_id *value) {
    const po_recipe *b = NULL, *old = NULL;
    if (has_input(l->node, 2)) {
        old = po_recipe_doubles(graph, arena, l->node->in[2]);
        b = po_recipe_reshape(arena, old, 1, &l->out);
        if (a)
            b = po_recipe_mul(arena, a, b);
        if (shift)
            b = po_recipe_add(arena, b, shift);
        b = po_recipe_reshape(arena, b, old->rank, old->dims);
    } else if (shift) {
        b = shift->rank == 0 ? po_recipe_expand(arena, shift, 1, &l->out) : shift;
    }
    *value = b ? po_add_recipe(graph, NULL, l->w->dtype, b) : PO_NONE;
    return !b || *value != PO_NONE;
}

bool po_affine_absorb_back(po_graph *graph, po_arena *arena, const po_affine *m) {
    const po_node_id id = graph->values[m->x].producer;
    const bool scales = !po_affine_is_shift(m);
    layer l;
    if (id == PO_NONE || !po_read_once(graph, m->x) || !read_layer(graph, id, &l) ||
        !meets(m, &l, l.out, po_rank_of(graph, m->x)) || !bias_fits(graph, &l) ||
        (!scales && !l.biased)) /* a lone shift is what is there already */
        return false;
    const po_recipe *a = scales ? po_affine_scale(arena, m, 1, 0) : NULL;
    po_value_id w = scales ? scaled(graph, arena, &l, a, l.out_at) : PO_NONE, bias = PO_NONE;
    if ((scales && w == PO_NONE) ||
        (l.biased &&
         !change_bias(graph, arena, &l, a,
                      po_affine_is_scale(m) ? NULL : po_affine_shift(arena, m, 1, 0), &bias)))
        return false;
    set_input(graph, id, 2, bias);
    set_input(graph, id, 1, w);
    po_value_id y = m->x;
    if (!l.biased) {
        po_affine shift = *m;
        shift.ra = NULL;
        shift.a = PO_NEW_N(arena, double, m->n);
        for (uint32_t i = 0; i < m->n; i++)
            shift.a[i] = 1;
        y = po_affine_emit(graph, m->first, m->x, &shift);
    }
    po_substitute(graph, m->y, y);
    return true;
}

bool po_affine_absorb_ahead(po_graph *graph, po_arena *arena, const po_affine *m, po_use use,
                            bool ask) {
    const bool shifts = !po_affine_is_scale(m);
    layer l;
    if (use.input != 0 || !read_layer(graph, use.node, &l) || l.in_at == 0 ||
        po_node_int(l.node, "transA", 0) || !meets(m, &l, l.in, po_rank_of(graph, m->x)) ||
        (shifts && (!l.takes_shift || !bias_fits(graph, &l))))
        return false;
    if (ask)
        return true;
    po_value_id w = PO_NONE, bias = PO_NONE;
    if (!po_affine_is_shift(m)) {
        w = scaled(graph, arena, &l, po_affine_scale(arena, m, 1, 0), l.in_at);
        if (w == PO_NONE)
            return false;
    }
    if (shifts && !change_bias(graph, arena, &l, NULL,
                               sum_of(graph, arena, &l, po_affine_shift(arena, m, 1, 0)), &bias))
        return false;
    set_input(graph, use.node, 2, bias);
    set_input(graph, use.node, 1, w);
    po_graph_set_input(graph, use.node, 0, m->x);
    return true;
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
