/* Recipes of nodes (state) and nodes of recipes (lower). */
#include "rewrite/weights.h"

#include "base/hash.h"
#include "ops/rewrite.h"

enum {
    MOST_LIFTED = 1 << 20, /* numbers that are made up for one subprogram */
    RECIPES_SINCE = 13     /* before, operators are written otherwise than recipes have them */
};

/* --- nodes as recipes --- */

po_status po_state_node(po_ctx *ctx, po_arena *arena, const po_graph *graph, const po_node *node,
                        const po_recipe **recipes) {
    const po_recipe **in = PO_NEW_N(arena, const po_recipe *, node->n_in);
    if (!po_recipe_can_state(graph, node))
        return po_fail(ctx, PO_UNSUPPORTED, "a %s on weights that cannot be stated", node->op_type);
    for (uint32_t k = 0; k < node->n_in; k++)
        if (node->in[k] != PO_NONE && !(in[k] = recipes[node->in[k]]))
            return po_fail(ctx, PO_UNSUPPORTED, "a weight that cannot be stated");
    for (uint32_t k = 0; k < node->n_out; k++) {
        if (node->out[k] == PO_NONE)
            continue;
        const po_type *type = &graph->values[node->out[k]].type;
        int64_t *dims = PO_NEW_N(arena, int64_t, type->rank);
        if (!po_type_static(type))
            return po_fail(ctx, PO_UNSUPPORTED, "a weight without a shape");
        for (uint32_t i = 0; i < type->rank; i++)
            dims[i] = type->dims[i].value;
        bool is_float = po_dtype_class_of(type->dtype) == PO_CLASS_FLOAT;
        recipes[node->out[k]] =
            po_recipe_op(arena, &(po_recipe_spec){.op = node->op,
                                                  .n_in = node->n_in,
                                                  .in = in,
                                                  .n_attr = node->n_attr,
                                                  .attr = node->attr,
                                                  .n_out = node->n_out,
                                                  .output = k,
                                                  .dtype = is_float ? PO_F64 : type->dtype,
                                                  .rank = type->rank,
                                                  .dims = dims});
    }
    return PO_OK;
}

/* The recipes of the constants that the node reads; false where it reads something else. */
static bool state_inputs(const po_graph *graph, po_arena *arena, const po_node *node,
                         const po_recipe **recipes) {
    for (uint32_t i = 0; i < node->n_in; i++) {
        po_value_id v = node->in[i];
        if (v == PO_NONE || recipes[v])
            continue;
        const po_tensor *t = po_graph_constant(graph, v);
        if (!t)
            return false;
        recipes[v] = po_dtype_class_of(t->dtype) == PO_CLASS_FLOAT
                         ? po_recipe_doubles(graph, arena, v)
                         : po_recipe_table(arena, t);
    }
    return true;
}

po_status po_state_weights(po_ctx *ctx, po_arena *arena, po_graph *graph, po_node_id first) {
    const uint32_t n_values = graph->n_values;
    const po_recipe **recipes = PO_NEW_N(arena, const po_recipe *, n_values);
    uint32_t n;
    const po_node_id *order = po_graph_order(graph, arena, &n);
    for (uint32_t k = 0; k < n; k++) {
        const po_node *node = &graph->nodes[order[k]];
        if (order[k] >= first && state_inputs(graph, arena, node, recipes)) {
            if (po_state_node(ctx, arena, graph, node, recipes) != PO_OK)
                po_ctx_clear(ctx);
            continue;
        }
        for (uint32_t i = 0; i < graph->nodes[order[k]].n_in; i++) {
            po_value_id v = graph->nodes[order[k]].in[i];
            if (v == PO_NONE || v >= n_values || !recipes[v] || po_graph_constant(graph, v))
                continue;
            po_value_id w = po_add_recipe(graph, NULL, graph->values[v].type.dtype, recipes[v]);
            if (w != PO_NONE)
                po_graph_replace_uses(graph, v, w);
        }
    }
    return po_ctx_poll(ctx);
}

/* --- constants for inputs --- */

static bool make_up(po_ctx *ctx, po_graph *graph, const po_type *type, uint32_t seed, int64_t *left,
                    po_tensor **t) {
    int64_t dims[PO_MAX_RANK];
    if (!po_type_static(type) || type->rank > PO_MAX_RANK ||
        po_dtype_class_of(type->dtype) != PO_CLASS_FLOAT || po_type_count(type) > *left)
        return false;
    *left -= po_type_count(type);
    for (uint32_t i = 0; i < type->rank; i++)
        dims[i] = type->dims[i].value;
    if (po_tensor_create(ctx, graph->arena, type->dtype, type->rank, dims, t) != PO_OK)
        return false;
    po_tensor_draw(*t, seed, -0.5, 0.5);
    return true;
}

bool po_lift(po_ctx *ctx, po_arena *arena, const po_subprogram *sub, po_lifted *lifted) {
    const po_graph *from = sub->graph;
    if (po_model_opset(from->model, "") < RECIPES_SINCE)
        return false;
    po_graph *g = po_graph_clone(ctx, from);
    po_arena_own(arena, g->arena);
    int64_t left = MOST_LIFTED;
    *lifted = (po_lifted){.graph = g, .name = PO_NEW_N(arena, const char *, from->n_inputs)};
    for (uint32_t i = sub->n_activations; i < from->n_inputs; i++) {
        po_tensor *t;
        po_value_id v = g->inputs[i];
        if (!make_up(ctx, g, &g->values[v].type, i, &left, &t)) {
            po_ctx_clear(ctx);
            return false;
        }
        po_value_id c = po_graph_add_constant(g, "made up", t);
        lifted->name[i] = g->values[c].name;
        if (!po_graph_replace_uses(g, v, c))
            return false;
    }
    return true;
}

