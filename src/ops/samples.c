/* Samples are followed by indexed sums: what an operator makes of sample i must be read of sample
 * i. Reshapes keep them apart where an axis still counts them, with as many places before it. */
#include "base/num.h"
#include "ops/along.h"
#include "ops/rewrite.h"
#include "ops/samples_internal.h"
#include "ops/sem/sem.h"

enum { MOST_OUTPUTS = 8 };

po_status po_samples_mixed(const po_following *f, const po_node *node, const char *why) {
    bool named = node->n_out > 0 && node->out[0] != PO_NONE;
    return po_fail(f->ctx, PO_UNSUPPORTED, "%s '%s': %s", node->op_type,
                   named ? f->graph->values[node->out[0]].name : "", why);
}

/* --- by sums --- */

static int operand_axis(const po_following *f, const po_node *node, const po_operand *op) {
    return op->kind == PO_OPERAND_TABLE ? PO_NO_SAMPLES : f->axis[node->in[op->input]];
}

static bool keeps_along(const po_following *f, const po_node *node, const po_sum *sum,
                        uint32_t axis) {
    if (sum->dims[axis] % f->samples != 0)
        return false;
    for (uint32_t k = 0; k < sum->n_terms; k++) {
        const po_term *t = &sum->terms[k];
        if (!po_term_covers(sum, t, axis))
            return false;
        for (uint32_t i = 0; i < t->n_factors; i++) {
            const po_operand *op = &sum->operands[t->factor[i].operand];
            const po_index *at = &t->factor[i].at;
            int own = operand_axis(f, node, op);
            if (own >= 0 &&
                (op->dims[own] != sum->dims[axis] || !po_term_follows(t, at, (uint32_t)own, axis)))
                return false;
            if (po_term_moves(t, at, own >= 0 ? (uint32_t)own : PO_NONE, axis))
                return false;
        }
    }
    return true;
}

/* The output's axis that keeps samples apart, or PO_NO_SAMPLES. */
static int axis_of_sum(const po_following *f, const po_node *node, const po_sum *sum) {
    for (uint32_t axis = 0; axis < sum->rank; axis++)
        if (keeps_along(f, node, sum, axis))
            return (int)axis;
    return PO_NO_SAMPLES;
}

/* --- constants that stand there once for each sample: class tokens, first states --- */

/* Whether all parts along the axis, of which there are as many as samples, are the same. */
static bool repeats(const po_following *f, const po_tensor *t, uint32_t axis) {
    size_t all, part = 1;
    if (t->dims[axis] != f->samples || t->count == 0 || t->dtype == PO_STR ||
        po_dtype_bits(t->dtype) % 8 != 0 || !po_dtype_bytes(t->dtype, t->count, &all))
        return false;
    for (uint32_t x = axis + 1; x < t->rank; x++)
        part *= (size_t)t->dims[x];
    part *= po_dtype_bits(t->dtype) / 8;
    const char *data = t->data;
    for (size_t from = 0; from < all; from += part * (size_t)f->samples)
        for (size_t i = 1; i < (size_t)f->samples; i++)
            if (memcmp(data + from, data + from + i * part, part) != 0)
                return false;
    return true;
}

/* The number of samples, as a list of one integer, by an input that counts them. */
static po_value_id number_of_samples(const po_following *f, po_node_id place) {
    po_graph *g = f->open;
    for (uint32_t i = 0; i < g->n_inputs; i++)
        if (f->axis[g->inputs[i]] == 0) {
            po_type whole = po_type_tensor_i64(g->arena, PO_I64, 1,
                                               (int64_t[]){po_rank_of(f->graph, g->inputs[i])});
            po_type one = po_type_tensor_i64(g->arena, PO_I64, 1, (int64_t[]){1});
            po_value_id shape = po_add_op(g, place, PO_OP_Shape, 1, &g->inputs[i], &whole);
            po_value_id in[2] = {shape, po_add_i64s(g, NULL, 1, (int64_t[]){0})};
            return po_add_op(g, place, PO_OP_Gather, 2, in, &one);
        }
    return PO_NONE;
}

