/* Building an If around two forms of a model, and reading it back. */
#include "ops/branches.h"

#include "ir/copy.h"
#include "ir/size.h"
#include "ops/recipe/recipe.h"
#include "ops/rewrite.h"

static const char *const names[] = {"else_branch", "then_branch"};

/* --- making --- */

/* Names of lengths are the form's own: they say nothing of the graph around it. */
static void add_output(po_graph *body, po_value_id v) {
    po_type *type = &body->values[v].type;
    po_dim *dims = PO_NEW_N(body->arena, po_dim, type->rank + 1);
    for (uint32_t d = 0; d < type->rank; d++)
        dims[d] = po_dim_known(type->dims[d]) ? type->dims[d] : PO_DIM_UNKNOWN;
    type->dims = dims;
    po_graph_add_output(body, v);
}

/* The nodes of `from`, which nothing else needs any more, as a body of the graph. */
static po_status fill(po_ctx *ctx, po_graph *graph, po_graph *from, po_graph *body) {
    po_arena *scratch = po_arena_create(ctx);
    po_copying c = {.ctx = ctx, .from = from, .to = body, .map = po_copy_map(scratch, from)};
    po_status status = PO_OK;
    po_name_sources(from); /* they are called otherwise in the body */
    for (uint32_t i = 0; i < from->n_inputs; i++) {
        const po_value_id outer = po_graph_input(graph, from->values[from->inputs[i]].name);
        if (outer != PO_NONE)
            c.map[from->inputs[i]] = po_graph_capture(body, outer);
    }
    uint32_t n;
    const po_node_id *order = po_graph_order(from, scratch, &n);
    for (uint32_t i = 0; i < n && status == PO_OK; i++)
        status = po_copy_node(&c, &from->nodes[order[i]], PO_NONE);
    for (uint32_t i = 0; i < from->n_outputs && status == PO_OK; i++) {
        const po_value_id v = from->outputs[i];
        if (from->values[v].producer == PO_NONE || from->values[v].n_outputs > 1)
            status = po_fail(ctx, PO_UNSUPPORTED, "output '%.100s' is no node's own",
                             from->values[v].name);
        else
            add_output(body, c.map[v]);
    }
    po_arena_free(scratch);
    return status;
}

static po_status add_branch(po_ctx *ctx, po_graph *graph, const po_graph *form, bool then,
                            po_attr *attr) {
    po_graph *body = po_graph_create_body(graph, names[then]), *own = po_graph_clone(ctx, form);
    po_arena_hold(graph->arena, form->arena);
    po_status status = fill(ctx, graph, own, body);
    po_arena_hold(graph->arena, own->arena); /* attributes and tensors are not copied */
    po_graph_free(own);
    *attr = (po_attr){.name = names[then], .kind = PO_ATTR_GRAPH, .n = 1, .u.g = body};
    return status;
}

static po_status add_condition(po_ctx *ctx, po_graph *graph, po_node_id place,
                               const po_length_is *lengths, uint32_t n, po_value_id *all) {
    const int64_t nothing = 0;
    *all = PO_NONE;
    for (uint32_t i = 0; i < n; i++) {
        const int64_t axis = lengths[i].axis;
        const po_value_id x = po_graph_input(graph, lengths[i].input);
        if (x == PO_NONE)
            return po_fail(ctx, PO_UNSUPPORTED, "'%.100s' is no input", lengths[i].input);
        const po_value_id shape = po_add_op(graph, place, PO_OP_Shape, 1, &x, NULL);
        const po_value_id of[] = {shape, po_add_i64s_shaped(graph, 0, NULL, &axis)};
        po_value_id both[] = {po_add_op(graph, place, PO_OP_Gather, 2, of, NULL),
                              po_add_i64s_shaped(graph, 0, NULL, &lengths[i].length)};
        if (lengths[i].multiple) {
            both[0] = po_add_op(graph, place, PO_OP_Mod, 2, both, NULL);
            both[1] = po_add_i64s_shaped(graph, 0, NULL, &nothing);
        }
        const po_value_id is = po_add_op(graph, place, PO_OP_Equal, 2, both, NULL);
        const po_value_id so_far[] = {*all, is};
        *all = *all == PO_NONE ? is : po_add_op(graph, place, PO_OP_And, 2, so_far, NULL);
    }
    return *all == PO_NONE ? po_fail(ctx, PO_INTERNAL, "a choice without a condition") : PO_OK;
}

