/* Shape inference over a graph: calls the rows' rules in execution order. */
#include "ir/size.h"
#include "ops/shape.h"

/* Results of rules are copied out of the scratch arena, which starts anew every so many nodes. */
enum { NODES_PER_SCRATCH = 2048 };

/* Dims whose expressions, which rules make in the scratch arena, are the arena's. */
static const po_dim *copy_dims(po_arena *arena, uint32_t n, const po_dim *dims) {
    po_dim *copy = po_arena_memdup(arena, dims, n * sizeof *dims);
    for (uint32_t i = 0; i < n; i++)
        if (dims[i].value < 0 && dims[i].symbol)
            copy[i].symbol = po_arena_strdup(arena, dims[i].symbol);
    return copy;
}

/* Types point to dims and elements: a copy that owns them. */
static po_type copy_type(po_arena *arena, const po_type *type) {
    po_type copy = *type;
    if (type->has_rank)
        copy.dims = copy_dims(arena, type->rank, type->dims);
    if (type->element) {
        po_type element = copy_type(arena, type->element);
        copy.element = po_arena_memdup(arena, &element, sizeof element);
    }
    return copy;
}

/* Where two names stand for one length, the one found by inference says more than one that was
 * only declared: it comes from the inputs. Outputs of the graph keep their declared names. */
static void prefer_symbols(po_arena *arena, po_type *merged, const po_type *found) {
    if (!merged->has_rank || !found->has_rank)
        return;
    po_dim *dims = po_arena_memdup(arena, merged->dims, merged->rank * sizeof *dims);
    for (uint32_t i = 0; i < merged->rank; i++)
        if (dims[i].value < 0 && found->dims[i].symbol)
            dims[i] = found->dims[i];
    merged->dims = dims;
}

static bool merge_into(po_graph *graph, po_arena *scratch, po_value_id id, const po_type *found) {
    po_value *v = &graph->values[id];
    po_type merged = v->type;
    if (!po_type_merge(scratch, &merged, found))
        return false;
    if (v->n_outputs == 0 && merged.kind == PO_TYPE_TENSOR)
        prefer_symbols(scratch, &merged, found);
    if (!po_type_equal(&merged, &v->type))
        v->type = copy_type(graph->arena, &merged);
    return true;
}

void po_infer_merge(po_graph *graph, po_value_id value, const po_type *type) {
    po_arena *scratch = po_arena_child(graph->arena);
    merge_into(graph, scratch, value, type);
    po_arena_free(scratch);
}

/* Contents of small integer constants. */
static const po_partial *partial_of(po_graph *graph, po_value_id id, const po_tensor *t) {
    po_value *v = &graph->values[id];
    if (v->partial || !t || t->rank > 1 || t->count > PO_PARTIAL_MAX)
        return v->partial;
    po_dtype_class class = po_dtype_class_of(t->dtype);
    if (class == PO_CLASS_NONE || class == PO_CLASS_FLOAT)
        return NULL;
    po_partial *p = PO_NEW(graph->arena, po_partial);
    po_dim *items = PO_NEW_N(graph->arena, po_dim, t->count);
    p->n = (uint32_t)t->count;
    for (int64_t i = 0; i < t->count; i++)
        items[i] = po_size_item(graph->arena, po_tensor_int(t, i));
    p->items = items;
    v->partial = p;
    return p;
}

/* STRICT and LENIENT say what becomes of a rule that fails or contradicts a declaration. In SOUND
 * nothing is declared but what the graph is given, and a rule that fails in the root graph, where
 * every node runs, fails; a body may never run. */
typedef enum infer_how { STRICT, LENIENT, SOUND } infer_how;

/* Of SOUND: where it failed, and the graph as it declares its types. */
typedef struct judgement {
    const po_graph *declared;
    po_node_id failed;
} judgement;

static po_status infer_graph(po_ctx *ctx, po_graph *graph, infer_how how, judgement *j,
                             po_demands *demands);

