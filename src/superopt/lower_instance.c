/* InstanceNormalization: the mean of each map, the sum of squares about it, a factor and a summand
 * for each map, and then one pass over the maps to which what follows is fused. */
#include "superopt/lower_private.h"

bool po_lower_instance_fits(const po_graph *graph, const po_node *node) {
    const po_type *type = &graph->values[node->in[0]].type;
    return node->n_out == 1 && node->n_in == 3 && type->rank >= 3 &&
           po_graph_constant(graph, node->in[1]) && po_graph_constant(graph, node->in[2]);
}

typedef struct instance {
    po_lowering *l;
    po_affine at[PO_MU_MAX_RANK];
    uint32_t step, statement;
} instance;

/* A number for each map. */
static po_view each_map(po_lowering *l, const char *name, po_value_id v) {
    uint32_t rank;
    const po_dim *dims = po_lower_dims(l, v, &rank);
    po_view view = {.set = true, .rank = 2};
    const int64_t shape[] = {dims[0].value, dims[1].value};
    view.coef[0][0] = view.coef[1][1] = 1;
    view.tensor = po_mu_add_tensor(l->mu, name, PO_MU_DEVICE, 2, shape);
    return view;
}

static void start(instance *p, const char *name, po_value_id v, po_mu_combine combine) {
    po_lower_labels(p->l, v, p->at);
    p->step = po_mu_add_step(p->l->mu, name);
    p->statement = po_mu_add_statement(p->l->mu, p->step, combine);
    p->l->mu->nodes[p->statement].statement.fresh = combine != PO_MU_SET;
}

static void write(instance *p, const po_view *to) {
    p->l->mu->nodes[p->statement].statement.out = po_lower_access(p->l, to, p->at);
}

static uint32_t read(instance *p, const po_view *view) {
    uint32_t operand = po_mu_operand(p->l->mu, p->statement, po_lower_access(p->l, view, p->at));
    return po_mu_item_of(p->l->mu, p->statement, PO_MU_OPERAND, operand, 0, 0);
}

static uint32_t item(instance *p, po_mu_function f, uint32_t a, uint32_t b) {
    return po_mu_item_of(p->l->mu, p->statement, f, a, b, 0);
}

static uint32_t number(instance *p, double value) {
    return po_mu_constant(p->l->mu, p->statement, value);
}

po_status po_lower_instance(po_lowering *l, const po_node *node) {
    instance p = {.l = l};
    po_value_id v = node->in[0];
    const po_view *in = po_lower_read(l, v);
    uint32_t rank;
    const po_dim *dims = po_lower_dims(l, v, &rank);
    double elements = 1;
    for (uint32_t i = 2; i < rank; i++)
        elements *= (double)dims[i].value;
    if (!in || !po_lower_instance_fits(l->graph, node))
        return PO_UNSUPPORTED;
    po_view x = *in, sum = each_map(l, "s", v), squares = each_map(l, "q", v);
    po_view factor = each_map(l, "f", v), summand = each_map(l, "g", v);
    start(&p, "InstanceNormalization sums", v, PO_MU_ADD);
    write(&p, &sum);
    read(&p, &x);
    start(&p, "InstanceNormalization squares", v, PO_MU_ADD);
    write(&p, &squares);
    uint32_t a = read(&p, &x), b = read(&p, &sum);
    a = item(&p, PO_MU_MINUS, a, item(&p, PO_MU_TIMES, b, number(&p, 1 / elements)));
    item(&p, PO_MU_TIMES, a, a);
    /* By channel: labels of the two axes only. */
    for (uint32_t i = 0; i < 2; i++) {
        start(&p, i ? "InstanceNormalization summands" : "InstanceNormalization factors", v,
              PO_MU_SET);
        write(&p, i ? &summand : &factor);
        po_affine channel = p.at[1];
        po_affine saved = p.at[0];
        p.at[0] = channel;
        const po_view *constant = po_lower_read(l, node->in[i + 1]);
        if (!constant)
            return PO_UNSUPPORTED;
        po_view view = *constant;
        uint32_t c = read(&p, &view);
        p.at[0] = saved;
        if (i) {
            a = item(&p, PO_MU_TIMES, read(&p, &sum), number(&p, 1 / elements));
            b = read(&p, &factor);
            item(&p, PO_MU_MINUS, c, item(&p, PO_MU_TIMES, a, b));
        } else {
            a = item(&p, PO_MU_TIMES, read(&p, &squares), number(&p, 1 / elements));
            double epsilon = (double)po_node_float(node, "epsilon", 1e-5F);
            item(&p, PO_MU_OVER, c,
                 item(&p, PO_MU_SQRT, item(&p, PO_MU_PLUS, a, number(&p, epsilon)), 0));
        }
    }
    start(&p, "InstanceNormalization", v, PO_MU_SET);
    a = read(&p, &x);
    a = item(&p, PO_MU_TIMES, a, read(&p, &factor));
    item(&p, PO_MU_PLUS, a, read(&p, &summand));
    po_lower_end end = {.step = p.step,
                        .statement = p.statement,
                        .node = (po_node_id)(node - l->graph->nodes),
                        .value = node->out[0],
                        .at = p.at,
                        .scale = 1};
    return po_lower_finish(l, &end);
}