static po_status build(po_ctx *ctx, po_graph *graph, const po_graph *then,
                       const po_graph *otherwise, const po_length_is *lengths, uint32_t n) {
    po_attr attr[2];
    po_value_id condition,
        *old = po_arena_memdup(graph->arena, graph->outputs,
                               graph->n_outputs * sizeof *graph->outputs),
        *out = PO_NEW_N(graph->arena, po_value_id, graph->n_outputs);
    if (then->n_outputs != otherwise->n_outputs || then->n_outputs == 0)
        return po_fail(ctx, PO_UNSUPPORTED, "the forms have other outputs");
    PO_TRY(add_branch(ctx, graph, then, true, &attr[0]));
    PO_TRY(add_branch(ctx, graph, otherwise, false, &attr[1]));
    const po_node_id place = graph->values[old[0]].producer;
    PO_TRY(add_condition(ctx, graph, place, lengths, n, &condition));
    for (uint32_t i = 0; i < graph->n_outputs; i++) {
        out[i] = po_graph_add_value(graph, NULL, &graph->values[old[i]].type);
        graph->values[out[i]].origin = graph->values[old[i]].origin;
    }
    po_graph_add_node_at(graph, place,
                         &(po_node_spec){.op = PO_OP_If,
                                         .op_type = "If",
                                         .n_in = 1,
                                         .in = &condition,
                                         .n_out = graph->n_outputs,
                                         .out = out,
                                         .n_attr = 2,
                                         .attr = attr});
    for (uint32_t i = 0; i < graph->n_outputs; i++)
        if (!po_graph_replace_uses(graph, old[i], out[i]))
            return po_fail(ctx, PO_INTERNAL, "an output keeps its node");
    po_graph_sweep(graph);
    po_ops_resolve(graph);
    return po_infer_graph(ctx, graph, true);
}

po_status po_branches_make(po_ctx *ctx, const po_graph *then, const po_graph *otherwise,
                           const po_length_is *lengths, uint32_t n, po_graph **out) {
    po_graph *graph = po_graph_clone(ctx, otherwise);
    po_status status = build(ctx, graph, then, otherwise, lengths, n);
    if (status == PO_OK)
        status = po_graph_check(ctx, graph);
    if (status != PO_OK)
        po_graph_free(graph);
    else
        *out = graph;
    return status;
}

/* --- reading --- */

enum { MOST_LENGTHS = 16 };

static const po_node *made_by(const po_graph *graph, po_value_id v, po_op_id op, uint32_t n_in) {
    const po_node *node = po_made_by(graph, v, op);
    return node && node->n_in == n_in && !po_model_function(graph->model, node) ? node : NULL;
}

/* Shape(input)[axis] */
static bool read_length(const po_graph *graph, po_value_id v, po_length_is *is) {
    double axis;
    const po_node *gather = made_by(graph, v, PO_OP_Gather, 2);
    if (!gather || po_node_int(gather, "axis", 0) != 0 ||
        !po_scalar_constant(graph, gather->in[1], &axis))
        return false;
    const po_node *shape = made_by(graph, gather->in[0], PO_OP_Shape, 1);
    if (!shape || shape->n_attr > 0 || !graph->values[shape->in[0]].is_input)
        return false;
    const po_type *type = &graph->values[shape->in[0]].type;
    if (!type->has_rank || axis < 0 || axis >= type->rank)
        return false;
    is->input = graph->values[shape->in[0]].name;
    is->axis = (uint32_t)axis;
    return true;
}

static bool read_condition(const po_graph *graph, po_value_id v, po_length_is *list, uint32_t *n) {
    const po_node *both = made_by(graph, v, PO_OP_And, 2);
    if (both)
        return read_condition(graph, both->in[0], list, n) &&
               read_condition(graph, both->in[1], list, n);
    double number;
    const po_node *equal = made_by(graph, v, PO_OP_Equal, 2);
    if (!equal || *n == MOST_LENGTHS || !po_scalar_constant(graph, equal->in[1], &number))
        return false;
    po_length_is *is = &list[(*n)++];
    po_value_id length = equal->in[0];
    const po_node *mod = made_by(graph, length, PO_OP_Mod, 2);
    is->multiple = mod != NULL;
    if (mod) {
        if (number < 0 || number > 0 || !po_scalar_constant(graph, mod->in[1], &number))
            return false;
        length = mod->in[0];
    }
    is->length = (int64_t)number;
    return number >= 1 && read_length(graph, length, is);
}

