/* A compact program as a graph of standard operators. */
#include "mutate/enumerate.h"
#include "ops/conv_view.h"
#include "ops/move/rt.h"
#include "ops/rewrite.h"

enum { EN_CHAIN = 8 };

typedef struct writing {
    po_ctx *ctx;
    po_arena *arena;
    po_node_id place; /* of what is replaced */
    po_graph *g;
    po_dtype dtype;
    po_value_id slot[EN_SLOTS];
    bool failed;
} writing;

static void wide(const en_shape *s, int64_t *dims) {
    for (uint32_t i = 0; i < s->rank; i++)
        dims[i] = s->d[i];
}

static po_value_id add_op(writing *w, po_op_id op, uint32_t n_in, const po_value_id *in,
                          const en_shape *shape) {
    int64_t dims[EN_RANK + 1];
    wide(shape, dims);
    po_type type = po_type_tensor_i64(w->g->arena, w->dtype, shape->rank, dims);
    return po_add_op(w->g, w->place, op, n_in, in, &type);
}

/* --- R/T --- */

/* Digits of `rt` from `base` (what its digits count in) to its output; `back`: the other way. */
static const po_rt *form(writing *w, const en_rt *rt, const en_shape *base, bool back) {
    int64_t base_dims[EN_RANK + 1], out_dims[EN_RANK], lo[EN_RANK + 1] = {0}, none[EN_RANK] = {0};
    po_rt_digit digits[EN_DIGITS];
    uint32_t at = 0;
    wide(base, base_dims);
    wide(&rt->out, out_dims);
    for (uint32_t i = 0; i < rt->in.rank; i++)
        lo[i] = -(int64_t)rt->lo[i];
    for (uint32_t i = 0; i < rt->out.rank; i++) {
        int64_t above = rt->out.d[i];
        for (uint32_t k = 0; k < rt->len[i]; k++, at++) {
            const en_digit *d = &rt->digit[at];
            above /= d->size;
            digits[at] = back ? (po_rt_digit){d->size, i, d->axis, above, d->mult}
                              : (po_rt_digit){d->size, d->axis, i, d->mult, above};
        }
    }
    po_rt parts = {.in_rank = base->rank,
                   .out_rank = rt->out.rank,
                   .n = rt->n,
                   .in_dims = base_dims,
                   .out_dims = out_dims,
                   .in_base = lo,
                   .out_base = none,
                   .digits = digits};
    if (back)
        parts = (po_rt){.in_rank = rt->out.rank,
                        .out_rank = base->rank,
                        .n = rt->n,
                        .in_dims = out_dims,
                        .out_dims = base_dims,
                        .in_base = none,
                        .out_base = lo,
                        .digits = digits};
    return po_rt_create(w->arena, &parts);
}

/* A digit that stands twice: its blocks are put `f + 1` blocks apart in one long axis, which read
 * as [f, f] holds them on its diagonal. What comes out is `base`. */
static uint32_t diagonal(writing *w, const en_rt *rt, const en_shape *base, const po_rt **chain) {
    int64_t above = 1, below = rt->twice_mult, f = rt->twice_size, dims[EN_RANK],
            base_dims[EN_RANK];
    uint32_t axis = rt->twice - 1u;
    wide(&rt->in, dims);
    wide(base, base_dims);
    for (uint32_t i = 0; i < axis; i++)
        above *= dims[i];
    above *= dims[axis] / (f * below);
    for (uint32_t i = axis + 1; i < rt->in.rank; i++)
        below *= dims[i];
    int64_t flat[3] = {above, f, below}, apart[2] = {above, f * f * below};
    po_rt_digit digits[3] = {
        {above, 0, 0, 1, 1}, {f, 1, 1, 1, (f + 1) * below}, {below, 2, 1, 1, 1}};
    int64_t zero[4] = {0}, full[4] = {above, f, f, below}, turned[4] = {above, f, below, f};
    po_rt parts = {.in_rank = 3,
                   .out_rank = 2,
                   .n = 3,
                   .in_dims = flat,
                   .out_dims = apart,
                   .in_base = zero,
                   .out_base = zero,
                   .digits = digits};
    chain[0] = po_rt_reshape(w->arena, rt->in.rank, dims, 3, flat);
    chain[1] = po_rt_create(w->arena, &parts);
    chain[2] = po_rt_reshape(w->arena, 2, apart, 4, full);
    chain[3] = po_rt_transpose(w->arena, 4, full, (uint32_t[]){0, 1, 3, 2});
    chain[4] = po_rt_reshape(w->arena, 4, turned, base->rank, base_dims);
    return 5;
}

