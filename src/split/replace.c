/* Puts a mutant in the place of an occurrence. What depends on weights alone is evaluated. */
#include "ops/recipe/recipe.h"
#include "ops/rewrite.h"
#include "rewrite/weights.h"
#include "split/split.h"

typedef struct replacing {
    po_ctx *ctx;
    po_arena *arena;
    po_graph *graph; /* edited */
    const po_graph *mutant;
    po_value_id *map; /* by value of the mutant: the graph's */
    bool *fixed;      /* by value of the mutant: depends on nothing but weights and constants */
    const po_recipe **recipes; /* by value of the mutant: how fixed ones are made */
    bool pretend;              /* random numbers will do */
    po_value_id *made; /* by value of the mutant: the occurrence's output that it is to make */
} replacing;

/* How a fixed value is made, floats in f64. NULL where that cannot be stated. */
static const po_recipe *recipe_of(replacing *r, po_value_id v) {
    const po_value *value = &r->mutant->values[v];
    if (r->recipes[v])
        return r->recipes[v];
    if (value->is_input) {
        r->recipes[v] = po_recipe_doubles(r->graph, r->arena, r->map[v]);
    } else if (value->constant) {
        r->recipes[v] = po_recipe_table(r->arena, value->constant);
    }
    return r->recipes[v];
}

/* Numbers as weights have them. Integers shape operators: they are never random. */
static po_status make_up(replacing *r, po_value_id v) {
    const po_type *type = &r->mutant->values[v].type;
    if (!po_type_static(type) || po_dtype_class_of(type->dtype) != PO_CLASS_FLOAT)
        return po_fail(r->ctx, PO_UNSUPPORTED, "a mutant's weight without a shape");
    int64_t *dims = PO_NEW_N(r->arena, int64_t, type->rank);
    for (uint32_t i = 0; i < type->rank; i++)
        dims[i] = type->dims[i].value;
    po_tensor *t;
    PO_TRY(po_tensor_create(r->ctx, r->graph->arena, type->dtype, type->rank, dims, &t));
    po_tensor_draw(t, (uint64_t)t->count, -0.05, 0.05);
    r->map[v] = po_graph_add_constant(r->graph, NULL, t);
    return PO_OK;
}

/* States what a node of fixed inputs makes. */
static po_status state_node(replacing *r, const po_node *node) {
    for (uint32_t k = 0; k < node->n_in; k++)
        if (node->in[k] != PO_NONE)
            recipe_of(r, node->in[k]);
    return po_state_node(r->ctx, r->arena, r->mutant, node, r->recipes);
}

/* The graph's value for one of the mutant's that a remaining node reads. */
static po_status value_of(replacing *r, po_value_id v, po_value_id *id) {
    const po_value *value = &r->mutant->values[v];
    if (r->map[v] == PO_NONE && r->pretend && !value->constant) {
        PO_TRY(make_up(r, v));
    } else if (r->map[v] == PO_NONE && value->constant &&
               (r->pretend || po_dtype_class_of(value->type.dtype) != PO_CLASS_FLOAT)) {
        r->map[v] = po_graph_add_constant(r->graph, NULL, value->constant);
    } else if (r->map[v] == PO_NONE) {
        const po_recipe *recipe = recipe_of(r, v);
        if (recipe)
            r->map[v] = po_add_recipe(r->graph, NULL, value->type.dtype, recipe);
        if (r->map[v] == PO_NONE)
            return po_fail(r->ctx, PO_UNSUPPORTED, "a mutant's weight cannot be computed");
    }
    *id = r->map[v];
    return PO_OK;
}

static po_status add_node(replacing *r, po_node_id place, const po_node *node) {
    po_value_id *in = PO_NEW_N(r->arena, po_value_id, node->n_in);
    po_value_id *out = PO_NEW_N(r->arena, po_value_id, node->n_out);
    for (uint32_t k = 0; k < node->n_in; k++) {
        in[k] = PO_NONE;
        if (node->in[k] != PO_NONE)
            PO_TRY(value_of(r, node->in[k], &in[k]));
    }
    for (uint32_t k = 0; k < node->n_out; k++) {
        out[k] = PO_NONE;
        if (node->out[k] == PO_NONE)
            continue;
        po_value_id v = node->out[k];
        out[k] = r->made[v] != PO_NONE
                     ? r->made[v]
                     : po_graph_add_value(r->graph, NULL, &r->mutant->values[v].type);
        r->map[v] = out[k];
    }
    po_node_spec spec = po_node_spec_like(node, in, out);
    spec.name = NULL;
    spec.origin = NULL;
    po_graph_add_node_at(r->graph, place, &spec);
    return PO_OK;
}

