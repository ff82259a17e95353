/* Which elements of a value show in the graph's outputs: backwards from the outputs, element by
 * element where an operator reads some and leaves others out (slices, padding, strides).
 *
 * An operator that is not known here shows nothing, so what is said to show does. What shows on one
 * of several ways shows. */
#include "verify/proof/internal.h"

#include "ops/window.h"

/* What walking the windows of one convolution may take. */
#define MOST_STEPS 5e8
enum { MOST_ELEMENTS = 1 << 26 };

typedef struct shows {
    po_ctx *ctx;
    po_arena *arena;
    const po_graph *graph;
    bool **mask; /* by value: of its elements; NULL: none so far */
} shows;

static int64_t count_of(const shows *s, po_value_id v) {
    const po_type *t = v == PO_NONE ? NULL : &s->graph->values[v].type;
    if (!t || t->kind != PO_TYPE_TENSOR || !po_type_static(t))
        return -1;
    int64_t count = po_type_count(t);
    return count <= MOST_ELEMENTS ? count : -1;
}

/* The mask of a value that carries what may show; NULL for constants, integers, unknown shapes. */
static bool *mask_of(const shows *s, po_value_id v) {
    int64_t count = count_of(s, v);
    if (count < 0 || po_graph_constant(s->graph, v) ||
        po_dtype_class_of(s->graph->values[v].type.dtype) != PO_CLASS_FLOAT)
        return NULL;
    if (!s->mask[v])
        s->mask[v] = PO_NEW_N(s->arena, bool, count);
    return s->mask[v];
}

static bool all_of(const shows *s, po_value_id v) {
    int64_t count = count_of(s, v);
    const bool *mask = count < 0 ? NULL : s->mask[v];
    for (int64_t i = 0; mask && i < count; i++)
        if (!mask[i])
            return false;
    return mask != NULL;
}

static void show_all(const shows *s, po_value_id v) {
    bool *mask = v == PO_NONE ? NULL : mask_of(s, v);
    if (mask)
        memset(mask, true, (size_t)count_of(s, v));
}

static bool has_zero(const po_tensor *t) {
    if (po_dtype_class_of(t->dtype) != PO_CLASS_FLOAT)
        return true;
    for (int64_t i = 0; i < t->count; i++)
        if (po_tensor_f64(t, i) == 0)
            return true;
    return false;
}

/* --- operators --- */

/* Elements that move: numbers take their places. */
static po_status by_moving(shows *s, const po_node *n) {
    const po_array **in = PO_NEW_N(s->arena, const po_array *, n->n_in);
    po_array **out = PO_NEW_N(s->arena, po_array *, n->n_out);
    bool **mask = PO_NEW_N(s->arena, bool *, n->n_in);
    int64_t *from = PO_NEW_N(s->arena, int64_t, n->n_in + 1);
    for (uint32_t k = 0; k < n->n_in; k++) {
        from[k + 1] = from[k];
        if (n->in[k] == PO_NONE)
            continue;
        const po_type *type = &s->graph->values[n->in[k]].type;
        const po_tensor *t = po_graph_constant(s->graph, n->in[k]);
        po_array *a = NULL;
        if (t && po_dtype_class_of(t->dtype) != PO_CLASS_FLOAT) {
            PO_TRY(po_array_from_tensor(s->ctx, s->arena, t, &a));
        } else {
            int64_t count = t ? t->count : count_of(s, n->in[k]);
            if (count < 0 || (!t && !(mask[k] = mask_of(s, n->in[k]))))
                return PO_OK;
            int64_t dims[PO_MAX_RANK];
            uint32_t rank = t ? t->rank : type->rank;
            for (uint32_t i = 0; i < rank; i++)
                dims[i] = t ? t->dims[i] : type->dims[i].value;
            PO_TRY(po_array_create(s->ctx, s->arena, PO_F64, rank, dims, &a));
            for (int64_t i = 0; !t && i < count; i++)
                a->f[i] = (double)(from[k] + i + 1); /* 0: no element */
            from[k + 1] += t ? 0 : count;
        }
        in[k] = a;
    }
    PO_TRY(po_ref_node(s->ctx, s->arena, s->graph, n, in, out));
    for (uint32_t o = 0; o < n->n_out; o++) {
        const bool *shown = n->out[o] == PO_NONE ? NULL : s->mask[n->out[o]];
        if (!shown || !out[o] || !out[o]->f || out[o]->count != count_of(s, n->out[o]))
            continue;
        for (int64_t i = 0; i < out[o]->count; i++) {
            int64_t id = (int64_t)out[o]->f[i] - 1;
            for (uint32_t k = 0; shown[i] && id >= 0 && k < n->n_in; k++)
                if (mask[k] && id >= from[k] && id < from[k + 1])
                    mask[k][id - from[k]] = true;
        }
    }
    return PO_OK;
}