/* Moves that made x already become one with the first of the chain. */
static po_value_id emit(writing *w, po_value_id x, const po_rt *const *chain, uint32_t n) {
    const po_rt *whole = NULL;
    po_value_id root;
    if (po_rt_of_chain(w->ctx, w->arena, w->g, x, &root, &whole) != PO_OK) {
        w->failed = true;
        po_ctx_clear(w->ctx);
        return x;
    }
    if (whole && root != x && n && chain[0] && po_rt_compose(w->arena, whole, chain[0]))
        x = root;
    else
        whole = NULL;
    for (uint32_t i = 0; i <= n; i++) {
        const po_rt *next = i < n ? chain[i] : NULL;
        if (i < n && !next) {
            w->failed = true;
            return x;
        }
        const po_rt *both = whole && next ? po_rt_compose(w->arena, whole, next) : NULL;
        if (whole && !both) {
            x = po_rt_emit(w->g, w->place, x, whole);
            if (x == PO_NONE) {
                w->failed = true;
                return 0;
            }
        }
        whole = both ? both : next;
    }
    return x;
}

static po_value_id move(writing *w, po_value_id x, const en_rt *rt, bool back) {
    const po_rt *chain[EN_CHAIN];
    uint32_t n = 0;
    en_shape base = rt->in; /* bases of pads are part of the form */
    if (rt->twice) {
        base.d[base.rank++] = rt->twice_size;
        n = diagonal(w, rt, &base, chain);
    }
    chain[n++] = form(w, rt, &base, back);
    return emit(w, x, chain, n);
}

/* Makes one move of those that y ends and those that read it next. */
static void join_moves_after(writing *w, po_value_id y) {
    po_graph *g = w->g;
    po_value_id end = y, root;
    const po_rt *whole = NULL;
    for (const po_use *u; (u = po_graph_sole_use(g, end)) != NULL && u->input == 0;) {
        po_op_id op = g->nodes[u->node].op;
        if (op != PO_OP_Reshape && op != PO_OP_Transpose && op != PO_OP_Slice)
            break;
        end = g->nodes[u->node].out[0];
    }
    if (end == y || w->failed)
        return;
    if (po_rt_of_chain(w->ctx, w->arena, g, end, &root, &whole) != PO_OK) {
        po_ctx_clear(w->ctx);
        return;
    }
    if (!whole || root == end || root == y)
        return;
    po_value_id joined = po_rt_emit(g, g->values[end].producer, root, whole);
    if (joined != PO_NONE && joined != end)
        po_substitute(g, end, joined);
}

/* --- operators --- */

static void window_attributes(writing *w, po_node_id node, const en_op *op, uint32_t maps,
                              int64_t groups) {
    int64_t strides[EN_MAPS] = {0}, dilations[EN_MAPS] = {0}, pads[2 * EN_MAPS] = {0};
    int64_t kernel[EN_MAPS] = {0};
    bool dilated = false, padded = false;
    for (uint32_t m = 0; m < maps; m++) {
        strides[m] = op->stride[m];
        dilations[m] = op->dilation[m];
        pads[m] = op->lo[m];
        pads[maps + m] = op->hi[m];
        kernel[m] = op->window[m];
        dilated |= op->dilation[m] > 1;
        padded |= op->lo[m] || op->hi[m];
    }
    po_node_set_ints(w->g, node, "strides", maps, strides);
    po_node_set_ints(w->g, node, "pads", 2 * maps, pads);
    if (op->kind == EN_CONV) {
        po_node_set_ints(w->g, node, "dilations", maps, dilations);
        po_node_set_int(w->g, node, "group", groups);
        return;
    }
    po_node_set_ints(w->g, node, "kernel_shape", maps, kernel);
    if (padded)
        po_node_set_int(w->g, node, "count_include_pad", 1);
    if (dilated)
        po_node_set_ints(w->g, node, "dilations", maps, dilations);
}

