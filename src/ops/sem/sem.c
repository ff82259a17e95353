/* Driver of the rules for indexed sums, and their helpers. */
#include "ops/sem/sem.h"

#include "base/num.h"
#include "ops/window.h"

static bool fill(po_arena *arena, const po_type *type, po_sem_tensor *t) {
    if (!type)
        return true;
    if (po_type_count(type) < 0)
        return false;
    int64_t *dims = PO_NEW_N(arena, int64_t, type->rank);
    for (uint32_t i = 0; i < type->rank; i++)
        dims[i] = type->dims[i].value;
    *t = (po_sem_tensor){.given = true, .dtype = type->dtype, .rank = type->rank, .dims = dims};
    return true;
}

po_status po_sem_node(po_ctx *ctx, po_arena *arena, const po_graph *graph, const po_node *node,
                      const po_type *const *in, const po_tensor *const *constant,
                      const po_type *const *out, po_sum **sums) {
    const po_op_row *row = po_op_row_of(node->op);
    for (uint32_t i = 0; i < node->n_out; i++)
        sums[i] = NULL;
    if (!row || !row->sem || (int)node->n_in < row->min_in ||
        (row->max_in >= 0 && (int)node->n_in > row->max_in) || (int)node->n_out < row->min_out)
        return PO_UNSUPPORTED;
    po_sem_tensor *ins = PO_NEW_N(arena, po_sem_tensor, node->n_in);
    po_sem_tensor *outs = PO_NEW_N(arena, po_sem_tensor, node->n_out);
    for (uint32_t i = 0; i < node->n_in; i++) {
        if (!fill(arena, in[i], &ins[i]))
            return PO_UNSUPPORTED;
        ins[i].constant = constant[i];
    }
    for (uint32_t i = 0; i < (uint32_t)row->min_in; i++)
        if (!ins[i].given)
            return PO_UNSUPPORTED;
    for (uint32_t i = 0; i < node->n_out; i++)
        if (!fill(arena, out[i], &outs[i]))
            return PO_UNSUPPORTED;
    if (!node->n_out || !outs[0].given)
        return PO_UNSUPPORTED;
    po_sem sem = {.ctx = ctx,
                  .arena = arena,
                  .graph = graph,
                  .node = node,
                  .opset = po_op_version(graph, node),
                  .n_in = node->n_in,
                  .n_out = node->n_out,
                  .in = ins,
                  .out = outs,
                  .sum = sums};
    po_status status = row->sem(&sem);
    for (uint32_t i = 0; i < node->n_out; i++)
        if (status != PO_OK || (sums[i] && !po_sum_check(sums[i]))) {
            sums[i] = NULL;
            status = status == PO_OK ? PO_UNSUPPORTED : status;
        }
    return status;
}

po_status po_sem_of(po_ctx *ctx, po_arena *arena, const po_graph *graph, const po_node *node,
                    po_sum **sums) {
    const po_type **in = PO_NEW_N(arena, const po_type *, node->n_in);
    const po_tensor **constant = PO_NEW_N(arena, const po_tensor *, node->n_in);
    const po_type **out = PO_NEW_N(arena, const po_type *, node->n_out);
    for (uint32_t i = 0; i < node->n_in; i++)
        if (node->in[i] != PO_NONE) {
            in[i] = &graph->values[node->in[i]].type;
            constant[i] = po_graph_constant(graph, node->in[i]);
        }
    for (uint32_t i = 0; i < node->n_out; i++)
        if (node->out[i] != PO_NONE)
            out[i] = &graph->values[node->out[i]].type;
    return po_sem_node(ctx, arena, graph, node, in, constant, out, sums);
}

bool po_sem_is_float(const po_sem *sem, uint32_t input) {
    return po_dtype_class_of(sem->in[input].dtype) == PO_CLASS_FLOAT;
}

po_sum *po_sem_begin(po_sem *sem, uint32_t output) {
    sem->sum[output] = po_sum_create(sem->arena, sem->out[output].rank, sem->out[output].dims);
    return sem->sum[output];
}

uint32_t po_sem_operand(const po_sem *sem, po_sum *sum, uint32_t input) {
    return po_sum_input(sum, input, sem->in[input].rank, sem->in[input].dims);
}

bool po_sem_ints(const po_sem *sem, uint32_t input, uint32_t *n, const int64_t **values) {
    const po_tensor *t = sem->in[input].constant;
    if (!t || t->rank > 1 || t->count > UINT32_MAX / 2 ||
        po_dtype_class_of(t->dtype) == PO_CLASS_NONE)
        return false;
    int64_t *v = PO_NEW_N(sem->arena, int64_t, t->count);
    for (int64_t i = 0; i < t->count; i++)
        v[i] = po_tensor_int(t, i);
    *n = (uint32_t)t->count;
    *values = v;
    return true;
}

bool po_sem_ints_or_attr(const po_sem *sem, uint32_t input, const char *attr, uint32_t *n,
                         const int64_t **values) {
    if (po_sem_has(sem, input))
        return po_sem_ints(sem, input, n, values);
    *values = po_node_ints(sem->node, attr, n);
    return *values || !po_node_attr(sem->node, attr);
}