/* Makes the first part of the constant take the place of all, once for each sample. */
static void put_repeated(const po_following *f, po_node_id id, uint32_t input, uint32_t axis) {
    po_graph *g = f->open;
    if (!g)
        return;
    po_value_id v = g->nodes[id].in[input];
    const po_tensor *t = po_graph_constant(g, v);
    int64_t ones[PO_MAX_RANK], rank = t->rank, zero = 0, one = 1, at = axis;
    for (uint32_t x = 0; x < t->rank; x++)
        ones[x] = 1;
    po_type list = po_type_tensor_i64(g->arena, PO_I64, 1, &rank);
    po_value_id n = number_of_samples(f, id);
    po_value_id part = po_add_slice(g, id, v, 1, &at, &zero, &one, NULL, NULL);
    po_value_id parts[3];
    uint32_t n_parts = 0;
    if (axis > 0)
        parts[n_parts++] = po_add_i64s(g, NULL, axis, ones);
    parts[n_parts++] = n;
    if (axis + 1 < t->rank)
        parts[n_parts++] = po_add_i64s(g, NULL, t->rank - axis - 1, ones);
    po_value_id shape = n_parts == 1 ? n : po_add_concat(g, id, n_parts, parts, 0, &list);
    po_value_id in[2] = {part, shape};
    po_value_id all = po_add_op(g, id, PO_OP_Expand, 2, in, NULL);
    po_graph_set_input(g, id, input, all);
}

/* The axis with one of the constants taken as counting samples; PO_NO_SAMPLES: none will do. */
static int axis_with_repeated(const po_following *f, po_node_id id, const po_sum *sum) {
    const po_node *node = &f->graph->nodes[id];
    for (uint32_t i = 0; i < node->n_in; i++) {
        po_value_id v = node->in[i];
        const po_tensor *t = v == PO_NONE ? NULL : po_graph_constant(f->graph, v);
        for (uint32_t x = 0; t && x < t->rank && x < INT8_MAX; x++) {
            if (!repeats(f, t, x))
                continue;
            f->axis[v] = (int8_t)x;
            int axis = axis_of_sum(f, node, sum);
            f->axis[v] = PO_NO_SAMPLES; /* elsewhere it is what it is */
            if (axis >= 0) {
                put_repeated(f, id, i, x);
                return axis;
            }
        }
    }
    return PO_NO_SAMPLES;
}

/* --- Reshape and Expand, which hold the number --- */

static void put_shape(const po_following *f, po_node_id id, uint32_t n, const int64_t *shape) {
    if (!f->open)
        return;
    po_value_id v = po_add_i64s(f->open, NULL, n, shape);
    po_graph_set_input(f->open, id, 1, v);
}

/* The axis of the reshaped value that has as many places before it and counts samples. */
int po_samples_reshaped(const po_following *f, const po_dim *from, uint32_t own, const po_dim *to,
                        uint32_t rank) {
    int64_t before = po_places(from, own);
    for (uint32_t q = 0; q < rank; q++)
        if (po_places(to, q) == before && to[q].value % f->samples == 0 && to[q].value > 0)
            return (int)q;
    return PO_NO_SAMPLES;
}

static po_status follow_reshape(const po_following *f, po_node_id id, const po_node *node) {
    po_value_id x = node->in[0], y = node->out[0];
    const po_tensor *shape = node->n_in > 1 ? po_graph_constant(f->graph, node->in[1]) : NULL;
    uint32_t rank, from_rank, own = (uint32_t)f->axis[x];
    const po_dim *to = po_static_dims(f->graph, y, &rank);
    const po_dim *from = po_static_dims(f->graph, x, &from_rank);
    if (!shape || !to || !from || shape->count != rank)
        return po_samples_mixed(f, node, "its shape is not known");
    int q = po_samples_reshaped(f, from, own, to, rank);
    if (q < 0)
        return po_samples_mixed(f, node, "no axis counts samples");
    f->axis[y] = (int8_t)q;
    int64_t list[PO_MAX_RANK], given = po_tensor_int(shape, q);
    for (uint32_t i = 0; i < rank; i++) {
        list[i] = po_tensor_int(shape, i);
        if (list[i] == 0 && (i == own) != (i == (uint32_t)q))
            return po_samples_mixed(f, node, "it copies the axis of samples to another");
        list[i] = list[i] < 0 ? to[i].value : list[i];
    }
    if (given > 0) { /* else it follows */
        list[q] = -1;
        put_shape(f, id, rank, list);
    }
    return PO_OK;
}