bool po_branches_find(po_arena *arena, const po_graph *graph, po_branches *found) {
    po_length_is *list = PO_NEW_N(arena, po_length_is, MOST_LENGTHS);
    const po_node *node =
        graph->n_outputs > 0 ? made_by(graph, graph->outputs[0], PO_OP_If, 1) : NULL;
    *found = (po_branches){.node = node, .lengths = list};
    if (!node || node->n_out != graph->n_outputs)
        return false;
    for (uint32_t i = 0; i < node->n_out; i++)
        if (node->out[i] != graph->outputs[i])
            return false;
    return read_condition(graph, node->in[0], list, &found->n);
}

/* --- taking one apart --- */

/* The inputs, and which of them the body reads. */
static void take_inputs(const po_graph *graph, const po_graph *body, po_copying *c, po_graph *out) {
    for (uint32_t i = 0; i < graph->n_inputs; i++) {
        const po_value *in = &graph->values[graph->inputs[i]];
        const po_value_id made = po_graph_add_input(out, in->name, &in->type);
        out->values[made].origin = in->origin;
        for (po_value_id v = 0; v < body->n_values; v++)
            if (body->values[v].outer == graph->inputs[i])
                c->map[v] = made;
    }
}

po_status po_branches_take(po_ctx *ctx, const po_graph *graph, const po_branches *branches,
                           bool then, po_graph **out) {
    const po_attr *a = po_node_attr(branches->node, names[then]);
    const po_graph *body = a && a->kind == PO_ATTR_GRAPH ? a->u.g : NULL;
    if (!body || body->n_inputs > 0 || body->n_outputs != graph->n_outputs)
        return po_fail(ctx, PO_UNSUPPORTED, "an If without its branches");
    po_arena *scratch = po_arena_create(ctx);
    po_graph *own = po_graph_create(ctx, graph->model, graph->name);
    po_arena_hold(own->arena, graph->arena);
    po_copying c = {.ctx = ctx, .from = body, .to = own, .map = po_copy_map(scratch, body)};
    po_status status = PO_OK;
    take_inputs(graph, body, &c, own);
    for (uint32_t i = 0; i < body->n_outputs && status == PO_OK; i++) {
        const po_value *whole = &graph->values[graph->outputs[i]];
        const po_value_id v = body->outputs[i];
        if (c.map[v] != PO_NONE || body->values[v].producer == PO_NONE)
            status = po_fail(ctx, PO_UNSUPPORTED, "output '%.100s' is no node's own", whole->name);
        else
            c.map[v] = po_graph_add_value(own, whole->name, &whole->type);
    }
    uint32_t n;
    const po_node_id *order = po_graph_order(body, scratch, &n);
    for (uint32_t i = 0; i < n && status == PO_OK; i++)
        status = po_copy_node(&c, &body->nodes[order[i]], PO_NONE);
    for (uint32_t i = 0; i < body->n_outputs && status == PO_OK; i++)
        po_graph_add_output(own, c.map[body->outputs[i]]);
    po_arena_free(scratch);
    if (status == PO_OK) {
        po_ops_resolve(own);
        status = po_infer_graph(ctx, own, true);
    }
    if (status != PO_OK)
        po_graph_free(own);
    else
        *out = own;
    return status;
}

/* How often the length is there: the same for dims that are called the same. */
static po_dim periods(po_graph *graph, po_dim own, uint32_t number) {
    const bool word = own.symbol && po_size_plus(graph->arena, own, 1).symbol;
    return (po_dim){-1, word && !po_size_made(own.symbol)
                            ? po_arena_printf(graph->arena, "%s.periods", own.symbol)
                            : po_arena_printf(graph->arena, "open.%u.periods", number)};
}

/* po_input_dim_fn */
static po_dim pinned(void *user, po_graph *graph, po_value_id input, uint32_t axis) {
    const po_branches *b = user;
    const po_dim own = graph->values[input].type.dims[axis];
    for (uint32_t i = 0; i < b->n && !po_dim_known(own); i++) {
        const po_length_is *is = &b->lengths[i];
        if (is->axis != axis || strcmp(is->input, graph->values[input].name) != 0)
            continue;
        return is->multiple ? po_size_times(graph->arena, periods(graph, own, i), is->length)
                            : PO_DIM(is->length);
    }
    return own;
}

po_graph *po_branches_pin(po_ctx *ctx, const po_graph *graph, const po_branches *branches) {
    return po_infer_with_dims(ctx, graph, pinned, (void *)(uintptr_t)branches);
}
