/* Attributes become inputs, operators get their new names, and changed defaults are written out. A
 * rule refuses what the new version cannot say, or what takes a shape that is not known. */
#include "simplify/opset_rules.h"

#include "ops/recipe/recipe.h"

#include <string.h>

po_status po_raise_refuse(const po_raising *r, po_node_id id, const char *reason) {
    const po_node *n = &r->graph->nodes[id];
    return po_fail(r->ctx, PO_BAD_USE, "node '%s' (%s) cannot be written for opset %lld: %s",
                   n->name, n->op_type, (long long)r->version, reason);
}

static po_dtype dtype_of(const po_raising *r, po_value_id v) {
    const po_type *t = &r->graph->values[v].type;
    return t->kind == PO_TYPE_TENSOR ? t->dtype : PO_DT_NONE;
}

static void set_input(const po_raising *r, po_node_id id, uint32_t input, po_value_id value) {
    if (r->graph->nodes[id].n_in <= input)
        po_graph_resize_inputs(r->graph, id, input + 1);
    po_graph_set_input(r->graph, id, input, value);
}

/* A scalar of any number type. */
static po_status scalar(const po_raising *r, po_dtype dtype, double number, po_value_id *value) {
    if (po_dtype_class_of(dtype) == PO_CLASS_FLOAT) {
        *value = po_add_floats(r->graph, NULL, dtype, 0, NULL, &number);
        return PO_OK;
    }
    po_tensor *t;
    PO_TRY(po_tensor_create(r->ctx, r->graph->arena, dtype, 0, NULL, &t));
    po_tensor_set_int(t, 0, (int64_t)number);
    *value = po_graph_add_constant(r->graph, NULL, t);
    return PO_OK;
}

static bool is_used(const po_graph *graph, po_value_id v) {
    return v != PO_NONE && (graph->values[v].n_uses || graph->values[v].n_outputs);
}

/* --- attributes --- */

po_status po_raise_drop(const po_raising *r, po_node_id id, const char *names) {
    po_node_remove_attr(r->graph, id, names);
    return PO_OK;
}

po_status po_raise_inference(const po_raising *r, po_node_id id, const char *name) {
    if (po_node_int(&r->graph->nodes[id], name, 0) == 0)
        return po_raise_refuse(r, id, "it is in training mode");
    return po_raise_drop(r, id, name);
}

po_status po_raise_spatial(const po_raising *r, po_node_id id, const char *text) {
    (void)text;
    if (po_node_int(&r->graph->nodes[id], "spatial", 1) != 1)
        return po_raise_refuse(r, id, "its statistics are for each position");
    return po_raise_drop(r, id, "spatial");
}

po_status po_raise_to_input(const po_raising *r, po_node_id id, const char *name) {
    uint32_t n;
    const int64_t *values = po_node_ints(&r->graph->nodes[id], name, &n);
    if (values && n)
        set_input(r, id, 1, po_add_i64s(r->graph, NULL, n, values));
    po_node_remove_attr(r->graph, id, name);
    return PO_OK;
}

/* --- 7 --- */

/* Appends `count` axes of length 1 to an input. */
static po_status trail_ones(const po_raising *r, po_node_id id, uint32_t input, uint32_t count) {
    po_graph *g = r->graph;
    po_value_id v = g->nodes[id].in[input];
    int rank = po_rank_of(g, v);
    int64_t axes[PO_MAX_RANK];
    if (rank < 0 || (uint32_t)rank + count > PO_MAX_RANK)
        return po_raise_refuse(r, id, "the rank of an input is not known");
    if (count == 0)
        return PO_OK;
    const po_tensor *t = po_graph_constant(g, v);
    if (t) {
        int64_t dims[PO_MAX_RANK];
        for (uint32_t i = 0; i < t->rank + count; i++)
            dims[i] = i < t->rank ? t->dims[i] : 1;
        po_tensor *longer = po_arena_memdup(g->arena, t, sizeof *t);
        longer->rank = t->rank + count;
        longer->dims = po_arena_memdup(g->arena, dims, longer->rank * sizeof *dims);
        longer->origin = NULL;
        po_value_id made = po_graph_add_constant(g, NULL, longer);
        po_set_recipe(
            g, made, po_recipe_reshape(g->arena, po_recipe_of(g, g->arena, v), longer->rank, dims));
        po_graph_set_input(g, id, input, made);
        return PO_OK;
    }
    for (uint32_t i = 0; i < count; i++)
        axes[i] = rank + (int64_t)i;
    po_type type = po_type_unranked(dtype_of(r, v));
    po_value_id wide = po_add_op(g, id, PO_OP_Unsqueeze, 1, &v, &type);
    po_node_set_ints(g, g->values[wide].producer, "axes", count, axes);
    po_graph_set_input(g, id, input, wide);
    return PO_OK;
}

