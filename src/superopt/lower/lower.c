/* Lowering a region: where values lie, and its nodes in order. */
#include "superopt/lower/internal.h"

#include <stdio.h>

/* --- values --- */

const po_dim *po_lower_dims(const po_lowering *l, po_value_id v, uint32_t *rank) {
    const po_type *type = &l->graph->values[v].type;
    *rank = type->rank;
    return type->dims;
}

static po_view plain_view(uint32_t tensor, uint32_t rank) {
    po_view view = {.set = true, .tensor = tensor, .rank = rank};
    for (uint32_t i = 0; i < rank; i++)
        view.coef[i][i] = 1;
    return view;
}

/* Channels last: axes 0, 2, ..., 1. */
static po_view last_view(uint32_t tensor, uint32_t rank) {
    po_view view = {.set = true, .tensor = tensor, .rank = rank};
    view.coef[0][0] = 1;
    for (uint32_t i = 1; i + 1 < rank; i++)
        view.coef[i][i + 1] = 1;
    view.coef[rank - 1][1] = 1;
    return view;
}

static po_mu_type type_of(const po_lowering *l, po_value_id v) {
    switch (l->graph->values[v].type.dtype) {
    case PO_F16:
        return PO_MU_F16;
    case PO_BF16:
        return PO_MU_BF16;
    default:
        return PO_MU_F32;
    }
}

static po_view add_tensor(po_lowering *l, po_value_id v, po_mu_place place, bool last) {
    uint32_t rank;
    const po_dim *dims = po_lower_dims(l, v, &rank);
    int64_t shape[PO_MU_MAX_RANK];
    char name[16];
    po_view view = last ? last_view(0, rank) : plain_view(0, rank);
    for (uint32_t i = 0; i < rank; i++)
        for (uint32_t k = 0; k < rank; k++)
            if (view.coef[i][k])
                shape[i] = dims[k].value;
    snprintf(name, sizeof name, "t%u", v);
    view.tensor = po_mu_add_tensor(l->mu, name, place, rank, shape);
    l->mu->tensors[view.tensor].type = type_of(l, v);
    return view;
}

static bool read_inside(const po_lowering *l, po_value_id v) {
    const po_value *value = &l->graph->values[v];
    for (uint32_t u = 0; u < value->n_uses; u++)
        if (value->uses[u].input != PO_USE_CAPTURE && l->place[value->uses[u].node] != PO_NONE)
            return true;
    return false;
}

/* With one channel both orders are the same. */
static bool is_planar(const po_lowering *l, po_value_id v) {
    return !l->channels_last[v] || l->graph->values[v].type.dims[1].value == 1;
}

const po_view *po_lower_storage(po_lowering *l, po_value_id v) {
    if (l->view[v].set)
        return &l->view[v];
    po_view part;
    if (po_lower_join(l, v, &part)) {
        l->view[v] = part;
    } else if (l->output[v] != PO_NONE && is_planar(l, v) && !read_inside(l, v)) {
        l->view[v] = add_tensor(l, v, PO_MU_OUTPUT, false);
        l->mu->tensors[l->view[v].tensor].number = l->output[v];
    } else {
        l->view[v] = add_tensor(l, v, PO_MU_DEVICE, l->channels_last[v]);
    }
    return &l->view[v];
}

/* A constant's axes of length 1 are left out: a bias is a row however it was broadcast. */
static void add_weight(po_lowering *l, po_value_id v) {
    uint32_t rank, n = 0;
    const po_dim *dims = po_lower_dims(l, v, &rank);
    int64_t shape[PO_MU_MAX_RANK];
    char name[16];
    po_view view = {.set = true};
    for (uint32_t i = 0; i < rank; i++)
        if (dims[i].value != 1) {
            view.coef[n][i] = 1;
            shape[n++] = dims[i].value;
        }
    if (n == 0)
        shape[n++] = 1;
    snprintf(name, sizeof name, "w%u", v);
    view.rank = n;
    view.tensor = po_mu_add_tensor(l->mu, name, PO_MU_WEIGHT, n, shape);
    l->mu->tensors[view.tensor].number = l->n_weights;
    l->mu->tensors[view.tensor].type = type_of(l, v);
    PO_PUSH(l->arena, l->weights, l->n_weights, l->cap_weights, v);
    l->view[v] = view;
}

const po_view *po_lower_read(po_lowering *l, po_value_id v) {
    if (!l->view[v].set && po_graph_constant(l->graph, v))
        add_weight(l, v);
    return l->view[v].set ? &l->view[v] : NULL;
}