/* Bodies of operators without a rule still get what can be known inside. */
static po_status infer_bodies(po_ctx *ctx, const po_node *node, infer_how how) {
    for (uint32_t k = 0; k < node->n_attr; k++) {
        const po_attr *a = &node->attr[k];
        if (a->kind == PO_ATTR_GRAPH && a->u.g)
            PO_TRY(infer_graph(ctx, a->u.g, how, NULL, NULL));
        else if (a->kind == PO_ATTR_GRAPHS)
            for (uint32_t b = 0; b < a->n; b++)
                PO_TRY(infer_graph(ctx, a->u.graphs[b], how, NULL, NULL));
    }
    return PO_OK;
}

/* Inference runs again after every change of the graph: what is known already is not copied. */
static void store_partial(po_graph *graph, po_value *value, const po_partial *p) {
    const po_partial *old = value->partial;
    if (p && p->n > PO_PARTIAL_MAX)
        p = NULL;
    bool same = old && p && old->n == p->n;
    for (uint32_t i = 0; same && i < p->n; i++)
        same = po_dim_same(old->items[i], p->items[i]) ||
               (old->items[i].value < 0 && p->items[i].value < 0 && !old->items[i].symbol &&
                !p->items[i].symbol);
    if (same)
        return;
    value->partial = NULL;
    if (!p)
        return;
    po_partial *copy = PO_NEW(graph->arena, po_partial);
    copy->n = p->n;
    copy->items = copy_dims(graph->arena, p->n, p->items);
    value->partial = copy;
}

static po_status store_results(po_infer *infer, po_graph *graph, bool lenient) {
    for (uint32_t k = 0; k < infer->n_out; k++) {
        po_value_id id = infer->node->out[k];
        if (id == PO_NONE)
            continue;
        if (!merge_into(graph, infer->arena, id, &infer->out[k]) && !lenient) {
            po_text text;
            po_text_init(&text, infer->arena);
            po_text_puts(&text, "declared ");
            po_type_print(&text, &graph->values[id].type);
            po_text_puts(&text, ", inferred ");
            po_type_print(&text, &infer->out[k]);
            return po_rule_bad(infer->ctx, infer->node, "output '%.200s' has two types: %s",
                               graph->values[id].name, text.data);
        }
        if (!graph->values[id].constant)
            store_partial(graph, &graph->values[id], infer->out_partial[k]);
    }
    return PO_OK;
}

static po_status infer_node(po_ctx *ctx, po_graph *graph, const po_node *node, po_arena *scratch,
                            infer_how how, po_demands *demands) {
    bool lenient = how == LENIENT || (how == SOUND && graph->parent);
    const po_op_row *row = po_op_row_of(node->op);
    if (!row || !row->infer)
        return infer_bodies(ctx, node, how);
    const po_type **in = PO_NEW_N(scratch, const po_type *, node->n_in);
    const po_tensor **constant = PO_NEW_N(scratch, const po_tensor *, node->n_in);
    const po_partial **partial = PO_NEW_N(scratch, const po_partial *, node->n_in);
    for (uint32_t k = 0; k < node->n_in; k++) {
        if (node->in[k] == PO_NONE)
            continue;
        in[k] = &graph->values[node->in[k]].type;
        constant[k] = po_graph_constant(graph, node->in[k]);
        partial[k] = partial_of(graph, node->in[k], constant[k]);
    }
    po_infer infer = {
        .ctx = ctx,
        .arena = scratch,
        .graph = graph,
        .node = node,
        .opset = po_op_version(graph, node),
        .n_in = node->n_in,
        .n_out = node->n_out,
        .in = in,
        .constant = constant,
        .partial = partial,
        .out = PO_NEW_N(scratch, po_type, node->n_out),
        .out_partial = PO_NEW_N(scratch, const po_partial *, node->n_out),
        .lenient = how != STRICT,
        .demands = demands,
    };
    po_status status = po_ops_check_node(ctx, graph, node);
    if (status == PO_OK)
        status = row->infer(&infer);
    if (status == PO_OK)
        return store_results(&infer, graph, how != STRICT);
    if (status == PO_UNSUPPORTED || (status == PO_BAD_INPUT && lenient)) {
        po_ctx_clear(ctx);
        return PO_OK;
    }
    return status;
}

