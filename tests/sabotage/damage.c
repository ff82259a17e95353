/* Each bug changes one place of a clone (a pad, a bound, an order, a sign, an entry of a table) and
 * keeps the types of the outputs; where there is no nth place for it there is no graph. */
#include "damage.h"

#include "ops/rewrite.h"
#include "unit.h"

/* The nth live node of an operator, or of any where op is 0. */
static po_node *node_at(po_graph *g, po_op_id op, uint32_t nth) {
    for (uint32_t i = 0; i < g->n_nodes; i++)
        if (!g->nodes[i].removed && (op == 0 || g->nodes[i].op == op) && nth-- == 0)
            return &g->nodes[i];
    return NULL;
}

static po_node_id id_of(const po_graph *g, const po_node *n) {
    return (po_node_id)(n - g->nodes);
}

static bool set_item(po_graph *g, const po_node *n, const char *name, uint32_t at, int64_t by) {
    uint32_t count;
    int64_t list[64];
    const int64_t *from = po_node_ints(n, name, &count);
    if (!from || at >= count || count > 64)
        return false;
    memcpy(list, from, count * sizeof *list);
    list[at] += by;
    if (list[at] < 0)
        return false;
    po_node_set_ints(g, id_of(g, n), name, count, list);
    return true;
}

/* Another constant in the place of an integer input: the items at `at` and `other` moved by `by`
 * and `other_by`. */
static bool set_input_items(po_graph *g, const po_node *n, uint32_t input, uint32_t at, int64_t by,
                            uint32_t other, int64_t other_by) {
    const po_tensor *t =
        input < n->n_in && n->in[input] != PO_NONE ? po_graph_constant(g, n->in[input]) : NULL;
    int64_t list[64];
    if (!t || t->dtype != PO_I64 || t->count > 64 || at >= t->count || other >= t->count)
        return false;
    for (int64_t i = 0; i < t->count; i++)
        list[i] = po_tensor_int(t, i);
    list[at] += by;
    list[other] += other_by;
    po_graph_set_input(g, id_of(g, n), input, po_add_i64s(g, NULL, (uint32_t)t->count, list));
    return true;
}

/* Moves one step of a window's padding to the other side of the axis. */
static bool wrong_pad(po_graph *g, uint32_t nth) {
    po_node *n = node_at(g, 0, nth);
    uint32_t count = 0;
    const int64_t *pads = n ? po_node_ints(n, "pads", &count) : NULL;
    for (uint32_t i = 0; pads && i < count / 2; i++) {
        uint32_t j = i + count / 2;
        if (pads[j] > 0)
            return set_item(g, n, "pads", j, -1) && set_item(g, n, "pads", i, 1);
        if (pads[i] > 0)
            return set_item(g, n, "pads", i, -1) && set_item(g, n, "pads", j, 1);
    }
    if (!n || n->op != PO_OP_Pad || n->n_in < 2)
        return false;
    const po_tensor *t = po_graph_constant(g, n->in[1]);
    for (uint32_t i = 0; t && i < t->count / 2; i++) {
        uint32_t j = i + (uint32_t)(t->count / 2);
        if (po_tensor_int(t, j) > 0)
            return set_input_items(g, n, 1, j, -1, i, 1);
        if (po_tensor_int(t, i) > 0)
            return set_input_items(g, n, 1, i, -1, j, 1);
    }
    return false;
}

static bool slice_by(po_graph *g, uint32_t nth, int64_t by) {
    po_node *n = node_at(g, PO_OP_Slice, nth);
    if (!n || n->n_in < 3)
        return false;
    const po_tensor *t = po_graph_constant(g, n->in[1]);
    if (!t || po_tensor_int(t, 0) + by < 0)
        return false;
    return set_input_items(g, n, 1, 0, by, 0, 0) && set_input_items(g, n, 2, 0, by, 0, 0);
}

static bool slice_late(po_graph *g, uint32_t nth) {
    return slice_by(g, nth, 1);
}

static bool slice_early(po_graph *g, uint32_t nth) {
    return slice_by(g, nth, -1);
}

