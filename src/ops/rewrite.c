/* What rewrites ask of a graph, and how they add to it. */
#include "ops/rewrite.h"

#include "base/num.h"
#include "ops/recipe/recipe.h"

const po_node *po_made_by(const po_graph *graph, po_value_id value, po_op_id op) {
    const po_node *n = po_graph_producer(graph, value);
    return n && n->op == op ? n : NULL;
}

bool po_read_once(const po_graph *graph, po_value_id value) {
    return po_graph_sole_use(graph, value) != NULL;
}

const po_node *po_made_alone_by(const po_graph *graph, po_value_id value, po_op_id op) {
    const po_node *n = po_made_by(graph, value, op);
    return n && po_read_once(graph, value) ? n : NULL;
}

static bool is_number(const po_tensor *t) {
    return t && po_dtype_class_of(t->dtype) != PO_CLASS_NONE;
}

bool po_scalar_constant(const po_graph *graph, po_value_id value, double *number) {
    const po_tensor *t = po_graph_constant(graph, value);
    if (!is_number(t) || t->count != 1)
        return false;
    *number = po_tensor_f64(t, 0);
    return true;
}

bool po_all_equal(const po_tensor *tensor, double number) {
    if (!is_number(tensor))
        return false;
    for (int64_t i = 0; i < tensor->count; i++)
        if (po_tensor_f64(tensor, i) != number)
            return false;
    return true;
}

bool po_rearrangeable(const po_graph *graph, po_value_id value) {
    if (value == PO_NONE)
        return false;
    const po_type *t = &graph->values[value].type;
    return t->kind == PO_TYPE_TENSOR && (t->dtype == PO_F32 || t->dtype == PO_F64);
}

const po_dim *po_static_dims(const po_graph *graph, po_value_id value, uint32_t *rank) {
    if (value == PO_NONE || !po_type_static(&graph->values[value].type))
        return NULL;
    const po_type *t = &graph->values[value].type;
    *rank = t->rank;
    static const po_dim none = {1, NULL}; /* rank 0: a pointer that is not NULL */
    return t->rank ? t->dims : &none;
}

int po_rank_of(const po_graph *graph, po_value_id value) {
    if (value == PO_NONE || !graph->values[value].type.has_rank)
        return -1;
    return (int)graph->values[value].type.rank;
}

int64_t po_dim_of(const po_graph *graph, po_value_id value, int axis) {
    int rank = po_rank_of(graph, value);
    if (axis < 0)
        axis += rank;
    return rank < 0 || axis < 0 || axis >= rank ? -1 : graph->values[value].type.dims[axis].value;
}

int64_t po_places(const po_dim *dims, uint32_t n) {
    int64_t product = 1;
    for (uint32_t i = 0; i < n; i++)
        if (!po_mul_i64(product, dims[i].value, &product))
            return -1;
    return product;
}

bool po_told_shape(const po_type *x, const po_type *y, uint32_t but, int64_t *shape) {
    uint32_t copies = 0, left = 0;
    if (!x->has_rank || !y->has_rank || y->rank > PO_MAX_RANK)
        return false;
    for (uint32_t i = 0; i < y->rank; i++) {
        const bool same = i < x->rank && i != but && po_dim_same(x->dims[i], y->dims[i]);
        if (y->dims[i].value == 0)
            return false; /* as a number it would copy */
        shape[i] = y->dims[i].value > 0 ? y->dims[i].value : same ? 0 : -1;
        copies += shape[i] == 0;
        left += shape[i] < 0;
    }
    return left == 0 || (left == 1 && copies == 0);
}

bool po_same_dims(const po_graph *graph, po_value_id a, po_value_id b) {
    const po_type *t = &graph->values[a].type, *u = &graph->values[b].type;
    if (!t->has_rank || !u->has_rank || t->rank != u->rank)
        return false;
    for (uint32_t i = 0; i < t->rank; i++)
        if (!po_dim_same(t->dims[i], u->dims[i]))
            return false;
    return true;
}

bool po_same_dims_but(const po_graph *graph, po_value_id a, po_value_id b, int axis) {
    const po_type *t = &graph->values[a].type, *u = &graph->values[b].type;
    if (!t->has_rank || !u->has_rank || t->rank == 0 || t->rank != u->rank)
        return false;
    for (int i = 0; i < (int)t->rank; i++)
        if (i != axis && !po_dim_same(t->dims[i], u->dims[i]))
            return false;
    return true;
}