/* Runtimes let declared shapes go, but not element types. */
static po_status check_declared(po_ctx *ctx, const po_graph *graph, const po_graph *declared,
                                const po_node *node) {
    for (uint32_t k = 0; k < node->n_out; k++) {
        if (node->out[k] == PO_NONE)
            continue;
        const po_type *a = &declared->values[node->out[k]].type;
        const po_type *b = &graph->values[node->out[k]].type;
        if (a->kind == PO_TYPE_TENSOR && b->kind == PO_TYPE_TENSOR && a->dtype && b->dtype &&
            a->dtype != b->dtype)
            return po_fail(ctx, PO_BAD_INPUT,
                           "node '%s' (%s): output '%.200s' is declared as %s, and is %s",
                           node->name, node->op_type, graph->values[node->out[k]].name,
                           po_dtype_name(a->dtype), po_dtype_name(b->dtype));
    }
    return PO_OK;
}

/* A node that is always executed. */
static po_status judge_node(po_ctx *ctx, po_graph *graph, po_node_id id, po_arena *scratch,
                            judgement *j) {
    const po_node *node = &graph->nodes[id];
    po_status status = po_signature_types(ctx, graph, node);
    if (status == PO_OK)
        status = infer_node(ctx, graph, node, scratch, SOUND, NULL);
    if (status == PO_OK)
        status = po_signature_outputs(ctx, graph, node);
    if (status == PO_OK)
        status = check_declared(ctx, graph, j->declared, node);
    if (status == PO_BAD_INPUT)
        j->failed = id;
    return status;
}

static po_status infer_graph(po_ctx *ctx, po_graph *graph, infer_how how, judgement *j,
                             po_demands *demands) {
    po_arena *scratch = po_arena_child(graph->arena);
    for (po_value_id i = 0; i < graph->n_values; i++) {
        po_value *v = &graph->values[i];
        if (v->outer != PO_NONE && graph->parent) {
            const po_value *outer = &graph->parent->values[v->outer];
            merge_into(graph, scratch, i, &outer->type);
            v->partial = outer->partial;
        } else if (v->constant && !(how == SOUND && v->is_input)) {
            po_type t = po_tensor_type(scratch, v->constant);
            merge_into(graph, scratch, i, &t);
        }
    }
    uint32_t n;
    const po_node_id *order = po_graph_order(graph, scratch, &n);
    po_arena *rules = po_arena_child(graph->arena);
    po_status status = PO_OK;
    for (uint32_t i = 0; i < n && status == PO_OK; i++) {
        if (i % NODES_PER_SCRATCH == NODES_PER_SCRATCH - 1) {
            po_arena_free(rules);
            rules = po_arena_child(graph->arena);
            status = po_ctx_poll(ctx);
        }
        if (status == PO_OK)
            status = j ? judge_node(ctx, graph, order[i], rules, j)
                       : infer_node(ctx, graph, &graph->nodes[order[i]], rules, how, demands);
    }
    po_arena_free(rules);
    po_arena_free(scratch);
    return status;
}

po_status po_infer_body(po_infer *infer, po_graph *body) {
    return infer_graph(infer->ctx, body, infer->lenient ? LENIENT : STRICT, NULL, NULL);
}

po_status po_infer_graph(po_ctx *ctx, po_graph *graph, bool lenient) {
    return infer_graph(ctx, graph, lenient ? LENIENT : STRICT, NULL, NULL);
}

static po_dim named(void *user, po_graph *graph, po_value_id input, uint32_t axis) {
    (void)user;
    po_dim dim = graph->values[input].type.dims[axis];
    uint32_t number = 0;
    if (dim.value >= 0 || dim.symbol)
        return dim;
    while (graph->inputs[number] != input)
        number++;
    dim.symbol = po_arena_printf(graph->arena, PO_UNNAMED, number, axis);
    return dim;
}