static bool concat_order(po_graph *g, uint32_t nth) {
    po_node *n = node_at(g, PO_OP_Concat, nth);
    if (!n || n->n_in < 2)
        return false;
    po_value_id a = n->in[0], b = n->in[1];
    po_node_id id = id_of(g, n);
    po_graph_set_input(g, id, 0, b);
    po_graph_set_input(g, id, 1, a);
    return true;
}

static bool concat_twice(po_graph *g, uint32_t nth) {
    po_node *n = node_at(g, PO_OP_Concat, nth);
    if (!n || n->n_in < 2 || !po_type_equal(&g->values[n->in[0]].type, &g->values[n->in[1]].type))
        return false;
    po_graph_set_input(g, id_of(g, n), 1, n->in[0]);
    return true;
}

static po_node *sum_at(po_graph *g, uint32_t nth) {
    po_node *n = node_at(g, 0, nth);
    return n && (n->op == PO_OP_Add || n->op == PO_OP_Sub || n->op == PO_OP_Sum) && n->n_in >= 2
               ? n
               : NULL;
}

static po_value_id zero_like(po_graph *g) {
    double zero = 0;
    return po_add_floats(g, NULL, PO_F32, 0, NULL, &zero);
}

static bool term_dropped(po_graph *g, uint32_t nth) {
    po_node *n = sum_at(g, nth);
    if (!n)
        return false;
    po_node_id id = id_of(g, n);
    po_graph_set_input(g, id, n->n_in - 1, zero_like(g));
    return true;
}

static bool term_doubled(po_graph *g, uint32_t nth) {
    po_node *n = sum_at(g, nth);
    if (!n)
        return false;
    po_node_id id = id_of(g, n);
    po_value_id last = n->in[n->n_in - 1];
    po_type type = g->values[last].type;
    po_value_id two = po_add_op(g, id, PO_OP_Add, 2, (po_value_id[]){last, last}, &type);
    po_graph_set_input(g, id, g->nodes[id].n_in - 1, two);
    return true;
}

static bool sign_lost(po_graph *g, uint32_t nth) {
    po_node *n = node_at(g, 0, nth);
    if (!n || (n->op != PO_OP_Add && n->op != PO_OP_Sub))
        return false;
    po_value_id in[2] = {n->in[0], n->in[1]}, out = n->out[0];
    po_type type = g->values[out].type;
    po_op_id op = n->op == PO_OP_Add ? PO_OP_Sub : PO_OP_Add;
    po_value_id y = po_add_op(g, id_of(g, n), op, 2, in, &type);
    return po_graph_replace_uses(g, out, y);
}

/* Two digits of equal extent trade places in a transpose. */
static bool digits_swapped(po_graph *g, uint32_t nth) {
    po_node *n = node_at(g, PO_OP_Transpose, nth);
    uint32_t count, rank;
    const int64_t *perm = n ? po_node_ints(n, "perm", &count) : NULL;
    const po_dim *dims = perm ? po_static_dims(g, n->in[0], &rank) : NULL;
    for (uint32_t i = 0; dims && i < count; i++)
        for (uint32_t j = i + 1; j < count; j++) {
            int64_t list[64];
            if (dims[perm[i]].value != dims[perm[j]].value || dims[perm[i]].value < 2)
                continue;
            memcpy(list, perm, count * sizeof *list);
            list[i] = perm[j];
            list[j] = perm[i];
            po_node_set_ints(g, id_of(g, n), "perm", count, list);
            return true;
        }
    return false;
}

/* Turns an axis of what a node reads around. */
static bool reverse_input(po_graph *g, po_node_id id, uint32_t input, uint32_t axis) {
    po_value_id x = g->nodes[id].in[input];
    po_type type = g->values[x].type;
    int64_t at = axis;
    po_value_id in[5] = {x, po_add_i64s(g, NULL, 1, (int64_t[]){-1}),
                         po_add_i64s(g, NULL, 1, (int64_t[]){INT32_MIN}),
                         po_add_i64s(g, NULL, 1, &at), po_add_i64s(g, NULL, 1, (int64_t[]){-1})};
    po_value_id y = po_add_op(g, id, PO_OP_Slice, 5, in, &type);
    po_graph_set_input(g, id, input, y);
    return true;
}