po_mu_access po_lower_access(po_lowering *l, const po_view *view, const po_lower_index *at) {
    po_mu_access access = po_mu_access_of(l->mu, view->tensor);
    for (uint32_t x = 0; x < view->rank; x++) {
        int64_t offset = view->base[x];
        for (uint32_t j = 0; j < PO_MU_MAX_RANK; j++) {
            int64_t coef = view->coef[x][j];
            if (coef == 0)
                continue;
            offset += coef * at[j].offset;
            for (uint32_t k = 0; k < at[j].n; k++)
                po_mu_at(l->mu, &access, x, coef * at[j].terms[k].coef, at[j].terms[k].label);
        }
        po_mu_at(l->mu, &access, x, offset, PO_NONE);
    }
    return access;
}

uint32_t po_lower_operand(po_lowering *l, uint32_t statement, po_value_id v,
                          const po_lower_index *at) {
    const po_view *view = po_lower_read(l, v);
    if (!view)
        return PO_NONE;
    po_mu_access access = po_lower_access(l, view, at);
    const po_mu_statement *s = &l->mu->nodes[statement].statement;
    for (uint32_t i = 0; i < s->n_items; i++)
        if (s->items[i].function == PO_MU_OPERAND &&
            po_mu_same_access(l->mu, &s->in[s->items[i].a], &access))
            return i;
    uint32_t operand = po_mu_operand(l->mu, statement, access);
    return operand == PO_NONE ? PO_NONE
                              : po_mu_item_of(l->mu, statement, PO_MU_OPERAND, operand, 0, 0);
}

void po_lower_labels(po_lowering *l, po_value_id v, po_lower_index *at) {
    uint32_t rank;
    const po_dim *dims = po_lower_dims(l, v, &rank);
    static const char *const names[] = {"n", "k", "z", "y", "x"};
    for (uint32_t i = 0; i < rank; i++) {
        const char *name = i < 2           ? (l->channels_last[v] ? names[i] : "i")
                           : rank - i <= 3 ? names[5 - (rank - i)]
                                           : "z";
        at[i] = (po_lower_index){0};
        if (dims[i].value == 1)
            continue;
        at[i].n = 1;
        at[i].terms[0] = (po_mu_term){po_mu_add_label(l->mu, name, dims[i].value), 1};
    }
}

/* --- which values lie channels last --- */

/* Works on the axes of a map: by a window, or by one that is the whole map. */
static bool is_spatial(po_op_id op) {
    return po_op_has(op, PO_OPF_WINDOW) || op == PO_OP_GlobalAveragePool ||
           op == PO_OP_GlobalMaxPool;
}

/* Operators that leave axes where they are: what holds for one value holds for the others. */
static bool keeps_axes(const po_graph *graph, const po_node *node) {
    return po_lower_is_map(graph, node) || node->op == PO_OP_Concat || node->op == PO_OP_Slice ||
           node->op == PO_OP_Split || node->op == PO_OP_Pad || node->op == PO_OP_Resize ||
           node->op == PO_OP_InstanceNormalization;
}

static bool mark(po_lowering *l, po_value_id v, uint32_t rank) {
    if (v == PO_NONE || l->channels_last[v] || po_graph_constant(l->graph, v) ||
        l->graph->values[v].type.rank != rank || rank < 3)
        return false;
    l->channels_last[v] = true;
    return true;
}

static void mark_layouts(po_lowering *l) {
    for (bool again = true; again;) {
        again = false;
        for (uint32_t i = 0; i < l->region->n_nodes; i++) {
            const po_node *node = &l->graph->nodes[l->region->nodes[i]];
            uint32_t rank = l->graph->values[node->out[0]].type.rank;
            bool any = is_spatial(node->op);
            for (uint32_t k = 0; k < node->n_in && keeps_axes(l->graph, node); k++)
                any |= node->in[k] != PO_NONE && l->channels_last[node->in[k]] &&
                       l->graph->values[node->in[k]].type.rank == rank;
            for (uint32_t k = 0; k < node->n_out && keeps_axes(l->graph, node); k++)
                any |= node->out[k] != PO_NONE && l->channels_last[node->out[k]];
            if (!any)
                continue;
            for (uint32_t k = 0; k < node->n_in; k++)
                again |= (k == 0 || !is_spatial(node->op)) && mark(l, node->in[k], rank);
            for (uint32_t k = 0; k < node->n_out; k++)
                again |= mark(l, node->out[k], rank);
        }
    }
}

