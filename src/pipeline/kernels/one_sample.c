/* Regions of a form of one sample, in the form with its batch open that is delivered. */
#include "pipeline/kernels/one_sample.h"

#include "cost/isolate.h"
#include "ir/function.h"
#include "ir/size.h"
#include "ops/recipe/recipe.h"
#include "pipeline/budget.h"
#include "pipeline/kernels/open_lengths.h"
#include "pipeline/kernels/open_regions.h"
#include "pipeline/proving.h"

#include <math.h>

/* Of CPU time. */
static const double seconds_for_proof = 10;

/* --- names --- */

/* Values that nodes make or the graph is given, by name. */
static po_map *index_of(po_arena *arena, const po_graph *graph) {
    po_map *index = po_map_create(arena);
    for (po_value_id v = 0; v < graph->n_values; v++)
        if (po_open_is_live(graph, v) && graph->values[v].name)
            po_map_put(index, graph->values[v].name, v);
    return index;
}

static po_value_id named(const po_map *index, const po_graph *graph, po_value_id v) {
    return graph->values[v].name ? po_map_get(index, graph->values[v].name) : PO_NONE;
}

/* --- one sample --- */

typedef struct lengths {
    const po_graph *like;
    const po_map *index; /* of it */
    int64_t periods;
} lengths;

/* po_input_dim_fn */
static po_dim dim_like(void *user, po_graph *graph, po_value_id input, uint32_t axis) {
    const lengths *l = user;
    const po_dim own = graph->values[input].type.dims[axis];
    const po_value_id v = named(l->index, graph, input);
    if (own.value >= 0 || v == PO_NONE || l->like->values[v].type.rank <= axis)
        return own;
    po_dim dim = l->like->values[v].type.dims[axis];
    if (dim.value < 0 && dim.symbol)
        dim.symbol = po_arena_strdup(graph->arena, dim.symbol);
    return dim.value >= 0 || l->periods == 1 ? dim
                                             : po_size_mul(graph->arena, PO_DIM(l->periods), dim);
}

po_graph *po_one_sample(po_ctx *ctx, const po_graph *graph, const po_graph *like, int64_t periods) {
    po_arena *scratch = po_arena_create(ctx);
    lengths l = {like, index_of(scratch, like), periods};
    po_graph *one = po_infer_with_dims(ctx, graph, dim_like, &l);
    po_arena_free(scratch);
    return one;
}

const int8_t *po_one_sample_axes(po_arena *arena, const po_graph *form,
                                 const po_delivered *delivered) {
    int8_t *axis = PO_NEW_N(arena, int8_t, form->n_values + 1);
    const po_map *index = index_of(arena, delivered->graph);
    for (po_value_id v = 0; v < form->n_values; v++) {
        const po_value_id there = named(index, form, v);
        axis[v] = there == PO_NONE ? PO_NOT_DELIVERED : delivered->axis[there];
        if (axis[v] >= (int)form->values[v].type.rank)
            axis[v] = PO_NOT_DELIVERED;
    }
    return axis;
}

/* --- regions by the names of their borders --- */

typedef struct finding {
    po_ctx *ctx;
    const po_graph *graph;
    bool *inside, *border; /* by node, by value: read from outside */
    po_node_id *left;      /* nodes whose inputs were not looked at */
    uint32_t n_left;
} finding;

static po_status borders(po_ctx *ctx, po_arena *arena, const po_graph *form,
                         const po_value_id *values, uint32_t n, const po_map *index,
                         const po_value_id **there) {
    po_value_id *list = PO_NEW_N(arena, po_value_id, n + 1);
    for (uint32_t i = 0; i < n; i++) {
        list[i] = named(index, form, values[i]);
        if (list[i] == PO_NONE)
            return po_fail(ctx, PO_UNSUPPORTED, "'%s' is of one sample alone",
                           po_graph_value_name(form, values[i]));
    }
    *there = list;
    return PO_OK;
}

