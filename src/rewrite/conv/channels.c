/* Products over the channels of maps that a network keeps channels-last for them (ConvNeXt's
 * blocks, tokens of a transformer that become a map): before a Transpose to channels first, MatMul
 * by a matrix is a pointwise convolution. The transpose moves up to the first product; activations,
 * scales and shifts between the products come along, and convolutions take the scales, the shifts
 * and the residual sum behind. Tokens [N, H W, C] are made a map by a Reshape before or behind the
 * transpose, which moves up with it. */
#include "ops/recipe/recipe.h"
#include "rewrite/conv/conv.h"
#include "rewrite/layout/relayout.h"
#include "rewrite/passes.h"
#include "rewrite/products/matrix.h"

enum { RANK = 4, TOKENS = 3, MOST_NODES = 16 };

/* One node of the chain, last first: its input `data` is on the chain. */
typedef struct link {
    po_node_id node;
    uint32_t data;
    bool product, vector; /* MatMul by a matrix; the other operand is one number a channel */
    po_matrix_product by;
    po_value_id w; /* of the convolution */
    po_conv like;
} link;

static bool is_product(const po_graph *g, const po_node *n, link *l) {
    if (!po_matrix_product_read(g, n, &l->by) || !po_matrix_product_in_blocks(&l->by))
        return false;
    l->product = true;
    l->like = po_conv_pointwise(PO_F32, l->by.out, l->by.in);
    return true;
}

/* One operand on the chain; the other is a number, or one for each index of the last axis. */
static bool is_scaling(const po_graph *g, const po_node *n, int rank, link *l) {
    if ((n->op != PO_OP_Mul && n->op != PO_OP_Add && n->op != PO_OP_Sub && n->op != PO_OP_Div) ||
        n->n_in != 2)
        return false;
    for (uint32_t k = 0; k < 2; k++) {
        const po_tensor *t = po_graph_constant(g, n->in[1 - k]);
        bool vector = t && t->rank >= 1 && (int)t->rank <= rank &&
                      t->count == t->dims[t->rank - 1] && t->count == po_dim_of(g, n->out[0], -1);
        if (!vector && !(t && t->count == 1 && t->rank <= 1))
            continue;
        l->data = k;
        l->vector = vector && t->count > 1;
        return po_rank_of(g, n->in[k]) == rank;
    }
    return false;
}

static bool is_activation(const po_graph *g, const po_node *n, int rank) {
    if (!po_op_has(n->op, PO_OPF_ELEMENTWISE) || n->n_in < 1 || n->n_out != 1)
        return false;
    for (uint32_t k = 1; k < n->n_in; k++) {
        const po_tensor *t = n->in[k] == PO_NONE ? NULL : po_graph_constant(g, n->in[k]);
        if (n->in[k] != PO_NONE && !(t && t->count == 1 && t->rank <= 1))
            return false;
    }
    return po_rank_of(g, n->in[0]) == rank;
}

/* The chain of values of so many axes that ends in y, up to the first product; 0 where there is
 * none. */
static uint32_t read_chain(const po_graph *g, po_value_id y, int rank, link chain[MOST_NODES]) {
    uint32_t n = 0, upto = 0;
    while (n < MOST_NODES && po_read_once(g, y) && g->values[y].producer != PO_NONE &&
           po_rearrangeable(g, y) && g->values[y].type.dtype == PO_F32) {
        const po_node *node = &g->nodes[g->values[y].producer];
        link l = {.node = g->values[y].producer};
        if (!is_product(g, node, &l) && !is_scaling(g, node, rank, &l) &&
            !is_activation(g, node, rank))
            break;
        if (po_rank_of(g, node->in[l.data]) != rank)
            break;
        chain[n++] = l;
        upto = l.product ? n : upto;
        y = node->in[l.data];
    }
    return upto;
}

static bool make_weights(po_graph *g, po_arena *arena, link *l) {
    l->w = po_matrix_product_pointwise(g, arena, &l->by);
    return l->w != PO_NONE;
}

static po_value_id rewrite(po_graph *g, const link *l, po_value_id x) {
    const po_node *n = &g->nodes[l->node];
    if (l->product)
        return po_conv_add(g, l->node, x, &l->like, l->w, PO_NONE);
    enum { MOST = 4 };
    po_value_id in[MOST];
    uint32_t n_in = n->n_in < MOST ? n->n_in : MOST;
    memcpy(in, n->in, n_in * sizeof *in);
    in[l->data] = x;
    if (l->vector) {
        int64_t dims[3] = {po_graph_constant(g, in[1 - l->data])->count, 1, 1};
        in[1 - l->data] = po_add_reshaped(g, in[1 - l->data], 3, dims);
    }
    po_relayout r = {.graph = g};
    return po_relayout_copy(&r, l->node, in, n_in);
}