static po_status follow_expand(const po_following *f, po_node_id id, const po_node *node) {
    const po_tensor *shape = node->n_in > 1 ? po_graph_constant(f->graph, node->in[1]) : NULL;
    int rank = po_rank_of(f->graph, node->in[0]), to = po_rank_of(f->graph, node->out[0]);
    int q = f->axis[node->in[0]] + to - rank;
    if (!shape || rank < 0 || to < rank ||
        po_dim_of(f->graph, node->out[0], q) !=
            po_dim_of(f->graph, node->in[0], f->axis[node->in[0]]))
        return po_samples_mixed(f, node, "it does not count samples");
    f->axis[node->out[0]] = (int8_t)q;
    int64_t list[PO_MAX_RANK], at = q - (to - shape->count);
    for (int64_t i = 0; i < shape->count; i++)
        list[i] = i == at ? 1 : po_tensor_int(shape, i);
    if (at >= 0)
        put_shape(f, id, (uint32_t)shape->count, list);
    return PO_OK;
}

/* --- recurrent layers: the batch is the second axis of what they read --- */

static bool is_recurrent(const po_node *node) {
    return node->op == PO_OP_LSTM || node->op == PO_OP_GRU || node->op == PO_OP_RNN;
}

static po_status follow_recurrent(const po_following *f, po_node_id id, const po_node *node) {
    enum { X, LENGTHS = 4, H, C, INPUTS };
    static const int8_t wanted[INPUTS] = {
        [X] = 1, PO_NO_SAMPLES, PO_NO_SAMPLES, PO_NO_SAMPLES, [LENGTHS] = 0, [H] = 1, [C] = 1};
    if (po_node_int(node, "layout", 0) != 0)
        return po_samples_mixed(f, node, "its batch comes first");
    for (uint32_t i = 0; i < node->n_in; i++) {
        po_value_id v = node->in[i];
        if (v == PO_NONE || (i < INPUTS && f->axis[v] == wanted[i]))
            continue;
        const po_tensor *t = po_graph_constant(f->graph, v);
        if (f->axis[v] >= 0 || i == X || i == LENGTHS)
            return po_samples_mixed(f, node, "an input counts samples otherwise");
        if (i < H)
            continue;
        if (i >= INPUTS || !t || t->rank != 3 || !repeats(f, t, 1))
            return po_samples_mixed(f, node, "it begins with other states");
        put_repeated(f, id, i, 1);
    }
    for (uint32_t i = 0; i < node->n_out; i++)
        if (node->out[i] != PO_NONE)
            f->axis[node->out[i]] = i == 0 ? 2 : 1;
    return PO_OK;
}

/* --- a node --- */

/* An axis as operators count it: element-wise ones from the end, others from the first. */
static int counted(const po_following *f, const po_node *node, po_value_id v, int axis) {
    return po_op_has(node->op, PO_OPF_ELEMENTWISE) ? axis - po_rank_of(f->graph, v) : axis;
}

