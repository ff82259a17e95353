/* The table of rows and look-ups in it. */
#include "ops/families/rules.h"
#include "ops/sem/rules_sem.h"

static const po_op_row rows[PO_OP_COUNT] = {
#define PO_OP_ROW(id, name, domain, flags, min_in, max_in, min_out, max_out, infer, ref, sem,      \
                  attrs)                                                                           \
    [PO_OP_##id] = {name, domain, flags, min_in, max_in, min_out, max_out, infer, ref, sem, attrs},
#include "ops/ops.def"
#undef PO_OP_ROW
};

const po_op_row *po_op_row_of(po_op_id op) {
    return op > 0 && op < PO_OP_COUNT ? &rows[op] : NULL;
}

static const char *plain_domain(const char *domain) {
    return strcmp(domain, "ai.onnx") == 0 ? "" : domain;
}

po_op_id po_op_find(const char *domain, const char *op_type) {
    domain = plain_domain(domain);
    for (uint32_t i = 1; i < PO_OP_COUNT; i++)
        if (strcmp(rows[i].name, op_type) == 0 && strcmp(rows[i].domain, domain) == 0)
            return (po_op_id)i;
    return PO_OP_OPAQUE;
}

static po_status resolve(po_ctx *ctx, po_graph *graph, void *user) {
    (void)ctx;
    const po_map *known = user;
    for (po_node_id i = 0; i < graph->n_nodes; i++) {
        po_node *n = &graph->nodes[i];
        if (n->removed)
            continue;
        uint32_t op = po_map_get(known, n->op_type);
        n->op = PO_OP_OPAQUE;
        if (op == PO_NONE)
            continue;
        /* Names are unique but for the domain: look on only where the domain differs. */
        if (strcmp(rows[op].domain, plain_domain(n->domain)) == 0)
            n->op = (po_op_id)op;
        else
            n->op = po_op_find(n->domain, n->op_type);
    }
    return PO_OK;
}

void po_ops_resolve(po_graph *graph) {
    po_arena *scratch = po_arena_child(graph->arena);
    po_map *known = po_map_create(scratch);
    for (uint32_t i = 1; i < PO_OP_COUNT; i++)
        if (po_map_get(known, rows[i].name) == PO_NONE)
            po_map_put(known, rows[i].name, i);
    /* resolve never fails, so that no context is needed to hold an error. */
    po_graph_walk(NULL, graph, resolve, known);
    po_arena_free(scratch);
}

po_node_id po_ops_add(po_graph *graph, po_node_id place, const po_node_spec *spec) {
    po_node_spec full = *spec;
    full.op_type = rows[spec->op].name;
    full.domain = rows[spec->op].domain;
    return place == PO_NONE ? po_graph_add_node(graph, &full)
                            : po_graph_add_node_at(graph, place, &full);
}

int64_t po_op_version(const po_graph *graph, const po_node *node) {
    return graph->model ? po_model_opset(graph->model, node->domain) : 0;
}

static const po_attr_def *definition(const po_graph *graph, const po_node *node, const char *name) {
    const po_op_row *row = po_op_row_of(node->op);
    if (!row || !row->attrs)
        return NULL;
    int64_t version = po_op_version(graph, node);
    for (const po_attr_def *d = row->attrs; d->name; d++)
        if (strcmp(d->name, name) == 0 && version >= d->since &&
            (d->until == 0 || version <= d->until))
            return d;
    return NULL;
}

int64_t po_op_int(const po_graph *graph, const po_node *node, const char *name) {
    const po_attr_def *d = definition(graph, node, name);
    return po_node_int(node, name, d && d->has_default ? d->i : 0);
}

float po_op_float(const po_graph *graph, const po_node *node, const char *name) {
    const po_attr_def *d = definition(graph, node, name);
    return po_node_float(node, name, d && d->has_default ? d->f : 0.0f);
}

po_bytes po_op_string(const po_graph *graph, const po_node *node, const char *name) {
    const po_attr *a = po_node_attr(node, name);
    if (a && a->kind == PO_ATTR_STRING && !a->reference)
        return a->u.s;
    const po_attr_def *d = definition(graph, node, name);
    return d && d->has_default && d->s ? (po_bytes){d->s, strlen(d->s)} : (po_bytes){NULL, 0};
}

po_status po_ops_check_node(po_ctx *ctx, const po_graph *graph, const po_node *node) {
    const po_op_row *row = po_op_row_of(node->op);
    if (!row)
        return PO_OK;
    if ((int)node->n_in < row->min_in || (row->max_in >= 0 && (int)node->n_in > row->max_in))
        return po_fail(ctx, PO_BAD_INPUT, "node '%s' (%s): wrong number of inputs (found %u)",
                       node->name, node->op_type, node->n_in);
    if ((int)node->n_out < row->min_out || (row->max_out >= 0 && (int)node->n_out > row->max_out))
        return po_fail(ctx, PO_BAD_INPUT, "node '%s' (%s): wrong number of outputs (found %u)",
                       node->name, node->op_type, node->n_out);
    int64_t version = po_op_version(graph, node);
    for (const po_attr_def *d = row->attrs; d && d->name; d++) {
        if (version < d->since || (d->until && version > d->until))
            continue;
        const po_attr *a = po_node_attr(node, d->name);
        if (!a && d->required)
            return po_fail(ctx, PO_BAD_INPUT, "node '%s' (%s): attribute '%s' is missing",
                           node->name, node->op_type, d->name);
        if (a && !a->reference && a->kind != d->kind)
            return po_fail(ctx, PO_BAD_INPUT,
                           "node '%s' (%s): attribute '%s' has the wrong type (found %d, want %d)",
                           node->name, node->op_type, d->name, (int)a->kind, (int)d->kind);
    }
    return PO_OK;
}
