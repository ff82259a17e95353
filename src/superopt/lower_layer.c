/* LayerNormalization: a sum for each row, its squares about the mean, a factor, and then one pass
 * to which what follows is fused. RMSNormalization: the same about 0. */
#include "superopt/lower_private.h"

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
    po_lowering *l;
    po_value_id x;
    const char *name;
    uint32_t axis, step, statement;
    po_affine at[PO_MU_MAX_RANK];
} layer;

/* A number for each row. */
static po_view each_row(layer *p, const char *name) {
    uint32_t rank;
    const po_dim *dims = po_lower_dims(p->l, p->x, &rank);
    po_view view = {.set = true, .rank = p->axis};
    int64_t shape[PO_MU_MAX_RANK];
    for (uint32_t i = 0; i < p->axis; i++) {
        shape[i] = dims[i].value;
        view.coef[i][i] = 1;
    }
    view.tensor = po_mu_add_tensor(p->l->mu, name, PO_MU_DEVICE, p->axis, shape);
    return view;
}

static void start(layer *p, const char *what, po_mu_combine combine) {
    po_lower_labels(p->l, p->x, p->at);
    p->step = po_mu_add_step(p->l->mu, po_arena_printf(p->l->arena, "%s%s", p->name, what));
    p->statement = po_mu_add_statement(p->l->mu, p->step, combine);
    p->l->mu->nodes[p->statement].statement.fresh = combine != PO_MU_SET;
}

static void write(layer *p, const po_view *to) {
    p->l->mu->nodes[p->statement].statement.out = po_lower_access(p->l, to, p->at);
}

static uint32_t read(layer *p, const po_view *view) {
    uint32_t operand = po_mu_operand(p->l->mu, p->statement, po_lower_access(p->l, view, p->at));
    return po_mu_item_of(p->l->mu, p->statement, PO_MU_OPERAND, operand, 0, 0);
}

static uint32_t item(layer *p, po_mu_function f, uint32_t a, uint32_t b) {
    return po_mu_item_of(p->l->mu, p->statement, f, a, b, 0);
}

static uint32_t number(layer *p, double value) {
    return po_mu_constant(p->l->mu, p->statement, value);
}

/* x less the mean of its row; sum NULL: x. */
static uint32_t centred(layer *p, const po_view *x, const po_view *sum, double elements) {
    uint32_t a = read(p, x), b = sum ? read(p, sum) : PO_NONE;
    return !sum ? a : item(p, PO_MU_MINUS, a, item(p, PO_MU_TIMES, b, number(p, 1 / elements)));
}

po_status po_lower_layer(po_lowering *l, const po_node *node) {
    layer p = {.l = l, .x = node->in[0], .name = node->op_type, .axis = first_axis(l->graph, node)};
    const po_view *in = po_lower_read(l, p.x);
    uint32_t rank;
    const po_dim *dims = po_lower_dims(l, p.x, &rank);
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
        write(&p, &sum);
        read(&p, &x);
    }
    start(&p, " squares", PO_MU_ADD);
    write(&p, &squares);
    uint32_t a = centred(&p, &x, about, elements);
    item(&p, PO_MU_TIMES, a, a);
    start(&p, " factors", PO_MU_SET);
    write(&p, &factor);
    a = item(&p, PO_MU_TIMES, read(&p, &squares), number(&p, 1 / elements));
    a = item(&p, PO_MU_PLUS, a, number(&p, (double)po_node_float(node, "epsilon", 1e-5F)));
    item(&p, PO_MU_OVER, number(&p, 1), item(&p, PO_MU_SQRT, a, 0));
    start(&p, "", PO_MU_SET);
    a = centred(&p, &x, about, elements);
    a = item(&p, PO_MU_TIMES, a, read(&p, &factor));
    for (uint32_t k = 1; k < 3 && k < node->n_in; k++) {
        uint32_t b = node->in[k] == PO_NONE
                         ? PO_NONE
                         : po_lower_operand(l, p.statement, node->in[k], &p.at[p.axis]);
        if (b == PO_NONE && node->in[k] != PO_NONE)
            return PO_UNSUPPORTED;
        if (b != PO_NONE)
            a = item(&p, k == 1 ? PO_MU_TIMES : PO_MU_PLUS, a, b);
    }
    po_lower_end end = {.step = p.step,
                        .statement = p.statement,
                        .node = (po_node_id)(node - l->graph->nodes),
                        .value = node->out[0],
                        .at = p.at,
                        .scale = 1};
    return po_lower_finish(l, &end);
}