static bool copies_blocks(const po_graph *graph, const po_node *n) {
    if (!po_node_string_is(n, "mode", "nearest", "nearest") || po_node_attr(n, "axes"))
        return false;
    if (n->op == PO_OP_Upsample || po_op_version(graph, n) < 11)
        return true;
    bool asymmetric =
        po_node_string_is(n, "coordinate_transformation_mode", "asymmetric", "half_pixel");
    bool half = po_node_string_is(n, "coordinate_transformation_mode", "half_pixel", "half_pixel");
    bool floors = po_node_string_is(n, "nearest_mode", "floor", "round_prefer_floor");
    bool rounds =
        po_node_string_is(n, "nearest_mode", "round_prefer_floor", "round_prefer_floor") ||
        po_node_string_is(n, "nearest_mode", "round_prefer_ceil", "round_prefer_floor");
    return (asymmetric && floors) || (half && rounds);
}

bool po_resize_scales(const po_graph *graph, const po_node *n, uint32_t rank, double *scale) {
    const uint32_t at = n->op == PO_OP_Resize && po_op_version(graph, n) >= 11 ? 2 : 1;
    uint32_t count = 0;
    const po_tensor *t =
        n->n_in > at && n->in[at] != PO_NONE ? po_graph_constant(graph, n->in[at]) : NULL;
    const float *attr = n->n_in > at ? NULL : po_node_floats(n, "scales", &count);
    if (rank > PO_MAX_RANK || (t ? t->count : (int64_t)count) != (int64_t)rank)
        return false;
    for (uint32_t i = 0; i < rank; i++)
        scale[i] = t ? po_tensor_f64(t, i) : (double)attr[i];
    return true;
}

/* Scales that are not whole may give shapes as if they were: shapes are asked only for sizes. */
bool po_whole_factors(const po_graph *graph, const po_node *n, uint32_t rank, int64_t *factor) {
    enum { MOST = 64 };
    bool resize = n->op == PO_OP_Resize && po_op_version(graph, n) >= 11;
    uint32_t from_rank = 0, to_rank = 0;
    bool sizes = resize && n->n_in > 3 && n->in[3] != PO_NONE;
    double scale[PO_MAX_RANK];
    const po_dim *from = po_static_dims(graph, n->in[0], &from_rank);
    const po_dim *to = po_static_dims(graph, n->out[0], &to_rank);
    if (sizes ? !from || !to || from_rank != rank || to_rank != rank
              : !po_resize_scales(graph, n, rank, scale))
        return false;
    for (uint32_t i = 0; i < rank; i++) {
        if (sizes && from[i].value < 1)
            return false;
        double s = sizes ? (double)to[i].value / (double)from[i].value : scale[i];
        factor[i] = s >= 1 && s <= MOST ? (int64_t)s : 0;
        if ((double)factor[i] != s)
            return false;
    }
    return true;
}

bool po_repeats(const po_graph *graph, const po_node *n, uint32_t rank, int64_t *factor) {
    return (n->op == PO_OP_Resize || n->op == PO_OP_Upsample) && copies_blocks(graph, n) &&
           po_whole_factors(graph, n, rank, factor);
}

bool po_number_or_none(const po_graph *graph, po_value_id value) {
    const po_tensor *t = value == PO_NONE ? NULL : po_graph_constant(graph, value);
    return value == PO_NONE || (t && t->count == 1 && t->rank <= 1);
}

uint32_t po_axes_of(const po_graph *graph, const po_node *node, int rank, uint32_t most,
                    uint32_t *axes) {
    uint32_t count = 0;
    const int64_t *attr = po_node_ints(node, "axes", &count);
    const po_tensor *t = !attr && node->n_in > 1 && node->in[1] != PO_NONE
                             ? po_graph_constant(graph, node->in[1])
                             : NULL;
    const int64_t n = t ? t->count : (int64_t)count;
    if ((!attr && !t) || n > (int64_t)most || rank < 0)
        return 0;
    for (uint32_t i = 0; i < (uint32_t)n; i++) {
        int64_t at = t ? po_tensor_int(t, i) : attr[i];
        at += at < 0 ? rank : 0;
        if (at < 0 || at >= rank)
            return 0;
        axes[i] = (uint32_t)at;
    }
    return (uint32_t)n;
}

