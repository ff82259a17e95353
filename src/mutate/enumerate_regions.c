/* Which operators of a subprogram are searched together. */
#include "mutate/enumerate.h"
#include "ops/conv_view.h"
#include "ops/rewrite.h"

enum { EN_MOST_PRODUCTS = 4, EN_MOST_REGIONS = 16, EN_MOST_NODES = 4096 };

/* Products multiply two tensors. */
static bool is_product(const po_node *n) {
    return po_conv_is(n) || n->op == PO_OP_MatMul || n->op == PO_OP_Gemm;
}

static bool moves(const po_node *n) {
    return n->op == PO_OP_Transpose || n->op == PO_OP_Reshape || n->op == PO_OP_Squeeze ||
           n->op == PO_OP_Unsqueeze || n->op == PO_OP_Flatten || n->op == PO_OP_Identity;
}

/* Whether a node is one that the enumeration may have. */
static bool is_known(const po_node *n) {
    return is_product(n) || moves(n) || n->op == PO_OP_Add || n->op == PO_OP_Concat ||
           n->op == PO_OP_Split || n->op == PO_OP_AveragePool;
}

typedef struct choosing {
    po_arena *arena;
    const po_graph *g;
    const po_node_id *order;
    uint32_t n_order, n;
    en_region *regions;
    bool *inside; /* of the region under way */
} choosing;

/* Whether a path leaves the region and comes back: a value made outside of what it makes is read
 * inside. */
static bool convex(const choosing *c) {
    bool *after = PO_NEW_N(c->arena, bool, c->g->n_nodes);
    for (uint32_t i = 0; i < c->n_order; i++) {
        const po_node *n = &c->g->nodes[c->order[i]];
        bool inside = c->inside[c->order[i]];
        for (uint32_t k = 0; k < n->n_in; k++) {
            po_node_id from = n->in[k] == PO_NONE ? PO_NONE : c->g->values[n->in[k]].producer;
            if (from == PO_NONE)
                continue;
            if (inside && after[from])
                return false;
            if (!inside && (after[from] || c->inside[from]))
                after[c->order[i]] = true;
        }
    }
    return true;
}

/* Keeps the region under way and starts a new one. */
static void keep(choosing *c) {
    uint32_t nodes = 0, products = 0;
    size_t size = c->g->n_nodes * sizeof *c->inside;
    for (po_node_id i = 0; i < c->g->n_nodes; i++)
        if (c->inside[i]) {
            nodes++;
            products += is_product(&c->g->nodes[i]);
        }
    bool good = nodes && nodes <= EN_OPS && products <= EN_MOST_PRODUCTS &&
                c->n < EN_MOST_REGIONS && convex(c);
    for (uint32_t i = 0; i < c->n && good; i++)
        good = memcmp(c->regions[i].inside, c->inside, size) != 0;
    if (good)
        c->regions[c->n++] = (en_region){po_arena_memdup(c->arena, c->inside, size)};
    memset(c->inside, 0, size);
}

static po_node_id maker(const choosing *c, po_value_id v) {
    return v == PO_NONE ? PO_NONE : c->g->values[v].producer;
}

static bool product_at(const choosing *c, po_node_id id) {
    return id != PO_NONE && is_product(&c->g->nodes[id]);
}

/* Moves that lead to a node's operands and that nothing else reads. */
static void add_moves_before(choosing *c, po_node_id id) {
    const po_node *n = &c->g->nodes[id];
    for (uint32_t k = 0; k < n->n_in && k < 2; k++) {
        po_value_id v = n->in[k];
        po_node_id from = maker(c, v);
        while (from != PO_NONE && moves(&c->g->nodes[from]) && po_graph_sole_use(c->g, v)) {
            c->inside[from] = true;
            v = c->g->nodes[from].in[0];
            from = maker(c, v);
        }
    }
}

static void add_moves_after(choosing *c, po_node_id id) {
    po_value_id v = c->g->nodes[id].out[0];
    for (const po_use *u; (u = po_graph_sole_use(c->g, v)) != NULL;) {
        if (u->input != 0 || !moves(&c->g->nodes[u->node]))
            return;
        c->inside[u->node] = true;
        v = c->g->nodes[u->node].out[0];
    }
}

/* Products that read one tensor, four at a time. */
static void parallel(choosing *c, po_value_id v) {
    uint32_t n = 0;
    const po_value *value = &c->g->values[v];
    po_op_id op = PO_OP_OPAQUE;
    for (uint32_t i = 0; i < value->n_uses; i++) {
        const po_use *u = &value->uses[i];
        const po_node *node = &c->g->nodes[u->node];
        if (u->input != 0 || !is_product(node) || (op && node->op != op))
            continue;
        op = node->op;
        c->inside[u->node] = true;
        if (++n == EN_MOST_PRODUCTS)
            break;
    }
    if (n > 1)
        keep(c);
    else
        memset(c->inside, 0, c->g->n_nodes * sizeof *c->inside);
}

/* Whether a sum can be inside: of what is made inside, or, where `residual`, of that and a tensor
 * of the same dims from elsewhere. */
