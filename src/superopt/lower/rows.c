/* Softmax and the norm of a row: several naive steps each, so that the search can take them apart.
 */
#include "superopt/lower/internal.h"

/* The axis that the node works along; false where it has another form. */
static bool axis_of(const po_graph *graph, const po_node *node, uint32_t *axis) {
    const po_type *type = &graph->values[node->in[0]].type;
    int64_t a = -1;
    if (node->op == PO_OP_Softmax) {
        a = po_op_int(graph, node, "axis");
        if (po_op_version(graph, node) < 13 && a != -1 && a != (int64_t)type->rank - 1)
            return false;
    } else {
        uint32_t n = 0;
        const int64_t *axes = po_node_ints(node, "axes", &n);
        const po_tensor *t =
            node->n_in > 1 && node->in[1] != PO_NONE ? po_graph_constant(graph, node->in[1]) : NULL;
        if (node->n_in > 1 ? !t || t->count != 1 || t->dtype != PO_I64 : n != 1)
            return false;
        if (po_op_int(graph, node, "keepdims") != 1)
            return false;
        a = node->n_in > 1 ? (int64_t)po_tensor_f64(t, 0) : axes[0];
    }
    if (a < 0)
        a += type->rank;
    *axis = (uint32_t)a;
    return a >= 0 && a < (int64_t)type->rank;
}

bool po_lower_rows_fit(const po_graph *graph, const po_node *node) {
    uint32_t axis;
    return node->n_out == 1 && axis_of(graph, node, &axis);
}

/* A tensor of the value's shape, or with one element along the axis. */
static po_view temporary(po_lowering *l, const char *name, po_value_id v, uint32_t axis) {
    uint32_t rank;
    const po_dim *dims = po_lower_dims(l, v, &rank);
    int64_t shape[PO_MU_MAX_RANK];
    po_view view = {.set = true, .rank = rank};
    for (uint32_t i = 0; i < rank; i++) {
        shape[i] = i == axis ? 1 : dims[i].value;
        view.coef[i][i] = 1;
    }
    view.tensor = po_mu_add_tensor(l->mu, name, PO_MU_DEVICE, rank, shape);
    return view;
}

typedef struct rows {
    po_steps b;
    uint32_t axis;
    const char *name;
} rows;

static void start(rows *r, const char *what, const po_view *out, po_mu_combine combine) {
    po_steps_start(&r->b, po_arena_printf(r->b.l->arena, "%s %s", r->name, what), combine);
    po_lower_index along = r->b.at[r->axis];
    if (combine != PO_MU_SET)
        r->b.at[r->axis] = (po_lower_index){0};
    po_steps_output(&r->b, out);
    r->b.at[r->axis] = along;
}

static uint32_t read(rows *r, const po_view *view, bool along) {
    po_lower_index at = r->b.at[r->axis];
    if (!along)
        r->b.at[r->axis] = (po_lower_index){0};
    uint32_t item = po_steps_read(&r->b, view);
    r->b.at[r->axis] = at;
    return item;
}

po_status po_lower_softmax(po_lowering *l, const po_node *node) {
    rows r = {.b = {.l = l, .value = node->in[0]}, .name = "Softmax"};
    const po_view *in = po_lower_read(l, node->in[0]);
    if (!in || !axis_of(l->graph, node, &r.axis))
        return PO_UNSUPPORTED;
    po_view x = *in, most = temporary(l, "m", r.b.value, r.axis),
            p = temporary(l, "p", r.b.value, PO_NONE), sum = temporary(l, "l", r.b.value, r.axis),
            out = *po_lower_storage(l, node->out[0]);
    start(&r, "maximum", &most, PO_MU_MAXIMUM);
    read(&r, &x, true);
    start(&r, "exp", &p, PO_MU_SET);
    uint32_t a = read(&r, &x, true), b = read(&r, &most, false);
    po_steps_item(&r.b, PO_MU_EXP, po_steps_item(&r.b, PO_MU_MINUS, a, b), 0);
    start(&r, "sum", &sum, PO_MU_ADD);
    read(&r, &p, true);
    start(&r, "division", &out, PO_MU_SET);
    a = read(&r, &p, true);
    b = read(&r, &sum, false);
    po_steps_item(&r.b, PO_MU_OVER, a, b);
    return PO_OK;
}

po_status po_lower_norm(po_lowering *l, const po_node *node) {
    rows r = {.b = {.l = l, .value = node->in[0]}, .name = "ReduceL2"};
    const po_view *in = po_lower_read(l, node->in[0]);
    if (!in || !axis_of(l->graph, node, &r.axis))
        return PO_UNSUPPORTED;
    po_view x = *in, sum = temporary(l, "s", r.b.value, r.axis),
            out = *po_lower_storage(l, node->out[0]);
    start(&r, "sum", &sum, PO_MU_ADD);
    uint32_t a = read(&r, &x, true);
    po_steps_item(&r.b, PO_MU_TIMES, a, a);
    rows root = {.b = {.l = l, .value = node->out[0]}, .name = r.name, .axis = r.axis};
    start(&root, "root", &out, PO_MU_SET);
    po_steps_item(&root.b, PO_MU_SQRT, read(&root, &sum, true), 0);
    return PO_OK;
}