uint32_t po_reduced_axes(const po_graph *graph, const po_node *node, uint32_t most,
                         uint32_t *axes) {
    return po_axes_of(graph, node, po_rank_of(graph, node->in[0]), most, axes);
}

po_value_id po_add_floats(po_graph *graph, const char *name, po_dtype dtype, uint32_t rank,
                          const int64_t *dims, const double *values) {
    po_tensor *t = PO_NEW(graph->arena, po_tensor);
    t->dtype = dtype;
    t->rank = rank;
    t->dims = po_arena_memdup(graph->arena, dims, rank * sizeof *dims);
    t->count = 1;
    for (uint32_t i = 0; i < rank; i++)
        t->count *= dims[i];
    t->size = (size_t)t->count * (po_dtype_bits(dtype) / 8);
    t->data = po_arena_alloc(graph->arena, t->size);
    float *narrow = po_tensor_data(t);
    for (int64_t i = 0; dtype == PO_F32 && i < t->count; i++)
        narrow[i] = (float)values[i];
    for (int64_t i = 0; dtype != PO_F32 && i < t->count; i++)
        po_tensor_set_f64(t, i, values[i]);
    po_value_id value = po_graph_add_constant(graph, name, t);
    po_set_recipe_literal(graph, value, values);
    return value;
}

po_value_id po_add_i64s(po_graph *graph, const char *name, uint32_t n, const int64_t *values) {
    return po_graph_add_constant(graph, name, po_tensor_i64(graph->arena, n, values));
}

po_value_id po_add_i64s_shaped(po_graph *graph, uint32_t rank, const int64_t *dims,
                               const int64_t *values) {
    uint32_t count = 1;
    for (uint32_t i = 0; i < rank; i++)
        count *= (uint32_t)dims[i];
    po_tensor *t = po_tensor_i64(graph->arena, count, values);
    t->rank = rank;
    t->dims = po_arena_memdup(graph->arena, dims, rank * sizeof *dims);
    return po_graph_add_constant(graph, NULL, t);
}

static po_value_id add_node(po_graph *graph, po_node_id place, po_op_id op, uint32_t n_in,
                            const po_value_id *in, uint32_t n_attr, const po_attr *attrs,
                            const po_type *type) {
    po_value_id out = po_graph_add_value(graph, NULL, type);
    /* Nodes are named after what they make, so that profiles and reports can tell them apart. */
    po_ops_add(graph, place,
               &(po_node_spec){.op = op,
                               .name = graph->values[out].name,
                               .n_in = n_in,
                               .in = in,
                               .n_out = 1,
                               .out = &out,
                               .n_attr = n_attr,
                               .attr = attrs});
    return out;
}

po_value_id po_add_op(po_graph *graph, po_node_id place, po_op_id op, uint32_t n_in,
                      const po_value_id *in, const po_type *type) {
    return add_node(graph, place, op, n_in, in, 0, NULL, type);
}

po_value_id po_add_like(po_graph *graph, po_node_id place, const po_node *like, uint32_t n_in,
                        const po_value_id *in, const po_type *type) {
    const po_attr *attrs = po_arena_memdup(graph->arena, like->attr, like->n_attr * sizeof *attrs);
    return add_node(graph, place, like->op, n_in, in, like->n_attr, attrs, type);
}

po_value_id po_add_transpose(po_graph *graph, po_node_id place, po_value_id x, uint32_t rank,
                             const int64_t *perm, const po_type *type) {
    const po_type unknown = po_type_unranked(graph->values[x].type.dtype);
    po_value_id y = po_add_op(graph, place, PO_OP_Transpose, 1, &x, type ? type : &unknown);
    po_node_set_ints(graph, graph->values[y].producer, "perm", rank, perm);
    return y;
}

po_value_id po_add_cast(po_graph *graph, po_node_id place, po_value_id x, po_dtype to) {
    po_type type = graph->values[x].type;
    type.dtype = to;
    po_value_id y = po_add_op(graph, place, PO_OP_Cast, 1, &x, &type);
    po_node_set_int(graph, graph->values[y].producer, "to", (int64_t)to);
    return y;
}