po_status po_raise_broadcast(const po_raising *r, po_node_id id, const char *text) {
    (void)text;
    const po_node *n = &r->graph->nodes[id];
    if (po_node_int(n, "broadcast", 0) && po_node_attr(n, "axis")) {
        int wide = po_rank_of(r->graph, n->in[0]), narrow = po_rank_of(r->graph, n->in[1]);
        int64_t axis = po_node_int(n, "axis", 0);
        if (wide < 0 || narrow < 0)
            return po_raise_refuse(r, id, "the ranks of its inputs are not known");
        axis += axis < 0 ? wide : 0;
        if (axis < 0 || axis + narrow > wide)
            return po_raise_refuse(r, id, "its axis does not fit its inputs");
        PO_TRY(trail_ones(r, id, 1, (uint32_t)(wide - narrow - axis)));
    }
    po_raise_drop(r, id, "broadcast");
    return po_raise_drop(r, id, "axis");
}

/* Slopes of rank 1 were for the channels. */
po_status po_raise_prelu(const po_raising *r, po_node_id id, const char *text) {
    (void)text;
    const po_node *n = &r->graph->nodes[id];
    int rank = po_rank_of(r->graph, n->in[0]), slopes = po_rank_of(r->graph, n->in[1]);
    if (slopes == 1 && po_dim_of(r->graph, n->in[1], 0) == 1)
        return PO_OK;
    if (rank < 2 || slopes < 0)
        return po_raise_refuse(r, id, "the ranks of its inputs are not known");
    return slopes == 1 ? trail_ones(r, id, 1, (uint32_t)rank - 2) : PO_OK;
}

/* --- 9, 10: inputs for attributes, Upsample becomes Resize --- */

po_status po_raise_upsample_input(const po_raising *r, po_node_id id, const char *text) {
    (void)text;
    uint32_t n;
    const float *scales = po_node_floats(&r->graph->nodes[id], "scales", &n);
    if (!scales || n == 0 || n > PO_MAX_RANK)
        return po_raise_refuse(r, id, "its scales are missing");
    int64_t dim = n;
    double values[PO_MAX_RANK];
    for (uint32_t i = 0; i < n; i++)
        values[i] = (double)scales[i];
    set_input(r, id, 1, po_add_floats(r->graph, NULL, PO_F32, 1, &dim, values));
    return po_raise_drop(r, id, "scales");
}

static void rename_op(const po_raising *r, po_node_id id, po_op_id op) {
    r->graph->nodes[id].op = op;
    r->graph->nodes[id].op_type = po_op_row_of(op)->name;
}

po_status po_raise_upsample(const po_raising *r, po_node_id id, const char *text) {
    (void)text;
    rename_op(r, id, PO_OP_Resize);
    return PO_OK;
}

po_status po_raise_slice(const po_raising *r, po_node_id id, const char *text) {
    (void)text;
    static const char *const names[] = {"starts", "ends", "axes"};
    for (uint32_t i = 0; i < 3; i++) {
        uint32_t n;
        const int64_t *values = po_node_ints(&r->graph->nodes[id], names[i], &n);
        if (!values && i < 2)
            return po_raise_refuse(r, id, "its bounds are missing");
        if (values)
            set_input(r, id, i + 1, po_add_i64s(r->graph, NULL, n, values));
        po_node_remove_attr(r->graph, id, names[i]);
    }
    return PO_OK;
}

po_status po_raise_topk(const po_raising *r, po_node_id id, const char *text) {
    (void)text;
    int64_t k = po_node_int(&r->graph->nodes[id], "k", -1);
    if (k < 0)
        return po_raise_refuse(r, id, "its k is missing");
    set_input(r, id, 1, po_add_i64s(r->graph, NULL, 1, &k));
    return po_raise_drop(r, id, "k");
}