/* A reduction over other axes, whatever it makes of them. */
static po_status follow_reduced(const po_following *f, const po_node *node) {
    uint32_t axes[PO_MAX_RANK], n = po_reduced_axes(f->graph, node, PO_MAX_RANK, axes);
    const int own = f->axis[node->in[0]];
    const bool keeps = po_node_int(node, "keepdims", 1) != 0;
    int axis = own;
    bool mixes = n == 0 || own < 0;
    for (uint32_t i = 0; i < n; i++) {
        mixes |= (int)axes[i] == own;
        axis -= !keeps && (int)axes[i] < own;
    }
    if (mixes || po_dim_of(f->graph, node->out[0], axis) != po_dim_of(f->graph, node->in[0], own))
        return po_samples_mixed(f, node, "it mixes samples");
    f->axis[node->out[0]] = (int8_t)axis;
    return PO_OK;
}

/* Shapes' word: an output that is as long along the axis of the samples. */
static po_status follow_opaque(const po_following *f, const po_node *node) {
    if (po_op_has(node->op, PO_OPF_REDUCES))
        return follow_reduced(f, node);
    if (f->strict && !po_apart_by_itself(f, node))
        return po_samples_mixed(f, node, "it is not known to take each sample by itself");
    int64_t length = -1;
    int at = 0;
    for (uint32_t i = 0; i < node->n_in; i++) {
        po_value_id v = node->in[i];
        if (v == PO_NONE || f->axis[v] < 0)
            continue;
        int own = counted(f, node, v, f->axis[v]);
        int64_t n = po_dim_of(f->graph, v, f->axis[v]);
        if (length >= 0 && (own != at || n != length))
            return po_samples_mixed(f, node, "its inputs count samples otherwise");
        at = own;
        length = n;
    }
    for (uint32_t i = 0; i < node->n_out; i++) {
        po_value_id v = node->out[i];
        if (v == PO_NONE)
            continue;
        int rank = po_rank_of(f->graph, v), axis = at < 0 ? at + rank : at;
        if (axis < 0 || axis >= rank || po_dim_of(f->graph, v, axis) != length)
            return po_samples_mixed(f, node, "its outputs do not count samples");
        f->axis[v] = (int8_t)axis;
    }
    return PO_OK;
}

static po_status follow_sums(const po_following *f, po_node_id id, const po_node *node) {
    po_sum *sums[MOST_OUTPUTS] = {NULL};
    if (node->n_out > MOST_OUTPUTS)
        return follow_opaque(f, node);
    po_status status = po_sem_of(f->ctx, f->scratch, f->graph, node, sums);
    if (status == PO_UNSUPPORTED)
        return follow_opaque(f, node);
    PO_TRY(status);
    for (uint32_t i = 0; i < node->n_out; i++) {
        if (node->out[i] == PO_NONE)
            continue;
        if (!sums[i])
            return follow_opaque(f, node);
        int axis = axis_of_sum(f, node, sums[i]);
        if (axis < 0 && node->n_out == 1)
            axis = axis_with_repeated(f, id, sums[i]);
        if (axis < 0)
            return po_samples_mixed(f, node, "it mixes samples");
        f->axis[node->out[i]] = (int8_t)axis;
    }
    return PO_OK;
}

static bool is_of(const po_following *f, po_value_id v, bool mixed) {
    return v != PO_NONE && (mixed ? f->axis[v] == PO_MIXED_SAMPLES : f->axis[v] >= 0);
}

/* Whether it reads samples, or what is mixed of them, in its bodies too. */
static bool reads(const po_following *f, const po_node *node, bool mixed) {
    for (uint32_t i = 0; i < node->n_in; i++)
        if (is_of(f, node->in[i], mixed))
            return true;
    for (uint32_t i = 0; i < node->n_attr; i++) {
        const po_graph *body = node->attr[i].kind == PO_ATTR_GRAPH ? node->attr[i].u.g : NULL;
        for (po_value_id v = 0; body && v < body->n_values; v++)
            if (is_of(f, body->values[v].outer, mixed))
                return true;
    }
    return false;
}