/* The node that makes it belongs to the region. */
static po_status reach(finding *f, po_value_id v) {
    const po_graph *g = f->graph;
    const po_node_id node = g->values[v].producer;
    if (f->border[v] || po_graph_constant(g, v) || (node != PO_NONE && f->inside[node]))
        return PO_OK;
    if (node == PO_NONE)
        return po_fail(f->ctx, PO_UNSUPPORTED, "the region reads '%s', which its kernel does not",
                       g->values[v].name);
    f->inside[node] = true;
    f->left[f->n_left++] = node;
    return PO_OK;
}

/* What lies between a region's borders. */
static po_status find_nodes(po_ctx *ctx, po_arena *arena, const po_graph *graph,
                            const po_node_id *order, uint32_t n_order, po_region *r) {
    po_arena *scratch = po_arena_create(ctx);
    finding f = {ctx,
                 graph,
                 PO_NEW_N(scratch, bool, graph->n_nodes + 1),
                 PO_NEW_N(scratch, bool, graph->n_values + 1),
                 PO_NEW_N(scratch, po_node_id, graph->n_nodes + 1),
                 0};
    po_status status = PO_OK;
    for (uint32_t i = 0; i < r->n_in; i++)
        f.border[r->in[i]] = true;
    for (uint32_t i = 0; i < r->n_out && status == PO_OK; i++)
        status = reach(&f, r->out[i]);
    while (f.n_left > 0 && status == PO_OK) {
        const po_node *node = &graph->nodes[f.left[--f.n_left]];
        for (uint32_t i = 0; i < node->n_in && status == PO_OK; i++)
            status = node->in[i] == PO_NONE ? PO_OK : reach(&f, node->in[i]);
    }
    po_node_id *nodes = PO_NEW_N(arena, po_node_id, graph->n_nodes + 1);
    for (uint32_t i = 0; i < n_order; i++)
        if (f.inside[order[i]])
            nodes[r->n_nodes++] = order[i];
    r->nodes = nodes;
    po_arena_free(scratch);
    return status;
}

po_status po_one_sample_regions(po_ctx *ctx, po_arena *arena, const po_graph *form,
                                const po_regions *regions, const po_delivered *delivered,
                                po_regions *there) {
    const po_graph *graph = delivered->graph;
    const po_map *index = index_of(arena, graph);
    uint32_t n_order;
    const po_node_id *order = po_graph_order(graph, arena, &n_order);
    po_region *list = PO_NEW_N(arena, po_region, regions->n + 1);
    *there = (po_regions){.regions = list, .n = regions->n};
    for (uint32_t i = 0; i < regions->n; i++) {
        const po_region *r = &regions->regions[i];
        list[i] = (po_region){.n_in = r->n_in, .n_out = r->n_out};
        PO_TRY(borders(ctx, arena, form, r->in, r->n_in, index, &list[i].in));
        PO_TRY(borders(ctx, arena, form, r->out, r->n_out, index, &list[i].out));
        PO_TRY(find_nodes(ctx, arena, graph, order, n_order, &list[i]));
        there->n_nodes += list[i].n_nodes;
    }
    po_status status = po_regions_check(ctx, graph, there);
    if (status != PO_INTERNAL)
        return status;
    const char *why = po_arena_strdup(arena, ctx->error.message);
    po_ctx_clear(ctx);
    return po_fail(ctx, PO_UNSUPPORTED, "the form of one sample has other regions: %s", why);
}

po_value_id po_one_sample_weight(po_graph *graph, const po_graph *form, po_value_id weight) {
    const po_tensor *tensor = po_graph_constant(form, weight);
    const char *name = form->values[weight].name;
    for (po_value_id v = 0; v < graph->n_values && name; v++) {
        const po_tensor *own = po_graph_constant(graph, v);
        if (own && graph->values[v].name && strcmp(graph->values[v].name, name) == 0 &&
            po_tensor_equal(own, tensor))
            return v;
    }
    po_arena *scratch = po_arena_child(graph->arena);
    const po_recipe *recipe = po_recipe_of(form, scratch, weight);
    po_value_id added = po_graph_add_constant(graph, NULL, tensor);
    po_set_recipe(graph, added, recipe);
    po_arena_free(scratch);
    return added;
}