/* --- 11 --- */

po_status po_raise_clip(const po_raising *r, po_node_id id, const char *text) {
    (void)text;
    static const char *const names[] = {"min", "max"};
    for (uint32_t i = 0; i < 2; i++) {
        const po_node *n = &r->graph->nodes[id];
        po_dtype dtype = dtype_of(r, n->in[0]);
        po_value_id bound;
        if (!po_node_attr(n, names[i]))
            continue;
        if (po_dtype_class_of(dtype) != PO_CLASS_FLOAT)
            return po_raise_refuse(r, id, "the type of its input is not known");
        PO_TRY(scalar(r, dtype, (double)po_node_float(n, names[i], 0), &bound));
        set_input(r, id, i + 1, bound);
        po_node_remove_attr(r->graph, id, names[i]);
    }
    return PO_OK;
}

po_status po_raise_pad(const po_raising *r, po_node_id id, const char *text) {
    (void)text;
    uint32_t count;
    const po_node *n = &r->graph->nodes[id];
    const int64_t *pads = po_node_ints(n, "pads", &count);
    double value = (double)po_node_float(n, "value", 0);
    po_dtype dtype = dtype_of(r, n->in[0]);
    if (!pads)
        return po_raise_refuse(r, id, "its pads are missing");
    set_input(r, id, 1, po_add_i64s(r->graph, NULL, count, pads));
    if (value != 0) {
        po_value_id fill;
        if (po_dtype_class_of(dtype) != PO_CLASS_FLOAT)
            return po_raise_refuse(r, id, "the type of its input is not known");
        PO_TRY(scalar(r, dtype, value, &fill));
        set_input(r, id, 2, fill);
    }
    po_raise_drop(r, id, "pads");
    return po_raise_drop(r, id, "value");
}

/* Until then coordinates were index / scale, and nearest meant rounding down, up where the map
 * shrinks: the latter has no constant to name it. */
po_status po_raise_resize(const po_raising *r, po_node_id id, const char *text) {
    (void)text;
    po_graph *g = r->graph;
    const po_node *n = &g->nodes[id];
    bool nearest = po_node_string_is(n, "mode", "nearest", "nearest");
    po_value_id scales = n->n_in > 1 ? n->in[1] : PO_NONE;
    const po_tensor *t = scales == PO_NONE ? NULL : po_graph_constant(g, scales);
    if (scales == PO_NONE)
        return po_raise_refuse(r, id, "its scales are missing");
    for (int64_t i = 0; nearest && (!t || i < t->count); i++)
        if (!t || !(po_tensor_f64(t, i) >= 1))
            return po_raise_refuse(r, id,
                                   t ? "it makes the map smaller" : "its scales are not constant");
    int64_t none = 0;
    po_value_id roi = po_add_floats(g, NULL, PO_F32, 1, &none, NULL);
    set_input(r, id, 2, scales);
    set_input(r, id, 1, roi);
    po_node_set_string(g, id, "coordinate_transformation_mode", "asymmetric");
    if (nearest)
        po_node_set_string(g, id, "nearest_mode", "floor");
    return PO_OK;
}

po_status po_raise_resize_mode(const po_raising *r, po_node_id id, const char *text) {
    (void)text;
    if (po_node_string_is(&r->graph->nodes[id], "coordinate_transformation_mode",
                          "tf_half_pixel_for_nn", "half_pixel"))
        return po_raise_refuse(r, id, "its coordinates (tf_half_pixel_for_nn) were dropped");
    return PO_OK;
}

po_status po_raise_scatter(const po_raising *r, po_node_id id, const char *text) {
    (void)text;
    rename_op(r, id, PO_OP_ScatterElements);
    return PO_OK;
}

/* --- 12, 13 --- */

/* The ratio has no effect in inference. */
po_status po_raise_dropout(const po_raising *r, po_node_id id, const char *text) {
    (void)text;
    const po_node *n = &r->graph->nodes[id];
    if (n->n_out > 1 && is_used(r->graph, n->out[1]))
        return po_raise_refuse(r, id, "its mask is used");
    return po_raise_drop(r, id, "ratio");
}

