/* Masks as exporters write them: mask[sample, position] by indices that count through all of it is
 * the mask in another shape; position >= 0 always holds; and what is repeated for an operator that
 * repeats it anyway need not be.
 *
 * A value may have fewer dims than before, or dims of one place, where all its readers broadcast it
 * to what it was. */
#include "ops/indices.h"
#include "ops/recipe/recipe.h"
#include "rewrite/passes.h"

enum { MOST_VIEWS = 8, MOST_DEPTH = 8, MOST_NARROWER = 64 };

/* --- readers that broadcast --- */

/* Whether all inputs broadcast to one another; else the first one's shape is that of what is made.
 */
static bool broadcasts(const po_node *n) {
    switch (n->op) {
    case PO_OP_Clip:
    case PO_OP_PRelu:
    case PO_OP_CastLike:
    case PO_OP_MS_BiasGelu:
    case PO_OP_MS_FastGelu:
        return n->n_in == 1;
    default:
        return po_op_has(n->op, PO_OPF_ELEMENTWISE);
    }
}

/* Values that are to have fewer dims or shorter ones, all at once: two of them may meet at a
 * reader.
 */
typedef struct narrowing {
    po_graph *graph;
    uint32_t n;
    po_value_id value[MOST_NARROWER];
    po_type type[MOST_NARROWER];
} narrowing;

static const po_type *type_in(const narrowing *w, po_value_id v) {
    for (uint32_t i = 0; i < w->n; i++)
        if (w->value[i] == v)
            return &w->type[i];
    return &w->graph->values[v].type;
}

/* The dims of what an element-wise node makes of its inputs then; false: they are not known. */
static bool broadcast(const narrowing *w, const po_node *n, uint32_t *rank, po_dim *dims) {
    *rank = 0;
    for (uint32_t k = 0; k < n->n_in; k++) {
        const po_type *t = n->in[k] == PO_NONE ? NULL : type_in(w, n->in[k]);
        if (!t || t->kind != PO_TYPE_TENSOR || !t->has_rank)
            return false;
        *rank = t->rank > *rank ? t->rank : *rank;
    }
    for (uint32_t a = 0; a < *rank; a++) {
        dims[a] = PO_DIM(1);
        for (uint32_t k = 0; k < n->n_in; k++) {
            const po_type *t = type_in(w, n->in[k]);
            const int at = (int)a - (int)*rank + (int)t->rank;
            if (at < 0 || t->dims[at].value == 1)
                continue;
            if (dims[a].value != 1 && !po_dim_same(dims[a], t->dims[at]))
                return false;
            dims[a] = t->dims[at];
        }
        if (dims[a].value < 0 && !dims[a].symbol)
            return false;
    }
    return true;
}

static bool same_shape(const po_type *t, uint32_t rank, const po_dim *dims) {
    bool same = t->has_rank && t->rank == rank;
    for (uint32_t a = 0; same && a < rank; a++)
        same = po_dim_same(t->dims[a], dims[a]);
    return same;
}

static bool note(narrowing *w, po_value_id v, const po_type *type) {
    uint32_t i = 0;
    while (i < w->n && w->value[i] != v)
        i++;
    if (i == MOST_NARROWER)
        return false;
    w->n += i == w->n;
    w->value[i] = v;
    w->type[i] = *type;
    return true;
}

/* Whether the value may be of the type, as far as its readers go, and what they make with it. */
static bool be_narrower(narrowing *w, po_value_id v, const po_type *type, uint32_t depth) {
    const po_value *value = &w->graph->values[v];
    if (value->n_outputs > 0 || depth == 0 || !note(w, v, type))
        return false;
    for (uint32_t u = 0; u < value->n_uses; u++) {
        const po_node *n = &w->graph->nodes[value->uses[u].node];
        po_dim dims[PO_MAX_RANK];
        uint32_t rank;
        if (value->uses[u].input == PO_USE_CAPTURE || n->n_out != 1 || !broadcasts(n) ||
            !broadcast(w, n, &rank, dims))
            return false;
        const po_type *out = type_in(w, n->out[0]);
        if (same_shape(out, rank, dims))
            continue;
        const po_type narrow = po_type_tensor(w->graph->arena, out->dtype, rank, dims);
        if (!out->has_rank || !be_narrower(w, n->out[0], &narrow, depth - 1))
            return false;
    }
    return true;
}

static bool may_be(po_graph *g, po_value_id v, const po_type *type, narrowing *w) {
    *w = (narrowing){.graph = g};
    return be_narrower(w, v, type, MOST_DEPTH);
}

/* Whether it could be read in place of the value, and is now. */
static bool read_instead(po_graph *g, po_value_id v, po_value_id other) {
    enum { BROADCASTS_SINCE = 8 };
    const po_type type = g->values[other].type, *own = &g->values[v].type;
    narrowing w = {.n = 0};
    if (po_model_opset(g->model, "") < BROADCASTS_SINCE || type.kind != PO_TYPE_TENSOR ||
        !type.has_rank || own->dtype != type.dtype ||
        (!same_shape(own, type.rank, type.dims) && !may_be(g, v, &type, &w)))
        return false;
    for (uint32_t i = 0; i < w.n; i++) {
        g->values[w.value[i]].type = w.type[i];
        g->values[w.value[i]].partial = NULL; /* of more elements */
    }
    po_substitute(g, v, other);
    return true;
}

