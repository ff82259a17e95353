/* Chains of moves (reshapes, transposes, pads, slices, DepthToSpace ...) in the canonical form of
 * R/T, where that takes fewer nodes or moves less data, and never more of either. A chain that
 * loses nothing is pulled through the element-wise nodes before it where it cancels moves that they
 * read: Transpose, Relu, inverse Transpose. That is what removes the pairs at the seams between
 * mutated subprograms. Static shapes only; simplify composes some chains of open ones. */
#include "ops/move/rt.h"
#include "rewrite/passes.h"

enum { MOST_REGION = 48, MOST_LEAVES = 64, MOST_NODES = 20000 };

/* The moves that end in a value. */
typedef struct chain {
    po_value_id root, end;
    const po_rt *rt;
    uint32_t length, nodes; /* nodes: those that go if nothing reads `end` any more */
    double traffic;
} chain;

/* Element-wise nodes that only one another and one chain behind them read. */
typedef struct region {
    po_node_id node[MOST_REGION];
    uint32_t n;
    po_value_id leaf[MOST_LEAVES], made[MOST_LEAVES]; /* what they read of other nodes; pulled */
    chain chains[MOST_LEAVES];
    uint32_t n_leaves;
} region;

typedef struct canceller {
    po_ctx *ctx;
    po_graph *graph;
    po_arena *arena; /* for one chain */
} canceller;

static double elements(const po_graph *g, po_value_id v) {
    int64_t n = v == PO_NONE ? 0 : po_type_count(&g->values[v].type);
    return n > 0 ? (double)n : 0;
}

/* As po_rt_traffic counts them. */
static double traffic_of(const po_graph *g, const po_node *n, po_value_id out) {
    if (po_op_has(n->op, PO_OPF_SHAPE_ONLY))
        return 0;
    return elements(g, n->op == PO_OP_Pad ? n->in[0] : out) + elements(g, out);
}

static bool in_region(const region *r, po_node_id id) {
    for (uint32_t i = 0; r && i < r->n; i++)
        if (r->node[i] == id)
            return true;
    return false;
}

/* Nothing outside the region reads the value. `chain_node` may. */
static bool read_within(const po_graph *g, po_value_id v, const region *r, po_node_id chain_node) {
    const po_value *value = &g->values[v];
    if (value->n_outputs)
        return false;
    for (uint32_t i = 0; i < value->n_uses; i++)
        if (value->uses[i].node != chain_node && !in_region(r, value->uses[i].node))
            return false;
    return true;
}

/* The chain that makes `end`, and what of it goes with its readers in the region (PO_NONE: with its
 * only reader, that is looked at). */
static po_status read_chain(canceller *c, po_value_id end, const region *r, bool goes, chain *out) {
    const po_graph *g = c->graph;
    *out = (chain){.end = end, .root = end};
    PO_TRY(po_rt_of_chain(c->ctx, c->arena, g, end, &out->root, &out->rt));
    po_value_id v = end;
    for (po_node_id reader = PO_NONE; v != out->root && out->rt; v = g->nodes[reader].in[0]) {
        po_node_id id = g->values[v].producer;
        goes = goes && (v == end ? r == NULL || read_within(g, v, r, PO_NONE)
                                 : read_within(g, v, r, reader));
        for (uint32_t i = 0; goes && i < g->nodes[id].n_out; i++) {
            po_value_id other = g->nodes[id].out[i];
            goes = other == v || other == PO_NONE ||
                   (!g->values[other].n_uses && !g->values[other].n_outputs);
        }
        out->length++;
        out->nodes += goes;
        out->traffic += goes ? traffic_of(g, &g->nodes[id], v) : 0;
        reader = id;
    }
    return PO_OK;
}

/* Fewer nodes or less data, and not more of the other. */
static bool better(double nodes, double traffic, double old_nodes, double old_traffic) {
    return nodes <= old_nodes && traffic <= old_traffic &&
           (nodes < old_nodes || traffic < old_traffic);
}

static po_status shorten(canceller *c, const chain *end, bool *changed) {
    uint32_t nodes = po_rt_nodes(c->arena, end->rt);
    po_graph *g = c->graph;
    /* The identity may still need a node: an output cannot be another output, nor an input. */
    const po_value *root = &g->values[end->root];
    bool kept = nodes == 0 && g->values[end->end].n_outputs &&
                (root->is_input || root->is_initializer || root->n_outputs ||
                 root->outer != PO_NONE || root->producer == PO_NONE);
    if (nodes == PO_NONE ||
        !better(nodes + kept, po_rt_traffic(c->arena, end->rt), end->nodes, end->traffic))
        return PO_OK;
    po_node_id place = g->values[end->end].producer;
    po_value_id y = po_rt_emit(g, place, end->root, end->rt);
    if (y == PO_NONE)
        return PO_OK;
    po_substitute(g, end->end, y);
    *changed = true;
    return PO_OK;
}

