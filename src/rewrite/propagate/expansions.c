/* What is repeated is computed once. Heads of keys and values that several heads of queries share
 * are written as Expand and Reshape, each repeated so many times along an axis; a decoder with a
 * cache then copies all of it for every token. A repeated value goes on unrepeated through whatever
 * keeps the axis (ops/along.h: transposes, scales), down to a product with what is not repeated:
 * there the heads that share a factor become rows of one product,
 *
 *     q [N, H, T, D] . rep(k) [N, H, D, S] = (q as [N, H/G, G T, D]) . k [N, H/G, D, S]. */
#include "ops/along.h"
#include "ops/rewrite.h"
#include "rewrite/passes.h"
#include "rewrite/propagate/numbers.h"

enum { MOST_NODES = 100000, MOST_HEIGHT = 32 };

/* v[.., i, ..] = of[.., i / times, ..] along an axis; times 0: not repeated. Where `node` is given,
 * `of` is what it makes of its inputs unrepeated, once that is there. */
typedef struct repeated {
    int64_t times;
    int8_t axis;
    po_node_id node;
    po_value_id of;
} repeated;

typedef struct spreading {
    po_ctx *ctx;
    po_graph *graph;
    po_arena *arena;
    const po_graph *pinned;
    repeated *value; /* by value */
} spreading;

static const repeated *repeated_of(const spreading *s, po_value_id v) {
    return v != PO_NONE && s->value[v].times > 1 ? &s->value[v] : NULL;
}

/* --- where it begins: Reshape(Expand(u)) that joins the axis in front with the one repeated --- */

/* The one axis of length 1 that an Expand makes longer, and how often; PO_NONE. */
static uint32_t expanded_axis(const spreading *s, const po_node *e, int64_t *times) {
    uint32_t rank, own_rank, axis = PO_NONE;
    const po_dim *to = po_static_dims(s->pinned, e->out[0], &rank);
    const po_dim *from = po_static_dims(s->pinned, e->in[0], &own_rank);
    if (!to || !from || rank != own_rank)
        return PO_NONE;
    for (uint32_t i = 0; i < rank; i++) {
        if (to[i].value == from[i].value)
            continue;
        if (from[i].value != 1 || axis != PO_NONE)
            return PO_NONE;
        axis = i;
    }
    /* Known whatever the open dims are. */
    *times = axis == PO_NONE ? 0 : po_dim_of(s->graph, e->out[0], (int)axis);
    return *times > 1 ? axis : PO_NONE;
}

/* The Expand of Reshape(Expand(Unsqueeze(x))), NULL for others. */
static const po_node *joins_repeated(const po_graph *g, const po_node *n) {
    const po_node *e = n->op == PO_OP_Reshape ? po_made_by(g, n->in[0], PO_OP_Expand) : NULL;
    return e && po_made_by(g, e->in[0], PO_OP_Unsqueeze) ? e : NULL;
}

static void begin(const spreading *s, po_node_id id) {
    const po_graph *g = s->graph;
    const po_node *n = &g->nodes[id], *e = joins_repeated(g, n);
    const po_node *u = e ? po_made_by(g, e->in[0], PO_OP_Unsqueeze) : NULL;
    uint32_t rank, joined_rank, split_rank;
    int64_t times;
    const uint32_t axis = u ? expanded_axis(s, e, &times) : PO_NONE;
    if (axis == PO_NONE || axis == 0 || axis > INT8_MAX)
        return;
    const po_dim *plain = po_static_dims(s->pinned, u->in[0], &rank);
    const po_dim *joined = po_static_dims(s->pinned, n->out[0], &joined_rank);
    const po_dim *split = po_static_dims(s->pinned, e->out[0], &split_rank);
    if (!plain || !joined || !split || joined_rank != rank || split_rank != rank + 1)
        return;
    /* Unsqueeze put the axis there that is repeated, and the Reshape joins it with the one in
     * front. */
    for (uint32_t i = 0; i < rank; i++)
        if (split[i < axis ? i : i + 1].value != plain[i].value ||
            joined[i].value != plain[i].value * (i + 1 == axis ? times : 1))
            return;
    s->value[n->out[0]] =
        (repeated){.times = times, .axis = (int8_t)(axis - 1), .node = PO_NONE, .of = u->in[0]};
}

/* --- how it goes on --- */

/* Whether the axis of the output is repeated: every input that is goes along it by its repeated
 * axis, and the others do not go along at all. */
static bool repeats_along(const spreading *s, const po_node *n, const int8_t *in, int64_t times) {
    for (uint32_t k = 0; k < n->n_in; k++) {
        const repeated *r = repeated_of(s, n->in[k]);
        if (r ? in[k] != r->axis || r->times != times : in[k] != PO_WHOLE)
            return false;
    }
    return true;
}

static po_status go_on(const spreading *s, po_node_id id) {
    const po_node *n = &s->graph->nodes[id];
    int64_t times = 0;
    for (uint32_t k = 0; k < n->n_in; k++) {
        const repeated *r = repeated_of(s, n->in[k]);
        times = r ? r->times : times;
    }
    const int rank = n->n_out == 1 && n->out[0] != PO_NONE ? po_rank_of(s->pinned, n->out[0]) : -1;
    /* Whatever states lengths states those of all heads. */
    if (times < 2 || n->op == PO_OP_Reshape || n->op == PO_OP_Expand)
        return PO_OK;
    for (int axis = 0; axis < rank && axis < INT8_MAX; axis++) {
        int8_t *in = PO_NEW_N(s->arena, int8_t, n->n_in + 1);
        po_arena *scratch = po_arena_child(s->arena);
        po_status status =
            po_kept_along(s->ctx, scratch, s->pinned, &s->pinned->nodes[id], (uint32_t)axis, in);
        po_arena_free(scratch);
        if (status == PO_OK && repeats_along(s, n, in, times) &&
            po_same_along(s->graph, n, (uint32_t)axis, in)) {
            s->value[n->out[0]] =
                (repeated){.times = times, .axis = (int8_t)axis, .node = id, .of = PO_NONE};
            return PO_OK;
        }
        if (status != PO_OK && status != PO_UNSUPPORTED)
            return status;
    }
    return PO_OK;
}