typedef struct lowered_recipe {
    const po_recipe *recipe;
    po_value_id value;
} lowered_recipe;

typedef struct lowering {
    po_arena *arena;
    const po_lifted *lifted;
    po_graph *graph;
    po_dtype dtype; /* that floats have in the graph */
    lowered_recipe *made;
    uint32_t n_made, cap_made;
} lowering;

static po_value_id input_named(const lowering *l, const char *name) {
    for (uint32_t i = 0; i < l->graph->n_inputs; i++)
        if (l->lifted->name[i] && name && strcmp(l->lifted->name[i], name) == 0)
            return l->graph->inputs[i];
    return PO_NONE;
}

/* Whether something of the subprogram's weights is in it. */
static bool depends(const lowering *l, const po_recipe *r) {
    if (r->kind == PO_RECIPE_SOURCE)
        return input_named(l, r->name) != PO_NONE;
    for (uint32_t i = 0; r->kind == PO_RECIPE_OP && i < r->n_in; i++)
        if (r->in[i] && depends(l, r->in[i]))
            return true;
    return false;
}

static po_value_id lowered(lowering *l, const po_recipe *r);

static po_value_id lower_literal(lowering *l, const po_recipe *r) {
    if (po_dtype_class_of(r->dtype) != PO_CLASS_FLOAT)
        return po_graph_add_constant(l->graph, NULL, r->tensor);
    double *numbers = PO_NEW_N(l->arena, double, r->count);
    for (int64_t i = 0; i < r->count; i++)
        numbers[i] = po_tensor_f64(r->tensor, i);
    return po_add_floats(l->graph, NULL, l->dtype, r->rank, r->dims, numbers);
}

static po_value_id lower_op(lowering *l, const po_recipe *r) {
    bool is_float = po_dtype_class_of(r->dtype) == PO_CLASS_FLOAT;
    if (r->op == PO_OP_Cast && is_float && po_dtype_class_of(r->in[0]->dtype) == PO_CLASS_FLOAT)
        return lowered(l, r->in[0]); /* roundings are the corrector's and the writer's */
    if (r->n_out > 1)
        return PO_NONE;
    po_value_id *in = PO_NEW_N(l->arena, po_value_id, r->n_in);
    for (uint32_t i = 0; i < r->n_in; i++) {
        in[i] = PO_NONE;
        if (r->in[i] && (in[i] = lowered(l, r->in[i])) == PO_NONE)
            return PO_NONE;
    }
    po_type type =
        po_type_tensor_i64(l->graph->arena, is_float ? l->dtype : r->dtype, r->rank, r->dims);
    po_value_id out = po_graph_add_value(l->graph, NULL, &type);
    po_ops_add(l->graph, PO_NONE,
               &(po_node_spec){.op = r->op,
                               .n_in = r->n_in,
                               .in = in,
                               .n_out = 1,
                               .out = &out,
                               .n_attr = r->n_attr,
                               .attr = r->attr});
    return out;
}

static po_value_id lowered(lowering *l, const po_recipe *r) {
    for (uint32_t i = 0; i < l->n_made; i++)
        if (l->made[i].recipe == r)
            return l->made[i].value;
    po_value_id v = r->kind == PO_RECIPE_SOURCE    ? input_named(l, r->name)
                    : r->kind == PO_RECIPE_LITERAL ? lower_literal(l, r)
                                                   : lower_op(l, r);
    const lowered_recipe made = {r, v};
    PO_PUSH(l->arena, l->made, l->n_made, l->cap_made, made);
    return v;
}

po_value_id po_nodes_of(po_arena *arena, po_graph *graph, const po_recipe *r, uint32_t n,
                        const po_recipe *const *leaf, const po_value_id *values) {
    lowering l = {.arena = arena, .graph = graph, .dtype = graph->values[values[0]].type.dtype};
    for (uint32_t i = 0; i < n; i++) {
        const lowered_recipe known = {leaf[i], values[i]};
        PO_PUSH(arena, l.made, l.n_made, l.cap_made, known);
    }
    return lowered(&l, r);
}

bool po_lower(po_arena *arena, const po_lifted *lifted, po_graph *graph) {
    lowering l = {.arena = arena,
                  .lifted = lifted,
                  .graph = graph,
                  .dtype = graph->values[graph->inputs[0]].type.dtype};
    for (po_value_id v = 0, n = graph->n_values; v < n; v++) {
        const po_value *value = &graph->values[v];
        if (!value->constant || (!value->n_uses && !value->n_outputs) || value->is_input ||
            po_dtype_class_of(value->constant->dtype) != PO_CLASS_FLOAT)
            continue;
        const po_recipe *r = po_recipe_of(graph, arena, v);
        if (!depends(&l, r))
            continue;
        po_value_id made = lowered(&l, r);
        if (made == PO_NONE)
            return false;
        po_substitute(graph, v, made);
    }
    return true;
}
