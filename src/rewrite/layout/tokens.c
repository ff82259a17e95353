/* Products of tokens by matrices as pointwise convolutions. Values [N, T, C] have twins
 * [1, C, N T, 1] ([T, C] have [1, C, T, 1], [N, H, W, C] have [N, C, H, W]), in which the runtime
 * keeps channels in blocks. The tokens of all samples lie side by side, since it reads the weights
 * anew for each sample of a map. There its pointwise convolution is faster than its matrix product
 * at any number of tokens, and takes the bias, an activation and the residual sum along. What lies
 * between products (activations, scales, sums) goes along, and heads of attention are taken off a
 * twin of one sample, and put back into one, by Reshapes that move nothing. What works along the
 * channels (norms) reads them last; the runtime turns them while it leaves the blocks. */
#include "ops/conv_view.h"
#include "ops/recipe/recipe.h"
#include "rewrite/conv/conv.h"
#include "rewrite/layout/relayout.h"
#include "rewrite/passes.h"
#include "rewrite/products/matrix.h"

enum { ROWS = 2, TOKENS, MAP, MOST_FACTORS = 3 };

static const int64_t to_first[MAP] = {0, 3, 1, 2}, to_last[MAP] = {0, 2, 3, 1};

/* By a Reshape that copies what is open. */
static po_value_id reshaped(po_relayout *r, po_node_id at, po_value_id x, uint32_t rank,
                            const int64_t *dims, const po_type *type) {
    return po_add_reshape_told(r->graph, at, x, rank, dims, PO_NONE, type);
}

typedef struct token_layout {
    po_relayout r;
    po_value_id *weights[2]; /* of each matrix, its columns or its rows the outputs; PO_NONE */
    /* Of values [N, T, C] with twins: one in the old layout that has N and T first, and of that
     * these two lengths, when the model runs; PO_NONE. */
    po_value_id *tokens, *lengths;
    struct told_shape { /* these two lengths and the channels, as a list */
        po_value_id like, list;
        int64_t channels;
    } * shapes;
    uint32_t n_shapes, cap_shapes;
} token_layout;

/* Whether the tokens of several samples lie side by side in the twin. */
static bool samples_joined(const po_relayout *r, const po_type *type) {
    return r->rank == TOKENS && type->has_rank && type->dims[0].value != 1;
}

/* --- heads: a Reshape of the channels into factors, and a Transpose --- */

typedef struct heads {
    uint32_t n; /* factors of the channels */
    int64_t factor[MOST_FACTORS];
    int64_t perm[2 + MOST_FACTORS]; /* of the Transpose */
    po_type whole;                  /* [N, T, C] */
} heads;

/* `split` [N, T, factors] is a Reshape of `whole` [N, T, C], or the other way round; h->whole is
 * that, N = 1 for rows. */
static bool read_factors(const po_graph *g, po_value_id whole, po_value_id split, heads *h) {
    const po_type *w = &g->values[whole].type, *s = &g->values[split].type;
    if (!w->has_rank || !s->has_rank || w->rank < ROWS || w->rank > TOKENS || s->rank < TOKENS ||
        s->rank > 2 + MOST_FACTORS)
        return false;
    const po_dim *dims = w->dims;
    h->whole = *w;
    if (w->rank == ROWS)
        h->whole = po_type_tensor(g->arena, w->dtype, TOKENS,
                                  (const po_dim[]){PO_DIM(1), dims[0], dims[1]});
    w = &h->whole;
    if (!po_dim_same(w->dims[0], s->dims[0]) || !po_dim_same(w->dims[1], s->dims[1]))
        return false;
    int64_t all = 1;
    h->n = s->rank - 2;
    for (uint32_t i = 0; i < h->n; i++) {
        h->factor[i] = s->dims[2 + i].value;
        if (h->factor[i] < 1)
            return false;
        all *= h->factor[i];
    }
    return all == w->dims[2].value;
}

static bool read_perm(const po_node *n, heads *h) {
    uint32_t count;
    const int64_t *perm = n && n->op == PO_OP_Transpose ? po_node_ints(n, "perm", &count) : NULL;
    if (!perm || count < TOKENS || count > 2 + MOST_FACTORS)
        return false;
    h->n = count - 2;
    memcpy(h->perm, perm, count * sizeof *perm);
    return true;
}