static po_status follow_node(const po_following *f, po_node_id id) {
    const po_node *node = &f->graph->nodes[id];
    bool done = false;
    if (f->strict)
        PO_TRY(po_apart_node(f, node, &done));
    if (done || !reads(f, node, false))
        return PO_OK;
    if (po_op_has(node->op, PO_OPF_CONTROL | PO_OPF_RANDOM))
        return po_samples_mixed(f, node, "it has bodies, or draws");
    if (is_recurrent(node))
        return follow_recurrent(f, id, node);
    if (node->op == PO_OP_Reshape && f->axis[node->in[0]] >= 0)
        return follow_reshape(f, id, node);
    if (node->op == PO_OP_Expand && f->axis[node->in[0]] >= 0)
        return follow_expand(f, id, node);
    return follow_sums(f, id, node);
}

/* What mixes samples, or reads what is mixed of them, makes what is. */
static po_status follow_part(po_following *f, po_node_id id) {
    const po_node *node = &f->graph->nodes[id];
    const bool mixed = reads(f, node, true);
    po_status status = mixed ? PO_UNSUPPORTED : follow_node(f, id);
    if (status != PO_UNSUPPORTED)
        return status;
    if (!mixed && !f->why)
        f->why = po_arena_strdup(f->parts, f->ctx->error.message);
    po_ctx_clear(f->ctx);
    for (uint32_t i = 0; i < node->n_out; i++)
        if (node->out[i] != PO_NONE)
            f->axis[node->out[i]] = PO_MIXED_SAMPLES;
    return PO_OK;
}

po_status po_samples_walk(po_following *f) {
    uint32_t n;
    f->scratch = po_arena_create(f->ctx);
    const po_node_id *order = po_graph_order(f->graph, f->scratch, &n);
    po_status status = PO_OK;
    for (uint32_t i = 0; i < n && status == PO_OK; i++)
        status = f->parts ? follow_part(f, order[i]) : follow_node(f, order[i]);
    po_arena_free(f->scratch);
    return status;
}

po_status po_samples_follow(po_ctx *ctx, const po_graph *graph, int64_t samples, int8_t *axis) {
    po_following f = {.ctx = ctx, .graph = graph, .samples = samples, .axis = axis};
    return po_samples_walk(&f);
}

/* --- opening --- */

bool po_samples_are_open(const po_graph *graph) {
    const char *symbol = NULL;
    uint32_t n = 0;
    for (uint32_t i = 0; i < graph->n_inputs; i++) {
        const po_type *type = &graph->values[graph->inputs[i]].type;
        if (type->kind != PO_TYPE_TENSOR || !type->has_rank)
            return false;
        for (uint32_t d = 0; d < type->rank; d++) {
            if (po_dim_known(type->dims[d]))
                continue;
            const char *own = type->dims[d].symbol ? type->dims[d].symbol : "";
            if (d > 0 || (n > 0 && (strcmp(own, symbol) != 0 || !*own)))
                return false;
            symbol = own;
            n++;
        }
    }
    return n > 0;
}

static const po_type *type_in(const po_graph *like, const po_value_id *list, uint32_t n,
                              const char *name) {
    for (uint32_t i = 0; i < n; i++)
        if (strcmp(like->values[list[i]].name, name) == 0)
            return &like->values[list[i]].type;
    return NULL;
}

static bool is_open(const po_type *type) {
    return type && type->kind == PO_TYPE_TENSOR && type->has_rank && type->rank > 0 &&
           type->dims[0].value < 0;
}

static const po_type *input_type(const po_graph *like, const char *name) {
    return type_in(like, like->inputs, like->n_inputs, name);
}

int8_t *po_samples_inputs(po_arena *arena, const po_graph *graph, const po_graph *like) {
    int8_t *axis = PO_NEW_N(arena, int8_t, graph->n_values);
    memset(axis, PO_NO_SAMPLES, graph->n_values);
    for (uint32_t i = 0; i < graph->n_inputs; i++)
        if (is_open(input_type(like, graph->values[graph->inputs[i]].name)))
            axis[graph->inputs[i]] = 0;
    return axis;
}