/* --- the products --- */

/* The value unrepeated: what the node makes of its inputs unrepeated. */
static po_value_id unrepeated(const spreading *s, po_value_id v, int height) {
    po_graph *g = s->graph;
    repeated *r = &s->value[v];
    if (r->of != PO_NONE || height == 0)
        return r->of;
    const po_node n = g->nodes[r->node];
    po_value_id *in = po_arena_memdup(s->arena, n.in, n.n_in * sizeof *in);
    for (uint32_t k = 0; k < n.n_in; k++)
        if (repeated_of(s, n.in[k])) {
            in[k] = unrepeated(s, n.in[k], height - 1);
            if (in[k] == PO_NONE)
                return PO_NONE;
        }
    po_type type = g->values[v].type;
    if (type.has_rank) {
        po_dim *dims = po_arena_memdup(g->arena, type.dims, type.rank * sizeof *dims);
        const int64_t all = dims[r->axis].value;
        dims[r->axis] = all > 0 ? PO_DIM(all / r->times) : PO_DIM_UNKNOWN;
        type.dims = dims;
    }
    r->of = po_add_like(g, r->node, &n, n.n_in, in, &type);
    return r->of;
}

/* Heads of all, as the axis before rows and columns; 0: not known to be a number. */
static int64_t heads_of(const po_graph *g, po_value_id v) {
    const int rank = po_rank_of(g, v);
    return rank >= 3 ? po_dim_of(g, v, rank - 3) : 0;
}

/* Its heads split, or joined: [.., from, rows, columns] as [.., to, left, columns]. */
static void heads_shape(const po_graph *g, po_value_id v, int64_t to, int64_t *shape) {
    const po_type *t = &g->values[v].type;
    for (uint32_t i = 0; i < t->rank; i++)
        shape[i] = i + 3 == t->rank       ? to
                   : i + 2 == t->rank     ? -1
                   : t->dims[i].value > 0 ? t->dims[i].value
                                          : 0;
}

static bool share_product(const spreading *s, po_node_id id) {
    po_graph *g = s->graph;
    const po_node *n = &g->nodes[id];
    int64_t split[PO_MAX_RANK], joined[PO_MAX_RANK];
    const repeated *r = repeated_of(s, n->in[1]);
    const po_value_id a = n->in[0], y = n->out[0];
    const int rank = po_rank_of(g, a);
    const int64_t heads = heads_of(g, a);
    if (!r || repeated_of(s, a) || rank < 3 || rank > PO_MAX_RANK ||
        po_rank_of(g, n->in[1]) != rank || po_rank_of(g, y) != rank || r->axis != rank - 3 ||
        heads < 2 || heads % r->times != 0 || heads_of(g, n->in[1]) != heads ||
        heads_of(g, y) != heads)
        return false;
    heads_shape(g, a, heads / r->times, split);
    heads_shape(g, y, heads, joined);
    const po_value_id b = unrepeated(s, n->in[1], MOST_HEIGHT);
    if (b == PO_NONE)
        return false;
    const po_type unknown = po_type_unranked(g->values[y].type.dtype), type = g->values[y].type;
    const po_value_id rows = po_add_reshape_told(g, id, a, (uint32_t)rank, split, PO_NONE, NULL);
    const po_value_id in[2] = {rows, b};
    const po_value_id product = po_add_op(g, id, PO_OP_MatMul, 2, in, &unknown);
    const po_value_id whole =
        po_add_reshape_told(g, id, product, (uint32_t)rank, joined, PO_NONE, &type);
    po_substitute(g, y, whole);
    return true;
}

po_status po_share_repeated(po_ctx *ctx, po_graph *graph, po_rewriting *state) {
    uint32_t n;
    const po_node_id *order = po_graph_order(graph, state->scratch, &n);
    bool any = false;
    for (uint32_t i = 0; i < n && !any; i++)
        any = joins_repeated(graph, &graph->nodes[order[i]]) != NULL;
    if (!any || n > MOST_NODES || graph->parent || po_model_opset(graph->model, "") < 5)
        return PO_OK;
    po_graph *pinned = po_with_numbers(ctx, graph);
    spreading s = {.ctx = ctx,
                   .graph = graph,
                   .arena = state->scratch,
                   .pinned = pinned,
                   .value = PO_NEW_N(state->scratch, repeated, graph->n_values)};
    po_status status = PO_OK;
    for (uint32_t i = 0; i < n && status == PO_OK; i++) {
        begin(&s, order[i]);
        status = go_on(&s, order[i]);
    }
    const uint32_t n_values = graph->n_values;
    for (uint32_t i = 0; i < n && status == PO_OK; i++) {
        const po_node *node = &graph->nodes[order[i]];
        if (node->op == PO_OP_MatMul && node->in[0] < n_values && node->in[1] < n_values)
            po_law_fired(state, PO_LAW_SHARE_REPEATED, share_product(&s, order[i]));
    }
    po_graph_free(pinned);
    return status;
}