/* The twin, of one sample, as [1, factors, T]. */
static po_value_id split_twin(po_relayout *r, po_node_id at, po_value_id twin, const heads *h) {
    int64_t dims[2 + MOST_FACTORS] = {1};
    memcpy(dims + 1, h->factor, h->n * sizeof *dims);
    dims[1 + h->n] = -1;
    return reshaped(r, at, twin, h->n + 2, dims, NULL);
}

/* [1, factors, T] as the twin. */
static po_value_id join_twin(po_relayout *r, po_node_id at, po_value_id x, const heads *h) {
    return reshaped(r, at, x, MAP, (const int64_t[]){1, h->whole.dims[2].value, -1, 1}, NULL);
}

/* Transpose(Reshape(x)) of a twin: axes of [N, T, factors] are those of [N, factors, T]. */
static bool convert_split(po_relayout *r, po_node_id id) {
    po_graph *g = r->graph;
    heads h;
    const po_node *n = &g->nodes[id];
    const po_node *split = read_perm(n, &h) ? po_made_by(g, n->in[0], PO_OP_Reshape) : NULL;
    if (!split || r->rank == MAP || !po_relayout_has(r, split->in[0]) ||
        samples_joined(r, &g->values[split->in[0]].type) ||
        !read_factors(g, split->in[0], n->in[0], &h) || g->values[n->in[0]].type.rank != h.n + 2)
        return false;
    const po_value_id y = n->out[0];
    const po_type type = g->values[y].type;
    const uint32_t rank = h.n + 2;
    int64_t perm[2 + MOST_FACTORS];
    bool moves = false;
    for (uint32_t i = 0; i < rank; i++) {
        perm[i] = h.perm[i] == 0 ? 0 : h.perm[i] == 1 ? (int64_t)rank - 1 : h.perm[i] - 1;
        moves = moves || perm[i] != (int64_t)i;
    }
    po_value_id x = split_twin(r, id, r->twin[split->in[0]], &h);
    if (moves)
        x = po_add_transpose(g, id, x, rank, perm, NULL);
    g->values[x].type = type;
    po_substitute(g, y, x);
    return true;
}

/* Reshape(Transpose(o)), which joins heads to channels, as the twin of what it makes; PO_NONE: it
 * is none. */
static po_value_id joined(po_relayout *r, po_node_id at, po_value_id whole) {
    po_graph *g = r->graph;
    heads h;
    const po_node *join = po_made_by(g, whole, PO_OP_Reshape);
    const po_node *turn = join ? po_made_by(g, join->in[0], PO_OP_Transpose) : NULL;
    if (!turn || !read_perm(turn, &h) || !read_factors(g, whole, join->in[0], &h))
        return PO_NONE;
    const uint32_t rank = h.n + 2;
    int64_t perm[2 + MOST_FACTORS] = {h.perm[0]};
    for (uint32_t i = 0; i < h.n; i++)
        perm[1 + i] = h.perm[2 + i];
    perm[rank - 1] = h.perm[1];
    po_value_id x = po_add_transpose(g, at, turn->in[0], rank, perm, NULL);
    return join_twin(r, at, x, &h);
}

/* --- the layout --- */

/* Of all values with the same lengths the first one tells them. */
static po_value_id told_by(const token_layout *l, po_value_id x) {
    const po_graph *g = l->r.graph;
    const po_type *t = &g->values[x].type;
    for (po_value_id v = 0; v < l->r.n; v++) {
        const po_type *o = &g->values[v].type;
        if (l->tokens[v] == v && po_dim_same(o->dims[0], t->dims[0]) &&
            po_dim_same(o->dims[1], t->dims[1]))
            return v;
    }
    return x;
}

