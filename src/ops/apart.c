/* Whether an open graph takes each sample by itself, whatever their number.
 *
 * The graph is followed with PRIME samples, a number that no length or constant of it has anything
 * to do with: what counts samples there counts them. Everything that depends on the number besides
 * is a length that grows by as much for each sample (a shape that a Reshape or an Expand is given),
 * or is refused: such numbers go through nodes that keep them affine only. So what holds of PRIME
 * samples holds of any number up to it; at one, two and three lengths are looked at once more. */
#include "ir/size.h"
#include "ops/op.h"
#include "ops/rewrite.h"
#include "ops/samples_internal.h"

/* Larger than bounds of slices and lengths of tables. */
enum { PRIME = 1000003, FEW = 3 };

/* The same graph with 1, 2 and 3 samples; by value, whether it is made of lengths that count
 * samples. */
typedef struct po_apart {
    po_graph *few[FEW];
    bool *counted;
} po_apart;

/* --- numbers that are computed from lengths --- */

/* Its contents are known, and the same with other numbers of samples. */
static bool is_same(const po_following *f, po_value_id v) {
    const po_partial *all = f->graph->values[v].partial;
    for (uint32_t k = 0; k < FEW; k++) {
        const po_partial *p = f->strict->few[k]->values[v].partial;
        if (!all || !p || p->n != all->n)
            return false;
        for (uint32_t i = 0; i < p->n; i++) {
            int64_t a, b;
            if (!po_size_number(p->items[i], &a) || !po_size_number(all->items[i], &b) || a != b)
                return false;
        }
    }
    return true;
}

static bool is_counted(const po_following *f, const po_node *node, uint32_t input) {
    return input < node->n_in && node->in[input] != PO_NONE && f->strict->counted[node->in[input]];
}

static uint32_t n_counted(const po_following *f, const po_node *node) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < node->n_in; i++)
        n += is_counted(f, node, i);
    return n;
}

static bool has_samples(const po_following *f, const po_node *node, uint32_t input) {
    return input < node->n_in && node->in[input] != PO_NONE && f->axis[node->in[input]] >= 0;
}

/* What it makes of numbers a + b n, n being that of the samples, are such numbers. */
static bool keeps_affine(const po_following *f, const po_node *node) {
    const uint32_t n = n_counted(f, node);
    switch (node->op) {
    case PO_OP_Gather:
    case PO_OP_Slice:
    case PO_OP_Squeeze:
    case PO_OP_Unsqueeze:
    case PO_OP_Reshape:
    case PO_OP_Identity:
        return n == 1 && is_counted(f, node, 0);
    case PO_OP_Cast: {
        po_dtype to = f->graph->values[node->out[0]].type.dtype;
        return to == PO_I64 || to == PO_I32;
    }
    case PO_OP_Concat:
    case PO_OP_Add:
    case PO_OP_Sub:
        return true;
    case PO_OP_Mul:
        return n == 1;
    case PO_OP_Where:
        return !is_counted(f, node, 0);
    default:
        return false;
    }
}

static bool number_at(const po_graph *graph, po_value_id v, uint32_t i, int64_t *number) {
    const po_partial *p = graph->values[v].partial;
    return p && i < p->n && po_size_number(p->items[i], number);
}

/* Exporters ask which lengths of a list are given as -1. Numbers a + b n are compared with others
 * one by one: those that do not grow compare as they do, and one that grows and is not below 0 for
 * one sample is never equal to a number below 0. */
static bool compares_alike(const po_following *f, const po_node *node) {
    if (node->op != PO_OP_Equal || n_counted(f, node) != 1)
        return false;
    const uint32_t own = is_counted(f, node, 0) ? 0 : 1;
    const po_value_id list = node->in[own];
    const po_value_id other = node->in[1 - own];
    const po_partial *p = f->graph->values[list].partial, *o = f->graph->values[other].partial;
    if (!p || !o || o->n < 1 || (o->n != 1 && o->n != p->n) || !is_same(f, other))
        return false;
    for (uint32_t i = 0; i < p->n; i++) {
        int64_t one, two, many, with;
        if (!number_at(f->strict->few[0], list, i, &one) ||
            !number_at(f->strict->few[1], list, i, &two) || !number_at(f->graph, list, i, &many) ||
            !number_at(f->graph, other, o->n == 1 ? 0 : i, &with))
            return false;
        const bool grows = one != two || two != many;
        if (grows && (one < 0 || many < one || with >= 0))
            return false;
    }
    return true;
}