static po_value_id write_table(writing *w, const en_shape *shape) {
    int64_t dims[EN_RANK], count = en_count(shape);
    double *values = PO_NEW_N(w->arena, double, count);
    wide(shape, dims);
    for (int64_t i = 0; i < count; i++)
        values[i] = 1.0 / (double)en_window_of(shape);
    return po_add_floats(w->g, NULL, w->dtype, shape->rank, dims, values);
}

/* Zeros behind an operand of this shape, so that it is as long as the others. */
static po_value_id fill_up(writing *w, po_value_id x, const en_shape *shape, uint32_t axis,
                           int32_t length) {
    int64_t dims[EN_RANK], none[EN_RANK] = {0}, after[EN_RANK] = {0};
    if (shape->d[axis] == length)
        return x;
    wide(shape, dims);
    after[axis] = length - shape->d[axis];
    const po_rt *pad = po_rt_pad(w->arena, shape->rank, dims, none, after);
    return emit(w, x, &pad, 1);
}

/* The parts, each with what fills it up behind it where they are even, or without the axis that
 * they were stacked on. */
static void split(writing *w, const en_program *p, const en_op *op, const en_shape *from,
                  po_value_id x) {
    int64_t sizes[2 * EN_OUTS], dims[EN_RANK];
    po_value_id out[2 * EN_OUTS], in[2] = {x, PO_NONE};
    uint32_t n = 0;
    int64_t opset = po_model_opset(w->g->model, "");
    for (uint32_t k = 0; k < op->n_out; k++) {
        bool stacked = op->how == EN_STACKED;
        int32_t rest = op->how == EN_EVEN ? from->d[op->axis] / op->n_out - op->size[k] : 0;
        wide(from, dims);
        for (uint32_t part = 0; part < (rest ? 2u : 1u); part++) {
            sizes[n] = dims[op->axis] = stacked ? 1 : part ? rest : op->size[k];
            po_type type = po_type_tensor_i64(w->g->arena, w->dtype, from->rank, dims);
            out[n++] = po_graph_add_value(w->g, NULL, &type);
        }
        w->slot[op->out + k] = out[n - (rest ? 2u : 1u)];
    }
    if (opset >= 13)
        in[1] = po_add_i64s(w->g, NULL, n, sizes);
    po_node_id node = po_ops_add(w->g, w->place,
                                 &(po_node_spec){.op = PO_OP_Split,
                                                 .name = w->g->values[out[0]].name,
                                                 .n_in = opset >= 13 ? 2 : 1,
                                                 .in = in,
                                                 .n_out = n,
                                                 .out = out});
    po_node_set_int(w->g, node, "axis", op->axis);
    if (opset < 13)
        po_node_set_ints(w->g, node, "split", n, sizes);
    for (uint32_t k = 0; op->how == EN_STACKED && k < op->n_out; k++) {
        const en_shape *s = &p->shape[op->out + k];
        wide(s, dims);
        w->slot[op->out + k] = po_add_reshape(w->g, w->place, w->slot[op->out + k], s->rank, dims);
    }
}

static void write_op(writing *w, const en_program *p, uint32_t n) {
    static const po_op_id ops[] = {[EN_CONV] = PO_OP_Conv,
                                   [EN_MATMUL] = PO_OP_MatMul,
                                   [EN_ADD] = PO_OP_Add,
                                   [EN_CONCAT] = PO_OP_Concat,
                                   [EN_POOL] = PO_OP_AveragePool};
    const en_op *op = &p->op[n];
    const en_shape *made = &p->shape[op->out];
    po_value_id in[EN_ARGS];
    for (uint32_t k = 0; k < op->n_in; k++) {
        in[k] = w->slot[op->in[k]];
        const en_rt *rt = p->view[n][k];
        if (rt)
            in[k] = move(w, in[k], rt, false);
        const en_shape *s = en_operand(p, n, k);
        if (op->kind == EN_CONCAT && op->how == EN_EVEN && !w->failed)
            in[k] = fill_up(w, in[k], s, op->axis, made->d[op->axis] / op->n_in);
        if (op->kind == EN_CONCAT && op->how == EN_STACKED && !w->failed) {
            int64_t dims[EN_RANK] = {1};
            for (uint32_t i = 0; i < s->rank; i++)
                dims[i + 1] = s->d[i];
            in[k] = po_add_reshape(w->g, w->place, in[k], made->rank, dims);
        }
        if (w->failed)
            return;
    }
    if (op->kind == EN_SPLIT) {
        split(w, p, op, en_operand(p, n, 0), in[0]);
    } else if (op->kind == EN_MOVE) {
        w->slot[op->out] = in[0];
    } else if (op->kind == EN_RESHAPE) {
        int64_t dims[EN_RANK];
        wide(made, dims);
        w->slot[op->out] = po_add_reshape(w->g, w->place, in[0], made->rank, dims);
    } else {
        po_value_id y = add_op(w, ops[op->kind], op->n_in, in, made);
        po_node_id node = w->g->values[y].producer;
        w->slot[op->out] = y;
        if (op->kind == EN_CONCAT)
            po_node_set_int(w->g, node, "axis", op->axis);
        if (op->kind == EN_CONV) {
            const en_shape *x = en_operand(p, n, 0);
            const en_shape *k = en_operand(p, n, 1);
            window_attributes(w, node, op, made->rank - 2u, x->d[1] / k->d[1]);
        }
        if (op->kind == EN_POOL)
            window_attributes(w, node, op, made->rank - 2u, 1);
    }
}