/* The nth axis, counted over all reads of tensors by an operator, that is longer than 1. */
static bool reverse_nth(po_graph *g, po_op_id op, uint32_t input, uint32_t nth) {
    for (uint32_t i = 0; i < g->n_nodes; i++) {
        uint32_t rank;
        if (g->nodes[i].removed || g->nodes[i].op != op || g->nodes[i].n_in <= input)
            continue;
        const po_dim *dims = po_static_dims(g, g->nodes[i].in[input], &rank);
        for (uint32_t x = 0; dims && x < rank; x++)
            if (dims[x].value > 1 && nth-- == 0)
                return reverse_input(g, i, input, x);
    }
    return false;
}

static bool kernel_flipped(po_graph *g, uint32_t nth) {
    return reverse_nth(g, PO_OP_Conv, 1, 2 + nth);
}

static bool weights_turned(po_graph *g, uint32_t nth) {
    return reverse_nth(g, PO_OP_Conv, 1, nth);
}

static bool phases_turned(po_graph *g, uint32_t nth) {
    return reverse_nth(g, PO_OP_Transpose, 0, nth);
}

static bool factor_turned(po_graph *g, uint32_t nth) {
    return reverse_nth(g, PO_OP_MatMul, 1, nth);
}

/* Two axes of equal length of a product's second operand trade places. */
static bool weights_transposed(po_graph *g, uint32_t nth) {
    for (uint32_t i = 0; i < g->n_nodes; i++) {
        uint32_t rank;
        if (g->nodes[i].removed || (g->nodes[i].op != PO_OP_Conv && g->nodes[i].op != PO_OP_MatMul))
            continue;
        const po_dim *dims = po_static_dims(g, g->nodes[i].in[1], &rank);
        for (uint32_t x = 0; dims && x < rank; x++)
            for (uint32_t y = x + 1; y < rank; y++) {
                if (dims[x].value != dims[y].value || dims[x].value < 2 || nth-- != 0)
                    continue;
                int64_t perm[PO_MAX_RANK];
                for (uint32_t k = 0; k < rank; k++)
                    perm[k] = k == x ? y : k == y ? x : k;
                po_type type = g->values[g->nodes[i].in[1]].type;
                po_value_id in[1] = {g->nodes[i].in[1]};
                po_value_id v = po_add_op(g, i, PO_OP_Transpose, 1, in, &type);
                po_node_set_ints(g, g->values[v].producer, "perm", rank, perm);
                po_graph_set_input(g, i, 1, v);
                return true;
            }
    }
    return false;
}

/* The nth entry other than 0 of the float constants becomes `factor` times itself. */
static bool table_entry(po_graph *g, uint32_t nth, double factor) {
    for (uint32_t v = 0; v < g->n_values; v++) {
        const po_tensor *t = g->values[v].constant;
        if (!t || t->dtype != PO_F32 || !g->values[v].n_uses)
            continue;
        for (int64_t i = 0; i < t->count; i++) {
            if (po_tensor_f64(t, i) == 0 || nth-- != 0)
                continue;
            double *values = PO_NEW_N(g->arena, double, t->count);
            for (int64_t k = 0; k < t->count; k++)
                values[k] = po_tensor_f64(t, k) * (k == i ? factor : 1);
            po_value_id other = po_add_floats(g, NULL, PO_F32, t->rank, t->dims, values);
            return po_graph_replace_uses(g, v, other);
        }
    }
    return false;
}

static bool entry_lost(po_graph *g, uint32_t nth) {
    return table_entry(g, nth, 0);
}

static bool entry_wrong(po_graph *g, uint32_t nth) {
    return table_entry(g, nth, 9.0 / 8.0);
}

static bool entry_negated(po_graph *g, uint32_t nth) {
    return table_entry(g, nth, -1);
}