/* --- copies --- */

static void copy(po_lowering *l, const char *name, const po_view *to, const po_view *from,
                 po_value_id v) {
    po_lower_index at[PO_MU_MAX_RANK];
    po_lower_labels(l, v, at);
    uint32_t step = po_mu_add_step(l->mu, name);
    uint32_t s = po_mu_add_statement(l->mu, step, PO_MU_SET);
    l->mu->nodes[s].statement.out = po_lower_access(l, to, at);
    po_mu_item_of(l->mu, s, PO_MU_OPERAND, po_mu_operand(l->mu, s, po_lower_access(l, from, at)), 0,
                  0);
}

static bool reaches_outside(const po_lowering *l, const po_lower_index *at, int64_t dim) {
    int64_t least = at->offset, most = at->offset;
    for (uint32_t k = 0; k < at->n; k++) {
        int64_t way = at->terms[k].coef * (l->mu->labels[at->terms[k].label].extent - 1);
        least += way < 0 ? way : 0;
        most += way > 0 ? way : 0;
    }
    return least < 0 || most >= dim;
}

/* Whether what lies before and behind the value along an axis is what lies before and behind its
 * tensor: an axis of the tensor is the value's alone, from its first element to its last. */
static bool ends_with_tensor(const po_lowering *l, const po_view *view, uint32_t axis,
                             int64_t dim) {
    const po_mu_tensor *tensor = &l->mu->tensors[view->tensor];
    uint32_t found = PO_NONE;
    for (uint32_t i = 0; i < view->rank; i++)
        if (view->coef[i][axis] != 0) {
            if (found != PO_NONE)
                return false;
            found = i;
        }
    if (tensor->place != PO_MU_DEVICE || found == PO_NONE || view->coef[found][axis] != 1 ||
        view->base[found] > 0 || view->base[found] + dim < tensor->dims[found])
        return false;
    for (uint32_t k = 0; k < PO_MU_MAX_RANK; k++)
        if (k != axis && view->coef[found][k] != 0)
            return false;
    return true;
}

void po_lower_settle(po_lowering *l, po_value_id v, const po_lower_index *at) {
    uint32_t rank;
    const po_dim *dims = po_lower_dims(l, v, &rank);
    const po_view *view = po_lower_read(l, v);
    bool whole = true;
    for (uint32_t x = 0; x < rank && view; x++)
        whole &= !reaches_outside(l, &at[x], dims[x].value) ||
                 ends_with_tensor(l, view, x, dims[x].value);
    if (!view || whole)
        return;
    po_view from = *view;
    l->view[v] = add_tensor(l, v, PO_MU_DEVICE, l->channels_last[v]);
    copy(l, po_arena_printf(l->arena, "%s with its edge", l->graph->values[v].name), &l->view[v],
         &from, v);
}

/* --- borders --- */

enum { FEW_CHANNELS = 8 };

/* Maps of few channels stay planar: a convolution takes one number of them at a time, and rows are
 * copied faster than they are transposed. */
static void enter(po_lowering *l, po_value_id v, uint32_t number) {
    po_view in = add_tensor(l, v, PO_MU_INPUT, false);
    l->mu->tensors[in.tensor].number = number;
    if (!l->channels_last[v]) {
        l->view[v] = in;
        return;
    }
    bool planar = l->graph->values[v].type.dims[1].value < FEW_CHANNELS;
    l->view[v] = add_tensor(l, v, PO_MU_DEVICE, !planar);
    copy(l, planar ? "planes of the input" : "input, channels last", &l->view[v], &in, v);
}

static void leave(po_lowering *l, po_value_id v) {
    if (l->mu->tensors[l->view[v].tensor].place == PO_MU_OUTPUT)
        return;
    po_view out = add_tensor(l, v, PO_MU_OUTPUT, false);
    l->mu->tensors[out.tensor].number = l->output[v];
    copy(l, "output", &out, &l->view[v], v);
}

/* --- nodes --- */

typedef struct form {
    po_op_id op;
    po_region_part part;
    po_status (*lower)(po_lowering *l, const po_node *node);
} form;

/* Which operators have code here, and what they are to a region. What a product is its sum says;
 * element-wise ones are maps (chain.c). Of the others with sums those that were found to gain. */