/* The one axis that is a multiple of the number of samples; PO_NO_SAMPLES where it is not one. */
static int axis_by_length(const po_following *f, po_value_id v) {
    uint32_t rank;
    const po_dim *dims = po_static_dims(f->graph, v, &rank);
    int axis = PO_NO_SAMPLES;
    for (uint32_t i = 0; dims && i < rank; i++)
        if (dims[i].value > 0 && dims[i].value % f->samples == 0) {
            if (axis >= 0)
                return PO_NO_SAMPLES;
            axis = (int)i;
        }
    return axis;
}

/* A constant, once for each sample. */
static po_status follow_filled(const po_following *f, const po_node *node) {
    int axis = axis_by_length(f, node->out[0]);
    if (axis < 0)
        return po_samples_mixed(f, node, "no axis counts samples");
    if (node->op == PO_OP_Expand) {
        int own = axis - po_rank_of(f->graph, node->out[0]) + po_rank_of(f->graph, node->in[0]);
        if (po_rank_of(f->graph, node->in[0]) < 0 ||
            (own >= 0 && po_dim_of(f->graph, node->in[0], own) != 1))
            return po_samples_mixed(f, node, "it does not repeat one sample");
    }
    f->axis[node->out[0]] = (int8_t)axis;
    return PO_OK;
}

/* What counts samples keeps them where its shape says so. */
static po_status follow_shaped(const po_following *f, const po_node *node) {
    uint32_t rank, from_rank;
    const int own = f->axis[node->in[0]];
    const po_dim *to = po_static_dims(f->graph, node->out[0], &rank);
    const po_dim *from = po_static_dims(f->graph, node->in[0], &from_rank);
    if (!to || !from)
        return po_samples_mixed(f, node, "its shape is not known");
    int axis = own + (int)rank - (int)from_rank;
    if (node->op == PO_OP_Reshape)
        axis = po_samples_reshaped(f, from, (uint32_t)own, to, rank);
    if (axis < 0 || axis_by_length(f, node->out[0]) != axis ||
        (node->op != PO_OP_Reshape && to[axis].value != from[own].value))
        return po_samples_mixed(f, node, "no axis counts samples");
    f->axis[node->out[0]] = (int8_t)axis;
    return PO_OK;
}

/* How many numbers a list of lengths has, which are as many for any number of samples. */
static bool counts_a_list(const po_following *f, const po_node *node) {
    const bool shape = node->op == PO_OP_Shape || node->op == PO_OP_Size;
    return shape && !has_samples(f, node, 0) && is_same(f, node->out[0]);
}

static po_status follow_counted(const po_following *f, const po_node *node) {
    if (counts_a_list(f, node))
        return PO_OK;
    /* As many samples as there are: an axis that is not resized stays as it is. */
    const bool resized = node->op == PO_OP_Resize && n_counted(f, node) == 1 &&
                         is_counted(f, node, 3) && !po_node_attr(node, "keep_aspect_ratio_policy");
    if (resized && has_samples(f, node, 0))
        return follow_shaped(f, node);
    const bool shaped = node->op == PO_OP_Reshape || node->op == PO_OP_Expand;
    if (shaped && is_counted(f, node, 1) && !is_counted(f, node, 0)) {
        if (has_samples(f, node, 0))
            return follow_shaped(f, node);
        if (node->op == PO_OP_Expand)
            return follow_filled(f, node);
    }
    if (node->op == PO_OP_ConstantOfShape)
        return follow_filled(f, node);
    for (uint32_t i = 0; i < node->n_in; i++)
        if (has_samples(f, node, i))
            return po_samples_mixed(f, node, "it computes with the number of samples");
    if (compares_alike(f, node))
        return PO_OK;
    if (!keeps_affine(f, node))
        return po_samples_mixed(f, node, "it computes with the number of samples");
    f->strict->counted[node->out[0]] = !is_same(f, node->out[0]);
    return PO_OK;
}

po_status po_apart_node(const po_following *f, const po_node *node, bool *done) {
    *done = true;
    if (po_op_has(node->op, PO_OPF_CONTROL | PO_OPF_RANDOM))
        return po_samples_mixed(f, node, "it has bodies, or draws");
    if (n_counted(f, node) > 0)
        return follow_counted(f, node);
    const bool samples = has_samples(f, node, 0);
    if ((node->op == PO_OP_Shape || node->op == PO_OP_Size) && samples) {
        f->strict->counted[node->out[0]] = !is_same(f, node->out[0]);
        return PO_OK;
    }
    if ((node->op == PO_OP_Reshape || node->op == PO_OP_Expand) && samples)
        return follow_shaped(f, node);
    /* Which axes of one place it drops would depend on their number. */
    if (node->op == PO_OP_Squeeze && samples && node->n_in < 2 && !po_node_attr(node, "axes"))
        return po_samples_mixed(f, node, "it may drop the axis of one sample");
    *done = false;
    return PO_OK;
}