/* Infers anew with the first axis of open inputs of this length, or as `like` has it where < 0. */
po_status po_samples_infer(po_ctx *ctx, po_graph *graph, const po_graph *like, int64_t samples) {
    PO_TRY(po_infer_forget_shapes(ctx, graph));
    for (uint32_t i = 0; i < graph->n_inputs; i++) {
        po_value *value = &graph->values[graph->inputs[i]];
        const po_type *type = input_type(like, value->name);
        if (!is_open(type))
            continue;
        po_dim *dims = po_arena_memdup(graph->arena, type->dims, type->rank * sizeof *dims);
        if (samples >= 0)
            dims[0] = PO_DIM(samples);
        value->type.dims = dims;
    }
    return po_infer_graph(ctx, graph, true);
}

po_status po_samples_scale(po_ctx *ctx, const po_graph *made, int64_t samples, const po_graph *more,
                           int64_t others, const int8_t *axis) {
    for (po_value_id v = 0; v < made->n_values; v++) {
        const po_type *a = &made->values[v].type, *b = &more->values[v].type;
        if (!po_graph_producer(made, v) || a->kind != PO_TYPE_TENSOR || !a->has_rank ||
            axis[v] == PO_MIXED_SAMPLES)
            continue;
        bool same = b->has_rank && b->rank == a->rank;
        for (uint32_t d = 0; d < a->rank && same; d++) {
            int64_t is = a->dims[d].value;
            same = b->dims[d].value == ((int)d == axis[v] ? is / samples * others : is);
        }
        if (!same)
            return po_fail(ctx, PO_UNSUPPORTED,
                           "'%s' is not what it is with another number of samples",
                           made->values[v].name);
    }
    return PO_OK;
}

/* With one sample more every value is longer by as much along its axis of samples. */
static po_status check(po_ctx *ctx, const po_graph *open, const po_graph *made,
                       const po_graph *like, int64_t samples, const int8_t *axis) {
    po_graph *more = po_graph_clone(ctx, open);
    po_status status = po_samples_infer(ctx, more, like, samples + 1);
    if (status == PO_OK)
        status = po_samples_scale(ctx, made, samples, more, samples + 1, axis);
    po_graph_free(more);
    return status;
}

/* Outputs count samples along their first axes where they should. */
static po_status check_outputs(po_ctx *ctx, const po_graph *made, const po_graph *like,
                               const int8_t *axis) {
    for (uint32_t i = 0; i < made->n_outputs; i++) {
        const char *name = made->values[made->outputs[i]].name;
        const po_type *type = type_in(like, like->outputs, like->n_outputs, name);
        int wanted = !type || !type->has_rank ? axis[made->outputs[i]]
                     : is_open(type)          ? 0
                                              : PO_NO_SAMPLES;
        if (axis[made->outputs[i]] != wanted)
            return po_fail(ctx, PO_UNSUPPORTED, "the output '%s' does not count samples as it did",
                           name);
    }
    return PO_OK;
}

po_status po_samples_open(po_ctx *ctx, po_graph *graph, const po_graph *like, int64_t samples) {
    PO_TRY(po_infer_graph(ctx, graph, true));
    po_graph *made = po_graph_clone(ctx, graph);
    po_arena *scratch = po_arena_create(ctx);
    int8_t *axis = po_samples_inputs(scratch, made, like);
    po_following f = {.ctx = ctx, .graph = made, .open = graph, .samples = samples, .axis = axis};
    po_status status = po_samples_walk(&f);
    if (status == PO_OK)
        status = check_outputs(ctx, made, like, axis);
    if (status == PO_OK)
        status = check(ctx, graph, made, like, samples, axis);
    if (status == PO_OK)
        status = po_samples_infer(ctx, graph, like, -1);
    for (uint32_t i = 0; i < graph->n_outputs && status == PO_OK; i++) {
        po_value *value = &graph->values[graph->outputs[i]];
        const po_type *type = type_in(like, like->outputs, like->n_outputs, value->name);
        if (type)
            value->type = *type;
    }
    if (status == PO_OK)
        po_graph_sweep(graph);
    po_graph_free(made);
    po_arena_free(scratch);
    return status;
}