static const form forms[] = {
    {PO_OP_AveragePool, PO_REGION_MAP, po_lower_sum},
    {PO_OP_GlobalAveragePool, PO_REGION_MAP, po_lower_sum},
    {PO_OP_ReduceMean, PO_REGION_MAP, po_lower_sum},
    {PO_OP_ReduceSum, PO_REGION_MAP, po_lower_sum},
    {PO_OP_Softmax, PO_REGION_MAP, po_lower_softmax},
    {PO_OP_ReduceL2, PO_REGION_MAP, po_lower_norm},
    {PO_OP_InstanceNormalization, PO_REGION_MAP, po_lower_instance},
    {PO_OP_LayerNormalization, PO_REGION_MAP, po_lower_layer},
    {PO_OP_RMSNormalization, PO_REGION_MAP, po_lower_layer},
    {PO_OP_MaxPool, PO_REGION_MAP, po_lower_max_pool},
    {PO_OP_ReduceMax, PO_REGION_MAP, po_lower_reduce_max},
    {PO_OP_GlobalMaxPool, PO_REGION_MAP, po_lower_reduce_max},
    {PO_OP_Flatten, PO_REGION_MOVE, po_lower_sum},
    {PO_OP_Reshape, PO_REGION_MOVE, po_lower_sum},
    {PO_OP_Squeeze, PO_REGION_MOVE, po_lower_sum},
    {PO_OP_Unsqueeze, PO_REGION_MOVE, po_lower_sum},
    {PO_OP_Transpose, PO_REGION_MOVE, po_lower_sum},
    {PO_OP_Slice, PO_REGION_MOVE, po_lower_sum},
    {PO_OP_Split, PO_REGION_MOVE, po_lower_sum},
    {PO_OP_Concat, PO_REGION_MOVE, po_lower_sum},
    {PO_OP_Expand, PO_REGION_MOVE, po_lower_sum},
    {PO_OP_Gather, PO_REGION_MOVE, po_lower_sum},
    {PO_OP_Pad, PO_REGION_MOVE, po_lower_sum},
    {PO_OP_Resize, PO_REGION_MOVE, po_lower_sum},
    {PO_OP_DepthToSpace, PO_REGION_MOVE, po_lower_sum},
    {PO_OP_SpaceToDepth, PO_REGION_MOVE, po_lower_sum},
};
static const form product = {PO_OP_OPAQUE, PO_REGION_CORE, po_lower_sum};

/* NULL: none, or a map. */
static const form *form_of(const po_node *node) {
    if (po_op_is_product(node->op) && node->n_in > 1)
        return &product;
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++)
        if (forms[i].op == node->op)
            return &forms[i];
    return NULL;
}

/* half: 16 bits are taken too. */
static bool is_held(const po_graph *graph, po_value_id v, bool half) {
    const po_type *type = &graph->values[v].type;
    bool fits =
        type->dtype == PO_F32 || (half && (type->dtype == PO_F16 || type->dtype == PO_BF16));
    return type->kind == PO_TYPE_TENSOR && fits && type->rank <= PO_MU_MAX_RANK &&
           po_type_static(type) && po_type_count(type) > 0;
}

/* Whether a step can read or write it, or it is a test, of which none has to do so. */
static bool is_inside(const po_graph *graph, po_value_id v, bool half) {
    const po_node *node = po_graph_producer(graph, v);
    return is_held(graph, v, half) || (node && po_lower_is_test(graph, node));
}

/* Pieces are for kernels of a CPU: half, for a GPU, has one step a node. */
static bool has_sum(po_ctx *ctx, const po_graph *graph, const po_node *node, bool half) {
    po_arena *scratch = po_arena_create(ctx);
    bool fits = po_lower_sum_fits(ctx, scratch, graph, node, !half);
    po_arena_free(scratch);
    return fits;
}

static po_region_part part_of(po_ctx *ctx, const po_graph *graph, const po_node *node, bool half) {
    const form *f = form_of(node);
    const bool map = !f && po_lower_is_map(graph, node);
    if ((!f && !map) || node->n_out < 1)
        return PO_REGION_NOT;
    for (uint32_t k = 0; k < node->n_out; k++)
        if (node->out[k] == PO_NONE || !is_inside(graph, node->out[k], half))
            return PO_REGION_NOT;
    for (uint32_t k = 0; k < node->n_in; k++)
        if (node->in[k] != PO_NONE && !is_inside(graph, node->in[k], half) &&
            (map || !po_graph_constant(graph, node->in[k])))
            return PO_REGION_NOT;
    if (map)
        return PO_REGION_MAP;
    if (f->lower == po_lower_max_pool)
        return node->n_out == 1 ? f->part : PO_REGION_NOT;
    if (f->lower == po_lower_softmax || f->lower == po_lower_norm)
        return po_lower_rows_fit(graph, node) ? f->part : PO_REGION_NOT;
    if (f->lower == po_lower_layer)
        return po_lower_layer_fits(graph, node) ? f->part : PO_REGION_NOT;
    if (f->lower == po_lower_instance)
        return po_lower_instance_fits(graph, node) ? f->part : PO_REGION_NOT;
    if (f->lower == po_lower_reduce_max)
        return po_lower_maximum_fits(graph, node) ? f->part : PO_REGION_NOT;
    return has_sum(ctx, graph, node, half) ? f->part : PO_REGION_NOT;
}