bool po_sem_axis(int64_t axis, uint32_t rank, uint32_t *at) {
    if (axis < -(int64_t)rank || axis >= (int64_t)rank)
        return false;
    *at = (uint32_t)(axis < 0 ? axis + rank : axis);
    return true;
}

bool po_sem_fraction(const po_sem *sem, uint32_t input, int64_t i, po_rational *value) {
    const po_tensor *t = sem->in[input].constant;
    return t && i < t->count && po_dtype_class_of(t->dtype) != PO_CLASS_NONE &&
           po_rational_from_f64(po_tensor_f64(t, i), value);
}

const char *po_sem_axis_name(uint32_t i, uint32_t n) {
    static const char *const names[] = {"x", "y", "z"};
    return n - 1 - i < 3 ? names[n - 1 - i] : NULL;
}

po_term *po_sem_pointwise(po_sum *sum, uint32_t more) {
    po_term *t = po_sum_term(sum, sum->rank + more);
    for (uint32_t i = 0; i < sum->rank; i++) {
        po_term_var(t, sum->rank == 4 ? ((const char *const[]){"n", "c", "y", "x"})[i] : NULL,
                    sum->dims[i]);
        po_index_add(t, &t->out, i, 1, i);
    }
    return t;
}

bool po_sem_broadcast(po_sum *sum, po_term *term, uint32_t operand) {
    const po_operand *op = &sum->operands[operand];
    po_index *at = po_term_factor(sum, term, operand);
    if (!at || op->rank > sum->rank)
        return false;
    uint32_t shift = sum->rank - op->rank;
    for (uint32_t i = 0; i < op->rank; i++) {
        if (op->dims[i] == sum->dims[i + shift])
            po_index_add(term, at, i, 1, i + shift);
        else if (op->dims[i] != 1)
            return false;
    }
    return true;
}

/* ceil_mode is the pools' own: the last window may hang over the end. */
static bool fits(const po_sem *sem, const po_sem_window *w, int64_t in, int64_t out) {
    int64_t reach, room;
    if (w->kernel < 1 || w->stride < 1 || w->dilation < 1 ||
        !po_mul_i64(w->kernel - 1, w->dilation, &reach) || !po_add_i64(in, w->before, &room) ||
        !po_add_i64(room, w->after, &room) || !po_sub_i64(room, reach, &room) ||
        !po_sub_i64(room, 1, &room))
        return false;
    if (room < 0)
        return out == 0 ||
               (out == 1 && in > 0 && room > -w->stride && po_window_clips(sem->graph, sem->node));
    if (out == room / w->stride + 1)
        return true;
    return po_node_int(sem->node, "ceil_mode", 0) && room % w->stride &&
           out == room / w->stride + 2;
}

bool po_sem_windows(const po_sem *sem, uint32_t n, const int64_t *kernel, const int64_t *in,
                    const int64_t *out, po_sem_window *windows) {
    uint32_t n_kernel, n_strides, n_dilations, n_pads;
    const int64_t *shape = po_node_ints(sem->node, "kernel_shape", &n_kernel);
    const int64_t *strides = po_node_ints(sem->node, "strides", &n_strides);
    const int64_t *dilations = po_node_ints(sem->node, "dilations", &n_dilations);
    const int64_t *pads = po_node_ints(sem->node, "pads", &n_pads);
    if ((shape && n_kernel != n) || (!shape && !kernel) || (strides && n_strides != n) ||
        (dilations && n_dilations != n) || (pads && n_pads != 2 * n))
        return false;
    bool upper = po_node_string_is(sem->node, "auto_pad", "SAME_UPPER", "NOTSET");
    bool lower = po_node_string_is(sem->node, "auto_pad", "SAME_LOWER", "NOTSET");
    bool given = po_node_string_is(sem->node, "auto_pad", "NOTSET", "NOTSET");
    if (!upper && !lower && !given && !po_node_string_is(sem->node, "auto_pad", "VALID", "NOTSET"))
        return false;
    for (uint32_t i = 0; i < n; i++) {
        po_sem_window *w = &windows[i];
        *w = (po_sem_window){.kernel = kernel ? kernel[i] : shape[i],
                             .stride = strides ? strides[i] : 1,
                             .dilation = dilations ? dilations[i] : 1,
                             .before = pads && given ? pads[i] : 0,
                             .after = pads && given ? pads[n + i] : 0};
        if (kernel && shape && kernel[i] != shape[i])
            return false;
        if (w->stride < 1 || w->dilation < 1)
            return false;
        if (upper || lower) {
            int64_t total, reach;
            if (out[i] != po_ceil_div(in[i], w->stride) ||
                !po_mul_i64(out[i] - 1, w->stride, &total) ||
                !po_mul_i64(w->kernel - 1, w->dilation, &reach) ||
                !po_add_i64(total, reach, &total) || !po_sub_i64(total, in[i] - 1, &total))
                return false;
            total = total < 0 ? 0 : total;
            w->before = upper ? total / 2 : total - total / 2;
            w->after = total - w->before;
        }
        if (!fits(sem, w, in[i], out[i]))
            return false;
    }
    return true;
}