/* How the map at the end is made of the chain's result. */
typedef struct ending {
    enum { TURNED, RESHAPED_TURNED, TURNED_RESHAPED } kind;
    po_value_id from;       /* the chain's result */
    const po_tensor *shape; /* of the Reshape */
} ending;

static const int64_t to_first[RANK] = {0, 3, 1, 2}, tokens_to_first[TOKENS] = {0, 2, 1};

static bool is_transpose(const po_node *n, uint32_t rank, const int64_t *perm) {
    uint32_t count;
    const int64_t *p = n->op == PO_OP_Transpose ? po_node_ints(n, "perm", &count) : NULL;
    return p && count == rank && memcmp(p, perm, rank * sizeof *p) == 0;
}

/* A Reshape of tokens into a map by numbers, its channels at `axis`. */
static const po_tensor *reads_tokens(const po_graph *g, const po_node *n, po_value_id from,
                                     uint32_t axis) {
    const po_tensor *t =
        n->op == PO_OP_Reshape && n->n_in == 2 ? po_graph_constant(g, n->in[1]) : NULL;
    const int64_t channels = po_dim_of(g, from, 2);
    /* 0 copies the length that stands there: of the channels, where these are last. */
    for (int64_t i = 2; t && i < t->count; i++)
        if (po_tensor_int(t, i) == 0)
            return NULL;
    return t && t->count == RANK && po_rank_of(g, from) == TOKENS && channels >= 1 &&
                   po_dim_of(g, n->out[0], (int)axis) == channels &&
                   po_node_int(n, "allowzero", 0) == 0
               ? t
               : NULL;
}

static bool read_ending(const po_graph *g, const po_node *n, ending *e) {
    *e = (ending){.kind = TURNED, .from = n->n_in ? n->in[0] : PO_NONE};
    if (is_transpose(n, RANK, to_first)) {
        const po_node *r = po_made_alone_by(g, e->from, PO_OP_Reshape);
        if (!r || !(e->shape = reads_tokens(g, r, r->in[0], RANK - 1)))
            return true;
        e->kind = RESHAPED_TURNED;
        e->from = r->in[0];
        return true;
    }
    const po_node *t =
        n->op == PO_OP_Reshape ? po_made_alone_by(g, e->from, PO_OP_Transpose) : NULL;
    if (!t || !is_transpose(t, TOKENS, tokens_to_first) ||
        !(e->shape = reads_tokens(g, n, t->in[0], 1)))
        return false;
    e->kind = TURNED_RESHAPED;
    e->from = t->in[0];
    return true;
}

/* Tokens of other channels as the map; a length that is copied or worked out stays so. */
static po_value_id reshaped(po_graph *g, po_node_id at, po_value_id x, const ending *e,
                            int64_t channels) {
    int64_t dims[RANK];
    for (uint32_t i = 0; i < RANK; i++)
        dims[i] = po_tensor_int(e->shape, i);
    dims[e->kind == TURNED_RESHAPED ? 1 : RANK - 1] = channels;
    return po_add_reshape_told(g, at, x, RANK, dims, PO_NONE, NULL);
}

bool po_convolve_channels(po_rewriting *r, po_graph *g, po_node_id id) {
    po_arena *arena = r->scratch;
    link chain[MOST_NODES];
    ending e;
    if (po_model_opset(g->model, "") < 7 || !read_ending(g, &g->nodes[id], &e))
        return false;
    uint32_t length = read_chain(g, e.from, e.kind == TURNED ? RANK : TOKENS, chain), last = 0;
    while (last < length && !chain[last].product)
        last++;
    /* Tokens are turned here alone: no more of them than before. */
    if (length == 0 || (e.kind != TURNED && chain[length - 1].like.in > chain[last].like.out))
        return false;
    for (uint32_t i = 0; i < length; i++)
        if (chain[i].product && !make_weights(g, arena, &chain[i]))
            return false;
    const int64_t channels = chain[length - 1].like.in;
    po_value_id y = g->nodes[id].out[0], x = g->nodes[chain[length - 1].node].in[0];
    if (e.kind == TURNED_RESHAPED) {
        x = po_add_transpose(g, id, x, TOKENS, tokens_to_first, NULL);
        x = reshaped(g, id, x, &e, channels);
    } else {
        x = e.kind == RESHAPED_TURNED ? reshaped(g, id, x, &e, channels) : x;
        x = po_add_transpose(g, id, x, RANK, to_first, NULL);
    }
    for (uint32_t i = length; i-- > 0;)
        x = rewrite(g, &chain[i], x);
    po_substitute(g, y, x);
    return true;
}