/* Each element of the output by those that are broadcast to its place. */
static void by_element(const shows *s, const po_node *n) {
    const po_type *to = &s->graph->values[n->out[0]].type;
    const bool *shown = s->mask[n->out[0]];
    int64_t count = count_of(s, n->out[0]);
    for (uint32_t k = 0; n->op == PO_OP_Mul && k < n->n_in; k++) {
        const po_tensor *t = po_graph_constant(s->graph, n->in[k]);
        if (t && has_zero(t)) /* hides what it multiplies */
            return;
    }
    for (uint32_t k = 0; k < n->n_in; k++) {
        bool *mask = n->in[k] == PO_NONE ? NULL : mask_of(s, n->in[k]);
        if (!mask)
            continue;
        const po_type *from = &s->graph->values[n->in[k]].type;
        if (from->rank > to->rank)
            continue;
        for (int64_t i = 0; i < count; i++) {
            int64_t rest = i, at = 0, stride = 1;
            for (uint32_t a = to->rank; shown[i] && a-- > 0;) {
                int64_t place = rest % to->dims[a].value;
                rest /= to->dims[a].value;
                if (a + from->rank < to->rank)
                    continue;
                int64_t length = from->dims[a + from->rank - to->rank].value;
                at += length == 1 ? 0 : place * stride;
                stride *= length;
            }
            if (shown[i])
                mask[at] = true;
        }
    }
}

/* True where every place that is summed over meets a factor that is not zero: rows of the matrices
 * of a constant on the right of a product, columns of one on the left. */
static bool factor_keeps_all(const po_tensor *t, bool right) {
    if (po_dtype_class_of(t->dtype) != PO_CLASS_FLOAT)
        return false;
    if (t->rank < 2)
        return !has_zero(t);
    int64_t rows = t->dims[t->rank - 2], columns = t->dims[t->rank - 1];
    int64_t summed = right ? rows : columns, others = right ? columns : rows;
    for (int64_t from = 0; from < t->count; from += rows * columns)
        for (int64_t i = 0; i < summed; i++) {
            int64_t j = 0;
            while (j < others &&
                   po_tensor_f64(t, from + (right ? i * columns + j : j * columns + i)) == 0)
                j++;
            if (j == others)
                return false;
        }
    return true;
}

static void by_product(const shows *s, const po_node *n) {
    if (!all_of(s, n->out[0]))
        return;
    for (uint32_t k = 0; k < 2; k++) {
        const po_tensor *other = po_graph_constant(s->graph, n->in[1 - k]);
        if (!other || factor_keeps_all(other, k == 0))
            show_all(s, n->in[k]);
    }
}

/* For each channel and tap whether any output reads it with a factor that is not zero. */
static bool *taps_of(const shows *s, const po_tensor *w, int64_t groups, int64_t taps) {
    int64_t outputs = w->dims[0] / groups, in = w->dims[1];
    bool *used = PO_NEW_N(s->arena, bool, groups *in *taps);
    for (int64_t o = 0; o < w->dims[0]; o++)
        for (int64_t i = 0; i < in * taps; i++)
            if (po_tensor_f64(w, o * in * taps + i) != 0)
                used[o / outputs * in * taps + i] = true;
    return used;
}

/* Positions of the output at which every channel shows. */
static bool *shown_positions(const shows *s, po_value_id v, int64_t channels, int64_t positions,
                             int64_t batch) {
    bool *all = PO_NEW_N(s->arena, bool, positions);
    const bool *mask = s->mask[v] + batch * channels * positions;
    memset(all, true, (size_t)positions);
    for (int64_t i = 0; i < channels * positions; i++)
        all[i % positions] &= mask[i];
    return all;
}

