/* Constant folding: by the float64 reference, rounded to the model's own types, and by what shape
 * inference knows. Pairs of quantisation operators stay, random and stateful nodes too. */
#include "rewrite/passes.h"

#include "base/num.h"
#include "ir/size.h"
#include "ops/recipe/recipe.h"

/* Reference work is bounded: a graph that would compute for minutes on constants is left to the
 * runtime, which does it once at load. */
enum { MOST_ELEMENTS = 1 << 26 };

static bool may_fold(const po_graph *graph, const po_node *node) {
    const po_op_row *row = po_op_row_of(node->op);
    if (!row || !row->ref || node->n_in == 0 ||
        (row->flags & (PO_OPF_RANDOM | PO_OPF_CONTROL | PO_OPF_QUANTIZE)))
        return false;
    for (uint32_t i = 0; i < node->n_in; i++)
        if (node->in[i] != PO_NONE && !po_graph_constant(graph, node->in[i]))
            return false;
    for (uint32_t i = 0; i < node->n_out; i++)
        if (node->out[i] != PO_NONE && graph->values[node->out[i]].n_outputs)
            return false;
    return true;
}

/* Sum of the inputs' bytes plus what the options allow. */
static size_t size_limit(const po_graph *graph, const po_node *node, size_t growth) {
    size_t limit = growth;
    for (uint32_t i = 0; i < node->n_in; i++)
        if (node->in[i] != PO_NONE)
            limit += po_graph_constant(graph, node->in[i])->size;
    return limit;
}

static bool outputs_fit(const po_graph *graph, const po_node *node, size_t limit) {
    for (uint32_t i = 0; i < node->n_out; i++) {
        if (node->out[i] == PO_NONE)
            continue;
        const po_type *t = &graph->values[node->out[i]].type;
        int64_t count = po_type_count(t);
        size_t bytes;
        if (t->kind != PO_TYPE_TENSOR)
            return false;
        /* An unknown shape is computed and judged afterwards; the reference has its own limits. */
        if (count > MOST_ELEMENTS ||
            (count >= 0 && po_dtype_bytes(t->dtype, count, &bytes) && bytes > limit))
            return false;
    }
    return true;
}

/* Shape arithmetic needs none: its numbers are looked at as they are. */
static bool wants_recipe(const po_tensor *t) {
    enum { SMALL = 64 };
    po_dtype_class class = po_dtype_class_of(t->dtype);
    return class == PO_CLASS_FLOAT || (class != PO_CLASS_NONE && t->count > SMALL);
}

/* An output as a constant of the graph. What only gives an input another shape, or another name,
 * takes over its bytes: shared weights would be copied for each of their uses. */
static po_status keep_output(po_ctx *ctx, po_graph *graph, po_arena *scratch, const po_node *node,
                             const po_array *array, po_tensor **kept) {
    po_tensor *t;
    if (array->dtype == PO_STR)
        return po_array_to_tensor(ctx, graph->arena, array, kept);
    PO_TRY(po_array_to_tensor(ctx, scratch, array, &t));
    for (uint32_t i = 0; i < node->n_in; i++) {
        const po_tensor *in = node->in[i] == PO_NONE ? NULL : po_graph_constant(graph, node->in[i]);
        if (in && in->dtype == t->dtype && in->count == t->count && t->count > 0 &&
            memcmp(in->data, t->data, t->size) == 0)
            return po_tensor_wrap(ctx, graph->arena, t->dtype, t->rank, t->dims, in->data, kept);
    }
    PO_TRY(po_tensor_create(ctx, graph->arena, t->dtype, t->rank, t->dims, kept));
    if (t->size > 0)
        memcpy(po_tensor_data(*kept), t->data, t->size);
    return PO_OK;
}

/* Evaluates and stores; *folded tells whether. A node that the reference refuses, or that fails on
 * these values, stays as it is: the runtime may know better. */