/* Before 13 the axis split the shape in two and the function went over all that is behind it. */
po_status po_raise_softmax(const po_raising *r, po_node_id id, const char *text) {
    (void)text;
    po_graph *g = r->graph;
    const po_node *n = &g->nodes[id];
    po_value_id x = n->in[0], y = n->out[0];
    int rank = po_rank_of(g, x);
    int64_t axis = po_node_int(n, "axis", 1);
    if (rank < 1)
        return po_raise_refuse(r, id, "the rank of its input is not known");
    axis += axis < 0 ? rank : 0;
    if (axis < 0 || axis >= rank)
        return po_raise_refuse(r, id, "its axis does not fit its input");
    bool alone = true; /* all that is behind the axis has length 1 */
    for (int i = (int)axis + 1; i < rank; i++)
        alone &= po_dim_of(g, x, i) == 1;
    if (alone) {
        po_node_set_int(g, id, "axis", axis);
        return PO_OK;
    }
    po_type type = po_type_unranked(dtype_of(r, x)), whole = g->values[y].type;
    po_value_id flat = po_add_op(g, id, PO_OP_Flatten, 1, &x, &type), shape;
    po_node_set_int(g, g->values[flat].producer, "axis", axis);
    if (po_type_static(&whole)) {
        int64_t dims[PO_MAX_RANK];
        for (int i = 0; i < rank; i++)
            dims[i] = whole.dims[i].value;
        shape = po_add_i64s(g, NULL, (uint32_t)rank, dims);
    } else {
        po_type ints = po_type_unranked(PO_I64);
        shape = po_add_op(g, id, PO_OP_Shape, 1, &x, &ints);
    }
    po_graph_set_input(g, id, 0, flat);
    po_node_set_int(g, id, "axis", 1);
    po_value_id inner = po_graph_add_value(g, NULL, &type);
    po_graph_set_output(g, id, 0, inner);
    po_value_id in[2] = {inner, shape};
    po_ops_add(g, id,
               &(po_node_spec){.op = PO_OP_Reshape,
                               .name = g->values[inner].name,
                               .n_in = 2,
                               .in = in,
                               .n_out = 1,
                               .out = &y});
    return PO_OK;
}

/* --- 14 and later --- */

po_status po_raise_norm_outputs(const po_raising *r, po_node_id id, const char *text) {
    (void)text;
    po_graph *g = r->graph;
    for (uint32_t i = 1; i < g->nodes[id].n_out; i++) {
        if (is_used(g, g->nodes[id].out[i]))
            return po_raise_refuse(r, id, "it is in training mode");
        po_graph_set_output(g, id, i, PO_NONE);
    }
    g->nodes[id].n_out = 1;
    return PO_OK;
}

po_status po_raise_roi_align(const po_raising *r, po_node_id id, const char *text) {
    (void)text;
    if (!po_node_attr(&r->graph->nodes[id], "coordinate_transformation_mode"))
        po_node_set_string(r->graph, id, "coordinate_transformation_mode", "output_half_pixel");
    return PO_OK;
}

po_status po_raise_split(const po_raising *r, po_node_id id, const char *text) {
    (void)text;
    const po_node *n = &r->graph->nodes[id];
    if (n->n_in < 2 || n->in[1] == PO_NONE)
        po_node_set_int(r->graph, id, "num_outputs", n->n_out);
    return PO_OK;
}

po_status po_raise_dft(const po_raising *r, po_node_id id, const char *text) {
    (void)text;
    po_value_id axis;
    PO_TRY(scalar(r, PO_I64, (double)po_node_int(&r->graph->nodes[id], "axis", 1), &axis));
    set_input(r, id, 2, axis);
    return po_raise_drop(r, id, "axis");
}

po_status po_raise_grid_sample(const po_raising *r, po_node_id id, const char *text) {
    (void)text;
    const po_node *n = &r->graph->nodes[id];
    if (po_node_string_is(n, "mode", "bilinear", "linear"))
        po_node_set_string(r->graph, id, "mode", "linear");
    else if (po_node_string_is(n, "mode", "bicubic", "linear"))
        po_node_set_string(r->graph, id, "mode", "cubic");
    return PO_OK;
}
