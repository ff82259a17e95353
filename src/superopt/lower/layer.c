/* LayerNormalization: a sum for each row, its squares about the mean, a factor, and then one pass
 * to which what follows is fused. RMSNormalization: the same about 0. */
#include "superopt/lower/internal.h"

/* The first axis that is normalised; rank: another form. */
static uint32_t first_axis(const po_graph *graph, const po_node *node) {
    const po_type *type = &graph->values[node->in[0]].type;
    int64_t axis = po_op_int(graph, node, "axis");
    if (axis < 0)
        axis += type->rank;
    return axis < 0 || axis > (int64_t)type->rank ? type->rank : (uint32_t)axis;
}

bool po_lower_layer_fits(const po_graph *graph, const po_node *node) {
    const po_type *x = &graph->values[node->in[0]].type;
    uint32_t axis = first_axis(graph, node);
    if (node->n_out != 1 || node->n_in < 2 || axis == 0 || axis >= x->rank ||
        x->rank > PO_MU_MAX_RANK)
        return false;
    for (uint32_t k = 1; k < node->n_in; k++) {
        if (node->in[k] == PO_NONE)
            continue;
        const po_type *t = &graph->values[node->in[k]].type;
        if (t->rank != x->rank - axis)
            return false;
        for (uint32_t i = 0; i < t->rank; i++)
            if (t->dims[i].value != x->dims[axis + i].value)
                return false;
    }
    return true;
}

typedef struct layer {
    po_steps b;
    const char *name;
    uint32_t axis;
} layer;

/* A number for each row. */
static po_view each_row(layer *p, const char *name) {
    uint32_t rank;
    const po_dim *dims = po_lower_dims(p->b.l, p->b.value, &rank);
    po_view view = {.set = true, .rank = p->axis};
    int64_t shape[PO_MU_MAX_RANK];
    for (uint32_t i = 0; i < p->axis; i++) {
        shape[i] = dims[i].value;
        view.coef[i][i] = 1;
    }
    view.tensor = po_mu_add_tensor(p->b.l->mu, name, PO_MU_DEVICE, p->axis, shape);
    return view;
}

static void start(layer *p, const char *what, po_mu_combine combine) {
    po_steps_start(&p->b, po_arena_printf(p->b.l->arena, "%s%s", p->name, what), combine);
}

/* x less the mean of its row; sum NULL: x. */
static uint32_t centred(po_steps *p, const po_view *x, const po_view *sum, double elements) {
    uint32_t a = po_steps_read(p, x), b = sum ? po_steps_read(p, sum) : PO_NONE;
    return !sum ? a
                : po_steps_item(p, PO_MU_MINUS, a,
                                po_steps_item(p, PO_MU_TIMES, b, po_steps_number(p, 1 / elements)));
}

po_status po_lower_layer(po_lowering *l, const po_node *node) {
    layer p = {.b = {.l = l, .value = node->in[0]},
               .name = node->op_type,
               .axis = first_axis(l->graph, node)};
    po_steps *b = &p.b;
    const po_view *in = po_lower_read(l, b->value);
    uint32_t rank;
    const po_dim *dims = po_lower_dims(l, b->value, &rank);
    double elements = 1;
    for (uint32_t i = p.axis; i < rank; i++)
        elements *= (double)dims[i].value;
    if (!in || !po_lower_layer_fits(l->graph, node))
        return PO_UNSUPPORTED;
    po_view x = *in, squares = each_row(&p, "q"), factor = each_row(&p, "f"), sum;
    const po_view *about = NULL;
    if (node->op == PO_OP_LayerNormalization) {
        sum = each_row(&p, "s");
        about = &sum;
        start(&p, " sums", PO_MU_ADD);
        po_steps_output(b, &sum);
        po_steps_read(b, &x);
    }
    start(&p, " squares", PO_MU_ADD);
    po_steps_output(b, &squares);
    uint32_t a = centred(b, &x, about, elements);
    po_steps_item(b, PO_MU_TIMES, a, a);
    start(&p, " factors", PO_MU_SET);
    po_steps_output(b, &factor);
    a = po_steps_item(b, PO_MU_TIMES, po_steps_read(b, &squares), po_steps_number(b, 1 / elements));
    a = po_steps_item(b, PO_MU_PLUS, a,
                      po_steps_number(b, (double)po_node_float(node, "epsilon", 1e-5F)));
    po_steps_item(b, PO_MU_OVER, po_steps_number(b, 1), po_steps_item(b, PO_MU_SQRT, a, 0));
    start(&p, "", PO_MU_SET);
    a = centred(b, &x, about, elements);
    a = po_steps_item(b, PO_MU_TIMES, a, po_steps_read(b, &factor));
    for (uint32_t k = 1; k < 3 && k < node->n_in; k++) {
        uint32_t w = node->in[k] == PO_NONE
                         ? PO_NONE
                         : po_lower_operand(l, b->statement, node->in[k], &b->at[p.axis]);
        if (w == PO_NONE && node->in[k] != PO_NONE)
            return PO_UNSUPPORTED;
        if (w != PO_NONE)
            a = po_steps_item(b, k == 1 ? PO_MU_TIMES : PO_MU_PLUS, a, w);
    }
    return po_steps_finish(b, node);
}