po_status po_infer_demands(po_ctx *ctx, po_arena *arena, const po_graph *graph, po_demands *found) {
    *found = (po_demands){.arena = arena};
    po_graph *copy = po_graph_with_dims(ctx, graph, named, NULL);
    po_graph_sweep(copy); /* what nothing reads is not executed */
    po_status status = po_infer_forget_shapes(ctx, copy);
    if (status == PO_OK)
        status = infer_graph(ctx, copy, LENIENT, NULL, found);
    po_graph_free(copy);
    return status;
}

void po_infer_one(po_graph *graph, po_node_id node) {
    po_arena *scratch = po_arena_child(graph->arena);
    infer_node(po_arena_ctx(graph->arena), graph, &graph->nodes[node], scratch, LENIENT, NULL);
    po_arena_free(scratch);
}

/* A rule tells the shapes of what its node makes, as far as anything does. */
static bool has_rule(const po_graph *graph, const po_value *v) {
    const po_op_row *row =
        v->producer == PO_NONE ? NULL : po_op_row_of(graph->nodes[v->producer].op);
    return row && row->infer;
}

static po_status forget_shapes(po_ctx *ctx, po_graph *graph, void *user) {
    (void)ctx;
    (void)user;
    for (po_value_id i = 0; i < graph->n_values; i++) {
        po_value *v = &graph->values[i];
        if (v->type.kind == PO_TYPE_TENSOR && !v->constant && has_rule(graph, v))
            v->type = (po_type){.kind = PO_TYPE_TENSOR, .dtype = v->type.dtype};
    }
    return PO_OK;
}

po_status po_infer_forget_shapes(po_ctx *ctx, po_graph *graph) {
    return po_graph_walk(ctx, graph, forget_shapes, NULL);
}

po_graph *po_graph_with_dims(po_ctx *ctx, const po_graph *graph, po_input_dim_fn dim, void *user) {
    po_graph *g = po_graph_clone(ctx, graph);
    for (uint32_t i = 0; i < g->n_inputs; i++) {
        po_type *t = &g->values[g->inputs[i]].type;
        if (t->kind != PO_TYPE_TENSOR || !t->has_rank)
            continue;
        po_dim *dims = PO_NEW_N(g->arena, po_dim, t->rank);
        for (uint32_t d = 0; d < t->rank; d++)
            dims[d] = dim(user, g, g->inputs[i], d);
        t->dims = dims;
    }
    return g;
}

po_graph *po_infer_with_dims(po_ctx *ctx, const po_graph *graph, po_input_dim_fn dim, void *user) {
    po_graph *g = po_graph_with_dims(ctx, graph, dim, user);
    if (po_infer_forget_shapes(ctx, g) != PO_OK || po_infer_graph(ctx, g, true) != PO_OK)
        po_ctx_clear(ctx);
    return g;
}

/* Forgets what the graph declares of values that nodes make, and of the inputs of bodies: runtimes
 * do not rely on it. */
static po_status forget(po_ctx *ctx, po_graph *graph, void *user) {
    (void)ctx;
    (void)user;
    for (po_value_id i = 0; i < graph->n_values; i++) {
        po_value *v = &graph->values[i];
        v->partial = NULL;
        if (graph->parent || v->producer != PO_NONE)
            v->type = (po_type){0};
    }
    return PO_OK;
}

po_status po_infer_check(po_ctx *ctx, const po_graph *graph, po_node_id *failed) {
    po_graph *copy = po_graph_clone(ctx, graph);
    judgement j = {graph, PO_NONE};
    po_status status = po_graph_walk(ctx, copy, forget, NULL);
    if (status == PO_OK)
        status = infer_graph(ctx, copy, SOUND, &j, NULL);
    *failed = j.failed;
    po_graph_free(copy);
    return status;
}
