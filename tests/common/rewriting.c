/* Graphs from text, counts of operators, the greatest error of one graph against another relative
 * to the largest element, and what is wrong with the recipes of stored constants. */
#include "rewriting.h"

#include "ir/text.h"
#include "ops/recipe/recipe.h"
#include "unit.h"

#include <math.h>
#include <stdio.h>

po_graph *test_graph(po_ctx *ctx, const char *text) {
    po_graph *g = NULL;
    if (po_graph_parse(ctx, text, &g) != PO_OK)
        fail_msg("%s", ctx->error.message);
    po_ops_resolve(g);
    if (po_infer_graph(ctx, g, false) != PO_OK)
        fail_msg("%s", ctx->error.message);
    return g;
}

po_value_id test_value(const po_graph *graph, const char *name) {
    for (po_value_id v = 0; v < graph->n_values; v++)
        if (strcmp(graph->values[v].name, name) == 0)
            return v;
    fail_msg("no value '%s'", name);
    return PO_NONE;
}

typedef struct counting {
    const char *op_type;
    uint32_t n;
} counting;

static po_status count_nodes(po_ctx *ctx, po_graph *graph, void *user) {
    (void)ctx;
    counting *c = user;
    for (uint32_t i = 0; i < graph->n_nodes; i++)
        c->n += !graph->nodes[i].removed && strcmp(graph->nodes[i].op_type, c->op_type) == 0;
    return PO_OK;
}

uint32_t test_count(const po_graph *graph, const char *op_type) {
    counting c = {op_type, 0};
    po_graph_walk(NULL, (po_graph *)(uintptr_t)graph, count_nodes, &c);
    return c.n;
}

static po_array *random_input(po_ctx *ctx, po_arena *arena, const po_type *type, uint64_t seed,
                              uint64_t stream) {
    int64_t dims[PO_MAX_RANK];
    for (uint32_t i = 0; i < type->rank; i++)
        dims[i] = type->dims[i].value >= 0 ? type->dims[i].value : 5;
    po_array *a = NULL;
    assert_int_equal(po_array_create(ctx, arena, type->dtype, type->rank, dims, &a), PO_OK);
    for (int64_t i = 0; i < a->count; i++)
        if (a->f)
            a->f[i] = po_random_normal(seed, stream, (uint64_t)i);
        else
            a->i[i] = (int64_t)(po_random_u64(seed, stream, (uint64_t)i) %
                                (type->dtype == PO_BOOL ? 2 : 4));
    po_array_round(a);
    return a;
}

static double difference(const po_array *a, const po_array *b) {
    if (!a || !b || a->dtype != b->dtype || a->rank != b->rank)
        return NAN;
    double worst = 0, largest = 1e-30;
    for (uint32_t i = 0; i < a->rank; i++)
        if (a->dims[i] != b->dims[i])
            return NAN;
    for (int64_t i = 0; i < a->count; i++) {
        double x = a->f ? a->f[i] : (double)a->i[i], y = b->f ? b->f[i] : (double)b->i[i];
        if (isnan(x) != isnan(y))
            return NAN;
        if (isnan(x) || x == y)
            continue;
        worst = fmax(worst, fabs(x - y));
        largest = fmax(largest, fabs(x));
    }
    return worst / largest;
}

double test_difference(po_ctx *ctx, const po_graph *a, const po_graph *b, uint64_t seed) {
    po_arena *arena = po_arena_create(ctx);
    const po_array **in = PO_NEW_N(arena, const po_array *, a->n_inputs);
    po_array **x = PO_NEW_N(arena, po_array *, a->n_outputs);
    po_array **y = PO_NEW_N(arena, po_array *, b->n_outputs);
    double worst = 0;
    for (uint32_t i = 0; i < a->n_inputs; i++)
        in[i] = random_input(ctx, arena, &a->values[a->inputs[i]].type, seed, i);
    if (a->n_inputs != b->n_inputs || a->n_outputs != b->n_outputs ||
        po_ref_graph(ctx, arena, a, in, x, false) != PO_OK ||
        po_ref_graph(ctx, arena, b, in, y, false) != PO_OK) {
        printf("reference: %s\n", ctx->error.message);
        po_ctx_clear(ctx);
        worst = NAN;
    }
    for (uint32_t i = 0; !isnan(worst) && i < a->n_outputs; i++) {
        double d = difference(x[i], y[i]);
        worst = isnan(d) ? NAN : fmax(worst, d);
    }
    po_arena_free(arena);
    return worst;
}

const char *test_recipe_fault(po_ctx *ctx, const po_graph *before, const po_graph *after) {
    po_graph *recipes, *again = NULL;
    const char *why = NULL, *missing = NULL;
    if (po_recipes_to_graph(ctx, after, &recipes) != PO_OK)
        return ctx->error.message;
    if (recipes) {
        po_text text;
        po_text_init(&text, recipes->arena);
        po_graph_print_as(&text, recipes, (po_print_options){.most_items = 32, .all_data = true});
        if (po_graph_parse(ctx, text.data, &again) != PO_OK)
            return po_arena_printf(after->arena, "%s in\n%s", ctx->error.message, text.data);
        po_ops_resolve(again);
        if (po_recipes_check(ctx, after->arena, again, before, after, &why) != PO_OK)
            return ctx->error.message;
        if (why)
            why = po_arena_printf(after->arena, "%s\n%s", why, text.data);
    }
    if (po_recipes_missing(ctx, after->arena, again, before, after, &missing) != PO_OK)
        return ctx->error.message;
    po_graph_free(again);
    po_graph_free(recipes);
    return why       ? why
           : missing ? po_arena_printf(after->arena, "'%s' has no recipe", missing)
                     : NULL;
}

int test_tell(const char *name, const char *fault) {
    if (fault)
        printf("%s: %s\n", name, fault);
    return fault != NULL;
}