/* --- operators without a sum --- */

/* The first axis that it works along; with no word on it, that is 0. */
static int first_axis(const po_following *f, const po_node *node, int rank) {
    int64_t axis = po_op_int(f->graph, node, "axis");
    return (int)(axis < 0 ? axis + rank : axis);
}

/* In whatever mode it pads, it leaves this axis as it is. */
static bool pads_others(const po_following *f, const po_node *node, int axis, int rank) {
    const po_tensor *pads = node->n_in > 1 ? po_graph_constant(f->graph, node->in[1]) : NULL;
    const po_tensor *axes = NULL;
    if (node->n_in > 3 && node->in[3] != PO_NONE) {
        axes = po_graph_constant(f->graph, node->in[3]);
        if (!axes)
            return false;
    }
    const int64_t n = axes ? axes->count : rank;
    if (!pads || pads->count != 2 * n)
        return false;
    for (int64_t i = 0; i < n; i++) {
        int64_t at = axes ? po_tensor_int(axes, i) : i;
        at += at < 0 ? rank : 0;
        if (at == axis && (po_tensor_int(pads, i) != 0 || po_tensor_int(pads, n + i) != 0))
            return false;
    }
    return true;
}

bool po_apart_by_itself(const po_following *f, const po_node *node) {
    if (po_op_has(node->op, PO_OPF_ELEMENTWISE))
        return true;
    uint32_t n = 0, at = 0;
    for (uint32_t i = 0; i < node->n_in; i++)
        if (has_samples(f, node, i)) {
            at = i;
            n++;
        }
    if (n != 1)
        return false;
    const int axis = f->axis[node->in[at]], rank = po_rank_of(f->graph, node->in[at]);
    if (node->op == PO_OP_Gather) {
        int64_t along = po_op_int(f->graph, node, "axis");
        int data = po_rank_of(f->graph, node->in[0]);
        along = along < 0 && data >= 0 ? along + data : along;
        return at == 0 ? axis < along : along == 0; /* the same of each; rows of a table */
    }
    if (at != 0)
        return false;
    if (node->op == PO_OP_Pad)
        return pads_others(f, node, axis, rank);
    /* Further outputs may number elements through all samples. */
    if (po_op_has(node->op, PO_OPF_SAMPLES))
        return axis == 0 && (node->n_out < 2 || node->out[1] == PO_NONE);
    if (po_op_has(node->op, PO_OPF_ALONG))
        return axis < first_axis(f, node, rank);
    if (po_op_has(node->op, PO_OPF_QUANTIZE) && node->n_in > 1) {
        int64_t along = po_op_int(f->graph, node, "axis");
        along = along < 0 ? along + rank : along;
        const po_type *scale = &f->graph->values[node->in[1]].type;
        return scale->has_rank && (scale->rank == 0 || (scale->rank == 1 && along != axis));
    }
    return false;
}

/* --- constants among shapes: the same for any number of samples --- */

/* Whether the node computes a few integers of constants. */
static bool is_small_constant(const po_graph *graph, const po_node *node) {
    enum { MOST = 64 };
    const po_op_row *row = po_op_row_of(node->op);
    if (!row || !row->ref || (row->flags & (PO_OPF_RANDOM | PO_OPF_CONTROL)) || node->n_in == 0 ||
        node->n_out != 1 || node->out[0] == PO_NONE)
        return false;
    const po_type *type = &graph->values[node->out[0]].type;
    const int64_t count = po_type_count(type);
    if (count < 0 || count > MOST || (type->dtype != PO_I64 && type->dtype != PO_I32))
        return false;
    for (uint32_t i = 0; i < node->n_in; i++) {
        const po_tensor *t = node->in[i] == PO_NONE ? NULL : po_graph_constant(graph, node->in[i]);
        if (node->in[i] != PO_NONE && (!t || t->count > MOST))
            return false;
    }
    return true;
}