/* --- the proof --- */

/* Puts the form's region in the place that it has in `graph`, as a function that is called. */
static po_status graft(const po_run *run, po_graph *form, const po_region *from, po_graph *graph,
                       const po_region *to, uint32_t number) {
    const char *name = po_arena_printf(run->arena, "region_%u", number);
    const po_outline cut = po_region_outline(name, from), place = po_region_outline(name, to);
    po_graph *body, *replaced;
    po_node_id call;
    PO_TRY(po_graph_outline(run->ctx, form, &cut, &body, &call));
    po_run_hold(run, body);
    po_graph_add_function(graph, &(po_function){cut.domain, cut.name, body});
    PO_TRY(po_graph_outline(run->ctx, graph, &place, &replaced, &call));
    po_run_hold(run, replaced);
    return PO_OK;
}

typedef struct proving {
    const po_graph *original, *candidate, *recipes;
    double seconds;
} proving;

static po_status prove(po_ctx *ctx, po_arena *arena, po_reply *reply, void *user) {
    const proving *p = user;
    po_proof_report *report = PO_NEW(arena, po_proof_report);
    PO_TRY(po_proving_graphs(ctx, p->original, p->candidate, p->recipes, p->seconds, report));
    po_reply_add(reply, report, sizeof *report);
    return PO_OK;
}

/* In a process of its own, as every proof of models. */
static po_status prove_apart(const po_run *run, proving *p) {
    po_ctx *ctx = run->ctx;
    po_arena *scratch = po_arena_child(run->arena);
    po_bytes data = {NULL, 0};
    const double start = po_now(), end = po_budget_end(run, PO_PART_KERNELS);
    const po_proof_report *report = NULL;
    p->seconds = end > 0 ? fmin(seconds_for_proof, end - start) : seconds_for_proof;
    po_status status = PO_OK;
    if (p->seconds > 0)
        status =
            po_isolate(ctx, scratch, "the proof of one sample", 2 * p->seconds, prove, p, &data);
    if (status == PO_RUNTIME) {
        po_ctx_clear(ctx);
        status = PO_OK;
    }
    if (data.size == sizeof *report)
        report = (const po_proof_report *)data.data;
    if (status == PO_OK && (!report || !report->proved))
        status = po_fail(ctx, PO_UNSUPPORTED, "it is not proved for one sample: %s",
                         report ? report->why : "there was no time");
    if (status == PO_OK)
        po_log(ctx, "proved with one sample: %u trials, %.2f s", report->trials, po_now() - start);
    po_arena_free(scratch);
    return status;
}

po_status po_one_sample_prove(const po_run *run, const po_graph *original, const po_graph *form,
                              const po_regions *regions, const po_graph *delivered,
                              const po_regions *there, const po_graph *like) {
    po_ctx *ctx = run->ctx;
    proving p = {0};
    po_graph *of_one = po_one_sample(ctx, original, like, 1),
             *whole = po_one_sample(ctx, delivered, like, 1), *cut = po_graph_clone(ctx, form);
    po_run_hold(run, of_one);
    po_run_hold(run, whole);
    po_run_hold(run, cut);
    for (uint32_t i = 0; i < regions->n; i++)
        PO_TRY(graft(run, cut, &regions->regions[i], whole, &there->regions[i], i));
    po_graph_sweep(whole);
    p.original = of_one;
    p.candidate = whole;
    PO_TRY(po_proving_recipes(run, whole, &p.recipes));
    return prove_apart(run, &p);
}