static po_value_id to_map(po_relayout *r, po_node_id at, po_value_id x) {
    token_layout *l = (token_layout *)r;
    const po_type *type = &r->graph->values[x].type;
    const bool side_by_side = samples_joined(r, type);
    const po_value_id taken = r->rank < MAP && !side_by_side ? joined(r, at, x) : PO_NONE;
    if (side_by_side)
        l->tokens[x] = told_by(l, x);
    if (taken != PO_NONE)
        return taken;
    const int64_t channels = po_dim_of(r->graph, x, -1);
    /* By Reshape: runtimes move Transposes past Unsqueeze, and then find no turn to join. */
    if (r->rank == ROWS)
        x = reshaped(r, at, x, MAP, (const int64_t[]){1, -1, 1, channels}, NULL);
    if (r->rank == TOKENS)
        x = reshaped(r, at, x, MAP,
                     side_by_side ? (const int64_t[]){1, -1, 1, channels}
                                  : (const int64_t[]){0, 0, 1, channels},
                     NULL);
    return po_add_transpose(r->graph, at, x, MAP, to_first, NULL);
}

/* [N, T, C] as a Reshape is told it, each once. */
static po_value_id shape_like(token_layout *l, po_node_id at, po_value_id like, int64_t channels) {
    po_graph *g = l->r.graph;
    const int64_t three = 3;
    for (uint32_t i = 0; i < l->n_shapes; i++)
        if (l->shapes[i].like == like && l->shapes[i].channels == channels)
            return l->shapes[i].list;
    if (l->lengths[like] == PO_NONE)
        l->lengths[like] = po_add_lengths(g, at, like, 0, 2);
    const po_type type = po_type_tensor_i64(g->arena, PO_I64, 1, &three);
    const po_value_id parts[2] = {l->lengths[like], po_add_i64s(g, NULL, 1, &channels)};
    const po_value_id list = po_add_concat(g, at, 2, parts, 0, &type);
    const struct told_shape told = {like, list, channels};
    PO_PUSH(l->r.arena, l->shapes, l->n_shapes, l->cap_shapes, told);
    return list;
}

/* [1, N T, 1, C] as [N, T, C]; both lengths are open, so that those of another value tell them. */
static po_value_id samples_apart(token_layout *l, po_node_id at, po_value_id x, po_value_id like,
                                 const po_type *type) {
    po_graph *g = l->r.graph;
    const po_value_id in[2] = {x, shape_like(l, at, like, type->dims[2].value)};
    const po_value_id y = po_add_op(g, at, PO_OP_Reshape, 2, in, type);
    if (po_model_opset(g->model, "") >= 14) /* a length of 0 is that, not a copy */
        po_node_set_int(g, g->values[y].producer, "allowzero", 1);
    return y;
}

static po_value_id from_map(po_relayout *r, po_node_id at, po_value_id old, const po_type *type) {
    po_value_id x = r->twin[old];
    if (r->rank == MAP)
        return po_add_transpose(r->graph, at, x, MAP, to_last, type);
    x = po_add_transpose(r->graph, at, x, MAP, to_last, NULL);
    if (samples_joined(r, type)) {
        token_layout *l = (token_layout *)r;
        const int64_t n = type->dims[0].value, t = type->dims[1].value;
        if (n < 0 && t < 0)
            return samples_apart(l, at, x, l->tokens[old], type);
        return reshaped(r, at, x, TOKENS, (const int64_t[]){n, t, type->dims[2].value}, type);
    }
    const int64_t channels = type->dims[type->rank - 1].value;
    return r->rank == ROWS ? reshaped(r, at, x, ROWS, (const int64_t[]){-1, channels}, type)
                           : reshaped(r, at, x, TOKENS, (const int64_t[]){0, 0, channels}, type);
}

/* One number a channel, on the last axis. */
static int behind_channels(const po_relayout *r, po_value_id constant, po_value_id x) {
    const po_tensor *t = po_graph_constant(r->graph, constant);
    return t->rank >= 1 && t->rank <= r->rank && t->count == t->dims[t->rank - 1] &&
                   t->count == po_dim_of(r->graph, x, -1)
               ? 2
               : -1;
}

