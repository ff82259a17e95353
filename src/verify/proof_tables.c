/* Tables that drawn integers pick rows of. A trial sees the rows that are picked; the others must
 * be seen to agree in another way: then the table counts as a whole. */
#include "verify/proof_private.h"

/* True where every row is picked at some place. */
static bool picks_all(const po_pnode *n) {
    const po_ptensor *table = n->in[0], *index = n->in[1];
    int64_t axis = po_node_int(n->node, "axis", 0);
    axis += axis < 0 ? table->rank : 0;
    if (n->node->op != PO_OP_Gather || !index->known || !index->known->i || axis < 0 ||
        axis >= table->rank || table->dims[axis] > index->count)
        return false;
    int64_t rows = table->dims[axis], picked = 0;
    bool *seen = PO_NEW_N(n->arena, bool, rows);
    for (int64_t i = 0; i < index->count; i++) {
        int64_t at = index->known->i[i];
        at += at < 0 ? rows : 0;
        if (at >= 0 && at < rows && !seen[at]) {
            seen[at] = true;
            picked++;
        }
    }
    return picked == rows;
}

/* --- every place counts --- */

static bool has_zero(const po_tensor *t) {
    if (po_dtype_class_of(t->dtype) != PO_CLASS_FLOAT)
        return true;
    for (int64_t i = 0; i < t->count; i++)
        if (po_tensor_f64(t, i) == 0)
            return true;
    return false;
}

static bool all_ones(const po_node *node, const char *name) {
    uint32_t n;
    const int64_t *v = po_node_ints(node, name, &n);
    for (uint32_t i = 0; v && i < n; i++)
        if (v[i] != 1)
            return false;
    return true;
}

/* Operators whose outputs depend on every element of the input, whatever the place. */
static bool keeps_all(const po_graph *g, const po_node *n) {
    static const po_op_id whole[] = {
        PO_OP_Transpose,  PO_OP_Concat,        PO_OP_ReduceMean,        PO_OP_ReduceSum,
        PO_OP_ReduceMax,  PO_OP_GlobalMaxPool, PO_OP_GlobalAveragePool, PO_OP_Softmax,
        PO_OP_LogSoftmax, PO_OP_MatMul,        PO_OP_LayerNormalization};
    /* A factor of zero hides what it multiplies. */
    bool product = n->op == PO_OP_Mul || n->op == PO_OP_MatMul || n->op == PO_OP_Gemm ||
                   n->op == PO_OP_Conv || n->op == PO_OP_LayerNormalization;
    for (uint32_t k = 0; product && k < n->n_in; k++) {
        const po_tensor *t = n->in[k] == PO_NONE ? NULL : po_graph_constant(g, n->in[k]);
        bool bias = k == 2;
        if (t && !bias && has_zero(t))
            return false;
    }
    if (n->op == PO_OP_Conv)
        return all_ones(n, "strides");
    if (n->op == PO_OP_Where || n->op == PO_OP_Dropout)
        return false;
    for (size_t i = 0; i < sizeof whole / sizeof whole[0]; i++)
        if (n->op == whole[i])
            return true;
    return n->op == PO_OP_Gemm || po_op_has(n->op, PO_OPF_ELEMENTWISE | PO_OPF_SHAPE_ONLY);
}

/* True where all of the value shows in the graph's outputs. */
static bool all_shows(const po_graph *g, po_value_id value, po_arena *arena) {
    bool *seen = PO_NEW_N(arena, bool, g->n_values), shows = false;
    po_value_id *todo = PO_NEW_N(arena, po_value_id, g->n_values);
    uint32_t n = 0;
    todo[n++] = value;
    seen[value] = true;
    while (n) {
        const po_value *v = &g->values[todo[--n]];
        shows |= v->n_outputs > 0;
        for (uint32_t u = 0; u < v->n_uses; u++) {
            const po_node *node = &g->nodes[v->uses[u].node];
            if (v->uses[u].input == PO_USE_CAPTURE || !keeps_all(g, node))
                return false;
            for (uint32_t k = 0; k < node->n_out; k++)
                if (node->out[k] != PO_NONE && !seen[node->out[k]]) {
                    seen[node->out[k]] = true;
                    todo[n++] = node->out[k];
                }
        }
    }
    return shows;
}

void po_pn_note_table(po_pnode *n) {
    po_prun *run = n->run;
    po_op_id op = n->node->op;
    bool picks = op == PO_OP_Gather || op == PO_OP_GatherElements || op == PO_OP_GatherND;
    if (!picks || !po_pn_in(n, 1) || !n->in[1]->drawn || !n->in[0]->constant ||
        (!n->graph->parent && picks_all(n) && all_shows(n->graph, n->node->out[0], n->arena)))
        return;
    po_hash print = po_pt_print(n->in[0]);
    if (po_hash_map_put(run->tables, print, 1) != PO_NONE)
        return;
    run->table_sum.lo += po_mix(print.lo);
    run->table_sum.hi += po_mix(print.hi);
}