static po_status hold_constant(po_ctx *ctx, po_graph *graph, const po_node *node) {
    po_arena *scratch = po_arena_create(ctx);
    po_array *out = NULL;
    po_tensor *t = NULL;
    po_status status = po_ref_constants(ctx, scratch, graph, node, &out);
    if (status == PO_OK)
        status = po_array_to_tensor(ctx, graph->arena, out, &t);
    if (status == PO_OK)
        graph->values[node->out[0]].constant = t;
    po_arena_free(scratch);
    if (status != PO_UNSUPPORTED && status != PO_BAD_INPUT)
        return status;
    po_ctx_clear(ctx); /* it stays as it is */
    return PO_OK;
}

/* The graph with what its nodes compute of constants held as such: shape inference does not know
 * numbers below 0, which exporters compare shapes with. */
static po_status with_constants(po_ctx *ctx, const po_graph *open, po_graph **held) {
    po_graph *g = po_graph_clone(ctx, open);
    po_arena *scratch = po_arena_create(ctx);
    uint32_t n;
    const po_node_id *order = po_graph_order(g, scratch, &n);
    po_status status = PO_OK;
    for (uint32_t i = 0; i < n && status == PO_OK; i++)
        if (is_small_constant(g, &g->nodes[order[i]]))
            status = hold_constant(ctx, g, &g->nodes[order[i]]);
    po_arena_free(scratch);
    *held = g;
    return status;
}

/* --- a graph --- */

/* why NULL: all of it, or nothing. */
static po_status follow_apart(po_ctx *ctx, const po_graph *open, po_graph *many, po_apart *a,
                              po_arena *arena, int8_t *axis, const char **why) {
    PO_TRY(po_samples_infer(ctx, many, open, PRIME));
    for (int64_t n = 1; n <= FEW; n++)
        PO_TRY(po_samples_infer(ctx, a->few[n - 1], open, n));
    po_following f = {.ctx = ctx,
                      .graph = many,
                      .samples = PRIME,
                      .axis = axis,
                      .strict = a,
                      .parts = why ? arena : NULL};
    PO_TRY(po_samples_walk(&f));
    for (int64_t n = 1; n <= FEW; n++)
        PO_TRY(po_samples_scale(ctx, many, PRIME, a->few[n - 1], n, axis));
    for (uint32_t i = 0; i < many->n_outputs && !why; i++)
        if (a->counted[many->outputs[i]])
            return po_fail(ctx, PO_UNSUPPORTED, "the output '%s' tells the number of samples",
                           many->values[many->outputs[i]].name);
    if (why)
        *why = f.why;
    return PO_OK;
}

static po_status of_held(po_ctx *ctx, po_arena *arena, const po_graph *open, int8_t *axis,
                         const char **why) {
    po_graph *many = po_graph_clone(ctx, open);
    po_apart a = {.counted = PO_NEW_N(arena, bool, open->n_values)};
    for (int i = 0; i < FEW; i++)
        a.few[i] = po_graph_clone(ctx, open);
    po_status status = follow_apart(ctx, open, many, &a, arena, axis, why);
    for (int i = 0; i < FEW; i++)
        po_graph_free(a.few[i]);
    po_graph_free(many);
    return status;
}

static po_status apart(po_ctx *ctx, po_arena *arena, const po_graph *open, int8_t **axis_of_value,
                       const char **why) {
    po_graph *held;
    int8_t *axis = po_samples_inputs(arena, open, open);
    po_status status = with_constants(ctx, open, &held);
    if (status == PO_OK)
        status = of_held(ctx, arena, held, axis, why);
    po_graph_free(held);
    *axis_of_value = axis;
    return status;
}

po_status po_samples_apart_values(po_ctx *ctx, po_arena *arena, const po_graph *open,
                                  int8_t **axis) {
    return apart(ctx, arena, open, axis, NULL);
}

po_status po_samples_apart_parts(po_ctx *ctx, po_arena *arena, const po_graph *open, int8_t **axis,
                                 const char **why) {
    *why = NULL;
    return apart(ctx, arena, open, axis, why);
}

po_status po_samples_apart(po_ctx *ctx, po_arena *arena, const po_graph *open,
                           int8_t **axis_of_output) {
    int8_t *axis;
    po_status status = po_samples_apart_values(ctx, arena, open, &axis);
    *axis_of_output = PO_NEW_N(arena, int8_t, open->n_outputs);
    for (uint32_t i = 0; i < open->n_outputs; i++)
        (*axis_of_output)[i] = axis[open->outputs[i]];
    return status;
}