po_region_part po_lower_part(void *user, const po_graph *graph, const po_node *node) {
    return part_of(user, graph, node, false);
}

po_region_part po_lower_part_typed(void *user, const po_graph *graph, const po_node *node) {
    return part_of(user, graph, node, true);
}

static po_status lower_node(po_lowering *l, const po_node *node) {
    const form *f = form_of(node);
    po_status status = f ? f->lower(l, node) : po_lower_map(l, node);
    if (status == PO_UNSUPPORTED)
        return po_fail(l->ctx, PO_UNSUPPORTED, "node '%s' (%s) has no lowering in this form",
                       *node->name ? node->name : l->graph->values[node->out[0]].name,
                       node->op_type);
    return status;
}

/* Of values that lie in one tensor, the last. */
static const po_value_id *values_of(const po_lowering *l) {
    po_value_id *value = PO_NEW_N(l->arena, po_value_id, l->mu->n_tensors + 1);
    for (uint32_t i = 0; i < l->mu->n_tensors; i++)
        value[i] = PO_NONE;
    for (po_value_id v = 0; v < l->graph->n_values; v++)
        if (l->view[v].set)
            value[l->view[v].tensor] = v;
    return value;
}

/* A test and what reads it have to be of one region. */
static po_status check_borders(const po_lowering *l) {
    for (uint32_t i = 0; i < l->region->n_in + l->region->n_out; i++) {
        bool in = i < l->region->n_in;
        po_value_id v = in ? l->region->in[i] : l->region->out[i - l->region->n_in];
        if (po_dtype_class_of(l->graph->values[v].type.dtype) != PO_CLASS_FLOAT)
            return po_fail(l->ctx, PO_UNSUPPORTED,
                           "value '%s' crosses the region's border, and is no float",
                           l->graph->values[v].name);
    }
    return PO_OK;
}

po_status po_lower_region(po_ctx *ctx, po_arena *arena, const po_graph *graph,
                          const po_region *region, const char *name, po_lowered *lowered) {
    po_lowering l = {.ctx = ctx,
                     .arena = arena,
                     .graph = graph,
                     .region = region,
                     .mu = po_mu_create(arena, name),
                     .view = PO_NEW_N(arena, po_view, graph->n_values),
                     .channels_last = PO_NEW_N(arena, bool, graph->n_values),
                     .done = PO_NEW_N(arena, bool, graph->n_nodes),
                     .place = PO_NEW_N(arena, uint32_t, graph->n_nodes),
                     .output = PO_NEW_N(arena, uint32_t, graph->n_values),
                     .joined = PO_NEW_N(arena, po_lower_part_of, graph->n_values)};
    for (uint32_t i = 0; i < graph->n_nodes; i++)
        l.place[i] = PO_NONE;
    for (uint32_t i = 0; i < graph->n_values; i++)
        l.output[i] = PO_NONE;
    for (uint32_t i = 0; i < region->n_nodes; i++)
        l.place[region->nodes[i]] = i;
    for (uint32_t i = 0; i < region->n_out; i++)
        l.output[region->out[i]] = i;
    PO_TRY(check_borders(&l));
    mark_layouts(&l);
    po_lower_plan_joins(&l);
    for (uint32_t i = 0; i < region->n_in; i++)
        enter(&l, region->in[i], i);
    for (uint32_t i = 0; i < region->n_nodes; i++) {
        po_node_id id = region->nodes[i];
        if (!l.done[id])
            PO_TRY(lower_node(&l, &graph->nodes[id]));
        l.done[id] = true;
    }
    for (uint32_t i = 0; i < region->n_out; i++)
        leave(&l, region->out[i]);
    po_lower_part_edges(l.mu);
    *lowered = (po_lowered){l.mu, l.weights, l.n_weights, values_of(&l)};
    return PO_OK;
}
