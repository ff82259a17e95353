/* Constants in float that are stored in half precision. What was only cast is the model's own
 * constant again, by its name; what was moved besides is a constant of its own. */
#include "pipeline/half_weights.h"

#include "ops/recipe/recipe.h"
#include "ops/rewrite.h"

#include <math.h>

enum { FEW = 256 }; /* elements: a node more is worth no less */

static bool is_half(float x) {
    const float magnitude = fabsf(x);
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    if (magnitude >= 0x1p-14f)
        return magnitude <= 65504.0f && (bits & 0x1fff) == 0;
    return magnitude * 0x1p24f == rintf(magnitude * 0x1p24f); /* no normal number of 16 bits */
}

static bool all_half(const po_tensor *t) {
    const char *at = t->data; /* may be unaligned */
    for (int64_t i = 0; i < t->count; i++) {
        float x;
        memcpy(&x, at + i * (int64_t)sizeof x, sizeof x);
        if (!is_half(x))
            return false;
    }
    return true;
}

static bool is_cast(const po_recipe *r) {
    return r && r->kind == PO_RECIPE_OP && r->op == PO_OP_Cast && r->n_in == 1;
}

/* The constant of half precision that the recipe casts, and does nothing else with. */
static const po_recipe *source_of(const po_recipe *r) {
    while (is_cast(r))
        r = r->in[0];
    return r && r->kind == PO_RECIPE_SOURCE && r->dtype == PO_F16 ? r : NULL;
}

/* That constant in the graph, an initialiser (again); PO_NONE: the graph has none of its name. */
static po_value_id own(po_graph *graph, const po_recipe *source) {
    for (po_value_id v = 0; v < graph->n_values; v++) {
        const po_value *value = &graph->values[v];
        if (!value->constant || value->recipe || value->is_input || value->outer != PO_NONE ||
            strcmp(value->name, source->name) != 0)
            continue;
        if (!value->is_initializer && value->producer == PO_NONE)
            po_graph_make_constant(graph, v, value->constant);
        return v;
    }
    return PO_NONE;
}

static po_value_id halved(po_graph *graph, po_arena *scratch, po_value_id value) {
    const po_recipe *recipe = graph->values[value].recipe, *source = source_of(recipe);
    po_value_id half = source ? own(graph, source) : PO_NONE;
    if (half != PO_NONE)
        return half;
    return po_add_recipe(graph, NULL, PO_F16, po_recipe_doubles(graph, scratch, value));
}

static po_status halve(po_ctx *ctx, po_graph *graph, void *user) {
    po_arena *scratch = po_arena_child(graph->arena);
    const po_value_id known = graph->n_values;
    (void)user;
    for (po_value_id v = 0; v < known; v++) {
        const po_value *value = &graph->values[v];
        const po_tensor *t = value->constant;
        if (!value->is_initializer || value->is_input || !value->recipe || value->n_uses == 0 ||
            value->n_outputs > 0 || t->dtype != PO_F32 || t->count < FEW || !all_half(t))
            continue;
        PO_TRY(po_ctx_poll(ctx));
        const po_node_id place = value->uses[0].node;
        const po_value_id half = halved(graph, scratch, v);
        if (half == PO_NONE)
            continue;
        po_substitute(graph, v, po_add_cast(graph, place, half, PO_F32));
    }
    po_arena_free(scratch);
    return PO_OK;
}

po_status po_half_weights(po_ctx *ctx, po_graph *graph) {
    PO_TRY(po_graph_walk(ctx, graph, halve, NULL));
    po_graph_sweep(graph);
    return PO_OK;
}