/* --- through element-wise nodes --- */

static bool scalar(const po_graph *g, po_value_id v) {
    return v == PO_NONE || po_type_count(&g->values[v].type) == 1;
}

static bool same_shape(const po_graph *g, po_value_id v, const po_rt *rt) {
    uint32_t rank;
    const po_dim *d = po_static_dims(g, v, &rank);
    if (!d || rank != rt->in_rank)
        return false;
    for (uint32_t i = 0; i < rank; i++)
        if (d[i].value != rt->in_dims[i])
            return false;
    return true;
}

static bool takes(const po_graph *g, po_node_id id, const po_rt *rt) {
    const po_node *n = &g->nodes[id];
    if (!po_op_has(n->op, PO_OPF_ELEMENTWISE) || n->n_out != 1 || scalar(g, n->out[0]) ||
        !same_shape(g, n->out[0], rt))
        return false;
    for (uint32_t i = 0; i < n->n_in; i++)
        if (scalar(g, n->in[i])) {
            /* A number of more axes than the result would give it some. */
            if (po_rank_of(g, n->in[i]) > (int)rt->out_rank)
                return false;
        } else if (!same_shape(g, n->in[i], rt)) {
            return false;
        }
    return true;
}

/* The nodes before `root` that only the region and the chain read. */
static void collect(const po_graph *g, po_value_id root, po_node_id chain_node, const po_rt *rt,
                    region *r) {
    po_node_id first = g->values[root].producer;
    r->n = r->n_leaves = 0;
    if (first == PO_NONE || !takes(g, first, rt) || !read_within(g, root, NULL, chain_node))
        return;
    r->node[r->n++] = first;
    for (bool grown = true; grown;) {
        grown = false;
        for (uint32_t i = 0; i < r->n; i++) {
            const po_node *n = &g->nodes[r->node[i]];
            for (uint32_t k = 0; k < n->n_in && r->n < MOST_REGION; k++) {
                if (scalar(g, n->in[k]))
                    continue;
                po_node_id id = g->values[n->in[k]].producer;
                if (id == PO_NONE || in_region(r, id) || !takes(g, id, rt) ||
                    !read_within(g, n->in[k], r, PO_NONE))
                    continue;
                r->node[r->n++] = id;
                grown = true;
            }
        }
    }
}

static bool find_leaves(const po_graph *g, region *r) {
    for (uint32_t i = 0; i < r->n; i++) {
        const po_node *n = &g->nodes[r->node[i]];
        for (uint32_t k = 0; k < n->n_in; k++) {
            po_value_id v = n->in[k];
            bool known = scalar(g, v) ||
                         (g->values[v].producer != PO_NONE && in_region(r, g->values[v].producer));
            for (uint32_t j = 0; j < r->n_leaves && !known; j++)
                known = r->leaf[j] == v;
            if (known)
                continue;
            if (r->n_leaves == MOST_LEAVES)
                return false;
            r->leaf[r->n_leaves++] = v;
        }
    }
    return true;
}

static po_value_id pulled(const region *r, const po_value_id *made, const po_graph *g,
                          po_value_id v) {
    if (scalar(g, v))
        return v;
    for (uint32_t j = 0; j < r->n_leaves; j++)
        if (r->leaf[j] == v)
            return r->made[j];
    return made[v];
}