/* Dilation one more, padding so that the shape stays. */
static bool dilation_off(po_graph *g, uint32_t nth) {
    po_node *n = node_at(g, PO_OP_Conv, nth);
    uint32_t n_kernel = 0, n_pads = 0, n_dil = 0;
    const int64_t *kernel = n ? po_node_ints(n, "kernel_shape", &n_kernel) : NULL;
    const int64_t *pads = n ? po_node_ints(n, "pads", &n_pads) : NULL;
    const int64_t *dil = n ? po_node_ints(n, "dilations", &n_dil) : NULL;
    int64_t pad[64] = {0}, dilation[32];
    for (uint32_t i = 0; kernel && i < n_kernel; i++) {
        if (kernel[i] < 2 || n_kernel > 32)
            continue;
        for (uint32_t k = 0; k < n_kernel; k++) {
            dilation[k] = (dil ? dil[k] : 1) + (k == i);
            pad[k] = (pads ? pads[k] : 0) + (k == i ? kernel[i] - 1 : 0);
            pad[k + n_kernel] = pads ? pads[k + n_kernel] : 0;
        }
        po_node_set_ints(g, id_of(g, n), "pads", 2 * n_kernel, pad);
        po_node_set_ints(g, id_of(g, n), "dilations", n_kernel, dilation);
        return true;
    }
    return false;
}

/* An input takes the place of another of the same type. */
static bool inputs_mixed(po_graph *g, uint32_t nth) {
    for (uint32_t i = 0; i < g->n_inputs; i++)
        for (uint32_t k = i + 1; k < g->n_inputs; k++)
            if (po_type_equal(&g->values[g->inputs[i]].type, &g->values[g->inputs[k]].type) &&
                nth-- == 0)
                return po_graph_replace_uses(g, g->inputs[k], g->inputs[i]);
    return false;
}

static bool outputs_mixed(po_graph *g, uint32_t nth) {
    po_node *n = node_at(g, PO_OP_Split, nth);
    if (!n || n->n_out < 2 ||
        !po_type_equal(&g->values[n->out[0]].type, &g->values[n->out[1]].type))
        return false;
    return po_graph_replace_uses(g, n->out[1], n->out[0]);
}

static bool border_counted(po_graph *g, uint32_t nth) {
    po_node *n = node_at(g, PO_OP_AveragePool, nth);
    if (!n)
        return false;
    po_node_set_int(g, id_of(g, n), "count_include_pad", !po_node_int(n, "count_include_pad", 0));
    return true;
}

const test_damage test_damages[] = {
    {"padding on the wrong side", wrong_pad},
    {"slice one late", slice_late},
    {"slice one early", slice_early},
    {"wrong concat order", concat_order},
    {"a part of a concat twice", concat_twice},
    {"term dropped", term_dropped},
    {"term doubled", term_doubled},
    {"sign lost", sign_lost},
    {"digits swapped", digits_swapped},
    {"kernel flipped", kernel_flipped},
    {"weights turned around", weights_turned},
    {"phases turned around", phases_turned},
    {"factor turned around", factor_turned},
    {"weights transposed", weights_transposed},
    {"table entry lost", entry_lost},
    {"table entry 9/8 of itself", entry_wrong},
    {"table entry negated", entry_negated},
    {"dilation one more", dilation_off},
    {"inputs mixed up", inputs_mixed},
    {"parts of a split mixed up", outputs_mixed},
    {"border counted otherwise", border_counted},
};
const uint32_t test_n_damages = sizeof test_damages / sizeof *test_damages;

po_graph *test_damaged(po_ctx *ctx, const po_graph *graph, const test_damage *damage,
                       uint32_t nth) {
    po_graph *g = po_graph_clone(ctx, graph);
    bool good = damage->plant(g, nth);
    if (good)
        good = po_infer_graph(ctx, g, false) == PO_OK;
    po_ctx_clear(ctx);
    for (uint32_t i = 0; good && i < g->n_outputs; i++)
        good =
            po_type_equal(&g->values[g->outputs[i]].type, &graph->values[graph->outputs[i]].type);
    if (good)
        return g;
    po_graph_free(g);
    return NULL;
}