static po_status fold_node(po_ctx *ctx, po_graph *graph, po_node_id id, po_rewriting *state,
                           bool *folded) {
    const po_node *node = &graph->nodes[id];
    size_t limit = size_limit(graph, node, state->growth);
    *folded = false;
    if (!outputs_fit(graph, node, limit))
        return PO_OK;
    po_arena *scratch = po_arena_create(ctx);
    po_array **out = PO_NEW_N(scratch, po_array *, node->n_out);
    po_status status = po_ref_constants(ctx, scratch, graph, node, out);
    for (uint32_t i = 0; status == PO_OK && i < node->n_out; i++) {
        size_t bytes;
        if (node->out[i] != PO_NONE && !out[i])
            status = PO_UNSUPPORTED;
        else if (out[i] && po_dtype_bytes(out[i]->dtype, out[i]->count, &bytes) && bytes > limit)
            status = PO_UNSUPPORTED;
    }
    if (status != PO_OK) {
        po_arena_free(scratch);
        if (status == PO_CANCELLED || status == PO_TIME_LIMIT)
            return status;
        po_ctx_clear(ctx);
        return PO_OK;
    }
    uint32_t n_out = node->n_out;
    const po_value_id *values = po_arena_memdup(scratch, node->out, n_out * sizeof *values);
    po_tensor **tensors = PO_NEW_N(scratch, po_tensor *, n_out);
    const po_recipe **recipes = PO_NEW_N(scratch, const po_recipe *, n_out);
    for (uint32_t i = 0; i < n_out; i++) {
        if (values[i] == PO_NONE)
            continue;
        PO_TRY(keep_output(ctx, graph, scratch, node, out[i], &tensors[i]));
        if (wants_recipe(tensors[i]))
            recipes[i] = po_recipe_of_node(graph, scratch, node, i, tensors[i]);
    }
    /* The node goes with its last output. */
    for (uint32_t i = 0; i < n_out; i++)
        if (values[i] != PO_NONE && po_graph_make_constant(graph, values[i], tensors[i]) &&
            recipes[i])
            po_set_recipe(graph, values[i], recipes[i]);
    po_arena_free(scratch);
    *folded = true;
    return PO_OK;
}

/* A small integer value whose contents shape inference found whole, e.g. Shape of a static tensor
 * in the middle of the network. */
static po_status fold_known(po_ctx *ctx, po_graph *graph, po_value_id id, bool *folded) {
    const po_value *v = &graph->values[id];
    const po_partial *p = v->partial;
    *folded = false;
    if (!p || v->constant || v->n_outputs || v->producer == PO_NONE ||
        po_type_count(&v->type) != (int64_t)p->n || v->type.rank > 1 ||
        (v->type.dtype != PO_I64 && v->type.dtype != PO_I32))
        return PO_OK;
    int64_t dim = p->n, *items = PO_NEW_N(graph->arena, int64_t, p->n);
    for (uint32_t i = 0; i < p->n; i++)
        if (!po_size_number(p->items[i], &items[i]))
            return PO_OK;
    po_tensor *t;
    PO_TRY(po_tensor_create(ctx, graph->arena, v->type.dtype, v->type.rank, &dim, &t));
    for (uint32_t i = 0; i < p->n; i++)
        po_tensor_set_int(t, i, items[i]);
    *folded = po_graph_make_constant(graph, id, t);
    return PO_OK;
}

/* Constant nodes become initialisers, which are cheaper to load and to look at. */
static void adopt_constant(po_graph *graph, po_node_id id, po_rewriting *state) {
    po_value_id v = graph->nodes[id].out[0];
    if (v == PO_NONE || !graph->values[v].constant || graph->values[v].n_outputs)
        return;
    const po_recipe *recipe = graph->values[v].recipe;
    if (po_graph_make_constant(graph, v, graph->values[v].constant)) {
        graph->values[v].recipe = recipe;
        po_law_fired(state, PO_LAW_ADOPT_CONSTANT, true);
    }
}

po_status po_fold_constants(po_ctx *ctx, po_graph *graph, po_rewriting *state) {
    uint32_t n;
    const po_node_id *order = po_graph_order(graph, state->scratch, &n);
    for (uint32_t k = 0; k < n; k++) {
        po_node *node = &graph->nodes[order[k]];
        bool folded;
        if (node->removed)
            continue;
        if (node->op == PO_OP_Constant) {
            adopt_constant(graph, order[k], state);
            continue;
        }
        for (uint32_t i = 0; i < node->n_out && !node->removed; i++)
            if (node->out[i] != PO_NONE && !po_op_has(node->op, PO_OPF_RANDOM)) {
                PO_TRY(fold_known(ctx, graph, node->out[i], &folded));
                po_law_fired(state, PO_LAW_KNOWN_SHAPE, folded);
            }
        if (node->removed || !may_fold(graph, node))
            continue;
        PO_TRY(fold_node(ctx, graph, order[k], state, &folded));
        po_law_fired(state, PO_LAW_FOLD_NODE, folded);
    }
    return PO_OK;
}