/* Copies of the region's nodes on the pulled leaves; the last comes first. */
static po_value_id copy_region(canceller *c, const region *r, const po_rt *rt) {
    po_graph *g = c->graph;
    uint32_t n_values = g->n_values;
    po_value_id *made = PO_NEW_N(c->arena, po_value_id, n_values);
    memset(made, 0xff, n_values * sizeof *made); /* PO_NONE */
    po_value_id y = PO_NONE;
    for (uint32_t left = r->n; left;) {
        uint32_t before = left;
        for (uint32_t i = r->n; i-- > 0;) {
            po_node n = g->nodes[r->node[i]];
            bool ready = made[n.out[0]] == PO_NONE;
            po_value_id *in = PO_NEW_N(c->arena, po_value_id, n.n_in);
            for (uint32_t k = 0; ready && k < n.n_in; k++) {
                in[k] = pulled(r, made, g, n.in[k]);
                ready = n.in[k] == PO_NONE || in[k] != PO_NONE;
            }
            if (!ready)
                continue;
            po_type type = po_type_tensor_i64(g->arena, g->values[n.out[0]].type.dtype,
                                              rt->out_rank, rt->out_dims);
            y = po_graph_add_value(g, NULL, &type);
            made[n.out[0]] = y;
            po_ops_add(g, r->node[i],
                       &(po_node_spec){.op = n.op,
                                       .name = g->values[y].name,
                                       .n_in = n.n_in,
                                       .in = in,
                                       .n_out = 1,
                                       .out = &y,
                                       .n_attr = n.n_attr,
                                       .attr = n.attr});
            left--;
        }
        if (left == before)
            return PO_NONE;
    }
    return made[g->nodes[r->node[0]].out[0]];
}

static po_status pull(canceller *c, const chain *end, bool *changed) {
    po_graph *g = c->graph;
    region *r = PO_NEW(c->arena, region);
    po_node_id chain_node = PO_NONE;
    /* The first of the chain's moves: the only one that may read what the region makes. */
    for (po_value_id v = end->end; v != end->root; v = g->nodes[chain_node].in[0])
        chain_node = g->values[v].producer;
    if (!po_rt_is_bijection(end->rt) || end->nodes != end->length)
        return PO_OK; /* or what the region makes is needed as it was */
    collect(g, end->root, chain_node, end->rt, r);
    if (!r->n || !find_leaves(g, r))
        return PO_OK;
    double nodes = 0, traffic = 0, old_nodes = end->nodes, old_traffic = end->traffic;
    for (uint32_t j = 0; j < r->n_leaves; j++) {
        chain *leaf = &r->chains[j];
        if (po_graph_constant(g, r->leaf[j]))
            return PO_OK; /* weights stay as they are */
        PO_TRY(read_chain(c, r->leaf[j], r, true, leaf));
        leaf->rt = leaf->rt ? po_rt_compose(c->arena, leaf->rt, end->rt) : NULL;
        uint32_t n = leaf->rt ? po_rt_nodes(c->arena, leaf->rt) : PO_NONE;
        if (n == PO_NONE)
            return PO_OK;
        nodes += n;
        traffic += po_rt_traffic(c->arena, leaf->rt);
        old_nodes += leaf->nodes;
        old_traffic += leaf->traffic;
    }
    if (!better(nodes, traffic, old_nodes, old_traffic))
        return PO_OK;
    for (uint32_t j = 0; j < r->n_leaves; j++) {
        r->made[j] = po_rt_emit(g, r->node[0], r->chains[j].root, r->chains[j].rt);
        if (r->made[j] == PO_NONE)
            return PO_OK;
    }
    po_value_id y = copy_region(c, r, end->rt);
    if (y == PO_NONE)
        return PO_OK;
    po_substitute(g, end->end, y);
    *changed = true;
    return PO_OK;
}

po_status po_cancel_moves(po_ctx *ctx, po_graph *graph, po_rewriting *state) {
    uint32_t n;
    const po_node_id *order = po_graph_order(graph, state->scratch, &n);
    if (n > MOST_NODES)
        return PO_OK;
    for (uint32_t k = n; k-- > 0;) {
        const po_node *node = &graph->nodes[order[k]];
        bool changed = false;
        if (node->removed || !po_op_has(node->op, PO_OPF_MOVES_DATA) || !node->n_in ||
            node->out[0] == PO_NONE || node->n_out != 1 ||
            (!graph->values[node->out[0]].n_uses && !graph->values[node->out[0]].n_outputs))
            continue;
        canceller c = {ctx, graph, po_arena_child(state->scratch)};
        chain end;
        PO_TRY(read_chain(&c, node->out[0], NULL, true, &end));
        if (end.rt && end.root != end.end && graph->values[end.root].type.dtype != PO_STR) {
            PO_TRY(shorten(&c, &end, &changed));
            if (!po_law_fired(state, PO_LAW_SHORTEN_MOVES, changed)) {
                PO_TRY(pull(&c, &end, &changed));
                po_law_fired(state, PO_LAW_PULL_MOVES, changed);
            }
        }
        po_arena_free(c.arena);
    }
    return PO_OK;
}
