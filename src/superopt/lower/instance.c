/* InstanceNormalization: the mean of each map, the sum of squares about it, a factor and a summand
 * for each map, and then one pass over the maps to which what follows is fused. */
#include "superopt/lower/internal.h"

bool po_lower_instance_fits(const po_graph *graph, const po_node *node) {
    const po_type *type = &graph->values[node->in[0]].type;
    return node->n_out == 1 && node->n_in == 3 && type->rank >= 3 &&
           po_graph_constant(graph, node->in[1]) && po_graph_constant(graph, node->in[2]);
}

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

po_status po_lower_instance(po_lowering *l, const po_node *node) {
    po_value_id v = node->in[0];
    po_steps p = {.l = l, .value = v};
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
    po_steps_start(&p, "InstanceNormalization sums", PO_MU_ADD);
    po_steps_output(&p, &sum);
    po_steps_read(&p, &x);
    po_steps_start(&p, "InstanceNormalization squares", PO_MU_ADD);
    po_steps_output(&p, &squares);
    uint32_t a = po_steps_read(&p, &x), b = po_steps_read(&p, &sum);
    a = po_steps_item(&p, PO_MU_MINUS, a,
                      po_steps_item(&p, PO_MU_TIMES, b, po_steps_number(&p, 1 / elements)));
    po_steps_item(&p, PO_MU_TIMES, a, a);
    /* By channel: labels of the two axes only. */
    for (uint32_t i = 0; i < 2; i++) {
        po_steps_start(&p, i ? "InstanceNormalization summands" : "InstanceNormalization factors",
                       PO_MU_SET);
        po_steps_output(&p, i ? &summand : &factor);
        po_lower_index channel = p.at[1];
        po_lower_index saved = p.at[0];
        p.at[0] = channel;
        const po_view *constant = po_lower_read(l, node->in[i + 1]);
        if (!constant)
            return PO_UNSUPPORTED;
        po_view view = *constant;
        uint32_t c = po_steps_read(&p, &view);
        p.at[0] = saved;
        if (i) {
            a = po_steps_item(&p, PO_MU_TIMES, po_steps_read(&p, &sum),
                              po_steps_number(&p, 1 / elements));
            b = po_steps_read(&p, &factor);
            po_steps_item(&p, PO_MU_MINUS, c, po_steps_item(&p, PO_MU_TIMES, a, b));
        } else {
            a = po_steps_item(&p, PO_MU_TIMES, po_steps_read(&p, &squares),
                              po_steps_number(&p, 1 / elements));
            double epsilon = (double)po_node_float(node, "epsilon", 1e-5F);
            po_steps_item(
                &p, PO_MU_OVER, c,
                po_steps_item(&p, PO_MU_SQRT,
                              po_steps_item(&p, PO_MU_PLUS, a, po_steps_number(&p, epsilon)), 0));
        }
    }
    po_steps_start(&p, "InstanceNormalization", PO_MU_SET);
    a = po_steps_read(&p, &x);
    a = po_steps_item(&p, PO_MU_TIMES, a, po_steps_read(&p, &factor));
    po_steps_item(&p, PO_MU_PLUS, a, po_steps_read(&p, &summand));
    return po_steps_finish(&p, node);
}