/* What turning it takes is worth it, as far as sizes are known. */
static bool pays(const po_graph *g, const po_node *n, const po_matrix_product *p) {
    const po_type *y = &g->values[n->out[0]].type;
    const bool narrow = p->in < po_numbers.tokens.narrow || p->out < po_numbers.tokens.narrow;
    double elements = (double)(p->in > p->out ? p->in : p->out);
    if (!po_type_static(y))
        return y->rank > ROWS || !narrow;
    for (uint32_t i = 0; i + 1 < y->rank; i++)
        elements *= (double)y->dims[i].value;
    if (y->rank == ROWS)
        return !narrow && (y->dims[0].value >= po_numbers.tokens.few ||
                           (double)p->in * (double)p->out >= po_numbers.tokens.weights);
    return !narrow || elements <= po_numbers.tokens.elements;
}

/* The weights of the convolution, once for all products by the matrix, and once for all by its
 * transpose. */
static po_value_id weights_of(po_relayout *r, const po_matrix_product *p) {
    po_value_id *w = &((token_layout *)r)->weights[p->rows][p->matrix];
    if (*w == PO_NONE)
        *w = po_matrix_product_pointwise(r->graph, r->arena, p);
    return *w;
}

static bool convert_product(po_relayout *r, po_node_id id) {
    po_graph *g = r->graph;
    const po_node *n = &g->nodes[id];
    po_matrix_product p;
    if (!po_matrix_product_read(g, n, &p) || !po_matrix_product_in_blocks(&p) ||
        po_rank_of(g, n->in[0]) != (int)r->rank || po_dim_of(g, n->in[0], -1) != p.in ||
        po_rank_of(g, n->out[0]) != (int)r->rank || po_graph_constant(g, n->in[0]) ||
        p.matrix >= r->n || !po_rearrangeable(g, n->out[0]) || !pays(g, n, &p))
        return false;
    const po_conv like = po_conv_pointwise(PO_F32, p.out, p.in);
    const po_value_id weights = weights_of(r, &p);
    if (weights == PO_NONE)
        return false;
    if (p.bias != PO_NONE && po_graph_constant(g, p.bias)->rank != 1)
        p.bias = po_add_reshaped(g, p.bias, 1, &p.out);
    const po_value_id old = g->nodes[id].in[0], x = po_relayout_twin(r, id, old);
    token_layout *l = (token_layout *)r;
    l->tokens[g->nodes[id].out[0]] = l->tokens[old];
    po_relayout_set(r, id, po_conv_add(g, id, x, &like, weights, p.bias));
    return true;
}

/* What the runtime keeps in blocks: values that were brought there leave them at the first sum. */
static bool convert_elementwise(po_relayout *r, po_node_id id) {
    const po_node *n = &r->graph->nodes[id];
    for (uint32_t k = 0; k < n->n_in; k++)
        if (!po_number_or_none(r->graph, n->in[k]) && !po_graph_constant(r->graph, n->in[k]) &&
            !(n->in[k] < r->n && r->converted[n->in[k]]))
            return false;
    token_layout *l = (token_layout *)r;
    po_value_id like = PO_NONE;
    for (uint32_t k = 0; k < n->n_in && like == PO_NONE; k++)
        like = n->in[k] < r->n ? l->tokens[n->in[k]] : PO_NONE;
    const po_value_id y = n->out[0];
    if (!po_relayout_elementwise(r, id))
        return false;
    l->tokens[y] = like;
    return true;
}

po_status po_use_maps_of_tokens(po_ctx *ctx, po_graph *graph, po_rewriting *state) {
    (void)ctx;
    if (po_model_opset(graph->model, "") < 7)
        return PO_OK;
    static const po_relayout_law laws[] = {{PO_LAW_TOKENS, convert_product},
                                           {PO_LAW_TOKENS_SPLIT, convert_split},
                                           {PO_LAWS, convert_elementwise}};
    for (uint32_t rank = ROWS; rank <= MAP; rank++) {
        token_layout l = {
            .r = {.enter = to_map, .leave = from_map, .behind_channels = behind_channels}};
        po_value_id **const lists[] = {&l.weights[0], &l.weights[1], &l.tokens, &l.lengths};
        for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
            *lists[i] = PO_NEW_N(state->scratch, po_value_id, graph->n_values);
            memset(*lists[i], 0xff, graph->n_values * sizeof **lists[i]); /* PO_NONE */
        }
        po_relayout_graph(&l.r, graph, state, rank, laws, sizeof laws / sizeof *laws);
    }
    return PO_OK;
}
