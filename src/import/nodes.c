/* What can be wrong with a single node, whatever its operator computes: registered operators get
 * the check of their row, and numbers that no operator can have are refused here, before a shape
 * rule divides by one of them. */
#include "import/parts.h"

#include "ops/op.h"

/* Attributes with limits that hold for every standard operator that has them. */
typedef struct limit {
    const char *attr;
    int64_t least, most;
    bool window; /* only for operators with a sliding window */
} limit;

static const limit limits[] = {
    {"strides", 1, INT32_MAX, true},
    {"dilations", 1, INT32_MAX, true},
    {"kernel_shape", 1, INT32_MAX, true},
    {"pads", 0, INT32_MAX, true},
    {"output_padding", 0, INT32_MAX, true},
    {"group", 1, INT32_MAX, false},
    {"blocksize", 1, INT32_MAX, false},
    {"num_outputs", 1, INT32_MAX, false},
    {"axis", -PO_MAX_RANK - 1, PO_MAX_RANK, false},
    {"axes", -PO_MAX_RANK - 1, PO_MAX_RANK, false},
    {"perm", 0, PO_MAX_RANK - 1, false},
};

static bool is_standard(const po_node *n) {
    return !*n->domain || strcmp(n->domain, "ai.onnx") == 0;
}

static po_status check_range(po_importer *im, const po_place *place, const char *name,
                             const int64_t *values, uint32_t n, const limit *l) {
    for (uint32_t i = 0; i < n; i++)
        if (values[i] < l->least || values[i] > l->most)
            return po_bad(im, place,
                          "attribute '%s' is out of range (found %lld, limit %lld to %lld)", name,
                          (long long)values[i], (long long)l->least, (long long)l->most);
    return PO_OK;
}

static po_status check_limits(po_importer *im, const po_place *place, const po_node *n) {
    for (uint32_t k = 0; k < n->n_attr; k++) {
        const po_attr *a = &n->attr[k];
        if (a->kind != PO_ATTR_INT && a->kind != PO_ATTR_INTS)
            continue;
        for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++) {
            const limit *l = &limits[i];
            if (strcmp(a->name, l->attr) != 0 || (l->window && !po_op_has(n->op, PO_OPF_WINDOW)))
                continue;
            bool one = a->kind == PO_ATTR_INT;
            PO_TRY(check_range(im, place, a->name, one ? &a->u.i : a->u.ints, one ? 1 : a->n, l));
        }
    }
    return PO_OK;
}

/* A Reshape to a constant shape. */
static po_status check_reshape(po_importer *im, const po_place *place, const po_graph *g,
                               const po_node *n) {
    uint32_t count = 0;
    const int64_t *dims = po_node_ints(n, "shape", &count); /* before opset 5 */
    const po_tensor *shape = n->n_in > 1 ? po_graph_constant(g, n->in[1]) : NULL;
    if (shape && shape->dtype != PO_I64)
        shape = NULL; /* its row refuses it */
    if (shape)
        count = (uint32_t)(shape->count > PO_MAX_RANK ? 0 : shape->count);
    uint32_t unknown = 0;
    for (uint32_t i = 0; i < count; i++) {
        int64_t d = shape ? po_tensor_int(shape, i) : dims[i];
        unknown += d == -1;
        if (d < -1)
            return po_bad(im, place, "dim %u to reshape to is negative (found %lld, limit -1)", i,
                          (long long)d);
    }
    if (unknown > 1)
        return po_bad(im, place, "more than one dim to reshape to is -1 (found %u, limit 1)",
                      unknown);
    return PO_OK;
}

static po_status check_row(po_importer *im, const po_place *place, const po_graph *g,
                           const po_node *n) {
    if (po_ops_check_node(im->ctx, g, n) == PO_OK && po_signature_check(im->ctx, g, n) == PO_OK)
        return PO_OK;
    return po_fail_again_at(im->ctx, im->file, place);
}

static po_status check_graph(po_ctx *ctx, po_graph *g, void *user) {
    po_importer *im = user;
    (void)ctx;
    po_place body = {NULL, g->parent ? g->name : NULL, -1, NULL};
    po_place graph = {g->parent && *g->name ? &body : NULL, "graph", -1, NULL};
    for (po_node_id i = 0; i < g->n_nodes; i++) {
        const po_node *n = &g->nodes[i];
        po_place at = {&graph, "node", i, n->name};
        if (!is_standard(n))
            continue;
        if (po_model_opset(im->model, "") == 0)
            return po_bad(im, &at, "the standard operator set is not imported ('%.60s' is of it)",
                          n->op_type);
        PO_TRY(check_limits(im, &at, n));
        if (strcmp(n->op_type, "Reshape") == 0)
            PO_TRY(check_reshape(im, &at, g, n));
        PO_TRY(check_row(im, &at, g, n));
    }
    return PO_OK;
}

/* Shapes that contradict one another in a node that is always executed: no runtime takes that. */
static po_status check_shapes(po_importer *im) {
    po_graph *g = im->model->graph;
    po_node_id failed;
    po_status status = po_infer_check(im->ctx, g, &failed);
    if (failed == PO_NONE)
        return status;
    po_place graph = {NULL, "graph", -1, NULL};
    po_place at = {&graph, "node", failed, g->nodes[failed].name};
    return po_fail_again_at(im->ctx, im->file, &at);
}

po_status po_check_nodes(po_importer *im) {
    po_ops_resolve(im->model->graph);
    PO_TRY(po_graph_walk(im->ctx, im->model->graph, check_graph, im));
    PO_TRY(check_shapes(im));
    return po_infer_forget_shapes(im->ctx, im->model->graph);
}