/* Adds a bias: into the convolution where that made the value, else by an Add. */
static po_value_id add_bias(writing *w, po_value_id y, const en_shape *shape, po_value_id bias,
                            bool of_conv) {
    const po_node *maker = po_graph_producer(w->g, y);
    if (of_conv) {
        if (maker && po_conv_is(maker) && maker->n_in == 2 && !w->g->values[y].n_uses &&
            !w->g->values[y].n_outputs) {
            po_node_id node = w->g->values[y].producer;
            po_graph_resize_inputs(w->g, node, 3);
            po_graph_set_input(w->g, node, 2, bias);
            return y;
        }
        int64_t dims[EN_RANK] = {shape->d[1], 1, 1, 1, 1};
        bias = po_add_reshape(w->g, w->place, bias, shape->rank - 1u, dims);
    }
    return add_op(w, PO_OP_Add, 2, (po_value_id[]){y, bias}, shape);
}

/* Whether the bias belongs to a convolution: it then lies along axis 1. */
static bool bias_of_conv(const po_graph *g, po_value_id bias) {
    for (uint32_t i = 0; i < g->values[bias].n_uses; i++) {
        const po_use *u = &g->values[bias].uses[i];
        if (u->input == 2 && po_conv_is(&g->nodes[u->node]))
            return true;
    }
    return false;
}

po_status en_write(po_ctx *ctx, po_arena *arena, const en_problem *problem,
                   const en_program *program, po_graph **graph) {
    const po_graph *from = problem->graph;
    writing w = {.ctx = ctx, .arena = arena, .g = po_graph_clone(ctx, from)};
    po_value_id made[EN_OUTS];
    w.dtype = from->values[problem->output[0]].type.dtype;
    w.place = from->values[problem->output[program->n_out - 1]].producer;
    *graph = NULL;
    for (uint32_t i = 0; i < program->n_in; i++)
        w.slot[i] = i + 1 == program->table ? write_table(&w, &problem->target.shape[i])
                                            : problem->input[i];
    for (uint32_t n = 0; n < program->n_ops && !w.failed; n++)
        write_op(&w, program, n);
    for (uint32_t k = 0; k < program->n_out && !w.failed; k++) {
        const en_shape *shape = &problem->target.shape[problem->target.out[k]];
        po_value_id y = w.slot[program->out[k]];
        if (program->last[k])
            y = move(&w, y, program->last[k], true);
        for (uint32_t t = 0; t < problem->n_biases[k] && !w.failed; t++)
            y = add_bias(&w, y, shape, problem->bias[k][t],
                         bias_of_conv(from, problem->bias[k][t]));
        made[k] = y;
    }
    for (uint32_t k = 0; k < program->n_out && !w.failed; k++)
        po_substitute(w.g, problem->output[k], made[k]);
    if (w.failed) {
        po_graph_free(w.g);
        return PO_OK;
    }
    for (uint32_t k = 0; k < program->n_out; k++)
        if (program->last[k] && made[k] < w.g->n_values)
            join_moves_after(&w, made[k]);
    po_graph_sweep(w.g);
    *graph = w.g;
    return po_infer_graph(ctx, w.g, false);
}
