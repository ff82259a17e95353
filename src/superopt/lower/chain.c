/* Element-wise nodes behind what they read: in one statement, so that nothing in between goes to
 * memory. */
#include "superopt/lower/internal.h"

/* Whether a value can be read where the region has come to. */
static bool is_ready(const po_lowering *l, po_value_id v) {
    if (v == PO_NONE || po_graph_constant(l->graph, v))
        return true;
    po_node_id from = l->graph->values[v].producer;
    return from == PO_NONE || l->place[from] == PO_NONE || l->done[from];
}

static bool among(const po_node_id *nodes, uint32_t n, po_node_id id) {
    for (uint32_t i = 0; i < n; i++)
        if (nodes[i] == id)
            return true;
    return false;
}

static bool same_dims(const po_lowering *l, po_value_id a, po_value_id b) {
    uint32_t rank_a, rank_b;
    const po_dim *x = po_lower_dims(l, a, &rank_a), *y = po_lower_dims(l, b, &rank_b);
    if (rank_a != rank_b)
        return false;
    for (uint32_t i = 0; i < rank_a; i++)
        if (x[i].value != y[i].value)
            return false;
    return true;
}

/* What the value is made from must be among the nodes or `first`; what is not scalar and comes from
 * elsewhere is an operand. */
static bool can_follow(po_lowering *l, const po_node *node, po_node_id first, po_value_id v,
                       const po_node_id *nodes, uint32_t n, uint32_t *operands) {
    bool reads = false;
    if (!po_lower_is_map(l->graph, node) || node->n_out != 1 || !same_dims(l, node->out[0], v))
        return false;
    for (uint32_t k = 0; k < node->n_in; k++) {
        po_value_id in = node->in[k];
        if (in == PO_NONE)
            continue;
        const po_tensor *t = po_graph_constant(l->graph, in);
        po_node_id from = t ? PO_NONE : l->graph->values[in].producer;
        if (in == v || (from != PO_NONE && (from == first || among(nodes, n, from))))
            reads = true;
        else if (!is_ready(l, in))
            return false;
        else if (!t || t->count > 1)
            (*operands)++;
    }
    return reads;
}

static bool seen_only_by(const po_lowering *l, po_value_id v, const bool *in,
                         const po_node_id *nodes, uint32_t n) {
    const po_value *value = &l->graph->values[v];
    if (value->n_outputs > 0)
        return false;
    for (uint32_t u = 0; u < value->n_uses; u++) {
        bool found = false;
        if (value->uses[u].input == PO_USE_CAPTURE)
            return false;
        for (uint32_t i = 0; i < n && !found; i++)
            found = in[i] && nodes[i] == value->uses[u].node;
        if (!found)
            return false;
    }
    return true;
}

/* Keeps what the last node is made from. True where nothing of it is seen elsewhere. */
static bool close(const po_lowering *l, po_node_id first, po_value_id v, const po_node_id *nodes,
                  uint32_t n, bool *in) {
    if (po_lower_is_test(l->graph, &l->graph->nodes[nodes[n - 1]]))
        return false;
    memset(in, 0, PO_LOWER_CHAIN * sizeof *in);
    in[n - 1] = true;
    bool reads_first = false;
    for (uint32_t i = n; i-- > 0;) {
        const po_node *node = &l->graph->nodes[nodes[i]];
        for (uint32_t k = 0; k < node->n_in && in[i]; k++) {
            po_node_id from =
                node->in[k] == PO_NONE ? PO_NONE : l->graph->values[node->in[k]].producer;
            reads_first |= node->in[k] == v;
            for (uint32_t j = 0; j < i; j++)
                in[j] |= from != PO_NONE && nodes[j] == from;
        }
    }
    if (first != PO_NONE && (!reads_first || !seen_only_by(l, v, in, nodes, n)))
        return false;
    for (uint32_t i = 0; i + 1 < n; i++)
        if (in[i] && !seen_only_by(l, l->graph->nodes[nodes[i]].out[0], in, nodes, n))
            return false;
    return true;
}

enum { MOST_OPERANDS = PO_MU_MAX_INPUTS - 3, LOOK_AHEAD = 64 };

uint32_t po_lower_follow(po_lowering *l, po_node_id first, po_value_id v,
                         po_node_id nodes[PO_LOWER_CHAIN]) {
    po_node_id found[PO_LOWER_CHAIN];
    uint32_t n = 0, operands = 0;
    bool in[PO_LOWER_CHAIN];
    for (uint32_t i = l->place[first] + 1;
         i < l->region->n_nodes && i < l->place[first] + LOOK_AHEAD && n < PO_LOWER_CHAIN; i++) {
        uint32_t more = operands;
        if (l->done[l->region->nodes[i]] ||
            !can_follow(l, &l->graph->nodes[l->region->nodes[i]], first, v, found, n, &more) ||
            more > MOST_OPERANDS)
            continue;
        operands = more;
        found[n++] = l->region->nodes[i];
    }
    for (; n > 0; n--)
        if (close(l, first, v, found, n, in)) {
            uint32_t kept = 0;
            for (uint32_t i = 0; i < n; i++)
                if (in[i])
                    nodes[kept++] = found[i];
            return kept;
        }
    return 0;
}