static po_status by_windows(shows *s, const po_node *n) {
    const po_type *x = &s->graph->values[n->in[0]].type, *y = &s->graph->values[n->out[0]].type;
    const po_tensor *w = po_graph_constant(s->graph, n->in[1]);
    bool *mask = mask_of(s, n->in[0]);
    if (!mask || !w || po_dtype_class_of(w->dtype) != PO_CLASS_FLOAT || w->rank != x->rank ||
        x->rank < 3 || y->rank != x->rank || !po_type_static(y))
        return PO_OK;
    uint32_t axes = x->rank - 2;
    po_window window;
    PO_TRY(po_window_read(s->ctx, s->graph, n, axes, w->dims + 2, &window));
    int64_t groups = po_node_int(n, "group", 1), channels = x->dims[1].value, taps = 1, from = 1,
            to = 1;
    for (uint32_t a = 0; a < axes; a++) {
        po_window_out(&window, a, x->dims[2 + a]);
        taps *= w->dims[2 + a];
        from *= x->dims[2 + a].value;
        to *= y->dims[2 + a].value;
    }
    if (groups < 1 || w->dims[0] % groups != 0 || w->dims[1] * groups != channels ||
        y->dims[1].value != w->dims[0] || (double)channels * (double)to * (double)taps > MOST_STEPS)
        return PO_OK;
    bool *used = taps_of(s, w, groups, taps);
    for (int64_t b = 0; b < x->dims[0].value; b++) {
        bool *shown = shown_positions(s, n->out[0], w->dims[0], to, b);
        for (int64_t p = 0; p < to; p++)
            for (int64_t t = 0; shown[p] && t < taps; t++) {
                int64_t at = 0, stride = 1, place = p, tap = t;
                bool inside = true;
                for (uint32_t a = axes; a-- > 0;) {
                    int64_t length = x->dims[2 + a].value;
                    int64_t i = place % y->dims[2 + a].value * window.stride[a] +
                                tap % w->dims[2 + a] * window.dilation[a] - window.begin[a];
                    place /= y->dims[2 + a].value;
                    tap /= w->dims[2 + a];
                    inside = inside && i >= 0 && i < length;
                    at += i * stride;
                    stride *= length;
                }
                for (int64_t c = 0; inside && c < channels; c++)
                    if (used[c * taps + t])
                        mask[(b * channels + c) * from + at] = true;
            }
    }
    return PO_OK;
}

/* --- the graph --- */

static po_status through(shows *s, const po_node *n) {
    if (n->n_out < 1 || n->n_in < 1)
        return PO_OK;
    bool any = false;
    for (uint32_t k = 0; k < n->n_out; k++)
        any |= n->out[k] != PO_NONE && s->mask[n->out[k]];
    if (!any || (n->out[0] == PO_NONE && !po_op_has(n->op, PO_OPF_MOVES_DATA)))
        return PO_OK;
    switch (n->op) {
    case PO_OP_ReduceMean:
    case PO_OP_ReduceSum:
    case PO_OP_ReduceMax:
    case PO_OP_GlobalMaxPool:
    case PO_OP_GlobalAveragePool:
    case PO_OP_Softmax:
    case PO_OP_LogSoftmax:
        if (all_of(s, n->out[0]))
            show_all(s, n->in[0]);
        return PO_OK;
    case PO_OP_LayerNormalization:
    case PO_OP_Gemm:
        for (uint32_t k = 0; k < 2; k++) {
            const po_tensor *t =
                n->in[1 - k] == PO_NONE ? NULL : po_graph_constant(s->graph, n->in[1 - k]);
            if (all_of(s, n->out[0]) && !(t && has_zero(t)))
                show_all(s, n->in[k]);
        }
        return PO_OK;
    case PO_OP_MatMul:
        by_product(s, n);
        return PO_OK;
    case PO_OP_Conv:
        return by_windows(s, n);
    case PO_OP_Where:
    case PO_OP_Dropout:
        return PO_OK;
    default:
        break;
    }
    if (po_op_has(n->op, PO_OPF_MOVES_DATA))
        return by_moving(s, n);
    if (po_op_has(n->op, PO_OPF_ELEMENTWISE) && n->n_out == 1 && s->mask[n->out[0]])
        by_element(s, n);
    return PO_OK;
}

bool po_pn_all_shows(po_pnode *at, po_value_id value) {
    const po_graph *g = at->graph;
    shows s = {at->run->ctx, po_arena_child(at->arena), g, NULL};
    s.mask = PO_NEW_N(s.arena, bool *, g->n_values);
    uint32_t n;
    const po_node_id *order = po_graph_order(g, s.arena, &n);
    for (uint32_t k = 0; k < g->n_outputs; k++)
        show_all(&s, g->outputs[k]);
    bool all = false;
    for (uint32_t k = n; k-- > 0;) {
        const po_node *node = &g->nodes[order[k]];
        if (node == at->node) {
            all = all_of(&s, value);
            break;
        }
        if (node->removed)
            continue;
        if (through(&s, node) != PO_OK)
            po_ctx_clear(s.ctx);
    }
    po_arena_free(s.arena);
    return all;
}