static bool sum_fits(const choosing *c, const po_node *sum, bool residual) {
    uint32_t made = 0;
    for (uint32_t k = 0; k < sum->n_in; k++) {
        po_node_id from = maker(c, sum->in[k]);
        made += from != PO_NONE && c->inside[from];
    }
    return made == sum->n_in ||
           (residual && made > 0 && po_same_dims(c->g, sum->in[0], sum->in[1]));
}

/* All that is known, but sums with what is not; `residual`: with these, where they may stand
 * between products. */
static void all_known(choosing *c, bool residual) {
    const po_graph *g = c->g;
    uint32_t products = 0;
    for (uint32_t i = 0; i < c->n_order; i++) {
        const po_node *node = &g->nodes[c->order[i]];
        c->inside[c->order[i]] =
            is_known(node) && (node->op != PO_OP_Add || sum_fits(c, node, residual));
        products += is_product(node);
    }
    if (!residual || products > 1)
        keep(c);
    else
        memset(c->inside, 0, g->n_nodes * sizeof *c->inside);
}

static void together(choosing *c) {
    const po_graph *g = c->g;
    for (uint32_t i = 0; i < c->n_order; i++) {
        const po_node *node = &g->nodes[c->order[i]];
        for (uint32_t k = 0; k < node->n_in; k++)
            if (is_product(node) && node->in[k] != PO_NONE && g->values[node->in[k]].n_uses > 1)
                parallel(c, node->in[k]);
        if (node->op == PO_OP_Add && product_at(c, maker(c, node->in[0])) &&
            product_at(c, maker(c, node->in[1]))) {
            c->inside[c->order[i]] = c->inside[maker(c, node->in[0])] = true;
            c->inside[maker(c, node->in[1])] = true;
            keep(c);
        }
    }
}

/* Whether two products are of one size but for the channels that they make, so that they can be
 * groups of one, and neither reads the other. */
static bool alike(const choosing *c, po_node_id a, po_node_id b) {
    const po_graph *g = c->g;
    const po_node *x = &g->nodes[a], *y = &g->nodes[b];
    int made = po_conv_is(x) ? 1 : po_rank_of(g, x->out[0]) - 1;
    if (x->op != y->op || !po_same_dims(g, x->in[0], y->in[0]) ||
        !po_same_dims_but(g, x->in[1], y->in[1], po_conv_is(x) ? 0 : made) ||
        !po_same_dims_but(g, x->out[0], y->out[0], made))
        return false;
    for (uint32_t k = 0; k < 2; k++)
        if (maker(c, x->in[k]) == b || maker(c, y->in[k]) == a)
            return false;
    return true;
}

/* Equal products of different tensors, from one on. */
static void independent(choosing *c, uint32_t from) {
    uint32_t n = 1;
    po_node_id found[EN_MOST_PRODUCTS] = {c->order[from]};
    for (uint32_t i = from + 1; i < c->n_order && n < EN_MOST_PRODUCTS; i++) {
        bool fits = is_product(&c->g->nodes[c->order[i]]);
        for (uint32_t k = 0; fits && k < n; k++)
            fits = c->g->nodes[found[k]].in[0] != c->g->nodes[c->order[i]].in[0] &&
                   alike(c, found[k], c->order[i]);
        if (fits)
            found[n++] = c->order[i];
    }
    for (uint32_t k = 0; n > 1 && k < n; k++)
        c->inside[found[k]] = true;
    if (n > 1)
        keep(c);
}

static void single(choosing *c, po_node_id id) {
    const po_graph *g = c->g;
    add_moves_before(c, id);
    for (uint32_t k = 0; k < 2; k++) { /* a chain of two: what stands before the moves */
        po_value_id v = g->nodes[id].in[k];
        while (maker(c, v) != PO_NONE && moves(&g->nodes[maker(c, v)]) && po_graph_sole_use(g, v))
            v = g->nodes[maker(c, v)].in[0];
        if (product_at(c, maker(c, v)) && po_graph_sole_use(g, v))
            c->inside[maker(c, v)] = true;
    }
    c->inside[id] = true;
    keep(c);
    add_moves_before(c, id);
    add_moves_after(c, id);
    c->inside[id] = true;
    keep(c);
}

en_region *en_regions(po_arena *arena, const po_graph *g, bool alone, uint32_t *n) {
    choosing c = {.arena = arena, .g = g};
    *n = 0;
    if (g->n_nodes > EN_MOST_NODES)
        return NULL;
    c.order = po_graph_order(g, arena, &c.n_order);
    c.regions = PO_NEW_N(arena, en_region, EN_MOST_REGIONS);
    c.inside = PO_NEW_N(arena, bool, g->n_nodes + 1);
    for (uint32_t residual = 0; residual < 2 && !alone; residual++)
        all_known(&c, residual);
    together(&c);
    for (uint32_t i = 0; i < c.n_order; i++)
        if (is_product(&g->nodes[c.order[i]]))
            independent(&c, i);
    for (uint32_t i = 0; i < c.n_order; i++) {
        po_node_id id = c.order[i];
        bool pool = g->nodes[id].op == PO_OP_AveragePool;
        if (!is_product(&g->nodes[id]) && !pool)
            continue;
        if (!alone && !pool)
            single(&c, id);
        c.inside[id] = true;
        keep(&c);
    }
    *n = c.n;
    return c.regions;
}