static bool all_fixed(const replacing *r, const po_node *node) {
    for (uint32_t k = 0; k < node->n_in; k++)
        if (node->in[k] != PO_NONE && !r->fixed[node->in[k]])
            return false;
    return true;
}

/* The old nodes go; the values that they made stay, for the mutant to make. */
static void remove_nodes(replacing *r, const po_occurrence *at) {
    for (uint32_t i = at->n_nodes; i > 0; i--) {
        const po_node *node = &r->graph->nodes[at->nodes[i - 1]];
        for (uint32_t k = 0; k < node->n_out; k++)
            if (node->out[k] != PO_NONE)
                po_graph_set_output(r->graph, at->nodes[i - 1], k, PO_NONE);
        po_graph_remove_node(r->graph, at->nodes[i - 1]);
    }
}

/* An output that no node of the mutant makes for itself alone. */
static po_status finish_output(replacing *r, po_node_id place, po_value_id from, po_value_id out) {
    if (r->made[from] == out && r->map[from] == out)
        return PO_OK;
    po_value_id in;
    PO_TRY(value_of(r, from, &in));
    const po_node_spec spec = {.op = PO_OP_Identity, .n_in = 1, .in = &in, .n_out = 1, .out = &out};
    po_ops_add(r->graph, place, &spec);
    return PO_OK;
}

static void start(replacing *r, const po_subprogram *sub, const po_occurrence *at) {
    const po_graph *m = r->mutant;
    r->made = PO_NEW_N(r->arena, po_value_id, m->n_values);
    r->map = PO_NEW_N(r->arena, po_value_id, m->n_values);
    r->fixed = PO_NEW_N(r->arena, bool, m->n_values);
    r->recipes = PO_NEW_N(r->arena, const po_recipe *, m->n_values);
    for (po_value_id v = 0; v < m->n_values; v++) {
        r->map[v] = r->made[v] = PO_NONE;
        r->fixed[v] = m->values[v].producer == PO_NONE && m->values[v].constant;
    }
    for (uint32_t i = 0; i < m->n_inputs; i++) {
        r->map[m->inputs[i]] = at->in[i];
        r->fixed[m->inputs[i]] =
            i >= sub->n_activations && po_graph_constant(r->graph, at->in[i]) != NULL;
    }
    for (uint32_t i = 0; i < m->n_outputs; i++)
        if (r->made[m->outputs[i]] == PO_NONE)
            r->made[m->outputs[i]] = at->out[i];
}

static po_status replace(po_ctx *ctx, po_graph *model_graph, const po_subprogram *sub,
                         const po_occurrence *at, const po_graph *mutant, bool pretend) {
    po_arena *arena = po_arena_create(ctx);
    replacing r = {
        .ctx = ctx, .arena = arena, .graph = model_graph, .mutant = mutant, .pretend = pretend};
    if (mutant->n_inputs != sub->graph->n_inputs || mutant->n_outputs != sub->graph->n_outputs)
        return po_fail(ctx, PO_INTERNAL, "a mutant with other inputs or outputs");
    po_arena_hold(model_graph->arena, mutant->arena);
    start(&r, sub, at);
    remove_nodes(&r, at);
    uint32_t n;
    const po_node_id *order = po_graph_order(mutant, arena, &n);
    po_node_id place = at->nodes[at->n_nodes - 1];
    for (uint32_t i = 0; i < n; i++) {
        const po_node *node = &mutant->nodes[order[i]];
        if (all_fixed(&r, node)) {
            for (uint32_t k = 0; k < node->n_out; k++)
                if (node->out[k] != PO_NONE)
                    r.fixed[node->out[k]] = true;
            if (!pretend)
                PO_TRY(state_node(&r, node));
        } else {
            PO_TRY(add_node(&r, place, node));
        }
    }
    for (uint32_t i = 0; i < mutant->n_outputs; i++)
        PO_TRY(finish_output(&r, place, mutant->outputs[i], at->out[i]));
    po_arena_free(arena);
    return PO_OK;
}

po_status po_split_replace(po_ctx *ctx, po_graph *model_graph, const po_subprogram *sub,
                           const po_occurrence *at, const po_graph *mutant) {
    return replace(ctx, model_graph, sub, at, mutant, false);
}

po_status po_split_pretend(po_ctx *ctx, po_graph *model_graph, const po_subprogram *sub,
                           const po_occurrence *at, const po_graph *mutant) {
    return replace(ctx, model_graph, sub, at, mutant, true);
}