/* --- the laws --- */

bool po_drop_expand(po_rewriting *r, po_graph *graph, po_node_id id) {
    (void)r;
    const po_node *n = &graph->nodes[id];
    const po_value *value = n->op == PO_OP_Expand ? &graph->values[n->out[0]] : NULL;
    return value && value->n_uses > 0 && n->in[0] != PO_NONE &&
           !po_graph_constant(graph, n->in[0]) && read_instead(graph, n->out[0], n->in[0]);
}

bool po_drop_known_condition(po_rewriting *r, po_graph *graph, po_node_id id) {
    const po_node n = graph->nodes[id];
    const po_truth drops = n.op == PO_OP_And  ? PO_TRUTH_TRUE
                           : n.op == PO_OP_Or ? PO_TRUTH_FALSE
                                              : PO_TRUTH_UNKNOWN;
    for (uint32_t k = 0; drops != PO_TRUTH_UNKNOWN && k < 2; k++)
        if (po_truth_of(r->scratch, graph, n.in[k]) == drops &&
            read_instead(graph, n.out[0], n.in[1 - k]))
            return true;
    return false;
}

/* The axes of `out` that `in` has not, all of one place; false: that is not all that differs. */
static bool axes_put_in(const po_type *in, const po_type *out, uint32_t *n, int64_t *axes) {
    uint32_t at = 0;
    *n = 0;
    if (in->kind != PO_TYPE_TENSOR || !in->has_rank)
        return false;
    for (uint32_t a = 0; a < out->rank; a++) {
        if (at < in->rank && po_dim_same(in->dims[at], out->dims[a]))
            at++;
        else if (out->dims[a].value == 1)
            axes[(*n)++] = a;
        else
            return false;
    }
    return at == in->rank;
}

/* A Reshape to a shape that is computed, or of what is another shape of something. */
static bool is_view(const po_graph *g, const po_node *n) {
    if (n->op != PO_OP_Reshape || n->n_in != 2 || n->in[0] == PO_NONE || n->in[1] == PO_NONE)
        return false;
    const po_node *made = po_graph_producer(g, n->in[0]);
    return !po_graph_constant(g, n->in[1]) || (made && po_op_has(made->op, PO_OPF_SHAPE_ONLY));
}

bool po_view_in_order(po_rewriting *r, po_graph *graph, po_node_id id) {
    const po_node n = graph->nodes[id];
    const bool view = is_view(graph, &n);
    int64_t axes[PO_MAX_RANK];
    uint32_t put = 0;
    if (!view && n.op != PO_OP_Gather && n.op != PO_OP_GatherND)
        return false;
    const po_type type = graph->values[n.out[0]].type;
    if (po_model_opset(graph->model, "") < 13 || type.kind != PO_TYPE_TENSOR || !type.has_rank ||
        (!view && !po_takes_in_order(r->scratch, graph, &n)))
        return false;
    po_value_id of = n.in[0];
    for (uint32_t i = 0; !axes_put_in(&graph->values[of].type, &type, &put, axes); i++) {
        const po_node *made = po_graph_producer(graph, of);
        if (i == MOST_VIEWS || !made || !po_op_has(made->op, PO_OPF_SHAPE_ONLY) ||
            made->in[0] == PO_NONE)
            return false;
        of = made->in[0];
    }
    if (put > 0) {
        const po_value_id in[2] = {of, po_add_i64s(graph, NULL, put, axes)};
        of = po_add_op(graph, id, PO_OP_Unsqueeze, 2, in, &type);
    }
    po_substitute(graph, n.out[0], of);
    return true;
}

/* Rows of a table that are all one: a model without segments looks the first of them up for every
 * token. */
bool po_one_row(po_rewriting *r, po_graph *graph, po_node_id id) {
    const po_node n = graph->nodes[id];
    const po_tensor *table =
        n.op == PO_OP_Gather && n.n_in == 2 ? po_graph_constant(graph, n.in[0]) : NULL;
    int64_t row;
    if (!table || table->rank != 2 || po_dtype_class_of(table->dtype) != PO_CLASS_FLOAT ||
        po_op_int(graph, &n, "axis") != 0 || po_graph_constant(graph, n.in[1]) ||
        !po_index_uniform(r->scratch, graph, n.in[1], &row) || row >= table->dims[0])
        return false;
    const po_type type = graph->values[n.out[0]].type;
    const po_type one =
        po_type_tensor(graph->arena, type.dtype, 2, (po_dim[]){PO_DIM(1), PO_DIM(table->dims[1])});
    narrowing w;
    if (!type.has_rank || !may_be(graph, n.out[0], &one, &w))
        return false;
    const po_recipe *all = po_recipe_doubles(graph, r->scratch, n.in[0]);
    const po_value_id value =
        po_add_recipe(graph, NULL, table->dtype, po_recipe_slice(r->scratch, all, 0, row, row + 1));
    return value != PO_NONE && read_instead(graph, n.out[0], value);
}