/* --- the end of a step --- */

po_status po_lower_finish(po_lowering *l, const po_lower_end *end) {
    po_node_id nodes[PO_LOWER_CHAIN];
    uint32_t n = end->n_follow, rank;
    if (end->follow)
        memcpy(nodes, end->follow, n * sizeof *nodes);
    else
        n = po_lower_follow(l, end->node, end->value, nodes);
    const po_dim *dims = po_lower_dims(l, end->value, &rank);
    po_value_id last = n ? l->graph->nodes[nodes[n - 1]].out[0] : end->value;
    const po_view *to = po_lower_storage(l, last);
    if (!to)
        return PO_UNSUPPORTED;
    po_mu_access out = po_lower_access(l, to, end->at);
    if (!n && end->scale == 1 && !end->extra) {
        l->mu->nodes[end->statement].statement.out = out;
        return PO_OK;
    }
    int64_t shape[PO_MU_MAX_RANK];
    const po_mu_tensor *like = &l->mu->tensors[to->tensor];
    uint32_t like_rank = like->rank;
    memcpy(shape, like->dims, sizeof shape);
    uint32_t p = po_mu_add_tensor(l->mu, "p", PO_MU_REGISTER, like_rank, shape);
    l->mu->tensors[p].scope = PO_NONE;
    po_mu_access middle = po_mu_access_of(l->mu, p);
    for (uint32_t i = 0; i < like_rank; i++) {
        po_mu_at(l->mu, &middle, i, out.axes[i].offset, PO_NONE);
        for (uint32_t k = 0; k < out.axes[i].n; k++)
            po_mu_at(l->mu, &middle, i, out.axes[i].terms[k].coef, out.axes[i].terms[k].label);
    }
    l->mu->nodes[end->statement].statement.out = middle;
    uint32_t fused = po_mu_add_statement(l->mu, end->step, PO_MU_SET);
    l->mu->nodes[fused].statement.out = out;
    l->mu->nodes[fused].statement.fused = true;
    uint32_t item =
        po_mu_item_of(l->mu, fused, PO_MU_OPERAND, po_mu_operand(l->mu, fused, middle), 0, 0);
    if (end->scale != 1)
        item = po_mu_item_of(l->mu, fused, PO_MU_TIMES, item,
                             po_mu_constant(l->mu, fused, end->scale), 0);
    if (end->extra)
        item = end->extra(l, fused, item, end->user);
    po_lower_chain chain = {.statement = fused,
                            .start = end->value,
                            .start_item = item,
                            .nodes = nodes,
                            .n_nodes = n,
                            .rank = rank,
                            .dims = dims,
                            .at = end->at};
    if (item == PO_NONE || po_lower_value(l, &chain, last) == PO_NONE)
        return PO_UNSUPPORTED;
    for (uint32_t i = 0; i < n; i++)
        l->done[nodes[i]] = true;
    return PO_OK;
}

po_status po_lower_map(po_lowering *l, const po_node *node) {
    po_node_id nodes[PO_LOWER_CHAIN + 1] = {(po_node_id)(node - l->graph->nodes)};
    uint32_t n = 1 + po_lower_follow(l, nodes[0], node->out[0], nodes + 1), rank;
    po_value_id last = l->graph->nodes[nodes[n - 1]].out[0];
    const po_dim *dims = po_lower_dims(l, last, &rank);
    const po_view *to = po_lower_storage(l, last);
    if (!to)
        return PO_UNSUPPORTED;
    po_lower_index at[PO_MU_MAX_RANK];
    po_lower_labels(l, last, at);
    uint32_t step = po_mu_add_step(
        l->mu, po_arena_printf(l->arena, "%s %s", node->op_type, l->graph->values[last].name));
    uint32_t s = po_mu_add_statement(l->mu, step, PO_MU_SET);
    l->mu->nodes[s].statement.out = po_lower_access(l, to, at);
    po_lower_chain chain = {.statement = s,
                            .start = PO_NONE,
                            .nodes = nodes,
                            .n_nodes = n,
                            .rank = rank,
                            .dims = dims,
                            .at = at};
    if (po_lower_value(l, &chain, last) == PO_NONE)
        return PO_UNSUPPORTED;
    for (uint32_t i = 0; i < n; i++)
        l->done[nodes[i]] = true;
    return PO_OK;
}