po_value_id po_add_concat(po_graph *graph, po_node_id place, uint32_t n, const po_value_id *in,
                          int64_t axis, const po_type *type) {
    po_value_id y = po_add_op(graph, place, PO_OP_Concat, n, in, type);
    po_node_set_int(graph, graph->values[y].producer, "axis", axis);
    return y;
}

po_value_id po_add_slice(po_graph *graph, po_node_id place, po_value_id x, uint32_t n,
                         const int64_t *axes, const int64_t *starts, const int64_t *ends,
                         const int64_t *steps, const po_type *type) {
    if (po_model_opset(graph->model, "") < 10) {
        po_value_id y = po_add_op(graph, place, PO_OP_Slice, 1, &x, type);
        po_node_id id = graph->values[y].producer;
        po_node_set_ints(graph, id, "axes", n, axes);
        po_node_set_ints(graph, id, "starts", n, starts);
        po_node_set_ints(graph, id, "ends", n, ends);
        return y;
    }
    po_value_id in[5] = {x, po_add_i64s(graph, NULL, n, starts), po_add_i64s(graph, NULL, n, ends),
                         po_add_i64s(graph, NULL, n, axes), PO_NONE};
    if (steps)
        in[4] = po_add_i64s(graph, NULL, n, steps);
    return po_add_op(graph, place, PO_OP_Slice, steps ? 5 : 4, in, type);
}

po_value_id po_add_reshape(po_graph *graph, po_node_id place, po_value_id x, uint32_t rank,
                           const int64_t *dims) {
    po_type type = po_type_tensor_i64(graph->arena, graph->values[x].type.dtype, rank, dims);
    return po_add_reshape_told(graph, place, x, rank, dims, PO_NONE, &type);
}

po_value_id po_add_reshape_told(po_graph *graph, po_node_id place, po_value_id x, uint32_t n,
                                const int64_t *dims, po_value_id more, const po_type *type) {
    const po_type unknown = po_type_unranked(graph->values[x].type.dtype);
    po_value_id in[2] = {x, po_add_i64s(graph, NULL, n, dims)};
    if (more != PO_NONE) {
        const int64_t rank = n + po_dim_of(graph, more, 0);
        const po_type whole = po_type_tensor_i64(graph->arena, PO_I64, 1, &rank);
        in[1] = po_add_concat(graph, place, 2, (po_value_id[]){in[1], more}, 0, &whole);
    }
    return po_add_op(graph, place, PO_OP_Reshape, 2, in, type ? type : &unknown);
}

po_value_id po_add_lengths(po_graph *graph, po_node_id place, po_value_id x, int64_t from,
                           int64_t n) {
    const int64_t axis = 0, to = from + n;
    const po_type all = po_type_tensor(graph->arena, PO_I64, 1, &PO_DIM_UNKNOWN);
    const po_type some = po_type_tensor_i64(graph->arena, PO_I64, 1, &n);
    po_value_id shape = po_add_op(graph, place, PO_OP_Shape, 1, &x, &all);
    return po_add_slice(graph, place, shape, 1, &axis, &from, &to, NULL, &some);
}

void po_substitute(po_graph *graph, po_value_id from, po_value_id to) {
    po_node_id producer = graph->values[from].producer;
    if (!po_graph_replace_uses(graph, from, to)) {
        po_node_id id = producer;
        const po_node *n = &graph->nodes[id];
        if (n->op == PO_OP_Identity && n->in[0] == to)
            return;
        po_value_id out = from;
        uint32_t output = graph->values[from].output;
        po_type type = graph->values[from].type;
        if (n->n_out == 1)
            po_graph_set_output(graph, id, output, PO_NONE);
        else
            po_graph_set_output(graph, id, output, po_graph_add_value(graph, NULL, &type));
        po_ops_add(graph, id,
                   &(po_node_spec){.op = PO_OP_Identity,
                                   .name = graph->values[from].name,
                                   .n_in = 1,
                                   .in = &to,
                                   .n_out = 1,
                                   .out = &out});
    }
    if (producer == PO_NONE)
        return;
    const po_node *n = &graph->nodes[producer];
    for (uint32_t i = 0; i < n->n_out; i++)
        if (n->out[i] != PO_NONE &&
            (graph->values[n->out[i]].n_uses || graph->values[n->out[i]].n_outputs))
            return;
    po_graph_remove_node(graph, producer);
}
